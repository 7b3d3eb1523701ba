"""RankNet and LambdaRank as scikit-learn estimators."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from podium.boosting import Checkpoint
from podium.data import RankingData
from podium.estimators.diagnosis import warn_if_constant
from podium.estimators.ranker import RankerMixin, lambda_objective, spell_out_settings
from podium.measures import Graded, Measure, as_watched, has_preferences_alone, selection_for
from podium.objectives import CrossEntropy, Objective, Pairwise, Preferences

if TYPE_CHECKING:
    from podium.neural import Net
    from podium.neural.training import Epoch


class NetRanker(RankerMixin, BaseEstimator):  # type: ignore[misc]
    """A net that is trained on λ: what `RankNet` and `LambdaRank` share."""

    def __init__(
        self,
        measure: Measure | Graded | str = "ndcg@10",
        *,
        net: Any = None,
        hidden: int | Sequence[int] = 10,
        activation: str = "tanh",
        inputs: str = "standard",
        optimizer: str = "adam",
        learning_rate: float | None = None,
        smallest_rate: float = 1e-5,
        halve_after: int = 5,
        epochs: int = 100,
        batch_queries: int | None = 32,
        l2: float = 0.0,
        sigma: float = 1.0,
        patience: int | None = None,
        random_state: int = 0,
        n_threads: int | None = None,
        metrics: Sequence[Measure | str] = (),
        verbose: int | None = None,
    ) -> None:
        self.measure = measure
        self.net = net
        self.hidden = hidden
        self.activation = activation
        self.inputs = inputs
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.smallest_rate = smallest_rate
        self.halve_after = halve_after
        self.epochs = epochs
        self.batch_queries = batch_queries
        self.l2 = l2
        self.sigma = sigma
        self.patience = patience
        self.random_state = random_state
        self.n_threads = n_threads
        self.metrics = metrics
        self.verbose = verbose

    def __init_subclass__(cls, **options: Any) -> None:
        """The settings that a class takes by `**settings`."""
        super().__init_subclass__(**options)
        spell_out_settings(cls, list(inspect.signature(NetRanker.__init__).parameters.values())[1:])

    def _objective(self) -> Objective:
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
        observers: Sequence[Callable[[Epoch], None]] = (),
        checkpoint: Checkpoint | None = None,
    ) -> NetRanker:
        """Train, see `LambdaMART.fit`. Observers hear of each epoch; a checkpoint keeps the state between epochs."""
        from podium.neural import Layers, NetTraining

        train = self._data(X, y, qid, sample_weight, query_weight)
        training = NetTraining(
            self._objective_for(train), self.epochs, self.optimizer, self.learning_rate, self.smallest_rate,
            self.halve_after, self.batch_queries, self.l2, self.inputs, selection_for(self.measure, train),
            self.patience, self.random_state, self.n_threads, as_watched(self.metrics), self.verbose,
        )  # fmt: skip
        module = (lambda n: Layers(n, self.hidden, self.activation)) if self.net is None else self.net
        found = training.fit(train, module, self._validation(valid, eval_set), observers, checkpoint)
        self.model_: Net = found.net.with_info(**self._information(train))
        self.history_ = found.history
        self.best_iteration_ = found.best_iteration
        self._note_features(train)
        warn_if_constant(train, training.objective, None)
        return self

    def _validation(self, valid: Any, eval_set: Any) -> dict[str, RankingData]:
        """Patience may do without validation data: the training queries take its place."""
        return super()._validation(valid, eval_set) if valid is not None or eval_set is not None else {}

    def predict(self, X: Any, *, qid: ArrayLike | None = None) -> NDArray[np.float64]:
        """The score of each row, higher is better; a net that sees lists needs `RankingData`, or the queries."""
        return self._predict(X if qid is None else RankingData(X, qid=qid))


class RankNet(NetRanker):
    """A net trained on pairs: the cross-entropy of which document is the better one ([B] §2).

    One backward pass for each batch of queries, from the sum of each document's λ. On data with preferences and no
    labels, the pairs are those preferences, and the share of them in the right order takes the place of the measure.

    Args:
        measure: what picks the epoch, on validation data or else on the training queries.
        net: a torch module from documents, a row each, to scores; one whose `forward` takes `offsets` as well sees
            whole lists; or a function that makes one of the number of features. The papers' net by default.
        hidden, activation: of that net: units of its hidden layer (the papers had 10 or 15), `"tanh"`, `"relu"` or
            `"sigmoid"`.
        inputs: `"standard"`, `"log"`, `"quantile"` or `"none"`, see `podium.neural.Inputs`.
        optimizer: `"adam"`, or `"sgd"`, the papers'.
        learning_rate: at first, .01 for Adam and .001 for SGD by default; halved after `halve_after` epochs without a
            better one, down to `smallest_rate`.
        epochs: passes over all queries, at most.
        batch_queries: queries that a step sees, None for all.
        l2: weight decay.
        sigma: the steepness of the pairs' sigmoid.
        patience: stop after so many epochs without a better one.
        random_state: the seed of weights and batches.
        n_threads: all cores by default. The model is the same, to the bit, for the same number.
        metrics: measures to watch beside `measure`: all of them stand in `history_`, for each validation set.
        verbose: None for a progress bar on terminals, 0 for silence, n for a line on standard error every n epochs.

    Attributes:
        model_: the `podium.neural.Net`.
        history_: the means of the measure, and of `metrics`, after each epoch, by `set/measure`.
        best_iteration_: the epoch whose weights are kept.

    """

    def _objective(self) -> Objective:
        return Pairwise(CrossEntropy(self.sigma))

    def _objective_for(self, train: RankingData) -> Objective:
        return Preferences(CrossEntropy(self.sigma)) if has_preferences_alone(train) else self._objective()


class LambdaRank(NetRanker):
    """A net trained on λ of a measure: RankNet's times the change of the measure when two documents swap ([B] §4).

    Args:
        measure: what is trained on, and what picks the epoch.
        objective: another objective than `Lambda(measure, …)`, as a value or as text; any of `podium.objectives` with
            one score for each document.
        truncation, normalize: see `LambdaMART`.
        net, hidden, activation, inputs, optimizer, learning_rate, smallest_rate, halve_after, epochs, batch_queries,
            l2, sigma, patience, random_state, n_threads, metrics, verbose: see `RankNet`.

    Attributes:
        model_, history_, best_iteration_: see `RankNet`.

    """

    def __init__(
        self,
        measure: Measure | Graded | str = "ndcg@10",
        *,
        objective: Objective | str | None = None,
        truncation: int | None = None,
        normalize: bool = False,
        **settings: Any,
    ) -> None:
        super().__init__(measure, **settings)
        self.objective = objective
        self.truncation = truncation
        self.normalize = normalize

    def _objective(self) -> Objective:
        return lambda_objective(self, normalize=False)
