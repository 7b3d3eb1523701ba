"""Distributed binning: the cuts of `binning.find_bins` when each part of the documents is on another machine.

Bins are filled from below, each with at least an equal share of what is left. A bin ends at the lowest key with enough
values up to it. The parts count their values up to some keys, and sums of these counts are exact. The range between two
such keys is an *interval*. Where a bin may end, the parts cut the interval into pieces and count again, or list the
values of an interval that has few. Where a bin ends depends on how often the last values of the bins before it occur.
While that is unknown, the mean of the known values is assumed and neighbouring intervals are requested as well, more of
them in each round. All bins of all features are searched at the same time.
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

FEW = 64  # values of all parts: an interval with more is *wide*,
PIECES = 32  # and is cut into this many
SOME = 16  # of the lowest distinct values of a wide interval are listed as well: often there are no more
NONE = np.empty(0, np.int64)


class Intervals(NamedTuple):
    """Ranges of keys to look up."""

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


def _look_up(columns: list[KeyColumns], intervals: Intervals, n_threads: int | None) -> IntervalContents:
    """Return the values of a part in some intervals; `columns` are those of all features, sorted."""
    firsts = np.cumsum([0, *(len(some.starts) for some in columns)])

    def work(k: int) -> IntervalContents:
        some, (a, b) = columns[k], intervals.starts[firsts[k : k + 2]]
        starts, is_wide = intervals.starts[firsts[k] : firsts[k + 1] + 1] - a, intervals.is_wide[a:b]
        n, room = b - a, np.where(is_wide, SOME, FEW).sum()
        contents = IntervalContents(
            np.zeros((is_wide.sum(), PIECES - 1), np.int32), np.empty(room, np.uint32), np.empty(room, np.int64),
            np.zeros(n, np.int64), np.zeros(n, np.int64),
        )  # fmt: skip
        asked = Intervals(starts, intervals.lows[a:b], intervals.highs[a:b], is_wide)
        n_keys = fill_contents(some.keys, some.starts, some.n_keys, some.n_zeros, asked, contents)
        return contents._replace(keys=contents.keys[:n_keys], times=contents.times[:n_keys])

    parts = list(map_threads(work, range(len(columns)), n_threads or 1))
    return IntervalContents(*(np.concatenate(of) for of in zip(*parts, strict=True)))


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
        columns.sort()
        return [columns]

    part = list(map_columns(take, features, n_threads))
    n_values = np.concatenate([NONE, *(some.n_keys + np.maximum(some.n_zeros - 1, 0) for some in part)])
    of_categories, sizes = yield {feature: counted[feature] for feature in chosen}, Total(n_values)
    below, above, n_cuts = yield from _find_cuts(part, sizes, max_bins, n_threads)
    cuts = cuts_between(values_of(below), values_of(above))
    categories: dict[int, Float32s] = {}
    rare: dict[int, Float32s] = {}
    for feature in chosen:
        values, counts = of_categories[feature]
        add_categories(feature, values, counts, max_bins, categories, rare)
    return Bins(tuple(cuts[k, : n_cuts[k]].copy() for k in range(len(sizes))), categories, rare)


def _find_cuts(
    part: list[KeyColumns], sizes: Ints, max_bins: int, n_threads: int | None
) -> Generator[Any, Any, tuple[UInt32s, UInt32s, Ints]]:
    """Return, for each cut of each feature, the highest key below it and the lowest above it; the numbers of cuts."""
    known = _CumulativeCounts(sizes)
    below, above = (np.zeros((len(sizes), max_bins - 1), np.uint32) for _ in range(2))
    n_cuts, reach = np.zeros(len(sizes), np.int64), 1.0
    while True:
        is_asked = np.zeros(len(known.keys), np.uint8)
        if not fill_known_bins(known.keys, known.counts, known.is_next, known.starts, sizes, max_bins, reach, below,
                               above, n_cuts, is_asked):  # fmt: skip
            return below, above, n_cuts
        asked = known.intervals(known.keep_open(is_asked))
        contents = _look_up(part, asked, n_threads)
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

    def __init__(self, sizes: Ints) -> None:
        self.first_keys = np.arange(len(sizes) + 1) << FEATURE_BITS
        before_and_last = np.array([0, 1 << 32])
        self.keys: Ints = (self.first_keys[:-1, None] + before_and_last).ravel()
        self.counts = np.column_stack([np.zeros(len(sizes), np.int64), sizes]).ravel()
        self.is_next = np.zeros(len(self.keys), np.uint8)
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
            while at < end and not (is_wide and n_listed == SOME):
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
