"""Descriptions of a service: its models, the OpenAPI document and the HTML pages."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from copy import deepcopy
from importlib.resources import files
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from podium.core.pages import base_style
from podium.data.schema import Schema
from podium.serving.bodies import OPTIONS, ExplainBody, Query, Value
from podium.serving.clicking import EventsBody, click_features
from podium.serving.models import Registry, ServedModel
from podium.serving.searching import PARAMETERS, PipelineDescription, PipelineRegistry, SearchBody
from podium.serving.settings import Settings

LARGEST = float(np.finfo(np.float32).max)
REASONS = {
    400: "The body is not JSON, or the body or parameters do not match the schema.",
    401: "The token is missing or wrong.",
    404: "The model or pipeline does not exist.",
    405: "The path does not support this method.",
    408: "The body did not arrive in time.",
    413: "The size of the body or the number of documents exceeds the limit.",
    415: "The Content-Type is not application/json.",
    422: "The body matches the schema, but not the model, or its parts disagree (for example too few ids).",
    503: "The request took too long, the model's file could not be loaded, or the click log could not be written.",
}
FIELDS = {
    "documents": "Lists of values in the order of the features, or values by feature name; null is a missing value.",
    "ids": "An id for each document, which the response repeats.",
    "k": "Return only the top documents.",
    "model": "The model; by default the query's model in the split, or the default model.",
    "query": "The query or its id, which selects the model if there is a split.",
    "user": "The user, for click features.",
    "session": "The session, for click features.",
    "pair": "The indices of two documents: also explain why the first ranks above the second.",
    "queries": "Several queries, instead of all other fields.",
}
SEARCH_FIELDS = {
    "query": "The text of the query.",
    "q": "The text of the query.",
    "k": "The maximum number of documents to return.",
    "pipeline": "The search pipeline; by default the first.",
    "features": "Also return the features of the documents.",
    "compare": "Also return the ranking by retrieval alone, before the model.",
    "pair": "The ids of two documents: also explain why the first ranks above the second.",
}
Json = dict[str, Any]


class Health(Struct):
    """The response of a process that is alive."""

    status: str


class Ready(Struct):
    """The number of models that are loaded and ready, and the names of those that could not be loaded."""

    models: int
    refused: list[str]


class ModelDescription(Struct):
    """A model, without paths of the host; `example` holds documents that it accepts."""

    name: str
    kind: str
    digest: str
    n_features: int
    feature_names: tuple[str, ...] | None
    categories: dict[str, tuple[str, ...]]
    normalize: str | None
    loaded: str
    example: list[list[float | str]]


class Description(Struct):
    """All models and search pipelines, and which models answer requests that do not name one."""

    default: str
    split: dict[str, float]
    shadow: str | None
    refused: list[str]
    models: list[ModelDescription]
    pipelines: list[PipelineDescription]


def description(settings: Settings, registry: Registry, pipelines: PipelineRegistry) -> Description:
    """Return the public description of the models and pipelines."""
    models = [_described(model) for model in registry.models.values()]
    return Description(
        settings.default, dict(settings.split), settings.shadow, sorted(registry.refused), models,
        [pipeline.description() for pipeline in pipelines.pipelines.values()],
    )  # fmt: skip


def _described(served: ServedModel) -> ModelDescription:
    model = served.model
    categories = {str(feature): names for feature, names in model.encoding.categories.items()}
    return ModelDescription(
        served.name, repr(model), served.digest, model.n_features, model.feature_names, categories,
        model.reading.get("normalize"), served.loaded.isoformat(timespec="seconds"), served.example(),
    )  # fmt: skip


def openapi(document: Json, settings: Settings, registry: Registry) -> Json:
    """Add the request bodies of the current models to the OpenAPI document that Litestar generates."""
    document = deepcopy(document)
    limits, models = settings.limits, registry.models.values()
    queries: Json = {"description": FIELDS["queries"], "type": "array", "items": _ref("Query")}
    nothing: Json = {name: {"type": "null"} for name in OPTIONS}
    several = _object({"queries": queries} | nothing, ["queries"])
    explained = min(limits.documents, limits.explained)
    document["components"]["schemas"] |= {
        "Query": _any([_query(model, settings, limits.documents, Query[Value]) for model in models]),
        "ExplainRequest": _any([_query(model, settings, explained, ExplainBody) for model in models]),
        "RankRequest": _any([_ref("Query"), {"title": "Several queries"} | several]),
    }
    served = registry.models.get(settings.default) or next(iter(models))
    for path, body in (("/rank", "RankRequest"), ("/explain", "ExplainRequest")):
        _describe_body(document, path, body, _example(served, settings))
    if settings.clicks is not None:
        _describe_events(document)
    if "/search" in document["paths"]:
        _describe_search(document)
    return document


def _describe_body(document: Json, path: str, schema: str, example: Json) -> None:
    content = {"application/json": {"schema": _ref(schema), "example": example}}
    document["paths"][path]["post"]["requestBody"] = {"required": True, "content": content}


def _describe_events(document: Json) -> None:
    """Add the body of /events to the OpenAPI document."""
    _, schemas = msgspec.json.schema_components([EventsBody], ref_template="#/components/schemas/{name}")
    document["components"]["schemas"] |= schemas
    example = {"events": [{"event": "interaction", "type": "click", "ranking": "…", "item": "document 0"}]}
    _describe_body(document, "/events", "EventsBody", example)


def _describe_search(document: Json) -> None:
    """Add the body and the parameters of /search to the OpenAPI document."""
    _, components = msgspec.json.schema_components([SearchBody], ref_template="#/components/schemas/{name}")
    body = components["SearchBody"]
    for name, schema in body["properties"].items():
        schema["description"] = SEARCH_FIELDS[name]
    document["components"]["schemas"]["SearchBody"] = body
    _describe_body(document, "/search", "SearchBody", {"query": "red shoes", "k": 10})
    document["paths"]["/search"]["get"]["parameters"] = [
        {
            "name": name, "in": "query", "required": name == "q", "description": SEARCH_FIELDS[name],
            "schema": body["properties"]["query" if name == "q" else name],
        }
        for name in PARAMETERS
    ]  # fmt: skip


def _example(served: ServedModel, settings: Settings) -> Json:
    names, rows = served.model.feature_names, served.example()
    documents: list[Any] = rows
    if names is not None:
        computed = _computed(served, settings)
        documents = [
            {name: value for name, value in zip(names, row, strict=True) if name not in computed} for row in rows
        ]
    return {"documents": documents, "ids": [f"document {k}" for k in range(len(rows))], "model": served.name}


def _computed(served: ServedModel, settings: Settings) -> list[str]:
    """Return the features that the service computes, so that clients omit them."""
    return [] if settings.clicks is None else click_features(served.model.feature_names)


def _query(served: ServedModel, settings: Settings, limit: int, body: type[Query[Value]]) -> Json:
    """Return the schema of a query for one model; only requests to the default model may omit its name."""
    _, schemas = msgspec.json.schema_components([body])
    (query,) = schemas.values()
    items = _document(served.model.schema, _computed(served, settings))
    documents = {"type": "array", "maxItems": limit, "items": items}
    is_default = served.name == settings.default or served.name in settings.split
    model = {"enum": [served.name, None]} if is_default else {"const": served.name}
    properties = {"documents": documents} | query["properties"] | {"documents": documents, "model": model}
    properties["ids"]["anyOf"][0]["maxItems"] = limit
    for name, field in properties.items():
        field["description"] = FIELDS[name]
    required = ["documents"] if is_default else ["documents", "model"]
    return {"title": f"A query for the model {served.name!r}"} | _object(properties, required)


def _document(schema: Schema, computed: list[str]) -> Json:
    """Return the schema of a document: a list of values, or values by name without those that the service computes."""
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
    properties = {
        name: category if k in categories else number for k, name in enumerate(schema.names) if name not in computed
    }
    named = _object(properties, list(properties))
    return named if computed else _any([values, named])


def _object(properties: Json, required: list[str]) -> Json:
    return {"type": "object", "required": required, "properties": properties, "additionalProperties": False}


def _ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def _any(schemas: list[Json]) -> Json:
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


def _page(name: str) -> bytes:
    """Return a page with the style and the functions that the pages share."""
    folder = files("podium.serving")
    page = folder.joinpath(name).read_bytes().replace(b"/* base */\n", base_style().encode())
    return page.replace(b"/* shared */\n", folder.joinpath("shared.js").read_bytes())


def page_headers(page: bytes) -> dict[str, str]:
    """Return headers that restrict the browser to the page's own scripts and styles, and to this host."""
    hashes = {}
    for element in ("script", "style"):
        [inline] = re.findall(rf"<{element}>(.*?)</{element}>".encode(), page, re.DOTALL)
        hashes[element] = f"'sha256-{b64encode(hashlib.sha256(inline).digest()).decode()}'"
    return {
        "content-security-policy": (
            f"default-src 'none'; script-src {hashes['script']}; style-src {hashes['style']}; connect-src 'self'; "
            "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        ),
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
    }


PAGE, DOCS_PAGE, SEARCH_PAGE = (_page(name) for name in ("page.html", "docs.html", "search.html"))
