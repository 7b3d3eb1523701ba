"""Rows that reveal wrong comparisons: random ones, values at thresholds and the adjacent float32, zeros, NaN."""

import numpy as np

N_FEATURES, CATEGORICAL, UNUSED = 6, 3, 5
QID = np.repeat(np.arange(40), 30)


def random_rows(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, N_FEATURES)).astype(np.float32)
    X[rng.random(X.shape) < 0.15] = np.nan
    X[rng.random(X.shape) < 0.15] = 0.0
    X[rng.random(X.shape) < 0.05] = -0.0
    X[:, CATEGORICAL] = rng.integers(0, 12, n)
    X[:, UNUSED] = 1.0
    return X


X = random_rows(len(QID), 0)
_noise = np.random.default_rng(1).normal(size=len(X))
_sum = np.nan_to_num(X[:, 0]) + np.isin(X[:, CATEGORICAL], [2, 5, 7]) + np.isnan(X[:, 1]) * 0.5 + 0.3 * _noise
Y = (_sum > 0.5).astype(int) + (_sum > 1.2)


def hard_rows(model, seed=2, *, infinite=True, missing=True):
    """Return rows that hold the thresholds of a model, and their neighbours, in the features that it uses."""
    rows = random_rows(3000, seed)
    if infinite:
        rows[::7, 2], rows[::9, 4] = np.inf, -np.inf
    arrays = model.arrays
    for feature in range(N_FEATURES):
        at = arrays["threshold"][(arrays["feature"] == feature) & (arrays["category"] < 0)]
        at = at[np.abs(at) < 1e38]
        pool = [at, np.nextafter(at, np.float32(np.inf)), np.nextafter(at, np.float32(-np.inf))]
        values = np.random.default_rng(seed).permutation(np.concatenate(pool))[: len(rows)]
        rows[: len(values), feature] = values
    return rows if missing else np.nan_to_num(rows, nan=0.0, posinf=np.inf, neginf=-np.inf)
