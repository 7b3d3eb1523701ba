"""MART: boosted trees on the labels themselves."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, column_or_1d

from podium.boosting import Boosting, TrainingResult
from podium.data import RankingData
from podium.errors import DataError
from podium.estimators.lambdamart import EnsembleRanker
from podium.estimators.ranker import require_entry
from podium.estimators.trees import TreeRanker, TreeSettings
from podium.measures import Graded, Measure
from podium.measures.losses import RMSE, LogLoss, Loss
from podium.models import ClassEnsemble
from podium.objectives import Logistic, Multiclass, Objective, Regression
from podium.objectives.points import BoundMulticlass

Floats = NDArray[np.float64]
# The papers' trees: least-squares splits, and nothing that holds leaves back.
POINTWISE: TreeSettings = {"split": "least-squares", "l2": 0.0}


class _Pointwise(EnsembleRanker):
    """Trees on single documents. Without queries, their own loss picks the number of trees."""

    _needs_queries = False
    _usual = POINTWISE
    _is_plain = False  # whether there were no queries

    @abstractmethod
    def _loss(self) -> Loss:
        """What is lower for a better model."""

    def _settings(self, train: RankingData) -> Boosting:
        found = super()._settings(train)
        return replace(found, selection=self._loss()) if self._is_plain else found


class MART(RegressorMixin, _Pointwise):  # type: ignore[misc]
    """Least-squares regression on the labels by boosted trees ([B] §5, [Q]): the pointwise baseline.

    Without queries it is a plain regressor: `fit(X, y)`, and `score` is R²; the root mean square error picks the number
    of trees. With `qid`, or on `RankingData`, it is a ranker, and `score` the mean of the measure. A document of weight
    d counts as d equal ones.

    Args:
        n_trees, n_leaves, learning_rate: see `LambdaMART`.
        measure: picks the number of trees where there is validation data with queries.
        **settings: the other settings of `LambdaMART`'s trees; splits are those of least squares unless said otherwise.

    """

    def __init__(
        self,
        n_trees: int = 500,
        n_leaves: int = 15,
        learning_rate: float = 0.1,
        measure: Measure | Graded | str = "ndcg@10",
        **settings: Unpack[TreeSettings],
    ) -> None:
        super().__init__(n_trees, n_leaves, learning_rate, measure, **POINTWISE | settings)

    def _objective(self) -> Objective:
        return Regression()

    def _loss(self) -> Loss:
        return RMSE()

    def fit(self, X: Any, y: ArrayLike | str | None = None, **others: Any) -> Self:
        """Train, see `LambdaMART.fit`. Without queries, `eval_set` takes `(X, y)`, or `(X, y, None, sample_weight)`."""
        self._is_plain = self._has_no_queries(X, others.get("qid"))
        return super().fit(X, y, **others)

    def score(self, X: Any, y: Any = None, *, qid: Any = None, sample_weight: Any = None) -> float:
        """The mean of the measure where there are queries, R² else."""
        if isinstance(X, RankingData) or qid is not None or y is None:
            return TreeRanker.score(self, X, y, qid=qid, sample_weight=sample_weight)
        return float(RegressorMixin.score(self, X, y, sample_weight))


class MARTClassifier(ClassifierMixin, _Pointwise):  # type: ignore[misc]
    """Two classes by boosted trees ([B] §6): log loss with slope σ, balanced on request (eq. 15).

    Without queries the log loss picks the number of trees. A document of weight d counts as d equal ones.

    Args:
        n_trees, n_leaves, learning_rate: see `LambdaMART`.
        measure: picks the number of trees where there is validation data with queries.
        sigma: σ; it changes the scale of the scores and nothing else (without `l2`).
        balanced: let both classes weigh the same.
        **settings: the other settings of `LambdaMART`'s trees.

    Attributes:
        classes_: the two labels, of any type, in their order; the second one is positive.

    """

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
        super().__init__(n_trees, n_leaves, learning_rate, measure, **POINTWISE | settings)
        self.sigma = sigma
        self.balanced = balanced

    def _objective(self) -> Objective:
        return Logistic(self.sigma, self.balanced, above=0.5)

    def _loss(self) -> Loss:
        return LogLoss(sigma=self.sigma, balanced=self.balanced)

    def fit(self, X: Any, y: ArrayLike | str | None = None, **others: Any) -> Self:
        """Train on two classes of labels, see `MART.fit`."""
        known = self._labels(X, y)
        found = np.unique(known[~_is_missing(known)])
        if len(found) != 2:
            raise DataError(
                f"MARTClassifier tells two classes apart, but there are {len(found)} different labels "
                "(only binary classification is supported)"
            )
        self.classes_ = found
        self._is_plain = self._has_no_queries(X, others.get("qid"))
        given = [others.pop(name, None) for name in ("qid", "sample_weight", "query_weight")]
        super().fit(self._binary(X, y, *given), **others)
        self.sigma_ = float(self.sigma)
        self.model_ = self.model_.with_info(classes=found.tolist(), sigma=self.sigma_)
        return self

    def _labels(self, X: Any, y: Any) -> NDArray[Any]:
        """The labels of each row, of any type."""
        if isinstance(X, RankingData):
            return X.relevance
        if y is None or isinstance(y, str):
            return self._data(X, y, None).relevance
        found: NDArray[Any] = column_or_1d(y, warn=True)
        return found

    def _binary(self, X: Any, y: Any, *given: Any) -> RankingData:
        """The data with 1 for the second class, 0 for the first, NaN for no label."""
        labels = self._labels(X, y)
        missing = _is_missing(labels)
        strange = np.setdiff1d(labels[~missing], self.classes_)
        if len(strange):
            raise DataError(f"there is a label {strange[0]!r} that training has not seen")
        codes = np.where(missing, np.nan, labels == self.classes_[1]).astype(np.float32)
        if isinstance(X, RankingData) or y is None or isinstance(y, str):
            data = self._data(X, y, *given)
            return data.replace(labels=dict(data.labels) | {"relevance": codes})
        return self._data(X, codes, *given)

    def _validation(self, valid: Any, eval_set: Any) -> dict[str, RankingData]:
        sets = super()._validation(valid, None) if valid is not None else {}
        found = {name: self._binary(data, None) for name, data in sets.items()}
        several = [eval_set] if isinstance(eval_set, tuple) else eval_set
        if several is not None:
            for one in several if isinstance(several, list) else [None]:
                require_entry(one, needs_queries=False)
            several = [(one[0], self._binary(one[0], one[1], None).relevance, *one[2:]) for one in several]
        return found | super()._validation(found or None, several)

    def decision_function(self, X: Any) -> Floats:
        """F(x): above 0 for the second class."""
        return self._predict(X)

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class: 1 / (1 + e^{−2σF}) for the second one."""
        higher = np.exp(-np.logaddexp(0.0, -2 * self.sigma_ * self.decision_function(X)))
        return np.column_stack([1 - higher, higher])

    def predict(self, X: Any, n_trees: int | None = None) -> Any:
        """The class of each row."""
        check_is_fitted(self)
        return self.classes_[(self._predict(X, n_trees=n_trees) > 0).astype(int)]

    def score(self, X: Any, y: Any = None, *, qid: Any = None, sample_weight: Any = None) -> float:
        """The share of labelled rows whose class is right."""
        labels = self._labels(X, y)
        known = ~_is_missing(labels)
        right = (self.predict(X) == labels).astype(np.float64)[known]
        return float(np.average(right, weights=None if sample_weight is None else np.asarray(sample_weight)[known]))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def _is_missing(labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Which labels are NaN."""
    return np.isnan(labels) if labels.dtype.kind == "f" else np.zeros(len(labels), bool)


class McRank(TreeRanker):
    """Ranking by classification (Li, Burges and Wu 2007; [W]): a tree for each label and round, scores by expectation.

    Args:
        n_trees: rounds, at most; each grows a tree for each label that occurs.
        n_leaves, learning_rate, measure: see `LambdaMART`. [W] ran it with 10 leaves, 0.05 and 1000 rounds.
        expects: rank by expected `"relevance"`, Σ P(k) k, or expected `"gain"`, Σ P(k) (2^k − 1).
        **settings: the other settings of `LambdaMART`'s trees.

    Attributes:
        classes_: the labels that occur, rising: the columns of `predict_proba`.

    """

    model_: ClassEnsemble
    _usual = POINTWISE

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
        super().__init__(n_trees, n_leaves, learning_rate, measure, **POINTWISE | settings)
        self.expects = expects

    def _objective(self) -> Objective:
        return Multiclass(self.expects)

    def _model(self, found: TrainingResult) -> ClassEnsemble:
        assert isinstance(found.objective, BoundMulticlass)
        self.classes_ = found.objective.classes
        return ClassEnsemble(found.ensemble, found.objective.classes, found.objective.worth)

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each label, in rising order."""
        check_is_fitted(self)
        return self.model_.probabilities(X, n_threads=self.n_threads)
