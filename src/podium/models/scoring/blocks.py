"""Kernels that score hundreds of documents at a time, with one bit of a word for each, by a `Program`."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Float32s, Floats, Int, Ints
from podium.core.bitwise import CODES, WORD, choose_words, compare_ranks, find_ranks, gather_codes
from podium.core.compiling import helper, kernel
from podium.core.dense_rows import COLUMN_STRIDE, DenseRows, load_columns, room_for_columns
from podium.core.intrinsics import not_inlined
from podium.core.simd import aligned_zeros
from podium.models.scoring.encoding import ALL_BITS, COMPARISONS
from podium.models.scoring.program import MAX_ROWS, Categories, Comparisons, Groups, Program, Searches
from podium.models.scoring.traversal import index_among

U = np.uint64  # an unsigned index avoids Numba's check for negative indices

# Blocks of 2 and 8 words of 64 documents. A tuple's length is part of its type, so kernels are compiled for each.
SMALL_BLOCK, LARGE_BLOCK = (0,) * 2, (0,) * 8


class BlockMemory(NamedTuple):
    """Scratch memory for one block."""

    columns: Float32s  # some columns of the block's values
    ranks: NDArray[np.int8]  # the ranks of each search
    words: Ints  # rows of bits
    codes: Ints  # the codes of each document for the trees of a group


class Blocks:
    """Scores rows with a program, block by block. Threads may share it, because each call takes its own scratch memory.

    Choices and planes contain positions of words in a block of this size instead of row numbers, which saves a
    multiplication for each.
    """

    def __init__(self, program: Program, block: tuple[int, ...]) -> None:
        groups, n_words = program.groups, len(block)
        kind = np.uint16 if MAX_ROWS * n_words <= 1 << 16 else np.uint32
        choices, planes = (n_words * rows.astype(kind) for rows in (groups.choices, groups.planes))
        self.program = program._replace(groups=groups._replace(choices=choices, planes=planes))
        self.block = block
        self._free: list[BlockMemory] = []
        self._lock = threading.Lock()

    @property
    def n_documents(self) -> int:
        """The number of documents of a block."""
        return WORD * len(self.block)

    def add_scores(self, rows: DenseRows, first: int, last: int, scores: Floats) -> None:
        """Add the values of all trees to the scores of the rows `first` … `last` − 1."""
        p = self.program
        scratch = self._take_scratch()
        score_blocks(rows, first, last, p.searches, p.comparisons, p.categories, p.groups, scratch, scores, self.block)
        self._free.append(scratch)

    def _take_scratch(self) -> BlockMemory:
        with self._lock:
            if self._free:
                return self._free.pop()
        n, n_searches = self.n_documents, len(self.program.searches.feature)
        words = aligned_zeros(self.program.n_rows * len(self.block), np.int64)
        words[ALL_BITS * len(self.block) : (ALL_BITS + 1) * len(self.block)] = -1
        return BlockMemory(room_for_columns(), np.zeros(n_searches * n, np.int8), words, aligned_zeros(n, np.int64))


# --- kernels


@kernel
def score_blocks(
    rows: DenseRows, first: Int, last: Int, searches: Searches, comparisons: Comparisons, categories: Categories,
    groups: Groups, scratch: BlockMemory, scores: Floats, block: Any,
) -> None:  # fmt: skip
    """Add the values of a program's trees, in order, to the scores of some rows."""
    size = WORD * len(block)
    for start in range(first, last, size):
        n = min(size, last - start)
        n_words = (n + WORD - 1) // WORD
        for word in range(n_words):
            _rank(rows, start + WORD * word, last - 1, WORD * word, size, searches, scratch)
        _compare(comparisons, size, scratch, block)
        if len(categories.feature):
            _look_up(rows, start, n, len(comparisons.bound), categories, scratch, block)
        for group in range(len(groups.n_trees)):
            _choose(groups, group, scratch, block)
            for word in range(n_words):
                gather_codes(
                    scratch.words, groups.planes, groups.plane_offsets, CODES * group, word, scratch.codes, WORD * word
                )
            if groups.n_trees[group] == CODES:
                _add_eight(groups, CODES * group, scratch.codes, n, scores, start)
            else:
                _add_four(groups, CODES * group, scratch.codes, n, scores, start)


