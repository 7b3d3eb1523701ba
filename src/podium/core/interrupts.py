"""Signals that end training wait for the end of a step."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class Stopped(BaseException):
    """The command line was told to stop, by Ctrl-C or SIGTERM.

    Training writes its checkpoint and passes this on, where KeyboardInterrupt, as in a notebook, ends it with the trees
    so far. Not an `Exception`, and nothing that click would turn into an exit of its own.

    Attributes:
        number: of the signal.

    """

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


class Cancelled(BaseException):
    """What ran beside this failed, or is of no use any more: this ends, too. Not an `Exception`, as nobody mends it."""


class Stop:
    """Tells the threads of several jobs to end at their next step (`between_steps`).

    Args:
        outer: of the jobs that these jobs are a part of.

    Attributes:
        reason: what they raise; None as long as they may go on.

    """

    def __init__(self, outer: Stop | None = None) -> None:
        self.outer = outer
        self.reason: BaseException | None = None

    def tell(self, reason: BaseException) -> None:
        """Have all threads raise this; the first reason counts."""
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
    """What ends the job that runs in this thread; None where none does."""
    return _of_thread.stop


@contextmanager
def stopped_by(stop: Stop) -> Iterator[None]:
    """Let what runs here, in this thread, end when it is told so."""
    before, _of_thread.stop = _of_thread.stop, stop
    try:
        yield
    finally:
        _of_thread.stop = before


@contextmanager
def between_steps() -> Iterator[Callable[[], None]]:
    """Give a function that raises what a signal asked for since; until it is called, signals wait.

    An exception in the middle of a step would leave threads that wait for each other, and half a step. A second signal
    does not wait: whoever is impatient has the last word. Signals that nobody handles are left alone. Signals reach the
    main thread alone; a job in another thread is told by its `Stop`.
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
