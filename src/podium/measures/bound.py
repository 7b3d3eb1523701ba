"""Measures of the same documents for scores that change from round to round, as in training.

Everything that does not depend on scores (values of documents, norms, empty queries) is computed once. All measures
share one ranking, which is updated for new scores only as deep as a measure needs, and only for queries that count: on
long lists, NDCG@10 is then ten times as fast as a full sort. The sums over ranks use the kernels of `Measure.values`,
so that the means have the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from podium.core.array_types import Bools, Floats, Int, Int32s, Ints
from podium.core.compiling import kernel
from podium.core.intrinsics import borrowed
from podium.core.sums import mean_of_known
from podium.core.team import Team
from podium.core.threads import n_threads_for
from podium.data import RankingData
from podium.measures.base import ListMeasure, ListSums, Measure, sums_of_known, weights_in_means
from podium.measures.ranking import Ranking, checked_scores, collect_tied, sort_top

U: Any = np.uintp  # an index that cannot be negative needs no check for it
PASSES = 4  # cost of ranking again, in simple passes over the documents


class _BoundSums(NamedTuple):
    """A measure bound to the data: its list sums, the depth to rank to, and the sum of each query."""

    measure: ListMeasure
    list_sums: ListSums
    depth: int
    sums: Floats


class BoundMeasures:
    """Measures bound to data, for many vectors of scores.

    Means equal `measure.mean(Ranking(data, scores))` bit for bit. Measures that do not belong to a family, or that rank
    ties in the order of the rows, are computed that way, which is slower.

    Args:
        data: the documents.
        measures: the measures by name.
        team: threads to share the work if that is faster; one by default.

    Example:
        >>> import podium
        >>> from podium.measures import AP, NDCG, BoundMeasures
        >>> data = podium.RankingData([[0.0], [1.0], [2.0]], [0, 2, 1], qid=["a", "a", "a"])
        >>> bound = BoundMeasures(data, {"ndcg@1": NDCG(1), "ap": AP()})
        >>> bound.means([0.5, 0.1, 0.9])
        {'ndcg@1': 0.3333333333333333, 'ap': 0.8333333333333333}

    """

    def __init__(self, data: RankingData, measures: Mapping[str, Measure], team: Team | None = None) -> None:
        self.data, self.measures, self.team = data, dict(measures), team or Team(1)
        n, order = data.n_documents, data.canonical_order
        self._bound = {name: _bind(m, data, order) for name, m in measures.items() if _is_of_kernels(m)}
        bound = list(self._bound.values())
        self._depth = max((b.depth for b in bound), default=0)
        counts = np.logical_or.reduce([~b.list_sums.is_empty for b in bound]) if bound else np.zeros(0, bool)
        self._places = (np.arange(n) - np.repeat(data.offsets[:-1], data.query_sizes)).astype(np.int32)
        self._scores, self._values = np.zeros(n), np.zeros(n)  # by rank
        pieces = n_threads_for(PASSES * n, self.team.n_threads)
        edges = np.searchsorted(data.offsets, n * np.arange(pieces + 1) // pieces)
        slices = [slice(a, b) for a, b in pairwise(edges.tolist())]
        self._pieces = [(data.offsets[q.start : q.stop + 1], counts[q], [b.sums[q] for b in bound]) for q in slices]
        if bound:  # compile the kernels now: in training, another process compiles the growth of trees meanwhile
            self._sum(0, np.zeros(n))

    def means(self, scores: Any) -> dict[str, float]:
        """Return the mean of each measure by name for the scores of all rows."""
        weights = weights_in_means(self.data)
        return self._measured(
            scores, lambda values: mean_of_known(values, weights), lambda measure, ranking: measure.mean(ranking)
        )

    def part_sums(self, scores: Any) -> dict[str, Any]:
        """Return the sums of a part of the data, from which `Measure.mean_of_sums` computes the means."""
        weights = weights_in_means(self.data)
        return self._measured(
            scores, lambda values: sums_of_known(values, weights), lambda measure, ranking: measure.sums(ranking)
        )

    def _measured(
        self, scores: Any, of_values: Callable[[Floats], Any], of_ranking: Callable[[Measure, Ranking], Any]
    ) -> dict[str, Any]:
        data = self.data
        if not _is_plain(scores, data.n_documents):
            scores = checked_scores(scores, data.n_documents, data.row_index)
        if self._bound and not all(self.team.each(len(self._pieces), lambda piece: self._sum(piece, scores))):
            checked_scores(scores, data.n_documents, data.row_index)  # raises an error that says which are NaN
        results, ranking = {}, None
        for name, measure in self.measures.items():
            bound = self._bound.get(name)
            if bound is not None:
                results[name] = of_values(bound.measure.values_of_sums(bound.list_sums, bound.sums))
            else:
                ranking = ranking or Ranking(data, scores)
                results[name] = of_ranking(measure, ranking)
        return results

    def _sum(self, piece: int, scores: Floats) -> bool:
        """Rank some queries again, and sum over their ranks; return whether no score is NaN."""
        offsets, counts, sums = self._pieces[piece]
        places, ranked = self._places, self._values
        if not rank_again(scores, self.data.canonical_order, offsets, counts, self._depth, places, self._scores):
            return False
        for bound, part in zip(self._bound.values(), sums, strict=True):
            take_by_rank(bound.list_sums.values, places, self._scores, offsets, bound.depth, ranked)
            bound.list_sums.fill(ranked, self._scores, offsets, part)
        return True


def _is_of_kernels(measure: Measure) -> bool:
    """Return whether a measure uses the values and the mean of its family, without overriding them."""
    kind = type(measure)
    return kind.mean is Measure.mean and kind.values is ListMeasure.values and measure.ties != "stable"


def _bind(measure: Measure, data: RankingData, order: Ints) -> _BoundSums:
    assert isinstance(measure, ListMeasure)
    list_sums = measure.list_sums(measure.labels_in(data, order), data, data.query_sizes)
    depth = min(list_sums.depth, int(data.query_sizes.max(initial=0)))
    return _BoundSums(measure, list_sums, depth, np.zeros(data.n_queries))


def _is_plain(scores: Any, n: int) -> bool:
    is_array = type(scores) is np.ndarray and scores.dtype == np.float64
    return is_array and scores.shape == (n,) and scores.flags.c_contiguous


@kernel
def rank_again(
    scores: Floats, order: Ints, offsets: Ints, counts: Bools, depth: Int, places: Int32s, ranked_scores: Floats
) -> bool:
    """Update the ranking of each query down to a depth; return whether no score is NaN.

    Args:
        scores: the scores by row.
        order: the rows of each query in the canonical order; the place of a document is its index there.
        offsets: where each query begins.
        counts: whether each query must be ranked.
        depth: the number of ranks that matter. They are followed by the documents tied with the last of them, in the
            order of places, and then by the others in any order.
        places: the places by rank of the previous round, which are updated.
        ranked_scores: receives the scores by rank.

    """
    largest = 0
    for q in range(len(offsets) - 1):
        largest = max(largest, offsets[q + 1] - offsets[q])
    spare_scores, spare_places = np.empty(largest), np.empty(largest, np.int32)
    all_places, by_rank = borrowed(places), borrowed(ranked_scores)
    n_missing = 0
    for q in range(len(offsets) - 1):
        start, end = offsets[q], offsets[q + 1]
        if not counts[q]:
            for k in range(U(start), U(end)):
                n_missing += np.isnan(scores[U(order[k])])
            continue
        for k in range(U(start), U(end)):
            score = scores[U(order[U(start) + U(all_places[k])])]
            by_rank[k] = score
            n_missing += np.isnan(score)
        sort_top(by_rank[start:end], all_places[start:end], depth, spare_scores, spare_places)
        if end - start > depth:
            collect_tied(by_rank[start:end], all_places[start:end], depth, spare_scores, spare_places)
    return n_missing == 0


@kernel
def take_by_rank(
    values: Floats, places: Int32s, ranked_scores: Floats, offsets: Ints, depth: Int, ranked: Floats
) -> None:
    """Write the values of each query's first documents by rank, and of those tied with the last of them."""
    for q in range(len(offsets) - 1):
        start, end = U(offsets[q]), U(offsets[q + 1])
        last = min(start + U(depth), end)
        for k in range(start, last):
            ranked[k] = values[start + U(places[k])]
        while start < last < end and ranked_scores[last] == ranked_scores[last - U(1)]:
            ranked[last] = values[start + U(places[last])]
            last += U(1)
