"""The best combination of rankers: exact for two ([B] 7.1, [W] §4), by coordinate ascent for several."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.combining import Path, Sweep, ascend, best_mixture, deviation, weighted
from podium.core.array_types import Floats
from podium.core.plotting import draw
from podium.data import RankingData
from podium.data.schema import as_data
from podium.errors import DataError
from podium.measures import Measure, as_measure, warn_of_powers
from podium.models.base import Model, model_of
from podium.models.combined import Combined
from podium.models.rankers import scores_of

METHODS = ("cycles", "powell")


@dataclass(frozen=True)
class Combination:
    """The best combination Σ_k weights_k · scores_k of rankers on data.

    For two rankers a and b it is (1 − α) a + α b; `alpha`, `interval` and `path` are None for more than two.

    Attributes:
        weights: the weight of each ranker's scores. For two rankers they are 1 − α and α, unless the scores of one are
            so much larger that floating point cannot represent α, such as 1 − 1e-20. The weights then are (1e-20, 1).
            If even that is out of range, their sum is a power of two instead of 1.
        value: the mean of the measure for these weights.
        values: the mean of the measure for each ranker alone.
        measure: the name of the measure.
        model: the combined model, if all rankers are models or estimators and not just scores.
        alpha: α, rounded to the nearest float.
        interval: the open interval of α on which the measure has this value; both ends are `alpha` if only α has it.
        path: the measure as a function of α.

    Example:
        >>> import podium
        >>> data = podium.RankingData([[1.0, 0.0], [0.0, 1.0]], [0, 1], qid=[1, 1])
        >>> result = podium.combine(data.feature(0), data.feature(1), data, "ndcg")
        >>> result.interval, result.value
        ((0.5, 1.0), 1.0)

    """

    weights: tuple[float, ...]
    value: float
    values: tuple[float, ...]
    measure: str
    model: Combined | None
    alpha: float | None = None
    interval: tuple[float, float] | None = None
    path: Path | None = None

    def __str__(self) -> str:
        if self.alpha is None:
            weights, values = (", ".join(f"{x:.4g}" for x in row) for row in (self.weights, self.values))
            return f"weights {weights}: {self.measure} {self.value:.4f} (alone {values})"
        first, second = self.values
        alpha = f"α = {self.alpha:.4g}"
        if self.weights != (1.0 - self.alpha, self.alpha):
            alpha += f" (weights {self.weights[0]:.4g} and {self.weights[1]:.4g})"
        return f"{alpha}: {self.measure} {self.value:.4f} (a {first:.4f}, b {second:.4f})"

    def plot(self) -> Any:
        """Return a chart of the measure by α for two rankers, with the best α marked (extra `report`)."""
        if self.path is None:
            raise DataError(f"only a combination of two rankers can be plotted, but this has {len(self.weights)}")
        return draw("path", self)


def combine(
    *rankers: Any,
    data: Any = None,
    measure: Measure | str = "ndcg@10",
    bounds: tuple[float, float] | None = None,
    ties: str | int = "expected",
    cycles: int | None = None,
    method: str | None = None,
    n_threads: int | None = None,
) -> Combination:
    """Find the weights of rankers whose weighted sum has the best mean of a measure.

    For two rankers, it finds the exact best α of (1 − α) a + α b by visiting every α at which two documents of a query
    swap ranks. With expected ties, the crossing itself, where these documents are tied, counts as well. The optimum is
    exact for rankers of any scale.

    For three or more, it uses coordinate ascent: it sets each weight in turn to its exact optimum while the others are
    fixed. Scores are standardized first, so that equal weights mean equal influence. The search starts from equal
    weights and from each ranker alone, and returns the best result. It may miss the global optimum.

    On the data that it is fitted to, a combination is never worse than any of its rankers.

    Args:
        *rankers: two or more models, estimators, objects with `predict`, functions of the data, or arrays of scores.
            Data and measure may follow as positional arguments: `combine(a, b, data, "ndcg@10")`.
        data: the queries to maximize the mean on, as `RankingData` or a frame.
        measure: any measure with swap deltas.
        bounds: the bounds of α, (0, 1) by default; for three or more rankers, the bounds of each weight of standardized
            scores, (0, 2) by default.
        ties: how to order documents that are tied for every α: `"expected"`, `"stable"`, `"jitter"`, or a feature by
            name or number.
        cycles: the maximum number of cycles over the weights of three or more rankers from each start; 5 by default.
        method: for three or more rankers, `"cycles"` over the weights (the default), or `"powell"`, which also searches
            along the direction in which a cycle moved.
        n_threads: the number of threads; all cores by default. The result is the same.

    Returns:
        The weights, their value and the values of the rankers; for two rankers also α and the measure as a function
        of α.

    Example:
        >>> import podium
        >>> data = podium.artificial(20, features=4)
        >>> best = podium.combine(data.feature(0), data.feature(1), data, "ndcg@5")
        >>> 0 <= best.alpha <= 1, best.value >= max(best.values)
        (True, True)
        >>> best = podium.combine(*(data.feature(k) for k in range(3)), data=data, measure="ndcg@5", cycles=1)
        >>> len(best.weights), best.value >= max(best.values)
        (3, True)

    """
    if data is None:
        rankers, data, measure = _split_positional(rankers, measure)
    if len(rankers) < 2:
        raise DataError(f"pass at least two rankers to combine, but got {len(rankers)}")
    if len(rankers) > 2:
        return _by_ascent(rankers, data, measure, bounds, ties, cycles, method, n_threads)
    for name, value in (("cycles", cycles), ("method", method)):
        if value is not None:
            raise DataError(f"{name} only applies to three or more rankers, because the result for two is exact")
    scores, sweep = _prepare(rankers, data, measure, ties, n_threads)
    low, high = bounds or (0.0, 1.0)
    best = best_mixture(sweep, scores[0], scores[1], low, high)
    return _combination(rankers, scores, sweep, best.weights, best.value, best.alpha, best.interval, best.path)


def _split_positional(arguments: tuple[Any, ...], measure: Measure | str) -> tuple[tuple[Any, ...], Any, Measure | str]:
    """Return rankers, data and measure of `combine(a, b, data)` and `combine(a, b, data, measure)`."""
    if arguments and isinstance(arguments[-1], str | Measure):
        *arguments, measure = arguments  # type: ignore[assignment]
    if len(arguments) < 2:
        raise DataError("pass rankers and the data to combine them on, as in combine(a, b, data, 'ndcg@10')")
    *rankers, data = arguments
    return tuple(rankers), data, measure


def _prepare(
    rankers: Sequence[Any], data: Any, measure: Measure | str, ties: str | int, n_threads: int | None
) -> tuple[list[Floats], Sweep]:
    """Return the scores of each ranker, and the sweep that measures weighted sums of them."""
    data = as_data(data)
    warn_of_powers([as_measure(measure)], data)
    return [scores_of(ranker, data, n_threads) for ranker in rankers], Sweep(data, measure, ties, n_threads)


def _by_ascent(
    rankers: Sequence[Any], data: Any, measure: Measure | str, bounds: tuple[float, float] | None, ties: str | int,
    cycles: int | None, method: str | None, n_threads: int | None,
) -> Combination:  # fmt: skip
    """Return the best result of coordinate ascent from equal weights and from each ranker alone."""
    method = "cycles" if method is None else method
    if method not in METHODS:
        raise DataError(f"method must be 'cycles' or 'powell', but got {method!r}")
    scores, sweep = _prepare(rankers, data, measure, ties, n_threads)
    sizes = [deviation(sweep.data, column) for column in scores]
    standardized = [column / size for column, size in zip(scores, sizes, strict=True)]
    starts = [[1.0] * len(rankers), *np.eye(len(rankers)).tolist()]
    cycles, bounds = 5 if cycles is None else cycles, bounds or (0.0, 2.0)
    ends = [ascend(sweep, standardized, start, cycles, bounds, turning=method == "powell")[0] for start in starts]
    combinations = [tuple(weight / size for weight, size in zip(end, sizes, strict=True)) for end in ends]
    values = [sweep.value(weighted(scores, weights)) for weights in combinations]
    value, weights = max(zip(values, combinations, strict=True), key=lambda end: end[0])
    return _combination(rankers, scores, sweep, weights, value)


def _combination(
    rankers: Sequence[Any], scores: list[Floats], sweep: Sweep, weights: tuple[float, ...], value: float, *of_two: Any
) -> Combination:
    """Return the result, with a combined model if all rankers are models or estimators."""
    parts = tuple(map(model_of, rankers))
    model = Combined(parts, weights) if all(isinstance(part, Model) for part in parts) else None
    return Combination(weights, value, tuple(map(sweep.value, scores)), str(sweep.measure), model, *of_two)


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
) -> Combination:
    """Find the weights of several rankers; deprecated, use `combine`.

    Example:
        >>> import podium, warnings
        >>> data = podium.artificial(20, features=3)
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore", FutureWarning)
        ...     len(podium.combine_all([data.feature(0), data.feature(1), data.feature(2)], data).weights)
        3

    """
    advice = "combine_all(rankers, data) will be removed in the next release: use combine(*rankers, data=data)"
    warnings.warn(advice, FutureWarning, stacklevel=2)
    if len(rankers) < 2:
        raise DataError("pass at least two rankers to combine_all")
    return _by_ascent(rankers, data, measure, bounds, ties, cycles, method, n_threads)
