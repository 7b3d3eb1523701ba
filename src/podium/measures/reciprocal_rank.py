"""Reciprocal rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import NDArray

from podium.core.array_types import Floats
from podium.measures.base import Example
from podium.measures.binary import Binary
from podium.measures.cascade import Cascade
from podium.measures.registry import register


@register
@dataclass(frozen=True)
class RR(Binary, Cascade):
    """Reciprocal rank, 1/f, f the rank of the first relevant document; its mean is MRR.

    It is the cascade whose user stops at the first relevant document: R is 1 or 0. ([B] §3.)

    Args:
        cutoff: 0 where the first relevant document has a lower rank.
        threshold: a document is relevant if its label is at least this.

    Example:
        >>> from podium import RR
        >>> RR().value([0, 0, 0, 1])
        0.25

    """

    name: ClassVar[str] = "rr"
    aliases: ClassVar[tuple[str, ...]] = ("mrr",)
    examples: ClassVar[tuple[Example, ...]] = (
        Example("rr", (0, 0, 1, 1), 1 / 3),
        Example("rr@2", (0, 0, 1, 1), 0.0),
        Example("rr(ties=expected)", (0, 1, 0), (1 + 1 / 2 + 1 / 3) / 3, scores=(1, 1, 1)),
    )

    def stops(self, labels: NDArray[Any]) -> Floats:
        """1 for a relevant document."""
        return self.relevant(labels)
