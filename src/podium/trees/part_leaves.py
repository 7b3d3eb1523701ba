"""The documents of one part of the data while a tree grows on all parts: who splits leaves is elsewhere (`frontier`).

A leaf has a number, which the one who splits gives it. Its documents lie in two ranges: those that splits are searched
on, and those that gradient-based sampling left out. To split a leaf orders both ranges in place, so the leaf can still
be split in another way, or remain.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from podium.core.array_types import Bytes, Floats, Int, Int32s, Ints
from podium.core.compiling import kernel
from podium.core.merging import Sum
from podium.core.team import Team
from podium.trees.bins import BinnedFeatures
from podium.trees.histograms import fill_histograms
from podium.trees.layout import CELLS, CHUNK, BinMatrix, FeatureShare, FeatureTable, N, U
from podium.trees.leaves import add_leaf_values, sum_leaves
from podium.trees.partitioning import partition, scatter_rows
from podium.trees.quantization import total_of

NONE = np.empty(0, np.int64)


class Expansion(NamedTuple):
    """A leaf that is to be split.

    Attributes:
        leaf, left, right: its number, and those of its children.
        feature: it is split by,
        goes_left: 1 for each bin that goes left.
        is_counted: whether the children need histograms.

    """

    leaf: int
    left: int
    right: int
    feature: int
    goes_left: Bytes
    is_counted: bool


class Question(NamedTuple):
    """What is asked of all parts at one time.

    Attributes:
        expansions: leaves to split; answered by the number of documents on the left, and the histogram of the left.
        counts: leaves and features; answered by the number of documents in each bin.
        released: leaves whose histograms are not needed any more.

    """

    expansions: Sequence[Expansion]
    counts: Sequence[tuple[int, int]]
    released: Sequence[int]


class _Ranges(NamedTuple):
    """Where the documents of a leaf are: of the sample, and the others."""

    start: int
    end: int
    other_start: int
    other_end: int


class PartLeaves:
    """The leaves of a tree that grows, in one part of the data.

    Args:
        binned: the documents of the part; their layout is that of all parts.
        team: threads.

    """

    def __init__(self, binned: BinnedFeatures, team: Team) -> None:
        self.bins, self.team, layout = binned.matrix, team, binned.layout
        n, ends = binned.n_rows, layout.ends[-1]
        self.n_cells = layout.total_cells
        self.everything = FeatureShare(N(0), ends[0], N(0), ends[1], N(0), ends[2], N(0), N(0))
        self.table = FeatureTable(
            NONE, NONE, NONE, NONE, NONE, NONE, layout.block_cells, layout.block_strides, None, NONE
        )
        self.rows, self.buffer = np.empty((2, n), np.int32), np.empty(n, np.int32)  # of the sample, and the others
        self.tiles = np.empty((team.n_threads, self.bins.width * CHUNK), np.uint8)
        self.tile_words = np.empty((team.n_threads, CHUNK), np.int64)
        self.words: Ints = NONE
        self.ranges: dict[int, _Ranges] = {}
        self.histograms: dict[int, Ints] = {}

    def plant(self, words: Ints, sampled: Int32s, others: Int32s) -> Sum:
        """Begin a tree with these documents; how many there are, the sum of their words, and their histogram."""
        self.words = words
        self.rows[0, : len(sampled)], self.rows[1, : len(others)] = sampled, others
        self.ranges = {0: _Ranges(0, len(sampled), 0, len(others))}
        total = sum(self.team.shares(len(sampled), lambda a, b: int(sum_words(words, sampled[a:b]))))
        self.histograms = {0: self._count(self.ranges[0])}
        return Sum((len(sampled) + len(others), total, self.histograms[0].copy()))

    def answer(self, question: Question) -> Sum:
        """Documents on the left and histograms of the left of each leaf that is split; documents by bin."""
        for leaf in question.released:
            self.histograms.pop(leaf, None)
        n_left = np.zeros(len(question.expansions), np.int64)
        counted = [expansion.is_counted for expansion in question.expansions]
        cells, place = np.empty((sum(counted), self.n_cells), np.int64), 0
        for k, expansion in enumerate(question.expansions):
            n_left[k] = self._split(expansion)
            if expansion.is_counted:
                cells[place] = self._histogram_of_left(expansion)
                place += 1
        counts = np.zeros((len(question.counts), CELLS), np.int64)
        for k, (leaf, feature) in enumerate(question.counts):
            for rows, start, end in self._rows_of(self.ranges[leaf]):
                column = self.bins.columns[feature * self.bins.n_rows : (feature + 1) * self.bins.n_rows]
                counts[k] += np.bincount(column[rows[start:end]], minlength=CELLS)
        return Sum((n_left, cells, counts))

    def sums(self, leaves: Sequence[int], gradients: Floats, hessians: Floats, scales: tuple[float, float]) -> Sum:
        """Σ of gradients and hessians over the documents of each leaf, in fixed point (`GrownTree.sums`)."""
        total = np.zeros((2, len(leaves)), np.int64)
        for rows, starts, ends in self._rows_of_leaves(leaves):
            sums = np.zeros_like(total)
            self._for_leaves(
                len(leaves),
                lambda a, b, rows=rows, starts=starts, ends=ends, sums=sums: sum_leaves(
                    rows, starts, ends, a, b, gradients, scales[0], hessians, scales[1], sums
                ),
            )
            total += sums
        return Sum(total)

    def add_values(self, leaves: Sequence[int], values: Floats, scores: Floats) -> None:
        """Add the value of each leaf to the scores of its documents."""
        for rows, starts, ends in self._rows_of_leaves(leaves):
            self._for_leaves(
                len(leaves),
                lambda a, b, rows=rows, starts=starts, ends=ends: add_leaf_values(
                    rows, starts, ends, a, b, values, scores
                ),
            )

    def _for_leaves(self, n: int, work: Any) -> None:
        pieces = min(n, self.team.n_threads)
        self.team.each(pieces, lambda k: work(n * k // pieces, n * (k + 1) // pieces) if k < pieces else None)

    def _rows_of(self, r: _Ranges) -> list[tuple[Int32s, int, int]]:
        return [(self.rows[0], r.start, r.end), (self.rows[1], r.other_start, r.other_end)]

    def _rows_of_leaves(self, leaves: Sequence[int]) -> list[tuple[Int32s, Ints, Ints]]:
        table = np.array([self.ranges[leaf] for leaf in leaves], np.int64).reshape(-1, 4).T
        return [(self.rows[0], table[0].copy(), table[1].copy()), (self.rows[1], table[2].copy(), table[3].copy())]

    def _split(self, expansion: Expansion) -> int:
        """Order the documents of a leaf, those of the left child first; how many these are."""
        middles, n_left = [], 0
        for rows, start, end in self._rows_of(self.ranges[expansion.leaf]):
            left = self._order(rows, start, end, expansion.feature, expansion.goes_left)
            middles.append(start + left)
            n_left += left
        start, end, other_start, other_end = self.ranges[expansion.leaf]
        self.ranges[expansion.left] = _Ranges(start, middles[0], other_start, middles[1])
        self.ranges[expansion.right] = _Ranges(middles[0], end, middles[1], other_end)
        return n_left

    def _order(self, rows: Int32s, start: int, end: int, feature: int, goes_left: Bytes) -> int:
        """Bring the documents that go left to the front of a range, on threads; how many they are."""
        bins, buffer = self.bins, self.buffer

        def work(a: int, b: int) -> tuple[int, int, int]:
            first, last = start + a, start + b
            return (
                first,
                last,
                int(order_rows(bins.columns, bins.n_rows, feature, goes_left, rows, buffer, first, last)),
            )

        pieces = self.team.shares(end - start, work)
        n_left, before = sum(left for _, _, left in pieces), 0
        for first, last, left in pieces:
            scatter_rows(buffer, first, last, left, rows, start + before, start + n_left + (first - start) - before)
            before += left
        return n_left

    def _histogram_of_left(self, expansion: Expansion) -> Ints:
        """Count the child with fewer documents here; the other's histogram is what the leaf has beside."""
        sizes = [self.ranges[child].end - self.ranges[child].start for child in (expansion.left, expansion.right)]
        children = (expansion.left, expansion.right)
        small, large = children if sizes[0] <= sizes[1] else children[::-1]
        self.histograms[small] = self._count(self.ranges[small])
        self.histograms[large] = self.histograms[expansion.leaf] - self.histograms[small]
        return self.histograms[expansion.left]

    def _count(self, ranges: _Ranges) -> Ints:
        """The histogram of the documents of a range, on threads."""
        rows, first = self.rows[0], ranges.start
        free = list(range(self.team.n_threads))

        def work(a: int, b: int) -> Ints:
            thread, cells = free.pop(), np.empty(self.n_cells, np.int64)
            count_rows(
                self.bins, self.words, rows[first + a : first + b], self.table, self.everything, self.tiles[thread],
                self.tile_words[thread], cells,
            )  # fmt: skip
            return cells

        parts = self.team.shares(ranges.end - first, work)
        for part in parts[1:]:
            parts[0] += part
        return parts[0]


# --- kernels


@kernel
def sum_words(words: Ints, rows: Int32s) -> Int:
    """`quantization.total_of`, called from Python."""
    return total_of(words, rows)


@kernel
def order_rows(
    columns: Bytes, n_rows: Int, feature: Int, goes_left: Bytes, rows: Int32s, buffer: Int32s, first: Int, last: Int
) -> Int:
    """`partitioning.partition`, called from Python."""
    column = columns[U(feature * n_rows) : U((feature + 1) * n_rows)]
    return partition(column, goes_left, rows, buffer, first, last)


@kernel
def count_rows(
    bins: BinMatrix, words: Ints, documents: Int32s, features: FeatureTable, everything: FeatureShare, tile: Bytes,
    tile_words: Ints, cells: Ints,
) -> None:  # fmt: skip
    """`histograms.fill_histograms` of all features, called from Python."""
    fill_histograms(bins, words, documents, features, everything, tile, tile_words, cells)
