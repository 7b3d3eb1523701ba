"""Validation of the flat arrays of trees, so that traversal is safe."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Float32s, Ints
from podium.errors import DataError

# The arrays of an ensemble with their types: one entry per node, leaf, tree or category.
ARRAYS = {
    "node_offsets": np.int64, "leaf_offsets": np.int64, "feature": np.int32, "threshold": np.float32,
    "missing_left": np.bool_, "category": np.int32, "left": np.int32, "right": np.int32, "gain": np.float64,
    "count": np.int64, "category_offsets": np.int64, "category_values": np.float32, "leaf_value": np.float64,
    "leaf_count": np.int64,
}  # fmt: skip
NODE_ARRAYS = ("feature", "threshold", "missing_left", "category", "left", "right", "gain", "count")
LEAF_ARRAYS = ("leaf_value", "leaf_count")
MAX_LEAF_VALUE = 1e290  # of a leaf: the sum of as many as fit into memory is finite


def check_trees(arrays: Mapping[str, NDArray[Any]], n_features: int) -> None:
    """Raise if a walk from a root could leave the arrays or never end.

    Every kernel that traverses a model (`models/scoring/`) and every method that handles single trees relies on this:

    1. All arrays exist, and are one-dimensional, contiguous and of the types that kernels are compiled for.
    2. Offsets begin with 0, never descend, and end with the length of the array that they divide, so that tree t's
       nodes and leaves, and the values of every category, are within their arrays. Neighbouring offsets are compared,
       because differences of arbitrary int64 could overflow.
    3. The children of node k of a tree of n nodes are nodes above k and below n, or leaves from 0 to n. So every step
       of a walk increases k or ends at a leaf: a walk ends after at most n steps, and reads nothing outside the tree.
    4. Each node except the root, and each leaf, is a child exactly once. So recursion visits each node once.
    5. A feature is one of the `n_features` columns, which scoring compares with the data, and a category has an entry
       in `category_offsets`.

    Numbers that are not indices only have to keep scores finite: thresholds are not NaN, and leaf values are bounded.
    """

    def require(condition: Any, problem: str) -> None:
        if not condition:
            raise DataError(f"the trees are invalid: {problem}")

    for key, dtype in ARRAYS.items():
        a = arrays.get(key)
        is_column = isinstance(a, np.ndarray) and a.dtype == dtype and a.ndim == 1 and a.flags.c_contiguous
        require(is_column and a.flags.aligned, f"{key} must be a contiguous column of {np.dtype(dtype)}")  # type: ignore[union-attr]
    require(arrays.keys() == ARRAYS.keys(), "there are unknown arrays")
    nodes, leaves, sets = (arrays[key] for key in ("node_offsets", "leaf_offsets", "category_offsets"))
    n_nodes, n_leaves = len(arrays["feature"]), len(arrays["leaf_value"])
    for key in NODE_ARRAYS:
        require(len(arrays[key]) == n_nodes, f"{key} and feature must have the same length")
    require(len(arrays["leaf_count"]) == n_leaves, "leaf_count and leaf_value must have the same length")
    require(_are_offsets(nodes, n_nodes), "node_offsets do not match the arrays")
    require(_are_offsets(leaves, n_leaves), "leaf_offsets do not match the arrays")
    require(_are_offsets(sets, len(arrays["category_values"])), "category_offsets do not match the arrays")
    require(len(nodes) == len(leaves), "node_offsets and leaf_offsets have different numbers of trees")
    sizes = np.diff(nodes)
    require(np.array_equal(np.diff(leaves), sizes + 1), "a tree must have one leaf more than nodes")

    feature, category = arrays["feature"], arrays["category"]
    require(_are_between(feature, 0, n_features - 1), "a feature is out of range")
    require(_are_between(category, -1, len(sets) - 2), "a category is out of range")
    is_once = np.array_equal(category[category >= 0], np.arange(len(sets) - 1))
    require(is_once, "each set of categories must belong to exactly one node")
    require(_ascend_within(arrays["category_values"], sets), "the categories of a node do not ascend")
    require(_are_between(arrays["missing_left"].view(np.uint8), 0, 1), "missing_left is neither true nor false")
    require(not np.isnan(arrays["threshold"]).any(), "a threshold is NaN")
    are_bounded = _are_between(arrays["leaf_value"], -MAX_LEAF_VALUE, MAX_LEAF_VALUE)  # false for NaN
    require(are_bounded, "the value of a leaf is not finite or too large")
    _check_children(arrays, nodes, leaves, sizes, require)


def _check_children(
    arrays: Mapping[str, NDArray[Any]], nodes: Ints, leaves: Ints, sizes: Ints,
    require: Any,
) -> None:  # fmt: skip
    """Check points 3 and 4 of `check_trees`; the offsets are already known to be valid."""
    n_nodes, n_leaves = len(arrays["feature"]), len(arrays["leaf_value"])
    root, size, first_leaf = (np.repeat(x, sizes) for x in (nodes[:-1], sizes, leaves[:-1]))
    node = np.arange(n_nodes) - root
    is_child, is_leaf_child = np.zeros(n_nodes, np.int64), np.zeros(n_leaves, np.int64)
    for side in ("left", "right"):
        child = arrays[side].astype(np.int64)
        inner = child >= 0
        require((~inner | (child > node)).all(), "the child of a node comes before it")
        require((~inner | (child < size)).all(), "the children of a tree are not its nodes")
        require((inner | (~child <= size)).all(), "the children of a tree are not its leaves")
        is_child += np.bincount((root + child)[inner], minlength=n_nodes)
        is_leaf_child += np.bincount((first_leaf + ~child)[~inner], minlength=n_leaves)
    is_root, is_only_leaf = np.zeros(n_nodes, np.int64), np.zeros(n_leaves, np.int64)
    is_root[nodes[:-1][sizes > 0]] = 1
    is_only_leaf[leaves[:-1][sizes == 0]] = 1
    require((is_child + is_root == 1).all(), "a node must be the child of exactly one other node")
    require((is_leaf_child + is_only_leaf == 1).all(), "a leaf must be the child of exactly one node")


def _are_offsets(offsets: Ints, total: int) -> bool:
    """Return whether offsets ascend from 0 to a total, without differences, which could overflow int64."""
    ends = len(offsets) > 0 and offsets[0] == 0 and offsets[-1] == total
    return bool(ends and (offsets[1:] >= offsets[:-1]).all())


def _are_between(values: NDArray[Any], least: float, most: float) -> bool:
    return len(values) == 0 or bool(values.min() >= least and values.max() <= most)


def _ascend_within(values: Float32s, offsets: Ints) -> bool:
    """Return whether the values between offsets ascend, because scoring finds them by bisection."""
    ascends = values[1:] > values[:-1]
    starts = offsets[(offsets > 0) & (offsets < len(values))]
    ascends[starts - 1] = True
    return bool(ascends.all()) and not np.isnan(values).any()


def select_trees(arrays: Mapping[str, NDArray[Any]], numbers: Ints) -> dict[str, NDArray[Any]]:
    """Return the arrays of only some trees, in the order of `numbers`."""
    nodes, node_offsets = _pieces(arrays["node_offsets"], numbers)
    leaves, leaf_offsets = _pieces(arrays["leaf_offsets"], numbers)
    selected = {key: arrays[key][nodes] for key in NODE_ARRAYS} | {key: arrays[key][leaves] for key in LEAF_ARRAYS}
    is_category = selected["category"] >= 0
    values, category_offsets = _pieces(arrays["category_offsets"], selected["category"][is_category].astype(np.int64))
    selected["category"] = np.where(is_category, np.cumsum(is_category) - 1, -1).astype(np.int32)
    selected |= {"node_offsets": node_offsets, "leaf_offsets": leaf_offsets, "category_offsets": category_offsets}
    selected["category_values"] = arrays["category_values"][values]
    return {key: selected[key] for key in ARRAYS}


def _pieces(offsets: Ints, numbers: Ints) -> tuple[Ints, Ints]:
    """Return the indices of some pieces, and the offsets of the pieces among them."""
    starts, sizes = offsets[numbers], offsets[numbers + 1] - offsets[numbers]
    new_offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    return np.arange(new_offsets[-1]) + np.repeat(starts - new_offsets[:-1], sizes), new_offsets
