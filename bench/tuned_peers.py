"""Podium's defaults compared with LightGBM and CatBoost after a parameter search, on real data.

For each fold and seed, Optuna tries `TRIALS` settings on the validation queries. The best one, with its number of
trees, is trained again on training and validation queries together, which `Ranker` and `Committee` also use. Runs are
cached in `bench/.cache/tuned_peers`.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import podium
from bench.accuracy import lightgbm_settings
from bench.harness import Report, cached
from bench.ranking_sets import HELD_OUT, SETS, Data, dense, fold, in_query_order

REAL = tuple(name for name in SETS if not name.startswith("web"))
RANKER, COMMITTEE, LIGHTGBM, CATBOOST = "Ranker()", "Committee()", "LightGBM, tuned", "CatBoost QueryRMSE, tuned"
TOOLS = (RANKER, COMMITTEE, LIGHTGBM, CATBOOST)
SEEDS, TRIALS, TREES, PATIENCE = 1, 20, 1000, 50

Fitted = tuple[float, int, Callable[[Data], Any]]  # NDCG@10 on validation queries, number of trees, and scores


def lightgbm_fit(settings: dict[str, Any], seed: int, train: Data, vali: Data | None, n_trees: int) -> Fitted:
    """Train LightGBM's lambdarank; with validation data, stop at the best round."""
    import lightgbm

    X, y, sizes = in_query_order(train, seed)
    data, options = lightgbm.Dataset(X, y, group=sizes), {}
    if vali is not None:
        Xv, yv, sizes_v = in_query_order(vali, seed)
        options = {
            "valid_sets": [lightgbm.Dataset(Xv, yv, group=sizes_v, reference=data)],
            "callbacks": [lightgbm.early_stopping(PATIENCE, verbose=False)],
        }
    model = lightgbm.train(lightgbm_settings(seed) | {"bagging_freq": 1} | settings, data, n_trees, **options)
    value = model.best_score["valid_0"]["ndcg@10"] if vali is not None else np.nan
    return value, model.best_iteration if vali is not None else n_trees, lambda data: model.predict(dense(data))


def catboost_fit(settings: dict[str, Any], seed: int, train: Data, vali: Data | None, n_trees: int) -> Fitted:
    """Train CatBoost's QueryRMSE; with validation data, stop at the best round."""
    import catboost

    fixed: dict[str, Any] = {
        "loss_function": "QueryRMSE", "eval_metric": "NDCG:top=10;type=Exp", "random_seed": seed, "thread_count": 1,
        "iterations": n_trees, "verbose": False, "allow_writing_files": False, "bootstrap_type": "Bernoulli",
    }  # fmt: skip

    def pool(data: Data) -> Any:
        X, y, sizes = in_query_order(data, seed)
        return catboost.Pool(X, y, group_id=np.repeat(np.arange(len(sizes)), sizes))

    if vali is None:
        model = catboost.CatBoost(fixed | settings).fit(pool(train))
        return np.nan, n_trees, lambda data: model.predict(dense(data))
    stopping = {"od_type": "Iter", "od_wait": PATIENCE}
    model = catboost.CatBoost(fixed | stopping | settings).fit(pool(train), eval_set=pool(vali))
    value = model.get_best_score()["validation"]["NDCG:top=10;type=Exp"]
    return value, model.tree_count_, lambda data: model.predict(dense(data))


def lightgbm_space(trial: Any) -> dict[str, Any]:
    """Return the settings of a trial for LightGBM."""
    return {
        "num_leaves": trial.suggest_int("num_leaves", 4, 64, log=True),
        "learning_rate": trial.suggest_float("learning_rate", 0.02, 0.2, log=True),
        "min_data_in_leaf": trial.suggest_int("min_data_in_leaf", 5, 100, log=True),
        "lambda_l2": trial.suggest_float("lambda_l2", 0.01, 100, log=True),
        "bagging_fraction": trial.suggest_float("bagging_fraction", 0.4, 1.0),
        "feature_fraction": trial.suggest_float("feature_fraction", 0.3, 1.0),
    }


