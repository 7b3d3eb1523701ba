"""The same cuts as `binning.find_bins` where no one has all values: parts of the documents count theirs.

Bins are filled from below, each with an equal share or more of what is left. Where a bin ends is the lowest key with
enough values up to it. At first all parts count their values by bucket (`part_keys`); sums of that are exact. A bucket
in which a bin may end is an *interval*: the parts cut it into pieces and count again, and list the values of those that
have few. Where a bin ends depends on how often the last values of those before occur, so for what is not known yet the
mean of what is known is assumed, and intervals beside are looked at, too, more in each round. All bins of all features
are sought at the same time: that takes four rounds for values that differ, and some more where many are equal.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any

import numpy as np

from podium.core.array_types import Bytes, Int, Int32s, Ints, UInt32s
from podium.core.compiling import helper, kernel
from podium.core.merging import Counts, Max, Sum
from podium.data.features import Features
from podium.trees.binning import rarest, require_bins
from podium.trees.bins import Bins
from podium.trees.cuts import cuts_between
from podium.trees.keys import KeyColumns, map_columns, values_of
from podium.trees.layout import N
from podium.trees.part_keys import FEW, PIECES, Found, Intervals, PartKeys, choose_buckets, last_keys

FEATURE_BITS = 33  # a key and a feature as one number: feature · 2^33 + key + 1, where −1 stands before all keys
KEY_BITS = (1 << FEATURE_BITS) - 1
_NONE = np.empty(0, np.int64)


def find_bins_in_parts(
    features: Features, max_bins: int, categorical: Iterable[int], n_threads: int | None = None
) -> Generator[Any, Any, Bins]:
    """The bins of all documents, of which these are a part (`podium.core.merging`)."""
    chosen = sorted(set(categorical))
    require_bins(max_bins, chosen, features.shape[1])
    counted: dict[int, Counts] = {}

    def take(columns: KeyColumns, first: int) -> list[KeyColumns]:
        for feature in set(chosen) & set(range(first, first + len(columns.starts))):
            counted[feature] = Counts(*columns.take_distinct(feature - first))
        return [columns]

    part = PartKeys(list(map_columns(take, features, n_threads)), n_threads)
    of_categories, sizes, sampled = yield (
        {feature: counted[feature] for feature in chosen}, Sum(part.sizes), Sum(part.sampled())
    )  # fmt: skip
    below, above, n_cuts = yield from _find_cuts(part, sizes, sampled, max_bins)
    cuts = cuts_between(values_of(below), values_of(above))
    categories, rare = {}, {}
    for feature in chosen:
        values, counts = of_categories[feature]
        is_rare = rarest(counts, max_bins)
        categories[feature] = values[~is_rare]
        if is_rare.any():
            rare[feature] = values[is_rare]
    return Bins(tuple(cuts[k, : n_cuts[k]].copy() for k in range(len(sizes))), categories, rare)


def _find_cuts(
    part: PartKeys, sizes: Ints, sampled: Int32s, max_bins: int
) -> Generator[Any, Any, tuple[UInt32s, UInt32s, Ints]]:
    """For each cut of each feature the highest key below it and the lowest above it; the number of cuts."""
    ranges, n_buckets = choose_buckets(sampled, sizes)
    known = _Known(ranges, n_buckets, sizes, (yield Sum(part.group(ranges, n_buckets))))
    below, above = (np.zeros((len(sizes), max_bins - 1), np.uint32) for _ in range(2))
    n_cuts, reach = np.zeros(len(sizes), np.int64), 1.0
    while True:
        is_asked = np.zeros(len(known.keys), np.uint8)
        if not fill_known_bins(known.keys, known.counts, known.is_next, known.starts, sizes, max_bins, reach, below,
                               above, n_cuts, is_asked):  # fmt: skip
            return below, above, n_cuts
        asked = known.intervals(known.keep_open(is_asked))
        found = part.look_up(asked)
        pieces, (listed, times), horizons = yield Sum(found.pieces), _listed(asked, found), Max(-found.horizons)
        known.add(asked, pieces, listed, times, -horizons)
        reach *= 1.5


def _listed(asked: Intervals, found: Found) -> Counts:
    """The values that are listed, with their features."""
    feature = np.repeat(np.arange(len(asked.starts) - 1), np.diff(asked.starts))
    return Counts((np.repeat(feature, found.n_listed) << FEATURE_BITS) + found.keys + 1, found.times)


class _Known:
    """How many values of each feature are up to some keys.

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
        self.keys, self.counts = np.concatenate([_NONE, *keys]), np.concatenate([_NONE, *totals])
        self.is_next = np.zeros(len(self.keys), np.uint8)
        self.first_keys = np.arange(n_features + 1) << FEATURE_BITS
        self.starts = np.searchsorted(self.keys, self.first_keys)

    def keep_open(self, is_asked: Bytes) -> Ints:
        """Forget features of which nothing is asked; the places of what is asked."""
        n_asked = np.diff(np.append(0, np.cumsum(is_asked, dtype=np.int64))[self.starts])
        kept = np.repeat(n_asked > 0, np.diff(self.starts))
        self.keys, self.counts, self.is_next = self.keys[kept], self.counts[kept], self.is_next[kept]
        self.starts = np.searchsorted(self.keys, self.first_keys)
        return np.flatnonzero(is_asked[kept])

    def intervals(self, asked: Ints) -> Intervals:
        """Those that end at some of the keys."""
        feature = self.keys[asked] >> FEATURE_BITS
        lows, highs = (self.keys[asked - k] - (feature << FEATURE_BITS) - 1 for k in (1, 0))
        is_wide = self.counts[asked] - self.counts[asked - 1] > FEW
        return Intervals(np.searchsorted(asked, self.starts), lows, highs, is_wide.astype(np.uint8))

    def add(self, asked: Intervals, pieces: Int32s, listed: Ints, times: Ints, horizons: Ints) -> None:
        """Take note of what all parts have in some intervals."""
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
        """Add keys, ascending, of which some may be known."""
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
    """Fill the bins of each feature as far as is known; whether intervals must be asked for, of which `is_asked` says.

    An interval is named by the key that it ends at. Row f of `below` and `above` has the keys beside each cut of
    feature f. Around an end that is guessed, so many values are asked for as all guesses before may have missed it by,
    `reach` times.
    """
    asks = False
    for feature in range(len(sizes)):
        first, last = starts[feature], starts[feature + 1]
        if first == last:  # all is known
            continue
        n_used, is_open, miss = _survey(keys, counts, is_next, first, last, sizes[feature] // max_bins)
        n_cuts[feature] = 0
        if n_used <= max_bins and is_open:  # whether there are more values than bins is not known
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
    """Write known keys and more of them in one order, each once; how many there are."""
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
    """Whether a known key is that of the only value of the interval that it ends."""
    return bool(is_next[k] != 0 or keys[k] - keys[k - 1] == 1)


@helper
def _survey(keys: Ints, counts: Ints, is_next: Bytes, first: Int, last: Int, share: Int) -> tuple[Int, bool, float]:
    """Of a feature the intervals that have values; whether one may have several; by how much a bin exceeds its share.

    That is half of how often the last value occurs, in the mean; values that fill a bin by themselves do not count.
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
    """Ask for the interval of k, and for those beside it as far as values of these numbers lie in them."""
    near = k
    while near > first and (near == k or counts[near] >= lowest):
        is_asked[near] |= np.uint8(counts[near] > counts[near - 1] and not _is_value(keys, is_next, near))
        near -= 1
    near = k + 1
    while near < last and counts[near - 1] < highest:
        is_asked[near] |= np.uint8(counts[near] > counts[near - 1] and not _is_value(keys, is_next, near))
        near += 1
