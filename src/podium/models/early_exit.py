"""Trees that most documents leave early: a classifier tells which ones, after the first trees (LEAR)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from podium.core.array_types import Bools, Floats, Ints
from podium.core.compiling import kernel
from podium.core.validation import require_number, require_whole
from podium.data.columns import query_in_order
from podium.data.features import Features
from podium.data.schema import as_data
from podium.data.sparse import is_sparse
from podium.errors import DataError
from podium.measures.ranking import descending_order
from podium.models.base import OverTrees
from podium.models.ensemble import Ensemble

N_ADDED = 3  # what a classifier sees beside the features: partial score, rank, normalised score


@dataclass(frozen=True)
class EarlyExit(OverTrees):
    """Trees of which a document sees the first ones; a classifier then decides whether it sees the others.

    Busolin, Lucchese, Nardini, Orlando, Perego and Trani (SIGIR 2021) call it LEAR. Documents that continue have the
    score of all trees, the same bits as the ensemble's. Those that exit rank below all of their query that continue, in
    the order of their partial scores: they keep these scores, lowered by one number for the whole query where that is
    needed. Scores of different queries cannot be compared. `podium.learn_exit` trains the classifier.

    Attributes:
        trees: all of them.
        classifier: trees on the features, the partial score, its rank within the query (from 1, equal scores share the
            lowest) and the partial score as a share of the query's range; above 0 is to continue.
        sentinel: the number of trees after which documents may exit.
        threshold: the probability from which a document continues: 0 for all, 1 for none.

    Example:
        >>> import podium
        >>> data = podium.artificial(30, features=4)
        >>> ranker = podium.LambdaMART(n_trees=30, n_leaves=4).fit(data)
        >>> model = podium.learn_exit(ranker, data, sentinel=10, threshold=0.5)
        >>> model
        EarlyExit(30 trees, exit after 10 below a probability of 0.5)
        >>> model.predict(data).shape, bool(model.continues(data).all())
        ((1500,), False)

    """

    trees: Ensemble
    classifier: Ensemble
    sentinel: int
    threshold: float
    sees_lists = True

    def __post_init__(self) -> None:
        require_whole("sentinel", self.sentinel, 0, most=self.trees.n_trees)
        require_number("threshold", self.threshold, least=0, most=1)
        if self.classifier.n_features != self.trees.n_features + N_ADDED:
            raise DataError(
                f"a classifier of early exits sees the {self.trees.n_features} features and {N_ADDED} more, but this "
                f"one has {self.classifier.n_features}"
            )

    @property
    def n_trees(self) -> int:
        """The number of trees."""
        return self.trees.n_trees

    def __repr__(self) -> str:
        where = f"exit after {self.sentinel} below a probability of {self.threshold:.4g}"
        return f"EarlyExit({self.n_trees} trees, {where})"

    @cached_property
    def _halves(self) -> tuple[Ensemble, ...]:
        return self.trees.cut(self.sentinel)

    def prepare(self) -> None:
        """Make the first trees, the others and the classifier ready to score."""
        for trees in (*self._halves, self.classifier):
            trees.prepare()

    def continues(self, data: Any, n_threads: int | None = None) -> Bools:
        """Which rows see all trees."""
        data = as_data(data)
        self._require_same_reading(data)
        result = np.empty(len(data), bool)
        seen = self.at_sentinel(self.schema.rows(data)[data.order], data.offsets, n_threads)
        result[data.order] = self._is_likely(seen)
        return result

    def at_sentinel(self, features: Features, offsets: Ints, n_threads: int | None = None) -> AtSentinel:
        """What is known of each row after the first trees; query q has the rows offsets[q] to offsets[q + 1]."""
        seen = partial_scores(self._halves[0], features, offsets, n_threads)
        rows = with_added(features, seen)
        return seen._replace(confidence=self.classifier._predict_rows(rows, n_threads=n_threads))

    def _is_likely(self, seen: AtSentinel) -> Bools:
        """Which rows the classifier lets continue: 1 / (1 + e^{−2F}) reaches the threshold."""
        if self.threshold in (0, 1):
            return np.full(len(seen.scores), self.threshold == 0)
        return seen.confidence >= (math.log(self.threshold) - math.log1p(-self.threshold)) / 2

    def _predict_rows(self, features: Features, offsets: Ints | None = None, *, n_threads: int | None = None) -> Floats:
        """The score of each row; `offsets` of the queries are needed."""
        self._checked_rows(features)
        if offsets is None:
            raise DataError(
                "whether a document exits depends on the others of its query, which features alone do not tell: "
                "predict RankingData, such as RankingData(X, qid=np.zeros(len(X))) for one query"
            )
        seen = self.at_sentinel(features, offsets, n_threads)
        continues = self._is_likely(seen)
        ends, later = seen.scores[continues], self._halves[1]
        later.add_scores(features[continues], ends, 0, later.n_trees, n_threads)
        scores = seen.scores.copy()
        scores[continues] = ends
        put_behind(scores, continues, seen.ranked, offsets)
        return scores

    def ranked_with(self, seen: AtSentinel, ends: Floats, offsets: Ints) -> Floats:
        """The scores that `predict` would give, from the scores of all trees: for trying thresholds."""
        continues = self._is_likely(seen)
        scores = np.where(continues, ends, seen.scores)
        put_behind(scores, continues, seen.ranked, offsets)
        return scores

    def _parameters(self) -> list[Any]:
        return [self.trees.digest(), self.classifier.digest(), self.sentinel, float(self.threshold)]


class AtSentinel(NamedTuple):
    """Documents after the first trees, query by query.

    Attributes:
        scores: partial ones.
        ranked: the places of each query's documents by descending partial score.
        rank: of each, from 1; documents of equal scores share the lowest.
        normalized: (score − lowest) / (highest − lowest) of the query; 0 where all are equal.
        confidence: what the classifier says, above 0 to continue.

    """

    scores: Floats
    ranked: Ints
    rank: Floats
    normalized: Floats
    confidence: Floats


def partial_scores(head: Ensemble, features: Features, offsets: Ints, n_threads: int | None = None) -> AtSentinel:
    """The documents after the first trees; nothing of it depends on the order of a query's rows but `ranked`."""
    scores = head._predict_rows(features, n_threads=n_threads)
    ranked, query = descending_order(scores, offsets, n_threads), query_in_order(offsets)
    descending, first = scores[ranked], offsets[:-1][query]
    place = np.arange(len(scores))
    is_next = place == first  # or lower than the one above
    is_next[1:] |= descending[1:] < descending[:-1]
    rank = np.empty(len(scores))
    rank[ranked] = np.maximum.accumulate(np.where(is_next, place, 0)) - first + 1
    highest, lowest = descending[first], descending[offsets[1:][query] - 1]
    spread = np.where(highest > lowest, highest - lowest, 1.0)
    return AtSentinel(scores, ranked, rank, (scores - lowest) / spread, np.zeros(len(scores)))


