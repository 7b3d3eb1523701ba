"""ListNet's cross-entropy."""

from __future__ import annotations

from dataclasses import dataclass

from podium.core.array_types import Floats
from podium.objectives.list_loss import ListLoss, Lists, softmax_cross_entropy
from podium.objectives.registry import register


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

    def of_lists(self, lists: Lists, scores: Floats, iteration: int) -> tuple[Floats, Floats]:  # noqa: D102
        return softmax_cross_entropy(lists, scores, lists.softmax(lists.labels))
