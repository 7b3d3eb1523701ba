"""Compute new leaf values for the trees of a model, from other documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from podium.boosting.base_scores import BaseScores
from podium.boosting.steps import LineSearch
from podium.boosting.training_state import TrainingResult, TrainingState, of_output
from podium.core.array_types import Floats, Int32s
from podium.core.interrupts import between_steps
from podium.core.progress import progress
from podium.core.team import Team
from podium.core.threads import at_most_threads, thread_count
from podium.core.validation import require_number
from podium.data import RankingData
from podium.errors import DataError
from podium.measures import Measure
from podium.models import Ensemble
from podium.objectives import Objective
from podium.trees import GrownTree, Tree
from podium.trees.quantization import BoundedGradients

if TYPE_CHECKING:
    from podium.boosting.settings import Boosting

TREES_AT_ONCE = 64  # number of trees to traverse for all documents at a time
TRAINING_INFO = ("history", "best_iteration", "submodel_means")  # what a model records about its training data


def refit_trees(settings: Boosting, trees: Ensemble, data: RankingData, decay_rate: float) -> TrainingResult:
    """Set each leaf to decay_rate × old + (1 − decay_rate) × new (`Boosting.refit`)."""
    require_number("decay_rate", decay_rate, least=0, most=1)
    if isinstance(settings.step, LineSearch):
        raise DataError("refit computes leaf values by Newton's or the gradient step, not by a line search")
    if settings.growth.monotone is not None:
        raise DataError("refit cannot keep monotone constraints: train the model again")
    data = data.with_weight() if settings.objective.pointwise else data
    with at_most_threads(thread_count(settings.n_threads)), Team(settings.n_threads) as team:
        return _Refit(settings, trees, data, decay_rate, team).run()


class _Refit:
    """A refit in progress: each tree gets new leaf values at the scores of the refitted trees before it."""

    def __init__(self, settings: Boosting, trees: Ensemble, data: RankingData, decay_rate: float, team: Team) -> None:
        self.base_scores = None
        if settings.submodel is not None:
            scores, scale = settings.submodel(data), settings.submodel_scale
            if isinstance(scale, str):
                raise DataError("refit needs the scale of the submodel in training: pass submodel_scale=…")
            data, self.base_scores = data.with_base_scores(scores), BaseScores(scores, float(scale), {})
        self.settings, self.trees, self.data, self.decay_rate, self.team = settings, trees, data, decay_rate, team
        objective = _fixed_like(settings.objective, trees.info.get("measures", ())).measuring(data).bind(data)
        objective.team = team
        self.state = TrainingState.before_training(objective, len(data))
        self.step = settings.step.bind(settings.objective)
        self.weights = _output_weights(trees, objective.n_outputs)
        if self.base_scores is not None:
            self.state.scores[:], self.state.initial_score = self.base_scores.scale * self.base_scores.scores, 0.0

    def run(self) -> TrainingResult:
        """Refit all trees."""
        state, n_outputs, values = self.state, self.state.objective.n_outputs, list[Floats]()
        n_rounds = self.trees.n_trees // n_outputs
        with (
            progress("refitting", n_rounds, verbose=self.settings.verbose, unit="trees") as advance,
            between_steps() as check_signals,
        ):
            for number, (tree, leaf_of_row) in enumerate(self._leaves()):
                iteration, output = divmod(number, n_outputs)
                if output == 0:
                    check_signals()
                    state.fill_gradients(iteration)
                    self.step.prepare(self.data, state.gradients, state.hessians)
                    advance(1)
                values.append(self._refit_tree(tree, leaf_of_row, iteration, output))
        arrays: dict[str, Any] = {**self.trees.arrays, "leaf_value": np.concatenate([np.empty(0), *values])}
        info = {name: entry for name, entry in self.trees.info.items() if name not in TRAINING_INFO}
        refitted = replace(self.trees, arrays=arrays, info=info)
        return TrainingResult(refitted, {}, None, state.objective, self.base_scores, len(arrays["feature"]))

    def _leaves(self) -> Iterator[tuple[Tree, Int32s]]:
        """Yield each tree, and the leaf of each document."""
        for part in self.trees.cut(*range(TREES_AT_ONCE, self.trees.n_trees, TREES_AT_ONCE)):
            leaves = part.leaves(self.data, self.settings.n_threads)
            yield from ((part.tree(k), leaves[:, k]) for k in range(part.n_trees))

    def _refit_tree(self, tree: Tree, leaf_of_row: Int32s, iteration: int, output: int) -> Floats:
        """Return the values of a tree's leaves, and add them to the scores of its output.

        A leaf without documents has no gradients, so its new value is 0 and the old one decays, as in LightGBM.
        """
        state, step, decay = self.state, self.step, self.decay_rate
        gradients, hessians = of_output(state.gradients, output), of_output(state.hessians, output)
        bounded, grown = BoundedGradients.of(gradients, hessians, self.team), _with_documents(tree, leaf_of_row)
        new = step.scale(step.leaf_values(grown, bounded, self.team), self.settings.rate(iteration))
        if iteration == 0 and state.initial_score:
            new = new + state.initial_score
        weight = self.weights[output]
        values: Floats = decay * tree.leaf_value + (1.0 - decay) * (weight * new)
        of_output(state.scores, output)[:] += (values / weight)[leaf_of_row]
        return values


def _with_documents(tree: Tree, leaf_of_row: Int32s) -> GrownTree:
    """Return a tree with the documents of each leaf, as if it had been grown on them."""
    counts = np.bincount(leaf_of_row, minlength=tree.n_leaves)
    ends = np.cumsum(counts)
    rows = np.argsort(leaf_of_row, kind="stable").astype(np.int32)
    return GrownTree(tree, rows, ends - counts, ends, np.zeros((0, 0), bool))


def _fixed_like(objective: Objective, measures: Sequence[str]) -> Objective:
    """Return an objective whose measures have the constants of the model's training data, such as the highest label."""
    return objective._with_parts(
        lambda part: part.fixed_like(measures) if isinstance(part, Measure) else _fixed_like(part, measures)
    )


def _output_weights(trees: Ensemble, n_outputs: int) -> list[float]:
    """Return the factor by which the model multiplies the leaf values of each output."""
    weights = trees.info.get("output_weights", [1.0])
    if trees.trees_per_round != n_outputs or len(weights) != n_outputs:
        raise DataError(
            "refit supports models with one score per document, and averages of them that this version of Podium has "
            "trained: train this model again"
        )
    return [float(weight) for weight in weights]
