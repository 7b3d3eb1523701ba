"""What RankNet's probabilities say, and what is true."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.reports.charts import Chart, chart_of, import_altair, themed

if TYPE_CHECKING:
    from podium.diagnostics import Calibration

SIDE = 320


def calibration_chart(calibration: Calibration) -> Chart:
    """Above: observed against predicted, the line of true probabilities beside it. Below: the pairs of each bin.

    Example:
        >>> import podium
        >>> from podium.diagnostics import calibration
        >>> from podium.reports.calibration import calibration_chart
        >>> data = podium.artificial(20, features=4)
        >>> chart = calibration_chart(calibration(podium.RankNetTrees(20).fit(data), data))
        >>> len(chart.to_dict()["vconcat"])
        2

    """
    alt = import_altair()
    columns = (calibration.edges[:-1], calibration.edges[1:], calibration.counts, calibration.predicted)
    names = ("from", "to", "pairs", "predicted", "observed")
    table = zip(*(column.tolist() for column in (*columns, calibration.observed)), strict=True)
    bins = [dict(zip(names, row, strict=True)) for row in table]
    rows = [row for row in bins if row["pairs"]]
    scale = alt.Scale(domain=[0.5, 1.0], nice=False)
    tooltip = [alt.Tooltip(f"{name}:Q", format=".3f") for name in names if name != "pairs"]
    tooltip.append(alt.Tooltip("pairs:Q", format=","))
    axis = alt.Axis(tickCount=5)
    x = alt.X("predicted:Q", title="predicted P", scale=scale, axis=axis)
    low = min([0.5, *(row["observed"] for row in rows)])
    y = alt.Y("observed:Q", title="observed share", scale=alt.Scale(domain=[low, 1.0], nice=False), axis=axis)
    line = chart_of(rows).mark_line(point=True).encode(x, y, tooltip=tooltip)
    ends = [{"predicted": p, "observed": p} for p in (0.5, 1.0)]
    true = chart_of(ends).mark_line(style="quiet").encode(x, y)
    counts = chart_of(bins).mark_bar(binSpacing=1).encode(
        x=alt.X("from:Q", bin="binned", title="predicted P", scale=scale, axis=axis), x2="to:Q",
        y=alt.Y("pairs:Q", title="pairs", axis=alt.Axis(tickCount=3, format="~s")), tooltip=tooltip,
    )  # fmt: skip
    title = f"Calibration error {calibration.error:.4f} over {calibration.n_pairs:,} pairs, σ = {calibration.sigma:g}"
    above = alt.layer(true, line).properties(width=SIDE, height=SIDE, title=alt.TitleParams(title))
    return themed(alt.vconcat(above, counts.properties(width=SIDE, height=80)))
