"""Sources of partitions, and the collection of queries that are spread over several partitions.

A worker computes a source, and another worker computes it again if the first one is lost. A source is data, or a
`DerivedSource`: a function of other sources. Engines may have other kinds of sources, such as Dask's delayed values or
Ray's object references.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Ints
from podium.data import RankingData, frames, read
from podium.data.encoding import Encoding, names_of_categories
from podium.data.schema import Schema, columns_of_text
from podium.errors import DataError, warn

Reader = Callable[[list[str]], RankingData]
PIECES = 4  # of `RankingData` for each worker, so that several workers can share those of a lost one
Columns = dict[str, Any]  # y, qid, sample_weight, query_weight: names of columns, or collections
Source = Any
OPTIONAL = ("document_weights", "query_weights", "positions", "preferences", "document_ids")


@dataclass(frozen=True, eq=False)
class DerivedSource:
    """A source that is a function of other sources or of plain values."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]


def computed(source: Source, value_of: Callable[[Source], Any] = lambda source: source) -> Any:
    """Compute the value of a source in this process; `value_of` looks up sources that only an engine knows."""
    if isinstance(source, DerivedSource):
        return source.function(*(computed(argument, value_of) for argument in source.arguments))
    if isinstance(source, list):
        return [computed(entry, value_of) for entry in source]
    return value_of(source)


@dataclass(frozen=True)
class PartitionSummary:
    """The facts about a partition that the client needs to place documents."""

    n_documents: int  # 0 for an empty partition
    # query_ids, query_sizes: the id and the number of documents of each query
    query_ids: NDArray[Any]
    query_sizes: Ints
    schema: Schema  # names and encoding of the features
    has: tuple[str, ...]  # label sources and other columns
    kind: str  # the kind of data type of query ids
    # reading, absent_value: see `RankingData`
    reading: dict[str, Any]
    absent_value: float | None
    n_bytes: int  # size of the features


def describe(data: RankingData) -> PartitionSummary:
    """Summarize a partition."""
    has = (*sorted(f"label {source}" for source in data.labels), *(c for c in OPTIONAL if getattr(data, c) is not None))
    n_bytes = getattr(data.features, "nbytes", 0) or getattr(getattr(data.features, "data", None), "nbytes", 0)
    return PartitionSummary(
        len(data), data.query_ids, data.query_sizes, Schema.of(data), has, data.qid.dtype.kind, dict(data.reading),
        data.absent_value, int(n_bytes),
    )  # fmt: skip


@dataclass(frozen=True)
class Partitions:
    """The partitions of a set, each with whole queries."""

    sources: list[Source]  # one for each partition
    sizes: list[int]  # number of documents of each
    schema: Schema  # features of all partitions
    first: PartitionSummary  # summary of the first partition


def gather_partitions(
    name: str, sources: Sequence[Source], described: Sequence[PartitionSummary], schema: Schema | None
) -> Partitions:
    """Convert partitions to one schema, and collect each query in one partition.

    Args:
        name: the name of the set in messages.
        sources: sources of `RankingData`.
        described: the result of `describe` for each source.
        schema: the schema of the training documents; None for the training documents themselves.

    """
    nonempty = [(s, d) for s, d in zip(sources, described, strict=True) if d.n_documents]
    if not nonempty:
        raise DataError(f"{name}: there are no documents")
    described = [d for _, d in nonempty]
    for other in described[1:]:
        _require_same_columns(name, described[0], other)
    common = schema or _common_schema(name, described)
    matched = [s if d.schema == common else DerivedSource(common.matched, (s,)) for s, d in nonempty]
    return _collect_queries(name, matched, described, common)


def _require_same_columns(name: str, first: PartitionSummary, other: PartitionSummary) -> None:
    """Raise if two partitions have different columns."""
    for aspect, a, b in (
        ("columns", first.has, other.has), ("kind of query id", first.kind, other.kind),
        ("normalization", first.reading.get("normalize"), other.reading.get("normalize")),
    ):  # fmt: skip
        if a != b:
            raise DataError(f"{name}: partitions differ in their {aspect}: {a} and {b}")


