"""Steps: from a grown tree to the values of its leaves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from podium.data import RankingData
from podium.errors import DataError, require_number
from podium.objectives import Objective
from podium.objectives.objective import query_weights_of
from podium.threads import Team
from podium.trees.growing import GrownTree

Floats = NDArray[np.float64]


class Step(ABC):
    """What a leaf adds to the scores of its documents.

    Attributes:
        uses_curvature: whether w plays a part; where it does not, splits are those of least squares.

    """

    uses_curvature: ClassVar[bool] = True

    def check(self, objective: Objective) -> None:  # noqa: B027, most steps take all
        """Refuse an objective that this step cannot take."""

    def prepare(self, data: RankingData, lambdas: Floats, curvatures: Floats) -> None:  # noqa: B027
        """Change λ and w before the tree is grown on them; nothing by default."""

    @abstractmethod
    def leaf_values(self, grown: GrownTree, team: Team) -> Floats:
        """A value for each leaf, before the learning rate."""


@dataclass(frozen=True)
class Newton(Step):
    """γ = Σλ / (Σw + l2) over the leaf's documents, 0 where there is no curvature ([B] §7, eq. 20 of [D]).

    Args:
        l2: holds small leaves back.

    """

    l2: float = 0.0

    def __post_init__(self) -> None:
        require_number("l2", self.l2, least=0)

    def check(self, objective: Objective) -> None:
        """Curvature must be positive."""
        if not objective.curved:
            raise DataError(
                f"Newton's step divides by the curvature, but {objective.flat_because}: use step='gradient'"
            )

    def leaf_values(self, grown: GrownTree, team: Team) -> Floats:
        """Exact sums in fixed point: their order does not matter."""
        pushes, bends = grown.sums(team)
        divisor = bends + self.l2
        return np.where(divisor > 0, pushes / np.where(divisor > 0, divisor, 1.0), 0.0)


@dataclass(frozen=True)
class Gradient(Step):
    """The mean of λ over the leaf's documents, for objectives without a curvature to divide by ([S] §5).

    Args:
        normalize: first divide the λ of each query by their root mean square (where Σλ = 0 that is [S]'s standard
            deviation), so that queries count by their weights alone; λ that are all 0 stay 0.

    """

    normalize: bool = True
    uses_curvature: ClassVar[bool] = False

    def prepare(self, data: RankingData, lambdas: Floats, curvatures: Floats) -> None:
        """λ normalised; every document counts 1."""
        curvatures[:] = 1.0
        if not self.normalize:
            return
        order, starts = data.canonical_order, data.offsets[:-1][data.query_sizes > 0]
        sizes = data.query_sizes[data.query_sizes > 0]
        weights = query_weights_of(data)[data.query_sizes > 0]
        for output in lambdas.reshape(-1, lambdas.shape[-1]):
            mine = output[order]
            size = np.sqrt(np.add.reduceat(mine * mine, starts) / sizes)
            by = np.repeat(np.where(size > 0, weights / np.where(size > 0, size, 1.0), 0.0), sizes)
            output[order] = mine * by

    def leaf_values(self, grown: GrownTree, team: Team) -> Floats:
        """Exact sums over counts."""
        values: Floats = grown.sums(team)[0] / np.maximum(grown.ends - grown.starts, 1)
        return values


def as_step(step: Step | str, l2: float) -> Step:
    """A step by value or by name."""
    named = {"newton": Newton(l2), "gradient": Gradient()}
    if isinstance(step, Step):
        return step
    if not isinstance(step, str) or step not in named:
        raise DataError(f"step must be {' or '.join(map(repr, named))}, or a Step, not {step!r}")
    return named[step]
