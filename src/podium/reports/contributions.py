"""What features add to a score, or to the gap between two: signed bars that add up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from podium.core.validation import require_whole
from podium.reports.charts import Chart, chart_of, import_altair, themed

if TYPE_CHECKING:
    from podium.explain import DocumentExplanation, PairExplanation

ROW = 24  # pixels from one bar to the next


def document_chart(found: DocumentExplanation, top: int = 12) -> Chart:
    """Bars one after the other, from the base to the score.

    Example:
        >>> from podium.explain import DocumentExplanation
        >>> from podium.reports.contributions import document_chart
        >>> found = DocumentExplanation(
        ...     ["feature", "value", "contribution"], [["bm25", 3.0, 0.5], ["age", None, -0.2]], "D1", 1.0, 1.3)
        >>> [row["to"] for row in document_chart(found).to_dict()["layer"][0]["data"]["values"]]
        [1.5, 1.3]

    """
    labels = [f"{name} = {shown_number(value)}" for name, value, _ in found.rows]
    rows = _cut(labels, [row[2] for row in found.rows], top)
    alt = import_altair()
    title = alt.TitleParams(f"{found.document}: score {found.score:.4g}", subtitle=f"from the base, {found.base:.4g}")
    return _bars(rows, "score", found.base, ("raises the score", "lowers it"), title)


def pair_chart(found: PairExplanation, top: int = 12) -> Chart:
    """The differences of two documents one after the other, from no gap to the gap of their scores.

    Example:
        >>> from podium.explain import PairExplanation
        >>> from podium.reports.contributions import pair_chart
        >>> columns = ["feature", "value of A", "value of B", "adds to A", "adds to B", "difference"]
        >>> found = PairExplanation(columns, [["bm25", 3.0, 1.0, 0.5, 0.1, 0.4]], "A", "B", 0.5, 0.1)
        >>> pair_chart(found).to_dict()["title"]["text"]
        'Why A is above B: 0.5 and 0.1'

    """
    labels = [f"{row[0]}: {shown_number(row[1])}, {shown_number(row[2])}" for row in found.rows]
    rows = _cut(labels, [row[5] for row in found.rows], top)
    alt, place = import_altair(), "above" if found.gap > 0 else "below" if found.gap < 0 else "level with"
    text = f"Why {found.a} is {place} {found.b}: {found.score_a:.4g} and {found.score_b:.4g}"
    title = alt.TitleParams(text, subtitle=f"values of {found.a}, {found.b}; the bars lead to the gap, {found.gap:.4g}")
    return _bars(rows, f"score of {found.a} − score of {found.b}", 0.0, (f"for {found.a}", f"for {found.b}"), title)


def shown_number(value: Any) -> str:
    """A value of a feature, shortly."""
    if value is None:
        return "missing"
    return f"{value:.4g}" if isinstance(value, int | float) else str(value)


def _cut(labels: Sequence[str], amounts: Sequence[float], top: int) -> list[tuple[str, float]]:
    """The first bars, and one for all others together, so that nothing is left out of the sum."""
    require_whole("top", top, 1)
    rows = list(zip(labels[:top], amounts[:top], strict=True))
    if len(amounts) > top:
        rows.append((f"{len(amounts) - top} others", sum(amounts[top:])))
    return rows


def _bars(rows: Sequence[tuple[str, float]], unit: str, start: float, sides: tuple[str, str], title: Any) -> Chart:
    alt = import_altair()
    bars, place = [], start
    for label, amount in rows:
        side = sides[0] if amount >= 0 else sides[1]
        bars.append({"feature": label, "from": place, "to": place + amount, "amount": amount, "side": side,
                     "end": max(place, place + amount)})  # fmt: skip
        place += amount
    y = alt.Y("feature:N", sort=None, title=None, axis=alt.Axis(tickSize=0, domain=False))
    x = alt.X("from:Q", title=unit, scale=alt.Scale(zero=False))
    colour = alt.Color("side:N", scale=alt.Scale(domain=list(sides)), legend=alt.Legend(title=None, orient="top"))
    tooltip = ["feature:N", alt.Tooltip("amount:Q", format="+.4f", title="adds")]
    drawn = chart_of(bars).mark_bar(height={"band": 0.65}).encode(x=x, x2="to:Q", y=y, color=colour, tooltip=tooltip)
    words = chart_of(bars).mark_text(style="words", align="left", dx=5).encode(
        x=alt.X("end:Q", title=unit), y=y, text=alt.Text("amount:Q", format="+.3g")
    )  # fmt: skip
    zero = chart_of([{"start": start}]).mark_rule(style="zero").encode(x="start:Q")
    return themed(alt.layer(drawn, words, zero).properties(height=ROW * len(bars), title=title))
