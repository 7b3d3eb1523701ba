"""A measure along all combinations of two rankers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.reports.charts import Chart, chart_of, import_altair, themed, thinned

if TYPE_CHECKING:
    from podium.models import Combination


def path_chart(combination: Combination) -> Chart:
    """The stair of the measure over α, with the best α.

    Example:
        >>> import podium
        >>> data = podium.RankingData([[1.0, 0.0], [0.0, 1.0]], [0, 1], qid=[1, 1])
        >>> from podium.reports.path import path_chart
        >>> path_chart(podium.combine(data.feature(0), data.feature(1), data, "ndcg")).to_dict()["title"]["text"]
        'ndcg 1.0000 at α = 0.75 (a 0.6309, b 1.0000)'

    """
    alt = import_altair()
    path, name = combination.path, combination.measure
    kept = thinned(path.values)
    ends = [*path.alphas[kept].tolist(), float(path.alphas[-1])]
    values = path.values[kept].tolist()
    rows = [{"alpha": alpha, "value": value} for alpha, value in zip(ends, [*values, values[-1]], strict=True)]
    best = {
        "alpha": combination.alpha, "value": combination.value, "low": combination.interval[0],
        "high": combination.interval[1],
    }  # fmt: skip
    x = alt.X("alpha:Q", title="α: 0 is a alone, 1 is b alone", scale=alt.Scale(domain=[ends[0], ends[-1]], nice=False))
    y = alt.Y("value:Q", title=name, scale=alt.Scale(zero=False))
    tooltip = [alt.Tooltip("alpha:Q", title="α", format=".6g"), alt.Tooltip("value:Q", title=name, format=".4f")]
    line = chart_of(rows).mark_line(interpolate="step-after", strokeWidth=1.5).encode(x, y, tooltip=tooltip)
    rule = chart_of([best]).mark_rule(style="quiet").encode(x=x)
    point = chart_of([best]).mark_point(style="mark").encode(
        x, y, tooltip=[*tooltip, alt.Tooltip("low:Q", format=".6g"), alt.Tooltip("high:Q", format=".6g")]
    )  # fmt: skip
    a, b = combination.values
    title = f"{name} {combination.value:.4f} at α = {combination.alpha:.4g} (a {a:.4f}, b {b:.4f})"
    return themed(alt.layer(rule, line, point).properties(title=alt.TitleParams(title)))
