"""Where documents come from, partition by partition, and queries that lie in several partitions brought together.

A source is computed on a worker, and again on another one if that is lost. It is data, or a `Step`: a function of other
sources; an engine may have sources of its own beside, as Dask has delayed values.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Ints
from podium.data import RankingData
from podium.data.encoding import Encoding, names_of_categories
from podium.data.schema import Schema
from podium.errors import DataError, PodiumWarning

Source = Any
OPTIONAL = ("document_weights", "query_weights", "positions", "preferences", "document_ids")


@dataclass(frozen=True, eq=False)
class Step:
    """A function of sources, or of plain values, that gives a source."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]


def computed(source: Source) -> Any:
    """The value of a source, here and now."""
    if isinstance(source, Step):
        return source.function(*map(computed, source.arguments))
    if isinstance(source, list):
        return [computed(one) for one in source]
    return source


@dataclass(frozen=True)
class Description:
    """What must be known of a partition before documents are placed.

    Attributes:
        n_documents: how many; 0 for an empty partition, which has nothing else.
        query_ids, query_sizes: of each query.
        schema: of its features.
        has: label sources, and which other columns there are.
        kind: of query ids.
        reading, absent_value: see `RankingData`.
        n_bytes: that its features take.

    """

    n_documents: int
    query_ids: NDArray[Any]
    query_sizes: Ints
    schema: Schema
    has: tuple[str, ...]
    kind: str
    reading: dict[str, Any]
    absent_value: float | None
    n_bytes: int


def describe(data: RankingData) -> Description:
    """Describe a partition."""
    has = (*sorted(f"label {source}" for source in data.labels), *(c for c in OPTIONAL if getattr(data, c) is not None))
    n_bytes = getattr(data.features, "nbytes", 0) or getattr(getattr(data.features, "data", None), "nbytes", 0)
    return Description(
        len(data), data.query_ids, data.query_sizes, Schema.of(data), has, data.qid.dtype.kind, dict(data.reading),
        data.absent_value, int(n_bytes),
    )  # fmt: skip


@dataclass(frozen=True)
class Partitions:
    """The partitions of a set, of whole queries each.

    Attributes:
        sources: in the order that came.
        sizes: documents of each.
        schema: of all.
        first: what the first partition is like.

    """

    sources: list[Source]
    sizes: list[int]
    schema: Schema
    first: Description

    @property
    def n_documents(self) -> int:
        """Of all partitions."""
        return sum(self.sizes)


def gather_partitions(
    name: str, sources: Sequence[Source], described: Sequence[Description], schema: Schema | None
) -> Partitions:
    """Bring partitions to one schema, and queries into one partition each.

    Args:
        name: what messages call the set.
        sources: of `RankingData`.
        described: what `describe` gave for each.
        schema: that of the training documents; None for these themselves.

    """
    filled = [(s, d) for s, d in zip(sources, described, strict=True) if d.n_documents]
    if not filled:
        raise DataError(f"{name}: there are no documents")
    first = filled[0][1]
    for _, other in filled[1:]:
        _require_alike(name, first, other)
    common = schema or _common_schema(name, [d for _, d in filled])
    matched = [s if d.schema == common else Step(_matched, (common, s)) for s, d in filled]
    return _whole_queries(name, matched, [d for _, d in filled], common)


def _matched(schema: Schema, data: RankingData) -> RankingData:
    return schema.matched(data)


def _require_alike(name: str, first: Description, other: Description) -> None:
    """Refuse partitions that differ in what they have."""
    for what, a, b in (
        ("columns", first.has, other.has), ("kind of query id", first.kind, other.kind),
        ("normalization", first.reading.get("normalize"), other.reading.get("normalize")),
    ):  # fmt: skip
        if a != b:
            raise DataError(f"{name}: partitions differ in their {what}: {a} and {b}")


