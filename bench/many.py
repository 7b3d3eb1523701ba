"""Fits per minute of settings on the folds of MQ2008 and OHSUMED, compared with LightGBM under joblib.

Both tools run one fit on each core: Podium in threads of one process (`fit_many`), LightGBM in processes of joblib with
one thread each. Every fit has its own settings. Training data is in memory, and binning counts. Workers are started and
kernels are loaded before the clock starts.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

from joblib import Parallel, delayed

import podium
from bench.harness import Report
from bench.ranking_sets import SETS, fold
from podium.core.threads import thread_count

TREES, LEAVES, REPETITIONS = 300, 15, 5
RATES = (0.03, 0.05, 0.08, 0.1)  # settings of each fold


def fit_podium(sets: list[Any], with_valid: bool, trees: int = TREES) -> None:
    """Run all fits by `fit_many`."""
    fits = [(rate, train, valid) for train, valid, _ in sets for rate in RATES]
    estimators = [podium.LambdaMART(trees, LEAVES, learning_rate=rate, truncation=30) for rate, _, _ in fits]
    podium.fit_many(
        estimators, [train for _, train, _ in fits], valid=[valid for *_, valid in fits] if with_valid else None
    )


def fit_lightgbm(sets: list[Any], with_valid: bool, trees: int = TREES) -> None:
    """Run all fits by LightGBM in joblib's processes."""
    arrays = [(in_order(train), in_order(valid) if with_valid else None) for train, valid, _ in sets]
    tasks = (delayed(_fit_one)(train, valid, rate, trees) for train, valid in arrays for rate in RATES)
    Parallel(n_jobs=thread_count())(tasks)


def in_order(data: podium.RankingData) -> tuple[Any, Any, Any]:
    """Return features, labels and query sizes, query after query."""
    return data.features[data.order], data.relevance[data.order], data.query_sizes


def _fit_one(train: Any, valid: Any, rate: float, trees: int) -> int:
    import lightgbm

    params = {
        "objective": "lambdarank", "num_leaves": LEAVES, "learning_rate": rate, "lambda_l2": 1.0, "num_threads": 1,
        "eval_at": [10], "verbose": -1,
    }  # fmt: skip
    data = lightgbm.Dataset(train[0], train[1], group=train[2], params={"verbose": -1, "num_threads": 1})
    sets = [] if valid is None else [data.create_valid(valid[0], valid[1], group=valid[2])]
    return int(lightgbm.train(params, data, trees, valid_sets=sets).num_trees())


def _per_minute(sets: list[Any], with_valid: bool) -> list[float]:
    """Return fits per minute of each tool, the best of several repetitions in turn."""
    tools: list[Callable[..., None]] = [fit_podium, fit_lightgbm]
    seconds: list[list[float]] = [[] for _ in tools]
    for _ in range(REPETITIONS):
        for fit, times in zip(tools, seconds, strict=True):
            started = time.perf_counter()
            fit(sets, with_valid)
            times.append(time.perf_counter() - started)
    return [60 * len(sets) * len(RATES) / min(times) for times in seconds]


def run() -> Report:
    """Measure both tools, in turn."""
    warnings.simplefilter("ignore")
    rows = []
    for name in ("mq2008", "ohsumed"):
        sets: list[Any] = [fold(name, k + 1) for k in range(SETS[name])]
        for with_valid in (False, True):
            for fit in (fit_podium, fit_lightgbm):
                fit(sets, with_valid, 2)
            ours, theirs = _per_minute(sets, with_valid)
            rows.append({
                "data": name, "measured after each tree": "valid" if with_valid else "nothing",
                "Podium, fits a minute": round(ours), "LightGBM": round(theirs), "ratio": f"{ours / theirs:.2f}",
            })  # fmt: skip
    notes = [
        f"{TREES} trees of {LEAVES} leaves, truncation 30, {len(RATES)} learning rates on each of 5 folds; best of "
        f"{REPETITIONS} runs, the tools taking turns."
    ]  # fmt: skip
    return Report("many", "Fits per minute, one fit on each core", rows, notes)
