"""What training asks of a cluster; `podium.distributed.dask_engine` runs on a Dask cluster."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from podium.core.merging import merge_all, merged
from podium.distributed.holder import Calls
from podium.distributed.sources import Source
from podium.errors import PodiumError


class Placement(NamedTuple):
    """The arguments of one worker's `Holder`: its number, numbered partitions of each set, and threads."""

    number: int
    sets: dict[str, list[tuple[int, Source]]]
    n_threads: int


class WorkerLostError(PodiumError):
    """A worker has left. Its documents must be placed again."""


class Engine(ABC):
    """Workers, each of which holds documents in a `Holder`.

    Another engine implements `workers`, `compute`, `start_holders`, `ask` and `close`. A worker may leave at any time.
    Then `start_holders` and `ask` raise `WorkerLostError` soon, and `workers` no longer names it. Training places its
    documents on other workers and repeats the round. No method may wait without a time limit.

    Attributes:
        holders: the handle of each worker's `Holder`, as `start_holders` returned it.
        n_round_trips: how often all workers were asked.
        n_bytes: size of all arrays that workers sent.

    """

    def __init__(self) -> None:
        self.n_round_trips, self.n_bytes = 0, 0
        self.holders: dict[str, Any] = {}
        self._deferred: list[tuple[str, tuple[Any, ...]]] = []
        self._deferred_runs: list[tuple[str, tuple[Any, ...], Callable[[Any], None]]] = []

    @abstractmethod
    def workers(self) -> dict[str, int]:
        """Return the number of threads of each worker that is there now."""

    @abstractmethod
    def compute(self, function: Callable[..., Any], sources: Sequence[Source]) -> list[Any]:
        """Return a function of each source, computed on any worker."""

    @abstractmethod
    def start_holders(self, placement: Mapping[str, Placement]) -> dict[str, Any]:
        """Start a `Holder` on each of these workers, and return a handle for each.

        Raises:
            WorkerLostError: if a worker has left.

        """

    @abstractmethod
    def ask(self, calls: Mapping[str, Calls]) -> list[Any]:
        """Let the holders of some workers run their calls at the same time (`Holder.run`), and return the answers.

        Raises:
            WorkerLostError: if a worker has left. The others may have answered or not.

        """

    @abstractmethod
    def close(self) -> None:
        """Release all documents."""

    def locate(self, sources: Sequence[Source]) -> list[str | None]:
        """Return for each source a worker that has it in memory, or None; documents stay there if they can."""
        return [None] * len(sources)

    def place(self, placement: Mapping[str, Placement], keep: Collection[str] = ()) -> None:
        """Start holders on some workers. Those of the workers in `keep` stay as they are, others are released."""
        self.holders = {worker: self.holders[worker] for worker in keep}
        self.holders |= self.start_holders(placement)

    def call(self, name: str, *arguments: Any) -> Any:
        """Return the merged answers of all workers to one call."""
        calls, self._deferred = [*self._deferred, (name, arguments)], []
        self.n_round_trips += 1
        return merged(merge_all(self.ask(dict.fromkeys(self.holders, calls))))

    def defer(self, name: str, *arguments: Any) -> None:
        """Send a call that has no answer along with the next one."""
        self._deferred.append((name, arguments))

    def defer_run(self, take: Callable[[Any], None], name: str, *arguments: Any) -> None:
        """Do work in steps along with the next `run`, without extra round trips; `take` gets the result."""
        self._deferred_runs.append((name, arguments, take))

    def forget_deferred(self) -> None:
        """Drop all deferred calls."""
        self._deferred, self._deferred_runs = [], []

    def run(self, name: str, *arguments: Any) -> Any:
        """Do work in steps, each of which needs the answers of all parts to the one before; return the result."""
        before, self._deferred_runs = self._deferred_runs, []
        is_done, values = self.call("start", [*((name, of) for name, of, _ in before), (name, arguments)])
        while not is_done:
            is_done, values = self.call("go_on", values)
        for (_, _, take), value in zip(before, values, strict=False):
            take(value)
        return values[-1]
