"""Training on small and zero-heavy data compared with LightGBM, with and without validation data.

Both tools have the same documents, trees, leaves, truncation and threads, and grow all trees. They take turns in one
process per row; binning counts. `python -m bench.small haswell` measures without AVX-512.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.harness import DATA, Report, as_haswell, in_child, measured_memory

REPETITIONS = 15  # many, because fits on small data are short, and a shared machine has slow seconds


def _fold(name: str) -> tuple[Any, Any]:
    import podium

    fold = podium.data.datasets.folds(DATA / name)[0]
    return fold.train, fold.valid


def _example() -> tuple[Any, Any]:
    import podium

    folder = DATA / "lightgbm_example"
    return podium.read(folder / "train.txt.gz"), podium.read(folder / "test.txt.gz")


def _artificial(queries: int, features: int) -> tuple[Any, Any]:
    import podium

    train = podium.artificial_web(queries, features=features, documents=1 + 27_850 // 1_601)
    return train, podium.artificial_web(queries // 4, features=features, documents=18, part="valid")


def _web() -> tuple[Any, Any]:
    import podium

    return podium.artificial_web(31), podium.artificial_web(10, part="valid")


def _sparse(n: int, n_features: int, density: float) -> tuple[Any, Any]:
    """Return documents with mostly zeros, kept sparse; every tenth feature matters."""
    from scipy import sparse

    import podium

    rng = np.random.default_rng(0)
    X = sparse.random(
        n, n_features, density, "csr", np.float32, rng, lambda k: rng.random(k, dtype=np.float32) + np.float32(0.1)
    )
    signal = X @ (rng.normal(size=n_features) * (rng.random(n_features) < 0.1))
    signal = (signal - signal.mean()) / signal.std() + rng.normal(0, 0.5, n)
    y = np.digitize(signal, [0.5, 1.2, 2.0, 3.0]).astype(np.float32)
    return podium.RankingData(X, y, qid=np.arange(n) // 100), None


TASKS: dict[str, tuple[Callable[[], tuple[Any, Any]], int, int]] = {  # data, trees and leaves
    "artificial, 1,601 queries": (lambda: _artificial(1601, 50), 300, 15),
    "MQ2008, fold 1": (lambda: _fold("mq2008"), 300, 15),
    "MQ2008, fold 1, larger trees": (lambda: _fold("mq2008"), 500, 31),
    "OHSUMED, fold 1": (lambda: _fold("ohsumed"), 300, 15),
    "LightGBM's example, 68% zeros": (_example, 300, 15),
    "artificial, 31 queries": (_web, 300, 15),
    "sparse, 10%": (lambda: _sparse(1_000_000, 700, 0.1), 10, 31),
    "sparse, 1%": (lambda: _sparse(100_000, 2_000, 0.01), 50, 31),
}


def fit_podium(train: Any, valid: Any, trees: int, leaves: int, _: str = "") -> None:
    """Train all trees, and measure after each if there is validation data."""
    import podium

    model = podium.LambdaMART(trees, leaves, truncation=30, min_documents_in_leaf=20, n_threads=2)
    model.fit(train, valid=valid)


def fit_lightgbm(train: Any, valid: Any, trees: int, leaves: int, mode: str) -> None:
    """Do the same with LightGBM, including binning."""
    import lightgbm

    settings = {
        "objective": "lambdarank", "num_leaves": leaves, "learning_rate": 0.1, "lambdarank_truncation_level": 30,
        "metric": "ndcg", "eval_at": [10], "num_threads": 2, "verbose": -1, mode: True,
    }  # fmt: skip
    data = lightgbm.Dataset(train.features, train.relevance, group=train.query_sizes, params=dict(settings))
    sets = []
    if valid is not None:
        sets.append(lightgbm.Dataset(valid.features, valid.relevance, group=valid.query_sizes, reference=data))
    lightgbm.train(settings, data, trees, valid_sets=sets)


def child(name: str) -> dict[str, Any]:
    """Return the best seconds of each tool, in turn (LightGBM in its faster mode), and the memory of the first fit."""
    warnings.simplefilter("ignore")
    load, trees, leaves = TASKS[name]
    train, valid = load()
    tools: dict[str, Callable[[Any], None]] = {
        "podium": lambda v: fit_podium(train, v, trees, leaves),
        "row-wise": lambda v: fit_lightgbm(train, v, trees, leaves, "force_row_wise"),
        "column-wise": lambda v: fit_lightgbm(train, v, trees, leaves, "force_col_wise"),
    }
    few = train.take(train.order[: int(train.query_sizes[:50].sum())])
    fit_podium(few, few if valid is not None else None, 2, leaves)  # kernels
    result: dict[str, Any] = {"shape": f"{len(train):,} × {train.n_features}", "trees": f"{trees} × {leaves}"}
    for validated in (False, True) if valid is not None else (False,):
        seconds: dict[str, list[float]] = {tool: [] for tool in tools}
        for number in range(REPETITIONS if len(train) < 100_000 else 2):
            for tool, fit in tools.items():
                with measured_memory() as memory:
                    started = time.perf_counter()
                    fit(valid if validated else None)
                    seconds[tool].append(time.perf_counter() - started)
                if number == 0:
                    result[f"memory {tool}"] = memory.peak
        result["validated" if validated else "plain"] = {tool: min(times) for tool, times in seconds.items()}
    return result


def measured(names: list[str]) -> list[dict[str, Any]]:
    """Return the table."""
    rows = []
    for name in names:
        result = in_child("bench.small", name)
        for kind, validation in (("plain", "no"), ("validated", "yes")):
            if kind not in result:
                continue
            ours, theirs = result[kind]["podium"], min(result[kind]["row-wise"], result[kind]["column-wise"])
            rows.append({
                "data": name, "documents × features": result["shape"], "trees × leaves": result["trees"],
                "validation data": validation, "LightGBM, s": f"{theirs:.3f}", "Podium, s": f"{ours:.3f}",
                "times as fast": f"{theirs / ours:.2f}",
            })  # fmt: skip
            if name.startswith("sparse"):  # small data fits into what the processes hold anyway
                theirs = min(result["memory row-wise"], result["memory column-wise"])
                rows[-1] |= {"LightGBM, MB": round(theirs / 1e6), "Podium, MB": round(result["memory podium"] / 1e6)}
            print(f"  {rows[-1]}", file=sys.stderr, flush=True)
    return rows


def run() -> Report:
    """Measure all data sets."""
    return Report(
        "small", "Training on small and zero-heavy data", measured(list(TASKS)),
        [
            "Seconds of a whole fit with binning, all trees grown, truncation 30, 20 documents per leaf, 2 threads. "
            f"Best of {REPETITIONS} (2 on sparse data), the tools taking turns; LightGBM in the faster of its row-wise "
            "and column-wise modes. With validation data, NDCG@10 is measured after each tree. Memory is above what "
            "the process held before the first fit; Podium runs first, and LightGBM can reuse memory that Podium has "
            "freed.",
        ],
    )  # fmt: skip


if __name__ == "__main__":
    if sys.argv[1] == "haswell":
        os.environ |= as_haswell()
        measured([name for name in TASKS if not name.startswith("sparse")])
    else:
        print(json.dumps(child(sys.argv[1])))
