"""Assembling the arrays of a `ClickLog` from columns: codes, times, impressions, the order of rows and of clicks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.clicks.log import ClickLog, ReadingNotes
from podium.clicks.times import microseconds_of, with_row
from podium.core.array_types import Bools, Floats, Int32s, Ints
from podium.errors import DataError

Place = Callable[[int], str]


class Coded(NamedTuple):
    """A column of names as codes into the sorted names, −1 for missing ones."""

    codes: Int32s
    names: tuple[str, ...]

    @classmethod
    def unknown(cls, n: int) -> Coded:
        """Return a column without names."""
        return cls(np.full(n, -1, np.int32), ())


class ShownRows(NamedTuple):
    """Documents that were shown, in any order.

    Attributes:
        impression: the impression of each row, numbered from 0.
        document: the documents as codes.
        position: the positions, from 1.
        clicked, click_order, click_time, dwell: as in `ClickLog`; 0 for an unknown order or time.
        shown: further numbers of each row by name.

    """

    impression: Ints
    document: Coded
    position: Ints
    clicked: Bools
    click_order: Ints
    click_time: Ints
    dwell: Floats
    shown: Mapping[str, Floats]


class Impressions(NamedTuple):
    """Rankings: the time of each in microseconds, and columns of codes."""

    times: Ints
    query: Coded
    user: Coded
    session: Coded


def code(values: Any) -> Coded:
    """Return a column of names or whole numbers as codes into the sorted names; missing values are −1."""
    if isinstance(values, Coded):
        return values
    array = values if isinstance(values, np.ndarray) else np.asarray(values, object)
    if array.ndim != 1:
        raise DataError(f"expected a column, but the array has {array.ndim} dimensions")
    if array.dtype.kind in "iuU":
        distinct, numbered = np.unique(array, return_inverse=True)
        return _sorted(list(map(str, distinct.tolist())), numbered.astype(np.int32))
    numbers: dict[Any, int] = {}
    try:
        raw = [numbers.setdefault(value, len(numbers)) for value in map(_hashable, array.tolist())]
    except TypeError:
        raise DataError("expected names or whole numbers, but the column contains lists or dictionaries") from None
    coder = NameCoder()
    coder.add(list(numbers), np.asarray(raw, np.int64))
    return coder.coded()


class NameCoder:
    """Encodes a column of names part by part, so that the text of all rows need not be in memory at once."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self._parts: list[Int32s] = []

    def add(self, values: Sequence[Any], places: Ints) -> None:
        """Add rows, given by their index in a list of distinct values, −1 for missing ones."""
        codes = np.full(len(values) + 1, -1, np.int32)
        for k, value in enumerate(values):
            try:
                text = _name(value)
            except DataError as error:
                row = sum(map(len, self._parts)) + int(np.argmax(places == k))
                raise with_row(error, row) from None
            if text is not None:  # 1 and "1" are the same name
                codes[k] = self._codes.setdefault(text, len(self._codes))
        self._parts.append(codes[places])

    def coded(self) -> Coded:
        """Return the whole column."""
        return _sorted(list(self._codes), np.concatenate(self._parts))


def _hashable(value: Any) -> Any:
    return None if isinstance(value, float) and value != value else value


def _name(value: Any) -> str | None:
    if value is None or value == "" or value != value:
        return None
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise DataError(f"{value!a:.60} contains a lone surrogate, which UTF-8 cannot encode") from None
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise DataError(f"expected a name or a whole number, but got {value!r:.60}")


def _sorted(names: list[str], codes: Int32s) -> Coded:
    """Return the same column with sorted names."""
    order = sorted(range(len(names)), key=names.__getitem__)
    rank = np.empty(len(names) + 1, np.int32)
    rank[order], rank[-1] = np.arange(len(names)), -1
    return Coded(rank[codes], tuple(names[k] for k in order))


