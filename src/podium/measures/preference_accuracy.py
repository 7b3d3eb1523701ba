"""The share of preferences that are in the right order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from podium.core.array_types import Floats
from podium.errors import DataError
from podium.measures.base import Empty
from podium.measures.of_pairs import OfPairs
from podium.measures.ranking import Ranking
from podium.measures.registry import register

if TYPE_CHECKING:
    from podium.data import RankingData


@register
@dataclass(frozen=True)
class PreferenceAccuracy(OfPairs):
    """The share of the data's preferences that are in the right order, each counting |2P̄ − 1| times ([B] §2).

    P̄ is the measured share of judges who put i above j: a pair on which they are divided counts nothing, one on which
    they agree once. A pair with equal scores is half right. Contradictory pairs are allowed, so 1 may be out of reach.
    Labels play no part. A query without pairs is left out, unless `empty` says otherwise.

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
        query = data.query_of_row
        order = np.lexsort((right, np.abs(surplus), query[pairs.i]))  # sums do not depend on the order of the pairs
        weights, of_query = np.abs(surplus)[order], query[pairs.i][order]
        totals = np.bincount(of_query, weights, data.n_queries)
        shares = np.bincount(of_query, weights * right[order], data.n_queries) / np.where(totals > 0, totals, 1.0)
        return self._with_empties(shares, totals <= 0)
