"""Charts that compare rankers: means and differences, folds, wins and losses, combinations of two rankers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from podium.reports.charts import HEIGHT, Chart, alt, chart_of, in_column, names_axis, points_to_draw, themed, tooltips

if TYPE_CHECKING:
    from podium.estimators import CrossValidation
    from podium.evaluation import Comparison
    from podium.models import Combination


ROW = 30  # pixels per system or pair


def comparison_chart(comparison: Comparison) -> Chart:
    """Return the means of all systems and the paired differences for each measure, with 95% intervals.

    Intervals of means may overlap even if the systems differ significantly: look at the paired differences.
    """
    measures = list(next(iter(comparison.evaluations.values())).means)
    panels = [alt.hconcat(_means(comparison, name), _differences(comparison, name)) for name in measures]
    return themed(in_column(panels))


def _means(comparison: Comparison, measure: str) -> Chart:
    rows = [
        {"system": name, "mean": evaluation.means[measure], "low": evaluation.intervals[measure][0],
         "high": evaluation.intervals[measure][1]}
        for name, evaluation in comparison.evaluations.items()
    ]  # fmt: skip
    tooltip = tooltips("mean", "low", "high")
    return _intervals(rows, "system", "mean", measure, tooltip).properties(
        width=300, height=ROW * len(rows) + 10, title=f"{measure}, mean"
    )


def _differences(comparison: Comparison, measure: str) -> Chart:
    rows = [
        {"pair": f"{p.b} − {p.a}", "difference": p.difference, "low": p.low, "high": p.high, "p": p.p_t_holm,
         "p (random)": p.p_random_holm, "wins": p.wins, "ties": p.ties, "losses": p.losses, "label": _p(p.p_t_holm)}
        for p in comparison.pairs if p.measure == measure
    ]  # fmt: skip
    tooltip = [*tooltips("difference", "low", "high", "p", "p (random)"), "wins:Q", "ties:Q", "losses:Q"]
    zero = chart_of([{"difference": 0.0}]).mark_rule(style="zero").encode(x="difference:Q")
    points = _intervals(rows, "pair", "difference", f"difference of {measure}", tooltip)
    words = chart_of(rows).mark_text(style="words", align="left").encode(
        y=alt.Y("pair:N", sort=None), x=alt.value(308), text="label:N",
    )  # fmt: skip
    return alt.layer(zero, points, words).properties(
        width=300, height=ROW * len(rows) + 10, title="difference, query by query"
    )


def _intervals(rows: list[dict[str, Any]], name: str, value: str, title: str, tooltip: list[Any]) -> Chart:
    """Return a point with its interval for each row."""
    y = names_axis(name, grid=True)
    x = alt.X(f"{value}:Q", title=title, scale=alt.Scale(zero=False))
    rules = chart_of(rows).mark_rule(style="interval").encode(
        x=alt.X("low:Q", title=title, scale=alt.Scale(zero=False)), x2="high:Q", y=y, tooltip=tooltip,
    )  # fmt: skip
    return alt.layer(rules, chart_of(rows).mark_point(size=80).encode(x=x, y=y, tooltip=tooltip))


def _p(value: float) -> str:
    return "" if value != value else "p < 0.0001" if value < 0.00005 else f"p = {value:.4f}"


MOST_POINTS = 600  # points of a curve


def wins_and_losses_chart(comparison: Comparison, measure: str | None = None) -> Chart:
    """Return a panel for each pair of systems with the differences of all queries, largest win of b first.

    Args:
        comparison: the result of `podium.compare`.
        measure: the measure to show; the first by default.

    """
    name = comparison.pairs[0].measure if measure is None else measure
    panels = [_wins_panel(comparison, pair) for pair in comparison.pairs if pair.measure == name]
    return themed(in_column(panels))


def _wins_panel(comparison: Comparison, pair: Any) -> Chart:
    left, right = comparison.evaluations[pair.a], comparison.evaluations[pair.b]
    change = right.values[pair.measure] - left.values[pair.measure]
    change = -np.sort(-change[~np.isnan(change)])
    rows = [
        {"queries": (k + 0.5) / len(change), "win": max(float(change[k]), 0.0), "loss": min(float(change[k]), 0.0),
         "difference": float(change[k])}
        for k in points_to_draw(change, MOST_POINTS)
    ]  # fmt: skip
    x = alt.X("queries:Q", title="queries", axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0, 1], nice=False))
    title = f"difference of {pair.measure}"
    y = alt.Y("difference:Q", title=title)
    tooltip = [alt.Tooltip("queries:Q", format=".1%"), alt.Tooltip("difference:Q", format="+.4f")]
    better = [f"{system} is better" for system in (pair.b, pair.a)]
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
    return alt.layer(*areas, zero).properties(height=HEIGHT, title=text)


def path_chart(combination: Combination) -> Chart:
    """Return the measure as a step function of α, with the best α marked."""
    path, interval, name = combination.path, combination.interval, combination.measure
    assert path is not None  # of two rankers
    assert interval is not None
    points = points_to_draw(path.values)
    ends = [*path.alphas[points].tolist(), float(path.alphas[-1])]
    values = path.values[points].tolist()
    rows = [{"alpha": alpha, "value": value} for alpha, value in zip(ends, [*values, values[-1]], strict=True)]
    best = {
        "alpha": combination.alpha, "value": combination.value, "low": interval[0], "high": interval[1],
    }  # fmt: skip
    x = alt.X("alpha:Q", title="α: 0 is a alone, 1 is b alone", scale=alt.Scale(domain=[ends[0], ends[-1]], nice=False))
    y = alt.Y("value:Q", title=name, scale=alt.Scale(zero=False))
    tooltip = [alt.Tooltip("alpha:Q", title="α", format=".6g"), alt.Tooltip("value:Q", title=name, format=".4f")]
    line = chart_of(rows).mark_line(interpolate="step-after", strokeWidth=1.5).encode(x, y, tooltip=tooltip)
    rule = chart_of([best]).mark_rule(style="quiet").encode(x=x)
    point = chart_of([best]).mark_point(style="mark").encode(
        x, y, tooltip=[*tooltip, *tooltips("low", "high", digits=".6g")]
    )  # fmt: skip
    a, b = combination.values
    title = f"{name} {combination.value:.4f} at α = {combination.alpha:.4g} (a {a:.4f}, b {b:.4f})"
    return themed(alt.layer(rule, line, point).properties(title=title))


SYSTEM_ROW = 44  # pixels per system


def folds_chart(result: CrossValidation) -> Chart:
    """Return a panel for each measure: each system's mean over all queries, its 95% interval, and its fold means."""
    measures = list(next(iter(result.evaluations.values())).means)
    panels = [_fold_panel(result, measure) for measure in measures]
    n_folds, n_queries = len(result.fold_names), len(result.fold_of_query)
    title = f"{n_queries:,} queries, {n_folds} fold{'s' * (n_folds > 1)}"
    return themed(in_column(panels).properties(title=title))


