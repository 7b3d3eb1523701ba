"""Accuracy compared with LightGBM, XGBoost and CatBoost, each with its defaults.

Every run is cached in `bench/.cache/accuracy`, so that a stopped benchmark resumes. A tool may use the training and
validation parts of a fold; its test part is scored once.

`python -m bench.accuracy TOOL…` trains only these tools and caches the runs.
"""

from __future__ import annotations

import hashlib
import sys
import time
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import podium
from bench.harness import Report, cached
from bench.ranking_sets import HELD_OUT, SETS, Data, dense, fold, in_query_order
from podium.objectives import Anneal, Lambda, LinearGrowth, Objective, QueryRegression

MEASURES = ("ndcg@10", "ndcg@3", "ap", "err@10")
PRIMARY = "ndcg@10"
SYMMETRIC = "podium-symmetric"
TOOLS = ("podium", SYMMETRIC, "lightgbm", "xgboost", "catboost-yetirank", "catboost-queryrmse")
RANKER, OLD_RANKER, COMMITTEE = "podium-ranker", "podium-ranker-0.2", "podium-committee"
LIGHTGBM_ALL = "lightgbm-all-data"
DEFAULTS = (RANKER, OLD_RANKER, COMMITTEE, LIGHTGBM_ALL)  # they use training and validation data together
SEEDS = 3  # of each tool; rows are shuffled within queries, since most tools depend on their order
TREES, PATIENCE = 1000, 100


Model = Callable[[Data], Any]


def podium_model(train: Data, vali: Data, seed: int, **growth: Any) -> tuple[Model, int]:
    """Train LambdaMART."""
    settings: dict[str, Any] = {"n_trees": TREES, "patience": PATIENCE, **growth}
    model = podium.LambdaMART(random_state=seed, n_threads=1, **settings).fit(train, valid=vali)
    return model.predict, model.n_trees_


def symmetric_model(train: Data, vali: Data, seed: int) -> tuple[Model, int]:
    """Train LambdaMART with symmetric trees of depth 6, CatBoost's default."""
    return podium_model(train, vali, seed, symmetric=True, n_leaves=64)


class AnnealedRanker(podium.Ranker):
    """Train `Ranker` as in version 0.2: one model, annealed from query regression to λ over 100 trees."""

    def _objective(self, train: Data) -> Objective:
        return Anneal(QueryRegression(), Lambda("ndcg"), LinearGrowth(0.0, 0.01))


def all_data_model(tool: str, train: Data, vali: Data, seed: int) -> tuple[Model, int]:
    """Train a tool that chooses the number of trees by cross-validation and trains on all data."""
    whole = Data.concatenate([train, vali])
    if tool == LIGHTGBM_ALL:
        return lightgbm_by_folds(whole, seed)
    settings = {"random_state": 10_000 * seed, "n_threads": 1}
    models = {
        RANKER: podium.Ranker(**settings), COMMITTEE: podium.Committee(**settings),
        OLD_RANKER: AnnealedRanker(n_trees=2000, n_leaves=15, learning_rate=0.05, **settings),
    }  # fmt: skip
    model = models[tool].fit(whole)
    return model.predict, model.n_trees_


def lightgbm_by_folds(whole: Data, seed: int) -> tuple[Model, int]:
    """Train LightGBM's lambdarank on all data, with the number of trees chosen by five folds of the queries."""
    import lightgbm

    X, y, sizes = in_query_order(whole, seed)
    part = np.random.default_rng(seed).permutation(len(sizes)) % 5
    of_row = np.repeat(part, sizes)
    folds = [(np.flatnonzero(of_row != k), np.flatnonzero(of_row == k)) for k in range(5)]
    settings = lightgbm_settings(seed)
    curves = lightgbm.cv(
        settings, lightgbm.Dataset(X, y, group=sizes, free_raw_data=False), TREES, folds=folds,
        callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False)],
    )  # fmt: skip
    n_trees = len(curves["valid ndcg@10-mean"])  # cut after the best round
    model = lightgbm.train(settings, lightgbm.Dataset(X, y, group=sizes), n_trees)
    return lambda data: model.predict(dense(data)), n_trees


