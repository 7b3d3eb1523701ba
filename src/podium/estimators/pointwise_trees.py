"""Trees on single documents: `MART`, `MARTClassifier`, `McRank`, `OrdinalMART`, `AdditiveGroves`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from podium.boosting import GrovesTraining, TrainingResult
from podium.core.array_types import Bools, Float32s, Floats
from podium.core.parameters import from_parameters
from podium.core.team import Team
from podium.data import RankingData
from podium.errors import DataError
from podium.estimators.base_ranker import (
    BaseRanker,
    ClassifierMixin,
    Published,
    RegressorMixin,
    WeightedTrees,
    check_is_fitted,
)
from podium.estimators.diagnosis import warn_if_constant
from podium.estimators.parameters import (
    AdditiveGrovesParameters,
    MARTClassifierParameters,
    MARTParameters,
    McRankParameters,
    OrdinalMARTParameters,
)
from podium.estimators.tree_ranker import TreeRanker, categorical_features
from podium.measures import as_watched
from podium.measures.losses import RMSE, LogLoss, Loss
from podium.models import BoundaryEnsemble, ClassEnsemble, Model
from podium.objectives import Cumulative, Logistic, Multiclass, Objective, Ordinal, Regression
from podium.objectives.ordinal import BoundOrdinal, class_probabilities
from podium.objectives.pointwise import BoundMulticlass


class RegressorRanker(RegressorMixin, BaseRanker):
    """A regressor of labels: without queries `score` is R², with queries the mean of the measure."""

    _needs_queries = False

    def _loss(self) -> Loss:
        return RMSE()

    def score(self, X: Any, y: Any = None, *, qid: Any = None, sample_weight: Any = None) -> float:
        """Return the mean of the measure if there are queries, else R²."""
        if isinstance(X, RankingData) or qid is not None or y is None:
            return BaseRanker.score(self, X, y, qid=qid, sample_weight=sample_weight)
        return float(RegressorMixin.score(self, X, y, sample_weight))


class MART(Published, MARTParameters, RegressorRanker, TreeRanker):
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

    def _objective(self, train: RankingData) -> Objective:
        return Regression()


class MARTClassifier(Published, MARTClassifierParameters, ClassifierMixin, TreeRanker):
    """Two classes by boosted trees ([B] §6): log loss with slope σ, balanced on request (eq. 15).

    Without queries the log loss picks the number of trees. A document of weight d counts as d equal ones.

    Attributes:
        classes_: the two labels, of any type, in their order; the second one is positive.

    Example:
        >>> import podium
        >>> data = podium.artificial(20, features=4)
        >>> model = podium.MARTClassifier(n_trees=5, n_leaves=4).fit(data.features, data.relevance > 1)
        >>> model.predict_proba(data.features).shape
        (1000, 2)

    """

    _needs_queries = False

    def _objective(self, train: RankingData) -> Objective:
        return Logistic(self.sigma, self.balanced, above=0.5)

    def _loss(self) -> Loss:
        return LogLoss(sigma=self.sigma, balanced=self.balanced)

    def fit(self, X: Any, y: ArrayLike | str | None = None, **others: Any) -> Self:
        """Train on labels of two classes, see `LambdaMART.fit`."""
        labels = self._labels(X, y)
        self.classes_ = two_classes(labels[~_is_missing(labels)], "MARTClassifier")
        return super().fit(X, y, **others)

    def _set_model(self, result: TrainingResult, train: RankingData, model: Model | None = None) -> None:
        super()._set_model(result, train, model)
        self.model_ = self.model_.with_info(classes=self.classes_.tolist(), sigma=float(self.sigma))

    def _labels(self, X: Any, y: Any) -> NDArray[Any]:
        """Return the labels of each row, of any type."""
        if isinstance(X, RankingData):
            return X.relevance
        if y is None or isinstance(y, str):
            return super()._data(X, y).relevance
        from sklearn.utils.validation import column_or_1d

        return np.asarray(column_or_1d(y, warn=True))

    def _data(self, X: Any, y: Any = None, *others: Any) -> RankingData:
        """Return the data with 1 for the second class, 0 for the first, NaN for no label."""
        codes = class_codes(self._labels(X, y), self.classes_)
        if isinstance(X, RankingData) or y is None or isinstance(y, str):
            data = super()._data(X, y, *others)
            return data.replace(labels=dict(data.labels) | {"relevance": codes})
        return super()._data(X, codes, *others)

    def decision_function(self, X: Any) -> Floats:
        """Return F(x), which is above 0 for the second class."""
        return self._predict(X)

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class: 1 / (1 + e^{−2σF}) for the second one."""
        scores = self.decision_function(X)
        second = np.exp(-np.logaddexp(0.0, -2 * self.model_.info["sigma"] * scores))
        return np.column_stack([1 - second, second])

    def predict(self, X: Any, n_trees: int | None = None, **options: Any) -> Any:
        """Return the class of each row."""
        check_is_fitted(self)
        return self.classes_[(self._predict(X, n_trees=n_trees, **options) > 0).astype(int)]

    def score(self, X: Any, y: Any = None, *, qid: Any = None, sample_weight: Any = None) -> float:
        """Return the share of labelled rows whose class is right."""
        labels = self._labels(X, y)
        labelled = ~_is_missing(labels)
        right = (self.predict(X) == labels).astype(np.float64)[labelled]
        weights = None if sample_weight is None else np.asarray(sample_weight)[labelled]
        return float(np.average(right, weights=weights))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def two_classes(labels: NDArray[Any], estimator: str) -> NDArray[Any]:
    """Return the two classes that labels have, in their order; raise if there are not two."""
    classes = np.unique(labels)
    if len(classes) != 2:
        raise DataError(
            f"{estimator} separates two classes, but the labels have {len(classes)} "
            f"class{'es' * (len(classes) != 1)}. Only binary classification is supported."
        )
    return classes


