"""A Dask cluster as an engine.

Sources are Dask futures. Each worker holds its documents in an actor. Calling an actor's method directly on its worker
takes a millisecond or two, because it adds no task to the scheduler's graph. The client asks all workers at the same
time and merges their answers. Workers never wait for each other. So if one is lost, only the client waits for it, and
checks the workers meanwhile.
"""

from __future__ import annotations

import gc
import math
import pickle
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from podium.core.threads import thread_count
from podium.data import RankingData
from podium.distributed.clusters import import_library
from podium.distributed.engine import (
    HEARTBEAT,
    PENDING,
    SECONDS_BETWEEN_CHECKS,
    TIMEOUT,
    Engine,
    Placement,
    WorkerLostError,
    no_workers_error,
    pack_once,
)
from podium.distributed.holder import Calls, Holder
from podium.distributed.sources import Columns, DerivedSource, Source, empty_data, frame_to_data
from podium.errors import DataError, PodiumError

SECONDS_TO_NOTICE = 5.0  # time for the scheduler to notice a closed connection
SECONDS_TO_RESTART = 10.0  # time for a nanny to end a worker before the scheduler drops it
SECONDS_TO_REACH = 5.0  # time for a worker to answer a direct call
SECONDS_TO_CONNECT = 30.0


class HolderActor(Holder):
    """A `Holder` as a Dask actor."""

    def ping(self) -> None:
        """Do nothing; an answer shows that the client can call the worker directly."""

    def run_packed(self, message: bytes) -> Any:
        """Return the answer to pickled calls, or the error that they raise.

        Raised errors look like failed connections to the caller, so this method returns them.
        """
        try:
            return self.run(import_library("dask").protocol.pickle.loads(message))
        except Exception as error:
            return error