def _common_schema(name: str, described: list[Description]) -> Schema:
    """The features of all partitions together: the same ones, with the categories of all."""
    widest = max((d.schema for d in described), key=lambda schema: schema.n_features)
    for d in described:
        if d.schema.encoding.shifts:
            feature = next(iter(d.schema.encoding.shifts))
            raise DataError(
                f"{name}: float32 cannot tell the values of feature {feature} apart, and on a cluster no shift is "
                "found for it: subtract an offset, such as the first time stamp, before training"
            )
        same = d.schema.n_features == widest.n_features and d.schema.names == widest.names
        if not same and d.absent_value is None:
            raise DataError(
                f"{name}: partitions differ in their features: {d.schema.n_features} and {widest.n_features}, or in "
                "their names"
            )
    names: dict[int, set[str]] = {}
    for d in described:
        for feature, found in d.schema.encoding.categories.items():
            names.setdefault(feature, set()).update(found)
    categories = {feature: names_of_categories(all_names) for feature, all_names in sorted(names.items())}
    return Schema(widest.n_features, widest.names, Encoding(categories))


def _whole_queries(name: str, sources: list[Source], described: list[Description], schema: Schema) -> Partitions:
    """Bring queries that lie in several partitions into one of them."""
    ids = np.concatenate([d.query_ids for d in described])
    sizes = np.concatenate([d.query_sizes for d in described])
    partition = np.repeat(np.arange(len(described)), [len(d.query_ids) for d in described])
    _, query, times = np.unique(ids, return_inverse=True, return_counts=True)
    if (times == 1).all():
        return Partitions(sources, [d.n_documents for d in described], schema, described[0])
    order = np.lexsort((partition, query))
    starts = np.cumsum(times) - times
    place = np.arange(len(query)) - starts[query[order]]
    home_of_query = np.empty(len(times), np.int64)  # one of its partitions; they take turns
    is_home = place == np.arange(len(times))[query[order]] % times[query[order]]
    home_of_query[query[order][is_home]] = partition[order][is_home]
    home = home_of_query[query]
    moves = home != partition
    moved, total = int(sizes[moves].sum()), sum(d.n_documents for d in described)
    n_bytes = moved * sum(d.n_bytes for d in described) // total
    warnings.warn(
        f"{name}: {int((times > 1).sum())} of {len(times)} queries lie in several partitions, so {moved} of {total} "
        f"documents ({n_bytes / 1e6:.1f} MB) are moved, and again if a worker is lost; partition the data by query to "
        "save that",
        PodiumWarning,
        stacklevel=5,
    )
    given: list[dict[int, NDArray[Any]]] = [
        {int(d): ids[moves & (partition == k) & (home == d)] for d in np.unique(home[moves & (partition == k)])}
        for k in range(len(described))
    ]
    taken = [Step(_given, (source, given[k])) if given[k] else source for k, source in enumerate(sources)]
    new, new_sizes = [], []
    for k in range(len(described)):
        others = [taken[p] for p in range(len(described)) if k in given[p]]
        new.append(Step(_collected, (k, taken[k], others)) if others or given[k] else sources[k])
        new_sizes.append(int(sizes[home == k].sum()))
    return Partitions(new, new_sizes, schema, described[0])


def _given(data: RankingData, given: dict[int, NDArray[Any]]) -> dict[int | None, RankingData]:
    """What a partition gives to others, by their numbers; None is what it keeps."""
    pieces: dict[int | None, RankingData] = {}
    stays = np.ones(data.n_queries, bool)
    for number, ids in given.items():
        is_given = np.isin(data.query_ids, ids)
        pieces[number] = data.select(is_given)
        stays &= ~is_given
    pieces[None] = data.select(stays)
    return pieces


def _collected(number: int, own: Any, others: list[dict[int | None, RankingData]]) -> RankingData:
    """A partition of whole queries: what it keeps, and what others give it."""
    kept = own[None] if isinstance(own, dict) else own
    parts = [part for part in (kept, *(other[number] for other in others)) if len(part)]
    return RankingData.concatenate(parts) if parts else kept


def pieces_of(data: RankingData, n: int) -> list[RankingData]:
    """Data that is here in pieces of whole queries, of about as many documents each."""
    n = min(n, data.n_queries)
    if n <= 1:
        return [data]
    ends = np.cumsum(data.query_sizes)
    piece = np.minimum((ends - 1) * n // max(len(data), 1), n - 1)
    return [data.select(piece == k) for k in range(n) if (piece == k).any()]
