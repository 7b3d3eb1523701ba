"""What the defaults of LambdaMART rest on: random settings, judged without any test fold.

Of the training parts of each fold of MQ2008 and OHSUMED one after the other stops the training, the rest is trained
on, and the validation part is measured; artificial data of both kinds have parts of their own. Each setting is a
random draw of all parameters; an effect is what a parameter's value adds, by least squares, to NDCG@10 on each set.
"""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import podium
from bench.harness import Report

CACHE = Path(__file__).parent / ".cache" / "defaults"
DATA = Path(os.environ.get("PODIUM_DATA", "../shared/data"))
DRAWS, TREES, PATIENCE = 120, 400, 50
SPACE: dict[str, list[Any]] = {
    "n_leaves": [4, 7, 10, 15, 31],
    "learning_rate": [0.03, 0.05, 0.1],
    "min_documents_in_leaf": [1, 5, 20, 50],
    "document_fraction": [0.5, 0.7, 1.0],
    "feature_fraction": [0.3, 0.6, 1.0],
    "normalize": [False, True],
    "truncation": [None, 30, 10],
    "l2": [0.0, 0.1, 1.0, 10.0],
    "split": ["newton", "least-squares"],
}
SETS = ("mq2008", "ohsumed", "cubic", "web")


def drawn(number: int) -> dict[str, Any]:
    """A random setting."""
    rng = np.random.default_rng(5000 + number)
    return {name: values[rng.integers(len(values))] for name, values in SPACE.items()}


@cache
def tasks(name: str) -> list[tuple[Any, Any, Any]]:
    """Data to train on, to stop by and to measure on."""
    if name == "cubic":
        return [tuple(podium.artificial(300, part=part) for part in ("train", "valid", "test"))]  # type: ignore[misc]
    if name == "web":
        return [tuple(podium.artificial_web(300, part=part) for part in ("train", "valid", "test"))]  # type: ignore[misc]
    found = []
    for fold in podium.folds(DATA / name, parts="ohsumed" if name == "ohsumed" else "letor"):
        thirds = fold.train.split(1 / 3, 1 / 3, 1 / 3, seed=0)
        for k in range(3):
            queries = np.isin(fold.train.query_ids, thirds[k].query_ids)
            rest = fold.train.select(np.flatnonzero(~queries))
            found.append((rest, thirds[k], fold.valid))
    return found


def judged(number: int, name: str) -> float:
    """The mean NDCG@10 of a setting on one set."""
    kept = CACHE / f"{number}-{name}.json"
    if kept.exists():
        return float(json.loads(kept.read_text()))
    values = []
    for train, stop, measured in tasks(name):
        model = podium.LambdaMART(
            n_trees=TREES, patience=PATIENCE, random_state=number, n_threads=1, **drawn(number)
        ).fit(train, valid=stop)
        found = podium.evaluate(measured, model.predict(measured), podium.NDCG(10, ties="expected"))
        values.append(next(iter(found.means.values())))
    CACHE.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(float(np.mean(values))))
    return float(np.mean(values))


def effects(numbers: list[int]) -> list[dict[str, Any]]:
    """For each value of each parameter its effect on each set, in points of NDCG@10, against the mean of all."""
    rows: list[dict[str, Any]] = [{"parameter": name, "value": str(v)} for name, vs in SPACE.items() for v in vs]
    design = np.array(
        [[float(drawn(k)[name] == v) for name, vs in SPACE.items() for v in vs] for k in numbers]
    )
    centred = design - design.mean(0)
    for name in SETS:
        values = np.array([judged(k, name) for k in numbers])
        found, residual, *_ = np.linalg.lstsq(centred, values - values.mean(), rcond=1e-8)
        error = np.std(values - values.mean() - centred @ found) / np.sqrt(len(numbers) / 4)
        for row, effect in zip(rows, found, strict=True):
            row[f"{name} (± {100 * error:.1f})"] = f"{100 * effect:+.2f}"
    return rows


def run() -> Report:
    """Judge all settings on all sets."""
    return Report(
        "defaults", "Effects of LambdaMART's parameters on NDCG@10, in points", effects(list(range(DRAWS))),
        [f"{DRAWS} random settings, at most {TREES} trees, stopped after {PATIENCE} without a gain. No test fold was "
         "read. The standard error of an effect is about what stands beside the set's name."],
    )  # fmt: skip
