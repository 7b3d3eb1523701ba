"""Generate the tables of README and docs: `python -m bench.tables` rewrites them in place.

A table is between `<!-- table: NAME -->` and `<!-- end of table -->`; `TABLES` has a function for each, which
builds it from `bench/results` or from the declarations of parameters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from bench.harness import RESULTS
from podium import estimators
from podium.core.hyperparameters import WITH_OTHER_NAMES
from podium.core.parameters import TOOLS, parameters

ROOT = Path(__file__).parent.parent
MARKED = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end of table -->)", re.DOTALL)
PAGES = tuple(
    str(page.relative_to(ROOT))
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if MARKED.search(page.read_text(encoding="utf-8"))
)
SHOWN_TOOLS = {
    "podium-ranker": "Podium, `Ranker()`", "podium-committee": "Podium, `Committee()`",
    "podium": "Podium, `LambdaMART()`", "lightgbm": "LightGBM", "xgboost": "XGBoost",
    "catboost-yetirank": "CatBoost, YetiRank", "catboost-queryrmse": "CatBoost, QueryRMSE",
    "lightgbm-all-data": "LightGBM, trees by cross-validation",
}  # fmt: skip


def rows_of(name: str) -> list[dict[str, Any]]:
    """Return the rows of a result file."""
    rows: list[dict[str, Any]] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["rows"]
    return rows


def markdown(columns: list[str], lines: list[list[str]]) -> str:
    """Return a Markdown table."""
    rows = [columns, ["---"] * len(columns), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


def short(number: str) -> str:
    """Shorten `0.4971 ± 0.012` to `.497`."""
    return f"{float(number.split(maxsplit=1)[0]):.3f}".removeprefix("0")


def accuracy(tools: tuple[str, ...] = tuple(SHOWN_TOOLS)) -> str:
    """Return NDCG@10 of every tool's defaults, a row for each set, with the best in bold."""
    values = {(row["tool"], row["set"]): short(row["ndcg@10"]) for row in rows_of("accuracy")}
    queries = {row["set"]: row["queries"] for row in rows_of("accuracy")}
    lines = []
    for name, n_queries in queries.items():
        best = max(values[tool, name] for tool in tools)
        cells = [values[tool, name] for tool in tools]
        lines.append([name.replace("_", " "), f"{n_queries:,}", *(f"**{v}**" if v == best else v for v in cells)])
    return markdown(["NDCG@10", "test queries", *(SHOWN_TOOLS[tool] for tool in tools)], lines)


def accuracy_gains() -> str:
    """Return how far Ranker and Committee are ahead of each tool, over all test queries and over the held-out sets."""
    rows = {(row["tool"], row["set"]): row for row in rows_of("accuracy")}
    shown = SHOWN_TOOLS | {"podium-ranker-0.2": "Podium 0.2, `Ranker()`"}
    lines = []
    for tool in shown:
        if tool not in ("podium-ranker", "podium-committee"):
            cells = [
                f"{rows[tool, name][f'{title} ahead by']} (p = {rows[tool, name][f'{title}, p'].split(maxsplit=1)[0]})"
                for title in ("Ranker", "Committee")
                for name in ("all", "held out")
            ]
            lines.append([shown[tool], *cells])
    columns = [f"`{title}()`, {what}" for title in ("Ranker", "Committee") for what in ("all sets", "held out")]
    return markdown(["NDCG@10 ahead of", *columns], lines)


def time_to_accuracy() -> str:
    """Return seconds and NDCG@10 of each run."""
    lines = []
    for row in rows_of("time_to_accuracy"):
        stopped = ", stopped by a held-out fifth" if row["stopped"] else ""
        lines.append([f"{row['tool']}, {row['trees']} trees{stopped}", row["seconds"], short(row["NDCG@10"])])
    return markdown(["400,000 × 136", "seconds", "NDCG@10"], lines)


def text_accuracy() -> str:
    """Return NDCG@10 of each system, a row for each collection, with the best in bold."""
    values = {(row["collection"], row["system"]): short(row["NDCG@10"]) for row in rows_of("text_accuracy")}
    collections, systems = (list(dict.fromkeys(names)) for names in zip(*values, strict=True))
    lines = []
    for name in collections:
        best = max(values[name, system] for system in systems)
        cells = [values[name, system] for system in systems]
        lines.append([name, *(f"**{value}**" if value == best else value for value in cells)])
    return markdown(["NDCG@10", *systems], lines)


def scoring() -> str:
    """Return microseconds of each tool per document for each shape of model, and per query for the first shape."""
    shown = {
        "podium": "Podium", "podium, no AVX-512": "Podium, without AVX-512", "lleaves": "lleaves",
        "onnxruntime": "ONNX Runtime", "lightgbm": "LightGBM", "tl2cgen": "tl2cgen", "treelite gtil": "Treelite GTIL",
        "catboost": "CatBoost, own model", "xgboost": "XGBoost, own model", "ydf": "YDF, own model",
    }  # fmt: skip
    rows = {(row["tool"], row["trees × leaves"]): row for row in rows_of("scoring")}
    shapes = list(dict.fromkeys(row["trees × leaves"] for row in rows_of("scoring")))
    lines = [
        [
            name,
            *(f"{float(rows[tool, shape]['µs a document']):.2f}" for shape in shapes),
            rows[tool, shapes[0]]["µs a query"],
        ]
        for tool, name in shown.items()
    ]
    return markdown(["µs, one thread", *shapes, f"one query of 100, {shapes[0]}"], lines)


