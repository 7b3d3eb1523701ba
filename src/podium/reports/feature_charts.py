"""Charts of features: importance, contributions to scores, partial dependence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from podium.core.array_types import Floats
from podium.core.validation import require_whole
from podium.data.sparse import dense_block
from podium.errors import DataError
from podium.reports.charts import Chart, alt, chart_of, names_axis, themed, tooltips

if TYPE_CHECKING:
    from podium.explain import (
        DocumentExplanation,
        Explanation,
        ExplanationComparison,
        PairExplanation,
        PartialDependence,
        QueryExplanation,
    )


IMPORTANCE_ROW = 22  # pixels per feature


def importance_chart(
    names: Sequence[str],
    values: Sequence[float],
    title: str,
    *,
    intervals: Sequence[tuple[float, float]] | None = None,
    top: int = 20,
) -> Chart:
    """Return a bar for each of the most important features, with intervals if they are known."""
    require_whole("top", top, 1)
    if not len(names):
        raise DataError("cannot plot: there are no features")
    order = np.argsort(-np.asarray(values, float), kind="stable")[:top]
    rows = [{"feature": names[k], "value": values[k]} for k in order]
    y = names_axis("feature")
    tooltip = ["feature:N", alt.Tooltip("value:Q", format=".4f", title=title)]
    chart = chart_of(rows).mark_bar(height={"band": 0.7}).encode(x=alt.X("value:Q", title=title), y=y, tooltip=tooltip)
    if intervals is not None:
        spread = [{"feature": names[k], "low": intervals[k][0], "high": intervals[k][1]} for k in order]
        rules = chart_of(spread).mark_rule(style="interval").encode(
            x=alt.X("low:Q", title=title), x2="high:Q", y=y,
            tooltip=["feature:N", *tooltips("low", "high")],
        )  # fmt: skip
        chart = alt.layer(chart, rules)
    if len(names) > top:
        chart = chart.properties(title=f"the first {top} of {len(names)} features")
    return themed(chart.properties(height=IMPORTANCE_ROW * len(rows)))


BAR_ROW = 24  # pixels per bar


def document_chart(explanation: DocumentExplanation, top: int = 12) -> Chart:
    """Return a waterfall chart of the contributions, from the base to the score."""
    labels = [f"{name} = {shown_number(value)}" for name, value, _ in explanation.rows]
    amounts = [row[2] for row in explanation.rows]
    title = alt.TitleParams(
        f"{explanation.document}: score {explanation.score:.4g}", subtitle=f"from the base, {explanation.base:.4g}"
    )
    return _bars(labels, amounts, top, "score", explanation.base, ("raises the score", "lowers it"), title)


def pair_chart(explanation: PairExplanation, top: int = 12) -> Chart:
    """Return a waterfall chart of the differences of two documents, from 0 to the difference of their scores."""
    labels = [f"{row[0]}: {shown_number(row[1])}, {shown_number(row[2])}" for row in explanation.rows]
    amounts = [row[5] for row in explanation.rows]
    place = "above" if explanation.gap > 0 else "below" if explanation.gap < 0 else "level with"
    text = f"Why {explanation.a} is {place} {explanation.b}: {explanation.score_a:.4g} and {explanation.score_b:.4g}"
    title = alt.TitleParams(
        text, subtitle=f"values of {explanation.a}, {explanation.b}; the bars lead to the gap, {explanation.gap:.4g}"
    )
    unit = f"score of {explanation.a} − score of {explanation.b}"
    return _bars(labels, amounts, top, unit, 0.0, (f"for {explanation.a}", f"for {explanation.b}"), title)


def shown_number(value: Any) -> str:
    """Return the value of a feature as short text."""
    if value is None:
        return "missing"
    return f"{value:.4g}" if isinstance(value, int | float) else str(value)


def _bars(
    labels: Sequence[str],
    amounts: Sequence[float],
    top: int,
    unit: str,
    start: float,
    sides: tuple[str, str],
    title: Any,
) -> Chart:
    """Return a waterfall of the first `top` amounts, and one bar for the rest, so that all bars add up to the total."""
    require_whole("top", top, 1)
    rows = list(zip(labels[:top], amounts[:top], strict=True))
    if len(amounts) > top:
        rows.append((f"{len(amounts) - top} others", sum(amounts[top:])))
    bars, place = [], start
    for label, amount in rows:
        side = sides[0] if amount >= 0 else sides[1]
        bars.append({"feature": label, "from": place, "to": place + amount, "amount": amount, "side": side,
                     "end": max(place, place + amount)})  # fmt: skip
        place += amount
    y = names_axis("feature")
    x = alt.X("from:Q", title=unit, scale=alt.Scale(zero=False))
    colour = alt.Color("side:N", scale=alt.Scale(domain=list(sides)), legend=alt.Legend(title=None, orient="top"))
    tooltip = ["feature:N", alt.Tooltip("amount:Q", format="+.4f", title="adds")]
    drawn = chart_of(bars).mark_bar(height={"band": 0.65}).encode(x=x, x2="to:Q", y=y, color=colour, tooltip=tooltip)
    words = chart_of(bars).mark_text(style="words", align="left", dx=5).encode(
        x=alt.X("end:Q", title=unit), y=y, text=alt.Text("amount:Q", format="+.3g")
    )  # fmt: skip
    zero = chart_of([{"start": start}]).mark_rule(style="zero").encode(x="start:Q")
    return themed(alt.layer(drawn, words, zero).properties(height=BAR_ROW * len(bars), title=title))


SUMMARY_ROW = 34  # pixels per feature
BINS = 40  # along the scale: points in the same bin are stacked
MOST_POINTS = 250  # per feature


def summary_chart(explanation: Explanation, top: int = 12) -> Chart:
    """Return a row of points for each of the most important features, coloured by the value of the feature.

    Args:
        explanation: the contributions, ideally of a few hundred documents; if there are more, the chart shows evenly
            spaced ones.
        top: the number of features to show.

    """
    require_whole("top", top, 1)
    if not explanation.values.size:
        raise DataError("cannot plot: there are no contributions")
    order = np.argsort(-np.abs(explanation.values).mean(axis=0), kind="stable")[:top]
    rows: list[dict[str, Any]] = []
    for k in order.tolist():
        rows += _points(explanation, k)
    y = names_axis("feature", grid=True)
    points = chart_of(rows).mark_circle(size=16, opacity=0.85).encode(
        x=alt.X("contribution:Q", title="added to the score"), y=y,
        yOffset=alt.YOffset("place:Q", scale=alt.Scale(domain=[-1, 1])),
        color=alt.Color("share:Q", title="value of the feature, from low to high", scale=alt.Scale(domain=[0, 1]),
                        legend=alt.Legend(format="%", tickCount=2, gradientLength=120)),
        tooltip=["feature:N", "value:N", alt.Tooltip("contribution:Q", format="+.4g")],
    )  # fmt: skip
    n, n_features = len(explanation.values), explanation.values.shape[1]
    cut = f"the first {len(order)} of {n_features}" if n_features > len(order) else f"{n_features}"
    title = f"What {cut} features add to {n:,} scores"
    return themed(points.properties(height=SUMMARY_ROW * len(order), title=title))


def _points(explanation: Explanation, feature: int) -> list[dict[str, Any]]:
    """Return the points of one feature: contribution, value, and an offset where points overlap."""
    n = len(explanation.values)
    rows = np.unique(np.linspace(0, n - 1, min(n, MOST_POINTS)).round().astype(int))
    values = dense_block(explanation.features, rows, np.float64)[:, feature]
    amounts = explanation.values[rows, feature]
    shares, places = _shares(values), _places(amounts)
    encoding, name = explanation.encoding.categories.get(feature), explanation.names[feature]
    return [
        {"feature": name, "contribution": _short(amounts[k]), "place": round(places[k], 2),
         "share": None if np.isnan(shares[k]) else round(float(shares[k]), 3),
         "value": encoding[int(values[k])] if encoding is not None and not np.isnan(values[k]) else _text(values[k])}
        for k in range(len(rows))
    ]  # fmt: skip


def _shares(values: Floats) -> Floats:
    """Return the share of values below each value, counting ties half; NaN for missing values."""
    present = np.sort(values[~np.isnan(values)])
    low, high = np.searchsorted(present, values), np.searchsorted(present, values, side="right")
    shares = (low + high) / (2 * max(1, len(present)))
    return np.where(np.isnan(values), np.nan, shares)


def _places(amounts: Floats) -> list[float]:
    """Return the offset of each point from its row, −1 to 1. The points of a bin spread to both sides."""
    width = float(np.ptp(amounts)) or 1.0
    bins = np.minimum(((amounts - amounts.min()) / width * BINS).astype(int), BINS - 1)
    most = max(8, int(np.bincount(bins).max()))
    counts: dict[int, int] = {}
    places = []
    for bin_ in bins.tolist():
        k = counts[bin_] = counts.get(bin_, 0) + 1
        places.append((k // 2) * (1 if k % 2 else -1) * 2 / most)
    return places


def _short(value: float) -> float:
    return float(f"{value:.4g}")


def _text(value: float) -> str:
    return "missing" if np.isnan(value) else f"{value:.4g}"


DOCUMENT_ROW = 20  # pixels per document
SERIES = 5  # features with separate colours; the sixth colour is for all others
OTHERS = "others"


def query_chart(explanation: QueryExplanation, top: int = 20) -> Chart:
    """Return the contributions of the top documents of a query, minus their means over the query."""
    require_whole("top", top, 1)
    first = explanation.columns.index("score") + 1
    names, amounts = explanation.columns[first:], np.array([row[first:] for row in explanation.rows])
    amounts = amounts - amounts.mean(axis=0)
    labels = [f"{row[0]}. {row[1]}" for row in explanation.rows[:top]]
    text = f"Query {explanation.query}: what determines the order"
    title = alt.TitleParams(text, subtitle="documents by rank; the bars of a document add up to its mark")
    return _stacked(labels, names, amounts[:top], "score minus the query's mean", title)


def explanation_comparison_chart(explanation: ExplanationComparison, top: int = 20) -> Chart:
    """Return the documents of a query that moved most between two models, and the features that moved them."""
    require_whole("top", top, 1)
    moves = explanation.ranks[:, 0] - explanation.ranks[:, 1]
    documents = np.sort(np.argsort(-np.abs(moves), kind="stable")[:top])
    differences = explanation.differences
    largest = np.argsort(-np.abs(differences).mean(axis=0), kind="stable")
    names, amounts = [explanation.features[k] for k in largest], differences[np.ix_(documents, largest)]
    labels = [f"{explanation.documents[k]}: {explanation.ranks[k, 0]} → {explanation.ranks[k, 1]}" for k in documents]
    first, second = explanation.names
    text = f"Query {explanation.query}: what moved from {first} to {second}"
    title = alt.TitleParams(text, subtitle=f"document, rank by {first} → rank by {second}")
    return _stacked(labels, names, amounts, "change of the score, in deviations of the query's scores", title)


def _stacked(labels: Sequence[str], names: Sequence[str], amounts: Floats, unit: str, title: Any) -> Chart:
    """Return stacked bars on both sides of 0, with a point at their sum; `amounts` has a row for each label."""
    if len(names) > SERIES + 1:  # more features than colours: merge the rest
        names = [*names[:SERIES], OTHERS]
        amounts = np.column_stack([amounts[:, :SERIES], amounts[:, SERIES:].sum(axis=1)])
    rows = [
        {"document": label, "feature": name, "amount": amount}
        for label, row in zip(labels, amounts.tolist(), strict=True)
        for name, amount in zip(names, row, strict=True)
    ]
    sums = [{"document": label, "sum": total} for label, total in zip(labels, amounts.sum(axis=1), strict=True)]
    y = names_axis("document")
    colour = alt.Color("feature:N", scale=alt.Scale(domain=list(names)), legend=alt.Legend(title=None))
    x, tooltip = alt.X("amount:Q", title=unit), ["feature:N", alt.Tooltip("amount:Q", format="+.4f")]
    bars = chart_of(rows).mark_bar(height={"band": 0.7}).encode(x=x, y=y, color=colour, tooltip=tooltip)
    points = chart_of(sums).mark_tick(style="interval", thickness=2.5).encode(
        x="sum:Q", y=y, tooltip=[alt.Tooltip("sum:Q", format="+.4f")]
    )  # fmt: skip
    zero = chart_of([{"sum": 0}]).mark_rule(style="zero").encode(x="sum:Q")
    return themed(alt.layer(bars, zero, points).properties(height=DOCUMENT_ROW * len(labels), title=title))


def partial_dependence_chart(dependence: PartialDependence) -> Chart:
    """Return the mean score by the value of the feature, and a thin line for each document."""
    is_number = not any(isinstance(value, str) for value in dependence.grid)
    field = f"value:{'Q' if is_number else 'N'}"
    rows = [{"value": value, "score": score} for value, score in zip(dependence.grid, dependence.means, strict=True)]
    x = alt.X(field, title=dependence.feature, sort=None)
    if is_number:
        x = x.scale(zero=False)
    y = alt.Y("score:Q", title="score", scale=alt.Scale(zero=False))
    mean = chart_of(rows).mark_line(point=len(rows) < 60, strokeWidth=2.5).encode(
        x=x, y=y, tooltip=[field, alt.Tooltip("score:Q", format=".4f", title="mean score")]
    )  # fmt: skip
    if not len(dependence.curves):
        return themed(mean)
    curves = [
        {"value": value, "score": score, "row": int(row)}
        for row, curve in zip(dependence.rows, dependence.curves, strict=True)
        for value, score in zip(dependence.grid, curve, strict=True)
    ]
    lines = chart_of(curves).mark_line(style="zero", opacity=0.45).encode(x=x, y=y, detail="row:N", tooltip=["row:N"])
    return themed(alt.layer(lines, mean).properties(title=f"The mean, and {len(dependence.curves)} documents"))
