"""Smooth forms of measures, which have a gradient: ApproxNDCG and SoftRank."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Bools, Floats, Ints, UInt64s
from podium.core.compiling import helper, kernel
from podium.core.random import keyed_bits, random_bits, seed_of, to_unit
from podium.core.validation import require_number, require_whole
from podium.data import RankingData
from podium.errors import DataError
from podium.measures import NDCG, Measure, as_measure
from podium.measures.discounted import Discounted
from podium.objectives.base import register
from podium.objectives.links import wrong_chance
from podium.objectives.listwise import ListLoss, Lists

PAIRS_WORTH_SHARING = 1 << 15  # with fewer pairs, one thread is faster
CERTAIN_GAP = 6.0  # erfc(6)/2 = 1e-17 is the chance that noise changes the order of two documents this far apart
STEPS_WORTH_SHARING = 1 << 16  # with fewer multiplications, one thread is faster


class SmoothMeasure(ListLoss):
    """A smooth form Z of a measure that sums gain times discount: λ = ∂Z/∂s, and the hessian changes its sign."""

    measure: Measure | str
    has_hessian = False

    @property
    def _measure(self) -> Discounted:
        assert isinstance(self.measure, Discounted)
        return self.measure

    @property
    def labels(self) -> str:  # type: ignore[override]
        """The measure's label source."""
        return self._measure.labels

    def prepare(self, lists: Lists) -> None:
        self._measure.gains(lists.labels)

    @abstractmethod
    def slopes_and_values(self, lists: Lists, scores: Floats, iteration: int, weights: Floats) -> tuple[Floats, Floats]:
        """Return ∂Z/∂s of each document and the value Z of each list, with these weights of documents."""

    def of_lists(self, lists: Lists, scores: Floats, iteration: int) -> tuple[Floats, Floats]:
        return self.slopes_and_values(lists, scores, iteration, lists.weights)[0], np.zeros(len(scores))

    def values(self, data: RankingData, scores: NDArray[Any]) -> Floats:
        """Return the value of each query, without weights; 0 if no document has a gain."""
        lists, result = Lists(data, self.labels, self), np.zeros(data.n_queries)
        scores = np.asarray(scores, np.float64)[lists.rows]
        result[lists.queries] = self.slopes_and_values(lists, scores, 0, np.ones(len(scores)))[1]
        return result

    def gain_shares(self, lists: Lists, offsets: Ints, weights: Floats) -> Floats:
        """Return the weighted gain of each document, divided by the norm of its list; 0 if the norm is 0."""
        gains = self._measure.gains(lists.labels)
        norms = self._measure.norms(gains, offsets, lists.sizes)
        return np.asarray(weights * gains / np.where(norms > 0, norms, 1.0)[lists.list_of])


