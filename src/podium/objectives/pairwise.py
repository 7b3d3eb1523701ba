"""RankNet's objective and other costs of plain pairs, from different labels or from explicit preferences."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from podium.core.array_types import Floats, Ints
from podium.data import RankingData
from podium.errors import DataError
from podium.objectives.base import (
    BoundObjective,
    LossTerm,
    document_weights_of,
    query_weights_of,
    register,
    require_source,
)
from podium.objectives.links import CrossEntropy, Link
from podium.objectives.pair_terms import LinkedObjective, PairTerm, require_flag


@register
@dataclass(frozen=True)
class Pairwise(PairTerm):
    """All pairs with different labels, each of weight 1: RankNet's objective ([B] §2), or that of another link.

    Args:
        link: `CrossEntropy()` is RankNet's, `Hinge()` RankSVM's, `SquaredHinge()` GBRank's, `Fidelity()` FRank's.
        labels: the label source.
        normalize: see `PairTerm`.

    Example:
        >>> import numpy as np, podium
        >>> from podium.objectives import Pairwise
        >>> data = podium.RankingData([[0.0], [1.0]], [0, 1], qid=["a", "a"])
        >>> Pairwise().bind(data).gradients(np.zeros(2))[0].tolist()
        [-0.5, 0.5]

    """

    link: Link = field(default_factory=CrossEntropy)
    labels: str = "relevance"
    normalize: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        require_flag(self.normalize)
        require_source(self.labels)


@register
@dataclass(frozen=True)
class Preferences(LinkedObjective):
    """RankNet on the data's `preferences` (i, j, P̄), which may contradict each other; needs no labels ([B] §2).

    C = P̄ C(s_i − s_j) + (1 − P̄) C(s_j − s_i), where P̄ is the share of judges who put i above j. With cross-entropy
    λ_ij = σ (P̄ − P) and w_ij = σ² P (1 − P), P = 1 / (1 + e^{−σ(s_i − s_j)}). With weights a pair counts
    p_ij u_q √(d_i d_j) times, where p_ij is the pair's own weight.

    Args:
        link: C; RankNet's cross-entropy by default.

    Example:
        >>> import numpy as np, podium
        >>> from podium.objectives import Preferences
        >>> pairs = ([0], [1], [0.75])  # three of four judges put row 0 above row 1
        >>> data = podium.RankingData([[0.0], [1.0]], qid=["a", "a"], preferences=pairs)
        >>> Preferences().bind(data).gradients(np.zeros(2))[0].tolist()
        [0.25, -0.25]

    """

    link: Link = field(default_factory=CrossEntropy)

    def bind(self, data: RankingData) -> BoundObjective:
        return BoundPreferences(self, data)


class BoundPreferences(BoundObjective):
    """The pairs of some data."""

    changes = False

    def __init__(self, objective: Preferences, data: RankingData) -> None:
        if data.preferences is None or not (len(data.preferences.i) or objective.checked):
            raise DataError("Preferences needs pairs: RankingData(…, preferences=(i, j, probability))")
        self.link, self.data, self.n = objective.link, data, len(data)
        place = np.empty(self.n, np.int64)
        place[data.canonical_order] = np.arange(self.n)
        pairs = data.preferences
        i, j, share, counts = pairs.i, pairs.j, pairs.probability.astype(np.float64), pairs.weights
        order = np.lexsort((counts, share, place[j], place[i]))  # sums do not depend on the order of the pairs
        self.i, self.j, self.share = i[order], j[order], share[order]
        weights = np.empty(self.n)
        weights[data.canonical_order] = document_weights_of(data)
        queries = query_weights_of(data)[data.query_of_row[self.i]]
        self.weights = counts[order] * (queries * np.sqrt(weights[self.i] * weights[self.j]))

    def gradients(self, scores: Floats, iteration: int = 0) -> tuple[Floats, Floats]:
        gap, for_i, for_j = self._gaps_and_weights(scores)
        gradient = self.pair_lambdas(scores)[2]
        hessian = for_i * self.link.hessian(gap) + for_j * self.link.hessian(-gap)
        gradients: Any = np.bincount(self.i, gradient, self.n) - np.bincount(self.j, gradient, self.n)
        hessians: Any = np.bincount(self.i, hessian, self.n) + np.bincount(self.j, hessian, self.n)
        return gradients, hessians

    def loss_terms(self, scores: Floats, iteration: int = 0) -> list[LossTerm]:
        gap, for_i, for_j = self._gaps_and_weights(scores)
        costs = for_i * self.link.cost(gap) + for_j * self.link.cost(-gap)
        return [LossTerm(1.0, costs, query_weights_of(self.data))]

    def pair_lambdas(self, scores: Floats) -> tuple[Ints, Ints, Floats]:
        """Return the rows i and j of each pair, and λ_ij, which is added to i and subtracted from j."""
        gap, for_i, for_j = self._gaps_and_weights(scores)
        return self.i, self.j, for_i * self.link.gradient(gap) - for_j * self.link.gradient(-gap)

    def _gaps_and_weights(self, scores: Floats) -> tuple[Floats, Floats, Floats]:
        return scores[self.i] - scores[self.j], self.weights * self.share, self.weights * (1.0 - self.share)
