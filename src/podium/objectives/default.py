"""What `Ranker` and the first members of a committee train on."""

from __future__ import annotations

from podium.measures import Measure
from podium.objectives.base import Objective
from podium.objectives.lambdarank import Lambda
from podium.objectives.query_regression import QueryRegression
from podium.objectives.sum import Sum


def default_objective(measure: Measure) -> Objective:
    """λ of a measure and query regression on its labels at once.

    Example:
        >>> from podium.measures import NDCG
        >>> from podium.objectives import default_objective, describe
        >>> describe(default_objective(NDCG(10)))
        'Sum(Lambda(measure="ndcg@10", normalize=true), QueryRegression(), weights=[0.5, 0.5])'

    """
    return Sum(Lambda(measure, normalize=True), QueryRegression(measure.labels))
