"""RankBoost: thresholds on features as weak rankers, weighted by boosting on pairs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from podium.boosting.steps import Step
from podium.core.array_types import Floats
from podium.core.team import Team
from podium.errors import DataError
from podium.objectives import Exponential, Objective, Pairwise
from podium.trees import GrownTree, GrowthParameters
from podium.trees.quantization import BoundedGradients

SMOOTHING = 1e-6  # without it, a weak ranker with no wrong pair has an infinite weight (Schapire and Singer 1999, §4.2)
# A split raises G_l²/(H_l + l2) + G_r²/(H_r + l2). All gradients sum to 0, so G_r = −G_l, and with an l2 that is far
# larger than H the best split has the largest |G_r| = |r| Z, and is RankBoost's weak ranker.
STUMPS = GrowthParameters(n_leaves=2, min_documents_in_leaf=1, l2=2.0**40)


@dataclass(frozen=True)
class RankBoostStep(Step):
    """RankBoost's weight α = ½ log((1 + r) / (1 − r)) of a weak ranker h(x) = 1[x_k > θ], as leaf values α and 0.

    r = Σ D(i, j) (h(i) − h(j)) over pairs i ▷ j, where D(i, j) = e^{−(s_i − s_j)} / Z sums to 1 (Freund, Iyer, Schapire
    and Singer 2003, §3.2, "third method"). For `Pairwise(Exponential())` both sums follow from λ and w:
    Σ_i λ_i h(i) = r Z, and w has each pair's e^{−(s_i − s_j)} at both documents, so Σw = 2 Z. Trees must have two
    leaves and be grown on all documents.

    Example:
        >>> import podium
        >>> from podium.boosting import Boosting, RankBoostStep, Sampling
        >>> from podium.boosting.rankboost import STUMPS
        >>> settings = Boosting(
        ...     objective=podium.objectives.parse("pairwise(exponential)"), step=RankBoostStep(), growth=STUMPS,
        ...     sampling=Sampling(split_fraction=1.0), n_trees=3, learning_rate=1.0,
        ... )
        >>> settings.fit(podium.artificial(20, features=4)).ensemble.n_trees
        3

    """

    uses_hessians: ClassVar[bool] = True

    def check(self, objective: Objective) -> None:
        """Raise unless the pairs have RankBoost's cost."""
        is_right = isinstance(objective, Pairwise) and objective.link == Exponential() and not objective.normalize
        if not is_right:
            raise DataError(f"RankBoost's step is for the objective pairwise(exponential), not {objective}")

    def leaf_values(self, grown: GrownTree, gradients: BoundedGradients, team: Team) -> Floats:
        """Return 0 for the left leaf and α for the right one."""
        sums, hessian_sums = grown.sums(gradients, team)
        if len(sums) != 2:
            return np.zeros(len(sums))
        r = min(max(float(sums[1]) / (math.fsum(hessian_sums) / 2), -1.0), 1.0)  # undo rounding
        return np.array([0.0, 0.5 * math.log((1.0 + r + SMOOTHING) / (1.0 - r + SMOOTHING))])
