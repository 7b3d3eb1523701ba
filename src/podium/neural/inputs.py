"""Features as nets need them: of one size for any units ([W] §1: trees do without)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.core.array_types import Float32s, Floats
from podium.core.hyperparameters import INPUTS
from podium.data.features import Features
from podium.data.sparse import dense_block, is_sparse

LEVELS = 129  # quantiles kept of each feature
ROWS_AT_ONCE = 1 << 14
LARGEST = 1e6  # an input beyond, in standard deviations, counts as this


@dataclass(frozen=True)
class Inputs:
    """A change of scale that was fitted on training data; a missing or infinite value becomes the mean, 0.

    Attributes:
        kind: `"standard"`: mean 0 and standard deviation 1; `"log"`: the same after sign(x) log(1 + |x|), for counts
            and lengths; `"quantile"`: the same after the share of training documents below, for skewed features;
            `"none"`: features as they come.
        grid: for quantiles, their values, a row for each feature.
        means, scales: of the transformed features.

    Example:
        >>> import numpy as np
        >>> from podium.neural import Inputs
        >>> features = np.array([[1.0, 10.0], [3.0, 30.0]], np.float32)
        >>> Inputs.fitted(features, "standard")(features).tolist()
        [[-1.0, -1.0], [1.0, 1.0]]

    """

    kind: str
    grid: Floats
    means: Floats
    scales: Floats

    @classmethod
    def fitted(cls, features: Features, kind: str) -> Inputs:
        """The scales of some documents; sums run in the order of the rows."""
        INPUTS.check(kind)
        n_features = int(features.shape[1])
        levels = np.linspace(0, 1, LEVELS) if kind == "quantile" else np.empty(0)
        grid, means, scales = np.zeros((n_features, len(levels))), np.zeros(n_features), np.ones(n_features)
        by_column: Any = features.tocsc() if is_sparse(features) else features
        for k in range(n_features if kind != "none" else 0):
            x = dense_block(by_column[:, [k]], dtype=np.float64)[:, 0]
            x = x[np.isfinite(x)]
            if not len(x):
                continue
            if len(levels):
                grid[k] = np.quantile(x, levels)
            x = _transformed(x, kind, grid[k])
            means[k], deviation = x.mean(), x.std()
            scales[k] = 1.0 / deviation if deviation > 1e-12 * np.abs(x).max() else 0.0
        return cls(kind, grid, means, scales)

    @property
    def n_features(self) -> int:
        """The number of features."""
        return len(self.means)

    def __call__(self, features: Features) -> Float32s:
        """The features on their new scale."""
        scaled = np.empty((int(features.shape[0]), self.n_features), np.float32)
        for start in range(0, len(scaled), ROWS_AT_ONCE):
            rows = slice(start, start + ROWS_AT_ONCE)
            x = dense_block(features, rows, np.float64)
            x = np.where(np.isfinite(x), x, np.nan)
            if self.kind == "quantile":
                x = np.column_stack([_transformed(x[:, k], self.kind, self.grid[k]) for k in range(self.n_features)])
            else:
                x = _transformed(x, self.kind, self.grid)
            if self.kind != "none":
                x = ((x - self.means) * self.scales).clip(-LARGEST, LARGEST)
            scaled[rows] = np.nan_to_num(x, nan=0.0)
        return scaled


def _transformed(x: Floats, kind: str, grid: Floats) -> Floats:
    """The features before means and scales; NaN stays NaN."""
    if kind == "log":
        return np.asarray(np.sign(x) * np.log1p(np.abs(x)))
    if kind == "quantile":
        levels = np.linspace(0, 1, len(grid))
        # The middle of the share below and the share at or below: a value that many documents share is in their middle.
        return np.asarray(0.5 * (np.interp(x, grid, levels) + 1 - np.interp(-x, -grid[::-1], levels)))
    return x
