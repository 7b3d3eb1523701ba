"""The validated arguments of `read`: the format, the options for text, and the roles of columns."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from podium.core.choices import Absent, DataFormat, Returning
from podium.core.progress import progress
from podium.core.threads import thread_count
from podium.core.validation import require_whole, to_path
from podium.data.io.side_files import side_file
from podium.data.io.text_blocks import COMPRESSED, Source, source_name
from podium.data.memory import Budget
from podium.data.ranking_data import RankingData
from podium.data.sparse import MOST_FEATURES
from podium.errors import DataError, FileFormatError

if TYPE_CHECKING:
    from podium.data.io.text_reader import TextReader


class FormatFacts(NamedTuple):
    """Facts about a format of data."""

    suffixes: tuple[str, ...]
    has_columns: bool  # whether it has named columns
    options: tuple[str, ...] = ()  # the fields of `TextOptions` that apply to it, except `n_threads`
    delimiter: str = ""  # for CSV and TSV


_LETOR_OPTIONS = ("n_features", "absent", "first_index", "largest_index", "sparse", "returning_qid")
FORMATS: dict[DataFormat, FormatFacts] = {
    "letor": FormatFacts((".txt", ".letor", ".svm", ".svmlight", ".libsvm", ".dat"), False, _LETOR_OPTIONS),
    "csv": FormatFacts((".csv",), has_columns=True, options=("returning_qid",), delimiter=","),
    "tsv": FormatFacts((".tsv",), has_columns=True, options=("returning_qid",), delimiter="\t"),
    "parquet": FormatFacts((".parquet", ".pq"), has_columns=True),
}
SUFFIXES: dict[str, DataFormat] = {suffix: name for name, facts in FORMATS.items() for suffix in facts.suffixes}
_FORMAT_NAMES = ", ".join(map(repr, [*FORMATS][:-1])) + f" or {[*FORMATS][-1]!r}"


def format_of(path: str | os.PathLike[str]) -> DataFormat:
    """Return the format that a file's suffix indicates."""
    suffixes = to_path(path).suffixes
    if suffixes and suffixes[-1].lower() in COMPRESSED:
        suffixes.pop()
    name = SUFFIXES.get(suffixes[-1].lower()) if suffixes else None
    if name is None and side_file(path, ".query", ".group") is not None:
        return "letor"
    if name is None:
        raise DataError(
            f"{os.fspath(path)}: the suffix does not determine the format; use one of {', '.join(SUFFIXES)} "
            f"(optionally with .gz, .bz2 or .xz), or pass format={_FORMAT_NAMES}"
        )
    return name


@dataclass(frozen=True)
class TextOptions:
    """The options for text, see `podium.read`. `FORMATS` lists those that apply to a format."""

    n_features: int | None = None
    absent: Absent = "zero"
    first_index: int = 1
    largest_index: int = 1_000_000
    sparse: bool = False
    returning_qid: Returning = "warn"
    n_threads: int | None = None

    def __post_init__(self) -> None:
        if self.absent not in ("zero", "missing"):
            raise DataError(f"absent must be 'zero' or 'missing', but got {self.absent!r}")
        require_whole("first_index", self.first_index, 0)
        if self.first_index > 1:
            raise DataError(f"first_index must be 0 or 1, but got {self.first_index!r}")
        require_whole("n_features", self.n_features, 0, optional=True, most=MOST_FEATURES)
        require_whole("largest_index", self.largest_index, 0, most=MOST_FEATURES)
        if self.returning_qid not in ("warn", "merge", "error"):
            raise DataError(f"returning_qid must be 'warn', 'merge' or 'error', but got {self.returning_qid!r}")
        thread_count(self.n_threads)
        if self.sparse and self.absent == "missing":
            raise DataError("sparse=True implies that absent features are zero: use absent='missing' with sparse=False")

    @property
    def last_index(self) -> int:
        """The largest valid feature index."""
        if self.n_features is None:
            return self.largest_index
        return self.n_features - 1 + self.first_index

    @property
    def why_last(self) -> str:
        """The reason for that limit, for an error message."""
        return " (pass largest_index=… to allow it)" if self.n_features is None else ", the limit set by n_features"


_ROLES = ("relevance", "qid", "labels", "document_weights", "query_weights", "positions", "document_ids")


class Columns(NamedTuple):
    """The roles of the columns of a file with column names."""

    # the name of a column, or None, by argument of `RankingData`; for `labels` a dictionary of names
    roles: dict[str, Any]
    feature_names: Sequence[str] | None  # the feature columns; None for all columns without a role
    categorical: Sequence[str]  # the categorical features


