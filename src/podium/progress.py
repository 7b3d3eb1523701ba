"""A progress bar for whatever takes longer than two seconds, on terminals only."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress

PATIENCE = 2.0  # seconds without a bar


def lines_without_terminal(total: int, what: str = "trees", every: int = 50) -> list[Callable[[Any], None]]:
    """An observer of training that prints a line now and then, where no bar can be shown."""
    if sys.stderr.isatty():
        return []

    def show(found: Any) -> None:
        done = found.iteration + 1
        if done % every == 0 or done == total:
            means = "".join(f", {name} {value:.4f}" for name, value in found.means.items())
            print(f"{done} of {total} {what}{means}", file=sys.stderr, flush=True)

    return [show]


class _Bar:
    """Counts steps; turns into a visible bar once the wait has become noticeable."""

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

            self.rich = Progress(console=Console(stderr=True), transient=True)
            self.rich.start()
            self.rich.add_task(self.title, total=self.total)
        self.rich.update(self.rich.task_ids[0], completed=self.done, description=f"{self.title} {note}".rstrip())

    def close(self) -> None:
        if self.rich is not None:
            self.rich.stop()


@contextmanager
def progress(title: str, total: float | None = None) -> Iterator[Callable[..., None]]:
    """Give a function `advance(amount, note="")`; where stderr is a terminal, it moves a bar after two seconds."""
    if not sys.stderr.isatty():
        yield lambda amount, note="": None
        return
    bar = _Bar(title, total)
    try:
        yield bar.advance
    finally:
        bar.close()
