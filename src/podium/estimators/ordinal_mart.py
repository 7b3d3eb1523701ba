"""Ordinal regression by boosted trees."""

from __future__ import annotations

from typing import Any

import numpy as np

from podium.boosting import TrainingResult
from podium.core.array_types import Floats
from podium.core.team import Team
from podium.data import RankingData
from podium.estimators.parameters import OrdinalMARTParameters
from podium.estimators.sklearn_bases import check_is_fitted
from podium.estimators.tree_ranker import EnsembleRanker
from podium.objectives import Objective, Ordinal
from podium.objectives.ordinal import BoundOrdinal, class_probabilities


class OrdinalMART(OrdinalMARTParameters, EnsembleRanker):
    """Ordinal regression by boosted trees: one score, and thresholds between the labels (McCullagh 1980; [Q]).

    P(l ≤ k) = 1 / (1 + e^{s − θ_k}): the score ranks, and with the thresholds it gives the probability of each label.
    Only the order of the labels counts, not their distances. The thresholds of the model are those of maximum
    likelihood for its scores of the training data.

    Attributes:
        model_: the `Ensemble`; its `info` keeps the classes and the thresholds.
        classes_: the labels that occur, ascending: the columns of `predict_proba`.
        thresholds_: θ between each two of them.

    Example:
        >>> import podium
        >>> data = podium.artificial(20, features=4)
        >>> model = podium.OrdinalMART(n_trees=2, n_leaves=4).fit(data)
        >>> model.predict_proba(data).shape == (len(data), len(model.thresholds_) + 1)
        True

    """

    def _objective(self) -> Objective:
        return Ordinal()

    def _set_results(self, result: TrainingResult, train: RankingData) -> None:
        bound = result.objective
        assert isinstance(bound, BoundOrdinal)
        self._fit_thresholds(bound, train)
        self.model_ = self.model_.with_info(classes=bound.classes.tolist(), thresholds=bound.thresholds.tolist())

    def _fit_thresholds(self, bound: BoundOrdinal, train: RankingData) -> None:
        """Set the thresholds of maximum likelihood for the scores of the model."""
        with Team(self.n_threads) as bound.team:  # that of training is closed
            bound.set_thresholds(self._predict(train.with_weight()))  # what was trained on
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
        """The probability of each label, ascending."""
        return class_probabilities(self._predict(X), self.thresholds_)
