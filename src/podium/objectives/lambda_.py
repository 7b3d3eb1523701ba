"""LambdaRank's and LambdaMART's objective."""

from __future__ import annotations

from dataclasses import dataclass

from podium.errors import DataError
from podium.measures import Measure
from podium.objectives.base import register
from podium.objectives.links import CrossEntropy, Link
from podium.objectives.pair_terms import MeasuredTerm, measure_in_training


@register
@dataclass(frozen=True)
class Lambda(MeasuredTerm):
    """λ of LambdaRank and LambdaMART for a measure Z ([B] §4, §7): |ΔZ| times RankNet's cross-entropy.

    λ_ij = σ |ΔZ_ij| / (1 + e^{σ(s_i − s_j)}), w_ij = σ² |ΔZ_ij| ρ (1 − ρ); ΔZ is the change of the measure when the two
    swap ranks.

    Args:
        measure: any measure with swap deltas, by value or name. With a cutoff, only swaps that change the measure at
            that cutoff count; training on NDCG@3 leaves few pairs ([S] §3). Estimators therefore train on the whole
            list, whatever the cutoff of their `measure`.
        truncation: another way to write the cutoff.
        sigma: σ, the steepness of the sigmoid.
        normalize: scale λ as LightGBM does, see `PairTerm`; False for the papers' λ.

    Example:
        >>> import numpy as np, podium
        >>> from podium.objectives import Lambda
        >>> data = podium.artificial(20, features=4)
        >>> gradients, hessians = Lambda("ndcg").bind(data).gradients(np.zeros(len(data)))
        >>> gradients.shape == (len(data),), bool(abs(gradients.sum()) < 1e-3)
        (True, True)

    """

    measure: Measure | str = "ndcg"
    truncation: int | None = None
    sigma: float = 1.0
    normalize: bool = True

    @property
    def link(self) -> Link:  # type: ignore[override]  # noqa: D102
        return CrossEntropy(self.sigma)

    def trained_measure(self) -> Measure:  # noqa: D102
        cutoff = self._measure.cutoff
        if None not in (cutoff, self.truncation) and cutoff != self.truncation:
            raise DataError(f"give one cutoff, not both {self._measure} and truncation={self.truncation}")
        return measure_in_training(self._measure, cutoff if self.truncation is None else self.truncation)
