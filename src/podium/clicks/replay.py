"""Click features by replay: a state that events update and requests read, the same offline and online.

All reads at time t come before all updates at t, so no value contains anything that was unknown when it was read.
"""

from __future__ import annotations

import hashlib
import heapq
import json
import os
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from podium.clicks.click_features import ClickFeature, Counter, parse_all
from podium.clicks.log import ClickLog, FieldValues
from podium.clicks.scope_table import ScopeTable
from podium.clicks.times import LONGEST_VISIT, PER_SECOND, microseconds, require_dwell
from podium.core.array_types import Floats, Int32s, Ints, UInt64s
from podium.core.files import replacing
from podium.core.threads import map_threads, n_threads_for
from podium.core.validation import require_whole, to_path
from podium.errors import DataError, FileFormatError

NAMES = ("document", "query", "user", "session")
ITEM = "item"  # the event that sets fields of a document
MOST_PENDING = 100_000  # events to keep before they are applied
FORMAT = 1


def hash_name(text: str) -> int:
    """Return a 64-bit hash of a name, never 0."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") or 1


def hashes_of(names: Sequence[str]) -> UInt64s:
    """Return the hash of each name, and 0 at the end for the code −1."""
    return np.fromiter((*map(hash_name, names), 0), np.uint64, len(names) + 1)


def combined(parts: Sequence[UInt64s], n: int) -> UInt64s:
    """Return one key for each row of several columns of hashes; 0 if one of them is unknown."""
    if len(parts) == 1:
        return parts[0]
    key = np.ones(n, np.uint64)
    for part in parts:  # mix each with the finalizer of splitmix64
        key = (key ^ part) * np.uint64(0x9E3779B97F4A7C15)
        key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        key ^= key >> np.uint64(31)
    key = np.maximum(key, np.uint64(1))
    for part in parts:
        key = np.where(part == 0, np.uint64(0), key)
    return key


# An event that waits until its moment is over: time, a tie breaker, kind, amount and names.
Pending = tuple[int, int, str, list[Any]]


class Timeline(NamedTuple):
    """Reads and updates in the order of time; reads come before updates of the same time.

    Attributes:
        times: microseconds since the epoch.
        kinds: codes of events; −1 for a read.
        amounts: the amounts to add to totals.
        rows: the row that a read fills; −1 for updates.
        names: hashes of documents, queries, users, sessions and fields; 0 if unknown.

    """

    times: Ints
    kinds: Int32s
    amounts: Ints
    rows: Ints
    names: Mapping[str, UInt64s]


class Replay:
    """A state that counts events by scope; `update` adds events, and `read` returns the features of a request.

    Args:
        features: texts such as `rate(click, by=document)`.
        limit: the maximum number of keys (documents, users, …) of each scope; the least recently updated are dropped.

    Example:
        >>> from podium.clicks import Replay
        >>> replay = Replay(["rate(click, by=document)", "count(impression, by=document)"])
        >>> replay.update([
        ...     {"event": "impression", "time": 1, "document": "a"},
        ...     {"event": "impression", "time": 1, "document": "b"},
        ...     {"event": "click", "time": 2, "document": "a"},
        ... ])
        >>> replay.read({"time": 2, "documents": ["a", "b"]}).tolist()  # the click at 2 is not known yet
        [[0.0, 1.0], [0.0, 1.0]]
        >>> replay.read({"time": 3, "documents": ["a", "c"]}).tolist()
        [[1.0, 1.0], [nan, 0.0]]

    """

    def __init__(self, features: Sequence[str | ClickFeature], *, limit: int = 1_000_000) -> None:
        require_whole("limit", limit, 4)
        self.features = parse_all(features)
        self.limit = int(limit)
        counters = list(dict.fromkeys(counter for feature in self.features for counter in feature.counters))
        self._kinds = tuple(sorted({counter.event for counter in counters}))
        by_scope: dict[tuple[str, ...], list[Counter]] = defaultdict(list)
        for counter in counters:
            by_scope[counter.by].append(counter)
        self._scopes = {scope: tuple(group) for scope, group in sorted(by_scope.items())}
        self._tables = {scope: ScopeTable(group, self._kinds, limit) for scope, group in self._scopes.items()}
        self._parts = tuple(sorted({name for scope in self._scopes for name in scope}))
        self._field_names = tuple(name for name in self._parts if name not in NAMES)
        self._fields: dict[str, dict[int, int]] = {name: {} for name in self._field_names}
        self._pending: list[Pending] = []  # a heap
        self._added = 0
        self.notes: dict[str, Any] = {}
        self.now = -(2**62)  # the latest time of a read or an event

    @property
    def names(self) -> tuple[str, ...]:
        """The features as texts."""
        return tuple(map(str, self.features))

    def __repr__(self) -> str:
        sizes = ", ".join(f"{'+'.join(scope) or 'all'}: {len(table):,}" for scope, table in self._tables.items())
        return f"Replay({len(self.features)} features, keys by scope: {sizes})"

    def update(self, events: Mapping[str, Any] | Iterable[Mapping[str, Any]]) -> None:
        """Add events, which must be in the order of time; an invalid event raises, and none is added.

        Args:
            events: each has `event` (impression, click, dwell, item or any other kind), `time`, and `document`,
                `query`, `user` and `session` if they are known. `dwell` is in seconds; the dwell time of a click counts
                once the user has left the document. An event `item` has `fields`, a dictionary of the document's
                fields.

        """
        prepared: list[tuple[int, str, list[Any]]] = []
        now = self.now
        for number, event in enumerate([events] if isinstance(events, Mapping) else events):
            try:
                now = self._prepare(event, now, prepared)
            except DataError as error:
                raise DataError(f"event {number}: {error}") from None
        self.now = now
        self._push(prepared)
        if len(self._pending) > MOST_PENDING:
            self._flush(now)

    def _push(self, entries: Iterable[tuple[int, str, list[Any]]]) -> None:
        for time, kind, values in entries:
            heapq.heappush(self._pending, (time, self._added, kind, values))
            self._added += 1

    def _prepare(self, event: Mapping[str, Any], now: int, prepared: list[tuple[int, str, list[Any]]]) -> int:
        if not isinstance(event, Mapping) or not isinstance(event.get("event"), str):
            raise DataError(f"expected a dictionary with 'event' and 'time', but got {event!r:.80}")
        time = microseconds(event.get("time"))
        if time < now:
            raise DataError(f"events must come in the order of time, but {time} µs comes after {now} µs")
        kind, names = event["event"], [_name(event, name) for name in NAMES]
        dwell = event.get("dwell")
        if kind == ITEM:
            prepared.append((time, ITEM, [names[0], *_fields_of(event, self._field_names)]))
        elif kind == "dwell" or (kind == "click" and dwell is not None):
            seconds = require_dwell(dwell)
            if seconds <= LONGEST_VISIT:
                end = time + (round(seconds * PER_SECOND) if kind == "click" else 0)  # when the user leaves
                prepared.append((end, "dwell", [round(seconds * 1000), *names]))
        if kind not in (ITEM, "dwell"):
            prepared.append((time, kind, [1, *names]))
        return time

    def read(self, request: Mapping[str, Any]) -> Floats:
        """Return the features of each document of a request, computed from the events before its time.

        Args:
            request: `time`, `documents` (a list of names), and `query`, `user` and `session` if they are known.

        Returns:
            A row for each document, a column for each feature.

        """
        time, documents = microseconds(request.get("time")), request.get("documents")
        if not isinstance(documents, list | tuple) or not all(isinstance(name, str) for name in documents):
            raise DataError("'documents' must be a list of names")
        if time < self.now:
            raise DataError(f"requests must come in the order of time, but {time} µs comes after {self.now} µs")
        self.now = time
        self._flush(time)
        n = len(documents)
        hashes = np.fromiter(map(hash_name, documents), np.uint64, n)
        names = {name: np.full(n, _hash(_name(request, name)), np.uint64) for name in NAMES[1:]} | {"document": hashes}
        for name in self._field_names:
            value_of = self._fields[name]
            names[name] = np.fromiter((value_of.get(document, 0) for document in hashes.tolist()), np.uint64, n)
        line = Timeline(np.full(n, time), np.full(n, -1, np.int32), np.zeros(n, np.int64), np.arange(n), names)
        return self._values(self._run(line, n), n)

    def _flush(self, before: int) -> None:
        """Apply the pending events of all moments before a time."""
        updates: list[list[int]] = []  # time, kind, amount and hashes of names
        ready = []
        while self._pending and self._pending[0][0] < before:
            ready.append(heapq.heappop(self._pending))
        for _, moment in groupby(ready, key=lambda entry: entry[0]):
            items = []
            for time, _, kind, (amount, *values) in moment:  # with the fields before this moment
                if kind == ITEM:
                    items.append([amount, *values])
                elif kind in self._kinds:
                    hashes = list(map(_hash, values))
                    fields = (self._fields[name].get(hashes[0], 0) for name in self._field_names)
                    updates.append([time, self._kinds.index(kind), amount, *hashes, *fields])
            self._set_fields(items)
        if updates:
            times, kinds, amounts, *columns = zip(*updates, strict=True)
            names = zip((*NAMES, *self._field_names), columns, strict=True)
            line = Timeline(
                np.array(times, np.int64), np.array(kinds, np.int32), np.array(amounts, np.int64),
                np.full(len(times), -1), {name: np.array(hashes, np.uint64) for name, hashes in names},
            )  # fmt: skip
            self._run(line, 0)

    def _set_fields(self, items: list[list[Any]]) -> None:
        """Set fields of one moment; if a field has two values, the one that sorts last wins."""
        for k, name in enumerate(self._field_names, 1):
            latest: dict[str, str] = {}
            for item in items:
                is_given, value = item[k]
                if is_given:
                    latest[item[0]] = max(latest.get(item[0], ""), value or "")
            self._fields[name] |= {hash_name(document): _hash(value or None) for document, value in latest.items()}

    def _run(self, line: Timeline, n_rows: int) -> dict[Counter, Floats]:
        """Run a timeline, with a thread for each scope, and return the counters of reads."""

        def run(scope: tuple[str, ...]) -> Floats:
            counters = self._scopes[scope]
            used = np.zeros(len(self._kinds) + 1, np.bool_)
            used[[self._kinds.index(counter.event) for counter in counters]] = True
            used[-1] = n_rows > 0  # reads have the code −1
            entries = np.flatnonzero(used[line.kinds])
            keys = combined([line.names[name][entries] for name in scope], len(entries))
            counts = np.empty((n_rows, len(counters)))
            self._tables[scope].run(
                line.times[entries], keys, line.kinds[entries], line.amounts[entries], line.rows[entries], counts
            )
            return counts

        columns: dict[Counter, Floats] = {}
        threads = n_threads_for(len(line.times))
        for scope, counts in zip(self._scopes, map_threads(run, list(self._scopes), threads), strict=True):
            columns |= zip(self._scopes[scope], counts.T, strict=True)
        return columns

    def _values(self, columns: Mapping[Counter, Floats], n: int) -> Floats:
        values = np.empty((n, len(self.features)))
        for k, feature in enumerate(self.features):
            values[:, k] = feature.values(*(columns[counter] for counter in feature.counters))
        return values

    def replay(self, log: ClickLog) -> Floats:
        """Read the features of each row of a log at the time it was shown, and add the log's events.

        The state must be new. `ClickLog.features` calls this.
        """
        if not log.has_times:
            raise DataError("the log has no times, which features by replay need: pass time=… when you read it")
        kinds = {*log.events.kinds, "impression", "click", "dwell"}
        for event in self._kinds:
            if event not in kinds:
                raise DataError(f"the log has no events {event!r}; it has {', '.join(sorted(kinds))}")
        for name in self._field_names:
            if name not in log.fields:
                raise DataError(f"the documents of the log have no field {name!r}; they have {', '.join(log.fields)}")
        if self._pending or any(len(table) for table in self._tables.values()):
            raise DataError("the replay of a log needs a new state: create another Replay")
        line = self._timeline(log)
        columns = self._run(line, len(log))
        self.now = int(line.times[-1]) + 1  # the last moment is over
        for name in self._field_names:
            field = log.fields[name]  # in the order of time, so the last value of a document wins
            documents, values = hashes_of(log.documents), hashes_of(field.values)
            pairs = zip(documents[field.document].tolist(), values[field.value].tolist(), strict=True)
            self._fields[name] = dict(pairs)
        return self._values(columns, len(log))

    def _timeline(self, log: ClickLog) -> Timeline:
        """Return the reads of all rows of a log and all its events."""
        impression, n = log.impression, len(log)
        rows = np.arange(n)
        clicked = np.flatnonzero(log.clicked)
        visited = np.flatnonzero(log.clicked & (log.dwell <= LONGEST_VISIT))
        parts: list[tuple[int, Ints, Ints, Ints]] = [(-1, rows, log.times[impression], np.zeros(n, np.int64))]
        for event, event_rows, times, amounts in (
            ("impression", rows, log.times[impression], np.ones(n, np.int64)),
            ("click", clicked, log.click_time[clicked], np.ones(len(clicked), np.int64)),
            (
                "dwell", visited, log.click_time[visited] + np.rint(log.dwell[visited] * PER_SECOND).astype(np.int64),
                np.rint(log.dwell[visited] * 1000).astype(np.int64),
            ),
        ):  # fmt: skip
            if event in self._kinds:
                parts.append((self._kinds.index(event), event_rows, times, amounts))
        code_of = np.array([self._kinds.index(k) if k in self._kinds else -2 for k in log.events.kinds], np.int32)
        kind_of_event = code_of[log.events.kind]
        others = np.flatnonzero(kind_of_event >= 0)
        part_kinds, part_rows, part_times, part_amounts = zip(*parts, strict=True)
        log_rows = np.concatenate(part_rows)
        times = np.concatenate([*part_times, log.events.times[others]])
        kinds = np.append(np.repeat(part_kinds, list(map(len, part_rows))), kind_of_event[others]).astype(np.int32)
        amounts = np.concatenate([*part_amounts, np.ones(len(others), np.int64)])
        order = np.lexsort((kinds >= 0, times))  # reads first
        names: dict[str, UInt64s] = {}
        codes: dict[str, Int32s] = {}
        for name, vocabulary in (
            ("document", log.documents), ("query", log.queries), ("user", log.users), ("session", log.sessions),
        ):  # fmt: skip
            of_rows = log.document[log_rows] if name == "document" else getattr(log, name)[impression[log_rows]]
            codes[name] = np.concatenate([of_rows, getattr(log.events, name)[others]])[order]
            if name in self._parts:
                names[name] = hashes_of(vocabulary)[codes[name]]
        for name in self._field_names:
            field = log.fields[name]
            names[name] = hashes_of(field.values)[_values_before(field, codes["document"], times[order])]
        is_read = kinds[order] < 0
        row_of = np.full(len(order), -1)
        row_of[is_read] = order[is_read]
        return Timeline(times[order], kinds[order], amounts[order], row_of, names)

    def save(self, path: str | os.PathLike[str], notes: Mapping[str, Any] | None = None) -> None:
        """Write the state to a file atomically; the bits do not depend on how events were batched.

        Args:
            path: the file.
            notes: any JSON value, which `load` restores as the attribute `notes`.

        """
        arrays: dict[str, Any] = {}
        for k, table in enumerate(self._tables.values()):
            keys, latest, counts, now = table.content()
            order = np.argsort(keys)
            arrays |= {f"keys{k}": keys[order], f"latest{k}": latest[order]}
            arrays |= {f"counts{k}": counts[order], f"now{k}": np.array(now)}
        for name, value_of in self._fields.items():
            arrays[f"field {name}"] = np.array(sorted(value_of.items()), np.uint64).reshape(-1, 2)
        about = {
            "format": FORMAT, "features": self.names, "limit": self.limit, "now": self.now, "notes": notes or {},
            "pending": sorted(([time, kind, values] for time, _, kind, values in self._pending), key=repr),
        }  # fmt: skip
        arrays["about"] = np.frombuffer(json.dumps(about, ensure_ascii=False).encode(), np.uint8)
        with replacing(path) as temporary, temporary.open("wb") as file:
            np.savez(file, **arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Replay:
        """Read a state that `save` wrote."""
        path = to_path(path)
        try:
            with np.load(path, allow_pickle=False) as file:
                about = json.loads(file["about"].tobytes())
                if about["format"] != FORMAT:
                    raise FileFormatError(path, f"has format {about['format']}, but this version reads {FORMAT}")
                replay = cls(about["features"], limit=about["limit"])
                for k, table in enumerate(replay._tables.values()):
                    keys, latest, counts = (file[f"{name}{k}"] for name in ("keys", "latest", "counts"))
                    if (keys.dtype, latest.dtype, counts.dtype) != (np.uint64, np.int64, np.int64):
                        raise ValueError("arrays of other types")
                    if len(np.unique(keys)) < len(keys) or counts.shape != (len(keys), table.width):
                        raise ValueError("arrays of other shapes")
                    table.set(keys, latest, counts, int(file[f"now{k}"]))
                for name in replay._field_names:
                    replay._fields[name] = dict(file[f"field {name}"].tolist())
                replay._push((int(time), str(kind), list(values)) for time, kind, values in about["pending"])
                replay.now, replay.notes = int(about["now"]), dict(about["notes"])
        except FileFormatError:
            raise
        except (KeyError, TypeError, ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
            raise FileFormatError(path, f"is not a saved state of a replay: {error}") from None
        return replay


def _hash(name: str | None) -> int:
    return 0 if name is None else hash_name(name)


def _name(values: Mapping[str, Any], key: str) -> str | None:
    value = values.get(key)
    if value is not None and not isinstance(value, str):
        raise DataError(f"{key!r} must be text, but got {value!r:.40}")
    return value or None


def _fields_of(event: Mapping[str, Any], names: Sequence[str]) -> list[tuple[bool, str | None]]:
    """Return whether an event sets each field, and its value."""
    fields = event.get("fields")
    if not isinstance(fields, Mapping) or not isinstance(event.get("document"), str):
        raise DataError("an event 'item' needs 'document', and 'fields' as a dictionary")
    return [(name in fields, _name(fields, name)) for name in names]


def _values_before(field: FieldValues, document: Int32s, times: Ints) -> Int32s:
    """Return the code of a field's value that each document had before each time; −1 if it had none."""
    moments = np.unique(field.times)
    stride = len(moments) + 1  # keys sort by document, then by time
    keys = field.document.astype(np.int64) * stride + np.searchsorted(moments, field.times)
    order = np.argsort(keys, kind="stable")
    place = np.searchsorted(keys[order], document.astype(np.int64) * stride + np.searchsorted(moments, times)) - 1
    entry = order[np.maximum(place, 0)]
    is_known = (place >= 0) & (field.document[entry] == document) & (document >= 0)
    return np.where(is_known, field.value[entry], -1).astype(np.int32)
