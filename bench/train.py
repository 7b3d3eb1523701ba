"""Training compared with LightGBM, XGBoost and CatBoost: time, memory and NDCG@10 on the same data in the same run.

Every run is a separate process; the tools take turns. Binning is timed separately. Memory is the peak above the state
with the data and the library loaded; the memory of the library, including compiled kernels, has a separate column.
`python -m bench.train haswell` measures without AVX-512.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from importlib import import_module
from typing import Any

import numpy as np

from bench.harness import CACHE, Report, as_haswell, in_child, measured_memory

QUERIES, MANY_QUERIES, TEST_QUERIES, TREES, RATE, TRUNCATION, FEWEST = 6_000, 25_000, 1_500, 100, 0.1, 30, 20
FOLDER = CACHE / "train"
RUNS, SEEDS = 2, 3
PODIUM = ("podium newton", "podium newton, all documents", "podium least-squares")
LIGHTGBM = ("lightgbm rows", "lightgbm columns")
VALIDATED = ("podium newton, validated", "lightgbm rows, validated", "lightgbm columns, validated")
ONCE = ("lightgbm 32 levels", "lightgbm goss", "xgboost", "catboost")
SAMPLES = ("podium newton", "podium newton, 30%", "podium newton, all documents")


def load(seed: int, part: str, queries: int) -> tuple[Any, Any, Any]:
    """Return features, labels and query sizes, generated once and cached."""
    names = [FOLDER / f"{part}-{queries}-{seed}-{k}.npy" for k in ("X", "y", "sizes")]
    if not all(name.exists() for name in names):
        import podium

        FOLDER.mkdir(parents=True, exist_ok=True)
        data = podium.artificial_web(queries, seed=seed, part=part)
        for name, array in zip(names, (data.features, data.relevance, data.query_sizes), strict=True):
            np.save(name, array)
    X, y, sizes = (np.load(name) for name in names)
    return X, y, sizes


def ranking_data(X: Any, y: Any, sizes: Any) -> Any:
    """Return the same as Podium's data."""
    import podium

    return podium.RankingData(X, y, qid=np.repeat(np.arange(len(sizes)), sizes))


