"""Lay out the bins of documents and the cells of histograms in memory, feature by feature.

Most documents share one bin of a **sparse** feature: no click, no such word. That bin is not counted. It is the total
of a leaf minus all other bins, exactly, because cells are integers. Only the other bins are stored for counting, as a
list of cell numbers for each document. **Dense** features have one byte per document, with 16 features of a document
next to each other.

A feature has as many cells as bins, rounded up to a multiple of 16. The cells of 16 dense features are equally far
apart, a power of two, so that the counting loop has constant strides.

Splits are scored 16 at a time (`splitting.bound_numbers`). Therefore the bins of a feature are divided into 16 ranges
of equal length. Its cells hold the first bin of each range, then the second bin of each range, and so on (`cell_of`),
so that sums are cumulated in all ranges at the same time, lane by lane. Rows and lists store cell numbers, not bins.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Bytes, Floats, Int, Ints, UInt32s
from podium.core.bitwise import TILE, transpose_bytes
from podium.core.compiling import helper, kernel
from podium.core.intrinsics import copy_16_bytes, prefetch
from podium.core.simd import LANES, WORDS
from podium.core.threads import map_threads, n_threads_for
from podium.trees.growth_types import BLOCK, CELLS, MISSING, STRIDES, N, U

SPARSE_FROM = 0.5  # a feature is sparse if at least this share of the documents is in one bin
N_SAMPLED_ROWS = 1 << 12  # to guess the most frequent bin; a wrong guess only costs time
ENTRIES_OF_GROUP = 8  # minimum average number of cells of a document in a group of sparse features
MAX_GROUPS = 4
MIN_PARALLEL_VALUES = 1 << 20  # laying out fewer takes less time than starting threads
ROWS_OF_PIECE = 1 << 20  # maximum number of rows that a thread lays out at a time
ROWS_AT_ONCE = 64  # rows in a cache line of a column
AHEAD = 4 * ROWS_AT_ONCE  # rows between those that are read and those that are prefetched

# The cost of counting a byte or an entry of a document, and of scanning a cell of two leaves, in nanoseconds.
COST_OF_BYTE, COST_OF_ENTRY, COST_OF_CELL = 0.45, 0.75, 0.7
OVERHEAD_OF_GROUP = 4  # entries that take as long as the overhead of a group
TYPICAL_SHARE = 0.05  # of the documents in a leaf that is counted


Allocate = Callable[[str, int, Any], NDArray[Any]]


def _in_memory(name: str, size: int, dtype: Any) -> NDArray[Any]:
    return np.empty(size, dtype)


class BinMatrix(NamedTuple):
    """The bins of all rows."""

    columns: Bytes  # `columns[feature * n_rows + row]`
    n_rows: Int
    # rows, width: `rows[row * width + place]` is a cell of a dense feature, numbered within the feature
    rows: Bytes
    width: Int
    # entries, starts: the cells of the sparse features in group g that row k is counted in are
    # `entries[starts[j] : starts[j + 1]]` with j = g * (n_rows + 1) + k
    entries: UInt32s
    starts: Ints


@dataclass(frozen=True)
class FeatureLayout:
    """The place of each feature in rows and histograms."""

    dense: Ints  # the features with a byte in each row, in the order of these bytes; those with the most bins first
    sparse: Ints  # the other features, group by group
    groups: Ints  # where each group of `sparse` begins, and the end
    # first_cell, n_cells: of each feature
    first_cell: Ints
    n_cells: Ints
    common: Ints  # the bin of each sparse feature that is not counted; −1 for dense features
    # block_cells, block_strides: of each block of 16 dense features, the first cell, and the distance of two features
    block_cells: Ints
    block_strides: Ints
    ends: Ints  # for each unit of work, the numbers of dense features, groups and cells up to its end
    costs: Floats  # of each unit of work, cumulated

    @property
    def common_cell(self) -> Ints:
        """The cell of the bin that is not counted, among those of its feature; −1 for dense features."""
        return np.where(self.common < 0, -1, cell_of(self.common, self.n_cells))

    @property
    def total_cells(self) -> int:
        """The number of cells of a histogram of all features."""
        return int(self.ends[-1, 2])

    @property
    def width(self) -> int:
        """The bytes of a row of dense features."""
        return -(-len(self.dense) // BLOCK) * BLOCK

    def shares(self, n_threads: int) -> Ints:
        """Return where the share of each thread begins, and the end, in dense features, groups and cells."""
        targets = self.costs[-1] * np.arange(n_threads + 1) / n_threads
        units = np.searchsorted(self.costs, targets * (1 - 1e-9))
        units[0], units[-1] = 0, len(self.costs) - 1
        starts: Ints = self.ends[units]
        return starts

    def group(self, number: int) -> Ints:
        """Return the features of a group of sparse features."""
        return self.sparse[self.groups[number] : self.groups[number + 1]]


@helper
def cell_of(bin_: Any, n_cells: Any) -> Any:
    """Return the number of a bin's cell among the cells of its feature."""
    n = n_cells // LANES  # bins in a range
    return bin_ % n * LANES + bin_ // n


