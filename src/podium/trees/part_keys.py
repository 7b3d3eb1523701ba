"""The keys of a part's values, feature by feature and by *bucket*: ranges of keys that all parts have in common.

A bucket is sorted when it is first asked for. How the buckets lie is guessed from some of the keys: it decides how long
it takes to find cuts, never what is found.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from podium.core.array_types import Bytes, Int, Int32s, Ints, UInt32s
from podium.core.compiling import helper, kernel
from podium.core.threads import map_threads
from podium.trees.cuts import DIGITS, FEWEST_IN_BUCKET, SAMPLED, SHIFT_BITS, Buckets, Scale, bring_together, bucket_of
from podium.trees.cuts import sort_keys as sort_some_keys
from podium.trees.keys import ZERO_KEY, KeyColumns
from podium.trees.layout import N, U

RANGE_BITS = 10  # the upper bits of a key: its range, which is cut into buckets
RANGES, WITHIN = 1 << RANGE_BITS, 32 - RANGE_BITS
BUCKETS = 1 << 12  # that are aimed at, for each feature
FEW = 64  # values of all parts: an interval with more is *wide*,
PIECES = 16  # and cut into so many
SOME = 16  # of the lowest different values of a wide interval are listed as well: often there are no more
NONE = np.empty(0, np.int64)


class Intervals(NamedTuple):
    """Ranges of keys of which more is to be known; each lies within a bucket.

    Attributes:
        starts: the intervals of feature f are those from `starts[f]` on, ascending.
        lows, highs: the keys with low < key ≤ high.
        is_wide: whether it is cut into pieces; of others, with `FEW` values at most, all are listed.

    """

    starts: Ints
    lows: Ints
    highs: Ints
    is_wide: Bytes


class Found(NamedTuple):
    """What a part has in some intervals.

    Attributes:
        pieces: of each wide interval, how many values are up to the end of each piece but the last.
        keys, times: different values and how often each occurs; those of an interval together, ascending.
        n_listed: of each interval; of a wide one at most `SOME`.
        horizons: of each interval the key up to which all are listed.

    """

    pieces: Int32s
    keys: UInt32s
    times: Ints
    n_listed: Ints
    horizons: Ints


class Grouped(NamedTuple):
    """The keys of some features by bucket.

    Attributes:
        keys, starts: those of column c begin at `starts[c]`; zero has one key, whatever its number.
        n_zeros: how often each column is 0.
        ends: of each bucket of each column where its keys end, from the start of the column on.
        first_bucket: of each column among all buckets.
        ranges: of each column, see `cuts.Buckets`.
        is_sorted: of each bucket.

    """

    keys: UInt32s
    starts: Ints
    n_zeros: Ints
    ends: UInt32s
    first_bucket: Ints
    ranges: UInt32s
    is_sorted: Bytes


class PartKeys:
    """The keys of all features of a part.

    Args:
        columns: of some features each, in order.
        n_threads: that may be used.

    """

    def __init__(self, columns: list[KeyColumns], n_threads: int | None) -> None:
        self.columns, self.n_threads = columns, n_threads
        self.grouped: list[Grouped] = []

    @property
    def sizes(self) -> Ints:
        """How many values each feature has."""
        return np.concatenate([NONE, *(some.n_keys + some.n_zeros for some in self.columns)])

    def sampled(self) -> Int32s:
        """About how many keys each feature has in each range."""
        found = [np.zeros((len(some.starts), RANGES), np.int32) for some in self.columns]
        for some, counts in zip(self.columns, found, strict=True):
            count_ranges(some.keys, some.starts, some.n_keys, counts)
        return np.concatenate([np.zeros((0, RANGES), np.int32), *found])

    def group(self, ranges: UInt32s, n_buckets: Ints) -> Int32s:
        """Bring the keys together by bucket; how many values each bucket of each feature has, one after the other."""
        firsts = np.cumsum([0, *(len(some.starts) for some in self.columns)])

        def work(k: int) -> tuple[Grouped, Int32s]:
            some, mine = self.columns[k], slice(firsts[k], firsts[k + 1])
            first_bucket = np.append(0, np.cumsum(n_buckets[mine]))
            ends, counts = np.zeros(first_bucket[-1], np.uint32), np.zeros(first_bucket[-1], np.int32)
            spare = np.empty(some.n_keys.max(initial=0) + 1, np.uint32)
            grouped = Grouped(some.keys, some.starts, some.n_zeros, ends, first_bucket, ranges[mine],
                              np.zeros(len(ends), np.uint8))  # fmt: skip
            group_keys(grouped, some.n_keys, spare, np.empty(DIGITS, np.uint32), counts)
            return grouped, counts

        done = list(map_threads(work, range(len(self.columns)), self.n_threads or 1))
        self.grouped, self.columns = [grouped for grouped, _ in done], []
        return np.concatenate([np.zeros(0, np.int32), *(counts for _, counts in done)])

    def look_up(self, intervals: Intervals) -> Found:
        """What is in some intervals."""
        firsts = np.cumsum([0, *(len(grouped.starts) for grouped in self.grouped)])

        def work(k: int) -> Found:
            a, b = intervals.starts[firsts[k]], intervals.starts[firsts[k + 1]]
            starts = intervals.starts[firsts[k] : firsts[k + 1] + 1] - a
            mine = Intervals(starts, intervals.lows[a:b], intervals.highs[a:b], intervals.is_wide[a:b])
            return _look_up(self.grouped[k], mine)

        parts = list(map_threads(work, range(len(self.grouped)), self.n_threads or 1))
        return Found(*(np.concatenate(of) for of in zip(*parts, strict=True)))


def _look_up(grouped: Grouped, intervals: Intervals) -> Found:
    n, n_wide = len(intervals.lows), int(intervals.is_wide.sum())
    places = np.zeros((2, n), np.int64)
    longest = int(find_places(grouped, intervals, places))
    pieces, (n_listed, horizons) = np.zeros((n_wide, PIECES - 1), np.int32), np.zeros((2, n), np.int64)
    room = np.minimum(places[1] - places[0], np.where(intervals.is_wide, SOME, FEW)).sum()
    keys, times = np.empty(room, np.uint32), np.empty(room, np.int64)
    spare = np.empty(longest, np.uint32)
    n_keys = fill_found(grouped, intervals, places, spare, np.empty(DIGITS, np.uint32),
                        Found(pieces, keys, times, n_listed, horizons))  # fmt: skip
    return Found(pieces, keys[:n_keys], times[:n_keys], n_listed, horizons)


def choose_buckets(sampled: Int32s, sizes: Ints) -> tuple[UInt32s, Ints]:
    """Cut each range of each feature into buckets, fine where many keys lie; the ranges, and the number of buckets."""
    aimed = np.minimum(BUCKETS, sizes // FEWEST_IN_BUCKET)
    totals = sampled.sum(axis=1, dtype=np.int64)
    wanted = sampled * aimed[:, None] // np.maximum(totals, 1)[:, None]
    bits = np.minimum(np.frexp(wanted.astype(np.float64))[1], WITHIN).astype(np.int64)
    ends = np.cumsum(1 << bits, axis=1)
    return ((ends - (1 << bits)) << SHIFT_BITS | (WITHIN - bits)).astype(np.uint32), ends[:, -1]


def last_keys(ranges: UInt32s) -> Ints:
    """The highest key of each bucket of a feature."""
    shifts = (ranges & ((1 << SHIFT_BITS) - 1)).astype(np.int64)
    n_buckets = 1 << (WITHIN - shifts)
    number = np.arange(n_buckets.sum()) - np.repeat(np.cumsum(n_buckets) - n_buckets, n_buckets)
    first = np.repeat(np.arange(RANGES, dtype=np.int64) << WITHIN, n_buckets)
    last: Ints = first + ((number + 1) << np.repeat(shifts, n_buckets)) - 1
    return last


# --- kernels


@helper
def scale_of_ranges() -> Scale:
    """A key's range is its upper bits."""
    return Scale(np.uint32(0), U(WITHIN))


