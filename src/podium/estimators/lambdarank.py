"""LambdaRank."""

from __future__ import annotations

from podium.estimators.nets import NetRanker
from podium.estimators.parameters import LambdaRankParameters
from podium.estimators.ranker import lambda_objective
from podium.objectives import Objective


class LambdaRank(LambdaRankParameters, NetRanker):
    """A net trained on λ of a measure: RankNet's times the change of the measure when two documents swap ([B] §4).

    `objective` may be any of `podium.objectives` with one score for each document.

    Attributes:
        model_, history_, best_iteration_: see `RankNet`.

    Example:
        >>> import podium
        >>> data = podium.artificial(20, features=4)
        >>> podium.LambdaRank("ndcg@5", epochs=2, n_threads=1).fit(data).predict(data).shape
        (1000,)

    """

    def _objective(self) -> Objective:
        return lambda_objective(self)
