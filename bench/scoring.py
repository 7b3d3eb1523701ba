"""Scoring compared with other tools: time per document in a batch and per query, and agreement with LightGBM.

All tools that can read LightGBM's models score the same ones; XGBoost, CatBoost and YDF score their own models of the
same shape. Every run is a separate process with one thread, on one core; the tools take turns. lleaves needs an older
llvmlite than Numba, so it runs in a separate environment. Podium is measured a second time compiled without AVX-512;
the others run as distributed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bench.harness import CACHE, Report, as_haswell, measured_memory, timed

SHAPES = ((500, 31), (1_000, 64), (300, 255))  # trees, leaves
DOCUMENTS, QUERY, FEATURES = 100_000, 100, 136
ROUNDS, BATCHES, QUERIES, SLOW = 3, 3, 200, 3.0  # a batch that takes more seconds is not repeated
FOLDER = CACHE / "scoring"
OF_LIGHTGBM = ("podium", "lightgbm", "lleaves", "onnxruntime", "treelite gtil", "tl2cgen")
OWN = ("xgboost", "catboost", "ydf")
HASWELL = "podium, no AVX-512"
LLEAVES = ("lleaves>=1.3", "llvmlite==0.44.*", "lightgbm", "pandas", "scipy")


def make_data() -> None:
    """Create the documents to score and LightGBM's models, once."""
    import lightgbm

    import podium

    FOLDER.mkdir(parents=True, exist_ok=True)
    data = podium.artificial_web(2_000, seed=1)
    np.save(FOLDER / "X.npy", data.features[:DOCUMENTS])
    settings = {
        "objective": "lambdarank",
        "learning_rate": 0.1,
        "min_data_in_leaf": 20,
        "verbose": -1,
        "num_threads": 2,
    }
    for trees, leaves in SHAPES:
        path = model_path(trees, leaves)
        if not path.exists():
            train = lightgbm.Dataset(data.features, data.relevance, group=data.query_sizes)
            lightgbm.train(settings | {"num_leaves": leaves}, train, trees).save_model(str(path))
        scores = lightgbm.Booster(model_file=str(path)).predict(np.load(FOLDER / "X.npy"))
        np.save(path.with_suffix(".npy"), scores)


def model_path(trees: int, leaves: int) -> Path:
    """Return the path of LightGBM's model of a shape; its scores are next to it."""
    return FOLDER / f"{trees}x{leaves}.txt"


Scores = Callable[[Any], Any]


def podium_scores(path: Path, *_: int) -> Scores:
    """Return the scorer of LightGBM's model in Podium."""
    import podium

    return podium.import_model(path).scorer(n_threads=1)


def lightgbm_scores(path: Path, *_: int) -> Scores:
    """Return LightGBM's own scorer."""
    import lightgbm

    booster = lightgbm.Booster(model_file=str(path))
    return lambda X: booster.predict(X, num_threads=1)


def lleaves_scores(path: Path, _: int, leaves: int) -> Scores:
    """Return the model compiled by lleaves; large trees without inlining, which would take more than ten minutes."""
    import lleaves

    model = lleaves.Model(model_file=str(path))
    model.compile(cache=path.with_suffix(".lleaves"), finline=leaves < 100)
    return lambda X: model.predict(X, n_jobs=1)


def onnx_scores(path: Path, *_: int) -> Scores:
    """Return the model exported to ONNX by Podium: float32 tree ensembles (version 3), which runtimes support best."""
    import onnxruntime

    import podium

    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "model.onnx"
        podium.import_model(path).export(target, "onnx", version=3)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(str(target), options, providers=["CPUExecutionProvider"])
    return lambda X: session.run(None, {"X": X})[0].ravel()


def treelite_scores(path: Path, *_: int) -> Scores:
    """Return Treelite's interpreter of the model."""
    import treelite

    model = treelite.frontend.load_lightgbm_model(path)
    return lambda X: treelite.gtil.predict(model, X, nthread=1).ravel()


def tl2cgen_scores(path: Path, *_: int) -> Scores:
    """Return the model compiled through C."""
    import tl2cgen
    import treelite

    library = path.with_name(f"{path.stem}.so")
    if not library.exists():
        model = treelite.frontend.load_lightgbm_model(path)
        tl2cgen.export_lib(model, toolchain="gcc", libpath=library, params={"parallel_comp": 16})
    predictor = tl2cgen.Predictor(library, nthread=1)
    return lambda X: predictor.predict(tl2cgen.DMatrix(X, dtype="float32")).ravel()


def training_rows() -> tuple[Any, Any]:
    """Return documents for models of which only the shape matters, with scores of LightGBM's first model as labels."""
    return np.load(FOLDER / "X.npy")[:5_000], np.load(model_path(*SHAPES[0]).with_suffix(".npy"))[:5_000]


def xgboost_scores(_: Path, trees: int, leaves: int) -> Scores:
    """Return XGBoost's own model."""
    import xgboost

    X, y = training_rows()
    settings = {"max_leaves": leaves, "max_depth": 0, "grow_policy": "lossguide", "tree_method": "hist", "eta": 0.1}
    booster = xgboost.train(settings, xgboost.DMatrix(X, y), trees)
    booster.set_param({"nthread": 1})
    return booster.inplace_predict


def catboost_scores(_: Path, trees: int, leaves: int) -> Scores:
    """Return CatBoost's own model: symmetric trees, with leaves rounded up to a power of two."""
    import catboost

    X, y = training_rows()
    depth = (leaves - 1).bit_length()
    model = catboost.CatBoostRegressor(iterations=trees, depth=depth, verbose=0, allow_writing_files=False).fit(X, y)
    return lambda X: model.predict(X, thread_count=1)


