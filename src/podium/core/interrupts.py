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


@contextmanager
def between_steps() -> Iterator[Callable[[], None]]:
    """Give a function that raises what a signal asked for since; until it is called, signals wait.

    An exception in the middle of a step would leave threads that wait for each other, and half a step. A second signal
    does not wait: whoever is impatient has the last word. Signals that nobody handles are left alone.
    """
    waiting: list[int] = []
    handlers: dict[int, Callable[[int, FrameType | None], object]] = {}

    def hold(number: int, frame: FrameType | None) -> None:
        waiting.append(number)
        if len(waiting) > 1:
            handlers[number](number, frame)

    def check() -> None:
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
