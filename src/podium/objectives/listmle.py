"""ListMLE: the likelihood of the order of the labels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.core.array_types import Floats, Ints
from podium.core.compiling import helper, kernel
from podium.objectives.list_loss import ListLoss, Lists
from podium.objectives.registry import register


@register
@dataclass(frozen=True)
class ListMLE(ListLoss):
    """C = Σ_i log Σ_{l_j ≤ l_i} e^{s_j} − s_i: Plackett–Luce likelihood of the label order (Xia et al., ICML 2008).

    Labels leave open in which order equal ones stand, so each document competes with its equals and with all below, as
    Breslow (1974) has it for tied events in Cox's model. Documents of the lowest label win against nobody and add no
    term: whatever is left comes last with probability 1. Without ties this is ListMLE as published. With ties it is,
    but for a constant, a bound of −log of the likelihood summed over all orders of equal labels, since every term's sum
    grows by documents that are already placed; and it is convex.

    Example:
        >>> import numpy as np, podium
        >>> from podium.objectives import ListMLE
        >>> data = podium.RankingData([[0.0], [1.0]], [0, 1], qid=["a", "a"])
        >>> ListMLE().bind(data).gradients(np.zeros(2))[0].round(4).tolist()
        [-0.5, 0.5]

    """

    labels: str = "relevance"

    def of_lists(self, lists: Lists, scores: Floats, iteration: int) -> tuple[Floats, Floats]:  # noqa: D102
        order = np.lexsort((-lists.labels, lists.list_of))  # stable: equal labels in the canonical order
        result = np.zeros(len(order)), np.zeros(len(order))
        offsets = np.append(lists.offsets, len(order))
        plackett_luce(offsets, order, lists.labels, scores, lists.weights, *result)
        return result


@helper
def _log_sum(a: float, b: float) -> Any:
    """log(e^a + e^b)."""
    high, low = max(a, b), min(a, b)
    return high if low == -np.inf else high + math.log1p(math.exp(low - high))


@kernel
def plackett_luce(
    offsets: Ints, order: Ints, labels: Floats, scores: Floats, weights: Floats, gradients: Floats, hessians: Floats
) -> None:
    """λ and w of Σ_i d_i (T_i − s_i), T_i = log Σ_{l_j ≤ l_i} e^{s_j}, over documents above their list's lowest label.

    The documents of a list stand in `order` by descending label. λ_i = d_i − Σ_{l_k ≥ l_i} d_k e^{s_i − T_k}, where d
    is 0 for the lowest label; the hessian likewise. Both sums over k are kept as logarithms: no score is too large.
    """
    tails = np.empty(len(order))
    for q in range(len(offsets) - 1):
        tail, end = -np.inf, offsets[q + 1]
        while end > offsets[q]:  # one label after the other, the lowest first
            start = end
            while start > offsets[q] and labels[order[start - 1]] == labels[order[end - 1]]:
                start -= 1
                tail = _log_sum(tail, scores[order[start]])
            tails[start:end] = tail
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
                first = _log_sum(first, math.log(weight) - tails[start])
                second = _log_sum(second, math.log(weight) - 2.0 * tails[start])
            for k in range(start, end):
                i = order[k]
                share = math.exp(scores[i] + first)
                gradients[i] = (weights[i] if counts else 0.0) - share
                hessians[i] = max(share - math.exp(2.0 * scores[i] + second), 0.0)
            start = end