def ydf_scores(_: Path, trees: int, leaves: int) -> Scores:
    """Return YDF's own model."""
    import pandas
    import ydf

    X, y = training_rows()
    names = [f"f{k}" for k in range(X.shape[1])]
    frame = pandas.DataFrame(X, columns=names).assign(label=y)
    ydf.verbose(0)
    learner = ydf.GradientBoostedTreesLearner(
        label="label", task=ydf.Task.REGRESSION, num_trees=trees, growing_strategy="BEST_FIRST_GLOBAL", max_depth=-1,
        max_num_nodes=leaves, early_stopping="NONE", validation_ratio=0.0, discretize_numerical_columns=True,
        num_threads=1,  # more are slower here
    )  # fmt: skip
    model = learner.train(frame)
    return lambda X: model.predict(dict(zip(names, X.T, strict=True)), num_threads=1)


TOOLS: dict[str, Callable[[Path, int, int], Scores]] = {
    "podium": podium_scores, HASWELL: podium_scores, "lightgbm": lightgbm_scores, "lleaves": lleaves_scores,
    "onnxruntime": onnx_scores, "treelite gtil": treelite_scores, "tl2cgen": tl2cgen_scores,
    "xgboost": xgboost_scores, "catboost": catboost_scores, "ydf": ydf_scores,
}  # fmt: skip


def child(tool: str, trees: int, leaves: int) -> dict[str, Any]:
    """Measure one tool: best seconds of a batch and of a query, the largest difference from LightGBM, memory."""
    X = np.load(FOLDER / "X.npy")
    query = X[:QUERY].copy()
    path = model_path(trees, leaves)
    started = time.perf_counter()
    predict = TOOLS[tool](path, trees, leaves)
    predict(query)
    ready = time.perf_counter() - started
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    scores = np.asarray(predict(X))
    with measured_memory() as memory:
        batch = timed(lambda: predict(X))
    batch = min([batch, *(timed(lambda: predict(X)) for _ in range(BATCHES - 1) if batch < SLOW)])
    single = min(timed(lambda: predict(query)) for _ in range(QUERIES))
    expected = np.load(path.with_suffix(".npy"))
    difference = float(np.abs(scores - expected).max()) if tool not in OWN else None
    return {"batch": batch, "query": single, "ready": ready, "difference": difference, "memory": memory.peak}


def python_of(tool: str) -> str:
    """Return the Python interpreter of a tool's environment."""
    if tool != "lleaves":
        return sys.executable
    folder = FOLDER / "lleaves"
    if not (folder / "bin" / "python").exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([folder / "bin" / "python", "-m", "pip", "install", "--quiet", *LLEAVES], check=True)
    return str(folder / "bin" / "python")


def measure(tool: str, trees: int, leaves: int) -> dict[str, Any]:
    """Measure one tool in a separate process."""
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent.parent)}
    if tool == HASWELL:
        environment |= as_haswell()
    command = [python_of(tool), "-m", "bench.scoring", tool, str(trees), str(leaves)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{tool} failed:\n{done.stderr}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def run() -> Report:
    """Measure all tools and shapes."""
    make_data()
    rows = []
    for trees, leaves in SHAPES:
        tools = ("podium", HASWELL, *OF_LIGHTGBM[1:], *OWN)
        best: dict[str, dict[str, Any]] = {}
        for turn in range(ROUNDS):
            for tool in tools if turn == 0 else ("podium", HASWELL, "lightgbm", "lleaves"):
                result = measure(tool, trees, leaves)
                lowest = best.setdefault(tool, result)
                for key in ("batch", "query"):
                    lowest[key] = min(lowest[key], result[key])
        rows += [row(tool, trees, leaves, result, best) for tool, result in best.items()]
    has = "has" if any("avx512f" in line for line in Path("/proc/cpuinfo").read_text().splitlines()) else "has no"
    return Report(
        "scoring", "Scoring: µs per document, one thread", rows,
        [
            f"{DOCUMENTS:,} documents × {FEATURES} features in one call, and one query of {QUERY} documents. Best of "
            f"{BATCHES} batches and {QUERIES} queries in each of {ROUNDS} processes (one for the tools after lleaves), "
            "which take turns, each on one core. This machine " + has + " AVX-512.",
            "All tools score the same LightGBM model, except XGBoost, CatBoost and YDF, which score their own models "
            "of the same shape (CatBoost's trees are symmetric). Difference: the largest one from LightGBM's scores. "
            "Memory: the peak above the memory held before the batch. Ready: seconds until the first query is "
            "answered, with imports, compilation by the tool (not training) and Podium's export for ONNX Runtime.",
        ],
    )  # fmt: skip


def row(tool: str, trees: int, leaves: int, result: dict[str, Any], best: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return a row of the table."""
    difference = result["difference"]
    return {
        "trees × leaves": f"{trees} × {leaves}", "tool": tool,
        "µs a document": f"{1e6 * result['batch'] / DOCUMENTS:.3f}",
        "times LightGBM": f"{best['lightgbm']['batch'] / result['batch']:.1f}",
        "times lleaves": f"{best['lleaves']['batch'] / result['batch']:.1f}",
        "µs a query": f"{1e6 * result['query']:.0f}",
        "query, times LightGBM": f"{best['lightgbm']['query'] / result['query']:.1f}",
        "difference": "own model" if difference is None else f"{difference:.1e}",
        "ready, s": "" if tool in OWN else f"{result['ready']:.2f}", "memory, MB": f"{result['memory'] / 1e6:.0f}",
    }  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(child(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
