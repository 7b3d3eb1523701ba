"""Compiled scoring of tree ensembles on flat arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.core.compiling import helper, kernel

Ints = NDArray[np.int64]
Int = Any  # an integer, compiled as int64


@helper
def _leaf(
    x: NDArray[np.float32],
    root: Int,
    end: Int,
    feature: NDArray[np.int32],
    threshold: NDArray[np.float32],
    missing_left: NDArray[np.bool_],
    category: NDArray[np.int32],
    left: NDArray[np.int32],
    right: NDArray[np.int32],
    category_offsets: Ints,
    category_values: NDArray[np.float32],
) -> Int:
    """The leaf of one tree, whose nodes are those from `root` to `end`, that a document falls into."""
    node = np.int64(0) if end > root else np.int64(-1)
    while node >= 0:
        k = root + node
        value = x[feature[k]]
        if category[k] >= 0:
            low, high = category_offsets[category[k]], category_offsets[category[k] + 1]
            last = high
            while low < high:  # the values rise; each turn halves what is left
                middle = (low + high) // 2
                if category_values[middle] < value:
                    low = middle + 1
                else:
                    high = middle
            goes_left = low < last and category_values[low] == value
        elif np.isnan(value):
            goes_left = missing_left[k]
        else:
            goes_left = value <= threshold[k]
        node = np.int64(left[k] if goes_left else right[k])
    return ~node


@kernel
def add_scores(
    features: NDArray[np.float32],
    first: Int,
    last: Int,
    node_offsets: Ints,
    leaf_offsets: Ints,
    feature: NDArray[np.int32],
    threshold: NDArray[np.float32],
    missing_left: NDArray[np.bool_],
    category: NDArray[np.int32],
    left: NDArray[np.int32],
    right: NDArray[np.int32],
    category_offsets: Ints,
    category_values: NDArray[np.float32],
    leaf_value: NDArray[np.float64],
    scores: NDArray[np.float64],
) -> None:
    """Add the values of the trees `first` … `last` − 1, in this order, to the scores of all rows."""
    for row in range(features.shape[0]):
        total = scores[row]
        for tree in range(first, last):
            leaf = _leaf(
                features[row], node_offsets[tree], node_offsets[tree + 1], feature, threshold, missing_left,
                category, left, right, category_offsets, category_values,
            )  # fmt: skip
            total += leaf_value[leaf_offsets[tree] + leaf]
        scores[row] = total


@kernel
def find_leaves(
    features: NDArray[np.float32],
    node_offsets: Ints,
    feature: NDArray[np.int32],
    threshold: NDArray[np.float32],
    missing_left: NDArray[np.bool_],
    category: NDArray[np.int32],
    left: NDArray[np.int32],
    right: NDArray[np.int32],
    category_offsets: Ints,
    category_values: NDArray[np.float32],
    leaves: NDArray[np.int32],
) -> None:
    """The leaf of every tree that each row falls into."""
    for row in range(features.shape[0]):
        for tree in range(len(node_offsets) - 1):
            leaves[row, tree] = _leaf(
                features[row], node_offsets[tree], node_offsets[tree + 1], feature, threshold, missing_left,
                category, left, right, category_offsets, category_values,
            )  # fmt: skip
