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
        sign = np.where(labels > 0.5, 1.0, -1.0)
        losses = np.logaddexp(0.0, -2.0 * self.sigma * sign * scores)
        if not self.balanced:
            return _mean(losses, weights)
        sides = [sign == side for side in (1.0, -1.0) if (sign == side).any()]
        return sum(_mean(losses[side], weights[side]) for side in sides) / len(sides)


def _mean(values: Floats, weights: Floats) -> float:
    return math.fsum(values * weights) / math.fsum(weights)
