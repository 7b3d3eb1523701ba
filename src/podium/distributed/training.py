"""Training on a cluster: the rounds of `boosting.training`, with documents on the workers.

The client holds the trees and makes all decisions. It chooses splits by summed histograms, leaf values by summed
gradients, and the last round by summed measures. All sums are exact, so the model equals that of local training.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from podium.boosting.checkpoints import fingerprint_of_digests
from podium.boosting.evaluation import BestRound, Evaluator
from podium.boosting.settings import Boosting
from podium.boosting.steps import BoundLineSearch, Lines, LineSearch
from podium.boosting.training import NOT_IN_FINGERPRINT, Sample, Trainer
from podium.boosting.training_state import Round, TrainingState
from podium.combining.lines import Exponents, Line, Stairs, concatenate_turns, stairs_of
from podium.core.array_types import Floats
from podium.core.team import Team
from podium.distributed.documents import ClusterDocuments
from podium.distributed.engine import Engine, WorkerLostError
from podium.distributed.holder import TRAIN
from podium.distributed.parts import ORIGINAL, STEP, SweepPlan, TrainingPlan
from podium.errors import DataError, PodiumError, warn
from podium.measures import as_measure, as_selection
from podium.models import Ensemble
from podium.objectives import BoundObjective
from podium.objectives.base import loss_of_sums
from podium.trees import GrownTree
from podium.trees.distributed_growth import DistributedGrower, DistributedTree
from podium.trees.growth_types import LeafRule
from podium.trees.quantization import BoundedGradients, QuantizedGradients

Result = TypeVar("Result")
log = logging.getLogger("podium")
MOST_LOSSES = 100  # of workers in one round before training gives up
SECONDS_BETWEEN_CHECKS = 2.0  # between two checks for new workers


@dataclass(frozen=True)
class DistantGradients(BoundedGradients):
    """A placeholder for the workers' gradients, after the step or as computed by the objective."""

    which: str = STEP


