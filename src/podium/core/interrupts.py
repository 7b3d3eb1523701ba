"""Deferred signals: a signal takes effect between the steps of training, not within one."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class Stopped(BaseException):
    """Raised when the command line receives Ctrl-C or SIGTERM.

    Training then writes its checkpoint and raises this again. (A KeyboardInterrupt, as in a notebook, ends training
    with the trees so far instead.) It is not an `Exception`, and click does not handle it.

    Attributes:
        number: the number of the signal.

    """

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


class Cancelled(BaseException):
    """Raised in a job when another one fails or its result is no longer needed; do not catch it."""


class Stop:
    """A request that the threads of several jobs end at their next step (`between_steps`).

    Args:
        outer: the `Stop` of the job that these jobs are part of.

    Attributes:
        reason: the exception that they raise; None while they may continue.

    """

    def __init__(self, outer: Stop | None = None) -> None:
        self.outer = outer
        self.reason: BaseException | None = None

    def request(self, reason: BaseException) -> None:
        """Make all threads raise this exception; only the first request counts."""
        if self.reason is None:
            self.reason = reason

    def check(self) -> None:
        """Raise the reason, if there is one."""
        if self.outer is not None:
            self.outer.check()
        if self.reason is not None:
            raise self.reason


class _OfThread(threading.local):
    stop: Stop | None = None


_of_thread = _OfThread()


def stop_of_thread() -> Stop | None:
    """Return the `Stop` of the job that runs in this thread, or None."""
    return _of_thread.stop


@contextmanager
def stopped_by(stop: Stop) -> Iterator[None]:
    """Let a `Stop` end the body of a with statement in this thread."""
    before, _of_thread.stop = _of_thread.stop, stop
    try:
        yield
    finally:
        _of_thread.stop = before


@contextmanager
def between_steps() -> Iterator[Callable[[], None]]:
    """Yield a function that raises the exceptions of pending signals; until it is called, signals wait.

    An exception in the middle of a step would leave the step incomplete, and threads waiting for each other. A second
    signal takes effect at once, for impatient users. Signals without a handler are left alone. Only the main thread
    receives signals; jobs in other threads are ended by their `Stop`.
    """
    stop = stop_of_thread()
    waiting: list[int] = []
    handlers: dict[int, Callable[[int, FrameType | None], object]] = {}

    def hold(number: int, frame: FrameType | None) -> None:
        waiting.append(number)
        if len(waiting) > 1:
            handlers[number](number, frame)

    def check() -> None:
        if stop is not None:
            stop.check()
        if waiting:
            handlers[waiting[0]](waiting[0], None)

    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            handler = signal.getsignal(number)
            if callable(handler):
                handlers[number] = handler
                signal.signal(number, hold)
    try:
        yield check
    finally:
        for held, usual in handlers.items():
            signal.signal(held, usual)
    check()
