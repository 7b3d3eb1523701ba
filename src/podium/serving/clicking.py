"""The live click log: features that the service computes, rankings that it returns, events that clients send."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from podium.clicks.click_features import parse
from podium.clicks.live import LiveLog
from podium.clicks.log import MODEL_SCORE
from podium.errors import DataError
from podium.serving.bodies import Query, Refused, decode
from podium.serving.models import ServedModel
from podium.serving.settings import Settings

Name = Annotated[str, Meta(min_length=1, max_length=512)]
FieldValue = str | int | float | bool | list[str | float] | None
NO_FEATURES = ("count(impression, by=all)",)  # if no model has click features: a live log needs at least one


class NamedValue(Struct):
    """A field of a document or an event."""

    name: Name
    value: FieldValue


class ShownItem(Struct):
    """A document of a ranking."""

    id: Name
    fields: list[NamedValue] = []


class _Event(Struct, tag_field="event", omit_defaults=True, kw_only=True):
    """An event in Metarank's format. Its time is when it arrives; the log also keeps the client's time."""

    id: Annotated[str, Meta(max_length=512)] | None = None
    timestamp: str | int | float | None = None
    fields: list[NamedValue] = []


class RankingEvent(_Event, tag="ranking", kw_only=True):
    """A ranking that the client showed. Rankings of `POST /rank` are logged without it."""

    id: Name
    items: list[ShownItem]
    user: str | None = None
    session: str | None = None


class InteractionEvent(_Event, tag="interaction", kw_only=True):
    """A click or another interaction; the field `dwell` of a click is a time in seconds."""

    type: Name
    item: Name
    ranking: str | None = None
    user: str | None = None
    session: str | None = None


class ItemEvent(_Event, tag="item", kw_only=True):
    """New values of a document's fields."""

    item: Name


class EventsBody(Struct, forbid_unknown_fields=True):
    """Events in the order in which they happened."""

    events: list[RankingEvent | InteractionEvent | ItemEvent]


class Accepted(Struct):
    """The response to events once they are on disk.

    `ignored` counts repeated clicks, and clicks on documents that no known ranking shows.
    """

    accepted: int
    ignored: int


_DECODER = msgspec.json.Decoder(EventsBody)


def click_features(names: Iterable[str] | None) -> list[str]:
    """Return the features that the service computes itself: those whose names are click features.

    >>> click_features(["bm25", "rate(click, by=document)"])
    ['rate(click, by=document)']
    """
    return [name for name in names or () if _is_click_feature(name)]


def _is_click_feature(name: str) -> bool:
    try:
        return str(parse(name)) == name
    except DataError:
        return False


class Clicks:
    """The live click log of a service.

    Attributes:
        live: the log and the state of the features.

    """

    def __init__(self, settings: Settings, models: Iterable[ServedModel]) -> None:
        assert settings.clicks is not None
        names = [name for model in models for name in click_features(model.model.feature_names)]
        self._limits = settings.limits
        self._features = list(dict.fromkeys(names))
        self.live = LiveLog(settings.clicks, self._features or NO_FEATURES)

    def add(self, body: bytes) -> Accepted:
        """Add the events of a request to the log, and return once they are on disk."""
        request: EventsBody = decode(_DECODER, body)
        if len(request.events) > self._limits.documents:
            raise Refused(
                413, f"the request has {len(request.events)} events, but the limit is {self._limits.documents}"
            )
        try:
            ignored = self.live.add([msgspec.to_builtins(event) for event in request.events])
        except DataError as error:
            raise Refused(422, str(error)) from None
        except OSError:
            raise Refused(503, "the events could not be written; none of them was accepted") from None
        return Accepted(len(request.events), ignored)

    def add_features(self, now: int, query: Query[Any], model: ServedModel) -> list[Any]:
        """Return the documents of a query with the features that the service computes."""
        computed = click_features(model.model.feature_names)
        unknown = [name for name in computed if name not in self._features]
        if unknown:
            raise Refused(503, f"the service does not compute the feature {unknown[0]!r} yet: restart it")
        ids = self._ids(query)
        if not computed:
            return query.documents
        columns = [self._features.index(name) for name in computed]
        values = self.live.read(now, ids, **_names(query))[:, columns]
        lists = [[None if value != value else value for value in row] for row in values.tolist()]
        documents = []
        for number, (document, row) in enumerate(zip(query.documents, lists, strict=True)):
            if not isinstance(document, dict):
                raise Refused(422, f"document {number}: send values by name, because the service adds features")
            sent = next((name for name in computed if name in document), None)
            if sent is not None:
                raise Refused(422, f"document {number}: omit the feature {sent!r}, which the service computes itself")
            documents.append(document | dict(zip(computed, row, strict=True)))
        return documents

    def show(
        self, now: int, query: Query[Any], model: ServedModel, documents: list[Any], scores: Any, order: Any
    ) -> str:
        """Log a ranking with its features and scores, and return its id."""
        ranking, ids = uuid.uuid4().hex, self._ids(query)
        shown = order[: len(order) if query.k is None else int(query.k)].tolist()
        names = model.model.feature_names
        items = []
        for place in shown:
            document = documents[place]
            if not isinstance(document, dict):
                document = dict(zip(names or map(str, range(len(document))), document, strict=True))
            fields = [{"name": name, "value": value} for name, value in document.items() if value is not None]
            items.append({"id": ids[place], "fields": [*fields, {"name": MODEL_SCORE, "value": float(scores[place])}]})
        try:
            self.live.show(now, ranking, items, **_names(query), model=model.name)
        except OSError:
            raise Refused(503, "the ranking could not be logged") from None
        return ranking

    def _ids(self, query: Query[Any]) -> Sequence[str]:
        if query.ids is None:
            raise Refused(422, "ids are missing: the service needs them for its click log")
        ids = list(map(_text, query.ids))
        if "" in ids or len(set(ids)) < len(ids):
            raise Refused(422, "ids must be distinct and not empty: the service needs them for its click log")
        return ids


def _names(query: Query[Any]) -> dict[str, str | None]:
    return {"query": _text(query.query) or None, "user": query.user or None, "session": query.session or None}


def _text(value: str | float | None) -> str:
    """Return an identifier as text; 3.0 and 3 give the same text."""
    return "" if value is None else value if isinstance(value, str) else str(int(value))
