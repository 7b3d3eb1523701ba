"""The interface of clusters to training, and the time limits that all engines share.

`podium.distributed.clusters` lists the engines.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, NamedTuple, Self

from podium.binned import BinnedFiles
from podium.core.merging import merge_all, merged
from podium.core.validation import require_number
from podium.data import RankingData
from podium.distributed.holder import Calls
from podium.distributed.sources import PIECES, Columns, Reader, Source, are_files, file_sources, pieces_of
from podium.errors import DataError, PodiumError

TIMEOUT = 600.0  # seconds to wait for an answer of a worker
HEARTBEAT = 30.0  # seconds without a heartbeat after which a worker is ended
SECONDS_BETWEEN_CHECKS = 1.0  # between two checks of the workers while the client waits
SECONDS_TO_REPLACE = 60.0  # to wait for a new worker if none is left
PENDING = object()  # returned instead of the result of unfinished work


class Placement(NamedTuple):
    """The arguments of a worker's `Holder`: its number, its numbered partitions of each set, and its threads."""

    number: int
    sets: dict[str, list[tuple[int, Source]]]
    n_threads: int

    def resolved(self, value_of: Callable[[Source], Any]) -> dict[str, list[tuple[int, Any]]]:
        """Return the numbered partitions of each set, with sources replaced by their values."""
        return {name: [(k, value_of(source)) for k, source in sources] for name, sources in self.sets.items()}


class WorkerLostError(PodiumError):
    """A worker has left, so other workers must take over its documents."""


