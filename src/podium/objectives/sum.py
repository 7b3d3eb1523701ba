"""Several objectives at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from podium.data import RankingData
from podium.errors import DataError
from podium.objectives.base import BoundObjective, Objective, require_one_output
from podium.objectives.registry import register
from podium.objectives.weighted_sum import BoundSum, weights_of


@register
@dataclass(frozen=True, init=False)
class Sum(Objective):
    """A weighted sum of objectives: λ = Σ_k w_k λ^(k), the hessian alike.

    One model then learns what each of them sees: λ of a measure the top of the lists, query regression (CatBoost's
    QueryRMSE) how labels differ at all. Objectives have units of their own: the hessian of query regression is 1 for
    each document, that of λ is some hundredth, so equal weights are mostly query regression. Label sources in order of
    trust are `Tiers`, which leave out pairs that a source before has decided.

    Args:
        parts: objectives, each with one score for a document.
        weights: of each, with the sum 1; equal ones by default.

    Example:
        >>> import podium
        >>> from podium.objectives import Lambda, QueryRegression, Sum
        >>> both = Sum(Lambda("ndcg", normalize=True), QueryRegression(), weights=(0.9, 0.1))
        >>> podium.LambdaMART(2, 4, objective=both).fit(podium.artificial(20, features=4)).n_trees_
        2

    """

    parts: tuple[Objective, ...]
    weights: tuple[float, ...]
    works_in_parts = True

    def __init__(self, *parts: Objective, weights: Sequence[float] | None = None) -> None:
        if not parts or not all(isinstance(part, Objective) for part in parts):
            raise DataError("Sum takes objectives, such as Sum(Lambda('ndcg'), QueryRegression())")
        object.__setattr__(self, "parts", tuple(parts))
        object.__setattr__(self, "weights", weights_of("parts", weights, len(parts)))

    @property
    def has_hessian(self) -> bool:  # type: ignore[override]
        """Whether every part is."""
        return all(part.has_hessian for part in self.parts)

    @property
    def score_unit(self) -> float:  # type: ignore[override]
        """The largest of the parts."""
        return max(part.score_unit for part in self.parts)

    @property
    def no_hessian_because(self) -> str:  # type: ignore[override]
        """Why not."""
        return next(part.no_hessian_because for part in self.parts if not part.has_hessian)

    def bind(self, data: RankingData) -> BoundObjective:
        """On these documents."""
        bound = [part.bind(data) for part in self.parts]
        for part in bound:
            require_one_output(part, "Sum")
        return BoundSum(bound, lambda _: self.weights, changes=any(part.changes for part in bound))
