"""α-NDCG: what a ranking adds to what was seen above, subtopic by subtopic."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np

from podium.core.array_types import Floats
from podium.core.validation import require_number
from podium.measures.base import Example
from podium.measures.binary import Binary
from podium.measures.registry import register
from podium.measures.subtopics import OfSubtopics


@register
@dataclass(frozen=True)
class AlphaNDCG(OfSubtopics, Binary):
    """α-DCG@T = Σ_{r≤T} Σ_t rel_t(r) (1 − α)^{c_t(r)} / log2(1 + r), divided by that of a greedy ideal order.

    c_t(r) is the number of documents above r that are relevant to the subtopic t: what was seen before is worth less.
    Clarke, Kolla, Cormack, Vechtomova, Ashkan, Büttcher and MacKinnon, SIGIR 2008. The best order is hard to find; as
    they do, the ideal one takes at each rank the document that adds most, of equal ones the one whose subtopics come
    first by name.

    Args:
        alpha: how much a repetition loses; 0 is a DCG of the number of subtopics.

    Example:
        >>> import numpy as np
        >>> from podium import AlphaNDCG
        >>> redundant, diverse = np.array([[1, 0], [1, 0], [0, 1]]), np.array([[1, 0], [0, 1], [1, 0]])
        >>> round(AlphaNDCG(2).value(redundant), 3), AlphaNDCG(2).value(diverse)
        (0.807, 1.0)

    """

    _: KW_ONLY
    alpha: float = 0.5

    name: ClassVar[str] = "alpha_ndcg"
    knows_retrieved: ClassVar[bool] = True
    examples: ClassVar[tuple[Example, ...]] = (
        Example("alpha_ndcg", (0, 1, 1), (1 / math.log2(3) + 1 / 4) / (1 + 0.5 / math.log2(3))),
        Example("alpha_ndcg(alpha=0)@2", (0, 3, 0), 1 / math.log2(3)),
        Example("alpha_ndcg(alpha=1)", (0, 1, 1), 1 / math.log2(3)),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require_number("alpha", self.alpha, least=0, most=1)

    def value(self, labels: Floats) -> float:
        """From the labels of one query in rank order, a column for each subtopic."""
        return self._value_of_run(labels, len(labels))

    def _value_of_run(self, labels: Floats, n_ranked: int) -> float:
        """Documents that a run did not return count in the ideal order alone."""
        relevant = self.relevant(self.prepared(labels))
        return self._dcg(relevant[:n_ranked]) / self._dcg(relevant[self._ideal_order(relevant)])

    def _dcg(self, relevant: Floats) -> float:
        seen = np.cumsum(relevant, axis=0) - relevant
        gains = (relevant * (1.0 - self.alpha) ** seen).sum(axis=1)[: self.cutoff]
        return float(np.sum(gains / np.log2(2.0 + np.arange(len(gains)))))

    def _ideal_order(self, relevant: Floats) -> list[int]:
        """At each rank the document that adds most to those above; the same in any order of the rows."""
        documents = np.lexsort(-relevant.T[::-1]).tolist()
        worth = np.ones(relevant.shape[1])
        order: list[int] = []
        while documents and len(order) < (self.cutoff or len(relevant)):
            best = documents.pop(int(np.argmax(relevant[documents] @ worth)))
            worth = np.where(relevant[best] > 0, worth * (1.0 - self.alpha), worth)
            order.append(best)
        return order
