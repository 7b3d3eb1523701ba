"""What a cluster must do for a run: place documents, and have all workers answer. Two engines do it.

`InProcess` holds all parts in this process: the tests run on it, and it shows what another engine must provide.
`podium.distributed.dask_engine` runs on a Dask cluster.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from podium.core.merging import merged
from podium.distributed.holding import Calls, Holder, merged_results
from podium.distributed.sources import Source, computed
from podium.errors import PodiumError


class Placement(NamedTuple):
    """What one worker is to hold: its number, partitions of each set with their numbers, and threads."""

    number: int
    sets: dict[str, list[tuple[int, Source]]]
    n_threads: int


class WorkerLostError(PodiumError):
    """A worker has left; what it held must be placed again."""


class Engine(ABC):
    """Workers that hold documents.

    Attributes:
        n_round_trips: calls of all workers so far.
        n_bytes: of the histograms and other arrays that workers sent.

    """

    def __init__(self) -> None:
        self.n_round_trips, self.n_bytes = 0, 0
        self._deferred: list[tuple[str, tuple[Any, ...]]] = []
        self._deferred_runs: list[tuple[str, tuple[Any, ...], Callable[[Any], None]]] = []

    @abstractmethod
    def workers(self) -> dict[str, int]:
        """The workers that are there now, and the threads of each."""

    @abstractmethod
    def compute(self, function: Callable[..., Any], sources: Sequence[Source]) -> list[Any]:
        """A function of each of some sources, on any worker; the results come here."""

    @abstractmethod
    def whereabouts(self, sources: Sequence[Source]) -> list[str | None]:
        """For each source a worker that has it, as far as there is one; it need not be moved if it stays there."""

    @abstractmethod
    def place(self, placement: Mapping[str, Placement]) -> None:
        """Make some workers hold documents, in place of what they hold."""

    @abstractmethod
    def run_on_each(self, calls: Mapping[str, Calls]) -> None:
        """Have some workers answer calls of their own, at the same time; the answers are not needed."""

    @abstractmethod
    def keep_only(self, workers: Iterable[str]) -> None:
        """Forget what other workers hold."""

    @abstractmethod
    def reduce(self, calls: Calls) -> list[Any]:
        """Have all workers that hold documents answer the same calls; what they give, merged on the workers.

        Raises:
            WorkerLostError: one has left. The others may have answered, or not.

        """

    @abstractmethod
    def close(self) -> None:
        """Let go of all documents."""

    def call(self, name: str, *arguments: Any) -> Any:
        """Have all workers answer one call; the merged value."""
        calls, self._deferred = [*self._deferred, (name, arguments)], []
        self.n_round_trips += 1
        return merged(self.reduce(calls)[-1])

    def defer(self, name: str, *arguments: Any) -> None:
        """A call without an answer; it goes along with the next one."""
        self._deferred.append((name, arguments))

    def defer_run(self, take: Callable[[Any], None], name: str, *arguments: Any) -> None:
        """Work in steps that goes along with the next `run`, without round trips of its own; `take` gets the result."""
        self._deferred_runs.append((name, arguments, take))

    def forget_deferred(self) -> None:
        """Drop calls that were deferred."""
        self._deferred, self._deferred_runs = [], []

    def run(self, name: str, *arguments: Any) -> Any:
        """Work in steps, each of which needs what all parts gave in the one before; the merged result."""
        before, self._deferred_runs = self._deferred_runs, []
        is_done, values = self.call("start", [*((name, of) for name, of, _ in before), (name, arguments)])
        while not is_done:
            is_done, values = self.call("go_on", values)
        for (_, _, take), value in zip(before, values, strict=False):
            take(value)
        return values[-1]


class InProcess(Engine):
    """Workers that are objects in this process.

    Args:
        n_workers: how many there are.
        n_threads: of each.

    """

    def __init__(self, n_workers: int, n_threads: int = 1) -> None:
        super().__init__()
        self._workers = {f"worker {k}": n_threads for k in range(n_workers)}
        self.holders: dict[str, Holder] = {}

    def workers(self) -> dict[str, int]:  # noqa: D102
        return dict(self._workers)

    def compute(self, function: Callable[..., Any], sources: Sequence[Source]) -> list[Any]:  # noqa: D102
        return [function(computed(source)) for source in sources]

    def whereabouts(self, sources: Sequence[Source]) -> list[str | None]:  # noqa: D102
        return [None] * len(sources)

    def place(self, placement: Mapping[str, Placement]) -> None:  # noqa: D102
        for worker, (number, sets, n_threads) in placement.items():
            pieces = {name: [(k, computed(source)) for k, source in sources] for name, sources in sets.items()}
            self.holders[worker] = Holder(number, pieces, n_threads)

    def _run_on(self, worker: str, calls: Calls) -> list[Any]:
        if worker not in self._workers:
            raise WorkerLostError(f"{worker} has left")
        return self.holders[worker].run(calls)

    def run_on_each(self, calls: Mapping[str, Calls]) -> None:  # noqa: D102
        for worker, of_worker in calls.items():
            self._run_on(worker, of_worker)

    def keep_only(self, workers: Iterable[str]) -> None:  # noqa: D102
        self.holders = {worker: self.holders[worker] for worker in workers if worker in self.holders}

    def reduce(self, calls: Calls) -> list[Any]:  # noqa: D102
        return merged_results([self._run_on(worker, calls) for worker in self.holders])

    def lose(self, worker: str) -> None:
        """Let a worker leave."""
        del self._workers[worker]

    def join(self, worker: str, n_threads: int = 1) -> None:
        """Let a worker join."""
        self._workers[worker] = n_threads

    def close(self) -> None:  # noqa: D102
        self.holders = {}
