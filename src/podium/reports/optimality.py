"""Random steps away from a model's weights, and single weights moved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.reports.charts import Chart, chart_of, import_altair, themed

if TYPE_CHECKING:
    from podium.diagnostics import Optimality

WIDTH = 360
MOST_DIRECTIONS = 500  # drawn for each step; the shares above them are of all


def optimality_chart(optimality: Optimality) -> Chart:
    """Left: the change of the measure in each direction, by step. Right: the measure around single weights.

    Example:
        >>> import podium
        >>> data = podium.artificial(20, features=4)
        >>> model = podium.LinearRanker(n_iterations=2).fit(data)
        >>> result = podium.local_optimality(model, data, directions=5, steps=[0.1], curves=2, points=3)
        >>> from podium.reports.optimality import optimality_chart
        >>> len(optimality_chart(result).to_dict()["hconcat"])
        2

    """
    alt = import_altair()
    return themed(
        alt.hconcat(_directions(optimality), _curves(optimality)) if len(optimality.curves) else _directions(optimality)
    )


def _directions(optimality: Optimality) -> Chart:
    alt = import_altair()
    rows = [
        {"step": f"{step:g}", "change": change}
        for step, changes in zip(optimality.steps, optimality.changes, strict=True)
        for change in changes[:MOST_DIRECTIONS].tolist()
    ]
    shares = [
        {"step": f"{step:g}", "share": share, "label": f"{share:.0%} fall"}
        for step, share in zip(optimality.steps, optimality.falling_share.tolist(), strict=True)
    ]
    x = alt.X("step:O", sort=None, title="step, as a share of |w|", axis=alt.Axis(labelAngle=0))
    y = alt.Y("change:Q", title=f"change of {optimality.measure}")
    points = chart_of(rows).mark_tick(opacity=0.35, width={"band": 0.5}, thickness=1.5).encode(
        x, y, tooltip=[alt.Tooltip("change:Q", format="+.4f")]
    )  # fmt: skip
    zero = chart_of([{"change": 0.0}]).mark_rule(style="zero").encode(y="change:Q")
    words = chart_of(shares).mark_text(style="words", baseline="bottom").encode(x=x, y=alt.value(-4), text="label:N")
    title = alt.TitleParams(f"{optimality.changes.shape[1]} random directions", offset=15)  # above the words
    return alt.layer(zero, points, words).properties(width=WIDTH, title=title)


def _curves(optimality: Optimality) -> Chart:
    alt = import_altair()
    rows = [
        {"weight": weight, "move": move, "value": value}
        for weight, curve in zip(optimality.weights.tolist(), optimality.curves.tolist(), strict=True)
        for move, value in zip(optimality.moves.tolist(), curve, strict=True)
    ]
    x = alt.X("move:Q", title="move of one weight, as a share of |w|")
    y = alt.Y("value:Q", title=optimality.measure, scale=alt.Scale(zero=False))
    lines = chart_of(rows).mark_line(strokeWidth=1.2, opacity=0.8).encode(
        x, y, detail="weight:N", tooltip=["weight:N", "move:Q", alt.Tooltip("value:Q", format=".4f")]
    )  # fmt: skip
    zero = chart_of([{"move": 0.0}]).mark_rule(style="quiet").encode(x="move:Q")
    n = len(optimality.curves)
    title = alt.TitleParams(f"{n} single weight{'s' * (n > 1)}", offset=26)
    return alt.layer(zero, lines).properties(width=WIDTH, title=title)
