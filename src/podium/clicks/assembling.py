"""Assembling the arrays of a `ClickLog` from columns: codes, times, impressions, the order of rows and of clicks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.clicks.log import ClickLog, ReadingNotes
from podium.clicks.times import microseconds_of
from podium.core.array_types import Bools, Floats, Int32s, Ints
from podium.errors import DataError
from podium.features.names import Coded, code, with_row

Place = Callable[[int], str]


class ShownRows(NamedTuple):
    """Documents that were shown, in any order.

    Attributes:
        impression: a number for each row, equal for rows that were shown together.
        time: when the row was shown, in microseconds.
        query, document, user, session: the names as codes; the same within an impression, but for documents.
        position: the positions, from 1.
        clicked, click_order, click_time, dwell: as in `ClickLog`; 0 for an unknown order or time.
        shown: further numbers of each row by name.

    """

    impression: Ints
    time: Ints
    query: Coded
    document: Coded
    user: Coded
    session: Coded
    position: Ints
    clicked: Bools
    click_order: Ints
    click_time: Ints
    dwell: Floats
    shown: Mapping[str, Floats]


def log_of_columns(
    columns: Mapping[str, Any], time_unit: str | None, positions_from: int | None, place: Place
) -> ClickLog:
    """Return the log of a flat table, given its columns by role; those that it lacks are None."""
    notes = ReadingNotes()
    lengths = {
        name: len(column.codes if isinstance(column, Coded) else column)
        for name, column in columns.items()
        if column is not None
    }
    n = lengths["document"]
    for name, length in lengths.items():
        if length != n:
            raise DataError(f"{name} has {length} entries, but document has {n}")
    if n == 0:
        raise DataError("the log is empty: it has no shown documents")

    def converted(name: str, convert: Callable[..., Any], *arguments: Any, default: Any = None) -> Any:
        if columns[name] is None:
            return default
        try:
            return convert(columns[name], *arguments)
        except DataError as error:
            row = getattr(error, "row", None)
            raise DataError(f"{'' if row is None else f'{place(row)}: '}{name}: {error}") from None

    coded = {
        name: converted(name, code, default=Coded.unknown(n))
        for name in ("query", "document", "user", "session", "impression")
    }
    missing = np.flatnonzero(coded["document"].codes < 0)
    if len(missing):
        raise DataError(f"{place(int(missing[0]))}: document: the name is missing")
    zeros = np.zeros(n, np.int64)
    times = converted("time", microseconds_of, time_unit, notes.time_units, default=zeros)
    clicked = converted("clicked", _flags)
    impression = _impressions(coded.pop("impression"), times, coded)
    _, first = np.unique(impression, return_index=True)
    for name in ("query", "user", "session"):
        _require_constant(coded[name].codes, first[impression], name, place)
    coded["query"] = with_empty_query(coded["query"], n)
    rows = ShownRows(
        impression=impression,
        time=times,
        **coded,
        position=from_one(converted("position", _whole), positions_from, notes, place),
        clicked=clicked,
        click_order=converted("click_order", _whole, default=zeros),
        click_time=converted("click_time", _click_times, clicked, time_unit, default=zeros),
        dwell=converted("dwell", _seconds, default=np.full(n, np.nan)),
        shown={},
    )
    return assemble(rows, notes, place)


def with_empty_query(query: Coded, n: int) -> Coded:
    """Return queries with the empty text, which sorts first, as a name if one of the first n is missing."""
    return Coded((query.codes + 1).astype(np.int32), ("", *query.names)) if (query.codes[:n] < 0).any() else query


def _impressions(named: Coded, times: Ints, coded: Mapping[str, Coded]) -> Ints:
    """Number impressions by their column, and where it is missing by equal times, queries, users and sessions."""
    if (named.codes >= 0).all():
        return number_rows(named.codes)
    return number_rows(named.codes, times, *(coded[name].codes for name in ("query", "user", "session")))


def number_rows(*columns: NDArray[Any]) -> Ints:
    """Number the distinct rows of integer columns from 0 in sorted order, and return the number of each row."""
    numbers = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        distinct, codes = np.unique(column, return_inverse=True)
        _, numbers = np.unique(numbers * len(distinct) + codes, return_inverse=True)
    return np.asarray(numbers, np.int64)


def _require_constant(codes: Int32s, first: Ints, name: str, place: Place) -> None:
    differs = np.flatnonzero(codes != codes[first])
    if len(differs):
        row = int(differs[0])
        raise DataError(
            f"{place(row)}: the {name} differs from that of {place(int(first[row]))}, which is in the same impression"
        )


def _click_times(values: Any, clicked: Bools, time_unit: str | None) -> Ints:
    array = values if isinstance(values, np.ndarray) else np.asarray(values, object)
    times = np.zeros(len(array), np.int64)
    rows = np.flatnonzero(clicked & ~_is_missing(array))
    try:
        times[rows] = microseconds_of(array[rows], time_unit, Counter())
    except DataError as error:
        raise with_row(error, int(rows[getattr(error, "row", 0)])) from None
    return times


def _is_missing(array: NDArray[Any]) -> Bools:
    if array.dtype.kind == "M":
        return np.asarray(np.isnat(array))
    if array.dtype.kind in "fiu":
        return np.asarray(np.isnan(array) | (array == 0))
    return np.array([value is None or value != value or value in ("", 0) for value in array.tolist()], np.bool_)


def _numbers(values: Any) -> Floats:
    """Return a column as numbers, parsing text, with NaN for missing values."""
    array = values if isinstance(values, np.ndarray) else np.asarray(values, object)
    if array.dtype.kind in "biuf":
        return array.astype(np.float64)
    numbers = np.empty(len(array))
    for row, value in enumerate(array.tolist()):
        try:
            numbers[row] = np.nan if value is None or value == "" else float(value)
        except (TypeError, ValueError):
            raise with_row(DataError(f"expected a number, but got {value!r:.60}"), row) from None
    return numbers


def _require(is_right: Bools, numbers: Floats, expected: str) -> None:
    wrong = np.flatnonzero(~is_right)
    if len(wrong):
        raise with_row(DataError(f"expected {expected}, but got {numbers[wrong[0]]:g}"), int(wrong[0]))


def _whole(values: Any) -> Ints:
    numbers = _numbers(values)
    is_whole = (numbers >= 0) & (numbers < 2**31 - 1) & (numbers == np.floor(numbers))
    _require(is_whole, numbers, "a whole number from 0")
    return numbers.astype(np.int64)


def _flags(values: Any) -> Bools:
    array = np.asarray(values)
    if array.dtype.kind in "OU":
        words = {"true": 1.0, "false": 0.0}
        array = np.array([words.get(v.lower(), v) if isinstance(v, str) else v for v in array.tolist()], object)
    numbers = _numbers(array)
    _require((numbers == 0) | (numbers == 1), numbers, "true or false, 1 or 0")
    return np.asarray(numbers == 1)


def _seconds(values: Any) -> Floats:
    numbers = _numbers(values)
    _require(~(numbers < 0), numbers, "seconds from 0")
    return numbers


def assemble(rows: ShownRows, notes: ReadingNotes, place: Place, **others: Any) -> ClickLog:
    """Return the log of rows, sorted by time, impression and position; `others` are further fields of `ClickLog`."""
    _, first, impression = np.unique(rows.impression, return_index=True, return_inverse=True)
    times = rows.time[first]
    np.minimum.at(times, impression, rows.time)
    by_time = np.argsort(times, kind="stable")
    times, first = times[by_time], first[by_time]
    rank = np.empty(len(by_time), np.int64)
    rank[by_time] = np.arange(len(by_time))
    impression = rank[impression]
    codes = rows.document.codes
    order = np.lexsort((codes, rows.position, impression))
    is_first, is_clicked = _without_repeats(impression, rows, notes, place)
    order = order[is_first[order]]
    impression, document, clicked = impression[order], codes[order], is_clicked[order]
    click_time = rows.click_time[order]
    click_time = np.where(clicked, np.where(click_time == 0, times[impression], click_time), 0)
    query, n_documents = rows.query.codes[first], len(rows.document.names)
    pair_keys, pairs = np.unique(query[impression].astype(np.int64) * n_documents + document, return_inverse=True)
    return ClickLog(
        starts=np.searchsorted(impression, np.arange(len(times) + 1)).astype(np.int64),
        times=times,
        query=query,
        user=rows.user.codes[first],
        session=rows.session.codes[first],
        document=document,
        position=rows.position[order].astype(np.int32),
        clicked=clicked,
        click_order=_order_of_clicks(impression, clicked, rows.click_order[order], click_time),
        click_time=click_time,
        dwell=np.where(clicked, rows.dwell[order], np.nan),
        pairs=pairs.astype(np.int32),
        pair_queries=(pair_keys // n_documents).astype(np.int32),
        pair_documents=(pair_keys % n_documents).astype(np.int32),
        queries=rows.query.names,
        documents=rows.document.names,
        users=rows.user.names,
        sessions=rows.session.names,
        shown={name: values[order] for name, values in rows.shown.items()},
        notes=notes,
        **others,
    )


def _without_repeats(impression: Ints, rows: ShownRows, notes: ReadingNotes, place: Place) -> tuple[Bools, Bools]:
    """Return which rows are the first of their document in an impression, by position, and which count as clicked.

    The first row counts as clicked if it or a repetition was clicked.
    """
    document = rows.document.codes
    order = np.lexsort((rows.position, document, impression))
    begins = np.ones(len(order), np.bool_)
    begins[1:] = (np.diff(impression[order]) != 0) | (np.diff(document[order]) != 0)
    repeats = np.sort(order[~begins])
    if len(repeats):
        notes.add("a document is shown twice in one impression", place(int(repeats[0])), len(repeats))
    is_first, is_clicked = np.zeros(len(order), np.bool_), np.zeros(len(order), np.bool_)
    is_first[order[begins]] = True
    is_clicked[order[begins]] = np.logical_or.reduceat(rows.clicked[order], np.flatnonzero(begins))
    return is_first, is_clicked


def from_one(position: Ints, positions_from: int | None, notes: ReadingNotes, place: Place) -> Ints:
    """Return positions counted from 1."""
    least = int(position.min(initial=1))
    if positions_from not in (None, 0, 1):
        raise DataError(f"positions_from must be 0 or 1, but got {positions_from!r}")
    if positions_from == 1 and least == 0:
        raise DataError(f"{place(int(position.argmin()))}: positions must count from 1, but got 0")
    starts_at = min(least, 1) if positions_from is None else positions_from
    notes.first_positions[starts_at] += len(position)
    return position + (1 - starts_at)


def _order_of_clicks(impression: Ints, clicked: Bools, logged_order: Ints, click_time: Ints) -> Int32s:
    """Number the clicks of each impression from 1, by the logged order, then by time, then by position."""
    rows = np.flatnonzero(clicked)
    order = rows[np.lexsort((rows, click_time[rows], logged_order[rows], impression[rows]))]
    first = np.searchsorted(impression[order], impression[order])
    numbers = np.zeros(len(clicked), np.int32)
    numbers[order] = np.arange(len(order)) - first + 1
    return numbers
