"""Rank-biased precision."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np

from podium.core.array_types import Floats
from podium.errors import DataError
from podium.measures.base import Example
from podium.measures.binary import BinaryDiscounted
from podium.measures.registry import register


@register
@dataclass(frozen=True)
class RBP(BinaryDiscounted):
    """Rank-biased precision, (1 − p) Σ_r rel_r p^{r−1} (Moffat and Zobel 2008).

    Args:
        p: the patience of the user, who goes on to the next rank with this probability.

    Example:
        >>> from podium import RBP
        >>> RBP(p=0.5).value([1, 0, 1])
        0.625

    """

    _: KW_ONLY
    p: float = 0.8

    name: ClassVar[str] = "rbp"
    examples: ClassVar[tuple[Example, ...]] = (Example("rbp(p=0.5)", (1, 0, 1), 0.5 * (1 + 0.25)),)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.p, int | float) or not 0 < self.p < 1:
            raise DataError(f"p must be between 0 and 1, but is {self.p}")

    def discounts(self, depth: int) -> Floats:
        """(1 − p) p^{r−1}."""
        return np.asarray((1.0 - self.p) * self.p ** np.arange(self._depth(depth)))
