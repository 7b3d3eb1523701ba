"""MART: boosted trees on the labels themselves."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from podium.boosting import Boosted
from podium.data import RankingData
from podium.errors import DataError
from podium.estimators.lambdamart import EnsembleRanker
from podium.estimators.trees import TreeRanker, TreeSettings
from podium.measures import Graded, Measure
from podium.models import ClassEnsemble
from podium.objectives import Logistic, Multiclass, Objective, Regression
from podium.objectives.points import BoundMulticlass

Floats = NDArray[np.float64]


class MART(RegressorMixin, EnsembleRanker):  # type: ignore[misc]
    """Least-squares regression on the labels by boosted trees ([B] §5, [Q]): the pointwise baseline.

    Without queries it is a plain regressor: `fit(X, y)`, and `score` is R². With `qid`, or on `RankingData`, it is a
    ranker, and `score` the mean of the measure.

    Args:
        n_trees, n_leaves, learning_rate: see `LambdaMART`.
        measure: picks the number of trees where there is validation data with queries.
        **settings: the other settings of `LambdaMART`'s trees; splits are those of least squares unless said otherwise.

    """

    _needs_queries = False

    def __init__(
        self,
        n_trees: int = 500,
        n_leaves: int = 15,
        learning_rate: float = 0.1,
        measure: Measure | Graded | str = "ndcg@10",
        **settings: Unpack[TreeSettings],
    ) -> None:
        super().__init__(n_trees, n_leaves, learning_rate, measure, **_pointwise(settings))

    def _objective(self) -> Objective:
        return Regression()

    def score(self, X: Any, y: Any = None, *, qid: Any = None, sample_weight: Any = None) -> float:
        """The mean of the measure where there are queries, R² else."""
        if isinstance(X, RankingData) or qid is not None or y is None:
            return TreeRanker.score(self, X, y, qid=qid, sample_weight=sample_weight)
        return float(RegressorMixin.score(self, X, y, sample_weight))


class MARTClassifier(ClassifierMixin, EnsembleRanker):  # type: ignore[misc]
    """Two classes by boosted trees ([B] §6): log loss with slope σ, balanced on request (eq. 15).

    Args:
        n_trees, n_leaves, learning_rate: see `LambdaMART`.
        measure: picks the number of trees where there is validation data with queries.
        sigma: σ; it changes the scale of the scores and nothing else (without `l2`).
        balanced: let both classes weigh the same.
        **settings: the other settings of `LambdaMART`'s trees.

    Attributes:
        classes_: the two labels, the lower one negative.

    """

    _needs_queries = False

    def __init__(
        self,
        n_trees: int = 100,
        n_leaves: int = 15,
        learning_rate: float = 0.1,
        measure: Measure | Graded | str = "ap",
        *,
        sigma: float = 1.0,
        balanced: bool = False,
        **settings: Unpack[TreeSettings],
    ) -> None:
        super().__init__(n_trees, n_leaves, learning_rate, measure, **_pointwise(settings))
        self.sigma = sigma
        self.balanced = balanced

    def _objective(self) -> Objective:
        return Logistic(self.sigma, self.balanced, above=0.5)

    def fit(self, X: Any, y: ArrayLike | str | None = None, **others: Any) -> MARTClassifier:
        """Train on two classes of labels, see `LambdaMART.fit`."""
        data = self._data(X, y, *(others.pop(k, None) for k in ("qid", "sample_weight", "query_weight")))
        known = np.unique(data.relevance[~np.isnan(data.relevance)])
        if len(known) != 2:
            raise DataError(f"MARTClassifier tells two classes apart, but there are {len(known)} different labels")
        self.classes_ = known
        return super().fit(data.replace(labels=dict(data.labels) | {"relevance": data.relevance == known[1]}), **others)

    def decision_function(self, X: Any) -> Floats:
        """F(x): above 0 for the higher class."""
        return EnsembleRanker.predict(self, X)

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class: 1 / (1 + e^{−2σF}) for the higher one."""
        higher = np.exp(-np.logaddexp(0.0, -2 * self.sigma * self.decision_function(X)))
        return np.column_stack([1 - higher, higher])

    def predict(self, X: Any, n_trees: int | None = None) -> Any:
        """The class of each row."""
        check_is_fitted(self)
        return self.classes_[(EnsembleRanker.predict(self, X, n_trees) > 0).astype(int)]

    def score(self, X: Any, y: Any = None, *, qid: Any = None, sample_weight: Any = None) -> float:
        """The share of rows whose class is right."""
        data = self._data(X, y, qid)
        right = (self.predict(X) == data.relevance).astype(np.float64)
        return float(np.average(right, weights=sample_weight))


class McRank(TreeRanker):
    """Ranking by classification (Li, Burges and Wu 2007; [W]): a tree for each label and round, scores by expectation.

    Args:
        n_trees: rounds, at most; each grows a tree for each label that occurs.
        n_leaves, learning_rate, measure: see `LambdaMART`. [W] ran it with 10 leaves, 0.05 and 1000 rounds.
        expects: rank by expected `"relevance"`, Σ P(k) k, or expected `"gain"`, Σ P(k) (2^k − 1).
        **settings: the other settings of `LambdaMART`'s trees.

    """

    model_: ClassEnsemble

    def __init__(
        self,
        n_trees: int = 500,
        n_leaves: int = 10,
        learning_rate: float = 0.05,
        measure: Measure | Graded | str = "ndcg@10",
        *,
        expects: str = "relevance",
        **settings: Unpack[TreeSettings],
    ) -> None:
        super().__init__(n_trees, n_leaves, learning_rate, measure, **_pointwise(settings))
        self.expects = expects

    def _objective(self) -> Objective:
        return Multiclass(self.expects)

    def _model(self, found: Boosted) -> ClassEnsemble:
        assert isinstance(found.objective, BoundMulticlass)
        return ClassEnsemble(found.ensemble, found.objective.classes, found.objective.worth)

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each label, in rising order."""
        check_is_fitted(self)
        return self.model_.probabilities(self._features(X), n_threads=self.n_threads)


def _pointwise(settings: TreeSettings) -> TreeSettings:
    """The papers' trees, unless other settings are given: least-squares splits, nothing that holds leaves back."""
    defaults: TreeSettings = {"split": "least-squares", "l2": 0.0}
    return defaults | settings
