"""What measures of relevant and irrelevant documents have in common."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Floats
from podium.errors import DataError
from podium.measures.base import Measure
from podium.measures.discounted import Discounted


@dataclass(frozen=True)
class Binary(Measure):
    """A measure of relevant and irrelevant documents.

    Args:
        threshold: a document is relevant if its label is at least this.

    """

    _: KW_ONLY
    threshold: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.threshold, int | float) or not math.isfinite(self.threshold):
            raise DataError(f"threshold must be a number, not {self.threshold!r}")

    def relevant(self, labels: NDArray[Any]) -> Floats:
        """1 for a relevant document, 0 for others and for those without a label."""
        return (np.asarray(labels) >= self.threshold).astype(np.float64)

    def is_empty(self, labels: Floats) -> bool:
        """Whether no document is relevant."""
        return not self.relevant(labels).any()


@dataclass(frozen=True)
class BinaryDiscounted(Binary, Discounted):
    """A sum of discounts over the relevant documents; the discount is 1 down to the cutoff unless overridden."""

    def gains(self, labels: NDArray[Any]) -> Floats:
        """1 for a relevant document."""
        return self.relevant(labels)

    def discounts(self, depth: int) -> Floats:
        """1 down to the cutoff."""
        return np.ones(self._depth(depth))