def class_codes(labels: NDArray[Any], classes: NDArray[Any]) -> Float32s:
    """Return 1 for the second class, 0 for the first, NaN for no label."""
    missing = _is_missing(labels)
    unknown = np.setdiff1d(labels[~missing], classes)
    if len(unknown):
        raise DataError(f"the label {unknown[0]!r} does not occur in the training data")
    return np.where(missing, np.nan, labels == classes[1]).astype(np.float32)


def _is_missing(labels: NDArray[Any]) -> Bools:
    """Return which labels are NaN."""
    return np.isnan(labels) if labels.dtype.kind == "f" else np.zeros(len(labels), bool)


class McRank(Published, McRankParameters, TreeRanker):
    """Ranking by classification (Li, Burges and Wu 2007; [W]): a tree for each label and round, scores by expectation.

    `n_trees` counts rounds; each grows a tree for each label that occurs, or for each boundary between two of them
    (`form="ordinal"`). [W] ran it with 10 leaves, 0.05 and 1000 rounds.

    Attributes:
        model_: the `ClassEnsemble`, or for boundaries the `BoundaryEnsemble`.
        classes_: the labels that occur, ascending: the columns of `predict_proba`.

    Example:
        >>> import podium
        >>> data = podium.artificial(20, features=4)
        >>> model = podium.McRank(n_trees=2, n_leaves=4).fit(data)
        >>> model.predict_proba(data).shape == (len(data), len(model.classes_))
        True

    """

    _published = {"n_trees": 1000}  # noqa: RUF012, [W] §5.2

    def _objective(self, train: RankingData) -> Objective:
        if self.form == "multiclass" and any(self._monotone(train) or ()):
            raise DataError(
                "monotone would constrain the score of each label, not the expected relevance that ranks: use "
                "form='ordinal'"
            )
        return Multiclass(self.expects) if self.form == "multiclass" else Cumulative(self.expects)

    def _set_model(self, result: TrainingResult, train: RankingData, model: Model | None = None) -> None:
        bound = result.objective
        assert isinstance(bound, BoundMulticlass)
        kind = ClassEnsemble if self.form == "multiclass" else BoundaryEnsemble
        super()._set_model(result, train, kind(result.ensemble, bound.classes, bound.worth))

    def staged_predict(self, X: Any) -> Iterator[Floats]:
        """Return the scores after the first round, the second, …"""
        check_is_fitted(self)
        return (self._predict(X, n_trees=n) for n in range(1, self.n_trees_ + 1))

    @property
    def classes_(self) -> Floats:
        """The labels that occur, ascending."""
        check_is_fitted(self)
        return np.asarray(self.model_.classes)

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each label, ascending."""
        check_is_fitted(self)
        return np.asarray(self.model_.probabilities(X, n_threads=self.n_threads))


class OrdinalMART(OrdinalMARTParameters, TreeRanker):
    """Ordinal regression by boosted trees: one score, and thresholds between the labels (McCullagh 1980; [Q]).

    P(l ≤ k) = 1 / (1 + e^{s − θ_k}): the score ranks, and with the thresholds it gives the probability of each label.
    Only the order of the labels counts, not their distances. The thresholds of the model are those of maximum
    likelihood for its scores of the training data.

    Attributes:
        model_: the `Ensemble`; its `info` keeps the classes and the thresholds.
        classes_: the labels that occur, ascending: the columns of `predict_proba`.
        thresholds_: θ between adjacent labels.

    Example:
        >>> import podium
        >>> data = podium.artificial(20, features=4)
        >>> model = podium.OrdinalMART(n_trees=2, n_leaves=4).fit(data)
        >>> model.predict_proba(data).shape == (len(data), len(model.thresholds_) + 1)
        True

    """

    def _objective(self, train: RankingData) -> Objective:
        return Ordinal()

    def _set_model(self, result: TrainingResult, train: RankingData, model: Model | None = None) -> None:
        super()._set_model(result, train, model)
        bound = result.objective
        assert isinstance(bound, BoundOrdinal)
        self._fit_thresholds(bound, train)
        self.model_ = self.model_.with_info(classes=bound.classes.tolist(), thresholds=bound.thresholds.tolist())

    def _fit_thresholds(self, bound: BoundOrdinal, train: RankingData) -> None:
        """Set the thresholds of maximum likelihood for the scores of the model."""
        with Team(self.n_threads) as bound.team:  # the team of training is closed
            bound.set_thresholds(self._predict(train.with_weight()))  # training skips documents of weight 0
        bound.team = None

    @property
    def classes_(self) -> Floats:
        """The labels that occur, ascending."""
        check_is_fitted(self)
        return np.array(self.model_.info["classes"])

    @property
    def thresholds_(self) -> Floats:
        """The thresholds between the labels, ascending."""
        check_is_fitted(self)
        return np.array(self.model_.info["thresholds"])

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each label, ascending."""
        return class_probabilities(self._predict(X), self.thresholds_)


