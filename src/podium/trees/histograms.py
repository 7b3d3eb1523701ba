"""Histograms: the packed gradients of a leaf's documents, summed by feature and bin.

Histograms are counted for 16 features at a time: 16 × 256 cells of 8 bytes stay in the cache nearest the core while the
documents stream past. `docs/performance.md` says what each technique gave.
"""

from __future__ import annotations

import numpy as np

from podium.core.compiling import helper
from podium.core.intrinsics import copy_16_bytes, not_inlined, prefetch, wait_at_barrier
from podium.trees.layout import (
    BLOCK,
    CELLS,
    CHUNK,
    BinMatrix,
    Bytes,
    FeatureShare,
    GrowingTree,
    Int,
    Ints,
    Member,
    N,
    NewLeaves,
    Rows,
    U,
)

AHEAD = 32  # rows between the one that is copied and the one whose cache lines are asked for
SHARED_ROWS = 12288  # documents from which a leaf's rows, not its features, are shared out among threads


@helper
def share(n: Int, multiple: Int, thread: Int, n_threads: Int) -> Int:
    """Where a thread's share of n begins, a multiple of `multiple`."""
    return min(n, (n + multiple - 1) // multiple * thread // n_threads * multiple)


@helper
def build_histograms(
    member: Member, bins: BinMatrix, words: Ints, features: FeatureShare, new: NewLeaves, tree: GrowingTree,
    tile: Bytes, tile_words: Ints,
) -> None:  # fmt: skip
    """Histograms of the new leaves, each thread those of its features.

    Only the leaf with fewer documents is counted. The other's histogram is its parent's, in whose place it stands, less
    the counted one. That is exact: cells are integers, and every document of the parent is in one of the two.

    If the leaf is large, each thread counts all features of its share of the documents, then adds up the parts of its
    features: so each document is read once, not once for each thread. Adding up takes as long for a small leaf as for a
    large one; below `SHARED_ROWS` it costs more than it saves.
    """
    n_threads, partial = member.n_threads, member.partial_histograms
    leaf = tree.leaves[new.small]
    cells = tree.histograms[leaf.histogram]
    documents = tree.documents[leaf.start : leaf.sample_end]
    first, last = features.begin * CELLS, features.end * CELLS
    if n_threads > 1 and len(documents) >= SHARED_ROWS:
        n = len(documents)
        a, b = share(n, N(1), member.thread, n_threads), share(n, N(1), member.thread + 1, n_threads)
        part = cells if member.thread == 0 else partial[member.thread - 1]
        fill_histograms(bins, words, documents[a:b], N(0), features.n_padded, tile, tile_words, part)
        wait_at_barrier(member.barrier, n_threads)
        for other in range(n_threads - 1):
            addend = partial[other]
            for cell in range(first, last):
                cells[cell] += addend[cell]
    else:
        fill_histograms(bins, words, documents, features.begin, features.end, tile, tile_words, cells)
    if new.count == 2:
        larger = tree.histograms[tree.leaves[new.large].histogram]
        for cell in range(first, last):
            larger[cell] -= cells[cell]


@helper
def fill_histograms(
    bins: BinMatrix, words: Ints, documents: Rows, begin: Int, end: Int, tile: Bytes, tile_words: Ints, cells: Ints
) -> None:
    """The histograms of the features begin … end − 1, multiples of 4, over some documents.

    Args:
        bins: of all rows.
        words: packed gradients of all rows.
        documents: the rows that are counted.
        begin, end: of the features.
        tile, tile_words: scratch.
        cells: the histograms of all features, one after the other; those of the others stay as they are.

    """
    not_inlined()
    for cell in range(begin * CELLS, end * CELLS):
        cells[cell] = 0
    n_blocks = (end - begin + BLOCK - 1) // BLOCK
    for start in range(0, len(documents), CHUNK):
        n_rows = min(CHUNK, len(documents) - start)
        _gather(bins.rows, bins.width, begin, n_blocks, documents, start, n_rows, words, tile, tile_words)
        for block in range(n_blocks):
            feature = begin + block * BLOCK
            n_features, at, cell = min(BLOCK, end - feature), block * CHUNK * BLOCK, feature * CELLS
            if n_features == 16:
                _count_16(tile, at, n_rows, tile_words, cells, cell)
            if n_features == 8 or n_features == 12:
                _count_8(tile, at, n_rows, tile_words, cells, cell)
            if n_features % 8 == 4:
                _count_4(tile, at + n_features - 4, n_rows, tile_words, cells, cell + (n_features - 4) * CELLS)


@helper
def _gather(
    rows: Bytes, width: Int, feature: Int, n_blocks: Int, documents: Rows, start: Int, n_rows: Int, words: Ints,
    tile: Bytes, tile_words: Ints,
) -> None:  # fmt: skip
    """Copy the words of some documents, and of their bins `n_blocks` times 16 from `feature` on, into a tile.

    The tile holds the first 16 bins of all rows, then the next 16. What is copied now was asked for `AHEAD` rows
    ago: the next documents of a leaf lie anywhere, and no hardware guesses where.
    """
    last = len(documents) - 1
    for k in range(n_rows):
        soon = np.int64(documents[min(start + k + AHEAD, last)])
        prefetch(words, soon)
        coming = soon * width + feature
        for line in range(0, n_blocks * BLOCK, 64):
            prefetch(rows, coming + line)
        prefetch(rows, coming + n_blocks * BLOCK - 1)
        row = np.int64(documents[start + k])
        tile_words[k] = words[row]
        for block in range(n_blocks):
            copy_16_bytes(tile, (block * CHUNK + k) * BLOCK, rows, row * width + feature + block * BLOCK)


# Three functions, for a number of features that the compiler knows: only then is the inner loop unrolled.


@helper
def _count_16(bins: Bytes, start: Int, n_rows: Int, words: Ints, cells: Ints, cell: Int) -> None:
    """Add rows of 16 bins each, which begin at `start`, to 16 histograms.

    A byte is loaded and a word added to memory, 32 instructions a row; the core stores one word a cycle.
    """
    for k in range(n_rows):
        word, base = words[k], U(start + k * BLOCK)
        for j in range(16):
            cells[U(cell + j * CELLS) + U(bins[base + U(j)])] += word


@helper
def _count_8(bins: Bytes, start: Int, n_rows: Int, words: Ints, cells: Ints, cell: Int) -> None:
    """The same for 8 of the 16."""
    for k in range(n_rows):
        word, base = words[k], U(start + k * BLOCK)
        for j in range(8):
            cells[U(cell + j * CELLS) + U(bins[base + U(j)])] += word


@helper
def _count_4(bins: Bytes, start: Int, n_rows: Int, words: Ints, cells: Ints, cell: Int) -> None:
    """The same for 4 of the 16."""
    for k in range(n_rows):
        word, base = words[k], U(start + k * BLOCK)
        for j in range(4):
            cells[U(cell + j * CELLS) + U(bins[base + U(j)])] += word
