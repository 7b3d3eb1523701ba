"""Parquet files (extra `parquet`)."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from podium.data.atomic import replacing
from podium.data.columns import is_sparse
from podium.data.frames import LABEL_PREFIX, ROLES
from podium.data.ranking_data import RankingData
from podium.data.text.blocks import Source, source_name
from podium.errors import DataError, FileFormatError, MissingExtraError

_DESCRIPTION = b"podium"  # what columns cannot say, as JSON in the file's own metadata
_PREFERENCES = b"podium.preferences"  # an .npy array of (i, j, probability)


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("pyarrow", "parquet", "Parquet") from None
    return pyarrow


def read_parquet(sources: Sequence[Source], roles: dict[str, Any], feature_names: Sequence[str] | None) -> RankingData:
    """Read Parquet files with the same columns as one."""
    pyarrow = _pyarrow()
    tables = []
    for source in sources:
        name = source_name(source)
        stream = os.fspath(source) if isinstance(source, str | os.PathLike) else source
        try:
            tables.append(pyarrow.parquet.ParquetFile(stream).read())
        except (OSError, ValueError, pyarrow.ArrowException) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise FileFormatError(name, f"cannot be read as Parquet: {reason}") from error
        if tables[-1].schema.names != tables[0].schema.names:
            raise FileFormatError(name, f"has other columns than {source_name(sources[0])}")
        if tables[-1].num_rows == 0:
            raise FileFormatError(name, "holds no documents")
    metadata = tables[0].schema.metadata or {}
    try:
        table = pyarrow.concat_tables([t.replace_schema_metadata(None) for t in tables], promote_options="permissive")
        data = RankingData(
            table, **roles, feature_names=feature_names,
            preferences=_preferences([t.schema.metadata or {} for t in tables], [len(t) for t in tables]),
        )  # fmt: skip
        description = json.loads(metadata.get(_DESCRIPTION, b"{}"))
    except (ValueError, TypeError, pyarrow.ArrowException) as error:
        raise FileFormatError(source_name(sources[0]), str(error)) from None
    if not isinstance(description, dict) or description.get("features_are_named", True):
        return data
    return data.replace(feature_names=None)


def _preferences(metadata: list[dict[bytes, bytes]], sizes: list[int]) -> Any:
    """The preferences that each file holds, its rows counted on from the files before."""
    pairs, first_row = [], 0
    for entries, size in zip(metadata, sizes, strict=True):
        if _PREFERENCES in entries:
            found = np.load(io.BytesIO(entries[_PREFERENCES]), allow_pickle=False)
            pairs.append(found + np.array([first_row, first_row, 0.0]))
        first_row += size
    return np.concatenate(pairs) if pairs else None


def write_parquet(data: RankingData, path: Path) -> None:
    """Write all of the data; it reads back the same to the bit."""
    pyarrow = _pyarrow()
    columns: dict[str, Any] = {"qid": pyarrow.array(data.qid)}
    for source, values in data.labels.items():
        columns["label" if source == "relevance" else LABEL_PREFIX + source] = values
    for role in ("document_weights", "positions", "document_ids"):
        if getattr(data, role) is not None:
            columns[ROLES[role][0]] = pyarrow.array(getattr(data, role))
    if data.query_weights is not None:
        columns[ROLES["query_weights"][0]] = data._query_weight_of_rows()
    reserved = {name for names in ROLES.values() for name in names}
    for k in range(data.n_features):
        name = data.feature_names[k] if data.feature_names is not None else f"f{k + 1}"
        if name in reserved or name.startswith(LABEL_PREFIX):
            raise DataError(f"a feature named {name!r} would be taken for something else; rename it")
        columns[name] = data.feature(k) if is_sparse(data.features) else data.features[:, k]
    description = {"features_are_named": data.feature_names is not None}
    metadata = {_DESCRIPTION: json.dumps(description).encode()}
    if data.preferences is not None:
        buffer = io.BytesIO()
        pairs = data.preferences
        np.save(buffer, np.column_stack([pairs.i, pairs.j, pairs.probability.astype(np.float64)]))
        metadata[_PREFERENCES] = buffer.getvalue()
    table = pyarrow.table(columns).replace_schema_metadata(metadata)
    with replacing(path) as temporary:
        pyarrow.parquet.write_table(table, temporary)
