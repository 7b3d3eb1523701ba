"""Sums that do not depend on the order of what is summed."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def mean(values: Floats) -> float:
    """The mean, from an exactly rounded sum; NaN for no values."""
    return math.fsum(values.tolist()) / len(values) if len(values) else math.nan


def mean_of_known(values: Floats) -> float:
    """The same of the values that are not NaN."""
    numbers = values.tolist()
    total = math.fsum(numbers)
    if math.isnan(total):
        numbers = [number for number in numbers if not math.isnan(number)]
        total = math.fsum(numbers)
    return total / len(numbers) if numbers else math.nan


def total(values: Floats) -> float:
    """Σ of all, each value rounded to a multiple of 2^-62 of what all could sum to: for many values."""
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

    def __call__(self, values: Floats) -> Floats:
        """Σ of each group, each value rounded to a multiple of 2^-62 of what all could sum to."""
        sums = np.zeros(self.n_groups)
        largest = float(np.abs(values).max(initial=0.0)) * len(values)
        if largest > 0:
            exponent = 62 - math.frexp(largest)[1]
            whole = np.rint(np.ldexp(values[self.order], exponent)).astype(np.int64)
            sums[self.present] = np.ldexp(np.add.reduceat(whole, self.starts).astype(np.float64), -exponent)
        return sums
