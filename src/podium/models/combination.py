"""The exact best combination of two rankers ([B] 7.1, [W] §4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from podium.combining import Path, Sweep, best_mixture
from podium.core.plotting import draw
from podium.data import RankingData
from podium.data.schema import as_data
from podium.measures import Measure, as_measure, warn_of_powers
from podium.models.combined import Combined, combined_if_models
from podium.models.rankers import scores_of


@dataclass(frozen=True)
class Combination:
    """The best combination of two rankers on some data: s = (1 − α) a + α b.

    Attributes:
        alpha: α, the nearest number there is.
        weights: of a and b: 1 − α and α where α can represent them. Beside scores that are larger by far no α may do,
            such as 1 − 1e-20; the weights then are (1e-20, 1). Only where that is out of range as well, their sum is
            a power of two instead of 1.
        value: the mean of the measure for weights[0] · a + weights[1] · b.
        values: of a alone and b alone.
        interval: the open interval of α on which the value holds; both ends are `alpha` where it holds there alone.
        path: the measure along all α.
        measure: its name.
        model: the combined model, where a and b are models and not just scores.

    Example:
        >>> import podium
        >>> data = podium.RankingData([[1.0, 0.0], [0.0, 1.0]], [0, 1], qid=[1, 1])
        >>> result = podium.combine(data.feature(0), data.feature(1), data, "ndcg")
        >>> result.interval, result.value
        ((0.5, 1.0), 1.0)

    """

    alpha: float
    weights: tuple[float, float]
    value: float
    values: tuple[float, float]
    interval: tuple[float, float]
    path: Path
    measure: str
    model: Combined | None

    def __str__(self) -> str:
        first, second = self.values
        alpha = f"α = {self.alpha:.4g}"
        if self.weights != (1.0 - self.alpha, self.alpha):
            alpha += f" (weights {self.weights[0]:.4g} and {self.weights[1]:.4g})"
        return f"{alpha}: {self.measure} {self.value:.4f} (a {first:.4f}, b {second:.4f})"

    def plot(self) -> Any:
        """The measure along all α, with the best of them, as a chart (extra `report`)."""
        return draw("path", self)


def combine(
    a: Any,
    b: Any,
    data: RankingData,
    measure: Measure | str = "ndcg@10",
    *,
    bounds: tuple[float, float] = (0.0, 1.0),
    ties: str | int = "expected",
    n_threads: int | None = None,
) -> Combination:
    """The α for which (1 − α) a + α b has the best mean of a measure, of all α between the bounds.

    Every α at which two documents of a query change places is visited. With expected ties the crossing itself counts as
    well, where these documents are tied. The optimum is exact, whatever the scales of the two rankers. On the data that
    it is fitted to, it is never worse than either.

    Args:
        a, b: rankers: models, estimators, any object with `predict`, functions of the data; or their scores of its
            rows.
        data: the queries whose mean counts, as `RankingData` or as a frame.
        measure: any measure with swap deltas.
        bounds: α between these.
        ties: how documents stand that are tied for every α: `"expected"`, `"stable"`, `"jitter"`, or a feature by
            name or number.
        n_threads: all cores by default; the result is the same.

    Returns:
        The best α and the value there, with the values of both rankers and of all other α.

    Example:
        >>> import podium
        >>> data = podium.artificial(20, features=4)
        >>> best = podium.combine(data.feature(0), data.feature(1), data, "ndcg@5")
        >>> 0 <= best.alpha <= 1, best.value >= max(best.values)
        (True, True)

    """
    data = as_data(data)
    warn_of_powers([as_measure(measure)], data)
    first, second = (scores_of(ranker, data, n_threads) for ranker in (a, b))
    sweep = Sweep(data, measure, ties, n_threads)
    best = best_mixture(sweep, first, second, *bounds)
    values = sweep.value(first), sweep.value(second)
    model = combined_if_models((a, b), best.weights)
    return Combination(
        best.alpha, best.weights, best.value, values, best.interval, best.path, str(sweep.measure), model
    )
