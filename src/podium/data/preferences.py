"""Preferences between pairs of documents, instead of labels or beside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.core.array_types import Float32s, Ints
from podium.data.columns import as_array, frozen, to_floats
from podium.data.grouping import query_of_row
from podium.errors import DataError


@dataclass(frozen=True)
class PreferencePairs:
    """Row `i` should stand above row `j` with the given probability; contradictions are allowed."""

    i: Ints
    j: Ints
    probability: Float32s

    def __len__(self) -> int:
        return len(self.i)


def to_preferences(values: Any, n: int, order: Ints, offsets: Ints) -> PreferencePairs:
    """Pairs (i, j, probability that i stands above j) of rows of one query."""
    columns = _as_columns(values)
    i, j = (_to_row_numbers(column, name, n) for name, column in zip("ij", columns, strict=False))
    if len(i) != len(j):
        raise DataError(f"preferences: i has {len(i)} entries and j has {len(j)}")
    probability = (
        to_floats(columns[2], "preferences: probability", len(i)) if len(columns) == 3 else np.ones(len(i), np.float32)
    )
    bad = np.flatnonzero(~((probability >= 0) & (probability <= 1)))
    if len(bad):
        raise DataError(f"preferences: pair {bad[0]} has probability {probability[bad[0]]}, not in [0, 1]")
    query = query_of_row(order, offsets)
    bad = np.flatnonzero((query[i] != query[j]) | (i == j))
    if len(bad):
        k = bad[0]
        raise DataError(f"preferences: pair {k} (rows {i[k]} and {j[k]}) must name two documents of one query")
    return PreferencePairs(frozen(i), frozen(j), frozen(probability))


def _as_columns(values: Any) -> tuple[Any, ...]:
    """Two or three columns, from columns or rows."""
    if isinstance(values, PreferencePairs):
        return values.i, values.j, values.probability
    if isinstance(values, list):  # of pairs; a tuple holds columns
        values = as_array(values, np.float64) if values else np.empty((0, 2))
    if isinstance(values, np.ndarray) and values.ndim == 2:
        values = tuple(values.T)
    if not isinstance(values, tuple) or len(values) not in (2, 3):
        raise DataError(
            "preferences must be columns (i, j) or (i, j, probability) as a tuple, or rows of those as a list or array"
        )
    return values


def _to_row_numbers(column: Any, name: str, n: int) -> Ints:
    array = np.atleast_1d(as_array(column))
    if array.size == 0:
        array = array.astype(np.int64)
    is_whole = array.dtype.kind in "iu" or (array.dtype.kind == "f" and np.array_equal(array, np.floor(array)))
    if array.ndim != 1 or not is_whole:
        raise DataError(f"preferences: {name} must be a column of row numbers")
    bad = np.flatnonzero((array < 0) | (array >= n))
    if len(bad):
        raise DataError(f"preferences: pair {bad[0]} names row {array[bad[0]]}, but rows go from 0 to {n - 1}")
    return array.astype(np.int64)
