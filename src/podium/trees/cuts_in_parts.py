"""The same cuts as `binning.find_bins` where no one has all values: parts of the documents answer how many lie below.

Bins are filled from below, each with an equal share or more of what is left. Where a bin ends is the lowest key with
enough keys up to it. So each part sorts its keys, and says how many are up to some *probes*; sums of that are exact.
Between two probes where a bin ends, more probes follow, until they are neighbours. Bins that follow are guessed
meanwhile, so that all of them are found at the same time: eight rounds or so.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.core.merging import Counts, Max, Sum, Union, lowest
from podium.data.features import Features
from podium.trees.binning import Bins, rarest, require_bins
from podium.trees.cuts import cuts_between
from podium.trees.keys import ZERO_KEY, KeyColumns, Keys, map_columns, values_of

Ints = NDArray[np.int64]
N_KEYS = 1 << 32
FIRST_PROBES, MORE_PROBES = 1 << 12, 16  # into which the range of all keys is cut at first, and each part of it then


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

    def next_key(self, keys: Ints) -> Ints:
        """The lowest key above each of some keys; 2^32 where there is none."""
        padded = np.append(self.keys.astype(np.int64), N_KEYS)
        found = padded[np.searchsorted(self.keys, keys.astype(np.uint32), side="right")]
        return np.where((keys < ZERO_KEY) & (self.n_zeros > 0), np.minimum(found, int(ZERO_KEY)), found)

    def first_keys(self, most: int) -> Keys:
        """The different keys, that of zero included: so many of them, the highest one among them."""
        is_first = np.ones(len(self.keys), bool)
        is_first[1:] = self.keys[1:] != self.keys[:-1]
        keys = self.keys[is_first]
        if self.n_zeros:
            keys = np.insert(keys, np.searchsorted(keys, ZERO_KEY), ZERO_KEY)
        few: Keys = lowest(keys, most)
        return few


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
    first_keys, sizes, of_categories = yield (
        [Union(column.first_keys(max_bins + 1), max_bins + 1) for column in sorted_columns],
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
    below: list[Ints] = [keys[:-1].astype(np.int64) for keys in first_keys]
    above: list[Ints] = [keys[1:].astype(np.int64) for keys in first_keys]
    many = [k for k, keys in enumerate(first_keys) if len(keys) > max_bins]
    found = yield from _ends_of_bins([sorted_columns[k] for k in many], sizes[many], max_bins)
    negative = [-sorted_columns[k].next_key(ends) for k, ends in zip(many, found, strict=True)]
    highest = yield [Max(of_feature) for of_feature in negative]
    for k, ends, next_keys in zip(many, found, highest, strict=True):
        below[k], above[k] = ends, -next_keys
    cuts = (
        cuts_between(values_of(low.astype(np.uint32)), values_of(high.astype(np.uint32)))
        for low, high in zip(below, above, strict=True)
    )
    return Bins(tuple(cuts), categories, rare)


class _Probes:
    """Keys of a feature and how many values are up to each; the ends of bins are sought between them."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.keys, self.counts = np.array([-1]), np.array([0])
        self.new = np.arange(1, FIRST_PROBES + 1) * (N_KEYS // FIRST_PROBES) - 1

    def add(self, counts: Ints) -> None:
        """Take note of what the new probes gave."""
        keys, counts = np.concatenate([self.keys, self.new]), np.concatenate([self.counts, counts])
        order = np.argsort(keys)
        self.keys, self.counts = keys[order], counts[order]

    def ends(self, max_bins: int) -> Ints:
        """The highest key of each bin but the last, as far as it is known; then `new` has what else must be known."""
        ends, unknown, taken = list[int](), set[int](), 0
        for left in range(max_bins, 1, -1):
            target = taken + max(1, (self.size - taken) // left)
            place = int(np.searchsorted(self.counts, target))
            if self.keys[place] - self.keys[place - 1] > 1:
                unknown.add(place)
                taken = target  # as if no two values were equal
            else:
                taken = int(self.counts[place])
                ends.append(int(self.keys[place]))
            if taken >= self.size:
                ends = ends if unknown else ends[:-1]
                break
        pieces = [np.empty(0, np.int64)]
        for place in sorted(unknown):
            low, high = int(self.keys[place - 1]), int(self.keys[place])
            inner = low + (high - low) * np.arange(1, MORE_PROBES) // MORE_PROBES
            pieces.append(np.unique(inner[(inner > low) & (inner < high)]))
        self.new = np.concatenate(pieces)
        return np.array(ends, np.int64)


def _ends_of_bins(columns: list[SortedColumn], sizes: Ints, max_bins: int) -> Generator[Any, Any, list[Ints]]:
    """The highest key of each bin but the last, for features with more different values than bins."""
    searches = [_Probes(int(size)) for size in sizes]
    ends: list[Ints] = [np.empty(0, np.int64) for _ in columns]
    open_ones = list(range(len(columns)))
    while open_ones:
        counts = yield [Sum(columns[k].up_to(searches[k].new)) for k in open_ones]
        for k, of_feature in zip(open_ones, counts, strict=True):
            searches[k].add(of_feature)
            ends[k] = searches[k].ends(max_bins)
        open_ones = [k for k in open_ones if len(searches[k].new)]
    return ends