def with_added(features: Features, seen: AtSentinel) -> Features:
    """What the classifier sees: the features, and what the first trees found."""
    with np.errstate(over="ignore"):  # a score too large for float32 is infinite there
        added = np.column_stack([seen.scores, seen.rank, seen.normalized]).astype(np.float32)
    if is_sparse(features):
        from scipy.sparse import csr_array, hstack

        return csr_array(hstack([features, csr_array(added)], format="csr"))
    return np.hstack([features, added])


@kernel
def put_behind(scores: Floats, continues: Bools, ranked: Ints, offsets: Ints) -> None:
    """Bring the scores of documents that exit below those of their query that continue, in place.

    `ranked` has them by descending partial score. All of a query are lowered by the same number, and by one step of
    double precision more where rounding would make unequal scores equal: their order is that of the partial scores.
    """
    for q in range(len(offsets) - 1):
        floor, highest = np.inf, -np.inf
        for k in range(offsets[q], offsets[q + 1]):
            if continues[k]:
                floor = min(floor, scores[k])
            else:
                highest = max(highest, scores[k])
        lowered = max(highest - floor, 0.0)
        partial, score = np.inf, floor
        for place in range(offsets[q], offsets[q + 1]):
            k = ranked[place]
            if not continues[k]:
                if scores[k] < partial:
                    partial = scores[k]
                    score = min(partial - lowered, np.nextafter(score, -np.inf))
                scores[k] = score
