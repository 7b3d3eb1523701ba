"""What stands in a report, as plain data: sections made of a few kinds of parts, which the template sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from podium.evaluation.tables import Table


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
    """A table; the first column names its rows.

    Attributes:
        caption: what it shows.
        table: the numbers.
        folded: whether it is shown only when it is asked for.

    """

    kind: ClassVar[str] = "numbers"
    caption: str
    table: Table
    folded: bool = False


@dataclass(frozen=True)
class Figure:
    """A chart.

    Attributes:
        caption: what it shows.
        spec: one view of Vega-Lite, without a theme, a title and a width.

    """

    caption: str
    spec: dict[str, Any]


@dataclass(frozen=True)
class Figures:
    """Charts beside each other, as many as there is room for."""

    kind: ClassVar[str] = "figures"
    figures: tuple[Figure, ...]


@dataclass(frozen=True)
class Reason:
    """A feature that sets a document apart from the others of its list.

    Attributes:
        feature: its name.
        value: as people know it.
        amount: its contribution to the score, against the mean of the documents listed.

    """

    feature: str
    value: str
    amount: float


@dataclass(frozen=True)
class ListedDocument:
    """A line of a ranked list.

    Attributes:
        rank: from 1.
        name: its id, or the number of its row.
        label: as people read it, empty for none.
        share: of the highest label of the data, from 0 to 1, for a bar.
        score: of the model; None where it was not ranked.
        change: by how many ranks it is higher than in the other system's list; None without one.
        reasons: the features that count most.

    """

    rank: int
    name: str
    label: str
    share: float
    score: float | None
    change: int | None
    reasons: tuple[Reason, ...] = ()


@dataclass(frozen=True)
class ListedQuery:
    """A query with its ranked list.

    Attributes:
        number: of the query in the data, from 0.
        name: its id.
        group: why it is shown: among the worst, the best, the most changed.
        value: what it was chosen by, as text; empty without labels.
        values: what was measured, by system: texts.
        documents: from the top.
        n_documents: of the whole query.
        arrows: its λ by round, as the script of the page draws them; None where there are none.

    """

    number: int
    name: str
    group: str
    value: str
    values: tuple[tuple[str, str], ...]
    documents: tuple[ListedDocument, ...]
    n_documents: int
    arrows: dict[str, Any] | None = None


@dataclass(frozen=True)
class Queries:
    """Queries with their lists, of which the page shows one at a time.

    Attributes:
        queries: by group.
        measure: by which they were chosen, or None.
        other: the system with which ranks are compared, or None.
        arrows_missing: why there are no arrows of λ, or None.

    """

    kind: ClassVar[str] = "queries"
    queries: tuple[ListedQuery, ...]
    measure: str | None
    other: str | None
    arrows_missing: str | None

    @property
    def groups(self) -> dict[str, list[ListedQuery]]:
        """The queries by the group they are in."""
        found: dict[str, list[ListedQuery]] = {}
        for query in self.queries:
            found.setdefault(query.group, []).append(query)
        return found


Part = Words | Missing | Warned | Numbers | Figures | Queries


@dataclass(frozen=True)
class Section:
    """A heading with what stands under it.

    Attributes:
        key: its name in addresses within the page.
        title: the heading.
        parts: from the top.

    """

    key: str
    title: str
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Report:
    """A whole report.

    Attributes:
        title: of the page.
        summary: what it is about, in one line.
        headline: the most important numbers, as name and text.
        warnings: what came up while the report was made.
        sections: from the top.

    """

    title: str
    summary: str
    headline: tuple[tuple[str, str], ...]
    warnings: tuple[str, ...]
    sections: tuple[Section, ...]
