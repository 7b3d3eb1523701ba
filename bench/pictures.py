"""Draw the pictures of the documentation with Podium: `python -m bench.pictures [NAME …]`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import podium
from bench.method_pictures import METHODS
from podium.diagnostics import lambda_arrows
from podium.objectives import Lambda, Pairwise
from podium.reports.charts import alt, chart_of, save_chart, themed

RESULTS = Path(__file__).parent / "results"
FOLDER = Path(__file__).parent.parent / "docs" / "pictures"


def path() -> Any:
    """Draw NDCG@10 along all combinations of two rankers."""
    train, valid = (podium.artificial(150, features=10, part=p) for p in ("train", "valid"))
    trees, linear = podium.LambdaMART(n_trees=6).fit(train), podium.LinearRanker().fit(train)
    combination = podium.combine(trees, linear, valid)
    title = f"(1 − α) trees + α linear: {len(combination.path.values):,} steps, the best at α = {combination.alpha:.3f}"
    return combination.plot().properties(width=560, title=title)


def forces() -> Any:
    """Draw λ of a query's documents as arrows, for RankNet's pairs and for NDCG's."""
    scores = np.array([2.0, 1.4, 1.1, 0.7, 0.2, -0.1, -0.6, -1.2])
    labels = np.array([0.0, 1, 0, 0, 3, 0, 0, 1])
    data = podium.RankingData(np.arange(8.0)[:, None], labels, qid=np.zeros(8))
    hidden = {"axis": None, "scale": alt.Scale(domain=[-1, 8.5])}
    y = alt.Y("score:Q", title="score; label next to the document", scale=alt.Scale(domain=[-1.6, 2.4]))
    colour = alt.Color("way:N", legend=None, scale=alt.Scale(domain=["up", "down"]))
    panels = []
    for name, objective in (("RankNet", Pairwise()), ("LambdaRank, NDCG", Lambda("ndcg", normalize=False))):
        pushes = objective.bind(data).gradients(scores)[0]
        pushes = pushes / np.abs(pushes).max()
        rows = [
            {"place": 0.7 + k, "score": scores[k], "end": scores[k] + pushes[k], "label": f"{labels[k]:.0f}",
             "way": "up" if pushes[k] > 0 else "down"}
            for k in range(len(scores))
        ]  # fmt: skip
        x = alt.X("place:Q", **hidden)
        lines = chart_of(rows).mark_rule(strokeWidth=2).encode(x=x, y=y, y2="end:Q", color=colour)
        shapes = alt.Shape("way:N", scale=alt.Scale(domain=["up", "down"], range=["triangle-up", "triangle-down"]))
        heads = chart_of(rows).mark_point(size=60).encode(
            x=x, y=alt.Y("end:Q"), color=colour, shape=shapes.legend(None)
        )  # fmt: skip
        documents = chart_of(rows).mark_point(style="words", size=80).encode(x=alt.XDatum(0), y=y)
        words = chart_of(rows).mark_text(style="words", align="right", dx=-10).encode(
            x=alt.XDatum(0), y=y, text="label:N"
        )  # fmt: skip
        layers = alt.layer(lines, heads, documents, words)
        panels.append(layers.properties(width=270, height=280, title=alt.TitleParams(name)))
    return themed(alt.hconcat(*panels).resolve_scale(y="shared"))


def optimality() -> Any:
    """Draw random steps away from a LambdaRank net, and single weights moved."""
    train = podium.artificial(150, documents=15, features=6, seed=1)
    settings = {"hidden": 5, "epochs": 400, "batch_queries": None, "learning_rate": 0.03, "halve_after": 15}
    model = podium.LambdaRank("ndcg", n_threads=1, **settings).fit(train)
    steps = (0.01, 0.03, 0.1, 0.2, 0.4)
    return podium.diagnostics.local_optimality(model, train, "ndcg", directions=120, steps=steps, curves=12).plot()


def history() -> Any:
    """Draw the learning curves of docs/plots.md."""
    train, valid = (podium.artificial(100, features=10, part=part, label_noise=1.0) for part in ("train", "valid"))
    model = podium.LambdaMART(n_trees=150).fit(train, valid={"valid": valid, "train": train})
    return model.plot_history()


