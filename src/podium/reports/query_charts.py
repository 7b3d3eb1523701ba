"""Charts of queries: measures over queries, labels at the top, λ as arrows, calibration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from podium.core.validation import require_whole
from podium.errors import DataError
from podium.reports.charts import HEIGHT, Chart, alt, chart_of, in_column, points_to_draw, themed, tooltips

if TYPE_CHECKING:
    from podium.diagnostics import Calibration, LambdaArrows, TopLabels
    from podium.evaluation import Evaluation


HISTOGRAM_BINS = 20


def queries_chart(evaluation: Evaluation) -> Chart:
    """Return a histogram of each measure over the queries, with the mean and its 95% interval."""
    values = {name: column[~np.isnan(column)] for name, column in evaluation.values.items()}
    values = {name: column for name, column in values.items() if len(column)}
    if not values:
        raise DataError("cannot plot: every measure skipped every query")
    height = HEIGHT if len(values) == 1 else 160
    panels = [_histogram(evaluation, name, column, height) for name, column in values.items()]
    return themed(in_column(panels))


def _histogram(evaluation: Evaluation, name: str, values: Any, height: int) -> Chart:
    low, high = (0.0, 1.0) if values.min() >= 0 and values.max() <= 1 else (values.min(), values.max())
    counts, edges = np.histogram(values, HISTOGRAM_BINS, (low, high))
    rows = [{"from": edges[k], "to": edges[k + 1], "queries": counts[k]} for k in range(HISTOGRAM_BINS)]
    tooltip = [*tooltips("from", "to", digits=".3f"), "queries:Q"]
    x = alt.X("from:Q", bin="binned", title=name, scale=alt.Scale(domain=[edges[0], edges[-1]], nice=False))
    bars = chart_of(rows).mark_bar(binSpacing=1).encode(
        x=x, x2="to:Q", y=alt.Y("queries:Q", title="queries", axis=alt.Axis(tickMinStep=1)), tooltip=tooltip,
    )  # fmt: skip
    value, (below, above) = evaluation.means[name], evaluation.intervals[name]
    mean_row = {"mean": value, "low": below, "high": above}
    shown = tooltips(*mean_row)
    layers = [bars]
    if np.isfinite([below, above]).all():
        band = chart_of([mean_row]).mark_rect(style="band").encode(x="low:Q", x2="high:Q", tooltip=shown)
        layers.append(band)
    layers.append(chart_of([mean_row]).mark_rule(style="interval").encode(x="mean:Q", tooltip=shown))
    interval = f" (95% from {below:.4f} to {above:.4f})" if np.isfinite([below, above]).all() else ""
    n = len(values)
    title = f"{name}: mean {value:.4f}{interval}, {n:,} quer{'y' if n == 1 else 'ies'}"
    return alt.layer(*layers).properties(height=height, title=title)


MOST_IN_LEGEND = 8


def label_colour(labels: Sequence[float]) -> Any:
    """Return the colour scale of labels: a ramp, with each label in the legend if there are few."""
    lowest, highest = (min(labels), max(labels)) if labels else (0.0, 1.0)
    domain = [lowest, highest if highest > lowest else lowest + 1.0]
    legend = (
        alt.Legend(type="symbol", values=list(labels), format="~g") if len(labels) <= MOST_IN_LEGEND else alt.Legend()
    )
    return alt.Color("label:Q", title="label", scale=alt.Scale(domain=domain), legend=legend)


def top_labels_chart(top: TopLabels) -> Chart:
    """Return the share of each label among the top documents, stacked ([S] fig. 3(b))."""
    labels = top.labels.tolist()
    points = np.unique(np.concatenate([points_to_draw(column, 400) for column in top.shares.T]))
    rows = [
        {"round": int(top.iterations[k]) + 1, "label": label, "place": -c, "share": float(top.shares[k, c])}
        for k in points
        for c, label in enumerate(labels)
    ]
    chart = chart_of(rows).mark_area().encode(
        x=alt.X("round:Q", axis=alt.Axis(tickMinStep=1, format="d"), scale=alt.Scale(nice=False)),
        y=alt.Y("share:Q", title="documents", stack="zero", axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0, 1])),
        color=label_colour(labels),
        detail="label:N",
        order=alt.Order("place:Q"),
        tooltip=["label:Q", "round:Q", alt.Tooltip("share:Q", format=".1%")],
    )  # fmt: skip
    return themed(chart.properties(height=HEIGHT, title=f"Labels of the top {top.k} documents"))


ARROW_ROW = 16  # pixels per document
REACH = 4.0  # length of the longest arrow of a panel, in ranks
LANES = 8  # columns of arrows; arrows of one lane do not overlap


def lambda_arrows_chart(arrows: LambdaArrows, most: int = 30) -> Chart:
    """Return a bar for each top document, coloured by label, and an arrow that shows where each objective moves it.

    The longest arrow has the same length in every panel, because objectives differ in scale.

    Args:
        arrows: the list and its λ.
        most: the maximum number of documents to show.

    """
    require_whole("most", most, 1)
    n = min(most, len(arrows.rows))
    panels = [_arrow_panel(arrows, k, n) for k in range(len(arrows.objectives))]
    left_out = f", the first {n} of {len(arrows.rows)} documents" if n < len(arrows.rows) else ""
    title = f"λ of query {arrows.query}{left_out}"
    return themed(alt.hconcat(*panels).resolve_scale(color="shared").properties(title=title))


def _arrow_panel(arrows: LambdaArrows, objective: int, n: int) -> Chart:
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
    bars = chart_of(rows).mark_bar(height=ARROW_ROW - 5).encode(
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
    return alt.layer(bars, stems, heads).properties(
        width=260, height=ARROW_ROW * n + ARROW_ROW * int(edge), title=title
    )


CALIBRATION_SIDE = 320


def calibration_chart(calibration: Calibration) -> Chart:
    """Return observed against predicted probabilities with the diagonal, above the number of pairs in each bin."""
    columns = (calibration.edges[:-1], calibration.edges[1:], calibration.counts, calibration.predicted)
    names = ("from", "to", "pairs", "predicted", "observed")
    table = zip(*(column.tolist() for column in (*columns, calibration.observed)), strict=True)
    bins = [dict(zip(names, row, strict=True)) for row in table]
    rows = [row for row in bins if row["pairs"]]
    scale = alt.Scale(domain=[0.5, 1.0], nice=False)
    tooltip = [*tooltips("from", "to", "predicted", "observed", digits=".3f"), alt.Tooltip("pairs:Q", format=",")]
    axis = alt.Axis(tickCount=5)
    x = alt.X("predicted:Q", title="predicted P", scale=scale, axis=axis)
    low = min([0.5, *(row["observed"] for row in rows)])
    y = alt.Y("observed:Q", title="observed share", scale=alt.Scale(domain=[low, 1.0], nice=False), axis=axis)
    line = chart_of(rows).mark_line(point=True).encode(x, y, tooltip=tooltip)
    ends = [{"predicted": p, "observed": p} for p in (0.5, 1.0)]
    diagonal = chart_of(ends).mark_line(style="quiet").encode(x, y)
    counts = chart_of(bins).mark_bar(binSpacing=1).encode(
        x=alt.X("from:Q", bin="binned", title="predicted P", scale=scale, axis=axis), x2="to:Q",
        y=alt.Y("pairs:Q", title="pairs", axis=alt.Axis(tickCount=3, format="~s")), tooltip=tooltip,
    )  # fmt: skip
    title = f"Calibration error {calibration.error:.4f} over {calibration.n_pairs:,} pairs, σ = {calibration.sigma:g}"
    above = alt.layer(diagonal, line).properties(width=CALIBRATION_SIDE, height=CALIBRATION_SIDE, title=title)
    return themed(alt.vconcat(above, counts.properties(width=CALIBRATION_SIDE, height=80)))
