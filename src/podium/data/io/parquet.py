"""Parquet files (extra `parquet`)."""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from podium.core.array_types import Floats
from podium.core.files import replacing
from podium.data.encoding import Encoding
from podium.data.frames import LABEL_PREFIX, ROLES, assign_roles, features_by_name, has_role, not_numbers
from podium.data.io.text_blocks import Source, opened, source_name
from podium.data.memory import ROW_BYTES, Budget
from podium.data.ranking_data import RankingData
from podium.errors import DataError, FileFormatError, MissingExtraError

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


def import_pyarrow(purpose: str = "Parquet") -> Any:
    """Import pyarrow; raise an error that says how to install it if it is missing."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("pyarrow", "parquet", purpose) from None
    return pyarrow


def read_parquet(
    sources: Sequence[Source],
    roles: dict[str, Any],
    feature_names: Sequence[str] | None,
    categorical: Sequence[str],
    budget: Budget,
) -> RankingData:
    """Read Parquet files with the same columns as one."""
    pyarrow = import_pyarrow()
    tables: list[Any] = []
    schemas: list[Any] = []
    for source in sources:
        name = source_name(source)
        with opened_parquet(source, budget) as (file, schema), naming_damage(name):
            columns = used_columns(schema, roles, feature_names)
            n_bytes = _unpacked_bytes(file.metadata, len(columns))
            budget.hold("data", n_bytes, name)
            table = file.read(columns).select(columns)
            budget.hold("data", max(0, table.nbytes - n_bytes), name)
        schemas.append(schema)
        tables.append(table)
    require_same_columns(sources, schemas, [len(t) for t in tables])
    try:
        table = pyarrow.concat_tables([t.replace_schema_metadata(None) for t in tables], promote_options="permissive")
        data = RankingData(
            without_text(table, schemas, assign_roles(schemas[0].names, roles, feature_names)[1], categorical),
            **roles, feature_names=feature_names, categorical=categorical,
            preferences=stored_preferences(schemas, [len(t) for t in tables]),
        )  # fmt: skip
        description = common_description(schemas)
        described = description.get("encoding") if feature_names is None else None
        encoding = Encoding.from_json(described, data.n_features)
        if encoding and encoding != data.encoding:
            features = features_by_name(table, data.feature_names, encoding)
            data = data.replace(features=features, encoding=encoding)._changed(wide=data.wide)
        return as_described(data, description, categorical)
    except (*DAMAGED, pyarrow.ArrowException) as error:
        raise FileFormatError(source_name(sources[0]), str(error)) from None


def used_columns(schema: Any, roles: dict[str, Any], feature_names: Sequence[str] | None) -> list[str]:
    """Return the columns that are features or have a role, in the order of the file; raise for nested types."""
    types = import_pyarrow().types
    roles, features = assign_roles(schema.names, roles, feature_names)
    used = {*features, *roles["labels"].values(), *(value for value in roles.values() if isinstance(value, str))}
    for name in used:
        dtype = schema.field(name).type
        if types.is_nested(dtype) or types.is_fixed_size_binary(dtype):
            raise not_numbers(name, dtype)
    return [name for name in schema.names if name in used]


def without_text(table: Any, schemas: Sequence[Any], features: Sequence[str], categorical: Sequence[str]) -> Any:
    """Return the table; raise for features that hold text, which is read as dictionaries, but are not categorical."""
    pyarrow = import_pyarrow()
    for name in set(features).difference(categorical):
        column, dtype = table.column(name), schemas[0].field(name).type
        if pyarrow.types.is_dictionary(column.type) and not pyarrow.types.is_dictionary(dtype):
            if column.null_count < len(column):
                raise not_numbers(name, dtype)
            missing = pyarrow.nulls(len(column), pyarrow.float32())
            table = table.set_column(table.column_names.index(name), name, missing)
    return table


def require_same_columns(sources: Sequence[Source], schemas: Sequence[Any], sizes: Sequence[int]) -> None:
    """Raise if a file has no rows, or other columns than the first file."""
    for source, schema, size in zip(sources, schemas, sizes, strict=True):
        if schema.names != schemas[0].names:
            raise FileFormatError(source_name(source), f"must have the same columns as {source_name(sources[0])}")
        if size == 0:
            raise FileFormatError(source_name(source), "has no documents")


def common_description(schemas: Sequence[Any]) -> dict[str, Any]:
    """Return Podium's description of the features, as far as all files agree; empty for files from other tools."""
    descriptions = [json.loads((schema.metadata or {}).get(_DESCRIPTION, b"{}")) for schema in schemas]
    if not all(isinstance(description, dict) for description in descriptions):
        return {}
    return {name: value for name, value in descriptions[0].items() if all(d.get(name) == value for d in descriptions)}


