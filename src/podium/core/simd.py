"""SIMD: explicit vectors of 16 single-precision numbers, or of 8 words, where the compiler would not vectorize.

A vectorized sum has an accumulator for each lane, and adds them up at the end. A compiler that must not reorder
additions does not create these accumulators. Explicit lanes fix the order of additions, so the result is the same on
every machine. If the machine's vectors are shorter, LLVM splits them.

In a kernel, lanes support `+ - * /` and `< > ==`. They are values: `a = a + b` compiles, but `a += b` does not, because
it would change an array in place wherever lanes are arrays. Vectors of eight words (int64) support `+` and `-`.
`podium.core.llvm_lanes` defines the type. The Python bodies define the results. They are compiled, with arrays for
lanes, if LLVM instructions cannot be used (`podium.core.compiling.uses_llvm`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from podium.core.compiling import helper

LANES = 16  # numbers in a vector
WORDS = 8  # words (int64) in a vector
CACHE_LINE = 64  # bytes


def aligned_zeros(n: int, dtype: Any) -> Any:
    """Return zeros aligned to a cache line, so that no vector spans two lines."""
    size = np.dtype(dtype).itemsize
    memory = np.zeros(n + CACHE_LINE // size, dtype)
    first = -memory.ctypes.data % CACHE_LINE // size
    return memory[first : first + n]


def all_lanes(number: Any) -> Any:
    """Return a vector with the same number in every lane."""
    return np.full(LANES, number, np.float32)


def load_lanes(array: Any, index: Any) -> Any:
    """Return array[index : index + LANES], without a bounds check."""
    return array[index : index + LANES].copy()  # a copy, because lanes are values


def store_lanes(array: Any, index: Any, values: Any) -> None:
    """array[index : index + LANES] = values."""
    array[index : index + LANES] = values


def choose_lanes(mask: Any, yes: Any, no: Any) -> Any:
    """Return, in each lane, the number of `yes` if the comparison `mask` holds there, else that of `no`."""
    return np.where(mask, yes, no)


def absolute(values: Any) -> Any:
    """Return |x| of each lane."""
    return np.abs(values)


def square_roots(values: Any) -> Any:
    """Return the square root of each lane."""
    return np.sqrt(values)


def sum_lanes(values: Any) -> Any:
    """Return the sum of all lanes: add the upper half to the lower half until one number remains."""
    halves = values.copy()
    n = LANES
    while n > 1:
        n //= 2
        for k in range(n):
            halves[k] += halves[k + n]
    return halves[0]


def all_words(number: Any) -> Any:
    """Return a vector with the same word in every lane."""
    return np.full(WORDS, number, np.int64)


def load_words(array: Any, index: Any) -> Any:
    """Return array[index : index + WORDS] of int64, without a bounds check."""
    return array[index : index + WORDS].copy()


def store_words(array: Any, index: Any, words: Any) -> None:
    """array[index : index + WORDS] = words."""
    array[index : index + WORDS] = words


def cumulative_sums(words: Any) -> Any:
    """Return the cumulative sums of the words."""
    return np.cumsum(words)


def last_word(words: Any) -> Any:
    """Return a vector whose lanes all have the word of the last lane."""
    return np.full(WORDS, words[WORDS - 1], np.int64)


def sum_words(words: Any) -> Any:
    """Return the sum of all words."""
    return words.sum()


def upper_halves(first: Any, second: Any) -> Any:
    """Return the upper 32 bits of two vectors' words as signed numbers: two of the first, two of the second, …"""
    return _alternating(first >> 32, second >> 32)


def lower_halves(first: Any, second: Any) -> Any:
    """Return the lower 32 bits of two vectors' words as signed numbers, in the same order."""
    return _alternating(_signed_lower(first), _signed_lower(second))


@helper
def _signed_lower(words: Any) -> Any:
    """Return the lower 32 bits as signed numbers."""
    return ((words & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000


@helper
def _alternating(first: Any, second: Any) -> Any:
    numbers = np.empty(2 * WORDS, np.float32)
    for k in range(WORDS):
        place = 2 * k - k % 2
        numbers[place], numbers[place + 2] = first[k], second[k]
    return numbers


def highest_lane(values: Any) -> Any:
    """Return the highest lane; no lane may be NaN."""
    return values.max()


def count_lanes(mask: Any) -> Any:
    """Return the number of lanes in which a comparison holds."""
    n = 0
    for k in range(LANES):
        n += int(mask[k])
    return n


def any_lanes(mask: Any) -> Any:
    """Return whether a comparison holds in any lane."""
    return mask.any()


OPERATIONS = (
    all_lanes, load_lanes, store_lanes, choose_lanes, absolute, square_roots, sum_lanes, highest_lane,
    count_lanes, any_lanes, all_words, load_words, store_words, cumulative_sums, last_word, sum_words,
    upper_halves, lower_halves,
)  # fmt: skip
