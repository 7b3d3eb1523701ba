"""What is refused, and how a client hears of it."""

from __future__ import annotations

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException

WORDS = {
    404: "there is nothing at this path; GET /openapi.json lists what there is",
    405: "this path does not take this method",
    413: "the request is too large",
}


class Refused(Exception):  # noqa: N818, it is an answer
    """A request that is not answered.

    Attributes:
        status: of HTTP.
        sentence: why, for the client.

    """

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.sentence = status, sentence


class ErrorAnswer(msgspec.Struct):
    """The body of every answer that is no success."""

    error: str


def error_response(status: int, sentence: str, headers: dict[str, str] | None = None) -> Response[bytes]:
    """One sentence as JSON."""
    body = msgspec.json.encode(ErrorAnswer(sentence))
    return Response(body, status_code=status, media_type="application/json", headers=headers)


def on_refused(_: Request, error: Refused) -> Response[bytes]:  # type: ignore[type-arg]
    """The answer to what was refused on purpose."""
    # What is left of a body that came too slowly would be read as the next request.
    return error_response(error.status, error.sentence, {"connection": "close"} if error.status == 408 else None)


def on_http_error(_: Request, error: HTTPException) -> Response[bytes]:  # type: ignore[type-arg]
    """The answer to what the framework refuses: unknown paths and methods."""
    sentence = WORDS.get(error.status_code, "the request cannot be answered")
    return error_response(error.status_code, sentence, dict(error.headers or {}))
