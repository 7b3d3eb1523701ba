"""A worker's documents in training: scores, gradients, and the leaves of the growing tree."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.boosting.sampling import BoundSampling, Sampling
from podium.boosting.steps import Step
from podium.boosting.training_state import of_output
from podium.combining import Sweep
from podium.combining.lines import exponents_of
from podium.core.array_types import Bools, Floats, Int32s
from podium.core.choices import SplitMode
from podium.core.merging import Gathered, Max, Same, Total
from podium.core.team import Team
from podium.data import RankingData
from podium.measures import BoundMeasures, Measure
from podium.objectives import BoundObjective, Objective
from podium.objectives.ordinal import BoundOrdinal
from podium.trees import GrownTree, Tree
from podium.trees.binning import BinnedFeatures
from podium.trees.distributed_growth import GrowthRequest, PartLeaves
from podium.trees.gradient_sampling import GradientSampler
from podium.trees.quantization import BoundedGradients, QuantizedGradients, quantize_in_parts

Steps = Generator[Any, Any, Any]
NO_ROWS = np.empty(0, np.int32)
STEP, ORIGINAL = "step", "original"  # gradients as the step has changed them, and as the objective computes them


@dataclass(frozen=True)
class SweepPlan:
    """The task of a line search."""

    measure: Measure
    ties: str | int  # the order of documents with equal scores
    set_name: str  # the documents to measure


@dataclass(frozen=True)
class TrainingPlan:
    """The settings of a run that every part needs."""

    objective: Objective  # to bind to parts, with measures fixed on all data
    step: Step  # computes leaf values
    split: SplitMode  # defines the weights of splits
    sampling: Sampling
    n_documents: int  # of all parts
    keeps_original: bool  # whether the line search needs the gradients from before the step
    measures: dict[str, Measure]  # of the validation data, by name, fixed on all data
    watches_loss: bool  # whether to measure the loss of the objective
    sweep: SweepPlan | None  # None without a line search


def by_bins(tree: Tree, goes_left: Bools) -> GrownTree:
    """Return a tree without rows, which can only be traversed by bins."""
    empty = np.empty(0, np.int64)
    return GrownTree(tree, NO_ROWS, empty, empty, goes_left)


class ScoredPart:
    """Documents of a worker, and their scores.

    Attributes:
        data: the documents, without features after binning.
        binned: their bins.
        scores: the scores, with a row for each output if there are several.
        n_trees: the number of trees in the scores.

    """

    def __init__(self, data: RankingData, binned: BinnedFeatures, team: Team) -> None:
        self.data, self.binned, self.team = data, binned, team
        self.scores: Floats = np.zeros(0)
        self.n_trees = 0

    def begin(self, n_outputs: int) -> None:
        """Set all scores to 0."""
        n = len(self.data)
        self.scores, self.n_trees = np.zeros(n if n_outputs == 1 else (n_outputs, n)), 0

    def add_by_bins(self, output: int, tree: GrownTree, values: Floats) -> None:
        """Add the values of a tree's leaves to the scores of an output."""
        tree.add_by_bins(values, self.binned, of_output(self.scores, output), self.team)
        self.n_trees += 1


class ValidPart(ScoredPart):
    """Validation documents of a worker."""

    def __init__(self, data: RankingData, binned: BinnedFeatures, team: Team, plan: TrainingPlan) -> None:
        super().__init__(data, binned, team)
        self.measures = BoundMeasures(data, plan.measures, team)
        self.objective = plan.objective.bind_elsewhere(data) if plan.watches_loss else None
        if self.objective is not None:
            self.objective.team = team

    def measure(self, objective: BoundObjective) -> dict[str, Any]:
        """Return sums for the means over all parts."""
        return self.measures.part_sums(objective.ranked_by(self.scores))


