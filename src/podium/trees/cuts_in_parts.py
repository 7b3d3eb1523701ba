"""The same cuts as `binning.find_bins` where no one has all values: parts of the documents answer how many lie below.

Bins are filled from below, each with an equal share or more of what is left. Where a bin ends is the lowest key with
enough keys up to it. So each part sorts its keys, and says how many are up to some *probes*; sums of that are exact.
Between two probes where a bin ends, more probes follow. When few values are left between them, the next keys above the
lower one are listed with their counts: where a bin ends depends on how often the last values of those before occur, so
a list serves for whatever comes of that. All bins of all features are sought at the same time: ten rounds or so.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.core.merging import Counts, Max, Sum
from podium.data.features import Features
from podium.trees.binning import rarest, require_bins
from podium.trees.bins import Bins
from podium.trees.cuts import cuts_between
from podium.trees.keys import ZERO_KEY, KeyColumns, Keys, map_columns, values_of

Ints = NDArray[np.int64]
N_KEYS = 1 << 32
NONE = np.empty(0, np.int64)
FIRST_PROBES, MORE_PROBES = 1 << 12, 16  # into which the range of all keys is cut at first, and each part of it then
FEW = 1 << 12  # different values that are counted one by one
NEAR = 64  # values between two probes from which on the next keys are listed instead: so many
NEXT = 192  # of them, for what follows depends on how often each occurs


class SortedColumn(NamedTuple):
    """The keys of a feature, ascending, and the number of zeros, which have none."""

    keys: Keys
    n_zeros: int

    @property
    def size(self) -> int:
        """How many values there are."""
        return len(self.keys) + self.n_zeros

    def up_to(self, probes: Ints) -> Ints:
        """How many values have a key that is not above each probe."""
        below = np.searchsorted(self.keys, np.minimum(probes, N_KEYS - 1).astype(np.uint32), side="right")
        return below + np.where(probes >= ZERO_KEY, self.n_zeros, 0)

    def up_from(self, keys: Ints) -> Ints:
        """The lowest key above each of some keys; 2^32 where there is none."""
        padded = np.append(self.keys.astype(np.int64), N_KEYS)
        found = padded[np.searchsorted(self.keys, keys.astype(np.uint32), side="right")]
        return np.where((keys < ZERO_KEY) & (self.n_zeros > 0), np.minimum(found, int(ZERO_KEY)), found)

    def next_keys(self, starts: Ints) -> tuple[Ints, Ints, Ints]:
        """The next different keys above each of some keys, all in one list, and how often each occurs.

        Also the horizon of each start: up to there all keys are in the list.
        """
        if not len(starts):
            return starts, starts, starts
        keys, counts = self.distinct
        first = np.searchsorted(keys, starts, side="right")
        last = first + NEXT
        horizons = np.where(last > len(keys), N_KEYS, keys[np.minimum(last, len(keys)) - 1])
        chosen = np.zeros(len(keys) + 1, np.int64)
        np.add.at(chosen, first, 1)
        np.add.at(chosen, np.minimum(last, len(keys)), -1)
        is_listed = np.cumsum(chosen[:-1]) > 0
        return keys[is_listed], counts[is_listed], horizons

    @property
    def distinct(self) -> tuple[Ints, Ints]:
        """The different keys, that of zero included, and how often each occurs."""
        starts = np.flatnonzero(np.append(True, self.keys[1:] != self.keys[:-1])) if len(self.keys) else NONE
        keys, counts = self.keys[starts].astype(np.int64), np.diff(starts, append=len(self.keys))
        if self.n_zeros:
            place = int(np.searchsorted(keys, int(ZERO_KEY)))
            keys, counts = np.insert(keys, place, int(ZERO_KEY)), np.insert(counts, place, self.n_zeros)
        return keys, counts

    def few(self) -> Counts:
        """The different keys and how often each occurs; the first of them where there are too many to be counted."""
        keys, counts = self.distinct
        return Counts(keys[: FEW + 1], counts[: FEW + 1])


def find_bins_in_parts(
    features: Features, max_bins: int, categorical: Iterable[int], n_threads: int | None = None
) -> Generator[Any, Any, Bins]:
    """The bins of all documents, of which these are a part (`podium.core.merging`)."""
    chosen = sorted(set(categorical))
    require_bins(max_bins, chosen, features.shape[1])
    counted: dict[int, Counts] = {}

    def sort(columns: KeyColumns, first: int) -> list[SortedColumn]:
        for feature in set(chosen) & set(range(first, first + len(columns.starts))):
            counted[feature] = Counts(*columns.take_distinct(feature - first))
        slices = (slice(start, start + n) for start, n in zip(columns.starts, columns.n_keys, strict=True))
        return [SortedColumn(np.sort(columns.keys[s]), int(z)) for s, z in zip(slices, columns.n_zeros, strict=True)]

    sorted_columns = list(map_columns(sort, features, n_threads))
    few, sizes, of_categories = yield (
        [column.few() for column in sorted_columns],
        Sum(np.array([column.size for column in sorted_columns], np.int64)),
        {feature: counted[feature] for feature in chosen},
    )
    categories, rare = {}, {}
    for feature in chosen:
        values, counts = of_categories[feature]
        is_rare = rarest(counts, max_bins)
        categories[feature] = values[~is_rare]
        if is_rare.any():
            rare[feature] = values[is_rare]
    is_many = [len(keys) > FEW for keys, _ in few]
    many = [sorted_columns[k] for k in np.flatnonzero(is_many)]
    ends = iter((yield from _ends_of_bins(many, sizes[is_many], max_bins)))
    below = [next(ends) if is_many[k] else ends_of_few(few[k][0], few[k][1], max_bins) for k in range(len(few))]
    nearest = yield [Max(-column.up_from(keys)) for column, keys in zip(sorted_columns, below, strict=True)]
    above = [-of_feature for of_feature in nearest]
    cuts = (
        cuts_between(values_of(low.astype(np.uint32)), values_of(high.astype(np.uint32)))
        for low, high in zip(below, above, strict=True)
    )
    return Bins(tuple(cuts), categories, rare)


def ends_of_few(keys: Ints, counts: Ints, max_bins: int) -> Ints:
    """The highest key of each bin but the last, from all different keys and how often each occurs."""
    if len(keys) <= max_bins:
        return keys[:-1]
    totals, taken, ends = np.cumsum(counts), 0, list[int]()
    for left in range(max_bins, 1, -1):
        place = int(np.searchsorted(totals, taken + max(1, (int(totals[-1]) - taken) // left)))
        taken = int(totals[place])
        if taken >= totals[-1]:
            break
        ends.append(int(keys[place]))
    return np.array(ends, np.int64)


class _Search:
    """How many values of a feature are up to some keys; the ends of bins are sought among them.

    Attributes:
        keys, counts: keys, ascending, and how many values are up to each.
        is_next: whether no value lies between the key before and this one.
        probes: keys whose counts must be known next,
        starts: and keys above which the next ones must be.

    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.keys, self.counts, self.is_next = np.array([-1]), np.array([0]), np.array([True])
        self.probes = np.arange(1, FIRST_PROBES + 1) * (N_KEYS // FIRST_PROBES) - 1
        self.starts: Ints = np.empty(0, np.int64)

    @property
    def is_open(self) -> bool:
        """Whether something must still be known."""
        return bool(len(self.probes) or len(self.starts))

    def add(self, counts: Ints, next_keys: Ints, next_counts: Ints, horizons: Ints) -> None:
        """Take note of the counts of the probes, and of the keys above the starts, up to a horizon each."""
        keys, totals = [self.keys, self.probes], [self.counts, counts]
        is_next = [self.is_next, np.zeros(len(counts), bool)]
        before = self.counts[np.searchsorted(self.keys, self.starts)]
        first = np.searchsorted(next_keys, self.starts, side="right")
        last = np.searchsorted(next_keys, horizons, side="right")
        running = np.concatenate([[0], np.cumsum(next_counts)])
        for start, a, b in zip(before.tolist(), first.tolist(), last.tolist(), strict=True):
            keys.append(next_keys[a:b])
            totals.append(start + running[a + 1 : b + 1] - running[a])
            is_next.append(np.ones(b - a, bool))
        together = np.concatenate(keys)
        self.keys, place, group = np.unique(together, return_index=True, return_inverse=True)
        self.counts, self.is_next = np.concatenate(totals)[place], np.zeros(len(self.keys), bool)
        np.logical_or.at(self.is_next, group, np.concatenate(is_next))

    def ends(self, max_bins: int) -> Ints:
        """The highest key of each bin but the last; what else must be known is in `probes` and `starts` then."""
        ends, wide, near, taken = list[int](), set[int](), set[int](), 0
        for left in range(max_bins, 1, -1):
            target = taken + max(1, (self.size - taken) // left)
            place = int(np.searchsorted(self.counts, target))
            if self.is_next[place] or self.keys[place] - self.keys[place - 1] == 1:
                taken = int(self.counts[place])
                ends.append(int(self.keys[place]))
            else:
                (near if self.counts[place] - self.counts[place - 1] <= NEAR else wide).add(place)
                taken = target  # as if no two values were equal
            if taken >= self.size:
                del ends[-1:]  # behind the last value there is no cut
                break
        pieces = [np.empty(0, np.int64)]
        for place in sorted(wide):
            low, high = int(self.keys[place - 1]), int(self.keys[place])
            inner = low + (high - low) * np.arange(1, MORE_PROBES) // MORE_PROBES
            pieces.append(np.unique(inner[(inner > low) & (inner < high)]))
        self.probes, self.starts = np.concatenate(pieces), self.keys[np.array(sorted(near), np.int64) - 1]
        return np.array(ends, np.int64)


def _ends_of_bins(columns: list[SortedColumn], sizes: Ints, max_bins: int) -> Generator[Any, Any, list[Ints]]:
    """The highest key of each bin but the last, for features with many different values."""
    searches = [_Search(int(size)) for size in sizes]
    ends: list[Ints] = [np.empty(0, np.int64) for _ in columns]
    open_ones = list(range(len(columns)))
    while open_ones:
        found = yield [_known(columns[k], searches[k]) for k in open_ones]
        for k, (counts, (next_keys, next_counts), horizons) in zip(open_ones, found, strict=True):
            searches[k].add(counts, next_keys, next_counts, -horizons)
            ends[k] = searches[k].ends(max_bins)
        open_ones = [k for k in open_ones if searches[k].is_open]
    return ends


def _known(column: SortedColumn, search: _Search) -> tuple[Sum, Counts, Max]:
    """What a part knows of the keys that are asked for."""
    keys, counts, horizons = column.next_keys(search.starts)
    return Sum(column.up_to(search.probes)), Counts(keys, counts), Max(-horizons)
