"""The time that each observer of `podium.diagnostics` adds to training."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import podium
from bench.harness import Report
from podium.boosting import LineSearch
from podium.diagnostics import (
    WatchAgreement,
    WatchLambdaShares,
    WatchLineSearch,
    WatchMeasures,
    WatchRankChanges,
    WatchTopLabels,
)  # fmt: skip

REPETITIONS = 9
OBSERVERS: dict[str, Callable[[], Any]] = {
    "WatchTopLabels": WatchTopLabels, "WatchRankChanges": WatchRankChanges, "WatchMeasures": WatchMeasures,
    "WatchLambdaShares": WatchLambdaShares, "WatchAgreement": lambda: WatchAgreement("lambda(cndcg)"),
}  # fmt: skip


def seconds(fit: Callable[[list[Any]], Any], observers: dict[str, Callable[[], Any]]) -> dict[str, list[float]]:
    """Measure the times without an observer and with each observer, in turn."""
    times: dict[str, list[float]] = {name: [] for name in ("", *observers)}
    for repetition in range(REPETITIONS + 1):
        for name, observer in {"": None, **observers}.items():
            watched = [] if observer is None else [observer()]
            started = time.perf_counter()
            fit(watched)
            if repetition:  # the first compiles
                times[name].append(time.perf_counter() - started)
    return times


def run() -> Report:
    """Measure trees, nets and linear rankers on 20,000 documents."""
    train = podium.data.datasets.simulate_clicks(podium.artificial_web(200, features=50, documents=100))
    runs: dict[str, Any] = {
        "LambdaMART, 300 trees": (podium.LambdaMART(300), OBSERVERS),
        "LambdaMART, 100 trees": (podium.LambdaMART(100), OBSERVERS),
        "LambdaMART, 100 trees by line search": (
            podium.LambdaMART(100, step=LineSearch("ndcg@10")), {"WatchLineSearch": WatchLineSearch},
        ),
        "LambdaRank, 40 epochs": (podium.LambdaRank(epochs=40), OBSERVERS),
        "LinearRanker, 40 steps": (podium.LinearRanker(n_iterations=40), OBSERVERS),
    }  # fmt: skip
    rows = []
    for name, (ranker, observers) in runs.items():
        spent = seconds(lambda watched, ranker=ranker: ranker.fit(train, observers=watched), observers)
        rows += [
            {"training": name, "seconds": f"{np.median(spent['']):.2f}", "observer": observer,
             "extra time": f"{100 * (np.median(spent[observer]) / np.median(spent['']) - 1):+.1f}%"}
            for observer in observers
        ]  # fmt: skip
    notes = [
        f"20,000 documents in 200 queries, 50 features, default settings; medians of {REPETITIONS} runs, taking turns."
    ]
    return Report("diagnostics", "What observers add to training time", rows, notes)