@dataclass(frozen=True)
class Request:
    """The validated arguments of `read`."""

    format: DataFormat
    sources: list[Source]
    options: TextOptions
    columns: Columns
    unlabelled: float | None
    normalize: str | None
    max_bytes: int | None

    @property
    def name(self) -> str:
        """The name of the first source, for messages."""
        return source_name(self.sources[0])

    def read(self) -> RankingData:
        """Return the data of all rows."""
        with self.naming_memory_errors():
            budget = Budget(self.max_bytes)
            if self.format == "parquet":
                from podium.data.io.parquet import opened_files

                with opened_files(self.sources, self.columns, budget, buffer_bytes=0) as files:
                    return self.finished(files.all_rows())
            with progress(f"reading {self.name}", self.total_size) as advance:
                arguments = self.text_reader(budget).all_rows(advance)
            return self.finished(self.data_of_text(arguments))

    def text_reader(self, budget: Budget, **others: Any) -> TextReader:
        """Return a reader for the text; `others` are arguments of `TextReader`."""
        if self.format == "letor":
            from podium.data.io.letor_reader import LetorReader

            return LetorReader(self.sources, self.options, budget, **others)
        from podium.data.io.csv_reader import CsvReader

        delimiter = FORMATS[self.format].delimiter
        return CsvReader(delimiter, self.columns, self.sources, self.options, budget, **others)

    def data_of_text(self, arguments: dict[str, Any], rows_before: int = 0) -> RankingData:
        """Return the data for a text reader's arguments of `RankingData`; its rows follow `rows_before` others."""
        categorical = self.columns.categorical
        reading: dict[str, Any] = {"categorical": list(categorical)} if categorical else {}
        if self.format == "letor":
            reading = {"absent": self.options.absent, "first_index": self.options.first_index}
        origin = {"absent_value": arguments.pop("absent_value", None), "reading": reading}
        with self.naming_rows(rows_before):
            return RankingData._make(arguments, origin)

    def finished(self, data: RankingData, rows_before: int = 0) -> RankingData:
        """Return the data with unlabelled values removed and features normalized, as requested."""
        with self.naming_rows(rows_before):
            if self.unlabelled is not None:
                labels = {source: np.where(v == self.unlabelled, np.nan, v) for source, v in data.labels.items()}
                data = data.replace(labels=labels)
            return data if self.normalize is None else data.normalized(self.normalize)

    @contextmanager
    def naming_rows(self, rows_before: int, errors: tuple[type[Exception], ...] = (DataError,)) -> Iterator[None]:
        """Add the file, and the row from which rows are counted, to errors in columns, such as a negative weight."""
        try:
            yield
        except FileFormatError:
            raise
        except errors as error:  # rows count from 0, without the header
            place = f" (counted from row {rows_before})" if rows_before else ""
            raise FileFormatError(self.name, f"{error}{place}") from None

    @contextmanager
    def naming_memory_errors(self) -> Iterator[None]:
        """Turn a MemoryError into an error that names the file."""
        try:
            yield
        except MemoryError as error:
            raise FileFormatError(self.name, "does not fit into the memory of this process") from error

    @property
    def total_size(self) -> int | None:
        """The size of all files in bytes; None if a source is a stream or a pipe, which cannot be read twice."""
        paths = [Path(source) for source in self.sources if isinstance(source, str | os.PathLike)]
        if len(paths) < len(self.sources) or not all(path.is_file() for path in paths):
            return None
        return sum(path.stat().st_size for path in paths)


def request_of(given: Mapping[str, Any]) -> Request:
    """Return the validated arguments of `read`."""
    source = given["source"]
    sources: list[Source] = list(source) if isinstance(source, list | tuple) else [source]
    kind = _checked_format(given["format"], sources)
    options = TextOptions(**{option.name: given[option.name] for option in fields(TextOptions)})
    labels, feature_names, categorical = given["labels"], given["feature_names"], given["categorical"]
    if labels is not None and not isinstance(labels, Mapping):
        raise DataError(f"labels must map names to columns, as in {{'clicks': 'clicked'}}, but got {labels!r:.60}")
    roles = {role: given[role] for role in _ROLES} | {"labels": dict(labels or {})}
    _refuse_unused(kind, options, roles | {"feature_names": feature_names, "categorical": categorical})
    for argument, names in (("feature_names", feature_names), ("categorical", categorical)):
        is_list = isinstance(names, Sequence) and not isinstance(names, str)
        if names is not None and not (is_list and all(isinstance(name, str) for name in names)):
            raise DataError(f"{argument} must be a list of column names, but got {names!r:.60}")
    named = {role: column for role, column in roles.items() if role != "labels" and column is not None}
    named |= {f"labels[{source!r}]": column for source, column in roles["labels"].items()}
    for argument, column in named.items():
        if not isinstance(column, str):
            raise DataError(f"{argument} must be the name of a column, but got {column!r:.60}")
    columns = Columns(roles, feature_names, categorical or ())
    return Request(kind, sources, options, columns, given["unlabelled"], given["normalize"], given["max_bytes"])


def _checked_format(name: str | None, sources: Sequence[Source]) -> DataFormat:
    if not sources:
        raise DataError("pass at least one file to read")
    if name:
        if name not in FORMATS:
            raise DataError(f"format must be {_FORMAT_NAMES}, but got {name!r}")
        return name
    paths = [source for source in sources if isinstance(source, str | os.PathLike)]
    if len(paths) < len(sources):
        raise DataError("a stream has no suffix: pass its format, as in read(stream, format='letor')")
    formats = {format_of(path) for path in paths}
    if len(formats) > 1:
        raise DataError(f"files read together must have the same format, but got {', '.join(sorted(formats))}")
    return formats.pop()


def _refuse_unused(kind: DataFormat, options: TextOptions, of_columns: dict[str, Any]) -> None:
    facts, default = FORMATS[kind], TextOptions()
    names = [option.name for option in fields(TextOptions) if option.name not in (*facts.options, "n_threads")]
    unused = [name for name in names if getattr(options, name) != getattr(default, name)]
    if not facts.has_columns:
        unused += [name for name, value in of_columns.items() if value]
    if unused:
        hint = ": to name its features, read it and call data.replace(feature_names=[…])"
        raise DataError(
            f"{unused[0]} does not apply to the format {kind!r}{hint if unused[0] == 'feature_names' else ''}"
        )
