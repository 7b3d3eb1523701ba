"""MART: boosted trees on the labels themselves."""

from __future__ import annotations

from typing import Any, Self

from numpy.typing import ArrayLike

from podium.estimators.parameters import MARTParameters
from podium.estimators.regressor_ranker import RegressorRanker
from podium.estimators.tree_ranker import PointwiseRanker
from podium.measures.losses import RMSE, Loss
from podium.objectives import Objective, Regression


class MART(MARTParameters, RegressorRanker, PointwiseRanker):
    """Least-squares regression on the labels by boosted trees ([B] §5, [Q]): the pointwise baseline.

    Without queries it is a plain regressor: `fit(X, y)`, and `score` is R²; the root mean square error picks the number
    of trees. With `qid`, or on `RankingData`, it is a ranker, and `score` the mean of the measure. A document of weight
    d counts as d equal ones.

    Example:
        >>> import podium
        >>> data = podium.artificial(20, features=4)
        >>> model = podium.MART(n_trees=5, n_leaves=4).fit(data.features, data.relevance)
        >>> 0 < model.score(data.features, data.relevance) < 1
        True

    """

    def _objective(self) -> Objective:
        return Regression()

    def _loss(self) -> Loss:
        return RMSE()

    def fit(self, X: Any, y: ArrayLike | str | None = None, **others: Any) -> Self:
        """Train, see `LambdaMART.fit`. Without queries, `eval_set` takes `(X, y)`, or `(X, y, None, sample_weight)`."""
        self._is_plain = self._has_no_queries(X, others.get("qid"))
        return super().fit(X, y, **others)
