"""How much each feature matters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from podium.core.validation import require_whole
from podium.errors import DataError
from podium.reports.charts import Chart, chart_of, import_altair, themed

ROW = 22  # pixels from one feature to the next


def importance_chart(
    names: Sequence[str],
    values: Sequence[float],
    title: str,
    *,
    intervals: Sequence[tuple[float, float]] | None = None,
    top: int = 20,
) -> Chart:
    """Bars of the most important features, with intervals where there are some.

    Example:
        >>> from podium.reports.importance import importance_chart
        >>> chart = importance_chart(["bm25", "age"], [0.7, 0.3], "share of the gain", top=1)
        >>> chart.to_dict()["data"]["values"]
        [{'feature': 'bm25', 'value': 0.7}]

    """
    require_whole("top", top, 1)
    if not len(names):
        raise DataError("there are no features to plot")
    alt = import_altair()
    order = np.argsort(-np.asarray(values, float), kind="stable")[:top]
    rows = [{"feature": names[k], "value": values[k]} for k in order]
    y = alt.Y("feature:N", sort=None, title=None, axis=alt.Axis(tickSize=0, domain=False))
    tooltip = ["feature:N", alt.Tooltip("value:Q", format=".4f", title=title)]
    chart = chart_of(rows).mark_bar(height={"band": 0.7}).encode(x=alt.X("value:Q", title=title), y=y, tooltip=tooltip)
    if intervals is not None:
        spread = [{"feature": names[k], "low": intervals[k][0], "high": intervals[k][1]} for k in order]
        rules = chart_of(spread).mark_rule(style="interval").encode(
            x=alt.X("low:Q", title=title), x2="high:Q", y=y,
            tooltip=["feature:N", *(alt.Tooltip(f"{end}:Q", format=".4f") for end in ("low", "high"))],
        )  # fmt: skip
        chart = alt.layer(chart, rules)
    if len(names) > top:
        chart = chart.properties(title=alt.TitleParams(f"the first {top} of {len(names)} features"))
    return themed(chart.properties(height=ROW * len(rows)))
