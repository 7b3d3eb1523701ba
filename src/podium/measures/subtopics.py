"""What measures of diversity have in common: a label source for each subtopic of a query."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Floats, Ints
from podium.errors import DataError
from podium.measures.base import Measure

if TYPE_CHECKING:
    from podium.data import RankingData


@dataclass(frozen=True)
class OfSubtopics(Measure):
    """A measure of documents that are relevant to some of a query's subtopics.

    Each subtopic has a label source of its own, named `labels`, an underscore and any name: `subtopic_1`, `subtopic_2`.
    A subtopic that no document of a query is relevant to is none of that query's, so queries may share sources. A
    source named `labels` alone is a subtopic, too.

    Args:
        labels: what the sources' names begin with.

    """

    _: KW_ONLY
    labels: str = "subtopic"

    has_swaps: ClassVar[bool] = False  # with several labels, which document of a pair is better is not said

    def sources(self, data: RankingData) -> list[str]:
        """The sources of the subtopics, sorted by name."""
        sources = sorted(s for s in data.labels if s == self.labels or s.startswith(f"{self.labels}_"))
        if not sources:
            names = ", ".join(map(repr, data.labels)) or "none"
            raise DataError(
                f"{self} needs a label source for each subtopic, named {self.labels}_1, {self.labels}_2, …; "
                f"the data has {names}: RankingData(…, labels={{'{self.labels}_1': …}})"
            )
        return sources

    def is_defined_on(self, data: RankingData) -> bool:
        """Whether some document is relevant to a subtopic."""
        names = [s for s in data.labels if s == self.labels or s.startswith(f"{self.labels}_")]
        return any(bool((data.labels[source] > 0).any()) for source in names)

    def labels_in(self, data: RankingData, order: Ints) -> NDArray[Any]:
        """A column for each subtopic, in an order of the rows."""
        return np.column_stack([data.labels[source][order] for source in self.sources(data)])

    def prepared(self, labels: NDArray[Any]) -> Floats:
        """Return a row for each document, a column for each subtopic."""
        columns = np.asarray(labels, np.float64)
        return columns.reshape(len(columns), 1) if columns.ndim == 1 else columns