@kernel
def count_ranges(keys: UInt32s, starts: Ints, n_keys: Ints, counts: Int32s) -> None:
    """Count keys by range, about every so many of them."""
    for column in range(len(starts)):
        step = max(1, n_keys[column] // SAMPLED)
        for k in range(0, n_keys[column], step):
            counts[column, U(keys[U(starts[column] + k)]) >> U(WITHIN)] += np.int32(step)


@kernel
def group_keys(grouped: Grouped, n_keys: Ints, spare: UInt32s, digits: UInt32s, counts: Int32s) -> None:
    """Bring the keys of each column together by bucket, in place; how many values each bucket has."""
    for column in range(len(n_keys)):
        n, start, n_zeros = n_keys[column], grouped.starts[column], grouped.n_zeros[column]
        first, last = grouped.first_bucket[column], grouped.first_bucket[column + 1]
        mine = grouped.keys[start : start + n + 1]
        if n_zeros:
            mine[n] = ZERO_KEY
            n += 1
        buckets = Buckets(grouped.ranges[column], grouped.ends[first:last], digits)
        bring_together(mine, n, scale_of_ranges(), last - first, buckets, spare)
        mine[:n] = spare[:n]
        before = np.uint32(0)
        for bucket in range(first, last):
            counts[bucket] = np.int32(grouped.ends[bucket] - before)
            before = grouped.ends[bucket]
        if n_zeros:
            zero = N(bucket_of(ZERO_KEY, scale_of_ranges(), grouped.ranges[column]))
            counts[first + zero] += np.int32(n_zeros - 1)


@kernel
def find_places(grouped: Grouped, intervals: Intervals, places: Ints) -> Int:
    """Where the bucket of each interval begins and ends among the keys; the length of the longest."""
    longest = N(0)
    for column in range(len(grouped.starts)):
        first = grouped.first_bucket[column]
        for k in range(intervals.starts[column], intervals.starts[column + 1]):
            bucket = first + N(bucket_of(np.uint32(intervals.highs[k]), scale_of_ranges(), grouped.ranges[column]))
            before = N(grouped.ends[bucket - 1]) if bucket > first else N(0)
            places[0, k] = grouped.starts[column] + before
            places[1, k] = grouped.starts[column] + N(grouped.ends[bucket])
            longest = max(longest, places[1, k] - places[0, k])
    return longest


@kernel
def fill_found(
    grouped: Grouped, intervals: Intervals, places: Ints, spare: UInt32s, digits: UInt32s, found: Found
) -> Int:  # fmt: skip
    """See `Found`; the number of keys that are listed."""
    n, n_wide, keys = N(0), N(0), grouped.keys
    for column in range(len(grouped.starts)):
        for k in range(intervals.starts[column], intervals.starts[column + 1]):
            first, last = places[0, k], places[1, k]
            high, is_wide = intervals.highs[k], intervals.is_wide[k]
            bucket = grouped.first_bucket[column] + N(
                bucket_of(np.uint32(high), scale_of_ranges(), grouped.ranges[column])
            )
            if not grouped.is_sorted[bucket]:
                sort_some_keys(keys, first, last, spare, digits)
                grouped.is_sorted[bucket] = 1
            extra = max(grouped.n_zeros[column] - 1, 0)
            at = _first_above(keys, first, last, intervals.lows[k])
            end = _first_above(keys, first, last, high)
            if is_wide:
                _count_pieces(keys, at, end, intervals.lows[k], high, extra, found.pieces[n_wide])
                n_wide += 1
            listed = N(0)
            while at < end and not (is_wide and listed == SOME):
                key, begin = keys[U(at)], at
                while at < end and keys[U(at)] == key:
                    at += 1
                found.keys[n] = key
                found.times[n] = at - begin + (extra if key == ZERO_KEY else 0)
                n += 1
                listed += 1
            found.n_listed[k] = listed
            found.horizons[k] = high if at == end else N(keys[U(at - 1)])
    return n


@helper
def _count_pieces(keys: UInt32s, at: Int, end: Int, low: Int, high: Int, extra: Int, counts: Int32s) -> None:
    """How many values are up to the end of each piece of an interval but the last."""
    zero = N(ZERO_KEY)
    for piece in range(1, PIECES):
        last = low + (high - low) * piece // PIECES
        counts[piece - 1] = np.int32(_first_above(keys, at, end, last) - at + (extra if low < zero <= last else 0))


@helper
def _first_above(keys: UInt32s, first: Int, last: Int, key: Int) -> Int:
    """The place of the first of sorted keys that is above a key."""
    while first < last:
        middle = (first + last) // 2
        if N(keys[U(middle)]) <= key:
            first = middle + 1
        else:
            last = middle
    return first
