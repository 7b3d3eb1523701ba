"""SIMD: explicit vectors of 16 single-precision numbers, or of 8 words, where the compiler would not vectorize.

A vectorized sum needs an accumulator for each lane, and adds them up at the end. A compiler that must not reorder
additions does not create them. Written with lanes, the order of additions, and hence the result, is the same on every
machine. If the machine's vectors are shorter, LLVM splits them.

In a kernel, lanes support `+ - * /` and `< > ==`. They are values: `a = a + b` compiles, but `a += b` does not, because
it would change an array in place wherever lanes are arrays. Vectors of eight words (int64) support `+` and `-`.
`podium.core.llvm_lanes` defines the type. The bodies here state what each operation does. They are compiled, with
arrays for lanes, if LLVM instructions cannot be used (`podium.core.compiling.uses_llvm`).
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
    return array[index : index + LANES].copy()


def store_lanes(array: Any, index: Any, values: Any) -> None:
    """array[index : index + LANES] = values."""
    array[index : index + LANES] = values


def choose_lanes(which: Any, yes: Any, no: Any) -> Any:
    """Return one of two numbers in each lane."""
    return np.where(which, yes, no)


def absolute(values: Any) -> Any:
    """Return |x| of each lane."""
    return np.abs(values)


def roots_of(values: Any) -> Any:
    """Return the square root of each lane."""
    return np.sqrt(values)


def sum_lanes(values: Any) -> Any:
    """Return the sum of all lanes, adding the upper half to the lower half until one number is left."""
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


def cumulated(words: Any) -> Any:
    """Return the cumulative sums of the words."""
    return np.cumsum(words)


def last_word(words: Any) -> Any:
    """Return a vector with the word of the last lane in every lane."""
    return np.full(WORDS, words[WORDS - 1], np.int64)


def sum_words_of(words: Any) -> Any:
    """Return the sum of all lanes."""
    return words.sum()


def upper_halves(first: Any, second: Any) -> Any:
    """Return the upper 32 bits of two vectors' words as signed numbers, alternating two words of each vector."""
    return _in_turn(first >> 32, second >> 32)


def lower_halves(first: Any, second: Any) -> Any:
    """Return the lower 32 bits of two vectors' words as signed numbers, in the same order."""
    return _in_turn(_with_sign(first), _with_sign(second))


@helper
def _with_sign(words: Any) -> Any:
    """Return the lower 32 bits as signed numbers."""
    return ((words & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000


@helper
def _in_turn(first: Any, second: Any) -> Any:
    numbers = np.empty(2 * WORDS, np.float32)
    for k in range(WORDS):
        place = 2 * k - k % 2
        numbers[place], numbers[place + 2] = first[k], second[k]
    return numbers


def highest_lane(values: Any) -> Any:
    """Return the highest lane; no lane may be NaN."""
    return values.max()


def count_lanes(which: Any) -> Any:
    """Return the number of lanes in which a comparison holds."""
    n = 0
    for k in range(LANES):
        n += int(which[k])
    return n


def any_lanes(which: Any) -> Any:
    """Return whether a comparison holds in any lane."""
    return which.any()


OPERATIONS = (
    all_lanes, load_lanes, store_lanes, choose_lanes, absolute, roots_of, sum_lanes, highest_lane,
    count_lanes, any_lanes, all_words, load_words, store_words, cumulated, last_word, sum_words_of,
    upper_halves, lower_halves,
)  # fmt: skip
