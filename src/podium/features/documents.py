"""Readers of documents, queries and judgements from files, data frames and dictionaries.

Documents are read as a stream of records. Errors name the file and line, or the number of the document.
"""

from __future__ import annotations

import csv
import json
import math
import numbers
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from podium.data.frames import is_frame
from podium.data.io.parquet import import_pyarrow
from podium.data.io.text_blocks import COMPRESSED, Block, text_blocks
from podium.data.memory import Budget
from podium.errors import DataError, FileFormatError

Advance = Callable[[float], None]
JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")
ROWS_AT_ONCE = 1024  # of a frame or a Parquet file
LONGEST_CELL = 1 << 30  # characters of a CSV field; the default limit of the csv module, 131,072, is too low
QUERY_IDS, QUERY_TEXTS = ("id", "qid", "query_id", "_id"), ("text", "query", "query_text", "title")
JUDGED_QUERIES, JUDGED_DOCUMENTS = ("qid", "query_id", "query"), ("document_id", "document", "docid", "doc_id", "id")
GRADES = ("label", "relevance", "grade", "rating")


class Record(NamedTuple):
    """One document, query or judgement, and where it came from.

    Attributes:
        values: the values by name.
        file: the file; None for records that the caller passed.
        line: the number of the line or record, from 1.

    """

    values: Mapping[str, Any]
    file: str | None
    line: int

    def error(self, problem: str) -> DataError:
        """Return an error that names the place."""
        if self.file is not None:
            return FileFormatError(self.file, problem, line=self.line)
        return DataError(f"document {self.line}: {problem}")


def read_records(source: Any, texts: Collection[str] = (), advance: Advance = lambda amount: None) -> Iterator[Record]:
    """Yield the records of files, a frame or an iterable of dictionaries.

    Args:
        source: a path to JSONL, CSV, TSV (all of them compressed or not) or Parquet; a data frame; or an iterable of
            dictionaries or paths.
        texts: the text columns of CSV; values of other columns are converted to numbers if possible.
        advance: called with the number of bytes read.

    """
    if isinstance(source, str | os.PathLike):
        yield from _read_file(source, texts, advance)
    elif is_frame(source):
        yield from _frame_records(source)
    elif isinstance(source, Mapping) or not isinstance(source, Iterable):
        raise DataError(
            f"expected a path, a data frame or an iterable of dictionaries, but got {type(source).__name__} "
            f"{source!r:.40}"
        )
    else:
        for number, item in enumerate(source, 1):
            if isinstance(item, str | os.PathLike):
                yield from _read_file(item, texts, advance)
            elif isinstance(item, Mapping):
                yield Record(item, None, number)
            else:
                raise DataError(f"document {number}: expected a dictionary, but got {type(item).__name__} {item!r:.40}")


def kind_of(path: str | os.PathLike[str]) -> str:
    """Return the suffix that indicates a file's format, ignoring that of a compression.

    >>> kind_of("documents.jsonl.xz")
    '.jsonl'
    """
    name = Path(path)
    return (name.with_suffix("") if name.suffix.lower() in COMPRESSED else name).suffix.lower()


def _read_file(path: str | os.PathLike[str], texts: Collection[str], advance: Advance) -> Iterator[Record]:
    kind = kind_of(path)
    if kind in JSON_SUFFIXES:
        return _json_records(path, advance)
    if kind in (".csv", ".tsv"):
        return _csv_records(path, "\t" if kind == ".tsv" else ",", texts, advance)
    if kind == ".parquet":
        return _parquet_records(path, advance)
    raise FileFormatError(os.fspath(path), "has an unknown suffix: expected .jsonl, .csv, .tsv or .parquet")


def _text_of(block: Block) -> str:
    """Return the text of a block; raise with the place of the first byte that is not UTF-8."""
    try:
        return block.text.tobytes().decode()
    except UnicodeDecodeError as error:
        raise block.error(error.start, f"is not valid UTF-8: byte {block.text[error.start]:#04x}") from None


