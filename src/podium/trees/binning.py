"""Turn features into small integers, cut at exact quantiles of their values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Bools, Bytes, Float32s, Int, Int32s, Ints, UInt64s
from podium.core.bitwise import MAX_LEVELS, WORD, find_ranks, levels_for, pivots_of
from podium.core.compiling import helper, kernel
from podium.core.dense_rows import COLUMN_STRIDE, DenseRows, as_rows, load_columns, room_for_columns
from podium.core.intrinsics import copy_16_bytes, inlined
from podium.core.simd import LANES, all_lanes, count_lanes, load_lanes
from podium.core.threads import map_threads, n_threads_for, ranges
from podium.core.validation import require_whole
from podium.data.features import Features
from podium.data.sparse import is_sparse
from podium.errors import DataError
from podium.trees.bin_matrix import BinMatrix, FeatureLayout, bin_counts, build_bin_matrix, lay_out
from podium.trees.cuts import KeyColumns, find_cuts, map_columns
from podium.trees.growth_types import MISSING, NEAR, N, U

MAX_BINS = 255  # a bin is a byte, and bin 0 is for missing values


@dataclass(frozen=True)
class Bins:
    """The cuts of each feature: bin b of a feature holds the values x with cuts[b−2] < x ≤ cuts[b−1], b from 1.

    Attributes:
        cuts: for each feature the ascending borders between its bins (empty for a constant feature).
        categories: for each categorical feature the ascending values that have their own bin; bin b holds value b − 1.
        rare: for each categorical feature with more values than bins, the rarest values, ascending. They share the last
            bin.

    """

    cuts: tuple[Float32s, ...]
    categories: dict[int, Float32s]
    rare: dict[int, Float32s] = field(default_factory=dict)

    @property
    def n_features(self) -> int:
        """The number of features."""
        return len(self.cuts)

    @property
    def counts(self) -> Ints:
        """The number of bins of each feature, without that of missing values."""
        return np.array(
            [
                len(self.categories[k]) + (k in self.rare) if k in self.categories else len(cuts) + 1
                for k, cuts in enumerate(self.cuts)
            ],
            np.int64,
        )

    def equal(self, other: Bins) -> bool:
        """Return whether both assign all values to the same bins."""
        return all(map(_have_equal_values, self._tables(), other._tables()))

    def _tables(self) -> tuple[dict[int, Float32s], ...]:
        return dict(enumerate(self.cuts)), self.categories, self.rare

    def of_features(self, first: int, last: int) -> Bins:
        """Return the bins of the features `first` … `last` − 1."""
        part = [{k - first: v for k, v in table.items() if first <= k < last} for table in self._tables()[1:]]
        return Bins(self.cuts[first:last], *part)

    @staticmethod
    def joined(parts: Iterable[Bins]) -> Bins:
        """Join the bins of consecutive features."""
        cuts: list[Float32s] = []
        tables: tuple[dict[int, Float32s], ...] = ({}, {})
        for part in parts:
            for table, addition in zip(tables, part._tables()[1:], strict=True):
                table |= {len(cuts) + k: values for k, values in addition.items()}
            cuts += part.cuts
        return Bins(tuple(cuts), *tables)


def _have_equal_values(table: dict[int, Float32s], other: dict[int, Float32s]) -> bool:
    return table.keys() == other.keys() and all(np.array_equal(values, other[k]) for k, values in table.items())


@dataclass(frozen=True)
class BinnedFeatures:
    """The bins of all documents, column by column.

    Attributes:
        bins: how the features are cut.
        n_rows: the number of documents.
        columns: the bins; `columns[feature * n_rows + row]` is that of a row.

    """

    bins: Bins
    n_rows: int
    columns: Bytes

    def column(self, feature: int) -> Bytes:
        """Return a view of the bins of one feature."""
        return self.columns[feature * self.n_rows : (feature + 1) * self.n_rows]

    @cached_property
    def features_with_missing(self) -> list[int]:
        """The numbers of the features that have a missing value, ascending."""
        lowest = self.columns.reshape(self.bins.n_features, self.n_rows).min(axis=1, initial=MAX_BINS)
        return np.flatnonzero(lowest == MISSING).tolist()

    @cached_property
    def layout(self) -> FeatureLayout:
        """Where the bins and histogram cells of each feature lie in memory."""
        counts = bin_counts(self.columns, self.n_rows, self.bins.n_features)
        return lay_out(counts, self.n_rows, self.bins.counts)

    @cached_property
    def matrix(self) -> BinMatrix:
        """The bins in the layout for growth; runs on the same documents share them."""
        return build_bin_matrix(self.columns, self.n_rows, self.layout)

    @cached_property
    def rows_by_entries(self) -> Int32s | None:
        """The rows in the order of the lengths of their lists of sparse cells; None if that order does not help.

        Neighbours then have lists of the same length, so that the processor predicts the end of a list. None without
        sparse features, or if the dense rows do not fit a near cache.
        """
        matrix, n_groups = self.matrix, max(len(self.layout.groups) - 1, 0)
        if not n_groups or self.n_rows * matrix.width > NEAR:
            return None
        starts = matrix.starts.reshape(n_groups, self.n_rows + 1)
        return np.argsort((starts[:, 1:] - starts[:, :-1]).sum(axis=0), kind="stable").astype(np.int32)

    def with_matrix(self, layout: FeatureLayout, matrix: BinMatrix) -> BinnedFeatures:
        """Return the same bins with a layout that was computed before."""
        binned = BinnedFeatures(self.bins, self.n_rows, self.columns)
        binned.__dict__.update(layout=layout, matrix=matrix)  # where cached properties keep their values
        return binned

    def take(self, rows: Ints) -> BinnedFeatures:
        """Return the bins of some documents."""
        columns = self.columns.reshape(self.bins.n_features, self.n_rows)
        return BinnedFeatures(self.bins, len(rows), columns[:, rows].reshape(-1))

    def representatives(self, first: int, last: int) -> Float32s:
        """Return rows of values that represent the bins: trees that split at cuts give them the original scores."""
        rows = np.empty((last - first, self.bins.n_features), np.float32)
        for feature, values in enumerate(self._values_of_bins):
            rows[:, feature] = values[self.column(feature)[first:last]]
        return rows

    @cached_property
    def _values_of_bins(self) -> list[Float32s]:
        """For each feature: NaN, then the highest value or the category of each bin."""
        highest = [np.append(cuts, np.float32(np.inf)) for cuts in self.bins.cuts]
        for feature, values in self.bins.categories.items():
            highest[feature] = np.append(values, self.bins.rare.get(feature, values)[:1])
        return [np.append(np.float32(np.nan), values) for values in highest]


MIN_PARALLEL_VALUES = 1 << 18  # binning fewer takes less time than starting threads
ONES, UPPER_BITS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)  # 1, and the upper bit, of each byte


def find_bins(
    features: Features, max_bins: int = MAX_BINS, categorical: Iterable[int] = (), n_threads: int | None = None
) -> Bins:
    """Choose the cuts of each feature from the counts of its distinct values.

    A feature with no more distinct values than bins gets a bin per value. Otherwise bins are filled from below. Each
    gets at least an equal share of the remaining documents, and all documents of a value are in one bin, so a frequent
    value gets its own bin. If a categorical feature has more values than bins, the rarest values share a bin.
    Everything follows from integer counts, so neither row order nor threads matter.

    Args:
        features: the features of the documents, dense or as compressed sparse rows.
        max_bins: the maximum number of bins of a feature, not counting the bin of missing values; at most 255.
        categorical: the numbers of the categorical features.
        n_threads: the number of threads, all cores by default.

    """
    categorical_features = set(categorical)
    require_bins(max_bins, categorical_features, features.shape[1])
    categories: dict[int, Float32s] = {}
    rare: dict[int, Float32s] = {}

    def cuts_of(columns: KeyColumns, first: int) -> list[Float32s]:
        for feature in categorical_features & set(range(first, first + len(columns.starts))):
            add_categories(feature, *columns.take_distinct(feature - first), max_bins, categories, rare)
        return find_cuts(columns, max_bins)

    return Bins(tuple(map_columns(cuts_of, features, n_threads)), categories, rare)


def require_bins(max_bins: int, categorical: Iterable[int], n_features: int) -> None:
    """Raise if `max_bins` or a categorical feature is out of range."""
    require_whole("max_bins", max_bins, 2)
    if max_bins > MAX_BINS:
        raise DataError(f"max_bins must be between 2 and {MAX_BINS}, but is {max_bins}")
    if not set(categorical) <= set(range(n_features)):
        raise DataError(f"categorical features must be numbers from 0 to {n_features - 1}")


def add_categories(
    feature: int, values: Float32s, counts: Ints, max_bins: int, categories: dict[int, Float32s],
    rare: dict[int, Float32s],
) -> None:  # fmt: skip
    """Add the values of a categorical feature to `categories`, or, if there are too many, the rarest to `rare`.

    Of equally rare values the highest go to `rare`.
    """
    is_rare = np.zeros(len(counts), bool)
    if len(counts) > max_bins:
        is_rare[np.argsort(-counts, kind="stable")[max_bins - 1 :]] = True
        rare[feature] = values[is_rare]
    categories[feature] = values[~is_rare]


def bin_features(
    features: Features, bins: Bins, n_threads: int | None = None, columns: Bytes | None = None
) -> BinnedFeatures:
    """Bin documents.

    Args:
        features: the features of the documents, dense or as compressed sparse rows.
        bins: how to cut them.
        n_threads: the number of threads, all cores by default.
        columns: where to write the bins, for example a mapped file; a new array by default.

    """
    if features.shape[1] != bins.n_features:
        raise DataError(f"the bins are for {bins.n_features} features, but there are {features.shape[1]}")
    n = features.shape[0]
    if columns is None:
        columns = np.empty(n * bins.n_features, np.uint8)  # NumPy asks for large pages if it does not fill the array
    if is_sparse(features):
        parts, table = (features.indptr, features.indices, features.data), _cut_table(bins)
        zero_bins = _bins_of_zero(table).astype(np.uint8)

        def work(bounds: tuple[int, int]) -> None:
            bin_sparse_rows(*parts, *bounds, table, zero_bins, n, columns)
    else:
        rows, searches = as_rows(features), _searches(bins)

        def work(bounds: tuple[int, int]) -> None:
            words = np.zeros(WORD // 8, np.uint64)
            bin_rows(rows, *bounds, searches, n, columns, room_for_columns(), words, words.view(np.int8))

    threads = n_threads_for(columns.size, n_threads, MIN_PARALLEL_VALUES)
    for _ in map_threads(work, ranges(n, threads), threads):
        pass
    binned = BinnedFeatures(bins, n, columns)
    for feature, values in bins.rare.items():
        column = features[:, [feature]].toarray().ravel() if is_sparse(features) else features[:, feature]
        binned.column(feature)[np.isin(column, values)] = len(bins.categories[feature]) + 1
    return binned


class BinSearches(NamedTuple):
    """For each feature, the search for values among its cuts or categories."""

    pivots: Float32s  # in the order in which `podium.core.bitwise.find_ranks` reads them
    # table, n_levels: for each feature, where its pivots begin, and the number of levels
    table: Ints
    n_levels: Ints
    category: Ints  # the row of `categories` of each feature, −1 for none
    categories: Float32s  # in each row the categories, ascending, then NaN, which no value equals


def _searches(bins: Bins) -> BinSearches:
    categories = np.full((len(bins.categories), MAX_BINS + 1), np.nan, np.float32)
    category = np.full(bins.n_features, -1, np.int64)
    # The highest rank is for missing values.
    n_levels = np.array([levels_for(len(cuts) + 1) for cuts in bins.cuts], np.int64)
    for row, (feature, values) in enumerate(bins.categories.items()):
        category[feature], n_levels[feature] = row, levels_for(len(values))
        categories[row, : len(values)] = values
    tables = [
        pivots_of(bins.categories.get(feature, cuts), int(n_levels[feature])) for feature, cuts in enumerate(bins.cuts)
    ]
    starts = np.cumsum([0, *map(len, tables)])[:-1]
    return BinSearches(np.concatenate([np.empty(0, np.float32), *tables]), starts, n_levels, category, categories)


class CutTable(NamedTuple):
    """The cuts or categories of all features, to search for one value at a time."""

    # 256 for each feature: its cuts, then infinities, which no value exceeds; or its categories, then NaN, which no
    # value equals
    cuts: Float32s
    pivots: Float32s  # every 16th cut
    is_category: Bools  # of each feature


def _cut_table(bins: Bins) -> CutTable:
    cuts = np.empty((bins.n_features, LANES**2), np.float32)
    is_category = np.zeros(bins.n_features, bool)
    for feature in range(bins.n_features):
        values = bins.categories.get(feature, bins.cuts[feature])
        is_category[feature] = feature in bins.categories
        cuts[feature, len(values) :] = np.nan if is_category[feature] else np.inf
        cuts[feature, : len(values)] = values
    return CutTable(cuts.ravel(), cuts[:, LANES - 1 :: LANES].ravel(), is_category)


def _bins_of_zero(table: CutTable) -> Ints:
    """Return the bin of the value 0 for each feature."""
    cuts = table.cuts.reshape(-1, LANES**2)
    n_below = (cuts < 0).sum(axis=1)
    is_known = ~table.is_category | (cuts[np.arange(len(cuts)), n_below] == 0)
    return np.where(is_known, n_below + 1, MISSING)


# --- kernels


@kernel
def bin_rows(
    rows: DenseRows, first: Int, last: Int, searches: BinSearches, n: Int, bins: Bytes, columns: Float32s,
    words: UInt64s, ranks: NDArray[np.int8],
) -> None:  # fmt: skip
    """Bin the rows `first` … `last` − 1 of n, 64 rows at a time, column by column.

    `columns` (`room_for_columns`), `words` and `ranks` are scratch memory. The last two are the same memory, with a
    byte for each row.
    """
    n_features = len(searches.table)
    for start in range(first, last, WORD):
        n_rows, feature = min(WORD, last - start), 0
        while feature < n_features:
            column, n_columns = load_columns(rows, start, last - 1, feature, columns)
            while feature < min(n_features, column + n_columns):
                _bin_column(columns, (feature - column) * COLUMN_STRIDE, searches, feature, words, ranks)
                if n_rows == WORD:
                    for k in range(0, WORD, 16):
                        copy_16_bytes(bins, feature * n + start + k, ranks, k)
                else:
                    for k in range(n_rows):
                        bins[U(feature * n + start + k)] = np.uint8(ranks[U(k)])
                feature += 1


@helper
def _bin_column(
    values: Float32s, at: Int, searches: BinSearches, feature: Int, words: UInt64s,
    ranks: NDArray[np.int8],
) -> None:  # fmt: skip
    """Bin 64 values of a feature: 1 + the number of cuts below the value, or 1 + the index of the category.

    NaN and unknown categories get bin 0: NaN has the highest rank, and adding 1 wraps it to 0. `words` and `ranks` are
    the same memory, so that eight bytes are processed as one word. The compiler would process them one by one.
    """
    n_levels, category = searches.n_levels[feature], searches.category[feature]
    find_ranks(values, at, searches.pivots, searches.table[feature], n_levels, ranks, N(0), N(127))
    if category < 0:
        shift, mask = np.uint64(MAX_LEVELS - n_levels), np.uint64((1 << n_levels) - 1) * ONES
        for k in range(WORD // 8):
            rank = ((words[U(k)] ^ UPPER_BITS) >> shift) & mask
            words[U(k)] = (((rank & ~UPPER_BITS) + ONES) ^ (rank & UPPER_BITS)) & mask
        return
    for k in range(WORD):
        number = (np.int64(ranks[U(k)]) + 128) >> (MAX_LEVELS - n_levels)
        is_known = searches.categories[category, U(number)] == values[U(at + k)]
        ranks[U(k)] = number + 1 if is_known else MISSING


@kernel
def bin_sparse_rows(
    indptr: Int32s, indices: Int32s, data: Float32s, first: Int, last: Int,
    table: CutTable, zero_bins: Bytes, n: Int, bins: Bytes,
) -> None:  # fmt: skip
    """Bin compressed sparse rows; values that are not stored get the bins `zero_bins`."""
    for feature in range(len(zero_bins)):
        bins[feature * n + first : feature * n + last] = zero_bins[feature]
    for row in range(first, last):
        for k in range(indptr[row], indptr[row + 1]):
            feature, value = N(indices[k]), data[k]
            place = _count_below(value, table, feature)
            is_known = value == value and (not table.is_category[feature] or table.cuts[U(place)] == value)
            bins[U(feature * n + row)] = np.uint8(place + 1 if is_known else MISSING)


@helper
def _count_below(value: Any, table: CutTable, feature: Int) -> Int:
    """Return the index of the first cut of a feature that is not below a value.

    Compare the value with every 16th cut, then with the 16 cuts of one block. That reads two cache lines, where a
    binary search reads eight, and comparisons do not wait for each other.
    """
    inlined()
    lanes = all_lanes(value)
    block = feature * LANES + count_lanes(load_lanes(table.pivots, feature * LANES) < lanes)
    return block * LANES + count_lanes(load_lanes(table.cuts, block * LANES) < lanes)
