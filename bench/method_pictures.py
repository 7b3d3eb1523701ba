"""Pictures of the pages on methods (docs/methods) that no experiment draws; `python -m bench.pictures` draws them."""

from __future__ import annotations

from typing import Any

import numpy as np

import podium
from podium.objectives import XENDCG, Lambda, ListMLE, ListNet, QueryRegression, RankCosine, SoftRank
from podium.reports.charts import alt, chart_of, themed


def softrank() -> Any:
    """Draw NDCG and SoftNDCG of one list as the score of its best document moves."""
    labels, others = np.array([3.0, 2, 1, 0, 0, 1, 0]), np.array([1.5, 0.9, 0.3, -0.4, -1.0, -1.4])
    places = np.linspace(-2.5, 2.5, 201)
    data = podium.RankingData(
        np.zeros((7 * len(places), 1)), np.tile(labels, len(places)), qid=np.repeat(np.arange(len(places)), 7)
    )
    scores = np.column_stack([places, np.tile(others, (len(places), 1))]).ravel()
    curves = {"NDCG": podium.evaluate(data, scores, "ndcg").per_query["ndcg"]}
    curves |= {f"SoftNDCG, σ = {sigma}": SoftRank("ndcg", sigma).values(data, scores) for sigma in (0.1, 0.3, 1.0)}
    return _curves(places, curves, "score of the best document", "value")


def prank() -> Any:
    """Draw PRank by pass over the data: the last weights, and their means."""
    train, valid = (podium.artificial(100, features=10, part=part, label_noise=1.0) for part in ("train", "valid"))
    models = {
        "last": podium.PRank(averaged=False, epochs=30).fit(train, valid=valid),
        "mean": podium.PRank(epochs=30).fit(train, valid=valid),
    }
    curves = {name: np.asarray(model.history_["valid/ndcg@10"]) for name, model in models.items()}
    return _curves(np.arange(1, 31), curves, "passes over the data", "NDCG@10 of validation queries")


def groves() -> Any:
    """Draw NDCG@10 of Additive Groves by the number of trees of a grove, for each size of trees."""
    train, valid = (podium.artificial(100, features=8, part=part) for part in ("train", "valid"))
    model = podium.AdditiveGroves(n_groves=8, n_trees_in_grove=8, alpha=0.02).fit(train, valid=valid)
    rows = [
        {"α": f"{alpha:g}", "trees of a grove": trees, "value": value}
        for (alpha, trees), value in zip(model.grid_, model.history_["valid/ndcg@10"], strict=True)
    ]
    order = [f"{alpha:g}" for alpha in sorted({alpha for alpha, _ in model.grid_}, reverse=True)]
    return themed(
        chart_of(rows).mark_line(point=True).encode(
            x=alt.X("trees of a grove:Q", axis=alt.Axis(tickMinStep=1, format="d")),
            y=alt.Y("value:Q", title="NDCG@10 of validation queries", scale=alt.Scale(zero=False)),
            color=alt.Color("α:N", scale=alt.Scale(domain=order), title="α"),
        )
    )  # fmt: skip


def ordinal() -> Any:
    """Draw the probability of each label by the score, as learnt by OrdinalMART."""
    model = podium.OrdinalMART(n_trees=40).fit(podium.artificial(150, features=10))
    scores = np.linspace(-4, 10, 300)
    below = 1 / (1 + np.exp(scores[:, None] - np.asarray(model.thresholds_)))
    ends = np.zeros((len(scores), 1)), np.ones((len(scores), 1))
    shares = np.diff(np.hstack([ends[0], below, ends[1]]), axis=1)
    curves = {f"label {label:.0f}": shares[:, k] for k, label in enumerate(model.classes_)}
    return _curves(scores, curves, "score s", "probability of the label")


def list_losses() -> Any:
    """Draw λ of several objectives on one list."""
    labels, scores = np.array([0.0, 2, 0, 1, 3, 0, 1, 0]), np.linspace(1.5, -1.5, 8)
    data = podium.RankingData(np.arange(8.0)[:, None], labels, qid=np.zeros(8))
    objectives = {
        "Lambda (NDCG)": Lambda("ndcg", normalize=False), "ListNet": ListNet(), "ListMLE": ListMLE(),
        "XE-NDCG": XENDCG(), "RankCosine": RankCosine(), "QueryRegression": QueryRegression(),
    }  # fmt: skip
    ranks = [f"{rank + 1} (label {label:.0f})" for rank, label in enumerate(labels)]
    rows = []
    for name, objective in objectives.items():
        pushes = objective.bind(data).gradients(scores)[0]
        pushes = pushes / np.abs(pushes).max()
        rows += [{"objective": name, "rank": r, "λ": x} for r, x in zip(ranks, pushes, strict=True)]
    chart = chart_of(rows).mark_bar().encode(
        x=alt.X("λ:Q", title="λ, the largest is 1", axis=alt.Axis(values=[-1, 0, 1])),
        y=alt.Y("rank:N", sort=ranks, title=None),
    ).properties(width=150, height=150)  # fmt: skip
    return themed(chart.facet(alt.Facet("objective:N", sort=list(objectives), title=None), columns=3, spacing=45))


def _curves(x: Any, curves: dict[str, Any], x_title: str, y_title: str) -> Any:
    """Return a chart with a line for each name."""
    rows = [
        {"x": float(a), "y": float(b), "line": name}
        for name, values in curves.items()
        for a, b in zip(x, values, strict=True)
    ]
    colour = alt.Color("line:N", title=None, scale=alt.Scale(domain=list(curves)))
    y = alt.Y("y:Q", title=y_title, scale=alt.Scale(zero=False))
    chart = chart_of(rows).mark_line().encode(x=alt.X("x:Q", title=x_title), y=y, color=colour)
    return themed(chart.properties(width=520, height=260))


METHODS = (softrank, prank, groves, ordinal, list_losses)
