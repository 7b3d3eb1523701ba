"""Costs of pairs with equal weights: RankNet's and others on labels, explicit preferences, and GBRank."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from podium.core.array_types import Floats, Ints
from podium.core.validation import require_number
from podium.data import RankingData
from podium.errors import DataError
from podium.objectives.base import (
    BoundObjective,
    CompositeObjective,
    LossTerm,
    document_weights_of,
    query_weights_of,
    register,
    require_source,
)
from podium.objectives.links import CrossEntropy, Link, SquaredHinge
from podium.objectives.pair_terms import LinkedObjective, PairTerm, require_flag


@register
@dataclass(frozen=True)
class Pairwise(PairTerm):
    """C = Σ C(s_i − s_j) over all pairs i ▷ j, each of weight 1: RankNet's objective ([B] §2), or that of another link.

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

    C = Σ P̄ C(s_i − s_j) + (1 − P̄) C(s_j − s_i), where P̄ is the share of judges who put i above j. With cross-entropy
    λ_ij = σ (P̄ − P) and w_ij = σ² P (1 − P), where P = 1 / (1 + e^{−σ(s_i − s_j)}). With weights a pair counts
    p_ij u_q √(d_i d_j) times, where p_ij is the weight of the pair itself.

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
    """Preferences, bound to data."""

    changes = False

    def __init__(self, objective: Preferences, data: RankingData) -> None:
        if data.preferences is None or not (len(data.preferences.i) or objective.checked):
            raise DataError("Preferences needs pairs: RankingData(…, preferences=(i, j, probability))")
        self.link, self.data, self.n = objective.link, data, len(data)
        self.places = np.empty(self.n, np.int64)  # of each row in the canonical order
        self.places[data.canonical_order] = np.arange(self.n)
        pairs = data.preferences
        i, j, share, counts = pairs.i, pairs.j, pairs.probability.astype(np.float64), pairs.weights
        order = np.lexsort((counts, share, self.places[j], self.places[i]))  # so that sums do not depend on their order
        self.i, self.j, self.share = i[order], j[order], share[order]
        weights = np.empty(self.n)
        weights[data.canonical_order] = document_weights_of(data)
        queries = query_weights_of(data)[data.query_of_row[self.i]]
        self.weights = counts[order] * (queries * np.sqrt(weights[self.i] * weights[self.j]))

    def gradients(self, scores: Floats, iteration: int = 0) -> tuple[Floats, Floats]:
        gap, for_i, for_j = self._gaps_and_weights(scores)
        gradient = for_i * self.link.gradient(gap) - for_j * self.link.gradient(-gap)
        hessian = for_i * self.link.hessian(gap) + for_j * self.link.hessian(-gap)
        gradients: Any = np.bincount(self.i, gradient, self.n) - np.bincount(self.j, gradient, self.n)
        hessians: Any = np.bincount(self.i, hessian, self.n) + np.bincount(self.j, hessian, self.n)
        return gradients, hessians

    def loss_terms(self, scores: Floats, iteration: int = 0) -> list[LossTerm]:
        gap, for_i, for_j = self._gaps_and_weights(scores)
        costs = for_i * self.link.cost(gap) + for_j * self.link.cost(-gap)
        return [LossTerm(1.0, costs, query_weights_of(self.data))]

    def add_pairs(self, scores: Floats, slots: Ints, classes: Ints, sums: Floats) -> None:
        """Add λ_jk and |λ_jk| of the pairs of some documents j to sums[slot of j, class of k], see `BoundPairs`."""
        gap, for_i, for_j = self._gaps_and_weights(scores)
        lambdas = for_i * self.link.gradient(gap) - for_j * self.link.gradient(-gap)
        for rows, others, pushes in ((self.i, self.j, lambdas), (self.j, self.i, -lambdas)):
            slot, kind = slots[self.places[rows]], classes[self.places[others]]
            counts = (slot >= 0) & (kind >= 0)
            cells = slot[counts], kind[counts]
            np.add.at(sums[:, :, 0], cells, pushes[counts])
            np.add.at(sums[:, :, 1], cells, np.abs(pushes[counts]))

    def query_factor(self, scores: Floats, query: int) -> float:
        """Return 1: preferences are not normalized."""
        return 1.0

    def _gaps_and_weights(self, scores: Floats) -> tuple[Floats, Floats, Floats]:
        """Return s_i − s_j of each pair, and the weights of i ▷ j and j ▷ i."""
        return scores[self.i] - scores[self.j], self.weights * self.share, self.weights * (1.0 - self.share)


@register
@dataclass(frozen=True)
class GBRank(CompositeObjective):
    """GBRank (Zheng, Chen, Sun and Zha 2007, algorithm 1) for boosted trees.

    For each pair i ▷ j with h(i) < h(j) + m, a regression tree g has the targets h(j) + m for i and h(i) − m for j. The
    model is the average h_k = (k h_{k−1} + η g_k) / (k + 1). So (k + 1) h_k, which ranks like h_k, is a sum of trees
    times the learning rate η, and Podium computes this sum. With the λ and w of `Pairwise(SquaredHinge(m))`, w is the
    number of misranked pairs of a document, and h + λ/w the mean of its targets. A tree fitted to these means with
    weights w has the Newton splits and values of the gradient λ + w h, without L2:

        LambdaMART(objective="gbrank(1.0)", learning_rate=1.0, l2=0.0, split_fraction=1.0)

    The average already slows training down, so η should be about 1.

    `Pairwise(SquaredHinge(m))` has the same cost without the average, and also trains linear models and nets.

    Args:
        margin: m; τ in the paper.
        labels: the label source.

    Example:
        >>> import podium
        >>> data = podium.artificial(20, features=4)
        >>> podium.LambdaMART(2, 4, objective="gbrank(margin=0.5)", l2=0.0).fit(data).n_trees_
        2

    """

    margin: float = 1.0
    labels: str = "relevance"

    def __post_init__(self) -> None:
        require_number("margin", self.margin, above=0)
        require_source(self.labels)
        object.__setattr__(self, "pairs", Pairwise(SquaredHinge(self.margin), self.labels))

    def bind(self, data: RankingData) -> BoundObjective:
        [pairs] = self._inner()
        return _BoundGBRank(pairs.bind(data))


class _BoundGBRank(BoundObjective):
    def __init__(self, pairs: BoundObjective) -> None:
        self.pairs = pairs

    def gradients(self, scores: Floats, iteration: int = 0) -> tuple[Floats, Floats]:
        """Return λ + w h and w, where h is the scores divided by one more than the number of trees."""
        self.pairs.team = self.team
        averages = scores / (iteration + 1)
        gradients, hessians = self.pairs.gradients(averages, iteration)
        return gradients + hessians * averages, hessians

    def loss_terms(self, scores: Floats, iteration: int = 0) -> list[LossTerm]:
        """Return the cost of the pairs, whose slope is λ before the scores are averaged."""
        self.pairs.team = self.team
        return self.pairs.loss_terms(scores / (iteration + 1), iteration)
