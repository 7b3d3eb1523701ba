"""Binning: features as small integers, cut at quantiles of their values, exactly, whatever the order of the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.core.compiling import helper, kernel
from podium.core.intrinsics import borrowed
from podium.core.threads import map_threads, ranges
from podium.core.validation import require_whole
from podium.data.features import Features
from podium.data.sparse import is_sparse
from podium.errors import DataError
from podium.trees.feature_layout import FeatureLayout, bin_matrix, lay_out
from podium.trees.layout import BLOCK, MISSING, BinMatrix, Bytes, Int, Ints, U

MAX_BINS = 255  # bins of values; bin 0 is for missing ones, and a bin is a byte
MAX_COPIED = 1 << 24  # values that are copied at once to be sorted, on each thread


@dataclass(frozen=True)
class Bins:
    """How each feature is cut: bin b of a feature holds the values x with cuts[b−2] < x ≤ cuts[b−1], b from 1.

    Attributes:
        cuts: for each feature the ascending borders between its bins (empty for a constant feature).
        categories: for each categorical feature, by number, its values that have a bin to themselves, ascending; bin b
            is the value b − 1.
        rare: for each categorical feature with more values than bins, the rarest, ascending: they share the last bin.

    Example:
        >>> import numpy as np
        >>> from podium.trees import find_bins
        >>> bins = find_bins(np.array([[1.0, 3.0], [2.0, 7.0], [2.0, 3.0]], np.float32), categorical=[1])
        >>> bins.cuts[0].tolist(), bins.categories[1].tolist(), bins.counts.tolist()
        ([1.5], [3.0, 7.0], [2, 2])

    """

    cuts: tuple[NDArray[np.float32], ...]
    categories: dict[int, NDArray[np.float32]]
    rare: dict[int, NDArray[np.float32]] = field(default_factory=dict)

    @property
    def n_features(self) -> int:
        """The number of features."""
        return len(self.cuts)

    @property
    def counts(self) -> NDArray[np.int64]:
        """The number of bins of each feature, apart from that of missing values."""
        return np.array(
            [
                len(self.categories[k]) + (k in self.rare) if k in self.categories else len(cuts) + 1
                for k, cuts in enumerate(self.cuts)
            ],
            np.int64,
        )


@dataclass(frozen=True)
class BinnedFeatures:
    """The bins of all documents, row by row.

    Attributes:
        bins: how the features are cut.
        n_rows: the number of documents.
        flat: `flat[row * width + feature]` is a bin; a few bytes more follow the last row.

    Example:
        >>> import numpy as np
        >>> from podium.trees import bin_features, find_bins
        >>> x = np.array([[1.0, 3.0], [2.0, 7.0]], np.float32)
        >>> binned = bin_features(x, find_bins(x))
        >>> binned.n_rows, binned.width, binned.column(1).tolist()
        (2, 16, [1, 2])

    """

    bins: Bins
    n_rows: int
    flat: NDArray[np.uint8]

    @property
    def width(self) -> int:
        """Bytes of a row: the number of features, up to the next multiple of 16."""
        return -(-self.bins.n_features // BLOCK) * BLOCK

    def column(self, feature: int) -> NDArray[np.uint8]:
        """The bins of one feature (a view)."""
        return self._rows[:, feature]

    @cached_property
    def features_with_missing(self) -> list[int]:
        """The numbers of the features that have a missing value, ascending."""
        lowest = self._rows.min(axis=0, initial=MAX_BINS)[: self.bins.n_features]
        return np.flatnonzero(lowest == MISSING).tolist()

    @cached_property
    def columns(self) -> NDArray[np.uint8]:
        """The bins column by column: `columns[feature * n_rows + row]`."""
        n_features = self.bins.n_features
        columns = np.empty(self.n_rows * n_features, np.uint8)
        for _ in map_threads(
            lambda piece: to_columns(self.flat, self.n_rows, self.width, n_features, *piece, columns),
            ranges(self.n_rows),
        ):
            pass
        return columns

    @cached_property
    def layout(self) -> FeatureLayout:
        """Where growth has the bins and cells of each feature."""
        return lay_out(self.columns, self.n_rows, self.bins.counts)

    @cached_property
    def matrix(self) -> BinMatrix:
        """The bins as growth reads them; runs on the same documents share it."""
        return bin_matrix(self.columns, self.n_rows, self.layout)

    @property
    def _rows(self) -> NDArray[np.uint8]:
        return self.flat[: self.n_rows * self.width].reshape(self.n_rows, self.width)


def find_bins(
    features: Features, max_bins: int = MAX_BINS, categorical: Iterable[int] = (), n_threads: int | None = None
) -> Bins:
    """Choose the cuts of each feature from the counts of its distinct values.

    A feature with no more distinct values than bins gets one for each. Otherwise bins are filled from below with as
    many documents as an equal share of what is left, all documents of a value in one bin: a frequent value has a bin to
    itself. Of a categorical feature with more values than bins the rarest share one. Everything follows from integer
    counts, so neither row order nor threads matter.

    Args:
        features: of the documents, dense or compressed sparse rows.
        max_bins: of a feature, besides the one for missing values; 255 at most.
        categorical: numbers of the categorical features.
        n_threads: all cores by default.

    Example:
        >>> import numpy as np
        >>> from podium.trees import find_bins
        >>> find_bins(np.array([[1.0], [2.0], [2.0], [4.0]], np.float32)).cuts[0].tolist()
        [1.5, 3.0]

    """
    require_whole("max_bins", max_bins, 2)
    if max_bins > MAX_BINS:
        raise DataError(f"max_bins must be between 2 and {MAX_BINS}, but is {max_bins}")
    chosen = set(categorical)
    if not chosen <= set(range(features.shape[1])):
        raise DataError(f"categorical features are named by number, 0 to {features.shape[1] - 1}")

    categories: dict[int, NDArray[np.float32]] = {}
    rare: dict[int, NDArray[np.float32]] = {}

    def cut(first: int) -> list[NDArray[np.float32]]:
        cuts: list[NDArray[np.float32]] = []
        for feature, (values, counts) in enumerate(columns(first), first):
            if feature in chosen:
                is_rare = _rarest(counts, max_bins)
                categories[feature] = values[~is_rare]
                if is_rare.any():
                    rare[feature] = values[is_rare]
            cuts.append(np.empty(0, np.float32) if feature in chosen else cut_points(values, counts, max_bins))
        return cuts

    step, columns = _columns(features)
    cuts = [one for some in map_threads(cut, range(0, features.shape[1], step), n_threads) for one in some]
    return Bins(tuple(cuts), categories, rare)


def _rarest(counts: NDArray[np.int64], max_bins: int) -> NDArray[np.bool_]:
    """Which values share a bin; of equally frequent ones the higher."""
    is_rare = np.zeros(len(counts), bool)
    if len(counts) > max_bins:
        is_rare[np.argsort(-counts, kind="stable")[max_bins - 1 :]] = True
    return is_rare


Counted = tuple[NDArray[np.float32], NDArray[np.int64]]


def _columns(features: Features) -> tuple[int, Callable[[int], Iterator[Counted]]]:
    """How many columns are copied at once; and a function from the first of them to the distinct values of each,
    without NaN and with one zero, and their counts.
    """  # noqa: D205
    n, width = features.shape
    if is_sparse(features):
        return 1, _sparse_columns(features)
    step = max(1, min(16, MAX_COPIED // max(n, 1)))

    def dense(first: int) -> Iterator[Counted]:
        columns = np.empty((min(step, width - first), n), np.float32)
        copy_columns(features, first, columns)
        values, counts = np.empty(n, np.float32), np.empty(n, np.int64)
        for column in columns:
            column.sort()
            n_distinct = find_distinct(column, values, counts)
            yield values[:n_distinct].copy(), counts[:n_distinct].copy()

    return step, dense


def _sparse_columns(features: Any) -> Callable[[int], Iterator[Counted]]:
    sparse = features.tocsc()

    def distinct(feature: int) -> Iterator[Counted]:
        column = sparse.data[sparse.indptr[feature] : sparse.indptr[feature + 1]]
        absent = sparse.shape[0] - len(column)
        values, counts = np.unique(column[~np.isnan(column)] + np.float32(0.0), return_counts=True)
        if absent:
            index = int(np.searchsorted(values, 0.0))
            if index < len(values) and values[index] == 0.0:
                counts[index] += absent
            else:
                values, counts = np.insert(values, index, 0.0), np.insert(counts, index, absent)
        yield values, counts.astype(np.int64)

    return distinct


def cut_points(values: NDArray[np.float32], counts: NDArray[np.int64], max_bins: int) -> NDArray[np.float32]:
    """Borders between bins of distinct values, ascending, that occur so often."""
    if len(values) <= 1:
        return np.empty(0, np.float32)
    ends = np.arange(len(values) - 1)
    if len(values) > max_bins:
        ends = ends[: equal_shares(counts, max_bins, ends)]
    below, above = values[ends], values[ends + 1]
    with np.errstate(over="ignore", invalid="ignore"):
        middle = ((below.astype(np.float64) + above.astype(np.float64)) / 2).astype(np.float32)
    return np.where((below <= middle) & (middle < above), middle, below)


def bin_features(features: Features, bins: Bins, n_threads: int | None = None) -> BinnedFeatures:
    """Bin documents.

    Args:
        features: of the documents, dense or compressed sparse rows.
        bins: how to cut them.
        n_threads: all cores by default.

    Example:
        >>> import numpy as np
        >>> from podium.trees import bin_features, find_bins
        >>> x = np.array([[1.0], [5.0], [np.nan], [5.0]], np.float32)
        >>> bin_features(x, find_bins(x)).column(0).tolist()
        [1, 2, 0, 2]

    """
    if features.shape[1] != bins.n_features:
        raise DataError(f"the bins are for {bins.n_features} features, but there are {features.shape[1]}")
    n = features.shape[0]
    width = -(-bins.n_features // BLOCK) * BLOCK
    flat = np.zeros(n * width + 2 * BLOCK, np.uint8)
    table = _table(bins)
    if is_sparse(features):
        zeros = np.zeros((1, bins.n_features), np.float32)
        absent = np.zeros(width, np.uint8)
        bin_rows(zeros, 0, 1, *table, width, absent)
        parts = (features.indptr, features.indices, features.data)

        def work(bounds: tuple[int, int]) -> None:
            bin_sparse_rows(*parts, *bounds, *table, absent[: bins.n_features], width, flat)
    else:

        def work(bounds: tuple[int, int]) -> None:
            bin_rows(features, *bounds, *table, width, flat)

    for _ in map_threads(work, ranges(n, n_threads), n_threads):
        pass
    binned = BinnedFeatures(bins, n, flat)
    for feature, values in bins.rare.items():
        column = features[:, [feature]].toarray().ravel() if is_sparse(features) else features[:, feature]
        binned.column(feature)[np.isin(column, values)] = len(bins.categories[feature]) + 1
    return binned


def _table(bins: Bins) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Cuts, or known categories, of all features as rows of 256, and which are categorical.

    Behind the cuts follow infinities, which no value exceeds, behind the categories NaN, which no value equals.
    """
    cuts = np.empty((bins.n_features, MAX_BINS + 1), np.float32)
    is_category = np.zeros(bins.n_features, bool)
    for feature in range(bins.n_features):
        values = bins.categories.get(feature, bins.cuts[feature])
        is_category[feature] = feature in bins.categories
        cuts[feature, len(values) :] = np.nan if is_category[feature] else np.inf
        cuts[feature, : len(values)] = values
    return cuts, is_category


