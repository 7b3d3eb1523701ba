"""Training on clusters of two workers: Podium on Dask, Ray and Spark, its peers there, and a cost model for Dask.

Every run is a separate process, on documents in the shape of MSLR-WEB that workers have read before the clock starts.
The time per tree comes from the difference between a fit with many trees and one with few; the rest of the shorter fit
is the time before the first tree. Bytes are those that pass the loopback device, so nothing else on the machine may use
it.

`PODIUM_BENCH_DOCUMENTS` sets the number of documents (two million by default), `PODIUM_BENCH_SECONDS` the time limit of
the whole benchmark. Runs that exceed the limit have no figures in the table.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bench.cluster_model import WORKERS, Constants, fitted, predicted
from bench.harness import Report, in_child, peak_bytes

DOCUMENTS = int(os.environ.get("PODIUM_BENCH_DOCUMENTS", "2000000"))
PARTS = 16
SHARES = (1 / 8, 1 / 4, 1 / 2, 1.0)  # of the documents: the sizes that the cost model is fitted to
SHARES_OF_PEERS = (1 / 4, 1.0)
DELAYS = (0.005, 0.02)  # seconds that are added to each round trip: what the cost model must predict
SHARE_OF_DELAYS = 1 / 4
FEW, MANY, LEAVES = 3, 18, 31
RUNS = {  # what is compared with Podium on Dask: the task of the child, and who trains
    "lightgbm.dask": ("cluster", "lightgbm"), "xgboost.dask": ("cluster", "xgboost"),
    "podium, Ray": ("ray", "podium"), "podium, Spark": ("spark", "podium"), "xgboost.spark": ("spark", "xgboost"),
}  # fmt: skip
SECONDS = 200.0  # for one child
SECONDS_OF_ALL = float(os.environ.get("PODIUM_BENCH_SECONDS", "1500"))
QUERIES_OF_MODEL = 10**9 // 120  # whose hashes the client compares before the first tree, see `client_seconds`
MODULE = "bench.distributed"
Fit = Callable[[int, Any, Any, Any], None]


def prepare(folder: Path) -> None:
    """Write documents as arrays, in parts of whole queries."""
    import podium

    data = podium.artificial_web(max(DOCUMENTS // 120, 2 * PARTS))
    ends = np.searchsorted(data.offsets, len(data) * np.arange(PARTS + 1) // PARTS)
    for k in range(PARTS):
        part = data.select(range(ends[k], ends[k + 1]))
        part = part.take(part.order)
        for name, values in (("X", part.features), ("y", part.relevance), ("qid", part.qid.astype(np.int64))):
            np.save(folder / f"{name}{k}.npy", values)


def n_parts(share: float) -> int:
    """Return how many parts make up a share of the documents."""
    return round(PARTS * share)


def arrays(folder: Path, share: float) -> list[Any]:
    """Return a share of the documents as Dask Arrays that workers read: features, labels and queries."""
    import dask.array as da
    from dask.delayed import delayed

    def blocks_of(name: str) -> list[Any]:
        paths = [folder / f"{name}{k}.npy" for k in range(n_parts(share))]
        heads = [np.load(path, mmap_mode="r") for path in paths]
        return [
            da.from_delayed(delayed(np.load)(path), head.shape, head.dtype)
            for path, head in zip(paths, heads, strict=True)
        ]

    return [da.concatenate(blocks_of(name)) for name in ("X", "y", "qid")]


def beginning(folder: Path) -> list[Any]:
    """Return a few whole queries as arrays of two blocks, for compilation and connections."""
    import dask.array as da

    X, y, qid = (np.load(folder / f"{name}0.npy", mmap_mode="r")[:2000] for name in ("X", "y", "qid"))
    starts = np.flatnonzero(np.append(True, qid[1:] != qid[:-1]))
    middle, end = int(starts[len(starts) // 2]), int(starts[-1])
    return [da.from_array(np.array(of[:end]), chunks=((middle, end - middle), *of.shape[1:])) for of in (X, y, qid)]


def per_tree(fit: Callable[[int], Any]) -> dict[str, float]:
    """Return the seconds and loopback bytes of a tree, and the seconds before the first tree.

    They come from a fit with few trees and a fit with many, after a first fit that is not counted: it is slower on Ray
    and Spark, whose workers then read the documents for the first time.
    """
    fit(FEW)
    seconds, sent = [], []
    for n_trees in (FEW, MANY):
        started, n_bytes = time.perf_counter(), loopback_bytes()
        fit(n_trees)
        seconds.append(time.perf_counter() - started)
        sent.append(loopback_bytes() - n_bytes)
    tree, n_bytes = ((of[1] - of[0]) / (MANY - FEW) for of in (seconds, sent))
    return {"tree": tree, "before": seconds[0] - FEW * tree, "loopback": n_bytes}


def loopback_bytes() -> float:
    """Return the bytes that processes of this machine have sent to each other so far; NaN where Linux is missing."""
    devices = Path("/proc/net/dev")
    lines = devices.read_text().splitlines() if devices.exists() else []
    return next((float(line.split()[1]) for line in lines if line.split()[0] == "lo:"), float("nan"))


def here(folder: Path, threads: int, share: float) -> dict[str, float]:
    """Measure Podium in one process."""
    import podium

    parts = range(n_parts(share))
    X, y, qid = (np.concatenate([np.load(folder / f"{n}{k}.npy") for k in parts]) for n in ("X", "y", "qid"))
    n_documents = len(X)

    def fit(n_trees: int) -> None:
        data = podium.RankingData(X, y, qid=qid)  # new data for each fit, because data keeps its hashes and order
        podium.LambdaMART(n_trees, n_leaves=LEAVES, n_threads=threads, verbose=0).fit(data)

    fit(1)
    return per_tree(fit) | {"memory": peak_bytes(), "documents": n_documents, "client": client_seconds()}


def client_seconds() -> float:
    """Return the seconds in which a client finds out whether any of 8 million queries are equal.

    This is the largest part of the client's work that grows with the documents.
    """
    from podium.distributed.sources import has_equal

    hashes = np.random.default_rng(0).integers(0, 2**63, QUERIES_OF_MODEL).astype(np.uint64)
    started = time.perf_counter()
    has_equal(hashes)
    return time.perf_counter() - started


def on_cluster(folder: Path, who: str, share: float, delay: float) -> dict[str, float]:
    """Measure Podium or another tool on a cluster of processes with one thread each."""
    import distributed

    with (
        distributed.LocalCluster(
            n_workers=WORKERS, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50,
            memory_limit=0,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):  # fmt: skip
        X, y, qid = (array.persist() for array in arrays(folder, share))
        distributed.wait([X, y, qid])
        fit: Fit = Podium(delay) if who == "podium" else {"lightgbm": fit_lightgbm, "xgboost": fit_xgboost}[who]
        fit(2, *beginning(folder))
        result = per_tree(lambda n: fit(n, X, y, qid))
        memory = sum(client.run(peak_bytes).values())
        more = fit.costs(X, y, qid) if isinstance(fit, Podium) else {}
        return result | more | {"memory": memory, "documents": X.shape[0]}


def fit_lightgbm(n_trees: int, X: Any, y: Any, qid: Any) -> None:
    """Fit `lightgbm.dask`, whose groups are sizes of queries, block by block."""
    import dask.array as da
    import lightgbm
    from dask.delayed import delayed

    sizes = [np.unique(block.compute(), return_counts=True)[1] for block in qid.blocks]
    group = da.concatenate([da.from_delayed(delayed(s), s.shape, s.dtype) for s in sizes])
    model = lightgbm.DaskLGBMRanker(n_estimators=n_trees, num_leaves=LEAVES, verbosity=-1, n_jobs=1)
    model.fit(X, y, group=group)


def fit_xgboost(n_trees: int, X: Any, y: Any, qid: Any) -> None:
    """Fit `xgboost.dask`.

    By default it sorts a frame into a partition for each query, tens of thousands of partitions, which takes longer
    than minutes. The blocks here hold whole queries, so an option turns that off.
    """
    from xgboost import dask as xgb

    model = xgb.DaskXGBRanker(
        n_estimators=n_trees, max_leaves=LEAVES, grow_policy="lossguide", max_depth=0, tree_method="hist", n_jobs=1,
        objective="rank:ndcg", allow_group_split=True,
    )  # fmt: skip
    model.fit(X, y, qid=qid)


class Podium:
    """`DaskLambdaMART` with a delay in each round trip, and counters of round trips and bytes."""

    def __init__(self, delay: float) -> None:
        from podium.distributed import dask_engine

        self.engines: list[Any] = []
        engines = self.engines

        class Delayed(dask_engine.DaskEngine):
            def __init__(self, **arguments: Any) -> None:
                super().__init__(**arguments)
                self.n_bytes = 0
                engines.append(self)

            def ask(self, calls: Any) -> Any:
                time.sleep(delay)
                answers = super().ask(calls)
                self.n_bytes += sum(map(n_bytes_of, answers))
                return answers

        vars(dask_engine)["DaskEngine"] = Delayed  # where `engine_class` finds it
        self.delay = delay
        self.counts: dict[int, tuple[int, int]] = {}

    def __call__(self, n_trees: int, X: Any, y: Any, qid: Any, observers: Any = ()) -> None:
        """Fit on the cluster."""
        from podium.distributed import DaskLambdaMART

        DaskLambdaMART(n_trees, n_leaves=LEAVES, verbose=0).fit(X, y, qid=qid, observers=observers)
        self.counts[n_trees] = self.engines[-1].n_round_trips, self.engines[-1].n_bytes

    def costs(self, X: Any, y: Any, qid: Any) -> dict[str, float]:
        """Return round trips and bytes per tree and before the first, and seconds of an empty call and of a byte."""
        of_tree = [(self.counts[MANY][k] - self.counts[FEW][k]) / (MANY - FEW) for k in range(2)]
        before = [self.counts[FEW][k] - FEW * of_tree[k] for k in range(2)]
        found = {"trips": of_tree[0], "bytes": of_tree[1], "first_trips": before[0], "first_bytes": before[1]}

        def ask(_: Any) -> None:
            engine, times = self.engines[-1], []
            for _ in range(40):
                started = time.perf_counter()
                engine.call("gather", ())
                times.append(time.perf_counter() - started)
            found["call"] = float(np.median(times)) - self.delay
            times = []
            for _ in range(40):
                started = time.perf_counter()
                engine.ask({min(engine.holders): [("gather", ((),))]})
                times.append(time.perf_counter() - started)
            found["call_of_one"] = float(np.median(times)) - self.delay
            times, n_bytes = [], 1
            for _ in range(5):
                started = time.perf_counter()
                n_bytes = sum(part["scores"].nbytes for part in engine.call("gather", ("scores",)))
                times.append(time.perf_counter() - started)
            found["byte"] = (float(np.median(times)) - self.delay - found["call"]) / (n_bytes / WORKERS)

        self(1, X, y, qid, [ask])
        return found


def n_bytes_of(answer: Any) -> int:
    """Return the size in bytes of all arrays in an answer."""
    if isinstance(answer, np.ndarray):
        return int(answer.nbytes)
    if isinstance(answer, dict):
        return sum(map(n_bytes_of, answer.values()))
    if isinstance(answer, list | tuple):
        return sum(map(n_bytes_of, answer))
    return n_bytes_of(answer.value) if hasattr(answer, "value") else 0


# --- Ray


def on_ray(folder: Path, share: float) -> dict[str, float]:
    """Measure Podium on a local Ray with two workers; blocks are in its object store when the clock starts."""
    import ray

    import podium
    from podium.distributed import RayEngine, fit

    options: dict[str, Any] = {"include_dashboard": False, "log_to_driver": False, "logging_level": "error"}
    ray.init("local", num_cpus=WORKERS + 1, object_store_memory=int(1e8 + 1.5 * 4 * 136 * DOCUMENTS), **options)
    rows = ray.data.from_arrow([_table(folder, k) for k in range(n_parts(share))])
    beginning = ray.data.from_arrow(_table(folder, 0)[:2000])
    n_documents = rows.count()
    with RayEngine(n_workers=WORKERS) as engine:

        def train(n_trees: int, data: Any) -> None:
            fit(podium.LambdaMART(n_trees, n_leaves=LEAVES, verbose=0), data, engine=engine)

        train(2, beginning)
        result = per_tree(lambda n_trees: train(n_trees, rows))
        workers = [worker.actor for worker in engine._workers.values()]
        memory = sum(ray.get([worker.compute.remote(peak_bytes, []) for worker in workers]))
    ray.shutdown()
    return result | {"memory": memory, "documents": n_documents}


def _table(folder: Path, k: int) -> Any:
    """Return a part of the documents as an Arrow table with a column for each feature."""
    import pyarrow as pa

    X, y, qid = (np.load(folder / f"{name}{k}.npy") for name in ("X", "y", "qid"))
    return pa.table({f"f{j}": X[:, j].copy() for j in range(X.shape[1])} | {"label": y, "qid": qid})


# --- Spark


def on_spark(folder: Path, who: str, share: float) -> dict[str, float]:
    """Measure Podium or XGBoost on a local Spark with two tasks; rows are in Spark's cache when the clock starts."""
    from pyspark import StorageLevel
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {"spark.ui.enabled": "false", "spark.driver.memory": "8g", "spark.sql.shuffle.partitions": str(WORKERS)}
    spark = SparkSession.builder.master(f"local[{WORKERS}]").config(map=settings).getOrCreate()
    rows = spark.read.parquet(*_parquet_files(folder)[: n_parts(share)]).persist(StorageLevel.MEMORY_AND_DISK)
    n_documents = rows.count()
    fit = {"podium": fit_podium_on_spark, "xgboost": fit_xgboost_on_spark}[who]
    fit(2, rows.where(f"qid <= {rows.selectExpr('min(qid) + 20').first()[0]}"))
    result = per_tree(lambda n_trees: fit(n_trees, rows))
    memory = sum(map(_peak_of, _descendants(os.getpid())))
    spark.stop()
    return result | {"memory": memory, "documents": n_documents}


