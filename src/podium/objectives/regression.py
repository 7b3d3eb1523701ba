"""MART's regression."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from podium.data import RankingData
from podium.objectives.base import BoundObjective, Objective
from podium.objectives.points import Points
from podium.objectives.registry import register

Floats = NDArray[np.float64]


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
    score_unit = math.inf

    def bind(self, data: RankingData) -> BoundObjective:
        """On these documents."""
        return _BoundRegression(Points(data, self.labels, self))


class _BoundRegression(BoundObjective):
    changes = False

    def __init__(self, points: Points) -> None:
        self.points, self.document_weights = points, points.document_weights()
        self.base_score = points.mean(points.labels, points.weights)
        self.hessians = points.by_row(points.weights)

    def gradients(self, scores: Floats, iteration: int = 0) -> tuple[Floats, Floats]:
        p = self.points
        return p.by_row(p.weights * (p.labels - scores[p.rows])), self.hessians
