"""ApproxNDCG: NDCG of ranks that are smooth functions of the scores."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.core.array_types import Floats, Ints
from podium.core.compiling import helper, kernel
from podium.core.validation import require_number
from podium.errors import DataError
from podium.measures import NDCG, Measure, as_measure
from podium.objectives.base import register
from podium.objectives.listwise import Lists, SmoothMeasure

PAIRS_WORTH_SHARING = 1 << 15  # computing fewer is faster than waking a thread


@register
@dataclass(frozen=True)
class ApproxNDCG(SmoothMeasure):
    """NDCG of approximate ranks, r_i = 1 + Σ_{j≠i} 1 / (1 + e^{σ(s_i − s_j)}) (Qin, Liu and Li 2010, eq. 10).

    λ is the slope of Σ_i g_i / log2(1 + r_i) over the ideal DCG (their eq. 17), which takes O(n²) for a list of n
    documents. With a large σ the ranks are nearly exact, and few pairs have a slope. The hessian changes its sign, so
    use the gradient step. A document's term counts d_i times, a query u_q times.

    Args:
        measure: NDCG of the whole list, by value or name; its gain is used.
        sigma: σ, whose unit is 1 over that of the scores; α in the paper.

    Example:
        >>> import numpy as np, podium
        >>> from podium.objectives import ApproxNDCG
        >>> data = podium.RankingData([[0.0], [1.0]], [0, 1], qid=["a", "a"])
        >>> ApproxNDCG(sigma=1.0).bind(data).gradients(np.zeros(2))[0].round(4).tolist()
        [-0.0826, 0.0826]
        >>> ApproxNDCG().values(data, np.array([0.0, 20.0])).round(4).tolist()
        [1.0]

    """

    measure: Measure | str = "ndcg"
    sigma: float = 1.0
    no_hessian_because = "the hessian of ApproxNDCG changes its sign"

    def __post_init__(self) -> None:
        object.__setattr__(self, "measure", as_measure(self.measure))
        measure = self.measure
        if not isinstance(measure, NDCG) or measure.cutoff is not None or measure.discount != "log2":
            raise DataError(f"ApproxNDCG takes ndcg of the whole list with the discount log2, not {measure}")
        require_number("sigma", self.sigma, above=0)

    @property
    def score_unit(self) -> float:  # type: ignore[override]
        """1/σ."""
        return 1.0 / self.sigma

    def costs(self, lists: Lists, scores: Floats, iteration: int) -> Floats:
        return 1.0 - self.slopes_and_values(lists, scores, iteration, lists.weights)[1]

    def slopes_and_values(self, lists: Lists, scores: Floats, iteration: int, weights: Floats) -> tuple[Floats, Floats]:
        offsets = np.append(lists.offsets, len(scores))
        shares = self.gain_shares(lists, offsets, weights)
        gradients, values = np.zeros(len(scores)), np.zeros(len(lists.sizes))

        def work(thread: int, n_threads: int) -> None:
            approximate_lists(thread, n_threads, offsets, scores, self.sigma, shares, gradients, values)

        lists.share_work(float((lists.sizes.astype(np.float64) ** 2).sum()) >= PAIRS_WORTH_SHARING, work)
        return gradients, values


@helper
def _chance(x: Any) -> Any:
    """Return 1 / (1 + e^x)."""
    return 1.0 / (1.0 + math.exp(min(x, 700.0)))


@kernel
def approximate_lists(
    thread: int, n_threads: int, offsets: Ints, scores: Floats, sigma: float, shares: Floats, gradients: Floats,
    values: Floats,
) -> None:  # fmt: skip
    """Compute Σ_i share_i / log2(1 + r_i) and its derivatives by the scores, for every n_threads-th list.

    Each j adds p = 1 / (1 + e^{σ(s_i − s_j)}) to r_i. The derivative of p is −σ p (1 − p) by s_i, and the negative of
    that by s_j.
    """
    longest = 0
    for q in range(len(values)):
        longest = max(longest, offsets[q + 1] - offsets[q])
    ranks, slopes = np.empty(longest), np.empty(longest)
    for q in range(thread, len(values), n_threads):
        start, n = offsets[q], offsets[q + 1] - offsets[q]
        ranks[:n] = 1.0
        for i in range(n):
            for j in range(i + 1, n):
                chance = _chance(sigma * (scores[start + i] - scores[start + j]))
                ranks[i] += chance
                ranks[j] += 1.0 - chance
        for i in range(n):
            log = math.log(1.0 + ranks[i])
            values[q] += shares[start + i] * math.log(2.0) / log
            slopes[i] = -shares[start + i] * math.log(2.0) / ((1.0 + ranks[i]) * log * log)
        for i in range(n):
            for j in range(i + 1, n):
                chance = _chance(sigma * (scores[start + i] - scores[start + j]))
                push = sigma * chance * (1.0 - chance) * (slopes[j] - slopes[i])
                gradients[start + i] += push
                gradients[start + j] -= push
