"""Boosted trees on pairs of documents: `LambdaMART` and `RankNetTrees`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from podium.boosting import Boosting, Step, TrainingResult, as_step
from podium.core.array_types import Floats
from podium.data import RankingData
from podium.errors import DataError
from podium.estimators import translating
from podium.estimators.base_ranker import Published, check_is_fitted, lambda_objective, n_rows
from podium.estimators.diagnosis import warn_if_unused
from podium.estimators.parameters import LambdaMARTParameters, RankNetTreesParameters
from podium.estimators.tree_ranker import TreeRanker
from podium.measures import as_selection, has_preferences_alone
from podium.models import Combined, Model, TreesOnBaseScores
from podium.models.rankers import as_submodel, scores_of
from podium.models.transformed_ensembles import checksum
from podium.objectives import CrossEntropy, Multiclass, Objective, Pairwise, Preferences
from podium.objectives.debiased import BoundBiases


class LambdaMART(Published, LambdaMARTParameters, TreeRanker):
    """Boosted regression trees on LambdaRank's gradients, for any measure ([B] §7, [W] §3).

    A tree is grown on λ_i = Σ_j λ_ij of each document; each leaf takes the Newton step γ = Σλ / (Σw + l2).

    Attributes:
        model_: the model: an `Ensemble`, or with a submodel a `Combined` or `TreesOnBaseScores`.
        trees_: the `Ensemble` of the model.
        n_trees_: the number of trees.
        best_iteration_: the last tree of the model, from 0; None without validation data; −1 if the submodel alone is
            best.
        history_: means of the measure, and of `metrics`, after each tree, by `set/measure`.
        submodel_scale_: the factor of the submodel's scores.
        submodel_means_: means of the measure before the first tree, as in `history_`, with a submodel.
        position_bias_: the bias of positions 1, 2, …, if the objective is `Debiased` and estimates it.
        n_features_in_, feature_names_in_: as in scikit-learn.

    Example:
        >>> import podium
        >>> train, valid = podium.artificial(20, features=4), podium.artificial(10, features=4, part="valid")
        >>> model = podium.LambdaMART(n_trees=5, n_leaves=4, measure="ndcg@5").fit(train, valid=valid)
        >>> model.predict(valid).shape
        (500,)
        >>> 1 <= model.n_trees_ <= 5
        True

    """

    _published = {  # noqa: RUF012, [B] §7, [W] §3
        "split": "least-squares", "split_fraction": 1.0, "normalize": False, "l2": 0.0, "submodel_scale": 1.0,
    }  # fmt: skip

    @classmethod
    def from_lightgbm(cls, params: Mapping[str, Any], **overrides: Any) -> Self:
        """Return a ranker with the parameters of `LGBMRanker` or `lightgbm.train`, by any of their names.

        Other parameters have Podium's defaults. A warning lists the parameters that could not be translated, and why.
        `overrides` are Podium parameters.
        """
        return cls(**translating.from_lightgbm(params) | overrides)

    @classmethod
    def from_xgboost(cls, params: Mapping[str, Any], **overrides: Any) -> Self:
        """Return a ranker with the parameters of `XGBRanker` or `xgboost.train`, see `from_lightgbm`.

        A depth without a number of leaves becomes the maximum number of leaves, because XGBoost grows level by level.
        """
        return cls(**translating.from_xgboost(params) | overrides)

    @classmethod
    def from_catboost(cls, params: Mapping[str, Any], **overrides: Any) -> Self:
        """Return a ranker with the parameters of `CatBoostRanker` or `catboost.train`, see `from_lightgbm`.

        A depth becomes the maximum number of leaves of that depth. Trees are symmetric if `grow_policy` is given as
        "SymmetricTree".
        """
        return cls(**translating.from_catboost(params) | overrides)

    def _objective(self, train: RankingData) -> Objective:
        objective = lambda_objective(self)
        if isinstance(objective, Multiclass):
            raise DataError("Multiclass has a score for each class: use McRank")
        return objective

    def _settings(self, train: RankingData, **others: Any) -> Boosting:
        others["step"] = self._step()
        if self.submodel is not None:
            submodel = as_submodel(self.submodel, train)
            others["submodel"] = lambda data: scores_of(submodel, data, self.n_threads)
        return super()._settings(train, **others)

    def _step(self) -> Step:
        step = as_step(self.step, self.l2, as_selection(self.measure).measures[0], self.max_delta_step, self.l1)
        if isinstance(self.step, Step):
            warn_if_unused(self, ("max_delta_step",), f"pass it to the step: {type(step).__name__}(max_delta_step=…)")
        elif not step.uses_hessians:
            unused = ("max_delta_step", "l1", "l2") if self.l2 else ("max_delta_step", "l1")
            warn_if_unused(self, unused, f"step={self.step!r} uses means of λ, without a hessian")
        return step

    def _set_model(self, result: TrainingResult, train: RankingData, model: Model | None = None) -> None:
        if result.objective.n_outputs != 1 and result.objective.output_weights is None:
            raise DataError(f"{type(self).__name__} has one score for each document, but this objective has several")
        for name in ("position_bias_", "submodel_scale_", "submodel_means_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        if result.base_scores is not None:
            self.submodel_scale_, self.submodel_means_ = result.base_scores.scale, result.base_scores.means
            model = self._model_with_submodel(result)
        if isinstance(result.objective, BoundBiases):
            self.position_bias_: Floats = result.objective.biases[1:].copy()
        super()._set_model(result, train, model)

    def _model_with_submodel(self, result: TrainingResult) -> Model:
        """Return the model that adds the trees to the submodel; if the submodel is code, it only keeps its name."""
        trees, base_scores = result.ensemble, result.base_scores
        assert base_scores is not None
        submodel, scale = as_submodel(self.submodel, trees), base_scores.scale
        if isinstance(submodel, Model):
            return Combined((submodel, trees), (scale, 1.0)).with_info(submodel_scale=scale)
        name = getattr(submodel, "__name__", type(submodel).__name__)
        if isinstance(submodel, np.ndarray):
            name = "a column of scores"
        return TreesOnBaseScores(trees, name, checksum(base_scores.scores), scale)

    def _predict(self, X: Any, n_trees: int | None = None, **options: Any) -> Floats:
        check_is_fitted(self)
        model = self.model_ if n_trees is None else self.model_.truncate(n_trees)
        return np.asarray(model.predict(X, n_threads=self.n_threads, **options, **self._base_scores(X)))

    def explain(self, data: Any, background: Any = None) -> Any:
        """Return what each feature adds to each score, see `podium.models.Model.explain`."""
        check_is_fitted(self)
        return self.model_.explain(data, background, n_threads=self.n_threads, **self._base_scores(data))

    def _base_scores(self, X: Any) -> dict[str, Any]:
        """Return the scores of a submodel that is code, as an option of `Model.predict`."""
        if not isinstance(self.model_, TreesOnBaseScores):
            return {}
        submodel = as_submodel(self.submodel, self.trees_)
        if isinstance(submodel, np.ndarray) and not isinstance(X, RankingData):
            return {"base_scores": submodel}
        data = X if isinstance(X, RankingData) else RankingData(X, qid=np.zeros(n_rows(X), np.int64))
        return {"base_scores": scores_of(submodel, data, self.n_threads)}


class RankNetTrees(Published, RankNetTreesParameters, TreeRanker):
    """Boosted trees on RankNet's cost: every pair with different labels has weight 1 ([B] §2).

    On data with preferences and no labels, the pairs are those preferences (`podium.objectives.Preferences`),
    `normalize` has no effect, and the share of pairs in the right order (`preferences`) replaces the measure.

    Example:
        >>> import podium
        >>> podium.RankNetTrees(n_trees=3, n_leaves=4).fit(podium.artificial(20, features=4)).n_trees_
        3

    """

    _published = {"split": "least-squares", "l2": 0.0}  # noqa: RUF012, [B] §5

    def _objective(self, train: RankingData) -> Objective:
        if not has_preferences_alone(train):
            return Pairwise(CrossEntropy(self.sigma), normalize=self.normalize)
        warn_if_unused(self, ("normalize",), "preferences have the weights in the data")
        return Preferences(CrossEntropy(self.sigma))
