"""Scoring by traversal of each tree from its root to a leaf."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Bools, Float32s, Floats, Int, Int32s, Ints
from podium.core.compiling import helper, kernel
from podium.core.threads import for_ranges
from podium.data.features import Features
from podium.data.sparse import frozen_block, is_sparse

SPARSE_ROWS_AT_ONCE = 4096  # rows to make dense at a time


class TreeArrays(NamedTuple):
    """The arrays of an ensemble that determine scores; see `podium.models.Ensemble` and `podium.trees.Tree`."""

    node_offsets: Ints
    leaf_offsets: Ints
    feature: Int32s
    threshold: Float32s
    missing_left: Bools
    category: Int32s
    left: Int32s
    right: Int32s
    category_offsets: Ints
    category_values: Float32s
    leaf_value: Floats

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> TreeArrays:
        """Select these arrays from those of an ensemble, which `check_trees` has accepted."""
        return cls(*(arrays[name] for name in cls._fields))

    @property
    def n_trees(self) -> int:
        """The number of trees."""
        return len(self.node_offsets) - 1


def add_scores(
    trees: TreeArrays, features: Features, scores: Floats, first: int, last: int, n_threads: int | None = None
) -> None:
    """Add the values of the trees `first` … `last` − 1, in this order, to the scores of all float32 rows."""
    _for_blocks(features, lambda block, rows: _add_scores(block, first, last, trees, scores[rows]), n_threads)


def find_leaves(trees: TreeArrays, features: Features, n_threads: int | None = None) -> Int32s:
    """Return the leaf of each tree (column) that each float32 row falls into."""
    leaves = np.empty((features.shape[0], trees.n_trees), np.int32)
    _for_blocks(features, lambda block, rows: _find_leaves(block, trees, leaves[rows]), n_threads)
    return leaves


def _for_blocks(features: Features, work: Callable[[Float32s, slice], None], n_threads: int | None) -> None:
    """Call `work(block, rows)` on threads, with dense blocks of the features and the rows that they hold."""
    max_rows = SPARSE_ROWS_AT_ONCE if is_sparse(features) else max(1, features.shape[0])

    def work_on(first: int, last: int) -> None:
        for start in range(first, last, max_rows):
            rows = slice(start, min(start + max_rows, last))
            work(frozen_block(features, rows), rows)

    for_ranges(features.shape[0], work_on, n_threads, smallest=256)


@kernel
def _add_scores(features: Float32s, first: Int, last: Int, trees: TreeArrays, scores: Floats) -> None:
    for row in range(features.shape[0]):
        total = scores[row]
        for tree in range(first, last):
            total += trees.leaf_value[trees.leaf_offsets[tree] + _find_leaf(features[row], tree, trees)]
        scores[row] = total


@kernel
def _find_leaves(features: Float32s, trees: TreeArrays, leaves: Int32s) -> None:
    for row in range(features.shape[0]):
        for tree in range(len(trees.node_offsets) - 1):
            leaves[row, tree] = _find_leaf(features[row], tree, trees)


@helper
def _find_leaf(x: Float32s, tree: Int, trees: TreeArrays) -> Int:
    root = trees.node_offsets[tree]
    node = np.int64(0) if trees.node_offsets[tree + 1] > root else np.int64(-1)
    while node >= 0:
        k = root + node
        node = np.int64(trees.left[k] if goes_left(x[trees.feature[k]], k, trees) else trees.right[k])
    return ~node


@helper
def goes_left(value: Any, node: Int, trees: TreeArrays) -> Any:
    """Return whether a value sends a document to the left at a node, numbered among all trees' nodes."""
    if trees.category[node] >= 0:
        first, last = trees.category_offsets[trees.category[node]], trees.category_offsets[trees.category[node] + 1]
        return index_among(value, trees.category_values, first, last) < last - first
    if np.isnan(value):
        return trees.missing_left[node]
    return value <= trees.threshold[node]


@helper
def index_among(value: Any, values: Float32s, first: Int, last: Int) -> Int:
    """Return the index of a value among ascending values from `first` to `last`; their number if it is absent."""
    low, high = first, last
    while low < high:
        middle = (low + high) // 2
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low - first if low < last and values[low] == value else last - first
