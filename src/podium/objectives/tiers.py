"""Several label sources in order of trust."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from podium.core.array_types import Float32s
from podium.data import RankingData
from podium.errors import DataError
from podium.objectives.base import BoundObjective, Objective, labels_of
from podium.objectives.pair_terms import PairFilter, PairTerm
from podium.objectives.registry import register
from podium.objectives.weighted_sum import BoundSum, weights_of


@register
@dataclass(frozen=True, init=False)
class Tiers(Objective):
    """Several label sources in order of trust ([S] §3–4): λ = Σ_k w_k λ^(k), the hessian alike.

    A pair counts in tier k if its documents have equal labels in all tiers before and different ones here, and, where
    the tier says so, neither label is 0. Human labels decide first, clicks among documents that they leave equal. A
    document that a source has no label for (NaN) keeps its rank and takes no part in that source's pairs. The source
    leaves it equal to the other documents without a label, so that the tiers that know them decide.

    Args:
        tiers: pair terms, the most trusted first, such as `Lambda("ndcg"), Lambda("cndcg")`.
        weights: of each tier, with the sum 1; [S] swept .01 to .5 for the clicks.
        nonzero: for each tier whether labels of 0 are left out; by default in all but the first.

    Example:
        >>> from podium.objectives import Lambda, Tiers
        >>> Tiers(Lambda("ndcg"), Lambda("cndcg"), weights=(0.8, 0.2)).nonzero
        (False, True)

    """

    tiers: tuple[PairTerm, ...]
    weights: tuple[float, ...]
    nonzero: tuple[bool, ...]
    works_in_parts = True

    def __init__(
        self, *tiers: PairTerm, weights: Sequence[float] | None = None, nonzero: Sequence[bool] | None = None
    ) -> None:
        if not tiers or not all(isinstance(tier, PairTerm) for tier in tiers):
            raise DataError("Tiers takes pair terms: Lambda, Local, Pairwise or LambdaLoss")
        chosen = weights_of("tiers", weights, len(tiers))
        leaves_out = tuple(nonzero) if nonzero is not None else tuple(k > 0 for k in range(len(tiers)))
        if len(leaves_out) != len(tiers):
            raise DataError(f"nonzero must have an entry for each of the {len(tiers)} tiers, but has {len(leaves_out)}")
        object.__setattr__(self, "tiers", tuple(tiers))
        object.__setattr__(self, "weights", chosen)
        object.__setattr__(self, "nonzero", leaves_out)

    @property
    def has_hessian(self) -> bool:  # type: ignore[override]
        """Whether every tier is."""
        return all(tier.has_hessian for tier in self.tiers)

    @property
    def score_unit(self) -> float:  # type: ignore[override]
        """The largest of the tiers."""
        return max(tier.score_unit for tier in self.tiers)

    @property
    def no_hessian_because(self) -> str:  # type: ignore[override]
        """Why not."""
        return next(tier.no_hessian_because for tier in self.tiers if not tier.has_hessian)

    def bind(self, data: RankingData) -> BoundObjective:
        """On these documents."""
        bound, groups = [], None
        for tier, nonzero in zip(self.tiers, self.nonzero, strict=True):
            bound.append(tier.bind_among(data, PairFilter(groups, nonzero)))
            groups = _refined(groups, labels_of(data, tier.labels, tier))
        return BoundSum(bound, lambda _: self.weights, changes=False)


def _refined(groups: Float32s | None, labels: Float32s) -> Float32s:
    """Return numbers for the distinct pairs of group and label, where no label is one as well; exact below 2^24."""
    levels = np.unique(labels, return_inverse=True)[1]
    pairs = levels if groups is None else np.column_stack([groups, levels])
    numbers = np.unique(pairs, axis=0, return_inverse=True)[1].ravel()
    if len(numbers) and numbers.max() >= 1 << 24:
        raise DataError("there are more than 2^24 different combinations of labels")
    return np.asarray(numbers, np.float32)
