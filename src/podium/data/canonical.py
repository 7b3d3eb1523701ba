"""A canonical order of each query's documents, and random numbers, both computed from content.

Ties, samples and everything else that depends on an order of documents use them, so models do not depend on the order
of the caller's rows.
"""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Bools, Floats, Ints, UInt32s, UInt64s
from podium.core.compiling import helper, kernel
from podium.core.random import GOLDEN, mix, seed_of, uniform
from podium.core.sorting import sort_with_items
from podium.core.threads import for_ranges, map_threads, n_threads_for, ranges
from podium.data.columns import starts_run
from podium.data.features import Features
from podium.data.ranking_data import RankingData
from podium.data.sparse import is_sparse

CELLS_WORTH_SHARING = 1 << 19  # hashing fewer cells takes less time than starting threads
QUERIES_AT_ONCE = 64  # queries per unit of work when sorting
ROWS_AT_ONCE = 1 << 14  # sparse rows to hash at a time: the column numbers are copied as int64


def hash_rows(features: Features) -> UInt64s:
    """Return a 64-bit hash of each row of features; dense and sparse features hash alike."""
    hashes = np.empty(features.shape[0], np.uint64)
    if is_sparse(features):
        values = features.data.view(np.uint32)

        def work(first: int) -> None:
            rows = slice(first, first + ROWS_AT_ONCE)
            row_starts = features.indptr[first : first + ROWS_AT_ONCE + 1].astype(np.int64)
            block = slice(row_starts[0], row_starts[-1])
            columns = features.indices[block].astype(np.int64)
            hash_compressed_rows(row_starts - row_starts[0], columns, values[block], hashes[rows])

        for _ in map_threads(work, range(0, len(hashes), ROWS_AT_ONCE), n_threads_for(len(values))):
            pass
        return hashes
    bits, threads = features.view(np.uint32), n_threads_for(features.size, least=CELLS_WORTH_SHARING)
    for_ranges(len(bits), lambda first, last: hash_dense_rows(bits[first:last], hashes[first:last]), threads)
    return hashes


@helper
def _cell_hash(bits: np.uint32, column: int) -> np.uint64:
    """Return the contribution of one cell to its row's hash: 0 for ±0, and the same value for every NaN."""
    if bits & np.uint32(0x7FFFFFFF) == np.uint32(0):
        return np.uint64(0)
    if bits & np.uint32(0x7FFFFFFF) > np.uint32(0x7F800000):
        bits = np.uint32(0x7FC00000)
    mixed: np.uint64 = mix((np.uint64(column + 1) << np.uint64(32) | np.uint64(bits)) * GOLDEN)
    return mixed


@kernel
def hash_dense_rows(bits: UInt32s, hashes: UInt64s) -> None:
    """Hash each row of float32 bits. The hash is a sum over cells, so zeros do not count, as in sparse rows."""
    for row in range(bits.shape[0]):
        total = np.uint64(0)
        for column in range(bits.shape[1]):
            total += _cell_hash(bits[row, column], column)
        hashes[row] = total


@kernel
def hash_compressed_rows(starts: Ints, columns: Ints, bits: UInt32s, hashes: UInt64s) -> None:
    """Hash compressed sparse rows to the same values as `hash_dense_rows`."""
    for row in range(len(starts) - 1):
        total = np.uint64(0)
        for k in range(starts[row], starts[row + 1]):
            total += _cell_hash(bits[k], columns[k])
        hashes[row] = total


def canonical_order(data: RankingData) -> Ints:
    """Return the rows, query by query as in `data.order`, each query sorted by content.

    Rows are sorted by the hash of their features. Ties are broken by base score, position, weight, preferences and the
    other labels, and only then by relevance, the lowest first, so that no document ranks higher for being relevant.
    Document ids come last, between rows that are otherwise equal, so that no model depends on them.
    """
    hashes, order = data.row_hashes, data.order.copy()
    threads = n_threads_for(len(order))
    queries = ranges(data.n_queries, threads, QUERIES_AT_ONCE)
    # Sort all queries: `any` alone would stop at the first range with ties.
    has_ties = list(map_threads(lambda r: sort_queries(hashes, data.offsets, *r, order), queries, threads))
    if not any(has_ties):
        return order
    query = data.query_in_order
    same = (hashes[order][1:] == hashes[order][:-1]) & (query[1:] == query[:-1])
    tied = np.flatnonzero(np.concatenate([[False], same]) | np.concatenate([same, [False]]))
    rows = order[tied]
    order[tied] = rows[np.lexsort((*_separating_keys(data, rows, hashes), hashes[rows], query[tied]))]
    return order


