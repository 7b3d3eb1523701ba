"""A Spark cluster as an engine: the tasks of a barrier stage hold the documents and answer the driver.

Spark moves all rows of a query into one partition and starts all tasks at the same time. Each task reads its partition
and connects to a server in this process (`podium.distributed.spark_tasks`). Spark cannot replace a single task of a
barrier stage. If one is lost, the engine starts the stage again with the same partitions, and training repeats the
round.
"""

from __future__ import annotations

import os
import pickle
import secrets
import socketserver
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import reduce
from itertools import groupby
from queue import Empty, SimpleQueue
from typing import Any

from podium.core.validation import require_whole
from podium.data.frames import has_role
from podium.distributed.clusters import import_library
from podium.distributed.engine import HEARTBEAT, PENDING, TIMEOUT, Engine, Placement, WorkerLostError, pack_once
from podium.distributed.holder import Calls
from podium.distributed.sources import Columns, DerivedSource, Source
from podium.distributed.spark_frames import (
    SparkDocuments,
    as_array,
    column,
    columns_of,
    is_spark_frame,
    is_wide,
    with_scores,
)
from podium.distributed.spark_tasks import DRIVER, SET, TASK, BarrierTask, TaskPartition, Wire, authenticate
from podium.errors import DataError, MissingExtraError, PodiumError

MOST_STARTS = 10  # of the barrier stage before training gives up
SECONDS_TO_INTRODUCE = 10.0  # time for a connection to prove that it is a task
SECONDS_TO_END = 5.0  # time for tasks to end before the job is cancelled
BEATS = 10  # heartbeats of a task in `heartbeat` seconds
QUERY = "__podium_query__"  # the column that rows are partitioned by
ROLES = {"y": "relevance", "qid": "qid", "sample_weight": "document_weights", "query_weight": "query_weights"}


class ConnectedTask:
    """A connected task: its wire, its answers, and the problem if it was lost."""

    def __init__(self, name: str, wire: Wire) -> None:
        self.name, self.wire = name, wire
        self.answers: SimpleQueue[bytearray | None] = SimpleQueue()
        self.problem: str | None = None


