"""Gradient descent on λ: one backward pass for each batch of queries ([B] §2.1, §4)."""

from __future__ import annotations

import copy
import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]
from torch import Tensor, nn

from podium.boosting.checkpoints import Checkpoint, Pace, fingerprint
from podium.core import hyperparameters as h
from podium.core.array_types import Float32s, Floats, Ints
from podium.core.interrupts import Stopped, between_steps
from podium.core.observing import Observer
from podium.core.parameters import settings
from podium.core.progress import progress
from podium.core.team import Team
from podium.core.threads import MIN_PARALLEL_MULTIPLICATIONS, PROCESS_WIDE, n_threads_for
from podium.data import RankingData
from podium.data.canonical import queries_by_content, rows_in_order
from podium.errors import DataError, warn
from podium.measures import Graded, Measure, Ranking, as_selection, warn_of_powers
from podium.models.base import checked_sets, require_numbers
from podium.neural.checkpoints import State, read_state, snapshot_of, write_state
from podium.neural.inputs import Inputs
from podium.neural.model import Net, ScoredSet, torch_threads
from podium.neural.modules import Layers, NumpyLayers, scores_of, sees_lists
from podium.neural.optimizers import OPTIMIZERS, Weights
from podium.objectives import BoundObjective, Lambda, Objective
from podium.objectives.base import WatchedLoss, require_one_output

log = logging.getLogger("podium")


@dataclass(frozen=True)
class Epoch:
    """The argument of observers: the state of training after a pass over all training queries.

    Attributes:
        iteration: the number of the epoch, from 0.
        learning_rate: the learning rate of the epoch.
        module: the module with its current weights.
        means: the mean of each measure on each evaluation set, keyed by `set/measure`.
        best_iteration: the best epoch so far.
        data: the training documents.
        objective: the training objective.

    If an observer returns a mapping from names to numbers, it is added to `history_`.

    Example:
        >>> import podium
        >>> data, watch = podium.artificial(10, features=3), lambda epoch: print(epoch.iteration, *epoch.means)
        >>> _ = podium.RankNet(epochs=1, hidden=2).fit(data, observers=[watch])
        0 train/ndcg@10

    """

    iteration: int
    learning_rate: float
    module: nn.Module
    means: dict[str, float]
    best_iteration: int
    data: RankingData
    objective: Objective
    run: _NetRun = field(repr=False)

    @cached_property
    def document_scores(self) -> Floats:
        """The score of each training document with the current weights, computed on first use."""
        if self.run.state.epochs != self.iteration + 1:
            raise DataError("document_scores of an epoch must be read before the next epoch changes the weights")
        return self.run.document_scores()


@dataclass(frozen=True)
class NetTrainingResult:
    """The result of a training run.

    Attributes:
        net: the net with the weights of the best epoch.
        history: the measured means and the values of observers after each epoch.
        best_iteration: the best epoch.

    Example:
        >>> import podium
        >>> from podium.neural import Layers, NetTraining
        >>> data = podium.artificial(10, features=3)
        >>> result = NetTraining(epochs=2, n_threads=1).fit(data, lambda n: Layers(n, hidden=2))
        >>> result.best_iteration in (0, 1)
        True

    """

    net: Net
    history: dict[str, list[float]]
    best_iteration: int


