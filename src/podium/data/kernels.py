"""Compiled loops over the rows and columns of ranking data."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from podium.core.compiling import helper, kernel
from podium.core.random import GOLDEN, mix


@helper
def _cell_hash(bits: np.uint32, column: int) -> np.uint64:
    """The share of one cell in its row's hash: 0 for ±0, one value for every NaN."""
    if bits & np.uint32(0x7FFFFFFF) == np.uint32(0):
        return np.uint64(0)
    if bits & np.uint32(0x7FFFFFFF) > np.uint32(0x7F800000):
        bits = np.uint32(0x7FC00000)
    mixed: np.uint64 = mix((np.uint64(column + 1) << np.uint64(32) | np.uint64(bits)) * GOLDEN)
    return mixed


@kernel
def hash_dense_rows(bits: NDArray[np.uint32], hashes: NDArray[np.uint64]) -> None:
    """A hash of each row of float32 bits; a sum over cells, so that zeros do not count."""
    for row in range(bits.shape[0]):
        total = np.uint64(0)
        for column in range(bits.shape[1]):
            total += _cell_hash(bits[row, column], column)
        hashes[row] = total


@kernel
def hash_compressed_rows(
    starts: NDArray[np.int64],
    columns: NDArray[np.int64],
    bits: NDArray[np.uint32],
    hashes: NDArray[np.uint64],
) -> None:
    """The same hash for compressed sparse rows."""
    for row in range(len(starts) - 1):
        total = np.uint64(0)
        for k in range(starts[row], starts[row + 1]):
            total += _cell_hash(bits[k], columns[k])
        hashes[row] = total


@kernel
def normalize(
    features: NDArray[np.float32],
    order: NDArray[np.int64],
    offsets: NDArray[np.int64],
    method: int,
    result: NDArray[np.float32],
) -> None:
    """(x − origin) / scale for each feature of each query; 0 where the scale is 0, NaN where x is NaN."""
    width = features.shape[1]
    origin, scale, count = np.empty(width), np.empty(width), np.empty(width)
    low, high = np.empty(width), np.empty(width)
    for query in range(len(offsets) - 1):
        rows = order[offsets[query] : offsets[query + 1]]
        origin[:], scale[:], count[:], low[:], high[:] = 0.0, 0.0, 0.0, np.inf, -np.inf
        for row in rows:
            for k in range(width):
                x = float(features[row, k])
                if x == x:
                    count[k] += 1.0
                    origin[k] += x
                    scale[k] += abs(x)
                    low[k], high[k] = min(low[k], x), max(high[k], x)
        for k in range(width):
            if method == 0:
                origin[k] = 0.0
            elif method == 1:
                origin[k] /= max(count[k], 1.0)
                scale[k] = 0.0
            else:
                origin[k], scale[k] = low[k], high[k] - low[k]
        if method == 1:
            for row in rows:
                for k in range(width):
                    x = float(features[row, k]) - origin[k]
                    if x == x:
                        scale[k] += x * x
            for k in range(width):
                # Rounding leaves a trace of variance in a constant feature; low == high does not.
                constant = low[k] == high[k] or count[k] < 2.0
                scale[k] = 0.0 if constant else np.sqrt(scale[k] / (count[k] - 1.0))
        for row in rows:
            for k in range(width):
                x = float(features[row, k])
                if x != x:
                    result[row, k] = np.nan
                elif scale[k] > 0.0:
                    result[row, k] = (x - origin[k]) / scale[k]
                else:
                    result[row, k] = 0.0
