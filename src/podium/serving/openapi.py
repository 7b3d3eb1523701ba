"""The OpenAPI document, exact for the models that are served: names, numbers and limits are in it."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from podium import __version__
from podium.data.schema import Schema
from podium.serving.describing import Description, Health, Ready
from podium.serving.explaining import Explained
from podium.serving.models.registry import Registry
from podium.serving.refusing import ErrorAnswer
from podium.serving.requests.bodies import Identifier, Rank, Ranking, Rankings
from podium.serving.settings import Settings

LARGEST = float(np.finfo(np.float32).max)
REFERENCES = "#/components/schemas/{name}"
REASONS = {
    400: "The body is no JSON, or does not have the form that is described.",
    401: "The token is missing or wrong.",
    404: "There is no such model.",
    405: "The path does not take this method.",
    408: "The body did not arrive in time.",
    413: "The body, or the number of documents, is above the limit.",
    415: "The body is not announced as JSON.",
    422: "The form is right, but the parts do not fit together or to the model, such as ids that are too few.",
    503: "The answer took too long.",
}
Json = dict[str, Any]


def openapi(settings: Settings, registry: Registry) -> Json:
    """The document for the present models."""
    answers = [Ranking, Rankings, Explained, Description, Health, Ready, ErrorAnswer]
    (*_, identifier, rank), components = msgspec.json.schema_components(
        [*answers, Identifier, Rank], ref_template=REFERENCES
    )
    document = _Document(settings, registry, identifier, rank)
    schemas = components | document.schemas()
    guarded = settings.token is not None
    security: Json = {"security": [{"token": []}]} if guarded else {}
    result: Json = {
        "openapi": "3.1.0",
        "info": {"title": "Podium", "version": __version__, "description": "Ranks the documents of queries."},
        "paths": {
            "/rank": {"post": _operation("Rank documents", "RankRequest", ["Ranking", "Rankings"], guarded) | security},
            "/explain": {"post": _operation("Explain a ranking", "ExplainRequest", ["Explained"], guarded) | security},
            "/models": {"get": _reading("What is served", "Description", guarded) | security},
            "/health": {"get": _reading("Whether the process answers", "Health", False)},
            "/ready": {"get": _reading("Whether models are loaded and warm", "Ready", False)},
            "/metrics": {"get": _text("Numbers for Prometheus", "text/plain", guarded) | security},
        },
        "components": {"schemas": schemas},
    }
    if guarded:
        result["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    return result


class _Document:
    """The schemas of bodies."""

    def __init__(self, settings: Settings, registry: Registry, identifier: Json, rank: Json) -> None:
        self._settings, self._registry = settings, registry
        self._identifier, self._rank = identifier, rank

    def schemas(self) -> Json:
        """By name."""
        queries: Json = {"type": "array", "items": _ref("Query")}
        several: Json = {
            "type": "object", "required": ["queries"], "properties": {"queries": queries},
            "additionalProperties": False,
        }  # fmt: skip
        several["properties"] |= {name: {"type": "null"} for name in ("ids", "k", "model", "query")}
        limits = self._settings.limits
        ranked, explained = limits.documents, min(limits.documents, limits.explained)
        pair = {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "integer", "minimum": 0}}
        return {
            "Query": _any([self._query(name, ranked) for name in self._registry.models]),
            "ExplainRequest": _any(
                [self._query(name, explained, pair=_or_null(pair)) for name in self._registry.models]
            ),
            "RankRequest": _any([_ref("Query"), several]),
        }

    def _query(self, name: str, limit: int, **more: Json) -> Json:
        """A query for one model; only that of the default need not be named."""
        is_default = name == self._settings.default or name in self._settings.split
        documents = {"type": "array", "maxItems": limit, "items": _document(self._registry.models[name].model.schema)}
        ids = {"type": "array", "maxItems": limit, "items": self._identifier}
        properties = {
            "documents": documents,
            "ids": _or_null(ids),
            "k": _or_null(self._rank),
            "model": {"enum": [name, None]} if is_default else {"const": name},
            "query": _or_null(self._identifier),
        }
        required = ["documents"] if is_default else ["documents", "model"]
        return {
            "type": "object", "required": required, "properties": properties | more, "additionalProperties": False,
        }  # fmt: skip


def _document(schema: Schema) -> Json:
    """A document of a model: a list of values, or values by name."""
    number: Json = {"type": ["number", "boolean", "null"], "minimum": -LARGEST, "maximum": LARGEST}
    category: Json = {"type": ["string", "number", "boolean", "null"]}
    n, categories = schema.n_features, schema.encoding.categories
    values: Json = {"type": "array", "minItems": n, "maxItems": n}
    if categories:
        values["prefixItems"] = [category if feature in categories else number for feature in range(n)]
    else:
        values["items"] = number
    if schema.names is None:
        return values
    properties = {name: category if k in categories else number for k, name in enumerate(schema.names)}
    by_name = {
        "type": "object", "required": list(schema.names), "properties": properties, "additionalProperties": False,
    }  # fmt: skip
    return _any([values, by_name])


def _operation(summary: str, body: str, answers: list[str], guarded: bool) -> Json:
    content = {"application/json": {"schema": _ref(body)}}
    statuses = (400, *((401,) if guarded else ()), 404, 408, 413, 415, 422, 503)
    return {
        "summary": summary,
        "requestBody": {"required": True, "content": content},
        "responses": {"200": _answer(_any([_ref(name) for name in answers])), **_errors(statuses)},
    }


def _reading(summary: str, answer: str, guarded: bool) -> Json:
    return {"summary": summary, "responses": {"200": _answer(_ref(answer)), **_errors((401,) if guarded else ())}}


def _text(summary: str, kind: str, guarded: bool) -> Json:
    answer = {"description": "Text.", "content": {kind: {"schema": {"type": "string"}}}}
    return {"summary": summary, "responses": {"200": answer, **_errors((401,) if guarded else ())}}


def _answer(schema: Json) -> Json:
    return {"description": "The answer.", "content": {"application/json": {"schema": schema}}}


def _errors(statuses: tuple[int, ...]) -> Json:
    content = {"application/json": {"schema": _ref("ErrorAnswer")}}
    return {str(status): {"description": REASONS[status], "content": content} for status in (*statuses, 405)}


def _ref(name: str) -> Json:
    return {"$ref": REFERENCES.format(name=name)}


def _any(schemas: list[Json]) -> Json:
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


def _or_null(schema: Json) -> Json:
    return {"anyOf": [schema, {"type": "null"}]}
