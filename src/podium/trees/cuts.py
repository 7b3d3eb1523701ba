"""Cuts of a feature at the exact quantiles of its values, found without sorting all of them.

Values become *keys*: unsigned integers in the same order, those of a feature together. Zeros have no key and are only
counted, because many features are zero for most documents and sparse features do not store zeros. Missing values have
no key either.

Keys are counted in *buckets*, ranges of keys that hold about equally many, and grouped by bucket. Bins are then filled
bucket by bucket. A bucket is sorted only if a bin ends within it. A sample of the keys sets the borders of the buckets:
they change the time it takes, never the cuts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

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
    """The keys of some features' values.

    Attributes:
        keys: those of feature k begin at `starts[k]`, with room for one more behind them.
        starts, n_keys: of each feature.
        n_zeros: how often each feature is 0.

    """

    def __init__(self, keys: UInt32s, starts: Ints, n_keys: Ints, n_zeros: Ints) -> None:
        self.keys, self.starts, self.n_keys, self.n_zeros = keys, starts, n_keys, n_zeros

    def take_distinct(self, column: int) -> tuple[Float32s, Ints]:
        """Return the values of a feature, ascending, and how often each occurs; this removes them."""
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
    """Yield the results of a function of the keys of a few features and the number of the first, on threads."""
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
    """Return how many columns are copied at once, and a function from the first one to their keys.

    It is 16 columns, unless their keys on all threads would take more memory than the bins, or `MAX_COPIED` each.
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
    """Return the same for sparse features, whose stored values are first grouped by column."""
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
    """Return the values of keys."""
    return np.where(keys & SIGN, keys ^ SIGN, ~keys).view(np.float32)


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
    """Write the keys of n values; return how many have one, and how many are 0.

    Usually all have one, which is one vectorised pass. Otherwise each is written, and the next one overwrites it if it
    has no key: a branch would be mispredicted.
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
    """Write the keys of some sparse rows, grouped by column from the column's place on."""
    for k in range(indptr[first], indptr[last]):
        if is_key(bits[k]):
            column = U(indices[k])
            keys[U(places[column])] = key_of(bits[k])
            places[column] += 1


FEWEST_RANGES, RANGES = 16, 1 << 12  # equal ranges of keys, which are cut into buckets by the number of keys in them
BUCKETS = 1 << 13  # target number
FEWEST_IN_BUCKET = 4  # the smallest target size of a bucket, in keys
SAMPLED = 1 << 15  # keys that the borders of buckets are chosen by
INSERTED = 48  # up to this many keys are sorted by insertion,
DIGITS = 256  # more of them byte by byte
SHIFT_BITS = 5  # of a number of bits


class Buckets(NamedTuple):
    """Memory for the buckets of a column."""

    # for each range of keys the number of its first bucket, and in the lower `SHIFT_BITS` bits how many bits of a key
    # do not matter for its bucket
    ranges: UInt32s
    ends: UInt32s  # of each bucket where its keys end, once they are brought together
    digits: UInt32s  # counts, to sort by


class KeyScale(NamedTuple):
    """Key k lies in the range (k − lowest) >> shift."""

    lowest: Any
    shift: Any


def find_cuts(columns: KeyColumns, max_bins: int) -> list[Float32s]:
    """Return the cuts of each feature, ascending; this consumes the keys."""
    n = len(columns.starts)
    below, above = (np.zeros((n, max_bins - 1), np.uint32) for _ in range(2))
    n_cuts, spare = np.zeros(n, np.int64), np.empty(columns.n_keys.max(initial=0) + 1, np.uint32)
    buckets = Buckets(*(np.empty(size, np.uint32) for size in (RANGES, RANGES + 2 * BUCKETS, DIGITS)))
    cut_columns(
        columns.keys, columns.starts, columns.n_keys, columns.n_zeros, max_bins, spare, buckets, below, above, n_cuts
    )  # fmt: skip
    cuts = cuts_between(values_of(below), values_of(above))
    return [cuts[k, : n_cuts[k]].copy() for k in range(n)]


def cuts_between(below: Float32s, above: Float32s) -> Float32s:
    """Return cuts between values: their middle, or the lower one if float32 has no number between."""
    with np.errstate(over="ignore", invalid="ignore"):
        middle = ((below.astype(np.float64) + above.astype(np.float64)) / 2).astype(np.float32)
    return np.where((below <= middle) & (middle < above), middle, below)


