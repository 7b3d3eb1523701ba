"""Pair terms that weight pairs by a measure: λ of LambdaRank and LambdaMART, the local λ, LambdaLoss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from podium.core.array_types import Ints
from podium.core.validation import require_number, require_whole
from podium.errors import DataError
from podium.measures import NDCG, LookupTables, Measure
from podium.measures.families import LAMBDALOSS
from podium.objectives.base import register
from podium.objectives.links import CrossEntropy, Link, LocalSigmoid
from podium.objectives.pair_terms import MeasuredTerm, measure_in_training


@register
@dataclass(frozen=True)
class Lambda(MeasuredTerm):
    """λ of LambdaRank and LambdaMART for a measure Z ([B] §4, §7): |ΔZ| times RankNet's cross-entropy.

    λ_ij = σ |ΔZ_ij| ρ_ij, w_ij = σ² |ΔZ_ij| ρ_ij (1 − ρ_ij), where ρ_ij = 1 / (1 + e^{σ(s_i − s_j)}), and ΔZ_ij is the
    change of the measure when i and j swap ranks and all others stay.

    Args:
        measure: any measure with swap deltas, by value or name. With a cutoff, only swaps that change the measure at
            that cutoff count, and NDCG@3, for example, leaves few pairs ([S] §3). So estimators ignore the cutoff of
            their `measure` and train on the whole list.
        truncation: the cutoff, if the measure has none.
        sigma: σ, the steepness of the sigmoid.
        normalize: whether to scale λ as LightGBM does, see `PairTerm`; False for the papers' λ.
        pair_truncation: count only pairs with a document above this rank, each with |ΔZ| of the whole measure.
            LightGBM and XGBoost call this truncation, but they also divide by the best DCG up to this rank.

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
    pair_truncation: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require_whole("pair_truncation", self.pair_truncation, 1, optional=True)

    @property
    def link(self) -> Link:  # type: ignore[override]
        return CrossEntropy(self.sigma)

    def trained_measure(self) -> Measure:
        cutoff = self._measure.cutoff
        if None not in (cutoff, self.truncation) and cutoff != self.truncation:
            raise DataError(f"pass one cutoff, not both {self._measure} and truncation={self.truncation}")
        return measure_in_training(self._measure, cutoff if self.truncation is None else self.truncation)


@register
@dataclass(frozen=True)
class Local(MeasuredTerm):
    """λ^(S) of [S] §5: |ΔZ| e^x / (1 + e^x)², x = s_i − s_j + τ.

    Pairs with very different scores count little, whether they are right ("don't fix what isn't broken") or wrong
    ("give up on lost causes"). The hessian changes its sign, so use the gradient step.

    Args:
        measure: any measure with swap deltas; its cutoff applies, as in S@3 of [S].
        centre: τ.
        normalize: see `PairTerm`; False for the paper's λ.

    Example:
        >>> import podium
        >>> from podium.objectives import Local
        >>> model = podium.LambdaMART(2, 4, objective=Local("ndcg@3"), step="gradient")
        >>> model.fit(podium.artificial(20, features=4)).n_trees_
        2

    """

    measure: Measure | str = "ndcg"
    centre: float = 0.0
    normalize: bool = True

    @property
    def link(self) -> Link:  # type: ignore[override]
        return LocalSigmoid(self.centre)


@register
@dataclass(frozen=True)
class LambdaLoss(MeasuredTerm):
    """NDCG-Loss2++ of the LambdaLoss framework (Wang, Li, Golbandi, Bendersky and Najork, CIKM 2018).

    C = Σ_{i ▷ j} |G_i − G_j| (|d_i − d_j| + μ (d_{|i−j|} − d_{|i−j|+1})) log(1 + e^{−σ(s_i − s_j)}), where G are the
    gains over the best DCG and d the discounts. The first part is LambdaRank's weight; the second makes C a bound on
    NDCG's cost. (The paper's logarithm to base 2 differs by a constant factor.)

    Args:
        measure: NDCG of the whole list, with the gain and discount to use.
        mu: μ; 10 in the paper.
        sigma: σ.
        normalize: see `PairTerm`; False for the paper's cost.

    Example:
        >>> import podium
        >>> from podium.objectives import LambdaLoss
        >>> model = podium.LambdaMART(2, 4, objective=LambdaLoss(mu=5.0))
        >>> model.fit(podium.artificial(20, features=4)).n_trees_
        2

    """

    measure: Measure | str = "ndcg"
    mu: float = 10.0
    sigma: float = 1.0
    normalize: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.measure, NDCG):
            raise DataError(f"LambdaLoss is a bound on NDCG, not on {self.measure}")
        if self.measure.cutoff is not None:
            raise DataError(f"LambdaLoss is a bound on NDCG of the whole list: omit the cutoff of {self.measure}")
        require_number("mu", self.mu, least=0)

    @property
    def link(self) -> Link:  # type: ignore[override]
        return CrossEntropy(self.sigma)

    def lookup_tables(self, measure: Measure | None, labels: NDArray[Any], offsets: Ints) -> LookupTables:
        return super().lookup_tables(measure, labels, offsets)._replace(family=LAMBDALOSS, mu=float(self.mu))
