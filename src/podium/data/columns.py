"""Validation and conversion of the columns other than features: labels, weights, positions, ids, preferences."""

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

from podium.core.array_types import Bools, Float32s, Floats, Int32s, Ints
from podium.data.encoding import is_null, listed, precision
from podium.errors import DataError, warn

LARGEST_EXACT = 2**53  # float64 represents all integers up to this one
WIDER_THAN_DOUBLE = (Decimal, Fraction, np.longdouble)  # types with more precision than float64


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view of the array."""
    view = array.view()
    view.flags.writeable = False
    return view


def refuse_first(is_bad: NDArray[Any], problem: Callable[[int], str]) -> None:
    """Raise a `DataError` with the problem of the first bad entry, if there is one."""
    if is_bad.any():
        raise DataError(problem(int(is_bad.argmax())))


def starts_run(values: NDArray[Any]) -> Bools:
    """Return whether each entry differs from the one before it; the first entry always counts."""
    starts = np.ones(len(values), bool)
    starts[1:] = values[1:] != values[:-1]
    return starts


def unmasked(values: Any) -> NDArray[Any]:
    """Return an array with NaN in place of masked values, and float64 in place of `np.longdouble`."""
    if not isinstance(values, np.ma.MaskedArray):
        return _without_extended_precision(as_array(values))
    values = np.ma.masked_array(_without_extended_precision(values.data), values.mask)
    if not np.ma.is_masked(values) or values.dtype.kind == "c":  # the caller refuses complex numbers
        return as_array(values.data)
    doubles = np.asarray(np.ma.filled(values.astype(np.float64), np.nan))
    warn_of_merged(values.compressed().tolist(), doubles, "a masked array")
    return doubles


def _without_extended_precision(array: NDArray[Any]) -> NDArray[Any]:
    """Return `np.longdouble` as float64; warn if different numbers become equal or infinite."""
    if array.dtype.kind != "f" or array.dtype.itemsize <= 8:
        return array
    with np.errstate(over="ignore", under="ignore"):
        doubles = array.astype(np.float64)
    shape = (len(array), -1) if array.ndim > 1 and array.size else (-1, 1)
    pairs = zip(array.reshape(shape).T, doubles.reshape(shape).T, strict=True)
    merged = any(len(np.unique(column)) > len(np.unique(double)) for column, double in pairs)
    if merged or (np.isinf(doubles) & np.isfinite(array)).any():
        warn(
            f"the conversion of {array.dtype} to float64 made different numbers of a column equal or infinite: "
            "subtract an offset, or divide the numbers"
        )
    return doubles


def as_array(values: Any, dtype: Any = None) -> NDArray[Any]:
    """Return the caller's values as an array; keep text as Python objects, because NumPy strips trailing NULs."""
    try:
        array = np.asarray(values, dtype)
        if array.dtype.kind == "U" and dtype is None and not isinstance(values, np.ndarray):
            return np.asarray(values, object)
    except (OverflowError, RecursionError, TypeError, ValueError) as error:  # lists of unequal length, 10**400, …
        raise DataError(f"the values cannot be converted to an array: {error}") from None
    return array


def from_objects(array: NDArray[Any], name: str) -> NDArray[Any]:
    """Return a column of Python objects as numbers, as integers if float64 cannot represent them."""
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
    """Warn if different numbers became equal in `doubles`, where NaN marks missing values."""
    values = list(values)
    is_wide = any(isinstance(value, WIDER_THAN_DOUBLE) for value in values)
    if not is_wide and not (np.abs(doubles) > LARGEST_EXACT).any():
        return
    if len(set(values)) > len(np.unique(doubles[~np.isnan(doubles)])):
        warn(
            f"different numbers in {name} became equal in float64, which represents integers up to 2^53 and about 16 "
            "digits of other numbers: subtract an offset"
        )


def to_numbers(values: Any, name: str) -> NDArray[Any]:
    """Return an array of numbers; raise if the values cannot be read as numbers."""
    array = unmasked(values)
    if array.dtype.kind in "fiub":
        return array
    if array.dtype.kind in "cmMV":
        raise DataError(f"{name} must be numbers, but got {array.dtype}")
    try:
        return from_objects(array.ravel().astype(object), name).reshape(array.shape)
    except (OverflowError, TypeError, ValueError) as error:
        raise DataError(f"{name} must be numbers, but got {array.dtype} ({error})") from None


def to_floats(values: ArrayLike, name: str, n: int) -> Float32s:
    """Return a column of n numbers as float32."""
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
    """Return the labels of one source, with NaN for unlabelled documents."""
    numbers = _to_column(values, f"labels {source!r}", n)
    labels = _as_float32(numbers)
    problem = f"labels {source!r} must be finite, or NaN for unlabelled documents"
    refuse_first(np.isinf(labels), lambda row: f"{problem}, but row {row} is infinite")
    _warn_of_rounding(numbers, labels, source)
    return frozen(labels)


