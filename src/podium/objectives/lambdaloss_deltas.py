"""The weights of NDCG-Loss2++ for the pair kernel (see `podium.objectives.LambdaLoss`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from podium.core.array_types import Float32s, Floats, Int
from podium.core.compiling import helper
from podium.core.simd import LANES
from podium.measures.families import Span
from podium.objectives.pair_layout import DELTA, DISCOUNT, FIELD, GAIN, N_FIELDS, TILE

f32 = np.float32
U: Any = np.uintp  # an index that cannot be negative needs no check for it


@helper
def lambdaloss_columns(discounts: Floats, mu: float, columns: Floats) -> None:
    """μ (d_k − d_{k+1}) for each distance k of two ranks, in columns[0, k + LANES]; 0 for all others."""
    for k in range(columns.shape[1]):
        columns[0, k] = 0.0
    for k in range(1, len(discounts)):
        columns[0, k + LANES] = mu * (discounts[k - 1] - discounts[k])


@helper
def lambdaloss_deltas(i: Int, tile: Span, columns: Floats, buffer: Float32s) -> None:
    """|g_i − g_j| (|d_i − d_j| + μ (d_{|i−j|} − d_{|i−j|+1})) of rank i with the ranks of a tile."""
    at = i // TILE * N_FIELDS * FIELD + i % TILE
    gain_i, discount_i = buffer[at + GAIN * FIELD], buffer[at + DISCOUNT * FIELD]
    gain, discount, delta = U(tile.at + GAIN * FIELD), U(tile.at + DISCOUNT * FIELD), U(tile.at + DELTA * FIELD)
    distance = tile.first - i + LANES  # where the distance to the tile's first document stands in the column
    for j in range(tile.a, tile.b):
        k = U(j)
        change = abs(discount_i - buffer[discount + k]) + f32(columns[U(0), U(distance + j)])
        buffer[delta + k] = abs(gain_i - buffer[gain + k]) * change