class ClusterTrainer(Trainer):
    """A run on a cluster, with which `run_training` returns the result of `Boosting.fit`, to the bit."""

    def __init__(self, settings: Boosting, documents: ClusterDocuments) -> None:
        if settings.submodel is not None:
            raise DataError("submodel is not supported on a cluster: train without it, or combine the models later")
        self.settings, self.documents, self.engine = settings, documents, documents.engine
        self.data, self.team, self.base_scores = documents.prepare(settings), Team(1), None
        self.search = None
        if isinstance(settings.step, LineSearch):
            self.search = settings.step.bound_to(settings.objective, None)
        self.plan = _plan(settings, documents, self.data.valid, self.search)
        facts, n_counted = self.engine.call("bind", self.plan, documents.layout)
        objective = self.plan.objective.bind(self.data.train)
        objective.set_facts(facts)
        self.facts, self.n_counted = facts, n_counted
        if self.search is not None and not n_counted:
            raise DataError(f"{self.plan.sweep and self.plan.sweep.measure} is not defined for any query")
        self.engine.defer("set_facts", facts, objective)
        self.state = TrainingState.before_training(objective, 0)
        self.evaluator = ClusterEvaluator(settings, self.plan, objective, list(self.data.valid), self.engine)
        self.builder: Any = ClusterBuilder(settings, self.plan, objective, self.engine, self.data.binned)
        self._last_check = time.monotonic()

    def add_round(self) -> dict[str, float]:
        """Add a round; if a worker is lost, move its documents to other workers and repeat the round."""
        state = self.state
        self._use_new_workers()
        n_trees, n_weights = len(state.trees), len(state.tree_weights)

        def undo() -> None:
            state.drop_unfinished()
            del state.trees[n_trees:], state.tree_weights[n_weights:]

        return self.survive(super().add_round, undo)

    def survive(
        self, work: Callable[[], Result], undo: Callable[[], None] | None = None, places_first: bool = False
    ) -> Result:
        """Do work, and return its result; if a worker is lost, undo, move its documents to others, and repeat."""
        for _ in range(MOST_LOSSES):
            try:
                if places_first:
                    self._place_again()
                places_first = False
                return work()
            except WorkerLostError as lost:
                if places_first:
                    log.info("%s while documents were moved", lost)
                else:
                    warn(f"{lost}: its documents go to other workers", stacklevel=3)
                    if undo is not None:
                        undo()
                places_first = True
        raise PodiumError(f"{MOST_LOSSES} workers were lost in one round: check the logs of the cluster")

    def _use_new_workers(self) -> None:
        """Let workers that have joined take over some documents."""
        if time.monotonic() - self._last_check < SECONDS_BETWEEN_CHECKS:
            return
        self._last_check = time.monotonic()
        if set(self.engine.workers()) - set(self.documents.assignment):
            log.info("new workers have joined and take over documents")
            self.survive(lambda: None, places_first=True)

    def _place_again(self) -> None:
        """Place documents on the current workers, with the scores after the last round."""
        self.engine.drop_deferred()
        self.documents.place_again(self.plan)
        self.engine.defer("set_facts", self.facts, self.state.objective)  # the first call may not have arrived
        self.engine.call("restore", *self._restore_arguments())

    def _restore_arguments(self, n_rounds: int | None = None) -> tuple[Any, ...]:
        """Return the arguments of `Holder.call_restore` after some rounds, all by default."""
        state = self.state
        objective_states = state.objective_states[:n_rounds]
        objective_state = objective_states[-1] if objective_states else state.first_objective_state
        trees = state.trees if n_rounds is None else state.trees[: n_rounds * state.objective.n_outputs]
        return tuple(trees), state.objective.n_outputs, objective_state, self.data.bins

    def _compute_gradients(self, iteration: int) -> tuple[Floats, Floats] | None:
        self.builder.new_round = iteration, 0.0 if iteration else self.state.initial_score
        return None

    def _build(self, output: int, sample: Sample, rule: LeafRule | None) -> tuple[GrownTree, Floats]:
        built: tuple[GrownTree, Floats] = self.builder.build_output(output, sample, len(self.state.trees))
        return built

    def _leaf_rule(self) -> None:
        """Return None, because the client has no scores."""

    def _add_values(self, grown: Any, values: Floats, output: int, sample: Sample) -> None:
        self.engine.defer("add_tree", output, grown.tree, grown.goes_left, values, grown.leaf_numbers)

    def _newton_sums(self, grown: GrownTree, original: tuple[Floats, Floats] | None) -> tuple[Floats, Floats]:
        empty, bounds = np.empty(0), self.engine.run("bound_original")
        return grown.sums(DistantGradients(empty, empty, (0.0, 0.0), bounds, ORIGINAL), self.team)

    def _lines(self, grown: GrownTree, search: BoundLineSearch) -> Lines:
        self.engine.defer("line", "begin", grown.tree, grown.goes_left)
        return lambda slopes, added: ClusterLine(self.engine, self.n_counted, slopes, added)

    def _fingerprint(self) -> str:
        hashes = self.survive(lambda: self.engine.call("hash_documents"))
        digests = {
            name: hashlib.sha256(repr([value % 2**64 for value in hashes[name]]).encode()).digest()
            for name in sorted(hashes)
        }
        return fingerprint_of_digests(self.settings, NOT_IN_FINGERPRINT, digests, "cluster")

    def _add_scores(self, outputs: Sequence[Ensemble]) -> None:
        self.engine.defer("restore", *self._restore_arguments())

    def round_for_observers(self, means: dict[str, float], needs_arrays: bool) -> Round:
        """Return the round for observers; it fetches arrays from the workers on demand."""
        return ClusterRound(self, means)

    def fetch_arrays(self, iteration: int) -> list[dict[str, Floats]]:
        """Return the last round's scores, gradients and hessians of each worker."""
        if iteration != self.state.n_rounds - 1:
            raise DataError("the arrays of a round are only available until the next one: read them in the observer")
        is_repeated = False

        def gather() -> Any:
            nonlocal is_repeated
            if is_repeated:  # recompute the gradients, which are those before the last trees
                self.engine.defer("restore", *self._restore_arguments(iteration))
                self.engine.run("compute_gradients", iteration, 0.0 if iteration else self.state.initial_score)
                self.engine.defer("restore", *self._restore_arguments())
            is_repeated = True
            return self.engine.call("gather", ("scores", "gradients", "hessians"))

        parts: list[dict[str, Floats]] = self.survive(gather)
        return parts


