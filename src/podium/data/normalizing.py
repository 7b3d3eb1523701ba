"""Features on a common scale within each query, as RankLib's -norm has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from podium.core.threads import map_threads, ranges
from podium.data.columns import Features, is_sparse
from podium.errors import DataError

if TYPE_CHECKING:
    from podium.data.ranking_data import RankingData

METHODS = ("sum", "zscore", "minmax")


def normalize_queries(data: RankingData, method: str) -> Features:
    """The features of each query brought to a common scale; missing values stay missing.

    - `"sum"`: divided by the sum of absolute values;
    - `"zscore"`: minus the mean, divided by the standard deviation with n − 1;
    - `"minmax"`: minus the least, divided by the range.

    A feature that is constant in a query, or all zero for `"sum"`, becomes 0 there. Sums run in the
    canonical order, so the result does not depend on the order of the rows.
    """
    if method not in METHODS:
        raise DataError(f"normalize must be one of {', '.join(map(repr, METHODS))}, not {method!r}")
    if is_sparse(data.features):
        raise DataError("sparse features are not normalized: read or convert them as a dense array")
    if method == "sum" and data.encoding.shifts:
        raise DataError(
            f"feature {min(data.encoding.shifts)} is too far from 0 to be divided by its sum: take 'zscore' or 'minmax'"
        )
    if np.isinf(data.features).any():
        row, column = (int(k[0]) for k in np.nonzero(np.isinf(data.features)))
        raise DataError(f"infinite values have no scale: feature {column} of row {row} is infinite; clip it first")
    from podium.data import kernels

    result = np.empty(data.features.shape, np.float32)
    code = METHODS.index(method)

    def work(bounds: tuple[int, int]) -> None:
        offsets = data.offsets[bounds[0] : bounds[1] + 1]
        kernels.normalize(data.features, data.canonical_order, offsets, code, result)

    for _ in map_threads(work, ranges(data.n_queries, smallest=16)):
        pass
    categorical = list(data.encoding.categories)
    result[:, categorical] = data.features[:, categorical]  # the numbers of categories have no scale
    return result