@kernel
def sort_queries(hashes: UInt64s, offsets: Ints, first: int, last: int, order: Ints) -> bool:
    """Sort the rows of some queries by their hashes, and return whether two rows of a query have the same hash.

    Sorting query by query is fast, because a query fits into the cache.
    """
    largest = 0
    for query in range(first, last):
        largest = max(largest, offsets[query + 1] - offsets[query])
    keys, spare_keys = np.empty(largest, np.uint64), np.empty(largest, np.uint64)
    spare_rows, has_ties = np.empty(largest, np.int64), False
    for query in range(first, last):
        rows = order[offsets[query] : offsets[query + 1]]
        n = len(rows)
        for k in range(n):
            keys[k] = hashes[rows[k]]
        sort_with_items(keys, rows, spare_keys, spare_rows, n)
        for k in range(1, n):
            has_ties |= keys[k] == keys[k - 1]
    return has_ties


def _separating_keys(data: RankingData, rows: Ints, hashes: UInt64s) -> list[NDArray[np.generic]]:
    """Return sort keys for rows with equal features, the least important first, as `np.lexsort` expects."""
    keys: list[NDArray[np.generic]] = []
    if data.document_ids is not None:
        keys.append(np.unique(data.document_ids[rows], return_inverse=True)[1])
    if "relevance" in data.labels:
        keys.append(data.labels["relevance"][rows])
    keys += [data.labels[source][rows] for source in sorted(data.labels) if source != "relevance"]
    if data.preferences is not None:
        keys.append(preference_hashes(data, hashes)[rows])
    if data.document_weights is not None:
        keys.append(data.document_weights[rows])
    if data.positions is not None:
        keys.append(data.positions[rows])
    if data.base_scores is not None:
        keys.append(data.base_scores[rows])
    return keys


def preference_hashes(data: RankingData, hashes: UInt64s) -> UInt64s:
    """Return a hash of each row's preference pairs: the other row, the side, the probability and the weight."""
    assert data.preferences is not None
    pairs = data.preferences
    sums = np.zeros(data.n_documents, np.uint64)
    probability = pairs.probability.view(np.uint32).astype(np.uint64)
    if pairs.weight is not None:
        probability = mix(probability ^ (pairs.weight.view(np.uint32).astype(np.uint64) << np.uint64(32)))
    for rows, others, side in ((pairs.i, pairs.j, 1), (pairs.j, pairs.i, 2)):
        words = (hashes[others] ^ (probability << np.uint64(2))) + np.uint64(side)
        words *= GOLDEN
        np.add.at(sums, rows, words ^ (words >> np.uint64(29)))
    return sums


def content_hashes(data: RankingData) -> UInt64s:
    """Return a hash of each document's features and of all other columns except its ids."""
    keys = data.row_hashes.copy()
    columns: dict[str, NDArray[Any] | None] = {f"label {source}": data.labels[source] for source in sorted(data.labels)}
    columns["document weights"] = data.document_weights
    columns["positions"] = data.positions
    columns["preferences"] = None if data.preferences is None else preference_hashes(data, keys)
    columns["query weights"] = None if data.query_weights is None else data.query_weight_of_row
    columns["base scores"] = None if data.base_scores is None else data.base_scores.view(np.uint64)
    for name, column in columns.items():
        if column is not None:
            bits = column if column.dtype == np.uint64 else column.view(np.uint32).astype(np.uint64)
            keys = mix(keys ^ seed_of(name)) + bits
    return keys