def lightgbm_settings(seed: int) -> dict[str, Any]:
    """Return LightGBM's defaults for ranking."""
    return {
        "objective": "lambdarank", "metric": "ndcg", "eval_at": [10], "seed": seed, "num_threads": 1, "verbose": -1,
        "learning_rate": 0.1,
    }  # fmt: skip


def lightgbm_model(train: Data, vali: Data, seed: int) -> tuple[Model, int]:
    """Train LightGBM's lambdarank."""
    import lightgbm

    settings = lightgbm_settings(seed)
    X, y, sizes = in_query_order(train, seed)
    Xv, yv, sizes_v = in_query_order(vali, seed)
    data = lightgbm.Dataset(X, y, group=sizes)
    model = lightgbm.train(
        settings, data, TREES, valid_sets=[lightgbm.Dataset(Xv, yv, group=sizes_v, reference=data)],
        callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False)],
    )  # fmt: skip
    return lambda data: model.predict(dense(data)), model.best_iteration


def xgboost_model(train: Data, vali: Data, seed: int) -> tuple[Model, int]:
    """Train XGBoost's rank:ndcg."""
    import xgboost

    settings: dict[str, Any] = {
        "objective": "rank:ndcg", "eval_metric": "ndcg@10", "seed": seed, "nthread": 1, "eta": 0.1,
        "tree_method": "hist",
    }  # fmt: skip
    X, y, sizes = in_query_order(train, seed)
    Xv, yv, sizes_v = in_query_order(vali, seed)
    data, valid = xgboost.DMatrix(X, y), xgboost.DMatrix(Xv, yv)
    data.set_group(sizes)
    valid.set_group(sizes_v)
    model = xgboost.train(
        settings, data, TREES, evals=[(valid, "vali")], early_stopping_rounds=PATIENCE, verbose_eval=False
    )
    last = model.best_iteration + 1
    return lambda data: model.predict(xgboost.DMatrix(dense(data)), iteration_range=(0, last)), last


def catboost_model(loss: str, train: Data, vali: Data, seed: int) -> tuple[Model, int]:
    """Train CatBoost with one of its losses."""
    import catboost

    settings: dict[str, Any] = {
        "loss_function": loss, "eval_metric": "NDCG:top=10;type=Exp", "random_seed": seed, "thread_count": 1,
        "iterations": TREES, "learning_rate": 0.1, "od_type": "Iter", "od_wait": PATIENCE, "verbose": False,
        "allow_writing_files": False,
    }  # fmt: skip
    X, y, sizes = in_query_order(train, seed)
    Xv, yv, sizes_v = in_query_order(vali, seed)
    pools = [
        catboost.Pool(features, labels, group_id=np.repeat(np.arange(len(counts)), counts))
        for features, labels, counts in ((X, y, sizes), (Xv, yv, sizes_v))
    ]
    model = catboost.CatBoost(settings).fit(pools[0], eval_set=pools[1])
    return lambda data: model.predict(dense(data)), model.tree_count_


def trained(tool: str, *arguments: Any) -> tuple[Model, int]:
    """Return the model of a tool."""
    if tool in DEFAULTS:
        return all_data_model(tool, *arguments)
    if tool.startswith("catboost"):
        return catboost_model({"yetirank": "YetiRank", "queryrmse": "QueryRMSE"}[tool.split("-")[1]], *arguments)
    models = {
        "podium": podium_model, SYMMETRIC: symmetric_model, "lightgbm": lightgbm_model, "xgboost": xgboost_model,
    }  # fmt: skip
    return models[tool](*arguments)


def one_run(tool: str, name: str, number: int, seed: int) -> dict[str, Any]:
    """Return the values of each test query of a fold, from a new run or a cached one."""

    def measure() -> dict[str, Any]:
        train, vali, test = fold(name, number)
        started = time.process_time()  # each tool has one thread
        score, trees = trained(tool, train, vali, seed)
        seconds = time.process_time() - started
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", podium.PodiumWarning)  # ties are few, and every tool has some
            table = podium.evaluate(test, score(test), MEASURES)
        values = {m: np.nan_to_num(table.values[m]).round(6).tolist() for m in MEASURES}
        return {"trees": trees, "seconds": seconds, "test": values}

    mark = f"-{podium_fingerprint()}" if tool.startswith("podium") else ""
    result: dict[str, Any] = cached(f"accuracy/{tool}{mark}-{name}-{number}-seed{seed}-default.json", measure)
    return result


