"""How the work of the pair kernel is shared out among threads: by queries, the longest of them by rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from podium.core.array_types import Floats, Ints
from podium.core.threads import WORTH_SHARING
from podium.objectives.pair_kernel import Meeting, Task
from podium.objectives.pair_layout import FLUSH, Scratch, scratch_for

MIN_WORK = 4 * WORTH_SHARING  # pairs, and some more for each document; with less, one thread is faster
NO_DELTAS: Floats = np.empty((0, 0))
Work = list[tuple[Task, Scratch]]


class Shares:
    """The tasks of each thread, and the memory it works in; kept from round to round.

    Args:
        sizes: documents of each query.
        depth: the ranks that count.
        discounts: by rank.

    """

    def __init__(self, sizes: Ints, depth: int, discounts: Floats) -> None:
        self.sizes, self.discounts = sizes, discounts
        self.rows = np.minimum(sizes, depth)
        self.work = (self.rows + 20) * sizes  # pairs, and what each document costs besides
        self.is_worth_it = bool(self.work.sum() >= MIN_WORK)
        self._scratches: list[Scratch] = []
        self._shares: list[Work] = []
        self._meetings: list[list[Meeting]] = []
        self._no_event = np.zeros(1, np.int64)

    def scratch(self, thread: int) -> Scratch:
        """What a thread works in."""
        while len(self._scratches) <= thread:
            self._scratches.append(scratch_for(int(self.sizes.max(initial=0)), self.discounts))
        return self._scratches[thread]

    def of(self, n_threads: int) -> list[Work]:
        """For each of so many threads its tasks, each with its scratch. All threads must run at the same time."""
        if len(self._shares) != n_threads:
            longest = self._longest_alone(n_threads)
            together = {"n_threads": n_threads, "barrier": np.zeros(16, np.int64), "turns": np.zeros(1, np.int64)}
            self._shares = [self._rows(longest, thread=thread, **together) for thread in range(n_threads)]
            done = np.append(0, np.cumsum(np.where(self.sizes > longest, 0, self.work)))
            edges = np.searchsorted(done[1:], done[-1] * np.arange(n_threads + 1) / n_threads)
            edges[0], edges[-1] = 0, len(self.sizes)
            for thread, share in enumerate(self._shares):
                first, last = int(edges[thread]), int(edges[thread + 1])
                share.append((task(first, last, longest=longest), self.scratch(thread)))
        return self._shares

    def meetings(self, n_threads: int = 1, event: Ints | None = None) -> list[list[Meeting]]:
        """For each task of each thread how it meets the others; one thread alone needs no event of a team."""
        event = self._no_event if event is None else event
        if len(self._meetings) != n_threads or self._meetings[0][0].event is not event:
            barrier = np.zeros(16, np.int64)
            self._meetings = [
                [Meeting(thread, n_threads, event, barrier, k == 0, k == len(share) - 1) for k in range(len(share))]
                for thread, share in enumerate(self.of(n_threads))
            ]
        return self._meetings

    def _longest_alone(self, n_threads: int) -> int:
        """The documents of the longest query that one thread does alone.

        Others are more than a quarter of a thread's work, and can be shared: all rows of a block are one thread's.
        """
        shared = (self.rows > FLUSH) & (4 * n_threads * self.work > self.work.sum()) & (n_threads > 1)
        return int(self.sizes[~shared].max(initial=0))

    def _rows(self, longest: int, thread: int, **together: Any) -> Work:
        """One thread's part of the queries that are shared; sums in double precision are those of the first thread."""
        sums = self.scratch(0)
        scratch = self.scratch(thread)._replace(gradients=sums.gradients, hessians=sums.hessians, total=sums.total)
        shared = np.flatnonzero(self.sizes > longest).tolist()
        return [(task(q, q + 1, thread=thread, **together), scratch) for q in shared]


def task(first: int, last: int, **others: Any) -> Task:
    """A task of all rows of some queries for one thread, but for what is said otherwise."""
    no_limit = 1 << 62
    alone = Task(first, last, no_limit, 0, no_limit, NO_DELTAS, 0, 1, np.zeros(16, np.int64), np.zeros(1, np.int64))
    return alone._replace(**others)
