"""How good the first trees of a model are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from podium.reports.charts import HEIGHT, Chart, chart_of, import_altair, themed


def speed_chart(points: Sequence[tuple[float, float, float, float]], measure: str) -> Chart:
    """A measure by the number of trees that score, with its 95% intervals.

    Args:
        points: the number of trees, the mean, and the ends of its interval.
        measure: its name.

    Example:
        >>> from podium.reports.speed import speed_chart
        >>> chart = speed_chart([(1, 0.5, 0.4, 0.6), (10, 0.7, 0.6, 0.8)], "ndcg@10")
        >>> chart.to_dict()["title"]["text"]
        'ndcg@10 by the number of trees that score'

    """
    alt = import_altair()
    rows = [{"trees": n, "mean": mean, "low": low, "high": high} for n, mean, low, high in points]
    x = alt.X("trees:Q", title="trees that score a document (time)", scale=alt.Scale(type="log", nice=False),
              axis=alt.Axis(format="~s", labelOverlap=True, tickCount=6))  # fmt: skip
    scale = alt.Scale(zero=False)
    tooltip = ["trees:Q", *(alt.Tooltip(f"{name}:Q", format=".4f") for name in ("mean", "low", "high"))]
    line = chart_of(rows).mark_line(point={"size": 40}).encode(
        x=x, y=alt.Y("mean:Q", title=measure, scale=scale), tooltip=tooltip
    )  # fmt: skip
    layers = [line]
    if np.isfinite([(low, high) for *_, low, high in points]).all():
        band = chart_of(rows).mark_area(opacity=0.2).encode(
            x=x, y=alt.Y("low:Q", title=measure, scale=scale), y2="high:Q", tooltip=tooltip
        )  # fmt: skip
        layers.insert(0, band)
    title = alt.TitleParams(f"{measure} by the number of trees that score")
    return themed(alt.layer(*layers).properties(height=HEIGHT, title=title))
