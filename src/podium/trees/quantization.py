"""Gradients and hessians as integers, two to a word: sums of integers are exact in any order.

A histogram cell sums packed words, one addition for gradient and weight together: gradient · 2^32 + weight. The weight
is the hessian for Newton's splits and 1 for those of least squares. Every document weighs at least 1, so a cell without
weight has no documents.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from podium.core.array_types import Floats, Int, Int32s, Ints
from podium.core.choices import SplitMode
from podium.core.compiling import helper, kernel
from podium.core.merging import Max, Total, alone
from podium.core.sums import ExactSum
from podium.core.team import Team
from podium.core.threads import n_threads_for
from podium.errors import DataError
from podium.trees.growth_types import U

NEGATIVE_HESSIAN = "a hessian is negative: this objective needs another step than Newton's"
MAX_REPETITIONS = 2**24  # sum of whole weights: more would leave too few bits for gradients
MAX_DOCUMENTS = 2**30  # of all machines: `scales` needs 2 units of 2^32 for the rounding of each
TINY = 1e-290  # a sum below this counts as 0; its inverse would overflow


@dataclass(frozen=True)
class BoundedGradients:
    """Gradients and hessians of all documents, and the bounds that set the scale of integers."""

    # gradients, hessians: λ and w of each document
    gradients: Floats
    hessians: Floats
    largest: tuple[float, float]  # the largest |gradient| and |hessian|
    # tight upper bounds of the sums of absolute values, independent of the order of documents
    sum_bounds: tuple[float, float]

    @classmethod
    def of(cls, gradients: Floats, hessians: Floats, team: Team) -> BoundedGradients:
        """Find the bounds.

        The last bits of a floating-point sum depend on the order, and so would the scale of all integers. Therefore the
        values are summed as multiples of a power of two near 2^-62 · n · max|v|, which cannot overflow, and half a unit
        is added for each rounding.
        """
        n = len(gradients)
        if n_threads_for(n, team.n_threads) == 1:
            g_largest, h_largest, g_bound, h_bound = compiled_find_bounds(gradients, hessians)
            bounded = cls(gradients, hessians, (g_largest, h_largest), (g_bound, h_bound))
        else:
            bounded = alone(cls.in_parts(gradients, hessians, team, n))
        bounded.require_finite()
        return bounded

    @classmethod
    def in_parts(
        cls, gradients: Floats, hessians: Floats, team: Team, n_total: int
    ) -> Generator[Any, Any, BoundedGradients]:
        """Find the bounds of all `n_total` documents from one part of them (`podium.core.merging`)."""
        n = len(gradients)
        largest = team.shares(n, lambda a, b: compiled_largest_of(gradients[a:b], hessians[a:b]))
        g_largest, h_largest = yield Max(tuple(max(of) for of in zip(*largest, strict=True)))
        g_exponent, h_exponent = exponent_of(g_largest, n_total), exponent_of(h_largest, n_total)
        by = math.ldexp(1.0, g_exponent), math.ldexp(1.0, h_exponent)
        shares = team.shares(n, lambda a, b: compiled_whole_sums(gradients[a:b], by[0], hessians[a:b], by[1]))
        sums = yield Total(tuple(sum(of) for of in zip(*shares, strict=True)))
        bounds = bound_of(g_largest, sums[0], g_exponent, n_total), bound_of(h_largest, sums[1], h_exponent, n_total)
        return cls(gradients, hessians, (g_largest, h_largest), bounds)

    def require_finite(self) -> None:
        """Raise if a gradient or hessian is infinite or NaN."""
        if not all(map(math.isfinite, self.largest)):
            raise DataError("a gradient or hessian is not finite: the scores or labels are too large for the objective")


@helper
def fixed_point_exponent(largest: float, n: int) -> int:
    """Return the exponent of a power of two that keeps the sum of n numbers up to `largest` below 2^62."""
    return min(62 - math.frexp(largest * n)[1], 1000)


@helper
def exponent_of(largest: float, n: int) -> int:
    """Return `fixed_point_exponent`, or 0 if all values are 0 or one is not finite."""
    return fixed_point_exponent(largest, n) if TINY <= largest < math.inf else 0


@helper
def bound_of(largest: float, whole_sum: int, exponent: int, n: int) -> float:
    """Return the bound from a sum of |values| in fixed point, with one unit for each rounding."""
    return math.ldexp(float(whole_sum + n), -exponent) if largest >= TINY else 0.0


@dataclass(frozen=True)
class QuantizedGradients:
    """Gradients and weights as packed integers."""

    words: Ints  # gradient · 2^32 + weight of each document; only those of the sample where there is one
    # gradient_unit, weight_unit: what one unit of each integer is worth
    gradient_unit: float
    weight_unit: float
    largest_weight: int  # as an integer
    counts_documents: bool  # whether every weight is 1, so that their sums count documents; False if `sampled` is set
    source: BoundedGradients  # the gradients before rounding
    # sampled, unsampled: the rows on which splits are searched, and the others; None without a sample
    sampled: Int32s | None = None
    unsampled: Int32s | None = None


def quantize(
    gradients: BoundedGradients, split: SplitMode = "newton", team: Team | None = None,
    words: Ints | None = None, weights: Floats | None = None,
) -> QuantizedGradients:  # fmt: skip
    """Round the gradients and weights of all documents to integers.

    Args:
        gradients: with the bounds of their sums.
        split: whether hessians are the weights (`"newton"`), or every document weighs 1 (`"least-squares"`).
        team: threads; one by default.
        words: where to write the packed integers; a new array by default.
        weights: how often each document counts in least squares; once by default.

    """
    n = len(gradients.gradients)
    return alone(quantize_in_parts(gradients, split, team or Team(1), n, words, weights))


def quantize_in_parts(
    gradients: BoundedGradients, split: SplitMode, team: Team, n_total: int, words: Ints | None = None,
    weights: Floats | None = None,
) -> Generator[Any, Any, QuantizedGradients]:  # fmt: skip
    """Round a part of `n_total` documents; the largest weight is that of the part."""
    g, n = gradients.gradients, len(gradients.gradients)
    if weights is not None and split == "least-squares":
        packed = yield from _quantize_repeated(g, weights, team, n_total, words)
        if packed is None:
            bounded = yield from BoundedGradients.in_parts(g, weights, team, n_total)
            packed = yield from quantize_in_parts(bounded, "newton", team, n_total, words)
        return replace(packed, source=gradients)
    require_countable(n_total)
    h, counts_documents = gradients.hessians, split == "least-squares"
    by_gradient, by_weight = scales(n_total, gradients.sum_bounds)
    by_weight = 0.0 if counts_documents else by_weight
    integers = np.empty(n, np.int64) if words is None else words
    largest = team.shares(n, lambda a, b: int(pack(g[a:b], h[a:b], by_gradient, by_weight, integers[a:b])))
    if min(largest) < 0:
        raise DataError(NEGATIVE_HESSIAN)
    unit = 1.0 / by_weight if by_weight else 1.0
    return QuantizedGradients(integers, 1.0 / by_gradient, unit, max(largest), counts_documents, gradients)


def _quantize_repeated(
    gradients: Floats, weights: Floats, team: Team, n_total: int, words: Ints | None
) -> Generator[Any, Any, QuantizedGradients | None]:
    """Round documents of whole weights as repeated documents, so that splits tie where those of repetitions do."""
    has_fractions, exact_total = yield Max(bool((weights != np.rint(weights)).any())), Total(ExactSum.of(weights))
    total = float(exact_total)
    if not 0 < total <= MAX_REPETITIONS or has_fractions:
        return None
    n, bounded = len(gradients), (yield from BoundedGradients.in_parts(gradients, weights, team, n_total))
    by_gradient, _ = scales(int(total), bounded.sum_bounds)  # each repetition is rounded
    single = np.divide(gradients, weights, out=np.zeros(n), where=weights > 0)
    repeated = weights * np.rint(single * by_gradient)
    integers = np.empty(n, np.int64) if words is None else words
    largest = team.shares(n, lambda a, b: int(pack(repeated[a:b], weights[a:b], 1.0, 1.0, integers[a:b])))
    return QuantizedGradients(integers, 1.0 / by_gradient, 1.0, max(largest), False, bounded)


def require_countable(n: int) -> None:
    """Raise if there are more documents than the integers of a histogram can sum."""
    if n >= MAX_DOCUMENTS:
        raise DataError(f"{n} documents are more than the integers of a histogram can sum (2^30)")


@helper
def scales(n: int, sum_bounds: tuple[float, float]) -> tuple[float, float]:
    """Return the scales of n gradients and weights for which any of their sums fits 31 and 32 bits.

    Rounding moves each by at most half a unit, so with the scale (2^31 − 1 − n) / Σ|g| the sum of |integers| is at
    most (2^31 − 1 − n) + n/2 < 2^31. A weight is rounded, and raised to 1 where it is less: the scale
    (2^32 − 1 − 2n) / Σ h keeps their sum below 2^32.
    """
    g, h = sum_bounds
    return ((2**31 - 1 - n) / g if g > TINY else 1.0), ((2**32 - 1 - 2 * n) / h if h > TINY else 0.0)


# --- kernels


@helper
def gradient_of(word: Int) -> Any:
    """Return the gradient of a packed word or of a sum of them."""
    return np.float64(np.int32(word >> 32))


@helper
def weight_of(word: Int) -> Any:
    """Return the weight of a packed word or of a sum of them."""
    return np.float64(np.uint32(word))


@helper
def shrunk(gradient: Any, l1: float) -> Any:
    """Move a sum of gradients towards 0 by l1, to 0 at most."""
    return max(gradient - l1, 0.0) + min(gradient + l1, 0.0)


@helper
def find_bounds(values: Floats, others: Floats) -> tuple[float, float, float, float]:
    """Return the largest |value| of two columns, and bounds of their sums of |values|."""
    n = len(values)
    largest, other = largest_of(values, others)
    exponent, other_exponent = exponent_of(largest, n), exponent_of(other, n)
    by, by_other = math.ldexp(1.0, exponent), math.ldexp(1.0, other_exponent)
    total, other_total = whole_sums(values, by, others, by_other)
    return largest, other, bound_of(largest, total, exponent, n), bound_of(other, other_total, other_exponent, n)


@helper
def largest_of(values: Floats, others: Floats) -> tuple[float, float]:
    """Return the largest |value| of two columns, compared as bits: infinities and NaN are above all numbers."""
    largest, other = np.int64(0), np.int64(0)
    for k in range(len(values)):
        largest = max(largest, np.float64(values[k]).view(np.int64) & np.int64(0x7FFFFFFFFFFFFFFF))
        other = max(other, np.float64(others[k]).view(np.int64) & np.int64(0x7FFFFFFFFFFFFFFF))
    return np.int64(largest).view(np.float64), np.int64(other).view(np.float64)


@helper
def whole_sums(values: Floats, by: float, others: Floats, by_other: float) -> tuple[Int, Int]:
    """Return Σ |value| · by of two columns, each term rounded to an integer."""
    total, other = np.int64(0), np.int64(0)
    for k in range(len(values)):
        total += np.int64(np.rint(abs(values[k]) * by))
        other += np.int64(np.rint(abs(others[k]) * by_other))
    return total, other


@kernel
def pack(gradients: Floats, hessians: Floats, by_gradient: float, by_weight: float, words: Ints) -> Int:
    """Round to integers and pack: gradient · 2^32 + weight, a weight at least 1; return the largest weight.

    With `by_weight` = 0 every weight is 1. Returns −1 if a hessian is negative.
    """
    largest, lowest = np.int64(0), np.int64(0)
    for row in range(len(words)):
        gradient = np.int64(np.rint(gradients[row] * by_gradient))
        rounded = np.int64(np.rint(hessians[row] * by_weight))
        weight = max(rounded, np.int64(1))
        words[row] = (gradient << 32) + weight
        largest = max(largest, weight)
        lowest = min(lowest, np.int64(hessians[row] < 0.0) * -1)
    return largest if lowest == 0 else np.int64(-1)


@helper
def total_of(words: Ints, rows: Int32s) -> Int:
    """Return the sum of the words of some rows."""
    total = np.int64(0)
    for k in range(len(rows)):
        total += words[U(rows[k])]
    return total


# The helpers that Python calls as well.
compiled_find_bounds = kernel(find_bounds)
compiled_largest_of = kernel(largest_of)
compiled_whole_sums = kernel(whole_sums)