def _common_schema(name: str, described: list[PartitionSummary]) -> Schema:
    """Return the features that all partitions share, with the categories of all partitions."""
    widest = max((d.schema for d in described), key=lambda schema: schema.n_features)
    for d in described:
        if d.schema.encoding.shifts:
            feature = next(iter(d.schema.encoding.shifts))
            raise DataError(
                f"{name}: float32 cannot distinguish the values of feature {feature}, and clusters do not shift "
                "features: subtract an offset, such as the first time stamp, before training"
            )
        same = d.schema.n_features == widest.n_features and d.schema.names == widest.names
        if not same and d.absent_value is None:
            raise DataError(
                f"{name}: partitions differ in their features: {d.schema.n_features} and {widest.n_features}, or in "
                "their names"
            )
    names: dict[int, set[str]] = {}
    for d in described:
        for feature, part_names in d.schema.encoding.categories.items():
            names.setdefault(feature, set()).update(part_names)
    categories = {feature: names_of_categories(all_names) for feature, all_names in sorted(names.items())}
    return Schema(widest.n_features, widest.names, Encoding(categories))


def has_equal(values: NDArray[Any]) -> bool:
    """Return whether two values are equal. Sorting is a hundred times faster than `np.unique`, which hashes."""
    ordered = np.sort(values)
    return bool((ordered[1:] == ordered[:-1]).any())


def _collect_queries(name: str, sources: list[Source], described: list[PartitionSummary], schema: Schema) -> Partitions:
    """Collect each query that is spread over several partitions in one of them, its home."""
    n_parts = len(described)
    ids = np.concatenate([d.query_ids for d in described])
    sizes = np.concatenate([d.query_sizes for d in described])
    partition = np.repeat(np.arange(n_parts), [len(d.query_ids) for d in described])
    if not has_equal(ids):
        return Partitions(sources, [d.n_documents for d in described], schema, described[0])
    _, query, counts = np.unique(ids, return_inverse=True, return_counts=True)
    order = np.lexsort((partition, query))
    starts = np.cumsum(counts) - counts
    turn = np.arange(len(counts)) % counts  # each of its partitions in turn, so that homes are spread evenly
    home = partition[order][starts + turn][query]
    moves = home != partition
    n_moved, total = int(sizes[moves].sum()), sum(d.n_documents for d in described)
    n_bytes = n_moved * sum(d.n_bytes for d in described) // total
    warn(
        f"{name}: {int((counts > 1).sum())} of {len(counts)} queries are spread over several partitions, so {n_moved} "
        f"of {total} documents ({n_bytes / 1e6:.1f} MB) have to move, and again if a worker is lost; partition the "
        "data by query to avoid that",
        stacklevel=5,
    )
    leaving: list[dict[int, NDArray[Any]]] = []  # of each partition: the queries that move, by their home
    for k in range(n_parts):
        leaves = moves & (partition == k)
        leaving.append({int(other): ids[leaves & (home == other)] for other in np.unique(home[leaves])})
    pieces = [DerivedSource(_split, (sources[k], leaving[k])) if leaving[k] else sources[k] for k in range(n_parts)]
    new_sources, new_sizes = [], []
    for k in range(n_parts):
        arriving = [pieces[other] for other in range(n_parts) if k in leaving[other]]
        changes = bool(arriving or leaving[k])
        new_sources.append(DerivedSource(_joined, (k, pieces[k], arriving)) if changes else sources[k])
        new_sizes.append(int(sizes[home == k].sum()))
    return Partitions(new_sources, new_sizes, schema, described[0])


def _split(data: RankingData, leaving: dict[int, NDArray[Any]]) -> dict[int | None, RankingData]:
    """Split a partition into the queries that move, by the number of their new partition, and the rest (key None)."""
    pieces: dict[int | None, RankingData] = {}
    stays = np.ones(data.n_queries, bool)
    for number, ids in leaving.items():
        leaves = np.isin(data.query_ids, ids)
        pieces[number] = data.select(leaves)
        stays &= ~leaves
    pieces[None] = data.select(stays)
    return pieces


