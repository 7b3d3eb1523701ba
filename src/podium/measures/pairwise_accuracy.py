"""The share of pairs in the right order."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Floats, Int
from podium.core.compiling import helper, kernel
from podium.measures.base import Example
from podium.measures.of_pairs import OfPairs
from podium.measures.ranking import Ranking
from podium.measures.registry import register


@register
@dataclass(frozen=True)
class PairwiseAccuracy(OfPairs):
    """The share of the pairs with different labels that are in the right order.

    Documents without a label take no part; a query without such a pair is empty. With expected ties, a pair of equal
    scores counts half.

    Example:
        >>> from podium import PairwiseAccuracy
        >>> PairwiseAccuracy().swaps([1, 0, 2])[0].round(3).tolist()
        [0.0, -0.333, 0.333]

    """

    name: ClassVar[str] = "accuracy"
    knows_expected_ties: ClassVar[bool] = True
    examples: ClassVar[tuple[Example, ...]] = (
        Example("accuracy", (1, 0, 2), 1 / 3),
        Example("accuracy", (1, 0, 2), 1 / 2, scores=(1, 1, 1)),
        Example("accuracy", (math.nan, 1, 0), 1.0),
    )

    def value(self, labels: Floats) -> float:
        """The share of one ranked list."""
        labels = labels[~np.isnan(labels)]
        above, below = labels[:, None], labels[None, :]
        pairs = np.triu(np.ones((len(labels), len(labels)), bool), 1)
        return float((pairs & (above > below)).sum() / (pairs & (above != below)).sum())

    def values(self, ranking: Ranking) -> Floats:
        """One value for each query."""
        self.refuse_unretrieved(ranking)
        right, wrong, _, tied = self.pair_counts(ranking.for_ties(self.ties), self.ties == "expected").T
        pairs = right + wrong + tied
        return self._with_empties((right + tied / 2) / np.maximum(pairs, 1.0), pairs == 0)

    def swaps(self, labels: NDArray[Any], first: int = 0, last: int | None = None) -> Floats:
        """The change of the share; see `Measure.swaps`.

        Only pairs with the documents between i and j, and the pair itself, change: with sgn(a, b) = 1, 0, −1 for a
        above, equal to, below b, by Σ_{i<k<j} (sgn(l_j, l_k) − sgn(l_i, l_k)) + sgn(l_j, l_i) pairs.
        """
        labels = self.prepared(labels)
        rows = np.zeros(((len(labels) if last is None else last) - first, len(labels)))
        levels, counts = np.unique(labels[~np.isnan(labels)], return_counts=True)
        pairs = (counts.sum() ** 2 - (counts**2).sum()) / 2
        if len(levels) > 1:
            accuracy_swaps(labels, float(pairs), first, rows)
        return rows


@helper
def _sign(a: float, b: float) -> float:
    """1, 0 or −1 as a is above, equal to or below b; 0 where one is NaN."""
    return 1.0 if a > b else (-1.0 if a < b else 0.0)


@kernel
def accuracy_swaps(labels: Floats, pairs: float, first: Int, rows: Floats) -> None:
    """Changes of the share of pairs in the right order."""
    n = len(labels)
    before = np.zeros(n)  # Σ_{k≤i} sgn(l_j, l_k), and below Σ_{k<j}, for each j
    above = np.zeros(n)
    for j in range(n):
        for k in range(j):
            above[j] += _sign(labels[j], labels[k])
            if k < first:
                before[j] += _sign(labels[j], labels[k])
    for row in range(rows.shape[0]):
        i = first + row
        between = 0.0  # Σ_{i<k<j} sgn(l_i, l_k)
        for j in range(i + 1, n):
            before[j] += _sign(labels[j], labels[i])
            change = above[j] - before[j] - between + _sign(labels[j], labels[i])
            rows[row, j] = change / pairs
            between += _sign(labels[i], labels[j])
