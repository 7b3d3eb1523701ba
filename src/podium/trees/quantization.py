"""Round gradients and hessians to integers, because sums of integers are exact in any order.

A gradient and a weight are packed into one word, gradient · 2^32 + weight, so that a histogram cell sums both with one
addition. The weight is the hessian for Newton splits, and 1 for least-squares splits. Every document weighs at least 1,
so a cell without weight has no documents.
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
MAX_REPETITIONS = 2**24  # maximum sum of whole weights: more would leave too few bits for gradients
MAX_DOCUMENTS = 2**30  # on all machines together: `scales` reserves 2 of 2^32 units for the rounding of each document
TINY = 1e-290  # a sum up to this counts as 0, because its inverse would overflow


@dataclass(frozen=True)
class BoundedGradients:
    """Gradients and hessians of all documents, and the bounds that determine the scales of integers."""

    # gradients, hessians: λ and w of each document
    gradients: Floats
    hessians: Floats
    largest: tuple[float, float]  # the largest |gradient| and |hessian|
    # tight upper bounds of the sums of absolute values, independent of the order of documents
    sum_bounds: tuple[float, float]

    @classmethod
    def of(cls, gradients: Floats, hessians: Floats, team: Team) -> BoundedGradients:
        """Find the bounds of gradients and hessians; raise if one is not finite.

        The last bits of a floating-point sum depend on the order of terms, and so would the scale of all integers.
        Therefore values are rounded to multiples of a power of two near 2^-62 · n · max|v|, whose integer sum cannot
        overflow, and one unit is added for each rounding.
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
        g_largest, h_largest = yield Max(tuple(map(max, zip(*largest, strict=True))))
        g_exponent, h_exponent = exponent_of(g_largest, n_total), exponent_of(h_largest, n_total)
        g_scale, h_scale = math.ldexp(1.0, g_exponent), math.ldexp(1.0, h_exponent)
        shares = team.shares(n, lambda a, b: compiled_whole_sums(gradients[a:b], g_scale, hessians[a:b], h_scale))
        sums = yield Total(tuple(map(sum, zip(*shares, strict=True))))
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
    """Return an upper bound of a sum of |values|, from their sum in fixed point: add one unit for each rounding."""
    return math.ldexp(float(whole_sum + n), -exponent) if largest >= TINY else 0.0


