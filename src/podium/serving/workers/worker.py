"""A process that answers requests."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from typing import Any

import uvicorn

from podium.errors import PodiumError
from podium.serving.app import create_app
from podium.serving.settings import Settings
from podium.serving.workers.protocol import protocol_class
from podium.serving.workers.supervisor import COULD_NOT_START


def run_worker(settings: Settings, listening: socket.socket) -> int:
    """Answer requests until SIGTERM or SIGINT, then finish those that are under way; the exit code."""
    try:
        app = create_app(settings)
    except (PodiumError, OSError) as error:
        print(f"podium: error: {error}", file=sys.stderr)
        return COULD_NOT_START
    seconds = settings.limits.seconds
    protocol: Any = protocol_class(seconds)
    config = uvicorn.Config(
        app, http=protocol, ws="none", lifespan="on", log_config=None, access_log=False, server_header=False,
        timeout_keep_alive=30, timeout_graceful_shutdown=int(seconds) + 1,
    )  # fmt: skip
    server = _Server(config)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(server.serve([listening]))
    return 0


class _Server(uvicorn.Server):
    """A server whose process ends with code 0 after a signal: it has done what it was told."""

    def capture_signals(self) -> Any:
        """Have signals end the server, without raising them again when it has ended."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.handle_exit)
        return _Nothing()


class _Nothing:
    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


def _loop_factory() -> Any:
    """The faster event loop, where it is installed."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
