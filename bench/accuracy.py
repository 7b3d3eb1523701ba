"""Accuracy beside LightGBM, XGBoost and CatBoost on real data, with defaults and tuned.

Every run is kept in `bench/.cache/accuracy`, so that a stopped benchmark goes on where it was. What a tool does
may use the training and validation part of a fold; its test part is scored once, after the choice.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import podium
from bench.harness import Report

CACHE = Path(__file__).parent / ".cache" / "accuracy"
DATA = Path(os.environ.get("PODIUM_DATA", "../shared/data"))
MEASURES = ("ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "ap", "err@10")
PRIMARY = "ndcg@10"
TOOLS = ("podium", "lightgbm", "xgboost", "catboost-yetirank", "catboost-queryrmse")
RANKER, COMMITTEE = "podium-ranker-all", "podium-committee-all"  # what is compared with every peer
DEFAULTS = ("podium-ranker", RANKER, "podium-committee", COMMITTEE)  # models that have defaults alone
WEB = {"web-30": 30, "web-100": 100, "web-300": 300}  # queries of samples of web-shaped data
SETS = {"mq2008": 5, "ohsumed": 5, "lightgbm_example": 1, "web-30": 4, "web-100": 2, "web-300": 1}  # folds or samples
NOT_TUNED = ("web-300",)  # a fit takes a peer up to half a minute
SEEDS = 3  # of each tool's defaults; rows are shuffled within queries, since most tools depend on their order
TRIALS = 30
DEFAULT_TREES, DEFAULT_PATIENCE, TRIAL_TREES, TRIAL_PATIENCE = 1000, 100, 500, 50

Data = podium.RankingData


@cache
def fold(name: str, number: int) -> tuple[Data, Data, Data]:
    """Train, validation and test data of a fold, as the sets' README defines them."""
    if name in WEB:
        queries, seed = WEB[name], 200 + number
        vali = podium.artificial_web(queries // 3, seed=seed, part="valid")
        return podium.artificial_web(queries, seed=seed), vali, podium.artificial_web(300, seed=seed, part="test")
    if name == "lightgbm_example":
        whole = podium.read(DATA / name / "train.txt.gz")
        train, vali = whole.split(0.8, 0.2, seed=0)
        return train, vali, podium.read(DATA / name / "test.txt.gz", n_features=whole.n_features)
    found = podium.data.datasets.folds(DATA / name, parts="ohsumed" if name == "ohsumed" else "letor")[number - 1]
    return found.train, found.valid, found.test


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


def in_query_order(data: Data, seed: int) -> tuple[Any, Any, Any, Any]:
    """Features, labels and query sizes with queries together and their rows shuffled; and the rows."""
    rng = np.random.default_rng(seed)
    rows = np.concatenate([rng.permutation(data.rows(q)) for q in range(data.n_queries)])
    features = data.features.toarray() if hasattr(data.features, "toarray") else data.features
    return features[rows], data.relevance[rows], data.query_sizes, rows


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


def default_model(kind: str, train: Data, vali: Data, seed: int, p: dict[str, Any] | None) -> tuple[Model, int]:
    """`Ranker` or `Committee`: stopped and weighed by vali, or with all data in folds."""
    assert p is None, "these have defaults alone"
    _, name, *over_all = kind.split("-")
    estimator = {"ranker": podium.Ranker, "committee": podium.Committee}[name]
    model = estimator(random_state=10_000 * seed, n_threads=1)
    if over_all:
        model.fit(Data.concatenate([train, vali]))
    else:
        model.fit(train, valid=vali)
    return model.predict, model.n_trees_


def lightgbm_model(train: Data, vali: Data, seed: int, p: dict[str, Any] | None) -> tuple[Model, int]:
    """LightGBM's lambdarank."""
    import lightgbm

    settings: dict[str, Any] = {
        "objective": "lambdarank", "metric": "ndcg", "eval_at": [10], "seed": seed, "num_threads": 1, "verbose": -1,
        "learning_rate": 0.1,
    }  # fmt: skip
    if p:
        settings |= {
            "num_leaves": p["leaves"], "learning_rate": p["rate"], "min_data_in_leaf": p["fewest"],
            "bagging_fraction": p["rows"], "bagging_freq": 1, "feature_fraction": p["features"], "lambda_l2": p["l2"],
            "lambdarank_truncation_level": p["truncation"], "lambdarank_norm": p["normalize"],
        }  # fmt: skip
    X, y, sizes, _ = in_query_order(train, seed)
    Xv, yv, sizes_v, _ = in_query_order(vali, seed)
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
    X, y, sizes, _ = in_query_order(train, seed)
    Xv, yv, sizes_v, _ = in_query_order(vali, seed)
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
    X, y, sizes, _ = in_query_order(train, seed)
    Xv, yv, sizes_v, _ = in_query_order(vali, seed)
    pools = [
        catboost.Pool(x, label, group_id=np.repeat(np.arange(len(many)), many))
        for x, label, many in ((X, y, sizes), (Xv, yv, sizes_v))
    ]
    model = catboost.CatBoost(settings).fit(pools[0], eval_set=pools[1])
    return lambda data: model.predict(dense(data)), model.tree_count_


def dense(data: Data) -> Any:
    """The features as an array."""
    return data.features.toarray() if hasattr(data.features, "toarray") else data.features


def trained(tool: str, *arguments: Any) -> tuple[Model, int]:
    """The model of a tool."""
    if tool in DEFAULTS:
        return default_model(tool, *arguments)
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
    return [name for name in SETS if mode == "default" or name not in NOT_TUNED]


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
    order = [*SETS, "all"]
    values = dict(sorted(values.items(), key=lambda entry: (order.index(entry[0][0]), entry[0][1])))
    rows = []
    for (name, mode, tool), found in values.items():
        row: dict[str, Any] = {"set": name, "settings": mode, "tool": tool}
        for m in MEASURES:
            low, high = t_interval(found[m])
            row[m] = f"{found[m].mean():.4f} ± {(high - low) / 2:.3f}"
        row["seconds"] = f"{found['seconds'].mean():.2f}"
        rows.append(row)
    for title, own in (("Ranker", RANKER), ("Committee", COMMITTEE)):
        add_comparisons(rows, title, values, own)
    return Report(
        "accuracy", "Accuracy on the test folds", rows,
        [f"Empty queries count 0; means over all test queries of all folds with 95% intervals. Defaults: at most "
         f"{DEFAULT_TREES} trees, learning rate 0.1 where a tool has no other default for ranking, stopped after "
         f"{DEFAULT_PATIENCE} without a gain of NDCG@10 on vali, mean of {SEEDS} seeds (rows shuffled within queries). "
         f"Tuned: {TRIALS} random settings a fold, the same for every tool, best on vali, {TRIAL_TREES} trees at most. "
         "podium is LambdaMART. podium-ranker and podium-committee are stopped and weighed by vali; those that end in "
         "-all have train and vali as one, and folds of their own. web-N: samples of web-shaped data with N queries to "
         "train on and a third as many to stop by. all: every test query of all sets, tuned without web-300. Ahead by: "
         f"the difference in NDCG@10 of {RANKER} and of {COMMITTEE}; p by a randomisation test over queries, as it is "
         "and with Holm's correction over the column. Seconds: of CPU for a fit, one thread."],
    )  # fmt: skip


def add_comparisons(rows: list[dict[str, Any]], title: str, values: dict[tuple[str, str, str], Any], own: str) -> None:
    """Say of each peer's row how far one of Podium's models is ahead, and whether that is significant."""
    from podium.evaluation.significance import holm, randomisation

    tests = []
    for row in rows:
        name, mode = row["set"], row["settings"]
        sets = sets_of(mode) if name == "all" else [name]
        mine = joined([values[one, "default", own] for one in sets])
        apart = mine[PRIMARY] - values[name, mode, row["tool"]][PRIMARY]
        if not row["tool"].startswith("podium-"):
            row[f"{title} ahead by"] = f"{apart.mean():+.4f}"
            tests.append((row, randomisation(apart, list(range(len(apart))))))
    for (row, p), corrected in zip(tests, holm([p for _, p in tests]), strict=True):
        row[f"{title}, p"] = f"{p:.2g} ({corrected:.2g})"
