"""Cut features at the exact quantiles of their values.

Values become *keys*: unsigned integers in the same order, feature by feature. Zeros are only counted, because many
features are zero for most documents and sparse features do not store zeros; all zeros share one key. Missing values
have no key. NumPy sorts integers of 32 bits with vector instructions, which is faster than every way we tried to avoid
a complete sort.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import numpy as np

from podium.core.array_types import Float32s, Int, Int32s, Ints, UInt32s
from podium.core.bitwise import TILE, WORD
from podium.core.compiling import helper, kernel
from podium.core.dense_rows import COLUMN_STRIDE, DenseRows, as_rows, load_columns, room_for_columns
from podium.core.intrinsics import not_inlined
from podium.core.threads import map_threads, n_threads_for, ranges
from podium.data.features import Features
from podium.data.sparse import is_sparse
from podium.trees.growth_types import N, U

Result = TypeVar("Result")

SIGN, ABSOLUTE, INFINITY = np.uint32(1 << 31), np.uint32((1 << 31) - 1), np.uint32(0x7F800000)
ZERO_KEY = SIGN  # what the key of 0 would be
MAX_COPIED = 1 << 24  # values copied at once, on each thread


class KeyColumns:
    """The keys of the values of some features.

    Attributes:
        keys: the keys of all features.
        starts, n_keys: where the keys of each feature begin, and their number; there is room for one more key.
        n_zeros: how often each feature is 0. Zeros have no key before `sort`, and share one key after it.

    """

    def __init__(self, keys: UInt32s, starts: Ints, n_keys: Ints, n_zeros: Ints) -> None:
        self.keys, self.starts, self.n_keys, self.n_zeros = keys, starts, n_keys, n_zeros

    def take_distinct(self, column: int) -> tuple[Float32s, Ints]:
        """Remove the values of a feature; return the distinct ones, ascending, and how often each occurs."""
        start = self.starts[column]
        keys, counts = np.unique(self.keys[start : start + self.n_keys[column]], return_counts=True)
        if self.n_zeros[column]:
            place = np.searchsorted(keys, ZERO_KEY)
            keys, counts = np.insert(keys, place, ZERO_KEY), np.insert(counts, place, self.n_zeros[column])
        self.n_keys[column] = self.n_zeros[column] = 0
        return values_of(keys), counts.astype(np.int64)

    def sort(self) -> None:
        """Add the key of the zeros, and sort the keys of each feature."""
        self.keys[self.starts[self.n_zeros > 0] + self.n_keys[self.n_zeros > 0]] = ZERO_KEY
        self.n_keys += self.n_zeros > 0
        for start, n in zip(self.starts.tolist(), self.n_keys.tolist(), strict=True):
            self.keys[start : start + n].sort()


def map_columns(
    function: Callable[[KeyColumns, int], Iterable[Result]], features: Features, n_threads: int | None
) -> Iterator[Result]:
    """Call a function with the keys of a few features and the number of the first one, on threads; yield the results.

    The results are in the order of the features.
    """
    n, n_features = features.shape
    threads = n_threads_for(n * n_features, n_threads)
    if is_sparse(features):
        step, columns_from = _sparse_columns(features, threads)
    else:
        step, columns_from = _dense_columns(features, threads)

    def work(first: int) -> Iterable[Result]:
        return function(columns_from(first), first)

    for results in map_threads(work, range(0, n_features, step), threads):
        yield from results


def _dense_columns(features: Features, n_threads: int) -> tuple[int, Callable[[int], KeyColumns]]:
    """Return how many columns are copied at once, and a function that returns their keys from the first column on.

    That is 16 columns, or fewer if the keys of 16 would exceed `MAX_COPIED`, or those on all threads the memory of the
    bins.
    """
    n, width = features.shape
    max_step = min(TILE, max(1, MAX_COPIED // max(n, 1), width // (4 * n_threads)))
    step = -(-width // (n_threads * -(-width // (n_threads * max_step)))) if width else 1
    rows, stride = as_rows(features), n + 1

    def columns_from(first: int) -> KeyColumns:
        size = min(step, width - first)
        keys, (n_keys, n_zeros) = np.empty(size * stride, np.uint32), np.zeros((2, size), np.int64)
        copy_keys(rows, first, keys, stride, n_keys, n_zeros, room_for_columns())
        return KeyColumns(keys, stride * np.arange(size), n_keys, n_zeros)

    return step, columns_from


def _sparse_columns(features: Any, n_threads: int) -> tuple[int, Callable[[int], KeyColumns]]:
    """Return the same as `_dense_columns` for sparse features, whose stored values are first grouped by column."""
    n, width = features.shape
    parts, pieces = (features.indptr, features.indices, features.data.view(np.uint32)), ranges(n, n_threads)
    counts = np.zeros((3, len(pieces), width), np.int64)  # of keys, zeros, and all stored values
    for _ in map_threads(lambda k: count_keys(*parts, *pieces[k], *counts[:, k]), range(len(pieces)), n_threads):
        pass
    n_keys, n_zeros, n_stored = counts.sum(axis=1)
    starts = np.cumsum(n_keys + 1) - n_keys - 1
    places = starts + np.cumsum(counts[0], axis=0) - counts[0]
    keys = np.empty(n_keys.sum() + width, np.uint32)
    for _ in map_threads(lambda k: place_keys(*parts, *pieces[k], places[k], keys), range(len(pieces)), n_threads):
        pass
    step = max(1, width // (8 * n_threads))

    def columns_from(first: int) -> KeyColumns:
        part = slice(first, first + step)
        return KeyColumns(keys, starts[part], n_keys[part], n_zeros[part] + n - n_stored[part])

    return step, columns_from


def values_of(keys: UInt32s) -> Float32s:
    """Return the values of keys."""
    return np.where(keys & SIGN, keys ^ SIGN, ~keys).view(np.float32)


def find_cuts(columns: KeyColumns, max_bins: int) -> list[Float32s]:
    """Sort the keys; return the cuts of each feature, ascending."""
    columns.sort()
    n = len(columns.starts)
    below, above = (np.zeros((n, max_bins - 1), np.uint32) for _ in range(2))
    n_cuts = np.zeros(n, np.int64)
    cut_columns(columns.keys, columns.starts, columns.n_keys, columns.n_zeros, max_bins, below, above, n_cuts)
    cuts = cuts_between(values_of(below), values_of(above))
    return [cuts[k, : n_cuts[k]].copy() for k in range(n)]


def cuts_between(below: Float32s, above: Float32s) -> Float32s:
    """Return cuts between values: their middle, or the lower value if float32 has no number between them."""
    with np.errstate(over="ignore", invalid="ignore"):
        middle = ((below.astype(np.float64) + above.astype(np.float64)) / 2).astype(np.float32)
    return np.where((below <= middle) & (middle < above), middle, below)


# --- kernels


@helper
def key_of(bits: Any) -> Any:
    """Return the key of a value that is not 0 or NaN, from its bits."""
    return np.uint32(bits ^ (np.uint32(np.int32(bits) >> np.int32(31)) | SIGN))


@helper
def is_key(bits: Any) -> Any:
    """Return whether a value has a key: it is not 0 or NaN."""
    return (bits & ABSOLUTE) - np.uint32(1) < INFINITY


@kernel
def copy_keys(
    rows: DenseRows, first: Int, keys: UInt32s, stride: Int, n_keys: Ints, n_zeros: Ints, columns: Float32s
) -> None:
    """Write the keys of the columns from `first` on, `stride` apart, and count keys and zeros.

    `columns` is scratch memory (`room_for_columns`).
    """
    last_column = first + len(n_keys)
    for start in range(0, rows.n_rows, WORD):
        n, column = min(WORD, rows.n_rows - start), first
        while column < last_column:
            loaded, n_columns = load_columns(rows, start, rows.n_rows - 1, column, columns)
            while column < min(loaded + n_columns, last_column):
                index = column - first
                place = index * stride + n_keys[index]
                n_new, n_zero = _add_keys(columns, (column - loaded) * COLUMN_STRIDE, n, keys, place)
                n_keys[index] += n_new
                n_zeros[index] += n_zero
                column += 1


@helper
def _add_keys(values: Float32s, at: Int, n: Int, keys: UInt32s, place: Int) -> tuple[Int, Int]:
    """Write the keys of n values; return how many have a key, and how many are 0.

    Usually all values have a key, and one vectorized pass writes them. Otherwise every key is written again, and the
    next value overwrites one that is not valid, because a branch would be mispredicted.
    """
    n_new, n_zero = np.uint32(0), np.uint32(0)
    for k in range(n):
        value = np.float32(values[U(at + k)]).view(np.uint32)
        keys[U(place + k)] = key_of(value)
        n_new = np.uint32(n_new + np.uint32(is_key(value)))
        n_zero = np.uint32(n_zero + np.uint32(value & ABSOLUTE == 0))
    if n_new < n and n_new > 0:
        for k in range(n):
            value = np.float32(values[U(at + k)]).view(np.uint32)
            keys[U(place)] = key_of(value)
            place += N(is_key(value))
    return N(n_new), N(n_zero)


@kernel
def count_keys(
    indptr: Int32s, indices: Int32s, bits: UInt32s, first: Int, last: Int, n_keys: Ints,
    n_zeros: Ints, n_stored: Ints,
) -> None:  # fmt: skip
    """Count the keys, the zeros and all stored values of each column of some sparse rows."""
    for k in range(indptr[first], indptr[last]):
        column, value = U(indices[k]), bits[k]
        n_keys[column] += N(is_key(value))
        n_zeros[column] += N(value & ABSOLUTE == 0)
        n_stored[column] += 1


@kernel
def place_keys(
    indptr: Int32s, indices: Int32s, bits: UInt32s, first: Int, last: Int, places: Ints, keys: UInt32s
) -> None:
    """Write the keys of some sparse rows, grouped by column; those of a column begin at its entry in `places`."""
    for k in range(indptr[first], indptr[last]):
        if is_key(bits[k]):
            column = U(indices[k])
            keys[U(places[column])] = key_of(bits[k])
            places[column] += 1


@kernel
def cut_columns(
    keys: UInt32s, starts: Ints, n_keys: Ints, n_zeros: Ints, max_bins: Int, below: UInt32s, above: UInt32s,
    n_cuts: Ints,
) -> None:  # fmt: skip
    """Cut columns of sorted keys.

    Row c of `below` and `above` has, for each cut of column c, the highest key below it and the lowest above it.
    """
    for column in range(len(starts)):
        column_keys = keys[starts[column] : starts[column] + n_keys[column]]
        n_cuts[column] = _cut(column_keys, max(n_zeros[column] - 1, 0), max_bins, below[column], above[column])


@helper
def _cut(keys: UInt32s, more_zeros: Int, max_bins: Int, below: UInt32s, above: UInt32s) -> Int:
    """Cut one column into bins, filled from below; return the number of cuts.

    A bin gets at least an equal share of the remaining values, or one distinct value if there are enough bins for all.
    `more_zeros` is the number of zeros without the one that has a key.
    """
    not_inlined()
    n, is_few = N(len(keys)), _has_at_most(keys, max_bins)
    zero = first_above(keys, N(0), n, N(ZERO_KEY) - 1) if more_zeros > 0 else n
    rest, at, n_cuts = n + more_zeros, N(0), N(0)
    for left in range(max_bins, 1, -1):
        share = N(1) if is_few else max(N(1), rest // left)
        end = at + share
        if at <= zero < end:  # the other zeros count as well
            end = max(zero + 1, end - more_zeros)
        while end < n and keys[U(end)] == keys[U(end - 1)]:
            end += 1
        if end >= n:
            break
        below[n_cuts], above[n_cuts] = keys[U(end - 1)], keys[U(end)]
        n_cuts += 1
        rest -= end - at + (more_zeros if at <= zero < end else 0)
        at = end
    return n_cuts


@helper
def _has_at_most(keys: UInt32s, n: Int) -> bool:
    """Return whether sorted keys have at most n distinct values."""
    n_distinct = N(len(keys) > 0)
    for k in range(1, len(keys)):
        n_distinct += N(keys[U(k)] != keys[U(k - 1)])
        if n_distinct > n:
            break
    return bool(n_distinct <= n)


@helper
def first_above(keys: UInt32s, first: Int, last: Int, key: Int) -> Int:
    """Return the index of the first of the sorted keys that is above a key."""
    while first < last:
        middle = (first + last) // 2
        if N(keys[U(middle)]) <= key:
            first = middle + 1
        else:
            last = middle
    return first
