"""Labels, weights, positions and ids as arrays, checked one column at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from podium.data.encoding import listed
from podium.errors import DataError


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


def to_labels_by_source(relevance: Any, others: Mapping[str, Any], n: int) -> dict[str, NDArray[np.float32]]:
    """All labels by the name of their source, the relevance among them."""
    if relevance is not None and "relevance" in others:
        raise DataError("the relevance labels are given twice, by themselves and among labels")
    sources = ({} if relevance is None else {"relevance": relevance}) | dict(others)
    for source in sources:
        if not isinstance(source, str) or not source.isidentifier():
            raise DataError(f"a label source is named by a plain word, such as 'clicks', not {source!r}")
    return {source: to_labels(values, source, n) for source, values in sources.items()}


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

    def convert(entries: Any) -> NDArray[np.float32]:
        return to_weights(entries, "query_weights", len(entries))

    return frozen(by_query(values, "query_weights", query_ids, order, offsets, convert))


def by_query(
    values: Any, name: str, query_ids: NDArray[Any], order: NDArray[np.int64], offsets: NDArray[np.int64],
    convert: Callable[[Any], NDArray[Any]],
) -> NDArray[Any]:  # fmt: skip
    """An entry for each query, from a mapping by id, an array by query, or one by row that is constant in each query.

    Args:
        values: the entries.
        name: what errors call them.
        query_ids, order, offsets: those of the data.
        convert: makes an array of a list or array of entries.

    """
    n_queries, n = len(query_ids), len(order)
    by_id = _mapping_by_id(values, query_ids)
    if by_id is not None:
        values = by_id
    if isinstance(values, Mapping):
        missing = [query for query in query_ids.tolist() if query not in values]
        if missing:
            raise DataError(f"{name} has no entry for {listed('query id', missing)}")
        return convert([values[query] for query in query_ids.tolist()])
    array = as_array(values)
    if array.ndim == 1 and len(array) == n != n_queries:
        of_rows = convert(array)[order]
        first = of_rows[offsets[:-1]]
        unequal = np.flatnonzero(of_rows != np.repeat(first, np.diff(offsets)))
        if len(unequal):
            row = order[unequal[0]]
            raise DataError(f"{name} differ within one query (row {row}); they must be constant there")
        return np.ascontiguousarray(first)
    if array.ndim != 1 or len(array) != n_queries:
        raise DataError(
            f"{name} must have one entry for each of the {n_queries} queries (in the order of "
            f"query_ids) or of the {n} rows, or be a mapping from query id; it has shape {array.shape}"
        )
    return convert(array)


def _mapping_by_id(values: Any, query_ids: NDArray[Any]) -> dict[Any, Any] | None:
    """A pandas Series whose index is the query ids, as `groupby` gives it, as a mapping."""
    if not (hasattr(values, "index") and hasattr(values, "to_dict")):
        return None
    mapping = values.to_dict()
    return mapping if set(mapping) == set(query_ids.tolist()) else None


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
    array = as_array(values, object)
    if array.shape != (n,):
        raise DataError(f"document_ids must have one entry for each of the {n} rows, not shape {array.shape}")
    ids = np.empty(n, object)
    ids[:] = ["" if _is_null(value) else str(value) for value in array]
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
