"""NDCG on test queries against training time, on 400,000 web-shaped documents.

Every run is a separate process with all cores. Runs with early stopping hold out a fifth of the training queries, the
same for every tool. Podium's `Ranker` gets all training queries and holds out a fifth itself.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from bench.harness import Report, in_child, peak_bytes

QUERIES, TEST_QUERIES = 3330, 1000
PATIENCE, MOST = 100, 3000
RUNS = (
    ("podium LambdaMART", 100), ("podium LambdaMART", 300), ("podium LambdaMART", 0), ("podium Ranker", 0),
    ("lightgbm", 100), ("lightgbm", 300), ("lightgbm", 0),
    ("xgboost", 100), ("xgboost", 300), ("xgboost", 0),
    ("catboost QueryRMSE", 100), ("catboost QueryRMSE", 1000), ("catboost YetiRank", 100),
)  # fmt: skip  # trees, 0 for as many as validation data or cross-validation says


def child(tool: str, trees: int) -> dict[str, Any]:
    """Return seconds of training, NDCG@10 on the test queries, and trees."""
    import numpy as np

    import podium
    from podium.evaluation.significance import t_interval

    whole, test = podium.artificial_web(QUERIES, seed=7), podium.artificial_web(TEST_QUERIES, seed=7, part="test")
    train, valid = whole.split(0.8, 0.2, seed=0)
    name, _, kind = tool.partition(" ")
    if name == "podium":
        podium.Ranker(n_trees=2).fit(podium.artificial_web(20))  # compiles
        podium.LambdaMART(n_trees=2).fit(podium.artificial_web(20), valid=podium.artificial_web(20))
        started = time.perf_counter()
        if kind == "Ranker":
            model: Any = podium.Ranker().fit(whole)
        elif trees:
            model = podium.LambdaMART(n_trees=trees).fit(whole)
        else:
            model = podium.LambdaMART(n_trees=MOST, patience=PATIENCE).fit(train, valid=valid)
        seconds, grown = time.perf_counter() - started, model.model_.n_trees
        scores = model.predict(test)
    else:
        fit = {"lightgbm": fit_lightgbm, "xgboost": fit_xgboost, "catboost": fit_catboost}[name]
        arrays = [arrays_of(part) for part in ((whole,) if trees else (train, valid))]
        started = time.perf_counter()
        predict, grown = fit(arrays, trees, kind)
        seconds = time.perf_counter() - started
        scores = predict(test.features)
    table = podium.evaluate(test, scores, "ndcg@10")
    low, high = t_interval(np.nan_to_num(table.values["ndcg@10"]))
    return {"seconds": seconds, "ndcg": table.means["ndcg@10"], "half": (high - low) / 2, "trees": grown,
            "memory": peak_bytes()}  # fmt: skip


def arrays_of(data: Any) -> tuple[Any, Any, Any]:
    """Return features, labels and query sizes, with rows in the order of queries."""
    return data.features, data.relevance, data.query_sizes


def fit_lightgbm(arrays: list[Any], trees: int, _: str) -> tuple[Any, int]:
    """Train LightGBM's lambdarank."""
    import lightgbm

    settings = {"objective": "lambdarank", "metric": "ndcg", "eval_at": [10], "num_threads": 2, "verbose": -1}
    train, *valid = [lightgbm.Dataset(X, y, group=sizes) for X, y, sizes in arrays]
    stop = [lightgbm.early_stopping(PATIENCE, verbose=False)] if valid else []
    model = lightgbm.train(settings, train, trees or MOST, valid_sets=valid, callbacks=stop)
    return model.predict, model.best_iteration if valid else trees


def fit_xgboost(arrays: list[Any], trees: int, _: str) -> tuple[Any, int]:
    """Train XGBoost's rank:ndcg with LightGBM's learning rate."""
    import xgboost

    settings = {"objective": "rank:ndcg", "eval_metric": "ndcg@10", "nthread": 2, "eta": 0.1, "tree_method": "hist"}
    train, *valid = [xgboost.DMatrix(X, y) for X, y, _ in arrays]
    for matrix, (_, _, sizes) in zip((train, *valid), arrays, strict=True):
        matrix.set_group(sizes)
    more: Any = {"evals": [(valid[0], "valid")], "early_stopping_rounds": PATIENCE} if valid else {}
    model = xgboost.train(settings, train, trees or MOST, verbose_eval=False, **more)
    last = model.best_iteration + 1 if valid else trees
    return lambda X: model.predict(xgboost.DMatrix(X), iteration_range=(0, last)), last


def fit_catboost(arrays: list[Any], trees: int, loss: str) -> tuple[Any, int]:
    """Train CatBoost with its own learning rate."""
    import catboost
    import numpy as np

    X, y, sizes = arrays[0]
    pool = catboost.Pool(X, label=y, group_id=np.repeat(np.arange(len(sizes)), sizes))
    settings = {"loss_function": loss, "iterations": trees, "thread_count": 2, "verbose": False}
    model = catboost.CatBoost(settings | {"allow_writing_files": False}).fit(pool)
    return model.predict, model.tree_count_


def run() -> Report:
    """Measure every tool at several settings."""
    rows = []
    for tool, trees in RUNS:
        result = in_child("bench.time_to_accuracy", tool, trees, timeout=1800)
        rows.append({
            "tool": tool, "trees": result["trees"], "stopped": "" if trees else "yes",
            "seconds": f"{result['seconds']:.1f}", "NDCG@10": f"{result['ndcg']:.4f} ± {result['half']:.3f}",
            "peak memory, MB": f"{result['memory'] / 1e6:.0f}",
        })  # fmt: skip
        print(rows[-1], flush=True)
    return Report(
        "time_to_accuracy", "Accuracy against training time", rows,
        [
            f"{QUERIES} training queries and {TEST_QUERIES} test queries of web-shaped data, about 400,000 × 136. "
            "Every tool has its defaults, except that XGBoost's learning rate is 0.1, as in LightGBM. Stopped: after "
            "100 rounds without a better NDCG@10 on a fifth of the training queries, which is then not trained on. "
            "One run each; the interval of NDCG@10 is over test queries.",
        ],
    )  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(child(sys.argv[1], int(sys.argv[2]))))