@register
@dataclass(frozen=True)
class ApproxNDCG(SmoothMeasure):
    """NDCG of approximate ranks, r_i = 1 + Σ_{j≠i} 1 / (1 + e^{σ(s_i − s_j)}) (Qin, Liu and Li 2010, eq. 10).

    λ = ∂Z/∂s of Z = Σ_i g_i / log2(1 + r_i), divided by the ideal DCG (their eq. 17), which takes O(n²) for a list of n
    documents. With a large σ the ranks are nearly exact, and few pairs have a slope. The hessian changes its sign, so
    use the gradient step. With weights, the term of a document counts d_i times, and a query u_q times.

    Args:
        measure: NDCG of the whole list, by value or name; its gain is used.
        sigma: σ, the steepness; α in the paper.

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
                chance = wrong_chance(sigma * (scores[start + i] - scores[start + j]))
                ranks[i] += chance
                ranks[j] += 1.0 - chance
        for i in range(n):
            log = math.log(1.0 + ranks[i])
            values[q] += shares[start + i] * math.log(2.0) / log
            slopes[i] = -shares[start + i] * math.log(2.0) / ((1.0 + ranks[i]) * log * log)
        for i in range(n):
            for j in range(i + 1, n):
                chance = wrong_chance(sigma * (scores[start + i] - scores[start + j]))
                push = sigma * chance * (1.0 - chance) * (slopes[j] - slopes[i])
                gradients[start + i] += push
                gradients[start + j] -= push


@register
@dataclass(frozen=True)
class SoftRank(SmoothMeasure):
    """Soft NDCG (Taylor, Guiver, Robertson and Minka, WSDM 2008): NDCG of scores with Gaussian noise.

    Each score is a normal variable with mean s and standard deviation σ. Document i beats j with the probability
    π_ij = Φ((s_i − s_j) / (√2 σ)). The rank of j is the number of documents that beat it, independently of each other,
    so p_j(r) is a Poisson-binomial distribution. SoftNDCG = (1/Z) Σ_j g_j Σ_r d(r) p_j(r) is maximized, so
    λ = ∂SoftNDCG/∂s. Without noise (σ → 0) it is NDCG. With weights, the term of a document counts d_j times, and a
    query u_q times.

    For lists of up to `exact_limit` documents λ are exact, by the recursion of p_j over the other documents, and the
    same recursion backwards for the slopes ∂/∂π_ij. That takes O(n³) for a list of n documents, O(n² k) with a cutoff
    k, so with a cutoff longer lists are exact too, up to n k = `exact_limit`². For other lists λ are estimated without
    bias in O(n²) by drawing the outcomes of all comparisons with j. The slope by π_ij is then d(r + 1) − d(r), where r
    is the number of *other* documents that beat j. Each round draws new pairs of opposite noise.

    The hessian changes its sign, so use the gradient step. σ is on the scale of the scores. If σ is much smaller than
    the differences of scores, few pairs have a slope. If it is much larger, all documents have nearly the same
    distribution of ranks. σ stays the same while the scores of a model grow.

    Args:
        measure: NDCG or another sum of gain times discount (`dcg`, `precision@k`, `rbp`, …), by value or name, with its
            cutoff and gains.
        sigma: σ, the standard deviation of the noise of a score.
        exact_limit: the maximum length of lists with exact λ; lists may be longer if there is a cutoff.
        samples: the number of draws for each document of a longer list; must be even.
        seed: the seed of the draws, which also depend on the content of the documents and the round.

    Example:
        >>> import numpy as np, podium
        >>> from podium.objectives import SoftRank
        >>> data = podium.RankingData([[0.0], [1.0]], [0, 1], qid=["a", "a"])
        >>> SoftRank().bind(data).gradients(np.zeros(2))[0].round(4).tolist()
        [-0.1041, 0.1041]
        >>> SoftRank().values(data, np.zeros(2)).round(4).tolist()  # first or second, with equal probability
        [0.8155]

    """

    measure: Measure | str = "ndcg"
    sigma: float = 1.0
    exact_limit: int = 500
    samples: int = 16
    seed: int = 0
    no_hessian_because = "the hessian of SoftRank changes its sign"

    def __post_init__(self) -> None:
        object.__setattr__(self, "measure", as_measure(self.measure))
        if not isinstance(self.measure, Discounted):
            raise DataError(
                f"SoftRank takes measures that sum gain times discount, such as ndcg or ndcg@10, not {self.measure}"
            )
        if self.measure.needs_cutoff and self.measure.cutoff is None:
            raise DataError(f"{self.measure} of the whole list is the same for every order: add a cutoff")
        require_number("sigma", self.sigma, above=0)
        require_whole("exact_limit", self.exact_limit, 0)
        require_whole("samples", self.samples, 2)
        if self.samples % 2:
            raise DataError(f"samples must be even, because they come in pairs, but is {self.samples}")
        require_whole("seed", self.seed, None)

    @property
    def score_unit(self) -> float:  # type: ignore[override]
        """σ."""
        return self.sigma

    def is_random(self, lists: Lists) -> bool:
        """Return whether a list is too long for exact λ."""
        return not self._is_exact(lists).all()

    def _is_exact(self, lists: Lists) -> Bools:
        depth = lists.sizes if self._measure.cutoff is None else np.minimum(lists.sizes, self._measure.cutoff)
        return np.asarray(lists.sizes * depth <= self.exact_limit**2)

    def costs(self, lists: Lists, scores: Floats, iteration: int) -> Floats:
        gains = lists.totals(self._measure.gains(lists.labels))
        return np.where(gains > 0, 1.0 - self.slopes_and_values(lists, scores, iteration, lists.weights)[1], 0.0)

    def slopes_and_values(self, lists: Lists, scores: Floats, iteration: int, weights: Floats) -> tuple[Floats, Floats]:
        sizes, offsets = lists.sizes, np.append(lists.offsets, len(scores))
        discounts = np.append(self._measure.discounts(int(sizes.max(initial=0))), 0.0)
        shares, is_exact = self.gain_shares(lists, offsets, weights), self._is_exact(lists)
        keys = np.zeros(0, np.uint64) if is_exact.all() else lists.random.document_keys[lists.rows]
        seed = seed_of(self.seed, iteration, "softrank")
        gradients, values = np.zeros(len(scores)), np.zeros(len(sizes))

        def work(thread: int, n_threads: int) -> None:
            soft_lists(
                thread, n_threads, offsets, scores, 2.0 * self.sigma, shares, discounts, is_exact, keys, seed,
                self.samples // 2, gradients, values,
            )  # fmt: skip

        n_steps = float((sizes.astype(np.float64) ** 2 * np.where(is_exact, sizes, self.samples)).sum())
        lists.share_work(n_steps >= STEPS_WORTH_SHARING, work)
        return gradients / (2.0 * self.sigma * math.sqrt(math.pi)), values


@kernel
def soft_lists(
    thread: int, n_threads: int, offsets: Ints, scores: Floats, unit: float, shares: Floats, discounts: Floats,
    is_exact: Bools, keys: UInt64s, seed: np.uint64, pairs: int, gradients: Floats, values: Floats,
) -> None:  # fmt: skip
    """Compute Σ_j share_j E d(rank of j) and its slopes by the scores, for every n_threads-th list.

    With x = (s_i − s_j) / unit and unit = 2σ: π_ij = erfc(−x) / 2, and its slope by x is e^{−x²} / √π; the caller
    divides by √π and by the unit. Lists that are not exact are sampled. `discounts` ends with the 0 of the ranks below
    the cutoff.
    """
    longest = longest_exact = 0
    for q in range(thread, len(values), n_threads):
        longest = max(longest, offsets[q + 1] - offsets[q])
        if is_exact[q]:
            longest_exact = max(longest_exact, offsets[q + 1] - offsets[q])
    others, chances, slopes = np.empty(longest, np.int64), np.empty(longest), np.empty(longest)
    width = min(longest_exact, len(discounts)) + 1
    states, ahead = np.empty((longest_exact + 1, width)), np.empty(width)
    wins = np.empty((2, longest), np.bool_)
    for q in range(thread, len(values), n_threads):
        start, end = offsets[q], offsets[q + 1]
        for j in range(start, end):
            if shares[j] == 0.0:
                continue
            n_others, n_above = uncertain_others(scores, unit, start, end, j, others, chances)
            below = discounts[n_above:]  # by the number of uncertain documents that beat j
            if len(below) < 2:
                continue  # it ranks below the cutoff
            if is_exact[q]:
                expected = exact_slopes(chances[:n_others], below, states, ahead, slopes)
            else:
                key = keyed_bits(keys[j], seed)
                expected = sampled_slopes(chances[:n_others], others, below, key, keys, pairs, wins, slopes)
            values[q] += shares[j] * expected
            for k in range(n_others):
                i = others[k]
                push = shares[j] * slopes[k] * math.exp(-(((scores[i] - scores[j]) / unit) ** 2))
                gradients[i] += push
                gradients[j] -= push


@helper
def uncertain_others(scores: Floats, unit: Any, start: Any, end: Any, j: Any, others: Ints, chances: Floats) -> Any:
    """Write the documents that may beat j, and their π_ij; return their number, and that of certain winners."""
    n_others = n_above = 0
    for i in range(start, end):
        gap = (scores[i] - scores[j]) / unit
        if i == j or gap < -CERTAIN_GAP:
            continue
        if gap > CERTAIN_GAP:
            n_above += 1
            continue
        others[n_others], chances[n_others] = i, 0.5 * math.erfc(-gap)
        n_others += 1
    return n_others, n_above


@helper
def exact_slopes(chances: Floats, discounts: Floats, states: Floats, ahead: Floats, slopes: Floats) -> Any:
    """Return E d(R), where R is the number of others that win, and write its slope by each π.

    Forwards, as in the paper, p_k(r) is the chance that r of the first k win:
    p_{k+1}(r) = (1 − π_k) p_k(r) + π_k p_k(r − 1). Backwards, a_k(r) is the mean of d(R) if r of the first k win:
    a_k(r) = (1 − π_k) a_{k+1}(r) + π_k a_{k+1}(r + 1). The slope by π_k is Σ_r p_k(r) (a_{k+1}(r + 1) − a_{k+1}(r)).
    All terms are means, so nothing cancels.
    """
    n, depth = len(chances), len(discounts) - 1
    states[0, 0] = 1.0
    for k in range(n):
        wins, loses = chances[k], 1.0 - chances[k]
        before, after = states[k], states[k + 1]
        after[0] = loses * before[0]
        last = min(k, depth - 1)
        for r in range(1, last + 1):
            after[r] = loses * before[r] + wins * before[r - 1]
        if k + 1 < depth:
            after[k + 1] = wins * before[k]
    for r in range(min(n, depth) + 1):
        ahead[r] = discounts[r]
    for back in range(n):
        k = n - 1 - back
        slopes[k] = slope_and_step_back(states[k], ahead, chances[k], min(k + 1, depth))
    return ahead[0]


@helper
def slope_and_step_back(state: Floats, ahead: Floats, wins: Any, n: Any) -> Any:
    """Return Σ_r p(r) (a(r + 1) − a(r)), and step `a` back by one document.

    There are four sums, because the additions to a single one would have to wait for each other.
    """
    sum_0 = sum_1 = sum_2 = sum_3 = 0.0
    n_unrolled = n - n % 4
    for r in range(0, n_unrolled, 4):
        fall_0, fall_1 = ahead[r + 1] - ahead[r], ahead[r + 2] - ahead[r + 1]
        fall_2, fall_3 = ahead[r + 3] - ahead[r + 2], ahead[r + 4] - ahead[r + 3]
        sum_0 += state[r] * fall_0
        sum_1 += state[r + 1] * fall_1
        sum_2 += state[r + 2] * fall_2
        sum_3 += state[r + 3] * fall_3
        ahead[r] += wins * fall_0
        ahead[r + 1] += wins * fall_1
        ahead[r + 2] += wins * fall_2
        ahead[r + 3] += wins * fall_3
    for r in range(n_unrolled, n):
        fall = ahead[r + 1] - ahead[r]
        sum_0 += state[r] * fall
        ahead[r] += wins * fall
    return (sum_0 + sum_1) + (sum_2 + sum_3)


@helper
def sampled_slopes(
    chances: Floats, others: Ints, discounts: Floats, key: Any, keys: UInt64s, pairs: Any, wins: Any, slopes: Floats
) -> Any:
    """Estimate `exact_slopes` by means over pairs of draws, with u and 1 − u for each uniform number.

    Given all other outcomes, the slope by π_k is d(r + 1) − d(r) if r of them are above, whatever the outcome of k.
    """
    n, depth = len(chances), len(discounts) - 1
    slopes[:n] = 0.0
    expected = 0.0
    for pair in range(pairs):
        n_first = n_second = 0
        for k in range(n):
            u = to_unit(random_bits(key ^ keys[others[k]], np.uint64(pair)))
            wins[0, k], wins[1, k] = u < chances[k], 1.0 - u <= chances[k]
            n_first += wins[0, k]
            n_second += wins[1, k]
        for draw, rank in enumerate((n_first, n_second)):
            expected += discounts[min(rank, depth)]
            if_loses = discounts[min(rank + 1, depth)] - discounts[min(rank, depth)]
            if_wins = discounts[min(rank, depth)] - discounts[min(max(rank - 1, 0), depth)]
            for k in range(n):
                slopes[k] += if_wins if wins[draw, k] else if_loses
    slopes[:n] /= 2 * pairs
    return expected / (2 * pairs)
