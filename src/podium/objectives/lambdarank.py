"""LambdaRank's and LambdaMART's objective."""

from __future__ import annotations

from dataclasses import dataclass

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
        measure: any measure with swap deltas, by value or name. Its cutoff serves evaluation and stopping; λ looks
            at the whole list ([S] §3: training on NDCG@3 starves it of pairs) unless `truncation` says otherwise.
            Precision and recall, which are nothing without their cutoff, keep it.
        truncation: the cutoff of the measure whose swaps count in λ.
        sigma: σ, the steepness of the sigmoid.
        normalize: scale λ as LightGBM does, see `PairTerm`.

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
    normalize: bool = False

    @property
    def link(self) -> Link:  # type: ignore[override]  # noqa: D102
        return CrossEntropy(self.sigma)

    def trained_measure(self) -> Measure:  # noqa: D102
        return measure_in_training(self._measure, self.truncation)
