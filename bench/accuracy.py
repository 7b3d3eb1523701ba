"""Accuracy compared with LightGBM, XGBoost and CatBoost, with defaults and tuned.

Every run is kept in `bench/.cache/accuracy`, so that a stopped benchmark continues where it was. A tool may use the
training and validation part of a fold; its test part is scored once, after the choice.

`python -m bench.accuracy TOOL…` trains only these tools, with their defaults, and keeps the runs.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import podium
from bench.harness import Report
from bench.ranking_sets import HELD_OUT, SETS, Data, dense, fold, in_query_order
from podium.objectives import Anneal, Lambda, LinearGrowth, Objective, QueryRegression

CACHE = Path(__file__).parent / ".cache" / "accuracy"
MEASURES = ("ndcg@10", "ndcg@3", "ap", "err@10")
PRIMARY = "ndcg@10"
TOOLS = ("podium", "lightgbm", "xgboost", "catboost-yetirank", "catboost-queryrmse")
RANKER, OLD_RANKER, COMMITTEE = "podium-ranker", "podium-ranker-0.2", "podium-committee"
LIGHTGBM_ALL = "lightgbm-all-data"
DEFAULTS = (RANKER, OLD_RANKER, COMMITTEE, LIGHTGBM_ALL)  # they use training and validation data together
TUNED_SETS = ("mq2008", "ohsumed", "lightgbm_example")
SEEDS = 3  # of each tool's defaults; rows are shuffled within queries, since most tools depend on their order
TRIALS = 30
DEFAULT_TREES, DEFAULT_PATIENCE, TRIAL_TREES, TRIAL_PATIENCE = 1000, 100, 500, 50


def drawn(trial: int) -> dict[str, Any]:
    """The settings of a trial, the same for every tool; each takes those that it has."""
    rng = np.random.default_rng(1000 + trial)
    return {
        "leaves": int(rng.choice([4, 7, 10, 15, 31, 63])),
        "rate": float(np.exp(rng.uniform(np.log(0.02), np.log(0.2)))),
        "fewest": int(rng.choice([1, 5, 10, 20, 50])),
        "rows": float(rng.uniform(0.4, 1.0)),
        "features": float(rng.uniform(0.3, 1.0)),
        "l2": float(rng.choice([0.0, 0.1, 1.0, 10.0])),
        "truncation": int(rng.choice([5, 10, 30, 1000])),
        "normalize": bool(rng.choice([True, False])),
    }


Model = Callable[[Data], Any]


def podium_model(train: Data, vali: Data, seed: int, p: dict[str, Any] | None) -> tuple[Model, int]:
    """LambdaMART."""
    settings: dict[str, Any] = {"n_trees": DEFAULT_TREES, "patience": DEFAULT_PATIENCE}
    if p:
        settings = {
            "n_trees": TRIAL_TREES, "patience": TRIAL_PATIENCE, "n_leaves": p["leaves"], "learning_rate": p["rate"],
            "min_documents_in_leaf": p["fewest"], "document_fraction": p["rows"], "feature_fraction": p["features"],
            "l2": p["l2"], "truncation": p["truncation"], "normalize": p["normalize"],
        }  # fmt: skip
    model = podium.LambdaMART(random_state=seed, n_threads=1, **settings).fit(train, valid=vali)
    return model.predict, model.n_trees_


class AnnealedRanker(podium.Ranker):
    """`Ranker` as it was in 0.2: one model, from query regression to λ over 100 trees."""

    def _objective(self, train: Data) -> Objective:
        return Anneal(QueryRegression(), Lambda("ndcg"), LinearGrowth(0.0, 0.01))


def all_data_model(tool: str, train: Data, vali: Data, seed: int, p: dict[str, Any] | None) -> tuple[Model, int]:
    """A tool that chooses the number of trees by cross-validation, and trains on all data."""
    assert p is None, "these have defaults alone"
    whole = Data.concatenate([train, vali])
    if tool == LIGHTGBM_ALL:
        return lightgbm_by_folds(whole, seed)
    own = {"random_state": 10_000 * seed, "n_threads": 1}
    models = {
        RANKER: podium.Ranker(**own), COMMITTEE: podium.Committee(**own),
        OLD_RANKER: AnnealedRanker(n_trees=2000, n_leaves=15, learning_rate=0.05, **own),
    }  # fmt: skip
    model = models[tool].fit(whole)
    return model.predict, model.n_trees_


def lightgbm_by_folds(whole: Data, seed: int) -> tuple[Model, int]:
    """LightGBM's lambdarank, with the number of trees by five folds of the queries, trained on all data."""
    import lightgbm

    X, y, sizes = in_query_order(whole, seed)
    part = np.random.default_rng(seed).permutation(len(sizes)) % 5
    of_row = np.repeat(part, sizes)
    folds = [(np.flatnonzero(of_row != k), np.flatnonzero(of_row == k)) for k in range(5)]
    settings = lightgbm_settings(seed)
    curves = lightgbm.cv(
        settings, lightgbm.Dataset(X, y, group=sizes, free_raw_data=False), DEFAULT_TREES, folds=folds,
        callbacks=[lightgbm.early_stopping(DEFAULT_PATIENCE, verbose=False)],
    )  # fmt: skip
    n_trees = len(curves["valid ndcg@10-mean"])  # cut after the best round
    model = lightgbm.train(settings, lightgbm.Dataset(X, y, group=sizes), n_trees)
    return lambda data: model.predict(dense(data)), n_trees


