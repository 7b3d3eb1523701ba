"""Readers of logs in Metarank's and OpenSearch's (UBI) formats, and of flat tables.

Events may come in any order: clicks are matched with their rankings after all events have been read.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import numpy as np

from podium.clicks.assembling import Place, ShownRows, assemble, from_one, log_of_columns, with_empty_query
from podium.clicks.log import ClickLog, Events, FieldValues, ReadingNotes
from podium.clicks.times import UNITS, microseconds
from podium.core.array_types import Int32s, Ints
from podium.core.validation import did_you_mean
from podium.data.frames import is_frame, narwhals_frame
from podium.data.io.parquet import import_pyarrow
from podium.errors import DataError, FileFormatError
from podium.features.documents import Record, kind_of, read_records
from podium.features.names import Coded, NameCoder, code

COLUMNS = (
    "time", "query", "document", "position", "clicked", "impression", "user", "session", "dwell", "click_time",
    "click_order",
)  # fmt: skip
NAMES = ("query", "document", "impression", "user", "session")
UBI_CLICKS = ("click", "item_click")
NOT_SHOWN = "a click is on a document that its impression does not show"
RESERVED = ("impression", "dwell", "item")  # kinds of events that follow from other events
NO_RANKING = "an event names a ranking that is not in the log"


def read_log(source: Any, form: str, options: Mapping[str, Any]) -> ClickLog:
    """Read a log; see `ClickLog.read`."""
    options_of = {
        "flat": {"time_unit", "positions_from", *COLUMNS},
        "metarank": {"time_unit", "query_field"},
        "ubi": {"time_unit", "positions_from", "clicks"},
    }
    if form not in options_of:
        near = did_you_mean(str(form), options_of)
        raise DataError(f"format must be {', '.join(map(repr, options_of))}, but got {form!r}{near}")
    names = options_of[form]
    for name in options:
        if name not in names:
            near = did_you_mean(name, names)
            raise DataError(f"the format {form!r} has no option {name!r}{near}; it has {', '.join(sorted(names))}")
    unit = options.get("time_unit")
    if unit not in (None, *UNITS):
        raise DataError(f"time_unit must be one of {', '.join(UNITS)}, but got {unit!r}")
    if form == "flat":
        return _read_flat(source, dict(options))
    builder = LogBuilder(unit)
    if form == "metarank":
        add = _metarank(builder, options.get("query_field", "query"))
    else:
        clicks = options.get("clicks", UBI_CLICKS)
        add = _ubi(builder, frozenset([clicks] if isinstance(clicks, str) else clicks))
    for record in read_records(source):
        try:
            add(record)
        except FileFormatError:
            raise
        except DataError as error:
            raise record.error(str(error)) from None
    return builder.build(options.get("positions_from"))


def _read_flat(source: Any, options: dict[str, Any]) -> ClickLog:
    """Read a table with a row for each shown document."""
    columns = {role: options.pop(role) for role in COLUMNS if role in options}
    if is_frame(source) and not is_stream(source):
        frame = narwhals_frame(source)
        column_of = columns_by_role(frame.columns, columns)
        arrays: dict[str, Any] = {role: np.asarray(frame[name].to_numpy()) for role, name in column_of.items()}
        return ClickLog.from_arrays(**arrays, **options)
    if is_stream(source):
        pyarrow = import_pyarrow("a stream of Arrow data")
        return read_stream(pyarrow.RecordBatchReader.from_stream(source), columns, **options)
    if isinstance(source, str | os.PathLike) and kind_of(source) == ".parquet":
        return _read_flat_parquet(os.fspath(source), columns, options)
    texts = {columns.get(name, name) for name in NAMES}
    values: dict[str, list[Any]] = defaultdict(list)
    lines: list[int] = []
    files: list[tuple[int, str | None]] = []  # the first row of each file
    column_of = {}
    for record in read_records(source, texts | {columns.get("time", "time"), columns.get("click_time", "click_time")}):
        if not files or files[-1][1] != record.file:
            files.append((len(lines), record.file))
            try:
                column_of = column_of or columns_by_role(record.values, columns)
            except DataError as error:
                raise record.error(str(error)) from None
        for role, name in column_of.items():
            values[role].append(record.values.get(name))
        lines.append(record.line)

    def place(row: int) -> str:
        file = next(name for first, name in reversed(files) if first <= row)
        return _place(file, lines[row])

    if not lines:
        raise DataError(f"the log is empty: {source!r:.80} has no shown documents")
    return ClickLog.from_arrays(**values, **options, place=place)  # type: ignore[arg-type]


def _read_flat_parquet(path: str, columns: Mapping[str, str], options: dict[str, Any]) -> ClickLog:
    pyarrow = import_pyarrow()
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            schema = file.schema_arrow
            names = sorted(set(columns_by_role(schema.names, columns).values()))
            parts = pyarrow.RecordBatchReader.from_batches(
                pyarrow.schema([schema.field(name) for name in names]), file.iter_batches(columns=names)
            )
            return read_stream(parts, columns, **options, place=lambda row: f"row {row + 1}")
    except (pyarrow.ArrowException, OSError) as error:
        raise FileFormatError(path, f"cannot be read: {error}") from None
    except DataError as error:
        raise FileFormatError(path, str(error)) from None


def columns_by_role(names: Collection[str], columns: Mapping[str, str]) -> dict[str, str]:
    """Return the column of a table for each role; raise if one is missing.

    Args:
        names: the columns of the table.
        columns: those that the caller named, by role; other columns have the name of their role.

    """
    for role, name in columns.items():
        if name not in names:
            raise DataError(f"{role}: there is no column {name!r}; the columns are {', '.join(map(repr, names))}")
    column_of = {role: role for role in COLUMNS if role in names} | dict(columns)
    for role in ("query", "document", "position", "clicked"):
        if role not in column_of:
            raise DataError(f"there is no column {role!r}: name it with {role}=…, one of {', '.join(map(repr, names))}")
    return column_of


def is_stream(source: Any) -> bool:
    """Return whether a source is a stream of Arrow data, such as a DuckDB relation or a RecordBatchReader."""
    return hasattr(source, "__arrow_c_stream__") and not is_frame(source, in_memory=True)


def read_stream(
    parts: Any, columns: Mapping[str, str], time_unit: str | None = None, positions_from: int | None = None,
    place: Place = lambda row: f"row {row}",
) -> ClickLog:  # fmt: skip
    """Read a flat table part by part, encoding names at once, so that it may be larger than memory.

    Args:
        parts: pyarrow's `RecordBatchReader`.
        columns: names of columns by role.
        time_unit, positions_from, place: as in `ClickLog.from_arrays`.

    """
    with parts:
        column_of = columns_by_role(parts.schema.names, columns)
        coders = {role: NameCoder() for role in column_of if role in NAMES}
        numbers: dict[str, list[Any]] = {role: [] for role in column_of if role not in NAMES}
        for part in parts:
            for role, coder in coders.items():
                encoded = part.column(column_of[role]).dictionary_encode()
                try:
                    coder.add(encoded.dictionary.to_pylist(), encoded.indices.fill_null(-1).to_numpy().astype(np.int64))
                except DataError as error:
                    raise DataError(f"{place(error.row)}: {role}: {error}") from None  # type: ignore[attr-defined]
            for role, arrays in numbers.items():
                arrays.append(part.column(column_of[role]).to_numpy(zero_copy_only=False))
    if not numbers["position"]:
        raise DataError("the log is empty: it has no shown documents")
    rows: dict[str, Any] = dict.fromkeys(COLUMNS)
    rows |= {role: np.concatenate(arrays) for role, arrays in numbers.items()}
    rows |= {role: coder.coded() for role, coder in coders.items()}
    return log_of_columns(rows, time_unit, positions_from, place)


class LoggedDocument(NamedTuple):
    """A document that was shown. Rankings of the same group count positions from the same number."""

    impression: int
    name: str
    position: int
    place: str
    group: str = ""


class LoggedEvent(NamedTuple):
    """An event other than an impression. A click counts if its ranking shows the document."""

    kind: str
    time: int
    ranking: str | None
    document: str | None
    user: str | None
    session: str | None
    place: str
    dwell: float


class LogBuilder:
    """Collects events in any order, and builds a log from them.

    Args:
        time_unit: the unit of numeric times; None to determine it by their size.

    Attributes:
        rows: the documents that were shown.
        answers: what searches returned, and the place in the source, by impression. It counts as shown if no event
            says what was shown.
        shown: numbers that were logged with shown documents, by name and row.
        events: clicks and other events.
        fields: updates of each field: time, document and value.
        notes: facts about the source.

    """

    def __init__(self, time_unit: str | None = None) -> None:
        self.rows: list[LoggedDocument] = []
        self.answers: dict[int, tuple[list[str], str]] = {}
        self.shown: dict[str, dict[int, float]] = defaultdict(dict)
        self.events: list[LoggedEvent] = []
        self.fields: dict[str, list[tuple[int, str, Any]]] = defaultdict(list)
        self.notes = ReadingNotes()
        self._unit = time_unit
        self._numbers: dict[str, int] = {}  # impressions by their id
        self._impressions: list[dict[str, Any]] = []

    def time(self, value: Any) -> int:
        """Return a time in microseconds."""
        return microseconds(value, self._unit, self.notes.time_units)

    def impression(self, name: str, **facts: Any) -> int:
        """Return the number of an impression; complete its time, query, user and session with these facts."""
        number = self._numbers.setdefault(name, len(self._impressions))
        if number == len(self._impressions):
            self._impressions.append(dict(facts))
        impression = self._impressions[number]
        impression |= {key: value for key, value in facts.items() if impression[key] is None}
        return number

    def build(self, positions_from: int | None = None) -> ClickLog:
        """Return the log."""
        seen = {row.impression for row in self.rows}
        for number, (names, place) in self.answers.items():
            if number not in seen:
                group = "what searches returned"
                self.rows += [LoggedDocument(number, name, k, place, group) for k, name in enumerate(names, 1)]
        if not self.rows:
            raise DataError("the log is empty: it has no shown documents")
        numbers = np.array([row.impression for row in self.rows], np.int64)
        used, impression = np.unique(numbers, return_inverse=True)  # drop rankings that show nothing
        impressions = [self._impressions[k] for k in used.tolist()]
        others = [event for event in self.events if event.kind != "click"]
        updated = [document for name in sorted(self.fields) for _, document, _ in self.fields[name]]
        documents = code([*(row.name for row in self.rows), *(event.document for event in others), *updated])
        n, m = len(self.rows), len(impressions)
        of_rows, of_events, of_fields = np.split(documents.codes, [n, n + len(others)])
        queries, users, sessions = (
            code([*(facts[name] for facts in impressions), *(self._fact_of(event, name) for event in others)])
            for name in ("query", "user", "session")
        )
        columns = with_empty_query(queries, m), users, sessions  # an entry for each impression, then for each event
        query, user, session = (Coded(column.codes[:m][impression], column.names) for column in columns)
        rows = ShownRows(
            impression=impression, time=np.array([facts["time"] for facts in impressions], np.int64)[impression],
            query=query, user=user, session=session, document=Coded(of_rows, documents.names),
            position=self._positions(positions_from),
            **self._click_columns(), shown={name: _dense(values, n) for name, values in sorted(self.shown.items())},
        )  # fmt: skip
        return assemble(
            rows, self.notes, lambda row: self.rows[row].place,
            events=_events(others, of_events, *(column.codes[m:] for column in columns)),
            fields=self._field_values(of_fields),
        )  # fmt: skip

    def _fact_of(self, event: LoggedEvent, name: str) -> Any:
        """Return the query, user or session of an event: its own, or that of its ranking."""
        value = getattr(event, name, None)  # only rankings have queries
        if value is None and event.ranking in self._numbers:
            return self._impressions[self._numbers[event.ranking]][name]
        return value

    def _click_columns(self) -> dict[str, Any]:
        n = len(self.rows)
        clicked, click_time, dwell = np.zeros(n, np.bool_), np.zeros(n, np.int64), np.full(n, np.nan)
        row_of: dict[tuple[int, str | None], int] = {}
        for row, shown in enumerate(self.rows):
            row_of.setdefault((shown.impression, shown.name), row)
        for click in sorted((event for event in self.events if event.kind == "click"), key=lambda event: event.time):
            number = self._numbers.get(click.ranking or "", -1)
            if number < 0:
                self.notes.add(NO_RANKING if click.ranking else "a click names no ranking", click.place)
                continue
            row = row_of.get((number, click.document), -1)
            if row < 0:
                self.notes.add(NOT_SHOWN, click.place)
            elif clicked[row]:
                self.notes.add("a document is clicked again in the same impression", click.place)
            else:
                clicked[row], click_time[row], dwell[row] = True, click.time, click.dwell
        return {"clicked": clicked, "click_order": np.zeros(n, np.int64), "click_time": click_time, "dwell": dwell}

    def _positions(self, positions_from: int | None) -> Ints:
        """Return positions from 1; each group of rankings counts from 0 if its smallest position is 0."""
        position = np.array([row.position for row in self.rows], np.int64)
        groups = code([f"={row.group}" for row in self.rows]).codes
        for group in range(int(groups.max()) + 1):
            rows = np.flatnonzero(groups == group)
            position[rows] = from_one(position[rows], positions_from, self.notes, lambda k: self.rows[rows[k]].place)  # noqa: B023
        return position

    def _field_values(self, documents: Int32s) -> dict[str, FieldValues]:
        """Return the values of each field, given the codes of the documents of all updates."""
        fields = {}
        for name in sorted(self.fields):
            times = np.array([time for time, _, _ in self.fields[name]], np.int64)
            values = code([value for _, _, value in self.fields[name]])
            updated, documents = np.split(documents, [len(times)])
            order = np.lexsort((values.codes, updated, times))
            fields[name] = FieldValues(times[order], updated[order], values.codes[order], values.names)
        return fields


def _dense(values: Mapping[int, float], n: int) -> Any:
    column = np.full(n, np.nan)
    column[list(values)] = list(values.values())
    return column


def _events(events: list[LoggedEvent], document: Int32s, query: Int32s, user: Int32s, session: Int32s) -> Events:
    kinds = code([event.kind for event in events])
    times = np.array([event.time for event in events], np.int64)
    order = np.lexsort((kinds.codes, document, query, user, session, times))
    return Events(
        times[order], kinds.codes[order], query[order], document[order], user[order], session[order], kinds.names
    )


def _name(values: Mapping[str, Any], key: str) -> str | None:
    """Return an entry that is a name, as text, or None."""
    value = values.get(key)
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise DataError(f"{key!r} must be text, but got {value!r:.60}")
    return str(value)


def _required(values: Mapping[str, Any], key: str) -> Any:
    if values.get(key) in (None, ""):
        raise DataError(f"{key!r} is missing{did_you_mean(key, map(str, values))}")
    return values[key]


def require_allowed_type(kind: str) -> None:
    """Raise if the type of an interaction is that of an event that follows from others."""
    if kind in RESERVED:
        raise DataError(f"the type {kind!r} is reserved: rankings imply impressions, and clicks have a field 'dwell'")


def _metarank(builder: LogBuilder, query_field: str) -> Callable[[Record], None]:
    """Return a function that adds one of Metarank's events."""

    def fields_of(values: Mapping[str, Any]) -> list[tuple[str, Any]]:
        fields = values.get("fields") or []
        if not isinstance(fields, list) or not all(isinstance(field, dict) and "name" in field for field in fields):
            raise DataError("'fields' must be a list of objects with a name and a value")
        return [(str(field["name"]), field.get("value")) for field in fields]

    def ranking(values: Mapping[str, Any], time: int, place: str) -> None:
        query = next((value for name, value in fields_of(values) if name == query_field), None)
        if query is not None and not isinstance(query, str):
            raise DataError(f"the field {query_field!r} must be text, but got {query!r:.60}")
        number = builder.impression(
            str(_required(values, "id")), time=time, query=query, user=_name(values, "user"),
            session=_name(values, "session"),
        )  # fmt: skip
        items = _required(values, "items")
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise DataError("'items' must be a list of objects with an id")
        for position, item in enumerate(items, 1):
            builder.rows.append(LoggedDocument(number, str(_required(item, "id")), position, place))
            for name, value in fields_of(item):
                if isinstance(value, int | float) and not isinstance(value, bool):
                    builder.shown[name][len(builder.rows) - 1] = float(value)

    def interaction(values: Mapping[str, Any], time: int, place: str) -> None:
        dwell = next((value for name, value in fields_of(values) if name == "dwell"), np.nan)
        kind = str(_required(values, "type"))
        require_allowed_type(kind)
        builder.events.append(LoggedEvent(
            kind, time, _name(values, "ranking"), str(_required(values, "item")), _name(values, "user"),
            _name(values, "session"), place, _dwell(dwell),
        ))  # fmt: skip

    def item(values: Mapping[str, Any], time: int, place: str) -> None:
        for name, value in fields_of(values):
            if isinstance(value, str | int) and not isinstance(value, bool):
                builder.fields[name].append((time, str(_required(values, "item")), value))

    adders = {"ranking": ranking, "interaction": interaction, "item": item}

    def add(record: Record) -> None:
        kind = _required(record.values, "event")
        if kind == "user":
            return
        if kind not in adders:
            raise DataError(f"'event' must be ranking, interaction, item or user, but got {kind!r:.60}")
        time = builder.time(_required(record.values, "timestamp"))
        adders[kind](record.values, time, _place(record.file, record.line))

    return add


