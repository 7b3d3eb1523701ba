"""Exact top k by BM25 over the postings of a stream.

Terms are processed by the maximum that each can add to a score, largest first. As soon as the k-th best score so far
exceeds what all further terms can add, documents without an earlier term cannot reach the top k (MaxScore, Turtle and
Flood 1995). The documents that still can are then scored exactly, with sums in the order of the query. The pruning uses
float32 with an allowance for rounding, so it never drops a document of the top k.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from podium.core.array_types import Bools, Float32s, Floats, Int, Int32s, Ints, Number
from podium.core.compiling import helper, kernel
from podium.core.sorting import sort_with_items
from podium.core.threads import map_threads, ranges
from podium.features.feature import Feature
from podium.features.matches import PairBlock, QueryTerms, bm25_idf, bm25_norm, bm25_weight, find
from podium.features.ranking_functions import BM25
from podium.features.stream_statistics import StreamStatistics, statistics_of

if TYPE_CHECKING:
    from podium.features.index import Index

Top = tuple[Ints, Floats]  # rows and scores, best first
QUERIES_AT_ONCE = 256
LOOKUP_COST = 64  # the number of postings that take as long to scan as one row takes to find in a list
ROUNDING = 1.2e-7  # the relative error of one float32 operation


def search(index: Index, texts: Sequence[str], k: int, feature: Feature, n_threads: int | None) -> list[Top]:
    """Return the rows and scores of the best k documents for each text, by a feature.

    BM25 with a non-negative idf is searched with pruning. For any other feature, all documents that contain one of the
    terms are scored, except those for which the feature is undefined.
    """
    feature.check(index)
    if isinstance(feature, BM25) and feature.idf == "lucene":
        return index.once(("searcher", feature), lambda: Searcher(index, feature)).top(texts, k, n_threads)
    stream = statistics_of(index, feature.fields if feature.takes in ("stream", "weights") else ())
    return list(map_threads(lambda text: _score_all(index, text, k, feature, stream), texts, n_threads))


def _score_all(index: Index, text: str, k: int, feature: Feature, stream: StreamStatistics) -> Top:
    """Return the best documents among all that contain a term of the query."""
    terms = QueryTerms(stream.fields, [text])
    rows, _, begins, ends, _ = stream.posting_lists(list(map(terms.ids, stream.fields)))
    matching = np.unique(np.concatenate([np.empty(0, np.int32), *map(rows.__getitem__, map(slice, begins, ends))]))
    matching = matching[index.is_live[matching]].astype(np.int64)
    scores = feature.column(PairBlock.of_query(index, text, matching))
    matching, scores = matching[~np.isnan(scores)], scores[~np.isnan(scores)]
    order = np.lexsort((index.id_ranks[matching], -scores))[:k]
    return matching[order], scores[order]


class Searcher:
    """Finds the best documents by BM25.

    Args:
        index: the documents.
        feature: BM25 with Lucene's idf.

    """

    def __init__(self, index: Index, feature: BM25) -> None:
        self.stream = statistics_of(index, feature.fields)
        self.k1, self.b, self.factor = feature.k1, feature.b, feature.k1 + 1.0 if feature.scaled else 1.0
        self.id_ranks = index.id_ranks  # ids break ties between scores
        self._scratch = threading.local()

    @cached_property
    def lengths(self) -> Floats:
        """The number of words of each row."""
        return self.stream.lengths(np.arange(len(self.stream.is_live)))

    @cached_property
    def norms(self) -> Float32s:
        """The term of the denominator that depends on length; infinite for removed documents, so that they score 0."""
        norms = np.empty(len(self.stream.is_live), np.float32)
        fill_norms(self.lengths, self.stream.is_live, self.stream.mean_length, self.k1, self.b, norms)
        return norms

    def top(self, texts: Sequence[str], k: int, n_threads: int | None = None) -> list[Top]:
        """Return the rows and scores of the best k documents for each text."""
        spans = [
            (first + begin, first + end)
            for first in range(0, len(texts), QUERIES_AT_ONCE)
            for begin, end in ranges(min(QUERIES_AT_ONCE, len(texts) - first), n_threads, 16)
        ]
        _ = self.norms  # compute them before threads need them
        parts = map_threads(lambda span: self._top_block(texts[slice(*span)], k), spans, n_threads)
        return [result for part in parts for result in part]

    def _top_block(self, texts: Sequence[str], k: int) -> list[Top]:
        terms = QueryTerms(self.stream.fields, texts)
        rows, counts, begins, ends, frequencies = self.stream.posting_lists(list(map(terms.ids, self.stream.fields)))
        idf = np.array([bm25_idf(self.stream.n_documents, n) for n in frequencies.tolist()], np.float64) * self.factor
        shape = len(texts), min(k, len(self.norms))
        n_top, top_rows, scores = np.zeros(len(texts), np.int64), np.empty(shape, np.int64), np.empty(shape)
        top_k(
            rows, counts, begins, ends, idf, terms.starts, self.norms, self.lengths, self.stream.mean_length, self.k1,
            self.b, self.id_ranks, self._sums(), n_top, top_rows, scores,
        )  # fmt: skip
        return [(top_rows[q, :n], scores[q, :n]) for q, n in enumerate(n_top.tolist())]

    def _sums(self) -> Float32s:
        """Return the thread's array of zeros, one for every row, which the kernel resets to zeros."""
        if not hasattr(self._scratch, "sums"):
            self._scratch.sums = np.zeros(len(self.norms), np.float32)
        sums: Float32s = self._scratch.sums
        return sums