@helper
def _rank(
    rows: DenseRows, start: Int, last_row: Int, place: Int, size: Int, searches: Searches, scratch: BlockMemory
) -> None:
    """Find the ranks of the values of 64 rows from `start` on in each search; rows past the last are copies of it.

    They go to `place` among the `size` ranks of each search.
    """
    not_inlined()
    columns = scratch.columns
    search, n_searches = 0, len(searches.feature)
    while search < n_searches:
        column, n_columns = load_columns(rows, start, last_row, searches.feature[search], columns)
        while search < n_searches and searches.feature[search] < column + n_columns:
            find_ranks(
                columns, (searches.feature[search] - column) * COLUMN_STRIDE, searches.pivots,
                searches.table[search], searches.n_levels[search], scratch.ranks, search * size + place,
                searches.missing[search],
            )  # fmt: skip
            search += 1


@helper
def _compare(comparisons: Comparisons, size: Int, scratch: BlockMemory, block: Any) -> None:
    """Compute all comparisons, a row of words each."""
    not_inlined()
    for k in range(len(comparisons.bound)):
        start = np.int64(comparisons.search[k]) * size
        compare_ranks(scratch.ranks, start, comparisons.bound[k], scratch.words, (COMPARISONS + k) * len(block), block)


@helper
def _look_up(
    rows: DenseRows, start: Int, n: Int, n_before: Int, categories: Categories, scratch: BlockMemory, block: Any
) -> None:
    """Compute the comparisons with sets of categories, which follow the `n_before` others."""
    not_inlined()
    for f in range(len(categories.feature)):
        low, high = categories.value_offsets[f], categories.value_offsets[f + 1]
        column = categories.feature[f] * rows.column_stride
        for k in range(n):
            value = rows.flat[(start + k) * rows.row_stride + column]
            scratch.codes[k] = index_among(value, categories.values, low, high)
        for comparison in range(categories.comparison_offsets[f], categories.comparison_offsets[f + 1]):
            members = categories.member_offsets[comparison]
            place = (COMPARISONS + n_before + comparison) * len(block)
            for word in range((n + WORD - 1) // WORD):
                bits = np.uint64(0)
                for k in range(WORD * word, min(n, WORD * (word + 1))):
                    is_member = np.uint64(categories.members[members + scratch.codes[k]])
                    bits |= is_member << np.uint64(k - WORD * word)
                scratch.words[place + word] = np.int64(bits)


@helper
def _choose(groups: Groups, group: Int, scratch: BlockMemory, block: Any) -> None:
    not_inlined()
    for choice in range(groups.choice_offsets[group], groups.choice_offsets[group + 1]):
        choose_words(groups.choices, choice, scratch.words, block)


@helper
def _add_eight(groups: Groups, first: Int, codes: Ints, n: Int, scores: Floats, start: Int) -> None:
    """Add the leaves of eight trees with one-byte codes, in order.

    It is not inlined, because the eight tables would not fit into the registers of its caller.
    """
    not_inlined()
    leaves, table, byte = groups.leaves, groups.table[first : first + CODES], U(255)
    t0, t1, t2, t3 = U(table[0]), U(table[1]), U(table[2]), U(table[3])
    t4, t5, t6, t7 = U(table[4]), U(table[5]), U(table[6]), U(table[7])
    for k in range(n):
        packed = U(codes[U(k)])
        total = scores[U(start + k)]
        total += leaves[t0 + (packed & byte)]
        total += leaves[t1 + ((packed >> U(8)) & byte)]
        total += leaves[t2 + ((packed >> U(16)) & byte)]
        total += leaves[t3 + ((packed >> U(24)) & byte)]
        total += leaves[t4 + ((packed >> U(32)) & byte)]
        total += leaves[t5 + ((packed >> U(40)) & byte)]
        total += leaves[t6 + ((packed >> U(48)) & byte)]
        total += leaves[t7 + (packed >> U(56))]
        scores[U(start + k)] = total


@helper
def _add_four(groups: Groups, first: Int, codes: Ints, n: Int, scores: Floats, start: Int) -> None:
    """Add the leaves of four trees with two-byte codes, in order."""
    not_inlined()
    leaves, table, short = groups.leaves, groups.table[first : first + CODES], U(65535)
    t0, t1, t2, t3 = U(table[0]), U(table[2]), U(table[4]), U(table[6])
    for k in range(n):
        packed = U(codes[U(k)])
        total = scores[U(start + k)]
        total += leaves[t0 + (packed & short)]
        total += leaves[t1 + ((packed >> U(16)) & short)]
        total += leaves[t2 + ((packed >> U(32)) & short)]
        total += leaves[t3 + (packed >> U(48))]
        scores[U(start + k)] = total
