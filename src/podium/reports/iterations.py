"""Shares and weights by iteration: what the charts of observers have in common."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from podium.reports.charts import HEIGHT, Chart, chart_of, import_altair, thinned

FEW = 30  # points that are drawn as such


def lines_by_iteration(
    iterations: NDArray[np.int64],
    columns: Mapping[str, NDArray[np.float64]],
    title: str,
    *,
    legend: str | None = None,
    is_share: bool = True,
    height: int = HEIGHT,
) -> Chart:
    """A line for each column, without a theme; what is NaN is left out.

    Args:
        iterations: of the rows.
        columns: by the name that stands in the legend.
        title: of the vertical axis.
        legend: its title.
        is_share: whether values are shown in percent.
        height: of the panel.

    Example:
        >>> import numpy as np
        >>> from podium.reports.iterations import lines_by_iteration
        >>> chart = lines_by_iteration(np.arange(2), {"all": np.array([np.nan, 0.5])}, "share")
        >>> chart.to_dict()["data"]["values"]
        [{'iteration': 2, 'name': 'all', 'value': 0.5}]

    """
    alt = import_altair()
    rows = []
    for name, column in columns.items():
        known = np.flatnonzero(~np.isnan(column))
        for k in known[thinned(column[known])]:
            rows.append({"iteration": int(iterations[k]) + 1, "name": name, "value": float(column[k])})
    shown = ".1%" if is_share else ".4g"
    colour = alt.Color(
        "name:N", title=legend, scale=alt.Scale(domain=list(columns)), sort=list(columns),
        legend=alt.Legend() if len(columns) > 1 else None,
    )  # fmt: skip
    axis = alt.Axis(tickMinStep=1, format="d")
    few = len({row["iteration"] for row in rows}) <= FEW
    return (
        chart_of(rows)
        .mark_line(point={"size": 30} if few else False)
        .encode(
            x=alt.X("iteration:Q", title="round", axis=axis, scale=alt.Scale(nice=False)),
            y=alt.Y("value:Q", title=title, axis=alt.Axis(format="%") if is_share else alt.Axis()),
            color=colour,
            tooltip=[alt.Tooltip("name:N", title=legend or "of"), alt.Tooltip("iteration:Q", title="round"),
                     alt.Tooltip("value:Q", format=shown)],
        )
        .properties(height=height)
    )  # fmt: skip
