"""`read` and `read_blocks`: ranking data from files, all rows at once or in blocks for files larger than memory."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from itertools import pairwise, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from podium.core.choices import Absent, DataFormat, Returning
from podium.core.progress import progress
from podium.core.threads import thread_count
from podium.core.validation import require_whole, to_path
from podium.data.io.queries import block_bounds
from podium.data.io.side_files import side_file
from podium.data.io.text_blocks import COMPRESSED, Source, source_name
from podium.data.memory import Budget
from podium.data.ranking_data import RankingData
from podium.data.schema import Schema
from podium.data.sparse import MOST_FEATURES
from podium.errors import DataError, FileFormatError, warn

if TYPE_CHECKING:
    from podium.data.io.text_reader import TextReader

ROWS = 1 << 15


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


def read(
    source: Source | Sequence[Source],
    format: DataFormat | None = None,  # noqa: A002
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
    r"""Read ranking data from one or several files.

    Args:
        source: a path, an open binary file, or a sequence of these, which are read as one data set. Text may be
            compressed with gzip, bzip2 or xz, under any name. For LETOR text `FILE`, the side files of LightGBM and
            XGBoost are read as well: `FILE.query` or `FILE.group` (the number of documents of each query, if lines
            have no `qid:`), `FILE.weight` (a weight for each document or query) and `FILE.position`.
        format: `"letor"` (also SVMlight, LibSVM), `"csv"`, `"tsv"` or `"parquet"`; by default determined by the suffix.
        n_features: LETOR: the number of features; by default the largest index in the file.
        absent: LETOR: the value of features that a line omits, `"zero"` or `"missing"` (NaN).
        first_index: LETOR: the index of the first feature in the file, 1 or 0.
        largest_index: LETOR: the largest valid index; a larger one is an error.
        sparse: LETOR: whether to keep the features as a scipy csr_array.
        returning_qid: text: what to do if a query id returns after other queries. `"warn"` and `"merge"` treat all its
            rows as one query, with or without a warning; `"error"` raises an error.
        relevance, qid, labels, document_weights, query_weights, positions, document_ids, feature_names:
            CSV, TSV, Parquet: the names of the columns; the defaults are those of `RankingData`.
        categorical: CSV, TSV, Parquet: the names of categorical features, which may hold text. Categorical columns of
            Parquet files need not be named.
        unlabelled: the label value that means "not labelled".
        normalize: scale features within each query by `"sum"`, `"zscore"` or `"minmax"`.
        n_threads: the number of threads for parsing; all cores by default. The result is the same.
        max_bytes: the maximum memory for the text, and for its arrays, in bytes; by default half of the free memory.
            Reading more is an error, so that an endless stream is stopped.

    Returns:
        The data, with rows in the order of the file.

    Raises:
        FileFormatError: if a file is invalid, with the file, line and column of the problem.

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


def read_blocks(
    source: Source | Sequence[Source],
    format: DataFormat | None = None,  # noqa: A002
    *,
    rows: int = ROWS,
    whole_queries: bool = False,
    like: Schema | None = None,
    **options: Any,
) -> Iterator[RankingData]:
    r"""Read ranking data of any size block by block, using the memory of one block.

    Each block is what `read` returns for its rows: the same features, categories and type of query ids. These depend
    on the whole file, which is therefore read twice unless `like` determines them. A stream cannot be read twice, so
    without `like` it is read into memory.

    Args:
        source: as for `read`.
        format: as for `read`.
        rows: the number of rows of a block; the last block may have fewer.
        whole_queries: whether to keep each query within one block, which then has at most `rows` rows, unless a single
            query has more. If the rows of a query are not adjacent, all rows are one block, with a warning.
            Preferences are only read for whole queries. `normalize` implies whole queries.
        like: `model.schema` of the model that will score the blocks. LETOR text then has as many features as the model,
            categories are numbered as in the model, and returning query ids are not checked. It has no effect with
            whole queries.
        **options: options of `read`. `max_bytes` limits a block; text is read about 4 MiB at a time.

    Returns:
        An iterator over the blocks, in the order of the file.

    Raises:
        FileFormatError: if a file is invalid, with the place of the problem. Unless the file is read twice, the blocks
            before that place have already been returned.

    Example:
        >>> import pathlib, podium, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "data.txt"
        >>> _ = path.write_text("2 qid:7 1:0.5\n0 qid:7 1:0.25\n1 qid:8 2:3\n")
        >>> [block.features.tolist() for block in podium.read_blocks(path, rows=2)]
        [[[0.5, 0.0], [0.25, 0.0]], [[0.0, 3.0]]]
        >>> [len(block) for block in podium.read_blocks(path, rows=1, whole_queries=True)]
        [2, 1]

    """
    require_whole("rows", rows, 1)
    return request_for(source, format, options).blocks(rows, whole_queries, like)