def comparison() -> Any:
    """Draw the comparison of docs/plots.md."""
    train, test = (podium.artificial(100, features=10, part=part) for part in ("train", "test"))
    few, many = (podium.LambdaMART(n_trees=n).fit(train) for n in (5, 50))
    systems = {"linear": podium.LinearRanker().fit(train), "5 trees": few, "50 trees": many}
    return podium.compare(test, systems, "ndcg@10").plot()


def arrows() -> Any:
    """Draw λ on the list of [B] fig. 1: relevant documents at ranks 4 and 10 of 16."""
    labels = np.isin(np.arange(1, 17), (4, 10)).astype(float)
    data = podium.RankingData(np.arange(16.0)[:, None], labels, qid=["[B] fig. 1"] * 16)
    return lambda_arrows(-0.02 * np.arange(16), data, "[B] fig. 1").plot()


def pair() -> Any:
    """Draw why one document ranks above another, for docs/explaining.md."""
    train, test = (podium.artificial(60, features=8, part=part) for part in ("train", "test"))
    explanation = podium.LambdaMART(n_trees=40, n_leaves=15).fit(train).explain(test)
    first, *_, last = explanation.rows_of(test.query_ids[0])[:6].tolist()
    return explanation.why(first, last).plot()


def moved() -> Any:
    """Draw what moved between two models, for docs/explaining.md."""
    train, test = (podium.artificial(60, features=8, part=part) for part in ("train", "test"))
    trees, linear = podium.LambdaMART(n_trees=40, n_leaves=15).fit(train), podium.LinearRanker().fit(train)
    query = test.query_ids[0]
    return podium.explain.compare_explanations(linear, trees, test, query, names=("linear", "trees")).plot(top=12)


def speed() -> Any:
    """Draw the five speeds relative to LightGBM of README, from the results of the benchmarks."""
    bars = {
        "train: 718,000 × 136, 31 leaves": ("train", {"documents": "718,000", "leaves": 31, "tool": "podium newton"},
                                            "with binning"),
        "train: 3 million × 136, 31 leaves": ("train", {"documents": "3,000,000", "leaves": 31,
                                                        "tool": "podium newton"}, "with binning"),
        "train: MQ2008, with validation": ("small", {"data": "MQ2008, fold 1", "trees × leaves": "300 × 15",
                                                     "validation data": "yes"}, "times as fast"),
        "score: 500 trees of 31 leaves": ("scoring", {"trees × leaves": "500 × 31", "tool": "podium"},
                                          "times LightGBM"),
        "explain: 100 trees of 31 leaves": ("explain", {"trees": 100, "leaves": 31, "tool": "LightGBM pred_contrib"},
                                            "podium is faster"),
    }  # fmt: skip
    rows = []
    for name, (report, conditions, column) in bars.items():
        found = json.loads((RESULTS / f"{report}.json").read_text(encoding="utf-8"))["rows"]
        row = next(row for row in found if all(row[key] == value for key, value in conditions.items()))
        ratio = float(str(row[column]).rstrip(" ×"))
        rows.append({"what": name, "ratio": ratio, "shown": f"{ratio:.1f} ×"})
    y = alt.Y("what:N", sort=None, title=None, axis=alt.Axis(tickSize=0, domain=False, labelLimit=260))
    x = alt.X("ratio:Q", title="times LightGBM's speed, in the same run", scale=alt.Scale(type="log", domain=[1, 100]))
    bars = chart_of(rows).mark_bar(height={"band": 0.6}).encode(x=x, x2=alt.datum(1), y=y)
    words = chart_of(rows).mark_text(style="words", align="left", dx=6).encode(x=x, y=y, text="shown:N")
    return themed(alt.layer(bars, words).properties(width=420, height=175))


PICTURES = (path, forces, optimality, history, comparison, arrows, pair, moved, speed, *METHODS)

if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for draw in PICTURES:
        if draw.__name__ in (sys.argv[1:] or [one.__name__ for one in PICTURES]):
            save_chart(draw(), FOLDER / f"{draw.__name__}.svg")
