"""CSV and TSV with a header line; the names of the columns say what they are."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.core.threads import map_threads
from podium.data.encoding import CategoriesSeen, Encoding, codes_of_categories, names_of_categories
from podium.data.frames import assign_roles
from podium.data.io.text.blocks import Block, Source, source_name, text_blocks
from podium.data.io.text.delimited_parser import (
    FIRST_EXTRA,
    FIRST_TEXT,
    QID,
    SKIPPED,
    Fields,
    parse_delimited,
    scan_lines,
)
from podium.data.io.text.outcome import VALUE, Outcome
from podium.data.io.text.parsing import (
    OBJECT_BYTES,
    ROW_BYTES,
    Counted,
    Merges,
    decoded,
    drain,
    number_at,
    parse_block,
    raise_problem,
    runs_of,
)
from podium.data.io.text.queries import Run, query_ids
from podium.data.io.text.reader import Facts, TextReader
from podium.data.memory import Budget
from podium.errors import FileFormatError


@dataclass(frozen=True)
class _Layout:
    """Where each column of the file goes."""

    delimiter: str
    names: list[str]
    features: list[str]
    extras: list[tuple[str, str]]  # (argument of RankingData, or label source after "labels.", column)
    document_ids: str | None
    categorical: list[str]
    codes: NDArray[np.int64]

    @property
    def texts(self) -> list[str]:
        """The columns that are kept as text."""
        return ([] if self.document_ids is None else [self.document_ids]) + self.categorical


@dataclass
class _Part:
    """What one block holds, apart from its numbers."""

    runs: list[Run]
    texts: list[list[str]]  # of each text column
    overflows: int


class DelimitedReader(TextReader):
    """Reads CSV or TSV; all files must have one and the same header.

    Args:
        delimiter: between fields.
        columns: the roles of columns by name, the feature columns, and those that hold categories.
        *arguments: those of `TextReader`.
        **others: the same.

    """

    scan = staticmethod(scan_lines)

    def __init__(
        self,
        delimiter: str,
        columns: tuple[dict[str, Any], Sequence[str] | None, Sequence[str]],
        *arguments: Any,
        **others: Any,
    ) -> None:
        super().__init__(*arguments, **others)
        self.delimiter, self.columns = delimiter, columns
        self.header: list[str] | None = None
        self.categories: dict[str, set[str]] = {}
        self.seen = CategoriesSeen()

    def open_blocks(self, source: Source, advance: Callable[[float], None], budget: Budget) -> Iterator[Block]:
        """The blocks of a file behind its header."""
        names, rest = _split_header(source, text_blocks(source, advance, budget), self.delimiter)
        self.header = self.header or names
        if names != self.header:
            first = source_name(self.sources[0])
            raise FileFormatError(source_name(source), f"has another header than {first}", line=1)
        return rest

    @cached_property
    def layout(self) -> _Layout:
        """Where each column goes, once the first header is read."""
        assert self.header is not None
        return _layout(source_name(self.sources[0]), self.delimiter, self.header, *self.columns)

    def look(self, items: list[Counted]) -> None:
        """Parse a group for the facts alone."""
        _, _, _, texts = self._parse(items)
        for name in self.layout.categorical:
            self.categories.setdefault(name, set()).update(filter(None, texts[name]))

    def facts(self) -> Facts:
        """What all groups so far tell."""
        categories = {name: names_of_categories(values) for name, values in self.categories.items()}
        return Facts(self.queries.are_integers, categories=categories)

    def feature_names(self) -> list[str]:
        """The feature columns."""
        return self.layout.features

    def finish(self) -> None:
        """Warn of what all rows together have lost."""
        super().finish()
        self.seen.warn()

    def arguments(self, items: list[Counted]) -> dict[str, Any]:
        """The arguments of `RankingData` for a group."""
        layout = self.layout
        features, extras, runs, texts = self._parse(items)
        facts = self.known or self.facts()
        arguments: dict[str, Any] = {
            "features": features,
            "feature_names": layout.features,
            "qid": query_ids(runs, len(features), facts.has_integer_ids),
            "labels": {},
        }
        if layout.document_ids is not None:
            arguments["document_ids"] = np.array(texts[layout.document_ids], object)
        if layout.categorical:
            arguments["encoding"] = self._encode(features, texts)
        for k, (argument, _) in enumerate(layout.extras):
            role, _, label_source = argument.partition(".")
            if label_source:
                arguments["labels"][label_source] = extras[:, k]
            else:
                arguments[role] = extras[:, k]
        return arguments

    def _parse(
        self, items: list[Counted]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], list[Run], dict[str, list[str]]]:
        """The features and the other numbers of a group, its runs, and its columns of text; totals are kept."""
        layout, n_rows = self.layout, sum(item.rows for item in items)
        self.budget.hold("data", n_rows * (ROW_BYTES + 4 * (len(layout.features) + len(layout.extras))), self.names)
        features = np.empty((n_rows, len(layout.features)), np.float32)
        extras = np.empty((n_rows, len(layout.extras)), np.float32)

        def parse(item: Counted) -> _Part:
            part = _parse(item, features, extras, layout, self.merges)
            objects = len(part.runs) + (item.rows if layout.document_ids is not None else 0)
            self.budget.hold("data", OBJECT_BYTES * objects + 8 * item.rows * len(layout.categorical), item.block.file)
            return part

        parts = list(map_threads(parse, drain(items), self.options.n_threads))
        runs = [run for part in parts for run in part.runs]
        self.hear(runs, n_rows, sum(part.overflows for part in parts))
        texts = {name: [text for part in parts for text in part.texts[k]] for k, name in enumerate(layout.texts)}
        return features, extras, runs, texts

    def _encode(self, features: NDArray[np.float32], texts: dict[str, list[str]]) -> Encoding:
        """Put the numbers of categories into the features; an empty field is a missing value."""
        categories: dict[int, tuple[str, ...]] = {}
        for name in self.layout.categorical:
            column, values = self.layout.features.index(name), [text or None for text in texts[name]]
            trained = None
            if self.like is not None:
                trained = self.like.encoding.categories.get(self.like.feature_of(column, name))
            if trained is not None and self.known is None:
                self.seen.look(repr(name), values, trained)
            names = self.known.categories[name] if self.known is not None else trained
            categories[column] = names_of_categories(values) if names is None else names
            features[:, column] = codes_of_categories(values, categories[column])
        return Encoding(categories)


def _split_header(source: Source, blocks: Iterator[Block], delimiter: str) -> tuple[list[str], Iterator[Block]]:
    """The names in the first line, and the blocks from the second line on."""
    first = next(blocks, None)
    if first is None:
        raise FileFormatError(source_name(source), "is empty; expected a header line with column names")
    end = first.text.tobytes().index(b"\n") + 1
    line = decoded(first, 0, end, "header").rstrip("\r\n")
    names = [name.strip() for name in _fields(line, delimiter)]
    if not any(names):
        raise FileFormatError(source_name(source), "expected a header line with column names", line=1)
    if all(_is_number(name) for name in names):
        raise FileFormatError(
            source_name(source), f"expected a header line with column names, but found {line[:40]!r}", line=1
        )

    def rest() -> Iterator[Block]:
        for block in chain([Block(first.file, first.text[end:])], blocks):
            block.first_line = 2
            yield block

    return names, rest()


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return name.lower() not in ("nan", "inf", "infinity")


def _layout(
    file: str,
    delimiter: str,
    names: list[str],
    roles: dict[str, Any],
    feature_names: Sequence[str] | None,
    categorical: Sequence[str],
) -> _Layout:
    try:
        roles, features = assign_roles(names, roles, feature_names)
    except ValueError as error:
        raise FileFormatError(file, str(error), line=1) from None
    numeric = ("relevance", "document_weights", "query_weights", "positions")
    extras = [(role, roles[role]) for role in numeric if roles[role] is not None]
    extras += [(f"labels.{source}", column) for source, column in roles["labels"].items()]
    used = [*features, *(column for _, column in extras), roles["qid"], roles["document_ids"]]
    twice = next((name for k, name in enumerate(used) if name is not None and name in used[:k]), None)
    if twice is not None:
        raise FileFormatError(file, f"the column {twice!r} is asked to serve for two things", line=1)
    codes = np.full(len(names), SKIPPED, np.int64)
    for k, name in enumerate(features):
        codes[names.index(name)] = k
    for k, (_, name) in enumerate(extras):
        codes[names.index(name)] = FIRST_EXTRA - k
    codes[names.index(roles["qid"])] = QID
    unknown = next((name for name in categorical if name not in features), None)
    if unknown is not None:
        raise FileFormatError(file, f"categorical: there is no feature {unknown!r}", line=1)
    layout = _Layout(delimiter, names, features, extras, roles["document_ids"], list(dict.fromkeys(categorical)), codes)
    for k, name in enumerate(layout.texts):
        codes[names.index(name)] = FIRST_TEXT - k
    return layout


def _parse(
    item: Counted, features: NDArray[np.float32], extras: NDArray[np.float32], layout: _Layout, merges: Merges
) -> _Part:
    block, rows = item.block, slice(item.first_row, item.first_row + item.rows)
    texts = np.zeros((item.rows, len(layout.texts), 2), np.int64)
    fields = Fields(layout.codes, features[rows], extras[rows], texts)
    delimiter = ord(layout.delimiter)
    outcome, notes = parse_block(item, lambda *reports: parse_delimited(block.text, delimiter, fields, *reports))
    if outcome.problem:
        _raise_problem(block, outcome, layout)
    merges.look(notes.large)
    n_features = len(layout.features)
    for row, slot, start, end in notes.uncertain.tolist():
        number = number_at(block, start, end)
        if slot < n_features:
            fields.features[row, slot] = number
        else:
            fields.extras[row, slot - n_features] = number

    def text_of(start: int, end: int) -> str:
        return _unquoted(decoded(block, start, end, "text"))

    same: dict[str, str] = {}  # one object for each category
    columns = [[text_of(*bounds) for bounds in texts[:, k].tolist()] for k in range(texts.shape[1])]
    columns = [[same.setdefault(text, text) for text in column] for column in columns]
    return _Part(runs_of(item, notes.runs, text_of), columns, outcome.overflows)


def _raise_problem(block: Block, outcome: Outcome, layout: _Layout) -> None:
    """Raise what is wrong, with the name of the column where a number is none."""
    stops = layout.delimiter.encode() + b"\r\n"
    n_fields = _count_fields(block, outcome.at, layout.delimiter)
    try:
        raise_problem(block, outcome, stops=stops, columns=len(layout.names), fields=n_fields)
    except FileFormatError as error:
        if outcome.problem != VALUE:
            raise
        name = _column_at(block, outcome.at, layout)
        problem = f"{error.problem} in {name!r}; a column of categories is named in categorical=…"
        raise FileFormatError(error.path, problem, line=error.line, column=error.column) from None


def _column_at(block: Block, at: int, layout: _Layout) -> str:
    """The name of the column that a byte stands in."""
    text = block.text.tobytes()
    line = text[text.rfind(b"\n", 0, at) + 1 : at].decode("utf-8", errors="replace")
    return layout.names[min(len(_fields(line + "x", layout.delimiter)), len(layout.names)) - 1]


def _count_fields(block: Block, at: int, delimiter: str) -> int:
    """The number of fields on the line of a byte."""
    text = block.text.tobytes()
    line = text[text.rfind(b"\n", 0, at) + 1 : text.index(b"\n", at)].decode("utf-8", errors="replace")
    return len(_fields(line.rstrip("\r"), delimiter))


def _fields(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:  # carriage returns inside the line, or a field of over 128 KiB
        return line.split(delimiter)


def _unquoted(field: str) -> str:
    return field[1:-1].replace('""', '"') if field.startswith('"') else field
