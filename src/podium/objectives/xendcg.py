"""XE-NDCG: a cross-entropy that bounds NDCG."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from podium.core.array_types import Floats
from podium.errors import DataError
from podium.objectives.list_loss import ListLoss, Lists, require_labels_up_to, softmax_cross_entropy
from podium.objectives.registry import register


@register
@dataclass(frozen=True)
class XENDCG(ListLoss):
    """C = −Σ_i t_i log softmax(s)_i, t_i ∝ 2^{l_i} − γ_i: a bound of NDCG (Bruch, WWW 2021).

    γ is drawn from [0, 1) anew for each document and round, by content and seed. (LightGBM's `rank_xendcg` adds terms
    for the rest of the Hessian; this is the gradient itself.)

    Args:
        labels: the label source, from 0 to 30.
        seed: decides γ.

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
        if isinstance(self.seed, bool) or not isinstance(self.seed, int | np.integer):
            raise DataError(f"seed must be a whole number, not {self.seed!r}")

    def prepare(self, lists: Lists) -> None:  # noqa: D102
        require_labels_up_to(self, lists, 30.0)

    def is_random(self, lists: Lists) -> bool:
        """Always."""
        return True

    def of_lists(self, lists: Lists, scores: Floats, iteration: int) -> tuple[Floats, Floats]:  # noqa: D102
        gamma = lists.random.of_documents(f"{self.seed}/{iteration}/gamma")[lists.rows]
        target = np.exp2(lists.labels) - gamma
        return softmax_cross_entropy(lists, scores, target / lists.sums(target))
