"""Training on clusters of two workers: Dask against one process, peers, Ray and Spark, and a cost model for Dask.

Every run is a separate process, on documents in the shape of MSLR-WEB that workers have read before the clock starts.
The time per tree comes from the difference between a fit with many trees and one with few; the rest of the shorter fit
is the time before the first tree. `PODIUM_BENCH_DOCUMENTS` sets the number of documents, by default two million.
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

from bench.harness import Report, in_child, peak_bytes

DOCUMENTS = int(os.environ.get("PODIUM_BENCH_DOCUMENTS", "2000000"))
PARTS = 16
SHARES = (1 / 8, 1 / 4, 1 / 2, 1.0)  # of the documents: the sizes that the cost model is fitted to
DELAYS = (0.005, 0.02)  # seconds that are added to each round trip: what the cost model must foretell
SHARE_OF_DELAYS = 1 / 4
FEW, MANY, LEAVES, WORKERS = 3, 18, 31, 2
PEERS = ("lightgbm", "xgboost")
ON_SPARK = ("podium", "xgboost")
SECONDS = 200.0  # for one child
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
    """How many parts are a share of the documents."""
    return round(PARTS * share)


def arrays(folder: Path, share: float) -> list[Any]:
    """A share of the documents as Dask Arrays that workers read: features, labels and queries."""
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
    """A few whole queries as arrays of two blocks, to compile and connect on."""
    import dask.array as da

    X, y, qid = (np.load(folder / f"{name}0.npy", mmap_mode="r")[:2000] for name in ("X", "y", "qid"))
    starts = np.flatnonzero(np.append(True, qid[1:] != qid[:-1]))
    middle, end = int(starts[len(starts) // 2]), int(starts[-1])
    return [da.from_array(np.array(of[:end]), chunks=((middle, end - middle), *of.shape[1:])) for of in (X, y, qid)]


def per_tree(fit: Callable[[int], Any]) -> dict[str, float]:
    """Seconds for a tree, from two fits; and for all that comes before."""
    seconds = []
    for n_trees in (FEW, MANY):
        started = time.perf_counter()
        fit(n_trees)
        seconds.append(time.perf_counter() - started)
    tree = (seconds[1] - seconds[0]) / (MANY - FEW)
    return {"tree": tree, "before": seconds[0] - FEW * tree}


def here(folder: Path, threads: int) -> dict[str, float]:
    """Podium in one process."""
    import podium

    X, y, qid = (np.concatenate([np.load(folder / f"{n}{k}.npy") for k in range(PARTS)]) for n in ("X", "y", "qid"))
    n_documents = len(X)

    def fit(n_trees: int) -> None:
        data = podium.RankingData(X, y, qid=qid)  # anew: hashes and order are kept with the data
        podium.LambdaMART(n_trees, n_leaves=LEAVES, n_threads=threads, verbose=0).fit(data)

    fit(1)
    return per_tree(fit) | {"memory": peak_bytes(), "documents": n_documents}


def on_cluster(folder: Path, who: str, share: float, delay: float) -> dict[str, float]:
    """Podium or a peer on a cluster of processes with a thread each."""
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
    """`lightgbm.dask`, whose groups are sizes of queries, block by block."""
    import dask.array as da
    import lightgbm
    from dask.delayed import delayed

    sizes = [np.unique(block.compute(), return_counts=True)[1] for block in qid.blocks]
    group = da.concatenate([da.from_delayed(delayed(s), s.shape, s.dtype) for s in sizes])
    model = lightgbm.DaskLGBMRanker(n_estimators=n_trees, num_leaves=LEAVES, verbosity=-1, n_jobs=1)
    model.fit(X, y, group=group)


def fit_xgboost(n_trees: int, X: Any, y: Any, qid: Any) -> None:
    """`xgboost.dask`.

    By default it sorts a frame into a partition for each query, tens of thousands of them, which does not end in
    minutes. The blocks here hold whole queries, so that is left out, as its option says.
    """
    from xgboost import dask as xgb

    model = xgb.DaskXGBRanker(
        n_estimators=n_trees, max_leaves=LEAVES, grow_policy="lossguide", max_depth=0, tree_method="hist", n_jobs=1,
        objective="rank:ndcg", allow_group_split=True,
    )  # fmt: skip
    model.fit(X, y, qid=qid)


class Podium:
    """`DaskLambdaMART`, with a delay in each round trip; counts round trips and bytes."""

    def __init__(self, delay: float) -> None:
        from podium.distributed import dask_engine

        self.engines: list[Any] = []
        engines = self.engines

        class Delayed(dask_engine.DaskEngine):
            def __init__(self, **arguments: Any) -> None:
                super().__init__(**arguments)
                engines.append(self)

            def ask(self, calls: Any) -> Any:
                time.sleep(delay)
                return super().ask(calls)

        vars(dask_engine)["DaskEngine"] = Delayed  # where `engine_class` finds it
        self.delay = delay
        self.counts: dict[int, tuple[int, int]] = {}

    def __call__(self, n_trees: int, X: Any, y: Any, qid: Any, observers: Any = ()) -> None:
        """Fit."""
        from podium.distributed import DaskLambdaMART

        DaskLambdaMART(n_trees, n_leaves=LEAVES, verbose=0).fit(X, y, qid=qid, observers=observers)
        self.counts[n_trees] = self.engines[-1].n_round_trips, self.engines[-1].n_bytes

    def costs(self, X: Any, y: Any, qid: Any) -> dict[str, float]:
        """Round trips and bytes of a tree, and before the first; what an empty call and a byte take."""
        of_tree = [(self.counts[MANY][k] - self.counts[FEW][k]) / (MANY - FEW) for k in range(2)]
        before = [self.counts[FEW][k] - FEW * of_tree[k] for k in range(2)]
        found = {"trips": of_tree[0], "bytes": of_tree[1], "first_trips": before[0], "first_bytes": before[1]}

        def ask(_: Any) -> None:
            engine, times = self.engines[-1], []
            for _ in range(40):
                started = time.perf_counter()
                engine.call("sizes")
                times.append(time.perf_counter() - started)
            found["call"] = float(np.median(times)) - self.delay
            times, n_bytes = [], 1
            for _ in range(5):
                started = time.perf_counter()
                n_bytes = sum(part["scores"].nbytes for part in engine.call("gather", ("scores",)))
                times.append(time.perf_counter() - started)
            found["byte"] = (float(np.median(times)) - self.delay - found["call"]) / (n_bytes / WORKERS)

        self(1, X, y, qid, [ask])
        return found


# --- Ray


def on_ray(folder: Path) -> dict[str, float]:
    """Podium on a local Ray with two workers; the blocks are in its object store when the clock starts."""
    import ray

    import podium
    from podium.distributed import RayEngine, fit

    options: dict[str, Any] = {"include_dashboard": False, "log_to_driver": False, "logging_level": "error"}
    ray.init("local", num_cpus=WORKERS + 1, object_store_memory=int(1.5 * 4 * 136 * DOCUMENTS), **options)
    rows = ray.data.from_arrow([_table(folder, k) for k in range(PARTS)])
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
    """A part of the documents as an Arrow table with a column for each feature."""
    import pyarrow as pa

    X, y, qid = (np.load(folder / f"{name}{k}.npy") for name in ("X", "y", "qid"))
    return pa.table({f"f{j}": X[:, j].copy() for j in range(X.shape[1])} | {"label": y, "qid": qid})


# --- Spark


def on_spark(folder: Path, who: str) -> dict[str, float]:
    """Podium or XGBoost on a local Spark with two tasks; the rows are in Spark's cache when the clock starts."""
    from pyspark import StorageLevel
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {"spark.ui.enabled": "false", "spark.driver.memory": "8g", "spark.sql.shuffle.partitions": str(WORKERS)}
    spark = SparkSession.builder.master(f"local[{WORKERS}]").config(map=settings).getOrCreate()
    rows = spark.read.parquet(*_parquet_files(folder)).persist(StorageLevel.MEMORY_AND_DISK)
    n_documents = rows.count()
    fit = {"podium": fit_podium_on_spark, "xgboost": fit_xgboost_on_spark}[who]
    fit(2, rows.where(f"qid <= {rows.selectExpr('min(qid) + 20').first()[0]}"))
    result = per_tree(lambda n_trees: fit(n_trees, rows))
    memory = sum(map(_peak_of, _descendants(os.getpid())))
    spark.stop()
    return result | {"memory": memory, "documents": n_documents}


