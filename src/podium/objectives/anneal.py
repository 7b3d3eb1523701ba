"""From one objective to another in the course of training."""

from __future__ import annotations

from dataclasses import dataclass, field

from podium.data import RankingData
from podium.errors import DataError
from podium.objectives.base import BoundObjective, Objective, require_one_output
from podium.objectives.registry import register
from podium.objectives.schedules import LinearGrowth, Schedule, weight_at
from podium.objectives.weighted_sum import BoundSum


@register
@dataclass(frozen=True)
class Anneal(Objective):
    """From one objective to another: λ_m = (1 − w_m) λ^(from) + w_m λ^(to), the hessian alike ([S] §5).

    Args:
        before: the objective of the first rounds, such as `Lambda("ndcg")`.
        after: the one it turns into, such as `Local("ndcg@3")`, or `Lambda("ndcg", truncation=3)`.
        schedule: w by iteration: `LinearGrowth`, `ExponentialGrowth`, `ExponentialShare`, `Constant`, or any function
            of the iteration. What leaves [0, 1] is kept at its ends.

    Example:
        >>> import podium
        >>> from podium.objectives import Anneal, Lambda, LinearGrowth
        >>> change = Anneal(Lambda("ndcg"), Lambda("err"), LinearGrowth(0.1, 0.01))
        >>> podium.LambdaMART(2, 4, objective=change).fit(podium.artificial(20, features=4)).n_trees_
        2

    """

    before: Objective
    after: Objective
    schedule: Schedule = field(default_factory=LinearGrowth)
    works_in_parts = True

    def __post_init__(self) -> None:
        if not isinstance(self.before, Objective) or not isinstance(self.after, Objective):
            raise DataError("Anneal takes two objectives and a schedule")
        weight_at(self.schedule, 0)

    @property
    def has_hessian(self) -> bool:  # type: ignore[override]
        """Whether both are."""
        return self.before.has_hessian and self.after.has_hessian

    @property
    def score_unit(self) -> float:  # type: ignore[override]
        """The larger of the two."""
        return max(self.before.score_unit, self.after.score_unit)

    @property
    def no_hessian_because(self) -> str:  # type: ignore[override]
        """Why not."""
        return self.after.no_hessian_because if self.before.has_hessian else self.before.no_hessian_because

    def bind(self, data: RankingData) -> BoundObjective:
        """On these documents."""

        def weights(iteration: int) -> tuple[float, float]:
            weight = weight_at(self.schedule, iteration)
            return 1.0 - weight, weight

        parts = [self.before.bind(data), self.after.bind(data)]
        for part in parts:
            require_one_output(part, "Anneal")
        return BoundSum(parts, weights, changes=True)
