"""Several rankers: one weight after the other, each the exact best while the others stand ([B] 7.1)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from podium.combining.sweep import CLOSE, Sweep
from podium.data import RankingData
from podium.exact import mean

Floats = NDArray[np.float64]


def ascend(
    sweep: Sweep, columns: Sequence[Floats], weights: Sequence[float], cycles: int, bounds: tuple[float, float]
) -> tuple[list[float], float]:
    """The weights of columns of scores after some cycles over all of them, and the mean of the measure.

    A weight changes only where that raises the measure, so it never falls.
    """
    found = [float(weight) for weight in weights]
    value = sweep.value(weighted(columns, found))
    for _ in range(cycles):
        before = value
        for k, column in enumerate(columns):
            rest = weighted(columns, [0.0 if j == k else weight for j, weight in enumerate(found)])
            best = sweep.best(rest, column, *bounds, near=found[k])
            if best.value > value + CLOSE:
                found[k], value = best.alpha, best.value
        if value <= before:
            break
    return found, value


def weighted(columns: Sequence[Floats], weights: Sequence[float]) -> Floats:
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
    mine = scores[order]
    middle = mine - np.repeat(np.add.reduceat(mine, starts) / sizes, sizes)
    return math.sqrt(mean(middle * middle)) or 1.0
