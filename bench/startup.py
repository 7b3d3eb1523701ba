"""The time until a user sees the first result."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.harness import Report, timed

RUNS = 7
COLD_RUNS = 3
COMMAND = Path(sys.executable).parent / "podium"
READ = "import podium; podium.read('{}')"
# A script that trains one tree on arrays; its last line is filled in.
TREE = """
import numpy as np
X = np.random.default_rng(0).random((2500, 20), dtype=np.float32)
y, qid = (4 * X[:, 0]).astype(int), np.repeat(np.arange(50), 50)
"""
TREES = {
    "LambdaMART(1)": "import podium; podium.LambdaMART(1, verbose=0).fit(X, y, qid=qid)",
    "Ranker(1, patience=None)": "import podium; podium.Ranker(1, patience=None, verbose=0).fit(X, y, qid=qid)",
    "LightGBM's LGBMRanker(n_estimators=1)": (
        "import lightgbm; lightgbm.LGBMRanker(n_estimators=1, verbose=-1).fit(X, y, group=[50] * 50)"
    ),
}
# Seconds from imports to the scores of the first query, including the time to load and prepare the model file.
FIRST_QUERY = """
import sys, time, numpy as np, podium, podium.models
from podium.core.compiling import start_numba
X = np.zeros((100, 136), np.float32)
if sys.argv[2] == "numba":  # as an import: its own parts are loaded when it is first used
    start_numba()
    from numba.core.registry import cpu_target
    cpu_target.target_context.refresh()
    cpu_target.typing_context.refresh()
started = time.perf_counter()
podium.models.load_model(sys.argv[1]).scorer(n_threads=1)(X)
print(time.perf_counter() - started)
"""


def seconds(command: list[str], runs: int = RUNS, **environment: str) -> float:
    """Return the best wall time of a command."""
    variables = os.environ | environment
    return min(
        timed(lambda: subprocess.run(command, check=True, capture_output=True, env=variables)) for _ in range(runs)
    )


def first_trees(folder: Path) -> Iterator[tuple[str, float]]:
    """Measure scripts of one tree: with an empty cache of kernels, and with all kernels compiled."""
    keeps = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    for name, line in TREES.items():
        script = [sys.executable, "-c", TREE + line]
        yield f"script of one tree, {name}", seconds(script, NUMBA_CACHE_DIR=str(folder / "warm"), **keeps)
    for name in ("LambdaMART(1)", "Ranker(1, patience=None)"):
        script = [sys.executable, "-c", TREE + TREES[name]]
        caches = (str(folder / f"cold {name} {k}") for k in range(COLD_RUNS))
        yield (
            f"the same, {name}, first run after installation (compiles)",
            min(seconds(script, 1, NUMBA_CACHE_DIR=cache, **keeps) for cache in caches),
        )


def first_query(model: Path, imported: str) -> float:
    """Return the best time of new processes that score their first query with 500 trees."""
    command = [sys.executable, "-c", FIRST_QUERY, str(model), imported]
    runs = (subprocess.run(command, check=True, capture_output=True, text=True).stdout for _ in range(RUNS + 1))
    return min(float(text) for text in runs)


def write_model(folder: Path) -> Path:
    """Write a model of 500 trees of 31 leaves on 136 features; return its path."""
    import podium

    path = folder / "model.podium"
    podium.LambdaMART(n_trees=500, n_leaves=31, verbose=0).fit(podium.artificial_web(300)).save(path)
    return path


def run() -> Report:
    """Measure whole processes, from start to end."""
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "a.txt"
        text.write_text("0 qid:1 1:0.5\n1 qid:1 1:0.7\n")
        cold = str(Path(folder) / "cache")
        python = [sys.executable, "-c"]
        rows = [
            ("python -c pass", seconds([*python, "pass"])),
            ("import podium", seconds([*python, "import podium"])),
            ("podium --help", seconds([str(COMMAND), "--help"])),
            ("podium describe --help", seconds([str(COMMAND), "describe", "--help"])),
            ("first read after installation (compiles)",
             seconds([*python, READ.format(text)], 1, NUMBA_CACHE_DIR=cold)),
            ("read a small file, kernels compiled", seconds([*python, READ.format(text)])),
            *first_trees(Path(folder)),
            ("first query after imports, Numba's among them", first_query(write_model(Path(folder)), "numba")),
            ("first query after imports, Numba not yet loaded", first_query(Path(folder) / "model.podium", "")),
        ]  # fmt: skip
    return Report(
        "startup",
        "Start-up: time to the first result",
        [{"process": name, "seconds": f"{value:.2f}"} for name, value in rows],
        [
            f"Wall time of whole processes, best of {RUNS}; best of {COLD_RUNS} for those that compile, and one run "
            "for the first read. The tree is grown on 50 queries of 50 documents with 20 features. A query has 100 "
            "documents; its time includes reading the model file (500 trees of 31 leaves) and preparing the model for "
            "scoring."
        ],
    )


if __name__ == "__main__":
    run()