def _warn_of_rounding(numbers: NDArray[Any], labels: Float32s, source: str) -> None:
    """Warn if float32 blurs labels: many become equal, or they change by over a thousandth of their spread."""
    if np.can_cast(numbers.dtype, np.float32) or np.array_equal(numbers, labels, equal_nan=numbers.dtype.kind == "f"):
        return
    present = numbers[~np.isnan(labels)]
    moved = np.abs(labels[~np.isnan(labels)].astype(np.float64) - present).max()
    differ = present.min() < present.max()
    if differ and (moved > 1e-3 * present.std() or precision(numbers, labels).loses_much):
        warn(
            f"labels {source!r} are stored as float32, which changes them by up to {moved:.3g}; their standard "
            f"deviation is {present.std():.3g}. Subtract an offset, and add it to the predictions"
        )


def to_labels_by_source(relevance: Any, labels: Mapping[str, Any], n: int) -> dict[str, Float32s]:
    """Return all labels by the name of their source, including the relevance."""
    if relevance is not None and "relevance" in labels:
        raise DataError("pass the relevance labels either as relevance or in labels, not both")
    sources = ({} if relevance is None else {"relevance": relevance}) | dict(labels)
    for source in sources:
        if not isinstance(source, str) or not source.isidentifier():
            raise DataError(f"the name of a label source must be a plain word such as 'clicks', but got {source!r}")
    return {source: to_labels(values, source, n) for source, values in sources.items()}


def to_weights(values: ArrayLike, name: str, n: int) -> Float32s:
    """Return weights as float32; raise unless they are finite and non-negative."""
    weights = to_floats(values, name, n)
    is_bad = ~(np.isfinite(weights) & (weights >= 0))
    refuse_first(is_bad, lambda k: f"{name} must be finite and non-negative, but entry {k} is {weights[k]}")
    return frozen(weights)


def to_query_weights(values: Any, query_ids: NDArray[Any], order: Ints, offsets: Ints) -> Float32s:
    """Return a weight for each query, from a mapping by id, an array by query, or an array by row."""

    def convert(entries: Any) -> Float32s:
        return to_weights(entries, "query_weights", len(entries))

    return frozen(by_query(values, "query_weights", query_ids, order, offsets, convert))


def by_query(
    values: Any, name: str, query_ids: NDArray[Any], order: Ints, offsets: Ints,
    convert: Callable[[Any], NDArray[Any]],
) -> NDArray[Any]:  # fmt: skip
    """Return an entry for each query from a mapping by id, an array by query, or an array by row.

    An array by row must be constant within each query. `convert` turns a list or array of entries into an array;
    errors refer to the entries by `name`.
    """
    n_queries, n = len(query_ids), len(order)
    if hasattr(values, "index") and hasattr(values, "to_dict"):  # a pandas Series, for example from `groupby`
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
        problem = f"{name} must be constant within a query"
        is_other = of_rows != np.repeat(first, np.diff(offsets))
        refuse_first(is_other, lambda k: f"{problem}, but row {order[k]} differs from the rows before it")
        return np.ascontiguousarray(first)
    if array.ndim != 1 or len(array) != n_queries:
        raise DataError(
            f"{name} must have one entry for each of the {n_queries} queries (in the order of query_ids) or the {n} "
            f"rows, or be a mapping from query ids, but it has shape {array.shape}"
        )
    return convert(array)


def to_positions(values: ArrayLike, n: int) -> Int32s:
    """Return the ranks, from 1, at which documents were shown; −1 or NaN means that a document was not shown."""
    floats = to_floats(values, "positions", n)
    floats = np.where(np.isnan(floats), np.float32(-1), floats)
    is_bad = (floats != np.floor(floats)) | ((floats < 1) & (floats != -1)) | (floats > 2**24)
    problem = "positions must be whole numbers from 1, or −1 or NaN for documents that were not shown"
    refuse_first(is_bad, lambda row: f"{problem}, but row {row} has {floats[row]:g}")
    return frozen(floats.astype(np.int32))


def to_document_ids(values: ArrayLike, n: int) -> NDArray[Any]:
    """Return document ids as text."""
    array = as_array(values, object)
    if array.shape != (n,):
        raise DataError(f"document_ids must have one entry for each of the {n} rows, but has shape {array.shape}")
    ids = np.empty(n, object)
    items = array.tolist()
    are_texts = set(map(type, items)) <= {str}
    ids[:] = items if are_texts else ["" if is_null(item) else str(item) for item in items]
    return frozen(ids)


def to_query_ids(values: Any, n: int) -> NDArray[Any]:
    """Return query ids as int64 or as an object array of text."""
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
            "pass the sizes of groups, as for LightGBM, as group_sizes"
        )
    kind = array.dtype.kind
    if kind in "iub" and (kind != "u" or n == 0 or array.max() <= np.iinfo(np.int64).max):
        return frozen(array.astype(np.int64))
    if kind == "f":
        is_bad = ~np.isfinite(array) | (array != np.floor(array)) | (np.abs(array) >= LARGEST_EXACT)
        refuse_first(is_bad, lambda row: f"qid must be whole numbers or text, but row {row} has {array[row]}")
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
            raise DataError("qid has a number of over 4300 digits: pass text instead") from None
    row = next((k for k, item in enumerate(items) if not isinstance(item, str | int)), None)
    if row is not None:
        raise DataError(f"qid must be whole numbers or text, but row {row} has {items[row]!r}")
    row = next(k for k, item in enumerate(items) if isinstance(item, str) != isinstance(items[0], str))
    raise DataError(
        f"qid must be either all whole numbers or all text, but row 0 has {items[0]!r} and row {row} has {items[row]!r}"
    )


