"""Losses of single documents: MART's regression and classification, and McRank's classes ([B] §5–6, [Q], [W])."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from podium.core.validation import require_number
from podium.data import RankingData
from podium.errors import DataError
from podium.objectives.base import (
    BoundObjective,
    Objective,
    document_weights_of,
    labels_of,
    query_weights_of,
    require_labels,
)  # fmt: skip

Floats = NDArray[np.float64]


class _Points:
    """The labelled documents of some data in the canonical order, with their weights d_i u_q."""

    def __init__(self, data: RankingData, source: str, who: Objective) -> None:
        labels = labels_of(data, source, who).astype(np.float64)
        require_labels(labels, source, who)
        known = ~np.isnan(labels)
        queries = np.repeat(query_weights_of(data), data.query_sizes)
        self.n, self.rows, self.labels = len(data), data.canonical_order[known], labels[known]
        self.weights = (document_weights_of(data) * queries)[known]
        if not (self.weights > 0).any() and not who.checked:
            raise DataError("all weights of labelled documents are 0: there is nothing to train on")

    def document_weights(self) -> Floats | None:
        """How often each row counts in splits of least squares; None where no weight differs from 1."""
        return None if (self.weights == 1.0).all() else self.spread(self.weights)

    def mean(self, values: Floats, weights: Floats) -> float:
        """A weighted mean that does not depend on the order of rows."""
        return math.fsum(values * weights) / (math.fsum(weights) or 1.0)

    def spread(self, values: Floats) -> Floats:
        """An array for all rows, 0 for those without a label."""
        found = np.zeros((*values.shape[:-1], self.n))
        found[..., self.rows] = values
        return found


@dataclass(frozen=True)
class Regression(Objective):
    """C = ½ Σ d_i (l_i − s_i)²: y = l − F, a leaf is the mean of its residuals ([Q]); F_0 is the mean label."""

    labels: str = "relevance"
    pointwise = True
    score_unit = math.inf

    def bind(self, data: RankingData) -> BoundObjective:
        """On these documents."""
        return _BoundRegression(_Points(data, self.labels, self))


class _BoundRegression(BoundObjective):
    changes = False

    def __init__(self, points: _Points) -> None:
        self.points, self.document_weights = points, points.document_weights()
        self.start = points.mean(points.labels, points.weights)
        self.curvatures = points.spread(points.weights)

    def gradients(self, scores: Floats, iteration: int = 0) -> tuple[Floats, Floats]:
        p = self.points
        return p.spread(p.weights * (p.labels - scores[p.rows])), self.curvatures


@dataclass(frozen=True)
class Logistic(Objective):
    """Two classes, t = +1 where the label is above `above` and −1 else: C = Σ d_i log(1 + e^{−2σtF}) ([B] §6).

    F_0 = (1/2σ) log((1 + t̄)/(1 − t̄)), y = 2tσ / (1 + e^{2tσF}), leaf = Σy / Σ|y|(2σ − |y|). σ changes the scale of
    F and nothing else. Balanced ([B] 6.1, eq. 15): each document counts 1/n₊ or 1/n₋ times, in y and in both sums of
    the leaf.

    Args:
        sigma: σ.
        balanced: let both classes weigh the same.
        above: labels above this are positive.
        labels: the label source.

    """

    sigma: float = 1.0
    balanced: bool = False
    above: float = 0.0
    labels: str = "relevance"
    pointwise = True
    sides: ClassVar[tuple[float, ...]] = ()

    def __post_init__(self) -> None:
        require_number("sigma", self.sigma, above=0)
        require_number("above", self.above)

    @property
    def score_unit(self) -> float:  # type: ignore[override]
        """1/σ."""
        return 1.0 / self.sigma

    def bind(self, data: RankingData) -> BoundObjective:
        """On these documents."""
        return _BoundLogistic(self, _Points(data, self.labels, self))

    def fixed(self, data: RankingData) -> Self:
        """With what the two classes of this data weigh."""
        found = super().fixed(data)
        object.__setattr__(found, "sides", _BoundLogistic(self, _Points(data, self.labels, self)).sides)
        return found


class _BoundLogistic(BoundObjective):
    changes = False

    def __init__(self, objective: Logistic, points: _Points) -> None:
        self.points, self.sigma = points, objective.sigma
        self.document_weights = points.document_weights()
        self.t = np.where(points.labels > objective.above, 1.0, -1.0)
        sides = [math.fsum(points.weights[self.t == side]) for side in (1.0, -1.0)]
        if objective.checked:  # a part of the data: what both classes of all weigh was kept
            sides = list(objective.sides)
        if min(sides) <= 0:
            raise DataError(
                f"Logistic needs documents of both classes, with labels above {objective.above:g} and at most that"
            )
        self.sides = tuple(sides)
        self.weights = points.weights
        if objective.balanced:  # [B] eq. 15
            self.weights = points.weights / np.where(self.t > 0, *sides)
        self.start = 0.0  # (1 + t̄) / (1 − t̄) is what the positive documents weigh over what the others do
        if not objective.balanced:
            self.start = math.log(sides[0] / sides[1]) / (2 * self.sigma)

    def gradients(self, scores: Floats, iteration: int = 0) -> tuple[Floats, Floats]:
        p, sigma = self.points, self.sigma
        x = 2 * sigma * self.t * scores[p.rows]
        y = 2 * sigma * np.exp(-np.logaddexp(0.0, x))  # |y|
        return p.spread(self.weights * self.t * y), p.spread(self.weights * y * (2 * sigma - y))


@dataclass(frozen=True)
class Multiclass(Objective):
    """K classes, one for each label that occurs, a score for each: C = −Σ d_i log p_{l_i}, p the softmax of the scores.

    For a tree of class k: y = 1[l = k] − p_k, leaf = (K−1)/K · Σy / Σ|y|(1 − |y|): McRank (Li, Burges and Wu, NIPS
    2007; [W]). Documents are ranked by Σ_k p_k k, the expected relevance, or by Σ_k p_k (2^k − 1), the expected gain.

    Args:
        expects: `"relevance"` or `"gain"`.
        labels: the label source; at most 256 different values.

    """

    expects: str = "relevance"
    labels: str = "relevance"
    pointwise = True

    def __post_init__(self) -> None:
        if self.expects not in ("relevance", "gain"):
            raise DataError(f"expects must be 'relevance' or 'gain', not {self.expects!r}")

    def bind(self, data: RankingData) -> BoundMulticlass:
        """On these documents."""
        return BoundMulticlass(self, _Points(data, self.labels, self))


class BoundMulticlass(BoundObjective):
    """The classes of some data.

    Attributes:
        classes: the labels that occur, rising.
        worth: what each class counts in a score.

    """

    changes = False

    def __init__(self, objective: Multiclass, points: _Points) -> None:
        self.points, self.document_weights = points, points.document_weights()
        self.classes, self.class_of = np.unique(points.labels, return_inverse=True)
        self.n_outputs = len(self.classes)
        if not 2 <= self.n_outputs <= 256:
            raise DataError(f"Multiclass needs between 2 and 256 different labels; there are {self.n_outputs}")
        self.worth = self.classes if objective.expects == "relevance" else np.exp2(self.classes) - 1.0
        if not np.isfinite(self.worth).all():
            raise DataError(f"the gain 2^{self.classes.max():g} − 1 overflows: use expects='relevance'")

    def gradients(self, scores: Floats, iteration: int = 0) -> tuple[Floats, Floats]:
        """λ and w, a row for each class."""
        p, many = self.points, self.n_outputs
        y = (self.class_of == np.arange(many)[:, None]) - softmax(scores[:, p.rows])
        size = np.abs(y)
        return p.spread(p.weights * y), p.spread(p.weights * size * (1.0 - size) * (many / (many - 1)))

    def ranked_by(self, scores: Floats) -> Floats:
        """Expected relevance or gain."""
        return expected(scores, self.worth)


def softmax(scores: Floats) -> Floats:
    """e^s over the sum of its column."""
    powers = np.exp(scores - scores.max(axis=0))
    found: Floats = powers / powers.sum(axis=0)
    return found


def expected(scores: Floats, worth: Floats) -> Floats:
    """Σ_k p_k worth_k, p the softmax over the rows."""
    found = np.zeros(scores.shape[1])
    for share, value in zip(softmax(scores), worth, strict=True):
        found += share * value
    return found
