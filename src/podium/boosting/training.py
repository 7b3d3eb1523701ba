"""Gradient boosting, round by round.

Each round runs independent parts: the objective computes gradients, the `TreeBuilder` builds a tree with leaf values, a
line search finds its weight, the `Evaluator` measures the validation data, and the `Checkpointer` writes the trees so
far. The loop passes the `TrainingState` from part to part.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from podium.boosting.base_scores import BaseScores, fitted_scale
from podium.boosting.binned_data import BinnedData, add_by_bins
from podium.boosting.checkpoints import Checkpoint, Checkpointer, fingerprint
from podium.boosting.evaluation import Evaluator
from podium.boosting.sampling import BoundSampling
from podium.boosting.steps import BoundLineSearch, Lines
from podium.boosting.training_state import Round, TrainingResult, TrainingState, of_output
from podium.core.array_types import Floats, Int32s, Ints
from podium.core.interrupts import Stopped, between_steps
from podium.core.observing import Observations, Observer
from podium.core.progress import progress
from podium.core.team import Team
from podium.errors import DataError, warn
from podium.models import Ensemble
from podium.objectives import BoundObjective
from podium.objectives.base import require_one_output
from podium.trees import Grower, GrownTree
from podium.trees.gradient_sampling import GradientSampler
from podium.trees.grower import NO_RULE, NONE
from podium.trees.growth_types import LeafRule
from podium.trees.quantization import BoundedGradients, quantize

if TYPE_CHECKING:
    from podium.boosting.settings import Boosting

log = logging.getLogger("podium")
# Settings that may differ when a run resumes, because they do not change trees. The scores of the submodel are part of
# the data's hash.
NOT_IN_FINGERPRINT = ("n_trees", "n_threads", "submodel", "verbose")


def run_training(trainer: Trainer, observers: Sequence[Observer], checkpoint: Checkpoint | None) -> TrainingResult:
    """Run all rounds after those of the checkpoint."""
    checkpointer = trainer.checkpointer(checkpoint)
    trainer.resume(checkpointer.read())
    interrupted = False
    try:
        _run_rounds(trainer, checkpointer, observers)
    except (KeyboardInterrupt, Stopped) as stop:
        trainer.drop_unfinished()
        n_trees = len(trainer.state.trees)
        if n_trees:
            checkpointer.write(trainer.ensemble)
        if not n_trees or isinstance(stop, Stopped):
            raise
        warn(f"interrupted: the {n_trees} trees so far are kept")
        interrupted = True
    return replace(trainer.result(), interrupted=interrupted)


def _run_rounds(trainer: Trainer, checkpointer: Checkpointer, observers: Sequence[Observer]) -> None:
    settings, state = trainer.settings, trainer.state
    needs_arrays = any(getattr(observer, "needs_arrays", True) for observer in observers)
    unit = "trees" if state.objective.n_outputs == 1 else "rounds"
    with (
        progress("growing trees", settings.n_trees, verbose=settings.verbose, unit=unit) as advance,
        between_steps() as check_signals,
    ):
        advance(state.n_rounds)
        while not trainer.is_done():
            check_signals()
            means = trainer.add_round()
            if observers:
                state.observations.record(observers, trainer.round_for_observers(means, needs_arrays))
            checkpointer.write_if_due(state.n_rounds, trainer.ensemble)
            advance(1, ", ".join(f"{name} {value:.4f}" for name, value in means.items()))


class Sample(NamedTuple):
    """The documents and features that the trees of a round are grown on; None for all."""

    rows: Int32s | None  # of the documents, ascending
    features: Ints | None  # by number, ascending


class TreeBuilder:
    """Builds trees on the training data.

    A tree depends only on the settings and on sums of integers over documents: bounds (`BoundedGradients`), histograms
    and totals (`Grower`), leaf sums (`GrownTree.sums`). Parts of the documents can be summed separately and added in
    any order; the result is the same.

    Attributes:
        step: computes leaf values.

    """

    def __init__(self, settings: Boosting, data: BinnedData, team: Team) -> None:
        growth, self.team = settings.growth, team
        if not settings.step.uses_hessians:
            growth = replace(growth, split="least-squares", l1=0.0, l2=0.0)
        self.sampling = BoundSampling(settings.sampling, data.train)
        self.sampler = None
        if self.sampling.split_fraction < 1:  # before the grower, because keys need memory that is freed at once
            keys = self.sampling.random.document_keys
            order = data.binned.rows_by_entries
            self.sampler = GradientSampler(self.sampling.split_fraction, keys, growth.split, team, order)
        self.grower = Grower(data.binned, growth, team)
        self.step = settings.step.bind(settings.objective)
        self.words = np.empty(data.train.n_documents, np.int64)

    def sample(self, iteration: int) -> Sample:
        """Draw the documents and features of a round."""
        settings = self.sampling.sampling
        return Sample(self.sampling.rows(iteration), settings.features(iteration, self.grower.binned.bins.n_features))

    def build(
        self, gradients: Floats, hessians: Floats, weights: Floats | None, sample: Sample, tree: int,
        scores: Floats = NONE, rule: LeafRule = NO_RULE,
    ) -> tuple[GrownTree, BoundedGradients]:  # fmt: skip
        """Build a tree, with splits from the gradient-based sample, or from all documents if the sample has no split.

        Args:
            gradients, hessians: those of one output, after `Step.prepare`.
            weights: the weight of each document in least-squares splits; None if all weigh 1.
            sample: the documents and features of the tree.
            tree: the number of the tree, which seeds random numbers.
            scores, rule: see `Grower.grow`.

        """
        self.grower.wait_for_compilation()  # also of the kernels that sample
        bounded, sampling = None, self.sampling.sampling
        node_seed = sampling.node_seed(tree)
        if self.sampler is not None:
            seed = sampling.split_seed(tree)
            quantized = self.sampler.quantize(gradients, hessians, seed, self.words, weights)
            grown, bounded = self.grower.grow(quantized, *sample, scores, rule, node_seed), quantized.source
            if grown.tree.n_leaves > 1:
                return grown, bounded
        bounded = bounded or BoundedGradients.of(gradients, hessians, self.team)
        quantized = quantize(bounded, self.grower.parameters.split, self.team, self.words, weights)
        return self.grower.grow(quantized, *sample, scores, rule, node_seed), bounded

    def leaf_values(self, grown: GrownTree, gradients: BoundedGradients) -> Floats:
        """Return a value for each leaf, within the bounds of monotone constraints."""
        return grown.within_bounds(self.step.leaf_values(grown, gradients, self.team))


class Trainer:
    """A run in progress, which calls the parts of each round in order.

    Attributes:
        settings, data, team: the arguments.
        builder: builds trees.
        search: the line search that follows each tree, if there is one.
        state: trees, scores and history so far.
        evaluator: measures the validation data.
        base_scores: the scores of the submodel, if there is one.

    """

    def __init__(self, settings: Boosting, data: BinnedData, team: Team) -> None:
        if settings.submodel is not None:
            data = data.with_base_scores(settings.submodel)
        self.settings, self.data, self.team = settings, data, team
        self.builder = TreeBuilder(settings, data, team)
        objective = _bind_objective(settings, data, team)
        self.state = TrainingState.before_training(objective, data.train.n_documents)
        self.evaluator = Evaluator(settings, data, objective, team)
        self.base_scores = None if settings.submodel is None else self._start_from_base_scores()
        self.search = settings.step.bind_search(settings.objective, data.train, data.valid, settings.n_threads)

    def _start_from_base_scores(self) -> BaseScores:
        """Start from the scores of a submodel, on the scale that training needs."""
        state, train = self.state, self.data.train
        require_one_output(state.objective, "training with a submodel")
        scores, scale = train.base_scores, self.settings.submodel_scale
        assert scores is not None
        if isinstance(scale, str):
            scale = fitted_scale(train, scores, self.settings.objective, self.team)
        scale = float(scale)
        state.scores[:], state.initial_score = scale * scores, 0.0
        means = self.evaluator.start_from_base_scores(scale, state.scores)
        log.info("submodel: scores times %.6g%s", scale, _as_text(means))
        return BaseScores(scores, scale, means)

    def is_done(self) -> bool:
        """Return whether there are enough trees, patience has run out, or nothing is left to learn."""
        state = self.state
        is_over = self.evaluator.is_patience_over(state.n_rounds, state.best_iteration)
        return state.n_rounds >= self.settings.n_trees or is_over or state.is_exhausted

    def add_round(self) -> dict[str, float]:
        """Grow a tree for each output, add them to all scores, and return the mean of each measure."""
        state, iteration, started = self.state, self.state.n_rounds, time.perf_counter()
        original = self._compute_gradients(iteration)
        sample = self.builder.sample(iteration)
        for output in range(state.objective.n_outputs):
            self._add_tree(output, sample, original, state.initial_score if iteration == 0 else 0.0)
        state.is_exhausted = self._is_exhausted()
        if not any(state.last_weights):
            warn(f"tree {iteration} has weight 0, and so would all later trees: training ends")
            state.is_exhausted = True
        means = self.evaluator.measure() | self.evaluator.measure_loss(state.scores, iteration)
        state.record(means)
        state.best_iteration = self.evaluator.best_iteration(state.history)
        state.n_finished += 1
        if log.isEnabledFor(logging.INFO):  # a round may take less than a millisecond
            n_leaves = "+".join(str(tree.n_leaves) for tree in state.last_trees)
            seconds = time.perf_counter() - started
            log.info("tree %d: %s leaves, %.3f s%s", iteration, n_leaves, seconds, _as_text(means))
        return means

    def round_for_observers(self, means: dict[str, float], needs_arrays: bool) -> Round:
        """Return the last round for observers; with `needs_arrays`, copies of arrays that the next round overwrites."""
        state, settings = self.state, self.settings
        scores, gradients, hessians = (
            array.copy() if needs_arrays else array for array in (state.scores, state.gradients, state.hessians)
        )
        return Round(
            state.n_rounds - 1, tuple(state.last_trees), scores, gradients, hessians, tuple(state.last_weights), means,
            state.best_iteration, self.data.train, settings.objective, state.objective.ranked_by(scores),
        )  # fmt: skip

    def _compute_gradients(self, iteration: int) -> tuple[Floats, Floats] | None:
        """Compute the gradients and hessians that trees are grown on; return the objective's if a search needs them."""
        state, original = self.state, None
        state.fill_gradients(iteration)
        if self.search is not None and self.search.in_newton_steps:  # the step overwrites them
            original = state.gradients.copy(), state.hessians.copy()
        self.builder.step.prepare(self.data.train, state.gradients, state.hessians)
        return original

    def _add_tree(
        self, output: int, sample: Sample, original: tuple[Floats, Floats] | None, initial_score: float
    ) -> None:
        """Build one tree, find its weight, and add it to the scores of its output."""
        state, rule = self.state, None if initial_score else self._leaf_rule()
        grown, values = self._build(output, sample, rule)
        tree_weight = 1.0
        if grown.added_values is None:
            values, tree_weight = self._weigh(grown, values, original)
            values = values + initial_score if initial_score else values
            self._add_values(grown, values, output, sample)
        state.tree_weights.append(tree_weight)
        self.evaluator.add_tree(grown, values, output)
        state.trees.append(grown.with_values(values))

    def _build(self, output: int, sample: Sample, rule: LeafRule | None) -> tuple[GrownTree, Floats]:
        """Grow a tree; return it with its leaf values, which growth adds to the scores if there is a rule for them."""
        state, builder, number = self.state, self.builder, len(self.state.trees)
        gradients, hessians = of_output(state.gradients, output), of_output(state.hessians, output)
        adding = () if rule is None else (of_output(state.scores, output), rule)
        grown, bounded = builder.build(gradients, hessians, state.objective.document_weights, sample, number, *adding)
        return grown, builder.leaf_values(grown, bounded) if grown.added_values is None else grown.added_values

    def _add_values(self, grown: GrownTree, values: Floats, output: int, sample: Sample) -> None:
        """Add leaf values to the scores of an output."""
        scores = of_output(self.state.scores, output)
        if sample.rows is None:
            grown.add_to_rows(values, scores, self.team)
        else:
            grown.add_by_bins(values, self.data.binned, scores, self.team)

    def _leaf_rule(self) -> LeafRule | None:
        """Return the rule by which growth computes leaf values and adds them to scores itself, or None if it cannot."""
        if self.search is not None or self.settings.growth.monotone is not None:
            return None
        return self.builder.step.leaf_rule(self._rate)

    @property
    def _rate(self) -> float:
        """The learning rate of the current round."""
        return self.settings.rate(self.state.n_rounds)

    def _weigh(self, grown: GrownTree, values: Floats, original: tuple[Floats, Floats] | None) -> tuple[Floats, float]:
        """Return the final leaf values, and the weight that a line search gives the tree."""
        rate = self._rate
        if self.search is None:
            return self.builder.step.scale(values, rate), 1.0
        sums = self._newton_sums(grown, original) if self.search.in_newton_steps else None
        return self.search.search(grown, values, rate, sums, self._lines(grown, self.search))

    def _newton_sums(self, grown: GrownTree, original: tuple[Floats, Floats] | None) -> tuple[Floats, Floats]:
        """Return the sums of the objective's gradients and hessians over the leaves."""
        assert original is not None
        return grown.sums(BoundedGradients.of(*original, self.team), self.team)

    def _lines(self, grown: GrownTree, search: BoundLineSearch) -> Lines:
        """Return a function that creates the lines of a search."""
        scores, binned = self.state.scores, self.data.binned
        if search.settings.on == "valid":
            first = next(iter(self.data.valid))
            scores, binned = self.evaluator.scores[first], self.data.binned_valid[first]
        return search.lines(scores, grown.leaf_of_rows(binned, self.team))

    def _is_exhausted(self) -> bool:
        """Return whether the last trees have a single leaf although they were grown on all documents and features."""
        state, sampling, growth = self.state, self.settings.sampling, self.settings.growth
        if not state.trees or any(tree.n_leaves > 1 for tree in state.last_trees):
            return False
        uses_all = sampling.takes_all_documents and sampling.feature_fraction * growth.feature_fraction_per_node == 1
        return uses_all and not state.objective.changes

    def checkpointer(self, checkpoint: Checkpoint | None) -> Checkpointer:
        """Return the reader and writer of this run's checkpoint."""
        return Checkpointer(checkpoint, self._fingerprint() if checkpoint else "")

    def _fingerprint(self) -> str:
        """Return a hash of everything that the run depends on."""
        return fingerprint(self.settings, NOT_IN_FINGERPRINT, self.data.train, self.data.valid)

    def resume(self, earlier: Ensemble | None) -> None:
        """Continue from the trees of an earlier run."""
        if earlier is None:
            return
        state, n_outputs = self.state, self.state.objective.n_outputs
        earlier = earlier.truncate(min(earlier.n_trees, self.settings.n_trees * n_outputs))
        state.trees = [earlier.tree(k) for k in range(earlier.n_trees)]
        state.history = {key: list(values)[: state.n_rounds] for key, values in earlier.info["history"].items()}
        state.observations = Observations(earlier.info.get("observations"))
        state.is_exhausted = self._is_exhausted()
        state.objective_states = earlier.info.get("states", [])[: state.n_rounds]
        if state.objective_states:
            state.objective.restore(state.objective_states[-1])
        self._add_scores(earlier.outputs(n_outputs))
        state.best_iteration = self.evaluator.best_iteration(state.history)
        state.n_finished = state.n_rounds
        log.info("resumed after %d trees", earlier.n_trees)

    def _add_scores(self, outputs: Sequence[Ensemble]) -> None:
        """Add the trees of an earlier run, an ensemble for each output, to all scores."""
        n_threads = self.settings.n_threads
        for output, ensemble in enumerate(outputs):
            add_by_bins(ensemble, self.data.binned, of_output(self.state.scores, output), n_threads)
        self.evaluator.add_ensembles(outputs, n_threads)

    def drop_unfinished(self) -> None:
        """Remove an interrupted round."""
        self.state.drop_unfinished()
        self.state.best_iteration = self.evaluator.best_iteration(self.state.history)

    def ensemble(self) -> Ensemble:
        """Return all trees so far, with the information to resume from a checkpoint."""
        state = self.state
        observations = state.observations.columns(state.n_finished)
        return self._all_trees().with_info(states=state.objective_states, observations=observations)

    def _all_trees(self) -> Ensemble:
        state, train = self.state, self.data.train
        info: dict[str, Any] = {
            "measures": [str(m) for m in self.evaluator.measures.values()], "history": state.history,
            "features_with_missing": self.data.binned.features_with_missing,
        }  # fmt: skip
        if self.base_scores is not None:
            info |= {"submodel_scale": self.base_scores.scale, "submodel_means": self.base_scores.means}
        if state.best_iteration is not None:
            info["best_iteration"] = state.best_iteration
        return Ensemble.of_trees(
            state.trees, train.n_features,
            feature_names=train.feature_names, info=info, encoding=train.encoding,
        )  # fmt: skip

    def result(self) -> TrainingResult:
        """Return the model, truncated after the best round if there was validation data."""
        state, ensemble = self.state, self._all_trees()
        n_splits = self._n_splits(ensemble)
        if state.best_iteration is not None:
            ensemble = ensemble.truncate((state.best_iteration + 1) * state.objective.n_outputs)
            state.restore_objective(state.best_iteration)
        if state.objective.output_weights is not None:
            ensemble = ensemble.weighted_sum(state.objective.output_weights)
        history = state.history | state.observations.columns(state.n_finished)
        return TrainingResult(ensemble, history, state.best_iteration, state.objective, self.base_scores, n_splits)

    def _n_splits(self, ensemble: Ensemble) -> int:
        """Return the number of splits in trees whose leaf values differ, or in all if a weight of 0 ended training."""
        arrays, n_splits = ensemble.arrays, np.diff(ensemble.arrays["node_offsets"])
        values, first = arrays["leaf_value"], arrays["leaf_offsets"][:-1]
        if 0.0 in self.state.last_weights or not len(first):
            return int(n_splits.sum())
        differ = np.maximum.reduceat(values, first) > np.minimum.reduceat(values, first)
        return int(n_splits[differ].sum())


def _bind_objective(settings: Boosting, data: BinnedData, team: Team) -> BoundObjective:
    """Bind the objective to the training data, with its measures fixed on all data."""
    objective = settings.objective.measuring(data.train, *data.valid.values()).bind(data.train)
    if not isinstance(objective, BoundObjective):
        raise DataError(f"{type(settings.objective).__name__}.bind must return a BoundObjective")
    objective.team = team
    return objective


def _as_text(means: dict[str, float]) -> str:
    """Format means for the log."""
    return "".join(f", {name} {value:.4f}" for name, value in means.items())