# --- kernels


@kernel
def copy_columns(features: NDArray[np.float32], first: Int, columns: NDArray[np.float32]) -> None:
    """The columns from `first` on, each together and with one zero (−0 becomes 0); a cache line is read once."""
    for start in range(0, columns.shape[1], 64):
        for column in range(columns.shape[0]):
            for row in range(start, min(start + 64, columns.shape[1])):
                columns[column, row] = features[row, first + column] + np.float32(0.0)


@kernel
def find_distinct(ordered: NDArray[np.float32], values: NDArray[np.float32], counts: Ints) -> Int:
    """Distinct values of a sorted column, its NaNs at the end left out, and how often each occurs; their number."""
    n_distinct = 0
    for k in range(len(ordered)):
        if np.isnan(ordered[k]):
            break
        if n_distinct == 0 or ordered[k] != values[n_distinct - 1]:
            values[n_distinct], counts[n_distinct] = ordered[k], 0
            n_distinct += 1
        counts[n_distinct - 1] += 1
    return n_distinct


@kernel
def equal_shares(counts: Ints, max_bins: Int, ends: Ints) -> Int:
    """The last value of each bin but the last, each bin an equal share or more of what is left; their number."""
    rest = np.int64(0)
    for value in range(len(counts)):
        rest += counts[value]
    value, n_ends = 0, 0
    for left in range(max_bins, 1, -1):
        share: Any = max(1, rest // left)
        count = np.int64(0)
        while value < len(counts) and count < share:
            count += counts[value]
            value += 1
        if value >= len(counts):
            break
        ends[n_ends] = value - 1
        n_ends += 1
        rest -= count
    return n_ends


@helper
def _bin(x: Any, cuts: NDArray[np.float32], is_category: bool) -> Int:
    """1 + the number of cuts below x, of a category 1 + its index among them; 0 for NaN and unknown categories.

    There are always 256 cuts, the last of them unreachable, and so eight halving steps, without a branch.
    """
    low = np.int64(cuts[127] < x) << 7
    low += np.int64(cuts[U(low + 63)] < x) << 6
    low += np.int64(cuts[U(low + 31)] < x) << 5
    low += np.int64(cuts[U(low + 15)] < x) << 4
    low += np.int64(cuts[U(low + 7)] < x) << 3
    low += np.int64(cuts[U(low + 3)] < x) << 2
    low += np.int64(cuts[U(low + 1)] < x) << 1
    low += np.int64(cuts[U(low)] < x)
    is_known = x == x and (not is_category or cuts[U(low)] == x)
    return low + 1 if is_known else MISSING


@kernel
def bin_rows(
    features: NDArray[np.float32], first: Int, last: Int, cuts: NDArray[np.float32],
    is_category: NDArray[np.bool_], width: Int, bins: Bytes,
) -> None:  # fmt: skip
    """The bins of some rows; the cuts of a feature are a row of `cuts`. 256 rows at a time, column by column."""
    cuts = borrowed(cuts)
    for start in range(first, last, 256):
        for feature in range(features.shape[1]):
            feature_cuts, kind = cuts[feature], is_category[feature]
            for row in range(start, min(last, start + 256)):
                bins[row * width + feature] = _bin(features[row, feature], feature_cuts, kind)


@kernel
def bin_sparse_rows(
    indptr: NDArray[np.int32], indices: NDArray[np.int32], data: NDArray[np.float32], first: Int, last: Int,
    cuts: NDArray[np.float32], is_category: NDArray[np.bool_], zeros: Bytes, width: Int, bins: Bytes,
) -> None:  # fmt: skip
    """The same from compressed sparse rows; `zeros` are the bins of the values that are not there."""
    cuts = borrowed(cuts)
    for row in range(first, last):
        bins[row * width : row * width + len(zeros)] = zeros
        for k in range(indptr[row], indptr[row + 1]):
            feature = indices[k]
            bins[row * width + feature] = _bin(data[k], cuts[feature], is_category[feature])


@kernel
def to_columns(rows: Bytes, n: Int, width: Int, n_features: Int, first: Int, last: Int, columns: Bytes) -> None:
    """Copy some of the rows column by column, 64 rows at a time: as many as a cache line of a column holds."""
    for start in range(first, last, 64):
        for feature in range(n_features):
            for row in range(start, min(start + 64, last)):
                columns[U(feature * n + row)] = rows[U(row * width + feature)]
