"""Show the progress of long work: a bar on terminals after two seconds, or lines."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from podium.core.interrupts import stop_of_thread

if TYPE_CHECKING:
    from rich.progress import Progress

PATIENCE = 2.0  # seconds before a bar appears


class _Lines:
    """Counts steps, and prints a line after every n units and after the last."""

    def __init__(self, total: float | None, unit: str, every: int, steps: int) -> None:
        self.total, self.unit, self.every, self.steps = total, unit, every * steps, steps
        self.done = self.shown = 0
        self.note = ""

    def advance(self, amount: int = 1, note: str = "") -> None:
        self.done, self.note = self.done + amount, note
        if amount and self.done % self.every == 0:
            self.show()

    def show(self) -> None:
        self.shown = self.done
        of = "" if self.total is None else f" of {self.total // self.steps}"
        print(f"{self.done // self.steps}{of} {self.unit}, {self.note}".removesuffix(", "), file=sys.stderr, flush=True)

    def close(self) -> None:
        if self.shown < self.done:
            self.show()


class _Bar:
    """Counts steps, and shows a bar once the work takes longer than `PATIENCE`."""

    def __init__(self, title: str, total: float | None) -> None:
        self.title, self.total, self.done = title, total, 0.0
        self.started = time.monotonic()
        self.rich: Progress | None = None

    def advance(self, amount: float = 1, note: str = "") -> None:
        self.done += amount
        if self.rich is None:
            if time.monotonic() - self.started < PATIENCE:
                return
            from rich.console import Console
            from rich.progress import Progress

            # Redirect standard output only if it is the same terminal, where it would overwrite the bar.
            self.rich = Progress(console=Console(stderr=True), transient=True, redirect_stdout=sys.stdout.isatty())
            self.rich.start()
            self.rich.add_task(self.title, total=self.total)
        self.rich.update(self.rich.task_ids[0], completed=self.done, description=f"{self.title} {note}".rstrip())

    def close(self) -> None:
        if self.rich is not None:
            self.rich.stop()


@contextmanager
def progress(
    title: str, total: float | None = None, *, verbose: int | None = None, unit: str = "steps", steps: int = 1
) -> Iterator[Callable[..., None]]:
    """Yield a function `advance(amount, note="")` that shows progress on standard error.

    In a job (`core.jobs`) nothing is shown, because the code that runs the jobs shows their progress.

    Args:
        title: the title of the bar.
        total: the number of steps, if it is known.
        verbose: None for a bar after two seconds if standard error is a terminal, 0 for nothing, n for a line after
            every n units and after the last.
        unit: the noun for the unit, in lines.
        steps: the number of steps per unit.

    """
    display: _Lines | _Bar
    if stop_of_thread() is not None:
        verbose = 0
    if verbose:
        display = _Lines(total, unit, verbose, steps)
    elif verbose is None and sys.stderr.isatty():
        display = _Bar(title, total)
    else:
        yield lambda amount, note="": None
        return
    try:
        yield display.advance
    finally:
        display.close()