def request_for(source: Source | Sequence[Source], format: DataFormat | None, options: dict[str, Any]) -> Request:  # noqa: A002
    """Return the arguments of `read` as a request."""
    bound = inspect.signature(read).bind(source, format, **options)
    bound.apply_defaults()
    return request_of(bound.arguments)


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
        with self.converting_memory_errors():
            budget = Budget(self.max_bytes)
            if self.format == "parquet":
                from podium.data.io.parquet import read_parquet

                return self._finished(read_parquet(self.sources, self.columns, budget))
            with progress(f"reading {self.name}", self.total_size) as advance:
                arguments = self._text_reader(self.options, budget).all_rows(advance)
            return self._data_of_text(arguments)

    def blocks(self, rows: int, whole_queries: bool, like: Schema | None) -> Iterator[RankingData]:
        """Yield the data in blocks of rows; see `read_blocks`."""
        whole_queries = whole_queries or self.normalize is not None
        like = None if whole_queries else like
        with self.converting_memory_errors():
            if self.format == "parquet":
                yield from self._blocks_of_parquet(rows, whole_queries, like)
            elif like is None and self.total_size is None:
                yield from _blocks_in_memory(self.read(), rows, whole_queries)
            else:
                yield from self._blocks_of_text(rows, whole_queries, like)

    def _blocks_of_text(self, rows: int, whole_queries: bool, like: Schema | None) -> Iterator[RankingData]:
        budget, options, n_passes = Budget(self.max_bytes), self.options, 2 if like is None else 1
        if options.returning_qid == "warn" and (whole_queries or like is not None):
            # With whole queries, `_all_at_once` warns instead. With `like`, a model scores rows one by one, so it does
            # not matter which rows form a query.
            options = replace(options, returning_qid="merge")
        with progress(f"reading {self.name}", n_passes * (self.total_size or 0) or None) as advance:
            first, facts, stamps = None, None, self._stamps()
            sizes: Iterable[int] | None = repeat(rows)
            if like is None:
                first = self._text_reader(options, budget, most_rows=rows if whole_queries else None)
                for group in first.groups(advance, repeat(rows)):
                    first.examine(group)
                first.finish()
                facts = first.facts()
                if whole_queries:
                    sizes = None if first.has_returning_query else first.query_blocks.sizes(first.n_rows)
            if sizes is not None:
                reader = self._text_reader(options, budget, earlier_facts=facts, like=like)
                for group in reader.groups(advance, sizes):
                    rows_before = reader.n_rows
                    yield self._data_of_text(reader.arguments(group), rows_before)
                if first is not None:
                    self._require_unchanged(stamps, first.n_rows == reader.n_rows)
                if like is not None:
                    reader.finish()
                    if self.format == "letor":
                        _check_features(reader, like)
        if sizes is None:
            yield self._all_at_once()

    def _stamps(self) -> dict[str, tuple[int, int] | None]:
        """Return the size and modification time of each file; None if it does not exist."""
        return {
            str(path): (path.stat().st_size, path.stat().st_mtime_ns) if path.exists() else None for path in self._paths
        }

    def _require_unchanged(self, stamps: Mapping[str, tuple[int, int] | None], has_same_rows: bool) -> None:
        """Raise if a file has changed since the first pass."""
        now = self._stamps()
        changed = next((file for file, stamp in stamps.items() if stamp != now[file]), None)
        if changed is not None or not has_same_rows:
            raise FileFormatError(
                changed or self.name,
                "changed while it was read, so the blocks so far may be wrong: read the file again once it no longer "
                "changes",
            )

    def _blocks_of_parquet(self, rows: int, whole_queries: bool, like: Schema | None) -> Iterator[RankingData]:
        from podium.data.io.parquet import DAMAGED, import_pyarrow, opened_files

        errors = (*DAMAGED, import_pyarrow().ArrowException)
        with opened_files(self.sources, self.columns, Budget(self.max_bytes)) as files:
            with self.locating_errors(0, errors):
                sizes = files.sizes_of_blocks(rows) if whole_queries else repeat(rows)
                facts = files.facts(like) if sizes is not None else None
            if sizes is not None and facts is not None:
                with progress(f"reading {self.name}", files.n_rows) as advance:
                    rows_before = 0
                    for table in files.tables(sizes, advance):
                        with self.locating_errors(rows_before, errors):
                            data = files.data(table, facts, rows_before, whole_queries)
                        yield self._finished(data, rows_before)
                        rows_before += len(table)
                        del data, table
                files.seen.warn()
        if facts is None:
            yield self._all_at_once()

    def _all_at_once(self) -> RankingData:
        warn(
            f"{self.name}: all rows are read into memory, because the rows of a query are not adjacent: sort the rows "
            "by query to read in blocks",
            stacklevel=3,
        )
        return self.read()

    def _text_reader(self, options: TextOptions, budget: Budget, **others: Any) -> TextReader:
        """Return a reader for the text; `others` are further arguments of `TextReader`."""
        if self.format == "letor":
            from podium.data.io.letor_reader import LetorReader

            return LetorReader(self.sources, options, budget, **others)
        from podium.data.io.csv_reader import CsvReader

        delimiter = FORMATS[self.format].delimiter
        return CsvReader(delimiter, self.columns, self.sources, options, budget, **others)

    def _data_of_text(self, arguments: dict[str, Any], rows_before: int = 0) -> RankingData:
        """Return the data from a text reader's arguments for `RankingData`; `rows_before` rows precede it."""
        categorical = self.columns.categorical
        reading: dict[str, Any] = {"categorical": list(categorical)} if categorical else {}
        if self.format == "letor":
            reading = {"absent": self.options.absent, "first_index": self.options.first_index}
        origin = {"absent_value": arguments.pop("absent_value", None), "reading": reading}
        with self.locating_errors(rows_before):
            data = RankingData._make(arguments, origin)
        return self._finished(data, rows_before)

    def _finished(self, data: RankingData, rows_before: int = 0) -> RankingData:
        """Return the data with unlabelled values removed and features normalized, as requested."""
        with self.locating_errors(rows_before):
            if self.unlabelled is not None:
                labels = {source: np.where(v == self.unlabelled, np.nan, v) for source, v in data.labels.items()}
                data = data.replace(labels=labels)
            return data if self.normalize is None else data.normalized(self.normalize)

    @contextmanager
    def locating_errors(self, rows_before: int, errors: tuple[type[Exception], ...] = (DataError,)) -> Iterator[None]:
        """Add the file, and the row to count from, to errors in columns, such as a negative weight."""
        try:
            yield
        except FileFormatError:
            raise
        except errors as error:  # rows count from 0, without the header
            place = f" (counted from row {rows_before})" if rows_before else ""
            raise FileFormatError(self.name, f"{error}{place}") from None

    @contextmanager
    def converting_memory_errors(self) -> Iterator[None]:
        """Turn a MemoryError into an error that names the file."""
        try:
            yield
        except MemoryError as error:
            raise FileFormatError(self.name, "does not fit into the memory of this process") from error

    @property
    def total_size(self) -> int | None:
        """The size of all files in bytes; None if a source is a stream or a pipe, which cannot be read twice."""
        if len(self._paths) < len(self.sources) or not all(path.is_file() for path in self._paths):
            return None
        return sum(path.stat().st_size for path in self._paths)

    @property
    def _paths(self) -> list[Path]:
        """The sources that are files, not streams."""
        return [Path(source) for source in self.sources if isinstance(source, str | os.PathLike)]


