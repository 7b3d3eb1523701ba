"""`BaseRanker`: the base class of all rankers, which are scikit-learn estimators."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Never, Self

import numpy as np
from numpy.typing import ArrayLike

from podium.boosting import Checkpoint, SharedBins
from podium.boosting.checkpoints import require_checkpoint
from podium.core.array_types import Floats
from podium.core.hyperparameters import NORMALIZE, PAIR_TRUNCATION, SIGMA, TRUNCATION, advice
from podium.core.observing import Observer, require_observers
from podium.core.parameters import check_parameters, parameters
from podium.core.plotting import draw
from podium.data import RankingData, frames
from podium.data.features import as_list_of_features
from podium.data.schema import columns_of_text
from podium.errors import DataError, ParameterError
from podium.estimators.diagnosis import remember_queries, warn_if_split
from podium.estimators.saving import to_entries
from podium.measures import Graded, Measure, Ranking, as_selection, as_watched, selection_for
from podium.measures.losses import Loss
from podium.models import Model, Scorer, save
from podium.models.base import reading_of
from podium.objectives import GBRank, Lambda, Objective, describe, parse
from podium.objectives.pair_terms import measure_in_training

if TYPE_CHECKING:
    # scikit-learn has no types, and if a class derives from an untyped one, mypy accepts any constructor argument.
    class BaseEstimator:
        """See scikit-learn."""

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            """Return the parameters by name."""

        def set_params(self, **params: Any) -> Self:
            """Set some parameters."""

        def __sklearn_tags__(self) -> Any: ...

    class RegressorMixin:
        """See scikit-learn."""

        def score(self, X: Any, y: Any = None, *args: Any, **others: Any) -> float:
            """Return R²."""

    class ClassifierMixin:
        """See scikit-learn."""

    def RegressorTags(**tags: Any) -> Any:  # noqa: N802
        """See scikit-learn."""

    def check_is_fitted(estimator: object) -> None:
        """Raise `NotFittedError` if `fit` has not been called."""

else:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.utils import RegressorTags
    from sklearn.utils.validation import check_is_fitted

__all__ = [
    "BaseEstimator", "BaseRanker", "ClassifierMixin", "Published", "RegressorMixin", "WeightedFeatures",
    "WeightedTrees", "check_is_fitted", "lambda_objective",
]  # fmt: skip

# Arguments of `fit` in other tools, and what to use instead.
ARGUMENTS_OF_OTHERS = {
    "group_sizes": "pass them in fit(RankingData(X, y, group_sizes=…)), or the query of each row as qid",
    "group": "pass the query of each row as qid, or sizes in fit(RankingData(X, y, group_sizes=…))",
    "group_id": "pass the query of each row as qid",
    "eval_group": "eval_set takes (X, y, qid)",
    "eval_qid": "eval_set takes (X, y, qid)",
    "callbacks": "observers are called after each round; parameters of the estimator stop early (patience, min_delta) "
    "and change the learning rate (a list or function as learning_rate)",
}


# Functions that each fit calls with the estimator, the training data and the validation sets: experiment trackers.
AFTER_FIT: list[Callable[[Any, RankingData, dict[str, RankingData]], None]] = []


class Published:
    """An estimator of a published method."""

    _published: ClassVar[Mapping[str, Any]] = {}  # the settings of the paper that are not the defaults

    @classmethod
    def as_published(cls, **overrides: Any) -> Self:
        """Return the estimator with the settings of its paper; `overrides` are other parameters."""
        return cls(**{**cls._published, **overrides})


class BaseRanker(BaseEstimator):
    """An estimator that trains a model on ranking data; `model_` holds the model.

    A subclass has parameters (`podium.estimators.parameters`) and trains in `_train`.

    Attributes:
        model_: the fitted model.
        history_: the means after each round, by `set/measure`.
        best_iteration_: the round that the model ends with, from 0; None if nothing was measured.
        n_features_in_, feature_names_in_: as in scikit-learn.

    """

    # Metadata routing passes query ids and weights to fit and score; users need not request them.
    __metadata_request__fit = {"qid": True, "sample_weight": True, "query_weight": True}  # noqa: RUF012
    __metadata_request__score = {"qid": True, "sample_weight": True}  # noqa: RUF012

    measures_training_data = False  # whether `history_` has entries without validation data
    _fit_options: tuple[str, ...] = ()  # which of observers, checkpoint and bins `_train` takes
    _needs_queries = True
    _stops_without_validation = False  # whether patience has a meaning without validation data
    _fits_alone = False  # whether concurrent fits would affect each other (`fit_many`)
    _had_no_queries = False  # whether the last fit was without queries

    model_: Any
    history_: dict[str, list[float]]
    best_iteration_: int | None
    measure: Measure | Graded | str
    metrics: Sequence[Measure | str]
    n_threads: int | None
    patience: int | None = None

    def fit(
        self,
        X: Any,
        y: ArrayLike | str | None = None,
        *,
        qid: ArrayLike | str | None = None,
        sample_weight: ArrayLike | None = None,
        query_weight: Any = None,
        valid: RankingData | Mapping[str, RankingData] | None = None,
        eval_set: tuple[Any, ...] | Sequence[tuple[Any, ...]] | None = None,
        observers: Sequence[Observer] = (),
        checkpoint: Checkpoint | None = None,
        bins: SharedBins | None = None,
        **unknown: Never,
    ) -> Self:
        """Train on `RankingData`, or on features, labels and the query of each row.

        Args:
            X: `RankingData`, or features as an array, sparse matrix or frame.
            y: labels, if X is not `RankingData`.
            qid: the query of each row, or the name of a column. `MART`, `MARTClassifier` and `AdditiveGroves` also
                train without queries.
            sample_weight, query_weight: weights of documents and queries.
            valid: validation data, or several sets by name; the first decides when to stop and how many rounds to keep.
            eval_set: validation data as `(X, y, qid)` or `(X, y, qid, sample_weight)`, or a list of such tuples.
                Without queries, `(X, y)` or `(X, y, None, sample_weight)`.
            observers: called after each round with a `podium.boosting.Round`, a `podium.neural.Epoch` or a
                `podium.linear.LinearStep`; a returned mapping from names to numbers is added to `history_`.
                `podium.diagnostics` has several observers; `podium.reports.Watch` draws the curve in a terminal.
                `Committee` and `AdditiveGroves` have no rounds to observe.
            checkpoint: a `podium.boosting.Checkpoint` saves the state of training of trees and nets, so that a
                stopped run can resume.
            bins: a `podium.boosting.SharedBins`, for several fits of trees on the same data (`podium.fit_many` has its
                own).

        """
        require_observers(observers)
        require_checkpoint(checkpoint)
        if not isinstance(bins, SharedBins | None):
            raise DataError(f"bins must be a podium.boosting.SharedBins or None, but is {bins!r:.60}")
        options = {"observers": observers, "checkpoint": checkpoint, "bins": bins}
        unsupported = [name for name, value in options.items() if value and name not in self._fit_options]
        self._refuse_arguments([*unknown, *unsupported])
        check_parameters(self)
        self._had_no_queries = self._has_no_queries(X, qid)
        train, sets = self._data(X, y, qid, sample_weight, query_weight), self._validation_sets(valid, eval_set)
        self._train(train, sets, **{name: options[name] for name in self._fit_options})
        remember_queries(self, train)
        for callback in AFTER_FIT:
            callback(self, train, sets)
        return self

    def _train(self, train: RankingData, sets: dict[str, RankingData], **options: Any) -> None:
        """Train a model and set the fitted attributes (`_set_fitted`)."""
        raise NotImplementedError

    def _with_defaults(self, n_documents: int) -> Self:
        """Return this estimator with the defaults of those parameters whose default depends on the data."""
        return self

    def _selection(self, train: RankingData) -> Measure | Graded | Loss:
        """Return the criterion of the best round: the measure, or the loss if there are no queries."""
        return self._loss() if self._had_no_queries else selection_for(self.measure, train)

    def _loss(self) -> Loss:
        """Return the loss that picks the best round in estimators that train without queries."""
        raise NotImplementedError

    def _evaluation_settings(self, train: RankingData) -> dict[str, Any]:
        """Return the settings of a trainer that say what to measure in each round; `metrics` may contain `"loss"`."""
        metrics: Any = [self.metrics] if isinstance(self.metrics, str) else self.metrics
        watches_loss = False
        if isinstance(metrics, Sequence):
            measures = [metric for metric in metrics if not (isinstance(metric, str) and metric == "loss")]
            metrics, watches_loss = measures, len(measures) < len(metrics)
        return {"selection": self._selection(train), "watched": as_watched(metrics), "watches_loss": watches_loss}

    def _set_fitted(
        self, train: RankingData, model: Model, history: dict[str, list[float]], best_iteration: int | None, /,
        **info: Any,
    ) -> None:  # fmt: skip
        """Set the fitted attributes; the model file also holds the parameters, and how the data was read."""
        self.model_ = model.with_info(parameters=self._json_parameters(), reading=reading_of(train), **info)
        self.history_, self.best_iteration_ = history, best_iteration
        self.n_features_in_ = train.n_features
        self.__dict__.pop("feature_names_in_", None)
        if train.feature_names is not None:
            self.feature_names_in_ = np.array(train.feature_names, object)

    def _json_parameters(self) -> dict[str, Any]:
        """Return the parameters as JSON values."""
        json_types = (int, float, str, bool, type(None))
        values = self.get_params(deep=False)
        values.pop("verbose", None)  # the file must not depend on what training prints
        return {name: value if isinstance(value, json_types) else _to_text(value) for name, value in values.items()}

    def _refuse_arguments(self, names: Iterable[str]) -> None:
        """Raise for arguments that `fit` does not have, and name what to use instead."""
        declared, estimator = parameters(type(self)), type(self).__name__
        for name in names:
            hint = "" if name in declared else advice(name, declared)
            if name in ARGUMENTS_OF_OTHERS:
                hint = f": {ARGUMENTS_OF_OTHERS[name]}"
            elif name in declared or hint:
                hint += f"; pass parameters to the constructor: {estimator}(…).fit(…)"
            raise ParameterError(f"{estimator}.fit has no argument {name!r}{hint}")

    def _data(
        self, X: Any, y: Any = None, qid: Any = None, sample_weight: Any = None, query_weight: Any = None
    ) -> RankingData:
        """Return the arguments of `fit` as `RankingData`; text in columns named as categorical becomes categories."""
        if isinstance(X, RankingData):
            others = {"y": y, "qid": qid, "sample_weight": sample_weight, "query_weight": query_weight}
            extra = [name for name, value in others.items() if value is not None]
            if extra:
                raise DataError(f"RankingData has its own labels and weights: omit {extra[0]}")
            return X
        is_frame, name = frames.is_frame(X), type(self).__name__
        if y is None and not is_frame:
            raise DataError(f"{name} requires y to be passed, but the target y is None: fit(X, y, qid=qid)")
        if self._has_no_queries(X, qid):
            if query_weight is not None:
                raise DataError("query_weight has no effect without queries: also pass qid")
            qid = np.zeros(n_rows(X), np.int64)
        if qid is None and not (is_frame and frames.has_queries(X)):
            columns = f", and there is no column 'qid' among {frames.shown_columns(X)}" if is_frame else ""
            raise DataError(
                f"{name} needs the query of each row{columns}: fit(X, y, qid=qid), or fit(RankingData(X, y, qid=qid)). "
                "In scikit-learn's searches, first sklearn.set_config(enable_metadata_routing=True), then "
                "GridSearchCV(…, cv=podium.QueryKFold(5)).fit(X, y, qid=qid), or cross_validate(…, "
                "cv=podium.QueryKFold(5), params={'qid': qid}); cv=5 would split queries"
            )
        categorical = columns_of_text(X, as_list_of_features(getattr(self, "categorical", ())))
        return RankingData(
            X, y, qid=qid, document_weights=sample_weight, query_weights=query_weight, categorical=categorical
        )

    def _has_no_queries(self, X: Any, qid: Any) -> bool:
        """Return whether documents come without queries, to an estimator that does not need them."""
        has_queries = isinstance(X, RankingData) or (frames.is_frame(X) and frames.has_queries(X))
        return qid is None and not self._needs_queries and not has_queries

    def _validation_sets(self, valid: Any, eval_set: Any) -> dict[str, RankingData]:
        """Return the validation sets by name; the first stops training."""
        sets: dict[str, RankingData] = {}
        for name, arguments in validation_arguments(valid, eval_set).items():
            if len(arguments) > 1:
                self._require_queries(*arguments)
            elif not isinstance(arguments[0], RankingData) and not frames.is_frame(arguments[0]):
                raise DataError(
                    "valid takes RankingData, a frame with columns for queries and labels, or a dictionary of "
                    "these; pass arrays as eval_set=(X, y, qid)"
                )
            sets[name] = self._data(*arguments)
        if self.patience is not None and not sets and not self._stops_without_validation:
            raise DataError("patience needs validation data: pass valid=… or eval_set=…")
        return sets

    def _require_queries(self, X: Any, y: Any, *rest: Any) -> None:
        """Raise if `eval_set` has (X, y) without queries, but the estimator needs them."""
        if rest or not self._needs_queries or (frames.is_frame(X) and frames.has_queries(X)):
            return
        raise DataError(
            "eval_set takes (X, y, qid) or (X, y, qid, sample_weight), or a list of such tuples; "
            "(X, y) only if X is a frame with a column 'qid', or the estimator does not need queries"
        )

    def score(
        self,
        X: Any,
        y: ArrayLike | str | None = None,
        *,
        qid: ArrayLike | str | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return the mean of the measure over the queries; warn if a fold has split queries.

        `sample_weight` exists for scikit-learn's pipelines; ranking measures ignore it.
        """
        check_is_fitted(self)
        data = self.model_.schema.matched(self._data(X, y, qid))
        warn_if_split(self, data)
        ranking = Ranking(data, self._predict(data))
        measure = selection_for(self.measure, data).measures[0].fixed_like(self.model_.info.get("measures", ()))
        return measure.mean(ranking)

    def predict(self, X: Any, **options: Any) -> Floats:
        """Return the score of each row, higher is better; see `podium.models.Model.predict` for options."""
        return self._predict(X, **options)

    def _predict(self, X: Any, **options: Any) -> Floats:
        """Return the score of each row, equal to that of the saved model."""
        check_is_fitted(self)
        return np.asarray(self.model_.predict(X, n_threads=self.n_threads, **options))

    @property
    def feature_importances_(self) -> Floats:
        """The share of each feature in the gains of all splits."""
        check_is_fitted(self)
        gains: Floats = self.model_.importance("gain")
        return gains / gains.sum() if gains.sum() > 0 else gains

    def plot_history(self) -> Any:
        """Return a chart of the means after each round, with the best round marked (extra `report`).

        Example:
            >>> import podium
            >>> train, valid = podium.artificial(20, features=4), podium.artificial(10, features=4, part="valid")
            >>> chart = podium.LambdaMART(n_trees=3).fit(train, valid=valid).plot_history()
            >>> len(chart.to_dict()["layer"])
            3

        """
        check_is_fitted(self)
        before = getattr(self, "submodel_means_", None)
        measured = {name: values for name, values in self.history_.items() if "/" in name}  # without observers' numbers
        return draw("history", measured, self.best_iteration_, before)

    def plot_importance(self, top: int = 20) -> Any:
        """Return a chart of the features with the largest `feature_importances_` (extra `report`)."""
        shares = self.feature_importances_
        names = [self.model_.label_of_feature(k) for k in range(len(shares))]
        return draw("importance", names, shares, "importance", top=top)

    def explain(self, data: Any, background: Any = None) -> Any:
        """Return the contribution of each feature to each score, see `podium.models.Model.explain`."""
        check_is_fitted(self)
        return self.model_.explain(data, background, n_threads=self.n_threads)

    def digest(self) -> str:
        """Return a hash of the model: models with equal digests give the same scores, to the bit."""
        check_is_fitted(self)
        return str(self.model_.digest())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write model, parameters and fitted attributes to a file, from which `podium.load` restores the estimator."""
        check_is_fitted(self)
        save(self.model_, path, to_entries(self))

    def export(self, path: str | os.PathLike[str], format: str | None = None, **options: Any) -> Any:  # noqa: A002
        """Write the model for another system, see `podium.formats.export_model`."""
        check_is_fitted(self)
        return self.model_.export(path, format, **options)

    def scorer(self, n_threads: int | None = None) -> Scorer:
        """Return a scorer that is ready to use, see `podium.models.Model.scorer`."""
        check_is_fitted(self)
        scorer: Scorer = self.model_.scorer(n_threads)
        return scorer

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.target_tags.positive_only = self._needs_queries  # gains need non-negative labels
        tags.estimator_type = "regressor"  # so that `sklearn.inspection` accepts predictions as numbers
        tags.regressor_tags = RegressorTags(poor_score=True)  # scores only rank, so R² means nothing
        return tags


class WeightedFeatures(BaseRanker):
    """The base class of estimators that train a `LinearModel`."""

    @property
    def coef_(self) -> Floats:
        """The weight of each feature."""
        check_is_fitted(self)
        return np.asarray(self.model_.weights)


class WeightedTrees(BaseRanker):
    """The base class of estimators that train an `Ensemble` without being a `TreeRanker`."""

    @property
    def n_trees_(self) -> int:
        """The number of trees, or of weak rankers."""
        check_is_fitted(self)
        return int(self.model_.n_trees)


def lambda_objective(ranker: Any) -> Objective:
    """Return the `objective` of a ranker, or by default `Lambda` of its measure on the whole list.

    Raise if an objective and a parameter of the default `Lambda` are set, because the parameter would have no effect.
    """
    objective = parse(ranker.objective) if isinstance(ranker.objective, str) else ranker.objective
    if objective is None:
        measure = measure_in_training(as_selection(ranker.measure).measures[0], ranker.truncation)
        return Lambda(measure, sigma=ranker.sigma, normalize=ranker.normalize, pair_truncation=ranker.pair_truncation)
    if not isinstance(objective, Objective):
        raise DataError(f"objective must be an Objective or its text, not {objective!r}")
    if isinstance(objective, GBRank) and not hasattr(ranker, "n_leaves"):
        raise DataError(
            f"GBRank adds up regression trees; for {type(ranker).__name__} use only its cost, "
            "objective='pairwise(squared_hinge)', or LambdaMART"
        )
    for declared in (TRUNCATION, PAIR_TRUNCATION, SIGMA, NORMALIZE):
        name = declared.name
        if getattr(ranker, name) != declared.default:
            raise DataError(
                f"{name} is for the default objective; set it in the objective: "
                f"Lambda(…, {name}={getattr(ranker, name)!r})"
            )
    return objective


def validation_arguments(valid: Any, eval_set: Any) -> dict[str, tuple[Any, ...]]:
    """Return the arguments of `fit` for each validation set by name: `(X,)` of `valid`, `(X, y, …)` of `eval_set`."""
    sets: dict[str, tuple[Any, ...]] = {}
    if valid is not None:
        for name, data in (valid if isinstance(valid, Mapping) else {"valid": valid}).items():
            if not isinstance(name, str):
                raise DataError(f"names of validation sets must be strings, but got {name!r:.60}")
            sets[name] = (data,)
    if eval_set is None:
        return sets
    entries = [eval_set] if isinstance(eval_set, tuple) else eval_set
    if not isinstance(entries, list):
        raise DataError("eval_set takes (X, y, qid), or a list of such tuples; pass any other data as valid=…")
    for k, entry in enumerate(entries):
        if not isinstance(entry, tuple | list) or not 2 <= len(entry) <= 4:
            raise DataError("eval_set takes (X, y, qid) or (X, y, qid, sample_weight), or a list of such tuples")
        name = "eval" if len(entries) == 1 else f"eval{k}"
        if name in sets:
            raise DataError(f"there are two evaluation sets named {name!r}")
        sets[name] = tuple(entry)
    return sets


def n_rows(X: Any) -> int:
    """Return the number of rows of an array, matrix, list or frame."""
    if hasattr(X, "shape"):
        return int(X.shape[0])
    if hasattr(X, "__array__"):
        return len(np.asarray(X))
    if not hasattr(X, "__len__"):
        raise DataError(f"X must be features, a row for each document, not {type(X).__name__}")
    return len(X)


def _to_text(value: Any) -> str:
    """Return a parameter as text: objectives by their grammar if they have one."""
    try:
        return describe(value) if isinstance(value, Objective) else str(value)
    except DataError:
        return str(value)
