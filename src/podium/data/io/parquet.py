"""Parquet files (extra `parquet`): reading all rows or blocks of rows, and writing."""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from podium.core.array_types import Floats
from podium.core.files import replacing
from podium.data import frames
from podium.data.columns import starts_run, to_query_ids
from podium.data.encoding import (
    CategoriesSeen,
    ColumnPrecision,
    Encoding,
    FeatureBuilder,
    names_of_categories,
    reported_losses,
)
from podium.data.io.queries import QueryBlocks
from podium.data.io.text_blocks import Source, opened, source_name
from podium.data.memory import ROW_BYTES, Budget
from podium.data.ranking_data import RankingData
from podium.data.schema import Schema
from podium.errors import DataError, FileFormatError, MissingExtraError

if TYPE_CHECKING:
    from podium.data.io.reading import Columns

_DESCRIPTION = b"podium"  # key of metadata that columns cannot express, as JSON
_PREFERENCES = b"podium.preferences"  # an .npy array of (i, j, probability), with weights if there are any

# The SHA-256 of the whole file, computed with zeros in its place, is written into the footer last, because checksums of
# pages cover neither their headers nor the footer. Thrift encodes a string of 64 bytes as \x18\x40, then the bytes.
_DIGEST = b"podium.sha256"
_DIGEST_BYTES = 64
_NO_DIGEST = b"0" * _DIGEST_BYTES
_DIGEST_PLACE = re.compile(re.escape(_DIGEST) + rb"\x18\x40([0-9a-f]{64})")
_CHECKED = b'"checked": true'  # in the description of a file that has the digest
_PIECE_BYTES = 1 << 22
_ABSENT_VALUES = {"0.0": 0.0, "nan": np.nan}
DAMAGED = (ArithmeticError, EOFError, LookupError, OSError, RecursionError, TypeError, ValueError)

ROWS_AT_ONCE = 1 << 16  # when a single column is read
BATCH_ROWS = 1 << 13  # when all columns are read in blocks
BUFFER_BYTES = 1 << 18  # per column of a file that is read in blocks
COLUMN_COPIES = 4  # arrays for a column that is read as a whole: values, sorted, distinct, float32


