"""What a caller of `read` asks for: the format, how to understand text, and what the columns are."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

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


Format = Literal["letor", "csv", "tsv", "parquet"]


class FormatFacts(NamedTuple):
    """What is known of a format of data."""

    suffixes: tuple[str, ...]
    has_columns: bool  # whether its columns have names
    delimiter: str = ""  # of delimited text


FORMATS: dict[Format, FormatFacts] = {
    "letor": FormatFacts((".txt", ".letor", ".svm", ".svmlight", ".libsvm", ".dat"), has_columns=False),
    "csv": FormatFacts((".csv",), has_columns=True, delimiter=","),
    "tsv": FormatFacts((".tsv",), has_columns=True, delimiter="\t"),
    "parquet": FormatFacts((".parquet", ".pq"), has_columns=True),
}
SUFFIXES: dict[str, Format] = {suffix: name for name, facts in FORMATS.items() for suffix in facts.suffixes}


_FORMAT_NAMES = ", ".join(map(repr, [*FORMATS][:-1])) + f" or {[*FORMATS][-1]!r}"


def format_of(path: str | os.PathLike[str]) -> Format:
    """The format that a file's name promises."""
    suffixes = to_path(path).suffixes
    if suffixes and suffixes[-1].lower() in COMPRESSED:
        suffixes.pop()
    name = SUFFIXES.get(suffixes[-1].lower()) if suffixes else None
    if name is None and side_file(path, ".query", ".group") is not None:
        return "letor"
    if name is None:
        raise DataError(
            f"{os.fspath(path)}: the format is not clear from the name; end it in one of "
            f"{', '.join(SUFFIXES)} (and .gz, .bz2 or .xz), or give format={_FORMAT_NAMES}"
        )
    return name


Absent = Literal["zero", "missing"]
Returning = Literal["warn", "merge", "error"]


@dataclass(frozen=True)
class TextOptions:
    """How to understand text; see `podium.read`. All but the last two are for LETOR."""

    n_features: int | None = None
    absent: Absent = "zero"
    first_index: int = 1
    largest_index: int = 1_000_000
    sparse: bool = False
    returning_qid: Returning = "warn"
    n_threads: int | None = None

    def __post_init__(self) -> None:
        if self.absent not in ("zero", "missing"):
            raise DataError(f"absent must be 'zero' or 'missing', not {self.absent!r}")
        require_whole("first_index", self.first_index, 0)
        if self.first_index > 1:
            raise DataError(f"first_index must be 0 or 1, not {self.first_index!r}")
        require_whole("n_features", self.n_features, 0, optional=True, most=MOST_FEATURES)
        require_whole("largest_index", self.largest_index, 0, most=MOST_FEATURES)
        if self.returning_qid not in ("warn", "merge", "error"):
            raise DataError(f"returning_qid must be 'warn', 'merge' or 'error', not {self.returning_qid!r}")
        thread_count(self.n_threads)
        if self.sparse and self.absent == "missing":
            raise DataError("sparse=True keeps absent features as zeros; absent='missing' needs sparse=False")

    @property
    def last_index(self) -> int:
        """The largest feature index that is taken for one."""
        if self.n_features is None:
            return self.largest_index
        return self.n_features - 1 + self.first_index

    @property
    def why_last(self) -> str:
        """The reason for that bound, for an error message."""
        return " (largest_index=… raises the bound)" if self.n_features is None else ", as n_features says"


_ROLES = ("relevance", "qid", "labels", "document_weights", "query_weights", "positions", "document_ids")


class Columns(NamedTuple):
    """What the columns of a file with column names are."""

    # by argument of `RankingData`, the name of a column, or None; for `labels` a dictionary of names
    roles: dict[str, Any]
    feature_names: Sequence[str] | None  # the columns that are features; None for all others
    categorical: Sequence[str]  # the features that hold categories


