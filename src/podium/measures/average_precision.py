"""Average precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from podium.measures.base import register
from podium.measures.discounted import Binary
from podium.measures.ranking import Ranking, for_queries

Floats = NDArray[np.float64]


@register
@dataclass(frozen=True)
class AP(Binary):
    """Average precision: the mean over the relevant documents of the precision at their ranks (mean: MAP).

    AP@T = (1/R) Σ_{r≤T} rel_r · c_r / r, c_r of the R relevant documents among the first r. ([B] §3.)
    """

    name: ClassVar[str] = "ap"
    knows_expected_ties: ClassVar[bool] = True
    knows_retrieved: ClassVar[bool] = True

    def value(self, labels: Floats) -> float:
        """AP of one ranked list."""
        relevant = self.relevant(labels)
        precision = np.cumsum(relevant) / np.arange(1, len(relevant) + 1)
        return float(np.sum((relevant * precision)[: self.cutoff]) / relevant.sum())

    def values(self, ranking: Ranking) -> Floats:
        """One value for each query."""
        from podium.measures import kernels

        data = ranking.data
        relevant = self.relevant(ranking.labels(self.labels))
        depth = data.n_documents if self.cutoff is None else self.cutoff
        lists = (relevant, ranking.ranked_retrieved, ranking.ranked_scores)
        expected = self.ties == "expected"
        result = np.empty(data.n_queries)
        for_queries(
            data.offsets,
            lambda offsets, q: kernels.average_precision(*lists, offsets, depth, expected, result[q]),
        )
        highest = np.maximum.reduceat(relevant, data.offsets[:-1]) if data.n_queries else np.empty(0)
        return self._with_empties(result, highest <= 0)

    def swaps(self, labels: NDArray[Any], first: int = 0, last: int | None = None) -> Floats:
        """ΔAP; see `Measure.swaps`."""
        from podium.measures import kernels

        relevant = self.relevant(labels)
        rows = np.zeros(((len(relevant) if last is None else last) - first, len(relevant)))
        if relevant.any():
            depth = len(relevant) if self.cutoff is None else self.cutoff
            kernels.average_precision_swaps(relevant, depth, first, rows)
        return rows