def log_of_columns(
    rows: Mapping[str, Any], time_unit: str | None, positions_from: int | None, place: Place
) -> ClickLog:
    """Return the log of the columns of a flat table, None for missing columns."""
    notes = ReadingNotes()
    lengths = {
        name: len(column.codes if isinstance(column, Coded) else column)
        for name, column in rows.items()
        if column is not None
    }
    n = lengths["document"]
    for name, length in lengths.items():
        if length != n:
            raise DataError(f"{name} has {length} entries, but document has {n}")
    if n == 0:
        raise DataError("the log is empty: it has no shown documents")

    def converted(name: str, convert: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return convert(rows[name], *arguments)
        except DataError as error:
            at = getattr(error, "row", None)
            raise DataError(f"{'' if at is None else f'{place(at)}: '}{name}: {error}") from None

    coded = {
        name: converted(name, code) if rows[name] is not None else Coded.unknown(n)
        for name in ("query", "document", "user", "session", "impression")
    }
    missing = np.flatnonzero(coded["document"].codes < 0)
    if len(missing):
        raise DataError(f"{place(int(missing[0]))}: document: the name is missing")
    times = np.zeros(n, np.int64)
    if rows["time"] is not None:
        times = converted("time", microseconds_of, time_unit, notes.time_units)
    clicked = converted("clicked", _flags)
    shown = ShownRows(
        impression=_impressions(coded, times),
        document=coded["document"],
        position=from_one(converted("position", _whole), positions_from, notes, place),
        clicked=clicked,
        click_order=np.zeros(n, np.int64) if rows["click_order"] is None else converted("click_order", _whole),
        click_time=_click_times(rows, clicked, time_unit, converted),
        dwell=np.full(n, np.nan) if rows["dwell"] is None else converted("dwell", _seconds),
        shown={},
    )
    _, first = np.unique(shown.impression, return_index=True)
    for name in ("query", "user", "session"):
        _require_constant(coded[name].codes, first[shown.impression], name, place)
    query = coded["query"]
    if (query.codes < 0).any():  # a missing query is the empty text, which sorts first
        query = Coded((query.codes + 1).astype(np.int32), ("", *query.names))
    impressions = Impressions(
        np.minimum.reduceat(times[order := np.argsort(shown.impression, kind="stable")],
                            np.searchsorted(shown.impression[order], np.arange(len(first)))),
        Coded(query.codes[first], query.names),
        *(Coded(coded[name].codes[first], coded[name].names) for name in ("user", "session")),
    )  # fmt: skip
    return assemble(shown, impressions, notes, place)


def _impressions(coded: Mapping[str, Coded], times: Ints) -> Ints:
    """Number impressions by their column, or by equal times, queries, users and sessions."""
    named = coded["impression"].codes
    keys = [named] if (named >= 0).all() else [times, *(coded[name].codes for name in ("query", "user", "session"))]
    if not (named >= 0).all() and (named >= 0).any():
        keys = [named, *keys]
    return number_rows(*keys)


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


def _click_times(rows: Mapping[str, Any], clicked: Bools, time_unit: str | None, converted: Any) -> Ints:
    if rows["click_time"] is None:
        return np.zeros(len(clicked), np.int64)

    def convert(values: Any) -> Ints:
        array = values if isinstance(values, np.ndarray) else np.asarray(values, object)
        times = np.zeros(len(array), np.int64)
        known = np.flatnonzero(clicked & ~_is_missing(array))
        try:
            times[known] = microseconds_of(array[known], time_unit, Counter())
        except DataError as error:
            raise with_row(error, int(known[getattr(error, "row", 0)])) from None
        return times

    result: Ints = converted("click_time", convert)
    return result


def _is_missing(array: NDArray[Any]) -> Bools:
    if array.dtype.kind == "M":
        return np.asarray(np.isnat(array))
    if array.dtype.kind == "f":
        return np.asarray(np.isnan(array) | (array == 0))
    if array.dtype.kind in "iu":
        return np.asarray(array == 0)
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


def _whole(values: Any) -> Ints:
    numbers = _numbers(values)
    bad = np.flatnonzero(~((numbers >= 0) & (numbers < 2**31 - 1) & (numbers == np.floor(numbers))))
    if len(bad):
        raise with_row(DataError(f"expected a whole number from 0, but got {numbers[bad[0]]:g}"), int(bad[0]))
    return numbers.astype(np.int64)


def _flags(values: Any) -> Bools:
    array = np.asarray(values)
    if array.dtype.kind in "OU":
        words = {"true": 1.0, "false": 0.0}
        array = np.array([words.get(v.lower(), v) if isinstance(v, str) else v for v in array.tolist()], object)
    numbers = _numbers(array)
    bad = np.flatnonzero((numbers != 0) & (numbers != 1))
    if len(bad):
        raise with_row(DataError(f"expected true or false, 1 or 0, but got {numbers[bad[0]]:g}"), int(bad[0]))
    return np.asarray(numbers == 1)


def _seconds(values: Any) -> Floats:
    numbers = _numbers(values)
    bad = np.flatnonzero(numbers < 0)
    if len(bad):
        raise with_row(DataError(f"expected seconds from 0, but got {numbers[bad[0]]:g}"), int(bad[0]))
    return numbers


def assemble(rows: ShownRows, impressions: Impressions, notes: ReadingNotes, place: Place, **others: Any) -> ClickLog:
    """Return the log of rows and impressions, sorted by time, impression and position; `others` are further fields."""
    rows = _without_repeats(rows, notes, place)
    by_time = np.argsort(impressions.times, kind="stable")
    rank = np.empty(len(by_time), np.int64)
    rank[by_time] = np.arange(len(by_time))
    order = np.lexsort((rows.document.codes, rows.position, rank[rows.impression]))
    impression = rank[rows.impression][order]
    clicked = rows.clicked[order]
    times = impressions.times[by_time]
    click_time = rows.click_time[order]
    click_time = np.where(clicked, np.where(click_time == 0, times[impression], click_time), 0)
    click_order = _order_of_clicks(impression, clicked, rows.click_order[order], click_time)
    query, document = impressions.query.codes[by_time], rows.document.codes[order]
    n_documents = len(rows.document.names)
    pair_keys, pairs = np.unique(query[impression].astype(np.int64) * n_documents + document, return_inverse=True)
    return ClickLog(
        starts=np.searchsorted(impression, np.arange(len(times) + 1)).astype(np.int64),
        times=times,
        query=query,
        user=impressions.user.codes[by_time],
        session=impressions.session.codes[by_time],
        document=document,
        position=rows.position[order].astype(np.int32),
        clicked=clicked,
        click_order=click_order,
        click_time=click_time,
        dwell=np.where(clicked, rows.dwell[order], np.nan),
        pairs=pairs.astype(np.int32),
        pair_queries=(pair_keys // n_documents).astype(np.int32),
        pair_documents=(pair_keys % n_documents).astype(np.int32),
        queries=impressions.query.names,
        documents=rows.document.names,
        users=impressions.user.names,
        sessions=impressions.session.names,
        shown={name: values[order] for name, values in rows.shown.items()},
        notes=notes,
        **others,
    )


def _without_repeats(rows: ShownRows, notes: ReadingNotes, place: Place) -> ShownRows:
    """Drop repetitions of a document within an impression; the first counts as clicked if any of them was."""
    order = np.lexsort((rows.position, rows.document.codes, rows.impression))
    impression, document = rows.impression[order], rows.document.codes[order]
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = (impression[1:] != impression[:-1]) | (document[1:] != document[:-1])
    if is_first.all():
        return rows
    repeats = np.sort(order[~is_first])
    notes.add("a document is shown twice in one impression", place(int(repeats[0])), len(repeats))
    first = order[is_first]
    clicked = np.logical_or.reduceat(rows.clicked[order], np.flatnonzero(is_first))
    kept = ("impression", "position", "click_order", "click_time", "dwell")
    return rows._replace(
        **{name: getattr(rows, name)[first] for name in kept},
        document=Coded(rows.document.codes[first], rows.document.names), clicked=clicked,
        shown={name: values[first] for name, values in rows.shown.items()},
    )  # fmt: skip


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


def _order_of_clicks(impression: Ints, clicked: Bools, given: Ints, click_time: Ints) -> Int32s:
    """Number the clicks of each impression from 1, by the given order, then by time, then by position."""
    rows = np.flatnonzero(clicked)
    order = rows[np.lexsort((rows, click_time[rows], given[rows], impression[rows]))]
    first = np.searchsorted(impression[order], impression[order])
    numbers = np.zeros(len(clicked), np.int32)
    numbers[order] = np.arange(len(order)) - first + 1
    return numbers