def catboost_space(trial: Any) -> dict[str, Any]:
    """Return the settings of a trial for CatBoost."""
    return {
        "depth": trial.suggest_int("depth", 3, 8),
        "learning_rate": trial.suggest_float("learning_rate", 0.02, 0.2, log=True),
        "l2_leaf_reg": trial.suggest_float("l2_leaf_reg", 1, 100, log=True),
        "random_strength": trial.suggest_float("random_strength", 0.1, 10, log=True),
        "subsample": trial.suggest_float("subsample", 0.4, 1.0),
        "rsm": trial.suggest_float("rsm", 0.3, 1.0),
    }


PEERS = {LIGHTGBM: (lightgbm_fit, lightgbm_space), CATBOOST: (catboost_fit, catboost_space)}


def tuned(tool: str, train: Data, vali: Data, seed: int) -> Callable[[Data], Any]:
    """Search on the validation queries, and train the best settings again on all data."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    fit, space = PEERS[tool]
    best: tuple[float, int, dict[str, Any]] = (-np.inf, 0, {})

    def value_of(trial: Any) -> float:
        nonlocal best
        settings = space(trial)
        value, n_trees, _ = fit(settings, seed, train, vali, TREES)
        best = max(best, (value, max(n_trees, 1), settings), key=lambda one: one[0])
        return value

    optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed)).optimize(value_of, TRIALS)
    _, n_trees, settings = best
    return fit(settings, seed, Data.concatenate([train, vali]), None, n_trees)[2]


def one_run(tool: str, name: str, number: int, seed: int) -> Any:
    """Return NDCG@10 of each test query of a fold, from a new run or a cached one."""

    def measure() -> list[float]:
        train, vali, test = fold(name, number)
        if tool in PEERS:
            score = tuned(tool, train, vali, seed)
        else:
            settings: dict[str, Any] = {"random_state": 10_000 * seed, "n_threads": 1}
            model = podium.Ranker(**settings) if tool == RANKER else podium.Committee(**settings)
            score = model.fit(Data.concatenate([train, vali])).predict
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", podium.PodiumWarning)  # ties are few, and every tool has some
            values = podium.evaluate(test, score(test), "ndcg@10").values["ndcg@10"]
        print(" ", tool, name, number, seed, file=sys.stderr, flush=True)
        return list(np.nan_to_num(values).round(6).tolist())

    return np.array(cached(f"tuned_peers/{tool}-{name}-{number}-{seed}.json", measure))


def run() -> Report:
    """Run what is not cached, and compare over the test queries of all folds."""
    from podium.evaluation.significance import randomization

    values = {
        name: {
            tool: np.concatenate(
                [np.mean([one_run(tool, name, k, seed) for seed in range(SEEDS)], axis=0) for k in range(1, n + 1)]
            )
            for tool in TOOLS
        }
        for name, n in SETS.items()
        if name in REAL
    }
    for title, names in (("held out", HELD_OUT), ("all", REAL)):
        values[title] = {tool: np.concatenate([values[name][tool] for name in names]) for tool in TOOLS}
    rows = []
    for name, of_tool in values.items():
        row: dict[str, Any] = {"NDCG@10": name, "test queries": len(of_tool[RANKER])}
        row |= {tool: f"{of_tool[tool].mean():.4f}" for tool in TOOLS}
        best = max(PEERS, key=lambda tool: of_tool[tool].mean())
        for tool in (RANKER, COMMITTEE):
            ahead = of_tool[tool] - of_tool[best]
            p = randomization(ahead, list(range(len(ahead))))
            row[f"{tool} ahead of the better peer"] = f"{ahead.mean():+.4f} (p = {p:.2g})"
        rows.append(row)
    return Report(
        "tuned_peers", "Podium's defaults and tuned peers", rows,
        [f"Means over the test queries; {SEEDS} seed. A peer has {TRIALS} trials of at most {TREES} trees with "
         f"patience {PATIENCE} on the validation queries; then its best settings are trained again on training and "
         "validation queries together, on which Ranker and Committee are trained with their defaults.",
         f"held out: {', '.join(HELD_OUT)}, on which no default of Podium was chosen. all: every test query of these "
         "sets. p: randomization test over queries, without correction."],
    )  # fmt: skip
