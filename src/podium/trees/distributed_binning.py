"""Distributed binning: the cuts of `binning.find_bins` when each part of the documents is on another machine.

Bins are filled from below, each with at least an equal share of what is left. A bin ends at the lowest key with enough
values up to it. First, all parts count their values by *bucket*, ranges of keys that all parts share; the sums of these
counts are exact. A bucket in which a bin may end is an *interval*. The parts cut an interval into pieces and count
again, and list the values of an interval that has few. Where a bin ends depends on how often the last values of the
bins before it occur. While that is unknown, the mean of the known values is assumed and neighbouring intervals are
requested as well, more of them in each round. All bins of all features are searched at the same time: four rounds if
values differ, a few more if many are equal.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any, NamedTuple

import numpy as np

from podium.core.array_types import Bytes, Float32s, Int, Int32s, Ints, UInt32s
from podium.core.compiling import helper, kernel
from podium.core.merging import Counts, Max, Total
from podium.core.threads import map_threads
from podium.data.features import Features
from podium.trees.binning import Bins, add_categories, require_bins
from podium.trees.cuts import (
    DIGITS,
    FEWEST_IN_BUCKET,
    SAMPLED,
    SHIFT_BITS,
    ZERO_KEY,
    Buckets,
    KeyColumns,
    KeyScale,
    bucket_of,
    cuts_between,
    group_by_bucket,
    map_columns,
    values_of,
)
from podium.trees.cuts import sort_keys as sort_some_keys
from podium.trees.growth_types import N, U

RANGE_BITS = 10  # the upper bits of a key: its range, which is cut into buckets
RANGES, WITHIN = 1 << RANGE_BITS, 32 - RANGE_BITS
BUCKETS = 1 << 12  # target number for each feature
FEW = 64  # values of all parts: an interval with more is *wide*,
PIECES = 16  # and is cut into this many
SOME = 16  # of the lowest distinct values of a wide interval are listed as well: often there are no more
NONE = np.empty(0, np.int64)


class Intervals(NamedTuple):
    """Ranges of keys to look up; each lies within a bucket."""

    starts: Ints  # the intervals of feature f are those from `starts[f]` on, ascending
    # lows, highs: the keys with low < key ≤ high
    lows: Ints
    highs: Ints
    is_wide: Bytes  # whether it is cut into pieces; of others, with `FEW` values at most, all are listed


class IntervalContents(NamedTuple):
    """The values of a part in some intervals."""

    pieces: Int32s  # of each wide interval, how many values are up to the end of each piece but the last
    # keys, times: different values and how often each occurs; those of an interval together, ascending
    keys: UInt32s
    times: Ints
    n_listed: Ints  # of each interval; of a wide one at most `SOME`
    horizons: Ints  # of each interval the key up to which all are listed


class BucketedKeys(NamedTuple):
    """The keys of some features by bucket."""

    # keys, starts: those of column c begin at `starts[c]`; zero has one key, whatever its number
    keys: UInt32s
    starts: Ints
    n_zeros: Ints  # how often each column is 0
    ends: UInt32s  # of each bucket of each column where its keys end, from the start of the column on
    first_bucket: Ints  # of each column among all buckets
    ranges: UInt32s  # of each column, see `cuts.Buckets`
    is_sorted: Bytes  # of each bucket


class PartKeys:
    """The keys of all features of a part."""

    def __init__(self, columns: list[KeyColumns], n_threads: int | None) -> None:
        self.columns, self.n_threads = columns, n_threads
        self.grouped: list[BucketedKeys] = []

    @property
    def sizes(self) -> Ints:
        """The number of values of each feature."""
        return np.concatenate([NONE, *(some.n_keys + some.n_zeros for some in self.columns)])

    def sampled(self) -> Int32s:
        """Return about how many keys each feature has in each range."""
        counts = [np.zeros((len(columns.starts), RANGES), np.int32) for columns in self.columns]
        for columns, of_columns in zip(self.columns, counts, strict=True):
            count_ranges(columns.keys, columns.starts, columns.n_keys, of_columns)
        return np.concatenate([np.zeros((0, RANGES), np.int32), *counts])

    def group(self, ranges: UInt32s, n_buckets: Ints) -> Int32s:
        """Group the keys by bucket; return the number of values in each bucket, feature after feature."""
        firsts = np.cumsum([0, *(len(some.starts) for some in self.columns)])

        def work(k: int) -> tuple[BucketedKeys, Int32s]:
            columns, features = self.columns[k], slice(firsts[k], firsts[k + 1])
            first_bucket = np.append(0, np.cumsum(n_buckets[features]))
            ends, counts = np.zeros(first_bucket[-1], np.uint32), np.zeros(first_bucket[-1], np.int32)
            spare = np.empty(columns.n_keys.max(initial=0) + 1, np.uint32)
            grouped = BucketedKeys(columns.keys, columns.starts, columns.n_zeros, ends, first_bucket, ranges[features],
                              np.zeros(len(ends), np.uint8))  # fmt: skip
            group_keys(grouped, columns.n_keys, spare, np.empty(DIGITS, np.uint32), counts)
            return grouped, counts

        done = list(map_threads(work, range(len(self.columns)), self.n_threads or 1))
        self.grouped, self.columns = [grouped for grouped, _ in done], []
        return np.concatenate([np.zeros(0, np.int32), *(counts for _, counts in done)])

    def look_up(self, intervals: Intervals) -> IntervalContents:
        """Return the values in some intervals."""
        firsts = np.cumsum([0, *(len(grouped.starts) for grouped in self.grouped)])

        def work(k: int) -> IntervalContents:
            a, b = intervals.starts[firsts[k]], intervals.starts[firsts[k + 1]]
            starts = intervals.starts[firsts[k] : firsts[k + 1] + 1] - a
            asked = Intervals(starts, intervals.lows[a:b], intervals.highs[a:b], intervals.is_wide[a:b])
            return _look_up(self.grouped[k], asked)

        parts = list(map_threads(work, range(len(self.grouped)), self.n_threads or 1))
        return IntervalContents(*(np.concatenate(of) for of in zip(*parts, strict=True)))


def _look_up(grouped: BucketedKeys, intervals: Intervals) -> IntervalContents:
    n, n_wide = len(intervals.lows), int(intervals.is_wide.sum())
    places = np.zeros((2, n), np.int64)
    longest = int(find_places(grouped, intervals, places))
    pieces, (n_listed, horizons) = np.zeros((n_wide, PIECES - 1), np.int32), np.zeros((2, n), np.int64)
    room = np.minimum(places[1] - places[0], np.where(intervals.is_wide, SOME, FEW)).sum()
    keys, times = np.empty(room, np.uint32), np.empty(room, np.int64)
    spare = np.empty(longest, np.uint32)
    n_keys = fill_contents(grouped, intervals, places, spare, np.empty(DIGITS, np.uint32),
                        IntervalContents(pieces, keys, times, n_listed, horizons))  # fmt: skip
    return IntervalContents(pieces, keys[:n_keys], times[:n_keys], n_listed, horizons)


def choose_buckets(sampled: Int32s, sizes: Ints) -> tuple[UInt32s, Ints]:
    """Cut each range of each feature into buckets, finer where keys are dense; return ranges and numbers of buckets."""
    aimed = np.minimum(BUCKETS, sizes // FEWEST_IN_BUCKET)
    totals = sampled.sum(axis=1, dtype=np.int64)
    wanted = sampled * aimed[:, None] // np.maximum(totals, 1)[:, None]
    bits = np.minimum(np.frexp(wanted.astype(np.float64))[1], WITHIN).astype(np.int64)
    ends = np.cumsum(1 << bits, axis=1)
    return ((ends - (1 << bits)) << SHIFT_BITS | (WITHIN - bits)).astype(np.uint32), ends[:, -1]


def last_keys(ranges: UInt32s) -> Ints:
    """Return the highest key of each bucket of a feature."""
    shifts = (ranges & ((1 << SHIFT_BITS) - 1)).astype(np.int64)
    n_buckets = 1 << (WITHIN - shifts)
    number = np.arange(n_buckets.sum()) - np.repeat(np.cumsum(n_buckets) - n_buckets, n_buckets)
    first = np.repeat(np.arange(RANGES, dtype=np.int64) << WITHIN, n_buckets)
    last: Ints = first + ((number + 1) << np.repeat(shifts, n_buckets)) - 1
    return last


# --- kernels


@helper
def scale_of_ranges() -> KeyScale:
    """Return the scale by which the upper bits of a key are its range."""
    return KeyScale(np.uint32(0), U(WITHIN))


@kernel
def count_ranges(keys: UInt32s, starts: Ints, n_keys: Ints, counts: Int32s) -> None:
    """Count keys by range, from a sample."""
    for column in range(len(starts)):
        step = max(1, n_keys[column] // SAMPLED)
        for k in range(0, n_keys[column], step):
            counts[column, U(keys[U(starts[column] + k)]) >> U(WITHIN)] += np.int32(step)


@kernel
def group_keys(grouped: BucketedKeys, n_keys: Ints, spare: UInt32s, digits: UInt32s, counts: Int32s) -> None:
    """Group the keys of each column by bucket, in place, and count the values of each bucket."""
    for column in range(len(n_keys)):
        n, start, n_zeros = n_keys[column], grouped.starts[column], grouped.n_zeros[column]
        first, last = grouped.first_bucket[column], grouped.first_bucket[column + 1]
        keys = grouped.keys[start : start + n + 1]
        if n_zeros:
            keys[n] = ZERO_KEY
            n += 1
        buckets = Buckets(grouped.ranges[column], grouped.ends[first:last], digits)
        group_by_bucket(keys, n, scale_of_ranges(), last - first, buckets, spare)
        keys[:n] = spare[:n]
        before = np.uint32(0)
        for bucket in range(first, last):
            counts[bucket] = np.int32(grouped.ends[bucket] - before)
            before = grouped.ends[bucket]
        if n_zeros:
            zero = N(bucket_of(ZERO_KEY, scale_of_ranges(), grouped.ranges[column]))
            counts[first + zero] += np.int32(n_zeros - 1)


@kernel
def find_places(grouped: BucketedKeys, intervals: Intervals, places: Ints) -> Int:
    """Find where the bucket of each interval begins and ends among the keys; return the longest length."""
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
def fill_contents(
    grouped: BucketedKeys, intervals: Intervals, places: Ints, spare: UInt32s, digits: UInt32s,
    contents: IntervalContents,
) -> Int:  # fmt: skip
    """Fill `contents`; return the number of listed keys."""
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
                _count_pieces(keys, at, end, intervals.lows[k], high, extra, contents.pieces[n_wide])
                n_wide += 1
            listed = N(0)
            while at < end and not (is_wide and listed == SOME):
                key, begin = keys[U(at)], at
                while at < end and keys[U(at)] == key:
                    at += 1
                contents.keys[n] = key
                contents.times[n] = at - begin + (extra if key == ZERO_KEY else 0)
                n += 1
                listed += 1
            contents.n_listed[k] = listed
            contents.horizons[k] = high if at == end else N(keys[U(at - 1)])
    return n


@helper
def _count_pieces(keys: UInt32s, at: Int, end: Int, low: Int, high: Int, extra: Int, counts: Int32s) -> None:
    """Count the values up to the end of each piece of an interval but the last."""
    zero = N(ZERO_KEY)
    for piece in range(1, PIECES):
        last = low + (high - low) * piece // PIECES
        counts[piece - 1] = np.int32(_first_above(keys, at, end, last) - at + (extra if low < zero <= last else 0))


@helper
def _first_above(keys: UInt32s, first: Int, last: Int, key: Int) -> Int:
    """Return the place of the first of sorted keys that is above a key."""
    while first < last:
        middle = (first + last) // 2
        if N(keys[U(middle)]) <= key:
            first = middle + 1
        else:
            last = middle
    return first


FEATURE_BITS = 33  # a key and a feature as one number: feature · 2^33 + key + 1; −1 precedes all keys
KEY_BITS = (1 << FEATURE_BITS) - 1


def find_bins_in_parts(
    features: Features, max_bins: int, categorical: Iterable[int], n_threads: int | None = None
) -> Generator[Any, Any, Bins]:
    """Find the bins of all documents, of which these are a part (`podium.core.merging`)."""
    chosen = sorted(set(categorical))
    require_bins(max_bins, chosen, features.shape[1])
    counted: dict[int, Counts] = {}

    def take(columns: KeyColumns, first: int) -> list[KeyColumns]:
        for feature in set(chosen) & set(range(first, first + len(columns.starts))):
            counted[feature] = Counts(*columns.take_distinct(feature - first))
        return [columns]

    part = PartKeys(list(map_columns(take, features, n_threads)), n_threads)
    of_categories, sizes, sampled = yield (
        {feature: counted[feature] for feature in chosen}, Total(part.sizes), Total(part.sampled())
    )  # fmt: skip
    below, above, n_cuts = yield from _find_cuts(part, sizes, sampled, max_bins)
    cuts = cuts_between(values_of(below), values_of(above))
    categories: dict[int, Float32s] = {}
    rare: dict[int, Float32s] = {}
    for feature in chosen:
        values, counts = of_categories[feature]
        add_categories(feature, values, counts, max_bins, categories, rare)
    return Bins(tuple(cuts[k, : n_cuts[k]].copy() for k in range(len(sizes))), categories, rare)


def _find_cuts(
    part: PartKeys, sizes: Ints, sampled: Int32s, max_bins: int
) -> Generator[Any, Any, tuple[UInt32s, UInt32s, Ints]]:
    """Return, for each cut of each feature, the highest key below it and the lowest above it; the numbers of cuts."""
    ranges, n_buckets = choose_buckets(sampled, sizes)
    known = _CumulativeCounts(ranges, n_buckets, sizes, (yield Total(part.group(ranges, n_buckets))))
    below, above = (np.zeros((len(sizes), max_bins - 1), np.uint32) for _ in range(2))
    n_cuts, reach = np.zeros(len(sizes), np.int64), 1.0
    while True:
        is_asked = np.zeros(len(known.keys), np.uint8)
        if not fill_known_bins(known.keys, known.counts, known.is_next, known.starts, sizes, max_bins, reach, below,
                               above, n_cuts, is_asked):  # fmt: skip
            return below, above, n_cuts
        asked = known.intervals(known.keep_open(is_asked))
        contents = part.look_up(asked)
        pieces, (listed, times), horizons = yield (
            Total(contents.pieces),
            _listed(asked, contents),
            Max(-contents.horizons),
        )
        known.add(asked, pieces, listed, times, -horizons)
        reach *= 1.5


def _listed(asked: Intervals, contents: IntervalContents) -> Counts:
    """Return the listed values, with their features."""
    feature = np.repeat(np.arange(len(asked.starts) - 1), np.diff(asked.starts))
    return Counts((np.repeat(feature, contents.n_listed) << FEATURE_BITS) + contents.keys + 1, contents.times)


class _CumulativeCounts:
    """The number of values of each feature up to some keys.

    Attributes:
        keys: with their features, ascending.
        counts: how many values of the feature are up to each.
        is_next: whether no value lies between the key before and this one.
        starts: of each feature its first key, −1; at the end the number of all keys.

    """

    def __init__(self, ranges: UInt32s, n_buckets: Ints, sizes: Ints, counts: Int32s) -> None:
        n_features, ends = len(sizes), np.cumsum(n_buckets)
        keys, totals, start = list[Ints](), list[Ints](), 0
        for feature, end in enumerate(ends.tolist()):
            of_feature = counts[start:end]
            has = np.append(True, of_feature > 0)  # a border matters where one of the two buckets has values
            chosen = np.flatnonzero(has | np.append(has[1:], False))
            last, total = np.append(-1, last_keys(ranges[feature])), np.append(0, np.cumsum(of_feature, dtype=np.int64))
            keys.append((feature << FEATURE_BITS) + last[chosen] + 1)
            totals.append(total[chosen])
            start = end
        self.keys, self.counts = np.concatenate([NONE, *keys]), np.concatenate([NONE, *totals])
        self.is_next = np.zeros(len(self.keys), np.uint8)
        self.first_keys = np.arange(n_features + 1) << FEATURE_BITS
        self.starts = np.searchsorted(self.keys, self.first_keys)

    def keep_open(self, is_asked: Bytes) -> Ints:
        """Drop features without requests; return the places of requests."""
        n_asked = np.diff(np.append(0, np.cumsum(is_asked, dtype=np.int64))[self.starts])
        kept = np.repeat(n_asked > 0, np.diff(self.starts))
        self.keys, self.counts, self.is_next = self.keys[kept], self.counts[kept], self.is_next[kept]
        self.starts = np.searchsorted(self.keys, self.first_keys)
        return np.flatnonzero(is_asked[kept])

    def intervals(self, asked: Ints) -> Intervals:
        """Return the intervals that end at some of the keys."""
        feature = self.keys[asked] >> FEATURE_BITS
        lows, highs = (self.keys[asked - k] - (feature << FEATURE_BITS) - 1 for k in (1, 0))
        is_wide = self.counts[asked] - self.counts[asked - 1] > FEW
        return Intervals(np.searchsorted(asked, self.starts), lows, highs, is_wide.astype(np.uint8))

    def add(self, asked: Intervals, pieces: Int32s, listed: Ints, times: Ints, horizons: Ints) -> None:
        """Add the contents of some intervals, summed over all parts."""
        feature = np.repeat(np.arange(len(asked.starts) - 1), np.diff(asked.starts)) << FEATURE_BITS
        before = self.counts[np.searchsorted(self.keys, feature + asked.lows + 1)]
        wide = np.flatnonzero(asked.is_wide)
        low, width = asked.lows[wide, None], (asked.highs - asked.lows)[wide, None]
        ends = (feature + 1)[wide, None] + low + width * np.arange(1, PIECES) // PIECES
        first = np.searchsorted(listed, feature + asked.lows + 1, side="right")
        n_listed = np.searchsorted(listed, feature + horizons + 1, side="right") - first
        chosen = np.repeat(first - np.cumsum(n_listed) + n_listed, n_listed) + np.arange(n_listed.sum())
        running = np.append(0, np.cumsum(times))
        totals = running[chosen + 1] + np.repeat(before - running[first], n_listed)
        self._insert(ends.ravel(), (before[wide, None] + pieces.astype(np.int64)).ravel(), 0)
        self._insert(listed[chosen], totals, 1)

    def _insert(self, keys: Ints, counts: Ints, is_next: int) -> None:
        """Insert keys, ascending, some of which may be known."""
        n = len(self.keys) + len(keys)
        new_keys, new_counts, new_next = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.uint8)
        n = merge_known(self.keys, self.counts, self.is_next, keys, counts, is_next, new_keys, new_counts, new_next)
        self.keys, self.counts, self.is_next = new_keys[:n], new_counts[:n], new_next[:n]
        self.starts = np.searchsorted(self.keys, self.first_keys)


# --- kernels


@kernel
def fill_known_bins(
    keys: Ints, counts: Ints, is_next: Bytes, starts: Ints, sizes: Ints, max_bins: Int, reach: float, below: UInt32s,
    above: UInt32s, n_cuts: Ints, is_asked: Bytes,
) -> bool:  # fmt: skip
    """Fill the bins of each feature as far as is known; mark needed intervals in `is_asked`, and return whether any is.

    The key at its end names an interval. Row f of `below` and `above` has the keys next to each cut of feature f.
    Around a guessed end, as many values are requested as all guesses before may have missed it by, times `reach`.
    """
    asks = False
    for feature in range(len(sizes)):
        first, last = starts[feature], starts[feature + 1]
        if first == last:  # complete
            continue
        n_used, is_open, miss = _survey(keys, counts, is_next, first, last, sizes[feature] // max_bins)
        n_cuts[feature] = 0
        if n_used <= max_bins and is_open:  # there may be more values than bins
            _ask(keys, counts, is_next, first, first + 1, N(0), sizes[feature], last, is_asked)
            asks = True
            continue
        k, taken, n_guessed = first + 1, N(0), N(0)
        for left in range(max_bins, 1, -1):
            target = taken + (N(1) if n_used <= max_bins else max(N(1), (sizes[feature] - taken) // left))
            while k < last and counts[k] < target:
                k += 1
            if k == last:
                break
            if _is_value(keys, is_next, k):
                taken = counts[k]
                following = k + 1
                while following < last and counts[following] == taken:
                    following += 1
                if following == last:  # behind the last value there is no cut
                    break
                if n_guessed:
                    continue
                if _is_value(keys, is_next, following):
                    below[feature, n_cuts[feature]] = np.uint32((keys[k] & KEY_BITS) - 1)
                    above[feature, n_cuts[feature]] = np.uint32((keys[following] & KEY_BITS) - 1)
                    n_cuts[feature] += 1
                else:
                    is_asked[following], asks = 1, True
            else:
                tolerance = N(reach * miss * (1.0 + np.sqrt(np.float64(n_guessed))))
                _ask(keys, counts, is_next, first, k, target - tolerance, target + tolerance, last, is_asked)
                asks, n_guessed = True, n_guessed + 1
                taken = target + N(miss)
    return asks


@kernel
def merge_known(
    keys: Ints, counts: Ints, is_next: Bytes, more: Ints, more_counts: Ints, flag: Int, all_keys: Ints,
    all_counts: Ints, all_next: Bytes,
) -> Int:  # fmt: skip
    """Merge known keys and more of them, each once; return their number."""
    n, k, j = N(0), N(0), N(0)
    while k < len(keys) or j < len(more):
        is_known = k < len(keys) and (j == len(more) or keys[k] <= more[j])
        key, count = (keys[k], counts[k]) if is_known else (more[j], more_counts[j])
        marked = is_next[k] if is_known else np.uint8(0)
        k += N(is_known)
        while j < len(more) and more[j] == key:
            marked, j = np.uint8(marked | flag), j + 1
        all_keys[n], all_counts[n], all_next[n] = key, count, marked
        n += 1
    return n


@helper
def _is_value(keys: Ints, is_next: Bytes, k: Int) -> bool:
    """Return whether the interval that ends at a known key holds this value only."""
    return bool(is_next[k] != 0 or keys[k] - keys[k - 1] == 1)


@helper
def _survey(keys: Ints, counts: Ints, is_next: Bytes, first: Int, last: Int, share: Int) -> tuple[Int, bool, float]:
    """Return the number of non-empty intervals, whether one may hold several values, and the mean excess of a bin.

    A bin exceeds its share by half the frequency of its last value, on average; values that fill a bin are left out.
    """
    n_used, is_open, total, squares = N(0), False, 0.0, 0.0
    for k in range(first + 1, last):
        count = counts[k] - counts[k - 1]
        if count:
            n_used += 1
            if not _is_value(keys, is_next, k):
                is_open = True
            elif count < share:
                total += np.float64(count)
                squares += np.float64(count) * np.float64(count)
    return n_used, is_open, 0.5 * squares / total if total > 0.0 else 0.0


@helper
def _ask(
    keys: Ints, counts: Ints, is_next: Bytes, first: Int, k: Int, lowest: Int, highest: Int, last: Int, is_asked: Bytes
) -> None:
    """Mark the interval of k, and its neighbours that hold values between the two ranks."""
    near = k
    while near > first and (near == k or counts[near] >= lowest):
        is_asked[near] |= np.uint8(counts[near] > counts[near - 1] and not _is_value(keys, is_next, near))
        near -= 1
    near = k + 1
    while near < last and counts[near - 1] < highest:
        is_asked[near] |= np.uint8(counts[near] > counts[near - 1] and not _is_value(keys, is_next, near))
        near += 1