def explain() -> str:
    """Return microseconds per document of Shapley values, a row for each shape of model and kind of values."""
    tools = {"podium": "Podium", "LightGBM pred_contrib": "LightGBM", "shap": "shap"}
    cells: dict[tuple[str, str], dict[str, str]] = {}
    for row in rows_of("explain"):
        ratio = f" ({row['podium is faster']})" if row.get("podium is faster") else ""
        shape = (f"{row['trees']} × {row['leaves']}", row["values"])
        cells.setdefault(shape, {})[row["tool"]] = f"{float(row['µs / document']):,.0f}{ratio}"
    lines = [[*shape, *(found.get(tool, "") for tool in tools)] for shape, found in cells.items()]
    return markdown(["trees × leaves", "values", *tools.values()], lines)


def columns(name: str, shown: dict[str, str], keep: Callable[[dict[str, Any]], bool] = lambda row: True) -> str:
    """Return columns of a result file under other names, without the rows for which `keep` is false."""
    return markdown(
        list(shown.values()), [[str(row.get(key, "")) for key in shown] for row in rows_of(name) if keep(row)]
    )


def cluster_model() -> str:
    """Return seconds of a tree for each number of workers."""
    rows = rows_of("cluster_model")
    return columns("cluster_model", {name: name for name in rows[0]})


FEW_TOOLS = ("podium-ranker", "lightgbm", "xgboost", "catboost-yetirank", "catboost-queryrmse")


def parameters_of(estimator: str) -> str:
    """Return the parameters of an estimator."""
    declared = parameters(getattr(estimators, estimator))
    rows = [f"| `{name}` | `{one.default!r}` | {one.help.rstrip('.')} |" for name, one in declared.items()]
    return "\n".join(["| parameter | default | what it is |", "|---|---|---|", *rows]) + "\n"


def names_in_other_tools() -> str:
    """Return the names of LambdaMART's parameters in other tools, and their defaults there."""
    defaults = {name: one.default for name, one in parameters(estimators.LambdaMART).items()}
    lines = ["| Podium | " + " | ".join(TOOLS.values()) + " |", "|---" * (len(TOOLS) + 1) + "|"]
    for one in WITH_OTHER_NAMES:
        cells = [f"`{one.name}={defaults[one.name]!r}`" if one.name in defaults else f"`{one.name}`"]
        for tool, default in zip(TOOLS, one.names.defaults, strict=True):
            dash = "-" if tool == "ranklib" else ""
            names = ", ".join(f"`{dash}{name}`" for name in one.names.of(tool)[:2])
            cells.append(f"{names} ({default})" if names and default else names)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


TABLES: dict[str, Callable[[], str]] = {
    "accuracy": accuracy,
    "accuracy_of_few": lambda: accuracy(FEW_TOOLS),
    "accuracy_gains": accuracy_gains,
    "cluster_model": cluster_model,
    "distributed": lambda: columns(
        "distributed",
        {
            "what": "what", "documents": "documents", "before the first tree, s": "before the first tree, s",
            "a tree, ms": "a tree, ms", "cost model, ms": "cost model, ms",
            "MB a tree and worker": "MB per tree and worker",
        },
    ),
    "explain": explain,
    "many": lambda: columns(
        "many",
        {
            "data": "data", "measured after each tree": "measured after each tree",
            "Podium, fits a minute": "Podium, fits per minute", "LightGBM": "LightGBM", "ratio": "ratio",
        },
    ),
    "measures": lambda: columns(
        "measures", {"what": "seconds", "podium, s": "Podium", "ranx, s": "ranx", "pytrec_eval, s": "pytrec_eval"},
        lambda row: "10,000 queries" in row["what"] and bool(row.get("ranx, s")),
    ),
    "reader": lambda: columns(
        "reader", {"reader": "reader", "seconds": "seconds", "MB/s": "MB/s", "peak memory, MB": "peak memory, MB"}
    ),
    "scoring": scoring,
    "small": lambda: columns(
        "small",
        {
            "data": "data", "documents × features": "documents × features", "trees × leaves": "trees × leaves",
            "LightGBM, s": "LightGBM, s", "Podium, s": "Podium, s", "times as fast": "times as fast",
        },
        lambda row: row["validation data"] == "yes" or row["data"].startswith("sparse"),
    ),
    "startup": lambda: columns("startup", {"process": "process", "seconds": "seconds"}),
    "text_accuracy": text_accuracy,
    "time_to_accuracy": time_to_accuracy,
    "tuned_peers": lambda: columns(
        "tuned_peers",
        {
            "NDCG@10": "NDCG@10", "test queries": "test queries", "Ranker()": "`Ranker()`",
            "Committee()": "`Committee()`", "LightGBM, tuned": "LightGBM, tuned",
            "CatBoost QueryRMSE, tuned": "CatBoost QueryRMSE, tuned",
            "Committee() ahead of the better peer": "`Committee()` ahead of the better peer",
        },
    ),
    "train": lambda: columns(
        "train",
        {
            "documents": "documents", "leaves": "leaves", "tool": "tool", "binning, s": "binning, s",
            "training, s": "training, s", "with binning": "times as fast as LightGBM, with binning",
            "memory, MB": "memory, MB", "NDCG@10": "NDCG@10", "seeds": "seeds",
        },
    ),
    "tuning": lambda: columns(
        "tuning",
        {
            "data": "data", "tool": "search over", "trials a minute": "trials per minute",
            "test": "trained on training data", "test, trained again on both": "and on validation data",
        },
    ),
    "names_in_other_tools": names_in_other_tools,
    **{f"parameters_{name}": partial(parameters_of, name) for name in estimators.__all__},
}  # fmt: skip


def with_tables(text: str) -> str:
    """Return a page with regenerated tables."""
    return MARKED.sub(lambda found: found[1] + TABLES[found[2]]() + found[3], text)


if __name__ == "__main__":
    for page in PAGES:
        path = ROOT / page
        path.write_text(with_tables(path.read_text(encoding="utf-8")), encoding="utf-8")
