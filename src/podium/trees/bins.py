"""What binning gives: how features are cut, and the bins of documents."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from podium.core.array_types import Bytes, Float32s, Int32s, Ints
from podium.trees.feature_layout import FeatureLayout, bin_counts, bin_matrix, lay_out
from podium.trees.layout import MISSING, NEAR, BinMatrix

MAX_BINS = 255  # bins of values; bin 0 is for missing ones, and a bin is a byte


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

    cuts: tuple[Float32s, ...]
    categories: dict[int, Float32s]
    rare: dict[int, Float32s] = field(default_factory=dict)

    @property
    def n_features(self) -> int:
        """The number of features."""
        return len(self.cuts)

    @property
    def counts(self) -> Ints:
        """The number of bins of each feature, apart from that of missing values."""
        return np.array(
            [
                len(self.categories[k]) + (k in self.rare) if k in self.categories else len(cuts) + 1
                for k, cuts in enumerate(self.cuts)
            ],
            np.int64,
        )

    def equal(self, other: Bins) -> bool:
        """Whether all values have the same bins."""
        return all(map(_have_equal_values, self._tables(), other._tables()))

    def _tables(self) -> tuple[dict[int, Float32s], ...]:
        return dict(enumerate(self.cuts)), self.categories, self.rare

    def of_features(self, first: int, last: int) -> Bins:
        """The bins of the features `first` … `last` − 1."""
        part = [{k - first: v for k, v in table.items() if first <= k < last} for table in self._tables()[1:]]
        return Bins(self.cuts[first:last], *part)

    @staticmethod
    def joined(parts: Iterable[Bins]) -> Bins:
        """The bins of features that follow each other."""
        cuts: list[Float32s] = []
        tables: tuple[dict[int, Float32s], ...] = ({}, {})
        for part in parts:
            for table, more in zip(tables, part._tables()[1:], strict=True):
                table |= {len(cuts) + k: values for k, values in more.items()}
            cuts += part.cuts
        return Bins(tuple(cuts), *tables)


def _have_equal_values(some: dict[int, Float32s], others: dict[int, Float32s]) -> bool:
    return some.keys() == others.keys() and all(np.array_equal(values, others[k]) for k, values in some.items())


@dataclass(frozen=True)
class BinnedFeatures:
    """The bins of all documents, column by column.

    Attributes:
        bins: how the features are cut.
        n_rows: the number of documents.
        columns: `columns[feature * n_rows + row]` is a bin.

    Example:
        >>> import numpy as np
        >>> from podium.trees import bin_features, find_bins
        >>> x = np.array([[1.0, 3.0], [2.0, 7.0]], np.float32)
        >>> binned = bin_features(x, find_bins(x))
        >>> binned.n_rows, binned.column(1).tolist()
        (2, [1, 2])

    """

    bins: Bins
    n_rows: int
    columns: Bytes

    def column(self, feature: int) -> Bytes:
        """The bins of one feature (a view)."""
        return self.columns[feature * self.n_rows : (feature + 1) * self.n_rows]

    @cached_property
    def features_with_missing(self) -> list[int]:
        """The numbers of the features that have a missing value, ascending."""
        lowest = self.columns.reshape(self.bins.n_features, self.n_rows).min(axis=1, initial=MAX_BINS)
        return np.flatnonzero(lowest == MISSING).tolist()

    @cached_property
    def layout(self) -> FeatureLayout:
        """Where growth has the bins and cells of each feature."""
        counts = bin_counts(self.columns, self.n_rows, self.bins.n_features)
        return lay_out(counts, self.n_rows, self.bins.counts)

    @cached_property
    def matrix(self) -> BinMatrix:
        """The bins as growth reads them; runs on the same documents share it."""
        return bin_matrix(self.columns, self.n_rows, self.layout)

    @cached_property
    def rows_by_entries(self) -> Int32s | None:
        """Rows by the number of their cells of sparse features, where all lies near; None where there are none.

        Counted in this order, neighbours have equally many: no processor guesses the end of lists of any length.
        """
        matrix, n_groups = self.matrix, max(len(self.layout.groups) - 1, 0)
        if not n_groups or self.n_rows * matrix.width > NEAR:
            return None
        starts = matrix.starts.reshape(n_groups, self.n_rows + 1)
        return np.argsort((starts[:, 1:] - starts[:, :-1]).sum(axis=0), kind="stable").astype(np.int32)

    def with_matrix(self, layout: FeatureLayout, matrix: BinMatrix) -> BinnedFeatures:
        """The same bins, as they were laid out before."""
        binned = BinnedFeatures(self.bins, self.n_rows, self.columns)
        binned.__dict__.update(layout=layout, matrix=matrix)  # where cached properties are
        return binned

    def take(self, rows: Ints) -> BinnedFeatures:
        """The bins of some documents."""
        columns = self.columns.reshape(self.bins.n_features, self.n_rows)
        return BinnedFeatures(self.bins, len(rows), columns[:, rows].reshape(-1))

    def representatives(self, first: int, last: int) -> Float32s:
        """For some rows a value of each bin: a tree that splits at cuts scores them as the values themselves."""
        rows = np.empty((last - first, self.bins.n_features), np.float32)
        for feature, values in enumerate(self._values_of_bins):
            rows[:, feature] = values[self.column(feature)[first:last]]
        return rows

    @cached_property
    def _values_of_bins(self) -> list[Float32s]:
        """For each feature NaN, then the highest value of each bin, or its category."""
        highest = [np.append(cuts, np.float32(np.inf)) for cuts in self.bins.cuts]
        for feature, values in self.bins.categories.items():
            highest[feature] = np.append(values, self.bins.rare.get(feature, values)[:1])
        return [np.append(np.float32(np.nan), values) for values in highest]
