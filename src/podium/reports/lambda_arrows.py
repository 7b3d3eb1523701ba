"""λ as arrows on a ranked list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from podium.core.validation import require_whole
from podium.reports.charts import Chart, chart_of, import_altair, themed
from podium.reports.label_colours import label_colour

if TYPE_CHECKING:
    from podium.diagnostics import LambdaArrows

ROW = 16  # pixels of a document
REACH = 4.0  # ranks that the longest arrow of a panel is long
LANES = 8  # arrows beside each other: those of one lane do not meet


def lambda_arrows_chart(arrows: LambdaArrows, most: int = 30) -> Chart:
    """A bar for each document from the top, coloured by its label, and an arrow where each objective moves it.

    The longest arrow is as long in every panel: objectives differ in scale, and what counts is where they push most.

    Args:
        arrows: the list and its λ.
        most: so many documents from the top.

    Example:
        >>> import podium
        >>> from podium.diagnostics import lambda_arrows
        >>> from podium.reports.lambda_arrows import lambda_arrows_chart
        >>> data = podium.RankingData([[0.0], [1.0], [2.0]], [0, 1, 0], qid=["a", "a", "a"])
        >>> len(lambda_arrows_chart(lambda_arrows([3.0, 2.0, 1.0], data, "a")).to_dict()["hconcat"])
        2

    """
    require_whole("most", most, 1)
    alt = import_altair()
    n = min(most, len(arrows.rows))
    panels = [_panel(arrows, k, n) for k in range(len(arrows.objectives))]
    left_out = f", the first {n} of {len(arrows.rows)} documents" if n < len(arrows.rows) else ""
    title = alt.TitleParams(f"λ of query {arrows.query}{left_out}")
    return themed(alt.hconcat(*panels).resolve_scale(color="shared").properties(title=title))


def _panel(arrows: LambdaArrows, objective: int, n: int) -> Chart:
    alt = import_altair()
    lambdas, shown = arrows.lambdas[objective], arrows.labels[:n][~np.isnan(arrows.labels[:n])]
    longest = float(np.abs(lambdas).max()) or 1.0
    rows: list[dict[str, Any]] = []
    for k in range(n):
        length = REACH * float(lambdas[k]) / longest
        label = arrows.labels[k]
        rows.append(
            {
                "rank": k + 1, "label": float(label), "score": float(arrows.scores[k]),
                "λ": float(lambdas[k]), "end": k + 1 - length, "left": 0.0, "right": 1.0,
                "lane": 1.1 + 0.09 * (k % LANES), "angle": 0 if length > 0 else 180,
            }
        )  # fmt: skip
    edge = REACH / 2
    y = alt.Y("rank:Q", title="rank", scale=alt.Scale(domain=[n + edge, 1 - edge], nice=False, zero=False),
              axis=alt.Axis(values=[1, *range(5, n + 1, 5)], format="d", grid=False, titleAngle=0, titleAlign="right",
                            titleAnchor="start", titleY=-4))  # fmt: skip
    scale = alt.Scale(domain=[0.0, 1.8], nice=False)
    x = alt.X("left:Q", axis=None, scale=scale)
    tooltip = ["rank:Q", "label:Q", alt.Tooltip("score:Q", format=".4g"), alt.Tooltip("λ:Q", format="+.4g")]
    bars = chart_of(rows).mark_bar(height=ROW - 5).encode(
        x=x, x2="right:Q", y=y, tooltip=tooltip,
        color=alt.condition("isValid(datum.label)", label_colour(np.unique(shown).tolist()), alt.value("none")),
    )  # fmt: skip
    pushed = [row for row in rows if abs(row["end"] - row["rank"]) > 0.02 * REACH]
    stems = chart_of(pushed).mark_rule(style="interval").encode(
        x=alt.X("lane:Q", axis=None, scale=scale), y=y, y2="end:Q", tooltip=tooltip
    )  # fmt: skip
    heads = chart_of(pushed).mark_point(style="words", shape="triangle", size=45).encode(
        x=alt.X("lane:Q", axis=None, scale=scale), y=alt.Y("end:Q"), angle=alt.Angle("angle:Q", scale=None),
        tooltip=tooltip,
    )  # fmt: skip
    title = alt.TitleParams(arrows.objectives[objective], fontSize=13, fontWeight="normal")
    return alt.layer(bars, stems, heads).properties(width=260, height=ROW * n + ROW * int(edge), title=title)
