"""Losses for early stopping of pointwise models without queries; lower is better."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from podium.core.array_types import Bools, Floats
from podium.core.merging import Total
from podium.core.sums import ExactSum
from podium.errors import DataError
from podium.measures.base import Measure
from podium.measures.ranking import Ranking


@dataclass(frozen=True)
class Loss(Measure):
    """A weighted loss over all labelled documents, which ignores queries and ranks."""

    has_swaps: ClassVar[bool] = False

    def __str__(self) -> str:
        return self._word()

    def value(self, labels: Floats) -> float:
        """Raise, because a loss is a function of scores, not of ranks."""
        raise DataError(f"{self} is a loss of scores, so it cannot be computed from labels by rank")

    def mean(self, ranking: Ranking) -> float:
        """Return the loss of all documents; NaN if no labelled document has a positive weight."""
        documents = self._counted(ranking)
        return self.loss(*documents) if len(documents[0]) else math.nan

    def _counted(self, ranking: Ranking) -> tuple[Floats, Floats, Floats]:
        """Return labels, scores and weights of the documents that count."""
        data = ranking.data
        labels = data.labels[self.labels].astype(np.float64)
        weights = np.ones(len(labels)) if data.document_weights is None else data.document_weights.astype(np.float64)
        counts = ~np.isnan(labels) & (weights > 0)
        return labels[counts], ranking.scores[counts], weights[counts]

    def loss(self, labels: Floats, scores: Floats, weights: Floats) -> float:
        """Return the loss, which does not depend on the order of documents."""
        return self.of_terms([math.fsum(terms) for terms in self.terms(labels, scores, weights)])

    def sums(self, ranking: Ranking) -> Any:
        """Return the sums over the documents of a part of the data."""
        return Total(tuple(map(ExactSum.of, self.terms(*self._counted(ranking)))))

    def mean_of_sums(self, sums: Any) -> float:
        totals = [float(total) for total in sums]
        return self.of_terms(totals) if any(totals[1::2]) else math.nan

    @abstractmethod
    def terms(self, labels: Floats, scores: Floats, weights: Floats) -> list[Floats]:
        """Return the terms to sum over documents: weighted losses and weights, alternately."""

    def of_terms(self, totals: list[float]) -> float:
        """Return the loss from the sums of the terms: the mean, or the mean of both classes' means.

        If one class is missing, it is the mean of the other.
        """
        means = [total / weight for total, weight in zip(totals[::2], totals[1::2], strict=True) if weight]
        return sum(means) / len(means)

    def pick(self, means: Floats) -> int:
        return super().pick(-np.asarray(means, np.float64))


@dataclass(frozen=True)
class RMSE(Loss):
    """√(Σ d (l − s)² / Σ d)."""

    name: ClassVar[str] = "rmse"

    def terms(self, labels: Floats, scores: Floats, weights: Floats) -> list[Floats]:
        return _weighted((labels - scores) ** 2, weights)

    def of_terms(self, totals: list[float]) -> float:
        return math.sqrt(super().of_terms(totals))


@dataclass(frozen=True)
class LogLoss(Loss):
    """Σ d log(1 + e^{−2σtF}) / Σ d, t = 1 for labels above a half and −1 else ([B] §6).

    Balanced, it is the mean of both classes' losses ([B] 6.1).
    """

    _: KW_ONLY
    sigma: float = 1.0
    balanced: bool = False

    name: ClassVar[str] = "log_loss"

    def terms(self, labels: Floats, scores: Floats, weights: Floats) -> list[Floats]:
        is_positive = labels > 0.5
        losses = np.logaddexp(0.0, -2.0 * self.sigma * np.where(is_positive, 1.0, -1.0) * scores)
        return _weighted(losses, weights, is_positive if self.balanced else None)


@dataclass(frozen=True)
class ErrorRate(Loss):
    """The share of documents on the wrong side of F = 0, by weight; labels above a half are positive.

    Args:
        balanced: FP/2n₋ + FN/2n₊ instead, for classes of very different sizes ([B] 6.1).

    """

    _: KW_ONLY
    balanced: bool = False

    name: ClassVar[str] = "error_rate"

    def __str__(self) -> str:
        return "balanced_error_rate" if self.balanced else "error_rate"

    def terms(self, labels: Floats, scores: Floats, weights: Floats) -> list[Floats]:
        is_positive = labels > 0.5
        is_wrong = ((scores > 0) != is_positive).astype(np.float64)
        return _weighted(is_wrong, weights, is_positive if self.balanced else None)


def _weighted(values: Floats, weights: Floats, is_positive: Bools | None = None) -> list[Floats]:
    """Return weighted values and weights, separately for both classes if they are balanced."""
    sides = [slice(None)] if is_positive is None else [is_positive, ~is_positive]
    return [column[side] for side in sides for column in (values * weights, weights)]
