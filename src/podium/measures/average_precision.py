"""Average precision."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Floats, Ints
from podium.measures.base import Example
from podium.measures.binary import Binary
from podium.measures.blended import Blended
from podium.measures.registry import register


@register
@dataclass(frozen=True)
class AP(Binary, Blended):
    """Average precision: the mean over the relevant documents of the precision at their ranks (its mean is MAP).

    AP@T = (1/R) Σ_{r≤T} rel_r c_r / r, c_r of the R relevant documents among the first r. ([B] §3.) It is the sum of
    blended ratios (`podium.measures.blended`) with the bonus 1 and the divisor r.

    Args:
        cutoff: T; the sum is divided by all R relevant documents nevertheless.
        threshold: a document is relevant if its label is at least this.

    Example:
        >>> from podium import AP
        >>> AP().value([1, 0, 0, 1])
        0.75

    """

    name: ClassVar[str] = "ap"
    aliases: ClassVar[tuple[str, ...]] = ("map",)
    bonuses_differ: ClassVar[bool] = False
    examples: ClassVar[tuple[Example, ...]] = (
        Example("ap", (1, 0, 1, 0), (1 + 2 / 3) / 2),
        Example("ap@2", (1, 0, 1, 0), 1 / 2),
        Example("ap(threshold=2)", (1, 2), 1 / 2),
        Example("ap", (math.nan, 1), 1 / 2),
        Example("ap(ties=expected)", (1, 0), (1 + 1 / 2) / 2, scores=(5, 5)),
    )

    def bonuses(self, labels: NDArray[Any]) -> Floats:
        """1 for a relevant document."""
        return self.relevant(labels)

    def divisors(self, bonuses: Floats, offsets: Ints) -> Floats:
        """The ranks 1, 2, …"""
        return np.arange(1.0, len(bonuses) + 1.0) - np.repeat(offsets[:-1], np.diff(offsets))