def lightgbm_settings(seed: int) -> dict[str, Any]:
    """LightGBM's defaults for ranking."""
    return {
        "objective": "lambdarank", "metric": "ndcg", "eval_at": [10], "seed": seed, "num_threads": 1, "verbose": -1,
        "learning_rate": 0.1,
    }  # fmt: skip


def lightgbm_model(train: Data, vali: Data, seed: int, p: dict[str, Any] | None) -> tuple[Model, int]:
    """LightGBM's lambdarank."""
    import lightgbm

    settings = lightgbm_settings(seed)
    if p:
        settings |= {
            "num_leaves": p["leaves"], "learning_rate": p["rate"], "min_data_in_leaf": p["fewest"],
            "bagging_fraction": p["rows"], "bagging_freq": 1, "feature_fraction": p["features"], "lambda_l2": p["l2"],
            "lambdarank_truncation_level": p["truncation"], "lambdarank_norm": p["normalize"],
        }  # fmt: skip
    X, y, sizes = in_query_order(train, seed)
    Xv, yv, sizes_v = in_query_order(vali, seed)
    data = lightgbm.Dataset(X, y, group=sizes)
    patience, trees = (TRIAL_PATIENCE, TRIAL_TREES) if p else (DEFAULT_PATIENCE, DEFAULT_TREES)
    model = lightgbm.train(
        settings, data, trees, valid_sets=[lightgbm.Dataset(Xv, yv, group=sizes_v, reference=data)],
        callbacks=[lightgbm.early_stopping(patience, verbose=False)],
    )  # fmt: skip
    return lambda data: model.predict(dense(data)), model.best_iteration


def xgboost_model(train: Data, vali: Data, seed: int, p: dict[str, Any] | None) -> tuple[Model, int]:
    """XGBoost's rank:ndcg."""
    import xgboost

    settings: dict[str, Any] = {
        "objective": "rank:ndcg", "eval_metric": "ndcg@10", "seed": seed, "nthread": 1, "eta": 0.1,
        "tree_method": "hist",
    }  # fmt: skip
    if p:
        settings |= {
            "grow_policy": "lossguide", "max_leaves": p["leaves"], "max_depth": 0, "eta": p["rate"],
            "subsample": p["rows"], "colsample_bytree": p["features"], "lambda": p["l2"],
            "lambdarank_pair_method": "topk", "lambdarank_num_pair_per_sample": min(p["truncation"], 100),
            "lambdarank_normalization": p["normalize"], "min_child_weight": 0.01 * p["fewest"],
        }  # fmt: skip
    X, y, sizes = in_query_order(train, seed)
    Xv, yv, sizes_v = in_query_order(vali, seed)
    data, valid = xgboost.DMatrix(X, y), xgboost.DMatrix(Xv, yv)
    data.set_group(sizes)
    valid.set_group(sizes_v)
    patience, trees = (TRIAL_PATIENCE, TRIAL_TREES) if p else (DEFAULT_PATIENCE, DEFAULT_TREES)
    model = xgboost.train(
        settings, data, trees, evals=[(valid, "vali")], early_stopping_rounds=patience, verbose_eval=False
    )
    last = model.best_iteration + 1
    return lambda data: model.predict(xgboost.DMatrix(dense(data)), iteration_range=(0, last)), last


