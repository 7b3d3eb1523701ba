"""Training against LightGBM, XGBoost and CatBoost: time, memory, NDCG@10, all on the same data in the same run.

Every run is a process of its own; the tools take turns. Binning is counted apart. Memory is the peak above what the
process held with the data and the library loaded; the library's own, compiled kernels included, stands beside it.
`python -m bench.train haswell` measures without AVX-512.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from bench.harness import Report, in_child, measured_memory

QUERIES, TEST_QUERIES, TREES, RATE, TRUNCATION, FEWEST = 6_000, 1_500, 100, 0.1, 30, 20
CACHE = Path(__file__).parent / ".cache" / "train"
RUNS, SEEDS = 3, 5
PODIUM = ("podium newton", "podium newton, all documents", "podium least-squares")
LIGHTGBM = ("lightgbm rows", "lightgbm columns", "lightgbm 4 levels", "lightgbm 32 levels", "lightgbm goss")
ONCE = ("xgboost", "catboost")


def load(seed: int, part: str, queries: int) -> tuple[Any, Any, Any]:
    """Features, labels and query sizes, made once and kept."""
    names = [CACHE / f"{part}-{queries}-{seed}-{k}.npy" for k in ("X", "y", "sizes")]
    if not all(name.exists() for name in names):
        import podium

        CACHE.mkdir(parents=True, exist_ok=True)
        data = podium.artificial_web(queries, seed=seed, part=part)
        for name, array in zip(names, (data.features, data.relevance, data.query_sizes), strict=True):
            np.save(name, array)
    X, y, sizes = (np.load(name) for name in names)
    return X, y, sizes


def ranking_data(X: Any, y: Any, sizes: Any) -> Any:
    """The same for Podium."""
    import podium

    return podium.RankingData(X, y, qid=np.repeat(np.arange(len(sizes)), sizes))


class Clock(logging.Handler):
    """Takes the time of binning from Podium's log."""

    binning = 0.0

    def emit(self, record: logging.LogRecord) -> None:
        """Listen."""
        if record.msg.startswith("binned"):
            self.binning = float(record.args[-1])  # type: ignore[index,arg-type]


def podium_run(mode: str, leaves: int, X: Any, y: Any, sizes: Any) -> tuple[float, float, Any]:
    """Seconds of binning and of training, and a function that scores."""
    import podium

    split, _, which = mode.partition(", ")
    model = podium.LambdaMART(
        n_trees=TREES, n_leaves=leaves, learning_rate=RATE, truncation=TRUNCATION, min_documents_in_leaf=FEWEST,
        split=split, normalize=True, n_threads=2, **({"split_fraction": 1.0} if which else {}),
    )  # fmt: skip
    clock = Clock()
    logging.getLogger("podium").addHandler(clock)
    logging.getLogger("podium").setLevel(logging.INFO)
    data = ranking_data(X, y, sizes)
    started = time.perf_counter()
    model.fit(data)
    return clock.binning, time.perf_counter() - started - clock.binning, model.predict


def lightgbm_run(mode: str, leaves: int, X: Any, y: Any, sizes: Any) -> tuple[float, float, Any]:
    """The same for LightGBM."""
    import lightgbm

    settings: dict[str, Any] = {
        "objective": "lambdarank", "num_leaves": leaves, "learning_rate": RATE, "min_data_in_leaf": FEWEST,
        "lambdarank_truncation_level": TRUNCATION, "num_threads": 2, "verbose": -1,
    }  # fmt: skip
    settings |= {"force_col_wise": True} if mode == "columns" else {"force_row_wise": True}
    if mode.endswith("levels"):
        settings |= {"use_quantized_grad": True, "num_grad_quant_bins": int(mode.split(maxsplit=1)[0])}
        settings |= {"quant_train_renew_leaf": True}
    if mode == "goss":
        settings |= {"data_sample_strategy": "goss"}
    started = time.perf_counter()
    data = lightgbm.Dataset(X, y, group=sizes, params=dict(settings)).construct()
    binning = time.perf_counter() - started
    started = time.perf_counter()
    model = lightgbm.train(settings, data, TREES)
    return binning, time.perf_counter() - started, model.predict


def xgboost_run(_: str, leaves: int, X: Any, y: Any, sizes: Any) -> tuple[float, float, Any]:
    """The same for XGBoost."""
    import xgboost

    started = time.perf_counter()
    data = xgboost.QuantileDMatrix(X, y, nthread=2)
    data.set_group(sizes)
    binning = time.perf_counter() - started
    settings = {
        "objective": "rank:ndcg", "tree_method": "hist", "grow_policy": "lossguide", "max_leaves": leaves,
        "max_depth": 0, "eta": RATE, "nthread": 2,
        "lambdarank_num_pair_per_sample": TRUNCATION, "lambdarank_pair_method": "topk",
    }  # fmt: skip
    started = time.perf_counter()
    model = xgboost.train(settings, data, TREES)
    return binning, time.perf_counter() - started, lambda X: model.predict(xgboost.DMatrix(X))


