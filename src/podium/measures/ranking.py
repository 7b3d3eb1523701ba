"""Rankings: the documents of each query by score, and the sorting behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Bools, Float32s, Floats, Int32s, Ints
from podium.core.compiling import helper, kernel
from podium.core.intrinsics import not_inlined
from podium.core.sorting import sort_with_items
from podium.core.threads import for_ranges, n_threads_for
from podium.data import RankingData
from podium.data.columns import frozen, unmasked
from podium.errors import DataError

if TYPE_CHECKING:
    from podium.measures.base import Ties


class Ranking:
    """The documents of each query by descending score.

    Args:
        data: the documents.
        scores: a score for each row of the data; higher is better.
        base: the order of documents with equal scores; by default `data.canonical_order`, or `data.order` for measures
            with `ties="stable"`.
        retrieved: False for rows without a rank: a run did not return them, or they have no label (`judged`).

    Attributes:
        order: the rows by query, as in `data.offsets`, and by rank.
        ranked_scores: the scores in that order.

    Example:
        >>> import podium
        >>> from podium.measures import Ranking
        >>> data = podium.RankingData([[0.0], [1.0], [2.0]], [0, 2, 1], qid=["a", "a", "a"])
        >>> ranking = Ranking(data, [0.5, 0.1, 0.9])
        >>> ranking.order.tolist(), ranking.labels("relevance").tolist()
        ([2, 0, 1], [1.0, 0.0, 2.0])

    """

    def __init__(
        self, data: RankingData, scores: Any, *, base: Ints | None = None, retrieved: Bools | None = None
    ) -> None:
        self.data = data
        self.scores = checked_scores(scores, data.n_documents, data.row_index)
        if retrieved is not None:
            self.scores = np.where(retrieved, self.scores, -np.inf)
        self._has_base = base is not None
        # Kernels are compiled once, for read-only arrays.
        self.base = frozen(data.canonical_order if base is None else base)
        self.retrieved = retrieved

    def for_ties(self, ties: Ties | None) -> Ranking:
        """Return the ranking with documents of equal scores in the order of a measure's `ties`."""
        return self._by_rows if ties == "stable" and not self._has_base else self

    def judged(self, sources: Iterable[str]) -> Ranking:
        """Return the ranking of only those documents that have a label of one of the sources.

        A negative label does not count: the document was pooled but not judged (`podium.measures.incomplete`).
        """
        judged, rows = np.zeros(self.data.n_documents, bool), np.arange(self.data.n_documents)
        for source in sources:
            pool = f"{source}_pool"
            judged |= labels_in_order(self.data, pool if pool in self.data.labels else source, rows) >= 0
        retrieved = judged if self.retrieved is None else judged & self.retrieved
        return Ranking(self.data, self.scores, base=self.base if self._has_base else None, retrieved=retrieved)

    @cached_property
    def _by_rows(self) -> Ranking:
        return Ranking(self.data, self.scores, base=self.data.order, retrieved=self.retrieved)

    @cached_property
    def order(self) -> Ints:
        """The rows of each query by rank."""
        ranked = np.empty(self.data.n_documents, np.int64)
        for_queries(self.data.offsets, lambda offsets, _: rank_queries(self.scores, self.base, offsets, ranked))
        return ranked

    @cached_property
    def ranked_scores(self) -> Floats:
        """The scores of each query by rank."""
        return self.scores[self.order]

    @cached_property
    def ranked_retrieved(self) -> Floats:
        """1 for documents with a rank, 0 for others."""
        if self.retrieved is None:
            return np.ones(self.data.n_documents)
        return self.retrieved[self.order].astype(np.float64)

    @cached_property
    def ranked_sizes(self) -> Ints:
        """The number of documents of each query that have a rank."""
        if self.retrieved is None or not self.data.n_queries:
            return self.data.query_sizes
        return np.add.reduceat(self.ranked_retrieved, self.data.offsets[:-1]).astype(np.int64)

    def labels(self, source: str) -> Float32s:
        """Return the labels of a source by rank, NaN for unlabelled documents."""
        return labels_in_order(self.data, source, self.order)


def labels_in_order(data: RankingData, source: str, order: Ints) -> Float32s:
    """Return the labels of a source in an order of the rows, NaN for unlabelled documents."""
    if source not in data.labels:
        sources = ", ".join(map(repr, data.labels)) or "none"
        pairs = " (for its preferences, use the measure 'preferences')" if data.preferences is not None else ""
        raise DataError(f"the data has no labels {source!r}; it has {sources}{pairs}")
    return data.labels[source][order]


@kernel
def rank_queries(scores: Floats, base: Ints, offsets: Ints, ranked: Ints) -> None:
    """Write the rows of each query by descending score, with ties in the order of `base`."""
    largest = 0
    for q in range(len(offsets) - 1):
        largest = max(largest, offsets[q + 1] - offsets[q])
    keys, spare_keys = np.empty(largest), np.empty(largest)
    items, spare_items = np.empty(largest, np.int64), np.empty(largest, np.int64)
    for q in range(len(offsets) - 1):
        start, n = offsets[q], offsets[q + 1] - offsets[q]
        for k in range(n):
            items[k] = base[start + k]
            keys[k] = -scores[items[k]]
        sort_with_items(keys, items, spare_keys, spare_items, n)
        for k in range(n):
            ranked[start + k] = items[k]


def descending_order(values: Floats, offsets: Ints, n_threads: int | None = None) -> Ints:
    """Return the indices of each query's values in descending order, keeping the order of ties."""
    places, ranked = frozen(np.arange(len(values))), np.empty(len(values), np.int64)
    for_queries(offsets, lambda part, _: rank_queries(values, places, part, ranked), n_threads=n_threads)
    return ranked


