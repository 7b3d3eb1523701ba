"""Labels, weights, positions, ids, query groups and preferences as arrays, checked one column at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from podium.core.array_types import Float32s, Floats, Int32s, Ints
from podium.data.encoding import fits_float32, is_null, listed, precision
from podium.errors import DataError, warn

LARGEST_EXACT = 2**53  # float64 holds all whole numbers up to here
WIDER_THAN_DOUBLE = (Decimal, Fraction, np.longdouble)  # numbers that may differ in digits that float64 does not have


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """A view of the array that cannot be written through."""
    view = array.view()
    view.flags.writeable = False
    return view


def unmasked(values: Any) -> NDArray[Any]:
    """An array, with NaN where a masked array is masked; extended precision (`np.longdouble`) becomes float64."""
    if not isinstance(values, np.ma.MaskedArray):
        return _without_extended_precision(as_array(values))
    values = np.ma.masked_array(_without_extended_precision(values.data), values.mask)
    if not np.ma.is_masked(values) or values.dtype.kind == "c":  # the caller refuses the latter
        return as_array(values.data)
    doubles = np.asarray(np.ma.filled(values.astype(np.float64), np.nan))
    warn_of_merged(values.compressed().tolist(), doubles, "a masked array")
    return doubles


def _without_extended_precision(array: NDArray[Any]) -> NDArray[Any]:
    """An array whose floating-point numbers are float64 at most; warn if different ones become equal or infinite."""
    if array.dtype.kind != "f" or array.dtype.itemsize <= 8:
        return array
    with np.errstate(over="ignore", under="ignore"):
        doubles = array.astype(np.float64)
    shape = (len(array), -1) if array.ndim > 1 and array.size else (-1, 1)
    pairs = zip(array.reshape(shape).T, doubles.reshape(shape).T, strict=True)
    merged = any(len(np.unique(column)) > len(np.unique(double)) for column, double in pairs)
    if merged or (np.isinf(doubles) & np.isfinite(array)).any():
        warn(
            f"{array.dtype} becomes float64, in which different numbers of a column became equal or infinite: "
            "subtract an offset, or divide them"
        )
    return doubles


def as_array(values: Any, dtype: Any = None) -> NDArray[Any]:
    """Return the caller's values as an array; text stays a Python object, since NumPy strips trailing NULs."""
    try:
        array = np.asarray(values, dtype)
        if array.dtype.kind == "U" and dtype is None and not isinstance(values, np.ndarray):
            return np.asarray(values, object)
    except (OverflowError, RecursionError, TypeError, ValueError) as error:  # lists of unequal length, 10**400, …
        raise DataError(f"the values make no array: {error}") from None
    return array


def from_objects(array: NDArray[Any], name: str) -> NDArray[Any]:
    """Return a column of Python's objects as numbers: as whole ones where float64 would not hold them."""
    values = array.tolist()
    if all(isinstance(value, int | np.integer) for value in values):
        for dtype in (np.int64, np.uint64):
            with suppress(OverflowError):
                return array.astype(dtype)
    with np.errstate(over="ignore"):
        doubles = array.astype(np.float64)
    present = [value for value, double in zip(values, doubles, strict=True) if not math.isnan(double)]
    warn_of_merged(present, doubles, name)
    return doubles


def warn_of_merged(values: Iterable[Any], doubles: Floats, name: str) -> None:
    """Warn if different numbers became equal as float64, in which NaN marks missing ones."""
    values = list(values)
    is_wide = any(isinstance(value, WIDER_THAN_DOUBLE) for value in values)
    if not is_wide and not (np.abs(doubles) > LARGEST_EXACT).any():
        return
    if len(set(values)) > len(np.unique(doubles[~np.isnan(doubles)])):
        warn(
            f"different numbers in {name} became equal: float64 holds every whole number up to 2^53 only, and about "
            "16 digits of others; subtract an offset"
        )


def to_numbers(values: Any, name: str) -> NDArray[Any]:
    """Return an array of numbers; raise if the values cannot be read as numbers."""
    array = unmasked(values)
    if array.dtype.kind in "fiub":
        return array
    if array.dtype.kind in "cmMV":
        raise DataError(f"{name} must be numbers, not {array.dtype}")
    try:
        return from_objects(array.ravel().astype(object), name).reshape(array.shape)
    except (OverflowError, TypeError, ValueError) as error:
        raise DataError(f"{name} must be numbers, not {array.dtype} ({error})") from None


def to_floats(values: ArrayLike, name: str, n: int) -> Float32s:
    """A column of n numbers as float32."""
    return _as_float32(_to_column(values, name, n))