class BarrierJob:
    """A Spark job whose tasks connect to this process.

    Args:
        rows: a DataFrame with a partition for each task.
        n_tasks: the number of partitions.
        task: the function of each task, without the address and the token.
        heartbeat: seconds without a heartbeat after which a task is lost.

    """

    def __init__(self, rows: Any, n_tasks: int, task: BarrierTask, heartbeat: float) -> None:
        from pyspark import InheritableThread

        self.context, self.n_tasks, self.heartbeat = rows.sparkSession.sparkContext, n_tasks, heartbeat
        self.tasks: dict[str, ConnectedTask] = {}
        self.error: Exception | None = None
        self.is_closed = False
        self.group, self.token = f"podium-{secrets.token_hex(8)}", secrets.token_bytes(32)
        settings, job = self.context.getConf(), self
        host = settings.get("spark.driver.host")

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                job.listen(Wire(self.request))

        self.server = _Server((settings.get("spark.driver.bindAddress", host), 0), Handler)
        task = replace(task, address=(host, self.server.server_address[1]), token=self.token)
        self.thread = InheritableThread(target=self._run, args=(rows, task), session=rows.sparkSession, daemon=True)
        try:
            self.thread.start()
        except Exception as error:
            self.server.server_close()
            raise PodiumError(
                "Spark has stopped: start a session; a fit with a checkpoint resumes where it stopped"
            ) from error
        threading.Thread(target=self.server.serve_forever, args=(0.1,), daemon=True).start()

    def _run(self, rows: Any, task: BarrierTask) -> None:
        try:
            self.context.setJobGroup(self.group, f"Podium: training on {self.n_tasks} tasks", interruptOnCancel=True)
            rows.mapInArrow(task, "nothing int", barrier=True).collect()
        except Exception as error:
            self.error = error

    def listen(self, wire: Wire) -> None:
        """Accept a task, and receive its messages until it ends; close other connections."""
        wire.socket.settimeout(SECONDS_TO_INTRODUCE)
        try:
            authenticate(wire, self.token, DRIVER, TASK)
            number = int.from_bytes(wire.receive(8), "big")
        except OSError:
            return wire.close()
        wire.socket.settimeout(self.heartbeat)
        task = self.tasks[f"task {number}"] = ConnectedTask(f"task {number}", wire)
        try:
            while not self.is_closed:
                message = wire.receive()
                if message:
                    task.answers.put(message)
        except TimeoutError:
            task.problem = f"sent no heartbeat for {self.heartbeat:g} seconds"
        except OSError:
            task.problem = "has left"
        task.answers.put(None)
        wire.close()

    def wait_for_tasks(self, seconds: float) -> None:
        """Wait until all tasks have connected; computations of Spark before that may take any time.

        Raises:
            WorkerLostError: if a task has connected and the job has ended.
            PodiumError: if the job has failed, or if Spark runs none of its tasks for `seconds`.

        """
        last_check = last_active = time.monotonic()
        while len(self.tasks) < self.n_tasks:
            if not self.thread.is_alive():
                problem = f"Spark could not start the tasks of training: {_reason(self.error)}"
                raise (WorkerLostError if self.tasks else PodiumError)(problem) from self.error
            time.sleep(0.02)
            if time.monotonic() - last_check > 1:
                last_check = time.monotonic()
                if self._n_active() > len(self.tasks):
                    last_active = last_check
                if last_check - last_active > seconds:
                    raise PodiumError(
                        f"Spark has not started {self.n_tasks} tasks at the same time within {seconds:g} seconds: "
                        "train with fewer (numWorkers), free or add executors, or raise timeout=…"
                    )

    def _n_active(self) -> int:
        """Return the number of running tasks of the job, including stages before the barrier."""
        tracker = self.context.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(self.group)]
        stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
        return sum(stage.numActiveTasks for stage in stages if stage is not None)

    def close(self, is_lost: bool = False) -> None:
        """End the tasks; Spark kills those that do not end on request."""
        self.is_closed = True
        if not is_lost:
            for task in list(self.tasks.values()):
                with suppress(OSError):
                    task.wire.send(b"")
            self.thread.join(SECONDS_TO_END)
        self.server.shutdown()
        self.server.server_close()
        for task in list(self.tasks.values()):
            task.wire.close()
        if is_lost:
            self.thread.join(SECONDS_TO_END)
        if self.thread.is_alive():
            with suppress(Exception):  # Spark itself may have ended
                self.context.cancelJobGroup(self.group)
            self.thread.join(SECONDS_TO_END)


def _frame_key(numbered: tuple[int, SparkDocuments]) -> int:
    """Return a key that is equal for adjacent sets in the same frame."""
    number, documents = numbered
    return number if documents.rows is None else id(documents.frame)


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads, request_queue_size = True, 128