class ClusterRound(Round):
    """A round of a run on a cluster; reading an array fetches it from the workers.

    Arrays are ordered by worker. The documents stay on the workers.
    """

    def __init__(self, trainer: ClusterTrainer, means: dict[str, float]) -> None:
        state = trainer.state
        values = {
            "iteration": state.n_rounds - 1, "trees": tuple(state.last_trees), "weights": tuple(state.last_weights),
            "means": means, "_trainer": trainer, "best_iteration": state.best_iteration,
            "objective": trainer.settings.objective,
        }  # fmt: skip
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> Any:
        if name == "data":
            raise DataError("documents stay on the workers of a cluster, so this observer needs local training")
        if name == "document_scores":
            return self.__dict__["_trainer"].state.objective.ranked_by(self.scores)
        if name not in ("scores", "gradients", "hessians"):
            raise AttributeError(name)
        if "_parts" not in self.__dict__:
            self.__dict__["_parts"] = self.__dict__["_trainer"].fetch_arrays(self.iteration)
        return np.concatenate([part[name] for part in self.__dict__["_parts"]], axis=-1)


class ClusterEvaluator(Evaluator):
    """Measures validation documents on all workers."""

    def __init__(
        self, settings: Boosting, plan: TrainingPlan, objective: BoundObjective, names: list[str], engine: Engine
    ) -> None:
        self.selection, self.patience = as_selection(settings.selection), settings.patience
        self.measures, self.objective, self.names, self.engine = plan.measures, objective, names, engine
        first = names[0] if names else None
        selecting = [f"{first}/{measure}" for measure in self.selection.measures]
        self.best_round = BestRound(self.selection, selecting, settings.min_delta)
        self.base_means, self.watches_loss = None, settings.watches_loss

    def measure(self) -> dict[str, float]:
        """Return the mean of each measure on each validation set, by `set/measure`."""
        if not self.names:
            return {}
        sums = self.engine.call("measure", self.objective.state())
        return {
            f"{name}/{shown}": measure.mean_of_sums(sums[f"{name}/{shown}"])
            for name in self.names
            for shown, measure in self.measures.items()
        }

    def add_tree(self, grown: GrownTree, values: Floats, output: int) -> None:
        """Do nothing, because the workers add each tree to the scores of all sets."""

    def measure_loss(self, training_scores: Floats, iteration: int) -> dict[str, float]:
        """Return the loss over the documents of all workers, by `set/loss`, if it is watched."""
        if not self.watches_loss:
            return {}
        sums = self.engine.call("measure_loss", self.objective.state(), iteration, "train" not in self.names)
        return {f"{name}/loss": loss_of_sums(sums[f"{name}/loss"]) for name in dict.fromkeys(("train", *self.names))}


