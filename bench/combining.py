"""The sweep compared with a plain one in NumPy, line search for each tree, and the committee against single models."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import podium
from bench.accuracy import PRIMARY, TOOLS, one_run
from bench.harness import DATA, Report
from bench.ranking_sets import fold
from podium.boosting import LineSearch
from podium.combining import Sweep
from podium.evaluation.significance import paired_t, t_interval

SETS, SEEDS = ("mq2008", "ohsumed"), 3


def plain_sweep(data: Any, scores: Any, slopes: Any, high: float, cutoff: int) -> float:
    """Return NDCG@cutoff along α by sorting each query again in every interval between crossings."""
    discounts = 1 / np.log2(2 + np.arange(cutoff))
    alphas, changes, start = [], [], 0.0
    for q in range(data.n_queries):
        rows = data.rows(q)
        s, t, gains = scores[rows], slopes[rows], 2.0 ** data.relevance[rows] - 1
        best = (np.sort(gains)[::-1][:cutoff] * discounts[: len(gains)]).sum()
        if best == 0:
            continue
        i, j = np.triu_indices(len(rows), 1)
        apart = t[j] != t[i]
        crossings = (s[i] - s[j])[apart] / (t[j] - t[i])[apart]
        edges = np.unique(crossings[(crossings > 0) & (crossings < high)])
        points = np.concatenate([[edges[0] / 2 if len(edges) else high / 2], (edges + np.append(edges[1:], high)) / 2])
        order = np.argsort(-(s[None, :] + points[:, None] * t[None, :]), axis=1, kind="stable")[:, :cutoff]
        values = (gains[order] * discounts[: order.shape[1]]).sum(axis=1) / best
        start += values[0]
        alphas.append(edges)
        changes.append(np.diff(values))
    rising = np.argsort(np.concatenate(alphas))
    return float(start + np.maximum(np.cumsum(np.concatenate(changes)[rising]).max(initial=0.0), 0.0)) / data.n_queries


def sweeps() -> list[dict[str, Any]]:
    """Measure the search of one tree with 31 leaves."""
    rows = []
    for queries, documents in ((10_000, 50), (6_000, 120)):
        data = podium.artificial(queries, documents=documents, features=2)
        rng = np.random.default_rng(0)
        scores = rng.normal(size=len(data))
        slopes = rng.normal(size=31)[rng.integers(0, 31, len(data))]
        for measure in ("ndcg@10", "err@10", "ndcg", "ap"):
            sweep = Sweep(data, measure, "stable")
            times = []
            for _ in range(4):
                started = time.perf_counter()
                result = sweep.best(scores, slopes, 0.0, 5.0)
                times.append(time.perf_counter() - started)
            row = {"what": f"sweep, {queries:,} × {documents}, {measure}", "seconds": f"{min(times[1:]):.2f}",
                   "result": f"{len(result.path.alphas):,} steps of the path"}  # fmt: skip
            if measure == "ndcg@10":
                part = data.select(range(queries // 50))
                is_part = np.isin(data.qid, part.qid)
                started = time.perf_counter()
                plain_sweep(part, scores[is_part], slopes[is_part], 5.0, 10)
                plain = 50 * (time.perf_counter() - started)
                row["result"] += f"; in NumPy {plain:.0f} s ({plain / min(times[1:]):.0f} ×; a 50th of it measured)"
            rows.append(row)
    return rows


def expected_ties() -> list[dict[str, Any]]:
    """Compare the cost of the mean over all orders of tied documents with that of the order of rows, in turns."""
    data = podium.artificial(2_000, documents=50, features=2)
    rng = np.random.default_rng(0)
    scores = rng.normal(size=len(data))
    slopes = rng.normal(size=31)[rng.integers(0, 31, len(data))]
    rows = []
    for measure in ("ndcg@10", "err@10", "err", "ap", "rr"):
        for name, column in (("nothing tied", scores), ("31 × 9 leaves", np.clip(np.rint(2 * scores), -4, 4))):
            sweeps = {ties: Sweep(data, measure, ties) for ties in ("stable", "expected")}
            times: dict[str, list[float]] = {ties: [] for ties in sweeps}
            for _ in range(4):
                for ties, sweep in sweeps.items():
                    started = time.perf_counter()
                    sweep.best(column, slopes, 0.0, 5.0)
                    times[ties].append(time.perf_counter() - started)
            stable, expected = (min(times[ties][1:]) for ties in ("stable", "expected"))
            rows.append({"what": f"sweep, 2,000 × 50, {measure}, expected ties, {name}", "seconds": f"{expected:.2f}",
                         "result": f"{expected / stable:.2f} × stable ties"})  # fmt: skip
    return rows


def searches() -> list[dict[str, Any]]:
    """Measure boosting with and without a line search."""
    data = podium.artificial(2_000, features=50)
    rows = []
    for name, step in (("newton", "newton"), ("line search", LineSearch("ndcg@10"))):
        podium.LambdaMART(2, step=step, split_fraction=1.0).fit(data)
        started = time.perf_counter()
        podium.LambdaMART(20, step=step, split_fraction=1.0).fit(data)
        rows.append(
            {"what": f"20 trees, 2,000 × 50 documents, {name}", "seconds": f"{time.perf_counter() - started:.2f}"}
        )
    return rows


def sampled(seed: int, **settings: Any) -> Any:
    """Return a single model with the settings of one member."""
    return podium.LambdaMART(
        1000, 15, 0.05, patience=100, random_state=seed, document_fraction=0.7, feature_fraction=0.5,
        split_fraction=1.0, **settings,
    )  # fmt: skip


MODELS: dict[str, Callable[[int], Any]] = {
    "LambdaMART, all documents": lambda seed: podium.LambdaMART(
        1000, patience=100, random_state=seed, split_fraction=1.0
    ),
    "LambdaMART, as a member": sampled,
    "query regression, as a member": lambda seed: sampled(seed, objective="query_regression"),
    "XE-NDCG, as a member": lambda seed: sampled(seed, objective="xe_ndcg"),
    "Ranker": lambda seed: podium.Ranker(random_state=seed),
    "Ranker, all data": lambda seed: podium.Ranker(random_state=seed),
    "committee, weighed by vali": lambda seed: podium.Committee(random_state=seed * 10_000),
    "committee": lambda seed: podium.Committee(random_state=seed * 10_000),
    "committee, equal weights": lambda seed: podium.Committee(random_state=seed * 10_000, cycles=0),
    "committee of 2 seconds": lambda seed: podium.Committee(random_state=seed * 10_000, time_budget=2.0),
}
IN_FOLDS = ("Ranker, all data", "committee", "committee, equal weights", "committee of 2 seconds")  # vali, too


def committees() -> list[dict[str, Any]]:
    """Return NDCG@10 on the pooled test queries of five folds of two sets: committee, single models, other tools."""
    values: dict[str, list[Any]] = {}
    seconds: dict[str, float] = {}
    scoring: dict[str, float] = {}
    for data_set in SETS:
        for number in range(1, 6):
            train, vali, test = fold(data_set, number)
            for name, make in MODELS.items():
                runs = []
                for seed in range(SEEDS):
                    started = time.perf_counter()
                    everything = podium.RankingData.concatenate([train, vali])
                    model = make(seed).fit(everything) if name in IN_FOLDS else make(seed).fit(train, valid=vali)
                    trained = time.perf_counter()
                    runs.append(podium.NDCG(10).values(podium.measures.Ranking(test, model.predict(test))))
                    seconds[name] = seconds.get(name, 0.0) + (trained - started) / SEEDS
                    spent = (time.perf_counter() - trained) / len(test) / SEEDS / 10
                    scoring[name] = scoring.get(name, 0.0) + 1e6 * spent
                values.setdefault(name, []).append((data_set, np.nan_to_num(np.mean(runs, axis=0))))
            for tool in TOOLS[1:]:
                runs = [one_run(tool, data_set, number, seed)["test"][PRIMARY] for seed in range(SEEDS)]
                values.setdefault(f"{tool}, defaults", []).append((data_set, np.mean(runs, axis=0)))
    rows = []
    whole = {name: np.concatenate([v for _, v in parts]) for name, parts in values.items()}
    for name, pooled in whole.items():
        by_set = [np.concatenate([v for s, v in values[name] if s == data_set]).mean() for data_set in SETS]
        low, high = t_interval(pooled)
        apart = whole["committee"] - pooled
        cost = f"; scoring {scoring[name]:.1f} µs a document, with the measure" if name in scoring else ""
        rows.append({
            "what": name, "seconds": f"{seconds[name]:.1f}" if name in seconds else "",
            "result": f"{SETS[0]} {by_set[0]:.4f}, {SETS[1]} {by_set[1]:.4f}, pooled {pooled.mean():.4f} "
                      f"({low:.4f} to {high:.4f}){cost}"
                      + ("" if name == "committee" else f"; committee {apart.mean():+.4f}, p = {paired_t(apart):.2g}"),
        })  # fmt: skip
    return rows


def run() -> Report:
    """Run all parts."""
    rows = sweeps() + expected_ties() + searches() + (committees() if DATA.exists() else [])
    return Report(
        "combining", "The sweep, line search and the committee",
        [{key: row.get(key, "") for key in ("what", "seconds", "result")} for row in rows],
        [
            "Sweeps: best of three, 2 threads, 31 distinct slopes, α in [0, 5]. Models: NDCG@10 on the test queries "
            f"of five folds, mean of {SEEDS} seeds per query on both sides of a comparison, paired t-test over "
            "queries. Seconds are for all ten folds and one seed, on 2 threads.",
        ],
    )  # fmt: skip
