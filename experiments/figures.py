"""Pictures of experiments, drawn from the data in their results."""

from __future__ import annotations

from textwrap import wrap
from typing import Any

import numpy as np

from experiments.runner import Figure
from podium.data import RankingData
from podium.diagnostics import lambda_arrows
from podium.errors import DataError
from podium.reports.charts import HEIGHT, WIDTH, Chart, alt, data_of


def chart_of(figure: Figure) -> Chart:
    """Return a figure as a chart; each value of `panel` in the rows gets its own panel."""
    if figure.kind == "arrows":
        return _arrows(figure)
    marks = {"lines": _lines, "points": _points}
    if figure.kind not in marks:
        raise DataError(f"a figure is drawn as {', '.join(marks)} or arrows, not as {figure.kind!r}")
    panels = list(dict.fromkeys(row["panel"] for row in figure.rows if "panel" in row))
    size = {"width": WIDTH if len(panels) < 2 else WIDTH * 2 // 3, "height": HEIGHT if len(panels) < 2 else 200}
    chart = alt.layer(*marks[figure.kind](figure), data=data_of(figure.rows)).properties(**size)
    if panels:
        facet = alt.Facet("panel:N", title=None, sort=panels)
        chart = chart.facet(facet, columns=2).resolve_scale(x="independent", y="independent")
    return chart.properties(title=wrap(figure.title, 52 if len(panels) < 2 else 80))


def _arrows(figure: Figure) -> Chart:
    """Return one ranked list with RankNet's and LambdaRank's arrows."""
    ranks, labels, scores = (np.array([row[name] for row in figure.rows]) for name in ("rank", "label", "score"))
    data = RankingData(ranks[:, None], labels, qid=np.zeros(len(ranks), np.int64))
    chart: Chart = lambda_arrows(scores, data, data.query_ids[0]).plot(most=len(ranks))
    return chart.properties(title=wrap(figure.title, 80))


def _names(figure: Figure) -> list[str]:
    """Return the series, in the order of the rows."""
    return list(dict.fromkeys(row["series"] for row in figure.rows))


def _series(figure: Figure) -> dict[str, Any]:
    """Return colours by series, if there are several."""
    names = _names(figure)
    return {"color": alt.Color("series:N", title=None, sort=names)} if len(names) > 1 else {}


def _axes(figure: Figure) -> dict[str, Any]:
    kinds = {name: {"type": "log"} if name in figure.log else {"zero": False} for name in ("x", "y")}
    x = alt.X("x:Q", title=figure.x, scale=alt.Scale(**kinds["x"], nice=False))
    return {"x": x, "y": alt.Y("y:Q", title=wrap(figure.y, 26) or None, scale=alt.Scale(**kinds["y"]))}


def _lines(figure: Figure) -> list[Chart]:
    base = alt.Chart().encode(**_axes(figure), **_series(figure))
    layers = [base.mark_line(clip=True)]
    if any("low" in row for row in figure.rows):
        layers.insert(0, base.mark_area(opacity=0.2, clip=True).encode(y="low:Q", y2="high:Q"))
    return layers


def _points(figure: Figure) -> list[Chart]:
    base = alt.Chart().encode(**_axes(figure), **_series(figure))
    layers = [base.mark_line(strokeWidth=1), base.mark_point()]
    if any("low" in row for row in figure.rows):
        layers.append(base.mark_rule().encode(y="low:Q", y2="high:Q"))
    return layers
