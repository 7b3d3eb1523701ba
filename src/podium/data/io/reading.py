"""Ranking data from files, in the format of the suffix."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from podium.core.progress import progress
from podium.data.io.options import Absent, Format, Returning, TextOptions, format_of
from podium.data.io.text_blocks import Source, source_name
from podium.data.memory import Budget
from podium.data.ranking_data import RankingData
from podium.errors import DataError, FileFormatError

if TYPE_CHECKING:
    from podium.data.io.text_reader import TextReader

_DELIMITERS = {"csv": ",", "tsv": "\t"}
_ROLES = ("relevance", "qid", "labels", "document_weights", "query_weights", "positions", "document_ids")


class Columns(NamedTuple):
    """What the columns of a file with column names are.

    Attributes:
        roles: by argument of `RankingData`, the name of a column, or None; for `labels` a dictionary of names.
        feature_names: the columns that are features; None for all others.
        categorical: the features that hold categories.

    """

    roles: dict[str, Any]
    feature_names: Sequence[str] | None
    categorical: Sequence[str]


def read(
    source: Source | Sequence[Source],
    format: Format | None = None,  # noqa: A002
    *,
    n_features: int | None = None,
    absent: Absent = "zero",
    first_index: int = 1,
    largest_index: int = 1_000_000,
    sparse: bool = False,
    returning_qid: Returning = "warn",
    relevance: str | None = None,
    qid: str | None = None,
    labels: Mapping[str, str] | None = None,
    document_weights: str | None = None,
    query_weights: str | None = None,
    positions: str | None = None,
    document_ids: str | None = None,
    feature_names: Sequence[str] | None = None,
    categorical: Sequence[str] = (),
    unlabelled: float | None = None,
    normalize: str | None = None,
    n_threads: int | None = None,
    max_bytes: int | None = None,
) -> RankingData:
    r"""Read ranking data; several files are read as one.

    Args:
        source: a path, an open binary file, or several of them. Text may be compressed with gzip, bzip2
            or xz, whatever its name.
        format: `"letor"` (also SVMlight, LibSVM), `"csv"`, `"tsv"` or `"parquet"`; by default what the
            suffix says.
        n_features: LETOR: the number of features; by default the largest index met.
        absent: LETOR: what a feature that a line does not name is: `"zero"` or `"missing"` (NaN).
        first_index: LETOR: what the file calls its first feature, 1 or 0.
        largest_index: LETOR: an index above this is taken for a mistake.
        sparse: LETOR: keep the features as a scipy csr_array.
        returning_qid: text: what to do where a query id comes back after other queries: `"warn"` and
            take its rows as one query, `"merge"` silently, or `"error"`.
        relevance, qid, labels, document_weights, query_weights, positions, document_ids, feature_names:
            CSV, TSV, Parquet: the columns that hold these; the defaults are those of `RankingData`.
        categorical: CSV, TSV, Parquet: features that hold categories, by name; text gives the names of categories.
            Columns of Parquet that hold categories need not be named.
        unlabelled: a label value that stands for "not labelled".
        normalize: bring features to a common scale within each query: `"sum"`, `"zscore"` or `"minmax"`.
        n_threads: threads to parse with; all cores by default. The result is the same.
        max_bytes: how many bytes of the text, and of its arrays, may be held in memory; by default half
            of what is free. Beyond that it is an error, so that a stream without an end is stopped.

    Returns:
        The data, its rows in the order of the file.

    Raises:
        FileFormatError: with file, line and column where the text is not as it should be.

    Example:
        >>> import io, podium
        >>> text = b"2 qid:7 1:0.5 2:1\n0 qid:7 1:0.25\n1 qid:8 2:3\n"
        >>> data = podium.read(io.BytesIO(text), format="letor")
        >>> data
        RankingData(3 documents in 2 queries, 2 features, labels: relevance)
        >>> data.features[1].tolist()
        [0.25, 0.0]

    """
    return request_of(locals()).read()


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

        return CsvReader(
            _DELIMITERS[self.format], self.columns, self.sources, self.options, budget, **others
        )  # fmt: skip

    def data_of_text(self, arguments: dict[str, Any], rows_before: int = 0) -> RankingData:
        """The data that a reader of text gives the arguments of, for rows that follow so many others."""
        absent_value = arguments.pop("absent_value", None)
        with self.naming_rows(rows_before):
            data = RankingData(**arguments)
        categorical = self.columns.categorical
        reading: dict[str, Any] = {"categorical": list(categorical)} if categorical else {}
        if self.format == "letor":
            reading = {"absent": self.options.absent, "first_index": self.options.first_index}
        data._set(absent_value=absent_value, reading=MappingProxyType(reading))
        return data

    def finished(self, data: RankingData) -> RankingData:
        """The data with labels taken out and features brought to scale, as asked for."""
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
    name = _checked_format(given["format"], sources)
    options = TextOptions(**{option.name: given[option.name] for option in fields(TextOptions)})
    roles = {role: given[role] for role in _ROLES} | {"labels": _columns_of_labels(given["labels"])}
    columns = Columns(roles, given["feature_names"], given["categorical"])
    _check_columns(name, options, columns)
    columns = columns._replace(categorical=columns.categorical or ())
    return Request(name, sources, options, columns, given["unlabelled"], given["normalize"], given["max_bytes"])


def _checked_format(name: str | None, sources: Sequence[Source]) -> Format:
    """The format that the caller names, or that the suffixes promise."""
    if not sources:
        raise DataError("there is no file to read")
    chosen = name or _common_format(sources)
    if chosen not in ("letor", "csv", "tsv", "parquet"):
        raise DataError(f"format must be 'letor', 'csv', 'tsv' or 'parquet', not {chosen!r}")
    return chosen  # type: ignore[return-value]


def _check_columns(name: Format, options: TextOptions, columns: Columns) -> None:
    """Refuse what is no name of a column, and what has no meaning for the format."""
    roles, feature_names, categorical = columns
    _refuse_unused(name, options, roles | {"feature_names": feature_names, "categorical": categorical})
    _require_names("feature_names", feature_names)
    _require_names("categorical", categorical)
    _require_columns(roles)


def _common_format(sources: Sequence[Source]) -> Format:
    formats = set()
    for source in sources:
        if not isinstance(source, str | os.PathLike):
            raise DataError("a stream has no suffix: give its format, as in read(stream, format='letor')")
        formats.add(format_of(source))
    if len(formats) > 1:
        raise DataError(f"files that are read as one must have one format, not {', '.join(sorted(formats))}")
    return formats.pop()


def _columns_of_labels(labels: Any) -> dict[str, str]:
    if labels is not None and not isinstance(labels, Mapping):
        raise DataError(f"labels must map names to columns, as in {{'clicks': 'clicked'}}, not {labels!r:.60}")
    return dict(labels or {})


def _require_columns(roles: dict[str, Any]) -> None:
    """Files have columns by name: nothing else can serve for a role."""
    named = {name: value for name, value in roles.items() if name != "labels" and value is not None}
    named |= {f"labels[{source!r}]": column for source, column in roles["labels"].items()}
    wrong = next((name for name, column in named.items() if not isinstance(column, str)), None)
    if wrong is not None:
        raise DataError(f"{wrong} must be the name of a column, not {named[wrong]!r:.60}")


def _require_names(argument: str, names: Any) -> None:
    is_list = isinstance(names, Sequence) and not isinstance(names, str)
    if names is not None and not (is_list and all(isinstance(name, str) for name in names)):
        raise DataError(f"{argument} must be a list of names of columns, not {names!r:.60}")


def _refuse_unused(kind: str, options: TextOptions, of_columns: dict[str, Any]) -> None:
    """Nothing that the caller says is dropped in silence."""
    if kind == "letor":
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
