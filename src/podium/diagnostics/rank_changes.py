"""How much the ranking still changes while a model learns ([S] fig. 4)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.core.array_types import Floats, Int32s, Ints
from podium.core.plotting import draw
from podium.core.sums import mean
from podium.core.validation import require_whole
from podium.diagnostics.ranked import RankedDocuments, count_changes
from podium.diagnostics.watching import ByIteration, TrainingObserver, TrainingRound


@dataclass(frozen=True, eq=False)
class RankChanges(ByIteration):
    """Which share of the ranks got another document, by iteration: the mean over the training queries.

    Attributes:
        iterations: that were looked at.
        k: how many ranks are the top.
        everywhere: of all ranks of a query, since the last look; NaN for the first.
        top: of the first k ranks, likewise.

    Example:
        >>> import podium
        >>> from podium.diagnostics import WatchRankChanges
        >>> watch = WatchRankChanges(k=3, every=1)
        >>> model = podium.LambdaMART(5, 4).fit(podium.artificial(40, features=5), observers=[watch])
        >>> changes = watch.result()
        >>> changes.iterations.tolist(), bool((changes.everywhere[1:] > 0).all())
        ([0, 1, 2, 3, 4], True)

    """

    k: int
    everywhere: Floats
    top: Floats

    def columns(self) -> dict[str, Floats]:
        """Both shares."""
        return {"all ranks": self.everywhere, f"top {self.k}": self.top}

    def plot(self) -> Any:
        """The shares by iteration."""
        return draw("rank_changes", self)


class WatchRankChanges(TrainingObserver):
    """Compares the ranking of the training queries with that of the look before ([S] fig. 4).

    A document changed its rank if another one stands there now. In `history_`: `rank_changes: all` and
    `rank_changes: top K`, NaN in the first round.

    Args:
        k: ranks that are the top.
        every: look at every so-manieth round, see `TrainingObserver`; changes are then those since the last look.

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

    def _look(self, round_: TrainingRound) -> dict[str, float]:
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

    def _is_mine(self, name: str) -> bool:
        return name in self._names

    def _of_columns(self, iterations: Ints, columns: dict[str, Floats]) -> RankChanges:
        return RankChanges(iterations, self.k, *(columns[name] for name in self._names))
