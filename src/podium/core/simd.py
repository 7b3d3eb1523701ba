"""SIMD: vectors of 16 single-precision numbers, or of 8 words, written down where the compiler would not find them.

Sums of rows of a matrix need an accumulator for each lane, added up at the end. A compiler that may not reorder
additions makes none. Written with lanes, the order of additions is the same on every machine, and so are the bits;
where the machine's vectors are shorter, LLVM cuts these into those.

In a kernel, lanes have `+ - * /` and `< > ==`. They are values: `a = a + b` is compiled, `a += b` is refused, since it
would change an array in place where lanes are arrays. Vectors of eight words (int64) have `+` and `-`.
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
    """Memory that begins with a cache line, so that no vector lies in two."""
    size = np.dtype(dtype).itemsize
    memory = np.zeros(n + CACHE_LINE // size, dtype)
    first = -memory.ctypes.data % CACHE_LINE // size
    return memory[first : first + n]


def all_lanes(number: Any) -> Any:
    """The same number in every lane."""
    return np.full(LANES, number, np.float32)


def load_lanes(array: Any, index: Any) -> Any:
    """array[index : index + LANES]; nobody checks that it reaches so far."""
    return array[index : index + LANES].copy()


def store_lanes(array: Any, index: Any, values: Any) -> None:
    """array[index : index + LANES] = values."""
    array[index : index + LANES] = values


def choose_lanes(which: Any, yes: Any, no: Any) -> Any:
    """In each lane one of two numbers."""
    return np.where(which, yes, no)


def absolute(values: Any) -> Any:
    """|x| of each lane."""
    return np.abs(values)


def roots_of(values: Any) -> Any:
    """The square root of each lane."""
    return np.sqrt(values)


def sum_lanes(values: Any) -> Any:
    """The sum of all lanes: the upper half is added to the lower one until one number is left."""
    halves = values.copy()
    n = LANES
    while n > 1:
        n //= 2
        for k in range(n):
            halves[k] += halves[k + n]
    return halves[0]


def all_words(number: Any) -> Any:
    """The same word in every lane."""
    return np.full(WORDS, number, np.int64)


def load_words(array: Any, index: Any) -> Any:
    """array[index : index + WORDS], of int64; nobody checks that it reaches so far."""
    return array[index : index + WORDS].copy()


def store_words(array: Any, index: Any, words: Any) -> None:
    """array[index : index + WORDS] = words."""
    array[index : index + WORDS] = words


def cumulated(words: Any) -> Any:
    """In each lane the sum of the words up to it."""
    return np.cumsum(words)


def last_word(words: Any) -> Any:
    """The word of the last lane in every lane."""
    return np.full(WORDS, words[WORDS - 1], np.int64)


def sum_words_of(words: Any) -> Any:
    """The sum of all lanes."""
    return words.sum()


def upper_halves(first: Any, second: Any) -> Any:
    """The upper 32 bits of the words of two vectors, which have a sign: in turn two of one and two of the other."""
    return _in_turn(first >> 32, second >> 32)


def lower_halves(first: Any, second: Any) -> Any:
    """The lower 32 bits of the words of two vectors, likewise with a sign, in the same order."""
    return _in_turn(_with_sign(first), _with_sign(second))


@helper
def _with_sign(words: Any) -> Any:
    """The lower 32 bits as numbers with a sign."""
    return ((words & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000


@helper
def _in_turn(first: Any, second: Any) -> Any:
    numbers = np.empty(2 * WORDS, np.float32)
    for k in range(WORDS):
        place = 2 * k - k % 2
        numbers[place], numbers[place + 2] = first[k], second[k]
    return numbers


def highest_lane(values: Any) -> Any:
    """The highest of all lanes, none of them NaN."""
    return values.max()


def count_lanes(which: Any) -> Any:
    """In how many lanes a comparison holds."""
    n = 0
    for k in range(LANES):
        n += int(which[k])
    return n


def any_lanes(which: Any) -> Any:
    """Whether a comparison holds in any lane."""
    return which.any()


OPERATIONS = (
    all_lanes, load_lanes, store_lanes, choose_lanes, absolute, roots_of, sum_lanes, highest_lane,
    count_lanes, any_lanes, all_words, load_words, store_words, cumulated, last_word, sum_words_of,
    upper_halves, lower_halves,
)  # fmt: skip
