"""A small cluster of each kind: an engine with two workers, how to collect a frame there, and how to lose a worker."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pytest

import podium
from podium.distributed.engine import Engine
from tests.distributed.in_process import InProcess


class Cluster(NamedTuple):
    engine: Engine
    collect: Callable[[Any], Any]  # a pandas frame as a collection of several partitions
    lose: Callable[[], None]  # a worker that holds documents


@contextmanager
def in_process() -> Iterator[Cluster]:
    engine = InProcess(2)

    def lose() -> None:
        engine.lose(min(engine.holders))
        engine.join(f"worker {len(engine.workers()) + 100}")

    yield Cluster(engine, lambda frame: podium.RankingData(frame, categorical=["kind"]), lose)


@contextmanager
def dask() -> Iterator[Cluster]:
    distributed, dd = pytest.importorskip("distributed"), pytest.importorskip("dask.dataframe")
    from podium.distributed import DaskEngine

    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
        DaskEngine(client) as engine,
    ):

        def lose() -> None:
            (nanny,) = (n for n in cluster.workers.values() if n.worker_address == min(engine.holders))
            os.kill(nanny.pid, signal.SIGKILL)

        yield Cluster(engine, lambda frame: dd.from_pandas(frame, npartitions=3, sort=False), lose)


@contextmanager
def ray() -> Iterator[Cluster]:
    ray, pa = pytest.importorskip("ray"), pytest.importorskip("pyarrow")
    from podium.distributed import RayEngine

    with local_ray(), RayEngine(n_workers=2) as engine:

        def collect(frame: Any) -> Any:
            parts = [frame.iloc[rows] for rows in np.array_split(np.arange(len(frame)), 3)]
            return ray.data.from_arrow([pa.Table.from_pandas(part, preserve_index=False) for part in parts])

        yield Cluster(engine, collect, lambda: signal_worker(engine, signal.SIGKILL))


@contextmanager
def spark() -> Iterator[Cluster]:
    from podium.distributed import SparkEngine

    with local_spark() as session, SparkEngine(session, n_workers=2) as engine:
        yield Cluster(
            engine,
            lambda frame: session.createDataFrame(frame).repartition(3),
            lambda: signal_task(engine, signal.SIGKILL),
        )


KINDS = {"process": in_process, "dask": dask, "ray": ray, "spark": spark}


@contextmanager
def local_ray() -> Iterator[None]:
    """Start Ray on this machine, with more processors than all engines of the tests take; none if it has started."""
    ray = pytest.importorskip("ray")
    if ray.is_initialized():
        yield
        return
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init(
        "local", num_cpus=6, object_store_memory=100_000_000, include_dashboard=False, log_to_driver=False,
        logging_level="error", _system_config={"prestart_worker_first_driver": False},
    )  # fmt: skip
    ray.data.DataContext.get_current().enable_progress_bars = False
    try:
        yield
    finally:
        ray.shutdown()


def signal_worker(engine: Any, sent: signal.Signals) -> None:
    """Send a signal to a worker of Ray that holds documents."""
    ray = pytest.importorskip("ray")
    actor = engine.holders[min(engine.holders)]
    os.kill(ray.get(actor.compute.remote(os.getpid, [])), sent)


@contextmanager
def local_spark() -> Iterator[Any]:
    """Start Spark on this machine, unless a test has done so before."""
    sql = pytest.importorskip("pyspark.sql")
    if "JAVA_HOME" not in os.environ and shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    active = sql.SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2", "spark.driver.memory": "1g", "spark.log.level": "OFF",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.python.daemon.module": "tests.distributed.spark_daemon",
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }  # fmt: skip
    builder = sql.SparkSession.builder.master("local[2]")
    with TemporaryDirectory() as folder:
        with chdir(folder):  # Spark resolves relative paths against the folder it starts in
            session = builder.config(map=settings).getOrCreate()
        try:
            yield session
        finally:
            session.stop()


def signal_task(engine: Any, sent: signal.Signals, task: int = 0) -> None:
    """Send a signal to a task of Spark that holds documents."""
    os.kill(engine.compute(pid_of_task, [0, 1])[task], sent)


def pid_of_task(_: Any) -> int:
    return os.getpid()