def _joined(number: int, pieces: Any, arriving: list[dict[int | None, RankingData]]) -> RankingData:
    """Join the queries that stay in a partition and those that arrive from others."""
    staying = pieces[None] if isinstance(pieces, dict) else pieces
    parts = [part for part in (staying, *(other[number] for other in arriving)) if len(part)]
    return RankingData.concatenate(parts) if parts else staying


def pieces_of(data: RankingData, n: int) -> list[RankingData]:
    """Split data into n pieces of whole queries and about equal size."""
    n = min(n, data.n_queries)
    if n <= 1:
        return [data]
    ends = np.cumsum(data.query_sizes)
    piece = np.minimum((ends - 1) * n // max(len(data), 1), n - 1)
    return [data.select(piece == k) for k in range(n) if (piece == k).any()]


# --- sources from the arguments of `fit`


def are_files(X: Any) -> bool:
    """Return whether a value is the name of a file, or a list of names."""
    if isinstance(X, str | os.PathLike):
        return True
    return isinstance(X, list | tuple) and bool(X) and all(isinstance(name, str | os.PathLike) for name in X)


def file_sources(X: Any, columns: Columns, reader: Reader | None) -> list[Source]:
    """Return a source for each file."""
    extra = [name for name, value in columns.items() if not isinstance(value, str)]
    if extra:
        raise DataError(f"files have their own labels and weights: omit {extra[0]}")
    files = [Path(path) for path in paths_of(X)]
    paths = [str(path.absolute() if path.exists() else path) for path in files]  # workers may be in another folder
    return [DerivedSource(_read, (path, reader)) for path in paths]


def paths_of(X: Any) -> list[str]:
    """Return all files that match patterns or are in folders."""
    paths: list[str] = []
    for name in map(os.fspath, [X] if isinstance(X, str | os.PathLike) else X):
        if Path(name).is_dir():
            matches = sorted(str(path) for path in Path(name).iterdir() if path.is_file() and path.name[0] not in "._")
        else:
            matches = sorted(glob.glob(name)) if glob.has_magic(name) else [name]  # noqa: PTH207
        if not matches:
            raise DataError(f"there are no files {name!r}")
        paths += matches
    return paths


def _read(path: str, reader: Reader | None) -> RankingData:
    return read(path) if reader is None else reader([path])


def frame_to_data(frame: Any, names: list[str], values: list[Any], categorical: tuple[Any, ...]) -> RankingData:
    """Return a pandas frame as data; `names` are the roles of `values`, which are names of columns or arrays."""
    if not len(frame):
        return empty_data()
    columns = {
        name: value if isinstance(value, str) else np.asarray(value) for name, value in zip(names, values, strict=True)
    }
    if "qid" not in columns and not frames.has_queries(frame):
        raise DataError("the frame has no query ids: add a column 'qid', or name the column, fit(X, qid=…)")
    text = columns_of_text(frame, list(categorical))
    return RankingData(
        frame.reset_index(drop=True), columns.get("y"), qid=columns.get("qid"), categorical=text,
        document_weights=columns.get("sample_weight"), query_weights=columns.get("query_weight"),
    )  # fmt: skip


def empty_data() -> RankingData:
    """Return an empty partition."""
    return RankingData(np.empty((0, 1), np.float32), np.empty(0), qid=np.empty(0, np.int64))


# --- classes


def labels_of(data: RankingData) -> Any:
    """Return the distinct labels of a partition."""
    labels = data.relevance if len(data) else np.empty(0, np.float32)
    return np.unique(labels[~np.isnan(labels)])


def coded_data(data: RankingData, classes: Any) -> RankingData:
    """Return the data with 1 for the second class, and 0 for the first."""
    from podium.estimators.pointwise_trees import class_codes

    if not len(data):
        return data
    return data.replace(labels=dict(data.labels) | {"relevance": class_codes(data.relevance, classes)})