@settings
class NetTraining:
    """The settings of a training run.

    Args:
        objective: the objective, whose λ starts the backward pass.
        selection: the measure, or graded measures, that determines the best epoch and when to halve the learning rate,
            on the first validation set, or on the training queries without one.
        watched: measures to record in the history in addition to those of the selection.
        watches_loss: whether the history has the loss of the objective, on the training data and on validation data.

    Example:
        >>> import podium
        >>> from podium.neural import Layers, NetTraining
        >>> data = podium.artificial(20, features=4)
        >>> result = NetTraining(epochs=2, n_threads=1).fit(data, lambda n: Layers(n, hidden=3))
        >>> len(result.history["train/ndcg@10"])
        2

    """

    objective: Objective = field(default_factory=Lambda)
    epochs: int = h.EPOCHS()
    optimizer: str = h.OPTIMIZER()
    learning_rate: float | None = h.FIRST_RATE()
    smallest_rate: float = h.SMALLEST_RATE()
    halve_after: int = h.HALVE_AFTER()
    batch_queries: int | None = h.BATCH_QUERIES()
    l2: float = h.WEIGHT_DECAY()
    inputs: str = h.INPUTS()
    selection: Measure | Graded | str = h.STOPPING_MEASURE.default
    patience: int | None = h.PATIENCE()
    seed: int = h.NET_RANDOM_STATE()
    n_threads: int | None = h.NET_N_THREADS()
    watched: tuple[Measure, ...] = ()
    watches_loss: bool = False
    verbose: int | None = h.VERBOSE()

    def __post_init__(self) -> None:
        if self.first_rate < self.smallest_rate:
            raise DataError(f"learning_rate {self.first_rate:g} is below smallest_rate {self.smallest_rate:g}")

    @property
    def first_rate(self) -> float:
        """The learning rate of the first epoch."""
        return OPTIMIZERS[self.optimizer].default_rate if self.learning_rate is None else float(self.learning_rate)

    def fit(
        self,
        train: RankingData,
        module: nn.Module | Callable[[int], nn.Module] | None = None,
        valid: Mapping[str, RankingData] | None = None,
        observers: Sequence[Observer] = (),
        checkpoint: Checkpoint | None = None,
    ) -> NetTrainingResult:
        """Train a copy of a module, starting from its weights; the default is the papers' two-layer net.

        `module` may also be a function from the number of features to a module. With a checkpoint, training resumes
        where an earlier run stopped.
        """
        sets = checked_sets(train, valid)
        require_numbers(train, "a net")
        measures = as_selection(self.selection).measures
        warn_of_powers([*self.objective.all_measures(), *measures], train, *sets.values())
        with PROCESS_WIDE, torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            net = _new_module(Layers if module is None else module, train.n_features)
            n_threads = self._threads_worthwhile(net, train)
            with torch_threads(n_threads), threadpool_limits(n_threads, "blas"), Team(self.n_threads) as team:
                run = _NetRun(self, net, train, sets, team)
                return self._descend(run, observers, checkpoint)

    def _threads_worthwhile(self, net: nn.Module, train: RankingData) -> int:
        """Return the number of threads for matrix products: one if waking another one costs more than it saves."""
        share = min((self.batch_queries or train.n_queries) / max(train.n_queries, 1), 1.0)
        work = share * train.n_documents * sum(tensor.numel() for tensor in net.parameters())
        return n_threads_for(work, self.n_threads, MIN_PARALLEL_MULTIPLICATIONS)

    def _descend(self, run: _NetRun, observers: Sequence[Observer], checkpoint: Checkpoint | None) -> NetTrainingResult:
        """Run all epochs after those of the checkpoint, and return the net of the best one."""
        run_fingerprint = ""
        if checkpoint:
            ignored = ("epochs", "n_threads", "patience", "verbose")
            run_fingerprint = fingerprint(self, ignored, run.train, run.sets, run.net.digest())
            run.resume(read_state(checkpoint, run_fingerprint, run.module, run.optimizer))
        pace = Pace(checkpoint) if checkpoint else None
        last, snapshot = run.state.copy(), None
        try:
            with (
                progress("training", self.epochs, verbose=self.verbose, unit="epochs") as advance,
                between_steps() as check_signals,
            ):
                advance(run.state.epochs)
                while not run.is_done():
                    epoch = run.add_epoch(check_signals)
                    last = run.state.copy()
                    if observers:
                        run.state.observations.record(observers, epoch)
                        last = run.state.copy()
                    if checkpoint and pace:
                        run.state.objectives = [batch.bound.state() for batch in run.batches]
                        snapshot = snapshot_of(run.module, run.optimizer, run.state)
                        if pace.is_due(run.state.epochs):
                            with pace.writing():
                                write_state(checkpoint, run_fingerprint, *snapshot)
                    advance(1, ", ".join(f"{name} {value:.4f}" for name, value in epoch.means.items()))
        except (KeyboardInterrupt, Stopped) as stop:
            run.state = last  # an interrupted epoch does not count
            if checkpoint and snapshot:
                write_state(checkpoint, run_fingerprint, *snapshot)
            if not run.state.epochs or isinstance(stop, Stopped):
                raise
            warn(f"interrupted after {run.state.epochs} epochs: keeping the best one")
        run.module.load_state_dict(run.state.candidates[run.state.best])
        run.weights.release()
        run.module.eval()
        measures = [str(measure) for measure in run.measures.values()]
        net = run.net.with_info(measures=measures, best_iteration=run.state.best)
        return NetTrainingResult(net, run.state.whole_history(), run.state.best)


def _new_module(module: nn.Module | Callable[[int], nn.Module], n_features: int) -> nn.Module:
    """Return a copy of a module, or the one that a function creates; raise if neither is possible."""
    if not callable(module):
        raise DataError(f"the net must be a torch module or a function that returns one, but got {module!r}")
    try:
        net = copy.deepcopy(module) if isinstance(module, nn.Module) else module(n_features)
    except RuntimeError as error:  # from torch, for example when memory runs out
        raise DataError(f"the net cannot be created: {error}") from error
    if not isinstance(net, nn.Module):
        raise DataError(f"the net must be a torch module or a function that returns one, but got {type(net)}")
    return net


