"""The share of 3 million documents that a search for splits needs: NDCG@10 by `split_fraction`.

Every run is a separate process whose result is cached in `bench/.cache/split_share`, so that a stopped benchmark
resumes. A model of 300 trees also gives the figures of its first 50.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np

from bench.harness import Report, cached, in_child
from bench.train import FEWEST, MANY_QUERIES, RATE, TRUNCATION, load, ranking_data

SHARES = (0.15, 0.3, 0.5, 1.0)
SEEDS, TREES, FIRST_TREES, LEAVES, TEST_QUERIES = 3, 300, 50, 31, 3_000


def child(share: str, seed: int, queries: int) -> dict[str, Any]:
    """Return NDCG@10 of every test query by 50 and by 300 trees."""
    import podium

    X, y, sizes = load(seed, "train", queries)
    test = ranking_data(*load(seed, "test", TEST_QUERIES))
    data = ranking_data(X, y, sizes)
    model = podium.LambdaMART(
        TREES, LEAVES, learning_rate=RATE, truncation=TRUNCATION, min_documents_in_leaf=FEWEST, n_threads=2,
        split_fraction=float(share),
    )  # fmt: skip
    model.fit(data)
    scores = {n: model.predict(test, n_trees=n) for n in (FIRST_TREES, TREES)}
    values = {n: podium.evaluate(test, s, podium.NDCG(10)).values["ndcg@10"].round(6).tolist()
              for n, s in scores.items()}  # fmt: skip
    return {"ndcg": values}


def one_run(share: str, seed: int) -> dict[int, Any]:
    """Return NDCG@10 by the number of trees, from a new run or a cached one."""

    def measure() -> Any:
        for part, queries in (("train", MANY_QUERIES), ("test", TEST_QUERIES)):
            load(seed, part, queries)
        print(f"  {share}, seed {seed}", file=sys.stderr, flush=True)
        return in_child("bench.split_share", share, seed, MANY_QUERIES)

    result = cached(f"split_share/{share}-{seed}.json", measure)
    return {int(n): np.array(values) for n, values in result["ndcg"].items()}


def run() -> Report:
    """Compare every share with all documents, paired over test queries and seeds."""
    from scipy.stats import ttest_rel

    runs = {share: [one_run(str(share), seed) for seed in range(SEEDS)] for share in SHARES}
    rows = []
    for share in SHARES:
        row: dict[str, Any] = {"split_fraction": f"{share:g}"}
        for n in (FIRST_TREES, TREES):
            values = np.concatenate([of_seed[n] for of_seed in runs[share]])
            baseline = np.concatenate([of_seed[n] for of_seed in runs[1.0]])
            row[f"NDCG@10, {n} trees"] = f"{values.mean():.4f}"
            if share != 1.0:
                p = ttest_rel(values, baseline).pvalue
                row[f"against all documents, {n} trees"] = f"{values.mean() - baseline.mean():+.4f} (p = {p:.2g})"
        rows.append(row)
    return Report(
        "split_share", "The share of documents that splits are searched on", rows,
        [f"LambdaMART on {MANY_QUERIES:,} queries × 120 documents × 136 features of web-shaped data, {LEAVES} leaves, "
         f"rate {RATE}, truncation {TRUNCATION}. Means over {SEEDS} seeds of {TEST_QUERIES:,} test queries each, "
         "compared by a paired t-test over queries and seeds."],
    )  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(child(sys.argv[1], *map(int, sys.argv[2:]))))
