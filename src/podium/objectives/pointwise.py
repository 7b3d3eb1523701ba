"""Pointwise objectives: losses of single documents ([B] §5–6, [Q], [W])."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from podium.core.array_types import Bools, Floats
from podium.core.merging import Max, Total, Union, lowest
from podium.core.sums import ExactSum
from podium.core.validation import require_number
from podium.data import RankingData
from podium.errors import DataError
from podium.objectives.base import (
    BoundObjective,
    LossTerm,
    Objective,
    document_weights_of,
    labels_and_mask,
    query_weights_of,
    register,
)


class Points:
    """The labelled documents of the data in the canonical order, with their weights d_i u_q."""

    def __init__(self, data: RankingData, source: str, who: Objective) -> None:
        labels, labelled = labels_and_mask(data, source, who)
        queries = np.repeat(query_weights_of(data), data.query_sizes)
        self.n, self.rows, self.labels = len(data), data.canonical_order[labelled], labels[labelled]
        self.weights = (document_weights_of(data) * queries)[labelled]
        if not (self.weights > 0).any() and not who.checked:
            raise DataError("all labelled documents have weight 0: at least one needs a positive weight")

    def document_weights(self) -> Floats | None:
        """Return how often each row counts in least-squares splits; None if all weights are 1."""
        return None if (self.weights == 1.0).all() else self.by_row(self.weights)

    def by_row(self, values: Floats) -> Floats:
        """Return an array for all rows, 0 for those without a label."""
        result = np.zeros((*values.shape[:-1], self.n))
        result[..., self.rows] = values
        return result


class BoundPoints(BoundObjective):
    """A loss of single documents, bound to data."""

    changes = False

    def __init__(self, points: Points) -> None:
        self.points, self.document_weights = points, points.document_weights()

    def facts(self) -> Any:
        return Max(self.document_weights is not None), self.facts_of_points()

    def set_facts(self, facts: Any) -> None:
        has_weights, of_points = facts
        if has_weights and self.document_weights is None:
            self.document_weights = self.points.by_row(self.points.weights)
        self.set_facts_of_points(of_points)

    def loss_terms(self, scores: Floats, iteration: int = 0) -> list[LossTerm]:
        weights = self.counted_weights()
        return [LossTerm(1.0, weights * self.costs(scores[..., self.points.rows]), weights)]

    def counted_weights(self) -> Floats:
        """Return the weight of each labelled document in the loss."""
        return self.points.weights

    def costs(self, scores: Floats) -> Floats:
        """Return the cost of each labelled document at its scores."""
        raise DataError(f"{type(self).__qualname__} has no loss")

    def facts_of_points(self) -> Any:
        """Return what this part of the data contributes to facts about all data, if any."""
        return None

    def set_facts_of_points(self, facts: Any) -> None:
        """Set the merged facts of all parts."""


@register
@dataclass(frozen=True)
class Regression(Objective):
    """C = ½ Σ d_i (l_i − s_i)²: y = l − F, each leaf is the mean of its residuals ([Q]), and F_0 is the mean label.

    Example:
        >>> import numpy as np, podium
        >>> from podium.objectives import Regression
        >>> data = podium.RankingData([[0.0], [1.0]], [0, 1], qid=["a", "a"])
        >>> Regression().bind(data).gradients(np.zeros(2))[0].round(4).tolist()
        [0.0, 1.0]

    """

    labels: str = "relevance"
    pointwise = True
    works_in_parts = True
    score_unit = math.inf

    def bind(self, data: RankingData) -> BoundObjective:
        return _BoundRegression(Points(data, self.labels, self))


class _BoundRegression(BoundPoints):
    def __init__(self, points: Points) -> None:
        super().__init__(points)
        self.base_score = math.fsum(points.labels * points.weights) / (math.fsum(points.weights) or 1.0)
        self.hessians = points.by_row(points.weights)

    def facts_of_points(self) -> Any:
        p = self.points
        return Total((ExactSum.of(p.labels * p.weights), ExactSum.of(p.weights)))

    def set_facts_of_points(self, facts: Any) -> None:
        total, weight = map(float, facts)
        self.base_score = total / (weight or 1.0)

    def gradients(self, scores: Floats, iteration: int = 0) -> tuple[Floats, Floats]:
        p = self.points
        return p.by_row(p.weights * (p.labels - scores[p.rows])), self.hessians

    def costs(self, scores: Floats) -> Floats:
        return 0.5 * (self.points.labels - scores) ** 2


@register
@dataclass(frozen=True)
class Logistic(Objective):
    """Two classes, t = +1 if the label is above `above` and −1 otherwise: C = Σ d_i log(1 + e^{−2σtF}) ([B] §6).

    F_0 = (1/2σ) log((1 + t̄)/(1 − t̄)), y = 2tσ / (1 + e^{2tσF}), leaf = Σy / Σ|y|(2σ − |y|). σ only changes the scale
    of F. If balanced ([B] 6.1, eq. 15), each document counts 1/n₊ or 1/n₋ times, in y and in both sums of the leaf.

    Args:
        sigma: σ.
        balanced: whether to give both classes the same weight.
        above: labels above this are positive.
        labels: the label source.

    Example:
        >>> import numpy as np, podium
        >>> from podium.objectives import Logistic
        >>> data = podium.RankingData([[0.0], [1.0]], [0, 1], qid=["a", "a"])
        >>> Logistic().bind(data).gradients(np.zeros(2))[0].round(4).tolist()
        [-1.0, 1.0]

    """

    sigma: float = 1.0
    balanced: bool = False
    above: float = 0.0
    labels: str = "relevance"
    pointwise = True
    works_in_parts = True
    class_weights: ClassVar[tuple[float, ...]] = ()

    def __post_init__(self) -> None:
        require_number("sigma", self.sigma, above=0)
        require_number("above", self.above)

    @property
    def score_unit(self) -> float:  # type: ignore[override]
        """1/σ."""
        return 1.0 / self.sigma

    def bind(self, data: RankingData) -> BoundObjective:
        return _BoundLogistic(self, Points(data, self.labels, self))

    def fixed(self, data: RankingData) -> Self:
        """Return a copy with the weights of the two classes of this data."""
        fixed = super().fixed(data)
        object.__setattr__(fixed, "class_weights", _BoundLogistic(self, Points(data, self.labels, self)).class_weights)
        return fixed


class _BoundLogistic(BoundPoints):
    def __init__(self, objective: Logistic, points: Points) -> None:
        super().__init__(points)
        self.objective, self.sigma = objective, objective.sigma
        self.t = np.where(points.labels > objective.above, 1.0, -1.0)
        if objective.in_parts:
            return
        if not objective.checked:
            self._set_class_weights(*(math.fsum(points.weights[self.t == side]) for side in (1.0, -1.0)))
        else:  # a part of the data, after `fixed` stored the weights of both classes in all data
            self._set_class_weights(*objective.class_weights)

    def facts_of_points(self) -> Any:
        return Total(tuple(ExactSum.of(self.points.weights[self.t == side]) for side in (1.0, -1.0)))

    def set_facts_of_points(self, facts: Any) -> None:
        self._set_class_weights(*map(float, facts))

    def _set_class_weights(self, positive: float, negative: float) -> None:
        """Set the weights of both classes in all data."""
        objective, points, class_weights = self.objective, self.points, (positive, negative)
        if min(class_weights) <= 0:
            raise DataError(
                f"Logistic needs documents of both classes: labels above {objective.above:g}, and labels up to it"
            )
        self.class_weights = class_weights
        self.weights = points.weights
        if objective.balanced:  # [B] eq. 15
            self.weights = points.weights / np.where(self.t > 0, *class_weights)
        self.base_score = 0.0  # (1 + t̄) / (1 − t̄) is the weight of the positive documents over that of the others
        if not objective.balanced:
            self.base_score = math.log(class_weights[0] / class_weights[1]) / (2 * self.sigma)

    def gradients(self, scores: Floats, iteration: int = 0) -> tuple[Floats, Floats]:
        p, sigma = self.points, self.sigma
        x = 2 * sigma * self.t * scores[p.rows]
        y = 2 * sigma * np.exp(-np.logaddexp(0.0, x))  # |y|
        return p.by_row(self.weights * self.t * y), p.by_row(self.weights * y * (2 * sigma - y))

    def counted_weights(self) -> Floats:
        return self.weights

    def costs(self, scores: Floats) -> Floats:
        return np.logaddexp(0.0, -2 * self.sigma * self.t * scores)


MAX_CLASSES = 256


@register
@dataclass(frozen=True)
class Multiclass(Objective):
    """K classes, one for each label that occurs, with a score each: C = −Σ d_i log p_{l_i}, p = softmax(scores).

    For a tree of class k: y = 1[l = k] − p_k, leaf = (K−1)/K · Σy / Σ|y|(1 − |y|): McRank (Li, Burges and Wu, NIPS
    2007; [W]). Documents are ranked by Σ_k p_k k, the expected relevance, or by Σ_k p_k (2^k − 1), the expected gain.

    Args:
        expects: `"relevance"` or `"gain"`.
        labels: the label source; at most 256 different values.

    Example:
        >>> import podium
        >>> from podium.objectives import Multiclass
        >>> data = podium.artificial(20, features=4)
        >>> Multiclass().bind(data).classes.tolist() == sorted(set(data.relevance.tolist()))
        True

    """

    expects: str = "relevance"
    labels: str = "relevance"
    pointwise = True
    works_in_parts = True

    def __post_init__(self) -> None:
        if self.expects not in ("relevance", "gain"):
            raise DataError(f"expects must be 'relevance' or 'gain', not {self.expects!r}")

    def bind(self, data: RankingData) -> BoundMulticlass:
        return BoundMulticlass(self, Points(data, self.labels, self))


class BoundMulticlass(BoundPoints):
    """A loss with several scores per document, bound to data.

    Attributes:
        classes: the labels that occur, ascending.
        worth: the value of each class in the score that ranks documents: the label, or its gain.

    """

    def __init__(self, objective: Multiclass, points: Points) -> None:
        super().__init__(points)
        self.objective, self.classes = objective, np.unique(points.labels)
        if not objective.in_parts:
            self._set_classes(self.classes)

    def facts_of_points(self) -> Any:
        return Union(lowest(self.classes, MAX_CLASSES + 1), MAX_CLASSES + 1)

    def set_facts_of_points(self, facts: Any) -> None:
        self._set_classes(facts)

    def _set_classes(self, classes: Floats) -> None:
        self.classes, self.class_of = classes, np.searchsorted(classes, self.points.labels)
        self.n_outputs = len(classes)
        if not 2 <= self.n_outputs <= MAX_CLASSES:
            raise DataError(f"Multiclass needs between 2 and 256 different labels, but got {self.n_outputs}")
        self.worth = self.classes if self.objective.expects == "relevance" else np.exp2(self.classes) - 1.0
        if not np.isfinite(self.worth).all():
            raise DataError(f"the gain 2^{self.classes.max():g} − 1 overflows: use expects='relevance'")

    def gradients(self, scores: Floats, iteration: int = 0) -> tuple[Floats, Floats]:
        p, n_classes = self.points, self.n_outputs
        y = (self.class_of == np.arange(n_classes)[:, None]) - softmax(scores[:, p.rows])
        size = np.abs(y)
        return p.by_row(p.weights * y), p.by_row(p.weights * size * (1.0 - size) * (n_classes / (n_classes - 1)))

    def counted_weights(self) -> Floats:
        return np.where(self._is_class(), self.points.weights, 0.0)

    def costs(self, scores: Floats) -> Floats:
        highest = scores.max(axis=0)
        logarithms = highest + np.log(np.exp(scores - highest).sum(axis=0))
        rows = np.arange(scores.shape[1])
        return np.asarray(logarithms - scores[np.where(self._is_class(), self.class_of, 0), rows])

    def _is_class(self) -> Bools:
        """Return whether each label is a class; validation data may have other labels, which the loss ignores."""
        places = np.minimum(self.class_of, len(self.classes) - 1)
        return np.asarray(self.classes[places] == self.points.labels)

    def ranked_by(self, scores: Floats) -> Floats:
        """Return the expected relevance or gain."""
        return expected(scores, self.worth)


@register
@dataclass(frozen=True)
class Cumulative(Multiclass):
    """K − 1 scores for K labels, each with P(l > k) = 1 / (1 + e^{−F_k}): McRank (Li, Burges and Wu 2007, §5).

    C = −Σ_i d_i Σ_k log q_ik, where q_ik is P(l > k) if l_i > k, else P(l ≤ k). For a tree of the boundary above label
    k: y = 1[l > k] − p_k, leaf = Σy / Σ p_k (1 − p_k). Documents are ranked by the expected relevance, which is the
    lowest label plus the sum of P(l > k) times the distance to the next label, or by the expected gain, computed in the
    same way. `Ordinal` has one score for all boundaries instead.

    Args:
        expects: `"relevance"` or `"gain"`.
        labels: the label source; at most 256 different values.

    Example:
        >>> import podium
        >>> from podium.objectives import Cumulative
        >>> Cumulative().bind(podium.artificial(20, features=4)).n_outputs
        4

    """

    def bind(self, data: RankingData) -> BoundMulticlass:
        return _BoundCumulative(self, Points(data, self.labels, self))


class _BoundCumulative(BoundMulticlass):
    def _set_classes(self, classes: Floats) -> None:
        super()._set_classes(classes)
        self.n_outputs = len(classes) - 1

    def gradients(self, scores: Floats, iteration: int = 0) -> tuple[Floats, Floats]:
        p = self.points
        above = logistic(np.atleast_2d(scores)[:, p.rows])
        y = (self.class_of > np.arange(self.n_outputs)[:, None]) - above
        gradients, hessians = p.by_row(p.weights * y), p.by_row(p.weights * above * (1.0 - above))
        return gradients.reshape(scores.shape), hessians.reshape(scores.shape)

    def costs(self, scores: Floats) -> Floats:
        is_above = self.class_of > np.arange(self.n_outputs)[:, None]
        return np.asarray(np.logaddexp(0.0, np.where(is_above, -scores, scores)).sum(axis=0))

    def ranked_by(self, scores: Floats) -> Floats:
        return expected_above(np.atleast_2d(scores), self.worth)


def logistic(x: Floats) -> Floats:
    """Return 1 / (1 + e^{−x}), without overflow."""
    return np.asarray(np.exp(-np.logaddexp(0.0, -x)))


def softmax(scores: Floats) -> Floats:
    """Return the softmax of each column."""
    powers = np.exp(scores - scores.max(axis=0))
    return np.asarray(powers / powers.sum(axis=0))


def expected(scores: Floats, worth: Floats) -> Floats:
    """Return Σ_k p_k worth_k, where p is the softmax over the rows."""
    totals = np.zeros(scores.shape[1])
    for share, value in zip(softmax(scores), worth, strict=True):
        totals += share * value
    return totals


def expected_above(scores: Floats, worth: Floats) -> Floats:
    """Return worth_0 + Σ_k P(l > k) (worth_{k+1} − worth_k), from a row of scores for each boundary."""
    totals = np.full(scores.shape[1], worth[0])
    for chances, step in zip(logistic(scores), np.diff(worth), strict=True):
        totals += chances * step
    return totals


def probabilities_between(scores: Floats) -> Floats:
    """Return the probability of each label (row) from a row of scores for each boundary.

    P(l > k) cannot rise with k, so a larger value is lowered to that of the boundary below.

    >>> probabilities_between(np.array([[1.0], [0.0]])).round(4).tolist()
    [[0.2689], [0.2311], [0.5]]
    """
    above = np.minimum.accumulate(logistic(scores), axis=0)
    return -np.diff(above, axis=0, prepend=1.0, append=0.0)