def import_pyarrow(purpose: str = "Parquet") -> Any:
    """Import pyarrow; raise an error that says how to install it if it is missing."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("pyarrow", "parquet", purpose) from None
    return pyarrow


class ColumnFacts(NamedTuple):
    """What only a pass over whole columns shows."""

    # the encoding of the features; a model's encoding has no categories that the model does not know
    encoding: Encoding
    wide: frozenset[int]  # the features whose original values are kept
    losses: tuple[str, ...]  # descriptions of what the conversion to float32 lost


def read_parquet(sources: Sequence[Source], columns: Columns, budget: Budget) -> RankingData:
    """Read all rows; only one file at a time is open, because there may be more than a process can open."""
    pairs, tables = [], []
    for source in sources:
        name = source_name(source)
        with _opened_file(source, budget, buffer_bytes=0) as (file, schema), _locating_errors(name):
            _, _, names = _used_columns(schema, columns)
            n_bytes = _unpacked_bytes(file.metadata, len(names))
            budget.hold("data", n_bytes, name)
            tables.append(file.read(names).select(names))
            budget.hold("data", max(0, tables[-1].nbytes - n_bytes), name)
        pairs.append((file, schema))
    with _locating_errors(source_name(sources[0])):
        files = ParquetFiles(sources, pairs, columns, budget)
    return files.all_rows(tables)


@contextmanager
def opened_files(sources: Sequence[Source], columns: Columns, budget: Budget) -> Iterator[ParquetFiles]:
    """Yield all files as one table that is read in parts."""
    with ExitStack() as stack:
        pairs = [stack.enter_context(_opened_file(source, budget, BUFFER_BYTES)) for source in sources]
        with _locating_errors(source_name(sources[0])):
            files = ParquetFiles(sources, pairs, columns, budget)
        yield files


def _used_columns(schema: Any, columns: Columns) -> tuple[dict[str, Any], list[str], list[str]]:
    """Return the roles, the features, and all columns that are used; raise if one of these has a nested type."""
    types = import_pyarrow().types
    roles, features = frames.assign_roles(schema.names, columns.roles, columns.feature_names)
    with_role = (*roles.values(), *roles["labels"].values())
    used = {*features, *(name for name in with_role if isinstance(name, str))}
    for name in used:
        dtype = schema.field(name).type
        if types.is_nested(dtype) or types.is_fixed_size_binary(dtype):
            raise frames.not_numbers(name, dtype)
    return roles, features, [name for name in schema.names if name in used]


class ParquetFiles:
    """Parquet files with the same columns, as one table.

    The methods that read in parts need open files. The budget limits each block, and each column that is read as a
    whole.
    """

    def __init__(
        self, sources: Sequence[Source], pairs: Sequence[tuple[Any, Any]], columns: Columns, budget: Budget
    ) -> None:
        self.sources, self.columns, self.budget = sources, columns, budget
        self.files, self.schemas = [file for file, _ in pairs], [schema for _, schema in pairs]
        self.sizes = [file.metadata.num_rows for file in self.files]
        self.n_rows, self.name = sum(self.sizes), source_name(sources[0])
        self.seen = CategoriesSeen()
        for source, schema, size in zip(sources, self.schemas, self.sizes, strict=True):
            if schema.names != self.schemas[0].names:
                raise FileFormatError(source_name(source), f"must have the same columns as {self.name}")
            if size == 0:
                raise FileFormatError(source_name(source), "has no documents")
        self.roles, self.features, self.names = _used_columns(self.schemas[0], columns)
        # Podium's description of the features, as far as all files agree; empty for files from other tools.
        descriptions = [json.loads((schema.metadata or {}).get(_DESCRIPTION, b"{}")) for schema in self.schemas]
        first = descriptions[0].items() if all(isinstance(d, dict) for d in descriptions) else ()
        self.description = {key: value for key, value in first if all(d.get(key) == value for d in descriptions)}
        # The encoding that the features were written with, if they are all read.
        encoding = self.description.get("encoding") if columns.feature_names is None else None
        self.described = Encoding.from_json(encoding, len(self.features))

    def all_rows(self, tables: Sequence[Any]) -> RankingData:
        """Return the table of each file as data."""
        try:
            table = _joined(tables)
            data = RankingData(
                self._without_text(table), **self.columns.roles, feature_names=self.columns.feature_names,
                categorical=self.columns.categorical, preferences=self.preferences,
            )  # fmt: skip
            if self.described and self.described != data.encoding:
                features = frames.features_by_name(table, data.feature_names, self.described)
                data = data.replace(features=features, encoding=self.described)._changed(wide=data.wide)
            return self._as_described(data)
        except (*DAMAGED, import_pyarrow().ArrowException) as error:
            raise FileFormatError(self.name, str(error)) from None

    @cached_property
    def _empty(self) -> Any:
        """An empty table with column types that accommodate all files."""
        return _joined([file.schema_arrow.empty_table() for file in self.files]).select(self.names)

    def facts(self, like: Schema | None) -> ColumnFacts:
        """Examine whole columns: all that may need a shift, or with `like` only those that the model shifts."""
        empty = frames.narwhals_frame(self._empty)
        precisions: dict[str, ColumnPrecision] = {}
        categories, shifts, wide = dict(self.described.categories), dict(self.described.shifts), set()

        def may_be_shifted(series: Any) -> bool:
            return frames.holds_numbers(series) and not np.can_cast(frames.values_of(series).dtype, np.float32)

        is_named = self.description.get("features_are_named") is not False
        for k, name in enumerate(self.features):
            feature = -1 if like is None else like.feature_of(k, name if is_named else None)
            if self._holds_categories(name):
                if like is not None and feature in like.encoding.categories:
                    categories[k] = like.encoding.categories[feature]
                elif like is None and not self.described:
                    categories[k] = names_of_categories(
                        value for part in self._parts(name) for value in frames.objects_of(part)
                    )  # fmt: skip
            elif may_be_shifted(empty[name]) and (like is None or feature in like.encoding.shifts):
                precision, shift, is_wide = self._precision_of(name)
                precisions |= precision
                if shift is not None and not self.described:
                    shifts[k] = shift
                if is_wide:
                    wide.add(k)
        return ColumnFacts(Encoding(categories, shifts), frozenset(wide), reported_losses(precisions))

    def sizes_of_blocks(self, most_rows: int) -> list[int] | None:
        """Return the number of rows of each block of whole queries; None if the rows of a query are not adjacent."""
        blocks, before = QueryBlocks(most_rows), 0
        for part in self._parts(self.roles["qid"]):
            qid = to_query_ids(frames.values_of(part), len(part))
            starts = np.flatnonzero(starts_run(qid))
            n_bytes = blocks.n_bytes
            for query, row in zip(qid[starts].tolist(), starts.tolist(), strict=True):
                if blocks.begin(str(query), before + row):
                    return None
            self.budget.hold("query ids", blocks.n_bytes - n_bytes, self.name)
            before += len(part)
        return blocks.sizes(self.n_rows)

    def tables(self, sizes: Iterable[int], advance: Callable[[float], None]) -> Iterator[Any]:
        """Yield all columns, in tables with these numbers of rows."""
        pyarrow = import_pyarrow()
        next_sizes = iter(sizes)
        pieces, n_rows, size = [self._empty], 0, next(next_sizes)
        for batch in self._batches(self.names, BATCH_ROWS):
            advance(batch.num_rows)
            rest = pyarrow.Table.from_batches([batch]).select(self.names)
            self.budget.hold("data", _table_bytes(rest), self.name)
            while n_rows + len(rest) >= size:
                n_more = size - n_rows
                yield _joined([*pieces, rest.slice(0, n_more)])
                self.budget.release()
                rest, pieces, n_rows, size = rest.slice(n_more), [self._empty], 0, next(next_sizes, self.n_rows + 1)
                self.budget.hold("data", _table_bytes(rest), self.name)
            pieces.append(rest)
            n_rows += len(rest)
        if n_rows:
            yield _joined(pieces)

    def data(self, table: Any, facts: ColumnFacts, first_row: int, has_whole_queries: bool) -> RankingData:
        """Return the rows of a table as data."""
        table = self._without_text(table)
        frame = frames.narwhals_frame(table)
        categories = dict(facts.encoding.categories)
        for k, name in enumerate(self.features):
            if not self.described and k not in categories and self._holds_categories(name):
                categories[k] = names_of_categories(frames.objects_of(frame[name]))
        encoding = Encoding(categories, facts.encoding.shifts)
        converted, names, roles = frames.convert_frame(table, *self.columns, encoding, self.seen)
        pairs = self.preferences if has_whole_queries else None
        if pairs is not None:
            pairs = pairs[(pairs[:, 0] >= first_row) & (pairs[:, 0] < first_row + len(table))]
            pairs[:, :2] -= first_row
        data = RankingData(converted.features, **roles, feature_names=names, encoding=encoding, preferences=pairs)
        wide = {k: frames.values_of(frame[self.features[k]]) for k in sorted(facts.wide)}
        return self._as_described(data)._changed(wide=wide, losses=facts.losses)

    def _as_described(self, data: RankingData) -> RankingData:
        """Return the data with the attributes that its file describes, and without feature names if it had none."""
        if self.description.get("features_are_named") is False:
            data = data.replace(feature_names=None)
        reading = self.description.get("reading")
        options = {"categorical": list(self.columns.categorical)} if self.columns.categorical else {}
        return data._changed(
            absent_value=_ABSENT_VALUES.get(str(self.description.get("absent_value"))),
            reading=(reading if isinstance(reading, dict) else {}) | options,
        )

    def _without_text(self, table: Any) -> Any:
        """Return the table with empty text features as numbers; raise if other text is not named as categorical."""
        pyarrow = import_pyarrow()
        for name in set(self.features).difference(self.columns.categorical):
            column, dtype = table.column(name), self.schemas[0].field(name).type
            if pyarrow.types.is_dictionary(column.type) and not pyarrow.types.is_dictionary(dtype):
                if column.null_count < len(column):
                    raise frames.not_numbers(name, dtype)
                missing = pyarrow.nulls(len(column), pyarrow.float32())
                table = table.set_column(table.column_names.index(name), name, missing)
        return table

    def _holds_categories(self, name: str) -> bool:
        is_dictionary = import_pyarrow().types.is_dictionary
        return name in self.columns.categorical or any(is_dictionary(s.field(name).type) for s in self.schemas)

    def _precision_of(self, name: str) -> tuple[dict[str, ColumnPrecision], float | None, bool]:
        """Return a column's precision by its name, its shift, and whether to keep its values, from all files."""
        self.budget.hold("data", 8 * COLUMN_COPIES * self.n_rows, self.name)
        values = np.concatenate([frames.values_of(part) for part in self._parts(name)])
        builder = FeatureBuilder(np.empty((len(values), 1), np.float32))
        builder.set_numbers(0, repr(name), values)
        self.budget.release()
        return builder.precisions, builder.shifts.get(0), 0 in builder.wide

    def _parts(self, name: str) -> Iterator[Any]:
        """Yield a column in parts, as narwhals series."""
        for batch in self._batches([name], ROWS_AT_ONCE):
            table = import_pyarrow().Table.from_batches([batch]).select([name])
            yield frames.narwhals_frame(_joined([self._empty.select([name]), table]))[name]

    def _batches(self, names: list[str], n_rows: int) -> Iterator[Any]:
        for source, file in zip(self.sources, self.files, strict=True):
            batches = file.iter_batches(n_rows, columns=names)
            while True:
                with _locating_errors(source_name(source)):
                    batch = next(batches, None)
                if batch is None:
                    break
                yield batch

    @cached_property
    def preferences(self) -> Floats | None:
        """The preferences of all rows, with row numbers that continue from file to file."""
        pairs, first_row = [], 0
        for schema, size in zip(self.schemas, self.sizes, strict=True):
            entries = schema.metadata or {}
            if _PREFERENCES in entries:
                array = np.load(io.BytesIO(entries[_PREFERENCES]), allow_pickle=False)
                array[:, :2] += first_row
                pairs.append(array)
            first_row += size
        if len({array.shape[1] for array in pairs}) > 1:  # some files have weights
            pairs = [np.column_stack([array, np.ones(len(array))])[:, :4] for array in pairs]
        return np.concatenate(pairs) if pairs else None


