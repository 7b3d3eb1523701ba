"""A parameter search compared with the same search over LightGBM: accuracy, and trials per minute.

Both searches use Optuna with the same sampler, ranges, batches, pruning rule and number of trials, on validation data.
Both run one fit on each core: Podium in threads, LightGBM in processes of joblib, which are started before the clock
starts. Podium also searches its default objectives.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone

import podium
from bench.harness import Report
from bench.many import in_order
from bench.ranking_sets import SETS, fold
from podium.core.sums import mean
from podium.core.threads import thread_count
from podium.evaluation.significance import randomization, t_interval
from podium.tuning.space import TREES as SPACE
from podium.tuning.space import Between
from podium.tuning.trials import BATCH, RANDOM_TRIALS, WORSE_THAN

TRIALS, SEEDS, FOLDS = 30, (0, 1, 2), (1, 2, 3, 4, 5)
ROUNDS, PATIENCE, FIRST_LOOK = 500, 50, 25
NAMES = {
    "n_leaves": "num_leaves", "learning_rate": "learning_rate", "min_documents_in_leaf": "min_data_in_leaf",
    "l2": "lambda_l2", "document_fraction": "bagging_fraction", "feature_fraction": "feature_fraction",
}  # fmt: skip
MEASURE = "ndcg@10"
TESTED = {"test": "test", "test, trained again on both": "all data"}  # columns of the table


def search_podium(train: Any, valid: Any, seed: int) -> tuple[Any, Callable[[Any], Any]]:
    """Return the best settings' model at its best round, and a function that trains it on other data."""
    tuning = podium.tune(
        podium.LambdaMART(ROUNDS, measure=MEASURE), train, valid=valid, n_trials=TRIALS, seed=seed, verbose=0
    )
    return tuning.estimator.fit(train), lambda data: clone(tuning.estimator).fit(data)


def search_lightgbm(train: Any, valid: Any, seed: int) -> tuple[Any, Callable[[Any], Any]]:
    """Do the same over LightGBM."""
    import lightgbm
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    parts = [in_order(train), in_order(valid)]
    sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=True, n_startup_trials=RANDOM_TRIALS)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    curves: list[dict[int, float]] = []  # of the trials that were not pruned
    best: tuple[float, str, dict[str, Any]] = (-1.0, "", {})
    for first in range(0, TRIALS, BATCH):
        asked = [study.ask() for _ in range(min(BATCH, TRIALS - first))]
        limits = _limits(curves)
        settings = [_params(_suggested(trial), seed) for trial in asked]
        results = Parallel(n_jobs=thread_count())(delayed(_fit_lightgbm)(*parts, params, limits) for params in settings)
        for trial, params, (value, curve, model) in zip(asked, settings, results, strict=True):
            if value is None:
                study.tell(trial, state=optuna.trial.TrialState.PRUNED)
                continue
            curves.append(curve)
            study.tell(trial, value)
            best = max(best, (value, model, params), key=lambda one: one[0])
    booster = lightgbm.Booster(model_str=best[1])
    return booster, lambda data: lightgbm.train(best[2], _dataset(in_order(data), best[2]), booster.num_trees())


def _dataset(arrays: tuple[Any, Any, Any], params: dict[str, Any]) -> Any:
    import lightgbm

    quiet = {name: params[name] for name in ("verbose", "num_threads", "feature_pre_filter")}
    return lightgbm.Dataset(arrays[0], arrays[1], group=arrays[2], params=quiet)


def _params(suggested: dict[str, Any], seed: int) -> dict[str, Any]:
    """Return all parameters of a trial."""
    quiet = {"verbose": -1, "num_threads": 1, "feature_pre_filter": False}
    return quiet | suggested | {"objective": "lambdarank", "eval_at": [10], "bagging_freq": 1, "seed": seed}


def _suggested(trial: Any) -> dict[str, Any]:
    """Return the settings of a trial by LightGBM's names."""
    settings = {}
    for name, values in SPACE.items():
        assert isinstance(values, Between)
        suggest = trial.suggest_int if values.is_whole else trial.suggest_float
        settings[NAMES[name]] = suggest(NAMES[name], values.low, values.high, log=values.log)
    return settings


def _limits(curves: list[dict[int, float]]) -> dict[int, float]:
    """Return for each step the value below which a trial is pruned."""
    if len(curves) < BATCH:
        return {}
    steps = {step for curve in curves for step in curve}
    return {
        step: float(np.percentile([curve[step] for curve in curves if step in curve], 100 - WORSE_THAN))
        for step in steps
    }


