"""RankNet."""

from __future__ import annotations

from podium.data import RankingData
from podium.estimators.nets import NetRanker
from podium.estimators.parameters import RankNetParameters
from podium.measures import has_preferences_alone
from podium.objectives import CrossEntropy, Objective, Pairwise, Preferences


class RankNet(RankNetParameters, NetRanker):
    """A net trained on pairs: the cross-entropy of which document is the better one ([B] §2).

    One backward pass for each batch of queries, from the sum of each document's λ. The learning rate is halved after
    `halve_after` epochs without a better one. Without validation data the training queries pick the epoch. On data with
    preferences and no labels, the pairs are those preferences, and the share of them in the right order takes the place
    of the measure.

    Attributes:
        model_: the `podium.neural.Net`.
        history_: the means of the measure, and of `metrics`, after each epoch, by `set/measure`.
        best_iteration_: the epoch whose weights the model has.

    Example:
        >>> import podium
        >>> data = podium.artificial(20, features=4)
        >>> podium.RankNet(epochs=2, n_threads=1).fit(data).predict(data).shape
        (1000,)

    """

    def _objective(self) -> Objective:
        return Pairwise(CrossEntropy(self.sigma))

    def _objective_for(self, train: RankingData) -> Objective:
        return Preferences(CrossEntropy(self.sigma)) if has_preferences_alone(train) else self._objective()
