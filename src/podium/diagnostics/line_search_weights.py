"""The weights that a line search gives the trees ([W] fig. 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from podium.core.array_types import Floats, Ints
from podium.core.plotting import draw
from podium.diagnostics.watching import ByIteration, TrainingObserver, TrainingRound
from podium.errors import DataError


@dataclass(frozen=True, eq=False)
class LineSearchWeights(ByIteration):
    """α of each tree.

    Attributes:
        iterations: that were looked at.
        weights: α, the exact best weight of the tree by the measure.

    Example:
        >>> import podium
        >>> from podium.diagnostics import WatchLineSearch
        >>> watch = WatchLineSearch()
        >>> model = podium.LambdaMART(3, 4, step="line-search")
        >>> watch.result(model.fit(podium.artificial(20, features=4), observers=[watch]).history_).weights.shape
        (3,)

    """

    weights: Floats

    def columns(self) -> dict[str, Floats]:
        """The weights."""
        return {"α": self.weights}

    def plot(self) -> Any:
        """The weights by iteration."""
        return draw("line_search", self)


class WatchLineSearch(TrainingObserver):
    """Notes the weight α of each tree, as the line search found it ([W] fig. 4). In `history_`: `alpha`.

    Small weights say that a tree gains little. Without a line search every weight is 1.

    Args:
        every: look at every so-manieth round; see `TrainingObserver`.

    Example:
        >>> import podium
        >>> from podium.diagnostics import WatchLineSearch
        >>> model = podium.LambdaMART(2, 4).fit(podium.artificial(20, features=4), observers=[WatchLineSearch()])
        >>> model.history_
        {'alpha': [1.0, 1.0]}

    """

    def __init__(self, *, every: int | None = None) -> None:
        super().__init__(every)

    def _begin(self, round_: TrainingRound) -> None:
        if len(getattr(round_, "trees", ())) != 1:
            raise DataError("WatchLineSearch is for models with one tree in each round: LambdaMART, RankNetTrees, MART")

    def _look(self, round_: TrainingRound) -> dict[str, float]:
        weights: tuple[float, ...] = round_.weights  # type: ignore[attr-defined]
        return {"alpha": float(weights[0])}

    def _is_mine(self, name: str) -> bool:
        return name == "alpha"

    def _of_columns(self, iterations: Ints, columns: dict[str, Floats]) -> LineSearchWeights:
        return LineSearchWeights(iterations, columns["alpha"])
