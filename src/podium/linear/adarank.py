"""AdaRank: features as weak rankers, weighted by boosting on a measure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from podium.core import hyperparameters as h
from podium.core.array_types import Floats
from podium.core.observing import Observer
from podium.core.parameters import settings
from podium.data import RankingData
from podium.data.canonical import queries_by_content
from podium.errors import DataError
from podium.linear.descent import DescentResult, LinearTraining, Steps
from podium.linear.design import DesignMatrix
from podium.measures import Measure, Ranking, as_selection, warn_of_powers
from podium.models.base import checked_sets
from podium.objectives.base import query_weights_of

TINY = 1e-12  # without it, a weak ranker that is right on all queries has an infinite weight


@settings
class AdaRankTraining(LinearTraining):
    """The settings of AdaRank (Xu and Li 2007, fig. 1).

    A weak ranker sorts by one standardized feature, ascending or descending. Each round picks the weak ranker with the
    highest mean of the measure E over the queries, weighted by P(q), and adds ½ log((1 + Σ P E) / (1 − Σ P E)) to its
    weight. Then P(q) ∝ u_q e^{−E(q)} for the ranking by all weights so far, so badly ranked queries count more.

    Args:
        selection: the measure E, from −1 to 1, which also picks the round if there is validation data; of graded
            measures, the first one is E.
        watched: measures to record in the history in addition to those of the selection.

    Example:
        >>> import podium
        >>> from podium.linear import AdaRankTraining
        >>> result = AdaRankTraining(n_iterations=3).fit(podium.artificial(20, features=4))
        >>> result.model.weights.shape
        (4,)

    """

    repeats: bool = h.REPEATS()

    def fit(
        self, train: RankingData, valid: Mapping[str, RankingData] | None = None, observers: Sequence[Observer] = ()
    ) -> DescentResult:
        """Train; the first validation set decides when to stop, and which round gives the weights."""
        sets, measures = checked_sets(train, valid), as_selection(self.selection).measures
        warn_of_powers(measures if sets else measures[:1], train, *sets.values())
        design = DesignMatrix(train, self.n_threads)
        return self.take_steps(self._steps(design, measures[0].fixed(train, *sets.values())), design, sets, observers)

    def _steps(self, design: DesignMatrix, measure: Measure) -> Steps:
        data = design.data
        queries = queries_by_content(data)  # so that sums do not depend on the order of queries

        def values(scores: Floats) -> Floats:
            """Return E of each query; 0 for queries where E is undefined."""
            return np.nan_to_num(measure.values(Ranking(data, scores))[queries], nan=0.0)

        weak = np.array([values(sign * design.column(k)) for k in range(data.n_features) for sign in (1.0, -1.0)])
        if not (np.abs(weak) <= 1.0 + TINY).all():
            raise DataError(
                f"AdaRank needs a measure from −1 to 1, but {measure} of a query is {weak[np.abs(weak) > 1][0]:g}: use "
                "a normalized one, such as ndcg in place of dcg"
            )
        counts = query_weights_of(data)[queries]
        weights, scores, shares = np.zeros(data.n_features), np.zeros(len(data)), counts
        previous: int | None = None  # the feature of the last round
        for _ in range(self.n_iterations):
            means = (weak * shares).sum(axis=1) / (float(shares.sum()) or 1.0)
            if previous is not None and not self.repeats:
                means[2 * previous : 2 * previous + 2] = -np.inf
            best = int(np.argmax(means))
            feature, sign = best // 2, 1.0 if best % 2 == 0 else -1.0
            weight = sign * 0.5 * math.log((1.0 + means[best]) / max(1.0 - means[best], TINY))
            weights = weights + weight * (np.arange(data.n_features) == feature)
            scores = scores + weight * design.column(feature)
            yield weights, scores
            if data.n_features == 1 or (feature == previous and np.count_nonzero(weights) == 1):
                return  # the ranking is the same, so the next round would be the same
            previous, shares = feature, counts * np.exp(-values(scores))
