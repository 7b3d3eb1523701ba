"""ERR-IA: expected reciprocal rank over the intents of a query."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from podium.core.array_types import Floats
from podium.measures.base import Example, Measure
from podium.measures.err import ERR, max_label_of
from podium.measures.gains import highest_label
from podium.measures.ranking import Ranking
from podium.measures.registry import register
from podium.measures.subtopics import OfSubtopics

if TYPE_CHECKING:
    from podium.data import RankingData


@register
@dataclass(frozen=True)
class ERRIA(OfSubtopics):
    """The mean of ERR over a query's subtopics, each with its own labels, all equally likely.

    Chapelle, Ji, Liao, Velipasaoglu, Lai and Wu, Information Retrieval 14, 2011. Users differ in what they mean; each
    stops where a document satisfies them.

    Args:
        max_label: l_max of ERR; None takes the highest label of all subtopics.

    Example:
        >>> import numpy as np
        >>> from podium import ERRIA
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
        self._err("relevance")  # refuses a max_label that makes no sense

    def _err(self, source: str) -> ERR:
        return ERR(self.cutoff, labels=source, ties=self.ties, empty="skip", max_label=self.max_label)

    def fixed(self, *data: RankingData) -> Self:
        """With l_max taken from the data, if it is not given."""
        if self.max_label is not None:
            return self
        highest = [highest_label(s, part) for part in data if self.is_defined_on(part) for s in self.sources(part)]
        return self.replace(max_label=max(highest)) if highest else self

    def fixed_like(self, *models: Iterable[Measure | str]) -> Self:
        """With l_max of an ERR-IA that looks at the same labels, if it is not given; the highest of several models'."""
        return self if self.max_label is not None else self.replace(max_label=max_label_of(self, models))

    def power(self, *data: RankingData) -> float:
        """The highest label."""
        return self.fixed(*data).max_label or 0.0

    def value(self, labels: Floats) -> float:
        """From the labels of one query in rank order, a column for each subtopic."""
        columns = np.nan_to_num(self.prepared(labels))
        err = self._err("relevance") if self.max_label is not None else ERR(self.cutoff, max_label=columns.max())
        return float(np.mean([err.value(column) for column in columns.T if column.any()]))

    def values(self, ranking: Ranking) -> Floats:
        """One value for each query."""
        measure = self.fixed(ranking.data)
        of_subtopics = [measure._err(source).values(ranking) for source in self.sources(ranking.data)]
        known = np.sum([~np.isnan(values) for values in of_subtopics], axis=0)  # the subtopics of each query
        return self._with_empties(np.nansum(of_subtopics, axis=0) / np.maximum(known, 1), known == 0)
