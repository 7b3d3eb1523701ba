"""A Ray cluster as an engine.

Each worker is an actor that reads partitions, holds documents and answers calls. Partitions are objects in Ray's store,
which the workers of a node share, and which outlive the worker that created them. The client calls all actors at the
same time and merges their answers. Ray notices a process that has ended, but not one that hangs. So while the client
waits, it also calls `beat` of each actor, which runs in a separate thread.
"""

from __future__ import annotations

import logging
import pickle
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.core.validation import require_whole
from podium.data import RankingData
from podium.distributed.clusters import import_library
from podium.distributed.engine import PENDING, Engine, Placement, WorkerLostError, pack_once
from podium.distributed.holder import Calls, Holder
from podium.distributed.sources import Columns, DerivedSource, Source, frame_to_data
from podium.errors import DataError, PodiumError

LARGE = 100_000  # bytes; a larger message is sent once for all workers of a node
MOST_FAILURES = 3  # consecutive failures to start a worker before training gives up
SECONDS_TO_END = 2.0  # time for Ray to end workers and free their processors
SECONDS_TO_JOIN = 5.0  # time to wait for further workers before training starts


class RayWorker:
    """The actor of a worker, which computes sources and holds documents."""

    def __init__(self) -> None:
        self.holder: Any = None

    def place(self) -> tuple[str, str, str]:
        """Return the ids of the actor and of its node, and the node's address."""
        import ray

        context = ray.get_runtime_context()
        return context.get_actor_id(), context.get_node_id(), ray.util.get_node_ip_address()

    def compute(self, function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
        """Apply a function to values and to objects in Ray's store."""
        return function(*_fetch(arguments))

    def hold(self, number: int, sets: Mapping[str, Any], n_threads: int) -> None:
        """Hold documents instead of the previous ones."""
        self.holder = None
        self.holder = Holder(number, _fetch(sets), n_threads)

    def release(self) -> None:
        """Release the documents."""
        self.holder = None

    def run(self, message: bytes) -> bytes:
        """Return the pickled answer of the holder to pickled calls.

        The client overwrites arrays when it merges answers, but arrays in Ray's store are read-only.
        """
        return pickle.dumps(self.holder.run(pickle.loads(message)), 5)

    def beat(self) -> None:
        """Do nothing; an answer, which a separate thread gives, shows that the process runs."""


def _fetch(value: Any) -> Any:
    """Return a value with references to Ray's store replaced by their objects."""
    import ray

    if isinstance(value, ray.ObjectRef):
        return ray.get(value)
    if type(value) in (list, tuple):
        return type(value)(_fetch(entry) for entry in value)
    return {key: _fetch(entry) for key, entry in value.items()} if type(value) is dict else value


@dataclass
class StartedWorker:
    """An actor that was started, the site it was started for, and its last heartbeat."""

    actor: Any
    site: str
    n_threads: int
    place: Any  # the pending answer to `RayWorker.place`, which shows that the actor has started
    actor_id: str = ""
    node: str = ""
    beat: Any = None  # the pending answer to `beat`
    n_beats: int = 0


class RayEngine(Engine):
    """Actors of a Ray cluster as workers.

    By default, every node has a worker with all of its processors, except those of the calling task. In the placement
    group of a Ray Tune trial, every bundle but the first has a worker.

    Args:
        n_workers: the number of workers, on any nodes with free processors.
        cpus_per_worker: the number of processors that each worker reserves, and of its threads; 1 by default if
            `n_workers` is set.
        limits: `timeout` and `heartbeat`, see `Engine`.

    Example:
        >>> from podium.distributed import RayEngine
        >>> RayEngine(n_workers=0)
        Traceback (most recent call last):
        podium.errors.DataError: n_workers must be a whole number from 1 or None, but is 0

    """

    cluster = "ray"
    collections = "a ray.data.Dataset"

    def __init__(self, n_workers: int | None = None, cpus_per_worker: int | None = None, **limits: float) -> None:
        super().__init__(**limits)
        require_whole("n_workers", n_workers, 1, optional=True)
        require_whole("cpus_per_worker", cpus_per_worker, 1, optional=True)
        self.n_workers, self.cpus_per_worker, self.ray = n_workers, cpus_per_worker, import_library("ray")
        if not self.ray.is_initialized():
            raise PodiumError("this process is not connected to a Ray cluster: call ray.init() first")
        self._actor_class = self.ray.remote(concurrency_groups={"beat": 1})(RayWorker)
        self._free_cpus = self._count_free_cpus()  # without those of other jobs
        self._workers: dict[str, StartedWorker] = {}
        self._starting: list[StartedWorker] = []
        self._n_started, self._n_failed = 0, 0  # workers that have started; attempts that have failed since the last
        self._objects: dict[int, tuple[Source, Any, str | None]] = {}  # of each source, and the worker that computes it
        self._n_sources: Counter[str] = Counter()  # the number of sources that each worker computes
        self._nodes: dict[Any, list[str]] = {}  # the nodes that hold each block of a data set

    @classmethod
    def is_running(cls) -> bool:
        return "ray" in sys.modules and bool(import_library("ray").is_initialized())

    @classmethod
    @contextmanager
    def connected(cls, address: str) -> Iterator[dict[str, Any]]:
        """Connect to `ray://…` or, with `auto`, to this machine's cluster; `ray` starts one if there is none."""
        ray = import_library("ray")
        if ray.is_initialized():
            yield {}
            return
        try:
            ray.init(None if address == "ray" else address, logging_level=logging.ERROR)
        except (OSError, ValueError, ImportError, RuntimeError) as error:
            hint = "; if the cluster requires a token, set RAY_AUTH_MODE=token" if "://" in address else ""
            raise PodiumError(f"cannot connect to a Ray cluster at {address}: {error}{hint}") from error
        try:
            yield {}
        finally:
            ray.shutdown()

    # --- workers

    def _sites(self) -> dict[str, tuple[dict[str, Any], int]]:
        """Return where workers should be: for each site, the options of the actor and its number of threads."""
        strategies, context = self.ray.util.scheduling_strategies, self.ray.get_runtime_context()
        try:
            reserved = int(context.get_assigned_resources().get("CPU", 0))
        except AssertionError:  # not in a task or actor
            reserved = 0
        group = self.ray.util.get_current_placement_group()
        is_in_group = group is not None and context.should_capture_child_tasks_in_placement_group
        if self.n_workers is not None:
            n, spread = self.cpus_per_worker or 1, {} if is_in_group else {"scheduling_strategy": "SPREAD"}
            return {str(k): ({"num_cpus": n} | spread, n) for k in range(self.n_workers)}
        if is_in_group:
            cpus = {str(k): int(bundle.get("CPU", 0)) for k, bundle in enumerate(group.bundle_specs)}
            places = {k: strategies.PlacementGroupSchedulingStrategy(group, int(k)) for k in cpus}
            here = "0"  # where Ray Tune runs the trial
            n_free = sum(cpus.values()) - reserved
        else:
            nodes = {node["NodeID"]: node["Resources"] for node in self.ray.nodes() if node["Alive"]}
            cpus = {node: int(resources.get("CPU", 0)) for node, resources in nodes.items()}
            places = {node: strategies.NodeAffinitySchedulingStrategy(node, soft=False) for node in cpus}
            here, n_free = context.get_node_id(), self._free_cpus
        if not n_free and not reserved:  # other jobs use all processors: wait for them
            n_free = max(cpus.values())
        cpus[here] = cpus.get(here, 0) - reserved
        sites = {}
        for site, n_cpus in cpus.items():
            n = self.cpus_per_worker or min(n_cpus, n_free)
            if 0 < n <= n_cpus:
                sites[site] = {"num_cpus": n, "scheduling_strategy": places[site]}, n
        if not sites and reserved:  # this task only waits, so a worker may use its processors
            sites[here] = {"num_cpus": 0, "scheduling_strategy": places[here]}, reserved
        return sites

    def wait_for_worker(self, seconds: float) -> None:
        """Wait for the first worker, then a few seconds for others, so that documents need not move to them later."""
        if not self._sites():
            raise PodiumError("no node of the Ray cluster has enough processors for a worker: lower cpus_per_worker")
        super().wait_for_worker(seconds)
        deadline = time.monotonic() + SECONDS_TO_JOIN
        while self._starting and time.monotonic() < deadline:
            time.sleep(SECONDS_TO_JOIN / 100)
            self.current_workers()

    def current_workers(self) -> dict[str, int]:
        """Return the workers that have started, and start one at each site without a worker."""
        occupied = {worker.site for worker in (*self._workers.values(), *self._starting)}
        for site, (options, n_threads) in self._sites().items():
            if site not in occupied:
                actor = self._actor_class.options(**options).remote()
                self._starting.append(StartedWorker(actor, site, n_threads, actor.place.remote()))
        for worker in list(self._starting):
            if self._is_done(worker.place):
                self._starting.remove(worker)
                self._add_worker(worker)
        return {name: worker.n_threads for name, worker in self._workers.items()}

    def _add_worker(self, worker: StartedWorker) -> None:
        """Add a worker that has started; raise if too many could not start."""
        try:
            worker.actor_id, worker.node, address = self.ray.get(worker.place)
        except self.ray.exceptions.RayError as error:
            _end(worker)
            self._n_failed += 1
            if self._n_failed >= MOST_FAILURES:
                raise PodiumError(f"cannot start a worker: {error}") from error
            return
        self._n_failed = 0
        self._workers[f"{self._n_started} at {address}"] = worker
        self._n_started += 1

    def _is_done(self, answer: Any, seconds: float = 0.0) -> bool:
        return bool(self.ray.wait([answer], timeout=seconds)[0])

    def _count_free_cpus(self) -> int:
        return int(self.ray.available_resources().get("CPU", 0))

    # --- sources

    def collection_sources(self, X: Any, columns: Columns, categorical: tuple[Any, ...]) -> list[Source] | None:
        if not _is_dataset(X):
            return None
        for name, value in columns.items():
            if not isinstance(value, str):
                raise DataError(f"{name} must be the name of a column of the ray.data.Dataset, not {value!r:.60}")
        if self._workers and not self._count_free_cpus():
            self.close()  # computing the data set needs a processor; workers start again later
        blocks = X.to_arrow_refs()
        if self.ray.wait(blocks, num_returns=len(blocks), timeout=self.timeout, fetch_local=False)[1]:
            raise PodiumError(f"the ray.data.Dataset was not ready within {self.timeout:g} seconds: raise timeout=…")
        with suppress(Exception):  # this experimental interface is missing in clients at ray://…
            places = self.ray.experimental.get_object_locations(blocks)
            self._nodes |= {block: place["node_ids"] for block, place in places.items()}
        return [DerivedSource(_block_to_data, (block, columns, categorical)) for block in blocks]

    @classmethod
    def lazy_scores(cls, X: Any, predict: Callable[[Any], Any], dtype: Any) -> Any:
        if not _is_dataset(X):
            return None

        def scored(frame: Any) -> Any:
            return frame.assign(score=predict(frame) if len(frame) else np.empty(0, dtype))

        return X.map_batches(scored, batch_format="pandas", batch_size=None)

    def _object(self, source: Source) -> Any:
        """Return a reference to the value of a source in Ray's store; the first call computes it."""
        if id(source) in self._objects:
            return self._objects[id(source)][1]
        worker = None
        if isinstance(source, list):
            return [self._object(entry) for entry in source]
        if isinstance(source, DerivedSource):
            arguments = [self._object(argument) for argument in source.arguments]
            worker = self._worker_near(arguments)
            value = self._workers[worker].actor.compute.remote(source.function, arguments)
        elif isinstance(source, RankingData):
            value = self.ray.put(source)
        else:
            return source
        self._objects[id(source)] = source, value, worker
        return value

    def _worker_near(self, arguments: Sequence[Any]) -> str:
        """Return the worker with the fewest sources, preferably on a node that has one of the objects."""
        objects = [argument for argument in arguments if isinstance(argument, self.ray.ObjectRef)]
        nodes = {node for reference in objects for node in self._nodes.get(reference, ())}
        workers = self.workers()
        near = [name for name in workers if self._workers[name].node in nodes]
        worker = min(near or workers, key=lambda name: (self._n_sources[name], name))
        self._n_sources[worker] += 1
        return worker

    def compute(self, function: Callable[..., Any], sources: Sequence[Source]) -> list[Any]:
        results = []
        for source in sources:
            value = self._object(source)
            worker = self._location(source) or self._worker_near([])
            results.append(self._workers[worker].actor.compute.remote(function, [value]))
        return [self.wait(result) for result in results]

    def _location(self, source: Source) -> str | None:
        """Return the worker that has computed a source, if it has not left."""
        worker = self._objects[id(source)][2] if id(source) in self._objects else None
        return worker if worker in self._workers else None

    def locate(self, sources: Sequence[Source]) -> list[str | None]:
        for source in sources:
            self._object(source)
        return [self._location(source) for source in sources]

    # --- holders

    def start_holders(self, placement: Mapping[str, Placement]) -> dict[str, Any]:
        answers = {}
        for worker, p in placement.items():
            sets = p.resolved(self._object)
            answers[worker] = self._actor(worker).hold.remote(p.number, sets, p.n_threads)
        for answer in answers.values():
            self.wait(answer)
        self._objects, self._n_sources = {}, Counter()  # the holders have what they need
        return {worker: self._actor(worker) for worker in placement}

    def _actor(self, worker: str) -> Any:
        if worker not in self._workers:
            raise WorkerLostError(f"worker {worker} has left")
        return self._workers[worker].actor

    def ask(self, calls: Mapping[str, Calls]) -> list[Any]:
        def pack(worker_calls: Calls) -> Any:
            message = self.ray.cloudpickle.dumps(worker_calls)
            return self.ray.put(message) if len(message) > LARGE else message

        messages = pack_once(calls, pack)
        answers = [self._actor(worker).run.remote(message) for worker, message in messages.items()]
        return [pickle.loads(self.wait(answer)) for answer in answers]

    def result(self, pending: Any, seconds: float) -> Any:
        if not self._is_done(pending, seconds):
            return PENDING
        errors = self.ray.exceptions
        try:
            return self.ray.get(pending)
        except errors.RayError as error:
            cause: Any = error
            while isinstance(cause, errors.RayTaskError):
                cause = cause.cause
            if isinstance(cause, errors.RayActorError | errors.ObjectLostError | errors.NodeDiedError):
                raise self._loss_error(cause) from error
            raise cause from error

    def _loss_error(self, error: Any) -> WorkerLostError:
        """Return the error for a worker that has ended, or for objects lost with their node."""
        self._objects = {}
        for name, worker in self._workers.items():
            if worker.actor_id == getattr(error, "actor_id", None):
                _end(self._workers.pop(name))
                return WorkerLostError(f"worker {name} has left")
        return WorkerLostError(f"a worker that holds documents has left ({type(error).__name__})")

    def check_workers(self) -> None:
        for worker in self._workers.values():
            if worker.beat is not None and self._is_done(worker.beat):
                self.result(worker.beat, 0.0)
                worker.n_beats, worker.beat = worker.n_beats + 1, None
            if worker.beat is None:
                worker.beat = worker.actor.beat.options(concurrency_group="beat").remote()
        silent = self.silent_workers({name: worker.n_beats for name, worker in self._workers.items()})
        for name in silent:
            _end(self._workers.pop(name))
        if silent:
            self._objects = {}
            raise self.silent_error(min(silent))

    def release(self) -> None:
        self.holders, self._objects, self._n_sources, self._nodes = {}, {}, Counter(), {}
        for worker in self._workers.values():
            with suppress(Exception):  # it may have ended
                worker.actor.release.remote()

    def close(self) -> None:
        self.release()
        for worker in (*self._workers.values(), *self._starting):
            _end(worker)
        self._workers, self._starting = {}, []
        deadline = time.monotonic() + SECONDS_TO_END
        while self._count_free_cpus() < self._free_cpus and time.monotonic() < deadline:
            time.sleep(SECONDS_TO_END / 100)


def _end(worker: StartedWorker) -> None:
    with suppress(Exception):  # the actor may have ended already
        import_library("ray").kill(worker.actor)


def _is_dataset(X: Any) -> bool:
    """Return whether a value is a `ray.data.Dataset`, without importing Ray."""
    return type(X).__module__.startswith("ray.data.") and hasattr(X, "to_arrow_refs")


def _block_to_data(block: Any, columns: dict[str, str], categorical: tuple[Any, ...]) -> RankingData:
    """Return a block of a data set, an Arrow table, as data."""
    return frame_to_data(block.to_pandas(), list(columns), list(columns.values()), categorical)