def digest_of(data: RankingData) -> bytes:
    """Return a hash of all documents with their queries and labels; row order and query ids do not change it."""
    return hashlib.sha256(np.sort(document_hashes(data)).tobytes()).digest()


def document_hashes(data: RankingData) -> UInt64s:
    """Return a hash of each document with its query and labels."""
    keys = content_hashes(data)
    keys[data.order] ^= np.repeat(data.query_keys, data.query_sizes)
    return keys


def query_keys(data: RankingData) -> UInt64s:
    """Return a key for each query that depends on the features of its documents, not on its id.

    Queries with the same features are numbered in the order of their other content. Queries with the same content are
    interchangeable.
    """
    keys = query_sums(data, data.row_hashes)
    return keys_of_occurrences(keys, occurrences_in(keys, _by_content(data, keys)))


def occurrences_in(keys: UInt64s, order: Ints) -> UInt64s:
    """Return how many equal keys precede each key in an order that keeps equal keys together."""
    return _places_in_runs(order, starts_run(keys[order]))


def _places_in_runs(order: Ints, starts: Bools) -> UInt64s:
    """Return how many entries precede each one in its run of `order`; `starts` marks where runs start."""
    index = np.arange(len(order))
    places = np.empty(len(order), np.uint64)
    places[order] = index - np.maximum.accumulate(np.where(starts, index, 0))
    return places


def keys_of_occurrences(keys: UInt64s, occurrences: UInt64s) -> UInt64s:
    """Return keys that differ between queries with the same features, given their numbers among equal queries."""
    mixed: UInt64s = mix(keys ^ mix(occurrences))
    return mixed


def queries_by_content(data: RankingData) -> Ints:
    """Return the queries in an order that depends on their documents, not on their ids or on row order."""
    return _by_content(data, query_sums(data, data.row_hashes))


def _by_content(data: RankingData, keys: UInt64s) -> Ints:
    """Return the queries sorted by these keys, with ties broken by all other content."""
    if len(np.unique(keys)) == len(keys):
        return np.argsort(keys)
    return np.lexsort((query_sums(data, content_hashes(data)), keys))


def rows_in_order(data: RankingData, queries: Ints) -> tuple[Ints, Ints]:
    """Return the rows of queries, each query in canonical order, and the offsets of the queries."""
    rows = np.concatenate([data.canonical_order[data.offsets[q] : data.offsets[q + 1]] for q in queries])
    return rows, np.concatenate([[0], np.cumsum(data.query_sizes[queries])])


def query_sums(data: RankingData, hashes: UInt64s) -> UInt64s:
    """Return a hash of each query's documents: a sum, so their order does not matter."""
    has_rows = data.query_sizes > 0
    sums = np.zeros(data.n_queries, np.uint64)
    if has_rows.any():
        sums[has_rows] = np.add.reduceat(mix(hashes)[data.order], data.offsets[:-1][has_rows])
    return sums


class ContentRandom:
    """Uniform random numbers in [0, 1) for documents and queries, one stream for each purpose."""

    def __init__(self, data: RankingData) -> None:
        self.data = data

    def of_documents(self, purpose: str) -> Floats:
        """Return a number for each row; those of a query's equal rows differ by their canonical order."""
        return uniform(self.document_keys, purpose)

    def of_queries(self, purpose: str) -> Floats:
        """Return a number for each query."""
        return uniform(self.data.query_keys, purpose)

    @cached_property
    def document_keys(self) -> UInt64s:
        """The key of each row: a hash of its features, its query, and its number among equal rows."""
        hashes = self.data.row_hashes
        keys: UInt64s = hashes ^ (_occurrences(self.data, hashes) * np.uint64(0xD6E8FEB86659FD93))
        keys[self.data.order] ^= np.repeat(self.data.query_keys, self.data.query_sizes)
        return keys


def _occurrences(data: RankingData, hashes: UInt64s) -> UInt64s:
    """Return how many rows of the same query with equal features precede each row in the canonical order."""
    order = data.canonical_order
    starts = starts_run(hashes[order])
    starts[data.offsets[:-1][data.query_sizes > 0]] = True
    return _places_in_runs(order, starts)
