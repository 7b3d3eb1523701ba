"""Clicks: the features that the service computes itself, what it showed, and the events that clients send."""

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
NO_FEATURES = ("count(impression, by=all)",)  # a log without features still follows its rankings


class NamedValue(Struct):
    """A field of an item, of a shown document or of an event."""

    name: Name
    value: FieldValue


class ShownItem(Struct):
    """A document of a ranking."""

    id: Name
    fields: list[NamedValue] = []


class _Event(Struct, tag_field="event", omit_defaults=True, kw_only=True):
    """Metarank's event; the time at which it arrives counts, that of the client is kept in the log."""

    id: Annotated[str, Meta(max_length=512)] | None = None
    timestamp: str | int | float | None = None
    fields: list[NamedValue] = []


class RankingEvent(_Event, tag="ranking", kw_only=True):
    """A ranking that the client showed; `POST /rank` adds its own."""

    id: Name
    items: list[ShownItem]
    user: str | None = None
    session: str | None = None


class InteractionEvent(_Event, tag="interaction", kw_only=True):
    """A click, or any other type of event; the field `dwell` of a click has seconds."""

    type: Name
    item: Name
    ranking: str | None = None
    user: str | None = None
    session: str | None = None


class ItemEvent(_Event, tag="item", kw_only=True):
    """The fields of a document from now on."""

    item: Name


class EventsBody(Struct, forbid_unknown_fields=True):
    """Events in the order in which they happened."""

    events: list[RankingEvent | InteractionEvent | ItemEvent]


class Accepted(Struct):
    """The events are on the disk; `ignored` of them are clicks on what no known ranking shows, or repeated clicks."""

    accepted: int
    ignored: int


_DECODER = msgspec.json.Decoder(EventsBody)


def click_features(names: Iterable[str] | None) -> list[str]:
    """Return the features of a model that the service computes: those whose names are texts of click features.

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
    """The live log of a service.

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
        """Add the events of a request; they are on the disk when this returns."""
        request: EventsBody = decode(_DECODER, body)
        if len(request.events) > self._limits.documents:
            raise Refused(
                413, f"the request has {len(request.events)} events, and the limit is {self._limits.documents}"
            )
        try:
            ignored = self.live.add([msgspec.to_builtins(event) for event in request.events])
        except DataError as error:
            raise Refused(422, str(error)) from None
        except OSError:
            raise Refused(503, "the events could not be written, and none was accepted") from None
        return Accepted(len(request.events), ignored)

    def completed(self, now: int, query: Query[Any], model: ServedModel) -> list[Any]:
        """Return the documents of a query with the features that the service computes."""
        computed = click_features(model.model.feature_names)
        unknown = [name for name in computed if name not in self._features]
        if unknown:
            raise Refused(503, f"the service does not keep the feature {unknown[0]!r} yet: it must be restarted")
        ids = self._ids(query)
        if not computed:
            return query.documents
        columns = [self._features.index(name) for name in computed]
        values = self.live.read(now, ids, **_names(query))[:, columns]
        lists = [[None if value != value else value for value in row] for row in values.tolist()]
        documents = []
        for number, (document, row) in enumerate(zip(query.documents, lists, strict=True)):
            if not isinstance(document, dict):
                raise Refused(422, f"document {number}: give values by name, since the service adds features")
            given = next((name for name in computed if name in document), None)
            if given is not None:
                raise Refused(422, f"document {number} has the feature {given!r}, which the service computes")
            documents.append(document | dict(zip(computed, row, strict=True)))
        return documents

    def show(
        self, now: int, query: Query[Any], model: ServedModel, documents: list[Any], scores: Any, order: Any
    ) -> str:
        """Log what is shown, with its features and scores, and return the id of the ranking."""
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
            raise Refused(422, "give ids: the service logs what it shows")
        ids = list(map(_text, query.ids))
        if "" in ids or len(set(ids)) < len(ids):
            raise Refused(422, "ids must not be empty, and must differ: the service logs what it shows")
        return ids


def _names(query: Query[Any]) -> dict[str, str | None]:
    return {"query": _text(query.query) or None, "user": query.user or None, "session": query.session or None}


def _text(value: str | float | None) -> str:
    """Return an identifier as text; 3.0 and 3 are the same."""
    return "" if value is None else value if isinstance(value, str) else str(int(value))
