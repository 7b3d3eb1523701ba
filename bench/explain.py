"""Shapley values compared with LightGBM's `pred_contrib` and shap: the same trees, one thread, taking turns.

`python -m bench.explain tiny` checks in a minute that everything works; its figures mean nothing and are not stored.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import podium
from bench.harness import Report

SHAPES = ((100, 31), (300, 64), (100, 255))  # trees, leaves
DOCUMENTS, BACKGROUND, ROUNDS = 1_000, 100, 3
Floats = NDArray[np.float64]


def run(shapes: tuple[tuple[int, int], ...] = SHAPES, documents: int = DOCUMENTS, rounds: int = ROUNDS) -> Report:
    """Measure processor time per document, and the largest difference between contributions."""
    data = podium.artificial_web(400, seed=1)
    rows, background = data.features[:documents], data.features[-BACKGROUND:]
    table = []
    for trees, leaves in shapes:
        model = podium.LambdaMART(n_trees=trees, n_leaves=leaves, verbose=0).fit(data).model_
        for game, ways in _ways(model, rows, background).items():
            seconds, values = _measured(ways, rounds)
            for name in ways:
                table.append({
                    "trees": trees, "leaves": leaves, "values": game, "tool": name,
                    "µs / document": round(1e6 * seconds[name] / documents, 1),
                    "podium is faster": f"{seconds[name] / seconds['podium']:.1f} ×" if name != "podium" else "",
                    "largest difference": f"{np.abs(values[name] - values['podium']).max():.0e}"
                    if name != "podium" else "",
                })  # fmt: skip
    notes = [
        f"{documents} documents with 136 features, one thread, least processor time of {rounds} runs. Interventional "
        f"values use {BACKGROUND} background documents. LightGBM and shap score the model that Podium exports. Work "
        "that a tool does once per model is not timed.",
    ]
    return Report("explain", "Shapley values", table, notes)


def _ways(
    model: podium.models.Ensemble, rows: NDArray[np.float32], background: NDArray[np.float32]
) -> dict[str, dict[str, Callable[[], Any]]]:
    import lightgbm
    import shap

    from podium.explain.interventional import InterventionalShap
    from podium.explain.path_dependent import PathDependentShap

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.txt"
        model.export(path, "lightgbm")
        booster = lightgbm.Booster(model_file=str(path))
    path_dependent, interventional = PathDependentShap(model.arrays), InterventionalShap(model.arrays, background)
    explainer = shap.TreeExplainer(booster, feature_perturbation="tree_path_dependent")
    explainer.model.model_type = "internal"  # makes shap use its compiled code; otherwise it calls LightGBM
    doubles = rows.astype(np.float64)
    mixed = shap.TreeExplainer(booster, background.astype(np.float64), feature_perturbation="interventional")
    return {
        "path-dependent": {
            "podium": lambda: path_dependent.values(rows, 1),
            "LightGBM pred_contrib": lambda: booster.predict(rows, pred_contrib=True, num_threads=1)[:, :-1],
            "shap": lambda: explainer.shap_values(doubles, check_additivity=False),
        },
        "interventional": {
            "podium": lambda: interventional.values(rows, 1),
            "shap": lambda: mixed.shap_values(doubles, check_additivity=False),
        },
    }


def _measured(ways: dict[str, Callable[[], Any]], rounds: int) -> tuple[dict[str, float], dict[str, Floats]]:
    """Return the least processor time of each way, and its result; the first run compiles and does not count."""
    values = {"podium": np.asarray(ways["podium"]())}
    seconds = dict.fromkeys(ways, float("inf"))
    for _ in range(rounds):
        for name, work in ways.items():
            start = time.process_time()
            values[name] = np.asarray(work())
            seconds[name] = min(seconds[name], time.process_time() - start)
    return seconds, values


if __name__ == "__main__":
    report = run(((20, 8),), 100, 1) if sys.argv[1:] == ["tiny"] else run()
    for row in report.rows:
        print(row)
