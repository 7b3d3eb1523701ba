"""The ASGI application: its paths, the check of the token, and the log and metrics of each request."""

from __future__ import annotations

import asyncio
import hmac
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cached_property
from typing import Any

from litestar import Litestar, MediaType, Request, Response, Router, get, post
from litestar.background_tasks import BackgroundTask
from litestar.enums import ScopeType
from litestar.exceptions import HTTPException
from litestar.openapi import OpenAPIConfig, ResponseSpec
from litestar.openapi.plugins import OpenAPIRenderPlugin
from litestar.openapi.spec import Components, SecurityScheme
from litestar.types import Receive, Scope, Send

from podium import __version__
from podium.serving.bodies import ErrorAnswer, Explained, RankAnswer, RankAnswers, Refused
from podium.serving.clicking import Accepted, Clicks
from podium.serving.describing import (
    DOCS_PAGE,
    PAGE,
    REASONS,
    SEARCH_PAGE,
    Description,
    Health,
    Ready,
    description,
    openapi,
    page_headers,
)
from podium.serving.models import Registry, watched
from podium.serving.monitoring import Metrics, log
from podium.serving.ranking import QueryRanker
from podium.serving.searching import PipelineRegistry, SearchAnswer
from podium.serving.settings import Settings

JSON = "application/json"
LARGE_BODY = 1 << 20  # bytes; larger bodies are ranked in a thread, so that they do not block other requests
OPEN = frozenset({"/", "/ranking", "/docs", "/health", "/ready"})  # paths that need no token
PATHS = OPEN | {"/rank", "/explain", "/search", "/events", "/models", "/metrics", "/openapi.json"}
SENTENCES = {
    404: "this path does not exist; GET /openapi.json lists all paths",
    405: "this path does not support this method",
    413: "the request is too large",
}
NO_SNIFFING = {"x-content-type-options": "nosniff"}  # because text of documents in a response may look like HTML
AnyRequest = Request[Any, Any, Any]