@kernel
def fill_norms(lengths: Floats, is_live: Bools, mean_length: Number, k1: Number, b: Number, norms: Float32s) -> None:
    """Compute the term of the denominator that depends on length, infinite for removed rows."""
    for row in range(len(norms)):
        norms[row] = bm25_norm(lengths[row], mean_length, k1, b) if is_live[row] else np.inf


@kernel
def top_k(
    rows: Int32s, counts: Int32s, begins: Ints, ends: Ints, idf: Floats, starts: Ints, norms: Float32s, lengths: Floats,
    mean_length: Number, k1: Number, b: Number, id_ranks: Int32s, sums: Float32s, n_top: Ints, top_rows: Any,
    top_scores: Any,
) -> None:  # fmt: skip
    """Find the best rows for each query; `begins`, `ends` and `idf` of its terms are at `starts[q]` … `starts[q + 1]`.

    `sums` must be zeros, and are zeros again afterwards.
    """
    touched = np.empty(1024, np.int32)
    k = top_rows.shape[1]
    heap_rows, heap_scores = np.empty(k, np.int64), np.empty(k)
    for q in range(len(starts) - 1):
        first, last = starts[q], starts[q + 1]
        n_terms = last - first
        bounds = np.empty(n_terms)
        for t in range(n_terms):
            bounds[t] = idf[first + t] if ends[first + t] > begins[first + t] else 0.0  # tf / (tf + norm) < 1
        keys, order = -bounds, np.arange(n_terms)
        sort_with_items(keys, order, np.empty(n_terms), np.empty(n_terms, np.int64), n_terms)
        slack = 1.0 + ROUNDING * (n_terms + 8)
        n_touched, rest, postings_left = 0, 0.0, 0
        for t in range(n_terms):
            rest += bounds[t]
            postings_left += ends[first + t] - begins[first + t]
        threshold = 0.0
        for t in order:
            if n_touched >= k > 0:
                threshold = _kth_sum(sums, touched, n_touched, k, heap_scores)
                if rest * slack < threshold:
                    n_left = 0
                    for j in range(n_touched):
                        n_left += (sums[touched[j]] + rest) * slack >= threshold
                    if n_left * LOOKUP_COST * n_terms < postings_left:  # scoring them is cheaper than reading on
                        break
            begin, end = begins[first + t], ends[first + t]
            if n_touched + end - begin > len(touched):
                larger = np.empty(2 * (n_touched + end - begin), np.int32)
                larger[:n_touched] = touched[:n_touched]
                touched = larger
            n_touched = _add_list(rows, counts, begin, end, idf[first + t], norms, sums, touched, n_touched)
            rest = max(rest - bounds[t], 0.0)
            postings_left -= end - begin
        else:
            rest = 0.0
            threshold = _kth_sum(sums, touched, n_touched, k, heap_scores) if n_touched >= k > 0 else 0.0
        n = 0
        for j in range(n_touched):
            row = touched[j]
            bound = (sums[row] + rest) * slack
            sums[row] = 0.0
            if bound * slack < threshold or (n == k and bound < heap_scores[0]) or k == 0:
                continue
            score, norm = 0.0, bm25_norm(lengths[row], mean_length, k1, b)
            for t in range(first, last):
                entry = find(rows, begins[t], ends[t], row)
                if entry >= 0:
                    score += bm25_weight(idf[t], counts[entry], norm)
            n = _offer(heap_rows, heap_scores, id_ranks, n, row, score)
        n_top[q] = n
        while n > 0:  # the worst first
            top_rows[q, n - 1], top_scores[q, n - 1] = heap_rows[0], heap_scores[0]
            n -= 1
            row, score = heap_rows[n], heap_scores[n]
            _sink(heap_rows, heap_scores, id_ranks, n, row, score)


