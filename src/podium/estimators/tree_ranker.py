"""`TreeRanker`: the base class of boosted-tree estimators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from itertools import islice
from typing import Any, Self

from numpy.typing import ArrayLike

from podium.boosting import Boosting, Newton, Sampling, TrainingResult
from podium.core.array_types import Floats, Int32s
from podium.core.parameters import check_parameters, from_parameters
from podium.core.validation import require_whole
from podium.data import RankingData
from podium.data.features import as_list_of_features
from podium.errors import DataError
from podium.estimators.base_ranker import BaseRanker, check_is_fitted
from podium.estimators.diagnosis import warn_if_constant
from podium.estimators.parameters import TreeParameters
from podium.models import Combined, Ensemble, Model
from podium.objectives import Objective
from podium.trees import GrowthParameters


class TreeRanker(TreeParameters, BaseRanker):
    """Boosted trees on an objective."""

    _fit_options = ("observers", "checkpoint", "bins")

    def _objective(self, train: RankingData) -> Objective:
        """Return the training objective for this data."""
        raise NotImplementedError

    def _settings(self, train: RankingData, **others: Any) -> Boosting:
        """Return the settings of training, from the parameters and `others`."""
        ranker = self._with_defaults(train.n_documents)
        settings = {
            "objective": self._objective(train),
            "step": from_parameters(Newton, ranker),
            "growth": from_parameters(
                GrowthParameters, ranker, monotone=self._monotone(train), interaction_constraints=self._groups(train)
            ),
            "sampling": from_parameters(Sampling, ranker),
            "categorical": categorical_features(train, self.categorical),
        }
        return from_parameters(Boosting, ranker, **settings | self._evaluation_settings(train) | others)

    def _monotone(self, train: RankingData) -> tuple[int, ...] | None:
        """Return the direction of each feature."""
        if self.monotone is None or not isinstance(self.monotone, Mapping):
            return None if self.monotone is None else tuple(self.monotone)
        directions = [0] * train.n_features
        for feature, direction in self.monotone.items():
            directions[_feature_number(train, feature, "monotone")] = direction
        return tuple(directions)

    def _groups(self, train: RankingData) -> tuple[tuple[int, ...], ...] | None:
        """Return the groups of features that may be on one path, by number."""
        name, groups = "interaction_constraints", self.interaction_constraints
        if groups is None:
            return None
        lists = [groups, *groups] if isinstance(groups, Sequence) else [groups]
        if any(isinstance(value, str) or not isinstance(value, Sequence) for value in lists) or not any(groups):
            raise DataError(f'{name} must be a list of groups, such as [["bm25", "age"], [2, 3]], but is {groups!r}')
        return tuple(tuple(_feature_number(train, feature, name) for feature in group) for group in groups)

    def _train(self, train: RankingData, sets: dict[str, RankingData], **options: Any) -> None:
        settings = self._settings(train)
        result = self._boost(settings, train, sets, **options)
        self._set_model(result, train)
        warn_if_constant(
            train, settings.objective, result.n_splits == 0, min_documents_in_leaf=self.min_documents_in_leaf,
            on_top=result.base_scores is not None,
        )  # fmt: skip

    def _boost(
        self, settings: Boosting, train: RankingData, sets: dict[str, RankingData], **options: Any
    ) -> TrainingResult:
        """Grow the trees."""
        return settings.fit(train, sets, **options)

    def _set_model(self, result: TrainingResult, train: RankingData, model: Model | None = None) -> None:
        """Set the fitted attributes; `model` is the model made of the trees, by default their ensemble."""
        trees, copied = result.ensemble, ("measures", "best_iteration", "submodel_means")
        info = {name: trees.info[name] for name in copied if name in trees.info}
        self._set_fitted(train, trees if model is None else model, result.history, result.best_iteration, **info)

    def refit(
        self,
        X: Any,
        y: ArrayLike | str | None = None,
        *,
        qid: ArrayLike | str | None = None,
        sample_weight: ArrayLike | None = None,
        query_weight: Any = None,
        decay_rate: float = 0.9,
    ) -> Self:
        """Return a copy whose trees have the same splits, and leaf values refitted to other documents.

        A leaf gets decay_rate × old + (1 − decay_rate) × new, as in LightGBM's `Booster.refit`. The new value is
        computed as in training: the step of the leaf's documents, at the scores of the refitted trees before it, times
        the learning rate. For a leaf without documents it is 0. `history_` of the copy is empty.

        Args:
            X, y, qid, sample_weight, query_weight: the documents, as in `fit`.
            decay_rate: 1 keeps the old values, 0 replaces them by the new ones.

        Example:
            >>> import podium
            >>> model = podium.LambdaMART(n_trees=5, n_leaves=4).fit(podium.artificial(20, features=4))
            >>> newer = model.refit(podium.artificial(20, features=4, seed=1), decay_rate=0.5)
            >>> newer.n_trees_, newer.digest() == model.digest()
            (5, False)

        """
        check_is_fitted(self)
        check_parameters(self)
        data = self.model_.schema.matched(self._data(X, y, qid, sample_weight, query_weight))
        # Values that `fit` chose by its data stay the same.
        chosen_names = [name for name in ("learning_rate", "submodel_scale") if hasattr(self, f"{name}_")]
        settings = self._settings(data, **{name: getattr(self, f"{name}_") for name in chosen_names})
        refitted = copy(self)
        refitted._set_model(settings.refit(self.trees_, data, decay_rate), data)
        return refitted

    @property
    def trees_(self) -> Ensemble:
        """The trees without a submodel; trees of several outputs alternate."""
        check_is_fitted(self)
        model: Any = self.model_.parts[-1] if isinstance(self.model_, Combined) else self.model_
        return model if isinstance(model, Ensemble) else model.trees

    @property
    def n_trees_(self) -> int:
        """The number of rounds, which is the number of trees of each output."""
        check_is_fitted(self)
        return int(getattr(self.model_, "n_trees", self.trees_.n_trees)) // self.trees_.trees_per_round

    def predict(self, X: Any, n_trees: int | None = None, **options: Any) -> Floats:
        """Return the score of each row, higher is better; `n_trees` limits the model to its first rounds.

        See `podium.models.Model.predict` for further options.
        """
        if n_trees is not None:
            require_whole("n_trees", n_trees, 0, most=self.n_trees_)
            n_trees *= self.trees_.trees_per_round
        return self._predict(X, n_trees=n_trees, **options)

    def staged_predict(self, X: Any) -> Iterator[Floats]:
        """Return the scores after the first round, the second, …"""
        check_is_fitted(self)
        before, per_round = self._predict(X, n_trees=0), self.trees_.trees_per_round
        stages = self.trees_.staged_predict(X, self.n_threads)
        return (before + scores for scores in islice(stages, per_round - 1, None, per_round))

    def apply(self, X: Any) -> Int32s:
        """Return the leaf of each tree (column) that each row falls into; trees of several outputs alternate."""
        check_is_fitted(self)
        return self.trees_.leaves(X, self.n_threads)


def categorical_features(train: RankingData, parameter: Sequence[int | str]) -> tuple[int, ...]:
    """Return the numbers of the categorical features: those of the data, and those that the parameter names."""
    numbers = {_feature_number(train, feature, "categorical") for feature in as_list_of_features(parameter)}
    return tuple(sorted(numbers | set(train.encoding.categories)))


def _feature_number(train: RankingData, feature: int | str, argument: str) -> int:
    """Return the number of a feature that is given by name or number."""
    if isinstance(feature, str):
        if train.feature_names is None or feature not in train.feature_names:
            raise DataError(f"{argument}: there is no feature named {feature!r}")
        return train.feature_names.index(feature)
    if not 0 <= feature < train.n_features:
        raise DataError(f"{argument}: there is no feature {feature}; features are numbered 0 to {train.n_features - 1}")
    return int(feature)
