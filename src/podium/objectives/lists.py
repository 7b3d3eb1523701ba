"""Losses of whole lists. Documents without a label are left out of their list."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from podium.data import RankingData
from podium.data.content_random import ContentRandom
from podium.errors import DataError
from podium.objectives.base import (
    BoundObjective,
    Objective,
    document_weights_of,
    labels_of,
    query_weights_of,
    require_labels,
)  # fmt: skip

Floats = NDArray[np.float64]


class ListLoss(Objective):
    """A loss of the scores of a query's documents; λ = −∂C/∂s and w, the diagonal of its curvature or a bound of it.

    With weights a document's part counts d_i times and a query's u_q times.
    """

    labels: str
    draws: ClassVar[bool] = False  # chances, anew in each round

    def bind(self, data: RankingData) -> BoundObjective:
        """On these documents."""
        return _BoundLists(self, data)

    def prepare(self, lists: Lists) -> None:
        """Refuse labels that make no sense."""

    @abstractmethod
    def of_lists(self, lists: Lists, scores: Floats, iteration: int) -> tuple[Floats, Floats]:
        """λ and w of the documents of all lists, without query weights."""


class Lists:
    """The labelled documents of all queries, one list after the other in the canonical order.

    Attributes:
        data: where they come from.
        rows: of the documents.
        offsets: where each list begins; there are no empty ones.
        list_of: the list of each document.
        queries: the query of each list.
        labels, weights: of the documents.

    """

    def __init__(self, data: RankingData, source: str, who: Objective) -> None:
        labels = labels_of(data, source, who).astype(np.float64)
        require_labels(labels, source, who)
        known = ~np.isnan(labels)
        query = np.repeat(np.arange(data.n_queries), data.query_sizes)[known]
        self.data, self.rows, self.labels = data, data.canonical_order[known], labels[known]
        self.weights = document_weights_of(data)[known]
        self.queries, self.offsets, self.list_of = np.unique(query, return_index=True, return_inverse=True)
        self.chances = ContentRandom(data)

    def sums(self, values: Floats) -> Floats:
        """Σ over each list, for each of its documents."""
        found: Floats = np.add.reduceat(values, self.offsets)[self.list_of] if len(values) else values
        return found

    def softmax(self, values: Floats) -> Floats:
        """e^v over its sum in the list."""
        if not len(values):
            return values
        highest = np.maximum.reduceat(values, self.offsets)[self.list_of]
        powers = np.exp(values - highest)
        return powers / self.sums(powers)


class _BoundLists(BoundObjective):
    def __init__(self, loss: ListLoss, data: RankingData) -> None:
        self.loss, self.lists, self.n = loss, Lists(data, loss.labels, loss), len(data)
        self.query_weights = query_weights_of(data)[self.lists.queries][self.lists.list_of]
        self.changes = loss.draws
        loss.prepare(self.lists)

    def gradients(self, scores: Floats, iteration: int = 0) -> tuple[Floats, Floats]:
        lambdas, curvatures = np.zeros(self.n), np.zeros(self.n)
        rows = self.lists.rows
        found = self.loss.of_lists(self.lists, scores[rows], iteration)
        lambdas[rows], curvatures[rows] = self.query_weights * found[0], self.query_weights * found[1]
        return lambdas, curvatures


def _cross_entropy(lists: Lists, scores: Floats, target: Floats) -> tuple[Floats, Floats]:
    """λ and w of −Σ d_i t_i log softmax(s)_i."""
    shares, weighted = lists.softmax(scores), lists.weights * target
    whole = lists.sums(weighted)
    return weighted - shares * whole, shares * (1.0 - shares) * whole


@dataclass(frozen=True)
class ListNet(ListLoss):
    """C = −Σ_i softmax(l)_i log softmax(s)_i: ListNet's top-one cross-entropy (Cao et al., ICML 2007)."""

    labels: str = "relevance"

    def of_lists(self, lists: Lists, scores: Floats, iteration: int) -> tuple[Floats, Floats]:  # noqa: D102
        return _cross_entropy(lists, scores, lists.softmax(lists.labels))


