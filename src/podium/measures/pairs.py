"""Measures of pairs of documents: Kendall's τ, and the shares of pairs and preferences in the right order."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Floats, Int, Ints
from podium.core.compiling import helper, kernel
from podium.errors import DataError
from podium.measures.base import Empty, Example, Measure, zero_swaps
from podium.measures.ranking import Ranking, for_queries
from podium.measures.registry import register

if TYPE_CHECKING:
    from podium.data import RankingData


@dataclass(frozen=True)
class PairMeasure(Measure):
    """A measure of pairs with different labels, which ignores unlabelled documents."""

    has_cutoff: ClassVar[bool] = False

    def prepared(self, labels: NDArray[Any]) -> Floats:
        """Return labels unchanged, because unlabelled documents are ignored."""
        return np.asarray(labels, np.float64)

    def is_empty(self, labels: Floats) -> bool:
        return len(np.unique(labels[~np.isnan(labels)])) < 2

    def pair_counts(self, ranking: Ranking, by_score: bool) -> Floats:
        """Return the number of concordant and discordant pairs, and those tied in labels or scores only, by query."""
        labels = ranking.labels(self.labels).astype(np.float64)
        scores, counts = ranking.ranked_scores, np.empty((ranking.data.n_queries, 4))
        sizes = ranking.data.query_sizes.astype(np.float64)
        for_queries(
            ranking.data.offsets,
            lambda offsets, q: count_pairs(labels, scores, offsets, by_score, counts[q]),
            smallest=1,
            amount=float(sizes @ sizes) / 2,
        )
        return counts


@kernel
def count_pairs(labels: Floats, scores: Floats, offsets: Ints, by_score: bool, counts: Floats) -> None:
    """Count concordant and discordant pairs, and those tied in labels or scores only, for each query.

    NaN labels are ignored. With `by_score`, equal scores are ties; otherwise ranks break them.
    """
    for q in range(len(offsets) - 1):
        right, wrong, equal_labels, equal_scores = 0.0, 0.0, 0.0, 0.0
        for i in range(offsets[q], offsets[q + 1]):
            for j in range(i + 1, offsets[q + 1]):
                if np.isnan(labels[i]) or np.isnan(labels[j]):
                    continue
                tied = by_score and scores[i] == scores[j]
                if labels[i] == labels[j]:
                    equal_labels += not tied
                elif tied:
                    equal_scores += 1.0
                elif labels[i] > labels[j]:
                    right += 1.0
                else:
                    wrong += 1.0
        counts[q, 0], counts[q, 1], counts[q, 2], counts[q, 3] = right, wrong, equal_labels, equal_scores


@register
@dataclass(frozen=True)
class KendallTau(PairMeasure):
    """Kendall's τ_b between labels and scores: (C − D) / √((C + D + T_l)(C + D + T_s)), corrected for ties.

    C and D are the numbers of concordant and discordant pairs, T_l of those tied in labels only, T_s in scores only. A
    query in which all labels, or all scores, are equal is empty. It cannot be trained on, because with ties in scores
    it is not a function of ranks.

    Example:
        >>> import numpy as np
        >>> from podium.measures import KendallTau
        >>> KendallTau().value(np.array([2.0, 0.0, 1.0]))
        0.3333333333333333

    """

    name: ClassVar[str] = "tau"
    examples: ClassVar[tuple[Example, ...]] = (Example("tau", (2, 1, 0), 1.0), Example("tau", (0, 1, 2), -1.0))
    has_swaps: ClassVar[bool] = False
    knows_retrieved: ClassVar[bool] = True  # documents that were not returned are tied at the bottom

    def value(self, labels: Floats) -> float:
        """Return τ_b of one ranked list without ties in scores."""
        labels = labels[~np.isnan(labels)]
        order = np.sign(labels[:, None] - labels[None, :])[np.triu_indices(len(labels), 1)]
        differ = np.abs(order).sum()
        return float(order.sum() / np.sqrt(differ * len(order)))

    def values(self, ranking: Ranking) -> Floats:
        right, wrong, equal_labels, equal_scores = self.pair_counts(ranking, by_score=True).T
        square = (right + wrong + equal_labels) * (right + wrong + equal_scores)
        return self._with_empties((right - wrong) / np.sqrt(np.maximum(square, 1.0)), square == 0)


@register
@dataclass(frozen=True)
class PairwiseAccuracy(PairMeasure):
    """The share of the pairs with different labels that are in the right order.

    Unlabelled documents are ignored, and a query without such a pair is empty. With expected ties, a pair of equal
    scores counts half.

    Example:
        >>> from podium.measures import PairwiseAccuracy
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
        labels = labels[~np.isnan(labels)]
        above, below = labels[:, None], labels[None, :]
        pairs = np.triu(np.ones((len(labels), len(labels)), bool), 1)
        return float((pairs & (above > below)).sum() / (pairs & (above != below)).sum())

    def values(self, ranking: Ranking) -> Floats:
        self.refuse_unretrieved(ranking, self.sources(ranking.data))
        right, wrong, _, tied = self.pair_counts(ranking.for_ties(self.ties), self.ties == "expected").T
        pairs = right + wrong + tied
        return self._with_empties((right + tied / 2) / np.maximum(pairs, 1.0), pairs == 0)

    def swaps(self, labels: NDArray[Any], first: int = 0, last: int | None = None) -> Floats:
        """Return the change of the share; see `Measure.swaps`.

        Only pairs with the documents between i and j, and the pair itself, change. With sgn(a, b) = 1, 0, −1 for a
        above, equal to, below b, they change by Σ_{i<k<j} (sgn(l_j, l_k) − sgn(l_i, l_k)) + sgn(l_j, l_i) pairs.
        """
        labels = self.prepared(labels)
        rows = zero_swaps(len(labels), first, last)
        levels, counts = np.unique(labels[~np.isnan(labels)], return_counts=True)
        pairs = (counts.sum() ** 2 - (counts**2).sum()) / 2
        if len(levels) > 1:
            accuracy_swaps(labels, float(pairs), first, rows)
        return rows