def _lines(path: str | os.PathLike[str], advance: Advance) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text file with their numbers, keeping only one block in memory."""
    budget, number = Budget(), 1
    for block in text_blocks(path, advance, budget):
        budget.release()
        block.first_line = number
        for line in _text_of(block).split("\n")[:-1]:
            yield number, line
            number += 1


def _json_records(path: str | os.PathLike[str], advance: Advance) -> Iterator[Record]:
    file, decode = os.fspath(path), json.JSONDecoder(strict=False).decode  # strings may contain control characters
    for number, line in _lines(path, advance):
        if not line or line.isspace():
            continue
        try:
            values = decode(line)
        except (ValueError, RecursionError) as error:
            column = error.colno if isinstance(error, json.JSONDecodeError) else None
            problem = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
            raise FileFormatError(file, f"is not valid JSON: {problem}", line=number, column=column) from None
        if not isinstance(values, dict):
            raise FileFormatError(file, f"expected a JSON object on each line, but found {line[:40]!r}", line=number)
        yield Record(values, file, number)


def _csv_records(
    path: str | os.PathLike[str], delimiter: str, texts: Collection[str], advance: Advance
) -> Iterator[Record]:
    file = os.fspath(path)
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_CELL))
    reader = csv.reader((f"{line}\n" for _, line in _lines(path, advance)), delimiter=delimiter, strict=True)
    try:
        names = next(reader, None)
        if names is None:
            raise FileFormatError(file, "is empty: expected a header line with column names")
        if len(set(names)) < len(names):
            raise FileFormatError(file, "has two columns of the same name", line=1)
        first = reader.line_num + 1
        for row in reader:
            line, first = first, reader.line_num + 1
            if not row:
                continue
            if len(row) != len(names):
                raise FileFormatError(file, f"expected {len(names)} fields, but found {len(row)}", line=line)
            cells = zip(names, row, strict=True)
            yield Record({name: cell if name in texts else _cell(cell) for name, cell in cells}, file, line)
    except csv.Error as error:
        raise FileFormatError(file, f"is not valid CSV: {error}", line=reader.line_num) from None


def _cell(text: str) -> float | str | None:
    """Return a CSV field as a number if possible, None if it is empty, and else as text."""
    try:
        return float(text) if text.strip() else None
    except ValueError:
        return text


def _parquet_records(path: str | os.PathLike[str], advance: Advance) -> Iterator[Record]:
    pyarrow, file = import_pyarrow(), os.fspath(path)
    number = 0
    try:
        with pyarrow.parquet.ParquetFile(path) as table:
            n_rows, size = max(1, table.metadata.num_rows), Path(path).stat().st_size
            for batch in table.iter_batches(ROWS_AT_ONCE):
                for values in batch.to_pylist():
                    number += 1
                    yield Record(values, file, number)
                advance(size * len(batch) / n_rows)
    except (pyarrow.ArrowException, OSError) as error:
        raise FileFormatError(file, f"cannot be read after row {number}: {error}") from None


def _frame_records(frame: Any) -> Iterator[Record]:
    import narwhals.stable.v2 as nw

    native = nw.from_native(frame)
    if isinstance(native, nw.LazyFrame):
        native = native.collect()
    for number, values in enumerate(native.iter_rows(named=True, buffer_size=ROWS_AT_ONCE), 1):
        yield Record(values, None, number)


def is_missing(value: Any) -> bool:
    """Return whether a value is None or NaN, which frames use for missing text."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def id_of(record: Record, column: str) -> str:
    """Return the id of a record as text; raise if it is missing or invalid."""
    value = record.values.get(column)
    if is_missing(value) or value == "":
        others = "" if column in record.values else f"; the columns are {', '.join(map(str, record.values))}"
        raise record.error(f"the id {column!r} is missing{others}")
    if isinstance(value, str):
        encoded(record, column, value)
        return value
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        return str(int(value))
    raise record.error(f"the id {column!r} must be text or a whole number, but got {value!r:.40}")


def text_of(record: Record, column: str) -> str:
    """Return the text of a field, "" if it is missing; join a list of texts by line feeds."""
    value = record.values.get(column)
    if isinstance(value, str):
        return value
    if is_missing(value):
        return ""
    if isinstance(value, list | tuple | np.ndarray):
        parts = [part for part in value if not is_missing(part)]
        if all(isinstance(part, str) for part in parts):
            return "\n".join(map(str, parts))
    raise record.error(f"the field {column!r} must be text or a list of texts, but got {value!r:.40}")


