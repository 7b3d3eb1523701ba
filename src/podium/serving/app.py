"""The service as an ASGI application: paths, checks before them, and what is logged and counted after them."""

from __future__ import annotations

import asyncio
import hmac
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from litestar import Litestar, Request, Response, get, post
from litestar.background_tasks import BackgroundTask
from litestar.enums import ScopeType
from litestar.exceptions import HTTPException
from litestar.types import Receive, Scope, Send

from podium.serving.describing import Health, Ready, description
from podium.serving.explaining import Explainer
from podium.serving.logs import log
from podium.serving.metrics import Metrics
from podium.serving.models.registry import Registry
from podium.serving.models.watching import watched
from podium.serving.openapi import openapi
from podium.serving.page import PAGE, PAGE_HEADERS
from podium.serving.ranking import Ranker
from podium.serving.refusing import Refused, error_response, on_http_error, on_refused
from podium.serving.settings import Settings

JSON = "application/json"
IN_THREAD = 1 << 20  # bytes of a body from which a request is ranked in a thread, beside the others
OPEN = frozenset({"/", "/health", "/ready"})  # paths that need no token
PATHS = OPEN | {"/rank", "/explain", "/models", "/metrics", "/openapi.json"}


class Service:
    """The application: calls it gets, and the models that answer them.

    Attributes:
        settings: of the service.
        registry: the models.
        metrics: what is counted.

    """

    def __init__(self, settings: Settings) -> None:
        self.settings, self.metrics = settings, Metrics()
        self.registry = Registry(settings, self._tell)
        self._ranker = Ranker(settings, self.registry, self.metrics)
        self._explainer = Explainer(settings, self._ranker)
        self._token = None if settings.token is None else b"Bearer " + settings.token.encode()
        self._encode = msgspec.json.Encoder().encode
        self._app = Litestar(
            [
                self._rank(),
                self._explain(),
                self._models(),
                self._health(),
                self._ready(),
                self._metrics(),
                self._openapi(),
                self._page(),
            ],
            lifespan=[self._lifespan],
            exception_handlers={Refused: on_refused, HTTPException: on_http_error, Exception: self._on_failure},
            openapi_config=None,
            request_max_body_size=settings.limits.body_bytes,
            debug=False,
            logging_config=None,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a call: check the token, pass it on, count and log it."""
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        started, path = time.perf_counter(), scope["path"]
        status = 0

        async def noted_send(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        self.metrics.in_flight.inc()
        try:
            if self._may_call(scope, path):
                await self._app(scope, receive, noted_send)
            else:
                await self._refuse_call(scope, receive, noted_send)
        finally:
            seconds = time.perf_counter() - started
            shown = path if path in PATHS else "other"
            self.metrics.in_flight.dec()
            self.metrics.requests.labels(shown, str(status)).inc()
            self.metrics.seconds.labels(shown).observe(seconds)
            if self.settings.log_requests:
                log("request", method=scope["method"], path=shown, status=status, ms=round(1000 * seconds, 3))

    def _may_call(self, scope: Scope, path: str) -> bool:
        """Whether a call has the token, or needs none; the comparison takes as long for any wrong token."""
        if self._token is None or path in OPEN:
            return True
        given = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
        return hmac.compare_digest(given, self._token)

    async def _refuse_call(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {"www-authenticate": "Bearer"}
        response = error_response(401, "this path needs the header 'Authorization: Bearer TOKEN'", headers)
        await response.to_asgi_response(None, Request(scope))(scope, receive, send)

    def _tell(self, event: str, **facts: Any) -> None:
        if event == "model loaded":
            self.metrics.model_changes.inc()
        log(event, **facts)

    @asynccontextmanager
    async def _lifespan(self, _: Litestar) -> AsyncIterator[None]:
        async with watched(self.registry, self.settings.watch_seconds):
            log("ready", pid=os.getpid(), models={name: model.digest for name, model in self.registry.models.items()})
            yield
        log("end")

    async def body_of(self, request: Request[Any, Any, Any]) -> bytes:
        """The body of a request, if it is JSON, not too large, and comes in time."""
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
            raise Refused(415, "give the body as JSON, with the header 'Content-Type: application/json'")
        limits = self.settings.limits
        try:
            async with asyncio.timeout(limits.seconds):
                return await request.body()
        except TimeoutError:
            raise Refused(408, f"the body did not arrive within {limits.seconds:g} seconds") from None
        except HTTPException as error:
            if error.status_code == 413:
                raise Refused(413, f"the body is larger than the limit of {limits.body_bytes} bytes") from None
            raise Refused(400, "the body ended before its announced length") from None

    async def in_time(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What a function gives that takes long, in a thread; a client waits no longer than the limit."""
        seconds = self.settings.limits.seconds
        try:
            return await asyncio.wait_for(asyncio.to_thread(function, *arguments), seconds)
        except TimeoutError:
            raise Refused(503, f"the answer took longer than the limit of {seconds:g} seconds") from None

    def answered(self, content: Any, background: BackgroundTask | None = None) -> Response[bytes]:
        """An answer in JSON."""
        return Response(self._encode(content), media_type=JSON, background=background)

    def _on_failure(self, _: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
        """An error of Podium's own: told in the log by its kind and place, and to the client without either."""
        trace, place = error.__traceback__, ""
        while trace is not None:
            place, trace = f"{trace.tb_frame.f_code.co_filename.rpartition('/')[2]}:{trace.tb_lineno}", trace.tb_next
        log("failure", level="error", kind=type(error).__name__, place=place)
        return error_response(500, "the service failed to answer; its log says more")

    def _rank(self) -> Any:
        @post("/rank", status_code=200)
        async def rank(request: Request[Any, Any, Any]) -> Response[bytes]:
            body = await self.body_of(request)
            if len(body) > IN_THREAD:
                answer, scored = await self.in_time(self._ranker.ranked, body)
            else:
                answer, scored = self._ranker.ranked(body)
            shadow = self.settings.shadow is not None
            later = BackgroundTask(asyncio.to_thread, self._ranker.compare_with_shadow, scored) if shadow else None
            return self.answered(answer, later)

        return rank

    def _explain(self) -> Any:
        @post("/explain", status_code=200)
        async def explain(request: Request[Any, Any, Any]) -> Response[bytes]:
            return self.answered(await self.in_time(self._explainer.explained, await self.body_of(request)))

        return explain

    def _models(self) -> Any:
        @get("/models")
        async def models() -> Response[bytes]:
            return self.answered(description(self.settings, self.registry))

        return models

    def _health(self) -> Any:
        @get("/health")
        async def health() -> Response[bytes]:
            return self.answered(Health("alive"))

        return health

    def _ready(self) -> Any:
        @get("/ready")
        async def ready() -> Response[bytes]:
            return self.answered(Ready(len(self.registry.models)))

        return ready

    def _metrics(self) -> Any:
        @get("/metrics")
        async def metrics() -> Response[bytes]:
            return Response(self.metrics.text(), media_type="text/plain; version=0.0.4")

        return metrics

    def _openapi(self) -> Any:
        @get("/openapi.json")
        async def document() -> Response[bytes]:
            return self.answered(openapi(self.settings, self.registry))

        return document

    def _page(self) -> Any:
        @get("/")
        async def page() -> Response[bytes]:
            return Response(PAGE, media_type="text/html", headers=PAGE_HEADERS)

        return page


def create_app(settings: Settings) -> Service:
    """The service for any ASGI server; models are loaded and warm when it returns."""
    return Service(settings)