def _parquet_files(folder: Path) -> list[str]:
    """The documents as Parquet files with a column of arrays, written once."""
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
    """The processes that a process has started, and theirs."""
    children = Path(f"/proc/{process}/task").glob("*/children")
    found = [int(child) for path in children for child in path.read_text().split()]
    return found + [other for child in found for other in _descendants(child)]


def _peak_of(process: int) -> int:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def fit_podium_on_spark(n_trees: int, rows: Any) -> None:
    """`SparkLambdaMART`."""
    from podium.distributed import SparkLambdaMART

    SparkLambdaMART(n_trees=n_trees, n_leaves=LEAVES, numWorkers=WORKERS, verbose=0).fit(rows)


def fit_xgboost_on_spark(n_trees: int, rows: Any) -> None:
    """`xgboost.spark`."""
    from xgboost.spark import SparkXGBRanker

    SparkXGBRanker(
        features_col="features", label_col="label", qid_col="qid", num_workers=WORKERS, n_estimators=n_trees,
        max_leaves=LEAVES, grow_policy="lossguide", max_depth=0, tree_method="hist", objective="rank:ndcg",
    ).fit(rows)  # fmt: skip


# --- the cost model


def fitted(rows: list[dict[str, float]]) -> tuple[float, float]:
    """Seconds of a worker for a document, and seconds of a round trip with its bytes, that fit the rows best."""
    table = np.array([[row["documents"] / WORKERS, row["trips"]] for row in rows])
    seconds = np.array([row["tree"] for row in rows])
    weights = 1.0 / seconds  # relative errors count
    (of_document, of_trip), *_ = np.linalg.lstsq(table * weights[:, None], seconds * weights, rcond=None)
    return float(of_document), float(of_trip)


