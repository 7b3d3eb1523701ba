"""MART's regression."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from podium.core.array_types import Floats
from podium.core.merging import Sum
from podium.core.sums import ExactSum
from podium.data import RankingData
from podium.objectives.base import BoundObjective, Objective
from podium.objectives.points import BoundPoints, Points
from podium.objectives.registry import register


@register
@dataclass(frozen=True)
class Regression(Objective):
    """C = ½ Σ d_i (l_i − s_i)²: y = l − F, a leaf is the mean of its residuals ([Q]); F_0 is the mean label.

    Example:
        >>> import numpy as np, podium
        >>> from podium.objectives import Regression
        >>> data = podium.RankingData([[0.0], [1.0]], [0, 1], qid=["a", "a"])
        >>> Regression().bind(data).gradients(np.zeros(2))[0].round(4).tolist()
        [0.0, 1.0]

    """

    labels: str = "relevance"
    pointwise = True
    works_in_parts = True
    score_unit = math.inf

    def bind(self, data: RankingData) -> BoundObjective:
        """On these documents."""
        return _BoundRegression(Points(data, self.labels, self))


class _BoundRegression(BoundPoints):
    def __init__(self, points: Points) -> None:
        super().__init__(points)
        self.base_score = points.mean(points.labels, points.weights)
        self.hessians = points.by_row(points.weights)

    def facts_of_points(self) -> Any:
        p = self.points
        return Sum((ExactSum.of(p.labels * p.weights), ExactSum.of(p.weights)))

    def set_facts_of_points(self, facts: Any) -> None:
        total, weight = map(float, facts)
        self.base_score = total / (weight or 1.0)

    def gradients(self, scores: Floats, iteration: int = 0) -> tuple[Floats, Floats]:
        p = self.points
        return p.by_row(p.weights * (p.labels - scores[p.rows])), self.hessians