def catboost_model(loss: str, train: Data, vali: Data, seed: int, p: dict[str, Any] | None) -> tuple[Model, int]:
    """CatBoost with one of its losses."""
    import catboost

    patience, trees = (TRIAL_PATIENCE, TRIAL_TREES) if p else (DEFAULT_PATIENCE, DEFAULT_TREES)
    settings: dict[str, Any] = {
        "loss_function": loss, "eval_metric": "NDCG:top=10;type=Exp", "random_seed": seed, "thread_count": 1,
        "iterations": trees, "learning_rate": 0.1, "od_type": "Iter", "od_wait": patience, "verbose": False,
        "allow_writing_files": False,
    }  # fmt: skip
    if p:
        settings |= {
            "depth": max(2, int(np.ceil(np.log2(p["leaves"])))), "learning_rate": p["rate"],
            "bootstrap_type": "Bernoulli", "subsample": p["rows"], "rsm": p["features"],
            "l2_leaf_reg": p["l2"] + 1e-3,
        }  # fmt: skip
    X, y, sizes = in_query_order(train, seed)
    Xv, yv, sizes_v = in_query_order(vali, seed)
    pools = [
        catboost.Pool(x, label, group_id=np.repeat(np.arange(len(many)), many))
        for x, label, many in ((X, y, sizes), (Xv, yv, sizes_v))
    ]
    model = catboost.CatBoost(settings).fit(pools[0], eval_set=pools[1])
    return lambda data: model.predict(dense(data)), model.tree_count_


def trained(tool: str, *arguments: Any) -> tuple[Model, int]:
    """The model of a tool."""
    if tool in DEFAULTS:
        return all_data_model(tool, *arguments)
    if tool.startswith("catboost"):
        return catboost_model({"yetirank": "YetiRank", "queryrmse": "QueryRMSE"}[tool.split("-")[1]], *arguments)
    return {"podium": podium_model, "lightgbm": lightgbm_model, "xgboost": xgboost_model}[tool](*arguments)


def one_run(tool: str, name: str, number: int, seed: int, trial: int | None) -> dict[str, Any]:
    """Train on one fold, or take the result of an earlier run; vali's NDCG@10 and each test query's values."""
    mark = f"-{podium_fingerprint()}" if tool.startswith("podium") else ""
    kept = CACHE / f"{tool}{mark}-{name}-{number}-seed{seed}-{'default' if trial is None else trial}.json"
    if kept.exists():
        found: dict[str, Any] = json.loads(kept.read_text())
        return found
    train, vali, test = fold(name, number)
    started = time.process_time()  # each tool has one thread
    score, trees = trained(tool, train, vali, seed, None if trial is None else drawn(trial))
    seconds = time.process_time() - started
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", podium.PodiumWarning)  # of ties: few, and each tool has them
        on_vali = podium.evaluate(vali, score(vali), PRIMARY).means[PRIMARY]
        table = podium.evaluate(test, score(test), MEASURES)
    found = {
        "vali": on_vali, "trees": trees, "seconds": seconds,
        "test": {m: np.nan_to_num(table.values[m]).round(6).tolist() for m in MEASURES},
    }  # fmt: skip
    CACHE.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(found))
    return found


@cache
def podium_fingerprint() -> str:
    """What Podium's results depend on: its sources."""
    digest = hashlib.sha256()
    for path in sorted(Path(podium.__file__).parent.rglob("*.py")):
        if path.parts[-2] in ("boosting", "estimators", "objectives", "trees", "measures", "data"):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:8]


def runs_of(tool: str, name: str, number: int, mode: str) -> list[dict[str, Any]]:
    """The runs on one fold: each seed of the defaults, or the trial that was best on vali."""
    if mode == "default":
        return [one_run(tool, name, number, seed, None) for seed in range(SEEDS)]
    return [max((one_run(tool, name, number, 0, trial) for trial in range(TRIALS)), key=lambda run: run["vali"])]


