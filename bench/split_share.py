"""How many of 3 million documents a search of splits needs: NDCG@10 by `split_fraction`, and of LightGBM.

Every run is a separate process whose result is kept in `bench/.cache/split_share`, so that a stopped benchmark resumes.
A model of 300 trees also gives the figures of its first 50.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from bench.harness import Report, in_child
from bench.train import FEWEST, MANY_QUERIES, RATE, TRUNCATION, load, ranking_data

CACHE = Path(__file__).parent / ".cache" / "split_share"
SHARES = (0.15, 0.3, 0.5, 1.0)
SEEDS, TREES, FIRST_TREES, LEAVES, TEST_QUERIES = 3, 300, 50, 31, 3_000
LIGHTGBM = "lightgbm"


def child(tool: str, seed: int, queries: int) -> dict[str, Any]:
    """Seconds of training, and NDCG@10 of every test query by 50 and by 300 trees."""
    import podium

    X, y, sizes = load(seed, "train", queries)
    test = ranking_data(*load(seed, "test", TEST_QUERIES))
    if tool == LIGHTGBM:
        import lightgbm

        settings = {
            "objective": "lambdarank", "num_leaves": LEAVES, "learning_rate": RATE, "min_data_in_leaf": FEWEST,
            "lambdarank_truncation_level": TRUNCATION, "num_threads": 2, "verbose": -1, "force_col_wise": True,
        }  # fmt: skip
        started = time.perf_counter()
        booster = lightgbm.train(settings, lightgbm.Dataset(X, y, group=sizes), TREES)
        seconds = time.perf_counter() - started
        scores = {n: booster.predict(test.features, num_iteration=n) for n in (FIRST_TREES, TREES)}
    else:
        data = ranking_data(X, y, sizes)
        model = podium.LambdaMART(
            TREES, LEAVES, learning_rate=RATE, truncation=TRUNCATION, min_documents_in_leaf=FEWEST, n_threads=2,
            split_fraction=float(tool),
        )  # fmt: skip
        started = time.perf_counter()
        model.fit(data)
        seconds = time.perf_counter() - started
        scores = {n: model.predict(test, n_trees=n) for n in (FIRST_TREES, TREES)}
    values = {n: podium.evaluate(test, s, podium.NDCG(10)).values["ndcg@10"].round(6).tolist()
              for n, s in scores.items()}  # fmt: skip
    return {"seconds": seconds, "ndcg": values}


def kept(tool: str, seed: int) -> dict[str, Any]:
    """Run a tool once, or return the run that is kept."""
    path = CACHE / f"{tool}-{seed}.json"
    if not path.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        for part, queries in (("train", MANY_QUERIES), ("test", TEST_QUERIES)):
            load(seed, part, queries)
        result = in_child("bench.split_share", tool, seed, MANY_QUERIES)
        path.write_text(json.dumps(result))
        print(f"  {tool}, seed {seed}: {result['seconds']:.0f} s", file=sys.stderr, flush=True)
    result = json.loads(path.read_text())
    return {"seconds": result["seconds"], "ndcg": {int(n): np.array(values) for n, values in result["ndcg"].items()}}


def run() -> Report:
    """Compare every share, and LightGBM, with all documents, paired over test queries and seeds."""
    from scipy.stats import ttest_rel

    tools = [*map(str, SHARES), LIGHTGBM]
    runs = {tool: [kept(tool, seed) for seed in range(SEEDS)] for tool in tools}
    rows = []
    for tool in tools:
        row: dict[str, Any] = {"split_fraction": tool, "seconds": f"{min(one['seconds'] for one in runs[tool]):.0f}"}
        for n in (FIRST_TREES, TREES):
            values = np.concatenate([one["ndcg"][n] for one in runs[tool]])
            baseline = np.concatenate([one["ndcg"][n] for one in runs["1.0"]])
            row[f"NDCG@10, {n} trees"] = f"{values.mean():.4f}"
            if tool != "1.0":
                p = ttest_rel(values, baseline).pvalue
                row[f"against all documents, {n} trees"] = f"{values.mean() - baseline.mean():+.4f} (p = {p:.2g})"
        rows.append(row)
    return Report(
        "split_share", "The share of documents that splits are searched on", rows,
        [f"LambdaMART on {MANY_QUERIES:,} queries × 120 documents × 136 features of web-shaped data, {LEAVES} leaves, "
         f"rate {RATE}, truncation {TRUNCATION}. Means over {SEEDS} seeds of {TEST_QUERIES:,} test queries each, "
         "compared by a paired t-test over queries and seeds. Seconds: the fastest run of 300 trees with binning, on 2 "
         "threads; other processes ran at the same time."],
    )  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(child(sys.argv[1], *map(int, sys.argv[2:]))))
