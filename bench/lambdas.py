"""The cost of λ per pair and per document for lists of unusual lengths, compared with lists of 120.

All measurements are of whole lists, with ranks kept from the round before, on 2 threads.
"""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np

from bench.harness import DATA, Report, in_child
from bench.train import QUERIES, load, ranking_data

STANDARD = "120 × 6,000"
SHAPES = {"20,000 × 2": (20_000, 2), "2 × 1,000,000": (2, 1_000_000)}
LEAST_RUNS, LEAST_SECONDS = 5, 2.0


def shapes() -> dict[str, Any]:
    """Return data by name: the lists of `bench.train`, others with labels drawn from these, and MQ2008's fold 1."""
    import podium

    _, y, sizes = load(0, "train", QUERIES)
    results = {STANDARD: ranking_data(np.arange(len(y), dtype=np.float32)[:, None], y, sizes)}
    rng = np.random.default_rng(0)
    for name, (size, n_lists) in SHAPES.items():
        n = size * n_lists
        features = np.arange(n, dtype=np.float32)[:, None]
        results[name] = ranking_data(features, rng.choice(y, n), np.full(n_lists, size))
    results["MQ2008"] = podium.data.datasets.folds(DATA / "mq2008")[0].train
    return results


def seconds(bound: Any, scores: Any) -> float:
    """Return the best time of several rounds."""
    lambdas, hessians = bound.gradients(scores)
    times: list[float] = []
    while len(times) < LEAST_RUNS or sum(times) < LEAST_SECONDS:
        started = time.perf_counter()
        bound.fill(scores, 0, lambdas, hessians)
        times.append(time.perf_counter() - started)
    return min(times)


def measured() -> dict[str, dict[str, list[float]]]:
    """Return nanoseconds per pair and per document for each shape and objective."""
    from podium.core.team import Team
    from podium.objectives import Lambda, Pairwise

    objectives = {
        "NDCG": Lambda("ndcg", normalize=False),
        "ERR": Lambda("err", normalize=False),
        "AP": Lambda("ap", normalize=False),
        "RankNet": Pairwise(),
    }
    results: dict[str, dict[str, list[float]]] = {}
    with Team(2) as team:
        for shape, data in shapes().items():
            scores = np.random.default_rng(0).normal(size=len(data))
            pairs = float((data.query_sizes * (data.query_sizes - 1) / 2).sum())
            results[shape] = {}
            for name, objective in objectives.items():
                bound = objective.bind(data)
                bound.team = team
                took = 1e9 * seconds(bound, scores)
                results[shape][name] = [took / pairs, took / len(data)]
    return results


def rows_of(results: dict[str, dict[str, list[float]]]) -> list[dict[str, Any]]:
    """Return the table, with the ratio to the standard lists in brackets."""
    rows = []
    for shape, objectives in results.items():
        row: dict[str, Any] = {"lists": shape}
        for k, unit in enumerate(("pair", "document")):
            for name, costs in objectives.items():
                ratio = costs[k] / results[STANDARD][name][k]
                row[f"{name}, ns a {unit}"] = f"{costs[k]:.3g} ({ratio:.2f})"
        rows.append(row)
    return rows


def run() -> Report:
    """Measure all shapes."""
    return Report(
        "lambdas", "λ of long, short and ordinary lists", rows_of(in_child("bench.lambdas")),
        [
            "Whole lists with ranks kept from the round before, 2 threads, best of several rounds. In brackets: the "
            "ratio to the lists of 120 documents in the first row. Target: a pair of lists of 20,000 documents, and a "
            "document of lists of 2, cost at most twice as much as in that row.",
        ],
    )  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(measured()))
