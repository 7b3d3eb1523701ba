"""Operations on 64 documents at a time, for binning and scoring. A *word* is an int64 with one bit for each document.

Kernels call these functions. `podium.core.llvm_bitwise` compiles each to vector instructions. The Python body defines
the result, and is compiled instead if the instructions cannot be used (`podium.core.compiling.uses_llvm`).

A *block* is a tuple with one entry for each word that is processed at a time. Only its length matters. The length is
part of the type, so Numba compiles a kernel for each length.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from podium.core.array_types import Float32s, Ints
from podium.core.compiling import helper

WORD = 64  # documents per word
TILE = 16  # rows and columns to transpose at a time
CODES = 8  # one-byte codes of a document in an int64
MIN_LEVELS, MAX_LEVELS = 4, 8  # of a search: fewer levels are not faster, and a rank is a byte


@helper
def pivot_offset(level: Any) -> Any:
    """Return where the pivots of a level begin; a level has 2^level pivots, and room for at least 16."""
    return 16 * level if level < 4 else 64 + (1 << level) - 16


def levels_for(n_thresholds: int) -> int:
    """Return the number of levels of a search among `n_thresholds` thresholds."""
    return max(MIN_LEVELS, n_thresholds.bit_length())


def pivots_of(thresholds: Float32s, n_levels: int) -> Float32s:
    """Return the pivots of a search; infinity, which no value exceeds, pads the thresholds."""
    padded = np.full(1 << n_levels, np.inf, np.float32)
    padded[: len(thresholds)] = thresholds
    return padded[_pivot_order(n_levels)]


@cache
def _pivot_order(n_levels: int) -> Ints:
    """Return the index of each pivot's threshold, in the order in which `find_ranks` reads pivots."""
    order = np.zeros(pivot_offset(n_levels), np.int64)
    for level in range(n_levels):
        number = np.arange(1 << level)
        rank = sum((((number >> j) & 1) ^ (j == 0)) << (n_levels - 1 - j) for j in range(level))
        order[pivot_offset(level) + number] = rank + (1 << (n_levels - 1 - level)) - 1
    return order


def transpose_tile(
    flat: Any, row_stride: Any, row: Any, last_row: Any, column: Any, columns: Any, place: Any, column_stride: Any
) -> None:
    """Transpose a tile of 16 rows and 16 columns of row-major values; repeat the last row beyond the end.

    Shuffles of vectors do this three times as fast as single loads and stores.
    """
    for k in range(TILE):
        start = min(row + k, last_row) * row_stride + column
        for j in range(TILE):
            columns[place + j * column_stride + k] = flat[start + j]


def transpose_bytes(source: Any, start: Any, stride: Any, target: Any, place: Any, target_stride: Any) -> None:
    """Transpose 16 × 16 bytes: rows of the source, `stride` apart, become columns of the target."""
    for k in range(TILE):
        for j in range(TILE):
            target[place + j * target_stride + k] = source[start + k * stride + j]


def find_ranks(
    values: Any, start: Any, pivots: Any, table: Any, n_levels: Any, ranks: Any, place: Any, missing: Any
) -> None:
    """Write the rank of each of 64 values among the thresholds of a search to the upper bits of a byte, minus 128.

    The rank is the number of thresholds below the value. A search compares the value with one pivot per level, and the
    answers are the bits of the rank, the first answer in the highest bit. A missing value gets the rank `missing`.

    The pivots of level l begin at `table + pivot_offset(l)`. Bit j of a pivot's index is answer j, with bit 0 inverted.
    Updating that index takes one operation per level; the index 2i + 1 of a heap's child would take three.
    """
    for k in range(WORD):
        value = values[start + k]
        number, rank = 0, 0
        for level in range(n_levels):
            is_above = value > pivots[table + pivot_offset(level) + number]
            number |= int(is_above != (level == 0)) << level
            rank |= int(is_above) << (7 - level)
        ranks[place + k] = missing if value != value else rank - 128


def compare_ranks(ranks: Any, start: Any, bound: Any, words: Any, place: Any, block: Any) -> None:
    """Set the bit of each document whose rank is below a bound, for all words of a block."""
    for k in range(len(block)):
        word = np.uint64(0)
        for bit in range(WORD):
            if ranks[start + WORD * k + bit] < bound:
                word |= np.uint64(1) << np.uint64(bit)
        words[place + k] = np.int64(word)


def choose_words(choices: Any, number: Any, words: Any, block: Any) -> None:
    """Copy the bits of one row of words where a condition's bits are set, and those of another row elsewhere.

    A row is a block of words. Four entries of `choices` are the positions where the rows of the target, the condition
    and the two sources begin. They are positions rather than row numbers, which saves multiplications.
    """
    first = 4 * number
    target, condition = np.int64(choices[first]), np.int64(choices[first + 1])
    yes, no = np.int64(choices[first + 2]), np.int64(choices[first + 3])
    for k in range(len(block)):
        bits = words[condition + k]
        words[target + k] = (words[yes + k] & bits) | (words[no + k] & ~bits)


def gather_codes(words: Any, planes: Any, plane_offsets: Any, first: Any, word: Any, codes: Any, place: Any) -> None:
    """Gather the codes `first` … `first` + 7 of the 64 documents of a word, a byte each, the first in the lowest byte.

    Bit j of code c is a bit of the row of words that begins at `planes[plane_offsets[c] + j]`. Eight codes share an
    int64, so that one load reads the codes of a document in eight trees.
    """
    for document in range(WORD):
        packed = np.int64(0)
        for c in range(CODES):
            start = plane_offsets[first + c]
            for j in range(plane_offsets[first + c + 1] - start):
                bits = words[np.int64(planes[start + j]) + word]
                packed |= ((bits >> document) & 1) << (8 * c + j)
        codes[place + document] = packed


OPERATIONS = (transpose_tile, transpose_bytes, find_ranks, compare_ranks, choose_words, gather_codes)
