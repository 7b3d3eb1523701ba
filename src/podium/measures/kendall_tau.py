"""Kendall's rank correlation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from podium.core.array_types import Floats
from podium.measures.base import Example
from podium.measures.of_pairs import OfPairs
from podium.measures.ranking import Ranking
from podium.measures.registry import register


@register
@dataclass(frozen=True)
class KendallTau(OfPairs):
    """Kendall's τ_b between labels and scores: (C − D) / √((C + D + T_l)(C + D + T_s)), ties counted out.

    C and D are the pairs in the same and in opposite order, T_l those tied in labels alone, T_s in scores
    alone. A query in which all labels, or all scores, are equal is empty. It cannot be trained on: with ties
    in scores it is no function of the ranks.

    Example:
        >>> import numpy as np
        >>> from podium import KendallTau
        >>> KendallTau().value(np.array([2.0, 0.0, 1.0]))
        0.3333333333333333

    """

    name: ClassVar[str] = "tau"
    examples: ClassVar[tuple[Example, ...]] = (
        Example("tau", (2, 1, 0), 1.0),
        Example("tau", (0, 1, 2), -1.0),
    )
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
        right, wrong, equal_labels, equal_scores = self.pair_counts(ranking, by_score=True).T
        square = (right + wrong + equal_labels) * (right + wrong + equal_scores)
        return self._with_empties((right - wrong) / np.sqrt(np.maximum(square, 1.0)), square == 0)
