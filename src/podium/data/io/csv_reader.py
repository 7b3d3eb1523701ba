"""The reader of CSV and TSV with a header line: pyarrow parses the fields, and column names determine their roles.

pyarrow's errors do not say where the problem is. If it refuses a block, `check_lines` searches that block line by line.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from podium.core.array_types import Bytes, Float32s, Floats, Ints
from podium.core.threads import map_threads
from podium.data.columns import LARGEST_EXACT, starts_run
from podium.data.encoding import CategoriesSeen, Encoding, FeatureBuilder, names_of_categories
from podium.data.frames import assign_roles
from podium.data.io.letor_parser import EMPTY_QID, LONE_RETURN, NUL, PROBLEMS, VALUE
from podium.data.io.parquet import import_pyarrow
from podium.data.io.queries import QueryRun, query_ids
from podium.data.io.text_blocks import Block, Source, source_name
from podium.data.io.text_numbers import EXACT_FLOAT32, LINE_FEED, RETURN
from podium.data.io.text_reader import OBJECT_BYTES, Facts, TextReader, drain
from podium.data.memory import ROW_BYTES
from podium.errors import FileFormatError

if TYPE_CHECKING:
    from podium.data.io.reading import Columns

_WINDOW = 1 << 12  # bytes in which `CsvReader.scan` first looks for the end of a group
_BEYOND_FLOAT32 = 2**128 - 2**103  # rounds to infinity
_DIGITS = 18  # decimal digits that always fit into int64
MOST_COLUMNS = 1 << 20  # more names do not fit into a model file, and a longer header takes minutes to split


@dataclass(frozen=True)
class _Layout:
    delimiter: str
    names: list[str]
    features: list[str]
    extras: list[tuple[str, str]]  # (argument of RankingData, or label source after "labels.", column)
    qid: str
    document_ids: str | None
    categorical: list[str]

    @cached_property
    def texts(self) -> list[str]:
        """The columns to read as text, except the query ids."""
        return ([] if self.document_ids is None else [self.document_ids]) + self.categorical

    @cached_property
    def numbers(self) -> dict[str, tuple[int, bool]]:
        """The numeric columns: their index among features or extras, and whether they are features."""
        categorical = set(self.categorical)
        features = {name: (k, True) for k, name in enumerate(self.features) if name not in categorical}
        return features | {name: (k, False) for k, (_, name) in enumerate(self.extras)}


class CsvReader(TextReader):
    """Reads CSV or TSV files, which must all have the same header."""

    layout: _Layout  # known after the first header

    def __init__(self, delimiter: str, columns: Columns, *arguments: Any, **others: Any) -> None:
        super().__init__(*arguments, **others)
        import_pyarrow("CSV")
        self.delimiter, self.columns = delimiter, columns
        self.categories: dict[str, set[str]] = {}
        self.seen = CategoriesSeen()

    @staticmethod
    def scan(text: Bytes, most: int) -> tuple[int, int, int, int]:
        """Return the number of lines and of nonblank lines, 0 (no indices), and the end, at most after row `most`."""
        window = _WINDOW
        while True:
            starts, lines_of_rows = _lines(text[:window])
            if len(lines_of_rows) > most:
                line = int(lines_of_rows[most])
                return line, most, 0, int(starts[line])
            if window >= len(text):
                return len(starts), len(lines_of_rows), 0, len(text)
            window *= 4

    def open_blocks(self, source: Source, advance: Callable[[float], None]) -> Iterator[Block]:
        blocks, first_file = super().open_blocks(source, advance), source_name(self.sources[0])
        first = next(blocks, None)
        if first is None:
            raise FileFormatError(source_name(source), "is empty, but expected a header line with column names")
        end = first.text.tobytes().index(b"\n") + 1
        names = header_names(Block(first.file, first.text[:end]), self.delimiter)
        if not hasattr(self, "layout"):
            self.layout = _layout(first_file, self.delimiter, names, self.columns)
        elif names != self.layout.names:
            raise FileFormatError(source_name(source), f"must have the same header as {first_file}", line=1)
        for block in chain([Block(first.file, first.text[end:])], blocks):
            block.first_line = 2
            yield block

    def examine(self, blocks: list[Block]) -> None:
        _, _, _, texts = self._parse(blocks)
        for name in self.layout.categorical:
            self.categories.setdefault(name, set()).update(filter(None, texts[name]))

    def facts(self) -> Facts:
        categories = {name: names_of_categories(values) for name, values in self.categories.items()}
        return Facts(self.has_integer_ids, categories=categories)

    def feature_names(self) -> list[str]:
        return self.layout.features

    def finish(self) -> None:
        super().finish()
        self.seen.warn()

    def arguments(self, blocks: list[Block]) -> dict[str, Any]:
        layout = self.layout
        features, extras, runs, texts = self._parse(blocks)
        facts = self.earlier_facts or self.facts()
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

    def _parse(self, blocks: list[Block]) -> tuple[Float32s, Floats, list[QueryRun], dict[str, list[str]]]:
        """Return a group's features, its other numbers, its runs and its text columns; update the totals."""
        layout, n_rows = self.layout, sum(block.rows for block in blocks)
        self.budget.hold("data", n_rows * (ROW_BYTES + 4 * len(layout.features) + 8 * len(layout.extras)), self.names)
        features = np.empty((n_rows, len(layout.features)), np.float32)
        extras = np.empty((n_rows, len(layout.extras)))

        parse = partial(self._parse_block, features, extras)
        parts = list(map_threads(parse, drain(blocks), self.options.n_threads))
        runs = [run for of_block, _, _ in parts for run in of_block]
        self.add_group(runs, n_rows, sum(overflows for _, _, overflows in parts))
        texts = {name: [text for _, columns, _ in parts for text in columns[k]] for k, name in enumerate(layout.texts)}
        return features, extras, runs, texts

    def _parse_block(
        self, features: Float32s, extras: Floats, block: Block
    ) -> tuple[list[QueryRun], list[list[str]], int]:
        """Fill in the numbers of a block's rows; return its runs, its text columns and the number of overflows."""
        if not block.rows:
            return [], [[] for _ in self.layout.texts], 0
        from pyarrow import compute

        layout, rows = self.layout, slice(block.first_row, block.first_row + block.rows)
        check_bytes(block)
        check_quotes(block, layout)
        texts, numbers = [layout.qid, *layout.texts], list(layout.numbers)
        table = _read_fields(block, layout, texts, numbers)
        inexact: dict[str, Ints] = {}  # the rows whose numbers float64 may merge, by column
        for name, (place, is_feature) in layout.numbers.items():
            values, short = table.column(name).to_numpy(), (features if is_feature else extras)[rows, place]
            with np.errstate(over="ignore"):
                short[:] = values
            size = np.abs(values)
            is_large = (size >= EXACT_FLOAT32) & (size < LARGEST_EXACT)
            if is_feature and is_large.any():
                whole = np.unique(values[is_large].astype(np.int64))
                self.merges.add(np.column_stack([np.full(len(whole), place), whole]))
            if (size >= LARGEST_EXACT).any():
                inexact[name] = np.flatnonzero(size >= LARGEST_EXACT)
        overflows = self._examine_texts(block, inexact) if inexact else 0
        trimmed = (compute.utf8_trim(table.column(name), " ").combine_chunks() for name in texts)
        query, *columns = (column.dictionary_encode() for column in trimmed)
        # Equal values share one object, to save memory.
        values = [np.array(c.dictionary.to_pylist(), object)[c.indices.to_numpy()].tolist() for c in columns]
        if "" in query.dictionary.to_pylist() or (np.abs(extras[rows]) >= _BEYOND_FLOAT32).any():
            check_lines(block, layout)
        runs = _query_runs(block, query)
        n_objects = len(runs) + (block.rows if layout.document_ids is not None else 0)
        self.budget.hold("data", OBJECT_BYTES * n_objects + 8 * block.rows * len(layout.categorical), block.file)
        return runs, values, overflows

    def _examine_texts(self, block: Block, rows_of: dict[str, Ints]) -> int:
        """Record integer parts of numbers that float64 may merge, from their text; count overflows of float32."""
        overflows, table = 0, _read_fields(block, self.layout, list(rows_of), [])
        for name, rows in rows_of.items():
            place, is_feature = self.layout.numbers[name]
            texts = table.column(name).take(rows).to_pylist()
            finite = [text for text in texts if abs(float(text)) < _BEYOND_FLOAT32]
            overflows += sum("i" not in text.lower() for text in texts) - len(finite)  # "inf" is not an overflow
            numbers = {int(Decimal(text)) for text in finite}
            if is_feature and len({np.float32(number) for number in numbers}) < len(numbers):
                self.merges.features.add(place)
            elif is_feature:  # compare with other blocks, which may have equal leading digits
                digits = [n if abs(n) < 2**63 else int(str(n)[:_DIGITS]) for n in numbers]
                self.merges.add(np.column_stack([np.full(len(digits), place), np.array(digits, np.int64)]))
        return overflows

    def _encode(self, features: Float32s, texts: dict[str, list[str]]) -> Encoding:
        """Fill in the numbers of categories; an empty field is a missing value."""
        column_of = {name: column for column, name in enumerate(self.layout.features)}
        expected: dict[int, tuple[str, ...]] = {}
        for name in self.layout.categorical:
            if self.earlier_facts is not None:
                expected[column_of[name]] = self.earlier_facts.categories[name]
            elif self.like is not None:
                feature = self.like.feature_of(column_of[name], name)
                if feature in self.like.encoding.categories:
                    expected[column_of[name]] = self.like.encoding.categories[feature]
        builder = FeatureBuilder(features, Encoding(expected), self.seen)
        for name in self.layout.categorical:
            builder.set_categories(column_of[name], repr(name), [text or None for text in texts[name]])
        return Encoding(builder.categories)