@dataclass(frozen=True)
class QuantizedGradients:
    """Gradients and weights as packed integers."""

    words: Ints  # gradient · 2^32 + weight of each document; with a sample, only the words of sampled documents count
    # gradient_unit, weight_unit: the value of the integer 1
    gradient_unit: float
    weight_unit: float
    largest_weight: int  # as an integer
    counts_documents: bool  # whether every weight is 1, so that sums of weights count documents; False with a sample
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
        gradients: the gradients and hessians, with the bounds of their sums.
        split: whether hessians are the weights (`"newton"`), or every document weighs 1 (`"least-squares"`).
        team: the threads; one by default.
        words: where to write the packed integers; a new array by default.
        weights: how often each document counts in least squares; once by default.

    """
    n = len(gradients.gradients)
    return alone(quantize_in_parts(gradients, split, team or Team(1), n, words, weights))


def quantize_in_parts(
    gradients: BoundedGradients, split: SplitMode, team: Team, n_total: int, words: Ints | None = None,
    weights: Floats | None = None,
) -> Generator[Any, Any, QuantizedGradients]:  # fmt: skip
    """Round a part of `n_total` documents; `largest_weight` of the result is that of the part."""
    g, n = gradients.gradients, len(gradients.gradients)
    if weights is not None and split == "least-squares":
        packed = yield from _quantize_repeated(g, weights, team, n_total, words)
        if packed is None:
            bounded = yield from BoundedGradients.in_parts(g, weights, team, n_total)
            packed = yield from quantize_in_parts(bounded, "newton", team, n_total, words)
        return replace(packed, source=gradients)
    require_countable(n_total)
    h, counts_documents = gradients.hessians, split == "least-squares"
    gradient_scale, weight_scale = scales(n_total, gradients.sum_bounds)
    weight_scale = 0.0 if counts_documents else weight_scale
    integers = np.empty(n, np.int64) if words is None else words
    largest = team.shares(n, lambda a, b: int(pack(g[a:b], h[a:b], gradient_scale, weight_scale, integers[a:b])))
    if min(largest) < 0:
        raise DataError(NEGATIVE_HESSIAN)
    unit = 1.0 / weight_scale if weight_scale else 1.0
    return QuantizedGradients(integers, 1.0 / gradient_scale, unit, max(largest), counts_documents, gradients)


def _quantize_repeated(
    gradients: Floats, weights: Floats, team: Team, n_total: int, words: Ints | None
) -> Generator[Any, Any, QuantizedGradients | None]:
    """Round documents with whole weights as repeated documents, so that splits tie exactly where repetitions would.

    Return None if a weight is not whole, or if their sum is too large.
    """
    has_fractions, exact_total = yield Max(bool((weights != np.rint(weights)).any())), Total(ExactSum.of(weights))
    total = float(exact_total)
    if not 0 < total <= MAX_REPETITIONS or has_fractions:
        return None
    n, bounded = len(gradients), (yield from BoundedGradients.in_parts(gradients, weights, team, n_total))
    gradient_scale, _ = scales(int(total), bounded.sum_bounds)  # each repetition is rounded
    single = np.divide(gradients, weights, out=np.zeros(n), where=weights > 0)
    repeated = weights * np.rint(single * gradient_scale)
    integers = np.empty(n, np.int64) if words is None else words
    largest = team.shares(n, lambda a, b: int(pack(repeated[a:b], weights[a:b], 1.0, 1.0, integers[a:b])))
    return QuantizedGradients(integers, 1.0 / gradient_scale, 1.0, max(largest), False, bounded)


def require_countable(n: int) -> None:
    """Raise if there are more documents than the integers of a histogram can sum."""
    if n >= MAX_DOCUMENTS:
        raise DataError(f"{n} documents are more than the integers of a histogram can sum (2^30)")


@helper
def scales(n: int, sum_bounds: tuple[float, float]) -> tuple[float, float]:
    """Return the scales of n gradients and n weights at which sums of gradients fit 31 bits, and sums of weights 32.

    Rounding moves each value by at most half a unit, so with the scale (2^31 − 1 − n) / Σ|g| the sum of |integers| is
    at most (2^31 − 1 − n) + n/2 < 2^31. A weight is rounded, and raised to 1 if it is less. The scale
    (2^32 − 1 − 2n) / Σ h keeps the sum of weights below 2^32.
    """
    g, h = sum_bounds
    return ((2**31 - 1 - n) / g if g > TINY else 1.0), ((2**32 - 1 - 2 * n) / h if h > TINY else 0.0)


# --- kernels


@helper
def gradient_of(word: Int) -> Any:
    """Return the gradient of a packed word, or of a sum of packed words."""
    return np.float64(np.int32(word >> 32))


@helper
def weight_of(word: Int) -> Any:
    """Return the weight of a packed word, or of a sum of packed words."""
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
    scale, other_scale = math.ldexp(1.0, exponent), math.ldexp(1.0, other_exponent)
    total, other_total = whole_sums(values, scale, others, other_scale)
    return largest, other, bound_of(largest, total, exponent, n), bound_of(other, other_total, other_exponent, n)


@helper
def largest_of(values: Floats, others: Floats) -> tuple[float, float]:
    """Return the largest |value| of two columns, compared as bits, so that infinities and NaN are above all numbers."""
    largest, other = np.int64(0), np.int64(0)
    for k in range(len(values)):
        largest = max(largest, np.float64(values[k]).view(np.int64) & np.int64(0x7FFFFFFFFFFFFFFF))
        other = max(other, np.float64(others[k]).view(np.int64) & np.int64(0x7FFFFFFFFFFFFFFF))
    return np.int64(largest).view(np.float64), np.int64(other).view(np.float64)


@helper
def whole_sums(values: Floats, scale: float, others: Floats, other_scale: float) -> tuple[Int, Int]:
    """Return Σ |value| · scale of two columns, each term rounded to an integer."""
    total, other = np.int64(0), np.int64(0)
    for k in range(len(values)):
        total += np.int64(np.rint(abs(values[k]) * scale))
        other += np.int64(np.rint(abs(others[k]) * other_scale))
    return total, other


@kernel
def pack(gradients: Floats, hessians: Floats, gradient_scale: float, weight_scale: float, words: Ints) -> Int:
    """Round to integers and pack: gradient · 2^32 + weight, where weights are at least 1; return the largest weight.

    If `weight_scale` is 0, every weight is 1. Return −1 if a hessian is negative.
    """
    largest, lowest = np.int64(0), np.int64(0)
    for row in range(len(words)):
        gradient = np.int64(np.rint(gradients[row] * gradient_scale))
        rounded = np.int64(np.rint(hessians[row] * weight_scale))
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


# The helpers that Python code also calls.
compiled_find_bounds = kernel(find_bounds)
compiled_largest_of = kernel(largest_of)
compiled_whole_sums = kernel(whole_sums)
