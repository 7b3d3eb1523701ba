"""From whatever the caller has to the arrays of `RankingData`, checked one column at a time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from podium.core.threads import map_threads
from podium.data.encoding import (
    Converted,
    Encoding,
    FeatureBuilder,
    Losses,
    Precision,
    fits_float32,
    listed,
    precision,
)
from podium.data.grouping import query_of_row
from podium.data.sparse import checked_rows, float32_rows, is_sparse
from podium.errors import DataError

Features: TypeAlias = Any  # an (n, f) float32 array, or a scipy csr_array of float32 where zeros are implied
COLUMNS_AT_ONCE = 8  # of an array that are copied to be looked at


@dataclass(frozen=True)
class PreferencePairs:
    """Row `i` should stand above row `j` with the given probability; contradictions are allowed."""

    i: NDArray[np.int64]
    j: NDArray[np.int64]
    probability: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.i)


def n_rows(features: Any) -> int:
    """The number of rows of an array, a sparse matrix or a frame."""
    return int(features.shape[0] if hasattr(features, "shape") else len(features))


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """A view of the array that cannot be written through."""
    view = array.view()
    view.flags.writeable = False
    return view


def unmasked(values: Any) -> NDArray[Any]:
    """An array, with NaN where a masked array is masked."""
    if isinstance(values, np.ma.MaskedArray):
        return np.asarray(np.ma.filled(values.astype(np.float64), np.nan))
    return as_array(values)


def as_array(values: Any, dtype: Any = None) -> NDArray[Any]:
    """An array of whatever the caller has."""
    try:
        return np.asarray(values, dtype)
    except (OverflowError, RecursionError, TypeError, ValueError) as error:  # lists of unequal length, 10**400, …
        raise DataError(f"the values make no array: {error}") from None


def to_features(X: Any, categorical: Sequence[Any] = (), encoding: Encoding | None = None) -> Converted:
    """Features as float32: by an encoding, or by one that follows from the content.

    `categorical` are the numbers of columns of categories, which may hold text.
    """
    if is_sparse(X):
        if categorical or (encoding is not None and encoding.categories):
            raise DataError("categories are not kept in sparse matrices; give a frame or an array")
        return _to_compressed_rows(X, encoding or Encoding())
    try:
        array = unmasked(X)
    except ValueError as error:
        raise DataError(f"features must be a matrix of numbers ({error})") from None
    if array.ndim != 2:
        raise DataError(
            f"features must have two dimensions, documents × features, not {array.ndim}; "
            "Reshape your data: a single feature is X[:, None], a single document X[None, :]"
        )
    chosen = _column_numbers(categorical, array.shape[1]) if encoding is None else set(encoding.categories)
    if chosen:
        return _with_categories(array, chosen, encoding)
    if array.dtype.kind == "O":
        array = _from_objects(array)
    if array.dtype.kind not in "fiub":
        complex_too = " (Complex data not supported)" if array.dtype.kind == "c" else ""
        raise DataError(f"features must be numbers, not {array.dtype}{complex_too}")
    with np.errstate(over="ignore"):
        features = np.ascontiguousarray(array, dtype=np.float32)
    if encoding is not None and encoding.shifts and np.shares_memory(features, array):
        features = features.copy()
    builder = FeatureBuilder(features, encoding)
    if encoding is not None:
        for column in sorted(encoding.shifts.keys() & range(array.shape[1])):  # the caller refuses other widths
            builder.settle(column, column, array[:, column], None)
    elif not fits_float32(array.dtype):
        for column, seen in enumerate(_precisions(array, features)):
            builder.settle(column, column, array[:, column], seen)
    return replace(builder.result(), features=frozen(features))


def _precisions(array: NDArray[Any], features: NDArray[np.float32]) -> list[Precision]:
    """How well float32 holds each column; some columns at a time are copied, since a row holds them side by side."""

    def look(first: int) -> list[Precision]:
        block = slice(first, first + COLUMNS_AT_ONCE)
        columns, short = (np.ascontiguousarray(values[:, block].T) for values in (array, features))
        return [precision(*column) for column in zip(columns, short, strict=True)]

    firsts = range(0, array.shape[1], COLUMNS_AT_ONCE)
    return [seen for part in map_threads(look, firsts) for seen in part]


def listed_features(categorical: Any) -> list[Any]:
    """Features by name or number, as a list; None is none."""
    is_list = hasattr(categorical, "__iter__") and not isinstance(categorical, str | bytes)
    features = list(categorical) if is_list else [] if categorical is None else None
    if features is None or any(getattr(feature, "__hash__", None) is None for feature in features):
        raise DataError(f"categorical takes a list of features, by name or number, not {categorical!r:.60}")
    return features


def numbers_of_features(features: Sequence[Any], names: Sequence[str] | None, argument: str) -> list[int]:
    """Features that are given by name or by number, by number."""
    numbers = []
    for feature in features:
        if isinstance(feature, str):
            if names is None or feature not in names:
                numbered = names and all(name.isdecimal() for name in names)
                hint = f"; they are numbered {names[0]} to {names[-1]}" if names and numbered else ""
                raise DataError(f"{argument}: there is no feature named {feature!r}{hint}")
            numbers.append(list(names).index(feature))
        else:
            numbers.append(feature)
    return numbers


def _column_numbers(columns: Sequence[Any], n_features: int) -> set[int]:
    for column in columns:
        if isinstance(column, bool) or not isinstance(column, int | np.integer) or not 0 <= column < n_features:
            raise DataError(f"categorical: there is no feature {column!r}; they are numbered 0 to {n_features - 1}")
    return {int(column) for column in columns}


def _with_categories(array: NDArray[Any], categorical: set[int], encoding: Encoding | None) -> Converted:
    """An array whose columns are numbers, or categories where so said."""
    if encoding is not None and array.dtype.kind in "fiub":
        raise DataError(
            f"feature {min(categorical)} holds categories, whose names an array of numbers does not tell: give a "
            "frame, RankingData, or an array of objects"
        )
    if array.dtype.kind not in "OUfiub":
        raise DataError(f"features must be numbers or text, not {array.dtype}")
    builder = FeatureBuilder(np.empty(array.shape, np.float32), encoding)
    for column in range(array.shape[1]):
        if column in categorical:
            builder.put_categories(column, column, array[:, column].tolist())
            continue
        numbers = array[:, [column]]
        if array.dtype.kind in "OU":
            numbers = _from_objects(numbers, column)
        builder.put_numbers(column, column, numbers[:, 0])
    return replace(builder.result(), features=frozen(builder.matrix))


def _to_compressed_rows(X: Any, encoding: Encoding) -> Converted:
    from scipy.sparse import csr_array

    X = checked_rows(X)
    rows = float32_rows(X)
    rows = csr_array((frozen(rows.data), frozen(rows.indices), frozen(rows.indptr)), shape=rows.shape, copy=False)
    losses = Losses()
    if not fits_float32(X.dtype):
        columns = X.tocsc()
        for k in range(X.shape[1]):
            given = columns.data[columns.indptr[k] : columns.indptr[k + 1]]
            with np.errstate(over="ignore"):
                losses.add(k, precision(given, given.astype(np.float32)))
    if encoding.shifts:
        raise DataError("this model shifts features before they become float32: give it dense features")
    return Converted(rows, losses=losses.words())


def _from_objects(array: NDArray[Any], first_column: int = 0) -> NDArray[np.float64]:
    try:
        return array.astype(np.float64)
    except (OverflowError, TypeError, ValueError):
        pass
    for column in range(array.shape[1]):
        for row, value in enumerate(array[:, column]):
            try:
                float(value)
            except (OverflowError, TypeError, ValueError):
                shown = "a number too large" if isinstance(value, int) else f"{value!r:.40}"
                raise DataError(
                    f"features must be numbers, but row {row}, column {first_column + column} holds {shown}; "
                    "categories are named in categorical=…"
                ) from None
    raise DataError("features must be numbers")


def to_floats(values: ArrayLike, name: str, n: int) -> NDArray[np.float32]:
    """A column of n numbers as float32."""
    array = unmasked(values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1 or len(array) != n:
        raise DataError(f"{name} must have one entry for each of the {n} rows, but has shape {array.shape}")
    if array.dtype.kind not in "fiub":
        if array.dtype.kind in "mMV":
            raise DataError(f"{name} must be numbers, not {array.dtype}")
        try:
            array = array.astype(np.float64)
        except (OverflowError, TypeError, ValueError) as error:
            raise DataError(f"{name} must be numbers, not {array.dtype} ({error})") from None
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(array, dtype=np.float32)


def to_labels(values: ArrayLike, source: str, n: int) -> NDArray[np.float32]:
    """Labels of one source; NaN where a document is not labelled."""
    labels = to_floats(values, f"labels {source!r}", n)
    infinite = np.flatnonzero(np.isinf(labels))
    if len(infinite):
        raise DataError(
            f"labels {source!r}: row {infinite[0]} is infinite; labels are finite numbers, "
            "or NaN where a document is not labelled"
        )
    return frozen(labels)


def to_weights(values: ArrayLike, name: str, n: int) -> NDArray[np.float32]:
    """Finite, non-negative weights."""
    weights = to_floats(values, name, n)
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        raise DataError(f"{name} must be finite and not negative, but entry {bad[0]} is {weights[bad[0]]}")
    return frozen(weights)


def to_query_weights(
    values: Any, query_ids: NDArray[Any], order: NDArray[np.int64], offsets: NDArray[np.int64]
) -> NDArray[np.float32]:
    """A weight for each query, from a mapping by id, an array by query, or an array by row."""
    n_queries, n = len(query_ids), len(order)
    by_id = _mapping_by_id(values, query_ids)
    if by_id is not None:
        values = by_id
    if isinstance(values, Mapping):
        missing = [query for query in query_ids.tolist() if query not in values]
        if missing:
            raise DataError(f"query_weights has no entry for {listed('query id', missing)}")
        return to_weights([values[query] for query in query_ids.tolist()], "query_weights", n_queries)
    array = as_array(values)
    if array.ndim == 1 and len(array) == n != n_queries:
        weights = to_weights(array, "query_weights", n)[order]
        first = weights[offsets[:-1]]
        unequal = np.flatnonzero(weights != np.repeat(first, np.diff(offsets)))
        if len(unequal):
            row = order[unequal[0]]
            raise DataError(f"query_weights differ within one query (row {row}); they must be constant there")
        return frozen(np.ascontiguousarray(first))
    if array.ndim != 1 or len(array) != n_queries:
        raise DataError(
            f"query_weights must have one entry for each of the {n_queries} queries (in the order of "
            f"query_ids) or of the {n} rows, or be a mapping from query id; it has shape {array.shape}"
        )
    return to_weights(array, "query_weights", n_queries)


def _mapping_by_id(values: Any, query_ids: NDArray[Any]) -> dict[Any, Any] | None:
    """A pandas Series whose index is the query ids, as `groupby` gives it, as a mapping."""
    if not (hasattr(values, "index") and hasattr(values, "to_dict")):
        return None
    found = values.to_dict()
    return found if set(found) == set(query_ids.tolist()) else None


def to_positions(values: ArrayLike, n: int) -> NDArray[np.int32]:
    """Ranks at which documents were shown, from 1; −1 or NaN for a document that was not shown."""
    floats = to_floats(values, "positions", n)
    floats = np.where(np.isnan(floats), np.float32(-1), floats)
    bad = np.flatnonzero((floats != np.floor(floats)) | ((floats < 1) & (floats != -1)) | (floats > 2**24))
    if len(bad):
        raise DataError(
            f"positions count from 1, with −1 or NaN for a document that was not shown, "
            f"but row {bad[0]} has {floats[bad[0]]:g}"
        )
    return frozen(floats.astype(np.int32))


def to_document_ids(values: ArrayLike, n: int) -> NDArray[Any]:
    """Document ids as text."""
    given = as_array(values, object)
    if given.shape != (n,):
        raise DataError(f"document_ids must have one entry for each of the {n} rows, not shape {given.shape}")
    ids = np.empty(n, object)
    ids[:] = ["" if _is_null(value) else str(value) for value in given]
    return frozen(ids)


def _is_null(value: Any) -> bool:
    """None, NaN, or pandas' NA: no value at all."""
    return (
        value is None
        or type(value).__name__ in ("NAType", "NaTType")
        or (isinstance(value, float) and math.isnan(value))
    )