class ClusterBuilder:
    """Builds trees on the documents of all workers.

    Attributes:
        step: computes leaf values.
        new_round: the round whose gradients the workers have to compute before the next tree, and F_0 if the scores do
            not have it yet; None once they have computed them.

    """

    def __init__(
        self, settings: Boosting, plan: TrainingPlan, objective: BoundObjective, engine: Engine, binned: Any
    ) -> None:
        self.objective = objective
        self.new_round: tuple[int, float] | None = None
        self.sampling, self.engine, self.plan, self.step, self.team = plan.sampling, engine, plan, plan.step, Team(1)
        growth = settings.growth
        if not settings.step.uses_hessians:
            growth = replace(growth, split="least-squares", l1=0.0, l2=0.0)
        self.grower = DistributedGrower(binned, growth, plan.n_documents, self._whole_sums)
        self.is_sampled = plan.sampling.split_fraction_of(plan.n_documents) < 1

    def _whole_sums(self, leaves: list[int], gradients: BoundedGradients, scales: tuple[float, float]) -> Any:
        which = gradients.which if isinstance(gradients, DistantGradients) else STEP
        return self.engine.call("train", "sum_leaves", leaves, which, scales)

    def sample(self, iteration: int) -> Sample:
        """Return the sample of a round without its rows, which each worker draws from its documents."""
        return Sample(None, self.sampling.features(iteration, self.grower.binned.bins.n_features))

    def build_output(self, output: int, sample: Sample, tree: int) -> tuple[DistributedTree, Floats]:
        """Build a tree for one output, like `TreeBuilder.build`."""
        grown = None
        if self.is_sampled:
            grown, bounded = self._grow(output, sample, tree, self.sampling.split_seed(tree))
        if grown is None or grown.tree.n_leaves == 1:
            grown, bounded = self._grow(output, sample, tree, None)
        return grown, grown.within_bounds(self.step.leaf_values(grown, bounded, self.team))

    def _grow(self, output: int, sample: Sample, tree: int, seed: Any) -> tuple[DistributedTree, DistantGradients]:
        units, largest_weight, root, state = self.engine.run("begin_tree", output, seed, self.new_round)
        self.new_round = None
        if state:
            self.objective.restore(state)
        gradient_unit, weight_unit, counts_documents, bounds = units
        empty = np.empty(0)
        bounded = DistantGradients(empty, empty, (0.0, 0.0), bounds)
        quantized = QuantizedGradients(
            np.empty(0, np.int64), gradient_unit, weight_unit, largest_weight, counts_documents, bounded
        )
        grown = self.grower.grow_from(
            root, quantized, sample.features, lambda question: self.engine.call("train", "answer", question),
            self.sampling.node_seed(tree),
        )  # fmt: skip
        assert isinstance(grown, DistributedTree)
        return grown, bounded


class ClusterLine(Line):
    """A line along which the workers measure their documents."""

    def __init__(self, engine: Engine, n_counted: int, slopes: Floats, added: Floats | None) -> None:
        self.engine, self.n_counted = engine, n_counted
        engine.defer("line", "set_line", slopes, added)

    def exponents(self) -> Exponents:
        scores, slopes = self.engine.call("line", "exponents")
        return (
            None if scores is None else (scores[0], -scores[1]),
            None if slopes is None else (slopes[0], -slopes[1]),
        )

    def scale(self, exponent: int) -> None:
        self.engine.defer("line", "scale", exponent)

    def largest(self) -> float:
        return float(self.engine.call("line", "largest"))

    def stairs(self, low: float, high: float, unit: float) -> Stairs:
        parts, start = self.engine.call("line", "crossings", low, high, unit)
        return stairs_of(concatenate_turns(parts), start, low, high)

    def value_at(self, alpha: float) -> float:
        return float(self.engine.call("line", "sum_at", alpha)) / self.n_counted


def _plan(settings: Boosting, documents: ClusterDocuments, valid: dict[str, Any], search: Any) -> TrainingPlan:
    """Return the settings for parts, with measures fixed on all data."""
    train, others = documents.outlines[TRAIN], list(valid.values())
    objective = settings.objective.measuring(train, *others).for_parts()
    measures = dict.fromkeys((*as_selection(settings.selection).measures, *settings.watched))
    sweep = None
    if isinstance(settings.step, LineSearch):
        if settings.step.on == "valid" and not valid:
            raise DataError("LineSearch(on='valid') needs validation data")
        measure = as_measure(settings.step.measure).fixed(train, *others)
        sweep = SweepPlan(measure, settings.step.ties, next(iter(valid)) if settings.step.on == "valid" else TRAIN)
    return TrainingPlan(
        objective=objective,
        step=settings.step.bind(settings.objective),
        split=settings.growth.split if settings.step.uses_hessians else "least-squares",
        sampling=settings.sampling,
        n_documents=documents.n_documents,
        keeps_original=search is not None and search.in_newton_steps,
        measures={str(measure): measure.fixed(train, *others) for measure in measures},
        watches_loss=settings.watches_loss,
        sweep=sweep,
    )