@helper
def _sign(a: float, b: float) -> float:
    """Return 1, 0 or −1 if a is above, equal to or below b; 0 if one is NaN."""
    return 1.0 if a > b else (-1.0 if a < b else 0.0)


@kernel
def accuracy_swaps(labels: Floats, pairs: float, first: Int, rows: Floats) -> None:
    """Compute changes of the share of pairs in the right order."""
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


@register
@dataclass(frozen=True)
class PreferenceAccuracy(PairMeasure):
    """The share of the data's preferences that are in the right order, weighted by |2P̄ − 1| ([B] §2).

    P̄ is the share of judges who prefer i to j. A pair on which they are evenly divided has weight 0, one on which they
    agree weight 1, times the weight of the pair in the data. A pair with equal scores counts half. Pairs may contradict
    each other, so 1 may be out of reach. Labels are ignored. A query without pairs is skipped, unless `empty` says
    otherwise.

    Example:
        >>> import podium
        >>> from podium.measures import PreferenceAccuracy, Ranking
        >>> pairs = ([0, 1], [1, 2], [1.0, 0.75])  # 0 above 1 by all judges, 1 above 2 by three of four
        >>> data = podium.RankingData([[0.0], [1.0], [2.0]], qid=["a", "a", "a"], preferences=pairs)
        >>> round(PreferenceAccuracy().mean(Ranking(data, [3, 1, 2])), 4)
        0.6667

    """

    empty: Empty = "skip"

    name: ClassVar[str] = "preferences"
    has_swaps: ClassVar[bool] = False

    def value(self, labels: Floats) -> float:
        """Raise, because preferences cannot be computed from labels."""
        raise DataError("preferences are pairs of rows, so the measure cannot be computed from labels by rank")

    def is_defined_on(self, data: RankingData) -> bool:
        return data.preferences is not None and len(data.preferences.i) > 0

    def values(self, ranking: Ranking) -> Floats:
        self.refuse_unretrieved(ranking, ())
        data = ranking.data
        if data.preferences is None:
            raise DataError("the data has no preferences: pass RankingData(…, preferences=(i, j, probability))")
        pairs, scores = data.preferences, ranking.scores
        surplus = 2.0 * pairs.probability.astype(np.float64) - 1.0
        right = 0.5 * (1.0 + np.sign(surplus) * np.sign(scores[pairs.i] - scores[pairs.j]))
        query = data.query_of_row
        counts = pairs.weights * np.abs(surplus)
        order = np.lexsort((right, counts, query[pairs.i]))  # so that sums do not depend on the order of pairs
        weights, of_query = counts[order], query[pairs.i][order]
        totals = np.bincount(of_query, weights, data.n_queries)
        shares = np.bincount(of_query, weights * right[order], data.n_queries) / np.where(totals > 0, totals, 1.0)
        return self._with_empties(shares, totals <= 0)