def _lines(text: Bytes) -> tuple[Ints, Ints]:
    """Return the start of each complete line of the text, and the numbers of those that are not blank."""
    ends = np.flatnonzero(text == LINE_FEED)
    starts = np.concatenate([ends[:0], [0], ends + 1])[:-1]
    is_blank = (starts == ends) | ((starts + 1 == ends) & (text[starts] == RETURN))
    return starts, np.flatnonzero(~is_blank)


def _layout(file: str, delimiter: str, names: list[str], columns: Columns) -> _Layout:
    try:
        roles, features = assign_roles(names, columns.roles, columns.feature_names)
    except ValueError as error:
        raise FileFormatError(file, str(error), line=1) from None
    numeric = ("relevance", "document_weights", "query_weights", "positions")
    extras = [(role, roles[role]) for role in numeric if roles[role] is not None]
    extras += [(f"labels.{source}", column) for source, column in roles["labels"].items()]
    used: set[str | None] = set()
    for name in (*features, *(column for _, column in extras), roles["qid"], roles["document_ids"]):
        if name is not None and name in used:
            raise FileFormatError(file, f"the column {name!r} has two roles: name it only once", line=1)
        used.add(name)
    categorical = list(dict.fromkeys(columns.categorical))
    unknown = sorted(set(categorical).difference(features))
    if unknown:
        raise FileFormatError(file, f"categorical: there is no feature {unknown[0]!r}", line=1)
    return _Layout(delimiter, names, features, extras, roles["qid"], roles["document_ids"], categorical)


