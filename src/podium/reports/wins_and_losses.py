"""The difference of two systems on every query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from podium.reports.charts import HEIGHT, Chart, chart_of, import_altair, themed, thinned

if TYPE_CHECKING:
    from podium.evaluation import Comparison

MOST = 600  # points of a curve


def wins_and_losses_chart(comparison: Comparison, measure: str | None = None) -> Chart:
    """For each pair of systems the differences of all queries, from the largest win of b to its largest loss.

    Args:
        comparison: what `podium.compare` returned.
        measure: of the differences; the first by default.

    Example:
        >>> import podium
        >>> from podium.reports.wins_and_losses import wins_and_losses_chart
        >>> data = podium.artificial(20, features=4)
        >>> result = podium.compare(data, {"a": data.feature(0), "b": data.relevance}, "ndcg@10")
        >>> wins_and_losses_chart(result).to_dict()["title"]["text"]
        'b − a, query by query: 20 wins, 0 ties, 0 losses'

    """
    name = comparison.pairs[0].measure if measure is None else measure
    alt = import_altair()
    panels = [_panel(comparison, pair) for pair in comparison.pairs if pair.measure == name]
    return themed(panels[0] if len(panels) == 1 else alt.vconcat(*panels))


def _panel(comparison: Comparison, pair: Any) -> Chart:
    alt = import_altair()
    left, right = comparison.evaluations[pair.a], comparison.evaluations[pair.b]
    change = right.values[pair.measure] - left.values[pair.measure]
    change = -np.sort(-change[~np.isnan(change)])
    rows = [
        {"queries": (k + 0.5) / len(change), "win": max(float(change[k]), 0.0), "loss": min(float(change[k]), 0.0),
         "difference": float(change[k])}
        for k in thinned(change, MOST)
    ]  # fmt: skip
    x = alt.X("queries:Q", title="queries", axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0, 1], nice=False))
    title = f"difference of {pair.measure}"
    y = alt.Y("difference:Q", title=title)
    tooltip = [alt.Tooltip("queries:Q", format=".1%"), alt.Tooltip("difference:Q", format="+.4f")]
    better = [f"{who} is better" for who in (pair.b, pair.a)]
    colour = alt.Color("who:N", scale=alt.Scale(domain=better), title=None)
    areas = [
        chart_of([{**row, "who": who} for row in rows]).mark_area(interpolate="step", opacity=0.8).encode(
            x=x, y=alt.Y(f"{kind}:Q", title=title), color=colour, tooltip=tooltip,
        )
        for kind, who in zip(("win", "loss"), better, strict=True)
    ]  # fmt: skip
    zero = chart_of([{"difference": 0.0}]).mark_rule(style="zero").encode(y=y)
    counts = f"{pair.wins:,} wins, {pair.ties:,} ties, {pair.losses:,} losses"
    text = f"{pair.b} − {pair.a}, query by query: {counts}"
    return alt.layer(*areas, zero).properties(height=HEIGHT, title=alt.TitleParams(text))
