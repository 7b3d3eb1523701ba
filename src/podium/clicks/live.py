"""`LiveLog`, a log that a service appends to, with the current state of click features."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from podium.clicks.log_formats import require_allowed_type
from podium.clicks.replay import Replay
from podium.clicks.times import microseconds, require_dwell
from podium.core.array_types import Floats
from podium.core.validation import to_path
from podium.errors import DataError, FileFormatError, warn

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

RANKINGS = 100_000  # the number of latest rankings that clicks may refer to
SNAPSHOT_EVERY = 100_000  # lines
LOG, STATE = "events.jsonl", "state.npz"


class LiveLog:
    """A log of events in Metarank's format, each written to a file before it changes the state.

    The time of an event is when it arrives, so the file is in the order of time, and replaying it gives the same
    features. The folder contains the file and a snapshot of the state. `LiveLog` starts from the snapshot and replays
    later events from the file. It drops an unfinished line, which a killed process never confirmed to a client. To
    start with the clicks of an earlier log, copy it into a new folder as `events.jsonl`, sorted by time.

    Args:
        folder: the folder, which is created if it does not exist; only one process at a time may use it.
        features: texts such as `rate(click, by=document)`.
        limit: the maximum number of keys of each scope.

    Attributes:
        replay: the state.
        lock: held between reading features and showing the ranking.

    Example:
        >>> live = LiveLog("clicks", ["rate(click, by=document)"])
        >>> with live.moment() as now:
        ...     values = live.read(now, ["a"], query="tea", user=None, session=None)
        ...     live.show(now, "r1", [{"id": "a", "fields": []}], query="tea", user=None, session=None)
        >>> live.add([{"event": "interaction", "type": "click", "ranking": "r1", "item": "a"}])
        0
        >>> live.close()

    """

    def __init__(self, folder: str | os.PathLike[str], features: Sequence[str], *, limit: int = 1_000_000) -> None:
        self.folder = to_path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.lock = threading.RLock()
        self._features, self._limit = list(features), limit
        self._file = (self.folder / LOG).open("a+b")
        self._lock_file()
        self.replay, self._rankings, offset = self._snapshot()
        self._lines = 0
        self._catch_up(offset)
        with self.moment() as now:  # apply pending events, and compile kernels, before the first request
            self.read(now, [""], query=None, user=None, session=None)

    def _lock_file(self) -> None:
        if fcntl is not None:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise DataError(
                    f"{self.folder} is in use by another process: use a separate folder for each service"
                ) from None

    def _snapshot(self) -> tuple[Replay, OrderedDict[str, list[Any]], int]:
        """Return the state, the latest rankings, and the size of the part of the file that they cover."""
        path = self.folder / STATE
        if path.exists():
            try:
                replay = Replay.load(path)
            except FileFormatError as error:
                warn(f"{error}; all of {LOG} is replayed instead")
                return Replay(self._features, limit=self._limit), OrderedDict(), 0
            notes = replay.notes
            is_same = replay.names == Replay(self._features).names and replay.limit == self._limit
            if is_same and notes.get("end") == self._last_bytes(notes.get("bytes", 0)):
                return replay, OrderedDict(notes["rankings"]), notes["bytes"]
        return Replay(self._features, limit=self._limit), OrderedDict(), 0

    def _last_bytes(self, end: int) -> str:
        """Return a digest of the bytes before a position of the file, to detect a snapshot of another file."""
        start = max(0, end - 1000)
        self._file.seek(start)
        return hashlib.blake2b(self._file.read(end - start), digest_size=16).hexdigest()

    def _catch_up(self, offset: int) -> None:
        """Apply the lines of the file from a position on, and drop an unfinished one."""
        self._file.seek(offset)
        for line in self._file:
            if not line.endswith(b"\n"):
                break
            try:
                self._apply(json.loads(line))
            except (ValueError, TypeError, KeyError) as error:  # a DataError is a ValueError
                raise FileFormatError(self.folder / LOG, f"byte {offset}: {error}") from None
            offset += len(line)
        self._file.truncate(offset)
        self._file.seek(0, os.SEEK_END)

    @contextmanager
    def moment(self) -> Iterator[int]:
        """Yield the time in microseconds for a read and the resulting ranking, with no event in between."""
        with self.lock:
            yield max(time.time_ns() // 1000, self.replay.now)

    def read(self, now: int, documents: Sequence[str], **names: str | None) -> Floats:
        """Return the features of documents at a time of `moment`; `names` are query, user and session."""
        return self.replay.read({"time": _iso(now), "documents": list(documents), **names})

    def show(
        self, now: int, ranking: str, items: Sequence[Mapping[str, Any]], query: str | None, user: str | None,
        session: str | None, **others: Any,
    ) -> None:  # fmt: skip
        """Write a ranking that is shown; each item has an `id` and `fields`."""
        event: dict[str, Any] = {"event": "ranking", "id": ranking, "user": user, "session": session}
        fields = [] if query is None else [{"name": "query", "value": query}]
        self._write([event | {"fields": fields, "items": list(items)} | others], now)

    def add(self, events: Sequence[Mapping[str, Any]]) -> int:
        """Write events that arrive now, and return once they are on disk; an invalid event raises, and none is written.

        Returns:
            The number of clicks that no feature counts: those on an unknown or old ranking, on a document that the
            ranking did not show, or on a document that was already clicked in it.

        """
        with self.moment() as now:
            added: set[str] = set()
            for number, event in enumerate(events):
                try:
                    _check(event, self._rankings, added)
                except DataError as error:
                    raise DataError(f"event {number}: {error}") from None
            ignored = self._write(events, now)
            os.fsync(self._file.fileno())
            return ignored

    def _write(self, events: Sequence[Mapping[str, Any]], now: int) -> int:
        stamped = []
        for event in events:
            stamped.append({**event, "timestamp": str(now)})
            if event.get("timestamp") is not None:
                stamped[-1]["client_timestamp"] = event["timestamp"]
        text = "".join(f"{json.dumps(event, ensure_ascii=False)}\n" for event in stamped).encode()
        end = self._file.tell()
        try:
            self._file.write(text)
            self._file.flush()
        except OSError:
            self._file.truncate(end)  # leave no partial line if the disk is full
            raise
        ignored = sum(map(self._apply, stamped))
        self._lines += len(stamped)
        if self._lines >= SNAPSHOT_EVERY:
            self.save()
        return ignored

    def _apply(self, event: Mapping[str, Any]) -> bool:
        """Apply an event of the file to the state; return whether it is a click that does not count."""
        now = _iso(microseconds(event["timestamp"]))
        if event["event"] == "ranking":
            names = {"query": _field(event, "query"), "user": event.get("user"), "session": event.get("session")}
            documents = [item["id"] for item in event["items"]]
            self._rankings[event["id"]] = [names, dict.fromkeys(documents, False)]
            if len(self._rankings) > RANKINGS:
                self._rankings.popitem(last=False)
            self.replay.update([{"event": "impression", "time": now, "document": d, **names} for d in documents])
        elif event["event"] == "item":
            fields = {f["name"]: str(f["value"]) for f in event["fields"] if _is_name(f["value"])}
            self.replay.update({"event": "item", "time": now, "document": event["item"], "fields": fields})
        elif event["event"] == "interaction":
            return self._interact(event, now)
        return False

    def _interact(self, event: Mapping[str, Any], now: str) -> bool:
        names: dict[str, Any]
        shown: dict[str, bool]
        names, shown = self._rankings.get(event.get("ranking") or "", [{}, {}])
        kind, document = event["type"], event["item"]
        update = {"event": kind, "time": now, "document": document, **names}
        for name in ("user", "session"):
            update[name] = event.get(name) or names.get(name)
        if kind == "click":
            if shown.get(document, True):  # not shown, or already clicked
                return True
            shown[document] = True
            update |= names  # those of the ranking, as in the rows of a log
            update["dwell"] = _field(event, "dwell")
        self.replay.update(update)
        return False

    def save(self) -> None:
        """Write a snapshot of the state."""
        with self.lock:
            self._file.flush()
            os.fsync(self._file.fileno())
            end = self._file.tell()
            notes = {"bytes": end, "end": self._last_bytes(end), "rankings": list(self._rankings.items())}
            self._file.seek(0, os.SEEK_END)
            self.replay.save(self.folder / STATE, notes)
            self._lines = 0

    def close(self) -> None:
        """Write a snapshot, and release the folder."""
        self.save()
        self._file.close()


def _iso(now: int) -> str:
    """Return microseconds as ISO text, whose unit is never ambiguous."""
    return f"{np.datetime_as_string(np.datetime64(now, 'us'))}Z"


def _is_name(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool) and value != ""


def _field(event: Mapping[str, Any], name: str) -> Any:
    return next((field["value"] for field in event.get("fields") or () if field["name"] == name), None)


def _check(event: Mapping[str, Any], rankings: Container[str], added: set[str]) -> None:
    """Raise if an event could not be read back from the file unchanged; `added` are rankings of the same request."""
    if event["event"] == "ranking":
        documents = [item["id"] for item in event["items"]]
        if event["id"] in rankings or event["id"] in added:
            raise DataError(f"the ranking {event['id']!r:.80} already exists")
        if len(set(documents)) < len(documents):
            raise DataError("the documents of a ranking must be distinct")
        added.add(event["id"])
    elif event["event"] == "interaction":
        require_allowed_type(event["type"])
        for field in event.get("fields") or ():
            if field["name"] == "dwell":
                require_dwell(field["value"])
