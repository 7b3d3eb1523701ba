"""The documents of all queries by rank, brought up to date from round to round."""

from __future__ import annotations

from typing import Any

import numpy as np

from podium.core.array_types import Floats, Int, Int32s, Ints
from podium.core.compiling import kernel
from podium.data import RankingData
from podium.errors import DataError
from podium.measures.bound import rank_again
from podium.measures.ranking import for_queries


class RankedDocuments:
    """Which document has which rank; equal scores stand in the canonical order.

    Args:
        data: the documents.
        depth: the ranks that matter; all by default.

    Attributes:
        places: by rank, query by query, the document's number in the canonical order of its query.

    """

    def __init__(self, data: RankingData, depth: int | None = None) -> None:
        longest = int(data.query_sizes.max(initial=1))
        self.data, self.depth = data, longest if depth is None else min(depth, longest)
        self.places = (np.arange(len(data)) - np.repeat(data.offsets[:-1], data.query_sizes)).astype(np.int32)
        self._scores, self._all = np.zeros(len(data)), np.ones(data.n_queries, bool)

    def update(self, scores: Floats) -> None:
        """Rank by these scores."""
        data, known = self.data, []

        def work(offsets: Ints, queries: slice) -> None:
            order, counts = data.canonical_order, self._all[queries]
            known.append(rank_again(scores, order, offsets, counts, self.depth, self.places, self._scores))

        for_queries(data.offsets, work)
        if not all(known):
            raise DataError("a score is NaN: there are no ranks")


@kernel
def count_classes(places: Int32s, classes: Ints, offsets: Ints, depth: Int, counts: Ints) -> Any:
    """Count the documents of each class among the first of each query; how many documents these are in all."""
    total = 0
    for q in range(len(offsets) - 1):
        start, end = offsets[q], min(offsets[q] + depth, offsets[q + 1])
        total += end - start
        for k in range(start, end):
            kind = classes[start + places[k]]
            if kind >= 0:
                counts[kind] += 1
    return total


@kernel
def count_changes(before: Int32s, now: Int32s, offsets: Ints, depth: Int, changed: Ints, top_changed: Ints) -> None:
    """For each query how many ranks, and how many of the first, have another document; `before` becomes `now`."""
    for q in range(len(offsets) - 1):
        start, n_changed, n_top = offsets[q], 0, 0
        for k in range(start, offsets[q + 1]):
            if before[k] != now[k]:
                n_changed += 1
                if k < start + depth:
                    n_top += 1
                before[k] = now[k]
        changed[q], top_changed[q] = n_changed, n_top
