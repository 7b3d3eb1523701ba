"""Charts as they stand in a report: single views that take the width there is, with captions of their own."""

from __future__ import annotations

from typing import Any

from podium.reports.charts import Chart
from podium.reports.page.contents import Figure

LEFT_OUT = ("$schema", "config", "width", "title", "resolve", "autosize")


def figures_of(chart: Chart, caption: str = "") -> tuple[Figure, ...]:
    """A chart of any number of views, as one figure for each; what stood in titles becomes captions.

    Args:
        chart: by one of `podium.reports`.
        caption: of a single view, or before the views' own titles; by default the chart's title.

    Example:
        >>> from podium.reports.training_charts import history_chart
        >>> from podium.reports.page.figures import figures_of
        >>> [figure.caption for figure in figures_of(history_chart({"valid/ap": [0.4, 0.6]}, best_iteration=1))]
        ['valid/ap 0.6000 after round 2 of 2']

    """
    spec = chart.to_dict(validate=False)  # charts of Podium's own, which the tests validate
    caption = caption or _title(spec)
    views = _views(spec)
    if len(views) == 1:
        return (Figure(caption or _title(views[0]), _plain(views[0])),)
    titles = [_title(view) or _vertical_title(view) for view in views]
    return tuple(
        Figure(": ".join(text for text in (caption, title) if text), _plain(view))
        for view, title in zip(views, titles, strict=True)
    )


def _views(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """The single views of a chart, from the top and from the left."""
    for kind in ("hconcat", "vconcat", "concat"):
        if kind in spec:
            return [view for part in spec[kind] for view in _views(part)]
    return [spec]


def _plain(view: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in view.items() if name not in LEFT_OUT}
    if "layer" in kept:
        kept["layer"] = [layer for layer in kept["layer"] if not _is_text(layer)]
    return kept


def _is_text(layer: dict[str, Any]) -> bool:
    """Words beside a chart have no room on a phone; a table has them."""
    mark = layer.get("mark", {})
    return (mark.get("type") if isinstance(mark, dict) else mark) == "text"


def _title(spec: dict[str, Any]) -> str:
    title = spec.get("title", "")
    if not isinstance(title, dict):
        return str(title)
    text, below = title.get("text", ""), title.get("subtitle")
    return f"{text}; {below}" if below else str(text)


def _vertical_title(view: dict[str, Any]) -> str:
    """What the vertical axis says, of a view without a title."""
    for layer in view.get("layer", [view]):
        title = layer.get("encoding", {}).get("y", {}).get("title")
        if title:
            return str(title)
    return ""
