"""LambdaMART."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np

from podium.boosting import Boosting, Step, TrainingResult, as_step
from podium.core.array_types import Floats
from podium.data import RankingData
from podium.errors import DataError
from podium.estimators import translating
from podium.estimators.diagnosis import warn_if_unused
from podium.estimators.parameters import LambdaMARTParameters
from podium.estimators.ranker import lambda_objective, to_rows
from podium.estimators.tree_ranker import EnsembleRanker
from podium.measures import as_selection
from podium.models import Combined, Model, TreesOnBaseScores
from podium.models.over_trees import checksum
from podium.models.rankers import as_submodel, scores_of
from podium.objectives import Multiclass, Objective
from podium.objectives.debiased import BoundBiases


class LambdaMART(LambdaMARTParameters, EnsembleRanker):
    """Boosted regression trees on LambdaRank's gradients, for any measure ([B] §7, [W] §3).

    A tree is grown on λ_i = Σ_j λ_ij of each document; each leaf takes the Newton step γ = Σλ / (Σw + l2).

    Attributes:
        model_: the model: an `Ensemble`; with a submodel a `Combined` or `TreesOnBaseScores`.
        trees_: the `Ensemble` in it.
        n_trees_: its number of trees.
        best_iteration_: the last tree of the model, from 0, or None without validation data; −1 where the submodel
            alone is the best.
        history_: means of the measure, and of `metrics`, after each tree, by `set/measure`.
        submodel_scale_: what the submodel's scores are multiplied by.
        submodel_means_: means of the measure before the first tree, as in `history_`, where there is a submodel.
        position_bias_: of positions 1, 2, …, where the objective is `Debiased` and estimates it.
        n_features_in_, feature_names_in_: as scikit-learn has them.

    Example:
        >>> import podium
        >>> train, valid = podium.artificial(20, features=4), podium.artificial(10, features=4, part="valid")
        >>> model = podium.LambdaMART(n_trees=5, n_leaves=4, measure="ndcg@5").fit(train, valid=valid)
        >>> model.predict(valid).shape
        (500,)
        >>> 1 <= model.n_trees_ <= 5
        True

    """

    @classmethod
    def from_lightgbm(cls, params: Mapping[str, Any], **overrides: Any) -> Self:
        """A ranker with the parameters of `LGBMRanker` or `lightgbm.train`, by any of their names.

        What the dictionary does not name has Podium's default. A warning lists what could not be translated, with the
        reasons. `overrides` are parameters of Podium's.
        """
        ranker: Self = translating.from_lightgbm(cls, params, overrides)
        return ranker

    @classmethod
    def from_xgboost(cls, params: Mapping[str, Any], **overrides: Any) -> Self:
        """A ranker with the parameters of `XGBRanker` or `xgboost.train`, see `from_lightgbm`.

        A depth alone becomes all the leaves that fit into it, as XGBoost grows trees level by level.
        """
        ranker: Self = translating.from_xgboost(cls, params, overrides)
        return ranker

    @classmethod
    def as_published(cls, **overrides: Any) -> Self:
        """LambdaMART as the papers have it ([B] §7, [W] §3); `overrides` are other parameters.

        Splits are least-squares, sought on all documents; λ are not normalised; leaf values have no L2; a submodel's
        scores are F_0 as they are.
        """
        published = {
            "split": "least-squares", "split_fraction": 1.0, "normalize": False, "l2": 0.0, "submodel_scale": 1.0,
        }  # fmt: skip
        return cls(**{**published, **overrides})

    def _objective(self) -> Objective:
        objective = lambda_objective(self)
        if isinstance(objective, Multiclass):
            raise DataError("Multiclass has a score for each class: train it with McRank")
        return objective

    def _step(self) -> Step:
        step = as_step(self.step, self.l2, as_selection(self.measure).measures[0], self.max_delta_step)
        if isinstance(self.step, Step):
            warn_if_unused(self, ("max_delta_step",), f"give it to the step: {type(step).__name__}(max_delta_step=…)")
        elif not step.uses_hessians:
            unused = ("max_delta_step", "l2") if self.l2 else ("max_delta_step",)
            warn_if_unused(self, unused, f"step={self.step!r} takes means of λ, without a hessian")
        return step

    def _settings(self, train: RankingData) -> Boosting:
        settings = super()._settings(train)
        if self.submodel is None:
            return settings
        submodel = as_submodel(self.submodel, train)
        return replace(settings, submodel=lambda data: scores_of(submodel, data, self.n_threads))

    def _model(self, result: TrainingResult) -> Any:
        trees = super()._model(result)
        if result.base_scores is None:
            return trees
        submodel, scale = as_submodel(self.submodel, trees), result.base_scores.scale
        if isinstance(submodel, Model):
            return Combined((submodel, trees), (scale, 1.0)).with_info(submodel_scale=scale)
        name = getattr(submodel, "__name__", type(submodel).__name__)
        if isinstance(submodel, np.ndarray):
            name = "a column of scores"
        return TreesOnBaseScores(trees, name, checksum(result.base_scores.scores), scale)

    def _base_scores(self, X: Any) -> dict[str, Any]:
        """The scores of a submodel that is code."""
        if not isinstance(self.model_, TreesOnBaseScores):
            return {}
        submodel = as_submodel(self.submodel, self.trees_)
        if isinstance(X, RankingData):
            return {"base_scores": scores_of(submodel, X, self.n_threads)}
        if isinstance(submodel, np.ndarray):
            return {"base_scores": submodel}
        data = RankingData(X, qid=np.zeros(len(to_rows(X)), np.int64))
        return {"base_scores": scores_of(submodel, data, self.n_threads)}

    def _set_results(self, result: TrainingResult, train: RankingData) -> None:
        for name in ("position_bias_", "submodel_scale_", "submodel_means_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        if result.base_scores is not None:
            self.submodel_scale_, self.submodel_means_ = result.base_scores.scale, result.base_scores.means
        if isinstance(result.objective, BoundBiases):
            self.position_bias_: Floats = result.objective.biases[1:].copy()
