"""Sums of objectives: graded by trust, or changing from round to round."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from podium.core.validation import numbers_of
from podium.data import RankingData
from podium.errors import DataError
from podium.objectives.base import BoundObjective, Objective, labels_of, require_one_output
from podium.objectives.pairs import PairFilter, PairTerm
from podium.objectives.schedules import LinearGrowth, Schedule, weight_at

Floats = NDArray[np.float64]


@dataclass(frozen=True, init=False)
class Tiers(Objective):
    """Several label sources in order of trust ([S] §3–4): λ = Σ_k w_k λ^(k), the curvature alike.

    A pair counts in tier k if its documents have equal labels in all tiers before and different ones here, and, where
    the tier says so, neither label is 0. Human labels decide first, clicks among documents that they leave equal. A
    document that a source has no label for (NaN) keeps its rank, takes no part in that source's pairs, and is equal to
    nothing.

    Args:
        tiers: pair terms, the most trusted first, such as `Lambda("ndcg"), Lambda("cndcg")`.
        weights: of each tier, with the sum 1; [S] swept .01 to .5 for the clicks.
        nonzero: for each tier whether labels of 0 are left out; by default in all but the first.

    """

    tiers: tuple[PairTerm, ...]
    weights: tuple[float, ...]
    nonzero: tuple[bool, ...]

    def __init__(
        self, *tiers: PairTerm, weights: Sequence[float] | None = None, nonzero: Sequence[bool] | None = None
    ) -> None:
        if not tiers or not all(isinstance(tier, PairTerm) for tier in tiers):
            raise DataError("Tiers takes pair terms: Lambda, Local, Pairwise or LambdaLoss")
        chosen = numbers_of("weights", weights) if weights is not None else (1 / len(tiers),) * len(tiers)
        leaves_out = tuple(nonzero) if nonzero is not None else tuple(k > 0 for k in range(len(tiers)))
        for name, given in (("weights", chosen), ("nonzero", leaves_out)):
            if len(given) != len(tiers):
                raise DataError(f"{name} must have an entry for each of the {len(tiers)} tiers, but has {len(given)}")
        if min(chosen) < 0 or not math.isclose(sum(chosen), 1.0, abs_tol=1e-9):
            raise DataError(f"the weights of tiers must not be negative and sum to 1; these are {chosen}")
        object.__setattr__(self, "tiers", tuple(tiers))
        object.__setattr__(self, "weights", chosen)
        object.__setattr__(self, "nonzero", leaves_out)

    @property
    def curved(self) -> bool:  # type: ignore[override]
        """Whether every tier is."""
        return all(tier.curved for tier in self.tiers)

    @property
    def score_unit(self) -> float:  # type: ignore[override]
        """The largest of the tiers."""
        return max(tier.score_unit for tier in self.tiers)

    @property
    def flat_because(self) -> str:  # type: ignore[override]
        """Why not."""
        return next(tier.flat_because for tier in self.tiers if not tier.curved)

    def bind(self, data: RankingData) -> BoundObjective:
        """On these documents."""
        bound, groups = [], None
        for tier, nonzero in zip(self.tiers, self.nonzero, strict=True):
            bound.append(tier.bind_among(data, PairFilter(groups, nonzero)))
            groups = _refined(groups, labels_of(data, tier.labels, tier))
        return _BoundSum(bound, lambda _: self.weights, changes=False)


def _refined(groups: NDArray[np.float32] | None, labels: NDArray[np.float32]) -> NDArray[np.float32]:
    """Numbers for the distinct pairs of group and label; NaN where either is. Exact below 2^24 of them."""
    if groups is None:
        groups = np.zeros(len(labels), np.float32)
    known = ~(np.isnan(groups) | np.isnan(labels))
    _, numbers = np.unique(np.column_stack([groups[known], labels[known]]), axis=0, return_inverse=True)
    if len(numbers) and numbers.max() >= 1 << 24:
        raise DataError("there are more than 2^24 different combinations of labels")
    found = np.full(len(labels), np.nan, np.float32)
    found[known] = numbers.ravel()
    return found


@dataclass(frozen=True)
class Anneal(Objective):
    """From one objective to another: λ_m = (1 − w_m) λ^(from) + w_m λ^(to), the curvature alike ([S] §5).

    Args:
        before: the objective of the first rounds, such as `Lambda("ndcg")`.
        after: the one it turns into, such as `Local("ndcg@3")`, or `Lambda("ndcg", truncation=3)`.
        schedule: w by iteration: `LinearGrowth`, `ExponentialGrowth`, `ExponentialShare`, `Constant`, or any function
            of the iteration. What leaves [0, 1] is kept at its ends.

    """

    before: Objective
    after: Objective
    schedule: Schedule = field(default_factory=LinearGrowth)

    def __post_init__(self) -> None:
        if not isinstance(self.before, Objective) or not isinstance(self.after, Objective):
            raise DataError("Anneal takes two objectives and a schedule")
        weight_at(self.schedule, 0)

    @property
    def curved(self) -> bool:  # type: ignore[override]
        """Whether both are."""
        return self.before.curved and self.after.curved

    @property
    def score_unit(self) -> float:  # type: ignore[override]
        """The larger of the two."""
        return max(self.before.score_unit, self.after.score_unit)

    @property
    def flat_because(self) -> str:  # type: ignore[override]
        """Why not."""
        return self.after.flat_because if self.before.curved else self.before.flat_because

    def bind(self, data: RankingData) -> BoundObjective:
        """On these documents."""

        def weights(iteration: int) -> tuple[float, float]:
            weight = weight_at(self.schedule, iteration)
            return 1.0 - weight, weight

        parts = [self.before.bind(data), self.after.bind(data)]
        for part in parts:
            require_one_output(part, self)
        return _BoundSum(parts, weights, changes=True)


class _BoundSum(BoundObjective):
    """A weighted sum; parts that weigh nothing in a round are not computed."""

    def __init__(
        self, parts: Sequence[BoundObjective], weights: Callable[[int], Sequence[float]], changes: bool
    ) -> None:
        self.parts, self.weights, self.changes = parts, weights, changes
        first = weights(0)
        self.start = math.fsum(weight * part.start for weight, part in zip(first, parts, strict=True))

    def gradients(self, scores: Floats, iteration: int = 0) -> tuple[Floats, Floats]:
        lambdas, curvatures = np.zeros(len(scores)), np.zeros(len(scores))
        self.fill(scores, iteration, lambdas, curvatures)
        return lambdas, curvatures

    def fill(self, scores: Floats, iteration: int, lambdas: Floats, curvatures: Floats) -> None:
        lambdas[:], curvatures[:] = 0.0, 0.0
        mine = np.empty(len(scores)), np.empty(len(scores))
        for part, weight in zip(self.parts, self.weights(iteration), strict=True):
            if weight > 0:
                part.team = self.team
                part.fill(scores, iteration, *mine)
                lambdas += weight * mine[0]
                curvatures += weight * mine[1]

    def state(self) -> dict[str, list[float]]:
        return {f"{k}/{name}": kept for k, part in enumerate(self.parts) for name, kept in part.state().items()}

    def restore(self, state: dict[str, list[float]]) -> None:
        for k, part in enumerate(self.parts):
            mine = f"{k}/"
            part.restore({name[len(mine) :]: kept for name, kept in state.items() if name.startswith(mine)})
