"""What functions and observers that look at λ have in common: the model's scores, and objectives on the data."""

from __future__ import annotations

from typing import Any

from podium.core.array_types import Floats
from podium.core.validation import require_whole
from podium.data import RankingData
from podium.errors import DataError
from podium.models.base import model_of
from podium.models.rankers import scores_of
from podium.objectives import BoundObjective, Objective, describe, parse
from podium.objectives.base import require_one_output


def scores_at(model: Any, data: RankingData, iteration: int | None) -> Floats:
    """The scores of the data by a model, or by its trees up to an iteration (as in `history_`: 0 is the first)."""
    if iteration is None:
        return scores_of(model, data)
    ranker = model_of(model)
    if not hasattr(ranker, "truncate"):
        raise DataError(
            f"iteration is for boosted trees, of which the first can be taken alone, not for {ranker!r:.60}"
        )
    require_whole("iteration", iteration + 1 if isinstance(iteration, int) else iteration, 0)
    if ranker is model:
        return scores_of(ranker.truncate(iteration + 1), data)
    return scores_of(model.predict(data, n_trees=iteration + 1), data)


def as_objective(objective: Objective | str, name: str = "objective") -> tuple[str, Objective]:
    """An objective given by value or text, with what to call it before people."""
    if isinstance(objective, str):
        return objective, parse(objective)
    if not isinstance(objective, Objective):
        raise DataError(f"{name} must be an objective or its text, such as 'lambda(ndcg)', not {objective!r}")
    try:
        return describe(objective), objective
    except DataError:  # a class that is not registered has no text
        return str(objective), objective


def bind_to_look(objective: Objective, data: RankingData, all_data: RankingData | None = None) -> BoundObjective:
    """An objective on some data, bound anew: what is asked of it changes nothing in training.

    Args:
        objective: what gives λ.
        data: the documents.
        all_data: what its measures are fixed on, where `data` is a part of it.

    """
    bound = (objective.measuring(data) if all_data is None else objective.fixed(all_data)).bind(data)
    require_one_output(bound, "a look at λ")
    if bound.state():
        raise DataError(
            f"{type(objective).__name__} learns while it trains, and so its λ at these scores are not known: give the "
            "objective inside it"
        )
    return bound