class DaskEngine(Engine):
    """The workers of a Dask cluster.

    Args:
        client: a client of the cluster; the current one by default.
        timeout: seconds to wait for an answer of a worker.
        heartbeat: seconds without a heartbeat after which a worker is restarted.

    Example:
        >>> from distributed import Client
        >>> from podium.distributed import DaskEngine
        >>> with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None) as client:
        ...     print([*DaskEngine(client).workers().values()])
        [1, 1]

    """

    cluster = "dask"
    collections = "a Dask DataFrame, a Dask Array with y and qid"

    def __init__(self, client: Any = None, timeout: float = TIMEOUT, heartbeat: float = HEARTBEAT) -> None:
        super().__init__(timeout, heartbeat)
        self.distributed = import_library("dask")
        self.client = self.distributed.get_client() if client is None else client
        self._expected: set[str] = set()  # workers that hold documents or are about to
        self._calls_directly: bool | None = None
        self._direct_before: Any = None
        self._futures: dict[int, tuple[Source, Any]] = {}

    @classmethod
    def is_running(cls) -> bool:
        if "distributed" not in sys.modules:
            return False
        try:
            return bool(import_library("dask").get_client())
        except ValueError:  # no client
            return False

    @classmethod
    @contextmanager
    def connected(cls, address: str) -> Iterator[dict[str, Any]]:
        """Connect to the scheduler at an address, or start `local:N`: N workers on this machine."""
        distributed = import_library("dask")
        if address.startswith("local:"):
            n_workers = int(address.removeprefix("local:"))
            n_threads = max(1, thread_count(None) // n_workers)
            with (
                distributed.LocalCluster(
                    n_workers=n_workers, threads_per_worker=n_threads, dashboard_address=None
                ) as cluster,
                distributed.Client(cluster) as client,
            ):
                yield {"client": client}
            return
        problem = None
        try:
            client = distributed.Client(address, timeout=SECONDS_TO_CONNECT)
        except Exception as error:  # Dask raises many kinds of errors for invalid addresses
            problem = str(error)
        if problem is not None:
            gc.collect()  # a failed client's `__del__` deadlocks if it runs while another client starts
            hint = "; set up TLS in Dask's configuration, distributed.comm.tls" if address.startswith("tls:") else ""
            raise PodiumError(f"cannot connect to a Dask scheduler at {address}: {problem}{hint}")
        with client:
            yield {"client": client}

    def current_workers(self) -> dict[str, int]:
        try:
            return {str(address): int(n) for address, n in sorted(self.client.nthreads().items())}
        except (OSError, TimeoutError) as error:
            raise PodiumError(
                f"cannot reach the Dask scheduler ({error}): restart the cluster; a fit with checkpoint=… resumes "
                "where it stopped"
            ) from error

    def wait_for_worker(self, seconds: float) -> None:
        """Wait until there is a worker, by running an empty task: an adaptive cluster starts workers for tasks."""
        if self.current_workers():
            return
        try:
            self.client.submit(int, pure=False).result(timeout=seconds)
        except TimeoutError as error:
            raise no_workers_error(seconds) from error

    # --- sources

    def collection_sources(self, X: Any, columns: Columns, categorical: tuple[Any, ...]) -> list[Source] | None:
        if is_dask_frame(X):
            return frame_sources(X, columns, categorical)
        return array_sources(X, columns) if is_dask_array(X) else None

    @classmethod
    def lazy_scores(cls, X: Any, predict: Callable[[Any], Any], dtype: Any) -> Any:
        def score(rows: Any) -> Any:
            return predict(rows) if len(rows) else np.empty(0, dtype)

        if is_dask_frame(X):
            import pandas as pd

            def score_partition(frame: Any) -> Any:
                return pd.Series(score(frame), index=frame.index, name="score")

            return X.map_partitions(score_partition, meta=pd.Series(np.empty(0, dtype), name="score"))
        if is_dask_array(X):
            return X.rechunk({1: -1}).map_blocks(score, drop_axis=1, dtype=dtype, meta=np.empty(0, dtype))
        return None

    def _delayed(self, source: Source) -> Any:
        """Return a source as a delayed value, or as a future once it has been computed."""
        from dask.delayed import delayed

        if id(source) in self._futures:
            return self._futures[id(source)][1]
        if isinstance(source, list):
            return [self._delayed(entry) for entry in source]
        if isinstance(source, DerivedSource):
            value = delayed(source.function, pure=False)(*map(self._delayed, source.arguments))
        elif isinstance(source, RankingData):  # a task, so that Dask repeats it if its worker is lost
            value = self.submit(pickle.loads, pickle.dumps(source))
        else:
            return source
        self._futures[id(source)] = source, value  # sources that others share are computed once
        return value

    def submit(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Run a function on any worker, and return its future."""
        import dask

        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
            return self.client.submit(function, *arguments, pure=False, **options)

    def _futures_of(self, sources: Sequence[Source]) -> list[Any]:
        from dask.base import is_dask_collection

        values = [self._delayed(source) for source in sources]
        lazy = [value for value in values if is_dask_collection(value)]
        started = iter(self.client.compute(lazy, sync=False) if lazy else [])
        futures = [next(started) if is_dask_collection(value) else value for value in values]
        for source, future in zip(sources, futures, strict=True):
            self._futures[id(source)] = source, future
        return futures

    def compute(self, function: Callable[..., Any], sources: Sequence[Source]) -> list[Any]:
        results = [self.submit(function, future) for future in self._futures_of(sources)]
        return [self.wait(result) for result in results]

    def locate(self, sources: Sequence[Source]) -> list[str | None]:
        futures = self._futures_of(sources)
        workers = self.client.who_has(futures)
        return [min(workers.get(future.key, ()), default=None) for future in futures]

    # --- holders

    def start_holders(self, placement: Mapping[str, Placement]) -> dict[str, Any]:
        self._expected = {*self.holders, *placement}
        self._futures_of([source for p in placement.values() for parts in p.sets.values() for _, source in parts])
        started = {}
        for worker, p in placement.items():
            sets = p.resolved(self._delayed)  # futures, because all sources have been computed
            started[worker] = self.submit(
                HolderActor, p.number, sets, p.n_threads, actor=True, workers=[worker], allow_other_workers=False
            )
        actors = {worker: self.wait(future) for worker, future in started.items()}
        self._futures = {}  # the holders have what they need
        if actors and self._calls_directly is None:
            self._try_direct_calls(next(iter(actors.values())))
        return actors

    def _try_direct_calls(self, actor: Any) -> None:
        """Call workers directly if this process can reach them, as it can in most clusters.

        Otherwise calls go through the scheduler, which is Dask's default.
        """
        self._direct_before, self.client.direct_to_workers = self.client.direct_to_workers, True
        self._calls_directly = True
        try:
            actor.ping().result(timeout=SECONDS_TO_REACH)
        except Exception:
            self.client.direct_to_workers, self._calls_directly = self._direct_before, False

    def ask(self, calls: Mapping[str, Calls]) -> list[Any]:
        # Dask sends arrays separately, possibly to unaligned addresses, but kernels are compiled for aligned arrays.
        messages = pack_once(calls, self.distributed.protocol.pickle.dumps)
        try:
            pending = [self.holders[worker].run_packed(message) for worker, message in messages.items()]
        except RuntimeError as error:  # "Worker holding Actor was lost"
            raise self._loss_error(error) from error
        answers = [self.wait(answer) for answer in pending]
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        return answers

    # --- time limits

    def result(self, pending: Any, seconds: float) -> Any:
        started = time.monotonic()
        try:
            return pending.result(timeout=seconds)
        except self.distributed.CancelledError as error:
            self._futures = {}
            raise WorkerLostError("a worker that holds documents has left") from error
        except self.distributed.KilledWorker as error:
            raise PodiumError(f"{error} If memory is short, use smaller partitions or more workers.") from error
        except Exception as error:
            if getattr(pending, "status", "") == "error":  # the task failed, for example because a file is missing
                raise
            if not isinstance(error, TimeoutError) or time.monotonic() - started < seconds / 2:
                raise self._loss_error(error) from error
            return PENDING

    def check_workers(self) -> None:
        self._require_holders()
        silent = self.silent_workers(
            self.client.run_on_scheduler(
                lambda dask_scheduler: {ws.address: ws.last_seen for ws in dask_scheduler.workers.values()}
            )
        )
        if silent:
            self._restart(silent)
            lost = self._expected.intersection(silent)
            if lost:
                raise self.silent_error(min(lost))

    def _restart(self, workers: list[str]) -> None:
        """Restart workers as Dask does after `distributed.scheduler.worker-ttl`, by means of their nannies."""

        async def restart(dask_scheduler: Any) -> None:
            await dask_scheduler.restart_workers(
                workers, timeout=seconds, wait_for_workers=False, on_error="return", stimulus_id="podium-no-heartbeat"
            )

        seconds = SECONDS_TO_RESTART
        self.client.run_on_scheduler(restart)

    def _require_holders(self) -> None:
        lost = self._expected.difference(self.current_workers())
        if lost:
            raise WorkerLostError(f"worker {min(lost)} has left")

    def _loss_error(self, error: BaseException) -> PodiumError:
        """Return the error for a failed connection, after waiting for the scheduler to notice a lost worker."""
        n_checks = math.ceil((self.heartbeat + SECONDS_TO_NOTICE) / SECONDS_BETWEEN_CHECKS)
        try:
            for _ in range(n_checks):
                for _ in range(10):
                    self._require_holders()
                    time.sleep(SECONDS_BETWEEN_CHECKS / 10)
                self.check_workers()
        except PodiumError as lost:
            return lost
        return PodiumError(
            f"cannot reach a worker, although the scheduler is connected to all of them: {error}. Check the network "
            "between the client and the workers"
        )

    def release(self) -> None:
        self.holders, self._futures, self._expected = {}, {}, set()
        # Dask ends an actor once Python has collected all handles to it; tracebacks of losses keep handles in cycles.
        gc.collect()
        if self._calls_directly:
            self.client.direct_to_workers = self._direct_before
        self._calls_directly = None


# --- collections of Dask


def is_dask_frame(value: Any) -> bool:
    """Return whether a value is a Dask DataFrame."""
    return hasattr(value, "to_delayed") and hasattr(value, "npartitions") and hasattr(value, "columns")


def is_dask_array(value: Any) -> bool:
    """Return whether a value is a Dask Array."""
    return hasattr(value, "to_delayed") and hasattr(value, "chunks")


def frame_sources(X: Any, columns: Columns, categorical: tuple[Any, ...]) -> list[Source]:
    """Return a source for each partition of a frame; columns are names, or Series with the same partitions."""
    for name, value in columns.items():
        if not isinstance(value, str) and getattr(value, "npartitions", None) != X.npartitions:
            raise DataError(f"{name} must be the name of a column, or a Dask Series with the partitions of the frame")
    values = [[v] * X.npartitions if isinstance(v, str) else v.to_delayed() for v in columns.values()]
    return [
        DerivedSource(frame_to_data, (part, list(columns), [parts[k] for parts in values], categorical))
        for k, part in enumerate(X.to_delayed())
    ]


def array_sources(X: Any, columns: Columns) -> list[Source]:
    """Return a source for each block of rows, with the labels and query ids of the same rows."""
    for name in ("y", "qid"):
        if not is_dask_array(columns.get(name)):
            raise DataError(f"if X is a Dask Array, {name} must be one as well: fit(X, y, qid=qid)")
    X = X.rechunk({1: -1})
    for name, value in columns.items():
        if not is_dask_array(value) or value.shape != X.shape[:1]:
            raise DataError(f"{name} must be a Dask Array with an entry for each of the {X.shape[0]} rows")
    values = [value.rechunk((X.chunks[0],)).to_delayed() for value in columns.values()]
    return [
        DerivedSource(_block_to_data, (block, list(columns), [blocks[k] for blocks in values]))
        for k, block in enumerate(X.to_delayed()[:, 0])
    ]


def _block_to_data(block: Any, names: list[str], values: list[Any]) -> RankingData:
    if not len(block):
        return empty_data()
    columns = dict(zip(names, values, strict=True))
    return RankingData(
        block, columns["y"], qid=columns["qid"], document_weights=columns.get("sample_weight"),
        query_weights=columns.get("query_weight"),
    )  # fmt: skip
