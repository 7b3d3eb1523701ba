"""Compiled resampling."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.core.compiling import kernel
from podium.core.random import random_bits

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]
Int = Any  # an integer, compiled as int64


@kernel
def sign_flips(differences: Ints, keys: Words, first_word: Int, sums: NDArray[np.int64]) -> None:
    """Sums of the differences under random signs, 64 resamples a word.

    Integers: the sums are exact, so that those equal to the observed one are found equal. The signs come
    from the queries' keys: the order of the queries does not matter.
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


@kernel
def bootstrap_means(values: NDArray[np.float64], key: np.uint64, first: Int, means: NDArray[np.float64]) -> None:
    """Means of as many values drawn with replacement."""
    n = len(values)
    for b in range(len(means)):
        total = 0.0
        for k in range(n):
            bits = random_bits(key, np.uint64((first + b) * n + k))
            total += values[np.int64((bits >> np.uint64(32)) * np.uint64(n) >> np.uint64(32))]
        means[b] = total / n
