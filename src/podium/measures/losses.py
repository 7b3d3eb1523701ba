"""Losses by which models of single documents stop where there are no queries: lower is better."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from podium.errors import DataError
from podium.measures.base import Measure
from podium.measures.ranking import Ranking

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Loss(Measure):
    """A loss over all labelled documents, each as often as its weight says; queries and ranks play no part."""

    has_swaps: ClassVar[bool] = False

    def __str__(self) -> str:
        return self._word()

    def value(self, labels: Floats) -> float:
        """A list of labels has none."""
        raise DataError(f"{self} is a loss of scores, not of ranks")

    def mean(self, ranking: Ranking) -> float:
        """The loss of all documents; NaN where no label has a weight."""
        data = ranking.data
        labels = data.labels[self.labels].astype(np.float64)
        weights = np.ones(len(labels)) if data.document_weights is None else data.document_weights.astype(np.float64)
        counts = ~np.isnan(labels) & (weights > 0)
        return self.loss(labels[counts], ranking.scores[counts], weights[counts]) if counts.any() else math.nan

    @abstractmethod
    def loss(self, labels: Floats, scores: Floats, weights: Floats) -> float:
        """The loss, the same in any order of the documents."""

    def pick(self, means: NDArray[np.float64]) -> int:
        """The candidate with the lowest loss."""
        return super().pick(-np.asarray(means, np.float64))


@dataclass(frozen=True)
class RMSE(Loss):
    """√(Σ d (l − s)² / Σ d)."""

    name: ClassVar[str] = "rmse"

    def loss(self, labels: Floats, scores: Floats, weights: Floats) -> float:
        """See the class."""
        return math.sqrt(_mean((labels - scores) ** 2, weights))


@dataclass(frozen=True)
class LogLoss(Loss):
    """Σ d log(1 + e^{−2σtF}) / Σ d, t = 1 for labels above a half and −1 else ([B] §6).

    Args:
        sigma: σ.
        balanced: the mean of both classes' losses instead ([B] 6.1).

    """

    _: KW_ONLY
    sigma: float = 1.0
    balanced: bool = False

    name: ClassVar[str] = "log_loss"

    def loss(self, labels: Floats, scores: Floats, weights: Floats) -> float:
        """See the class."""
        is_positive = labels > 0.5
        losses = np.logaddexp(0.0, -2.0 * self.sigma * np.where(is_positive, 1.0, -1.0) * scores)
        return _mean_of_classes(losses, is_positive, weights) if self.balanced else _mean(losses, weights)


@dataclass(frozen=True)
class ErrorRate(Loss):
    """The share of documents on the wrong side of F = 0, by weight; labels above a half are positive.

    Args:
        balanced: FP/2n₋ + FN/2n₊ instead, for classes of very different sizes ([B] 6.1).

    Example:
        >>> import numpy as np
        >>> from podium.measures.losses import ErrorRate
        >>> labels, scores, weights = np.array([0, 0, 0, 1.0]), np.array([-1, -1, 1, -1.0]), np.ones(4)
        >>> [round(ErrorRate(balanced=b).loss(labels, scores, weights), 4) for b in (False, True)]
        [0.5, 0.6667]

    """

    _: KW_ONLY
    balanced: bool = False

    name: ClassVar[str] = "error_rate"

    def __str__(self) -> str:
        return "balanced_error_rate" if self.balanced else "error_rate"

    def loss(self, labels: Floats, scores: Floats, weights: Floats) -> float:
        """See the class."""
        is_positive = labels > 0.5
        is_wrong = ((scores > 0) != is_positive).astype(np.float64)
        return _mean_of_classes(is_wrong, is_positive, weights) if self.balanced else _mean(is_wrong, weights)


def _mean_of_classes(values: Floats, is_positive: NDArray[np.bool_], weights: Floats) -> float:
    """Both classes alike, whatever their sizes; where one is missing, the other alone."""
    sides = [side for side in (is_positive, ~is_positive) if side.any()]
    return sum(_mean(values[side], weights[side]) for side in sides) / len(sides)


def _mean(values: Floats, weights: Floats) -> float:
    return math.fsum(values * weights) / math.fsum(weights)
