"""Regression of the differences within a query."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from podium.core.array_types import Floats
from podium.objectives.list_loss import ListLoss, Lists
from podium.objectives.registry import register


@register
@dataclass(frozen=True)
class QueryRegression(ListLoss):
    """C = ½ Σ_i d_i (r_i − r̄)², r = l − s the residuals, r̄ their mean in the query: CatBoost's QueryRMSE.

    Only differences within a query count: what is learnt is how documents of a query differ, not how queries do.

    Example:
        >>> import numpy as np, podium
        >>> from podium.objectives import QueryRegression
        >>> data = podium.RankingData([[0.0], [1.0]], [0, 1], qid=["a", "a"])
        >>> QueryRegression().bind(data).gradients(np.zeros(2))[0].round(4).tolist()
        [-0.5, 0.5]

    """

    labels: str = "relevance"
    score_unit = math.inf

    def of_lists(self, lists: Lists, scores: Floats, iteration: int) -> tuple[Floats, Floats]:  # noqa: D102
        residuals, d = lists.labels - scores, lists.weights
        total = lists.sums(d)
        mean = lists.sums(d * residuals) / np.where(total > 0, total, 1.0)
        return d * (residuals - mean), d
