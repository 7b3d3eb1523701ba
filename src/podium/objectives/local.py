"""The local λ of [S], for pairs that are neither far right nor far wrong."""

from __future__ import annotations

from dataclasses import dataclass

from podium.measures import Measure
from podium.objectives.base import register
from podium.objectives.links import Link, LocalSigmoid
from podium.objectives.pair_terms import MeasuredTerm, measure_in_training


@register
@dataclass(frozen=True)
class Local(MeasuredTerm):
    """λ^(S) of [S] §5: |ΔZ| e^x / (1 + e^x)², x = s_i − s_j + τ.

    Pairs far apart in score count little, be they right ("don't fix what isn't broken") or wrong ("give up on lost
    causes"). The hessian changes its sign: use the gradient step.

    Args:
        measure: any measure with swap deltas; its cutoff counts, as [S]'s S@3 has it.
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
    def link(self) -> Link:  # type: ignore[override]  # noqa: D102
        return LocalSigmoid(self.centre)

    def trained_measure(self) -> Measure:  # noqa: D102
        return measure_in_training(self._measure, self._measure.cutoff)