def _joined(tables: Sequence[Any]) -> Any:
    tables = [table.replace_schema_metadata(None) for table in tables]
    return import_pyarrow().concat_tables(tables, promote_options="permissive")


def _table_bytes(table: Any) -> int:
    """Return the memory of a table and its float32 copy: at least 12 bytes per number, plus some per row."""
    return int(max(table.nbytes, 12 * table.num_rows * table.num_columns) + ROW_BYTES * table.num_rows)


@contextmanager
def _opened_file(source: Source, budget: Budget, buffer_bytes: int) -> Iterator[tuple[Any, Any]]:
    """Yield a file opened by pyarrow and its schema; raise if a checksum is wrong.

    Text is read as a dictionary, so repeated values are stored once.
    """
    name, pyarrow = source_name(source), import_pyarrow()
    with opened(source) as stream:
        with _locating_errors(name):
            file = stream if stream.seekable() else _in_memory(stream, budget, name)
            position = _position_of_digest(file)
            if position is not None and _digest(file, position) != _bytes_at(file, position, _DIGEST_BYTES):
                raise FileFormatError(name, "is damaged: its checksum is wrong")
            parquet = pyarrow.parquet.ParquetFile(file)
            schema, columns = parquet.schema_arrow, map(parquet.schema.column, range(len(parquet.schema)))
            if position is None and _CHECKED in (schema.metadata or {}).get(_DESCRIPTION, b""):
                raise FileFormatError(name, "is damaged: its checksum is missing")
            parquet = pyarrow.parquet.ParquetFile(
                file, metadata=parquet.metadata, page_checksum_verification=True, buffer_size=buffer_bytes,
                pre_buffer=False, read_dictionary=[c.path for c in columns if c.physical_type == "BYTE_ARRAY"],
            )  # fmt: skip
        yield parquet, schema


