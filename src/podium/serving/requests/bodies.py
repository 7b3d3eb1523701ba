"""The bodies of requests and answers."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from podium.serving.refusing import Refused

Number = float | bool | None  # true is 1, false is 0, and null is a missing value
Value = float | bool | str | None  # … with the name of a category
_EXACT = 2**53  # larger whole numbers are not the same in every client
# In JSON 3.0 is a whole number, too.
Identifier = (
    Annotated[str, Meta(max_length=512)]
    | Annotated[int, Meta(ge=-_EXACT, le=_EXACT)]
    | Annotated[float, Meta(ge=-_EXACT, le=_EXACT, multiple_of=1)]
)
Rank = Annotated[int, Meta(ge=1, le=2**31)] | Annotated[float, Meta(ge=1, le=2**31, multiple_of=1)]


class _Query(Struct, forbid_unknown_fields=True):
    """What all bodies may say beside documents."""

    ids: list[Identifier] | None = None
    k: Rank | None = None
    model: str | None = None
    query: Identifier | None = None


class NumberQuery(_Query, kw_only=True):
    """The documents of a query, where no model has categories."""

    documents: list[list[Number] | dict[str, Number]]


class ValueQuery(_Query, kw_only=True):
    """The documents of a query, where a model has categories."""

    documents: list[list[Value] | dict[str, Value]]


class RestQuery(_Query, kw_only=True):
    """A query whose documents were read before."""

    documents: None


class NumberBody(_Query, kw_only=True):
    """One query, or several."""

    documents: list[list[Number] | dict[str, Number]] | UnsetType = UNSET
    queries: list[NumberQuery] | UnsetType = UNSET


class ValueBody(_Query, kw_only=True):
    """One query, or several, where a model has categories."""

    documents: list[list[Value] | dict[str, Value]] | UnsetType = UNSET
    queries: list[ValueQuery] | UnsetType = UNSET


Index = Annotated[int, Meta(ge=0)] | Annotated[float, Meta(ge=0, multiple_of=1)]


class ExplainBody(ValueQuery, kw_only=True):
    """A query to explain; `pair` asks why one of two documents, by their numbers, stands above the other."""

    pair: Annotated[list[Index], Meta(min_length=2, max_length=2)] | None = None


Query = NumberQuery | ValueQuery | RestQuery


class Ranked(Struct, omit_defaults=True):
    """A document in its place."""

    index: int
    score: float
    id: str | int | float | None = None


class Ranking(Struct):
    """The answer to a query."""

    model: str
    ranking: list[Ranked]


class Rankings(Struct):
    """The answers to several queries, in their order."""

    queries: list[Ranking]


_REST = msgspec.json.Decoder(RestQuery)
_NUMBERS, _VALUES = msgspec.json.Decoder(NumberBody), msgspec.json.Decoder(ValueBody)
_EXPLAINED = msgspec.json.Decoder(ExplainBody)


def decoded_rest(body: bytes) -> RestQuery | None:
    """What a body says beside its documents; None for what `decoded_queries` is to look at."""
    try:
        return _REST.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def decoded_queries(body: bytes, has_categories: bool) -> tuple[list[NumberQuery | ValueQuery], bool]:
    """The queries of a request to rank, and whether there may be several; what is no such request is refused."""
    decoded = _decoded(_VALUES if has_categories else _NUMBERS, body)
    if decoded.queries is not UNSET:
        beside = [name for name in ("ids", "k", "model", "query") if getattr(decoded, name) is not None]
        if decoded.documents is not UNSET:
            raise Refused(400, "the body has both documents and queries: give one of them")
        if beside:
            raise Refused(400, f"the body has {beside[0]} beside queries: give it in each of the queries")
        return decoded.queries, True
    if decoded.documents is UNSET:
        raise Refused(400, "the body has neither documents nor queries")
    make = ValueQuery if has_categories else NumberQuery
    query = make(decoded.ids, decoded.k, decoded.model, decoded.query, documents=decoded.documents)
    return [query], False


def decoded_explain(body: bytes) -> ExplainBody:
    """The query of a request to explain."""
    decoded: ExplainBody = _decoded(_EXPLAINED, body)
    return decoded


def _decoded(decoder: msgspec.json.Decoder[Any], body: bytes) -> Any:
    """The body of a request, or the reason why it is none."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:  # says what was expected, what came and where, never a value
        raise Refused(400, f"the body does not fit: {_plain(str(error))}") from None
    except RecursionError:
        raise Refused(400, "the body is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        place = "its text is no UTF-8" if isinstance(error, UnicodeDecodeError) else _plain(str(error))
        raise Refused(
            400, f"the body is no JSON (which has no NaN and no Infinity; null is a missing value): {place}"
        ) from None


def _plain(message: str) -> str:
    """A message without code marks."""
    return message.replace("`", "")[:300]
