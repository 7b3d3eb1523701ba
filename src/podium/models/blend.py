"""Weights for several rankers, one after the other the exact best ([W] §4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.combining import Sweep, ascend, deviation, weighted
from podium.data import RankingData
from podium.data.schema import as_data
from podium.errors import DataError
from podium.measures import Measure, as_measure, warn_of_powers
from podium.models.combined import Combined, combined_if_models
from podium.models.rankers import scores_of


@dataclass(frozen=True)
class Blend:
    """The result of `combine_all`: a combination of several rankers.

    Attributes:
        weights: of each ranker's scores as they come.
        value: the mean of the measure.
        values: of each ranker alone.
        model: the combined model, where all are models and not just scores.

    Example:
        >>> import podium
        >>> data = podium.RankingData([[1.0, 0.0], [0.0, 1.0]], [0, 1], qid=[1, 1])
        >>> podium.combine_all([data.feature(0), data.feature(1)], data, "ndcg").value
        1.0

    """

    weights: tuple[float, ...]
    value: float
    values: tuple[float, ...]
    model: Combined | None


def combine_all(
    rankers: Sequence[Any],
    data: RankingData,
    measure: Measure | str = "ndcg@10",
    *,
    bounds: tuple[float, float] = (0.0, 2.0),
    cycles: int = 5,
    method: str = "cycles",
    ties: str | int = "expected",
    n_threads: int | None = None,
) -> Blend:
    """Weights for several rankers: each in turn the exact best while the others stand, from several starts.

    Scores are standardised first, so that weights of 1 count alike. The starts are equal weights and each ranker alone;
    the best end is taken. On the data it is fitted to, it is never worse than any of them. Unlike `combine`, this is no
    global optimum: a coordinate at a time may stop short of it.

    Args:
        rankers: two or more, as `combine` takes them.
        data, measure, ties, n_threads: see `combine`.
        bounds: of each weight, in units of the standardised scores.
        cycles: from each start, at most.
        method: `"cycles"` over the weights, or `"powell"`, which also searches along the way that a cycle went.

    Returns:
        The weights of the rankers and the value that they reach.

    Example:
        >>> import podium
        >>> data = podium.artificial(20, features=4)
        >>> blend = podium.combine_all([data.feature(k) for k in range(3)], data, "ndcg@5", cycles=1)
        >>> len(blend.weights), blend.value >= max(blend.values)
        (3, True)

    """
    if len(rankers) < 2:
        raise DataError("combine_all takes two or more rankers")
    if method not in ("cycles", "powell"):
        raise DataError(f"method must be 'cycles' or 'powell', not {method!r}")
    data = as_data(data)
    warn_of_powers([as_measure(measure)], data)
    scores = [scores_of(ranker, data, n_threads) for ranker in rankers]
    sizes = [deviation(data, column) for column in scores]
    standardised = [column / size for column, size in zip(scores, sizes, strict=True)]
    sweep = Sweep(data, measure, ties, n_threads)
    starts = [[1.0] * len(rankers), *np.eye(len(rankers)).tolist()]
    ends = [ascend(sweep, standardised, start, cycles, bounds, turning=method == "powell")[0] for start in starts]
    blends = [tuple(weight / size for weight, size in zip(end, sizes, strict=True)) for end in ends]
    reached = [sweep.value(weighted(scores, blend)) for blend in blends]
    value, weights = max(zip(reached, blends, strict=True), key=lambda end: end[0])
    return Blend(weights, value, tuple(map(sweep.value, scores)), combined_if_models(rankers, weights))
