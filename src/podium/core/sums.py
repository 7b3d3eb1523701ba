"""Sums that do not depend on the order of their terms."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Floats, Ints
from podium.errors import DataError

UNIT_EXPONENT = 1126  # 2^-1126 is 53 bits below the smallest float64
HALF_BITS = 26  # of the 53 bits of a number, so that sums of halves fit into int64


def mean(values: Floats) -> float:
    """Return the mean, from an exactly rounded sum; NaN without values."""
    return math.fsum(values.tolist()) / len(values) if len(values) else math.nan


def mean_of_known(values: Floats, weights: Floats | None = None) -> float:
    """Return the mean of the values that are not NaN; with weights Σ w v / Σ w, NaN if no weight is positive."""
    if weights is not None:
        is_known = ~np.isnan(values)
        total_weight = math.fsum(weights[is_known].tolist())
        return math.fsum((weights * values)[is_known].tolist()) / total_weight if total_weight > 0 else math.nan
    numbers = values.tolist()
    total = math.fsum(numbers)
    if math.isnan(total):
        numbers = [number for number in numbers if not math.isnan(number)]
        total = math.fsum(numbers)
    return total / len(numbers) if numbers else math.nan


def with_weights(values: Floats, weights: Floats | None) -> Floats:
    """Return m + (v − m) w / mean(w), whose plain mean and standard error are those of the weighted mean m.

    The standard error is the linearized one of a ratio of two sums. The result is empty if no weight is positive.
    """
    if weights is None:
        return values
    if not weights.sum() > 0:
        return values[:0]
    weighted_mean = mean_of_known(values, weights)
    return np.asarray(weighted_mean + (values - weighted_mean) * (weights / mean(weights)))


@dataclass(frozen=True)
class ExactSum:
    """An exact sum over a part of the data; `+` adds the sums of two parts, and `float` rounds once.

    The result equals `math.fsum` of all values, however they are divided into parts.

    Example:
        >>> import numpy as np
        >>> float(ExactSum.of(np.array([1e100, 1.0])) + ExactSum.of(np.array([-1e100])))
        1.0

    """

    units: int  # of 2^-1126

    @classmethod
    def of(cls, values: Floats) -> ExactSum:
        """Return the sum of finite numbers."""
        if not np.isfinite(values).all():
            raise DataError("a sum over all documents has a term that is not finite: check labels, weights and scores")
        mantissas, exponents = np.frexp(np.asarray(values, np.float64))
        whole, total = np.ldexp(mantissas, 53).astype(np.int64), 0
        for exponent in np.unique(exponents).tolist():
            group = whole[exponents == exponent]
            upper, lower = int((group >> HALF_BITS).sum()), int((group & ((1 << HALF_BITS) - 1)).sum())
            total += ((upper << HALF_BITS) + lower) << (exponent - 53 + UNIT_EXPONENT)
        return cls(total)

    def __add__(self, other: ExactSum) -> ExactSum:
        return ExactSum(self.units + other.units)

    def __float__(self) -> float:
        return self.units / (1 << UNIT_EXPONENT)


def total(values: Floats) -> float:
    """Return the sum of many values, each rounded to a multiple of 2^-62 of the largest possible sum."""
    largest = float(np.abs(values).max(initial=0.0)) * len(values)
    if not largest > 0:
        return 0.0
    exponent = 62 - math.frexp(largest)[1]
    return math.ldexp(float(np.rint(np.ldexp(values, exponent)).astype(np.int64).sum()), -exponent)


class GroupSums:
    """Sums of values by group, in int64 fixed point."""

    def __init__(self, groups: NDArray[np.integer], n_groups: int) -> None:
        self.order = np.argsort(groups, kind="stable")
        counts = np.bincount(groups, minlength=n_groups)
        self.present = np.flatnonzero(counts)
        self.starts = (np.cumsum(counts) - counts)[self.present]
        self.n_groups = n_groups

    def whole(self, values: Floats, exponent: int) -> Ints:
        """Return the sum of each group: each value times 2^exponent is rounded to an integer."""
        sums = np.zeros(self.n_groups, np.int64)
        whole = np.rint(np.ldexp(values[self.order], exponent)).astype(np.int64)
        sums[self.present] = np.add.reduceat(whole, self.starts)
        return sums


def group_exponent(largest: float, n: int) -> int:
    """Return an exponent for `GroupSums.whole` at which n values up to `largest` do not overflow; 0 if all are 0."""
    return 62 - math.frexp(largest * n)[1] if largest * n > 0 else 0
