"""Some of the queries or documents of ranking data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Bools, Ints
from podium.data.columns import as_array
from podium.data.ranking_data import RankingData, rebuild
from podium.errors import DataError


def rows_of_queries(data: RankingData, queries: Iterable[int] | NDArray[Any]) -> Ints:
    """The rows of some queries, by their numbers or by a mask, ascending."""
    numbers = np.asarray(queries if isinstance(queries, np.ndarray) else list(queries))
    is_chosen = np.zeros(data.n_queries, bool)
    if numbers.size:
        if numbers.dtype.kind not in "iub":
            raise DataError(f"queries are chosen by number or by a mask, not by {numbers.dtype}")
        if numbers.dtype.kind == "b" and len(numbers) != data.n_queries:
            raise DataError(f"the mask has {len(numbers)} entries for {data.n_queries} queries")
        if numbers.dtype.kind != "b" and (numbers.min() < 0 or numbers.max() >= data.n_queries):
            raise DataError(f"queries are numbered 0 to {data.n_queries - 1}")
        is_chosen[numbers] = True
    return np.sort(data.order[np.repeat(is_chosen, data.query_sizes)])


def numbers_of_query(data: RankingData, query: Any) -> list[int]:
    """Return the number of the query with this id, or nothing; whole numbers may be given as text."""
    return [number for number, known in enumerate(data.query_ids.tolist()) if str(known) == str(query)]


def has_weight(data: RankingData) -> Bools:
    """Return which rows have a weight above 0, their own and their query's."""
    counts = np.ones(len(data), bool) if data.document_weights is None else data.document_weights > 0
    return counts if data.query_weights is None else counts & (data.query_weight_of_row > 0)


def row_numbers(data: RankingData, rows: Any) -> Ints:
    """Rows by their numbers; a mask of all rows works too."""
    n, numbers = len(data), as_array(rows)
    if numbers.size == 0:
        numbers = numbers.astype(np.int64)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iub":
        raise DataError(f"rows are taken by number or by a mask, not by {numbers.ndim}-dimensional {numbers.dtype}")
    if numbers.dtype.kind == "b":
        if len(numbers) != n:
            raise DataError(f"the mask has {len(numbers)} entries for {n} rows")
        return np.flatnonzero(numbers)
    if ((numbers < -n) | (numbers >= n)).any():
        raise DataError(f"rows are numbered 0 to {n - 1}")
    return np.where(numbers < 0, numbers + n, numbers).astype(np.int64)


def take_rows(data: RankingData, rows: Any) -> RankingData:
    """The data of some rows."""
    rows = row_numbers(data, rows)
    arguments = {"feature_names": data.feature_names, "encoding": data.encoding, "features": data.features[rows]}
    origin = data._origin() | {"wide": {k: values[rows] for k, values in data.wide.items()}}
    if data.row_index is not None:
        origin["row_index"] = data.row_index[rows]
    return rebuild(arguments | columns_of_rows(data, rows), origin)


def columns_of_rows(data: RankingData, rows: Ints) -> dict[str, Any]:
    """Arguments of `RankingData` for some rows: all but those of features.

    A pair of preferences goes with both of its rows, or with neither.
    """
    arguments: dict[str, Any] = {}
    arguments["labels"] = {source: values[rows] for source, values in data.labels.items()}
    for name in ("qid", "document_weights", "positions", "document_ids"):
        value = getattr(data, name)
        arguments[name] = None if value is None else value[rows]
    if data.query_weights is not None:
        arguments["query_weights"] = data.query_weight_of_row[rows]
    if data.preferences is not None:
        new_row = np.full(data.n_documents, -1)
        new_row[rows] = np.arange(len(rows))
        i, j = new_row[data.preferences.i], new_row[data.preferences.j]
        stays = (i >= 0) & (j >= 0)
        arguments["preferences"] = (i[stays], j[stays], data.preferences.probability[stays])
    return arguments


def without_features(data: RankingData) -> RankingData:
    """The data without its features and names of documents, which no measure needs."""
    nothing = np.zeros((len(data), 1), np.float32)
    return data.replace(features=nothing, feature_names=None, encoding=None, document_ids=None)