def per_query(tool: str, name: str, mode: str) -> dict[str, Any]:
    """Each test query's values over all folds, averaged over the runs on it; with the seconds of a run."""
    found: dict[str, list[Any]] = {m: [] for m in (*MEASURES, "seconds")}
    for number in range(1, SETS[name] + 1):
        runs = runs_of(tool, name, number, mode)
        for m in MEASURES:
            found[m].append(np.mean([run["test"][m] for run in runs], axis=0))
        found["seconds"].append([np.mean([run["seconds"] for run in runs])])
    return {m: np.concatenate(values) for m, values in found.items()}


def sets_of(mode: str) -> list[str]:
    """Those on which tools are compared in a mode."""
    return list(SETS) if mode == "default" else list(TUNED_SETS)


def joined(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """The values of several sets as one."""
    return {m: np.concatenate([part[m] for part in parts]) for m in parts[0]}


def run() -> Report:
    """Train everything that is not yet there, and compare."""
    from podium.evaluation.significance import t_interval

    values: dict[tuple[str, str, str], dict[str, Any]] = {}
    for mode, tools in (("default", (*TOOLS, *DEFAULTS)), ("tuned", TOOLS)):
        for tool in tools:
            for name in sets_of(mode):
                values[name, mode, tool] = per_query(tool, name, mode)
            values["all", mode, tool] = joined([values[name, mode, tool] for name in sets_of(mode)])
            if mode == "default":
                values["held out", mode, tool] = joined([values[name, mode, tool] for name in HELD_OUT])
    order = [*SETS, "held out", "all"]
    values = dict(sorted(values.items(), key=lambda entry: (order.index(entry[0][0]), entry[0][1])))
    rows = []
    for (name, mode, tool), found in values.items():
        row: dict[str, Any] = {"set": name, "settings": mode, "tool": tool, "queries": len(found[PRIMARY])}
        for m in MEASURES:
            low, high = t_interval(found[m])
            row[m] = f"{found[m].mean():.4f} ± {(high - low) / 2:.3f}"
        row["CPU seconds"] = f"{found['seconds'].mean():.2f}"
        rows.append(row)
    for title, own in (("Ranker", RANKER), ("Committee", COMMITTEE)):
        add_comparisons(rows, title, values, own)
    return Report(
        "accuracy", "Accuracy on the test folds", rows,
        [f"Means over the test queries with 95% intervals; queries without a relevant document count 0. Defaults: at "
         f"most {DEFAULT_TREES} trees, learning rate 0.1 if a tool has no other default for ranking, stopped after "
         f"{DEFAULT_PATIENCE} rounds without a gain of NDCG@10 on the validation queries, mean of {SEEDS} seeds (rows "
         f"shuffled within queries). Tuned: {TRIALS} random settings for each fold, the same for every tool, the best "
         f"on the validation queries, at most {TRIAL_TREES} trees. podium is LambdaMART. {RANKER}, {OLD_RANKER}, "
         f"{COMMITTEE} and {LIGHTGBM_ALL} train on the validation queries as well, and choose the number of trees by "
         f"cross-validation. web-N: web-shaped data with N training queries. held out: {', '.join(HELD_OUT)}, on which "
         "no default was chosen. all: every test query of these sets, so large sets weigh more. Ahead by: the "
         f"difference in NDCG@10; p by a randomisation test over queries, and with Holm's correction over the column."],
    )  # fmt: skip


def add_comparisons(rows: list[dict[str, Any]], title: str, values: dict[tuple[str, str, str], Any], own: str) -> None:
    """Say of each other tool's row how far one of Podium's models is ahead, and whether that is significant."""
    from podium.evaluation.significance import holm, randomisation

    tests = []
    for row in rows:
        name, mode = row["set"], row["settings"]
        sets = {"all": sets_of(mode), "held out": list(HELD_OUT)}.get(name, [name])
        ours = joined([values[one, "default", own] for one in sets])
        gain = ours[PRIMARY] - values[name, mode, row["tool"]][PRIMARY]
        if row["tool"] != own:
            row[f"{title} ahead by"] = f"{gain.mean():+.4f}"
            tests.append((row, randomisation(gain, list(range(len(gain))))))
    for (row, p), corrected in zip(tests, holm([p for _, p in tests]), strict=True):
        row[f"{title}, p"] = f"{p:.2g} ({corrected:.2g})"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for one_set in SETS:
        for one_tool in sys.argv[1:]:
            per_query(one_tool, one_set, "default")
            print(one_set, one_tool, flush=True)
