"""Subsets of ranking data by row, query and fraction, and concatenation."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Ints
from podium.core.random import seed_of
from podium.data.canonical import ContentRandom
from podium.data.columns import as_array
from podium.data.encoding import Encoding, FeatureBuilder, names_of_categories, recoded
from podium.data.ranking_data import RankingData
from podium.data.sparse import is_sparse
from podium.errors import DataError, warn


def rows_of_queries(data: RankingData, queries: Iterable[int] | NDArray[Any]) -> Ints:
    """Return the rows of some queries, given by numbers or a mask, in ascending order."""
    values = queries if isinstance(queries, np.ndarray) else list(queries)
    is_chosen = np.zeros(data.n_queries, bool)
    is_chosen[_numbers(values, data.n_queries, ("query", "queries"), least=0)] = True
    return np.sort(data.order[np.repeat(is_chosen, data.query_sizes)])


def number_of_query(data: RankingData, query: Any) -> int:
    """Return the number of the query with this id; an integer id may be given as text."""
    for number, query_id in enumerate(data.query_ids.tolist()):
        if str(query_id) == str(query):
            return number
    first = ", ".join(map(repr, data.query_ids[:3].tolist()))
    raise DataError(f"query: there is no query {query!r} in the data; its query ids are {first}, …")


def row_numbers(data: RankingData, rows: Any) -> Ints:
    """Return row numbers from numbers or a mask."""
    return _numbers(rows, len(data), ("row", "rows"), least=-len(data))


def _numbers(values: Any, n: int, nouns: tuple[str, str], least: int) -> Ints:
    """Return numbers below n from numbers, where negative ones count from the end, or from a mask."""
    numbers = as_array(values)
    if numbers.size == 0:
        numbers = numbers.astype(np.int64)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iub":
        raise DataError(f"{nouns[1]} must be numbers or a mask, but got {numbers.ndim}-dimensional {numbers.dtype}")
    if numbers.dtype.kind == "b":
        if len(numbers) != n:
            raise DataError(f"the mask has {len(numbers)} entries, but there are {n} {nouns[1]}")
        return np.flatnonzero(numbers)
    if ((numbers < least) | (numbers >= n)).any():
        raise DataError(f"{nouns[0]} numbers must be between 0 and {n - 1}")
    return np.where(numbers < 0, numbers + n, numbers).astype(np.int64)


def take_rows(data: RankingData, rows: Any) -> RankingData:
    """Return the data of some rows."""
    rows = row_numbers(data, rows)
    arguments = {"feature_names": data.feature_names, "encoding": data.encoding, "features": data.features[rows]}
    origin = data._origin() | {"wide": {k: values[rows] for k, values in data.wide.items()}}
    if data.row_index is not None:
        origin["row_index"] = data.row_index[rows]
    return RankingData._make(arguments | columns_of_rows(data, rows), origin)


def columns_of_rows(data: RankingData, rows: Ints) -> dict[str, Any]:
    """Return the arguments of `RankingData` for some rows, except those of features.

    A preference pair is kept if both of its rows are.
    """
    arguments: dict[str, Any] = {"labels": {source: values[rows] for source, values in data.labels.items()}}
    for name in ("qid", "document_weights", "positions", "document_ids"):
        value = getattr(data, name)
        arguments[name] = None if value is None else value[rows]
    if data.query_weights is not None:
        arguments["query_weights"] = data.query_weight_of_row[rows]
    if data.preferences is not None:
        new_row = np.full(data.n_documents, -1)
        new_row[rows] = np.arange(len(rows))
        i, j = new_row[data.preferences.i], new_row[data.preferences.j]
        is_kept = (i >= 0) & (j >= 0)
        others = (column[is_kept] for column in data.preferences.columns[2:])
        arguments["preferences"] = (i[is_kept], j[is_kept], *others)
    return arguments


def without_features(data: RankingData) -> RankingData:
    """Return the data without features and document ids, which no measure needs."""
    zeros = np.zeros((len(data), 1), np.float32)
    return data.replace(features=zeros, feature_names=None, encoding=None, document_ids=None)


def shuffled_queries(query_ids: NDArray[Any], seed: int) -> Ints:
    """Return the query numbers in a random order that depends only on the ids and the seed."""
    keys = [(seed_of(seed, query).byteswap(), str(query)) for query in query_ids.tolist()]
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), np.int64)


def split_queries(query_ids: NDArray[Any], fractions: tuple[float, ...], seed: int) -> list[Ints]:
    """Return the query numbers of each fraction; fractions must add up to 1, and no part may be empty."""
    return _parts(shuffled_queries(query_ids, seed), fractions)


def split_by_content(data: RankingData, *fractions: float, seed: int = 0) -> list[RankingData]:
    """Split like `RankingData.split`, but by the content of queries: for splits on which a model depends."""
    order = np.argsort(ContentRandom(data).of_queries(f"{seed}/split"), kind="stable")
    return [data.select(part) for part in _parts(order, fractions)]


def folds_by_content(data: RankingData, n_splits: int, seed: int) -> Ints:
    """Return the fold of each query, determined by its content: for folds on which a model depends."""
    fold = _folds(np.argsort(ContentRandom(data).of_queries(f"{seed}/folds"), kind="stable"), n_splits)
    require_weight_outside(data, fold)
    return fold


def require_weight_outside(data: RankingData, fold: Ints) -> None:
    """Raise if one fold has all positive weights, because a model could not be trained without it."""
    weighted = np.unique(data.query_of_row[data.has_weight])
    if len(np.unique(fold[weighted])) != 1:
        return
    n = len(weighted)
    queries = f"all {n} queries with a positive weight are" if n > 1 else "the only query with a positive weight is"
    raise DataError(
        f"{queries} in one of the {fold.max() + 1} folds, so there is nothing to train on when that fold is held out: "
        "give more queries a positive weight, or train with validation data instead of folds"
    )


def _folds(order: Ints, n_splits: int) -> Ints:
    """Return the fold of each query, dealing the queries to the folds in this order."""
    if not 2 <= n_splits <= len(order):
        raise DataError(f"n_splits must be between 2 and the number of queries, {len(order)}, but got {n_splits}")
    fold = np.empty(len(order), np.int64)
    fold[order] = np.arange(len(order)) % n_splits
    return fold


def _parts(order: Ints, fractions: tuple[float, ...]) -> list[Ints]:
    if len(fractions) < 2 or min(fractions) <= 0 or abs(sum(fractions) - 1) > 1e-9:
        raise DataError(f"fractions must be at least two positive numbers that add up to 1, but got {fractions}")
    bounds = np.rint(np.cumsum((0.0, *fractions)) * len(order)).astype(np.int64)
    parts = [order[a:b] for a, b in pairwise(bounds)]
    if any(len(part) == 0 for part in parts):
        raise DataError(f"{len(order)} queries are too few for the fractions {fractions}: a part would be empty")
    return parts


def fold_of_queries(query_ids: NDArray[Any], n_splits: int, seed: int) -> Ints:
    """Return the fold whose test part has each query; the sizes of folds differ by at most one query."""
    return _folds(shuffled_queries(query_ids, seed), n_splits)


def concatenate(parts: list[RankingData]) -> RankingData:
    """Concatenate data sets, which must have the same features and columns; only document ids may be missing."""
    if not parts:
        raise DataError("pass at least one data set to concatenate")
    _require_alike(parts)
    first = parts[0]
    arguments: dict[str, Any] = {"feature_names": first.feature_names}
    arguments["features"], arguments["encoding"], wide = _stacked(parts)
    arguments["labels"] = {source: np.concatenate([part.labels[source] for part in parts]) for source in first.labels}
    without_ids = [number for number, part in enumerate(parts) if part.document_ids is None]
    if 0 < len(without_ids) < len(parts):
        warn(f"part {without_ids[0]} has no document ids, so the result has none", stacklevel=4)
    elif not without_ids:
        arguments["document_ids"] = np.concatenate([part.document_ids for part in parts])
    for name in ("qid", "document_weights", "positions"):
        if getattr(first, name) is not None:
            arguments[name] = np.concatenate([getattr(part, name) for part in parts])
    if first.query_weights is not None:
        arguments["query_weights"] = np.concatenate([part.query_weight_of_row for part in parts])
    if first.preferences is not None:
        before = np.cumsum([0] + [part.n_documents for part in parts])
        pairs = [(part.preferences, start) for part, start in zip(parts, before, strict=False)]
        moved = [(p.i + start, p.j + start, p.probability, p.weights) for p, start in pairs if p is not None]
        has_weights = any(p is not None and p.weight is not None for p, _ in pairs)
        arguments["preferences"] = tuple(map(np.concatenate, zip(*moved, strict=True)))[: 4 if has_weights else 3]
    absent_values = {str(part.absent_value): part.absent_value for part in parts}
    absent_value = first.absent_value if len(absent_values) == 1 else None
    return RankingData._make(arguments, {"wide": wide, "reading": first.reading, "absent_value": absent_value})


def _stacked(parts: list[RankingData]) -> tuple[Any, Encoding | None, dict[int, NDArray[Any]]]:
    """Return the features of all parts in one encoding, and the original values of crowded columns."""
    if any(is_sparse(part.features) for part in parts):
        from scipy.sparse import vstack

        if any(part.encoding.shifts for part in parts):
            raise DataError("shifted features cannot be concatenated with sparse ones: make all parts dense")
        return vstack([part.features for part in parts], format="csr"), None, {}
    matrix = np.concatenate([part.features for part in parts])
    builder = FeatureBuilder(matrix)
    for feature in sorted({k for part in parts for k in (*part.wide, *part.encoding.shifts)}):
        builder.set_numbers(feature, feature, np.concatenate([part.original_column(feature) for part in parts]))
    categories = {}
    for feature in parts[0].encoding.categories:
        lists = [part.encoding.categories[feature] for part in parts]
        categories[feature] = names_of_categories(chain.from_iterable(lists))
        matrix[:, feature] = np.concatenate([
            recoded(part.features[:, feature], names, categories[feature])
            for part, names in zip(parts, lists, strict=True)
        ])  # fmt: skip
    encoding = Encoding(categories, builder.shifts)
    return matrix, encoding or None, builder.wide


def _require_alike(parts: list[RankingData]) -> None:
    first = parts[0]
    optional = ("document_weights", "query_weights", "positions", "preferences")
    for number, part in enumerate(parts[1:], 1):
        checks = {
            "number of features": (first.n_features, part.n_features),
            "feature names": (first.feature_names, part.feature_names),
            "categorical features": (sorted(first.encoding.categories), sorted(part.encoding.categories)),
            "normalization": (first.reading.get("normalize"), part.reading.get("normalize")),
            "label sources": (sorted(first.labels), sorted(part.labels)),
            "kind of query id": (first.qid.dtype, part.qid.dtype),
        }
        checks |= {name: (getattr(first, name) is not None, getattr(part, name) is not None) for name in optional}
        for what, (a, b) in checks.items():
            if a != b:
                raise DataError(f"parts 0 and {number} differ in their {what}: {a} and {b}")