def predicted(row: dict[str, float], constants: tuple[float, float], delay: float) -> float:
    """Seconds of a tree, as docs/scale.md has it."""
    return constants[0] * row["documents"] / WORKERS + row["trips"] * (constants[1] + delay)


def row_of(what: str, found: dict[str, float], model: float | None = None) -> dict[str, Any]:
    """A row of the table."""
    row = {
        "what": what, "documents": f"{found['documents']:,.0f}", "before the first tree, s": f"{found['before']:.1f}",
        "a tree, ms": f"{1e3 * found['tree']:.0f}",
        "cost model, ms": "" if model is None else f"{1e3 * model:.0f}",
        "peak memory, GB": f"{found['memory'] / 1e9:.1f}",
    }  # fmt: skip
    if "trips" in found:
        row |= {"round trips": f"{found['trips']:.1f}", "MB": f"{found['bytes'] / 1e6:.1f}"}
    return row


def run() -> Report:
    """Compare Podium with its peers, then sizes and delays with the cost model."""
    with tempfile.TemporaryDirectory() as folder:
        in_child(MODULE, "prepare", folder)
        local = in_child(MODULE, "here", folder, 2)
        sizes = [in_child(MODULE, "cluster", folder, "podium", share, 0.0, timeout=SECONDS) for share in SHARES]
        delayed = [
            in_child(MODULE, "cluster", folder, "podium", SHARE_OF_DELAYS, delay, timeout=SECONDS) for delay in DELAYS
        ]
        constants = fitted(sizes)
        rows = [
            row_of("podium, one process, 2 threads", local),
            row_of("podium, 2 workers", sizes[-1], predicted(sizes[-1], constants, 0.0)),
            *(_row_of_peer(folder, peer) for peer in PEERS),
            _row_of_child("podium, Ray, 2 workers", folder, "ray"),
            *(_row_of_child(f"{who}, Spark, 2 tasks", folder, "spark", who) for who in ON_SPARK),
            *(row_of("podium, 2 workers", found, predicted(found, constants, 0.0)) for found in sizes[:-1]),
            *(
                row_of(f"podium, 2 workers, {1e3 * delay:g} ms more a call", found, predicted(found, constants, delay))
                for found, delay in zip(delayed, DELAYS, strict=True)
            ),
        ]
    return Report("distributed", "Training on a cluster", rows, _notes(sizes[-1], constants, local))


def _row_of_peer(folder: str, peer: str) -> dict[str, Any]:
    return _row_of_child(f"{peer}.dask, 2 workers", folder, "cluster", peer, 1.0, 0.0)


def _row_of_child(what: str, folder: str, task: str, *arguments: object) -> dict[str, Any]:
    try:
        return row_of(what, in_child(MODULE, task, folder, *arguments, timeout=SECONDS))
    except subprocess.TimeoutExpired:
        return {"what": what, "documents": f"{DOCUMENTS:,}", "a tree, ms": f"no result in {SECONDS:g} s"}


def _notes(largest: dict[str, float], constants: tuple[float, float], local: dict[str, float]) -> list[str]:
    bytes_of_trip = largest["bytes"] / WORKERS / largest["trips"]
    explained = largest["call"] + bytes_of_trip * largest["byte"]
    return [
        f"{LEAVES} leaves, 136 features, two workers of one thread each, as processes of one machine that hold the "
        f"arrays when the clock starts; of a tree the difference of {FEW} and {MANY} trees. MB: what workers send for "
        "a tree, together. Peak memory: of the workers together, the arrays included. xgboost.dask runs with "
        "`allow_group_split=True`: by default it makes a partition of each query. On Ray the rows are Arrow blocks in "
        "its object store, and memory counts what each worker maps of it. On Spark the rows are in its cache, and "
        "memory is that of the Java process and of the tasks.",
        f"A tree on two workers takes {largest['tree'] / local['tree']:.2f} times that of one process with two "
        f"threads. Before the first tree: {largest['first_trips']:.0f} round trips, "
        f"{largest['first_bytes'] / 1e6:.0f} MB.",
        f"The cost model: {1e6 * constants[0]:.3f} µs of a worker for each of its documents, and "
        f"{1e3 * constants[1]:.2f} ms for each round trip with its bytes, fitted to the sizes; the runs with longer "
        f"calls are predicted. Measured alone: an empty call {1e3 * largest['call']:.2f} ms, a byte "
        f"{1e9 * largest['byte']:.2f} ns, which with {bytes_of_trip / 1e6:.2f} MB of each worker make "
        f"{1e3 * explained:.2f} ms (docs/scale.md).",
    ]


if __name__ == "__main__":
    task, path, *rest = sys.argv[1:]
    if task == "prepare":
        prepare(Path(path))
        outcome: dict[str, Any] = {}
    elif task == "here":
        outcome = here(Path(path), int(rest[0]))
    elif task == "ray":
        outcome = on_ray(Path(path))
    elif task == "spark":
        outcome = on_spark(Path(path), rest[0])
    else:
        outcome = on_cluster(Path(path), rest[0], float(rest[1]), float(rest[2]))
    print(json.dumps(outcome))
