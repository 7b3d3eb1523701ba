"""The contents of a report: sections with figures, numbers, words and queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from podium.errors import PodiumError
from podium.evaluation.tables import Table
from podium.reports.charts import Chart


@dataclass(frozen=True)
class Words:
    """A paragraph."""

    kind: ClassVar[str] = "words"
    text: str


@dataclass(frozen=True)
class Missing:
    """Why something is not there, and what to do to get it."""

    kind: ClassVar[str] = "missing"
    text: str


@dataclass(frozen=True)
class Warned:
    """What looks like a mistake, a line for each."""

    kind: ClassVar[str] = "warned"
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Numbers:
    """A table; the first column names its rows."""

    kind: ClassVar[str] = "numbers"
    caption: str
    table: Table
    folded: bool = False  # whether it is shown only on request


@dataclass(frozen=True)
class Figure:
    """A chart."""

    caption: str
    spec: dict[str, Any]  # one view of Vega-Lite, without theme, title and width


@dataclass(frozen=True)
class Figures:
    """Charts in a row, as many as fit."""

    kind: ClassVar[str] = "figures"
    figures: tuple[Figure, ...]


@dataclass(frozen=True)
class Reason:
    """A feature that sets a document apart from the others of its list."""

    feature: str
    value: str  # as people read it
    amount: float  # the contribution to the score, minus the mean of the documents listed


@dataclass(frozen=True)
class ListedDocument:
    """A line of a ranked list."""

    rank: int  # from 1
    name: str  # the id, or the number of the row
    label: str  # as people read it, empty for none
    share: float  # of the highest label of the data, from 0 to 1, for a bar
    score: float | None  # None if the model did not rank it
    change: int | None  # ranks that it is higher than in the other system's list; None without one
    reasons: tuple[Reason, ...] = ()  # the features that count most


@dataclass(frozen=True)
class ListedQuery:
    """A query with its ranked list."""

    number: int  # in the data, from 0
    name: str
    group: str  # why it is shown: among the worst, the best, the most changed
    value: str  # the measure that it was chosen by, as text; empty without labels
    values: tuple[tuple[str, str], ...]  # measures by system, as text
    documents: tuple[ListedDocument, ...]  # the first ones
    n_documents: int  # of the whole query
    arrows: dict[str, Any] | None = None  # λ by round, for the script of the page


@dataclass(frozen=True)
class Queries:
    """Queries with their lists, of which the page shows one at a time."""

    kind: ClassVar[str] = "queries"
    queries: tuple[ListedQuery, ...]
    measure: str | None  # by which they were chosen
    other: str | None  # the system to compare ranks with
    arrows_missing: str | None  # why there are no arrows of λ

    @property
    def groups(self) -> dict[str, list[ListedQuery]]:
        """The queries by the group they are in."""
        groups: dict[str, list[ListedQuery]] = {}
        for query in self.queries:
            groups.setdefault(query.group, []).append(query)
        return groups


Part = Words | Missing | Warned | Numbers | Figures | Queries


@dataclass(frozen=True)
class Section:
    """A heading and its parts."""

    key: str  # the name in addresses within the page
    title: str
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Report:
    """A whole report."""

    title: str
    summary: str  # the subject in one line
    headline: tuple[tuple[str, str], ...]  # the most important numbers, as name and text
    warnings: tuple[str, ...]  # of making the report
    sections: tuple[Section, ...]


def sentence_of(error: PodiumError) -> str:
    """Return an error as a sentence of a report."""
    text = str(error)
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


LEFT_OUT = ("$schema", "config", "width", "title", "resolve", "autosize")


def figures_of(chart: Chart, caption: str = "") -> tuple[Figure, ...]:
    """Return the views of a chart as figures; titles become captions.

    Args:
        chart: by one of `podium.reports`.
        caption: the caption of a single view, or the start of several captions; by default the chart's title.

    """
    spec = chart.to_dict(validate=False)  # Podium's charts, which the tests validate
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
    """Return the single views of a chart, from the top and from the left."""
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
    """Return whether a layer is text: it has no room on a phone, and a table has it."""
    mark = layer.get("mark", {})
    return (mark.get("type") if isinstance(mark, dict) else mark) == "text"


def _title(spec: dict[str, Any]) -> str:
    title = spec.get("title", "")
    if not isinstance(title, dict):
        return str(title)
    text, below = title.get("text", ""), title.get("subtitle")
    return f"{text}; {below}" if below else str(text)


def _vertical_title(view: dict[str, Any]) -> str:
    """Return what the vertical axis says, of a view without a title."""
    for layer in view.get("layer", [view]):
        title = layer.get("encoding", {}).get("y", {}).get("title")
        if title:
            return str(title)
    return ""