def _read_fields(block: Block, layout: _Layout, texts: list[str], numbers: list[str]) -> Any:
    """Return columns of a block as a table: text unchanged, numbers as float64 with null for missing values."""
    pyarrow = import_pyarrow("CSV")
    try:
        table = _read_csv(block, layout, dict.fromkeys(texts, "string") | dict.fromkeys(numbers, "double"))
    except pyarrow.ArrowException as error:
        try:  # pyarrow does not convert blank fields, True and False to numbers
            columns = _read_csv(block, layout, dict.fromkeys([*texts, *numbers], "string"))
            table = columns.select(texts)
            for name in numbers:
                table = table.append_column(name, _to_numbers(columns.column(name)))
        except pyarrow.ArrowException:
            check_lines(block, layout)
            raise FileFormatError(block.file, f"cannot be read: {error}", line=block.first_line) from error
    if len(table) != block.rows:
        check_lines(block, layout)
        raise FileFormatError(
            block.file, f"has {len(table)} rows on {block.rows} lines: a quoted field must not span lines",
            line=block.first_line,
        )  # fmt: skip
    return table


def _read_csv(block: Block, layout: _Layout, types: dict[str, str]) -> Any:
    import pyarrow
    from pyarrow import csv

    return csv.read_csv(
        pyarrow.BufferReader(pyarrow.py_buffer(block.text)),
        csv.ReadOptions(column_names=layout.names, use_threads=False, block_size=min(len(block.text), 2**31 - 1)),
        csv.ParseOptions(delimiter=layout.delimiter),
        csv.ConvertOptions(column_types=types, include_columns=list(types), null_values=MISSING),
    )