@helper
def _add_list(
    rows: Int32s, counts: Int32s, begin: Int, end: Int, idf: Number, norms: Float32s, sums: Float32s,
    touched: Int32s, n_touched: Int,
) -> Int:  # fmt: skip
    """Add a term's weights to the sums, and record the rows that had none before."""
    weight_of_one = np.float32(idf)
    for entry in range(begin, end):
        row, count = rows[entry], np.float32(counts[entry])
        weight = weight_of_one * (count / (count + norms[row]))
        if weight > 0.0:
            if sums[row] == 0.0:
                touched[n_touched] = row
                n_touched += 1
            sums[row] += weight
    return n_touched


@helper
def _kth_sum(sums: Float32s, touched: Int32s, n_touched: Int, k: Int, heap: Floats) -> Number:
    """Return the k-th largest sum."""
    for j in range(k):
        heap[j] = sums[touched[j]]
    heap.sort()  # an ascending array is a heap with the smallest element first
    for j in range(k, n_touched):
        value = sums[touched[j]]
        if value > heap[0]:
            at = 0
            while True:
                child = 2 * at + 1
                if child >= k:
                    break
                if child + 1 < k and heap[child + 1] < heap[child]:
                    child += 1
                if value <= heap[child]:
                    break
                heap[at] = heap[child]
                at = child
            heap[at] = value
    return heap[0]


@helper
def _is_worse(score: Number, rank: Int, other: Number, other_rank: Int) -> Any:
    """Return whether a document ranks below another: it has a lower score, or the same score and a later id."""
    return score < other or (score == other and rank > other_rank)


@helper
def _offer(heap_rows: Ints, heap_scores: Floats, id_ranks: Int32s, n: Int, row: Int, score: Number) -> Int:
    """Add a document to the heap, whose first element is the worst; drop that if the heap is full. Return its size."""
    if n == len(heap_rows):
        if _is_worse(heap_scores[0], id_ranks[heap_rows[0]], score, id_ranks[row]):
            _sink(heap_rows, heap_scores, id_ranks, n, row, score)
        return n
    at = n
    while at > 0:
        parent = (at - 1) >> 1
        if not _is_worse(score, id_ranks[row], heap_scores[parent], id_ranks[heap_rows[parent]]):
            break
        heap_rows[at], heap_scores[at] = heap_rows[parent], heap_scores[parent]
        at = parent
    heap_rows[at], heap_scores[at] = row, score
    return n + 1


@helper
def _sink(heap_rows: Ints, heap_scores: Floats, id_ranks: Int32s, n: Int, row: Int, score: Number) -> None:
    """Replace the first element of a heap of n by a document, and restore the order."""
    at = 0
    while True:
        child = 2 * at + 1
        if child >= n:
            break
        if child + 1 < n and _is_worse(
            heap_scores[child + 1], id_ranks[heap_rows[child + 1]], heap_scores[child], id_ranks[heap_rows[child]]
        ):
            child += 1
        if not _is_worse(heap_scores[child], id_ranks[heap_rows[child]], score, id_ranks[row]):
            break
        heap_rows[at], heap_scores[at] = heap_rows[child], heap_scores[child]
        at = child
    if n > 0:
        heap_rows[at], heap_scores[at] = row, score