def _place(file: str | None, line: int) -> str:
    return f"{file}, line {line}" if file else f"record {line}"


def _dwell(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise DataError(f"the dwell time must be a non-negative number of seconds, but got {value!r:.60}")
    return float(value)


def _ubi(builder: LogBuilder, clicks: frozenset[str]) -> Callable[[Record], None]:
    """Return a function that adds a query or an event of OpenSearch's User Behavior Insights."""
    shown: Counter[int] = Counter()  # documents by impression, for events without positions

    def query(values: Mapping[str, Any], time: int, place: str) -> None:
        number = builder.impression(
            str(_required(values, "query_id")), time=time, query=values.get("user_query"), user=_user(values),
            session=_name(values, "session_id"),
        )  # fmt: skip
        hits = values.get("query_response_hit_ids") or []
        if not isinstance(hits, list):
            raise DataError("'query_response_hit_ids' must be a list")
        builder.answers[number] = list(map(str, hits)), place

    def event(values: Mapping[str, Any], time: int, place: str) -> None:
        attributes = values.get("event_attributes") or {}
        target, position = attributes.get("object") or {}, attributes.get("position") or {}
        document = None if target.get("object_id") in (None, "") else str(target["object_id"])
        session = _name(values, "session_id") or _name(attributes, "session_id")
        kind, ranking = str(_required(values, "action_name")), _name(values, "query_id")
        if kind == "impression" and ranking and document:
            number = builder.impression(
                ranking, time=time, query=values.get("user_query"), user=_user(values), session=session
            )
            shown[number] += 1
            ordinal = position.get("ordinal", shown[number])
            if isinstance(ordinal, bool) or not isinstance(ordinal, int) or not 0 <= ordinal < 2**31 - 1:
                raise DataError(f"'ordinal' must be a whole number from 0, but got {ordinal!r:.60}")
            group = str(values.get("application", ""))
            builder.rows.append(LoggedDocument(number, document, ordinal, place, group))
            return
        dwell = attributes.get("dwell_time", np.nan)
        kind = "click" if kind in clicks else f"other {kind}" if kind == "click" else kind
        builder.events.append(LoggedEvent(kind, time, ranking, document, _user(values), session, place, _dwell(dwell)))

    def add(record: Record) -> None:
        values = record.values
        if set(values) <= {"index", "create"}:  # a line of OpenSearch's bulk format
            return
        time = builder.time(_required(values, "timestamp"))
        (event if values.get("action_name") else query)(values, time, _place(record.file, record.line))

    return add


def _user(values: Mapping[str, Any]) -> str | None:
    return _name(values, "user_id") or _name(values, "client_id")