class Engine(ABC):
    """The workers of a cluster, each of which holds documents in a `Holder`.

    Subclasses implement the abstract methods. A worker may leave at any time. Then `start_holders` and `ask` must soon
    raise `WorkerLostError`, and `current_workers` must no longer list the worker. Training places its documents on
    other workers and repeats the round. No method may wait without a time limit; `wait` has one.

    Args:
        timeout: seconds to wait for an answer of a worker.
        heartbeat: seconds without a heartbeat after which a worker is ended.

    Attributes:
        holders: the handle of each worker's `Holder`, as `start_holders` returned it.
        n_round_trips: the number of requests to all workers.

    """

    cluster: ClassVar[str]  # a name in `podium.distributed.clusters.CLUSTERS`
    collections: ClassVar[str]  # the data that only this engine accepts, for messages

    def __init__(self, timeout: float = TIMEOUT, heartbeat: float = HEARTBEAT) -> None:
        require_number("timeout", timeout, above=0)
        require_number("heartbeat", heartbeat, above=0)
        self.timeout, self.heartbeat = timeout, heartbeat
        self.n_round_trips = 0
        self.holders: dict[str, Any] = {}
        self._deferred: list[tuple[str, tuple[Any, ...]]] = []
        self._last_beats: dict[str, tuple[Any, int]] = {}  # of each worker, and the number of checks since

    # --- what an engine implements

    @abstractmethod
    def current_workers(self) -> dict[str, int]:
        """Return the number of threads of each current worker."""

    @abstractmethod
    def compute(self, function: Callable[..., Any], sources: Sequence[Source]) -> list[Any]:
        """Apply a function to the value of each source, on any worker, and return the results."""

    @abstractmethod
    def start_holders(self, placement: Mapping[str, Placement]) -> dict[str, Any]:
        """Start a `Holder` on each of these workers, and return a handle for each.

        Raises:
            WorkerLostError: if a worker has left.

        """

    @abstractmethod
    def ask(self, calls: Mapping[str, Calls]) -> list[Any]:
        """Run calls in the holders of some workers at the same time (`Holder.run`), and return the answers.

        The caller may overwrite the arrays of an answer.

        Raises:
            WorkerLostError: if a worker has left. Other workers may or may not have run their calls.

        """

    @abstractmethod
    def result(self, pending: Any, seconds: float) -> Any:
        """Return the result of work that was started, or `PENDING` if it takes longer than `seconds`.

        Raises:
            WorkerLostError: if the work is lost with its worker.

        """

    @abstractmethod
    def check_workers(self) -> None:
        """End the `silent_workers`; raise `WorkerLostError` if a holder was lost."""

    @abstractmethod
    def release(self) -> None:
        """Release all documents; the workers stay."""

    def close(self) -> None:
        """Release all documents, and end everything that this engine started on the cluster."""
        self.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def locate(self, sources: Sequence[Source]) -> list[str | None]:
        """Return, for each source, a worker that has it in memory, or None; documents stay there if possible."""
        return [None] * len(sources)

    def collection_sources(self, X: Any, columns: Columns, categorical: tuple[Any, ...]) -> list[Source] | None:
        """Return the partitions of a collection of this engine's library as sources, or None for anything else."""
        return None

    @classmethod
    def lazy_scores(cls, X: Any, predict: Callable[[Any], Any], dtype: Any) -> Any:
        """Return a lazy function of the rows of a collection, or None for anything else."""
        return None

    @classmethod
    def is_running(cls) -> bool:
        """Return whether this process is connected to a cluster of this kind."""
        return False

    @classmethod
    @contextmanager
    def connected(cls, address: str) -> Iterator[dict[str, Any]]:
        """Connect to a cluster within the block, and yield the arguments of an engine that uses it."""
        raise NotImplementedError
        yield {}

    # --- sources

    def sources_of(
        self, sets: Mapping[str, tuple[Any, Columns]], categorical: Sequence[Any] = (), reader: Reader | None = None
    ) -> dict[str, list[Source]]:
        """Return the partitions of each set of documents as sources.

        Args:
            sets: the documents of each set (a collection of this engine's library, names of files, or `RankingData`),
                and their labels, query ids and weights.
            categorical: features that hold categories.
            reader: reads files; `podium.read` by default.

        """
        passed = {
            name: (X, {role: value for role, value in columns.items() if value is not None})
            for name, (X, columns) in sets.items()
        }
        # Collections first, because computing them takes processors that Ray's workers would occupy.
        of_collections = {
            name: self.collection_sources(X, columns, tuple(categorical)) for name, (X, columns) in passed.items()
        }
        self.wait_for_worker(self.timeout)
        n_pieces = PIECES * len(self.workers())
        return {
            name: self._other_sources(*passed[name], reader, n_pieces) if sources is None else sources
            for name, sources in of_collections.items()
        }

    def _other_sources(self, X: Any, columns: Columns, reader: Reader | None, n_pieces: int) -> list[Source]:
        if are_files(X):
            return file_sources(X, columns, reader)
        if isinstance(X, BinnedFiles):
            raise DataError("a folder of bins is for training on one machine: pass the original files to the cluster")
        if isinstance(X, RankingData):
            return [*pieces_of(X, n_pieces)]
        raise DataError(
            f"on this cluster, documents must be {self.collections}, a list of files, or RankingData, "
            f"not {type(X).__name__}"
        )

    # --- time limits

    def workers(self) -> dict[str, int]:
        """Return the number of threads of each worker; wait for a worker if there is none."""
        while not (threads := self.current_workers()):  # a new worker may leave again at once
            self.wait_for_worker(SECONDS_TO_REPLACE)
        return threads

    def wait_for_worker(self, seconds: float) -> None:
        """Wait until there is a worker."""
        deadline = time.monotonic() + seconds
        while not self.current_workers():
            if time.monotonic() > deadline:
                raise no_workers_error(seconds)
            time.sleep(SECONDS_BETWEEN_CHECKS / 10)

    def wait(self, pending: Any) -> Any:
        """Return the result of work that was started; check the workers while waiting.

        Raises:
            WorkerLostError: if a worker that holds documents has left.
            PodiumError: if the answer takes longer than `timeout`, or no worker is left and no new one joins.

        """
        last_worker_seen = time.monotonic()
        deadline = last_worker_seen + self.timeout
        while (value := self.result(pending, SECONDS_BETWEEN_CHECKS)) is PENDING:
            self.check_workers()
            if self.current_workers():
                last_worker_seen = time.monotonic()
            elif time.monotonic() > last_worker_seen + SECONDS_TO_REPLACE:
                raise no_workers_error(SECONDS_TO_REPLACE)
            if time.monotonic() > deadline:
                raise PodiumError(
                    f"a worker did not answer within {self.timeout:g} seconds: check the cluster's dashboard and logs, "
                    "or raise timeout=…"
                )
        return value

    def silent_workers(self, beats: Mapping[str, Any]) -> list[str]:
        """Return the workers whose last beat has not changed for `heartbeat` seconds.

        `check_workers` calls this once. It counts checks instead of seconds, because all beats look old for a moment
        after the client or the scheduler was suspended.

        Args:
            beats: a value for each worker that changes with each heartbeat.

        """
        silent = []
        for worker, beat in beats.items():
            last, n_checks = self._last_beats.get(worker, (beat, 0))
            n_checks = n_checks + 1 if last == beat else 0
            self._last_beats[worker] = beat, n_checks
            if n_checks * SECONDS_BETWEEN_CHECKS >= self.heartbeat:
                silent.append(worker)
        return silent

    def silent_error(self, worker: str) -> WorkerLostError:
        """Return the error for a silent worker that holds documents."""
        return WorkerLostError(f"worker {worker} sent no heartbeat for {self.heartbeat:g} seconds")

    # --- what training calls

    def place(self, placement: Mapping[str, Placement], keep: Collection[str] = ()) -> None:
        """Start holders on some workers; keep those of the workers in `keep`, and release the others."""
        self.holders = {worker: self.holders[worker] for worker in keep}
        self.holders |= self.start_holders(placement)

    def call(self, name: str, *arguments: Any) -> Any:
        """Return the merged answers of all workers to one call."""
        calls, self._deferred = [*self._deferred, (name, arguments)], []
        self.n_round_trips += 1
        return merged(merge_all(self.ask(dict.fromkeys(self.holders, calls))))

    def defer(self, name: str, *arguments: Any) -> None:
        """Queue a call without an answer, to be sent along with the next one."""
        self._deferred.append((name, arguments))

    def drop_deferred(self) -> None:
        """Drop all deferred calls."""
        self._deferred = []

    def run(self, name: str, *arguments: Any) -> Any:
        """Run work in steps, each of which needs the merged answers to the previous one; return the result."""
        is_done, value = self.call("start", name, arguments)
        while not is_done:
            is_done, value = self.call("go_on", value)
        return value


def pack_once(values: Mapping[str, Any], pack: Callable[[Any], Any]) -> dict[str, Any]:
    """Return the packed value of each worker; an object that several workers share is packed once."""
    distinct = {id(value): value for value in values.values()}
    packed = {key: pack(value) for key, value in distinct.items()}
    return {worker: packed[id(value)] for worker, value in values.items()}


def no_workers_error(seconds: float) -> PodiumError:
    """Return the error for a cluster without workers."""
    return PodiumError(
        f"the cluster has no workers, and none joined within {seconds:g} seconds: start workers; a fit with "
        "checkpoint=… resumes where it stopped"
    )