def _fit_lightgbm(
    train: Any, valid: Any, params: dict[str, Any], limits: dict[int, float]
) -> tuple[float | None, dict[int, float], str]:
    import lightgbm

    data = _dataset(train, params)
    validation = data.create_valid(valid[0], valid[1], group=valid[2])
    curve: dict[int, float] = {}

    def look(env: Any) -> None:
        step, value = env.iteration + 1, env.evaluation_result_list[0][2]
        n, rest = divmod(step, FIRST_LOOK)
        if rest == 0 and n & (n - 1) == 0:
            curve[step] = max([value, *curve.values()])
            if curve[step] < limits.get(step, -1.0):
                raise _Pruned

    stop = lightgbm.early_stopping(PATIENCE, verbose=False)
    try:
        booster = lightgbm.train(params, data, ROUNDS, valid_sets=[validation], callbacks=[look, stop])
    except _Pruned:
        return None, curve, ""
    return float(booster.best_score["valid_0"]["ndcg@10"]), curve, booster.model_to_string()


class _Pruned(Exception):  # noqa: N818
    """Prunes a trial that is worse so far than most others."""


def run() -> Report:
    """Run both searches in turn, on some folds, for some seeds."""
    warnings.simplefilter("ignore")
    Parallel(n_jobs=thread_count())(delayed(time.sleep)(0.5) for _ in range(thread_count()))
    rows = []
    for name in ("mq2008", "ohsumed"):
        found: dict[str, dict[str, list[Any]]] = {}
        for number in FOLDS[: SETS[name]]:
            train, valid, test = fold(name, number)
            for seed in SEEDS:
                for tool, search in (("Podium", search_podium), ("LightGBM", search_lightgbm)):
                    started = time.perf_counter()
                    model, train_on = search(train, valid, seed)
                    of_tool = found.setdefault(tool, {"seconds": [], "valid": [], "test": [], "all data": []})
                    of_tool["seconds"].append(time.perf_counter() - started)
                    again = train_on(podium.RankingData.concatenate([train, valid]))
                    parts = (("valid", valid, model), ("test", test, model), ("all data", test, again))
                    for part, data, ranker in parts:
                        evaluation = podium.evaluate(data, ranker.predict(data.features), MEASURE)
                        of_tool[part].append(evaluation.per_query[MEASURE])
        per_minute = {tool: 60 * TRIALS / np.mean(of["seconds"]) for tool, of in found.items()}
        for tool, of in found.items():
            rows.append({
                "data": name, "tool": tool, "trials a minute": round(per_minute[tool]),
                "ratio": f"{per_minute[tool] / per_minute['LightGBM']:.2f}",
                "NDCG@10, validation": f"{mean_of(of['valid']):.4f}",
                **{title: f"{mean_of(of[part]):.4f}" + ahead_by(part, of, found) for title, part in TESTED.items()},
            })  # fmt: skip
    notes = [
        f"{TRIALS} trials of at most {ROUNDS} trees, patience {PATIENCE}; folds {', '.join(map(str, FOLDS))}, seeds "
        f"{', '.join(map(str, SEEDS))}. Podium's time includes its final fit. In brackets: the difference from "
        "LightGBM on test queries, each a mean over the seeds, with its 95% interval and p by a randomization test. "
        "Trained again on both: the chosen settings and number of trees, on training and validation data together."
    ]
    return Report("tuning", "Parameter search", rows, notes)


def ahead_by(part: str, ours: dict[str, list[Any]], found: dict[str, dict[str, list[Any]]]) -> str:
    """Return how far a tool is ahead of LightGBM; an empty text for LightGBM itself."""
    if ours is found["LightGBM"]:
        return ""
    ahead, half, p = difference(ours[part], found["LightGBM"][part])
    return f" ({ahead:+.4f} ± {half:.4f}, p = {p:.2f})"


def mean_of(values: list[Any]) -> float:
    """Return the mean over the runs of the means over their queries."""
    return mean(np.array([mean(of_queries) for of_queries in values]))


def difference(ours: list[Any], theirs: list[Any]) -> tuple[float, float, float]:
    """Return the mean difference over all queries, half of its interval, and p; runs are by fold, then seed."""
    apart = [a - b for a, b in zip(ours, theirs, strict=True)]
    folds = [apart[k : k + len(SEEDS)] for k in range(0, len(apart), len(SEEDS))]
    of_queries = np.concatenate([np.mean(fold_, axis=0) for fold_ in folds])
    low, high = t_interval(of_queries)
    return mean(of_queries), (high - low) / 2, randomization(of_queries, range(len(of_queries)))