def _parquet_files(folder: Path) -> list[str]:
    """Write the documents once as Parquet files with a column of arrays; return their folder."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    paths = [folder / f"part{k}.parquet" for k in range(PARTS)]
    for k, path in enumerate(paths):
        if not path.exists():
            X, y, qid = (np.load(folder / f"{name}{k}.npy") for name in ("X", "y", "qid"))
            offsets = pa.array(np.arange(0, X.size + 1, X.shape[1], dtype=np.int32))
            features = pa.ListArray.from_arrays(offsets, pa.array(X.ravel()))
            pq.write_table(pa.table({"features": features, "label": y, "qid": qid}), path)
    return [str(path) for path in paths]


def _descendants(process: int) -> list[int]:
    """Return the descendants of a process."""
    children = Path(f"/proc/{process}/task").glob("*/children")
    found = [int(child) for path in children for child in path.read_text().split()]
    return found + [other for child in found for other in _descendants(child)]


def _peak_of(process: int) -> int:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def fit_podium_on_spark(n_trees: int, rows: Any) -> None:
    """Fit `SparkLambdaMART`."""
    from podium.distributed import SparkLambdaMART

    SparkLambdaMART(n_trees=n_trees, n_leaves=LEAVES, numWorkers=WORKERS, verbose=0).fit(rows)


def fit_xgboost_on_spark(n_trees: int, rows: Any) -> None:
    """Fit `xgboost.spark`."""
    from xgboost.spark import SparkXGBRanker

    SparkXGBRanker(
        features_col="features", label_col="label", qid_col="qid", num_workers=WORKERS, n_estimators=n_trees,
        max_leaves=LEAVES, grow_policy="lossguide", max_depth=0, tree_method="hist", objective="rank:ndcg",
    ).fit(rows)  # fmt: skip


# --- all runs


def row_of(
    what: str, share: float, found: dict[str, float] | None, model: float | None = None, n_workers: int = WORKERS
) -> dict[str, Any]:
    """Return a row of the table."""
    if found is None:
        return {"what": what, "documents": f"{share * DOCUMENTS:,.0f}", "a tree, ms": "no result"}
    row = {
        "what": what, "documents": f"{found['documents']:,.0f}", "before the first tree, s": f"{found['before']:.1f}",
        "a tree, ms": f"{1e3 * found['tree']:.0f}",
        "cost model, ms": "" if model is None else f"{1e3 * model:.0f}",
        "peak memory, GB": f"{found['memory'] / 1e9:.1f}",
    }  # fmt: skip
    row["MB a tree and worker"] = f"{found['loopback'] / n_workers / 1e6:.1f}" if n_workers else ""
    if "trips" in found:
        row["round trips"] = f"{found['trips']:.1f}"
    return row


class Runs:
    """Runs child processes until the time is up.

    Attributes:
        folder: the folder of the documents.
        deadline: the time at which all children end.

    """

    def __init__(self, folder: str) -> None:
        self.folder, self.deadline = folder, time.monotonic() + SECONDS_OF_ALL

    def child(self, task: str, *arguments: object) -> dict[str, float] | None:
        """Return what a child measured, or None if it failed or ran out of time."""
        seconds = min(SECONDS, self.deadline - time.monotonic())
        if seconds <= 0:
            return None
        started = time.monotonic()
        try:
            result: dict[str, float] = in_child(MODULE, task, self.folder, *arguments, timeout=seconds)
        except (subprocess.TimeoutExpired, RuntimeError) as error:  # the results of the other runs are still useful
            print(error, file=sys.stderr)
            return None
        finally:
            print(f"{task} {arguments}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
        return result


def run() -> Report:
    """Compare Podium with its peers at two sizes, then sizes and delays with the cost model."""
    with tempfile.TemporaryDirectory() as folder:
        in_child(MODULE, "prepare", folder)
        runs = Runs(folder)
        local = {share: runs.child("here", 2, share) for share in SHARES_OF_PEERS}
        sizes = {share: runs.child("cluster", "podium", share, 0.0) for share in SHARES}
        delayed = {delay: runs.child("cluster", "podium", SHARE_OF_DELAYS, delay) for delay in DELAYS}
        others = {
            (share, what): runs.child(task, who, share, 0.0)
            for share in SHARES_OF_PEERS
            for what, (task, who) in RUNS.items()
        }
    largest, here_largest = sizes[1.0], local[1.0]
    if largest is None or here_largest is None:
        raise RuntimeError("there was no time for Podium itself: raise PODIUM_BENCH_SECONDS")
    constants = fitted([one for one in sizes.values() if one is not None], largest | {"client": here_largest["client"]})
    rows = []
    for share in reversed(SHARES_OF_PEERS):
        rows.append(row_of("podium, one process, 2 threads", share, local[share], n_workers=0))
        rows.append(_row_with_model("podium, Dask", share, sizes[share], constants))
        rows += [row_of(what, share, others[share, what]) for what in RUNS]
    rows += [
        _row_with_model("podium, Dask", share, found, constants)
        for share, found in sizes.items()
        if share not in SHARES_OF_PEERS
    ]
    rows += [
        _row_with_model(f"podium, Dask, {1e3 * delay:g} ms more a call", SHARE_OF_DELAYS, found, constants, delay)
        for delay, found in delayed.items()
    ]
    return Report(
        "distributed", "Training on a cluster", rows, _notes(largest, constants, here_largest), constants._asdict()
    )


def _row_with_model(
    what: str, share: float, found: dict[str, float] | None, constants: Constants, delay: float = 0.0
) -> dict[str, Any]:
    return row_of(what, share, found, predicted(found, constants, delay) if found else None)


def _notes(largest: dict[str, float], constants: Constants, local: dict[str, float]) -> list[str]:
    explained = constants.call + constants.bytes_of_trip * constants.byte
    return [
        f"{LEAVES} leaves, 136 features, two workers of one thread each: processes of one machine that hold the "
        f"documents when the clock starts. The time of a tree is the difference between fits of {FEW} and {MANY} "
        "trees, after another fit. MB: all bytes that pass the loopback device, divided by the trees and workers. "
        "Peak memory: that of all workers, including the arrays. xgboost.dask runs with `allow_group_split=True`; by "
        "default it makes a partition of each query. On Ray the rows are Arrow blocks in the object store, and memory "
        "counts what each worker maps of it. On Spark the rows are in the cache, and memory is that of the Java "
        f"process and of the tasks. No result: a run is ended after {SECONDS:g} s, and all runs after "
        f"{SECONDS_OF_ALL:g} s.",
        f"A tree on two workers of Dask takes {largest['tree'] / local['tree']:.2f} times as long as in one process "
        f"with two threads. Before the first tree: {largest['first_trips']:.0f} round trips, "
        f"{largest['first_bytes'] / 1e6:.0f} MB.",
        f"The cost model: {1e6 * constants.of_document:.3f} µs of a worker for each of its documents, and "
        f"{1e3 * constants.of_trip:.2f} ms for each round trip with its bytes. Both are fitted to the runs of "
        "different sizes; the runs with longer calls are predicted. Measured separately: an empty call takes "
        f"{1e3 * constants.call:.2f} ms, {1e3 * constants.of_worker:.2f} ms of it for each worker, and a byte takes "
        f"{1e9 * constants.byte:.2f} ns. With {constants.bytes_of_trip / 1e6:.2f} MB from each worker that is "
        f"{1e3 * explained:.2f} ms per round trip (docs/performance.md). The client compares the hashes of "
        f"{QUERIES_OF_MODEL:,} queries in {constants.client:.1f} s.",
    ]


if __name__ == "__main__":
    task, path, *rest = sys.argv[1:]
    if task == "prepare":
        prepare(Path(path))
        outcome: dict[str, Any] = {}
    elif task == "here":
        outcome = here(Path(path), int(rest[0]), float(rest[1]))
    elif task == "ray":
        outcome = on_ray(Path(path), float(rest[1]))
    elif task == "spark":
        outcome = on_spark(Path(path), rest[0], float(rest[1]))
    else:
        outcome = on_cluster(Path(path), rest[0], float(rest[1]), float(rest[2]))
    print(json.dumps(outcome))
