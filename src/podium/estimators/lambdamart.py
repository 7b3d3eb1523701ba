"""Estimators of boosted trees, and what each trains on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from podium.boosting import Boosting, Step, TrainingResult, as_step
from podium.data import RankingData
from podium.errors import DataError
from podium.estimators import translating
from podium.estimators.ranker import lambda_objective, to_rows
from podium.estimators.trees import TreeRanker, TreeSettings
from podium.measures import Graded, Measure, as_selection, has_preferences_alone
from podium.models import Combined, Ensemble, Model, TreesOnBaseScores
from podium.models.combined import as_submodel, scores_of
from podium.models.trees_on_base_scores import checksum
from podium.objectives import CrossEntropy, Multiclass, Objective, Pairwise, Preferences
from podium.objectives.debiasing import BoundBiases

# Where pairs weigh documents so unequally, a part of them finds the splits of all (docs/lambdamart.md).
WEIGHED: TreeSettings = {"split_fraction": None}


class EnsembleRanker(TreeRanker):
    """A ranker whose model is one ensemble of trees."""

    trees_: Ensemble

    def _model(self, found: TrainingResult) -> Any:
        if found.objective.n_outputs != 1:
            raise DataError(f"{type(self).__name__} has one score for each document; this objective has several")
        return found.ensemble

    def _start(self, X: Any) -> dict[str, Any]:
        """The scores that the trees go on from, where the model asks for them."""
        return {}

    def _predict(self, X: Any, **options: Any) -> NDArray[np.float64]:
        check_is_fitted(self)
        n_trees = options.pop("n_trees", None)
        model = self.model_ if n_trees is None else self.model_.truncate(n_trees)
        predicted: NDArray[np.float64] = model.predict(X, n_threads=self.n_threads, **options, **self._start(X))
        return predicted

    def staged_predict(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """The scores after the first tree, the second, …"""
        check_is_fitted(self)
        before = self._predict(X, n_trees=0)
        return (before + scores for scores in self.trees_.staged_predict(X, self.n_threads))

    def apply(self, X: Any) -> NDArray[np.int32]:
        """The leaf of each tree (column) that each row falls into."""
        check_is_fitted(self)
        return self.trees_.leaves(X, self.n_threads)

    @property
    def ensemble(self) -> Ensemble:
        """The trees."""
        check_is_fitted(self)
        return self.trees_


class LambdaMART(EnsembleRanker):
    """TrainingResult regression trees on LambdaRank's gradients, for any measure ([B] §7, [W] §3).

    Args:
        n_trees: at most so many.
        n_leaves: leaves of a tree, at most.
        learning_rate: the share of each Newton step that is taken.
        measure: what is trained on, and what picks the number of trees where there is validation data: a name such as
            `"ndcg@10"`, a value such as `NDCG(10)`, or `Graded([...])`, whose first measure is trained on.
        min_documents_in_leaf: exactly counted.
        max_depth: of a tree; None for no limit.
        l2: added to the curvature of a leaf.
        max_delta_step: the largest value of a leaf, before the learning rate, as in LightGBM and XGBoost; it matters
            where curvature vanishes. By default 1000/σ, and no limit for least squares.
        split: `"newton"` (as LightGBM and XGBoost) or `"least-squares"` (the papers').
        document_fraction, query_fraction, feature_fraction: what each tree sees; λ comes from all documents.
        split_fraction: the share of these documents on which splits are sought: those with large λ or w, and some of
            the others in place of all. Leaf values come from all. By default half, and fewer of more than 300,000
            training documents, down to 30%.
        truncation: pairs count for the measure cut at this rank; None, the whole list, whatever the measure's cutoff.
        sigma: the steepness of the pairs' sigmoid.
        normalize: scale λ within each query, as LightGBM does.
        objective: another objective than `Lambda(measure, …)`: a value of `podium.objectives`, or its text, such as
            `"anneal(lambda(ndcg), local(ndcg@3), linear_growth(0.1, 0.01))"`.
        step: `"newton"`, `"gradient"` for objectives without curvature, `"line-search"` for the exact best weight of
            each tree by the measure, or a step of `podium.boosting`.
        submodel: what training starts from ([W] §3, LambdaSMART): a model of Podium's or its file, features such as
            `{"bm25": 1.0}`, any object with `predict` or function of the data, or the scores of the training data.
            With validation data, the submodel alone may turn out the best: then `n_trees_` is 0.
        submodel_scale: what the submodel's scores are multiplied by. `"fit"`: the number for which they have the lowest
            cross-entropy of RankNet's pairs on the training queries; scores on a large scale leave nothing to learn. A
            number above 0; 1.0 is the papers' F_0.
        max_bins: of each feature, 2 to 255.
        categorical: categorical features, by number or name, beside those of the data: categorical columns of frames,
            and what `RankingData(categorical=…)` names. Text is numbered, and the model keeps the names.
        monotone: features that must not lower (+1) or raise (−1) the score as they rise: by name or number, or one
            entry for each feature.
        patience: stop after so many trees without a better one on the validation data.
        random_state: the seed of sampling.
        n_threads: all cores by default. The model is the same, to the bit, for any number.
        metrics: measures to watch beside `measure`: all of them stand in `history_`, for each validation set.
        verbose: None for a progress bar on terminals, 0 for silence, n for a line on standard error every n trees.

    Attributes:
        model_: the `Ensemble`.
        n_trees_: its number of trees.
        best_iteration_: the last tree kept, from 0, or None without validation data; −1 where the submodel alone is
            the best.
        history_: means of the measure, and of `metrics`, after each tree, by `set/measure`.
        submodel_scale_: what the submodel's scores are multiplied by.
        submodel_means_: means of the measure before the first tree, as in `history_`, where there is a submodel.
        position_bias_: of positions 1, 2, …, where the objective is `Debiased` and estimates it.
        n_features_in_, feature_names_in_: as scikit-learn has them.

    """

    _usual = WEIGHED
    position_bias_: NDArray[np.float64]
    submodel_scale_: float
    submodel_means_: dict[str, float]

    def __init__(
        self,
        n_trees: int = 500,
        n_leaves: int = 15,
        learning_rate: float = 0.1,
        measure: Measure | Graded | str = "ndcg@10",
        *,
        truncation: int | None = None,
        sigma: float = 1.0,
        normalize: bool = True,
        objective: Objective | str | None = None,
        step: Step | str = "newton",
        submodel: Any = None,
        submodel_scale: float | str = "fit",
        **settings: Unpack[TreeSettings],
    ) -> None:
        super().__init__(n_trees, n_leaves, learning_rate, measure, **WEIGHED | settings)
        self.truncation = truncation
        self.sigma = sigma
        self.normalize = normalize
        self.objective = objective
        self.step = step
        self.submodel = submodel
        self.submodel_scale = submodel_scale

    @classmethod
    def from_lightgbm(cls, params: Mapping[str, Any], **overrides: Any) -> Self:
        """A ranker with the parameters of `LGBMRanker` or `lightgbm.train`, by any of their names.

        What the dictionary does not name has Podium's default. A warning lists what could not be translated, with the
        reasons. `overrides` are parameters of Podium's.
        """
        found: Self = translating.from_lightgbm(cls, params, overrides)
        return found

    @classmethod
    def from_xgboost(cls, params: Mapping[str, Any], **overrides: Any) -> Self:
        """A ranker with the parameters of `XGBRanker` or `xgboost.train`, see `from_lightgbm`.

        A depth alone becomes all the leaves that fit into it, as XGBoost grows trees level by level.
        """
        found: Self = translating.from_xgboost(cls, params, overrides)
        return found

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
        found = lambda_objective(self, normalize=True)
        if isinstance(found, Multiclass):
            raise DataError("Multiclass has a score for each class: train it with McRank")
        return found

    def _step(self) -> Step:
        return as_step(self.step, self.l2, as_selection(self.measure).measures[0], self.max_delta_step)

    def _settings(self, train: RankingData) -> Boosting:
        settings = replace(super()._settings(train), submodel_scale=self.submodel_scale)
        if self.submodel is None:
            return settings
        submodel = as_submodel(self.submodel, train)
        return replace(settings, submodel=lambda data: scores_of(submodel, data, self.n_threads))

    def _model(self, found: TrainingResult) -> Any:
        trees = super()._model(found)
        if found.base_scores is None:
            return trees
        given = as_submodel(self.submodel, trees)
        scale = found.base_scores.scale
        if isinstance(given, Model):
            return Combined((given, trees), (scale, 1.0)).with_info(submodel_scale=scale)
        name = getattr(given, "__name__", type(given).__name__)
        if isinstance(given, np.ndarray):
            name = "a column of scores"
        return TreesOnBaseScores(trees, name, checksum(found.base_scores.scores), scale)

    def _start(self, X: Any) -> dict[str, Any]:
        """The scores of a submodel that is code."""
        if not isinstance(self.model_, TreesOnBaseScores):
            return {}
        submodel = as_submodel(self.submodel, self.trees_)
        if isinstance(X, RankingData):
            return {"start": scores_of(submodel, X, self.n_threads)}
        if isinstance(submodel, np.ndarray):
            return {"start": submodel}
        data = RankingData(X, qid=np.zeros(len(to_rows(X)), np.int64))
        return {"start": scores_of(submodel, data, self.n_threads)}

    def _keep(self, found: TrainingResult) -> None:
        for name in ("position_bias_", "submodel_scale_", "submodel_means_"):  # of an earlier fit
            if hasattr(self, name):
                delattr(self, name)
        if found.base_scores is not None:
            self.submodel_scale_, self.submodel_means_ = found.base_scores.scale, found.base_scores.means
        if isinstance(found.objective, BoundBiases):
            self.position_bias_ = found.objective.biases[1:].copy()


class RankNetTrees(EnsembleRanker):
    """TrainingResult trees on RankNet's cost: every pair with different labels weighs 1 ([B] §2).

    On data with preferences and no labels, the pairs are those preferences (`podium.objectives.Preferences`),
    `normalize` plays no part, and the share of pairs in the right order (`preferences`) takes the place of the measure.

    Args:
        n_trees, n_leaves, learning_rate, measure: see `LambdaMART`.
        sigma: the steepness of the pairs' sigmoid.
        normalize: scale λ within each query, as LightGBM does.
        **settings: the other settings of `LambdaMART`'s trees.

    """

    def __init__(
        self,
        n_trees: int = 500,
        n_leaves: int = 15,
        learning_rate: float = 0.1,
        measure: Measure | Graded | str = "ndcg@10",
        *,
        sigma: float = 1.0,
        normalize: bool = True,
        **settings: Unpack[TreeSettings],
    ) -> None:
        super().__init__(n_trees, n_leaves, learning_rate, measure, **settings)
        self.sigma = sigma
        self.normalize = normalize

    def _objective(self) -> Objective:
        return Pairwise(CrossEntropy(self.sigma), normalize=self.normalize)

    def _objective_for(self, train: RankingData) -> Objective:
        return Preferences(CrossEntropy(self.sigma)) if has_preferences_alone(train) else self._objective()
