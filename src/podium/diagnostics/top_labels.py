"""Which labels stand at the top while a model learns ([S] fig. 3(b))."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.core.array_types import Floats, Ints
from podium.core.plotting import draw
from podium.core.validation import require_whole
from podium.diagnostics.ranked import RankedDocuments, count_classes
from podium.diagnostics.watching import ByIteration, TrainingObserver, TrainingRound, classes_of_labels, labels_in


@dataclass(frozen=True, eq=False)
class TopLabels(ByIteration):
    """The labels of the documents on the first ranks, by iteration.

    Attributes:
        iterations: that were looked at.
        k: how many ranks of each query.
        labels: the distinct labels, ascending.
        shares: of the documents on these ranks, a row for each iteration and a column for each label. Documents without
            a label are in no column.

    Example:
        >>> import podium
        >>> from podium.diagnostics import WatchTopLabels
        >>> watch = WatchTopLabels(k=3)
        >>> model = podium.LambdaMART(5, 4).fit(podium.artificial(40, features=5), observers=[watch])
        >>> top = watch.result()
        >>> top.shares.shape, bool(top.shares[-1, 0] < top.shares[0, 0])
        ((5, 5), True)

    """

    k: int
    labels: Floats
    shares: Floats

    def columns(self) -> dict[str, Floats]:
        """The share of each label."""
        return {f"label {label:g}": self.shares[:, c] for c, label in enumerate(self.labels)}

    def plot(self) -> Any:
        """The shares by iteration."""
        return draw("top_labels", self)


class WatchTopLabels(TrainingObserver):
    """Counts the labels of the documents on the first k ranks of the training queries ([S] fig. 3(b)).

    In `history_`: `top_labels@K: LABEL`.

    Args:
        k: ranks of each query.
        labels: the label source.
        every: look at every so-manieth round; see `TrainingObserver`.

    Example:
        >>> import podium
        >>> from podium.diagnostics import WatchTopLabels
        >>> model = podium.LambdaMART(2, 4).fit(podium.artificial(20, features=4), observers=[WatchTopLabels()])
        >>> list(model.history_)
        ['top_labels@3: 0', 'top_labels@3: 1', 'top_labels@3: 2', 'top_labels@3: 3', 'top_labels@3: 4']

    """

    def __init__(self, k: int = 3, *, labels: str = "relevance", every: int | None = None) -> None:
        super().__init__(every)
        require_whole("k", k, 1)
        self.k, self.labels = int(k), labels

    @property
    def _prefix(self) -> str:
        return f"top_labels@{self.k}: "

    def _begin(self, round_: TrainingRound) -> None:
        self._distinct, self._classes = classes_of_labels(round_.data, self.labels)
        self._ranked = RankedDocuments(round_.data, self.k)

    def _look(self, round_: TrainingRound) -> dict[str, float]:
        self._ranked.update(round_.document_scores)
        counts = np.zeros(len(self._distinct), np.int64)
        total = count_classes(self._ranked.places, self._classes, round_.data.offsets, self.k, counts)
        shares = (counts / total).tolist()
        return {f"{self._prefix}{label:g}": share for label, share in zip(self._distinct, shares, strict=True)}

    def _is_mine(self, name: str) -> bool:
        return name.startswith(self._prefix)

    def _of_columns(self, iterations: Ints, columns: dict[str, Floats]) -> TopLabels:
        labels = labels_in(columns, self._prefix)
        shares = np.column_stack([columns[f"{self._prefix}{label:g}"] for label in labels])
        return TopLabels(iterations, self.k, labels, shares)
