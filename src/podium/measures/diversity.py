"""Measures of diversity, with a label source for each subtopic of a query: α-NDCG and ERR-IA."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Floats, Ints
from podium.core.validation import require_number
from podium.errors import DataError
from podium.measures.base import Example, Measure
from podium.measures.binary import Binary
from podium.measures.cascade import ERR, max_label_of
from podium.measures.gains import highest_label
from podium.measures.ranking import Ranking
from podium.measures.registry import register

if TYPE_CHECKING:
    from podium.data import RankingData


@dataclass(frozen=True)
class SubtopicMeasure(Measure):
    """A measure of documents that are relevant to some of a query's subtopics.

    Each subtopic has a label source, whose name is `labels`, an underscore and any name: `subtopic_1`, `subtopic_2`.
    A query only has the subtopics that one of its documents is relevant to, so queries may share sources. A source
    whose name is just `labels` is also a subtopic.

    Args:
        labels: the prefix of the sources' names.

    """

    _: KW_ONLY
    labels: str = "subtopic"

    has_swaps: ClassVar[bool] = False  # with several labels, neither document of a pair need be the better one

    def _subtopics(self, data: RankingData) -> list[str]:
        return sorted(s for s in data.labels if s == self.labels or s.startswith(f"{self.labels}_"))

    def sources(self, data: RankingData) -> list[str]:
        """Return the sources of the subtopics, sorted by name."""
        sources = self._subtopics(data)
        if not sources:
            names = ", ".join(map(repr, data.labels)) or "none"
            raise DataError(
                f"{self} needs a label source for each subtopic, named {self.labels}_1, {self.labels}_2, …, but the "
                f"data has {names}: pass RankingData(…, labels={{'{self.labels}_1': …}})"
            )
        return sources

    def is_defined_on(self, data: RankingData) -> bool:
        return any(bool((data.labels[source] > 0).any()) for source in self._subtopics(data))

    def labels_in(self, data: RankingData, order: Ints) -> NDArray[Any]:
        """Return a column for each subtopic, in an order of the rows."""
        return np.column_stack([data.labels[source][order] for source in self.sources(data)])

    def prepared(self, labels: NDArray[Any]) -> Floats:
        """Return a row for each document, a column for each subtopic."""
        columns = np.asarray(labels, np.float64)
        return columns.reshape(len(columns), 1) if columns.ndim == 1 else columns


@register
@dataclass(frozen=True)
class AlphaNDCG(SubtopicMeasure, Binary):
    """α-DCG@T = Σ_{r≤T} Σ_t rel_t(r) (1 − α)^{c_t(r)} / log2(1 + r), divided by that of a greedy ideal order.

    c_t(r) is the number of documents above r that are relevant to the subtopic t, so redundant documents are worth
    less. Clarke, Kolla, Cormack, Vechtomova, Ashkan, Büttcher and MacKinnon, SIGIR 2008. The best order is hard to
    compute. Like theirs, the ideal order greedily takes the document that adds most, and of ties the one whose
    subtopics come first by name.

    Args:
        alpha: the penalty of a repetition; 0 gives the DCG of the number of subtopics.

    Example:
        >>> import numpy as np
        >>> from podium.measures import AlphaNDCG
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
        """Return the value of one query, from labels by rank with a column for each subtopic."""
        return self._value_of_run(labels, len(labels))

    def _value_of_run(self, labels: Floats, n_ranked: int) -> float:
        """Return the value of one query; documents that a run did not return only count in the ideal order."""
        relevant = self.relevant(self.prepared(labels))
        return self._dcg(relevant[:n_ranked]) / self._dcg(relevant[self._ideal_order(relevant)])

    def _dcg(self, relevant: Floats) -> float:
        seen = np.cumsum(relevant, axis=0) - relevant
        gains = (relevant * (1.0 - self.alpha) ** seen).sum(axis=1)[: self.cutoff]
        return float(np.sum(gains / np.log2(2.0 + np.arange(len(gains)))))

    def _ideal_order(self, relevant: Floats) -> list[int]:
        """Return the greedy order of documents, independent of the order of the rows."""
        documents = np.lexsort(-relevant.T[::-1]).tolist()
        weights = np.ones(relevant.shape[1])  # of the subtopics; each repetition reduces one
        order: list[int] = []
        while documents and len(order) < (self.cutoff or len(relevant)):
            best = documents.pop(int(np.argmax(relevant[documents] @ weights)))
            weights = np.where(relevant[best] > 0, weights * (1.0 - self.alpha), weights)
            order.append(best)
        return order


@register
@dataclass(frozen=True)
class ERRIA(SubtopicMeasure):
    """The mean of ERR over a query's subtopics, which are equally likely and have their own labels.

    Chapelle, Ji, Liao, Velipasaoglu, Lai and Wu, Information Retrieval 14, 2011. Users differ in their intent, and each
    stops at a document that satisfies it.

    Args:
        max_label: l_max of ERR; None for the highest label of all subtopics.

    Example:
        >>> import numpy as np
        >>> from podium.measures import ERRIA
        >>> ERRIA(max_label=1).value(np.array([[1, 0], [0, 1]]))  # half a user each: (1/2 + 1/4) / 2
        0.375

    """

    _: KW_ONLY
    max_label: float | None = None

    name: ClassVar[str] = "err_ia"
    knows_expected_ties: ClassVar[bool] = True
    knows_retrieved: ClassVar[bool] = True
    examples: ClassVar[tuple[Example, ...]] = (
        Example("err_ia(max_label=4)", (4, 0, 4), 15 / 16 + (1 / 16) * (15 / 16) / 3),
        Example("err_ia(max_label=1,ties=expected)@1", (1, 0), 1 / 4, scores=(1, 1)),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._err("relevance")  # raises if max_label is invalid

    def _err(self, source: str) -> ERR:
        return ERR(self.cutoff, labels=source, ties=self.ties, empty="skip", max_label=self.max_label)

    def fixed(self, *data: RankingData) -> Self:
        if self.max_label is not None:
            return self
        highest = [highest_label(s, part) for part in data if self.is_defined_on(part) for s in self.sources(part)]
        return self.replace(max_label=max(highest)) if highest else self

    def fixed_like(self, *models: Iterable[Measure | str]) -> Self:
        """Return the measure with l_max, if it is not set, of the models' ERR-IA on the same labels."""
        return self if self.max_label is not None else self.replace(max_label=max_label_of(self, models))

    def power(self, *data: RankingData) -> float:
        return self.fixed(*data).max_label or 0.0

    def value(self, labels: Floats) -> float:
        """Return the value of one query, from labels by rank with a column for each subtopic."""
        columns = np.nan_to_num(self.prepared(labels))
        err = self._err("relevance") if self.max_label is not None else ERR(self.cutoff, max_label=columns.max())
        return float(np.mean([err.value(column) for column in columns.T if column.any()]))

    def values(self, ranking: Ranking) -> Floats:
        measure = self.fixed(ranking.data)
        of_subtopics = [measure._err(source).values(ranking) for source in self.sources(ranking.data)]
        n_subtopics = np.sum(~np.isnan(of_subtopics), axis=0)  # of each query
        return self._with_empties(np.nansum(of_subtopics, axis=0) / np.maximum(n_subtopics, 1), n_subtopics == 0)
