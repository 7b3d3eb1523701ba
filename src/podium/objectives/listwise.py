"""Listwise objectives: losses of whole lists. Documents without a label are left out."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.core.array_types import Bools, Floats, Ints
from podium.core.compiling import helper, kernel
from podium.core.merging import Max
from podium.core.team import Team
from podium.core.validation import require_whole
from podium.data import RankingData
from podium.data.canonical import ContentRandom
from podium.errors import DataError
from podium.objectives.base import (
    BoundObjective,
    LossTerm,
    Objective,
    document_weights_of,
    labels_and_mask,
    query_weights_of,
    register,
)


class ListLoss(Objective):
    """A loss of the scores of a query's documents; λ = −∂C/∂s, and w is the diagonal of the hessian or a bound on it.

    With weights, the part of a document counts d_i times, and the cost of a query u_q times.
    """

    labels: str
    works_in_parts = True

    def bind(self, data: RankingData) -> BoundObjective:
        return _BoundLists(self, data)

    def prepare(self, lists: Lists) -> None:
        """Raise if the loss does not accept the labels."""

    def is_random(self, lists: Lists) -> bool:
        """Return whether the loss draws new random numbers in each round."""
        return False

    @abstractmethod
    def of_lists(self, lists: Lists, scores: Floats, iteration: int) -> tuple[Floats, Floats]:
        """Return λ and w of the documents of all lists, without query weights."""

    def costs(self, lists: Lists, scores: Floats, iteration: int) -> Floats:
        """Return the cost of each list, without query weights."""
        raise DataError(f"{type(self).__name__} has no loss: define its costs(lists, scores, iteration)")


class Lists:
    """The labelled documents of all queries, list by list in the canonical order; no list is empty."""

    team: Team | None = None  # the threads to use; None means all cores

    def __init__(self, data: RankingData, source: str, who: Objective) -> None:
        labels, labelled = labels_and_mask(data, source, who)
        query = data.query_in_order[labelled]
        self.data, self.rows, self.labels = data, data.canonical_order[labelled], labels[labelled]
        self.weights = document_weights_of(data)[labelled]
        # The query of each list, where each list begins, and the list of each document.
        self.queries, self.offsets, self.list_of = np.unique(query, return_index=True, return_inverse=True)
        self.sizes = np.diff(self.offsets, append=len(self.rows))
        self.random = ContentRandom(data)

    def sums(self, values: Floats) -> Floats:
        """Return the sum over the list of each document."""
        return np.asarray(self.totals(values)[self.list_of])

    def totals(self, values: Floats) -> Floats:
        """Return the sum over each list."""
        return np.add.reduceat(values, self.offsets)

    def softmax(self, values: Floats) -> Floats:
        """Return e^v over its sum in the list."""
        powers = np.exp(self._below_highest(values))
        return powers / self.sums(powers)

    def log_softmax(self, values: Floats) -> Floats:
        """Return the logarithm of `softmax`, even if that underflows."""
        below = self._below_highest(values)
        return below - np.log(self.sums(np.exp(below)))

    def _below_highest(self, values: Floats) -> Floats:
        return values - np.maximum.reduceat(values, self.offsets)[self.list_of]

    def share_work(self, in_parallel: bool, work: Callable[[int, int], None]) -> None:
        """Call `work(thread, n_threads)` on each thread of the team, or on one thread if not `in_parallel`."""
        with nullcontext(self.team) if self.team else Team(None if in_parallel else 1) as team:
            n_threads = team.n_threads if in_parallel else 1
            team.each(n_threads, lambda thread: work(thread, n_threads))


class _BoundLists(BoundObjective):
    def __init__(self, loss: ListLoss, data: RankingData) -> None:
        self.objective, self.lists, self.n = loss, Lists(data, loss.labels, loss), len(data)
        self.query_weights = query_weights_of(data)[self.lists.queries][self.lists.list_of]
        loss.prepare(self.lists)
        self.changes = loss.is_random(self.lists)

    def facts(self) -> Any:
        return Max(self.changes)

    def set_facts(self, facts: Any) -> None:
        self.changes = bool(facts)

    def gradients(self, scores: Floats, iteration: int = 0) -> tuple[Floats, Floats]:
        result = np.zeros(self.n), np.zeros(self.n)
        rows, self.lists.team = self.lists.rows, self.team
        gradients, hessians = self.objective.of_lists(self.lists, scores[rows], iteration)
        result[0][rows], result[1][rows] = self.query_weights * gradients, self.query_weights * hessians
        return result

    def loss_terms(self, scores: Floats, iteration: int = 0) -> list[LossTerm]:
        counts = query_weights_of(self.lists.data)
        self.lists.team = self.team
        costs = self.objective.costs(self.lists, scores[self.lists.rows], iteration)
        return [LossTerm(1.0, counts[self.lists.queries] * costs, counts)]


def softmax_cross_entropy(lists: Lists, scores: Floats, target: Floats) -> tuple[Floats, Floats]:
    """Return λ and w of −Σ d_i t_i log softmax(s)_i."""
    shares, weighted = lists.softmax(scores), lists.weights * target
    total = lists.sums(weighted)
    return weighted - shares * total, shares * (1.0 - shares) * total


def softmax_costs(lists: Lists, scores: Floats, target: Floats) -> Floats:
    """Return −Σ d_i t_i log softmax(s)_i of each list."""
    return lists.totals(-lists.weights * target * lists.log_softmax(scores))


def require_labels_up_to(loss: ListLoss, lists: Lists, highest: float) -> None:
    """Raise if a label is below 0 or above the highest that a loss accepts."""
    bad = np.flatnonzero((lists.labels < 0) | (lists.labels > highest))
    if len(bad):
        value, row = lists.labels[bad[0]], lists.rows[bad[0]]
        raise DataError(f"{type(loss).__name__} takes labels from 0 to {math.floor(highest)}; row {row} has {value:g}")


@register
@dataclass(frozen=True)
class ListNet(ListLoss):
    """C = −Σ_i softmax(l)_i log softmax(s)_i: ListNet's top-one cross-entropy (Cao et al., ICML 2007).

    Example:
        >>> import numpy as np, podium
        >>> from podium.objectives import ListNet
        >>> data = podium.RankingData([[0.0], [1.0]], [0, 1], qid=["a", "a"])
        >>> ListNet().bind(data).gradients(np.zeros(2))[0].round(4).tolist()
        [-0.2311, 0.2311]

    """

    labels: str = "relevance"

    def of_lists(self, lists: Lists, scores: Floats, iteration: int) -> tuple[Floats, Floats]:
        return softmax_cross_entropy(lists, scores, lists.softmax(lists.labels))

    def costs(self, lists: Lists, scores: Floats, iteration: int) -> Floats:
        return softmax_costs(lists, scores, lists.softmax(lists.labels))


@register
@dataclass(frozen=True)
class ListMLE(ListLoss):
    """C = Σ_i log Σ_{l_j ≤ l_i} e^{s_j} − s_i: −log of the Plackett–Luce likelihood of the label order.

    Without ties this is ListMLE as published (Xia et al., ICML 2008). Documents with equal labels have no order, so
    each of them competes with its equals and with all below, like tied events in Cox's model (Breslow 1974). Documents
    of the lowest label add no term, because the rest comes last with probability 1. With ties C is still convex. Up to
    a constant, it bounds −log of the likelihood summed over all orders of equal labels, because the sum in each term
    also contains documents that are already placed.

    Example:
        >>> import numpy as np, podium
        >>> from podium.objectives import ListMLE
        >>> data = podium.RankingData([[0.0], [1.0]], [0, 1], qid=["a", "a"])
        >>> ListMLE().bind(data).gradients(np.zeros(2))[0].round(4).tolist()
        [-0.5, 0.5]

    """

    labels: str = "relevance"

    def of_lists(self, lists: Lists, scores: Floats, iteration: int) -> tuple[Floats, Floats]:
        return self._plackett_luce(lists, scores)[:2]

    def costs(self, lists: Lists, scores: Floats, iteration: int) -> Floats:
        tails = self._plackett_luce(lists, scores)[2]
        lowest = np.minimum.reduceat(lists.labels, lists.offsets)[lists.list_of]
        return lists.totals(np.where(lists.labels > lowest, lists.weights * (tails - scores), 0.0))

    def _plackett_luce(self, lists: Lists, scores: Floats) -> tuple[Floats, Floats, Floats]:
        order = np.lexsort((-lists.labels, lists.list_of))  # stable: equal labels in the canonical order
        gradients, hessians, tails = np.zeros(len(order)), np.zeros(len(order)), np.zeros(len(order))
        offsets = np.append(lists.offsets, len(order))
        plackett_luce(offsets, order, lists.labels, scores, lists.weights, gradients, hessians, tails)
        return gradients, hessians, tails


@helper
def _log_sum(a: float, b: float) -> Any:
    """Return log(e^a + e^b)."""
    high, low = max(a, b), min(a, b)
    return high if low == -np.inf else high + math.log1p(math.exp(low - high))


@kernel
def plackett_luce(
    offsets: Ints, order: Ints, labels: Floats, scores: Floats, weights: Floats, gradients: Floats, hessians: Floats,
    tails: Floats,
) -> None:  # fmt: skip
    """Write λ, w and T of Σ_i d_i (T_i − s_i), T_i = log Σ_{l_j ≤ l_i} e^{s_j}, over documents above the lowest label.

    `order` sorts the documents of a list by descending label. λ_i = d_i − Σ_{l_k ≥ l_i} d_k e^{s_i − T_k}, where d
    is 0 for the lowest label; w is computed in the same way. Both sums over k are logarithms, which cannot overflow.
    """
    for q in range(len(offsets) - 1):
        tail, end = -np.inf, offsets[q + 1]
        while end > offsets[q]:  # label by label, the lowest first
            start = end
            while start > offsets[q] and labels[order[start - 1]] == labels[order[end - 1]]:
                start -= 1
                tail = _log_sum(tail, scores[order[start]])
            for k in range(start, end):
                tails[order[k]] = tail
            end = start
        lowest = labels[order[offsets[q + 1] - 1]]
        first, second = -np.inf, -np.inf  # log Σ d_k e^{−T_k} and log Σ d_k e^{−2 T_k}
        start = offsets[q]
        while start < offsets[q + 1]:  # the highest first
            end, weight = start, 0.0
            while end < offsets[q + 1] and labels[order[end]] == labels[order[start]]:
                weight += weights[order[end]]
                end += 1
            counts = labels[order[start]] > lowest
            if counts and weight > 0.0:
                first = _log_sum(first, math.log(weight) - tails[order[start]])
                second = _log_sum(second, math.log(weight) - 2.0 * tails[order[start]])
            for k in range(start, end):
                i = order[k]
                share = math.exp(scores[i] + first)
                gradients[i] = (weights[i] if counts else 0.0) - share
                hessians[i] = max(share - math.exp(2.0 * scores[i] + second), 0.0)
            start = end


@register
@dataclass(frozen=True)
class XENDCG(ListLoss):
    """C = −Σ_i t_i log softmax(s)_i, t_i ∝ 2^{l_i} − γ_i: a bound on NDCG (Bruch, WWW 2021).

    γ is drawn from [0, 1) for each document and round, by content and seed. λ is the exact gradient; LightGBM's
    `rank_xendcg` adds terms for the rest of the hessian.

    Args:
        labels: the label source; labels must be from 0 to 30.
        seed: the seed of γ.

    Example:
        >>> import podium
        >>> from podium.objectives import XENDCG
        >>> model = podium.LambdaMART(2, 4, objective=XENDCG(seed=1))
        >>> model.fit(podium.artificial(20, features=4)).n_trees_
        2

    """

    labels: str = "relevance"
    seed: int = 0

    def __post_init__(self) -> None:
        require_whole("seed", self.seed, None)

    def prepare(self, lists: Lists) -> None:
        require_labels_up_to(self, lists, 30.0)

    def is_random(self, lists: Lists) -> bool:
        return True

    def of_lists(self, lists: Lists, scores: Floats, iteration: int) -> tuple[Floats, Floats]:
        return softmax_cross_entropy(lists, scores, self._target(lists, iteration))

    def costs(self, lists: Lists, scores: Floats, iteration: int) -> Floats:
        return softmax_costs(lists, scores, self._target(lists, iteration))

    def _target(self, lists: Lists, iteration: int) -> Floats:
        gamma = lists.random.of_documents(f"{self.seed}/{iteration}/gamma")[lists.rows]
        target = np.exp2(lists.labels) - gamma
        return target / lists.sums(target)


@register
@dataclass(frozen=True)
class RankCosine(ListLoss):
    """C = ½ (1 − cos(g, s)), where g are the gains 2^l − 1 minus their mean in the list (Qin et al., IP&M 2008).

    If all scores are 0, the cosine is undefined, and λ points along the gains. The hessian changes its sign, so use the
    gradient step.

    Example:
        >>> import numpy as np, podium
        >>> from podium.objectives import RankCosine
        >>> data = podium.RankingData([[0.0], [1.0]], [0, 1], qid=["a", "a"])
        >>> RankCosine().bind(data).gradients(np.zeros(2))[0].round(4).tolist()
        [-0.3536, 0.3536]

    """

    labels: str = "relevance"
    has_hessian = False
    no_hessian_because = "the hessian of a cosine changes its sign"

    def prepare(self, lists: Lists) -> None:
        require_labels_up_to(self, lists, 50.0)

    def of_lists(self, lists: Lists, scores: Floats, iteration: int) -> tuple[Floats, Floats]:
        d, gains = lists.weights, self._gains(lists)
        gain_length, square = np.sqrt(lists.sums(d * gains * gains)), lists.sums(d * scores * scores)
        product = lists.sums(d * gains * scores)
        with np.errstate(divide="ignore", invalid="ignore"):
            at_scores = 0.5 * d * (gains - product / square * scores) / (gain_length * np.sqrt(square))
            at_zero = 0.5 * d * gains / gain_length
        gradients = np.where(square > 0, at_scores, at_zero)
        return np.where(self._labels_differ(lists)[lists.list_of], gradients, 0.0), np.zeros(len(d))

    def costs(self, lists: Lists, scores: Floats, iteration: int) -> Floats:
        d, gains = lists.weights, self._gains(lists)
        lengths = np.sqrt(lists.totals(d * gains * gains)) * np.sqrt(lists.totals(d * scores * scores))
        cosines = lists.totals(d * gains * scores) / np.where(lengths > 0, lengths, 1.0)
        return np.where(self._labels_differ(lists), 0.5 * (1.0 - cosines), 0.0)

    def _gains(self, lists: Lists) -> Floats:
        """Return the gains minus their mean in the list."""
        d, gains = lists.weights, np.exp2(lists.labels) - 1.0
        total = lists.sums(d)
        gains -= lists.sums(d * gains) / np.where(total > 0, total, 1.0)
        return gains

    def _labels_differ(self, lists: Lists) -> Bools:
        """Return whether each list has different labels; if not, the cosine is undefined, and its cost is 0."""
        lowest, highest = (f.reduceat(lists.labels, lists.offsets) for f in (np.minimum, np.maximum))
        return np.asarray(lowest < highest)


@register
@dataclass(frozen=True)
class QueryRegression(ListLoss):
    """C = ½ Σ_i d_i (r_i − r̄)² with the residuals r = l − s and their mean r̄ in the query: CatBoost's QueryRMSE.

    Only differences within a query count: the model learns how documents of one query differ, not how queries differ.

    Example:
        >>> import numpy as np, podium
        >>> from podium.objectives import QueryRegression
        >>> data = podium.RankingData([[0.0], [1.0]], [0, 1], qid=["a", "a"])
        >>> QueryRegression().bind(data).gradients(np.zeros(2))[0].round(4).tolist()
        [-0.5, 0.5]

    """

    labels: str = "relevance"
    score_unit = math.inf

    def of_lists(self, lists: Lists, scores: Floats, iteration: int) -> tuple[Floats, Floats]:
        return lists.weights * self._residuals(lists, scores), lists.weights

    def costs(self, lists: Lists, scores: Floats, iteration: int) -> Floats:
        return lists.totals(0.5 * lists.weights * self._residuals(lists, scores) ** 2)

    def _residuals(self, lists: Lists, scores: Floats) -> Floats:
        """Return the residuals minus their mean in the list."""
        residuals, d = lists.labels - scores, lists.weights
        total = lists.sums(d)
        return residuals - lists.sums(d * residuals) / np.where(total > 0, total, 1.0)
