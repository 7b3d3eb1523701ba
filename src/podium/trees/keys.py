"""Values as keys: whole numbers in the same order, those of a feature together.

Zeros have no key and are counted: many features are zero for most documents, and sparse features do not store them.
Missing values have none either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import numpy as np

from podium.core.array_types import Float32s, Int, Int32s, Ints, UInt32s
from podium.core.bitwise import TILE, WORD
from podium.core.compiling import helper, kernel
from podium.core.dense_rows import COLUMN_STRIDE, DenseRows, as_rows, load_columns, room_for_columns
from podium.core.threads import map_threads, n_threads_for, ranges
from podium.data.features import Features
from podium.data.sparse import is_sparse
from podium.trees.layout import N, U

Result = TypeVar("Result")

SIGN, ABSOLUTE, INFINITY = np.uint32(1 << 31), np.uint32((1 << 31) - 1), np.uint32(0x7F800000)
ZERO_KEY = SIGN  # where the key of 0 would stand
MAX_COPIED = 1 << 24  # values that are copied at once, on each thread


class KeyColumns:
    """The keys of some features' values.

    Attributes:
        keys: those of feature k begin at `starts[k]`, with room for one more behind them.
        starts, n_keys: of each feature.
        n_zeros: how often each feature is 0.

    """

    def __init__(self, keys: UInt32s, starts: Ints, n_keys: Ints, n_zeros: Ints) -> None:
        self.keys, self.starts, self.n_keys, self.n_zeros = keys, starts, n_keys, n_zeros

    def take_distinct(self, column: int) -> tuple[Float32s, Ints]:
        """The values of a feature, ascending, and how often each occurs; there are none left then."""
        start = self.starts[column]
        keys, counts = np.unique(self.keys[start : start + self.n_keys[column]], return_counts=True)
        if self.n_zeros[column]:
            place = np.searchsorted(keys, ZERO_KEY)
            keys, counts = np.insert(keys, place, ZERO_KEY), np.insert(counts, place, self.n_zeros[column])
        self.n_keys[column] = self.n_zeros[column] = 0
        return values_of(keys), counts.astype(np.int64)


def map_columns(
    function: Callable[[KeyColumns, int], Iterable[Result]], features: Features, n_threads: int | None
) -> Iterator[Result]:
    """What a function gives for the keys of some features at a time and the number of the first, on threads."""
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
    """How many columns are copied at once, and a function from the first to their keys.

    That is 16 if their keys take no more memory than the bins will, on all threads together, or `MAX_COPIED` each.
    """
    n, width = features.shape
    most = min(TILE, max(1, MAX_COPIED // max(n, 1), width // (4 * n_threads)))
    step = -(-width // (n_threads * -(-width // (n_threads * most)))) if width else 1
    rows, stride = as_rows(features), n + 1

    def columns_from(first: int) -> KeyColumns:
        size = min(step, width - first)
        keys, (n_keys, n_zeros) = np.empty(size * stride, np.uint32), np.zeros((2, size), np.int64)
        copy_keys(rows, first, keys, stride, n_keys, n_zeros, room_for_columns())
        return KeyColumns(keys, stride * np.arange(size), n_keys, n_zeros)

    return step, columns_from


def _sparse_columns(features: Any, n_threads: int) -> tuple[int, Callable[[int], KeyColumns]]:
    """The same for sparse features, whose stored values are brought together by column at first, all at once."""
    n, width = features.shape
    parts, pieces = (features.indptr, features.indices, features.data.view(np.uint32)), ranges(n, n_threads)
    counted = np.zeros((3, len(pieces), width), np.int64)  # keys, zeros, and all that is stored
    for _ in map_threads(lambda k: count_keys(*parts, *pieces[k], *counted[:, k]), range(len(pieces)), n_threads):
        pass
    n_keys, n_zeros, n_stored = counted.sum(axis=1)
    starts = np.cumsum(n_keys + 1) - n_keys - 1
    places = starts + np.cumsum(counted[0], axis=0) - counted[0]
    keys = np.empty(n_keys.sum() + width, np.uint32)
    for _ in map_threads(lambda k: place_keys(*parts, *pieces[k], places[k], keys), range(len(pieces)), n_threads):
        pass
    step = max(1, width // (8 * n_threads))

    def columns_from(first: int) -> KeyColumns:
        some = slice(first, first + step)
        return KeyColumns(keys, starts[some], n_keys[some], n_zeros[some] + n - n_stored[some])

    return step, columns_from


def values_of(keys: UInt32s) -> Float32s:
    """The values that have these keys."""
    return np.where(keys & SIGN, keys ^ SIGN, ~keys).view(np.float32)


# --- kernels


@helper
def key_of(bits: Any) -> Any:
    """The key of a value that is not 0 or NaN, from its bits."""
    return np.uint32(bits ^ (np.uint32(np.int32(bits) >> np.int32(31)) | SIGN))


@helper
def is_key(bits: Any) -> Any:
    """Whether a value has a key: it is not 0 or NaN."""
    return (bits & ABSOLUTE) - np.uint32(1) < INFINITY


@kernel
def copy_keys(
    rows: DenseRows, first: Int, keys: UInt32s, stride: Int, n_keys: Ints, n_zeros: Ints, columns: Float32s
) -> None:
    """The keys of the columns from `first` on, `stride` from one to the next; how many, and how many zeros.

    `columns` is scratch (`room_for_columns`).
    """
    last_column = first + len(n_keys)
    for start in range(0, rows.n_rows, WORD):
        n, column = min(WORD, rows.n_rows - start), first
        while column < last_column:
            loaded, n_columns = load_columns(rows, start, rows.n_rows - 1, column, columns)
            while column < min(loaded + n_columns, last_column):
                which = column - first
                place = which * stride + n_keys[which]
                n_new, n_zero = _add_keys(columns, (column - loaded) * COLUMN_STRIDE, n, keys, place)
                n_keys[which] += n_new
                n_zeros[which] += n_zero
                column += 1


@helper
def _add_keys(values: Float32s, at: Int, n: Int, keys: UInt32s, place: Int) -> tuple[Int, Int]:
    """Write the keys of n values; how many have one, and how many are 0.

    Where all have one, as most often, that is one pass in vectors. Else each is written, and the next in its place
    unless it has a key: a branch would be guessed wrong.
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
    """Count, for each column of some sparse rows, what has a key, what is 0, and all that is stored."""
    for k in range(indptr[first], indptr[last]):
        column, value = U(indices[k]), bits[k]
        n_keys[column] += N(is_key(value))
        n_zeros[column] += N(value & ABSOLUTE == 0)
        n_stored[column] += 1


@kernel
def place_keys(
    indptr: Int32s, indices: Int32s, bits: UInt32s, first: Int, last: Int, places: Ints, keys: UInt32s
) -> None:
    """Write the keys of some sparse rows, those of a column together from its place on."""
    for k in range(indptr[first], indptr[last]):
        if is_key(bits[k]):
            column = U(indices[k])
            keys[U(places[column])] = key_of(bits[k])
            places[column] += 1