@contextmanager
def _locating_errors(name: str) -> Iterator[None]:
    """Add the name of the file to errors of pyarrow, and to errors in the roles of columns."""
    try:
        yield
    except FileFormatError:
        raise
    except DataError as error:
        raise FileFormatError(name, str(error)) from None
    except (*DAMAGED, import_pyarrow().ArrowException) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise FileFormatError(name, f"cannot be read as Parquet: {reason}") from error


def _in_memory(stream: Any, budget: Budget, name: str) -> io.BytesIO:
    """Return the rest of a stream in memory, because readers of Parquet need to seek."""
    content = io.BytesIO()
    while piece := stream.read(_PIECE_BYTES):
        budget.hold("text", len(piece), name)
        content.write(piece)
    return content


def _unpacked_bytes(metadata: Any, n_columns: int) -> int:
    """Estimate a file's size in memory: its stated size or 12 bytes per number, plus some per row."""
    stated = sum(max(0, metadata.row_group(k).total_byte_size) for k in range(metadata.num_row_groups))
    n_rows = max(0, metadata.num_rows)
    return int(ROW_BYTES * n_rows + max(stated, 12 * n_rows * n_columns))


def _position_of_digest(file: Any) -> int | None:
    """Return the position of the file's digest in the footer; None if there is none."""
    end = max(0, file.seek(0, io.SEEK_END) - 8)  # the length of the footer, and "PAR1"
    start = max(0, end - int.from_bytes(_bytes_at(file, end, 4), "little"))
    places = [match.start(1) for match in _DIGEST_PLACE.finditer(_bytes_at(file, start, end - start))]
    return start + places[-1] if places else None


