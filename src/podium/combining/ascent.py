"""Coordinate ascent for several rankers: each weight in turn is set to the exact best ([B] 7.1)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from podium.combining.lines import CLOSE
from podium.combining.sweep import Sweep
from podium.core.array_types import Floats
from podium.core.sums import mean
from podium.data import RankingData


def ascend(
    sweep: Sweep,
    columns: Sequence[Floats],
    weights: Sequence[float],
    cycles: int,
    bounds: tuple[float, float],
    turning: bool = False,
) -> tuple[list[float], float]:
    """Return the weights of columns of scores after some cycles of coordinate ascent, and the mean of the measure.

    A weight only changes if that raises the measure, so the measure never falls. With `turning`, each cycle also
    searches along its total change, which then replaces the direction that gained most (Powell 1964, as in [W] 5.5).

    Example:
        >>> import podium
        >>> from podium.combining import Sweep, ascend
        >>> data = podium.artificial(20, features=3)
        >>> sweep = Sweep(data, "ndcg@10")
        >>> columns = [data.feature(k) for k in range(3)]
        >>> weights, value = ascend(sweep, columns, [1.0, 0.0, 0.0], cycles=2, bounds=(-1.0, 1.0))
        >>> len(weights), value >= sweep.value(columns[0])
        (3, True)

    """
    best = np.array(weights, np.float64)
    value = sweep.value(weighted(columns, best))
    directions = list(np.eye(len(best)))
    for _ in range(cycles):
        start, start_value, gains = best, value, []
        for direction in directions:
            before = value
            best, value = _best_along(sweep, columns, best, value, direction, bounds)
            gains.append(value - before)
        if value <= start_value:
            break
        if turning:
            direction = best - start
            directions[int(np.argmax(gains))] = direction
            best, value = _best_along(sweep, columns, best, value, direction, bounds)
    return best.tolist(), value


def _best_along(
    sweep: Sweep, columns: Sequence[Floats], weights: Floats, value: float, direction: Floats,
    bounds: tuple[float, float],
) -> tuple[Floats, float]:  # fmt: skip
    """Return the best weights on a line within the bounds and their value, or those passed if none are better."""
    moves = direction != 0
    ends = (np.array(bounds)[:, None] - weights[moves]) / direction[moves]
    low, high = ends.min(axis=0).max(), ends.max(axis=0).min()
    if not low < high:
        return weights, value
    alpha = sweep.best(weighted(columns, weights), weighted(columns, direction), low, high, near=0.0).alpha
    new_weights = np.clip(weights + alpha * direction, *bounds)
    new_value = sweep.value(weighted(columns, new_weights))
    return (new_weights, new_value) if new_value > value + CLOSE else (weights, value)


def weighted(columns: Sequence[Floats], weights: Sequence[float] | Floats) -> Floats:
    """Return Σ_k weight_k column_k, summed in order.

    Example:
        >>> import numpy as np
        >>> from podium.combining import weighted
        >>> weighted([np.array([1.0, 2.0]), np.array([3.0, 4.0])], [1.0, 0.5]).tolist()
        [2.5, 4.0]

    """
    scores = np.zeros(len(columns[0]))
    for column, weight in zip(columns, weights, strict=True):
        if weight:
            scores += weight * column
    return scores


def deviation(data: RankingData, scores: Floats) -> float:
    """Return the root mean square of scores minus their query's mean, the scale that matters for ranking; 1 if it is 0.

    Example:
        >>> import numpy as np, podium
        >>> from podium.combining import deviation
        >>> data = podium.RankingData([[0.0], [1.0]], [0, 1], qid=["a", "a"])
        >>> deviation(data, np.array([1.0, 5.0]))
        2.0

    """
    order, starts = data.canonical_order, data.offsets[:-1][data.query_sizes > 0]
    sizes = data.query_sizes[data.query_sizes > 0]
    exponent = math.frexp(float(np.abs(scores).max(initial=0.0)))[1]  # scale, so that squares do not overflow
    scaled = np.ldexp(scores[order], -exponent)
    centred = scaled - np.repeat(np.add.reduceat(scaled, starts) / sizes, sizes)
    return math.ldexp(math.sqrt(mean(centred * centred)), exponent) or 1.0
