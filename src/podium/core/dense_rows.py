"""Let kernels read dense features 64 rows at a time, column by column."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from podium.core.array_types import Float32s, Int
from podium.core.bitwise import TILE, WORD, transpose_tile
from podium.core.compiling import helper
from podium.core.mapping import as_kernel_array

U = np.uint64  # an unsigned index avoids Numba's check for negative indices

COLUMN_STRIDE = WORD + TILE  # not a power of two, because then all columns would share the same cache sets


class DenseRows(NamedTuple):
    """Dense features as a flat array of float32: row r, column c is at r * row_stride + c * column_stride."""

    flat: Float32s
    row_stride: int
    column_stride: int
    n_rows: int
    n_columns: int


def as_rows(features: Float32s) -> DenseRows:
    """Return dense float32 features as a flat array in memory order, without a copy if possible."""
    n_rows, n_columns = features.shape
    features = features.astype(np.float32, copy=False)
    flags = features.flags
    if flags.f_contiguous and not flags.c_contiguous:
        return DenseRows(as_kernel_array(features.T), 1, n_rows, n_rows, n_columns)
    return DenseRows(as_kernel_array(np.ascontiguousarray(features)), n_columns, 1, n_rows, n_columns)


def room_for_columns() -> Float32s:
    """Return the scratch memory that `load_columns` writes to."""
    return np.zeros(TILE * COLUMN_STRIDE, np.float32)


# --- kernels


@helper
def load_columns(rows: DenseRows, start: Int, last_row: Int, column: Int, columns: Float32s) -> tuple[Int, Int]:
    """Copy a column of 64 rows from `start` on, with its neighbours if that is as fast.

    Return the number of the first copied column, and the number of copied columns. Each copy is contiguous and begins
    `COLUMN_STRIDE` after the previous one. Rows past the last are copies of it. Copying more than 64 rows at a time
    would be slower, because the kernel would wait for memory.
    """
    if rows.column_stride == 1 and rows.n_columns >= TILE:
        first = min(column, rows.n_columns - TILE)
        for k in range(0, WORD, TILE):
            transpose_tile(rows.flat, rows.row_stride, start + k, last_row, first, columns, k, COLUMN_STRIDE)
        return first, TILE
    _copy_column(rows, start, last_row, column, columns)
    return column, 1


@helper
def _copy_column(rows: DenseRows, start: Int, last_row: Int, column: Int, values: Float32s) -> None:
    """Copy one column of 64 rows from `start` on; repeat the last row beyond the end."""
    first, n = start * rows.row_stride + column * rows.column_stride, min(WORD, last_row + 1 - start)
    for k in range(WORD):
        values[U(k)] = rows.flat[U(first + min(k, n - 1) * rows.row_stride)]