class TrainPart(ScoredPart):
    """Training documents of a worker."""

    def __init__(self, data: RankingData, binned: BinnedFeatures, team: Team, plan: TrainingPlan) -> None:
        super().__init__(data, binned, team)
        self.plan, n = plan, len(data)
        self.objective: BoundObjective = plan.objective.bind(data)
        self.objective.team = team
        self.sampling = BoundSampling(plan.sampling, data)
        self.sampler, fraction = None, plan.sampling.split_fraction_of(plan.n_documents)
        if fraction < 1:
            self.sampler = GradientSampler(fraction, self.sampling.random.document_keys, plan.split, team)
        self.leaves = PartLeaves(binned, team)
        self.words = np.empty(n, np.int64)
        self.gradients, self.hessians = np.empty(0), np.empty(0)
        self.original: tuple[Floats, Floats] | None = None
        self.rows: Int32s | None = None
        self.bounds: dict[str, BoundedGradients] = {}

    def set_facts(self, facts: Any) -> None:
        """Set the facts about all data that the objective needs."""
        self.objective.set_facts(facts)
        self.begin(self.objective.n_outputs)
        self.gradients, self.hessians = np.empty_like(self.scores), np.empty_like(self.scores)

    def compute_gradients(self, iteration: int, initial_score: float) -> Steps:
        """Compute λ and w of a round, and draw its sample; return the objective's state."""
        scores = self.scores + initial_score if initial_score else self.scores
        yield from self.objective.fill_in_parts(scores, iteration, self.gradients, self.hessians)
        if self.plan.keeps_original:  # the step overwrites its arguments
            self.original = self.gradients.copy(), self.hessians.copy()
        self.plan.step.prepare(self.data, self.gradients, self.hessians)
        self.rows = self.sampling.rows(iteration)
        return Same(self.objective.state())

    def begin_tree(self, output: int, seed: np.uint64 | None, new_round: tuple[int, float] | None) -> Steps:
        """Round gradients to integers, on a sample if there is a seed; return the scales, the root and a state.

        If this is the first tree of a round, compute its gradients first; the state is then that of the objective.
        """
        state = None if new_round is None else (yield from self.compute_gradients(*new_round))
        n, objective = self.plan.n_documents, self.objective
        g, h = of_output(self.gradients, output), of_output(self.hessians, output)
        bounded = yield from BoundedGradients.in_parts(g, h, self.team, n)
        bounded.require_finite()
        self.bounds[STEP], weights = bounded, objective.document_weights
        if seed is not None:
            assert self.sampler is not None
            packed = yield from self.sampler.quantize_in_parts(bounded, seed, self.words, weights, n)
        else:
            packed = yield from quantize_in_parts(bounded, self.plan.split, self.team, n, self.words, weights)
        root = self.leaves.plant(packed.words, *self._documents(packed))
        units = Same((packed.gradient_unit, packed.weight_unit, packed.counts_documents, bounded.sum_bounds))
        return units, Max(packed.largest_weight), root, state

    def find_thresholds(self) -> Steps:
        """Fit the thresholds that maximize the likelihood of the labels; return the objective's state."""
        assert isinstance(self.objective, BoundOrdinal)
        yield from self.objective.find_thresholds(self.scores)
        return Same(self.objective.state())

    def bound_original(self) -> Steps:
        """Return bounds for sums of the objective's gradients."""
        assert self.original is not None
        bounded = yield from BoundedGradients.in_parts(*self.original, self.team, self.plan.n_documents)
        self.bounds[ORIGINAL] = bounded
        return Same(bounded.sum_bounds)

    def _documents(self, packed: QuantizedGradients) -> tuple[Int32s, Int32s]:
        """Return the rows on which splits are searched, and the other rows of the tree."""
        n, rows = len(self.data), self.rows
        if packed.sampled is None or packed.unsampled is None:
            return (np.arange(n, dtype=np.int32) if rows is None else rows), NO_ROWS
        if rows is None:
            return packed.sampled, packed.unsampled
        is_in_tree = np.zeros(n, bool)
        is_in_tree[rows] = True
        return packed.sampled[is_in_tree[packed.sampled]], packed.unsampled[is_in_tree[packed.unsampled]]

    def answer(self, question: GrowthRequest) -> Total:
        """Call `PartLeaves.answer`."""
        return self.leaves.answer(question)

    def sum_leaves(self, leaves: Sequence[int], which: str, scales: tuple[float, float]) -> Total:
        """Call `PartLeaves.sums` with the gradients `STEP` or `ORIGINAL`."""
        return self.leaves.sums(leaves, self.bounds[which], scales)

    def add_tree(self, output: int, tree: GrownTree, values: Floats, leaves: Sequence[int]) -> None:
        """Add a new tree to the scores of an output."""
        if self.rows is None:
            self.leaves.add_values(leaves, values, of_output(self.scores, output))
            self.n_trees += 1
        else:
            self.add_by_bins(output, tree, values)


class SearchedPart:
    """Documents of a worker, for a line search."""

    def __init__(self, part: ScoredPart, data: RankingData, plan: SweepPlan, n_threads: int) -> None:
        self.part, self.sweep = part, Sweep(data, plan.measure, plan.ties, n_threads, is_part=True)
        self.leaf_of_rows = np.zeros(0, np.int64)
        self.scores: Floats = np.zeros(0)
        self.slopes: Floats = np.zeros(0)

    def begin(self, tree: Tree, goes_left: Bools) -> None:
        """Find the leaf of each document."""
        self.leaf_of_rows = by_bins(tree, goes_left).leaf_of_rows(self.part.binned, self.part.team)

    def set_line(self, slopes: Floats, added: Floats | None) -> None:
        """Set the slope of each leaf's documents, and the value to add to their scores."""
        scores = self.part.scores if added is None else self.part.scores + added[self.leaf_of_rows]
        self.scores, self.slopes = scores, slopes[self.leaf_of_rows]
        self.sweep.line(self.scores, self.slopes)  # raises if a number is not finite

    def exponents(self) -> Any:
        """Return the exponents of the largest and smallest scores and slopes; the smallest negated, to take maxima."""
        pairs = exponents_of(self.scores, self.slopes)
        return [None if pair is None else Max((pair[0], -pair[1])) for pair in pairs]

    def scale(self, exponent: int) -> None:
        """Divide scores and slopes by a power of two."""
        self.scores, self.slopes = np.ldexp(self.scores, -exponent), np.ldexp(self.slopes, -exponent)

    def largest(self) -> Max:
        """Call `Sweep.largest`."""
        return Max(self.sweep.largest(self.scores))

    def crossings(self, low: float, high: float, unit: float) -> tuple[Gathered, Total]:
        """Call `Sweep.crossings`."""
        turns, start = self.sweep.crossings(self.scores, self.slopes, low, high, unit)
        return Gathered([turns]), Total(start)

    def sum_at(self, alpha: float) -> Total:
        """Return the sum of the measure at a point."""
        return Total(self.sweep.sum(self.scores + alpha * self.slopes))

    def count(self) -> Total:
        """Return the number of queries that count in the mean."""
        return Total(self.sweep.n_counted)
