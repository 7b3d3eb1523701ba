"""What losses of whole lists have in common. Documents without a label are left out of their list."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import numpy as np

from podium.core.array_types import Floats
from podium.core.merging import Max
from podium.core.team import Team
from podium.data import RankingData
from podium.data.canonical import ContentRandom
from podium.errors import DataError
from podium.objectives.base import (
    BoundObjective,
    Objective,
    document_weights_of,
    labels_of,
    query_weights_of,
    require_labels,
)  # fmt: skip


class ListLoss(Objective):
    """A loss of the scores of a query's documents; λ = −∂C/∂s and w, the diagonal of the hessian or a bound of it.

    With weights a document's part counts d_i times and a query's u_q times.
    """

    labels: str
    works_in_parts = True

    def bind(self, data: RankingData) -> BoundObjective:
        """On these documents."""
        return _BoundLists(self, data)

    def prepare(self, lists: Lists) -> None:
        """Refuse labels that make no sense."""

    def is_random(self, lists: Lists) -> bool:
        """Whether random numbers are drawn anew in each round."""
        return False

    @abstractmethod
    def of_lists(self, lists: Lists, scores: Floats, iteration: int) -> tuple[Floats, Floats]:
        """λ and w of the documents of all lists, without query weights."""


class Lists:
    """The labelled documents of all queries, one list after the other in the canonical order.

    Attributes:
        data: where they come from.
        rows: of the documents.
        offsets: where each list begins; there are no empty ones.
        sizes: the number of documents of each list.
        list_of: the list of each document.
        queries: the query of each list.
        labels, weights: of the documents.
        team: the threads to use; None is for all cores.

    """

    team: Team | None = None

    def __init__(self, data: RankingData, source: str, who: Objective) -> None:
        labels = labels_of(data, source, who).astype(np.float64)
        require_labels(labels, source, who)
        labelled = ~np.isnan(labels)
        query = data.query_in_order[labelled]
        self.data, self.rows, self.labels = data, data.canonical_order[labelled], labels[labelled]
        self.weights = document_weights_of(data)[labelled]
        self.queries, self.offsets, self.list_of = np.unique(query, return_index=True, return_inverse=True)
        self.sizes = np.diff(self.offsets, append=len(self.rows))
        self.random = ContentRandom(data)

    def sums(self, values: Floats) -> Floats:
        """Σ over each list, for each of its documents."""
        sums: Floats = np.add.reduceat(values, self.offsets)[self.list_of] if len(values) else values
        return sums

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
        loss.prepare(self.lists)
        self.changes = loss.is_random(self.lists)

    def facts(self) -> Any:
        return Max(self.changes)

    def set_facts(self, facts: Any) -> None:
        self.changes = bool(facts)

    def gradients(self, scores: Floats, iteration: int = 0) -> tuple[Floats, Floats]:
        result = np.zeros(self.n), np.zeros(self.n)
        rows, self.lists.team = self.lists.rows, self.team
        gradients, hessians = self.loss.of_lists(self.lists, scores[rows], iteration)
        result[0][rows], result[1][rows] = self.query_weights * gradients, self.query_weights * hessians
        return result


def softmax_cross_entropy(lists: Lists, scores: Floats, target: Floats) -> tuple[Floats, Floats]:
    """λ and w of −Σ d_i t_i log softmax(s)_i."""
    shares, weighted = lists.softmax(scores), lists.weights * target
    total = lists.sums(weighted)
    return weighted - shares * total, shares * (1.0 - shares) * total


def require_labels_up_to(loss: ListLoss, lists: Lists, highest: float) -> None:
    """Refuse labels below 0 or above the highest that a loss can take."""
    bad = np.flatnonzero((lists.labels < 0) | (lists.labels > highest))
    if len(bad):
        value, row = lists.labels[bad[0]], lists.rows[bad[0]]
        raise DataError(f"{type(loss).__name__} takes labels from 0 to {math.floor(highest)}; row {row} has {value:g}")
