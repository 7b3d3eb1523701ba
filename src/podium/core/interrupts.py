"""Defer signals: a signal takes effect between two steps of training, not within one."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class Stopped(BaseException):
    """Raised when the command line receives Ctrl-C or SIGTERM.

    Training writes its checkpoint and raises it again. (A KeyboardInterrupt, as in a notebook, instead ends training
    and keeps the trees so far.) It is not an `Exception`, so that neither `except Exception` nor click catches it.

    Attributes:
        number: the number of the signal.

    """

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


class Cancelled(BaseException):
    """Raised in a job when another job fails, or when its result is no longer needed; do not catch it."""


class Stop:
    """A request that the threads of several jobs end at their next step (`between_steps`).

    Args:
        outer: the `Stop` of the job that these jobs are part of.

    Attributes:
        reason: the exception for the threads to raise; None while they may continue.

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


class _ThreadState(threading.local):
    stop: Stop | None = None


_thread_state = _ThreadState()


def stop_of_thread() -> Stop | None:
    """Return the `Stop` of the job that runs in this thread, or None."""
    return _thread_state.stop


@contextmanager
def stopped_by(stop: Stop) -> Iterator[None]:
    """Let a `Stop` end the body of a with statement in this thread."""
    before, _thread_state.stop = _thread_state.stop, stop
    try:
        yield
    finally:
        _thread_state.stop = before


@contextmanager
def between_steps() -> Iterator[Callable[[], None]]:
    """Yield a function that runs the handlers of pending signals; until it is called, signals wait.

    An exception in the middle of a step would leave the step incomplete, and threads waiting for each other. A second
    signal takes effect at once, for impatient users. Signals without a handler are left alone. Only the main thread
    receives signals; jobs in other threads end by their `Stop`.
    """
    stop = stop_of_thread()
    pending: list[int] = []
    handlers: dict[int, Callable[[int, FrameType | None], object]] = {}

    def hold(number: int, frame: FrameType | None) -> None:
        pending.append(number)
        if len(pending) > 1:
            handlers[number](number, frame)

    def check() -> None:
        if stop is not None:
            stop.check()
        if pending:
            handlers[pending[0]](pending[0], None)

    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            handler = signal.getsignal(number)
            if callable(handler):
                handlers[number] = handler
                signal.signal(number, hold)
    try:
        yield check
    finally:
        for signum, handler in handlers.items():
            signal.signal(signum, handler)
    check()
