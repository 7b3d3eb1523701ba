"""The estimators to start with: `Ranker`, and `Committee`, which spends more training time on a better model."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any, Self

from podium.boosting import BinnedData, Boosting, CommitteeTraining, Sampling, TrainingResult, rounds_by_folds
from podium.boosting.committee import default_members
from podium.boosting.folds import SHARES, folds_needed, share_of_features, with_feature_fraction
from podium.core.parameters import from_parameters
from podium.data import RankingData
from podium.data.subsets import folds_by_content
from podium.errors import DataError
from podium.estimators.base_ranker import WeightedTrees, check_is_fitted
from podium.estimators.diagnosis import require_labels, warn_if_constant, warn_if_not_stopped, warn_if_unused
from podium.estimators.parameters import CommitteeParameters, RankerParameters
from podium.estimators.tree_ranker import TreeRanker
from podium.evaluation.tables import Table
from podium.measures import as_selection
from podium.objectives import Objective, default_objective, parse
from podium.objectives.base import label_source
from podium.trees import GrowthParameters

MANY_DOCUMENTS = 100_000  # with more, larger steps and trees and one fold are as accurate, and faster


class Ranker(RankerParameters, TreeRanker):
    """Boosted trees on two objectives, averaged: the model to start with.

    Each round grows two trees. One learns differences of labels from all documents (query regression, CatBoost's
    QueryRMSE), the other follows λ of the measure, which orders the top 20 documents. Documents are ranked by the mean
    of both standardized scores (`podium.objectives.default_objective`). Every round sees 70% of the documents and half
    of the features, or all features if these are clearly better on unseen queries. For any other objective, see
    `LambdaMART`. docs/ranker.md explains the choice of defaults.

    With validation data, training stops at the best measure on it. Without, cross-validation chooses the number of
    rounds, and the model is trained on all data. With more than 100,000 documents in 3,000 queries or more, only one
    fold of the queries is held out, which takes half the time.

    Attributes:
        model_: the `Ensemble`, with two trees for each round.
        n_trees_: the number of rounds.
        best_iteration_: the last round of the model, from 0.
        history_: means of the measure after each round, by `set/measure`; `folds/measure` is the mean over the queries
            that the models of cross-validation have not seen.
        feature_fraction_: the share of features that each round was grown on.
        learning_rate_: the learning rate.
        n_features_in_, feature_names_in_: as in scikit-learn.

    Example:
        >>> import podium
        >>> model = podium.Ranker(n_trees=5, n_leaves=4, n_folds=2).fit(podium.artificial(20, features=4))
        >>> 1 <= model.n_trees_ <= 5, list(model.history_)
        (True, ['folds/ndcg@10'])

    """

    _stops_without_validation = True

    def _objective(self, train: RankingData) -> Objective:
        return default_objective(as_selection(self.measure).measures[0])

    def _with_defaults(self, n_documents: int) -> Self:
        n_leaves, learning_rate = (31, 0.1) if n_documents > MANY_DOCUMENTS else (15, 0.05)
        defaults = {"n_leaves": n_leaves, "learning_rate": learning_rate, "feature_fraction": SHARES[0]}
        ranker = copy(self)
        vars(ranker).update({name: value for name, value in defaults.items() if getattr(self, name) is None})
        return ranker

    def _boost(
        self, settings: Boosting, train: RankingData, sets: dict[str, RankingData], **options: Any
    ) -> TrainingResult:
        """Choose the share of features and the number of rounds on unseen queries, and train."""
        tries_all_features = self.feature_fraction is None
        self.feature_fraction_, self.learning_rate_ = settings.sampling.feature_fraction, settings.learning_rate
        is_large = train.n_documents > MANY_DOCUMENTS and folds_needed(train.n_queries, self.n_folds) == 1
        if is_large and not sets and self.patience is not None:
            fold = folds_by_content(train, self.n_folds, self.random_state)
            train, sets = train.select(fold != 0), {"folds": train.select(fold == 0)}
        if sets or self.patience is None:
            if sets and tries_all_features:
                options["data"] = BinnedData.of(train, sets, settings, options["bins"])
                self.feature_fraction_ = share_of_features(settings, [options["data"]])
            result = with_feature_fraction(settings, self.feature_fraction_).fit(train, sets, **options)
            if result.best_iteration is not None:
                warn_if_not_stopped(self.n_trees, self.patience, [result.best_iteration + 1])
            return result
        folds = rounds_by_folds(settings, train, self.n_folds, tries_all_features=tries_all_features)
        warn_if_not_stopped(self.n_trees, self.patience, [folds.best_iteration + 1])
        self.feature_fraction_ = folds.feature_fraction
        settings = with_feature_fraction(settings, self.feature_fraction_)
        result = replace(settings, n_trees=folds.best_iteration + 1, patience=None).fit(train, sets, **options)
        return replace(result, history=folds.history | result.history, best_iteration=folds.best_iteration)


class Committee(CommitteeParameters, WeightedTrees):
    """Bagged rankers of several objectives, weighted by the exact sweep on unseen queries, in one ensemble of trees.

    An ensemble of LambdaMART rankers won the Yahoo! challenge ([B] §1). Each tree of a member sees some of the
    documents and features. Scores are standardized. Members of one objective have equal weights. The weights of
    objectives are optimized exactly, one at a time, and shrunk towards equal ones. You can save, score and inspect the
    result like any other ensemble. The parameters of trees apply to each member.

    Without validation data, each member trains on all folds but one, and stops by that one. Together the members see
    all queries, so pass all labelled data.

    With a time budget the model depends on the speed of the machine. `Committee(**model.settings_)` trains the same
    model again on any machine.

    Attributes:
        model_: the `Ensemble`.
        members_: objective and number of trees of each member.
        weights_: the weight of each member.
        values_: the measure on queries that members have not seen: for the members of each objective, for equal
            weights, and for the committee.
        tried_: a `Tried` for each trial: its seconds, the measure of its members alone and with all earlier members,
            and whether they were kept. `tried_table()` returns a table.
        feature_fraction_: the share of features that each tree was grown on.
        settings_: parameters that train the same model without a clock.
        history_, best_iteration_: the last two of `values_`, in the same form as in other rankers.

    Example:
        >>> import podium
        >>> members = [("lambda(ndcg)", 1), ("xendcg", 1)]
        >>> model = podium.Committee(members=members, n_trees=3, n_leaves=4).fit(podium.artificial(20, features=4))
        >>> len(model.weights_)  # of two objectives and five folds
        10

    """

    _stops_without_validation = True

    def _train(self, train: RankingData, sets: dict[str, RankingData], **options: Any) -> None:
        if self.cycles == 0:
            warn_if_unused(self, ("shrinkage",), "with cycles=0 the weights stay equal")
        members = self._members()
        settings = from_parameters(
            CommitteeTraining,
            self,
            members=members,
            boosting=from_parameters(
                Boosting,
                self,
                growth=from_parameters(GrowthParameters, self),
                sampling=from_parameters(Sampling, self, feature_fraction=self.feature_fraction or SHARES[0]),
            ),
            measure=as_selection(self.measure),
            tries_all_features=self.feature_fraction is None,
        )
        require_labels(train, (label_source(objective) for objective, _ in members), "Committee")
        result = settings.fit(train, next(iter(sets.values()), None))
        warn_if_not_stopped(self.n_trees, self.patience, [n_trees for _, n_trees in result.members])
        self.members_ = result.members
        self.weights_ = result.weights
        self.values_ = result.values
        self.tried_ = result.tried
        self.feature_fraction_ = result.feature_fraction
        self.settings_ = self.get_params(deep=False) | {
            "members": list(result.counts), "time_budget": None, "feature_fraction": result.feature_fraction,
        }  # fmt: skip
        history = {f"valid/{name}": [result.values[name]] for name in ("equal weights", "committee")}
        self._set_fitted(train, result.ensemble, history, 0)
        warn_if_constant(train, members[0][0], None, min_documents_in_leaf=self.min_documents_in_leaf)

    def _members(self) -> tuple[tuple[Objective, int], ...]:
        if self.members is None:
            return default_members(as_selection(self.measure).measures[0])
        try:
            pairs = [(objective, count) for objective, count in self.members]
        except (TypeError, ValueError):
            raise DataError("members are pairs of an objective and a number, such as [('lambda(ndcg)', 5)]") from None
        return tuple((parse(entry) if isinstance(entry, str) else entry, count) for entry, count in pairs)

    def tried_table(self) -> Table:
        """Return a table of all trials, in order."""
        check_is_fitted(self)
        if not hasattr(self, "tried_"):
            raise DataError("a loaded Committee has no trials, because model files do not store them")
        return Table(
            ["objective", "seconds", "alone", "with all before", "kept"],
            [[t.objective, t.seconds, t.alone, t.together, "yes" if t.kept else "no"] for t in self.tried_],
        )
