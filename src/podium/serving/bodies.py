"""The bodies of requests and responses, and the conversion of documents to the rows of a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Annotated, Any, Generic, TypeVar

import msgspec
import numpy as np
from msgspec import UNSET, Meta, Struct, UnsetType

from podium.core.array_types import Float32s
from podium.core.validation import did_you_mean
from podium.data.encoding import codes_of_categories, shifted
from podium.data.schema import Schema

Number = float | bool | None  # true is 1, false is 0, null is a missing value
Value = float | bool | str | None  # text is the name of a category
V = TypeVar("V")
_EXACT = 2**53  # clients that use doubles, such as JavaScript, cannot represent larger integers
# JSON does not distinguish 3.0 from 3, so both are accepted as integers.
Identifier = (
    Annotated[str, Meta(max_length=512)]
    | Annotated[int, Meta(ge=-_EXACT, le=_EXACT)]
    | Annotated[float, Meta(ge=-_EXACT, le=_EXACT, multiple_of=1)]
)
Rank = Annotated[int, Meta(ge=1, le=2**31)] | Annotated[float, Meta(ge=1, le=2**31, multiple_of=1)]
Index = Annotated[int, Meta(ge=0)] | Annotated[float, Meta(ge=0, multiple_of=1)]


class Refused(Exception):  # noqa: N818, not an error of the service
    """Raised to answer a request with an error response.

    Attributes:
        status: the HTTP status.
        sentence: the reason, for the client.

    """

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.sentence = status, sentence


class ErrorAnswer(Struct):
    """The body of every error response."""

    error: str


class _Options(Struct, forbid_unknown_fields=True):
    """The fields that all requests share."""

    ids: list[Identifier] | None = None
    k: Rank | None = None
    model: str | None = None
    query: Identifier | None = None
    user: Annotated[str, Meta(max_length=512)] | None = None
    session: Annotated[str, Meta(max_length=512)] | None = None


class Query(_Options, Generic[V], kw_only=True):
    """The documents of a query; `V` is the type of feature values."""

    documents: list[list[V] | dict[str, V]]


class RankBody(_Options, Generic[V], kw_only=True):
    """A request to rank one or several queries."""

    documents: list[list[V] | dict[str, V]] | UnsetType = UNSET
    queries: list[Query[V]] | UnsetType = UNSET


class ExplainBody(Query[Value], kw_only=True):
    """A request to explain a ranking; `pair` holds the indices of two documents whose order to explain."""

    pair: Annotated[list[Index], Meta(min_length=2, max_length=2)] | None = None


class RankedDocument(Struct, omit_defaults=True):
    """A document of a ranking."""

    index: int
    score: float
    id: str | float | None = None  # integers stay integers


class RankAnswer(Struct, omit_defaults=True):
    """The ranking of one query; with a click log, clicks refer to it by `id`."""

    model: str
    ranking: list[RankedDocument]
    id: str | None = None


class RankAnswers(Struct):
    """The rankings of several queries, in the order of the request."""

    queries: list[RankAnswer]


class ExplainedDocument(Struct, omit_defaults=True):
    """A document of a ranking, with the contribution of each of `features` to its score."""

    index: int
    score: float
    contributions: list[float]
    id: str | float | None = None  # integers stay integers


class FeatureOfPair(Struct):
    """A feature of two documents: its values, its contributions to the scores, and their difference."""

    feature: str
    values: tuple[float | str | None, float | str | None]
    contributions: tuple[float, float]
    difference: float


class Why(Struct):
    """Why one document ranks above another: differences, largest first, that sum to the difference of the scores."""

    above: int
    below: int
    scores: tuple[float, float]
    features: list[FeatureOfPair]


class Explained(Struct, omit_defaults=True):
    """An explained ranking: the base and the contributions of a document sum to its score."""

    model: str
    method: str
    base: float
    features: list[str]
    documents: list[ExplainedDocument]
    why: Why | None = None


OPTIONS = _Options.__struct_fields__
_NUMBERS, _VALUES = msgspec.json.Decoder(RankBody[Number]), msgspec.json.Decoder(RankBody[Value])


def decode_queries(body: bytes, has_categories: bool) -> tuple[list[Query[Any]], bool]:
    """Return the queries of a request to rank, and whether the request contains a list of queries."""
    request: RankBody[Any] = decode(_VALUES if has_categories else _NUMBERS, body)
    if request.queries is not UNSET:
        extra = [name for name in OPTIONS if getattr(request, name) is not None]
        if request.documents is not UNSET:
            raise Refused(400, "the body has both documents and queries: send only one of them")
        if extra:
            raise Refused(400, f"the body has {extra[0]} outside of the queries: move it into each query")
        return request.queries, True
    if request.documents is UNSET:
        raise Refused(400, "the body has neither documents nor queries: send one of them")
    options = {name: getattr(request, name) for name in OPTIONS}
    return [Query(**options, documents=request.documents)], False


def decode(decoder: msgspec.json.Decoder[Any], body: bytes) -> Any:
    """Decode a body; refuse it with the reason if it is invalid."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:  # says what was expected and where, without repeating the value
        raise Refused(400, f"the body is invalid: {_plain(str(error))}") from None
    except RecursionError:
        raise Refused(400, "the body is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        reason = "its text is not UTF-8" if isinstance(error, UnicodeDecodeError) else _plain(str(error))
        raise Refused(
            400, f"the body is not valid JSON (NaN and Infinity are not allowed; use null for missing values): {reason}"
        ) from None


def _plain(message: str) -> str:
    return message.replace("`", "")[:300]


class Matcher:
    """Converts documents (lists of values, or values by name) to float32 rows in the encoding of a model.

    Every feature must be present; null is a missing value. A category that the model does not know counts as missing.

    Args:
        schema: the features of the model.
        absent: the value that the error for a missing feature suggests: null, or 0 if absent features were 0 in
            training.

    >>> Matcher(Schema(2, ("bm25", "age"))).rows([{"age": None, "bm25": 1.5}]).tolist()
    [[1.5, nan]]

    """

    def __init__(self, schema: Schema, absent: str = "null") -> None:
        self.schema, self._absent = schema, absent
        names = schema.names
        self._pick: Callable[[dict[str, Any]], tuple[Any, ...]] | None = None
        if names is not None and len(names) == 1:
            name = names[0]
            self._pick = lambda document: (document[name],)  # itemgetter of one name returns no tuple
        elif names:
            self._pick = itemgetter(*names)

    def rows(self, documents: Sequence[list[Any] | dict[str, Any]], *, has_text: bool = True) -> Float32s:
        """Return a row for each document; `has_text` says whether values may be text."""
        lists = [self._values(number, document) for number, document in enumerate(documents)]
        if not lists:
            return np.empty((0, self.schema.n_features), np.float32)
        if self.schema.encoding:
            return self._finite(self._encoded(lists))
        if has_text:
            self._refuse_text(lists)
        with np.errstate(over="ignore"):
            return self._finite(np.array(lists, np.float32))  # None becomes NaN

    def _values(self, number: int, document: list[Any] | dict[str, Any]) -> Sequence[Any]:
        """Return the values of a document in the order of the model's features."""
        n_features = self.schema.n_features
        if type(document) is list:
            if len(document) != n_features:
                raise Refused(422, f"document {number} has {len(document)} values, but the model expects {n_features}")
            return document
        assert isinstance(document, dict)
        names = self.schema.names
        if self._pick is None or names is None:
            raise Refused(422, f"the model has no feature names: send each document as a list of {n_features} numbers")
        try:
            values = self._pick(document)
        except KeyError as error:
            name = error.args[0]
            raise Refused(
                422, f"document {number} lacks the feature {name!r}: send {self._absent} if it is missing"
            ) from None
        if len(document) != n_features:
            unknown = next(name for name in document if name not in names)
            hint = did_you_mean(unknown, names)
            raise Refused(
                422, f"document {number} has the feature {unknown[:80]!r}, but the model has no such feature{hint}"
            )
        return values

    def _encoded(self, lists: list[Sequence[Any]]) -> Float32s:
        """Return rows with categories replaced by their codes, and features shifted as in training."""
        rows = np.empty((len(lists), self.schema.n_features), np.float32)
        for feature, column in enumerate(zip(*lists, strict=True)):
            names = self.schema.encoding.categories.get(feature)
            if names is not None:
                rows[:, feature] = codes_of_categories(column, names)
                continue
            self._refuse_text([[value] for value in column], feature)
            shift = self.schema.encoding.shifts.get(feature, 0)
            with np.errstate(over="ignore"):
                rows[:, feature] = shifted(np.array(column, np.float64), shift)
        return rows

    def _finite(self, rows: Float32s) -> Float32s:
        """Return the rows; refuse numbers that overflow float32."""
        overflows = np.argwhere(np.isinf(rows))
        if len(overflows):
            document, feature = overflows[0]
            raise Refused(422, f"document {document}: the value of {self._shown(feature)} is too large for float32")
        return rows

    def _refuse_text(self, lists: Sequence[Sequence[Any]], first: int = 0) -> None:
        """Refuse text in numeric features; `first` is the index of the first feature in the lists."""
        for number, values in enumerate(lists):
            for feature, value in enumerate(values, first):
                if isinstance(value, str):
                    raise Refused(422, f"document {number}: {self._shown(feature)} must be a number, but got text")

    def _shown(self, feature: int) -> str:
        names = self.schema.names
        return f"feature {feature}" if names is None else f"the feature {names[feature]!r}"