class Clock(logging.Handler):
    """Reads the time of binning from Podium's log."""

    binning = 0.0

    def __init__(self) -> None:
        super().__init__()
        log = logging.getLogger("podium")
        log.addHandler(self)
        log.setLevel(logging.INFO)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the seconds of a record about binning."""
        if record.msg.startswith("binned"):
            self.binning = float(record.args[-1])  # type: ignore[index,arg-type]


def podium_run(mode: str, leaves: int, X: Any, y: Any, sizes: Any) -> tuple[float, float, Any]:
    """Return seconds of binning and of training, and a function that scores."""
    import podium

    split, _, which = mode.partition(", ")
    fractions = {"all documents": {"split_fraction": 1.0}, "30%": {"split_fraction": 0.3}}
    model = podium.LambdaMART(
        n_trees=TREES, n_leaves=leaves, learning_rate=RATE, truncation=TRUNCATION, min_documents_in_leaf=FEWEST,
        split=split, normalize=True, n_threads=2, **fractions.get(which, {}),
    )  # fmt: skip
    clock = Clock()
    data = ranking_data(X, y, sizes)
    valid = ranking_data(*load(0, "valid", max(len(sizes) // 4, 1))) if which == "validated" else None
    started = time.perf_counter()
    model.fit(data, valid=valid)
    return clock.binning, time.perf_counter() - started - clock.binning, model.predict


def lightgbm_run(mode: str, leaves: int, X: Any, y: Any, sizes: Any) -> tuple[float, float, Any]:
    """Return the same for LightGBM."""
    import lightgbm

    settings: dict[str, Any] = {
        "objective": "lambdarank", "num_leaves": leaves, "learning_rate": RATE, "min_data_in_leaf": FEWEST,
        "lambdarank_truncation_level": TRUNCATION, "num_threads": 2, "verbose": -1,
    }  # fmt: skip
    mode, _, which = mode.partition(", ")
    settings |= {"force_col_wise": True} if mode == "columns" else {"force_row_wise": True}
    if which == "validated":
        settings |= {"metric": "ndcg", "eval_at": [10]}
    if mode.endswith("levels"):
        settings |= {"use_quantized_grad": True, "num_grad_quant_bins": int(mode.split(maxsplit=1)[0])}
        settings |= {"quant_train_renew_leaf": True}
    if mode == "goss":
        settings |= {"data_sample_strategy": "goss"}
    started = time.perf_counter()
    data = lightgbm.Dataset(X, y, group=sizes, params=dict(settings)).construct()
    valid = []
    if which == "validated":
        X, y, sizes = load(0, "valid", max(len(sizes) // 4, 1))
        valid = [lightgbm.Dataset(X, y, group=sizes, reference=data).construct()]
    binning = time.perf_counter() - started
    started = time.perf_counter()
    model = lightgbm.train(settings, data, TREES, valid_sets=valid)
    return binning, time.perf_counter() - started, model.predict


def xgboost_run(_: str, leaves: int, X: Any, y: Any, sizes: Any) -> tuple[float, float, Any]:
    """Return the same for XGBoost."""
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
    """Return the same for CatBoost, which bins while it trains."""
    import catboost

    settings = {
        "loss_function": "YetiRank", "iterations": TREES, "learning_rate": RATE, "thread_count": 2, "verbose": False,
        "depth": int(np.ceil(np.log2(leaves))), "allow_writing_files": False,
    }  # fmt: skip
    pool = catboost.Pool(X, y, group_id=np.repeat(np.arange(len(sizes)), sizes))
    started = time.perf_counter()
    model = catboost.CatBoost(settings).fit(pool)
    return 0.0, time.perf_counter() - started, model.predict


def child(tool: str, leaves: int, seed: int, queries: int) -> dict[str, Any]:
    """Return seconds, bytes, and NDCG@10 of every test query of one run."""
    X, y, sizes = load(seed, "train", queries)
    name, _, mode = tool.partition(" ")
    with measured_memory() as library:
        import_module(name)
        if name == "podium":  # compiled kernels are a part of the library
            from podium.core.threads import MIN_PARALLEL_WORK

            few = int(np.searchsorted(np.cumsum(sizes), MIN_PARALLEL_WORK)) + 1  # as many as threads share
            n = int(sizes[:few].sum())
            podium_run(mode, leaves, X[:n].copy(), y[:n].copy(), sizes[:few])
    work = {"podium": podium_run, "lightgbm": lightgbm_run, "xgboost": xgboost_run, "catboost": catboost_run}[name]
    with measured_memory() as memory:
        binning, training, predict = work(mode, leaves, X, y, sizes)
    import podium

    X, y, sizes = load(seed, "test", TEST_QUERIES)
    values = podium.evaluate(ranking_data(X, y, sizes), np.asarray(predict(X)), podium.NDCG(10)).values["ndcg@10"]
    return {
        "binning": binning, "training": training, "memory": memory.peak, "library": library.peak,
        "ndcg": values.round(6).tolist(),
    }  # fmt: skip


def measured(
    tools: tuple[str, ...], leaves: int, seeds: int, runs: int, queries: int = QUERIES, repeated: tuple[str, ...] = ()
) -> dict[str, list[list[dict[str, Any]]]]:
    """Return the runs of each tool and seed; the first seed is run several times, with the tools taking turns."""
    results: dict[str, list[list[dict[str, Any]]]] = {tool: [[] for _ in range(seeds)] for tool in tools}
    repeated = repeated or (*PODIUM, LIGHTGBM[0])
    for seed in range(seeds):
        load(seed, "train", queries)
        load(0, "valid", queries // 4)
        load(seed, "test", TEST_QUERIES)
        for number in range(runs if seed == 0 else 1):
            for tool in tools:
                if (seed and tool not in repeated) or (number and tool in ONCE):
                    continue
                result = in_child("bench.train", tool, leaves, seed, queries)
                results[tool][seed].append(result)
                figures = f"{result['binning']:.2f} + {result['training']:.2f} s, {result['memory'] / 1e6:.0f} MB"
                figures += f", {np.mean(result['ndcg']):.4f}"
                print(f"  {tool}, {leaves} leaves, seed {seed}: {figures}", file=sys.stderr, flush=True)
    return results


def rows_of(
    results: dict[str, list[list[dict[str, Any]]]], leaves: int, baseline: str = LIGHTGBM[0], documents: str = "718,000"
) -> list[dict[str, Any]]:
    """Return the table: best times, ratios to LightGBM's faster float mode, and paired differences in NDCG@10."""
    from scipy.stats import ttest_rel

    best = {tool: {key: min(run[key] for run in runs[0]) for key in ("binning", "training", "memory", "library")}
            for tool, runs in results.items()}  # fmt: skip
    for figures in best.values():
        figures["both"] = figures["binning"] + figures["training"]
    float_modes = [tool for tool in results if tool.startswith(LIGHTGBM)]
    peer = min(float_modes, key=lambda tool: best[tool]["both"])
    rows = []
    for tool, runs in results.items():
        seeds = [seed for seed, of_seed in enumerate(runs) if of_seed and results[baseline][seed]]
        values = np.concatenate([runs[seed][0]["ndcg"] for seed in seeds])
        theirs = np.concatenate([results[baseline][seed][0]["ndcg"] for seed in seeds])
        p = ttest_rel(values, theirs).pvalue if (values != theirs).any() else float("nan")
        rows.append({
            "documents": documents, "leaves": leaves, "tool": tool, "binning, s": f"{best[tool]['binning']:.2f}",
            "training, s": f"{best[tool]['training']:.2f}",
            "times as fast as LightGBM": f"{best[peer]['training'] / best[tool]['training']:.2f}",
            "with binning": f"{best[peer]['both'] / best[tool]['both']:.2f}",
            "memory, MB": f"{best[tool]['memory'] / 1e6:.0f}",
            "library, MB": f"{best[tool]['library'] / 1e6:.0f}", "NDCG@10": f"{values.mean():.4f}",
            "against": "" if np.isnan(p) else f"{baseline}: {values.mean() - theirs.mean():+.4f} (p = {p:.2g})",
            "seeds": len(seeds),
        })  # fmt: skip
    return rows


