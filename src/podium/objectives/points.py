"""What losses of single documents have in common ([B] §5–6, [Q], [W])."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from podium.core.array_types import Floats
from podium.core.merging import Max
from podium.data import RankingData
from podium.errors import DataError
from podium.objectives.base import (
    BoundObjective,
    Objective,
    document_weights_of,
    labels_of,
    query_weights_of,
    require_labels,
)


class Points:
    """The labelled documents of some data in the canonical order, with their weights d_i u_q."""

    def __init__(self, data: RankingData, source: str, who: Objective) -> None:
        labels = labels_of(data, source, who).astype(np.float64)
        require_labels(labels, source, who)
        labelled = ~np.isnan(labels)
        queries = np.repeat(query_weights_of(data), data.query_sizes)
        self.n, self.rows, self.labels = len(data), data.canonical_order[labelled], labels[labelled]
        self.weights = (document_weights_of(data) * queries)[labelled]
        if not (self.weights > 0).any() and not who.checked:
            raise DataError("all weights of labelled documents are 0: there is nothing to train on")

    def document_weights(self) -> Floats | None:
        """How often each row counts in splits of least squares; None where no weight differs from 1."""
        return None if (self.weights == 1.0).all() else self.by_row(self.weights)

    def mean(self, values: Floats, weights: Floats) -> float:
        """A weighted mean that does not depend on the order of rows."""
        return math.fsum(values * weights) / (math.fsum(weights) or 1.0)

    def by_row(self, values: Floats) -> Floats:
        """An array for all rows, 0 for those without a label."""
        result = np.zeros((*values.shape[:-1], self.n))
        result[..., self.rows] = values
        return result


class BoundPoints(BoundObjective):
    """A loss of single documents on some data."""

    changes = False

    def __init__(self, points: Points) -> None:
        self.points, self.document_weights = points, points.document_weights()

    def facts(self) -> Any:
        """Whether documents have weights, and what the loss asks for."""
        return Max(self.document_weights is not None), self.facts_of_points()

    def set_facts(self, facts: Any) -> None:
        """As of all data."""
        has_weights, of_points = facts
        if has_weights and self.document_weights is None:
            self.document_weights = self.points.by_row(self.points.weights)
        self.set_facts_of_points(of_points)

    def facts_of_points(self) -> Any:
        """What the loss asks for of all data."""
        return None

    def set_facts_of_points(self, facts: Any) -> None:
        """Take it over."""