def group_rows(qid: NDArray[Any]) -> tuple[NDArray[Any], Ints, Ints]:
    """Return (query_ids, order, offsets); the rows of query k are order[offsets[k]:offsets[k+1]].

    Queries are in order of first appearance, and the rows of a query in the caller's order.
    """
    n = len(qid)
    if n == 0:
        return qid, np.empty(0, np.int64), np.zeros(1, np.int64)
    starts = np.flatnonzero(starts_run(qid))
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
    """Return the number of the query of each entry of `order`: 0, 0, …, 1, 1, …"""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def query_of_row(order: Ints, offsets: Ints) -> Ints:
    """Return the number of the query of each row."""
    queries = np.empty(len(order), np.int64)
    queries[order] = query_in_order(offsets)
    return queries


def qid_from_sizes(group_sizes: ArrayLike, n: int) -> Ints:
    """Return query ids 0, 1, … for grouped rows, from the number of rows in each group."""
    sizes = np.asarray(group_sizes)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu":
        raise DataError("group_sizes must be a list of whole numbers, the number of rows of each query in turn")
    if (sizes <= 0).any():
        raise DataError(f"group_sizes must be positive, but group {int(np.argmax(sizes <= 0))} has no rows")
    total = sum(sizes.tolist())  # Python integers, because int64 could overflow
    if total != n:
        raise DataError(f"group_sizes add up to {total}, but there are {n} rows")
    return np.repeat(np.arange(len(sizes)), sizes)


@dataclass(frozen=True)
class PreferencePairs:
    """Pairs of rows: `i` should rank above `j` with the given probability. Pairs may contradict each other."""

    i: Ints
    j: Ints
    probability: Float32s
    weight: Float32s | None = None  # of each pair; None if all weigh 1

    def __len__(self) -> int:
        return len(self.i)

    @property
    def columns(self) -> tuple[Any, ...]:
        """The columns (i, j, probability), followed by the weights if there are any."""
        return (self.i, self.j, self.probability) + (() if self.weight is None else (self.weight,))

    @property
    def weights(self) -> Floats:
        """The weight of each pair, in double precision."""
        return np.ones(len(self)) if self.weight is None else self.weight.astype(np.float64)


def to_preferences(values: Any, n: int, order: Ints, offsets: Ints) -> PreferencePairs:
    """Return pairs (i, j, probability that i ranks above j, weight) of rows; raise if they are of different queries."""
    columns = _as_columns(values)
    i, j = (_to_row_numbers(column, name, n) for name, column in zip("ij", columns, strict=False))
    if len(i) != len(j):
        raise DataError(f"preferences: i and j must have the same length, but have {len(i)} and {len(j)} entries")
    probabilities = columns[2] if len(columns) > 2 else np.ones(len(i))
    probability = to_floats(probabilities, "preferences: probability", len(i))
    refuse_first(
        ~((probability >= 0) & (probability <= 1)),
        lambda k: f"preferences: probabilities must be in [0, 1], but pair {k} has {probability[k]}",
    )
    weight = to_weights(columns[3], "preferences: weights", len(i)) if len(columns) > 3 else None
    query = query_of_row(order, offsets)
    refuse_first(
        (query[i] != query[j]) | (i == j),
        lambda k: f"preferences: pair {k} (rows {i[k]} and {j[k]}) must be two documents of one query",
    )
    return PreferencePairs(frozen(i), frozen(j), frozen(probability), weight)


def _as_columns(values: Any) -> tuple[Any, ...]:
    if isinstance(values, PreferencePairs):
        return values.columns
    if isinstance(values, list):  # of pairs; a tuple holds columns
        values = as_array(values, np.float64) if values else np.empty((0, 2))
    if isinstance(values, np.ndarray) and values.ndim == 2:
        values = tuple(values.T)
    if not isinstance(values, tuple) or len(values) not in (2, 3, 4):
        raise DataError(
            "preferences must be a tuple of columns (i, j), (i, j, probability) or (i, j, probability, weight), "
            "or a list or array of such rows"
        )
    return values


def _to_row_numbers(column: Any, name: str, n: int) -> Ints:
    array = np.atleast_1d(as_array(column))
    if array.size == 0:
        array = array.astype(np.int64)
    is_whole = array.dtype.kind in "iu" or (array.dtype.kind == "f" and np.array_equal(array, np.floor(array)))
    if array.ndim != 1 or not is_whole:
        raise DataError(f"preferences: {name} must be a column of row numbers")
    problem = f"but rows are numbered 0 to {n - 1}"
    refuse_first((array < 0) | (array >= n), lambda k: f"preferences: pair {k} has row {array[k]}, {problem}")
    return array.astype(np.int64)
