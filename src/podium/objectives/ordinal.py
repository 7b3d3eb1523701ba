"""Ordinal regression: one score, and thresholds between the labels."""

from __future__ import annotations

import math
from collections.abc import Generator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from podium.core.array_types import Floats, Ints
from podium.core.compiling import kernel
from podium.core.merging import Max, Total, alone
from podium.core.sums import ExactSum
from podium.core.team import Team
from podium.core.threads import n_threads_for
from podium.data import RankingData
from podium.errors import DataError
from podium.objectives.base import BoundInParts, Objective, register, require_source
from podium.objectives.pointwise import BoundPoints, Points, logistic

MAX_STEPS = 50  # Newton steps for the thresholds; two or three are enough from those of the previous round
MAX_HALVINGS = 60
FAR = 50.0  # e^−50 is negligible: thresholds this far outside the range of the scores have no gradient
TOLERANCE = 1e-10  # stop after a step that raises the mean log-likelihood by less


@register
@dataclass(frozen=True)
class Ordinal(Objective):
    """Ordinal regression by proportional odds (McCullagh 1980): P(l ≤ k) = 1 / (1 + e^{s − θ_k}), θ_1 < θ_2 < ….

    C = −Σ d_i log P(l_i), with one score for each document and one threshold between any two adjacent labels of the
    training data. For a document of label k, λ = P(l < k) − P(l > k) and w = Σ L(1 − L) > 0 over the thresholds at both
    ends of k, with L = P(l ≤ ·). Only the order of the labels counts, not their distances. −log P(l) is the
    immediate-threshold logistic loss of Rennie and Srebro (2005) plus a term −log(1 − e^{−δ}) for the distance δ of two
    thresholds.

    Each round first sets the thresholds to those of maximum likelihood for the current scores, by Newton's method (the
    likelihood is concave). Then Σλ = 0.

    Args:
        labels: the label source, with 2 to 256 different values.

    Example:
        >>> import numpy as np, podium
        >>> from podium.objectives import Ordinal
        >>> data = podium.RankingData(np.eye(4), [0, 1, 1, 2], qid=["a"] * 4)
        >>> bound = Ordinal().bind(data)
        >>> bound.gradients(np.zeros(4))[0].round(4).tolist()
        [-0.75, 0.0, 0.0, 0.75]
        >>> bound.thresholds.round(4).tolist()  # log odds of 1/4 and 3/4
        [-1.0986, 1.0986]

    """

    labels: str = "relevance"
    pointwise = True
    works_in_parts = True

    def __post_init__(self) -> None:
        require_source(self.labels)

    def bind(self, data: RankingData) -> BoundOrdinal:
        return BoundOrdinal(Points(data, self.labels, self), self.in_parts)


