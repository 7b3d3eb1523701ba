"""LambdaLoss: a bound of NDCG."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from podium.core.array_types import Ints
from podium.core.validation import require_number
from podium.errors import DataError
from podium.measures import NDCG, LookupTables, Measure
from podium.measures.families import LAMBDALOSS
from podium.objectives.base import register
from podium.objectives.links import CrossEntropy, Link
from podium.objectives.pair_terms import MeasuredTerm, measure_in_training


@register
@dataclass(frozen=True)
class LambdaLoss(MeasuredTerm):
    """NDCG-Loss2++ of the LambdaLoss framework (Wang, Li, Golbandi, Bendersky and Najork, CIKM 2018).

    C = Σ_{i ▷ j} |G_i − G_j| (|d_i − d_j| + μ (d_{|i−j|} − d_{|i−j|+1})) log(1 + e^{−σ(s_i − s_j)}), G the gains
    over the best DCG, d the discounts. The first part is LambdaRank's weight; the second makes C a bound of NDCG's
    cost. (The paper's logarithm is to base 2: a constant factor.)

    Args:
        measure: NDCG, with the gain and discount to use; the whole list counts.
        mu: μ; the paper's 10.
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
            raise DataError(f"LambdaLoss is a bound of NDCG, not of {self.measure}")
        if self.measure.cutoff is not None:
            raise DataError(f"LambdaLoss is a bound of NDCG of the whole list: leave out the cutoff of {self.measure}")
        require_number("mu", self.mu, least=0)

    @property
    def link(self) -> Link:  # type: ignore[override]  # noqa: D102
        return CrossEntropy(self.sigma)

    def trained_measure(self) -> Measure:  # noqa: D102
        return measure_in_training(self._measure, None)

    def lookup_tables(self, measure: Measure | None, labels: NDArray[Any], offsets: Ints) -> LookupTables:
        """Those of NDCG, with μ."""
        return super().lookup_tables(measure, labels, offsets)._replace(family=LAMBDALOSS, mu=float(self.mu))
