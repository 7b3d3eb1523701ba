"""The choice of LambdaMART's defaults: one change at a time, measured without any test fold.

In each fold of MQ2008 and OHSUMED, each third of the training queries in turn stops training on the other two, and the
validation part is measured. Both kinds of artificial data have separate parts.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import podium
from bench.harness import DATA, Report, cached

TREES, PATIENCE = 400, 50
BASE: dict[str, Any] = {
    "n_leaves": 31, "learning_rate": 0.1, "min_documents_in_leaf": 20, "document_fraction": 1.0,
    "feature_fraction": 1.0, "split_fraction": 1.0, "normalize": False, "truncation": None, "l2": 0.0,
    "split": "newton",
}  # fmt: skip
CHANGES: dict[str, list[Any]] = {
    "n_leaves": [7, 10, 15],
    "learning_rate": [0.05],
    "min_documents_in_leaf": [5, 50],
    "document_fraction": [0.7],
    "feature_fraction": [0.5],
    "split_fraction": [0.7, 0.5, 0.4, 0.3],
    "normalize": [True],
    "truncation": [30, 10],
    "l2": [1.0, 10.0],
    "split": ["least-squares"],
}
TOGETHER: list[dict[str, Any]] = [
    {"n_leaves": 15, "feature_fraction": 0.5},
    {"n_leaves": 10, "document_fraction": 0.7, "feature_fraction": 0.5},
    {"n_leaves": 15, "normalize": True},
    {"n_leaves": 15, "normalize": True, "document_fraction": 0.7, "feature_fraction": 0.5},
    {"n_leaves": 15, "normalize": True, "document_fraction": 0.7, "feature_fraction": 0.5, "learning_rate": 0.05},
    {"normalize": True, "document_fraction": 0.7, "feature_fraction": 0.5},
    {"normalize": True, "truncation": 30},
    {"normalize": True, "split": "least-squares"},
    {"n_leaves": 15, "normalize": True, "document_fraction": 0.7},
    {"n_leaves": 15, "normalize": True, "document_fraction": 0.7, "l2": 1.0},
    {"n_leaves": 15, "normalize": True, "l2": 1.0},
    {"n_leaves": 10, "normalize": True, "l2": 1.0},
    {"n_leaves": 15, "normalize": True, "l2": 1.0, "split_fraction": 0.7},
    {"n_leaves": 15, "normalize": True, "l2": 1.0, "split_fraction": 0.5},
    {"n_leaves": 15, "normalize": True, "l2": 1.0, "split_fraction": 0.4},
    {"n_leaves": 15, "normalize": True, "l2": 1.0, "split_fraction": 0.3},
]
SETS = ("mq2008", "ohsumed", "cubic", "web")


def settings() -> list[dict[str, Any]]:
    """Return the base (no change), each change by itself, and some combinations."""
    return [{}, *({name: value} for name, values in CHANGES.items() for value in values), *TOGETHER]


@cache
def tasks(name: str) -> list[tuple[Any, Any, Any]]:
    """Return data for training, for stopping and for measuring."""
    if name == "cubic":
        return [tuple(podium.artificial(300, part=part) for part in ("train", "valid", "test"))]  # type: ignore[misc]
    if name == "web":
        return [tuple(podium.artificial_web(300, part=part) for part in ("train", "valid", "test"))]  # type: ignore[misc]
    parts = []
    for fold in podium.data.datasets.folds(DATA / name, parts="ohsumed" if name == "ohsumed" else "letor"):
        thirds = fold.train.split(1 / 3, 1 / 3, 1 / 3, seed=0)
        for k in range(3):
            queries = np.isin(fold.train.query_ids, thirds[k].query_ids)
            rest = fold.train.select(np.flatnonzero(~queries))
            parts.append((rest, thirds[k], fold.valid))
    return parts


def mean_ndcg(change: dict[str, Any], name: str) -> float:
    """Return the mean NDCG@10 of a setting on one set, from a new run or a cached one."""

    def measure() -> float:
        values = []
        for number, (train, stop, measured) in enumerate(tasks(name)):
            model = podium.LambdaMART(
                n_trees=TREES, patience=PATIENCE, random_state=number, n_threads=1, **(BASE | change)
            ).fit(train, valid=stop)
            values.append(podium.evaluate(measured, model.predict(measured), podium.NDCG(10)).means["ndcg@10"])
        return float(np.mean(values))

    setting = "-".join(f"{k}={v}" for k, v in change.items()) or "base"
    return float(cached(f"defaults/{setting}-{name}.json", measure))


def run() -> Report:
    """Measure all settings on all sets."""
    rows = []
    for change in settings():
        row: dict[str, Any] = {"change": ", ".join(f"{k} = {v}" for k, v in change.items()) or "none"}
        for name in SETS:
            value, base = mean_ndcg(change, name), mean_ndcg({}, name)
            row[name] = f"{value:.4f}" + (f" ({100 * (value - base):+.1f})" if change else "")
        rows.append(row)
    return Report(
        "defaults", "LambdaMART's NDCG@10 after a change of one parameter, in brackets the difference in points", rows,
        [
            f"Base: {', '.join(f'{k} = {v}' for k, v in BASE.items())}; at most {TREES} trees, stopped after "
            f"{PATIENCE} rounds without improvement. mq2008 and ohsumed: the validation parts of the five folds, three "
            "trainings each. cubic and web: 300 artificial queries each for training, for stopping and for measuring. "
            "No test fold was read.",
        ],
    )  # fmt: skip
