"""What the estimators of nets have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Never

from numpy.typing import ArrayLike

from podium.boosting import Checkpoint
from podium.core.array_types import Floats
from podium.core.observing import Observer
from podium.core.parameters import check_parameters, from_parameters
from podium.data import RankingData
from podium.estimators.diagnosis import warn_if_constant, warn_if_unused
from podium.estimators.parameters import NetParameters
from podium.estimators.ranker import RankerMixin, refuse_unknown_arguments
from podium.estimators.sklearn_bases import BaseEstimator
from podium.measures import as_watched, selection_for
from podium.objectives import Objective


class NetRanker(NetParameters, RankerMixin, BaseEstimator):
    """A net that is trained on λ."""

    measures_training_data = True
    _takes_turns = True  # and a net depends on its number of threads

    def _objective(self) -> Objective:
        """What is trained on."""
        raise NotImplementedError

    def _objective_for(self, train: RankingData) -> Objective:
        """What is trained on these documents."""
        return self._objective()

    def fit(
        self,
        X: Any,
        y: ArrayLike | str | None = None,
        *,
        qid: ArrayLike | str | None = None,
        sample_weight: ArrayLike | None = None,
        query_weight: Any = None,
        valid: RankingData | None = None,
        eval_set: Any = None,
        observers: Sequence[Observer] = (),
        checkpoint: Checkpoint | None = None,
        **unknown: Never,
    ) -> NetRanker:
        """Train, see `LambdaMART.fit`. Observers see each `podium.neural.Epoch`; a checkpoint keeps the state."""
        from podium.neural import Layers, NetTraining

        refuse_unknown_arguments(self, unknown)
        check_parameters(self)
        train = self._data(X, y, qid, sample_weight, query_weight)
        training = from_parameters(
            NetTraining,
            self,
            objective=self._objective_for(train),
            selection=selection_for(self.measure, train),
            watched=as_watched(self.metrics),
        )
        if self.net is not None:
            warn_if_unused(self, ("hidden", "activation"), "they describe the default net, and net=… was given")
        module = (lambda n: Layers(n, self.hidden, self.activation)) if self.net is None else self.net
        result = training.fit(train, module, self._validation(valid, eval_set), observers, checkpoint)
        self.model_ = result.net.with_info(**self._information(train))
        self.history_ = result.history
        self.best_iteration_ = result.best_iteration
        self._note_features(train)
        warn_if_constant(train, training.objective, None)
        return self

    def _validation(self, valid: Any, eval_set: Any) -> dict[str, RankingData]:
        """Patience may do without validation data: the training queries take its place."""
        return super()._validation(valid, eval_set) if valid is not None or eval_set is not None else {}

    def predict(self, X: Any, *, qid: ArrayLike | None = None, **options: Any) -> Floats:
        """The score of each row, higher is better; a net that sees lists needs `RankingData`, or the queries."""
        return self._predict(X if qid is None else RankingData(X, qid=qid), **options)