def _reason(error: BaseException | None) -> str:
    """Return the most informative lines of a Spark error."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    podium_errors = [line for line in lines if line.startswith("podium.errors.")]
    return podium_errors[0] if podium_errors else " ".join(lines[:3])


class SparkEngine(Engine):
    """The tasks of a Spark barrier stage as workers.

    Args:
        session: the Spark session; the active one by default.
        n_workers: the number of tasks; by default as many as can run at the same time.
        timeout: seconds to wait for an answer of a task, and for Spark to start the tasks.
        heartbeat: seconds without a heartbeat after which a task is lost.

    Example:
        >>> from podium.distributed import SparkEngine
        >>> SparkEngine(n_workers=0)
        Traceback (most recent call last):
        podium.errors.DataError: n_workers must be a whole number from 1 or None, but is 0

    """

    cluster, collections = "spark", "a Spark DataFrame"

    def __init__(
        self, session: Any = None, n_workers: int | None = None, timeout: float = TIMEOUT, heartbeat: float = HEARTBEAT
    ) -> None:
        super().__init__(timeout, heartbeat)
        require_whole("n_workers", n_workers, 1, optional=True)
        session = session or import_library("spark").SparkSession.getActiveSession()
        if session is None:
            raise DataError("there is no Spark session: start one with SparkSession.builder.getOrCreate()")
        try:
            context = session.sparkContext
        except Exception as error:
            raise DataError("training needs a classic Spark session, not one of Spark Connect") from error
        self.session = session
        self.n_threads = int(context.getConf().get("spark.task.cpus", "1"))
        self.n_workers = n_workers or max(1, context.defaultParallelism // self.n_threads)
        self._n_starts = 0
        self._documents: list[SparkDocuments] = []
        self._rows: Any = None  # a partitioned DataFrame of all documents
        self._hashes: dict[str, list[int]] = {}  # of the documents of each task
        self._job: BarrierJob | None = None
        self._is_new_fit = True  # whether the next documents begin a fit

    @classmethod
    def lazy_scores(cls, X: Any, predict: Callable[[Any], Any], dtype: Any) -> Any:
        if not is_spark_frame(X):
            return None
        names = [name for name in X.columns if not has_role(name)]
        wide = [name for name in names if is_wide(X.schema[name])]
        return with_scores(X, wide if len(wide) == 1 else names, predict, "score")

    @classmethod
    def is_running(cls) -> bool:
        try:
            return import_library("spark").SparkSession.getActiveSession() is not None
        except MissingExtraError:
            return False

    @classmethod
    @contextmanager
    def connected(cls, address: str) -> Iterator[dict[str, Any]]:
        builder = import_library("spark").SparkSession.builder
        if address.startswith("local"):
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        session = builder.master(address).appName("podium").getOrCreate()
        try:
            yield {"session": session}
        finally:
            session.stop()

    def current_workers(self) -> dict[str, int]:
        return {f"task {k}": self.n_threads for k in range(self.n_workers)}

    # --- sources

    def collection_sources(self, X: Any, columns: Columns, categorical: tuple[Any, ...]) -> list[Source] | None:
        if self._is_new_fit:
            self._is_new_fit, self._n_starts = False, 0
            self._documents, self._rows, self._hashes = [], None, {}
        if is_spark_frame(X):
            roles = {ROLES[name]: value for name, value in columns.items()}
            X = SparkDocuments.of(X, roles, None, categorical)
        if not isinstance(X, SparkDocuments):
            return None
        self._documents.append(X)
        return [TaskPartition(len(self._documents) - 1, k) for k in range(self.n_workers)]

    def locate(self, sources: Sequence[Source]) -> list[str | None]:
        def home(source: Source) -> str | None:
            while isinstance(source, DerivedSource):
                source = source.arguments[0]
            return f"task {source.task}" if isinstance(source, TaskPartition) else None

        return [home(source) for source in sources]

    def _partitioned(self) -> Any:
        """Return a DataFrame with a partition for each task, in which each query is in one partition."""
        from pyspark.sql import functions

        if not self._documents:
            return self.session.range(0, self.n_workers, 1, self.n_workers)
        names = columns_of([documents.reading for documents in self._documents])
        parts = []
        for _, group in groupby(enumerate(self._documents), _frame_key):
            numbers, sets = zip(*group, strict=True)  # sets in the same frame, which is read once
            frame, query = sets[0].frame, sets[0].reading.roles["qid"]
            set_numbers = [
                functions.lit(k) if documents.rows is None else functions.when(documents.rows, k)
                for k, documents in zip(numbers, sets, strict=True)
            ]
            columns = [as_array(frame, name) if name in frame.columns else functions.lit(None) for name in names]
            columns = [value.alias(f"c{k}") for k, value in enumerate(columns)]  # names with dots cannot be mapped
            columns += [functions.coalesce(*set_numbers).alias(SET), column(query).alias(QUERY)]
            parts.append(frame.select(*columns))
        rows = reduce(lambda rows, part: rows.union(part), parts)
        return rows.repartition(self.n_workers, QUERY).drop(QUERY)

    # --- tasks

    def _tasks(self) -> dict[str, ConnectedTask]:
        """Return the tasks; start them if there are none."""
        if self._job is None:
            if self._n_starts == MOST_STARTS:
                raise PodiumError(
                    f"Spark has lost tasks of training {MOST_STARTS} times: check the logs of its executors. A fit "
                    "with a checkpoint resumes where this one stopped"
                )
            self._n_starts += 1
            self._rows = self._partitioned() if self._rows is None else self._rows
            task = BarrierTask(
                readings=tuple(documents.reading for documents in self._documents),
                has_own_queries=any(documents.rows is not None for documents in self._documents),
                seconds_between_beats=self.heartbeat / BEATS,
            )
            try:
                self._job = BarrierJob(self._rows, self.n_workers, task, self.heartbeat)
                self._job.wait_for_tasks(self.timeout)
            except BaseException:
                self._end(is_lost=True)
                raise
        return self._job.tasks

    def _end(self, is_lost: bool) -> None:
        self.holders = {}
        if self._job is not None:
            self._job.close(is_lost)
        self._job = None

    def _loss_error(self, task: ConnectedTask) -> WorkerLostError:
        """End all tasks, because Spark cannot replace one, and return the error for a lost task."""
        self._end(is_lost=True)
        return WorkerLostError(f"{task.name} {task.problem or 'has left'}, and Spark starts all tasks again")

    def _request(self, method: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Call a method of `TaskWorker` in several tasks at the same time, and return the answers by worker."""
        from pyspark import cloudpickle

        tasks = self._tasks()
        messages = pack_once(arguments, lambda argument: cloudpickle.dumps((method, argument)))
        for worker, message in messages.items():
            try:
                tasks[worker].wire.send(message)
            except OSError as error:
                raise self._loss_error(tasks[worker]) from error
        return {worker: self.wait(tasks[worker]) for worker in arguments}

    def compute(self, function: Callable[..., Any], sources: Sequence[Source]) -> list[Any]:
        homes = [home or f"task {k % self.n_workers}" for k, home in enumerate(self.locate(sources))]
        by_worker: dict[str, list[Source]] = {}
        for home, source in zip(homes, sources, strict=True):
            by_worker.setdefault(home, []).append(source)
        answers = self._request("compute", {worker: (function, values) for worker, values in by_worker.items()})
        results = {worker: iter(values) for worker, values in answers.items()}
        return [next(results[home]) for home in homes]

    def start_holders(self, placement: Mapping[str, Placement]) -> dict[str, Any]:
        hashes = self._request("hold", placement)
        if any(self._hashes.get(worker, values) != values for worker, values in hashes.items()):
            raise DataError(
                "the rows of the DataFrame changed when Spark recomputed them after a task was lost: write the "
                "DataFrame to storage before training, because random splits and samples differ each time"
            )
        self._hashes |= hashes
        return dict.fromkeys(placement)

    def ask(self, calls: Mapping[str, Calls]) -> list[Any]:
        return list(self._request("ask", calls).values())

    def result(self, pending: ConnectedTask, seconds: float) -> Any:
        try:
            message = pending.answers.get(timeout=seconds)
        except Empty:
            return PENDING
        if message is None:
            raise self._loss_error(pending)
        is_done, value = pickle.loads(message)
        if not is_done:
            raise value
        return value

    def check_workers(self) -> None:
        for task in self._job.tasks.values() if self._job is not None else ():
            if task.problem is not None:
                raise self._loss_error(task)

    def release(self) -> None:
        self._is_new_fit = True
        self._end(is_lost=False)