class Service:
    """An ASGI application that loads and warms up its models when it is constructed.

    Attributes:
        settings: the settings of the service.
        registry: the models.
        pipelines: the search pipelines, which answer requests to search.
        metrics: the metrics for Prometheus.
        clicks: the click log, or None.
        ranker: answers requests to rank and explain.

    """

    def __init__(self, settings: Settings) -> None:
        self.settings, self.metrics = settings, Metrics()
        self.registry = Registry(settings, self._on_event)
        self.pipelines = PipelineRegistry(settings, self._on_event, self.metrics)
        self.clicks = None if settings.clicks is None else Clicks(settings, self.registry.models.values())
        self.ranker = QueryRanker(settings, self.registry, self.metrics, self.clicks)
        self._token = None if settings.token is None else b"Bearer " + settings.token.encode()
        self._app = Litestar(
            _handlers(self),
            lifespan=[self._lifespan],
            exception_handlers={Refused: _on_refused, HTTPException: _on_http_error, Exception: _on_failure},
            openapi_config=_openapi_config(self),
            request_max_body_size=settings.limits.body_bytes,
            debug=False,
            logging_config=None,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check the token of a request, answer it, and record it in the log and the metrics."""
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        started, path = time.perf_counter(), scope["path"]
        status = 0

        async def recording_send(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        self.metrics.in_flight.inc()
        try:
            if self._may_call(scope, path):
                await self._app(scope, receive, recording_send)
            else:
                response = _error(401, "this path requires the header 'Authorization: Bearer TOKEN'")
                response.headers["www-authenticate"] = "Bearer"
                await response.to_asgi_response(None, Request(scope))(scope, receive, recording_send)
        finally:
            seconds = time.perf_counter() - started
            logged_path = path if path in PATHS else "other"  # clients must not add any number of metrics
            self.metrics.in_flight.dec()
            self.metrics.requests.labels(logged_path, str(status)).inc()
            self.metrics.seconds.labels(logged_path).observe(seconds)
            if self.settings.log_requests:
                log("request", method=scope["method"], path=logged_path, status=status, ms=round(1000 * seconds, 3))

    def document(self) -> dict[str, Any]:
        """Return the OpenAPI document for the models that are being served now."""
        return openapi(self._paths, self.settings, self.registry)

    def reload(self, everything: bool = False) -> None:
        """Reload models and pipelines whose files have changed, or all of them."""
        self.registry.reload(everything)
        self.pipelines.reload(everything)

    @cached_property
    def _paths(self) -> dict[str, Any]:
        return self._app.openapi_schema.to_schema()

    async def body_of(self, request: AnyRequest) -> bytes:
        """Return the body of a request; refuse it unless it is JSON, within the limit, and arrives in time."""
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
            raise Refused(415, "the body must be JSON: send the header 'Content-Type: application/json'")
        limits = self.settings.limits
        try:
            async with asyncio.timeout(limits.seconds):
                return await request.body()
        except TimeoutError:
            raise Refused(408, f"the body did not arrive within {limits.seconds:g} seconds") from None
        except HTTPException as error:
            if error.status_code == 413:
                raise Refused(413, f"the body is larger than the limit of {limits.body_bytes} bytes") from None
            raise Refused(400, "the body is shorter than its Content-Length") from None

    async def in_time(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a slow function in a thread, and refuse the request if it exceeds the time limit."""
        seconds = self.settings.limits.seconds
        try:
            return await asyncio.wait_for(asyncio.to_thread(function, *arguments), seconds)
        except TimeoutError:
            raise Refused(503, f"the answer took longer than the limit of {seconds:g} seconds") from None

    def _may_call(self, scope: Scope, path: str) -> bool:
        """Return whether a request has the token or needs none. The comparison takes constant time."""
        if self._token is None or path in OPEN:
            return True
        header = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
        return hmac.compare_digest(header, self._token)

    def _on_event(self, event: str, **facts: Any) -> None:
        if event == "model loaded":
            self.metrics.model_changes.inc()
        log(event, **facts)

    @asynccontextmanager
    async def _lifespan(self, _: Litestar) -> AsyncIterator[None]:
        async with watched(self.reload, self.settings.watch_seconds):
            models = {name: model.digest for name, model in self.registry.models.items()}
            pipelines = sorted(self.pipelines.pipelines) or None
            refused = sorted(self.registry.refused) or None
            log("ready", pid=os.getpid(), models=models, pipelines=pipelines, refused=refused)
            yield
        if self.clicks is not None:
            self.clicks.live.close()
        log("end", pid=os.getpid())


def _handlers(service: Service) -> list[Any]:
    """Return the functions that answer each path."""
    settings, registry = service.settings, service.registry
    guarded: dict[str, Any] = {"security": [{"token": []}]} if settings.token is not None else {}
    for_all, for_guarded = _errors(405), _errors(*((401, 405) if guarded else (405,)))
    for_bodies = for_guarded | _errors(400, 404, 408, 413, 415, 422, 503)

    @post("/rank", status_code=200, summary="Rank documents", responses=for_bodies, **guarded)
    async def rank(request: AnyRequest) -> Response[RankAnswer | RankAnswers]:
        body = await service.body_of(request)
        if len(body) > LARGE_BODY:
            answer, scored = await service.in_time(service.ranker.rank, body)
        else:
            answer, scored = service.ranker.rank(body)
        comparison = None
        if settings.shadow is not None:
            comparison = BackgroundTask(asyncio.to_thread, service.ranker.compare_with_shadow, scored)
        return Response(answer, background=comparison)

    @post("/explain", status_code=200, summary="Explain a ranking", responses=for_bodies, **guarded)
    async def explain(request: AnyRequest) -> Explained:
        explained: Explained = await service.in_time(service.ranker.explain, await service.body_of(request))
        return explained

    @post("/events", status_code=200, summary="Add events to the click log", responses=for_bodies, **guarded)
    async def events(request: AnyRequest) -> Accepted:
        assert service.clicks is not None
        accepted: Accepted = await service.in_time(service.clicks.add, await service.body_of(request))
        return accepted

    @get("/models", summary="Describe the models", responses=for_guarded, **guarded)
    async def models() -> Description:
        return description(settings, registry, service.pipelines)

    @get("/health", summary="Check that the process is alive", responses=for_all)
    async def health() -> Health:
        return Health("alive")

    @get("/ready", summary="Return the number of models that are loaded and ready", responses=for_all)
    async def ready() -> Ready:
        return Ready(len(registry.models), sorted(registry.refused))

    @get(
        "/metrics", summary="Return metrics for Prometheus", media_type=MediaType.TEXT, responses=for_guarded, **guarded
    )
    async def metrics() -> Response[str]:
        return Response(service.metrics.text().decode(), media_type="text/plain; version=0.0.4")

    @get("/openapi.json", include_in_schema=False)
    async def document() -> dict[str, Any]:
        return service.document()

    has_search = bool(service.pipelines.pipelines)
    first_page = SEARCH_PAGE if has_search else PAGE

    @get("/", include_in_schema=False)
    async def page() -> Response[bytes]:
        return Response(first_page, media_type=MediaType.HTML, headers=page_headers(first_page))

    @get("/ranking", include_in_schema=False)
    async def ranking_page() -> Response[bytes]:
        return Response(PAGE, media_type=MediaType.HTML, headers=page_headers(PAGE))

    paths = [rank, explain, models, health, ready, metrics, document, page, ranking_page]
    if service.clicks is not None:
        paths.append(events)
    return [*paths, *_search_handlers(service, for_guarded, for_bodies, guarded)] if has_search else paths


def _search_handlers(service: Service, for_guarded: Any, for_bodies: Any, guarded: dict[str, Any]) -> list[Any]:
    @post("/search", status_code=200, summary="Search documents", responses=for_bodies, **guarded)
    async def search(request: AnyRequest) -> Response[SearchAnswer]:
        answer = await service.in_time(service.pipelines.search_body, await service.body_of(request))
        return Response(answer, headers=NO_SNIFFING)

    @get(
        "/search", summary="Search documents with URL parameters", responses=for_guarded | _errors(400, 404, 422, 503),
        **guarded,
    )  # fmt: skip
    async def search_by_parameters(request: AnyRequest) -> Response[SearchAnswer]:
        parameters = list(request.query_params.multi_items())
        return Response(await service.in_time(service.pipelines.search_parameters, parameters), headers=NO_SNIFFING)

    return [search, search_by_parameters]


def _errors(*statuses: int) -> dict[int, ResponseSpec]:
    return {
        status: ResponseSpec(ErrorAnswer, description=REASONS[status], generate_examples=False) for status in statuses
    }


class _DocsPage(OpenAPIRenderPlugin):
    """The page that documents the paths. It works offline; Litestar's pages load scripts from other hosts."""

    def render(self, request: AnyRequest, openapi_schema: dict[str, Any]) -> bytes:
        """Return the page, which fetches /openapi.json itself: a browser cannot send a token when it opens a page."""
        return DOCS_PAGE


class _Document(OpenAPIRenderPlugin):
    """The OpenAPI document below /docs, where Litestar expects it. It equals /openapi.json."""

    def __init__(self, service: Service) -> None:
        super().__init__(path="/openapi.json", media_type=MediaType.JSON)
        self._service = service

    def render(self, request: AnyRequest, openapi_schema: dict[str, Any]) -> bytes:
        """Return the OpenAPI document as JSON."""
        return self.render_json(request, self._service.document())


def _openapi_config(service: Service) -> OpenAPIConfig:
    scheme = SecurityScheme(type="http", scheme="bearer")
    return OpenAPIConfig(
        title="Podium",
        version=__version__,
        description="Ranks the documents of queries.",
        components=Components(security_schemes={"token": scheme} if service.settings.token is not None else None),
        openapi_router=Router(
            "/docs", route_handlers=[], include_in_schema=False, response_headers=page_headers(DOCS_PAGE)
        ),
        render_plugins=[_DocsPage(path="/"), _Document(service)],
    )


def _error(status: int, sentence: str, headers: dict[str, str] | None = None) -> Response[ErrorAnswer]:
    return Response(ErrorAnswer(sentence), status_code=status, media_type=JSON, headers=headers)


def _on_refused(_: AnyRequest, error: Refused) -> Response[ErrorAnswer]:
    # After 408 the rest of the body may still arrive. On an open connection, it would be read as the next request.
    return _error(error.status, error.sentence, {"connection": "close"} if error.status == 408 else None)


def _on_http_error(_: AnyRequest, error: HTTPException) -> Response[ErrorAnswer]:
    """Answer requests that Litestar refuses, such as unknown paths and methods."""
    sentence = SENTENCES.get(error.status_code, "the request is invalid")
    return _error(error.status_code, sentence, dict(error.headers or {}))


def _on_failure(_: AnyRequest, error: Exception) -> Response[ErrorAnswer]:
    """Answer after an unexpected error. Its type and place go to the log, not to the client."""
    log("failure", level="error", error=error)
    return _error(500, "the service failed to answer; see its log for details")
