"""Documents with weights, several label sources, positions and missing values, and clusters.

A cluster starts when a test first needs it, and all tests of a process share it.
"""

import faulthandler
import os
import shutil
import signal
import sys
from contextlib import chdir
from tempfile import TemporaryDirectory

import numpy as np
import pytest

import podium
from tests.commands import CAN_FORK, forking
from tests.distributed.clusters import Cluster, strike
from tests.distributed.in_process import InProcess

SECONDS = 100  # for a test with a time limit


def documents(n_queries, part="train", seed=1):
    data, random = podium.artificial(n_queries, documents=12, features=6, part=part), np.random.default_rng(seed)
    n, features = len(data), data.features.copy()
    features[random.random(features.shape) < 0.1] = np.nan
    features[:, 4] = np.where(random.random(n) < 0.8, 0.0, features[:, 4])  # sparse
    features[:, 5] = random.integers(0, 40, n)
    return podium.RankingData(
        features, data.relevance, qid=data.qid, labels={"clicks": random.integers(0, 3, n)},
        positions=random.choice([-1, 1, 2, 3, 4, 5, 6], n), document_weights=random.choice([0, 1, 2.5], n),
        query_weights={q: float(random.choice([1, 2])) for q in data.query_ids},
    )  # fmt: skip


@pytest.fixture(scope="session")
def train():
    """Fifty queries, and ten of them again under other names."""
    data = documents(50)
    again = data.select(range(10))
    return podium.RankingData.concatenate([data, again.replace(qid=again.qid + 10**6)])


@pytest.fixture(scope="session")
def valid():
    return documents(15, "valid", 2)


@pytest.fixture
def time_limit():
    """End a test that takes too long with an error that shows where it was."""

    def stop(*_):
        faulthandler.dump_traceback()
        raise TimeoutError(f"the test took more than {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


# --- libraries


@pytest.fixture(scope="session", autouse=True)
def workers_start_fast():
    """Let Dask fork its workers from the process that commands are forked from; otherwise each imports everything."""
    if not CAN_FORK:
        yield
        return
    first = forking().Process(target=int)  # before Dask starts that process with fewer imports
    first.start()
    first.join()
    with pytest.importorskip("dask").config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        yield


@pytest.fixture(scope="session")
def dask_here():
    """A Dask cluster of two processes."""
    with pytest.importorskip("distributed").LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    ) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def ray_here():
    """Ray on this machine, with more processors than all engines of the tests take."""
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
    yield
    ray.shutdown()


@pytest.fixture(scope="session")
def spark():
    """A session of Spark on this machine."""
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
        yield session
        session.stop()


# --- clusters of each kind


@pytest.fixture(scope="session")
def process_cluster():
    engine = InProcess(2)

    def lose():
        engine.lose(min(engine.holders))
        engine.join(f"worker {len(engine.workers()) + 100}")

    return Cluster(engine, lambda frame: podium.RankingData(frame, categorical=["kind"]), lose)


@pytest.fixture(scope="session")
def dask_cluster(dask_here):
    distributed, dd = pytest.importorskip("distributed"), pytest.importorskip("dask.dataframe")
    from podium.distributed import DaskEngine

    with distributed.Client(dask_here) as client, DaskEngine(client) as engine:
        yield Cluster(
            engine,
            lambda frame: dd.from_pandas(frame, npartitions=3, sort=False),
            lambda: strike(engine, signal.SIGKILL),
        )


@pytest.fixture(scope="session")
def ray_cluster(ray_here):
    ray, pa = pytest.importorskip("ray"), pytest.importorskip("pyarrow")
    from podium.distributed import RayEngine

    def collect(frame):
        parts = [frame.iloc[rows] for rows in np.array_split(np.arange(len(frame)), 3)]
        return ray.data.from_arrow([pa.Table.from_pandas(part, preserve_index=False) for part in parts])

    with RayEngine(n_workers=2) as engine:
        yield Cluster(engine, collect, lambda: strike(engine, signal.SIGKILL))


@pytest.fixture(scope="session")
def spark_cluster(spark):
    from podium.distributed import SparkEngine

    with SparkEngine(spark, n_workers=2) as engine:
        yield Cluster(
            engine,
            lambda frame: spark.createDataFrame(frame).repartition(3),
            lambda: strike(engine, signal.SIGKILL),
        )


REAL_CLUSTERS = ("dask", "ray", pytest.param("spark", marks=pytest.mark.slow))


@pytest.fixture(params=("process", *REAL_CLUSTERS))
def any_cluster(request):
    """A cluster of each kind."""
    return request.getfixturevalue(f"{request.param}_cluster")


@pytest.fixture(params=REAL_CLUSTERS)
def real_cluster(request):
    """A cluster of each kind whose workers are processes."""
    return request.getfixturevalue(f"{request.param}_cluster")
