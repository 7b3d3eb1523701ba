"""McRank."""

from __future__ import annotations

from typing import Any

from podium.boosting import TrainingResult
from podium.core.array_types import Floats
from podium.estimators.parameters import McRankParameters
from podium.estimators.sklearn_bases import check_is_fitted
from podium.estimators.tree_ranker import TreeRanker
from podium.models import ClassEnsemble
from podium.objectives import Multiclass, Objective
from podium.objectives.pointwise import BoundMulticlass


class McRank(McRankParameters, TreeRanker):
    """Ranking by classification (Li, Burges and Wu 2007; [W]): a tree for each label and round, scores by expectation.

    `n_trees` counts rounds; each grows a tree for each label that occurs. [W] ran it with 10 leaves, 0.05 and 1000
    rounds.

    Attributes:
        model_: the `ClassEnsemble`.
        classes_: the labels that occur, ascending: the columns of `predict_proba`.

    Example:
        >>> import podium
        >>> data = podium.artificial(20, features=4)
        >>> model = podium.McRank(n_trees=2, n_leaves=4).fit(data)
        >>> model.predict_proba(data).shape == (len(data), len(model.classes_))
        True

    """

    def _objective(self) -> Objective:
        return Multiclass(self.expects)

    def _model(self, result: TrainingResult) -> ClassEnsemble:
        assert isinstance(result.objective, BoundMulticlass)
        return ClassEnsemble(result.ensemble, result.objective.classes, result.objective.worth)

    @property
    def classes_(self) -> Floats:
        """The labels that occur, ascending."""
        check_is_fitted(self)
        classes: Floats = self.model_.classes
        return classes

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each label, ascending."""
        check_is_fitted(self)
        probabilities: Floats = self.model_.probabilities(X, n_threads=self.n_threads)
        return probabilities
