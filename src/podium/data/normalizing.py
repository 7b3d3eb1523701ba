"""Normalization of features within each query, as RankLib's -norm does."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from podium.core.array_types import Float32s, Floats, Ints
from podium.core.compiling import helper, kernel
from podium.core.threads import for_ranges
from podium.data.features import Features
from podium.data.sparse import is_sparse
from podium.errors import DataError

if TYPE_CHECKING:
    from podium.data.ranking_data import RankingData

METHODS = ("sum", "zscore", "minmax")
SUM, ZSCORE, MINMAX = range(3)  # codes of `METHODS` in the kernel


def normalize_queries(data: RankingData, method: str) -> Features:
    """Return features that are normalized within each query; missing values stay missing.

    - `"sum"`: divided by the sum of absolute values;
    - `"zscore"`: minus the mean, divided by the standard deviation with n − 1;
    - `"minmax"`: minus the minimum, divided by the range.

    A feature that is constant within a query, or all zero for `"sum"`, becomes 0 in that query. Sums are computed in
    the canonical order, so the result does not depend on row order.
    """
    require_scale(data, method)
    result = np.empty(data.features.shape, np.float32)
    code = METHODS.index(method)

    def work(first: int, last: int) -> None:
        _normalize(data.features, data.canonical_order, data.offsets[first : last + 1], code, result)

    for_ranges(data.n_queries, work, smallest=16)
    categorical = list(data.encoding.categories)
    result[:, categorical] = data.features[:, categorical]  # category numbers have no scale
    return result


def require_scale(data: RankingData, method: str) -> None:
    """Raise if the data cannot be normalized with this method."""
    if method not in METHODS:
        raise DataError(f"normalize must be one of {', '.join(map(repr, METHODS))}, but got {method!r}")
    if is_sparse(data.features):
        raise DataError("sparse features cannot be normalized: use dense features")
    if method == "sum" and data.encoding.shifts:
        raise DataError(
            f"feature {min(data.encoding.shifts)} is too far from 0 to be divided by its sum: use 'zscore' or 'minmax'"
        )
    if np.isinf(data.features).any():
        row, column = (int(k[0]) for k in np.nonzero(np.isinf(data.features)))
        raise DataError(f"infinite values cannot be normalized: clip feature {column}, which is infinite in row {row}")


class _Scales(NamedTuple):
    """The origin and scale of each feature in one query, and the statistics that they are computed from."""

    origin: Floats
    scale: Floats
    n_values: Floats
    low: Floats
    high: Floats


@kernel
def _normalize(features: Float32s, order: Ints, offsets: Ints, method: int, result: Float32s) -> None:
    """Compute (x − origin) / scale for each feature of each query; 0 if the scale is 0, NaN if x is NaN."""
    width = features.shape[1]
    scales = _Scales(np.empty(width), np.empty(width), np.empty(width), np.empty(width), np.empty(width))
    for query in range(len(offsets) - 1):
        rows = order[offsets[query] : offsets[query + 1]]
        _sum_rows(features, rows, scales)
        for k in range(width):
            if method == SUM:
                scales.origin[k] = 0.0
            elif method == ZSCORE:
                scales.origin[k] /= max(scales.n_values[k], 1.0)
            else:
                scales.origin[k], scales.scale[k] = scales.low[k], scales.high[k] - scales.low[k]
        if method == ZSCORE:
            _deviations(features, rows, scales)
        for row in rows:
            for k in range(width):
                x = float(features[row, k])
                if math.isnan(x):
                    result[row, k] = np.nan
                elif scales.scale[k] > 0.0:
                    result[row, k] = (x - scales.origin[k]) / scales.scale[k]
                else:
                    result[row, k] = 0.0


@helper
def _sum_rows(features: Float32s, rows: Ints, scales: _Scales) -> None:
    """Fill in sums (as origin), sums of absolute values (as scale), counts, and the lowest and highest values."""
    origin, scale, n_values, low, high = scales
    origin[:], scale[:], n_values[:], low[:], high[:] = 0.0, 0.0, 0.0, np.inf, -np.inf
    for row in rows:
        for k in range(features.shape[1]):
            x = float(features[row, k])
            if not math.isnan(x):
                n_values[k] += 1.0
                origin[k] += x
                scale[k] += abs(x)
                low[k], high[k] = min(low[k], x), max(high[k], x)


@helper
def _deviations(features: Float32s, rows: Ints, scales: _Scales) -> None:
    """Fill in the standard deviations with n − 1, as scale."""
    origin, scale, n_values, low, high = scales
    scale[:] = 0.0
    for row in rows:
        for k in range(features.shape[1]):
            x = float(features[row, k]) - origin[k]
            if not math.isnan(x):
                scale[k] += x * x
    for k in range(features.shape[1]):
        # Rounding can give a constant feature a tiny variance, so test low == high instead.
        constant = low[k] == high[k] or n_values[k] < 2.0
        scale[k] = 0.0 if constant else np.sqrt(scale[k] / (n_values[k] - 1.0))
