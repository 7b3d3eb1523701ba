"""The state of a training run, the rounds that observers see, and the result."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from podium.boosting.base_scores import BaseScores
from podium.core.array_types import Floats
from podium.core.observing import Observations
from podium.data import RankingData
from podium.models import Ensemble
from podium.objectives import BoundObjective, Objective
from podium.trees import Tree


@dataclass(frozen=True)
class Round:
    """A round as observers see it: one tree for each output of the objective.

    Attributes:
        iteration: the number of the round, from 0.
        trees: one for each output of the objective, with their final leaf values.
        scores: the scores of the training documents, including these trees; a row per output if there are several.
        gradients, hessians: the λ and w on which the trees were grown, in the same shape.
        weights: the weights of the trees from a line search; 1 without one.
        means: the mean of each measure on each validation set, keyed by `set/measure`.
        best_iteration: the best round so far, with validation data; −1 if the submodel alone is best.
        data: the training documents.
        objective: the training objective.
        document_scores: the score that ranks each training document, which the objective derives from several outputs.

    If an observer returns a mapping from names to numbers, `history_` records them with the means. An observer whose
    attribute `needs_arrays` is False gets arrays that the next round overwrites; all others get copies.

    Examples:
        >>> import podium
        >>> train = podium.artificial(20, features=4)
        >>> model = podium.LambdaMART(2).fit(train, observers=[lambda r: print(r.iteration, r.gradients.shape)])
        0 (1000,)
        1 (1000,)

    """

    iteration: int
    trees: tuple[Tree, ...]
    scores: Floats
    gradients: Floats
    hessians: Floats
    weights: tuple[float, ...]
    means: dict[str, float]
    best_iteration: int | None
    data: RankingData
    objective: Objective
    document_scores: Floats

    @property
    def tree(self) -> Tree:
        """The tree of the first output, usually the only one."""
        return self.trees[0]


@dataclass(frozen=True)
class TrainingResult:
    """The result of a training run (`Boosting.fit`).

    Attributes:
        ensemble: the trees up to the best round; those of several outputs alternate.
        history: the means after each round, and the numbers that observers returned.
        best_iteration: the best round, with validation data; −1 if the submodel alone is best.
        objective: the objective, with the state that it has learnt.
        base_scores: the start of training, if there was a submodel.
        n_splits: the number of splits in trees whose leaves differ; if it is 0, all documents have the same score.
        interrupted: whether Ctrl-C ended training.

    Example:
        >>> import podium
        >>> from podium.boosting import Boosting
        >>> train, valid = podium.artificial(20, features=4), podium.artificial(10, features=4, part="valid")
        >>> result = Boosting(n_trees=3).fit(train, {"valid": valid})
        >>> list(result.history), result.best_iteration in range(3)
        (['valid/ndcg@10'], True)

    """

    ensemble: Ensemble
    history: dict[str, list[float]]
    best_iteration: int | None
    objective: BoundObjective
    base_scores: BaseScores | None
    n_splits: int
    interrupted: bool = False


@dataclass
class TrainingState:
    """The scores, trees and history of a run. Each round adds a tree for each output of the objective."""

    objective: BoundObjective  # on the training data
    scores: Floats  # of the training documents; a row per output if there are several
    # gradients, hessians: of the current round; every round overwrites them, because new arrays would cost page faults
    gradients: Floats
    hessians: Floats
    initial_score: float  # F_0, which the first tree of each output holds in its leaf values
    first_objective_state: dict[str, list[float]]  # `BoundObjective.state` before the first round
    trees: list[Tree] = field(default_factory=list)  # those of several outputs alternate
    # tree_weights: from a line search, 1 without one; only of the trees that this run has grown
    tree_weights: list[float] = field(default_factory=list)
    history: dict[str, list[float]] = field(default_factory=dict)  # the means after each round, by `set/measure`
    observations: Observations = field(default_factory=Observations)  # the numbers that observers returned
    # `BoundObjective.state` after each round; empty for objectives that learn nothing
    objective_states: list[dict[str, list[float]]] = field(default_factory=list)
    best_iteration: int | None = None  # the best round so far; −1 for the submodel alone, None without validation data
    is_exhausted: bool = False  # whether there is nothing left to learn
    n_finished: int = 0  # complete rounds; further trees belong to an interrupted round

    @classmethod
    def before_training(cls, objective: BoundObjective, n_documents: int) -> TrainingState:
        """Return a state without trees and with scores of 0."""
        shape = (n_documents,) if objective.n_outputs == 1 else (objective.n_outputs, n_documents)
        return cls(
            objective, np.zeros(shape), np.empty(shape), np.empty(shape), objective.base_score, objective.state()
        )

    @property
    def n_rounds(self) -> int:
        """The number of rounds so far, finished or not."""
        return len(self.trees) // self.objective.n_outputs

    @property
    def last_trees(self) -> list[Tree]:
        """The trees of the last round."""
        return self.trees[-self.objective.n_outputs :]

    @property
    def last_weights(self) -> list[float]:
        """The weights of the trees of the last round."""
        return self.tree_weights[-self.objective.n_outputs :]

    def fill_gradients(self, iteration: int) -> None:
        """Compute gradients and hessians; those of the first round at F_0, which the scores contain from tree 1 on."""
        scores = self.scores if iteration or self.initial_score == 0 else self.scores + self.initial_score
        self.objective.fill(scores, iteration, self.gradients, self.hessians)

    def record(self, means: dict[str, float]) -> None:
        """Record the means of a round, and the state of the objective if it has one."""
        for name, value in means.items():
            self.history.setdefault(name, []).append(value)
        if state := self.objective.state():
            self.objective_states.append(state)

    def drop_unfinished(self) -> None:
        """Remove an interrupted round. Scores keep its trees, so training cannot continue from here."""
        for values in self.history.values():
            del values[self.n_finished :]
        del self.objective_states[self.n_finished :]
        del self.trees[self.n_finished * self.objective.n_outputs :]
        if state := self.objective_states[-1] if self.objective_states else self.first_objective_state:
            self.objective.restore(state)

    def restore_objective(self, iteration: int) -> None:
        """Restore the state of the objective after a round, or before the first round for −1."""
        if self.objective_states:
            self.objective.restore([self.first_objective_state, *self.objective_states][iteration + 1])


def of_output(array: Floats, output: int) -> Floats:
    """Return a view of the scores, gradients or hessians of one output."""
    view: Floats = array if array.ndim == 1 else array[output]
    return view
