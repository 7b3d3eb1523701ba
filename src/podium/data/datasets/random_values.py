"""Random features and noise for artificial data: each value is a hash of a key and an index.

The same key gives the same bits on every machine, with any number of threads; see the package's docstring.
"""

from __future__ import annotations

import numpy as np

from podium.core.array_types import Float32s, Floats, Ints
from podium.core.compiling import helper, kernel
from podium.core.random import random_bits
from podium.core.threads import for_ranges


@helper
def uniform(key: np.uint64, index: np.uint64) -> float:
    """Return a number in [0, 1) that is a multiple of 2^-24, so that it is exact in float32."""
    return float(np.int64(random_bits(key, index) >> np.uint64(40))) * 2.0**-24


@helper
def normal(key: np.uint64, index: np.uint64) -> float:
    """Return an approximately normal number, the sum of eight uniform numbers of 16 bits (Irwin and Hall)."""
    total = 0.0
    for half in range(2):
        bits = random_bits(key, index * np.uint64(2) + np.uint64(half))
        for k in range(4):
            total += float(np.int64((bits >> np.uint64(16 * k)) & np.uint64(0xFFFF)))
    return (total * 2.0**-16 - 4.0 + 2.0**-14) * 1.224744871391589  # the variance of the sum is 8/12


@kernel
def fill_uniform(key: np.uint64, first_row: int, features: Float32s) -> None:
    """Fill in features that are uniform in [−1, 1)."""
    width = features.shape[1]
    for row in range(features.shape[0]):
        for column in range(width):
            index = np.uint64((first_row + row) * width + column)
            features[row, column] = 2.0 * uniform(key, index) - 1.0


@kernel
def fill_normal(key: np.uint64, first_index: int, values: Floats) -> None:
    """Fill in approximately standard normal numbers."""
    for k in range(len(values)):
        values[k] = normal(key, np.uint64(first_index + k))


def uniform_matrix(n_rows: int, width: int, key: np.uint64) -> Float32s:
    """Return random numbers in [−1, 1)."""
    X = np.empty((n_rows, width), np.float32)
    for_ranges(n_rows, lambda first, last: fill_uniform(key, first, X[first:last]))
    return X


def normal_values(n: int, key: np.uint64) -> Floats:
    """Return approximately standard normal numbers."""
    values = np.empty(n)
    for_ranges(n, lambda first, last: fill_normal(key, first, values[first:last]))
    return values


def add_noise(X: Float32s, scale: float, key: np.uint64) -> None:
    """Add normal noise with standard deviation `scale` to every value, in place."""
    width = X.shape[1]

    def work(first: int, last: int) -> None:
        noise = np.empty((last - first) * width)
        fill_normal(key, first * width, noise)
        X[first:last] += (scale * noise).astype(np.float32).reshape(-1, width)

    for_ranges(len(X), work)


def random_permutation(n: int, key: np.uint64) -> Ints:
    """Return a random permutation: the order of random numbers, with ties in the order of their index."""
    return np.argsort(uniform_matrix(n, 1, key)[:, 0], kind="stable")
