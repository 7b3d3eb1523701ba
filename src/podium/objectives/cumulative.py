"""McRank's ordinal form: a binary classifier for each boundary between labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from podium.core.array_types import Floats
from podium.data import RankingData
from podium.objectives.base import register
from podium.objectives.ordinal import logistic
from podium.objectives.pointwise import BoundMulticlass, Multiclass, Points


@register
@dataclass(frozen=True)
class Cumulative(Multiclass):
    """K − 1 scores for K labels, each with P(l > k) = 1 / (1 + e^{−F_k}): McRank (Li, Burges and Wu 2007, §5).

    For a tree of the boundary above label k: y = 1[l > k] − p_k, leaf = Σy / Σ p_k (1 − p_k). Documents are ranked by
    the expected relevance, the lowest label plus the sum of P(l > k) times the distance to the next label, or by the
    expected gain, computed in the same way. `Ordinal` has one score for all boundaries instead.

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


def expected_above(scores: Floats, worth: Floats) -> Floats:
    """Return worth_0 + Σ_k P(l > k) (worth_{k+1} − worth_k), from a row of scores for each boundary."""
    totals = np.full(scores.shape[1], worth[0])
    for chances, step in zip(logistic(scores), np.diff(worth), strict=True):
        totals += chances * step
    return totals


def probabilities_between(scores: Floats) -> Floats:
    """Return the probability of each label (row); a P(l > k) above that of a lower k is lowered to it.

    >>> probabilities_between(np.array([[1.0], [0.0]])).round(4).tolist()
    [[0.2689], [0.2311], [0.5]]
    """
    above = np.minimum.accumulate(logistic(scores), axis=0)
    return -np.diff(above, axis=0, prepend=1.0, append=0.0)