@dataclass(frozen=True)
class Request:
    """What a caller of `read` asks for, checked."""

    format: Format
    sources: list[Source]
    options: TextOptions
    columns: Columns
    unlabelled: float | None
    normalize: str | None
    max_bytes: int | None

    @property
    def name(self) -> str:
        """What to call the first source in messages."""
        return source_name(self.sources[0])

    def read(self) -> RankingData:
        """All rows."""
        with self.naming_memory_errors():
            budget = Budget(self.max_bytes)
            if self.format == "parquet":
                from podium.data.io.parquet import read_parquet

                return self.finished(read_parquet(self.sources, *self.columns, budget))
            with progress(f"reading {self.name}", self.total_size) as advance:
                arguments = self.text_reader(budget).all_rows(advance)
            return self.finished(self.data_of_text(arguments))

    def text_reader(self, budget: Budget, **others: Any) -> TextReader:
        """The reader of the text; `others` are arguments of `TextReader`."""
        if self.format == "letor":
            from podium.data.io.letor_reader import LetorReader

            return LetorReader(self.sources, self.options, budget, **others)
        from podium.data.io.csv_reader import CsvReader

        delimiter = FORMATS[self.format].delimiter
        return CsvReader(delimiter, self.columns, self.sources, self.options, budget, **others)

    def data_of_text(self, arguments: dict[str, Any], rows_before: int = 0) -> RankingData:
        """The data that a reader of text gives the arguments of, for rows that follow `rows_before` others."""
        categorical = self.columns.categorical
        reading: dict[str, Any] = {"categorical": list(categorical)} if categorical else {}
        if self.format == "letor":
            reading = {"absent": self.options.absent, "first_index": self.options.first_index}
        origin = {"absent_value": arguments.pop("absent_value", None), "reading": reading}
        with self.naming_rows(rows_before):
            return RankingData._make(arguments, origin)

    def finished(self, data: RankingData, rows_before: int = 0) -> RankingData:
        """The data with labels taken out and features brought to scale, as asked for."""
        with self.naming_rows(rows_before):
            if self.unlabelled is not None:
                labels = {source: np.where(v == self.unlabelled, np.nan, v) for source, v in data.labels.items()}
                data = data.replace(labels=labels)
            return data if self.normalize is None else data.normalized(self.normalize)

    @contextmanager
    def naming_rows(self, rows_before: int, errors: tuple[type[Exception], ...] = (DataError,)) -> Iterator[None]:
        """Errors of columns, such as a negative weight, with the file and the rows that they count from."""
        try:
            yield
        except FileFormatError:
            raise
        except errors as error:  # rows count from 0, without the header
            place = f" (counted from row {rows_before})" if rows_before else ""
            raise FileFormatError(self.name, f"{error}{place}") from None

    @contextmanager
    def naming_memory_errors(self) -> Iterator[None]:
        """No bare MemoryError."""
        try:
            yield
        except MemoryError as error:
            raise FileFormatError(self.name, "does not fit into the memory that this process has") from error

    @property
    def total_size(self) -> int | None:
        """The bytes of all files; None where a source is a stream or a pipe, which cannot be read twice."""
        paths = [Path(source) for source in self.sources if isinstance(source, str | os.PathLike)]
        if len(paths) < len(self.sources) or not all(path.is_file() for path in paths):
            return None
        return sum(path.stat().st_size for path in paths)


def request_of(given: Mapping[str, Any]) -> Request:
    """The arguments of `read`, by name, as a request."""
    source = given["source"]
    sources: list[Source] = list(source) if isinstance(source, list | tuple) else [source]
    kind = _checked_format(given["format"], sources)
    options = TextOptions(**{option.name: given[option.name] for option in fields(TextOptions)})
    labels, feature_names, categorical = given["labels"], given["feature_names"], given["categorical"]
    if labels is not None and not isinstance(labels, Mapping):
        raise DataError(f"labels must map names to columns, as in {{'clicks': 'clicked'}}, not {labels!r:.60}")
    roles = {role: given[role] for role in _ROLES} | {"labels": dict(labels or {})}
    _refuse_unused(kind, options, roles | {"feature_names": feature_names, "categorical": categorical})
    for argument, names in (("feature_names", feature_names), ("categorical", categorical)):
        is_list = isinstance(names, Sequence) and not isinstance(names, str)
        if names is not None and not (is_list and all(isinstance(name, str) for name in names)):
            raise DataError(f"{argument} must be a list of names of columns, not {names!r:.60}")
    named = {role: column for role, column in roles.items() if role != "labels" and column is not None}
    named |= {f"labels[{source!r}]": column for source, column in roles["labels"].items()}
    for argument, column in named.items():
        if not isinstance(column, str):
            raise DataError(f"{argument} must be the name of a column, not {column!r:.60}")
    columns = Columns(roles, feature_names, categorical or ())
    return Request(kind, sources, options, columns, given["unlabelled"], given["normalize"], given["max_bytes"])


def _checked_format(name: str | None, sources: Sequence[Source]) -> Format:
    if not sources:
        raise DataError("there is no file to read")
    if name:
        if name not in FORMATS:
            raise DataError(f"format must be {_FORMAT_NAMES}, not {name!r}")
        return name
    paths = [source for source in sources if isinstance(source, str | os.PathLike)]
    if len(paths) < len(sources):
        raise DataError("a stream has no suffix: give its format, as in read(stream, format='letor')")
    formats = {format_of(path) for path in paths}
    if len(formats) > 1:
        raise DataError(f"files that are read as one must have one format, not {', '.join(sorted(formats))}")
    return formats.pop()


def _refuse_unused(kind: Format, options: TextOptions, of_columns: dict[str, Any]) -> None:
    if not FORMATS[kind].has_columns:
        unused = [name for name, value in of_columns.items() if value]
    else:
        default = TextOptions()
        names = ["n_features", "absent", "first_index", "largest_index", "sparse"]
        names += ["returning_qid"] * (kind == "parquet")
        unused = [name for name in names if getattr(options, name) != getattr(default, name)]
    if unused:
        hint = ": to name its features, read it and take data.replace(feature_names=[…])"
        raise DataError(
            f"{unused[0]} has no meaning for the format {kind!r}{hint if unused[0] == 'feature_names' else ''}"
        )
