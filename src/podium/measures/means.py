"""Means that do not depend on the order of what is averaged."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def mean(values: NDArray[np.float64]) -> float:
    """The mean, from an exactly rounded sum; NaN for no values."""
    return math.fsum(values) / len(values) if len(values) else math.nan