def request_of(arguments: Mapping[str, Any]) -> Request:
    """Return the arguments of `read` as a request; raise if they are invalid."""
    source = arguments["source"]
    sources: list[Source] = list(source) if isinstance(source, list | tuple) else [source]
    kind = _checked_format(arguments["format"], sources)
    options = TextOptions(**{option.name: arguments[option.name] for option in fields(TextOptions)})
    labels, feature_names, categorical = arguments["labels"], arguments["feature_names"], arguments["categorical"]
    if labels is not None and not isinstance(labels, Mapping):
        raise DataError(f"labels must map names to columns, as in {{'clicks': 'clicked'}}, but got {labels!r:.60}")
    roles = {role: arguments[role] for role in _ROLES} | {"labels": dict(labels or {})}
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
    unlabelled, normalize, max_bytes = arguments["unlabelled"], arguments["normalize"], arguments["max_bytes"]
    return Request(kind, sources, options, columns, unlabelled, normalize, max_bytes)


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


def _refuse_unused(kind: DataFormat, options: TextOptions, columns: dict[str, Any]) -> None:
    """Raise if an option is set, or a column named, that the format does not have."""
    facts, default = FORMATS[kind], TextOptions()
    names = [option.name for option in fields(TextOptions) if option.name not in (*facts.options, "n_threads")]
    unused = [name for name in names if getattr(options, name) != getattr(default, name)]
    if not facts.has_columns:
        unused += [name for name, value in columns.items() if value]
    if unused:
        hint = ": to name its features, read it and call data.replace(feature_names=[…])"
        raise DataError(
            f"{unused[0]} does not apply to the format {kind!r}{hint if unused[0] == 'feature_names' else ''}"
        )


def _blocks_in_memory(data: RankingData, rows: int, whole_queries: bool) -> Iterator[RankingData]:
    """Yield data that is in memory in blocks of rows."""
    if not whole_queries:
        data = data.replace(preferences=None)
        ends = [*range(0, len(data), rows), len(data)]
    elif np.array_equal(data.order, np.arange(len(data))):
        ends = block_bounds(data.offsets[:-1], len(data), rows)
    else:
        yield data
        return
    for first, last in pairwise(ends):
        yield data.take(np.arange(first, last))


def _check_features(reader: TextReader, like: Schema) -> None:
    """Raise or warn if text has too few features for a model, after all of it has been read."""
    names = reader.feature_names()
    absent_value = {"zero": 0.0, "missing": np.nan}[reader.options.absent] if reader.facts().is_sparse else None
    no_rows = {"features": np.empty((0, len(names)), np.float32), "qid": np.empty(0, np.int64), "feature_names": names}
    like.rows(RankingData._make(no_rows, {"absent_value": absent_value}))
