"""Find the cuts of `binning.find_bins` when each part of the documents is on another machine.

Bins are filled from below, each with at least an equal share of the remaining values. A bin ends at the lowest key with
enough values up to it. The parts count their values up to some keys, and sums of these counts are exact. The range
between two such keys is an *interval*. Where a bin may end, the parts cut the interval into pieces and count again; if
the interval has few values, they list them.

Where a bin ends depends on how often the last values of the bins below it occur. While that is unknown, the search
assumes the mean of the known values, and also requests neighbouring intervals, more of them in each round. All bins of
all features are searched at the same time.
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
from podium.trees.cuts import ZERO_KEY, KeyColumns, cuts_between, first_above, map_columns, values_of
from podium.trees.growth_types import N, U

MAX_LISTED = 64  # an interval with more values in all parts is *wide*
PIECES = 32  # the number of pieces that a wide interval is cut into
MAX_LISTED_OF_WIDE = 16  # how many of its lowest distinct values are listed as well: often there are no others
NONE = np.empty(0, np.int64)


class Intervals(NamedTuple):
    """Ranges of keys to look up."""

    starts: Ints  # the intervals of feature f are `starts[f]` … `starts[f + 1]` − 1, ascending
    # lows, highs: an interval holds the keys with low < key ≤ high
    lows: Ints
    highs: Ints
    is_wide: Bytes  # whether the interval is cut into pieces; otherwise all its values are listed


class IntervalContents(NamedTuple):
    """The values of a part in some intervals."""

    pieces: Int32s  # for each wide interval, the number of values up to the end of each piece but the last
    # keys, times: the listed distinct values and how often each occurs, interval by interval, ascending
    keys: UInt32s
    times: Ints
    n_listed: Ints  # the number of listed values of each interval
    horizons: Ints  # for each interval, the key up to which all values are listed


def _look_up(columns: list[KeyColumns], intervals: Intervals, n_threads: int | None) -> IntervalContents:
    """Return the values of a part in some intervals; `columns` are those of all features, sorted."""
    firsts = np.cumsum([0, *(len(group.starts) for group in columns)])

    def work(k: int) -> IntervalContents:
        group, (a, b) = columns[k], intervals.starts[firsts[k : k + 2]]
        starts, is_wide = intervals.starts[firsts[k] : firsts[k + 1] + 1] - a, intervals.is_wide[a:b]
        n, room = b - a, np.where(is_wide, MAX_LISTED_OF_WIDE, MAX_LISTED).sum()
        contents = IntervalContents(
            np.zeros((is_wide.sum(), PIECES - 1), np.int32), np.empty(room, np.uint32), np.empty(room, np.int64),
            np.zeros(n, np.int64), np.zeros(n, np.int64),
        )  # fmt: skip
        requested = Intervals(starts, intervals.lows[a:b], intervals.highs[a:b], is_wide)
        n_keys = fill_contents(group.keys, group.starts, group.n_keys, group.n_zeros, requested, contents)
        return contents._replace(keys=contents.keys[:n_keys], times=contents.times[:n_keys])

    parts = list(map_threads(work, range(len(columns)), n_threads or 1))
    return IntervalContents(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


FEATURE_BITS = 33  # a feature and a key as one number: feature · 2^33 + key + 1, where the key may be −1
KEY_BITS = (1 << FEATURE_BITS) - 1


def find_bins_in_parts(
    features: Features, max_bins: int, categorical: Iterable[int], n_threads: int | None = None
) -> Generator[Any, Any, Bins]:
    """Find the bins of all documents, of which these are a part (`podium.core.merging`)."""
    categorical = sorted(set(categorical))
    require_bins(max_bins, categorical, features.shape[1])
    categories_of_part: dict[int, Counts] = {}

    def sort_columns(columns: KeyColumns, first: int) -> list[KeyColumns]:
        for feature in set(categorical) & set(range(first, first + len(columns.starts))):
            categories_of_part[feature] = Counts(*columns.take_distinct(feature - first))
        columns.sort()
        return [columns]

    part = list(map_columns(sort_columns, features, n_threads))
    n_values = np.concatenate([NONE, *(group.n_keys + np.maximum(group.n_zeros - 1, 0) for group in part)])
    category_counts, sizes = yield {feature: categories_of_part[feature] for feature in categorical}, Total(n_values)
    below, above, n_cuts = yield from _find_cuts(part, sizes, max_bins, n_threads)
    cuts = cuts_between(values_of(below), values_of(above))
    categories: dict[int, Float32s] = {}
    rare: dict[int, Float32s] = {}
    for feature in categorical:
        values, counts = category_counts[feature]
        add_categories(feature, values, counts, max_bins, categories, rare)
    return Bins(tuple(cuts[k, : n_cuts[k]].copy() for k in range(len(sizes))), categories, rare)


def _find_cuts(
    part: list[KeyColumns], sizes: Ints, max_bins: int, n_threads: int | None
) -> Generator[Any, Any, tuple[UInt32s, UInt32s, Ints]]:
    """Return the keys next to each cut of each feature, below and above it, and the number of cuts of each feature."""
    cumulative = _CumulativeCounts(sizes)
    below, above = (np.zeros((len(sizes), max_bins - 1), np.uint32) for _ in range(2))
    n_cuts, reach = np.zeros(len(sizes), np.int64), 1.0
    while True:
        is_requested = np.zeros(len(cumulative.keys), np.uint8)
        has_requests = fill_known_bins(
            cumulative.keys, cumulative.counts, cumulative.is_next, cumulative.starts, sizes, max_bins, reach, below,
            above, n_cuts, is_requested,
        )  # fmt: skip
        if not has_requests:
            return below, above, n_cuts
        requested = cumulative.intervals(cumulative.keep_incomplete(is_requested))
        contents = _look_up(part, requested, n_threads)
        pieces, (listed, times), horizons = yield (
            Total(contents.pieces),
            _listed(requested, contents),
            Max(-contents.horizons),
        )
        cumulative.add(requested, pieces, listed, times, -horizons)
        reach *= 1.5


def _listed(requested: Intervals, contents: IntervalContents) -> Counts:
    """Return the listed values with their features, and how often each occurs."""
    feature = np.repeat(np.arange(len(requested.starts) - 1), np.diff(requested.starts))
    return Counts((np.repeat(feature, contents.n_listed) << FEATURE_BITS) + contents.keys + 1, contents.times)


class _CumulativeCounts:
    """The number of values of each feature up to some keys.

    Attributes:
        keys: the keys with their features, ascending.
        counts: for each key, the number of values of its feature up to the key.
        is_next: for each key, whether no value lies between the previous key and this one.
        starts: the index of each feature's first key, which is −1; and the number of all keys.

    """

    def __init__(self, sizes: Ints) -> None:
        self.first_keys = np.arange(len(sizes) + 1) << FEATURE_BITS
        before_and_last = np.array([0, 1 << 32])
        self.keys: Ints = (self.first_keys[:-1, None] + before_and_last).ravel()
        self.counts = np.column_stack([np.zeros(len(sizes), np.int64), sizes]).ravel()
        self.is_next = np.zeros(len(self.keys), np.uint8)
        self.starts = np.searchsorted(self.keys, self.first_keys)

    def keep_incomplete(self, is_requested: Bytes) -> Ints:
        """Drop features without requests; return the indices of the requested keys."""
        n_requested = np.diff(np.append(0, np.cumsum(is_requested, dtype=np.int64))[self.starts])
        is_open = np.repeat(n_requested > 0, np.diff(self.starts))
        self.keys, self.counts, self.is_next = self.keys[is_open], self.counts[is_open], self.is_next[is_open]
        self.starts = np.searchsorted(self.keys, self.first_keys)
        return np.flatnonzero(is_requested[is_open])

    def intervals(self, requested: Ints) -> Intervals:
        """Return the intervals that end at some of the keys."""
        feature = self.keys[requested] >> FEATURE_BITS
        lows, highs = (self.keys[requested - k] - (feature << FEATURE_BITS) - 1 for k in (1, 0))
        is_wide = self.counts[requested] - self.counts[requested - 1] > MAX_LISTED
        return Intervals(np.searchsorted(requested, self.starts), lows, highs, is_wide.astype(np.uint8))

    def add(self, requested: Intervals, pieces: Int32s, listed: Ints, times: Ints, horizons: Ints) -> None:
        """Add the contents of some intervals, summed over all parts."""
        feature = np.repeat(np.arange(len(requested.starts) - 1), np.diff(requested.starts)) << FEATURE_BITS
        before = self.counts[np.searchsorted(self.keys, feature + requested.lows + 1)]
        wide = np.flatnonzero(requested.is_wide)
        low, width = requested.lows[wide, None], (requested.highs - requested.lows)[wide, None]
        ends = (feature + 1)[wide, None] + low + width * np.arange(1, PIECES) // PIECES
        first = np.searchsorted(listed, feature + requested.lows + 1, side="right")
        n_listed = np.searchsorted(listed, feature + horizons + 1, side="right") - first
        within_horizon = np.repeat(first - np.cumsum(n_listed) + n_listed, n_listed) + np.arange(n_listed.sum())
        running = np.append(0, np.cumsum(times))
        totals = running[within_horizon + 1] + np.repeat(before - running[first], n_listed)
        self._insert(ends.ravel(), (before[wide, None] + pieces.astype(np.int64)).ravel(), 0)
        self._insert(listed[within_horizon], totals, 1)

    def _insert(self, keys: Ints, counts: Ints, is_next: int) -> None:
        """Insert ascending keys, some of which may already be present."""
        n = len(self.keys) + len(keys)
        new_keys, new_counts, new_next = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.uint8)
        n = merge_keys(self.keys, self.counts, self.is_next, keys, counts, is_next, new_keys, new_counts, new_next)
        self.keys, self.counts, self.is_next = new_keys[:n], new_counts[:n], new_next[:n]
        self.starts = np.searchsorted(self.keys, self.first_keys)


# --- kernels


@kernel
def fill_contents(
    keys: UInt32s, starts: Ints, n_keys: Ints, n_zeros: Ints, intervals: Intervals, contents: IntervalContents
) -> Int:
    """Fill `contents` from the sorted keys of some columns (`KeyColumns`); return the number of listed keys."""
    n, n_wide = N(0), N(0)
    for column in range(len(starts)):
        more_zeros = max(n_zeros[column] - 1, 0)
        for k in range(intervals.starts[column], intervals.starts[column + 1]):
            low, high, is_wide, n_listed = intervals.lows[k], intervals.highs[k], intervals.is_wide[k], N(0)
            at = first_above(keys, starts[column], starts[column] + n_keys[column], low)
            end = first_above(keys, at, starts[column] + n_keys[column], high)
            if is_wide:
                _count_pieces(keys, at, end, low, high, more_zeros, contents.pieces[n_wide])
                n_wide += 1
            while at < end and not (is_wide and n_listed == MAX_LISTED_OF_WIDE):
                key, begin = keys[U(at)], at
                at = first_above(keys, at, end, N(key))
                contents.keys[n] = key
                contents.times[n] = at - begin + (more_zeros if key == ZERO_KEY else 0)
                n += 1
                n_listed += 1
            contents.n_listed[k] = n_listed
            contents.horizons[k] = high if at == end else N(keys[U(at - 1)])
    return n


@helper
def _count_pieces(keys: UInt32s, at: Int, end: Int, low: Int, high: Int, more_zeros: Int, counts: Int32s) -> None:
    """Count the values up to the end of each piece of an interval but the last."""
    zero = N(ZERO_KEY)
    for piece in range(1, PIECES):
        last = low + (high - low) * piece // PIECES
        counts[piece - 1] = np.int32(first_above(keys, at, end, last) - at + (more_zeros if low < zero <= last else 0))


@kernel
def fill_known_bins(
    keys: Ints, counts: Ints, is_next: Bytes, starts: Ints, sizes: Ints, max_bins: Int, reach: float, below: UInt32s,
    above: UInt32s, n_cuts: Ints, is_requested: Bytes,
) -> bool:  # fmt: skip
    """Fill the bins of each feature as far as counts are known; request the intervals needed to continue.

    An interval is requested by an entry of `is_requested` for the key at its end; return whether there are requests.
    Row f of `below` and `above` has the keys next to each cut of feature f. Each guess of where a bin ends may be wrong
    by a few values, and errors add up. So values are requested around a guess within the expected error times `reach`.
    """
    has_requests = False
    for feature in range(len(sizes)):
        first, last = starts[feature], starts[feature + 1]
        if first == last:  # complete
            continue
        n_used, is_open, miss = _survey(keys, counts, is_next, first, last, sizes[feature] // max_bins)
        n_cuts[feature] = 0
        if n_used <= max_bins and is_open:  # there may be more values than bins
            _request(keys, counts, is_next, first, first + 1, N(0), sizes[feature], last, is_requested)
            has_requests = True
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
                    is_requested[following], has_requests = 1, True
            else:
                tolerance = N(reach * miss * (1.0 + np.sqrt(np.float64(n_guessed))))
                _request(keys, counts, is_next, first, k, target - tolerance, target + tolerance, last, is_requested)
                has_requests, n_guessed = True, n_guessed + 1
                taken = target + N(miss)
    return has_requests


@kernel
def merge_keys(
    keys: Ints, counts: Ints, is_next: Bytes, more: Ints, more_counts: Ints, flag: Int, all_keys: Ints,
    all_counts: Ints, all_next: Bytes,
) -> Int:  # fmt: skip
    """Merge two ascending lists of keys, without duplicates; return the number of keys."""
    n, k, j = N(0), N(0), N(0)
    while k < len(keys) or j < len(more):
        is_old = k < len(keys) and (j == len(more) or keys[k] <= more[j])
        key, count = (keys[k], counts[k]) if is_old else (more[j], more_counts[j])
        marked = is_next[k] if is_old else np.uint8(0)
        k += N(is_old)
        while j < len(more) and more[j] == key:
            marked, j = np.uint8(marked | flag), j + 1
        all_keys[n], all_counts[n], all_next[n] = key, count, marked
        n += 1
    return n


@helper
def _is_value(keys: Ints, is_next: Bytes, k: Int) -> bool:
    """Return whether the interval that ends at key k holds no other value than this key."""
    return bool(is_next[k] != 0 or keys[k] - keys[k - 1] == 1)


@helper
def _survey(keys: Ints, counts: Ints, is_next: Bytes, first: Int, last: Int, share: Int) -> tuple[Int, bool, float]:
    """Return the number of non-empty intervals, whether one may hold several values, and the mean excess of a bin.

    On average a bin exceeds its share by half the frequency of its last value. Values that fill a bin by themselves do
    not count.
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
def _request(
    keys: Ints,
    counts: Ints,
    is_next: Bytes,
    first: Int,
    k: Int,
    lowest: Int,
    highest: Int,
    last: Int,
    is_requested: Bytes,
) -> None:
    """Request the interval that ends at key k, and the neighbours that hold values between the two ranks."""
    near = k
    while near > first and (near == k or counts[near] >= lowest):
        is_requested[near] |= np.uint8(counts[near] > counts[near - 1] and not _is_value(keys, is_next, near))
        near -= 1
    near = k + 1
    while near < last and counts[near - 1] < highest:
        is_requested[near] |= np.uint8(counts[near] > counts[near - 1] and not _is_value(keys, is_next, near))
        near += 1