@cache
def podium_fingerprint() -> str:
    """Return a digest of Podium's sources, on which its results depend."""
    digest = hashlib.sha256()
    for path in sorted(Path(podium.__file__).parent.rglob("*.py")):
        if path.parts[-2] in ("boosting", "estimators", "objectives", "trees", "measures", "data"):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:8]


def per_query(tool: str, name: str) -> dict[str, Any]:
    """Return each test query's values over all folds, averaged over the seeds, and the seconds of a run."""
    values: dict[str, list[Any]] = {m: [] for m in (*MEASURES, "seconds")}
    for number in range(1, SETS[name] + 1):
        runs = [one_run(tool, name, number, seed) for seed in range(SEEDS)]
        for m in MEASURES:
            values[m].append(np.mean([run["test"][m] for run in runs], axis=0))
        values["seconds"].append([np.mean([run["seconds"] for run in runs])])
    return {m: np.concatenate(parts) for m, parts in values.items()}


def joined(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the values of several sets as one set."""
    return {m: np.concatenate([part[m] for part in parts]) for m in parts[0]}


def run() -> Report:
    """Train everything that is not cached, and compare."""
    from podium.evaluation.significance import t_interval

    tools = (*DEFAULTS, *TOOLS)
    values = {name: {tool: per_query(tool, name) for tool in tools} for name in SETS}
    for title, names in (("held out", HELD_OUT), ("all", tuple(SETS))):
        values[title] = {tool: joined([values[name][tool] for name in names]) for tool in tools}
    rows = []
    for name, of_tools in values.items():
        for tool, of_tool in of_tools.items():
            row: dict[str, Any] = {"set": name, "tool": tool, "queries": len(of_tool[PRIMARY])}
            for m in MEASURES:
                low, high = t_interval(of_tool[m])
                row[m] = f"{of_tool[m].mean():.4f} ± {(high - low) / 2:.3f}"
            row["CPU seconds"] = f"{of_tool['seconds'].mean():.2f}"
            rows.append(row)
    for title, tool in (("Ranker", RANKER), ("Committee", COMMITTEE)):
        add_comparisons(rows, title, values, tool)
    return Report(
        "accuracy", "Accuracy on test queries", rows,
        [
            "Means over the test queries with 95% intervals. Queries without a relevant document count as 0. Every "
            f"tool has its defaults: at most {TREES} trees, learning rate 0.1 if the tool has no other default for "
            f"ranking, and training stops after {PATIENCE} rounds without a better NDCG@10 on the validation queries. "
            f"Figures are means of {SEEDS} seeds, which shuffle the rows within queries.",
            f"podium is LambdaMART, and {SYMMETRIC} is LambdaMART with symmetric trees of depth 6. {RANKER}, "
            f"{OLD_RANKER}, {COMMITTEE} and {LIGHTGBM_ALL} also train on the validation queries and choose the number "
            "of trees by cross-validation.",
            f"web-N: web-shaped data with N training queries. held out: {', '.join(HELD_OUT)}, on which no default was "
            "chosen. all: every test query of these sets, so large sets weigh more.",
            "Ahead by: the difference in NDCG@10. p: randomization test over queries, in brackets with Holm's "
            "correction over the column. CPU seconds: one fit on one thread, while other processes were running.",
        ],
    )  # fmt: skip


def add_comparisons(rows: list[dict[str, Any]], title: str, values: dict[str, dict[str, Any]], tool: str) -> None:
    """Add to the row of each other tool how far `tool` is ahead, and p."""
    from podium.evaluation.significance import holm, randomization

    tests = []
    for row in rows:
        of_tools = values[row["set"]]
        if row["tool"] != tool:
            gain = of_tools[tool][PRIMARY] - of_tools[row["tool"]][PRIMARY]
            row[f"{title} ahead by"] = f"{gain.mean():+.4f}"
            tests.append((row, randomization(gain, list(range(len(gain))))))
    for (row, p), corrected in zip(tests, holm([p for _, p in tests]), strict=True):
        row[f"{title}, p"] = f"{p:.2g} ({corrected:.2g})"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for one_set in SETS:
        for one_tool in sys.argv[1:]:
            per_query(one_tool, one_set)
            print(one_set, one_tool, flush=True)
