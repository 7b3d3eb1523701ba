"""Estimators of nets: `RankNet` and `LambdaRank`."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from podium.core.array_types import Floats
from podium.core.parameters import from_parameters
from podium.data import RankingData
from podium.estimators.base_ranker import BaseRanker, Published, lambda_objective
from podium.estimators.diagnosis import warn_if_constant, warn_if_unused
from podium.estimators.parameters import LambdaRankParameters, NetParameters, RankNetParameters
from podium.measures import has_preferences_alone
from podium.objectives import CrossEntropy, Objective, Pairwise, Preferences


class NetRanker(NetParameters, BaseRanker):
    """The base class of estimators that train a net on λ."""

    measures_training_data = True
    _fit_options = ("observers", "checkpoint")
    _stops_without_validation = True  # training queries replace validation data
    _fits_alone = True  # in addition, the result of training depends on the number of threads

    def _objective(self, train: RankingData) -> Objective:
        """Return the training objective for this data."""
        raise NotImplementedError

    def _train(self, train: RankingData, sets: dict[str, RankingData], **options: Any) -> None:
        from podium.neural import Layers, NetTraining

        objective = self._objective(train)
        training = from_parameters(NetTraining, self, objective=objective, **self._evaluation_settings(train))
        if self.net is not None:
            warn_if_unused(self, ("hidden", "activation"), "they describe the default net, and net=… was given")
        module = (lambda n: Layers(n, self.hidden, self.activation)) if self.net is None else self.net
        result = training.fit(train, module, sets, **options)
        self._set_fitted(train, result.net, result.history, result.best_iteration)
        warn_if_constant(train, objective, None)

    def predict(self, X: Any, *, qid: ArrayLike | None = None, **options: Any) -> Floats:
        """Return the score of each row, higher is better; a net that sees lists needs `RankingData`, or the queries."""
        return self._predict(X if qid is None else RankingData(X, qid=qid), **options)


class RankNet(Published, RankNetParameters, NetRanker):
    """A net trained on pairs, by the cross-entropy of the better document ([B] §2).

    Each batch of queries takes one backward pass, from the sum of each document's λ. The learning rate is halved after
    `halve_after` epochs without improvement. Without validation data the training queries pick the epoch. On data with
    preferences and no labels, the pairs are these preferences, and the share of pairs in the right order replaces the
    measure.

    Attributes:
        model_: the `podium.neural.Net`.
        history_: the means of the measure, and of `metrics`, after each epoch, by `set/measure`.
        best_iteration_: the epoch of the model's weights.

    Example:
        >>> import podium
        >>> data = podium.artificial(20, features=4)
        >>> podium.RankNet(epochs=2, n_threads=1).fit(data).predict(data).shape
        (1000,)

    """

    _published = {"optimizer": "sgd", "batch_queries": 1}  # noqa: RUF012, [B] §2.1

    def _objective(self, train: RankingData) -> Objective:
        link = CrossEntropy(self.sigma)
        return Preferences(link) if has_preferences_alone(train) else Pairwise(link)


class LambdaRank(Published, LambdaRankParameters, NetRanker):
    """A net trained on λ of a measure: RankNet's times the change of the measure when two documents swap ([B] §4).

    `objective` may be any of `podium.objectives` with one score for each document.

    Attributes:
        model_, history_, best_iteration_: see `RankNet`.

    Example:
        >>> import podium
        >>> data = podium.artificial(20, features=4)
        >>> podium.LambdaRank("ndcg@5", epochs=2, n_threads=1).fit(data).predict(data).shape
        (1000,)

    """

    # [B] §4, [W] §5.2
    _published = {"optimizer": "sgd", "batch_queries": 1, "learning_rate": 1e-4, "normalize": False}  # noqa: RUF012

    def _objective(self, train: RankingData) -> Objective:
        return lambda_objective(self)