# --- kernels


@kernel
def cut_columns(
    keys: UInt32s, starts: Ints, n_keys: Ints, n_zeros: Ints, max_bins: Int, spare: UInt32s, buckets: Buckets,
    below: UInt32s, above: UInt32s, n_cuts: Ints,
) -> None:  # fmt: skip
    """Cut columns. The keys of a column begin at `starts`, with room for one more, and are overwritten.

    Row c of `below` and `above` has, for each cut of column c, the highest key below it and the lowest above it.
    """
    for column in range(len(starts)):
        n, column_keys = n_keys[column], keys[starts[column] : starts[column] + n_keys[column] + 1]
        if n_zeros[column]:
            column_keys[n] = ZERO_KEY
            n += 1
        n_cuts[column] = 0
        if n:
            n_cuts[column] = _cut(
                column_keys, n, n_zeros[column], max_bins, spare, buckets, below[column], above[column]
            )


@helper
def _cut(
    keys: UInt32s, n: Int, n_zeros: Int, max_bins: Int, spare: UInt32s, buckets: Buckets, below: UInt32s, above: UInt32s
) -> Int:
    """Cut one column, whose zeros share one key; return the number of cuts."""
    scale, n_buckets = _choose_buckets(keys, n, buckets.ranges)
    n_used = group_by_bucket(keys, n, scale, n_buckets, buckets, spare)
    is_few = False
    if n_used <= max_bins:
        is_few = _sort_all(spare, n_buckets, buckets, keys) <= max_bins
    bucket_of_zero = N(bucket_of(ZERO_KEY, scale, buckets.ranges)) if n_zeros else n_buckets
    weight = ZeroWeight(bucket_of_zero, max(n_zeros - 1, 0))
    return _fill_bins(spare, n, weight, max_bins, is_few, n_used <= max_bins, buckets, keys, below, above)