def encoded(record: Record, column: str, text: str) -> bytes:
    """Return a text as UTF-8; raise if that is impossible."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise record.error(f"{column!r} contains a lone surrogate, which UTF-8 cannot encode") from None


def read_queries(source: Any) -> dict[str, str]:
    r"""Return the text of each query by its id.

    Args:
        source: `{id: text}`; a data frame or an iterable of dictionaries with an id (`id`, `qid` or `query_id`) and a
            text (`text` or `query`); a file of them (JSONL, CSV, Parquet); or a TSV file of lines `id<tab>text`.

    Example:
        >>> from podium.features import read_queries
        >>> read_queries([{"id": 7, "text": "red shoes"}])
        {'7': 'red shoes'}

    """
    queries: dict[str, str] = {}
    for record in _query_records(source):
        query = id_of(record, _column(record, QUERY_IDS, "a query id"))
        if query in queries:
            raise record.error(f"the query id {query!r} occurs twice")
        column = _column(record, QUERY_TEXTS, "a query text")
        queries[query] = text_of(record, column)
        encoded(record, column, queries[query])
    return queries


def _query_records(source: Any) -> Iterable[Record]:
    if isinstance(source, Mapping):
        return (Record({"id": str(key), "text": text}, None, k) for k, (key, text) in enumerate(source.items(), 1))
    if isinstance(source, str | os.PathLike) and kind_of(source) in (".tsv", ".txt"):
        return _tab_records(source)
    return read_records(source, (*QUERY_IDS, *QUERY_TEXTS))


def _tab_records(path: str | os.PathLike[str]) -> Iterator[Record]:
    """Yield queries from lines `id<tab>text`, skipping a header line with known names."""
    file = os.fspath(path)
    for number, line in _lines(path, lambda amount: None):
        key, tab, text = line.rstrip("\r").partition("\t")
        if not line.strip() or (number == 1 and key in QUERY_IDS and text in QUERY_TEXTS):
            continue
        if not tab:
            raise FileFormatError(file, f"expected a query id, a tab and a text, but found {line[:40]!r}", line=number)
        yield Record({"id": key, "text": text}, file, number)


def read_judgements(source: Any) -> dict[str, dict[str, float]]:
    """Return the grade of each judged document, by query and document id.

    Args:
        source: `{query: {document: grade}}`; a data frame or an iterable of dictionaries with a query (`qid`,
            `query_id`), a document (`document_id`, `docid`) and a grade (`label`, `relevance`, `grade`); a file of them
            (JSONL, CSV, TSV, Parquet); or a file of TREC judgements, with any other suffix.

    Example:
        >>> from podium.features import read_judgements
        >>> read_judgements([{"qid": 7, "document_id": "a", "grade": 2}])
        {'7': {'a': 2.0}}

    """
    if isinstance(source, str | os.PathLike) and kind_of(source) not in (*JSON_SUFFIXES, ".csv", ".tsv", ".parquet"):
        from podium.evaluation.trec import read_qrels  # slow to import, because it imports all measures

        return read_qrels(source).labels
    judgements: dict[str, dict[str, float]] = {}
    labels = getattr(source, "labels", source)  # Qrels
    if isinstance(labels, Mapping):
        for k, (query, grades) in enumerate(labels.items(), 1):
            record = Record(grades, None, k)
            judgements[str(query)] = {str(document): _grade(grade, record) for document, grade in grades.items()}
        return judgements
    for record in read_records(source, (*JUDGED_QUERIES, *JUDGED_DOCUMENTS)):
        query = id_of(record, _column(record, JUDGED_QUERIES, "a query id"))
        document = id_of(record, _column(record, JUDGED_DOCUMENTS, "a document id"))
        grades = judgements.setdefault(query, {})
        if document in grades:
            raise record.error(f"document {document!r} of query {query!r} is judged twice")
        grades[document] = _grade(record.values[_column(record, GRADES, "a grade")], record)
    return judgements


def _column(record: Record, names: tuple[str, ...], what: str) -> str:
    """Return the first of some names that is a column of the record; raise if none is."""
    for name in names:
        if name in record.values:
            return name
    columns = ", ".join(map(str, record.values))
    raise record.error(f"expected {what} ({', '.join(names)}), but the columns are {columns}")


def _grade(value: Any, record: Record) -> float:
    grade = number_of(value)
    if grade is None or not math.isfinite(grade):
        raise record.error(f"the grade must be a finite number, but got {value!r:.40}")
    return grade


def number_of(value: Any) -> float | None:
    """Return a value as a float, NaN if it is missing, or None if it is not a number."""
    if type(value) is float:  # most are, and the general check is slow
        return value
    if value is None:
        return math.nan
    if not isinstance(value, numbers.Real | np.bool_):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf  # type: ignore[operator]