def _fold_panel(result: CrossValidation, measure: str) -> Chart:
    of_folds = [
        {"system": name, "fold": fold, "value": value, "what": "a fold"}
        for name, means in result.fold_means.items()
        for fold, value in zip(result.fold_names, means[measure].tolist(), strict=True)
    ]
    of_all = [
        {"system": name, "value": evaluation.means[measure], "low": evaluation.intervals[measure][0],
         "high": evaluation.intervals[measure][1], "what": "all queries"}
        for name, evaluation in result.evaluations.items()
    ]  # fmt: skip
    y = names_axis("system", grid=True)
    scale = alt.Scale(zero=False)
    colour = alt.Color("what:N", title=None, scale=alt.Scale(domain=["all queries", "a fold"]))
    value = alt.Tooltip("value:Q", format=".4f", title=measure)
    rules = chart_of(of_all).mark_rule(style="interval").encode(
        x=alt.X("low:Q", title=measure, scale=scale), x2="high:Q", y=y,
    )  # fmt: skip
    folds = chart_of(of_folds).mark_point(size=40).encode(
        x=alt.X("value:Q", title=measure, scale=scale), y=y, yOffset=alt.value(SYSTEM_ROW / 2 + 9), color=colour,
        tooltip=["system:N", "fold:N", value],
    )  # fmt: skip
    means = chart_of(of_all).mark_point(size=90).encode(
        x=alt.X("value:Q", title=measure, scale=scale), y=y, color=colour,
        tooltip=["system:N", value, *tooltips("low", "high")],
    )  # fmt: skip
    return alt.layer(rules, folds, means).properties(height=SYSTEM_ROW * len(of_all))
