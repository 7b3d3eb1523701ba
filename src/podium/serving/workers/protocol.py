"""HTTP as the server reads it, with limits on the head of a request: clients that are slow or too wordy are refused."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from uvicorn.protocols.http.h11_impl import H11Protocol

from podium.serving.refusing import ErrorAnswer

HEAD_BYTES = 64 << 10  # of the request line and the headers


def protocol_class(seconds: float) -> type[asyncio.Protocol]:
    """The server's protocol, whose requests must have begun in so many seconds: the faster one where installed."""
    try:
        from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
    except ImportError:
        base: Any = H11Protocol
    else:
        base = HttpToolsProtocol

    class LimitedProtocol(base):  # type: ignore[misc]
        """Counts the bytes and the seconds until the head of a request is complete."""

        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self._head_bytes = 0
            self._timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            """Begin to wait for a request."""
            super().connection_made(transport)
            self._timer = self.loop.call_later(seconds, self._refuse, 408, "Request Timeout", "in time")

        def data_received(self, data: bytes) -> None:
            """Read on; between requests the server's own timer for idle connections runs."""
            waiting = self.cycle is None or self.cycle.response_complete
            if waiting:
                if self._timer is None:
                    self._timer = self.loop.call_later(seconds, self._refuse, 408, "Request Timeout", "in time")
                self._head_bytes += len(data)
            super().data_received(data)
            if self.cycle is not None and not self.cycle.response_complete:
                self._forget()
            elif self._head_bytes > HEAD_BYTES and not self.transport.is_closing():
                self._refuse(431, "Request Header Fields Too Large", f"within {HEAD_BYTES} bytes")

        def on_response_complete(self) -> None:
            """Begin to count for the next request."""
            self._forget()
            super().on_response_complete()

        def connection_lost(self, error: Exception | None) -> None:
            """Nothing more will come."""
            self._forget()
            super().connection_lost(error)

        def _forget(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
            self._timer, self._head_bytes = None, 0

        def _refuse(self, status: int, words: str, where: str) -> None:
            """Say why, and close the connection."""
            self._forget()
            if self.transport.is_closing():
                return
            body = msgspec.json.encode(ErrorAnswer(f"the head of the request did not end {where}"))
            head = f"HTTP/1.1 {status} {words}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
            self.transport.write(f"{head}connection: close\r\n\r\n".encode() + body)
            self.transport.close()

    return LimitedProtocol