def run() -> Report:
    """Measure all tools at 31 leaves, some at 255, with validation data, and on four times as many documents."""
    rows = rows_of(measured((*PODIUM, *LIGHTGBM, *ONCE), 31, SEEDS, RUNS), 31)
    rows += rows_of(measured((*PODIUM[:2], *LIGHTGBM), 255, 2, 1), 255)
    rows += rows_of(measured(VALIDATED, 31, 1, RUNS), 31, VALIDATED[1])
    tools = (*SAMPLES, LIGHTGBM[1])
    rows += rows_of(measured(tools, 31, SEEDS, 1, MANY_QUERIES, repeated=SAMPLES[:2]), 31, SAMPLES[1], "3,000,000")
    return Report(
        "train", "Training LambdaMART on MSLR-shaped artificial data", rows,
        [
            f"{QUERIES:,} or {MANY_QUERIES:,} queries × 120 documents × 136 features, {TREES} trees, learning rate "
            f"{RATE}, truncation {TRUNCATION}, at least {FEWEST} documents per leaf, 2 threads. Best of {RUNS} for the "
            f"first rows, otherwise one run. NDCG@10 is on {TEST_QUERIES:,} queries per seed, compared by a paired "
            "t-test over queries and seeds. Ratios are to the faster of LightGBM's two float modes on the same rows.",
            "By default Podium searches splits on a sample of the documents (30% of 718,000, 15% of 3,000,000): those "
            "with large gradients, and some of the others. Rows named 'all documents' use no sample. GOSS is "
            "LightGBM's sampling method, here with 30% of the documents after the first ten trees. Validated: NDCG@10 "
            "of a quarter as many other queries is measured after each tree.",
        ],
    )  # fmt: skip


def without_avx512() -> None:
    """Measure Podium as on a Haswell against LightGBM, whose vectors are chosen when it is built."""
    os.environ |= as_haswell()  # children inherit it
    for row in rows_of(measured((*PODIUM[:2], *LIGHTGBM), 31, 1, RUNS), 31):
        print(row)


if __name__ == "__main__":
    if sys.argv[1] == "haswell":
        without_avx512()
    else:
        print(json.dumps(child(sys.argv[1], *map(int, sys.argv[2:]))))