def as_described(data: RankingData, description: dict[str, Any], categorical: Sequence[str]) -> RankingData:
    """Return the data with the attributes that its file describes; without feature names if it was written so."""
    if description.get("features_are_named") is False:
        data = data.replace(feature_names=None)
    reading = description.get("reading")
    chosen = {"categorical": list(categorical)} if categorical else {}
    return data._changed(
        absent_value=_ABSENT_VALUES.get(str(description.get("absent_value"))),
        reading=(reading if isinstance(reading, dict) else {}) | chosen,
    )


@contextmanager
def opened_parquet(source: Source, budget: Budget, buffer_bytes: int = 0) -> Iterator[tuple[Any, Any]]:
    """Yield a file opened by pyarrow and its schema; raise if a checksum is wrong.

    Text is read as a dictionary, so repeated values are stored once. With `buffer_bytes`, that many bytes of a column
    are read at a time instead of a whole row group.
    """
    name, pyarrow = source_name(source), import_pyarrow()
    with opened(source) as stream:
        with naming_damage(name):
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
def naming_damage(name: str) -> Iterator[None]:
    """Add the name of the file to errors of pyarrow and of the roles of columns."""
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
    """Return the position of the whole file's digest in the footer; None if there is none."""
    end = max(0, file.seek(0, io.SEEK_END) - 8)  # the length of the footer, and "PAR1"
    start = max(0, end - int.from_bytes(_bytes_at(file, end, 4), "little"))
    places = [match.start(1) for match in _DIGEST_PLACE.finditer(_bytes_at(file, start, end - start))]
    return start + places[-1] if places else None


def _digest(file: Any, position: int) -> bytes:
    """Return the digest of a file that stores it, or will store it, at a position."""
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


def stored_preferences(schemas: Sequence[Any], sizes: Sequence[int]) -> Floats | None:
    """Return the preferences of all files, with row numbers that continue from file to file."""
    pairs, first_row = [], 0
    for schema, size in zip(schemas, sizes, strict=True):
        entries = schema.metadata or {}
        if _PREFERENCES in entries:
            array = np.load(io.BytesIO(entries[_PREFERENCES]), allow_pickle=False)
            array[:, :2] += first_row
            pairs.append(array)
        first_row += size
    if len({array.shape[1] for array in pairs}) > 1:  # some files have weights
        pairs = [np.column_stack([array, np.ones(len(array))])[:, :4] for array in pairs]
    return np.concatenate(pairs) if pairs else None


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
        columns["label" if source == "relevance" else LABEL_PREFIX + source] = values
    for role in ("document_weights", "positions", "document_ids"):
        if getattr(data, role) is not None:
            columns[ROLES[role][0]] = pyarrow.array(getattr(data, role))
    if data.query_weights is not None:
        columns[ROLES["query_weights"][0]] = data.query_weight_of_row
    for k in range(data.n_features):
        name = data.feature_names[k] if data.feature_names is not None else f"f{k + 1}"
        if has_role(name):
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
