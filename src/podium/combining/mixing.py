"""The exact best direction between two rankers of any scale ([B] 7.1, [W] §4).

A single number α is not enough. If the second ranker has scores of about 1e11, the best α may be 1e-12, and rounding
loses the first ranker in second − first. So each ranker is scaled by a power of two, which is exact, and the direction
(w_a, w_b) turns from the lower to the upper bound through quarters of the circle. In a quarter, the weight of one
ranker has the larger size, and the sweep is over the ratio z of the other weight to it, in [−1, 1]. A crossing is then
accurate to a few units in the last place, however small z is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from podium.combining.ascent import weighted
from podium.combining.lines import (
    CLOSE,
    Path,
    best_peak,
    best_point,
    exponents_of,
    points_within,
    preferred_points,
    require_interval,
    wide_enough,
)
from podium.combining.sweep import Sweep
from podium.core.array_types import Bools, Floats, Ints

Pair = tuple[Fraction, Fraction]

SCALED = 900  # scale the largest score to about 2^900, so that small ones do not underflow and sums do not overflow
SMALLEST = math.ulp(0.0)
# Quarters by increasing α, named by the larger weight: −b, a, b, −a.
A_LEADS = (False, True, False, True)
SIGNS = (-1, 1, 1, -1)


@dataclass(frozen=True)
class Mixture:
    """The best combination of two columns of scores.

    Attributes:
        alpha: α of (1 − α) first + α second, rounded to the nearest number.
        weights: the two weights, 1 − α and α if α can represent them; see `podium.combine`.
        value: the mean of the measure for these weights.
        interval: the open interval of α with this value; both ends are `alpha` if only that point has it.
        path: the measure as a function of α.

    Example:
        >>> import podium
        >>> from podium.combining import Sweep, best_mixture
        >>> data = podium.artificial(10, features=3)
        >>> first, second = data.features[:, :2].astype(float).T
        >>> best = best_mixture(Sweep(data, "ndcg@10"), first, second, 0.0, 1.0)
        >>> best.interval[0] <= best.alpha <= best.interval[1]
        True

    """

    alpha: float
    weights: tuple[float, float]
    value: float
    interval: tuple[float, float]
    path: Path


@dataclass(frozen=True)
class _Arc:
    """Directions in order, and the integer value of the measure between consecutive ones."""

    quarters: Ints
    places: Floats  # z
    values: Ints
    peaks: list[tuple[int, float]]  # quarter and z of crossings that may be higher than both sides
    heights: Ints  # twice the values there


def best_mixture(sweep: Sweep, first: Floats, second: Floats, low: float, high: float) -> Mixture:
    """Return the best (1 − α) first + α second for α in [low, high], among intervals, crossings and the two ends.

    Of equal intervals, the nearest to the middle of the bounds wins; its midpoint is the result, or the middle of the
    bounds if that is inside.

    Example:
        >>> import podium
        >>> from podium.combining import Sweep, best_mixture
        >>> data = podium.artificial(20, features=3)
        >>> sweep = Sweep(data, "ndcg@10")
        >>> first, second = data.feature(0).astype(float), data.feature(1).astype(float)
        >>> best_mixture(sweep, first, second, 0.0, 1.0).value >= max(sweep.value(first), sweep.value(second))
        True

    """
    require_interval(low, high)
    columns, near = (first, second), 0.5 * low + 0.5 * high
    exponents = (_exponent(first), _exponent(second))
    unit = sweep.unit(first)
    unit_value = unit / sweep.n_counted
    scaled = tuple(np.ldexp(column, SCALED - e) for column, e in zip(columns, exponents, strict=True))
    arc = _sweep_arc(sweep, scaled, (_quarter_of(low, exponents, False), _quarter_of(high, exponents, True)), unit)
    alphas = _alphas(arc, exponents, low, high)

    def weights_of(pair: Pair) -> tuple[float, float]:
        return _as_floats(pair, exponents)

    def value_at(pair: Pair) -> float:
        return sweep.value(weighted(columns, weights_of(pair)))

    def points(k: int) -> Iterator[Pair]:
        left, right = alphas[k : k + 2].tolist()
        yield from map(_pair_of, preferred_points(left, right, near))
        for quarter, start, end in _parts(arc, k):
            for z in points_within(start, end, 0.5 * (start + end), exponents_of(*_lines(quarter, scaled))):
                pair = _pair_at(quarter, z, exponents)
                if pair is not None:
                    yield pair

    path = Path(alphas, arc.values.astype(np.float64) * unit_value)
    best = best_point(alphas, arc.values, _wide(arc), near, unit_value, points, value_at)
    pair, value, interval = _pair_of(low), -math.inf, (low, low)
    if best is not None:
        k, pair, value = best
        interval = (float(alphas[k]), float(alphas[k + 1]))
    corners = [_pair_at(quarter, 1.0, exponents) for quarter in range(arc.quarters[0], arc.quarters[-1])]
    for end in (_pair_of(low), _pair_of(high), *(corner for corner in corners if corner is not None)):
        end_value = value_at(end)
        if end_value > value + CLOSE:
            pair, value, interval = end, end_value, (float(end[1]), float(end[1]))
    peak_pairs = [_pair_at(quarter, z, exponents) for quarter, z in arc.peaks]
    distances = np.array([math.inf if pair is None else abs(float(pair[1]) - near) for pair in peak_pairs])

    def at_peak(k: int) -> Iterator[Pair]:
        exact = peak_pairs[k]
        if exact is not None:
            yield from (_pair_of(float(exact[1])), exact)

    peak = best_peak(arc.heights, distances, unit_value, value, at_peak, value_at)
    if peak is not None:
        pair, value = peak
        interval = (float(pair[1]), float(pair[1]))
    alpha = float(pair[1])
    interval = min(interval[0], alpha), max(interval[1], alpha)  # its ends are rounded differently from α
    return Mixture(alpha, weights_of(pair), value, interval, path)


def _exponent(scores: Floats) -> int:
    return math.frexp(float(np.abs(scores).max(initial=0.0)))[1]


def _pair_of(alpha: float) -> Pair:
    """Return 1 − α and α without rounding."""
    return 1 - Fraction(alpha), Fraction(alpha)


def _quarter_of(alpha: float, exponents: tuple[int, int], is_upper: bool) -> tuple[int, float]:
    """Return the quarter of a bound α for scaled scores, and z there."""
    a, b = (w * Fraction(2) ** e for w, e in zip(_pair_of(alpha), exponents, strict=True))
    if abs(a) >= abs(b):
        return 1 if a > 0 else 3, _rounded(b / a, is_upper)
    return 2 if b > 0 else 0, _rounded(-a / b, is_upper)


def _rounded(z: Fraction, is_upper: bool) -> float:
    """Return the nearest number, or the next one outwards if that is 0 but z is not, so that no interval is empty."""
    if z and not float(z) and (z > 0) == is_upper:
        return math.copysign(SMALLEST, z)
    return float(z)


def _pair_at(quarter: int, z: float, exponents: tuple[int, int]) -> Pair | None:
    """Return the weights of the unscaled scores with sum 1; None if no α represents them."""
    scaled = (Fraction(1), Fraction(z)) if A_LEADS[quarter] else (-Fraction(z), Fraction(1))
    a, b = (SIGNS[quarter] * w / Fraction(2) ** e for w, e in zip(scaled, exponents, strict=True))
    return (a / (a + b), b / (a + b)) if a + b > 0 else None


def _lines(quarter: int, scaled: tuple[Floats, ...]) -> tuple[Floats, Floats]:
    a, b = scaled
    leading, other = (a, b) if A_LEADS[quarter] else (b, -a)
    return SIGNS[quarter] * leading, SIGNS[quarter] * other


def _sweep_arc(sweep: Sweep, scaled: tuple[Floats, ...], bounds: tuple[tuple[int, float], ...], unit: float) -> _Arc:
    """Return the directions between the bounds at which the measure changes, quarter by quarter."""
    (first, begin), (last, end) = bounds
    quarters, places, values = [np.array([first])], [np.array([begin])], [np.empty(0, np.int64)]
    peaks: list[tuple[int, float]] = []
    heights = [np.empty(0, np.int64)]
    for quarter in range(first, last + 1):
        low, high = begin if quarter == first else -1.0, end if quarter == last else 1.0
        if low >= high and (quarter < last or len(values) > 1):  # adjacent bounds still have a value
            continue
        edges, steps, tops, doubled = sweep.stairs(*_lines(quarter, scaled), low, high, unit)
        peaks += [(quarter, z) for z in tops.tolist()]
        heights.append(doubled)
        if len(values[-1]) and values[-1][-1] == steps[0]:  # nothing changes between the quarters
            quarters[-1], places[-1], steps = quarters[-1][:-1], places[-1][:-1], steps[1:]
        quarters.append(np.full(len(edges) - 1, quarter))
        places.append(edges[1:])
        values.append(steps)
    columns = np.concatenate(quarters), np.concatenate(places), np.concatenate(values)
    return _Arc(*columns, peaks, np.concatenate(heights))


def _alphas(arc: _Arc, exponents: tuple[int, int], low: float, high: float) -> Floats:
    """Return α of each direction, rounded to the nearest number and non-decreasing."""
    turn = exponents[0] - exponents[1]
    a_leads = np.array(A_LEADS)[arc.quarters]
    with np.errstate(all="ignore"):  # a ratio that overflows is infinite, and α is 0 or 1
        ratios = np.ldexp(np.where(a_leads, arc.places, -arc.places), np.where(a_leads, turn, -turn))
        small = np.where(np.abs(ratios) <= 1, ratios / (1 + ratios), 1 / (1 + 1 / ratios))  # w_b / (w_a + w_b)
        tiny = np.ldexp(-1 / arc.places, turn)  # α if w_a / w_b overflows but α is not yet 0
        alphas = np.where(a_leads, small, np.where(np.abs(ratios) < 1e300, 1 / (1 + ratios), tiny))
    alphas[0], alphas[-1] = low, high
    return np.maximum.accumulate(np.clip(alphas, low, high))


def _wide(arc: _Arc) -> Bools:
    """Return whether each interval is wider than the rounding errors of its ends."""
    left, right = arc.places[:-1], arc.places[1:]
    turns = np.diff(arc.quarters)
    over = (turns > 1) | wide_enough(left, np.ones(len(left))) | wide_enough(-np.ones(len(left)), right)
    return np.where(turns == 0, wide_enough(left, right), over)


def _parts(arc: _Arc, k: int) -> Iterator[tuple[int, float, float]]:
    """Yield the quarters that interval k passes through, and z where it enters and leaves each."""
    (first, last), (left, right) = arc.quarters[k : k + 2].tolist(), arc.places[k : k + 2].tolist()
    for quarter in range(first, last + 1):
        yield quarter, left if quarter == first else -1.0, right if quarter == last else 1.0


def _as_floats(pair: Pair, exponents: tuple[int, int]) -> tuple[float, float]:
    """Return the weights as floats, times a power of two if a weight or score would be out of range."""
    present = [(w, e) for w, e in zip(pair, exponents, strict=True) if w]
    sizes = [abs(w.numerator).bit_length() - w.denominator.bit_length() for w, _ in present]
    largest = max(size + e for size, (_, e) in zip(sizes, present, strict=True))  # exponent of the scores
    up = max(-1020 - min(sizes), -1000 - largest)
    down = min(1020 - max(sizes), 1020 - largest)
    factor = Fraction(2) ** min(max(0, up), down)
    return float(pair[0] * factor), float(pair[1] * factor)
