"""Measures of relevant and irrelevant documents: precision, recall, rank-biased precision."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Floats, Ints
from podium.errors import DataError
from podium.measures.base import Example, Measure
from podium.measures.discounted import Discounted
from podium.measures.registry import register


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
        return not self.relevant(labels).any()


@dataclass(frozen=True)
class BinaryDiscounted(Binary, Discounted):
    """A sum of discounts over the relevant documents; the discount is 1 down to the cutoff unless overridden."""

    def gains(self, labels: NDArray[Any]) -> Floats:
        return self.relevant(labels)

    def discounts(self, depth: int) -> Floats:
        return np.ones(self._depth(depth))


@register
@dataclass(frozen=True)
class Precision(BinaryDiscounted):
    """The share of relevant documents among the first k: P@k = (1/k) Σ_{r≤k} rel_r, also where there are fewer than k.

    Args:
        cutoff: k; None for the number of documents.
        threshold: a document is relevant if its label is at least this.

    Example:
        >>> from podium.measures import Precision
        >>> Precision(5).value([1, 1, 0])
        0.4

    """

    name: ClassVar[str] = "precision"
    aliases: ClassVar[tuple[str, ...]] = ("p",)
    needs_cutoff: ClassVar[bool] = True
    examples: ClassVar[tuple[Example, ...]] = (
        Example("precision@3", (1, 0, 2, 1), 2 / 3),
        Example("precision@5", (1, 1), 2 / 5),
        Example("precision(ties=expected)@1", (1, 0, 0, 0), 1 / 4, scores=(1, 1, 1, 1)),
    )

    def norms(self, gains: Floats, offsets: Ints, sizes: Ints) -> Floats:
        ranked = np.maximum(sizes, 1).astype(np.float64)
        return ranked if self.cutoff is None else np.full(len(ranked), float(self.cutoff))


@register
@dataclass(frozen=True)
class Recall(BinaryDiscounted):
    """The share of the relevant documents that are among the first k: R@k = (1/R) Σ_{r≤k} rel_r.

    Args:
        cutoff: k.
        threshold: a document is relevant if its label is at least this.

    Example:
        >>> from podium.measures import Recall
        >>> Recall(2).value([1, 0, 1, 1, 1])
        0.25

    """

    name: ClassVar[str] = "recall"
    needs_cutoff: ClassVar[bool] = True
    examples: ClassVar[tuple[Example, ...]] = (Example("recall@2", (1, 0, 1, 1), 1 / 3),)

    def norms(self, gains: Floats, offsets: Ints, sizes: Ints) -> Floats:
        return np.asarray(np.add.reduceat(gains, offsets[:-1])) if len(offsets) > 1 else np.empty(0)


@register
@dataclass(frozen=True)
class RBP(BinaryDiscounted):
    """Rank-biased precision, (1 − p) Σ_r rel_r p^{r−1} (Moffat and Zobel 2008).

    Args:
        p: the patience of the user, who goes on to the next rank with this probability.

    Example:
        >>> from podium.measures import RBP
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
