"""MART's classification into two classes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from podium.core.array_types import Floats
from podium.core.merging import Sum
from podium.core.sums import ExactSum
from podium.core.validation import require_number
from podium.data import RankingData
from podium.errors import DataError
from podium.objectives.base import BoundObjective, Objective
from podium.objectives.points import BoundPoints, Points
from podium.objectives.registry import register


@register
@dataclass(frozen=True)
class Logistic(Objective):
    """Two classes, t = +1 where the label is above `above` and −1 else: C = Σ d_i log(1 + e^{−2σtF}) ([B] §6).

    F_0 = (1/2σ) log((1 + t̄)/(1 − t̄)), y = 2tσ / (1 + e^{2tσF}), leaf = Σy / Σ|y|(2σ − |y|). σ changes the scale of
    F and nothing else. Balanced ([B] 6.1, eq. 15): each document counts 1/n₊ or 1/n₋ times, in y and in both sums of
    the leaf.

    Args:
        sigma: σ.
        balanced: let both classes weigh the same.
        above: labels above this are positive.
        labels: the label source.

    Example:
        >>> import numpy as np, podium
        >>> from podium.objectives import Logistic
        >>> data = podium.RankingData([[0.0], [1.0]], [0, 1], qid=["a", "a"])
        >>> Logistic().bind(data).gradients(np.zeros(2))[0].round(4).tolist()
        [-1.0, 1.0]

    """

    sigma: float = 1.0
    balanced: bool = False
    above: float = 0.0
    labels: str = "relevance"
    pointwise = True
    works_in_parts = True
    sides: ClassVar[tuple[float, ...]] = ()

    def __post_init__(self) -> None:
        require_number("sigma", self.sigma, above=0)
        require_number("above", self.above)

    @property
    def score_unit(self) -> float:  # type: ignore[override]
        """1/σ."""
        return 1.0 / self.sigma

    def bind(self, data: RankingData) -> BoundObjective:
        """On these documents."""
        return _BoundLogistic(self, Points(data, self.labels, self))

    def fixed(self, data: RankingData) -> Self:
        """With what the two classes of this data weigh."""
        fixed = super().fixed(data)
        object.__setattr__(fixed, "sides", _BoundLogistic(self, Points(data, self.labels, self)).sides)
        return fixed


class _BoundLogistic(BoundPoints):
    def __init__(self, objective: Logistic, points: Points) -> None:
        super().__init__(points)
        self.objective, self.sigma = objective, objective.sigma
        self.t = np.where(points.labels > objective.above, 1.0, -1.0)
        if objective.in_parts:
            return
        if not objective.checked:
            self._set_sides(*(math.fsum(points.weights[self.t == side]) for side in (1.0, -1.0)))
        else:  # a part of the data: what both classes of all weigh was kept
            self._set_sides(*objective.sides)

    def facts_of_points(self) -> Any:
        return Sum(tuple(ExactSum.of(self.points.weights[self.t == side]) for side in (1.0, -1.0)))

    def set_facts_of_points(self, facts: Any) -> None:
        self._set_sides(*map(float, facts))

    def _set_sides(self, positive: float, negative: float) -> None:
        """Take note of what both classes of all data weigh."""
        objective, points, sides = self.objective, self.points, (positive, negative)
        if min(sides) <= 0:
            raise DataError(
                f"Logistic needs documents of both classes, with labels above {objective.above:g} and at most that"
            )
        self.sides = sides
        self.weights = points.weights
        if objective.balanced:  # [B] eq. 15
            self.weights = points.weights / np.where(self.t > 0, *sides)
        self.base_score = 0.0  # (1 + t̄) / (1 − t̄) is what the positive documents weigh over what the others do
        if not objective.balanced:
            self.base_score = math.log(sides[0] / sides[1]) / (2 * self.sigma)

    def gradients(self, scores: Floats, iteration: int = 0) -> tuple[Floats, Floats]:
        p, sigma = self.points, self.sigma
        x = 2 * sigma * self.t * scores[p.rows]
        y = 2 * sigma * np.exp(-np.logaddexp(0.0, x))  # |y|
        return p.by_row(self.weights * self.t * y), p.by_row(self.weights * y * (2 * sigma - y))