@helper
def _choose_buckets(keys: UInt32s, n: Int, ranges: UInt32s) -> tuple[KeyScale, Int]:
    """Cut the range of keys into buckets, finer where keys are dense; return the scale and the number of buckets."""
    not_inlined()
    lowest, highest = np.uint32(0xFFFFFFFF), np.uint32(0)
    for k in range(n):
        lowest, highest = min(lowest, keys[U(k)]), max(highest, keys[U(k)])
    n_ranges = min(RANGES, max(FEWEST_RANGES, n // FEWEST_IN_BUCKET))
    shift = N(0)
    while (N(highest) - N(lowest)) >> shift >= n_ranges:
        shift += 1
    n_ranges = ((N(highest) - N(lowest)) >> shift) + 1
    ranges[:n_ranges] = 0
    step, n_sampled = max(1, n // SAMPLED), 0
    for k in range(0, n, step):
        ranges[U(keys[U(k)] - lowest) >> U(shift)] += np.uint32(1)
        n_sampled += 1
    n_buckets, aimed = N(0), min(BUCKETS, n // FEWEST_IN_BUCKET)
    for k in range(n_ranges):
        bits, wanted = N(0), N(ranges[k]) * aimed // n_sampled
        while wanted >> bits and bits < shift:
            bits += 1
        ranges[k] = np.uint32(n_buckets << SHIFT_BITS | (shift - bits))
        n_buckets += 1 << bits
    return KeyScale(lowest, U(shift)), n_buckets


@helper
def bucket_of(key: Any, scale: KeyScale, ranges: UInt32s) -> Any:
    """Return the bucket of a key."""
    offset = U(key - scale.lowest)
    entry = U(ranges[offset >> scale.shift])
    within = offset & ((U(1) << scale.shift) - U(1))
    return (entry >> U(SHIFT_BITS)) + (within >> (entry & U((1 << SHIFT_BITS) - 1)))


@helper
def group_by_bucket(keys: UInt32s, n: Int, scale: KeyScale, n_buckets: Int, buckets: Buckets, ordered: UInt32s) -> Int:
    """Write keys to `ordered`, grouped by bucket; return the number of buckets that are not empty."""
    not_inlined()
    ranges, ends = buckets.ranges, buckets.ends
    ends[:n_buckets] = 0
    for k in range(n):
        ends[bucket_of(keys[U(k)], scale, ranges)] += np.uint32(1)
    place, n_used = np.uint32(0), N(0)
    for bucket in range(n_buckets):
        count = ends[bucket]
        n_used += N(count > 0)
        ends[bucket] = place
        place = np.uint32(place + count)
    for k in range(n):
        bucket = bucket_of(keys[U(k)], scale, ranges)
        place = ends[bucket]
        ordered[U(place)] = keys[U(k)]
        ends[bucket] = np.uint32(place + 1)
    return n_used


@helper
def _sort_all(keys: UInt32s, n_buckets: Int, buckets: Buckets, spare: UInt32s) -> Int:
    """Sort the keys of each bucket; return the number of distinct keys."""
    start, n_distinct = N(0), N(0)
    for bucket in range(n_buckets):
        end = N(buckets.ends[bucket])
        if start < end:
            sort_keys(keys, start, end, spare, buckets.digits)
            n_distinct += 1
            for k in range(start + 1, end):
                n_distinct += N(keys[U(k)] != keys[U(k - 1)])
        start = end
    return n_distinct


@helper
def sort_keys(keys: UInt32s, start: Int, end: Int, spare: UInt32s, digits: UInt32s) -> None:
    """Sort keys[start:end]: a few by insertion, more by radix sort over the bytes that differ."""
    not_inlined()
    if end - start <= INSERTED:
        for k in range(start + 1, end):
            key, slot = keys[U(k)], k
            while slot > start and keys[U(slot - 1)] > key:
                keys[U(slot)] = keys[U(slot - 1)]
                slot -= 1
            keys[U(slot)] = key
        return
    differing = np.uint32(0)
    for k in range(start, end):
        differing |= keys[U(k)] ^ keys[U(start)]
    shift = U(0)
    while U(differing) >> shift:
        digits[:] = 0
        for k in range(start, end):
            digits[(U(keys[U(k)]) >> shift) & U(DIGITS - 1)] += np.uint32(1)
        place = np.uint32(0)
        for digit in range(DIGITS):
            count = digits[digit]
            digits[digit] = place
            place = np.uint32(place + count)
        for k in range(start, end):
            digit = (U(keys[U(k)]) >> shift) & U(DIGITS - 1)
            spare[U(digits[digit])] = keys[U(k)]
            digits[digit] += np.uint32(1)
        for k in range(start, end):
            keys[U(k)] = spare[U(k - start)]
        shift += U(8)


class ZeroWeight(NamedTuple):
    """The bucket of zeros, and how many zeros there are beyond the one that has a key."""

    bucket: Int
    extra: Int


@helper
def _fill_bins(
    keys: UInt32s, n: Int, zeros: ZeroWeight, max_bins: Int, is_few: bool, is_sorted: bool, buckets: Buckets,
    spare: UInt32s, below: UInt32s, above: UInt32s,
) -> Int:  # fmt: skip
    """Fill bins from below, each with an equal share or more of the rest, or with one value; return the number of cuts.

    `at` is the place of the next key, `end` the end of its bucket. When they meet, the next bucket is taken, as a whole
    if that does not fill the bin.
    """
    not_inlined()
    rest, bucket, at, end, n_cuts = n + zeros.extra, N(0), N(0), N(0), N(0)
    for left in range(max_bins, 1, -1):
        share = N(1) if is_few else max(N(1), rest // left)
        count = N(0)
        while at < n and count < share:
            if at == end:
                end, bucket = N(buckets.ends[bucket]), bucket + 1
                weight = end - at + (zeros.extra if bucket - 1 == zeros.bucket else 0)
                if count + weight < share:
                    at, count = end, count + weight
                    continue
                if not is_sorted:
                    sort_keys(keys, at, end, spare, buckets.digits)
            key, first = keys[U(at)], at
            while at < end and keys[U(at)] == key:
                at += 1
            count += at - first + (zeros.extra if key == ZERO_KEY else 0)
        if at >= n:
            break
        below[n_cuts], above[n_cuts] = keys[U(at - 1)], _next_key(keys, at, end, bucket, buckets.ends)
        n_cuts += 1
        rest -= count
    return n_cuts


@helper
def _next_key(keys: UInt32s, at: Int, end: Int, bucket: Int, ends: UInt32s) -> Any:
    """Return the lowest key from `at` on: the next of its sorted bucket, or the lowest of the next non-empty bucket."""
    if at < end:
        return keys[U(at)]
    while N(ends[bucket]) == at:
        bucket += 1
    lowest = keys[U(at)]
    for k in range(at, N(ends[bucket])):
        lowest = min(lowest, keys[U(k)])
    return lowest
