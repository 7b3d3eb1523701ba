"""The parts of a report: sections with paragraphs, tables, charts and queries."""

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
    """A paragraph that says why something is missing, and how to get it."""

    kind: ClassVar[str] = "missing"
    text: str


@dataclass(frozen=True)
class Warned:
    """A list of likely mistakes."""

    kind: ClassVar[str] = "warned"
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Numbers:
    """A table whose first column names the rows."""

    kind: ClassVar[str] = "numbers"
    caption: str
    table: Table
    folded: bool = False  # whether it is closed until the reader opens it


@dataclass(frozen=True)
class Figure:
    """A chart."""

    caption: str
    spec: dict[str, Any]  # one view of Vega-Lite, without theme, title and width


@dataclass(frozen=True)
class Figures:
    """Charts, as many in a row as fit."""

    kind: ClassVar[str] = "figures"
    figures: tuple[Figure, ...]


@dataclass(frozen=True)
class Reason:
    """A feature that distinguishes a document from the others of its list."""

    feature: str
    value: str
    amount: float  # the contribution to the score, minus the mean over the listed documents


@dataclass(frozen=True)
class ListedDocument:
    """A document of a ranked list."""

    rank: int  # from 1
    name: str  # the id or the row number
    label: str  # empty without a label
    share: float  # the label as a share of the highest label, 0 to 1, for a bar
    score: float | None  # None if the model did not rank it
    change: int | None  # by how many ranks it is higher than in the other system's list; None without another system
    reasons: tuple[Reason, ...] = ()  # the features with the largest contributions


@dataclass(frozen=True)
class ListedQuery:
    """A query with its ranked list."""

    number: int  # in the data, from 0
    name: str
    group: str  # why it is shown: among the worst, the best or the most changed
    value: str  # the value of the measure that queries are chosen by; empty without labels
    values: tuple[tuple[str, str], ...]  # the values of the measures by system
    documents: tuple[ListedDocument, ...]  # the top of the list
    n_documents: int  # the length of the whole list
    arrows: dict[str, Any] | None = None  # λ by round, for the page's script


@dataclass(frozen=True)
class Queries:
    """Queries with their lists. The page shows one query at a time."""

    kind: ClassVar[str] = "queries"
    queries: tuple[ListedQuery, ...]
    measure: str | None  # the measure that queries are chosen by
    other: str | None  # the system to compare ranks with
    arrows_missing: str | None  # why λ cannot be shown

    @property
    def groups(self) -> dict[str, list[ListedQuery]]:
        """The queries by group."""
        groups: dict[str, list[ListedQuery]] = {}
        for query in self.queries:
            groups.setdefault(query.group, []).append(query)
        return groups


Part = Words | Missing | Warned | Numbers | Figures | Queries


@dataclass(frozen=True)
class Section:
    """A heading and its parts."""

    key: str  # the anchor within the page
    title: str
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Report:
    """A whole report."""

    title: str
    summary: str  # one line
    headline: tuple[tuple[str, str], ...]  # names and values of the main measures
    warnings: tuple[str, ...]  # issued while the report was made
    sections: tuple[Section, ...]


def sentence_of(error: PodiumError) -> str:
    """Return the message of an error as a sentence."""
    text = str(error)
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


DROPPED = ("$schema", "config", "width", "title", "resolve", "autosize")


def figures_of(chart: Chart, caption: str = "") -> tuple[Figure, ...]:
    """Return the views of a chart as figures, with titles as captions.

    Args:
        chart: a chart of `podium.reports`.
        caption: the caption of a single view, or the start of each caption; by default the chart's title.

    """
    spec = chart.to_dict(validate=False)  # validation is slow, and the tests validate these charts
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
    """Return the single views of a chart, row by row."""
    for kind in ("hconcat", "vconcat", "concat"):
        if kind in spec:
            return [view for part in spec[kind] for view in _views(part)]
    return [spec]


def _plain(view: dict[str, Any]) -> dict[str, Any]:
    plain = {name: value for name, value in view.items() if name not in DROPPED}
    if "layer" in plain:
        plain["layer"] = [layer for layer in plain["layer"] if not _is_text(layer)]
    return plain


def _is_text(layer: dict[str, Any]) -> bool:
    """Return whether a layer is text, which does not fit on a phone and is also in a table."""
    mark = layer.get("mark", {})
    return (mark.get("type") if isinstance(mark, dict) else mark) == "text"


def _title(spec: dict[str, Any]) -> str:
    title = spec.get("title", "")
    if not isinstance(title, dict):
        return str(title)
    text, below = title.get("text", ""), title.get("subtitle")
    return f"{text}; {below}" if below else str(text)


def _vertical_title(view: dict[str, Any]) -> str:
    """Return the title of the vertical axis, for a view without a title."""
    for layer in view.get("layer", [view]):
        title = layer.get("encoding", {}).get("y", {}).get("title")
        if title:
            return str(title)
    return ""
