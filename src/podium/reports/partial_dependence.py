"""How scores change with one feature."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.reports.charts import Chart, chart_of, import_altair, themed

if TYPE_CHECKING:
    from podium.explain import PartialDependence


def partial_dependence_chart(found: PartialDependence) -> Chart:
    """The mean score by the value of the feature, and thin lines for single documents.

    Example:
        >>> import numpy as np
        >>> from podium.explain import PartialDependence
        >>> from podium.reports.partial_dependence import partial_dependence_chart
        >>> found = PartialDependence("bm25", (0.0, 1.0), np.array([0.2, 0.6]), np.empty((0, 2)), np.empty(0, int))
        >>> partial_dependence_chart(found).to_dict()["data"]["values"]
        [{'value': 0.0, 'score': 0.2}, {'value': 1.0, 'score': 0.6}]

    """
    alt = import_altair()
    is_number = not any(isinstance(value, str) for value in found.grid)
    field = f"value:{'Q' if is_number else 'N'}"
    rows = [{"value": value, "score": score} for value, score in zip(found.grid, found.means, strict=True)]
    x = alt.X(field, title=found.feature, sort=None)
    if is_number:
        x = x.scale(zero=False)
    y = alt.Y("score:Q", title="score", scale=alt.Scale(zero=False))
    mean = chart_of(rows).mark_line(point=len(rows) < 60, strokeWidth=2.5).encode(
        x=x, y=y, tooltip=[field, alt.Tooltip("score:Q", format=".4f", title="mean score")]
    )  # fmt: skip
    if not len(found.curves):
        return themed(mean)
    curves = [
        {"value": value, "score": score, "row": int(row)}
        for row, curve in zip(found.rows, found.curves, strict=True)
        for value, score in zip(found.grid, curve, strict=True)
    ]
    lines = chart_of(curves).mark_line(style="zero", opacity=0.45).encode(x=x, y=y, detail="row:N", tooltip=["row:N"])
    title = alt.TitleParams(f"The mean, and {len(found.curves)} documents")
    return themed(alt.layer(lines, mean).properties(title=title))
