"""Count histograms: sum the packed gradients of a leaf's documents by feature and bin.

Dense features are counted 16 at a time: 16 × 256 cells of 8 bytes stay in the cache nearest the core while documents
stream past. `bench/PERFORMANCE.md` lists the gain of each technique.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from podium.core.array_types import Bytes, Int, Int32s, Ints
from podium.core.compiling import helper
from podium.core.intrinsics import copy_16_bytes, not_inlined, prefetch, wait_at_barrier
from podium.core.simd import WORDS, all_words, load_words, store_words, sum_words
from podium.trees.bin_matrix import BinMatrix
from podium.trees.growth_types import (
    BLOCK,
    CHUNK,
    NEAR,
    STRIDES,
    FeatureShare,
    FeatureTable,
    GrowingTree,
    Member,
    N,
    NewLeaves,
    Record,
    U,
)

AHEAD = 32  # rows between the one that is copied and the one that is prefetched
MIN_ROWS_PER_CELL = 0.25  # with at least as many documents in a leaf, threads share its rows, not its features


@helper
def share_start(n: Int, multiple: Int, thread: Int, n_threads: Int) -> Int:
    """Return where a thread's share of n begins; it is a multiple of `multiple`."""
    return min(n, (n + multiple - 1) // multiple * thread // n_threads * multiple)


@helper
def are_rows_shared(member: Member, leaf: Record) -> bool:
    """Return whether threads share the rows of this leaf, rather than its features."""
    n_cells = member.shares[member.n_threads, 2]
    is_large: bool = member.n_threads > 1 and leaf.sample_end - leaf.start >= MIN_ROWS_PER_CELL * n_cells
    return is_large


@helper
def all_features(end: Ints) -> FeatureShare:
    """Return the share of a thread that counts all features; `end` is the last entry of `FeatureLayout.ends`."""
    return FeatureShare(N(0), end[0], N(0), end[1], N(0), end[2], N(0), N(0))


@helper
def build_histograms(
    member: Member, bins: BinMatrix, words: Ints, features: FeatureTable, assigned: FeatureShare, new: NewLeaves,
    tree: GrowingTree, tile: Bytes, tile_words: Ints,
) -> None:  # fmt: skip
    """Count the documents of the smaller of the new leaves; each thread counts the features assigned to it.

    If the leaf is large, each thread instead counts all features of its share of the documents in a separate histogram,
    so that each document is read once, not once per thread. The thread that scans a feature adds up the parts
    (`complete_histograms`). Adding up takes as long for a small leaf as for a large one, so with few documents it costs
    more than it saves.
    """
    leaf = tree.leaves[new.small]
    cells = tree.histograms[leaf.histogram]
    documents = tree.documents[leaf.start : leaf.sample_end]
    if are_rows_shared(member, leaf):
        n, thread, n_threads = len(documents), member.thread, member.n_threads
        a, b = share_start(n, N(1), thread, n_threads), share_start(n, N(1), thread + 1, n_threads)
        part = cells if thread == 0 else member.partial_histograms[thread - 1]
        everything = all_features(member.shares[n_threads])
        fill_histograms(bins, words, documents[a:b], features, everything, tile, tile_words, part)
        wait_at_barrier(member.barrier, n_threads)
    else:
        fill_histograms(bins, words, documents, features, assigned, tile, tile_words, cells)


@helper
def fill_histograms(
    bins: BinMatrix, words: Ints, documents: Int32s, features: FeatureTable, assigned: FeatureShare, tile: Bytes,
    tile_words: Ints, cells: Ints,
) -> None:  # fmt: skip
    """Count histograms over some documents, without the common bins of sparse features.

    Args:
        bins: the bins of all rows.
        words: the packed gradients of all rows.
        documents: the rows to count.
        features: the table of all features.
        assigned: the features to count.
        tile, tile_words: scratch memory.
        cells: the histograms of all features; those of features that are not counted stay unchanged.

    """
    not_inlined()
    zeros = all_words(N(0))
    for cell in range(assigned.first_cell, assigned.last_cell, WORDS):
        store_words(cells, cell, zeros)
    first_block, last_block = assigned.begin // BLOCK, (assigned.end + BLOCK - 1) // BLOCK
    if first_block < last_block:
        for start in range(0, len(documents), CHUNK):
            n_rows = min(CHUNK, len(documents) - start)
            _gather(bins, first_block, last_block - first_block, documents, start, n_rows, words, tile, tile_words)
            for block in range(first_block, last_block):
                a, b = max(assigned.begin - block * BLOCK, 0), min(assigned.end - block * BLOCK, BLOCK)
                at, cell = (block - first_block) * CHUNK * BLOCK, features.block_cells[block]
                _count_block(tile, at, n_rows, tile_words, a, b, features.block_strides[block], cells, cell)
    for group in range(assigned.first_group, assigned.last_group):
        count_entries_of_group(bins, group, documents, words, cells)


@helper
def count_entries_of_group(bins: BinMatrix, group: Int, documents: Int32s, words: Ints, cells: Ints) -> None:
    """Add the words of some documents to the cells that a group of sparse features lists for them."""
    not_inlined()
    entries, starts, first, last = bins.entries, bins.starts, group * (bins.n_rows + 1), len(documents) - 1
    for k in range(len(documents)):
        prefetch(starts, first + np.int64(documents[min(k + 2 * AHEAD, last)]))
        soon = np.int64(documents[min(k + AHEAD, last)])
        prefetch(words, soon)
        prefetch(entries, starts[U(first + soon)])
        row = np.int64(documents[U(k)])
        word = words[U(row)]
        for entry in range(U(starts[U(first + row)]), U(starts[U(first + row + 1)])):
            cells[U(entries[entry])] += word


@helper
def _gather(
    bins: BinMatrix, first_block: Int, n_blocks: Int, documents: Int32s, start: Int, n_rows: Int, words: Ints,
    tile: Bytes, tile_words: Ints,
) -> None:  # fmt: skip
    """Copy the words of some documents, and `n_blocks` blocks of their bins, into a tile.

    The tile holds the first block of all rows, then the next block. Unless all rows fit a near cache, they are
    prefetched `AHEAD` rows in advance, because the documents of a leaf are scattered and hardware cannot predict them.
    """
    rows, width, first, last = bins.rows, bins.width, first_block * BLOCK, len(documents) - 1
    is_far = bins.n_rows * width > NEAR
    for k in range(n_rows):
        if is_far:
            soon = np.int64(documents[U(min(start + k + AHEAD, last))])
            prefetch(words, soon)
            coming = soon * width + first
            for line in range(0, n_blocks * BLOCK, 64):
                prefetch(rows, coming + line)
            prefetch(rows, coming + n_blocks * BLOCK - 1)
        row = np.int64(documents[U(start + k)])
        tile_words[U(k)] = words[U(row)]
        for block in range(n_blocks):
            copy_16_bytes(tile, (block * CHUNK + k) * BLOCK, rows, row * width + first + block * BLOCK)


def _counter(n: int, stride: int) -> Callable[..., None]:
    """Return a counting loop with constant bounds, so that the compiler unrolls its inner loop.

    Each loop needs a unique name, because Numba confuses compiled functions of the same name.
    """

    def count(bins: Bytes, start: Int, n_rows: Int, words: Ints, cells: Ints, cell: Int) -> None:
        """Add rows of n bins each, which begin at `start`, to n histograms.

        A row takes 2 n instructions: load a byte, add a word to memory. A core stores one word per cycle.
        """
        for k in range(n_rows):
            word, base = words[k], U(start + k * BLOCK)
            for j in range(n):
                cells[U(cell + j * stride) + U(bins[base + U(j)])] += word

    count.__name__ = count.__qualname__ = f"count_{n}_{stride}"
    return helper(count)


def _block_counter(stride: int) -> Callable[..., None]:
    """Return a function that counts 4, 8, 12 or 16 features, whose cells are `stride` apart."""
    count_16, count_8, count_4 = (_counter(n, stride) for n in (16, 8, 4))

    def count_block(tile: Bytes, at: Int, n_rows: Int, words: Ints, n: Int, cells: Ints, cell: Int) -> None:
        if n == 16:
            count_16(tile, at, n_rows, words, cells, cell)
        elif n >= 8:
            count_8(tile, at, n_rows, words, cells, cell)
        if n % 8 == 4:
            count_4(tile, at + n - 4, n_rows, words, cells, cell + (n - 4) * stride)

    count_block.__name__ = count_block.__qualname__ = f"count_block_{stride}"
    return helper(count_block)


_count_block_64, _count_block_128, _count_block_256 = map(_block_counter, STRIDES)


@helper
def _count_block(
    tile: Bytes, at: Int, n_rows: Int, words: Ints, a: Int, b: Int, stride: Int, cells: Ints, cell: Int
) -> None:
    """Count the features a … b − 1, multiples of 4, of a block of 16 in the tile."""
    at, cell, n = at + a, cell + a * stride, b - a
    if stride == 64:
        _count_block_64(tile, at, n_rows, words, n, cells, cell)
    elif stride == 128:
        _count_block_128(tile, at, n_rows, words, n, cells, cell)
    else:
        _count_block_256(tile, at, n_rows, words, n, cells, cell)


@helper
def complete_histograms(
    member: Member, features: FeatureTable, assigned: FeatureShare, new: NewLeaves, tree: GrowingTree
) -> None:
    """Complete the histograms of the new leaves, for the features that this thread scans.

    Add up the parts of threads, fill in the common bins, which were not counted, and subtract the counted leaf from the
    parent's histogram, which becomes that of the other leaf. The subtraction is exact: cells are integers, and every
    document of the parent is in one of the two leaves.
    """
    not_inlined()
    small, large = tree.leaves[new.small], tree.leaves[new.large]
    cells, others = tree.histograms[small.histogram], tree.histograms[large.histogram]
    n_parts, total = member.n_threads - 1 if are_rows_shared(member, small) else N(0), small.total
    for number in range(U(assigned.first), U(assigned.last)):
        feature = U(features.scanned[number])
        first, common = features.first_cell[feature], features.common_cell[feature]
        end = first + features.n_cells[feature]
        for part in range(n_parts):
            counted = member.partial_histograms[part]
            for at in range(first, end, WORDS):
                store_words(cells, at, load_words(cells, at) + load_words(counted, at))
        if common >= 0:  # the total minus all other bins
            sums = all_words(N(0))
            for at in range(first, end, WORDS):
                sums = sums + load_words(cells, at)
            cells[U(first + common)] = total - sum_words(sums)
        if new.count == 2:
            for at in range(first, end, WORDS):
                store_words(others, at, load_words(others, at) - load_words(cells, at))
