"""What the estimators of boosted trees have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Never, Self

from numpy.typing import ArrayLike

from podium.boosting import Boosting, Checkpoint, Newton, Sampling, SharedBins, Step, TrainingResult
from podium.core.array_types import Floats, Int32s
from podium.core.observing import Observer
from podium.core.parameters import check_parameters, from_parameters
from podium.data import RankingData
from podium.data.features import as_list_of_features
from podium.errors import DataError
from podium.estimators.diagnosis import warn_if_constant
from podium.estimators.parameters import PointwiseParameters, TreeParameters
from podium.estimators.ranker import RankerMixin, refuse_unknown_arguments
from podium.estimators.sklearn_bases import BaseEstimator, check_is_fitted
from podium.measures import as_watched, selection_for
from podium.measures.losses import Loss
from podium.models import Combined, Ensemble
from podium.objectives import Objective
from podium.trees import GrowthParameters


class TreeRanker(TreeParameters, RankerMixin, BaseEstimator):
    """Boosted trees on an objective."""

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
            qid: the query of each row, or the name of a column.
            sample_weight, query_weight: weights of documents and queries.
            valid: validation data, or several by name; the first decides when to stop and how many trees to keep.
            eval_set: the same as `(X, y, qid)`, or several of those.
            observers: called after each round with a `podium.boosting.Round`; numbers by name that they return stand in
                `history_`. `podium.diagnostics` has some; `podium.reports.Watch` draws the curve in a terminal.
            checkpoint: a `podium.boosting.Checkpoint` keeps the trees so far, and a run that was stopped goes on.
            bins: a `podium.boosting.SharedBins`, for several fits on the same data (`podium.fit_many` brings its own).

        """
        refuse_unknown_arguments(self, unknown)
        check_parameters(self)
        train = self._data(X, y, qid, sample_weight, query_weight)
        sets = self._validation(valid, eval_set)
        result = self._train(self._settings(train), train, sets, observers, checkpoint, bins)
        self._set_model(result, train)
        warn_if_constant(
            train, self._objective_for(train), result.n_splits == 0, min_documents_in_leaf=self.min_documents_in_leaf,
            on_top=result.base_scores is not None,
        )  # fmt: skip
        return self

    def _set_model(self, result: TrainingResult, train: RankingData) -> None:
        """Take over what training gave."""
        of_trees, kept = result.ensemble.info, ("measures", "best_iteration", "submodel_means")
        info = self._information(train) | {name: of_trees[name] for name in kept if name in of_trees}
        self.model_ = self._model(result).with_info(**info)
        self.history_ = result.history
        self.best_iteration_ = result.best_iteration
        self._set_results(result, train)
        self._note_features(train)

    def _train(
        self, settings: Boosting, train: RankingData, sets: dict[str, RankingData], observers: Sequence[Observer],
        checkpoint: Checkpoint | None, bins: SharedBins | None,
    ) -> TrainingResult:  # fmt: skip
        """Run the training."""
        return settings.fit(train, sets, observers, checkpoint, bins=bins)

    def _objective(self) -> Objective:
        """What is trained on."""
        raise NotImplementedError

    def _objective_for(self, train: RankingData) -> Objective:
        """What is trained on these documents."""
        return self._objective()

    def _model(self, result: TrainingResult) -> Any:
        """The model that the trees make."""
        return result.ensemble

    def _set_results(self, result: TrainingResult, train: RankingData) -> None:
        """Set further attributes after training."""

    def _step(self) -> Step:
        return from_parameters(Newton, self)

    def _feature_fraction(self) -> float:
        """The share of features that each tree is grown on, or that is tried first."""
        return self.feature_fraction

    def _settings(self, train: RankingData) -> Boosting:
        return from_parameters(
            Boosting,
            self,
            objective=self._objective_for(train),
            step=self._step(),
            growth=from_parameters(GrowthParameters, self, monotone=self._monotone(train)),
            sampling=from_parameters(Sampling, self, feature_fraction=self._feature_fraction()),
            categorical=categorical_features(train, self.categorical),
            selection=selection_for(self.measure, train),
            watched=as_watched(self.metrics),
        )

    def _monotone(self, train: RankingData) -> tuple[int, ...] | None:
        if self.monotone is None or not isinstance(self.monotone, Mapping):
            return None if self.monotone is None else tuple(self.monotone)
        directions = [0] * train.n_features
        for feature, direction in self.monotone.items():
            directions[_number(train, feature, "monotone")] = direction
        return tuple(directions)

    @property
    def trees_(self) -> Ensemble:
        """The trees alone, without a submodel; of several outputs in turn."""
        check_is_fitted(self)
        model: Any = self.model_.parts[-1] if isinstance(self.model_, Combined) else self.model_
        return model if isinstance(model, Ensemble) else model.trees

    @property
    def n_trees_(self) -> int:
        """Rounds: the trees of each output."""
        check_is_fitted(self)
        return int(getattr(self.model_, "n_trees", self.trees_.n_trees))

    def predict(self, X: Any, n_trees: int | None = None, **options: Any) -> Floats:
        """Return the score of each row, higher is better, by the first trees only if `n_trees` is given.

        See `podium.Model.predict` for further options.
        """
        return self._predict(X, n_trees=n_trees, **options)


class EnsembleRanker(TreeRanker):
    """A ranker with one score for each document."""

    def _model(self, result: TrainingResult) -> Any:
        if result.objective.n_outputs != 1:
            raise DataError(f"{type(self).__name__} has one score for each document; this objective has several")
        return result.ensemble

    def _predict(self, X: Any, **options: Any) -> Floats:
        check_is_fitted(self)
        n_trees = options.pop("n_trees", None)
        model = self.model_ if n_trees is None else self.model_.truncate(n_trees)
        scores: Floats = model.predict(X, n_threads=self.n_threads, **options, **self._base_scores(X))
        return scores

    def staged_predict(self, X: Any) -> Iterator[Floats]:
        """The scores after the first tree, the second, …"""
        check_is_fitted(self)
        before = self._predict(X, n_trees=0)
        return (before + scores for scores in self.trees_.staged_predict(X, self.n_threads))

    def apply(self, X: Any) -> Int32s:
        """The leaf of each tree (column) that each row falls into."""
        check_is_fitted(self)
        return self.trees_.leaves(X, self.n_threads)


class PointwiseRanker(PointwiseParameters, EnsembleRanker):
    """Trees on single documents. Without queries, their own loss picks the number of trees."""

    _needs_queries = False
    _is_plain = False  # whether there were no queries

    def _loss(self) -> Loss:
        """What is lower for a better model."""
        raise NotImplementedError

    def _settings(self, train: RankingData) -> Boosting:
        settings = super()._settings(train)
        return replace(settings, selection=self._loss()) if self._is_plain else settings


def categorical_features(train: RankingData, named: Sequence[int | str]) -> tuple[int, ...]:
    """The categorical features: those that the data says are such, and those that are named by a parameter."""
    numbers = {_number(train, feature, "categorical") for feature in as_list_of_features(named)}
    return tuple(sorted(numbers | set(train.encoding.categories)))


def _number(train: RankingData, feature: int | str, argument: str) -> int:
    if isinstance(feature, str):
        if train.feature_names is None or feature not in train.feature_names:
            raise DataError(f"{argument}: there is no feature named {feature!r}")
        return train.feature_names.index(feature)
    if not 0 <= feature < train.n_features:
        raise DataError(f"{argument}: there is no feature {feature}; they are numbered 0 to {train.n_features - 1}")
    return int(feature)