class BoundOrdinal(BoundInParts, BoundPoints):
    """Ordinal regression, bound to data.

    Attributes:
        classes: the labels that occur, ascending.
        thresholds: θ between them, which change while a model trains.

    """

    def __init__(self, points: Points, in_parts: bool) -> None:
        super().__init__(points)
        self.n, self.largest_weight = len(points.labels), float(points.weights.max(initial=0.0))
        classes = np.unique(points.labels[points.weights > 0])
        weights = [math.fsum(points.weights[points.labels == label]) for label in classes]
        self.classes, self.class_weights, self.thresholds = classes, np.array(weights), np.zeros(0)
        if not in_parts:
            self._set_classes()

    def facts_of_points(self) -> Any:
        labels, weights = self.points.labels, self.points.weights
        of_labels = {float(label): Total(ExactSum.of(weights[labels == label])) for label in self.classes}
        return of_labels, Total(self.n), Max(self.largest_weight)

    def set_facts_of_points(self, facts: Any) -> None:
        of_labels, self.n, self.largest_weight = facts
        self.classes = np.array(sorted(of_labels))
        self.class_weights = np.array([float(of_labels[label]) for label in self.classes.tolist()])
        self._set_classes()

    def _set_classes(self) -> None:
        n_classes = len(self.classes)
        if not 2 <= n_classes <= 256:
            raise DataError(f"Ordinal needs between 2 and 256 different labels, but got {n_classes}")
        # A label that only occurs with weight 0 counts nowhere: any class will do.
        self.class_of = np.minimum(np.searchsorted(self.classes, self.points.labels), n_classes - 1)
        below = np.cumsum(self.class_weights)[:-1]
        self.for_equal_scores: Floats = np.log(below / np.cumsum(self.class_weights[::-1])[-2::-1])
        self.thresholds = self.for_equal_scores

    def fill_in_parts(
        self, scores: Floats, iteration: int, gradients: Floats, hessians: Floats
    ) -> Generator[Any, Any, None]:
        """Set the thresholds for these scores, then write λ and w."""
        p = self.points
        yield from self.find_thresholds(scores)
        scores, ends = scores[p.rows], _with_ends(self.thresholds)
        above, below = logistic(scores - ends[self.class_of + 1]), logistic(ends[self.class_of] - scores)
        curves = above * (1.0 - above) + below * (1.0 - below)
        gradients[:], hessians[:] = p.by_row(p.weights * (below - above)), p.by_row(p.weights * curves)

    def counted_weights(self) -> Floats:
        is_class = self.classes[self.class_of] == self.points.labels  # validation data may have other labels
        return np.where(is_class, self.points.weights, 0.0)

    def costs(self, scores: Floats) -> Floats:
        """Return −log P(l) = log(1 + e^{s − θ above}) + log(1 + e^{θ below − s}) − log(1 − e^{−δ})."""
        ends = _with_ends(self.thresholds)
        below, above = ends[self.class_of], ends[self.class_of + 1]
        return np.asarray(
            np.logaddexp(0.0, scores - above) + np.logaddexp(0.0, below - scores) - np.log(-np.expm1(below - above))
        )

    def state(self) -> dict[str, list[float]]:
        return {"thresholds": self.thresholds.tolist()}

    def restore(self, state: dict[str, list[float]]) -> None:
        if len(state["thresholds"]) != len(self.thresholds):
            raise DataError(f"expected {len(self.thresholds)} thresholds, but got {len(state['thresholds'])}")
        self.thresholds = np.array(state["thresholds"])

    def set_thresholds(self, scores: Floats) -> None:
        """Set the thresholds of maximum likelihood for the scores of all rows, by Newton's method.

        Steps are halved until the likelihood no longer falls.
        """
        alone(self.find_thresholds(scores))

    def find_thresholds(self, scores: Floats) -> Generator[Any, Any, None]:
        """Do the work of `set_thresholds` on a part of the data."""
        scores = scores[self.points.rows]
        low, high = yield Max((-float(scores.min(initial=np.inf)), float(scores.max(initial=-np.inf))))
        low, largest = -low, max(abs(low), abs(high))
        if self.thresholds[0] < low - FAR or self.thresholds[-1] > high + FAR:  # fitted to very different scores
            recentred = self.for_equal_scores + (0.5 * low + 0.5 * high)
            self.thresholds = recentred if (np.diff(recentred) > 0).all() else self.thresholds
        max_step = high - low + 1.0
        tolerance = TOLERANCE * float(self.class_weights.sum())
        sums = yield from self._sums(scores, self.thresholds, largest)
        for _ in range(MAX_STEPS):
            step = _newton_step(sums, max_step)
            rise = 0.5 * float(sums.gradient @ step)  # of the likelihood if it were a parabola
            if not rise > 0.0:
                return
            for _ in range(MAX_HALVINGS):
                candidate = self.thresholds + step
                if (np.diff(candidate) > 0).all():
                    after = yield from self._sums(scores, candidate, largest)
                    if after.likelihood >= sums.likelihood:
                        break
                step = 0.5 * step
            else:
                return  # the only steps that improve it are below rounding
            self.thresholds, sums = candidate, after
            if rise <= tolerance:
                return

    def _sums(self, scores: Floats, thresholds: Floats, largest_score: float) -> Generator[Any, Any, _Sums]:
        """Return sums over all documents in fixed point, which depend neither on the order of rows nor on threads."""
        weights, n = self.points.weights, len(scores)
        largest = self.largest_weight * self.n
        size = 2.0 * float(max(largest_score, np.abs(thresholds).max())) + 1.0
        scale, log_scale = (
            math.ldexp(1.0, min(62 - math.frexp(bound)[1], 1000)) for bound in (largest, largest * 2.0 * size)
        )
        ends = _with_ends(thresholds)
        with nullcontext(self.team) if self.team else Team(n_threads_for(n)) as team:
            parts = team.shares(
                n,
                lambda first, last: threshold_sums(
                    scores[first:last], self.class_of[first:last], weights[first:last], ends, scale, log_scale
                ),
            )
        above, above_curve, below, below_curve, logs = yield Total(np.sum(parts, axis=0))
        gaps, inner = np.diff(thresholds), self.class_weights[1:-1]
        with np.errstate(over="ignore"):
            slopes = inner / np.expm1(gaps)  # of log(1 − e^{−δ}) by δ
        gradient = (above[:-1] - below[1:]) / scale
        gradient[1:] += slopes
        gradient[:-1] -= slopes
        likelihood = -float(logs.sum()) / log_scale + float((inner * np.log(-np.expm1(-gaps))).sum())
        curves = (above_curve[:-1] + below_curve[1:]) / scale
        return _Sums(likelihood, gradient, curves, slopes / -np.expm1(-gaps))


