"""A plot of the validation measure in the terminal during training."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from podium.core.array_types import Floats
from podium.core.validation import require_whole
from podium.errors import DataError

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.live import Live


# Unicode's braille patterns have 2 × 4 dots per character, a bit for each: the left column, then the right, top down.
FIRST_PATTERN = 0x2800
BITS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])


def curve(values: Sequence[float], width: int, height: int) -> str:
    """Return a line through the values in braille dots, as `height` lines of text with `width` characters.

    The lowest value is at the bottom, the highest at the top. If there are more values than columns of dots, a column
    spans its lowest to its highest value. Values that are not finite leave a gap.

    Example:
        >>> from podium.reports.watching import curve
        >>> print(curve([0, 1, 2, 3, 4, 5, 6, 7], width=4, height=2))
        ⠀⠀⡠⠊
        ⡠⠊⠀⠀

    """
    require_whole("width", width, 1)
    require_whole("height", height, 1)
    heights = np.asarray(values, float)
    if heights.ndim != 1:
        raise DataError("values must be a list of numbers")
    heights = np.where(np.isfinite(heights), heights, np.nan)
    dots = np.zeros((4 * height, 2 * width), bool)
    finite = heights[~np.isnan(heights)]
    if len(finite):
        halves, span = heights / 2, finite.max() / 2 - finite.min() / 2  # halves cannot overflow
        shares = (finite.max() / 2 - halves) / span if span > 0 else 0.5 + 0 * heights
        rows = (4 * height - 1) * shares
        for column, (top, bottom) in enumerate(_reaches(rows, 2 * width)):
            if top <= bottom:  # false if a value is missing
                dots[round(top) : round(bottom) + 1, column] = True
    codes = FIRST_PATTERN + (dots.reshape(height, 4, width, 2) * BITS[None, :, None, :]).sum(axis=(1, 3))
    return "\n".join("".join(map(chr, line)) for line in codes.tolist())


def _reaches(rows: Floats, n_columns: int) -> list[tuple[float, float]]:
    """Return the ends of the line in each column of dots, without the part that its neighbour covers."""
    n = len(rows)
    if n <= n_columns:
        columns = np.linspace(0, n - 1, n_columns) if n > 1 else np.zeros(1)
        rows = np.interp(columns, np.arange(n), rows)
        n_columns = len(rows)
    parts = np.array_split(rows, n_columns)
    ends = [(float(part.min()), float(part.max())) for part in parts]
    # A column reaches to the next dot of the previous one; comparisons with NaN are false, so a gap changes nothing.
    return [
        (min(top, before[1] + 1), max(bottom, before[0] - 1))
        for before, (top, bottom) in zip([*ends[:1], *ends], ends, strict=False)
    ]


PAUSE = 0.2  # minimum seconds between drawings
COST = 100  # wait 100 times as long as the last drawing took, so that drawing takes at most 1% of the time
WIDEST, HIGHEST = 100, 12  # maximum size of the curve in characters


class Picture:
    """A renderable of rich that plots the values so far, as wide as the terminal."""

    def __init__(self, total: int | None = None) -> None:
        self.total, self.name, self.first = total, "", 0
        self.values: list[float] = []
        self.others: dict[str, float] = {}
        self.best: int | None = None
        self.seconds = 0.0

    def add(self, round_: Any) -> None:
        """Add a round. The plot shows its first mean; the other means are text below the plot."""
        (self.name, value), *others = round_.means.items()
        if not self.values:
            self.first = round_.iteration
        self.values.append(value)
        self.others, self.best = dict(others), round_.best_iteration

    def text(self, width: int, height: int) -> str:
        """Return the plot in `width` columns and at most `height` lines."""
        low, high = (f"{end:.4f}" for end in (min(self.values), max(self.values)))
        margin = max(len(low), len(high))
        inner = max(min(width - margin - 2, WIDEST), 4)
        lines = curve(self.values, inner, max(min(height - 4, HIGHEST), 2)).split("\n")
        axis = [f"{high:>{margin}} ┤", *[" " * margin + " │"] * (len(lines) - 2), f"{low:>{margin}} ┤"]
        plot = [left + line for left, line in zip(axis, lines, strict=True)]
        first, last = str(self.first + 1), str(self.first + len(self.values))
        plot.append(" " * (margin + 2) + (f"{first}{last:>{inner - len(first)}}" if first != last else first))
        others = ", ".join(f"{name} {value:.4f}" for name, value in self.others.items())
        return "\n".join([self.name[:width], *plot, self._words()[:width], *([others[:width]] if others else [])])

    def _words(self) -> str:
        """Return the round, the values and the time as one line."""
        of = "" if self.total is None else f" of {self.total}"
        words = [f"round {self.first + len(self.values)}{of}", f"now {self.values[-1]:.4f}"]
        if self.best is not None and self.best >= self.first:
            words.append(f"best {self.values[self.best - self.first]:.4f} in round {self.best + 1}")
        return ", ".join([*words, f"{self.seconds:.1f} s"])

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        yield Text(self.text(options.max_width - 1, console.size.height - 1), no_wrap=True)


class Watch:
    """An observer that plots the validation measure in the terminal during training.

    Any estimator whose `fit` has `observers` accepts it. It draws on standard error a few times a second, takes at most
    1% of the time, and leaves the last plot on the screen. It draws nothing if standard error is not a suitable
    terminal.

    Args:
        total: the maximum number of rounds, to show next to the current round.

    Example:
        >>> import podium
        >>> from podium.reports import Watch
        >>> train, valid = podium.artificial(20, features=4), podium.artificial(10, features=4, part="valid")
        >>> with Watch(total=3) as watch:
        ...     model = podium.LambdaMART(n_trees=3, verbose=0).fit(train, valid=valid, observers=[watch])
        >>> watch.picture.values == model.history_["valid/ndcg@10"]
        True

    """

    needs_arrays = False  # it does not read the arrays of a `podium.boosting.Round`

    def __init__(self, total: int | None = None) -> None:
        require_whole("total", total, 1, optional=True)
        self.picture = Picture(total)
        self._live: Live | None = None
        self._started, self._due = time.perf_counter(), 0.0
        self._draws = can_draw()

    def __call__(self, round_: Any) -> None:
        """Add a round, and draw if enough time has passed."""
        if not round_.means:
            raise DataError("Watch needs validation data: pass valid=…")
        self.picture.add(round_)
        if self._draws and time.perf_counter() >= self._due:
            self._draw()

    def _draw(self) -> None:
        if self._live is None:  # created late, because the progress bar of binning uses the same lines
            self._live = _new_live()
            self._live.start()
        before = time.perf_counter()
        self.picture.seconds = before - self._started
        self._live.update(self.picture, refresh=True)
        now = time.perf_counter()
        self._due = now + max(PAUSE, COST * (now - before))

    def __enter__(self) -> Self:
        self._started = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        if self._draws and self.picture.values:
            self._draw()
        if self._live is not None:
            self._live.stop()
            self._live = None


def _new_live() -> Any:
    from rich.console import Console
    from rich.live import Live

    # Leave standard output alone, unless it is the same terminal and would overwrite the plot.
    return Live(
        console=Console(stderr=True, highlight=False), auto_refresh=False, redirect_stdout=sys.stdout.isatty(),
        vertical_overflow="crop",
    )  # fmt: skip


def can_draw() -> bool:
    """Return whether standard error is a terminal that can move the cursor and show braille patterns."""
    if not sys.stderr.isatty():
        return False
    from rich.console import Console

    console = Console(stderr=True)
    return not console.is_dumb_terminal and console.encoding.lower().startswith("utf")
