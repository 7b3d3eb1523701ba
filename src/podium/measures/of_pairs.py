"""What measures of pairs of documents have in common: which pairs are in the right order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Floats, Ints
from podium.core.compiling import kernel
from podium.measures.base import Measure
from podium.measures.ranking import Ranking, for_queries


@dataclass(frozen=True)
class OfPairs(Measure):
    """A measure of pairs with different labels; documents without a label take no part."""

    has_cutoff: ClassVar[bool] = False

    def prepared(self, labels: NDArray[Any]) -> Floats:
        """As they are: documents without a label take no part."""
        return np.asarray(labels, np.float64)

    def is_empty(self, labels: Floats) -> bool:
        """Whether no two labels differ."""
        return len(np.unique(labels[~np.isnan(labels)])) < 2

    def pair_counts(self, ranking: Ranking, by_score: bool) -> Floats:
        """For each query: pairs in right order, in wrong order, tied in labels alone, tied in scores alone."""
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
    """For each query the pairs in right order, in wrong order, tied in labels alone, tied in scores alone.

    NaN labels take no part. `by_score`: equal scores are ties; otherwise the ranks decide.
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