def bin_counts(columns: Bytes, n_rows: int, n_features: int) -> Ints:
    """Count the documents of a sample in each bin of each feature."""
    step = max(1, n_rows // N_SAMPLED_ROWS)
    samples = (columns[feature * n_rows : (feature + 1) * n_rows : step] for feature in range(n_features))
    return np.array([np.bincount(bins, minlength=CELLS) for bins in samples], np.int64).reshape(n_features, CELLS)


def lay_out(counts_by_feature: Ints, n_rows: int, n_bins: Ints) -> FeatureLayout:
    """Decide which features are sparse, from `bin_counts`, and assign cells."""
    n_features = len(n_bins)
    common, shares = np.full(n_features, -1), np.zeros(n_features)
    for feature, counts in enumerate(counts_by_feature):
        if counts.max(initial=0) >= SPARSE_FROM * counts.sum() > 0:
            common[feature], shares[feature] = counts.argmax(), counts.max() / counts.sum()
    rarities = 1 - shares[common >= 0]
    n_groups = min(MAX_GROUPS, max(int(rarities.sum() / ENTRIES_OF_GROUP), 1)) if len(rarities) else 0
    group_of = np.minimum(np.cumsum(rarities) / max(rarities.sum(), 1e-9) * n_groups, max(n_groups - 1, 0)).astype(int)
    groups = np.searchsorted(group_of, np.arange(n_groups + 1))
    return place_features(n_bins, common, groups, 1 - shares, n_rows)


def place_features(n_bins: Ints, common: Ints, groups: Ints, rarities: Floats, n_rows: int) -> FeatureLayout:
    """Assign cells to each feature.

    Args:
        n_bins: the number of bins of each feature.
        common, groups: see `FeatureLayout`.
        rarities: the share of documents that are not in the common bin, to estimate costs.
        n_rows: the number of documents.

    """
    n_cells = -(-(n_bins + 1) // LANES) * LANES
    dense, sparse = np.flatnonzero(common < 0), np.flatnonzero(common >= 0)
    dense = dense[np.argsort(-n_cells[dense], kind="stable")]
    first_cell = np.zeros(len(n_bins), np.int64)
    units: list[tuple[int, int, int, float]] = [(0, 0, 0, 0.0)]  # dense features, groups, cells, cost of a leaf
    n_counted = TYPICAL_SHARE * n_rows
    block_cells, block_strides, cell = [], [], 0
    for start in range(0, len(dense), BLOCK):
        block = dense[start : start + BLOCK]
        stride = next(s for s in STRIDES if s >= n_cells[block[0]])
        block_cells.append(cell)
        block_strides.append(stride)
        first_cell[block] = cell + stride * np.arange(len(block))
        for first in range(0, len(block), 4):
            cell += 4 * stride
            cost = 4 * COST_OF_BYTE * n_counted + COST_OF_CELL * float(n_cells[block[first : first + 4]].sum())
            units.append((start + first + 4, 0, cell, cost))
    for group in range(len(groups) - 1):
        members = sparse[groups[group] : groups[group + 1]]
        first_cell[members] = cell + np.cumsum(n_cells[members]) - n_cells[members]
        n_cells_of_group = int(n_cells[members].sum())
        cell += n_cells_of_group
        n_entries = float(rarities[members].sum()) + OVERHEAD_OF_GROUP
        cost = COST_OF_ENTRY * n_counted * n_entries + COST_OF_CELL * n_cells_of_group
        units.append((units[-1][0], group + 1, cell, cost))
    table = np.array([unit[:3] for unit in units], np.int64)
    costs = np.cumsum([unit[3] for unit in units])
    return FeatureLayout(
        dense, sparse, groups, first_cell, n_cells, common, np.array(block_cells, np.int64),
        np.array(block_strides, np.int64), table, costs,
    )  # fmt: skip


def build_bin_matrix(
    columns: Bytes, n_rows: int, layout: FeatureLayout, n_threads: int | None = None, allocate: Allocate = _in_memory,
    advance: Callable[[float], None] = lambda _: None,
) -> BinMatrix:  # fmt: skip
    """Build the matrix for growth: columns as they are, rows of the dense features, lists of cells of the others.

    `allocate` returns memory for the rows and the lists, by name, size and type. `advance` receives the progress, 2 in
    total.
    """
    width = layout.width
    rows = allocate("rows", n_rows * width + 2 * BLOCK, np.uint8)  # kernels read a few bytes beyond the end
    n_groups = max(len(layout.groups) - 1, 0)
    starts = allocate("starts", n_groups * (n_rows + 1), np.int64)
    starts[:] = 0
    starts_of_groups = starts.reshape(n_groups, n_rows + 1)
    threads = n_threads_for(columns.size, n_threads, MIN_PARALLEL_VALUES)
    step = min(ROWS_OF_PIECE, max(1, -(-n_rows // threads)))
    pieces = [(first, min(first + step, n_rows)) for first in range(0, n_rows, step)]

    def lay_rows(piece: tuple[int, int]) -> None:
        to_rows(columns, n_rows, layout.dense, layout.n_cells, width, *piece, rows, np.empty(TILE * TILE, np.uint8))
        for group in range(n_groups):
            counts = starts_of_groups[group, 1:]
            count_entries(columns, n_rows, layout.group(group), layout.common, *piece, counts)

    for _ in map_threads(lay_rows, pieces, threads):
        advance(1 / len(pieces))
    n_entries = 0
    for group_starts in starts_of_groups:
        group_starts[0] = n_entries
        np.cumsum(group_starts, out=group_starts)
        n_entries = int(group_starts[-1])
    entries = allocate("entries", n_entries + WORDS, np.uint32)

    def lay_entries(piece: tuple[int, int]) -> None:
        for group in range(n_groups):
            fill_entries(
                columns, n_rows, layout.group(group), layout.common, layout.first_cell, layout.n_cells, *piece,
                starts_of_groups[group], entries,
            )  # fmt: skip

    for _ in map_threads(lay_entries, pieces, threads):
        advance(1 / len(pieces))
    return BinMatrix(columns, n_rows, rows, width, entries, starts)


# --- kernels


@helper
def _cell_of_byte(bin_: Any, n: Any, inverse: Any) -> Any:
    """Return `cell_of` for ranges of n bins, without a division: `inverse` is 2^16 // n + 1."""
    lane = np.uint32(np.uint32(np.uint32(bin_) * inverse) >> np.uint32(16))
    return np.uint32(np.uint32(np.uint32(bin_) - np.uint32(lane * n)) * np.uint32(LANES) + lane)


@kernel
def to_rows(
    columns: Bytes, n: Int, features: Ints, n_cells: Ints, width: Int, first: Int, last: Int, rows: Bytes, tile: Bytes
) -> None:
    """Write rows of cell numbers from the columns of some features, 16 rows and columns at a time.

    `tile` is scratch memory.
    """
    for first_row in range(first, last, ROWS_AT_ONCE):
        for block in range(0, len(features), TILE):
            n_columns = min(TILE, len(features) - block)
            for j in range(n_columns):  # hardware does not prefetch as many streams
                prefetch(columns, min(features[block + j] * n + first_row + AHEAD, len(columns) - 1))
            for start in range(first_row, min(first_row + ROWS_AT_ONCE, last), TILE):
                n_rows = min(TILE, last - start)
                for j in range(TILE):  # zeros after the last feature
                    at = features[block + min(j, n_columns - 1)] * n + start
                    if j < n_columns and n_rows == TILE:
                        copy_16_bytes(tile, j * TILE, columns, at)
                    else:
                        for k in range(TILE):
                            tile[U(j * TILE + k)] = columns[U(at + k)] if j < n_columns and k < n_rows else MISSING
                    of_range = np.uint32(n_cells[features[block + min(j, n_columns - 1)]] // LANES)
                    inverse = np.uint32(np.uint32(1 << 16) // of_range + 1)
                    for k in range(TILE):
                        tile[U(j * TILE + k)] = _cell_of_byte(tile[U(j * TILE + k)], of_range, inverse)
                if n_rows == TILE:
                    transpose_bytes(tile, N(0), N(TILE), rows, start * width + block, width)
                else:
                    for k in range(n_rows):
                        for j in range(TILE):
                            rows[U((start + k) * width + block + j)] = tile[U(j * TILE + k)]


@kernel
def count_entries(
    columns: Bytes, n: Int, features: Ints, common: Ints, first: Int, last: Int, counts: Ints
) -> None:  # fmt: skip
    """Count, for each row, the features whose bin is not the common one."""
    for start in range(first, last, ROWS_AT_ONCE):
        for feature in features:
            column, common_bin = feature * n, np.uint8(common[feature])
            prefetch(columns, min(column + start + AHEAD, len(columns) - 1))
            for row in range(start, min(start + ROWS_AT_ONCE, last)):
                counts[row] += np.int64(columns[U(column + row)] != common_bin)


@kernel
def fill_entries(
    columns: Bytes, n: Int, features: Ints, common: Ints, first_cell: Ints, n_cells: Ints, first: Int, last: Int,
    starts: Ints, entries: UInt32s,
) -> None:  # fmt: skip
    """Write the cells of each row. Every bin is written, without a branch; the next one overwrites a common bin."""
    width = len(features) + 1
    lists, lengths = np.empty(ROWS_AT_ONCE * width, np.uint32), np.empty(ROWS_AT_ONCE, np.int64)
    for start in range(first, last, ROWS_AT_ONCE):
        n_rows = min(ROWS_AT_ONCE, last - start)
        for k in range(n_rows):
            lengths[k] = k * width
        for feature in features:
            column, common_bin, cell = feature * n + start, np.uint8(common[feature]), np.uint32(first_cell[feature])
            prefetch(columns, min(column + AHEAD, len(columns) - 1))
            of_range = np.uint32(n_cells[feature] // LANES)
            inverse = np.uint32(np.uint32(1 << 16) // of_range + 1)
            for k in range(n_rows):
                bin_ = columns[U(column + k)]
                lists[U(lengths[k])] = cell + _cell_of_byte(bin_, of_range, inverse)
                lengths[k] += np.int64(bin_ != common_bin)
        for k in range(n_rows):
            to = starts[start + k]
            for entry in range(k * width, lengths[k]):
                entries[U(to + entry - k * width)] = lists[U(entry)]