def _to_numbers(texts: Any) -> Any:
    import pyarrow
    from pyarrow import compute

    trimmed = compute.utf8_trim(texts, " ")
    is_missing = compute.is_in(trimmed, pyarrow.array(MISSING))
    digits = compute.if_else(is_missing, None, trimmed)
    for words, digit in ((TRUE, "1"), (FALSE, "0")):
        digits = compute.if_else(compute.is_in(trimmed, pyarrow.array(words)), digit, digits)
    return digits.cast(pyarrow.float64())


def _query_runs(block: Block, query: Any) -> list[QueryRun]:
    """Return the runs of rows of a block that have the same query id."""
    codes = query.indices.to_numpy()
    starts = np.flatnonzero(starts_run(codes))
    names, lines = query.dictionary.to_pylist(), _lines(block.text)[1][starts]
    return [
        QueryRun(block.first_row + row, names[codes[row]], block.file, block.first_line + line)
        for row, line in zip(starts.tolist(), lines.tolist(), strict=True)
    ]


_NOT_TEXT = re.compile(rb"\x00|\r(?!\n)")
_QUOTED = re.compile(rb'"[^"]*(?:""[^"]*)*("?)')
_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?|nan)", re.IGNORECASE | re.ASCII)
# Spellings of a missing number.
MISSING = ("", "NA", "N/A", "n/a", "#N/A", "NULL", "null", "NaN", "nan")
# Spellings of truth values by pandas, polars and R, which are read as 1 and 0.
TRUE, FALSE = ("True", "true", "TRUE"), ("False", "false", "FALSE")
_SHOWN = 40  # characters of a field to quote in a message


class _Field(NamedTuple):
    start: int
    end: int
    text: str


def check_bytes(block: Block) -> None:
    """Raise if the block contains NUL, or a carriage return inside a line."""
    match = _NOT_TEXT.search(block.text.data)
    if match is not None:
        raise block.error(match.start(), PROBLEMS[NUL if match[0] == b"\0" else LONE_RETURN])