def _to_column(values: ArrayLike, name: str, n: int) -> NDArray[Any]:
    array = to_numbers(values, name)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1 or len(array) != n:
        raise DataError(f"{name} must have one entry for each of the {n} rows, but has shape {array.shape}")
    return array


def _as_float32(array: NDArray[Any]) -> Float32s:
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(array, dtype=np.float32)


def to_labels(values: ArrayLike, source: str, n: int) -> Float32s:
    """Labels of one source; NaN where a document is not labelled."""
    numbers = _to_column(values, f"labels {source!r}", n)
    labels = _as_float32(numbers)
    infinite = np.flatnonzero(np.isinf(labels))
    if len(infinite):
        raise DataError(
            f"labels {source!r}: row {infinite[0]} is infinite; labels are finite numbers, "
            "or NaN where a document is not labelled"
        )
    _warn_of_rounding(numbers, labels, source)
    return frozen(labels)


def _warn_of_rounding(numbers: NDArray[Any], labels: Float32s, source: str) -> None:
    """Warn if float32 blurs labels: many become equal, or they move by more than a thousandth of their spread."""
    if fits_float32(numbers.dtype) or np.array_equal(numbers, labels, equal_nan=numbers.dtype.kind == "f"):
        return
    present = numbers[~np.isnan(labels)]
    moved = np.abs(labels[~np.isnan(labels)].astype(np.float64) - present).max()
    differ = present.min() < present.max()
    if differ and (moved > 1e-3 * present.std() or precision(numbers, labels).loses_much):
        warn(
            f"labels {source!r} become float32, which moves them by up to {moved:.3g}; their standard deviation is "
            f"{present.std():.3g}. Subtract an offset, and add it to what the model predicts"
        )


def to_labels_by_source(relevance: Any, others: Mapping[str, Any], n: int) -> dict[str, Float32s]:
    """All labels by the name of their source, the relevance among them."""
    if relevance is not None and "relevance" in others:
        raise DataError("the relevance labels are given twice, by themselves and among labels")
    sources = ({} if relevance is None else {"relevance": relevance}) | dict(others)
    for source in sources:
        if not isinstance(source, str) or not source.isidentifier():
            raise DataError(f"a label source is named by a plain word, such as 'clicks', not {source!r}")
    return {source: to_labels(values, source, n) for source, values in sources.items()}


def to_weights(values: ArrayLike, name: str, n: int) -> Float32s:
    """Finite, non-negative weights."""
    weights = to_floats(values, name, n)
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        raise DataError(f"{name} must be finite and not negative, but entry {bad[0]} is {weights[bad[0]]}")
    return frozen(weights)


def to_query_weights(values: Any, query_ids: NDArray[Any], order: Ints, offsets: Ints) -> Float32s:
    """A weight for each query, from a mapping by id, an array by query, or an array by row."""

    def convert(entries: Any) -> Float32s:
        return to_weights(entries, "query_weights", len(entries))

    return frozen(by_query(values, "query_weights", query_ids, order, offsets, convert))


def by_query(
    values: Any, name: str, query_ids: NDArray[Any], order: Ints, offsets: Ints,
    convert: Callable[[Any], NDArray[Any]],
) -> NDArray[Any]:  # fmt: skip
    """An entry for each query, from a mapping by id, an array by query, or one by row that is constant in each query.

    `convert` makes an array of a list or array of entries; errors call them by `name`.
    """
    n_queries, n = len(query_ids), len(order)
    if hasattr(values, "index") and hasattr(values, "to_dict"):  # a pandas Series by query id, as `groupby` gives it
        by_id = values.to_dict()
        values = by_id if set(by_id) == set(query_ids.tolist()) else values
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


def to_positions(values: ArrayLike, n: int) -> Int32s:
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
    items = array.tolist()
    are_texts = set(map(type, items)) <= {str}
    ids[:] = items if are_texts else ["" if is_null(item) else str(item) for item in items]
    return frozen(ids)


def to_query_ids(values: Any, n: int) -> NDArray[Any]:
    """Query ids as int64 or as objects of text."""
    if np.ma.is_masked(values):
        row = int(np.flatnonzero(np.ma.getmaskarray(values))[0])
        raise DataError(f"qid must be whole numbers or text, but row {row} is masked")
    is_list = isinstance(values, list | tuple) and {type(value) for value in values} & {str, int}
    array = as_array(values, object if is_list else None)
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
        with suppress(OverflowError):
            return np.array(items, np.int64)
        try:
            return np.array([str(item) for item in items], object)
        except ValueError:  # Python's limit of 4300 digits
            raise DataError("qid holds a number of over 4300 digits; give text") from None
    row = next((k for k, item in enumerate(items) if not isinstance(item, str | int)), None)
    if row is not None:
        raise DataError(f"qid must be whole numbers or text, but row {row} has {items[row]!r}")
    row = next(k for k, item in enumerate(items) if isinstance(item, str) != isinstance(items[0], str))
    raise DataError(
        f"qid must be whole numbers or text, all of one kind, but row 0 has {items[0]!r} and "
        f"row {row} has {items[row]!r}"
    )