@dataclass(frozen=True)
class _Batch:
    """Some training queries: their rows of `_NetRun.documents`, and the objective bound to them."""

    rows: slice
    offsets: Tensor
    bound: BoundObjective


class _NetRun:
    """A run in progress: the net, its training and evaluation data, and the state of training."""

    def __init__(
        self, settings: NetTraining, module: nn.Module, train: RankingData, sets: dict[str, RankingData], team: Team
    ) -> None:
        self.settings, self.train, self.sets, self.team = settings, train, sets, team
        # Queries are shuffled from an order by content, and documents are in the canonical order, so the order of the
        # caller's rows does not matter.
        queries = np.random.default_rng(settings.seed).permutation(queries_by_content(train))
        rows, offsets = rows_in_order(train, queries)
        features = train.features[rows]
        inputs = Inputs.fitted(features, settings.inputs)
        self.net = Net(module, inputs, train.feature_names, encoding=train.encoding)
        self.module, self.with_lists = module, sees_lists(module)
        self.documents = torch.from_numpy(inputs(features))
        self.batches = self._batches(train, rows)
        self.weights = Weights(module)
        is_plain = type(module) is Layers and all(tensor.requires_grad for tensor in module.parameters())
        self.numpy_layers = NumpyLayers(module, self.weights.gradients) if is_plain else None  # type: ignore[arg-type]
        self.optimizer = OPTIMIZERS[settings.optimizer](self.weights, settings.l2)
        self.selection = as_selection(settings.selection)
        measures = dict.fromkeys((*self.selection.measures, *settings.watched))
        self.measures = {str(m): m.fixed(train, *sets.values()) for m in measures}
        # Without evaluation sets, the last epoch counts as the best.
        is_measurable = all(measure.is_defined_on(train) for measure in self.selection.measures)
        evaluated = sets or ({"train": train} if is_measurable else {})
        self.evaluation_sets = {name: ScoredSet.of(data, inputs) for name, data in evaluated.items()}
        self.training_set = ScoredSet(train, rows, offsets, self.documents)
        self.state = State(settings.first_rate)
        self._check_module()

    def _batches(self, train: RankingData, rows: Ints) -> list[_Batch]:
        """Return the batches; to save memory, their data has one feature instead of all.

        That feature is the position in the canonical order, so that documents still differ by content.
        """
        position = np.empty(len(rows), np.float32)
        starts = np.repeat(train.offsets[:-1], train.query_sizes)
        position[train.canonical_order] = np.arange(len(rows)) - starts
        in_row_order = train.replace(features=position[:, None], feature_names=None, encoding=None)
        light = in_row_order.take(rows)
        objective = self.settings.objective.measuring(train, *self.sets.values())
        self.loss: WatchedLoss | None = None
        if self.settings.watches_loss:
            bound = objective.bind(in_row_order)
            bound.team = self.team
            self.loss = WatchedLoss(objective, bound, self.sets, self.team)
        bound_to_all = objective.bind(light)  # raises if the objective cannot be trained on these labels
        require_one_output(bound_to_all, "a net")
        size = self.settings.batch_queries or light.n_queries
        if size >= light.n_queries:
            bound_to_all.team = self.team
            return [_Batch(slice(0, len(light)), torch.from_numpy(np.array(light.offsets)), bound_to_all)]
        if bound_to_all.state():
            raise DataError(
                f"{type(self.settings.objective).__name__} learns from all queries at once: use batch_queries=None"
            )
        objective, batches = objective.fixed(light), []
        for first in range(0, light.n_queries, size):
            offsets = light.offsets[first : first + size + 1]
            bound = objective.bind(light.take(np.arange(offsets[0], offsets[-1])))
            bound.team = self.team
            batches.append(_Batch(slice(offsets[0], offsets[-1]), torch.from_numpy(offsets - offsets[0]), bound))
        return batches

    def _check_module(self) -> None:
        """Score one batch, so that a module that does not fit the data raises before training starts."""
        batch = self.batches[0]
        self.module.eval()
        try:
            with torch.inference_mode():
                scores_of(self.module, self.documents[batch.rows], batch.offsets, self.with_lists)
        except RuntimeError as error:
            raise DataError(f"the net does not accept {self.train.n_features} features: {error}") from error

    def resume(self, state: State | None) -> None:
        """Continue from the state of an earlier run, if there is one."""
        if state is None:
            return
        if state.epochs > self.settings.epochs:
            raise DataError(f"the checkpoint already has {state.epochs} epochs, but epochs={self.settings.epochs}")
        self.state = state
        for batch, objective_state in zip(self.batches, state.objectives, strict=True):
            batch.bound.restore(objective_state)

    def is_done(self) -> bool:
        """Return whether training should stop: enough epochs, no improvement, or too small a learning rate."""
        patience, state = self.settings.patience, self.state
        is_patience_over = patience is not None and state.epochs - 1 - state.best >= patience
        return state.epochs >= self.settings.epochs or is_patience_over or state.rate < self.settings.smallest_rate

    def add_epoch(self, check_signals: Callable[[], None]) -> Epoch:
        """Train on every batch once, then evaluate."""
        epoch, started, rate = self.state.epochs, time.perf_counter(), self.state.rate
        torch.manual_seed(self.settings.seed * 1_000_003 + epoch + 1)  # for modules with random layers, such as dropout
        self.module.train()
        for k in np.random.default_rng([self.settings.seed, epoch]).permutation(len(self.batches)):
            check_signals()
            self._step(self.batches[k], epoch, rate)
        self.module.eval()
        means: dict[str, float] = {}
        for name, evaluation_set in self.evaluation_sets.items():
            evaluation_set.score(self.module)
            ranking = Ranking(evaluation_set.data, evaluation_set.scores)
            for measure_name, measure in self.measures.items():
                means[f"{name}/{measure_name}"] = measure.mean(ranking)
        if self.loss is not None:
            if objective_state := self.batches[0].bound.state():  # then there is only one batch
                self.loss.bound.restore(objective_state)
            scores = {name: self.evaluation_sets[name].scores for name in self.sets}
            means |= self.loss.means(self.document_scores(), scores, epoch)
        self._record(means)
        means_as_text = "".join(f", {key} {value:.4f}" for key, value in means.items())
        log.info("epoch %d: rate %.3g, %.3f s%s", epoch, rate, time.perf_counter() - started, means_as_text)
        return Epoch(epoch, rate, self.module, means, self.state.best, self.train, self.settings.objective, self)

    def document_scores(self) -> Floats:
        """Return the scores of the training documents with the current weights."""
        for evaluation_set in self.evaluation_sets.values():
            if evaluation_set.data is self.train:
                return evaluation_set.scores.copy()
        self.training_set.score(self.module)
        return self.training_set.scores.copy()

    def _step(self, batch: _Batch, epoch: int, rate: float) -> None:
        """Take one step along Σ_i λ_i ∂s_i/∂w, averaged over queries: backpropagation starts from λ ([B] eq. 3)."""
        documents = self.documents[batch.rows]
        if self.numpy_layers is not None:
            self.numpy_layers.backward(self._score_gradients(batch, self.numpy_layers.scores(documents.numpy()), epoch))
        else:
            scores = scores_of(self.module, documents, batch.offsets, self.with_lists)
            score_gradients = self._score_gradients(batch, scores.detach().numpy(), epoch)
            scores.backward(torch.from_numpy(score_gradients))  # type: ignore[no-untyped-call]
        self.optimizer.step(rate)

    @staticmethod
    def _score_gradients(batch: _Batch, scores: Float32s, epoch: int) -> Float32s:
        """Return ∂C/∂s of each document: −λ divided by the number of queries."""
        double = scores.astype(np.float64)
        lambdas = batch.bound.gradients(double, epoch)[0]
        if not math.isfinite(double @ double + lambdas @ lambdas):
            raise DataError("a score or gradient is not finite: lower learning_rate, or choose another value of inputs")
        return (lambdas * (-1.0 / (len(batch.offsets) - 1))).astype(np.float32)

    def _record(self, means: dict[str, float]) -> None:
        """Record the means, keep the weights of the best epoch, and halve the learning rate when it is due."""
        state = self.state
        for key, value in means.items():
            state.history.setdefault(key, []).append(value)
        state.candidates[state.epochs] = {name: tensor.clone() for name, tensor in self.module.state_dict().items()}
        state.best = state.epochs
        if self.evaluation_sets:
            first = next(iter(self.evaluation_sets))
            columns = [state.history[f"{first}/{measure}"] for measure in self.selection.measures]
            state.best = self.selection.pick(np.column_stack(columns))
        is_final = len(self.selection.measures) == 1 or not self.evaluation_sets
        if is_final:  # with several measures, an earlier epoch may become the best again
            state.candidates = {state.best: state.candidates[state.best]}
        state.epochs += 1
        if state.epochs - 1 - max(state.best, state.halved) >= self.settings.halve_after:
            state.rate, state.halved = state.rate / 2, state.epochs - 1
