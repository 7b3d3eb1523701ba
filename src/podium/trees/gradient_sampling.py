"""Gradient-based sampling: splits are searched on a sample drawn in proportion to gradient size."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from podium.core.array_types import Float32s, Floats, Int, Int32s, Ints, UInt64s
from podium.core.choices import SplitMode
from podium.core.compiling import helper, kernel
from podium.core.merging import Total, alone
from podium.core.random import keyed_bits, to_unit
from podium.core.team import Team
from podium.core.threads import n_threads_for
from podium.errors import DataError
from podium.trees.growth_types import U
from podium.trees.partitioning import compiled_scatter
from podium.trees.quantization import (
    NEGATIVE_HESSIAN,
    TINY,
    BoundedGradients,
    QuantizedGradients,
    find_bounds,
    fixed_point_exponent,
    quantize,
    quantize_in_parts,
    require_countable,
    scales,
)

LEADING_BITS = 13  # documents are counted by this many bits of their importances, to find the threshold
DRAWN_AT_ONCE = 1024  # documents that are drawn at a time
# What `sample_alone` returns in place of the size of a sample: a weight is negative; importances are undefined.
NEGATIVE, UNDEFINED = -1, -2


class SamplingInputs(NamedTuple):
    """What the probabilities of documents, and sums over the sample, depend on."""

    # gradients, weights: of each document
    gradients: Floats
    weights: Floats
    unit_weights: bool  # whether every document weighs 1, whatever `weights` says
    importances: Float32s  # u of each document
    threshold: float  # μ


class GradientSampler:
    """Draws, for each tree, the documents on which splits are searched; sums over the sample are unbiased.

    The importance of a document for a split is u = √((g/ḡ)² + (h/h̄)²), where g is its gradient, h its weight, and ḡ
    and h̄ are the means of |g| and h. It is sampled with probability p = min(1, u/μ), and counts 1/p times: important
    documents are always in the sample, and a few others represent the rest. μ sets the expected size of the sample to
    `fraction`. For a given size this keeps the variance of a split's gain low (minimal variance sampling: Ibragimov and
    Gusev, NeurIPS 2019). Leaf values are computed from all documents.

    Args:
        fraction: the expected size of the sample, as a share of the documents.
        keys: a key for each document, which seeds its random numbers (`podium.data.canonical.ContentRandom`).
        split: the criterion of splits, which defines the weights.
        team: the threads.
        order: the order in which a single thread lists the sample; ascending by default.

    """

    def __init__(
        self, fraction: float, keys: UInt64s, split: SplitMode, team: Team, order: Int32s | None = None
    ) -> None:
        n = len(keys)
        self.fraction, self.keys, self.split, self.team = fraction, keys, split, team
        self.is_single_threaded = n_threads_for(n, team.n_threads) == 1
        self.importances = np.empty(n, np.float32)
        self.rows, self.buffer = np.empty(n, np.int32), np.empty(n, np.int32)
        n_alone = n if self.is_single_threaded else 0
        self.counts, self.factors = np.empty(1 << LEADING_BITS, np.int64), np.empty(n_alone)
        self.order = np.arange(n_alone, dtype=np.int32) if order is None else order

    def quantize(
        self,
        gradients: Floats,
        hessians: Floats,
        seed: np.uint64,
        words: Ints | None = None,
        weights: Floats | None = None,
    ) -> QuantizedGradients:
        """Find the bounds of gradients, draw a sample and round it to integers.

        Args:
            gradients, hessians: the gradient and hessian of each document.
            seed: the seed of the random numbers.
            words, weights: see `quantization.quantize`.

        """
        if self.is_single_threaded and (weights is None or self.split == "newton"):
            return self._quantize_alone(gradients, hessians, seed, words)
        bounded = BoundedGradients.of(gradients, hessians, self.team)
        return alone(self.quantize_in_parts(bounded, seed, words, weights, len(self.keys)))

    def quantize_in_parts(
        self, gradients: BoundedGradients, seed: np.uint64, words: Ints | None, weights: Floats | None,
        n_total: int,
    ) -> Generator[Any, Any, QuantizedGradients]:  # fmt: skip
        """Sample and round a part of `n_total` documents; `largest_weight` of the result is that of the part."""
        unit_weights, bounded = self.split == "least-squares" and weights is None, gradients
        if self.split == "least-squares" and weights is not None:
            bounded = yield from BoundedGradients.in_parts(gradients.gradients, weights, self.team, n_total)
        quantized = yield from self._quantize(bounded, seed, words, unit_weights, n_total)
        return quantized if bounded is gradients else replace(quantized, source=gradients)

    def _quantize(
        self, gradients: BoundedGradients, seed: np.uint64, words: Ints | None, unit_weights: bool,
        n_total: int,
    ) -> Generator[Any, Any, QuantizedGradients]:  # fmt: skip
        n, team = len(self.keys), self.team
        require_countable(n_total)
        sums = gradients.sum_bounds[0], (float(n_total) if unit_weights else gradients.sum_bounds[1])
        if min(sums) <= TINY:  # importances are undefined
            split: SplitMode = "least-squares" if unit_weights else "newton"
            return (yield from quantize_in_parts(gradients, split, team, n_total, words))
        counts = yield Total(self._count_importances(gradients, sums, unit_weights, n_total))
        threshold = float(compiled_sampling_threshold(counts, self.fraction * n_total))
        documents = SamplingInputs(gradients.gradients, gradients.hessians, unit_weights, self.importances, threshold)
        exponents = exponents_of_sample(*gradients.largest, *sums, threshold, n_total, unit_weights)
        sampled, unsampled, sample_sums = self._draw(documents, exponents, seed)
        totals = yield Total(sample_sums)
        bounds = (math.ldexp(total + n_total, -exponent) for total, exponent in zip(totals, exponents, strict=True))
        gradient_scale, weight_scale = scales(n_total, tuple(bounds))  # type: ignore[arg-type]
        packed = np.empty(n, np.int64) if words is None else words
        largest = team.shares(
            len(sampled),
            lambda a, b: int(compiled_pack_sample(documents, sampled[a:b], gradient_scale, weight_scale, packed)),
        )
        unit = 1.0 / weight_scale if weight_scale else 1.0
        return QuantizedGradients(
            packed, 1.0 / gradient_scale, unit, max(largest), False, gradients, sampled, unsampled
        )

    def _quantize_alone(
        self, gradients: Floats, hessians: Floats, seed: np.uint64, words: Ints | None
    ) -> QuantizedGradients:
        """Sample and round in one kernel, for one thread."""
        n, unit_weights = len(self.keys), self.split == "least-squares"
        require_countable(n)
        packed = np.empty(n, np.int64) if words is None else words
        size, largest, gradient_scale, weight_scale, g_largest, h_largest, g_bound, h_bound = sample_alone(
            SamplingInputs(gradients, hessians, unit_weights, self.importances, 0.0), self.fraction * n, self.keys,
            seed, self.counts, self.factors, self.order, self.rows, packed,
        )  # fmt: skip
        bounded = BoundedGradients(gradients, hessians, (g_largest, h_largest), (g_bound, h_bound))
        bounded.require_finite()
        if size == NEGATIVE:
            raise DataError(NEGATIVE_HESSIAN)
        if size == UNDEFINED:
            return quantize(bounded, self.split, self.team, words)
        unit, rows = 1.0 / weight_scale if weight_scale else 1.0, self.rows
        return QuantizedGradients(packed, 1.0 / gradient_scale, unit, largest, False, bounded, rows[:size], rows[size:])

    def _count_importances(
        self, gradients: BoundedGradients, sums: tuple[float, float], unit_weights: bool, n_total: int
    ) -> Ints:
        """Compute the importance of every document; count documents by the leading bits of their importances."""
        n, g, h = len(self.keys), gradients.gradients, gradients.hessians
        factors = n_total / sums[0], n_total / sums[1]

        def compute(a: int, b: int) -> Ints:
            counts = np.zeros(1 << LEADING_BITS, np.int64)
            importances = self.importances[a:b]
            if compiled_compute_importances(g[a:b], h[a:b], unit_weights, *factors, importances, counts) < 0:
                raise DataError(NEGATIVE_HESSIAN)
            return counts

        shares = self.team.shares(n, compute)
        counts: Ints = shares[0] if len(shares) == 1 else np.sum(shares, 0)
        return counts

    def _draw(
        self, documents: SamplingInputs, exponents: tuple[int, int], seed: np.uint64
    ) -> tuple[Int32s, Int32s, tuple[int, int]]:
        """Return the rows of the sample and the others, both ascending, and Σ|g|/p and Σh/p in fixed point."""
        n, team = len(self.keys), self.team
        gradient_scale, weight_scale = (math.ldexp(1.0, exponent) for exponent in exponents)

        def draw(a: int, b: int) -> tuple[int, int, int, int, int]:
            size, gradient_sum, weight_sum = compiled_draw_sample(
                documents, self.keys, seed, a, b, gradient_scale, weight_scale, self.buffer
            )
            return a, b, size, gradient_sum, weight_sum

        shares = team.shares(n, draw)
        starts, ends, sizes, gradient_sums, weight_sums = zip(*shares, strict=True)
        before = [sum(sizes[:k]) for k in range(len(sizes) + 1)]

        def scatter(k: int) -> None:
            to_unsampled = before[-1] + starts[k] - before[k]
            compiled_scatter(self.buffer, starts[k], ends[k], sizes[k], self.rows, before[k], to_unsampled)

        team.each(len(shares), scatter)
        return self.rows[: before[-1]], self.rows[before[-1] :], (sum(gradient_sums), sum(weight_sums))


@helper
def exponents_of_sample(
    largest: float, largest_weight: float, gradient_sum: float, weight_sum: float, threshold: float, n: int,
    unit_weights: bool,
) -> tuple[int, int]:  # fmt: skip
    """Return the exponents of powers of two for sums over a sample in fixed point.

    Divided by p = u/μ, a gradient is at most μ ḡ, because u ≥ g/ḡ, and a weight at most μ h̄. The factor 2 allows for
    rounding.
    """
    highest = max(largest, 2 * threshold * gradient_sum / n)
    highest_weight = max(1.0 if unit_weights else largest_weight, 2 * threshold * weight_sum / n)
    return fixed_point_exponent(highest, n), fixed_point_exponent(highest_weight, n)


# --- kernels


@helper
def sampling_threshold(counts: Ints, expected_size: float) -> Any:
    """Return the importance μ with Σ min(1, u/μ) = `expected_size`, from counts of documents by the leading bits of u.

    Let u_0 < u_1 < … be the importances that occur. For a μ with u_{k−1} ≤ μ ≤ u_k the sum is (Σ_{u < u_k} u) / μ plus
    the number of documents with u ≥ u_k. Find the k at which it falls to the expected size, then solve for μ.
    """
    shift, n_from = 31 - LEADING_BITS, np.int64(0)
    for leading in range(len(counts)):
        n_from += counts[leading]
    sum_below, highest = 0.0, np.inf  # μ cannot be higher, apart from rounding
    for leading in range(len(counts)):
        if counts[leading]:
            u = np.float64(np.int32((leading << shift) + (1 << (shift - 1))).view(np.float32))
            if sum_below / u + n_from <= expected_size:
                highest = u
                break
            sum_below += counts[leading] * u
            n_from -= counts[leading]
    if expected_size - n_from <= sum_below / highest:
        return highest
    return sum_below / (expected_size - n_from)


@helper
def compute_importances(
    gradients: Floats, weights: Floats, unit_weights: bool, gradient_scale: float, weight_scale: float,
    importances: Float32s, counts: Ints,
) -> Int:  # fmt: skip
    """Write √(gradient² + weight²) of each document, both scaled, and count documents by its leading bits.

    Every weight is 1 if `unit_weights` is set. Return a negative number if a weight is negative.
    """
    lowest = np.int64(0)
    for k in range(len(importances)):
        weight = 1.0 if unit_weights else weights[k]
        lowest = min(lowest, np.int64(weight < 0.0) * -1)
        gradient = gradients[k] * gradient_scale
        weight *= weight_scale
        importances[k] = np.float32(math.sqrt(gradient * gradient + weight * weight))
    for k in range(len(importances)):
        counts[np.float32(importances[k]).view(np.int32) >> (31 - LEADING_BITS)] += 1
    return lowest


@helper
def _inverse_probability(importance: Any, threshold: float) -> Any:
    """Return 1/p for a document that is sampled with probability p = min(1, importance / threshold)."""
    return max(threshold / np.float64(importance), 1.0)


@helper
def draw_sample(
    documents: SamplingInputs, keys: UInt64s, seed: Any, first: Int, last: Int, gradient_scale: float,
    weight_scale: float, rows: Int32s,
) -> tuple[Int, Int, Int]:  # fmt: skip
    """Draw the sample of the rows first … last − 1; return its size, and the sums of |gradient|/p and weight/p.

    The sums are in fixed point, as in `whole_sums`, and are unbiased estimates of the sums over all documents. Sampled
    rows are written to the front of rows[first:last], ascending, the others to its end, descending.
    """
    left, right = first, last - 1
    total, weight = np.int64(0), np.int64(0)
    factors = np.empty(DRAWN_AT_ONCE)
    for start in range(first, last, DRAWN_AT_ONCE):  # three inner loops, because two of them vectorize
        begin, m = U(start), U(min(DRAWN_AT_ONCE, last - start))
        _fill_factors(documents, keys, seed, begin, m, factors)
        for k in range(m):
            is_sampled = np.int64(factors[k] > 0.0)
            rows[U(left)] = begin + k
            rows[U(right)] = begin + k
            left += is_sampled
            right -= 1 - is_sampled
        gradient_sum, weight_sum = _sums_of_sample(documents, begin, m, factors, gradient_scale, weight_scale)
        total += gradient_sum
        weight += weight_sum
    return left - first, total, weight


@helper
def _fill_factors(documents: SamplingInputs, keys: UInt64s, seed: Any, begin: Any, n: Any, factors: Floats) -> None:
    """Draw a sample of n rows: write 1/p of each row in it, and 0 for the others."""
    importances, threshold = documents.importances, documents.threshold
    for k in range(n):
        p = np.float64(importances[begin + k]) / threshold
        is_sampled = to_unit(keyed_bits(keys[begin + k], seed)) < p
        factors[k] = _inverse_probability(importances[begin + k], threshold) if is_sampled else 0.0


@helper
def _sums_of_sample(
    documents: SamplingInputs, begin: Any, n: Any, factors: Floats, gradient_scale: float, weight_scale: float
) -> tuple[Int, Int]:
    """Return Σ |gradient|/p and Σ weight/p of n rows in fixed point; `factors` are the 1/p of `_fill_factors`."""
    gradients, weights, unit_weights = documents.gradients, documents.weights, documents.unit_weights
    total, weight = np.int64(0), np.int64(0)
    for k in range(n):
        total += np.int64(np.rint(abs(gradients[begin + k]) * factors[k] * gradient_scale))
        weight += np.int64(np.rint((1.0 if unit_weights else weights[begin + k]) * factors[k] * weight_scale))
    return total, weight


@helper
def _packed(gradient: Any, weight: Any, factor: Any, gradient_scale: float, weight_scale: float) -> tuple[Int, Int]:
    """Return a gradient and a weight, both times a factor, as a packed word (`quantization.pack`), and its weight."""
    whole = max(np.int64(np.rint(weight * factor * weight_scale)), np.int64(1))
    return (np.int64(np.rint(gradient * factor * gradient_scale)) << 32) + whole, whole


@helper
def pack_sample(
    documents: SamplingInputs, sampled: Int32s, gradient_scale: float, weight_scale: float, words: Ints
) -> Int:
    """Pack the rows of the sample as `quantization.pack` does, each divided by its probability p.

    Return the largest weight.
    """
    gradients, weights, unit_weights = documents.gradients, documents.weights, documents.unit_weights
    largest = np.int64(0)
    for k in range(len(sampled)):
        row = U(sampled[k])
        factor = _inverse_probability(documents.importances[row], documents.threshold)
        words[row], weight = _packed(
            gradients[row], 1.0 if unit_weights else weights[row], factor, gradient_scale, weight_scale
        )
        largest = max(largest, weight)
    return largest


@helper
def _pack_with_factors(
    documents: SamplingInputs, factors: Floats, gradient_scale: float, weight_scale: float, words: Ints
) -> Int:
    """Pack all rows by their factors 1/p; return the largest weight. Words outside the sample have no meaning."""
    gradients, weights, unit_weights = documents.gradients, documents.weights, documents.unit_weights
    largest = np.int64(0)
    for row in range(U(len(words))):
        words[row], weight = _packed(
            gradients[row], 1.0 if unit_weights else weights[row], factors[row], gradient_scale, weight_scale
        )
        largest = max(largest, weight)
    return largest


@helper
def _list_sample(factors: Floats, order: Int32s, rows: Int32s) -> Int:
    """Write the rows of the sample to the front of `rows`, in `order`, the others to its end; return its size."""
    left, right = 0, len(order) - 1
    for k in range(U(len(order))):
        row = order[k]
        is_sampled = int(factors[U(row)] > 0.0)
        rows[U(left)] = row
        rows[U(right)] = row
        left += is_sampled
        right -= 1 - is_sampled
    return left


@kernel
def sample_alone(
    documents: SamplingInputs, expected_size: float, keys: UInt64s, seed: Any, counts: Ints, factors: Floats,
    order: Int32s, rows: Int32s, words: Ints,
) -> tuple[Int, Int, float, float, float, float, float, float]:  # fmt: skip
    """Find the bounds of gradients, draw a sample and round it to integers, on one thread.

    On small data one compiled call is faster than the separate steps of `BoundedGradients` and `GradientSampler`, which
    several threads take. The results are the same, except that the sample is listed in `order`.

    Returns:
        The size of the sample, the largest weight, the scales of gradients and weights, and the four bounds.

    """
    gradients, weights, unit_weights = documents.gradients, documents.weights, documents.unit_weights
    importances, n = documents.importances, len(keys)
    largest, largest_weight, gradient_bound, weight_bound = find_bounds(gradients, weights)
    weight_sum = float(n) if unit_weights else weight_bound
    none = np.int64(0)
    if not (largest < math.inf and largest_weight < math.inf and min(gradient_bound, weight_sum) > TINY):
        return np.int64(UNDEFINED), none, 0.0, 0.0, largest, largest_weight, gradient_bound, weight_bound
    for leading in range(len(counts)):
        counts[leading] = 0
    gradient_factor, weight_factor = n / gradient_bound, n / weight_sum
    if compute_importances(gradients, weights, unit_weights, gradient_factor, weight_factor, importances, counts) < 0:
        return np.int64(NEGATIVE), none, 0.0, 0.0, largest, largest_weight, gradient_bound, weight_bound
    threshold = sampling_threshold(counts, expected_size)
    documents = SamplingInputs(gradients, weights, unit_weights, importances, threshold)
    exponents = exponents_of_sample(largest, largest_weight, gradient_bound, weight_sum, threshold, n, unit_weights)
    powers = math.ldexp(1.0, exponents[0]), math.ldexp(1.0, exponents[1])
    _fill_factors(documents, keys, seed, U(0), U(n), factors)
    size = _list_sample(factors, order, rows)
    total, weight = _sums_of_sample(documents, U(0), U(n), factors, powers[0], powers[1])
    bounds = math.ldexp(float(total + n), -exponents[0]), math.ldexp(float(weight + n), -exponents[1])
    gradient_scale, weight_scale = scales(n, bounds)
    largest_packed = _pack_with_factors(documents, factors, gradient_scale, weight_scale, words)
    return size, largest_packed, gradient_scale, weight_scale, largest, largest_weight, gradient_bound, weight_bound


# The helpers that Python code also calls.
compiled_sampling_threshold = kernel(sampling_threshold)
compiled_compute_importances = kernel(compute_importances)
compiled_draw_sample = kernel(draw_sample)
compiled_pack_sample = kernel(pack_sample)