def group_rows(qid: NDArray[Any]) -> tuple[NDArray[Any], Ints, Ints]:
    """(query_ids, order, offsets): the rows of query k are order[offsets[k]:offsets[k+1]].

    Queries are in the order of their first appearance, rows of a query in the caller's order.
    """
    n = len(qid)
    if n == 0:
        return qid, np.empty(0, np.int64), np.zeros(1, np.int64)
    starts = np.flatnonzero(np.concatenate([[True], np.asarray(qid[1:] != qid[:-1], bool)]))
    code_of: dict[Any, int] = {}
    codes = np.array([code_of.setdefault(query, len(code_of)) for query in qid[starts].tolist()])
    lengths = np.diff(starts, append=n)
    query_ids = np.empty(len(code_of), qid.dtype)
    query_ids[:] = list(code_of)
    if len(code_of) == len(starts):  # already grouped
        return query_ids, np.arange(n), np.append(starts, n)
    code_of_row = np.repeat(codes, lengths)
    order = np.argsort(code_of_row, kind="stable")
    sizes = np.bincount(code_of_row, minlength=len(code_of))
    return query_ids, order, np.concatenate([[0], np.cumsum(sizes)])


def query_in_order(offsets: Ints) -> Ints:
    """The number of the query of each entry of `order`: 0, 0, …, 1, 1, …"""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def query_of_row(order: Ints, offsets: Ints) -> Ints:
    """The number of the query of each row."""
    queries = np.empty(len(order), np.int64)
    queries[order] = query_in_order(offsets)
    return queries


def qid_from_sizes(group_sizes: ArrayLike, n: int) -> Ints:
    """Query ids 0, 1, … for grouped rows, from the number of rows in each group."""
    sizes = np.asarray(group_sizes)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu":
        raise DataError("group_sizes must be a list of whole numbers, the rows of each query in turn")
    if (sizes <= 0).any():
        raise DataError(f"group_sizes: group {int(np.argmax(sizes <= 0))} is empty; every query has a row")
    total = sum(sizes.tolist())  # of Python's integers: int64 would wrap
    if total != n:
        raise DataError(f"group_sizes add up to {total}, but there are {n} rows")
    return np.repeat(np.arange(len(sizes)), sizes)


@dataclass(frozen=True)
class PreferencePairs:
    """Row `i` should rank above row `j` with the given probability; contradictions are allowed."""

    i: Ints
    j: Ints
    probability: Float32s

    def __len__(self) -> int:
        return len(self.i)


def to_preferences(values: Any, n: int, order: Ints, offsets: Ints) -> PreferencePairs:
    """Pairs (i, j, probability that i ranks above j) of rows of one query."""
    columns = _as_columns(values)
    i, j = (_to_row_numbers(column, name, n) for name, column in zip("ij", columns, strict=False))
    if len(i) != len(j):
        raise DataError(f"preferences: i has {len(i)} entries and j has {len(j)}")
    probability = (
        to_floats(columns[2], "preferences: probability", len(i)) if len(columns) == 3 else np.ones(len(i), np.float32)
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


def _as_columns(values: Any) -> tuple[Any, ...]:
    if isinstance(values, PreferencePairs):
        return values.i, values.j, values.probability
    if isinstance(values, list):  # of pairs; a tuple holds columns
        values = as_array(values, np.float64) if values else np.empty((0, 2))
    if isinstance(values, np.ndarray) and values.ndim == 2:
        values = tuple(values.T)
    if not isinstance(values, tuple) or len(values) not in (2, 3):
        raise DataError(
            "preferences must be columns (i, j) or (i, j, probability) as a tuple, or rows of those as a list or array"
        )
    return values


def _to_row_numbers(column: Any, name: str, n: int) -> Ints:
    array = np.atleast_1d(as_array(column))
    if array.size == 0:
        array = array.astype(np.int64)
    is_whole = array.dtype.kind in "iu" or (array.dtype.kind == "f" and np.array_equal(array, np.floor(array)))
    if array.ndim != 1 or not is_whole:
        raise DataError(f"preferences: {name} must be a column of row numbers")
    bad = np.flatnonzero((array < 0) | (array >= n))
    if len(bad):
        raise DataError(f"preferences: pair {bad[0]} names row {array[bad[0]]}, but rows go from 0 to {n - 1}")
    return array.astype(np.int64)
