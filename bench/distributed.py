"""Training on a Dask cluster of two workers: against one process, against peers on the same cluster, and a cost model.

Every run is a child of its own, on documents in the shape of MSLR-WEB that the workers read from files. A tree's time
is the difference of two fits with few and many trees, so that reading and binning do not count.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bench.harness import Report, in_child

DOCUMENTS = 2_000_000
SIZES = (500_000, 1_000_000, 2_000_000)  # of the cost model
LATENCIES = (0.0, 0.005, 0.02)  # seconds that are added to each round trip
FEW, MANY, LEAVES, PARTS, WORKERS = 5, 25, 31, 8, 2
PEERS = ("lightgbm", "xgboost")


def prepare(folder: Path, documents: int) -> None:
    """Write documents as arrays, in parts of whole queries."""
    import podium

    data = podium.artificial_web(max(documents // 120, PARTS))
    ends = np.searchsorted(data.offsets, len(data) * np.arange(PARTS + 1) // PARTS)
    for k in range(PARTS):
        part = data.select(range(ends[k], ends[k + 1]))
        part = part.take(part.order)
        np.savez(folder / f"{k}.npz", X=part.features, y=part.relevance, qid=part.qid.astype(np.int64))


def arrays(folder: Path) -> tuple[Any, Any, Any]:
    """The documents as Dask Arrays that workers read."""
    import dask.array as da
    from dask.delayed import delayed

    def block(path: Path, name: str) -> Any:
        return np.load(path)[name]

    columns: dict[str, list[Any]] = {"X": [], "y": [], "qid": []}
    for k in range(PARTS):
        path = folder / f"{k}.npz"
        with np.load(path) as part:
            for name, blocks in columns.items():
                shape, dtype = part[name].shape, part[name].dtype
                blocks.append(da.from_delayed(delayed(block)(path, name), shape, dtype))
    X, y, qid = (da.concatenate(blocks) for blocks in columns.values())
    return X, y, qid


def per_tree(fit: Callable[[int], Any]) -> dict[str, float]:
    """Seconds for a tree, from two fits; and for all that comes before."""
    fit(2)  # compiles, and connects
    seconds = []
    for n_trees in (FEW, MANY):
        started = time.perf_counter()
        fit(n_trees)
        seconds.append(time.perf_counter() - started)
    tree = (seconds[1] - seconds[0]) / (MANY - FEW)
    return {"tree": tree, "before": seconds[0] - FEW * tree}


def here(folder: Path, threads: int, share: float) -> dict[str, float]:
    """Podium in one process, on a share of the documents."""
    import podium

    parts = [dict(np.load(folder / f"{k}.npz")) for k in range(round(PARTS * share))]
    X, y, qid = (np.concatenate([part[name] for part in parts]) for name in ("X", "y", "qid"))
    data = podium.RankingData(X, y, qid=qid)
    return per_tree(lambda n: podium.LambdaMART(n, n_leaves=LEAVES, n_threads=threads, verbose=0).fit(data))


def on_cluster(folder: Path, who: str, latency: float) -> dict[str, float]:
    """Podium or a peer on a cluster of processes with a thread each."""
    import distributed

    with (
        distributed.LocalCluster(
            n_workers=WORKERS, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        X, y, qid = (array.persist() for array in arrays(folder))
        distributed.wait([X, y, qid])
        if who == "podium":
            return _podium(client, X, y, qid, latency)
        if who == "lightgbm":
            import lightgbm

            sizes = [np.unique(block.compute(), return_counts=True)[1] for block in qid.blocks]
            import dask.array as da
            from dask.delayed import delayed

            group = da.concatenate([da.from_delayed(delayed(s), s.shape, s.dtype) for s in sizes])
            ranker = lightgbm.DaskLGBMRanker
            return per_tree(
                lambda n: ranker(n_estimators=n, num_leaves=LEAVES, verbosity=-1, n_jobs=1).fit(X, y, group=group)
            )
        import dask.dataframe as dd
        from xgboost import dask as xgb

        names = [f"f{k}" for k in range(X.shape[1])]
        frame = dd.from_dask_array(X, columns=names).persist()
        labels, queries = (dd.from_dask_array(array).persist() for array in (y, qid))
        settings: dict[str, Any] = {
            "max_leaves": LEAVES, "grow_policy": "lossguide", "max_depth": 0, "tree_method": "hist", "n_jobs": 1,
            "objective": "rank:ndcg",
        }  # fmt: skip
        return per_tree(lambda n: xgb.DaskXGBRanker(n_estimators=n, **settings).fit(frame, labels, qid=queries))


def _podium(client: Any, X: Any, y: Any, qid: Any, latency: float) -> dict[str, float]:
    """Seconds, round trips and bytes for a tree, and what an empty call and a byte cost."""
    from podium.distributed import DaskLambdaMART, dask_engine

    engines: list[Any] = []
    costs: dict[str, float] = {}

    class Slow(dask_engine.DaskEngine):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            engines.append(self)

        def reduce(self, calls: Any) -> Any:
            time.sleep(latency)
            return super().reduce(calls)

    def measure(round_: Any) -> None:
        if round_.iteration == 1 and not costs:
            engine = engines[-1]
            started = time.perf_counter()
            for _ in range(20):
                engine.call("sizes")
            costs["call"] = (time.perf_counter() - started) / 20 - latency
            started = time.perf_counter()
            n_bytes = sum(part["scores"].nbytes for part in engine.call("gather", ("scores",)))
            costs["byte"] = (time.perf_counter() - started - costs["call"] - latency) / n_bytes

    from podium.distributed import estimators

    estimators.DaskEngine = Slow  # type: ignore[misc]
    counts: dict[int, tuple[int, int]] = {}

    def fit(n: int) -> None:
        observers = [measure] if n == 2 else []
        DaskLambdaMART(n, n_leaves=LEAVES, verbose=0).fit(X, y, qid=qid, client=client, observers=observers)
        counts[n] = engines[-1].n_round_trips, engines[-1].n_bytes

    result = per_tree(fit)
    trips, sent = ((counts[MANY][k] - counts[FEW][k]) / (MANY - FEW) for k in range(2))
    return result | costs | {"trips": trips, "bytes": sent}


def run() -> Report:
    """Podium beside its peers, then sizes and latencies beside what the cost model says."""
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        for size in SIZES:
            folder = Path(name) / str(size)
            folder.mkdir()
            in_child("bench.distributed", "prepare", folder, size)
            if size == DOCUMENTS:
                rows += _beside_peers(folder, size)
            half = in_child("bench.distributed", "here", folder, 1, 1 / WORKERS)["tree"]
            for latency in LATENCIES:
                found = in_child("bench.distributed", "cluster", folder, "podium", latency)
                model = half + found["trips"] * (found["call"] + latency) + found["bytes"] / WORKERS * found["byte"]
                rows.append(
                    {
                        "what": "podium, 2 workers" + (f", {1e3 * latency:g} ms more" if latency else ""),
                        "documents": size, "a tree, ms": f"{1e3 * found['tree']:.0f}",
                        "cost model, ms": f"{1e3 * model:.0f}", "round trips": f"{found['trips']:.1f}",
                        "MB": f"{found['bytes'] / 1e6:.1f}", "before, s": f"{found['before']:.1f}",
                    }
                )  # fmt: skip
    return Report(
        "distributed", "Training on a Dask cluster", rows,
        [f"{LEAVES} leaves, 136 features, two workers of one thread each, as processes of one machine; of a tree the "
         f"difference of {FEW} and {MANY} trees. MB: what workers send for a tree, together. The cost model: a tree "
         "of one process on half of the documents, round trips times an empty call, and bytes times what a byte took "
         "(docs/scale.md)."],
    )  # fmt: skip


def _beside_peers(folder: Path, size: int) -> list[dict[str, Any]]:
    """One process with two threads, and the peers on the same cluster."""
    found = {"podium, one process, 2 threads": in_child("bench.distributed", "here", folder, 2, 1.0)}
    for peer in PEERS:
        found[f"{peer}.dask, 2 workers"] = in_child("bench.distributed", "cluster", folder, peer, 0.0)
    return [
        {
            "what": what, "documents": size, "a tree, ms": f"{1e3 * result['tree']:.0f}",
            "before, s": f"{result['before']:.1f}",
        }
        for what, result in found.items()
    ]  # fmt: skip


if __name__ == "__main__":
    task, path, *rest = sys.argv[1:]
    if task == "prepare":
        prepare(Path(path), int(rest[0]))
        outcome: dict[str, Any] = {}
    elif task == "here":
        outcome = here(Path(path), int(rest[0]), float(rest[1]))
    else:
        outcome = on_cluster(Path(path), rest[0], float(rest[1]))
    print(json.dumps(outcome))
