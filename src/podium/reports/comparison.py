"""Systems side by side, and their differences query by query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from podium.reports.charts import Chart, chart_of, import_altair, themed

if TYPE_CHECKING:
    from podium.evaluation import Comparison

ROW = 30  # pixels from one system, or pair, to the next


def comparison_chart(comparison: Comparison) -> Chart:
    """For each measure the means of all systems, and the paired differences, both with 95% intervals.

    Two intervals of means may overlap and the systems differ for certain: the differences, on the same queries, tell.

    Example:
        >>> import podium
        >>> data = podium.artificial(20, features=4)
        >>> result = podium.compare(data, {"a": data.feature(0), "b": data.relevance}, "ndcg@10")
        >>> from podium.reports.comparison import comparison_chart
        >>> [panel["title"]["text"] for panel in comparison_chart(result).to_dict()["hconcat"]]
        ['ndcg@10, mean', 'difference, query by query']

    """
    alt = import_altair()
    measures = list(next(iter(comparison.evaluations.values())).means)
    panels = [alt.hconcat(_means(comparison, name), _differences(comparison, name)) for name in measures]
    return themed(panels[0] if len(panels) == 1 else alt.vconcat(*panels))


def _means(comparison: Comparison, measure: str) -> Chart:
    rows = [
        {"system": name, "mean": one.means[measure], "low": one.intervals[measure][0],
         "high": one.intervals[measure][1]}
        for name, one in comparison.evaluations.items()
    ]  # fmt: skip
    tooltip = _numbers("mean", "low", "high")
    return _intervals(rows, "system", "mean", measure, tooltip).properties(
        width=300, height=ROW * len(rows) + 10, title=import_altair().TitleParams(f"{measure}, mean")
    )


def _differences(comparison: Comparison, measure: str) -> Chart:
    alt = import_altair()
    rows = [
        {"pair": f"{p.b} − {p.a}", "difference": p.difference, "low": p.low, "high": p.high, "p": p.p_t_holm,
         "p (random)": p.p_random_holm, "wins": p.wins, "ties": p.ties, "losses": p.losses, "label": _p(p.p_t_holm)}
        for p in comparison.pairs if p.measure == measure
    ]  # fmt: skip
    tooltip = [*_numbers("difference", "low", "high", "p", "p (random)"), "wins:Q", "ties:Q", "losses:Q"]
    zero = chart_of([{"difference": 0.0}]).mark_rule(style="zero").encode(x="difference:Q")
    points = _intervals(rows, "pair", "difference", f"difference of {measure}", tooltip)
    words = chart_of(rows).mark_text(style="words", align="left").encode(
        y=alt.Y("pair:N", sort=None), x=alt.value(308), text="label:N",
    )  # fmt: skip
    return alt.layer(zero, points, words).properties(
        width=300, height=ROW * len(rows) + 10, title=alt.TitleParams("difference, query by query")
    )


def _intervals(rows: list[dict[str, Any]], name: str, value: str, title: str, tooltip: list[Any]) -> Chart:
    """A point with its interval for each row."""
    alt = import_altair()
    y = alt.Y(f"{name}:N", sort=None, title=None, axis=alt.Axis(grid=True, tickSize=0, domain=False))
    x = alt.X(f"{value}:Q", title=title, scale=alt.Scale(zero=False))
    rules = chart_of(rows).mark_rule(style="interval").encode(
        x=alt.X("low:Q", title=title, scale=alt.Scale(zero=False)), x2="high:Q", y=y, tooltip=tooltip,
    )  # fmt: skip
    return alt.layer(rules, chart_of(rows).mark_point(size=80).encode(x=x, y=y, tooltip=tooltip))


def _numbers(*names: str) -> list[Any]:
    return [import_altair().Tooltip(f"{name}:Q", format=".4f") for name in names]


def _p(value: float) -> str:
    """A p-value as people read it."""
    return "" if value != value else "p < 0.0001" if value < 0.00005 else f"p = {value:.4f}"
