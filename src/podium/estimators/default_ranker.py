"""The ranker to begin with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from podium.boosting import BinnedData, Boosting, Checkpoint, SharedBins, TrainingResult, rounds_by_folds
from podium.boosting.folds import SHARES, share_of_features, with_feature_fraction
from podium.core.observing import Observer
from podium.data import RankingData
from podium.estimators.diagnosis import warn_if_not_stopped
from podium.estimators.parameters import RankerParameters
from podium.estimators.tree_ranker import EnsembleRanker
from podium.measures import as_selection
from podium.objectives import Objective, default_objective

MANY_QUERIES = 5000  # of more, one fold tells when to stop


class Ranker(RankerParameters, EnsembleRanker):
    """Boosted trees that go from query regression to λ, each on a sample: the model to begin with.

    The first trees learn from all documents how labels differ (query regression, CatBoost's QueryRMSE), and within a
    hundred trees λ of the measure takes over, which puts the top of the lists in order. Every tree sees 70% of the
    documents and half of the features, or all of these where unseen queries say clearly that half are too few. For any
    other objective, see `LambdaMART`. docs/ranker.md says how the defaults were chosen, and what is open.

    With validation data, training stops where the measure is best there. Without, nothing is held back: the number of
    trees is the best one of a cross-validation, and all data is trained on.

    Attributes:
        model_: the `Ensemble`.
        n_trees_: its number of trees.
        best_iteration_: the last tree of the model, from 0.
        history_: means of the measure after each tree, by `set/measure`; by `folds/measure` where the trees of
            cross-validation were measured, each on the queries that it had not seen.
        feature_fraction_: the share of features that each tree was grown on.
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

    def _feature_fraction(self) -> float:
        return SHARES[0] if self.feature_fraction is None else self.feature_fraction

    def _train(
        self, settings: Boosting, train: RankingData, sets: dict[str, RankingData], observers: Sequence[Observer],
        checkpoint: Checkpoint | None, bins: SharedBins | None,
    ) -> TrainingResult:  # fmt: skip
        """With the share of features and the number of trees that validation data or cross-validation say is best."""
        tries_all_features = self.feature_fraction is None
        self.feature_fraction_ = settings.sampling.feature_fraction
        if sets or self.patience is None:
            if sets and tries_all_features:
                first = dict([next(iter(sets.items()))])
                self.feature_fraction_ = share_of_features(settings, [BinnedData.of(train, first, settings, bins)])
            chosen = with_feature_fraction(settings, self.feature_fraction_)
            result = super()._train(chosen, train, sets, observers, checkpoint, bins)
            if result.best_iteration is not None:
                warn_if_not_stopped(self.n_trees, self.patience, [result.best_iteration + 1])
            return result
        n_used = 1 if train.n_queries > MANY_QUERIES else None
        folds = rounds_by_folds(settings, train, self.n_folds, n_used, tries_all_features=tries_all_features)
        warn_if_not_stopped(self.n_trees, self.patience, [folds.best_iteration + 1])
        self.feature_fraction_ = folds.feature_fraction
        chosen = with_feature_fraction(settings, self.feature_fraction_)
        final = replace(chosen, n_trees=folds.best_iteration + 1, patience=None)
        result = super()._train(final, train, sets, observers, checkpoint, bins)
        return replace(result, history=folds.history | result.history, best_iteration=folds.best_iteration)
