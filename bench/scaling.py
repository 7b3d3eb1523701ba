"""How time and memory grow with rows, features, leaves and threads."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np

from bench.harness import Report, in_child, measured_memory, peak_bytes

TREES = 20
BASE = {"rows": 300_000, "features": 50, "leaves": 31, "threads": 2}
LADDERS = {
    "rows": [100_000, 300_000, 1_000_000, 5_000_000],
    "features": [10, 50, 136, 700],
    "leaves": [7, 31, 127, 255],
    "threads": [1, 2],
}


def child(rows: int, features: int, leaves: int, threads: int) -> dict[str, float]:
    """Return seconds of binning and per tree, and bytes above the data."""
    import podium
    from bench.train import Clock

    rng = np.random.default_rng(0)
    X = rng.random((rows, features), dtype=np.float32)
    X[:, ::3] = np.floor(X[:, ::3] * 30)
    signal = X[:, 0] / 30 + X[:, 1] * X[:, -1] + rng.normal(0, 0.3, rows)
    y = np.digitize(signal, np.quantile(signal[:100_000], [0.5, 0.8, 0.95])).astype(np.float32)
    data = podium.RankingData(X, y, qid=np.arange(rows) // 100)
    model = podium.LambdaMART(n_trees=TREES, n_leaves=leaves, truncation=30, n_threads=threads)
    model.fit(podium.artificial_web(20))
    clock = Clock()
    with measured_memory() as memory:
        started = time.perf_counter()
        model.fit(data)
        seconds = time.perf_counter() - started - clock.binning
    return {"binning": clock.binning, "tree": seconds / TREES, "memory": memory.peak}


def sparse_child() -> dict[str, float]:
    """Measure a million documents × 700 features at 10% density, kept sparse."""
    from scipy import sparse

    import podium

    rng = np.random.default_rng(0)
    n, f, k = 1_000_000, 700, 70
    indices = (rng.integers(0, 10, (n, k)) + 10 * np.arange(k)).astype(np.int32).ravel()
    values = (rng.integers(1, 200, n * k) / np.float32(200)).astype(np.float32)
    X = sparse.csr_array((values, indices, np.arange(0, n * k + 1, k, dtype=np.int32)), shape=(n, f))
    y = rng.integers(0, 3, n).astype(np.float32)
    data = podium.RankingData(X, y, qid=np.arange(n) // 100)
    del X, values, indices
    model = podium.LambdaMART(n_trees=10, n_leaves=31, truncation=30, n_threads=2)
    model.fit(podium.artificial_web(20))
    with measured_memory() as memory:
        started = time.perf_counter()
        model.fit(data)
        seconds = time.perf_counter() - started
    return {"seconds": seconds, "memory": memory.peak, "whole": peak_bytes()}


def run() -> Report:
    """Vary each size from the base; return a table and exponents."""
    rows: list[dict[str, Any]] = []
    results: dict[str, list[dict[str, float]]] = {}
    for name, steps in LADDERS.items():
        results[name] = []
        for step in steps:
            setting = BASE | {name: step}
            result = in_child("bench.scaling", *setting.values())
            print(setting, result, file=sys.stderr, flush=True)
            results[name].append(result)
            times = {"binning, s": f"{result['binning']:.2f}", "a tree, ms": f"{1e3 * result['tree']:.1f}"}
            rows.append({"what": name, **setting, **times, "memory, MB": f"{result['memory'] / 1e6:.0f}"})
    exponents = []
    for name, steps in LADDERS.items():
        logs = np.log([[result[key] for key in ("tree", "memory")] for result in results[name]])
        slopes = np.polyfit(np.log(steps), logs, 1)[0]
        exponents.append(f"{name}: time {slopes[0]:.2f}, memory {slopes[1]:.2f}")
    sparse = in_child("bench.scaling", "sparse")
    return Report(
        "scaling", "Scaling of training", rows,
        [
            f"{TREES} trees, truncation 30. Exponents of a fitted power law, " + "; ".join(exponents) + ". Memory does "
            "not include the data. Plot: scaling.svg.",
            f"Sparse, 1,000,000 × 700 at 10%: 10 trees of 31 leaves in {sparse['seconds']:.1f} s with binning, "
            f"{sparse['memory'] / 1e6:.0f} MB above the data, {sparse['whole'] / 1e6:.0f} MB in total.",
        ],
    )  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(sparse_child() if sys.argv[1] == "sparse" else child(*map(int, sys.argv[1:]))))
