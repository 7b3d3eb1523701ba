"""A Dask cluster as an engine, and how to connect to one.

Sources are Dask's futures. Each worker holds its documents in an actor. An actor's method is called directly on its
worker, without a task in the scheduler's graph, which takes a millisecond or two. The client asks all workers at the
same time and merges their answers. No worker waits for another one, so a worker that is lost blocks nobody but the
client, which looks after the workers while it waits.
"""

from __future__ import annotations

import gc
import pickle
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from podium.core.threads import thread_count
from podium.data import RankingData
from podium.distributed.engine import Engine, Placement, WorkerLostError
from podium.distributed.holder import Calls, Holder
from podium.distributed.sources import DerivedSource, Source
from podium.errors import DataError, MissingExtraError, PodiumError

TIMEOUT = 600.0  # seconds that a worker may take for an answer
HEARTBEAT = 30.0  # seconds without a heartbeat after which a worker is restarted
SECONDS_BETWEEN_LOOKS = 1.0  # at the workers, while the client waits
SECONDS_TO_NOTICE = 5.0  # in which the scheduler notices a closed connection
SECONDS_TO_RESTART = 10.0  # in which a nanny must have ended a worker; else the scheduler drops the worker
SECONDS_TO_REPLACE = 60.0  # in which a worker must come if none is left
SECONDS_TO_REACH = 5.0  # in which a worker must answer a direct call
SECONDS_TO_CONNECT = 30.0


def import_distributed() -> Any:
    """Return the package `distributed`, or raise an error that says how to install it."""
    try:
        import distributed
    except ImportError:
        raise MissingExtraError("distributed", "dask", "training on a Dask cluster") from None
    return distributed