def in_descending_order(values: Floats, offsets: Ints, n_threads: int | None = None) -> Floats:
    """Return the values of each query in descending order, as in an ideal ranking."""
    return values[descending_order(values, offsets, n_threads)]


def for_queries(
    offsets: Ints,
    work: Callable[[Ints, slice], None],
    smallest: int = 64,
    n_threads: int | None = None,
    amount: float | None = None,
) -> None:
    """Call `work(offsets, queries)` for ranges of at least `smallest` queries, on threads if that is faster.

    `amount` is the work in documents of a simple pass, by default all documents. Below 65,536, starting a pool of
    threads would take longer than the work.
    """
    offsets = frozen(offsets)  # kernels are compiled once, for read-only arrays
    n_threads = n_threads_for(float(offsets[-1] - offsets[0]) if amount is None else amount, n_threads)
    for_ranges(
        len(offsets) - 1, lambda first, last: work(offsets[first : last + 1], slice(first, last)), n_threads, smallest
    )


def checked_scores(scores: Any, n: int, row_index: NDArray[Any] | None = None) -> Floats:
    """Return scores as float64; raise for a wrong number of scores, NaN, or an index in another order."""
    index = getattr(scores, "index", None)
    if index is not None and hasattr(index, "to_numpy"):
        expected = np.arange(n) if row_index is None else row_index
        if not np.array_equal(index.to_numpy(), expected):
            raise DataError(
                "scores is a Series whose index differs from that of the data's rows (0, 1, 2 … or the index of the "
                "frame they came from): if it is in the same order, pass scores.to_numpy()"
            )
    array = unmasked(scores)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.shape != (n,):
        raise DataError(f"scores must have one number for each of the {n} rows, but have shape {array.shape}")
    if array.dtype.kind not in "fiub":
        raise DataError(f"scores must be numbers, but got {array.dtype}")
    array = array.astype(np.float64)
    bad = np.flatnonzero(np.isnan(array))
    if len(bad):
        raise DataError(f"scores must not be NaN, but row {bad[0]} is ({len(bad)} in all)")
    return array


U: Any = np.uintp  # an index that cannot be negative needs no check for it


@helper
def sort_ranked(scores: Floats, places: Int32s, spare_scores: Floats, spare_places: Int32s) -> None:
    """Sort by descending score, and ties by ascending place.

    Few documents change ranks from one round to the next, so insertion sort is fast. If it would take longer than a
    full sort, the documents are put back in the order of places and sorted.
    """
    n = len(scores)
    moves, most = 0, 6 * n
    for r in range(1, n):
        if scores[U(r - 1)] > scores[U(r)]:
            continue
        score, place = scores[U(r)], places[U(r)]
        k = r
        while k > 0 and (scores[U(k - 1)] < score or (scores[U(k - 1)] == score and places[U(k - 1)] > place)):
            scores[U(k)], places[U(k)] = scores[U(k - 1)], places[U(k - 1)]
            k -= 1
        scores[U(k)], places[U(k)] = score, place
        moves += r - k
        if moves > most:
            _sort_all(scores, places, spare_scores, spare_places)
            return


@helper
def sort_top(scores: Floats, places: Int32s, depth: Any, spare_scores: Floats, spare_places: Int32s) -> None:
    """Sort in the same way down to a depth; documents below it are in any order.

    Most documents below the top stay there, which takes one comparison each.
    """
    n = len(scores)
    moves, most = 0, 6 * n
    for r in range(1, n):
        k = min(r, depth)
        score, lowest = scores[U(r)], scores[U(k - 1)]
        if lowest > score:
            continue
        place = places[U(r)]
        if lowest == score and places[U(k - 1)] < place:
            continue
        if r >= depth:  # swap it with the lowest of the top
            k = depth - 1
            scores[U(r)], places[U(r)] = scores[U(k)], places[U(k)]
        moves += k
        while k > 0 and (scores[U(k - 1)] < score or (scores[U(k - 1)] == score and places[U(k - 1)] > place)):
            scores[U(k)], places[U(k)] = scores[U(k - 1)], places[U(k - 1)]
            k -= 1
        scores[U(k)], places[U(k)] = score, place
        moves -= k
        if moves > most:
            _sort_all(scores, places, spare_scores, spare_places)
            return


@helper
def collect_tied(scores: Floats, places: Int32s, depth: Any, spare_scores: Floats, spare_places: Int32s) -> None:
    """Move the documents below a depth that are tied with the last one above it to the front, by ascending place."""
    lowest, end = scores[U(depth - 1)], depth
    for r in range(depth, len(scores)):
        if scores[U(r)] == lowest:
            scores[U(r)], scores[U(end)] = scores[U(end)], lowest
            places[U(r)], places[U(end)] = places[U(end)], places[U(r)]
            end += 1
    if end > depth + 1:
        sort_with_items(places[depth:end], scores[depth:end], spare_places, spare_scores, end - depth)


@helper
def _sort_all(scores: Floats, places: Int32s, spare_scores: Floats, spare_places: Int32s) -> None:
    not_inlined()
    n = len(scores)
    for m in range(n):
        spare_scores[U(places[U(m)])] = -scores[U(m)]
    for m in range(n):
        scores[U(m)], places[U(m)] = spare_scores[U(m)], np.int32(m)
    sort_with_items(scores, places, spare_scores, spare_places, n)
    for m in range(n):
        scores[U(m)] = -scores[U(m)]
