"""Scaling of features for nets, which need inputs of similar size, unlike trees ([W] §1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.core.array_types import Float32s, Floats
from podium.core.hyperparameters import INPUTS
from podium.data.features import Features
from podium.data.sparse import dense_block, is_sparse

LEVELS = 129  # number of quantiles to keep for each feature
ROWS_AT_ONCE = 1 << 14
LARGEST = 1e6  # inputs are clipped to this many standard deviations


@dataclass(frozen=True)
class Inputs:
    """The scaling of features, fitted on training data. Missing and infinite values become the mean, 0.

    Attributes:
        kind: `"standard"` for mean 0 and standard deviation 1; `"log"` for the same after sign(x) log(1 + |x|), which
            suits counts and lengths; `"quantile"` for the same after replacing each value by its quantile in the
            training data, which suits skewed features; `"none"` for unchanged features.
        grid: the quantiles of each feature, one row per feature; empty unless `kind` is `"quantile"`.
        means, scales: the means of the transformed features, and the factors that they are multiplied by.

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
        """Fit the scaling to documents; pass them in the canonical order, because floating-point sums depend on it."""
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
        """Return the scaled features."""
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
    """Return the features before means and scales are applied; NaN stays NaN."""
    if kind == "log":
        return np.asarray(np.sign(x) * np.log1p(np.abs(x)))
    if kind == "quantile":
        levels = np.linspace(0, 1, len(grid))
        # Average P(X < x) and P(X <= x), so that a value that many documents share maps to the middle of their ranks.
        return np.asarray(0.5 * (np.interp(x, grid, levels) + 1 - np.interp(-x, -grid[::-1], levels)))
    return x
