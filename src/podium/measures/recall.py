"""Recall at a cutoff."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from podium.core.array_types import Floats, Ints
from podium.measures.base import Example
from podium.measures.binary import BinaryDiscounted
from podium.measures.registry import register


@register
@dataclass(frozen=True)
class Recall(BinaryDiscounted):
    """The share of the relevant documents that are among the first k: R@k = (1/R) Σ_{r≤k} rel_r.

    Args:
        cutoff: k.
        threshold: a document is relevant if its label is at least this.

    Example:
        >>> from podium import Recall
        >>> Recall(2).value([1, 0, 1, 1, 1])
        0.25

    """

    name: ClassVar[str] = "recall"
    needs_cutoff: ClassVar[bool] = True
    examples: ClassVar[tuple[Example, ...]] = (Example("recall@2", (1, 0, 1, 1), 1 / 3),)

    def norms(self, gains: Floats, offsets: Ints, sizes: Ints) -> Floats:
        """The number of relevant documents."""
        return np.asarray(np.add.reduceat(gains, offsets[:-1])) if len(offsets) > 1 else np.empty(0)
