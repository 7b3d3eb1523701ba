"""The measure along a line of scores s + α t and its best point, for documents in memory or on a cluster."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from podium.core.array_types import Bools, Floats, Ints
from podium.errors import DataError

Point = TypeVar("Point")
Exponents = tuple[tuple[int, int] | None, tuple[int, int] | None]  # of the largest and smallest scores and slopes
CLOSE = 1e-9  # means that differ by less count as equal
NARROW = 1e-12  # a narrower interval, relative to α, is a rounding error of crossings at one point
SHARES = (0.5, 0.382, 0.618, 0.25, 0.75, 0.1, 0.9)  # points of an interval to evaluate, until one has its value
TRIES = 8  # intervals to evaluate if rounding prevents the best ones from having their value


@dataclass(frozen=True)
class Path:
    """The mean of a measure over queries as a step function of α between two ends.

    Attributes:
        alphas: the ends and, between them, the crossings at which the mean changes, ascending; equal if there is no
            number between two crossings.
        values: the mean on each open interval between consecutive `alphas`.

    Example:
        >>> import numpy as np
        >>> from podium.combining import Path
        >>> Path(np.array([0.0, 0.4, 1.0]), np.array([0.5, 0.7])).at(0.6).item()
        0.7

    """

    alphas: Floats
    values: Floats

    def at(self, alpha: Floats | float) -> Floats:
        """Return the mean just above α."""
        interval = np.searchsorted(self.alphas, alpha, side="right") - 1
        return np.asarray(self.values[np.clip(interval, 0, len(self.values) - 1)])


@dataclass(frozen=True)
class SweepResult:
    """The best α of a sweep.

    Attributes:
        alpha: the best α: the middle of the best interval, an end, or a crossing.
        value: the mean of the measure there, evaluated again.
        interval: the open interval with that value; both ends are `alpha` if only that point has it.
        path: the measure as a function of α.

    Example:
        >>> import podium
        >>> from podium.combining import Sweep
        >>> data = podium.artificial(10, features=3)
        >>> best = Sweep(data, "ndcg@10").best(data.feature(0), data.feature(1), -1.0, 1.0)
        >>> bool(best.value >= best.path.values.max() - 1e-9)
        True

    """

    alpha: float
    value: float
    interval: tuple[float, float]
    path: Path


class Turns(NamedTuple):
    """The changes at the crossings of a line, in no particular order."""

    # alphas, changes: where the sum over the queries changes, and by how many units
    alphas: Floats
    changes: Ints
    # peaks, bends: where more than two documents of a query meet, so that the mean over their orders need not be the
    # mean of both sides, and twice the number of units by which it exceeds the mean of both sides
    peaks: Floats
    bends: Ints


class Stairs(NamedTuple):
    """The sum over the queries along a line as a step function, in units."""

    edges: Floats  # the ends and the crossings between them, ascending
    steps: Ints  # the sum between consecutive `edges`
    # peaks, heights: crossings that may be higher than both sides, and twice the sum there
    peaks: Floats
    heights: Ints


class Line(ABC):
    """Scores s + α t of documents, in memory or on a cluster, and the measure along them."""

    n_counted: int  # the number of queries in the mean

    @abstractmethod
    def exponents(self) -> Exponents:
        """Return the exponents of the largest and smallest nonzero score, and slope; None if all are 0."""

    @abstractmethod
    def scale(self, exponent: int) -> None:
        """Divide all scores and slopes by a power of two."""

    @abstractmethod
    def largest(self) -> float:
        """Return `Sweep.largest`."""

    @abstractmethod
    def stairs(self, low: float, high: float, unit: float) -> Stairs:
        """Return `Sweep.stairs`."""

    @abstractmethod
    def value_at(self, alpha: float) -> float:
        """Return the mean of the measure at a point."""


def best_on_line(line: Line, low: float, high: float, near: float) -> SweepResult:
    """Return the best α in [low, high], see `Sweep.best`."""
    exponents = line.exponents()
    reach = math.frexp(max(1.0, abs(low), abs(high)))[1]
    largest = max(
        0 if exponents[0] is None else exponents[0][0], reach + (0 if exponents[1] is None else exponents[1][0])
    )
    if exponents != (None, None) and not -1000 <= largest <= 1000:  # otherwise sums would overflow or underflow
        line.scale(largest)
        exponents = line.exponents()
    unit = unit_of(line.largest())
    edges, steps, peaks, heights = line.stairs(low, high, unit)
    unit_value = unit / line.n_counted
    path = Path(edges, steps.astype(np.float64) * unit_value)

    def points(k: int) -> Iterator[float]:
        left, right = edges[k : k + 2].tolist()
        return points_within(left, right, near, exponents)

    best = best_point(edges, steps, wide_enough(edges[:-1], edges[1:]), near, unit_value, points, line.value_at)
    alpha, value, interval = low, -math.inf, (low, low)
    if best is not None:
        k, alpha, value = best
        interval = (float(edges[k]), float(edges[k + 1]))
    for end in (low, high):
        end_value = line.value_at(end)
        if end_value > value + CLOSE:
            alpha, value, interval = end, end_value, (end, end)
    peak = best_peak(heights, np.abs(peaks - near), unit_value, value, lambda k: [float(peaks[k])], line.value_at)
    if peak is not None:
        alpha, value = peak
        interval = (alpha, alpha)
    return SweepResult(alpha, value, interval, path)


def unit_of(largest: float) -> float:
    """Return 2^-42 of the largest value, see `Sweep.unit`."""
    return math.ldexp(1.0, math.frexp(max(1.0, largest))[1] - 42)


def concatenate_turns(parts: Iterable[Turns]) -> Turns:
    """Return the changes at the crossings of all parts of the data."""
    none = Turns(np.empty(0), np.empty(0, np.int64), np.empty(0), np.empty(0, np.int64))
    return Turns(*(np.concatenate(columns) for columns in zip(none, *parts, strict=True)))


def stairs_of(turns: Turns, start: int, low: float, high: float) -> Stairs:
    """Return the step function, from the changes at crossings and the sum just above `low`."""
    order = np.argsort(turns.alphas)  # the order of ties does not matter for sums of integers
    alphas, changes = turns.alphas[order], turns.changes[order]
    last = np.append(alphas[1:] != alphas[:-1], True) if len(alphas) else np.zeros(0, bool)
    sums = start + np.concatenate([[0], np.cumsum(changes)])
    inner, steps = alphas[last], sums[np.concatenate([[True], last])]
    peaks, number = np.unique(turns.peaks, return_inverse=True)
    bends = np.zeros(len(peaks), np.int64)
    np.add.at(bends, number, turns.bends)
    heights = steps[np.searchsorted(inner, peaks, "left")] + steps[np.searchsorted(inner, peaks, "right")] + bends
    return Stairs(np.concatenate([[low], inner, [high]]), steps, peaks[bends > 0], heights[bends > 0])


def exponents_of(scores: Floats, slopes: Floats) -> Exponents:
    """Return `Line.exponents`."""
    first, second = (np.frexp(column[column != 0])[1] for column in (scores, slopes))
    return (
        (int(first.max()), int(first.min())) if len(first) else None,
        (int(second.max()), int(second.min())) if len(second) else None,
    )


def require_interval(low: float, high: float) -> None:
    """Raise unless the bounds of α are finite and ascending."""
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise DataError(f"the bounds of α must be finite and ascending, but got {low} and {high}")


def wide_enough(left: Floats, right: Floats) -> Bools:
    """Return whether intervals are wider than the rounding errors of their ends."""
    return right - left > NARROW * np.maximum(np.abs(left), np.abs(right))


def preferred_points(left: float, right: float, near: float) -> Iterator[float]:
    """Yield points of an interval: `near` if it is inside, the middle, then others."""
    for point in (near, *(left + share * (right - left) for share in SHARES)):
        if left < point < right:
            yield point


def points_within(left: float, right: float, near: float, exponents: Exponents) -> Iterator[float]:
    """Yield `preferred_points`, then powers of two at which scores and α times slopes may have similar size.

    If scores differ by many orders of magnitude, float64 only distinguishes documents at some of these points.
    """
    yield from preferred_points(left, right, near)
    of_scores, of_slopes = exponents
    if of_scores is None or of_slopes is None:
        return
    highest, lowest = of_scores[0] - of_slopes[1], of_scores[1] - of_slopes[0]
    for exponent in range(min(highest, 1020), max(lowest, -1020) - 1, -max(16, (highest - lowest) // 16)):
        for point in (math.ldexp(1.0, exponent), -math.ldexp(1.0, exponent)):
            if left < point < right:
                yield point


def best_point(
    edges: Floats,
    steps: Ints,
    is_wide: Bools,
    near: float,
    unit_value: float,
    points: Callable[[int], Iterable[Point]],
    value_at: Callable[[Point], float],
) -> tuple[int, Point, float] | None:
    """Return the highest interval, a point of it, and the value there, evaluated again; None if no interval is wide.

    Of equal intervals, the nearest to `near` wins. Documents that swap ranks without changing the mean may be tied at a
    point of the interval, so several points are tried. If rounding prevents all of them from having the value of the
    interval, the next best interval is tried.

    Args:
        edges, steps: the step function.
        is_wide: which intervals count.
        near: the preferred α.
        unit_value: how much one unit of the steps adds to the mean.
        points: the points of an interval to evaluate, in this order.
        value_at: returns the mean of the measure at a point.

    """
    is_open, best = is_wide.copy(), None
    for _ in range(TRIES):
        top = steps[is_open].max() if is_open.any() else None
        if top is None or (best is not None and top * unit_value <= best[2] + CLOSE):
            break
        highest = np.flatnonzero(is_open & (steps == top))
        distances = np.maximum(edges[highest] - near, near - edges[highest + 1])
        k = int(highest[np.argmin(np.maximum(distances, 0.0))])
        for point in points(k):
            value = value_at(point)
            if best is None or value > best[2]:
                best = k, point, value
            if abs(value - top * unit_value) <= CLOSE:
                return k, point, value
        is_open[k] = False
    return best


def best_peak(
    heights: Ints,
    distances: Floats,
    unit_value: float,
    least: float,
    points: Callable[[int], Iterable[Point]],
    value_at: Callable[[Point], float],
) -> tuple[Point, float] | None:
    """Return the highest peak above `least` and the value there, evaluated again; None if there is none.

    Of equal peaks, the one with the smallest of `distances` wins. Because of rounding, documents may not be tied at the
    number closest to their crossing; then the next best peak is tried.
    """
    for k in np.lexsort((distances, -heights))[:TRIES].tolist():
        if 0.5 * float(heights[k]) * unit_value <= least + CLOSE:
            return None
        for point in points(k):
            value = value_at(point)
            if value > least + CLOSE:
                return point, value
    return None
