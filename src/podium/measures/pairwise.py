"""Measures of pairs: how often the better document stands above the worse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from podium.errors import DataError
from podium.measures.base import Empty, Measure, register
from podium.measures.ranking import Ranking, for_queries

if TYPE_CHECKING:
    from podium.data import RankingData

Floats = NDArray[np.float64]


def _counts(measure: Measure, ranking: Ranking, by_score: bool) -> Floats:
    """For each query: pairs in right order, in wrong order, tied in labels alone, tied in scores alone."""
    from podium.measures import kernels

    data = ranking.data
    labels = ranking.labels(measure.labels).astype(np.float64)
    scores, counts = ranking.ranked_scores, np.empty((data.n_queries, 4))
    for_queries(
        data.offsets,
        lambda offsets, q: kernels.pair_counts(labels, scores, offsets, by_score, counts[q]),
        smallest=1,
    )
    return counts


@dataclass(frozen=True)
class _OfPairs(Measure):
    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cutoff is not None:
            raise DataError(f"{self._word()} looks at all pairs; it has no cutoff")

    def prepared(self, labels: NDArray[Any]) -> Floats:
        """As they are: documents without a label take no part."""
        return np.asarray(labels, np.float64)

    def is_empty(self, labels: Floats) -> bool:
        """Whether no two labels differ."""
        return len(np.unique(labels[~np.isnan(labels)])) < 2


@register
@dataclass(frozen=True)
class PairwiseAccuracy(_OfPairs):
    """The share of the pairs with different labels that stand in the right order.

    Documents without a label take no part; a query without such a pair is empty.
    """

    name: ClassVar[str] = "accuracy"

    def value(self, labels: Floats) -> float:
        """The share of one ranked list."""
        labels = labels[~np.isnan(labels)]
        above, below = labels[:, None], labels[None, :]
        pairs = np.triu(np.ones((len(labels), len(labels)), bool), 1)
        return float((pairs & (above > below)).sum() / (pairs & (above != below)).sum())

    def values(self, ranking: Ranking) -> Floats:
        """One value for each query."""
        self.refuse_unretrieved(ranking)
        right, wrong, _, _ = _counts(self, ranking, by_score=False).T
        pairs = right + wrong
        return self._with_empties(right / np.maximum(pairs, 1.0), pairs == 0)

    def swaps(self, labels: NDArray[Any], first: int = 0, last: int | None = None) -> Floats:
        """The change of the share; see `Measure.swaps`.

        Only pairs with the documents between i and j, and the pair itself, change: with sgn(a, b) = 1, 0, −1 for a
        above, equal to, below b, by Σ_{i<k<j} (sgn(l_j, l_k) − sgn(l_i, l_k)) + sgn(l_j, l_i) pairs.
        """
        from podium.measures import kernels

        labels = self.prepared(labels)
        rows = np.zeros(((len(labels) if last is None else last) - first, len(labels)))
        known, counts = np.unique(labels[~np.isnan(labels)], return_counts=True)
        pairs = (counts.sum() ** 2 - (counts**2).sum()) / 2
        if len(known) > 1:
            kernels.accuracy_swaps(labels, float(pairs), first, rows)
        return rows


@register
@dataclass(frozen=True)
class PreferenceAccuracy(_OfPairs):
    """The share of the data's preferences that stand in the right order, each counting |2P̄ − 1| times ([B] §2).

    P̄ is the measured share of judges who put i above j: a pair on which they are divided counts nothing, one on which
    they agree once. A pair with equal scores is half right. Contradictory pairs are allowed, so 1 may be out of reach.
    Labels play no part. A query without pairs is left out, unless `empty` says otherwise.
    """

    empty: Empty = "skip"

    name: ClassVar[str] = "preferences"
    has_swaps: ClassVar[bool] = False

    def value(self, labels: Floats) -> float:
        """A list of labels has no preferences."""
        raise DataError("preferences are pairs of the data, not a list of labels")

    def is_defined_on(self, data: RankingData) -> bool:
        """Whether there are pairs."""
        return data.preferences is not None and len(data.preferences.i) > 0

    def values(self, ranking: Ranking) -> Floats:
        """One value for each query."""
        self.refuse_unretrieved(ranking)
        data = ranking.data
        if data.preferences is None:
            raise DataError("the data has no preferences: RankingData(…, preferences=(i, j, probability))")
        pairs, scores = data.preferences, ranking.scores
        surplus = 2.0 * pairs.probability.astype(np.float64) - 1.0
        right = 0.5 * (1.0 + np.sign(surplus) * np.sign(scores[pairs.i] - scores[pairs.j]))
        query = np.empty(len(data), np.int64)
        query[data.order] = np.repeat(np.arange(data.n_queries), data.query_sizes)
        order = np.lexsort((right, np.abs(surplus), query[pairs.i]))  # sums do not depend on the order of the pairs
        weights, of_query = np.abs(surplus)[order], query[pairs.i][order]
        whole = np.bincount(of_query, weights, data.n_queries)
        shares = np.bincount(of_query, weights * right[order], data.n_queries) / np.where(whole > 0, whole, 1.0)
        return self._with_empties(shares, whole <= 0)


@register
@dataclass(frozen=True)
class KendallTau(_OfPairs):
    """Kendall's τ_b between labels and scores: (C − D) / √((C + D + T_l)(C + D + T_s)), ties counted out.

    C and D are the pairs in the same and in opposite order, T_l those tied in labels alone, T_s in scores
    alone. A query in which all labels, or all scores, are equal is empty. It cannot be trained on: with ties
    in scores it is no function of the ranks.
    """

    name: ClassVar[str] = "tau"
    has_swaps: ClassVar[bool] = False
    knows_retrieved: ClassVar[bool] = True  # what was not returned is tied at the bottom

    def value(self, labels: Floats) -> float:
        """τ_b of one ranked list without ties in scores."""
        labels = labels[~np.isnan(labels)]
        order = np.sign(labels[:, None] - labels[None, :])[np.triu_indices(len(labels), 1)]
        differ = np.abs(order).sum()
        return float(order.sum() / np.sqrt(differ * len(order)))

    def values(self, ranking: Ranking) -> Floats:
        """One value for each query."""
        right, wrong, equal_labels, equal_scores = _counts(self, ranking, by_score=True).T
        square = (right + wrong + equal_labels) * (right + wrong + equal_scores)
        return self._with_empties((right - wrong) / np.sqrt(np.maximum(square, 1.0)), square == 0)