@dataclass(frozen=True)
class XENDCG(ListLoss):
    """C = −Σ_i t_i log softmax(s)_i, t_i ∝ 2^{l_i} − γ_i: a bound of NDCG (Bruch, WWW 2021).

    γ is drawn from [0, 1) anew for each document and round, by content and seed. (LightGBM's `rank_xendcg` adds terms
    for the rest of the Hessian; this is the gradient itself.)

    Args:
        labels: the label source, from 0 to 30.
        seed: decides γ.

    """

    labels: str = "relevance"
    seed: int = 0
    draws: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if isinstance(self.seed, bool) or not isinstance(self.seed, int | np.integer):
            raise DataError(f"seed must be a whole number, not {self.seed!r}")

    def prepare(self, lists: Lists) -> None:  # noqa: D102
        _require_labels(self, lists, 30.0)

    def of_lists(self, lists: Lists, scores: Floats, iteration: int) -> tuple[Floats, Floats]:  # noqa: D102
        chance = lists.chances.of_documents(f"{self.seed}/{iteration}/gamma")[lists.rows]
        target = np.exp2(lists.labels) - chance
        return _cross_entropy(lists, scores, target / lists.sums(target))


@dataclass(frozen=True)
class ListMLE(ListLoss):
    """C = Σ_i log Σ_{l_j ≤ l_i} e^{s_j} − s_i: Plackett–Luce likelihood of the label order (Xia et al., ICML 2008).

    Labels leave open in which order equal ones stand, so each document competes with its equals and with all below, as
    Breslow (1974) has it for tied events in Cox's model. Documents of the lowest label win against nobody and add no
    term: whatever is left comes last with probability 1. Without ties this is ListMLE as published. With ties it is,
    but for a constant, a bound of −log of the likelihood summed over all orders of equal labels, since every term's sum
    grows by documents that are already placed; and it is convex.
    """

    labels: str = "relevance"

    def of_lists(self, lists: Lists, scores: Floats, iteration: int) -> tuple[Floats, Floats]:  # noqa: D102
        from podium.objectives import kernels

        order = np.lexsort((-lists.labels, lists.list_of))  # stable: equal labels in the canonical order
        found = np.zeros(len(order)), np.zeros(len(order))
        offsets = np.append(lists.offsets, len(order))
        kernels.plackett_luce(offsets, order, lists.labels, scores, lists.weights, *found)
        return found


@dataclass(frozen=True)
class RankCosine(ListLoss):
    """C = ½ (1 − cos(g, s)), g the gains 2^l − 1 less their mean in the list (Qin et al., IP&M 2008).

    Where all scores are 0 the angle is not defined; there λ points along the gains. The curvature changes its sign:
    use the gradient step.
    """

    labels: str = "relevance"
    curved = False
    flat_because = "the curvature of a cosine changes its sign"

    def prepare(self, lists: Lists) -> None:  # noqa: D102
        _require_labels(self, lists, 50.0)

    def of_lists(self, lists: Lists, scores: Floats, iteration: int) -> tuple[Floats, Floats]:  # noqa: D102
        d = lists.weights
        gains = np.exp2(lists.labels) - 1.0
        whole = lists.sums(d)
        gains -= lists.sums(d * gains) / np.where(whole > 0, whole, 1.0)
        gain_length, square = np.sqrt(lists.sums(d * gains * gains)), lists.sums(d * scores * scores)
        along = lists.sums(d * gains * scores)
        with np.errstate(divide="ignore", invalid="ignore"):
            turned = 0.5 * d * (gains - along / square * scores) / (gain_length * np.sqrt(square))
            straight = 0.5 * d * gains / gain_length
        found = np.where(square > 0, turned, straight)
        lowest, highest = (f.reduceat(lists.labels, lists.offsets)[lists.list_of] for f in (np.minimum, np.maximum))
        return np.where(lowest < highest, found, 0.0), np.zeros(len(d))


@dataclass(frozen=True)
class QueryRegression(ListLoss):
    """C = ½ Σ_i d_i (r_i − r̄)², r = l − s the residuals, r̄ their mean in the query: CatBoost's QueryRMSE.

    Only differences within a query count: what is learnt is how documents of a query differ, not how queries do.
    """

    labels: str = "relevance"
    score_unit = math.inf

    def of_lists(self, lists: Lists, scores: Floats, iteration: int) -> tuple[Floats, Floats]:  # noqa: D102
        rest, d = lists.labels - scores, lists.weights
        whole = lists.sums(d)
        mean = lists.sums(d * rest) / np.where(whole > 0, whole, 1.0)
        return d * (rest - mean), d


def _require_labels(loss: ListLoss, lists: Lists, highest: float) -> None:
    bad = np.flatnonzero((lists.labels < 0) | (lists.labels > highest))
    if len(bad):
        value, row = lists.labels[bad[0]], lists.rows[bad[0]]
        raise DataError(f"{type(loss).__name__} takes labels from 0 to {math.floor(highest)}; row {row} has {value:g}")
