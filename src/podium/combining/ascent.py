"""Several rankers: one weight after the other, each the exact best while the others stand ([B] 7.1)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from podium.combining.sweep import CLOSE, Sweep
from podium.core.sums import mean
from podium.data import RankingData

Floats = NDArray[np.float64]


def ascend(
    sweep: Sweep,
    columns: Sequence[Floats],
    weights: Sequence[float],
    cycles: int,
    bounds: tuple[float, float],
    turning: bool = False,
) -> tuple[list[float], float]:
    """The weights of columns of scores after some cycles over all of them, and the mean of the measure.

    A weight changes only where that raises the measure, so it never falls. With `turning`, the way of each cycle is
    searched as well, and takes the place of the direction that gained most (Powell 1964, as [W] 5.5 interpolates).
    """
    found = np.array(weights, np.float64)
    value = sweep.value(weighted(columns, found))
    directions = list(np.eye(len(found)))
    for _ in range(cycles):
        start, before, gains = found, value, []
        for direction in directions:
            known = value
            found, value = _best_along(sweep, columns, found, value, direction, bounds)
            gains.append(value - known)
        if value <= before:
            break
        if turning:
            way = found - start
            directions[int(np.argmax(gains))] = way
            found, value = _best_along(sweep, columns, found, value, way, bounds)
    return found.tolist(), value


def _best_along(
    sweep: Sweep, columns: Sequence[Floats], weights: Floats, value: float, way: Floats, bounds: tuple[float, float]
) -> tuple[Floats, float]:
    """The best weights on a straight way within the bounds, where they are better than these."""
    moving = way != 0
    ends = (np.array(bounds)[:, None] - weights[moving]) / way[moving]
    low, high = ends.min(axis=0).max(), ends.max(axis=0).min()
    if not low < high:
        return weights, value
    alpha = sweep.best(weighted(columns, weights), weighted(columns, way), low, high, near=0.0).alpha
    moved = np.clip(weights + alpha * way, *bounds)
    gained = sweep.value(weighted(columns, moved))
    return (moved, gained) if gained > value + CLOSE else (weights, value)


def weighted(columns: Sequence[Floats], weights: Sequence[float] | Floats) -> Floats:
    """Σ_k weight_k column_k, in their order."""
    scores = np.zeros(len(columns[0]))
    for column, weight in zip(columns, weights, strict=True):
        if weight:
            scores += weight * column
    return scores


def deviation(data: RankingData, scores: Floats) -> float:
    """The root mean square of scores less their mean in the query: all that ranking sees of their scale; 1 for none."""
    order, starts = data.canonical_order, data.offsets[:-1][data.query_sizes > 0]
    sizes = data.query_sizes[data.query_sizes > 0]
    exponent = math.frexp(float(np.abs(scores).max(initial=0.0)))[1]  # squares of scaled scores stay in range
    scaled = np.ldexp(scores[order], -exponent)
    middle = scaled - np.repeat(np.add.reduceat(scaled, starts) / sizes, sizes)
    return math.ldexp(math.sqrt(mean(middle * middle)), exponent) or 1.0
