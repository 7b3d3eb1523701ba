"""The ranker to begin with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from podium.boosting import Boosting, Checkpoint, SharedBins, TrainingResult, rounds_by_folds
from podium.core.observing import Observer
from podium.data import RankingData
from podium.estimators.parameters import RankerParameters
from podium.estimators.tree_ranker import EnsembleRanker
from podium.measures import as_selection
from podium.objectives import Objective, default_objective

MANY_QUERIES = 5000  # of more, one fold tells when to stop


class Ranker(RankerParameters, EnsembleRanker):
    """Boosted trees that go from query regression to λ, each on a sample: the model to begin with.

    The first trees learn from all documents how labels differ (query regression, CatBoost's QueryRMSE), and within a
    hundred trees λ of the measure takes over, which puts the top of the lists in order. Every tree sees 70% of the
    documents and half of the features; where labels depend on many features at once, take `feature_fraction=1`. For
    any other objective, see `LambdaMART`. docs/ranker.md says how the defaults were chosen, and what is open.

    With validation data, training stops where the measure is best there. Without, nothing is held back: the number of
    trees is the best one of a cross-validation, and all data is trained on.

    Attributes:
        model_: the `Ensemble`.
        n_trees_: its number of trees.
        best_iteration_: the last tree of the model, from 0.
        history_: means of the measure after each tree, by `set/measure`; by `folds/measure` where the trees of
            cross-validation were measured, each on the queries that it had not seen.
        n_features_in_, feature_names_in_: as scikit-learn has them.

    Example:
        >>> import podium
        >>> model = podium.Ranker(n_trees=5, n_leaves=4, n_folds=2).fit(podium.artificial(20, features=4))
        >>> 1 <= model.n_trees_ <= 5, list(model.history_)
        (True, ['folds/ndcg@10'])

    """

    _stops_without_validation = True

    def _objective(self) -> Objective:
        return default_objective(as_selection(self.measure).measures[0], self.learning_rate)

    def _train(
        self, settings: Boosting, train: RankingData, sets: dict[str, RankingData], observers: Sequence[Observer],
        checkpoint: Checkpoint | None, bins: SharedBins | None,
    ) -> TrainingResult:  # fmt: skip
        """With the number of trees that validation data or cross-validation say is best."""
        if sets or self.patience is None:
            return super()._train(settings, train, sets, observers, checkpoint, bins)
        n_used = 1 if train.n_queries > MANY_QUERIES else None
        folds = rounds_by_folds(settings, train, self.n_folds, n_used)
        final = replace(settings, n_trees=folds.best_iteration + 1, patience=None)
        result = super()._train(final, train, sets, observers, checkpoint, bins)
        return replace(result, history=folds.history | result.history, best_iteration=folds.best_iteration)
