"""What a training run gives: after each round to observers, and at its end."""

from __future__ import annotations

from dataclasses import dataclass

from podium.boosting.base_scores import BaseScores
from podium.core.array_types import Floats
from podium.data import RankingData
from podium.models import Ensemble
from podium.objectives import BoundObjective, Objective
from podium.trees import Tree


@dataclass(frozen=True)
class Round:
    """What observers get after each round: one tree, or one tree for each output of the objective.

    Attributes:
        iteration: from 0.
        trees: one for each output of the objective, with their final leaf values.
        scores: of the training documents, with these trees; a row for each output where there are several.
        gradients, hessians: λ and w that the trees were grown on, likewise.
        weights: of the trees, as a line search found them, 1 else.
        means: of each measure on each validation set, by `set/measure`.
        best_iteration: the best round so far, where there is validation data; −1 where the submodel alone is.
        data: the training documents.
        objective: what is trained on.
        document_scores: the one number for each training document that puts it in order: its score, or what the
            objective makes of several.

    A mapping from names to numbers that an observer returns stands in `history_` beside the means. An observer with an
    attribute `needs_arrays` that is False gets arrays that the next round writes over; for all others they are copied.

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
        """The tree of the first output; mostly there is only one."""
        return self.trees[0]


@dataclass(frozen=True)
class TrainingResult:
    """The result of a training run (`Boosting.fit`).

    Attributes:
        ensemble: the trees, cut after the best round; of several outputs in turn.
        history: what was measured after each round, and what observers returned.
        best_iteration: the best of them, where there was validation data; −1 where the submodel alone is.
        objective: as training left it, with what it learnt itself.
        base_scores: what training began with, if it began with a submodel.
        n_splits: of all trees that were grown and whose leaves differ; without any, all documents got the same score.
        interrupted: whether Ctrl-C ended it.

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