def header_names(block: Block, delimiter: str) -> list[str]:
    """Return the column names of a header line."""
    check_bytes(block)
    line = block.text.tobytes().rstrip(b"\r\n")
    n_columns = line.count(delimiter.encode()) + 1
    if n_columns > MOST_COLUMNS:
        raise FileFormatError(
            block.file,
            f"the header has {n_columns:_} columns, but the limit is {MOST_COLUMNS:_}: write features that are mostly "
            "zero as LETOR text, which omits zeros",
            line=1,
        )
    names = [field.text for field in _fields(block, 0, line, delimiter)]
    if not any(names):
        raise FileFormatError(block.file, "expected a header line with column names", line=1)
    if all(_NUMBER.fullmatch(name) and math.isfinite(float(name)) for name in names):
        shown = line[:_SHOWN].decode(errors="replace")
        raise FileFormatError(block.file, f"expected a header line with column names, but found {shown!r}", line=1)
    return names


def check_quotes(block: Block, layout: _Layout) -> None:
    """Raise if text follows the closing quote of a field, because pyarrow would silently join the two."""
    text, delimiter = block.text.tobytes(), re.escape(layout.delimiter.encode())
    if b'"' not in text:
        return
    # Some doubled quotes inside fields match as well, so a match only means that each line must be checked.
    if re.search(rb'(?:^|%b)"[^"\n]*(?:""[^"\n]*)*"(?!["\r\n]|%b)' % (delimiter, delimiter), text, re.MULTILINE):
        check_lines(block, layout)


def check_lines(block: Block, layout: _Layout) -> None:
    """Raise an error for the first problem in a block, if there is one."""
    start, n_columns = 0, len(layout.names)
    for line in block.text.tobytes().split(b"\n"):
        content = line.rstrip(b"\r")
        n_fields, at = 0, start
        for n_fields, field in enumerate(_fields(block, start, content, layout.delimiter) if content else (), 1):
            if n_fields <= n_columns:
                _check_field(block, field, layout.names[n_fields - 1], layout)
                at = field.end
        if content and n_fields != n_columns:
            raise block.error(at, f"expected {n_columns} fields as in the header, but this line has {n_fields}")
        start += len(line) + 1


def _check_field(block: Block, field: _Field, name: str, layout: _Layout) -> None:
    """Raise if a query id is empty, a number is invalid, or a number that must be finite is not."""
    if name == layout.qid and not field.text:
        raise block.error(field.start, PROBLEMS[EMPTY_QID])
    if name not in layout.numbers or field.text in (*MISSING, *TRUE, *FALSE):
        return
    token = field.text[:_SHOWN]
    if not _NUMBER.fullmatch(field.text):
        hint = f" in {name!r}; name categorical columns in categorical=…"
        raise block.error(field.start, PROBLEMS[VALUE].format(token=token) + hint)
    is_feature = layout.numbers[name][1]
    with np.errstate(over="ignore"):
        if not is_feature and np.isinf(np.float32(float(field.text))):
            raise block.error(field.start, f"labels, weights and positions must be finite, but found {token!r}")


def _fields(block: Block, start: int, line: bytes, delimiter: str) -> Iterator[_Field]:
    """Yield the fields of a line that starts at a byte of the block; raise for unclosed or misplaced quotes."""
    at = 0
    while True:
        begin, quoted = at, _QUOTED.match(line, at)
        if quoted is not None:
            if not quoted[1]:
                raise block.error(start + at, "this quote is not closed on the same line")
            at = quoted.end()
        stop = line.find(delimiter.encode(), at)
        end = len(line) if stop < 0 else stop
        text = block.decoded(start + begin, start + end, "text").strip(" ")
        if quoted is not None:
            rest = line[at:end].lstrip(b" ")
            if rest:
                shown = rest[:_SHOWN].decode(errors="replace")
                problem = f"expected the end of the field after the closing quote, but found {shown!r}"
                raise block.error(start + end - len(rest), problem)
            text = text[1:-1].replace('""', '"').strip(" ")
        while begin < end and line[begin] == ord(" "):
            begin += 1
        yield _Field(start + begin, start + end, text)
        if stop < 0:
            return
        at = stop + 1
