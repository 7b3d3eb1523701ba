"""Steps: what a leaf adds to the scores of its documents. `line_search.py` has the step that follows a tree."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from podium.core import hyperparameters as h
from podium.core.array_types import Floats
from podium.core.parameters import settings
from podium.core.team import Team
from podium.data import RankingData
from podium.errors import DataError
from podium.objectives import Objective
from podium.objectives.base import query_weights_of
from podium.trees import GrownTree
from podium.trees.layout import LeafRule
from podium.trees.quantization import BoundedGradients

if TYPE_CHECKING:
    from podium.boosting.line_search import BoundLineSearch

MAX_UNITS = 1000.0  # of an objective's scores: e^1000 is beyond floating point, so no pair needs to go further


class Step(ABC):
    """What a leaf adds to the scores of its documents.

    Attributes:
        uses_hessians: whether w plays a part; where it does not, splits are those of least squares.

    Example:
        >>> import numpy as np, podium
        >>> from podium.boosting import Step
        >>> class Sign(Step):
        ...     def leaf_values(self, grown, gradients, team):
        ...         return np.sign(grown.sums(gradients, team)[0])
        >>> model = podium.LambdaMART(1, step=Sign(), learning_rate=0.5).fit(podium.artificial(20, features=4))
        >>> np.unique(np.abs(model.predict(podium.artificial(20, features=4)))).tolist()
        [0.5]

    """

    uses_hessians: ClassVar[bool] = True

    def check(self, objective: Objective) -> None:  # noqa: B027, most steps take all
        """Refuse an objective that this step cannot take."""

    def bind(self, objective: Objective) -> Step:
        """The step that gives leaf values for an objective; mostly itself."""
        return self

    def bind_search(
        self, objective: Objective, train: RankingData, valid: Mapping[str, RankingData], n_threads: int | None
    ) -> BoundLineSearch | None:
        """The line search that follows each tree; mostly none."""
        return None

    def prepare(self, data: RankingData, gradients: Floats, hessians: Floats) -> None:  # noqa: B027
        """Change gradients and hessians, in place, before trees are grown on them; nothing by default."""

    def leaf_rule(self, learning_rate: float) -> LeafRule | None:
        """What `leaf_values` and `scale` come to, where growth itself can do it; None where it cannot."""
        return None

    @abstractmethod
    def leaf_values(self, grown: GrownTree, gradients: BoundedGradients, team: Team) -> Floats:
        """A value for each leaf, before monotone constraints, limits and the learning rate.

        Args:
            grown: the tree with the rows of its leaves.
            gradients: λ and w of all rows, as `prepare` left them.
            team: threads.

        """

    def scale(self, values: Floats, learning_rate: float) -> Floats:
        """Leaf values times the learning rate, and within the limit of the step if it has one."""
        return learning_rate * values


@settings
class Newton(Step):
    """γ = Σλ / (Σw + l2) over the leaf's documents, 0 where the hessian is 0 ([B] §7, eq. 20 of [D]).

    Where documents stand in the wrong order by much, w vanishes and λ does not: γ needs the limit `max_delta_step`.

    Examples:
        >>> import podium
        >>> from podium.boosting import Newton
        >>> model = podium.LambdaMART(2, step=Newton(l2=1.0, max_delta_step=2.0))
        >>> model.fit(podium.artificial(20, features=4)).n_trees_
        2

    """

    l2: float = h.L2()
    max_delta_step: float | None = h.MAX_DELTA_STEP()

    def bind(self, objective: Objective) -> Step:
        """With the limit that this objective needs."""
        return replace(self, max_delta_step=max_delta_step_for(objective, self.max_delta_step))

    def check(self, objective: Objective) -> None:
        """The hessian must be positive."""
        if not objective.has_hessian:
            raise DataError(
                f"Newton's step divides by the hessian, but {objective.no_hessian_because}: use the step 'gradient'"
            )

    def leaf_rule(self, learning_rate: float) -> LeafRule | None:
        """The same values."""
        return LeafRule(float(self.l2), self._limit, float(learning_rate)) if type(self) is Newton else None

    def leaf_values(self, grown: GrownTree, gradients: BoundedGradients, team: Team) -> Floats:
        """Exact sums in fixed point: their order does not matter."""
        gradient_sums, hessian_sums = grown.sums(gradients, team)
        divisor = hessian_sums + self.l2
        return np.divide(gradient_sums, divisor, out=np.zeros(len(divisor)), where=divisor > 0)

    def scale(self, values: Floats, learning_rate: float) -> Floats:
        """Within the limit, which leaves the order of leaf values as monotone constraints have it."""
        return learning_rate * np.minimum(np.maximum(values, -self._limit), self._limit)

    @property
    def _limit(self) -> float:
        return math.inf if self.max_delta_step is None else float(self.max_delta_step)


@dataclass(frozen=True)
class Gradient(Step):
    """The mean of λ over the leaf's documents, for objectives without a hessian to divide by ([S] §5).

    Args:
        normalize: first divide the λ of each query by their root mean square (where Σλ = 0 that is [S]'s standard
            deviation), so that queries count by their weights alone; λ that are all 0 stay 0.

    Examples:
        >>> import podium
        >>> from podium.boosting import Gradient
        >>> model = podium.LambdaMART(2, objective="local(ndcg@3)", step=Gradient(normalize=False))
        >>> model.fit(podium.artificial(20, features=4)).n_trees_
        2

    """

    normalize: bool = True
    uses_hessians: ClassVar[bool] = False

    def prepare(self, data: RankingData, gradients: Floats, hessians: Floats) -> None:
        """Gradients normalised; every document counts 1."""
        hessians[:] = 1.0
        if not self.normalize:
            return
        order, starts = data.canonical_order, data.offsets[:-1][data.query_sizes > 0]
        sizes = data.query_sizes[data.query_sizes > 0]
        weights = query_weights_of(data)[data.query_sizes > 0]
        for output in gradients.reshape(-1, gradients.shape[-1]):
            grouped = output[order]
            size = np.sqrt(np.add.reduceat(grouped * grouped, starts) / sizes)
            factors = np.repeat(np.where(size > 0, weights / np.where(size > 0, size, 1.0), 0.0), sizes)
            output[order] = grouped * factors

    def leaf_values(self, grown: GrownTree, gradients: BoundedGradients, team: Team) -> Floats:
        """Exact sums over counts."""
        values: Floats = grown.sums(gradients, team)[0] / np.maximum(grown.ends - grown.starts, 1)
        return values


def max_delta_step_for(objective: Objective, value: float | None) -> float:
    """The limit that was asked for, or 1000, in units of the objective's scores."""
    return MAX_UNITS * objective.score_unit if value is None else float(value)
