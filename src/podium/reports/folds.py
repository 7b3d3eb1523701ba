"""The folds of a cross-validation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.reports.charts import Chart, chart_of, import_altair, themed

if TYPE_CHECKING:
    from podium.estimators.cross_validation import CrossValidation

ROW = 44  # pixels from one system to the next


def folds_chart(result: CrossValidation) -> Chart:
    """For each measure and system the mean over all queries with its 95% interval, and the mean of each fold.

    Example:
        >>> import podium
        >>> result = podium.cross_validate(podium.LambdaMART(n_trees=2), podium.artificial(20, features=4), folds=2,
        ...     measures="ndcg")
        >>> from podium.reports.folds import folds_chart
        >>> folds_chart(result).to_dict()["title"]["text"]
        '20 queries, 2 folds'

    """
    alt = import_altair()
    measures = list(next(iter(result.evaluations.values())).means)
    panels = [_panel(result, measure) for measure in measures]
    chart = panels[0] if len(panels) == 1 else alt.vconcat(*panels)
    n_folds, n_queries = len(result.fold_names), len(result.fold_of_query)
    title = f"{n_queries:,} queries, {n_folds} fold{'s' * (n_folds > 1)}"
    return themed(chart.properties(title=alt.TitleParams(title)))


def _panel(result: CrossValidation, measure: str) -> Chart:
    alt = import_altair()
    of_folds = [
        {"system": name, "fold": fold, "value": value, "what": "a fold"}
        for name, means in result.fold_means.items()
        for fold, value in zip(result.fold_names, means[measure].tolist(), strict=True)
    ]
    of_all = [
        {"system": name, "value": one.means[measure], "low": one.intervals[measure][0],
         "high": one.intervals[measure][1], "what": "all queries"}
        for name, one in result.evaluations.items()
    ]  # fmt: skip
    y = alt.Y("system:N", sort=None, title=None, axis=alt.Axis(grid=True, tickSize=0, domain=False))
    scale = alt.Scale(zero=False)
    colour = alt.Color("what:N", title=None, scale=alt.Scale(domain=["all queries", "a fold"]))
    value = alt.Tooltip("value:Q", format=".4f", title=measure)
    rules = chart_of(of_all).mark_rule(style="interval").encode(
        x=alt.X("low:Q", title=measure, scale=scale), x2="high:Q", y=y,
    )  # fmt: skip
    folds = chart_of(of_folds).mark_point(size=40).encode(
        x=alt.X("value:Q", title=measure, scale=scale), y=y, yOffset=alt.value(ROW / 2 + 9), color=colour,
        tooltip=["system:N", "fold:N", value],
    )  # fmt: skip
    means = chart_of(of_all).mark_point(size=90).encode(
        x=alt.X("value:Q", title=measure, scale=scale), y=y, color=colour,
        tooltip=["system:N", value, alt.Tooltip("low:Q", format=".4f"), alt.Tooltip("high:Q", format=".4f")],
    )  # fmt: skip
    return alt.layer(rules, folds, means).properties(height=ROW * len(of_all))
