"""What a training run has so far."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from podium.core.array_types import Floats
from podium.core.observing import Observations
from podium.objectives import BoundObjective
from podium.trees import Tree


@dataclass
class TrainingState:
    """Scores, trees and history of a run. One round adds a tree for each output of the objective.

    Attributes:
        objective: on the training data.
        scores: of the training documents; a row for each output where there are several.
        gradients, hessians: of the current round, in arrays that every round writes over.
        initial_score: F_0, which the first tree of each output holds in its leaf values.
        trees: those of several outputs in turn.
        tree_weights: as a line search found them, 1 else; only of the trees that this run has grown itself.
        history: what was measured after each round, by `set/measure`.
        observations: what observers returned after each round.
        objective_states: of an objective that learns itself, after each round.
        first_objective_state: the same before the first round.
        best_iteration: the best round so far; −1 for the submodel alone, None without validation data.
        is_exhausted: whether there is nothing left to learn.
        n_finished: rounds of which everything is noted; more trees than that are of a round that was broken off.

    """

    objective: BoundObjective
    scores: Floats
    gradients: Floats
    hessians: Floats
    initial_score: float
    first_objective_state: dict[str, list[float]]
    trees: list[Tree] = field(default_factory=list)
    tree_weights: list[float] = field(default_factory=list)
    history: dict[str, list[float]] = field(default_factory=dict)
    observations: Observations = field(default_factory=Observations)
    objective_states: list[dict[str, list[float]]] = field(default_factory=list)
    best_iteration: int | None = None
    is_exhausted: bool = False
    n_finished: int = 0

    @classmethod
    def before_training(cls, objective: BoundObjective, n_documents: int) -> TrainingState:
        """No trees, and 0 for all scores."""
        shape = (n_documents,) if objective.n_outputs == 1 else (objective.n_outputs, n_documents)
        return cls(
            objective, np.zeros(shape), np.empty(shape), np.empty(shape), objective.base_score, objective.state()
        )

    @property
    def n_rounds(self) -> int:
        """Rounds so far: trees of each output."""
        return len(self.trees) // self.objective.n_outputs

    @property
    def last_trees(self) -> list[Tree]:
        """The trees of the last round."""
        return self.trees[-self.objective.n_outputs :]

    @property
    def last_weights(self) -> list[float]:
        """The weights of the trees of the last round."""
        return self.tree_weights[-self.objective.n_outputs :]

    def add_to_history(self, means: dict[str, float]) -> None:
        """Note what was measured after a round."""
        for name, value in means.items():
            self.history.setdefault(name, []).append(value)

    def note_objective(self) -> None:
        """Note what the objective has learnt itself, if it does."""
        if learnt := self.objective.state():
            self.objective_states.append(learnt)

    def drop_unfinished(self) -> None:
        """Take back a round that was broken off. Scores keep its trees: training cannot go on from here."""
        for values in self.history.values():
            del values[self.n_finished :]
        del self.objective_states[self.n_finished :]
        del self.trees[self.n_finished * self.objective.n_outputs :]
        if state := self.objective_states[-1] if self.objective_states else self.first_objective_state:
            self.objective.restore(state)

    def restore_objective(self, iteration: int) -> None:
        """Bring an objective that learns itself back to what it was after a round, −1 for before the first."""
        if self.objective_states:
            self.objective.restore([self.first_objective_state, *self.objective_states][iteration + 1])


def of_output(array: Floats, output: int) -> Floats:
    """The scores, gradients or hessians of one output (a view)."""
    view: Floats = array if array.ndim == 1 else array[output]
    return view
