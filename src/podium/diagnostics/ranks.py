"""Observers of the ranks of training documents: the labels at the top, and changes of the ranking."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.core.array_types import Floats, Int, Int32s, Ints
from podium.core.compiling import kernel
from podium.core.sums import mean
from podium.core.validation import require_whole
from podium.data import RankingData
from podium.diagnostics.watching import ByIteration, TrainingObserver, TrainingRound, by_label, classes_of_labels
from podium.errors import DataError
from podium.measures.bound import rank_again
from podium.measures.ranking import for_queries


class RankedDocuments:
    """The document at each rank, with ties in the canonical order.

    Args:
        data: the documents.
        depth: the number of ranks that matter; all by default.

    Attributes:
        places: the document at each rank of each query, by its index in the query's canonical order.

    """

    def __init__(self, data: RankingData, depth: int | None = None) -> None:
        longest = int(data.query_sizes.max(initial=1))
        self.data, self.depth = data, longest if depth is None else min(depth, longest)
        self.places = (np.arange(len(data)) - np.repeat(data.offsets[:-1], data.query_sizes)).astype(np.int32)
        self._scores, self._all = np.zeros(len(data)), np.ones(data.n_queries, bool)

    def update(self, scores: Floats) -> None:
        """Rank by these scores."""
        data, are_valid = self.data, []

        def work(offsets: Ints, queries: slice) -> None:
            order, counts = data.canonical_order, self._all[queries]
            are_valid.append(rank_again(scores, order, offsets, counts, self.depth, self.places, self._scores))

        for_queries(data.offsets, work)
        if not all(are_valid):
            raise DataError("cannot rank documents: a score is NaN")


@kernel
def count_classes(places: Int32s, classes: Ints, offsets: Ints, depth: Int, counts: Ints) -> Any:
    """Count the documents of each class among the first of each query; return the number of all these documents."""
    total = 0
    for q in range(len(offsets) - 1):
        start, end = offsets[q], min(offsets[q] + depth, offsets[q + 1])
        total += end - start
        for k in range(start, end):
            number = classes[start + places[k]]
            if number >= 0:
                counts[number] += 1
    return total


@kernel
def count_changes(before: Int32s, now: Int32s, offsets: Ints, depth: Int, changed: Ints, top_changed: Ints) -> None:
    """Count the ranks of each query, and the first ones, whose document changed; copy `now` to `before`."""
    for q in range(len(offsets) - 1):
        start, n_changed, n_top = offsets[q], 0, 0
        for k in range(start, offsets[q + 1]):
            if before[k] != now[k]:
                n_changed += 1
                if k < start + depth:
                    n_top += 1
                before[k] = now[k]
        changed[q], top_changed[q] = n_changed, n_top


@dataclass(frozen=True, eq=False)
class TopLabels(ByIteration):
    """The labels of the documents at the first ranks, by iteration.

    Attributes:
        iterations: the observed iterations.
        k: the number of ranks of each query.
        labels: the distinct labels, ascending.
        shares: the shares of documents at these ranks, with a row for each iteration and a column for each label.
            Unlabelled documents are in no column.

    Example:
        >>> import podium
        >>> from podium.diagnostics import WatchTopLabels
        >>> watch = WatchTopLabels(k=3)
        >>> _ = podium.LambdaMART(5, 4).fit(podium.artificial(40, features=5), observers=[watch])
        >>> watch.result().shares.shape
        (5, 5)

    """

    k: int
    labels: Floats
    shares: Floats

    chart = "top_labels"

    def columns(self) -> dict[str, Floats]:
        return {f"label {label:g}": self.shares[:, c] for c, label in enumerate(self.labels)}


class WatchTopLabels(TrainingObserver):
    """An observer that counts the labels at the first k ranks of the training queries ([S] fig. 3(b)).

    Its records in `history_` are `top_labels@K: LABEL`.

    Args:
        k: the number of ranks of each query.
        labels: the label source.
        every: the number of rounds between records; see `TrainingObserver`.

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

    def _observe(self, round_: TrainingRound) -> dict[str, float]:
        self._ranked.update(round_.document_scores)
        counts = np.zeros(len(self._distinct), np.int64)
        total = count_classes(self._ranked.places, self._classes, round_.data.offsets, self.k, counts)
        shares = (counts / total).tolist()
        return {f"{self._prefix}{label:g}": share for label, share in zip(self._distinct, shares, strict=True)}

    def _records(self, name: str) -> bool:
        return name.startswith(self._prefix)

    def _of_columns(self, iterations: Ints, columns: dict[str, Floats]) -> TopLabels:
        return TopLabels(iterations, self.k, *by_label(columns, self._prefix))


@dataclass(frozen=True, eq=False)
class RankChanges(ByIteration):
    """The share of ranks whose document changed, by iteration, as a mean over the training queries.

    Attributes:
        iterations: the observed iterations.
        k: the number of ranks at the top.
        everywhere: the share of all ranks that changed since the last record; NaN for the first.
        top: the share of the first k ranks that changed.

    Example:
        >>> import podium
        >>> from podium.diagnostics import WatchRankChanges
        >>> watch = WatchRankChanges(k=3, every=1)
        >>> _ = podium.LambdaMART(5, 4).fit(podium.artificial(40, features=5), observers=[watch])
        >>> bool((watch.result().everywhere[1:] > 0).all())
        True

    """

    k: int
    everywhere: Floats
    top: Floats

    chart = "rank_changes"

    def columns(self) -> dict[str, Floats]:
        return {"all ranks": self.everywhere, f"top {self.k}": self.top}


class WatchRankChanges(TrainingObserver):
    """An observer that compares the ranking of the training queries with the previous record ([S] fig. 4).

    A rank has changed if it has another document. Its records in `history_` are `rank_changes: all` and
    `rank_changes: top K`, NaN in the first round.

    Args:
        k: the number of ranks at the top.
        every: the number of rounds between records, see `TrainingObserver`; changes are since the last record.

    Example:
        >>> import podium
        >>> from podium.diagnostics import WatchRankChanges
        >>> model = podium.LambdaMART(2, 4).fit(podium.artificial(20, features=4), observers=[WatchRankChanges(5)])
        >>> list(model.history_)
        ['rank_changes: all', 'rank_changes: top 5']

    """

    usual = 10

    def __init__(self, k: int = 3, *, every: int | None = None) -> None:
        super().__init__(every)
        require_whole("k", k, 1)
        self.k = int(k)

    @property
    def _names(self) -> tuple[str, str]:
        return "rank_changes: all", f"rank_changes: top {self.k}"

    def _begin(self, round_: TrainingRound) -> None:
        self._ranked = RankedDocuments(round_.data)
        self._before: Int32s | None = None

    def _observe(self, round_: TrainingRound) -> dict[str, float]:
        data = round_.data
        self._ranked.update(round_.document_scores)
        if self._before is None:
            self._before = self._ranked.places.copy()
            return dict.fromkeys(self._names, math.nan)
        changed, top = np.empty(data.n_queries, np.int64), np.empty(data.n_queries, np.int64)
        count_changes(self._before, self._ranked.places, data.offsets, self.k, changed, top)
        sizes = data.query_sizes
        shares = mean(changed / sizes), mean(top / np.minimum(sizes, self.k))
        return dict(zip(self._names, shares, strict=True))

    def _records(self, name: str) -> bool:
        return name in self._names

    def _of_columns(self, iterations: Ints, columns: dict[str, Floats]) -> RankChanges:
        return RankChanges(iterations, self.k, *(columns[name] for name in self._names))
