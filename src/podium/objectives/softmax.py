"""Cross-entropies of softmax distributions: ListNet of the top k documents, and CatBoost's QuerySoftMax."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.core.array_types import Bools, Floats
from podium.core.validation import require_number, require_whole
from podium.objectives.base import register
from podium.objectives.listwise import ListLoss, Lists, require_labels_up_to, softmax_costs, softmax_cross_entropy

LOWEST_SCORE = -1e300  # of documents that have been drawn from the list, or have weight 0


@register
@dataclass(frozen=True)
class TopListNet(ListLoss):
    """ListNet of the top k documents: the cross-entropy of two Plackett–Luce models (Cao et al. 2007, §4.2).

    C = −Σ_g P_l(g) log P_s(g) over all ordered choices g of k documents. P_l draws the next document from the softmax
    of the labels of the remaining documents, P_s from that of their scores. So C is a sum over 0 … k − 1 drawn
    documents: the expected cost of `ListNet` on the documents that remain. With k = 1 it is `ListNet`. For k > 1 there
    are too many choices, so each round draws some by P_l, from content and seed; the expectation of λ is exact.

    Args:
        k: the number of top documents.
        labels: the label source.
        samples: the number of choices to draw for each list and round.
        seed: the seed of the choices.

    Example:
        >>> import numpy as np, podium
        >>> from podium.objectives import TopListNet
        >>> data = podium.RankingData([[0.0], [1.0]], [0, 1], qid=["a", "a"])
        >>> TopListNet(k=2).bind(data).gradients(np.zeros(2))[0].round(4).tolist()  # the last one is certain
        [-0.2311, 0.2311]

    """

    k: int = 3
    labels: str = "relevance"
    samples: int = 4
    seed: int = 0

    def __post_init__(self) -> None:
        require_whole("k", self.k, 1)
        require_whole("samples", self.samples, 1)
        require_whole("seed", self.seed, None)

    def is_random(self, lists: Lists) -> bool:
        return self.k > 1 and bool((lists.sizes > 2).any())

    def of_lists(self, lists: Lists, scores: Floats, iteration: int) -> tuple[Floats, Floats]:
        gradients, hessians = np.zeros(len(scores)), np.zeros(len(scores))
        for remains, n_samples in self._remaining(lists, iteration):
            gradient, hessian = softmax_cross_entropy(lists, *_of_remaining(remains, lists, scores))
            gradients, hessians = gradients + gradient / n_samples, hessians + hessian / n_samples
        return gradients, hessians

    def costs(self, lists: Lists, scores: Floats, iteration: int) -> Floats:
        costs = np.zeros(len(lists.sizes))
        for remains, n_samples in self._remaining(lists, iteration):
            costs = costs + softmax_costs(lists, *_of_remaining(remains, lists, scores)) / n_samples
        return costs

    def _remaining(self, lists: Lists, iteration: int) -> Iterator[tuple[Bools, int]]:
        """Yield which documents remain after 0 … k − 1 draws, and the number of such samples to average."""
        yield np.ones(len(lists.rows), bool), 1
        depth = min(self.k, int(lists.sizes.max(initial=0)) - 1)  # the last document is certain
        for sample in range(self.samples if depth > 1 else 0):
            places = self._drawn_places(lists, f"{self.seed}/{iteration}/{sample}/listnet")
            for drawn in range(1, depth):
                yield places >= drawn, self.samples

    def _drawn_places(self, lists: Lists, purpose: str) -> Any:
        """Return the place of each document in an order drawn by labels: sorted by label plus Gumbel noise."""
        with np.errstate(divide="ignore"):
            keys = lists.labels - np.log(-np.log(lists.random.of_documents(purpose)[lists.rows]))
        order = np.lexsort((-keys, lists.list_of))
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(len(order)) - lists.offsets[lists.list_of]
        return places


def _of_remaining(remains: Bools, lists: Lists, scores: Floats) -> tuple[Floats, Floats]:
    """Return the scores and ListNet's target for lists that consist of the remaining documents only."""
    target = np.where(remains, lists.softmax(np.where(remains, lists.labels, LOWEST_SCORE)), 0.0)
    return np.where(remains, scores, LOWEST_SCORE), target


@register
@dataclass(frozen=True)
class QuerySoftMax(ListLoss):
    """C = −Σ_i d_i l_i log p_i, p_i = d_i e^{βs_i} / Σ_j d_j e^{βs_j}: CatBoost's loss of the same name.

    Labels are not normalized to a distribution, so the weight of a query is the sum of its labels. As in CatBoost, l2
    is added to the diagonal of the hessian: w = β Σ_j d_j l_j (β p (1 − p) + l2).

    Args:
        labels: the label source; labels must not be negative.
        beta: β.
        l2: λ in CatBoost.

    Example:
        >>> import numpy as np, podium
        >>> from podium.objectives import QuerySoftMax
        >>> data = podium.RankingData([[0.0], [1.0]], [0, 1], qid=["a", "a"])
        >>> QuerySoftMax().bind(data).gradients(np.zeros(2))[0].round(4).tolist()
        [-0.5, 0.5]

    """

    labels: str = "relevance"
    beta: float = 1.0
    l2: float = 0.01

    def __post_init__(self) -> None:
        require_number("beta", self.beta, above=0)
        require_number("l2", self.l2, least=0)

    @property
    def score_unit(self) -> float:  # type: ignore[override]
        """1/β."""
        return 1.0 / self.beta

    def prepare(self, lists: Lists) -> None:
        require_labels_up_to(self, lists, float(np.finfo(np.float32).max))

    def of_lists(self, lists: Lists, scores: Floats, iteration: int) -> tuple[Floats, Floats]:
        with np.errstate(divide="ignore"):
            shares = lists.softmax(np.maximum(self.beta * scores + np.log(lists.weights), LOWEST_SCORE))
        weighted = lists.weights * lists.labels
        sums = lists.sums(weighted)
        hessians = self.beta * sums * (self.beta * shares * (1.0 - shares) + self.l2)
        return self.beta * (weighted - shares * sums), hessians

    def costs(self, lists: Lists, scores: Floats, iteration: int) -> Floats:
        with np.errstate(divide="ignore"):
            logs = lists.log_softmax(np.maximum(self.beta * scores + np.log(lists.weights), LOWEST_SCORE))
        return lists.totals(-lists.weights * lists.labels * logs)
