"""Curves made of text, for terminals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from podium.core.array_types import Floats
from podium.core.validation import require_whole
from podium.errors import DataError

# Unicode's braille patterns: 2 × 4 dots a character, a bit for each, from top to bottom of the left and right column.
FIRST_PATTERN = 0x2800
BITS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])


def curve(values: Sequence[float], width: int, height: int) -> str:
    """A line through the values, in braille dots: so many lines of text of so many characters.

    The lowest value stands at the bottom, the highest at the top. Where there are more values than columns of dots,
    a column reaches from the lowest to the highest of its values. What is not finite leaves a gap.

    Example:
        >>> from podium.reports.curves import curve
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
            if top <= bottom:  # not where a value is missing
                dots[round(top) : round(bottom) + 1, column] = True
    codes = FIRST_PATTERN + (dots.reshape(height, 4, width, 2) * BITS[None, :, None, :]).sum(axis=(1, 3))
    return "\n".join("".join(map(chr, line)) for line in codes.tolist())


def _reaches(rows: Floats, n_columns: int) -> list[tuple[float, float]]:
    """From where to where the line goes in each column of dots, without what its neighbour has."""
    n = len(rows)
    if n <= n_columns:
        columns = np.linspace(0, n - 1, n_columns) if n > 1 else np.zeros(1)
        line = np.interp(columns, np.arange(n), rows)
        return [_joined(line[k - 1] if k else value, value) for k, value in enumerate(line.tolist())]
    parts = np.array_split(rows, n_columns)
    reaches = [(float(part.min()), float(part.max())) for part in parts]
    return [_touching(reaches[k - 1] if k else one, one) for k, one in enumerate(reaches)]


def _joined(before: float, value: float) -> tuple[float, float]:
    """A column that goes on where the one before ended: half of the way is that one's."""
    if abs(value - before) <= 1 or np.isnan(before):
        return value, value
    middle = before + (1 if value > before else -1)
    return min(middle, value), max(middle, value)


def _touching(before: tuple[float, float], one: tuple[float, float]) -> tuple[float, float]:
    """A column that touches the one before."""
    top, bottom = one
    return min(top, before[1] + 1), max(bottom, before[0] - 1)
