"""RankNet's pairs, learnt by trees."""

from __future__ import annotations

from podium.data import RankingData
from podium.estimators.diagnosis import warn_if_unused
from podium.estimators.parameters import RankNetTreesParameters
from podium.estimators.tree_ranker import EnsembleRanker
from podium.measures import has_preferences_alone
from podium.objectives import CrossEntropy, Objective, Pairwise, Preferences


class RankNetTrees(RankNetTreesParameters, EnsembleRanker):
    """Boosted trees on RankNet's cost: every pair with different labels weighs 1 ([B] §2).

    On data with preferences and no labels, the pairs are those preferences (`podium.objectives.Preferences`),
    `normalize` has no effect, and the share of pairs in the right order (`preferences`) takes the place of the measure.

    Example:
        >>> import podium
        >>> podium.RankNetTrees(n_trees=3, n_leaves=4).fit(podium.artificial(20, features=4)).n_trees_
        3

    """

    def _objective(self) -> Objective:
        return Pairwise(CrossEntropy(self.sigma), normalize=self.normalize)

    def _objective_for(self, train: RankingData) -> Objective:
        if not has_preferences_alone(train):
            return self._objective()
        warn_if_unused(self, ("normalize",), "each preference weighs what the data says")
        return Preferences(CrossEntropy(self.sigma))
