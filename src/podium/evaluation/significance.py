"""Confidence intervals and significance tests on per-query values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from podium.core.array_types import Floats, Int, Ints, UInt64s
from podium.core.compiling import kernel
from podium.core.random import random_bits, seed_of
from podium.core.sums import mean
from podium.core.threads import for_ranges, map_threads, ranges
from podium.core.validation import require_number, require_whole

FIXED_POINT = 2.0**40  # scale of per-query differences as integers: 2^22 queries with differences up to 1 fit


def t_interval(values: Floats) -> tuple[float, float]:
    """Return Student's 95% interval of the mean."""
    from scipy import stats

    if len(values) < 2:
        return math.nan, math.nan
    middle = mean(values)
    half = stats.t.ppf(0.975, len(values) - 1) * standard_error(values, middle)
    return float(middle - half), float(middle + half)


def standard_error(values: Floats, middle: float) -> float:
    """Return the standard error of a mean, given the mean."""
    n = len(values)
    return math.sqrt(math.fsum((values - middle) ** 2) / (n - 1) / n)


def bootstrap_interval(
    values: Floats, confidence: float = 0.95, resamples: int = 10_000, seed: int = 0
) -> tuple[float, float]:
    """Return the percentile interval of the means of values drawn with replacement."""
    require_whole("resamples", resamples, 1)
    require_number("confidence", confidence, above=0, below=1)
    if len(values) < 2:
        return math.nan, math.nan
    ordered = np.sort(values)  # so that the order of queries does not matter
    key = seed_of("bootstrap", seed)
    means = np.empty(resamples)
    for_ranges(resamples, lambda first, last: bootstrap_means(ordered, key, first, means[first:last]), smallest=16)
    low, high = np.quantile(means, [0.5 - confidence / 2, 0.5 + confidence / 2])
    return float(low), float(high)


@kernel
def bootstrap_means(values: Floats, key: np.uint64, first: Int, means: Floats) -> None:
    """Compute means of values drawn with replacement."""
    n = len(values)
    for b in range(len(means)):
        total = 0.0
        for k in range(n):
            bits = random_bits(key, np.uint64((first + b) * n + k))  # of which the upper 32 are scaled to 0 … n − 1
            total += values[np.int64((bits >> np.uint64(32)) * np.uint64(n) >> np.uint64(32))]
        means[b] = total / n


def paired_t(differences: Floats) -> float:
    """Return the two-sided p of Student's paired t-test, whose null hypothesis is that the mean is 0."""
    from scipy import stats

    if len(differences) < 2:
        return math.nan
    middle = mean(differences)
    error = standard_error(differences, middle)
    if error == 0:
        return 1.0 if middle == 0 else 0.0
    return float(2 * stats.t.sf(abs(middle / error), len(differences) - 1))


def equivalence(differences: Floats, margin: float) -> float:
    """Return the p of two one-sided t-tests (TOST, Schuirmann 1987); if it is small, the mean is within ±margin."""
    from scipy import stats

    require_number("margin", margin, above=0)
    if len(differences) < 2:
        return math.nan
    middle = mean(differences)
    error = standard_error(differences, middle)
    if error == 0:
        return 0.0 if abs(middle) < margin else 1.0
    freedom = len(differences) - 1
    above = stats.t.sf((middle + margin) / error, freedom)  # against a mean of −margin or less
    below = stats.t.cdf((middle - margin) / error, freedom)  # against a mean of margin or more
    return float(max(above, below))


def randomization(differences: Floats, query_ids: Sequence[Any], resamples: int = 100_000, seed: int = 0) -> float:
    """Return the two-sided p of Fisher's randomization test: how often random signs give as large a mean.

    The observed signs count as one of the resamples, so p is never 0.
    """
    require_whole("resamples", resamples, 1)
    if len(differences) == 0:
        return math.nan
    scale = FIXED_POINT / max(1.0, float(np.abs(differences).max()))
    fixed = np.rint(differences * scale).astype(np.int64)
    keys = np.array([seed_of(seed, query) for query in query_ids], np.uint64)
    words = -(-resamples // 64)
    observed = abs(int(fixed.sum()))

    def count(bounds: tuple[int, int]) -> int:
        sums = np.empty((bounds[1] - bounds[0], 64), np.int64)
        sign_flips(fixed, keys, bounds[0], sums)
        return int((np.abs(sums) >= observed).sum())

    extreme = sum(map_threads(count, ranges(words, smallest=8)))
    return (1 + extreme) / (1 + 64 * words)


@kernel
def sign_flips(differences: Ints, keys: UInt64s, first_word: Int, sums: Ints) -> None:
    """Compute sums of the differences with random signs, 64 resamples per word.

    Integer sums are exact, so that a sum equal to the observed one is recognized. The signs depend on the queries'
    keys, so the order of queries does not matter.
    """
    for word in range(sums.shape[0]):
        for k in range(64):
            sums[word, k] = 0
        for q in range(len(differences)):
            bits = random_bits(keys[q], np.uint64(first_word + word))
            d = differences[q]
            for k in range(64):
                flip = np.int64((bits >> np.uint64(k)) & np.uint64(1))
                sums[word, k] += d - 2 * d * flip


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected for their number (Holm 1979), to compare with the familywise level."""
    order = sorted((k for k, p in enumerate(p_values) if not math.isnan(p)), key=lambda k: p_values[k])
    corrected = [math.nan] * len(p_values)  # tests that could not be computed do not count
    highest = 0.0
    for rank, k in enumerate(order):
        highest = max(highest, min(1.0, (len(order) - rank) * p_values[k]))
        corrected[k] = highest
    return corrected