class AdditiveGroves(Published, AdditiveGrovesParameters, RegressorRanker, WeightedTrees):
    """Least-squares regression on the labels by averaged groves, sums of few large trees ([Q]).

    Sorokina, Caruana and Riedewald, "Additive Groves of Regression Trees", 2007. The trees of a grove are fitted in
    turn to the residuals of the others, until that no longer helps. So that all trees contribute even if they are
    large, a grove grows from a smaller one: one with fewer trees, or one whose trees have larger leaves. Each step
    draws a new bootstrap sample, and the model is the mean of `n_groves` groves. Training tries all numbers of trees
    and all α up to those of the parameters. It picks the best by the measure on validation data; without such data, by
    the root mean square error on out-of-bag documents. Without queries it is a plain regressor, like `MART`.

    As in the paper: backfitting (algorithm 1), the sequence of α, `"layered"` (algorithm 2), `"slow"` (algorithm 3 with
    a new sample in each step, "randomized dynamic programming"); nodes with less than α of the documents are leaves.

    As in the authors' program TreeExtra: `"fast"`, the numbers of trees to try, and new samples in `"layered"`. A cycle
    over the trees starts with the newest, and is the last if it lowers the error by 0.2% or less.

    Unlike both: trees are grown on bins, α counts the distinct documents of a sample, and a tree has at most 8/α
    leaves, and at most 4096. The paper always uses validation data. Out-of-bag documents were in samples of earlier
    steps, so their error is too low for large groves: prefer validation data.

    Attributes:
        model_: the `Ensemble` of all groves, their leaves divided by the number of groves.
        n_trees_: the trees of all groves.
        alpha_, n_trees_in_grove_: the chosen values.
        grid_: the pairs of α and number of trees that were tried.
        history_: the value for each entry of `grid_`: `oob/rmse`, or the measures on validation data.
        best_iteration_: the index of the chosen entry in `grid_`.

    Example:
        >>> import podium
        >>> data = podium.artificial(20, features=4)
        >>> model = podium.AdditiveGroves(n_groves=4, n_trees_in_grove=2, alpha=0.1).fit(data)
        >>> len(model.grid_), model.n_trees_ == 4 * model.n_trees_in_grove_
        (6, True)

    """

    _published = {"training": "slow"}  # noqa: RUF012, algorithm 3

    def _train(self, train: RankingData, sets: dict[str, RankingData], **options: Any) -> None:
        training = from_parameters(
            GrovesTraining,
            self,
            categorical=categorical_features(train, self.categorical),
            selection=self._selection(train),
            watched=as_watched(self.metrics),
        )
        result = training.fit(train, sets)
        self.grid_ = result.grid
        self.alpha_, self.n_trees_in_grove_ = result.grid[result.best_iteration]
        self._set_fitted(train, result.ensemble, result.history, result.best_iteration)
        constant = not len(result.ensemble.arrays["feature"])
        warn_if_constant(train, Regression(), constant, min_documents_in_leaf=self.min_documents_in_leaf)