@contextmanager
def connected(cluster: str) -> Iterator[Any]:
    """Connect to the scheduler at an address, or start `local:N`: N workers on this machine, for the time being.

    >>> with connected("nowhere") as client:
    ...     pass
    Traceback (most recent call last):
    podium.errors.DataError: a cluster is tcp://HOST:PORT, the address of a Dask scheduler, or local:N, not 'nowhere'
    """
    local = re.fullmatch(r"local:([1-9]\d{0,3})", cluster)
    if local is None and not re.match(r"[a-z]+://.", cluster):
        raise DataError(f"a cluster is tcp://HOST:PORT, the address of a Dask scheduler, or local:N, not {cluster!r}")
    distributed = import_distributed()
    if local is None:
        problem = None
        try:
            client = distributed.Client(cluster, timeout=SECONDS_TO_CONNECT)
        except Exception as error:  # Dask raises errors of many kinds for addresses that it cannot use
            problem = str(error)
        if problem is not None:
            gc.collect()  # a failed client's `__del__` deadlocks if it runs while another client starts
            hint = "; set up TLS in Dask's configuration, distributed.comm.tls" if cluster.startswith("tls:") else ""
            raise PodiumError(f"there is no Dask scheduler at {cluster}: {problem}{hint}")
        with client:
            yield client
        return
    n_workers = int(local[1])
    with (
        distributed.LocalCluster(
            n_workers=n_workers, threads_per_worker=max(1, thread_count(None) // n_workers), dashboard_address=None
        ) as here,
        distributed.Client(here) as client,
    ):
        yield client


class HolderActor(Holder):
    """A `Holder` that is called through Dask."""

    def ping(self) -> None:
        """Do nothing; an answer shows that a direct call arrives."""

    def run_packed(self, message: bytes) -> Any:
        """Return the answer to pickled calls, or the error that they raise.

        An error that is raised here looks like one of the connection to the caller, so it is returned.
        """
        try:
            return self.run(import_distributed().protocol.pickle.loads(message))
        except Exception as error:
            return error


class DaskEngine(Engine):
    """The workers of a Dask cluster.

    Args:
        client: a client of the cluster.
        timeout: seconds that a worker may take for an answer.
        heartbeat: seconds without a heartbeat after which a worker is restarted.

    """

    def __init__(self, client: Any, timeout: float = TIMEOUT, heartbeat: float = HEARTBEAT) -> None:
        super().__init__()
        self.distributed = import_distributed()
        self.client, self.timeout, self.heartbeat = client, timeout, heartbeat
        self._expected: set[str] = set()  # workers that hold documents, or start to
        self._last_beats: dict[str, tuple[float, int]] = {}  # of each worker, and for how many looks it is the last
        self._calls_directly: bool | None = None
        self._direct_before: Any = None
        self._futures: dict[int, tuple[Source, Any]] = {}

    def workers(self) -> dict[str, int]:
        while not (threads := self._threads()):  # the worker that was waited for may have left again
            self.wait_for_worker(SECONDS_TO_REPLACE)
        return threads

    def _threads(self) -> dict[str, int]:
        try:
            return {str(address): int(n) for address, n in sorted(self.client.nthreads().items())}
        except (OSError, TimeoutError) as error:
            raise PodiumError(
                f"the Dask scheduler cannot be reached ({error}): start the cluster again; a fit with checkpoint=… "
                "goes on where it was stopped"
            ) from error

    def wait_for_worker(self, seconds: float) -> None:
        """If there is no worker, wait until one runs an empty task: an adaptive cluster starts workers for tasks."""
        if self._threads():
            return
        try:
            self.client.submit(int, pure=False).result(timeout=seconds)
        except TimeoutError as error:
            raise _without_workers(seconds) from error

    # --- sources

    def _delayed(self, source: Source) -> Any:
        """Return a source as a delayed value, or as a future if it was computed before."""
        from dask.delayed import delayed

        if id(source) in self._futures:
            return self._futures[id(source)][1]
        if isinstance(source, list):
            return [self._delayed(one) for one in source]
        if isinstance(source, DerivedSource):
            value = delayed(source.function, pure=False)(*map(self._delayed, source.arguments))
        elif isinstance(source, RankingData):  # as a task: Dask repeats it if its worker is lost
            value = self._submit(pickle.loads, pickle.dumps(source))
        else:
            return source
        self._futures[id(source)] = source, value  # a source that several others need is computed once
        return value

    def _submit(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        import dask

        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
            return self.client.submit(function, *arguments, pure=False, **options)

    def _futures_of(self, sources: Sequence[Source]) -> list[Any]:
        from dask.base import is_dask_collection

        values = [self._delayed(source) for source in sources]
        lazy = [value for value in values if is_dask_collection(value)]
        computed = iter(self.client.compute(lazy, sync=False) if lazy else [])
        futures = [next(computed) if is_dask_collection(value) else value for value in values]
        for source, future in zip(sources, futures, strict=True):
            self._futures[id(source)] = source, future
        return futures

    def compute(self, function: Callable[..., Any], sources: Sequence[Source]) -> list[Any]:
        results = [self._submit(function, future) for future in self._futures_of(sources)]
        return [self._wait(result) for result in results]

    def locate(self, sources: Sequence[Source]) -> list[str | None]:
        futures = self._futures_of(sources)
        has = self.client.who_has(futures)
        return [next(iter(sorted(has.get(future.key, ()))), None) for future in futures]

    # --- holders

    def start_holders(self, placement: Mapping[str, Placement]) -> dict[str, Any]:
        self._expected = {*self.holders, *placement}
        sources = [source for p in placement.values() for of_set in p.sets.values() for _, source in of_set]
        futures = iter(self._futures_of(sources))
        started = {}
        for worker, p in placement.items():
            sets = {name: [(k, next(futures)) for k, _ in of_set] for name, of_set in p.sets.items()}
            started[worker] = self._submit(
                HolderActor, p.number, sets, p.n_threads, actor=True, workers=[worker], allow_other_workers=False
            )
        actors = {worker: self._wait(future) for worker, future in started.items()}
        self._futures = {}  # the holders have what they need
        if actors and self._calls_directly is None:
            self._try_direct_calls(next(iter(actors.values())))
        return actors

    def _try_direct_calls(self, actor: Any) -> None:
        """Call workers directly if they can be reached from here, as they can in most clusters.

        Otherwise calls go through the scheduler, as they do in Dask by default.
        """
        self._direct_before, self.client.direct_to_workers = self.client.direct_to_workers, True
        self._calls_directly = True
        try:
            actor.ping().result(timeout=SECONDS_TO_REACH)
        except Exception:
            self.client.direct_to_workers, self._calls_directly = self._direct_before, False

    def ask(self, calls: Mapping[str, Calls]) -> list[Any]:
        # Dask sends arrays apart, and they arrive at any address; kernels are compiled for aligned ones.
        distinct = {id(of_worker): of_worker for of_worker in calls.values()}
        messages = {key: self.distributed.protocol.pickle.dumps(of_worker) for key, of_worker in distinct.items()}
        try:
            waiting = [self.holders[worker].run_packed(messages[id(of)]) for worker, of in calls.items()]
        except RuntimeError as error:  # "Worker holding Actor was lost"
            raise self._loss(error) from error
        answers = [self._wait(answer) for answer in waiting]
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        self.n_bytes += sum(map(n_bytes_of, answers))
        return answers

    # --- time limits

    def _wait(self, answer: Any) -> Any:
        """Return the result of a task or of an actor's call, and look after the workers until it comes.

        Raises:
            WorkerLostError: if a worker that holds documents has left.
            PodiumError: if the answer takes longer than `timeout`, or no worker is left and none comes.

        """
        last_worker_seen = time.monotonic()
        deadline = last_worker_seen + self.timeout
        while True:
            asked = time.monotonic()
            try:
                return answer.result(timeout=SECONDS_BETWEEN_LOOKS)
            except self.distributed.CancelledError as error:
                self._futures = {}
                raise WorkerLostError("a worker has left with documents") from error
            except self.distributed.KilledWorker as error:
                raise PodiumError(f"{error} If memory is short, use smaller partitions or more workers.") from error
            except Exception as error:
                if getattr(answer, "status", "") == "error":  # the task failed: a file is missing, for example
                    raise
                if not isinstance(error, TimeoutError) or time.monotonic() - asked < SECONDS_BETWEEN_LOOKS / 2:
                    raise self._loss(error) from error
                self.look_after_workers()
                if self._threads():
                    last_worker_seen = time.monotonic()
                elif time.monotonic() > last_worker_seen + SECONDS_TO_REPLACE:
                    raise _without_workers(SECONDS_TO_REPLACE) from error
                if time.monotonic() > deadline:
                    raise PodiumError(
                        f"a worker gave no answer in {self.timeout:g} seconds: look at the cluster's dashboard and "
                        "logs, or allow more with timeout=…"
                    ) from error

    def look_after_workers(self) -> None:
        """Restart workers that have sent no heartbeat for `heartbeat` seconds, and raise if a holder was lost.

        Looks are counted rather than seconds: if the scheduler itself was suspended, all heartbeats are old for a
        moment.
        """
        self._require_holders()
        beats = self.client.run_on_scheduler(
            lambda dask_scheduler: {ws.address: ws.last_seen for ws in dask_scheduler.workers.values()}
        )
        silent = []
        for worker, beat in beats.items():
            last, n_looks = self._last_beats.get(worker, (beat, 0))
            n_looks = n_looks + 1 if last == beat else 0
            self._last_beats[worker] = beat, n_looks
            if n_looks * SECONDS_BETWEEN_LOOKS >= self.heartbeat:
                silent.append(worker)
        if silent:
            self._restart(silent)
            lost = self._expected.intersection(silent)
            if lost:
                raise WorkerLostError(f"worker {min(lost)} sent no heartbeat for {self.heartbeat:g} seconds")

    def _restart(self, workers: list[str]) -> None:
        """End workers as Dask does after `distributed.scheduler.worker-ttl`; a worker's nanny starts another one."""

        async def restart(dask_scheduler: Any) -> None:
            await dask_scheduler.restart_workers(
                workers, timeout=seconds, wait_for_workers=False, on_error="return", stimulus_id="podium-no-heartbeat"
            )

        seconds = SECONDS_TO_RESTART
        self.client.run_on_scheduler(restart)

    def _require_holders(self) -> None:
        lost = self._expected.difference(self._threads())
        if lost:
            raise WorkerLostError(f"worker {min(lost)} has left")

    def _loss(self, error: BaseException) -> PodiumError:
        """Return the error for a connection that failed. The scheduler notices soon that the worker was lost."""
        looks, more = divmod(self.heartbeat + SECONDS_TO_NOTICE, SECONDS_BETWEEN_LOOKS)
        try:
            for _ in range(int(looks) + bool(more)):
                for _ in range(10):
                    self._require_holders()
                    time.sleep(SECONDS_BETWEEN_LOOKS / 10)
                self.look_after_workers()
        except PodiumError as lost:
            return lost
        return PodiumError(
            f"a worker cannot be reached, though the scheduler hears from all of them: {error}. Look at the network "
            "between the client and the workers"
        )

    def close(self) -> None:
        self.holders, self._futures, self._expected = {}, {}, set()
        if self._calls_directly:
            self.client.direct_to_workers = self._direct_before
        self._calls_directly = None


def _without_workers(seconds: float) -> PodiumError:
    return PodiumError(
        f"the cluster has no worker, and none came in {seconds:g} seconds: start workers; a fit with checkpoint=… "
        "goes on where it was stopped"
    )


def n_bytes_of(answer: Any) -> int:
    """Return the bytes of all arrays in an answer."""
    if isinstance(answer, np.ndarray):
        return int(answer.nbytes)
    if isinstance(answer, dict):
        return sum(map(n_bytes_of, answer.values()))
    if isinstance(answer, list | tuple):
        return sum(map(n_bytes_of, answer))
    return n_bytes_of(answer.value) if hasattr(answer, "value") else 0
