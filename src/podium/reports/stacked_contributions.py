"""What features add to the documents of a query: a row of stacked bars for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from podium.core.validation import require_whole
from podium.reports.charts import Chart, chart_of, import_altair, themed

if TYPE_CHECKING:
    from podium.explain import ExplanationComparison, QueryExplanation

ROW = 20  # pixels from one document to the next
SERIES = 5  # features with a colour of their own; the sixth is for all others
OTHERS = "others"


def query_chart(found: QueryExplanation, top: int = 20) -> Chart:
    """The first documents of a query: contributions against their means over the query.

    Example:
        >>> from podium.explain import QueryExplanation
        >>> from podium.reports.stacked_contributions import query_chart
        >>> columns = ["rank", "document", "score", "bm25", "others"]
        >>> found = QueryExplanation(columns, [[1, "A", 3.0, 2.0, 1.0], [2, "B", 1.0, 0.0, 1.0]], "Q", 0.0)
        >>> [row["amount"] for row in query_chart(found).to_dict()["layer"][0]["data"]["values"]]
        [1.0, 0.0, -1.0, 0.0]

    """
    require_whole("top", top, 1)
    first = found.columns.index("score") + 1
    names, amounts = found.columns[first:], np.array([row[first:] for row in found.rows])
    amounts = amounts - amounts.mean(axis=0)
    if len(names) > SERIES + 1:  # more features than colours: the rest joins the others
        rest = amounts[:, SERIES:].sum(axis=1)
        names, amounts = [*names[:SERIES], OTHERS], np.column_stack([amounts[:, :SERIES], rest])
    labels = [f"{row[0]}. {row[1]}" for row in found.rows[:top]]
    text = f"Query {found.query}: what the order comes from"
    title = import_altair().TitleParams(text, subtitle="documents by rank; the bars of each add up to its mark")
    return _stacked(labels, dict(zip(names, amounts[:top].T, strict=True)), "score, less the query's mean", title)


def comparison_chart(found: ExplanationComparison, top: int = 20) -> Chart:
    """The documents of a query that moved most between two models, and the features through which they did."""
    require_whole("top", top, 1)
    moved = found.ranks[:, 0] - found.ranks[:, 1]
    chosen = np.sort(np.argsort(-np.abs(moved), kind="stable")[:top])
    differences = found.differences
    largest = np.argsort(-np.abs(differences).mean(axis=0), kind="stable")
    amounts = {found.features[k]: differences[chosen, k] for k in largest[:SERIES]}
    if len(largest) > SERIES:
        amounts[OTHERS] = differences[np.ix_(chosen, largest[SERIES:])].sum(axis=1)
    labels = [f"{found.documents[k]}: {found.ranks[k, 0]} → {found.ranks[k, 1]}" for k in chosen]
    first, second = found.names
    text = f"Query {found.query}: what moved from {first} to {second}"
    title = import_altair().TitleParams(text, subtitle=f"document, rank by {first} → rank by {second}")
    return _stacked(labels, amounts, "change of the score, in deviations of the query's scores", title)


def _stacked(labels: Sequence[str], amounts: Mapping[str, NDArray[np.float64]], unit: str, title: Any) -> Chart:
    """Bars to both sides of 0, with a point where they add up to."""
    alt = import_altair()
    rows = [
        {"document": label, "feature": name, "amount": float(amounts[name][k])}
        for k, label in enumerate(labels)
        for name in amounts
    ]
    sums = [{"document": label, "sum": float(sum(a[k] for a in amounts.values()))} for k, label in enumerate(labels)]
    y = alt.Y("document:N", sort=None, title=None, axis=alt.Axis(tickSize=0, domain=False))
    colour = alt.Color("feature:N", scale=alt.Scale(domain=list(amounts)), legend=alt.Legend(title=None))
    x, tooltip = alt.X("amount:Q", title=unit), ["feature:N", alt.Tooltip("amount:Q", format="+.4f")]
    bars = chart_of(rows).mark_bar(height={"band": 0.7}).encode(x=x, y=y, color=colour, tooltip=tooltip)
    points = chart_of(sums).mark_tick(style="interval", thickness=2.5).encode(
        x="sum:Q", y=y, tooltip=[alt.Tooltip("sum:Q", format="+.4f")]
    )  # fmt: skip
    zero = chart_of([{"sum": 0}]).mark_rule(style="zero").encode(x="sum:Q")
    return themed(alt.layer(bars, zero, points).properties(height=ROW * len(labels), title=title))