def to_query_ids(values: Any, n: int) -> NDArray[Any]:
    """Query ids as int64 or as objects of text."""
    if isinstance(values, list | tuple):
        kinds = {type(value) for value in values}
        mixed = str in kinds and len(kinds) > 1
        array = as_array(values, object if mixed or kinds == {int} else None)
    else:
        array = as_array(values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.shape != (n,):
        raise DataError(
            f"qid must have one entry for each of the {n} rows, but has shape {array.shape}; "
            "sizes of groups, as LightGBM takes them, go to group_sizes"
        )
    kind = array.dtype.kind
    if kind in "iub" and (kind != "u" or n == 0 or array.max() <= np.iinfo(np.int64).max):
        return frozen(array.astype(np.int64))
    if kind == "f":
        bad = np.flatnonzero(~np.isfinite(array) | (array != np.floor(array)) | (np.abs(array) >= 2**53))
        if len(bad):
            raise DataError(f"qid must be whole numbers or text, but row {bad[0]} has {array[bad[0]]}")
        return frozen(array.astype(np.int64))
    return frozen(_query_ids_from_objects(array))


def _query_ids_from_objects(array: NDArray[Any]) -> NDArray[Any]:
    items = array.tolist()
    if all(isinstance(item, str) for item in items):
        ids = np.empty(len(items), object)
        ids[:] = items
        return ids
    if all(isinstance(item, int) for item in items):
        try:
            return np.array(items, np.int64)
        except OverflowError:
            return _query_ids_from_objects(np.array([_digits(item) for item in items], object))
    kind = str if isinstance(items[0], str) else int
    row = next(k for k, item in enumerate(items) if not isinstance(item, kind))
    raise DataError(
        f"qid must be whole numbers or text, all of one kind, but row 0 has {items[0]!r} and "
        f"row {row} has {items[row]!r}"
    )


def _digits(number: int) -> str:
    try:
        return str(number)
    except ValueError:  # Python's limit of 4300 digits
        raise DataError("qid holds a number of over 4300 digits; give text") from None


def to_preferences(values: Any, n: int, order: NDArray[np.int64], offsets: NDArray[np.int64]) -> PreferencePairs:
    """Pairs (i, j, probability that i stands above j) of rows of one query."""
    if isinstance(values, PreferencePairs):
        values = (values.i, values.j, values.probability)
    elif isinstance(values, list):  # of pairs; a tuple holds columns
        values = as_array(values, np.float64) if values else np.empty((0, 2))
    if isinstance(values, np.ndarray) and values.ndim == 2:
        values = tuple(values.T)
    if not isinstance(values, tuple) or len(values) not in (2, 3):
        raise DataError(
            "preferences must be columns (i, j) or (i, j, probability) as a tuple, or rows of those as a list or array"
        )
    rows = []
    for name, column in zip("ij", values, strict=False):
        array = np.atleast_1d(as_array(column))
        if array.size == 0:
            array = array.astype(np.int64)
        whole = array.dtype.kind in "iu" or (array.dtype.kind == "f" and np.array_equal(array, np.floor(array)))
        if array.ndim != 1 or not whole:
            raise DataError(f"preferences: {name} must be a column of row numbers")
        bad = np.flatnonzero((array < 0) | (array >= n))
        if len(bad):
            raise DataError(f"preferences: pair {bad[0]} names row {array[bad[0]]}, but rows go from 0 to {n - 1}")
        rows.append(array.astype(np.int64))
    i, j = rows
    if len(i) != len(j):
        raise DataError(f"preferences: i has {len(i)} entries and j has {len(j)}")
    probability = (
        to_floats(values[2], "preferences: probability", len(i)) if len(values) == 3 else np.ones(len(i), np.float32)
    )
    bad = np.flatnonzero(~((probability >= 0) & (probability <= 1)))
    if len(bad):
        raise DataError(f"preferences: pair {bad[0]} has probability {probability[bad[0]]}, not in [0, 1]")
    query = query_of_row(order, offsets)
    bad = np.flatnonzero((query[i] != query[j]) | (i == j))
    if len(bad):
        k = bad[0]
        raise DataError(f"preferences: pair {k} (rows {i[k]} and {j[k]}) must name two documents of one query")
    return PreferencePairs(frozen(i), frozen(j), frozen(probability))
