"""What `Ranker` and the first members of a committee train on."""

from __future__ import annotations

from podium.measures import Measure
from podium.objectives.base import Objective
from podium.objectives.lambda_ import Lambda
from podium.objectives.listwise import QueryRegression
from podium.objectives.pair_terms import measure_in_training
from podium.objectives.schedules import LinearGrowth
from podium.objectives.sums import Anneal

TREES = 100  # until λ alone is left, at the learning rate 0.05; the faster the learning, the fewer
LEARNING_RATE = 0.05


def default_objective(measure: Measure, learning_rate: float = LEARNING_RATE) -> Objective:
    """From query regression to λ of a measure, on the same labels, within the first hundred trees or so.

    Query regression (CatBoost's QueryRMSE) learns from all documents how labels differ, λ then puts the top in order.

    Args:
        measure: whose λ is trained on.
        learning_rate: of the trees: with twice the rate the change takes half as many trees.

    Example:
        >>> from podium.measures import NDCG
        >>> from podium.objectives import default_objective
        >>> objective = default_objective(NDCG(10))
        >>> [round(objective.schedule(tree), 2) for tree in (0, 50, 100)]  # the share of λ
        [0.0, 0.5, 1.0]

    """
    growth = round(learning_rate / (LEARNING_RATE * TREES), 12)
    after = Lambda(measure_in_training(measure, None))
    return Anneal(QueryRegression(measure.labels), after, LinearGrowth(0.0, growth))
