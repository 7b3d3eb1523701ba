"""New model files are noticed while the service runs."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from podium.serving.models.registry import Registry


@asynccontextmanager
async def watched(registry: Registry, seconds: float) -> AsyncIterator[None]:
    """Look at the files every few seconds, and load all of them at SIGHUP, in a thread beside the requests."""
    loop = asyncio.get_running_loop()
    told = asyncio.Event()

    async def watch() -> None:
        while True:
            everything = True
            try:
                await asyncio.wait_for(told.wait(), seconds or None)
                told.clear()
            except TimeoutError:
                everything = False
            await asyncio.to_thread(registry.reload, everything)

    with suppress(NotImplementedError, RuntimeError, ValueError):  # not on Windows, and not outside the main thread
        loop.add_signal_handler(signal.SIGHUP, told.set)
    task = asyncio.create_task(watch())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        with suppress(NotImplementedError, RuntimeError, ValueError):
            loop.remove_signal_handler(signal.SIGHUP)