class _Sums(NamedTuple):
    """The log-likelihood as a function of the thresholds.

    P(l = k) = P(l ≤ k) P(l ≥ k) (1 − e^{−δ}), where δ is the distance of the two thresholds at the ends of k. So its
    logarithm has a term for each end, and one for their distance.
    """

    likelihood: float  # Σ d log P(l)
    gradient: Floats  # derivatives by each threshold
    curves: Floats  # minus the second derivatives of the terms with one threshold
    links: Floats  # minus the second derivatives of the terms with two thresholds, by their distance


def _newton_step(sums: _Sums, max_step: float) -> Floats:
    """Return H⁻¹ g, where H is minus the second derivatives, plus |g| / max_step on the diagonal to bound the step.

    H is tridiagonal. Its entries next to the diagonal are −`links`, and each diagonal entry is the sum of the links at
    both sides plus a positive rest. So elimination needs no subtraction, and cannot fail.
    """
    n, links = len(sums.gradient), [*sums.links.tolist(), 0.0]
    rest = (sums.curves + np.abs(sums.gradient) / max_step + np.finfo(np.float64).tiny).tolist()
    step = sums.gradient.tolist()
    pivots = [0.0] * n
    for k in range(n):
        pivots[k] = rest[k] + links[k]
        if k + 1 < n:
            rest[k + 1] += rest[k] * (links[k] / pivots[k])
            step[k + 1] += step[k] * (links[k] / pivots[k])
    for k in reversed(range(n)):
        step[k] = (step[k] + (links[k] * step[k + 1] if k + 1 < n else 0.0)) / pivots[k]
    return np.array(step)


@kernel
def threshold_sums(
    scores: Floats, class_of: Ints, weights: Floats, ends: Floats, scale: float, log_scale: float
) -> Any:
    """Return Σ d P and Σ d P (1 − P) of P(l > k) and P(l < k), and Σ −d log P(l ≤ k) P(l ≥ k) as integers, by label k.

    `ends` are the thresholds, with infinite ones added at both ends.
    """
    sums = np.zeros((5, len(ends) - 1), np.int64)
    for row in range(len(scores)):
        k, weight, cost = class_of[row], weights[row], 0.0
        for side in range(2):
            x = scores[row] - ends[k + 1] if side == 0 else ends[k] - scores[row]
            power = math.exp(-abs(x))
            tail = (1.0 if x > 0.0 else power) / (1.0 + power)
            sums[2 * side, k] += np.int64(np.rint(scale * (weight * tail)))
            sums[2 * side + 1, k] += np.int64(np.rint(scale * (weight * (power / ((1.0 + power) * (1.0 + power))))))
            cost += max(x, 0.0) + math.log1p(power)  # log(1 + e^x)
        sums[4, k] += np.int64(np.rint(log_scale * (weight * cost)))
    return sums


def _with_ends(thresholds: Floats) -> Floats:
    return np.concatenate([[-np.inf], thresholds, [np.inf]])


def class_probabilities(scores: Floats, thresholds: Any) -> Floats:
    """Return P of each label (column) for each score (row).

    >>> class_probabilities(np.array([0.0]), [-1.0986122886681098, 1.0986122886681098]).round(4).tolist()
    [[0.25, 0.5, 0.25]]
    """
    up_to = np.column_stack([logistic(threshold - scores) for threshold in thresholds])
    return np.diff(up_to, axis=1, prepend=0.0, append=1.0)
