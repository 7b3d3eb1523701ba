"""Features as small integers: cut at quantiles of their values, exactly, whatever the order of the rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.data.columns import Features, is_sparse
from podium.errors import DataError, require_whole
from podium.threads import map_threads

MOST_BINS = 255  # bins of values; bin 0 is for missing ones, and a bin is a byte


@dataclass(frozen=True)
class Bins:
    """How each feature is cut: bin b of a feature holds the values x with cuts[b−2] < x ≤ cuts[b−1], b from 1.

    Attributes:
        cuts: for each feature the rising borders between its bins (empty for a constant feature).
        categories: for each categorical feature, by number, its known values; bin b is the value b − 1.

    """

    cuts: tuple[NDArray[np.float32], ...]
    categories: dict[int, NDArray[np.float32]]

    @property
    def n_features(self) -> int:
        """The number of features."""
        return len(self.cuts)

    @property
    def counts(self) -> NDArray[np.int64]:
        """The number of bins of each feature, apart from that of missing values."""
        return np.array(
            [len(self.categories[k]) if k in self.categories else len(c) + 1 for k, c in enumerate(self.cuts)], np.int64
        )


@dataclass(frozen=True)
class BinnedFeatures:
    """The bins of all documents in blocks of 16 features: `blocks[feature // 16, row, feature % 16]`."""

    bins: Bins
    blocks: NDArray[np.uint8]

    @property
    def n_rows(self) -> int:
        """The number of documents."""
        return int(self.blocks.shape[1])

    def column(self, feature: int) -> NDArray[np.uint8]:
        """The bins of one feature (a view)."""
        from podium.trees.kernels import BLOCK

        return self.blocks[feature // BLOCK, :, feature % BLOCK]


def find_bins(
    features: Features, max_bins: int = MOST_BINS, categorical: Iterable[int] = (), n_threads: int | None = None
) -> Bins:
    """Choose the cuts of each feature from the counts of its distinct values.

    A feature with no more distinct values than bins gets one for each. Otherwise bins are filled from below
    with as many documents as an equal share of what is left, whole values at a time: a frequent value has a bin
    to itself. Everything follows from integer counts, so neither row order nor threads matter.
    """
    require_whole("max_bins", max_bins, 2)
    if max_bins > MOST_BINS:
        raise DataError(f"max_bins must be between 2 and {MOST_BINS}, but is {max_bins}")
    chosen = set(categorical)
    if not chosen <= set(range(features.shape[1])):
        raise DataError(f"categorical features are given by number, 0 to {features.shape[1] - 1}")
    columns = _columns(features)

    def cut(feature: int) -> tuple[NDArray[np.float32], NDArray[np.float32] | None]:
        values, counts = columns(feature)
        if feature in chosen:
            if len(values) > max_bins:
                raise DataError(
                    f"categorical feature {feature} has {len(values)} values, more than max_bins = {max_bins}"
                )
            return np.empty(0, np.float32), values
        return cut_points(values, counts, max_bins), None

    found = list(map_threads(cut, range(features.shape[1]), n_threads))
    return Bins(tuple(cuts for cuts, _ in found), {k: known for k, (_, known) in enumerate(found) if known is not None})


def _columns(features: Features) -> Any:
    """A function from a feature to its distinct values, without NaN and with one zero, and their counts."""
    sparse = features.tocsc() if is_sparse(features) else None

    def distinct(feature: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        if sparse is None:
            column = features[:, feature]
            absent = 0
        else:
            column = sparse.data[sparse.indptr[feature] : sparse.indptr[feature + 1]]
            absent = sparse.shape[0] - len(column)
        values, counts = np.unique(column[~np.isnan(column)] + np.float32(0.0), return_counts=True)
        if absent:
            place = int(np.searchsorted(values, 0.0))
            if place < len(values) and values[place] == 0.0:
                counts[place] += absent
            else:
                values, counts = np.insert(values, place, 0.0), np.insert(counts, place, absent)
        return values, counts.astype(np.int64)

    return distinct


def cut_points(values: NDArray[np.float32], counts: NDArray[np.int64], max_bins: int) -> NDArray[np.float32]:
    """Borders between bins of rising distinct values that occur so often."""
    if len(values) <= 1:
        return np.empty(0, np.float32)
    few = len(values) <= max_bins
    ends = np.arange(len(values) - 1) if few else _equal_shares(np.cumsum(counts), max_bins)
    below, above = values[ends], values[ends + 1]
    with np.errstate(over="ignore", invalid="ignore"):
        middle = ((below.astype(np.float64) + above.astype(np.float64)) / 2).astype(np.float32)
    return np.where((below <= middle) & (middle < above), middle, below)


def _equal_shares(cumulated: NDArray[np.int64], max_bins: int) -> NDArray[np.int64]:
    """The last value of each bin but the last: at least an equal share of what is left, for the bins left."""
    ends, done, total = [], 0, int(cumulated[-1])
    for left in range(max_bins, 1, -1):
        share = max(1, (total - done) // left)
        end = int(np.searchsorted(cumulated, done + share))
        if end >= len(cumulated) - 1:
            break
        ends.append(end)
        done = int(cumulated[end])
    return np.array(ends, np.int64)


def bin_features(
    features: Features, bins: Bins, order: NDArray[np.int64] | None = None, n_threads: int | None = None
) -> BinnedFeatures:
    """Bin documents, in another order if one is given."""
    from podium.trees import kernels

    if features.shape[1] != bins.n_features:
        raise DataError(f"the bins are for {bins.n_features} features, but there are {features.shape[1]}")
    n = features.shape[0] if order is None else len(order)
    blocks = np.zeros((-(-bins.n_features // kernels.BLOCK), n, kernels.BLOCK), np.uint8)
    binned = BinnedFeatures(bins, blocks)
    sparse = features.tocsc() if is_sparse(features) else None

    def work(feature: int) -> None:
        if sparse is None:
            column = features[:, feature]
        else:
            column = np.zeros(sparse.shape[0], np.float32)
            inside = slice(sparse.indptr[feature], sparse.indptr[feature + 1])
            column[sparse.indices[inside]] = sparse.data[inside]
        values = np.ascontiguousarray(column if order is None else column[order])
        if feature in bins.categories:
            kernels.bin_categories(values, bins.categories[feature], binned.column(feature))
        else:
            kernels.bin_column(values, bins.cuts[feature], binned.column(feature))

    for _ in map_threads(work, range(bins.n_features), n_threads):
        pass
    return binned