def catboost_run(_: str, leaves: int, X: Any, y: Any, sizes: Any) -> tuple[float, float, Any]:
    """The same for CatBoost; it bins while it trains."""
    import catboost

    settings = {
        "loss_function": "YetiRank", "iterations": TREES, "learning_rate": RATE, "thread_count": 2, "verbose": False,
        "depth": int(np.ceil(np.log2(leaves))), "allow_writing_files": False,
    }  # fmt: skip
    pool = catboost.Pool(X, y, group_id=np.repeat(np.arange(len(sizes)), sizes))
    started = time.perf_counter()
    model = catboost.CatBoost(settings).fit(pool)
    return 0.0, time.perf_counter() - started, model.predict


def child(tool: str, leaves: int, seed: int) -> dict[str, Any]:
    """One run: seconds, bytes, and NDCG@10 of every test query."""
    X, y, sizes = load(seed, "train", QUERIES)
    name, _, mode = tool.partition(" ")
    with measured_memory() as library:
        import_module(name)
        if name == "podium":  # compiled kernels are a part of the library
            podium_run(mode, leaves, X[:2000].copy(), y[:2000].copy(), np.array([1000, 1000]))
    work = {"podium": podium_run, "lightgbm": lightgbm_run, "xgboost": xgboost_run, "catboost": catboost_run}[name]
    with measured_memory() as memory:
        binning, training, predict = work(mode, leaves, X, y, sizes)
    import podium

    X, y, sizes = load(seed, "test", TEST_QUERIES)
    found = podium.evaluate(ranking_data(X, y, sizes), np.asarray(predict(X)), podium.NDCG(10, ties="expected"))
    values = next(iter(found.values.values()))
    return {
        "binning": binning, "training": training, "memory": memory.peak, "library": library.peak,
        "ndcg": values.round(6).tolist(),
    }  # fmt: skip


def measured(tools: tuple[str, ...], leaves: int, seeds: int, runs: int) -> dict[str, list[list[dict[str, Any]]]]:
    """For each tool and seed its runs; the first seed is run several times, all tools taking turns."""
    found: dict[str, list[list[dict[str, Any]]]] = {tool: [[] for _ in range(seeds)] for tool in tools}
    for seed in range(seeds):
        load(seed, "train", QUERIES)
        load(seed, "test", TEST_QUERIES)
        for number in range(runs if seed == 0 else 1):
            for tool in tools:
                if (seed and tool not in (*PODIUM, LIGHTGBM[0])) or (number and tool in ONCE):
                    continue
                found[tool][seed].append(in_child("bench.train", tool, leaves, seed))
                last = found[tool][seed][-1]
                shown = f"{last['binning']:.2f} + {last['training']:.2f} s, {last['memory'] / 1e6:.0f} MB"
                shown += f", {np.mean(last['ndcg']):.4f}"
                print(f"  {tool}, {leaves} leaves, seed {seed}: {shown}", file=sys.stderr, flush=True)
    return found


def rows_of(found: dict[str, list[list[dict[str, Any]]]], leaves: int) -> list[dict[str, Any]]:
    """The table: best times, ratios to LightGBM's better float mode, and NDCG@10 against it, paired."""
    from scipy.stats import ttest_rel

    best = {tool: {key: min(run[key] for run in runs[0]) for key in ("binning", "training", "memory", "library")}
            for tool, runs in found.items()}  # fmt: skip
    float_modes = [tool for tool in LIGHTGBM[:2] if tool in found]
    peer = min(float_modes, key=lambda tool: best[tool]["training"])
    rows = []
    for tool, runs in found.items():
        seeds = [seed for seed, some in enumerate(runs) if some and found["lightgbm rows"][seed]]
        mine = np.concatenate([runs[seed][0]["ndcg"] for seed in seeds])
        theirs = np.concatenate([found["lightgbm rows"][seed][0]["ndcg"] for seed in seeds])
        p = ttest_rel(mine, theirs).pvalue if tool not in LIGHTGBM[:2] else float("nan")
        rows.append({
            "leaves": leaves, "tool": tool, "binning, s": f"{best[tool]['binning']:.2f}",
            "training, s": f"{best[tool]['training']:.2f}",
            "times as fast as LightGBM": f"{best[peer]['training'] / best[tool]['training']:.2f}",
            "memory, MB": f"{best[tool]['memory'] / 1e6:.0f}",
            "library, MB": f"{best[tool]['library'] / 1e6:.0f}", "NDCG@10": f"{mine.mean():.4f}",
            "less LightGBM's": f"{mine.mean() - theirs.mean():+.4f}" + ("" if np.isnan(p) else f" (p = {p:.2g})"),
            "seeds": len(seeds),
        })  # fmt: skip
    return rows


