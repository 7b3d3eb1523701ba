"""Candidate objectives that are not in the library: YetiRank's stochastic pairs, and Lambda-eX's choice of pairs.

Random numbers are hashes of the documents' content, of the round and of the draw, as everywhere in Podium.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from podium.objectives.listwise import ListLoss, Lists


def ideal_dcg(lists: Lists, cutoff: int) -> Any:
    """Σ (2^l − 1) / log2(1 + rank) of the best order of each list, down to the cutoff; 1 where it is 0."""
    order = np.lexsort((-lists.labels, lists.list_of))
    ranks = np.arange(len(order)) - lists.offsets[lists.list_of]
    terms = np.where(ranks < cutoff, (np.exp2(lists.labels[order]) - 1.0) / np.log2(ranks + 2.0), 0.0)
    found = np.add.reduceat(terms, lists.offsets)
    return np.where(found > 0, found, 1.0)


@dataclass(frozen=True)
class Yeti(ListLoss):
    """The cross-entropy of neighbours in orders by scores with noise.

    Noise is logistic: log u − log(1 − u). Neighbours at the ranks k and k + 1 weigh, as in YetiRank (Gulin, Kuralenok
    and Pavlov 2011, with CatBoost's decay), 0.85^(k − 1) |l_i − l_j|; as in YetiLoss (Lyzhin, Ustimenko, Gulin and
    Prokhorenkova 2023), what their swap does to NDCG. The loss is taken at the scores without noise.

    Attributes:
        labels: the label source.
        by_ndcg: YetiLoss instead of YetiRank.
        draws: orders for each round.
        scale: of all weights; λ of NDCG has sums of about one in a query, neighbours a hundredth of it.
        decay: of YetiRank's weights.
        seed: decides the noise.

    """

    labels: str = "relevance"
    by_ndcg: bool = False
    draws: int = 10
    scale: float = 1.0
    decay: float = 0.85
    seed: int = 0

    def is_random(self, lists: Lists) -> bool:
        """Always."""
        return True

    def of_lists(self, lists: Lists, scores: Any, iteration: int) -> tuple[Any, Any]:
        """The mean over the draws."""
        ideal = ideal_dcg(lists, len(scores))
        lambdas, hessians = np.zeros(len(scores)), np.zeros(len(scores))
        for draw in range(self.draws):
            u = lists.random.of_documents(f"{self.seed}/{iteration}/{draw}/noise")[lists.rows]
            noisy = scores + np.log(np.maximum(u, 2.0**-53)) - np.log1p(-u)
            add_neighbours(
                lists.offsets, lists.labels, ideal, scores, noisy, self.by_ndcg, self.decay, lambdas, hessians
            )
        weights = lists.weights * (self.scale / self.draws)
        return weights * lambdas, weights * hessians


@numba.njit(cache=True)
def add_neighbours(
    offsets: Any, labels: Any, ideal: Any, scores: Any, noisy: Any, by_ndcg: bool, decay: float, lambdas: Any,
    hessians: Any,
) -> None:  # fmt: skip
    """Add λ and w of one draw."""
    for q in range(len(offsets)):
        start = offsets[q]
        end = offsets[q + 1] if q + 1 < len(offsets) else len(labels)
        order = np.argsort(-noisy[start:end], kind="mergesort") + start
        for k in range(len(order) - 1):
            high, low = order[k], order[k + 1]
            if labels[high] == labels[low]:
                continue
            if labels[high] < labels[low]:
                high, low = low, high
            if by_ndcg:
                gain = 2.0 ** labels[high] - 2.0 ** labels[low]
                weight = gain * (1.0 / np.log2(k + 2.0) - 1.0 / np.log2(k + 3.0)) / ideal[q]
            else:
                weight = decay**k * (labels[high] - labels[low])
            wrong = 1.0 / (1.0 + np.exp(scores[high] - scores[low]))
            lambdas[high] += weight * wrong
            lambdas[low] -= weight * wrong
            hessians[high] += weight * wrong * (1.0 - wrong)
            hessians[low] += weight * wrong * (1.0 - wrong)


@dataclass(frozen=True)
class LambdaEx(ListLoss):
    """λ of NDCG on the pairs that Lambda-eX selects (Marcuzzi, Lucchese and Orlando 2023).

    A pair counts if one of its documents is among the first by score, or selected: the best order has more documents of
    its label among the first than the scores put there. So many of that label are selected, those with the highest
    scores (static) or any (random), or all of that label (all). λ are normalised as LightGBM's.

    Attributes:
        labels: the label source.
        select: "plain", which selects none, "static", "random" or "all".
        cutoff: how many are the first.
        seed: decides the random selection.

    """

    labels: str = "relevance"
    select: str = "static"
    cutoff: int = 10
    seed: int = 0

    def is_random(self, lists: Lists) -> bool:
        """Where the selection is."""
        return self.select == "random"

    def of_lists(self, lists: Lists, scores: Any, iteration: int) -> tuple[Any, Any]:
        """λ and w."""
        first = -scores
        if self.select == "random":
            first = lists.random.of_documents(f"{self.seed}/{iteration}/selection")[lists.rows]
        lambdas, hessians = np.zeros(len(scores)), np.zeros(len(scores))
        add_selected(
            lists.offsets, lists.labels, ideal_dcg(lists, self.cutoff), scores, first, self.cutoff,
            self.select == "plain", self.select == "all", lambdas, hessians,
        )  # fmt: skip
        return lists.weights * lambdas, lists.weights * hessians


@numba.njit(cache=True)
def add_selected(
    offsets: Any, labels: Any, ideal: Any, scores: Any, first: Any, cutoff: int, plain: bool, every: bool, lambdas: Any,
    hessians: Any,
) -> None:  # fmt: skip
    """Add λ and w of all lists."""
    for q in range(len(offsets)):
        start = offsets[q]
        end = offsets[q + 1] if q + 1 < len(offsets) else len(labels)
        n = end - start
        s, label = scores[start:end], labels[start:end]
        order = np.argsort(-s, kind="mergesort")
        rank = np.empty(n, np.int64)
        rank[order] = np.arange(n)
        chosen = rank < cutoff
        if not plain:
            best = np.argsort(-label, kind="mergesort")
            in_turn = np.argsort(first[start:end], kind="mergesort")
            for value in np.unique(label):
                missing = np.sum(label[best[:cutoff]] == value) - np.sum(label[order[:cutoff]] == value)
                if missing <= 0:
                    continue
                for i in in_turn:
                    if label[i] == value and not chosen[i] and (every or missing > 0):
                        chosen[i] = True
                        missing -= 1
        total = 0.0
        spread = s[order[0]] != s[order[n - 1]]
        for i in range(n):
            for j in range(n):
                if label[i] <= label[j] or not (chosen[i] or chosen[j]):
                    continue
                difference = s[i] - s[j]
                delta = abs(1.0 / np.log2(rank[i] + 2.0) - 1.0 / np.log2(rank[j] + 2.0))
                delta *= (2.0 ** label[i] - 2.0 ** label[j]) / ideal[q]
                if spread:
                    delta /= 0.01 + abs(difference)
                wrong = 1.0 / (1.0 + np.exp(difference))
                lambdas[start + i] += delta * wrong
                lambdas[start + j] -= delta * wrong
                hessians[start + i] += delta * wrong * (1.0 - wrong)
                hessians[start + j] += delta * wrong * (1.0 - wrong)
                total += 2.0 * delta * wrong
        if total > 0:
            lambdas[start:end] *= np.log2(1.0 + total) / total
            hessians[start:end] *= np.log2(1.0 + total) / total
