"""What measures of ranked lists that share compiled code have in common: sums over ranks, divided by norms."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Bools, Floats, Ints
from podium.measures.base import Measure
from podium.measures.ranking import Ranking, for_queries

if TYPE_CHECKING:
    from podium.data import RankingData


class ListSums(NamedTuple):
    """What a measure knows of some data before it is ranked.

    Attributes:
        values: for each document, query after query: its gain, its bonus, or the probability that it stops the user.
        depth: the ranks that count.
        fill: `fill(values, scores, offsets, sums)` writes the sum of each query, with values and scores by rank. Beyond
            the depth it looks only at documents that are tied with the last one above it, if ties are expected.
        norms: what the sum of each query is divided by.
        is_empty: whether a query has no relevant document.

    """

    values: Floats
    depth: int
    fill: Callable[[Floats, Floats, Ints, Floats], None]
    norms: Floats
    is_empty: Bools


@dataclass(frozen=True)
class OfLists(Measure):
    """A sum over the ranks of each query, in compiled code, divided by a norm."""

    knows_expected_ties: ClassVar[bool] = True
    knows_retrieved: ClassVar[bool] = True

    @abstractmethod
    def list_sums(self, labels: NDArray[Any], data: RankingData, sizes: Ints) -> ListSums:
        """What is known before the documents are ranked.

        Args:
            labels: of all documents, query after query, in any order within a query.
            data: the documents.
            sizes: how many documents of each query have a rank.

        """

    def prepared(self, labels: NDArray[Any]) -> Floats:
        """Return labels as they are: the gain of a missing label is 0, which that of a label 0 need not be."""
        return np.asarray(labels, np.float64)

    def values(self, ranking: Ranking) -> Floats:
        """One value for each query."""
        ranking = ranking.for_ties(self.ties)
        known = self.list_sums(self.labels_in(ranking.data, ranking.order), ranking.data, ranking.ranked_sizes)
        values = known.values if ranking.retrieved is None else known.values * ranking.ranked_retrieved
        scores, sums = ranking.ranked_scores, np.empty(ranking.data.n_queries)
        for_queries(ranking.data.offsets, lambda offsets, q: known.fill(values, scores, offsets, sums[q]))
        return self.values_of_sums(known, sums)

    def values_of_sums(self, known: ListSums, sums: Floats) -> Floats:
        """Divide by the norms; an empty query has the value that `empty` says."""
        return self._with_empties(sums / known.norms, known.is_empty)


def without_values(values: Floats, offsets: Ints) -> Bools:
    """Whether a query has no document with a value above 0."""
    if len(offsets) < 2:
        return np.empty(0, bool)
    is_empty: Bools = np.maximum.reduceat(values, offsets[:-1]) <= 0
    return is_empty