def small_data() -> dict[str, Any]:
    """Seconds for 500 trees of 31 leaves on MQ2008's first fold; best of several, warm."""
    import lightgbm

    import podium

    data = podium.folds(Path(os.environ.get("PODIUM_DATA", "../shared/data")) / "mq2008")[0].train
    model = podium.LambdaMART(n_trees=500, n_leaves=31, truncation=30, min_documents_in_leaf=20, n_threads=2)
    settings = {"objective": "lambdarank", "num_leaves": 31, "num_threads": 2, "verbose": -1}
    times: dict[str, list[float]] = {"podium": [], "lightgbm": []}
    for _ in range(4):
        started = time.perf_counter()
        model.fit(data)
        times["podium"].append(time.perf_counter() - started)
        started = time.perf_counter()
        lightgbm.train(settings, lightgbm.Dataset(data.features, data.relevance, group=data.query_sizes), 500)
        times["lightgbm"].append(time.perf_counter() - started)
    return {tool: min(found[1:]) for tool, found in times.items()}


def pair_rates() -> dict[str, float]:
    """Pairs a second of λ with the order warm, 2 threads, on the lists of the training data."""
    from podium.objectives import Lambda, Pairwise

    _, y, sizes = load(0, "train", QUERIES)
    data = ranking_data(np.arange(len(y), dtype=np.float32)[:, None], y, sizes)
    scores = np.random.default_rng(0).normal(size=len(y))
    found = {}
    for name, objective in {
        "NDCG": Lambda("ndcg"),
        "ERR": Lambda("err"),
        "AP": Lambda("ap"),
        "RankNet": Pairwise(),
    }.items():
        bound = objective.bind(data)
        lambdas, hessians = bound.gradients(scores)
        times = []
        for _ in range(5):
            started = time.perf_counter()
            bound.fill(scores, 0, lambdas, hessians)
            times.append(time.perf_counter() - started)
        found[name] = float((sizes * (sizes - 1) / 2).sum() / min(times))
    return found


def run() -> Report:
    """All tools, 31 and 255 leaves."""
    rows = rows_of(measured((*PODIUM, *LIGHTGBM, *ONCE), 31, SEEDS, RUNS), 31)
    rows += rows_of(measured((*PODIUM, LIGHTGBM[0], *LIGHTGBM[3:]), 255, 2, 2), 255)
    small, pairs = in_child("bench.train", "small"), in_child("bench.train", "pairs")
    return Report(
        "train", "Training LambdaMART on MSLR-shaped artificial data", rows,
        [f"{QUERIES:,} queries × 120 documents × 136 features, {TREES} trees, learning rate {RATE}, truncation "
         f"{TRUNCATION}, at least {FEWEST} documents a leaf, 2 threads; best of {RUNS} (2 at 255 leaves), NDCG@10 on "
         f"{TEST_QUERIES:,} queries a seed against LightGBM's, paired t-test over queries and seeds.",
         "Podium seeks splits on 30% of so many documents, the heavy ones and some others (its default), unless it "
         "says all; GOSS is LightGBM's way to do so, with 30% of them after the first ten trees.",
         f"MQ2008 fold 1, 500 trees of 31 leaves: Podium {small['podium']:.2f} s, LightGBM {small['lightgbm']:.2f} s.",
         "λ of whole lists, order warm, million pairs a second on 2 threads: "
         + ", ".join(f"{name} {rate / 1e6:.0f}" for name, rate in pairs.items()) + "."],
    )  # fmt: skip


def without_avx512() -> None:
    """Measure Podium as on a Haswell against LightGBM, whose vectors are chosen when it is built."""
    import llvmlite.binding

    names = [f"-{name}" for name in llvmlite.binding.get_host_cpu_features() if name.startswith("avx512")]
    os.environ |= {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": ",".join(["+avx2", "+fma", *names])}
    os.environ["NUMBA_CACHE_DIR"] = str(CACHE / "haswell")
    for row in rows_of(measured((PODIUM[0], LIGHTGBM[0]), 31, 1, RUNS), 31):
        print(row)


if __name__ == "__main__":
    if sys.argv[1] == "haswell":
        without_avx512()
    else:
        answers = {"small": small_data, "pairs": pair_rates}
        done = answers[sys.argv[1]]() if sys.argv[1] in answers else child(sys.argv[1], *map(int, sys.argv[2:]))
        print(json.dumps(done))
