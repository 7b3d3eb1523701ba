"""Regressors that rank where there are queries."""

from __future__ import annotations

from typing import Any

from podium.data import RankingData
from podium.estimators.ranker import RankerMixin
from podium.estimators.sklearn_bases import RegressorMixin


class RegressorRanker(RegressorMixin, RankerMixin):
    """A regressor of labels: without queries `score` is R², with queries the mean of the measure."""

    _needs_queries = False

    def score(self, X: Any, y: Any = None, *, qid: Any = None, sample_weight: Any = None) -> float:
        """The mean of the measure where there are queries, R² else."""
        if isinstance(X, RankingData) or qid is not None or y is None:
            return RankerMixin.score(self, X, y, qid=qid, sample_weight=sample_weight)
        return float(RegressorMixin.score(self, X, y, sample_weight))