def _digest(file: Any, position: int) -> bytes:
    """Return the digest of a file that stores its digest, or will store it, at a position."""
    digest = hashlib.sha256()
    at, end = 0, file.seek(0, io.SEEK_END)
    while at < end:
        size = min(_PIECE_BYTES, position - at if at < position else end - at)
        piece = _bytes_at(file, at, size)
        if len(piece) != size:
            raise EOFError("the file was truncated while it was read")
        digest.update(piece)
        at += size
        if at == position:
            digest.update(_NO_DIGEST)
            at += _DIGEST_BYTES
    return digest.hexdigest().encode()


def _bytes_at(file: Any, position: int, size: int) -> bytes:
    file.seek(position)
    return bytes(file.read(size))


def write_parquet(data: RankingData, path: Path) -> None:
    """Write data so that it reads back bit for bit."""
    pyarrow = import_pyarrow()
    try:
        table = _table(data, pyarrow)
    except UnicodeEncodeError as error:
        raise DataError(f"{path}: the text {error.object!a} cannot be encoded as UTF-8") from None
    with replacing(path) as temporary:
        pyarrow.parquet.write_table(table, temporary, write_page_checksum=True)
        with temporary.open("r+b") as file:
            position = _position_of_digest(file)
            assert position is not None
            digest = _digest(file, position)
            file.seek(position)
            file.write(digest)


def _column(data: RankingData, feature: int, pyarrow: Any) -> Any:
    """Return a feature as other tools read it: categories by name, and numbers without the shift."""
    values = data.original_column(feature) if feature in data.wide else data.feature(feature)
    names = data.encoding.categories.get(feature)
    if names is None:
        return values
    missing = np.isnan(values)
    codes = pyarrow.array(np.where(missing, 0, values).astype(np.int32), mask=missing)
    return pyarrow.DictionaryArray.from_arrays(codes, pyarrow.array(list(names), pyarrow.string()))


def _table(data: RankingData, pyarrow: Any) -> Any:
    """Return the data as an Arrow table; its metadata has what columns cannot express."""
    columns: dict[str, Any] = {"qid": pyarrow.array(data.qid)}
    for source, values in data.labels.items():
        columns["label" if source == "relevance" else frames.LABEL_PREFIX + source] = values
    for role in ("document_weights", "positions", "document_ids"):
        if getattr(data, role) is not None:
            columns[frames.ROLES[role][0]] = pyarrow.array(getattr(data, role))
    if data.query_weights is not None:
        columns[frames.ROLES["query_weights"][0]] = data.query_weight_of_row
    for k in range(data.n_features):
        name = data.feature_names[k] if data.feature_names is not None else f"f{k + 1}"
        if frames.has_role(name):
            raise DataError(f"rename the feature {name!r}: a column of that name would have another role")
        columns[name] = _column(data, k, pyarrow)
    description = {
        "features_are_named": data.feature_names is not None,
        "encoding": data.encoding.to_json() if data.encoding else None,
        "absent_value": None if data.absent_value is None else str(data.absent_value),
        "reading": dict(data.reading),
        "checked": True,
    }
    metadata = {_DESCRIPTION: json.dumps(description).encode(), _DIGEST: _NO_DIGEST}
    if data.preferences is not None:
        buffer = io.BytesIO()
        np.save(buffer, np.column_stack([column.astype(np.float64) for column in data.preferences.columns]))
        metadata[_PREFERENCES] = buffer.getvalue()
    return pyarrow.table(columns).replace_schema_metadata(metadata)
