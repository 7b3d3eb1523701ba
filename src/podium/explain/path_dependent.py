"""Exact path-dependent Shapley values of trees, for many documents at a time.

The game: features enter one by one, in random order. A document follows a split whose feature has entered. At any other
split it goes both ways, weighted by the shares of the training documents (path-dependent, Lundberg et al. 2020).
`interventional` has the game against a background set.

A leaf of value v tests d different features. z_j is the share of documents that pass all its tests of feature j, and
o_j is 1 if this document passes them, else 0. A set S of features that have entered is worth
v Π_{j∈S} o_j Π_{j∉S} z_j, and Shapley's weight of S is ∫ t^|S| (1−t)^(d−1−|S|) dt over [0, 1]. So

    φ_i = v (o_i − z_i) ∫ Π_{j≠i} (o_j t + (1−t) z_j) dt.                                                            (1)

The integrand is a polynomial of degree d − 1, so Gauss-Legendre quadrature with ⌈d/2⌉ points is exact, and all its
terms have the same sign, so that nothing cancels. With P(t) = Π_j (o_j t + (1−t) z_j), updated on the way down, and
H(t), the sum of v P(t) over the leaves below an edge, summed up on the way back, an edge contributes to its feature

    ∫ H(t) (r(o, z) − r(o′, z′)) dt,   r(o, z) = (o − z) / (o t + (1−t) z),                                          (2)

where o′ and z′ belong to the last edge above it with the same feature (r = 0 if there is none). Over the edges of a
path these differences add up to r of the deepest one, which gives (1). So a tree takes time proportional to nodes ×
points, while TreeSHAP takes leaves × depth². (Working on edges instead of leaves is the idea of Linear TreeSHAP, Yu et
al. 2022.)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Float32s, Floats, Int, Ints
from podium.core.compiling import helper, kernel
from podium.core.intrinsics import borrowed, not_inlined
from podium.core.threads import for_ranges
from podium.data.features import Features
from podium.data.sparse import frozen_block
from podium.errors import DataError
from podium.models.scoring.traversal import TreeArrays, goes_left

BLOCK = 64  # documents at a time
ROWS_AT_ONCE = 4096  # rows to make dense at a time


class Edges(NamedTuple):
    """The values of edges for formulas (1) and (2): 2k is the left edge of node k, 2k + 1 the right one."""

    share: Floats  # z of its feature, over all edges down to this one
    above: Ints  # the last edge above with the same feature, −1 if there is none
    entry: Ints  # the edge that leads to each node, −1 for roots
    n_points: Ints  # the number of points for each tree
    # points, weights: of Gauss-Legendre quadrature on [0, 1], row n for n points
    points: Floats
    weights: Floats


class PathDependentShap:
    """Shapley values of an ensemble by the shares of its training documents; `base` is a score without any feature."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.trees = TreeArrays.of(arrays)
        _require_counts(arrays)
        n_nodes, n_trees = len(self.trees.feature), self.trees.n_trees
        share, above, entry = np.ones(2 * n_nodes), np.full(2 * n_nodes, -1, np.int64), np.full(n_nodes, -1, np.int64)
        n_features, expected = np.zeros(n_trees, np.int64), np.zeros(n_trees)
        describe_edges(self.trees, arrays["count"], arrays["leaf_count"], share, above, entry, n_features, expected)
        n_points = np.maximum(1, (n_features + 1) // 2)
        points, weights = _quadrature(int(n_points.max(initial=1)))
        self.edges = Edges(share, above, entry, n_points, points, weights)
        self.base = float(expected.sum())
        self.max_nodes = int(np.diff(self.trees.node_offsets).max(initial=0))

    def values(self, features: Features, n_threads: int | None = None) -> Floats:
        """Return φ of each feature (column) for each row of float32 features."""
        contributions = np.zeros(features.shape)
        n_points = self.edges.points.shape[0] - 1

        def work(first: int, last: int) -> None:
            scratch = np.empty((2 * self.max_nodes + 1, n_points, BLOCK)), np.empty((2 * self.max_nodes, BLOCK))
            for start in range(first, last, ROWS_AT_ONCE):
                rows = slice(start, min(start + ROWS_AT_ONCE, last))
                add_shapley_values(frozen_block(features, rows), self.trees, self.edges, *scratch, contributions[rows])

        for_ranges(features.shape[0], work, n_threads, smallest=BLOCK)
        return contributions


def _require_counts(arrays: Mapping[str, NDArray[Any]]) -> None:
    """Raise if the trees do not store the number of documents at each node."""
    if (arrays["count"] <= 0).any() or (arrays["leaf_count"] < 0).any():
        raise DataError(
            "these trees do not store the number of documents at each node (their format has no counts): pass a "
            "background, explain(data, background=…)"
        )


def _quadrature(max_points: int) -> tuple[Floats, Floats]:
    """Return points and weights of Gauss-Legendre quadrature on [0, 1], in row n for n points."""
    points, weights = np.zeros((max_points + 1, max_points)), np.zeros((max_points + 1, max_points))
    for n in range(1, max_points + 1):
        x, w = np.polynomial.legendre.leggauss(n)
        points[n, :n], weights[n, :n] = (x + 1) / 2, w / 2
    return points, weights


# --- kernels


@kernel
def describe_edges(
    trees: TreeArrays, count: Ints, leaf_count: Ints, share: Floats, above: Ints, entry: Ints, n_features: Ints,
    expected: Floats,
) -> None:  # fmt: skip
    """Fill in the edges, the maximum number of different features on a path of each tree, and its mean value."""
    depth = np.zeros(len(count), np.int64)  # the number of different features above a node
    for tree in range(len(trees.node_offsets) - 1):
        root, first_leaf = trees.node_offsets[tree], trees.leaf_offsets[tree]
        if trees.node_offsets[tree + 1] == root:
            expected[tree] = trees.leaf_value[first_leaf]
        for k in range(root, trees.node_offsets[tree + 1]):
            upper = entry[k]
            while upper >= 0 and trees.feature[upper // 2] != trees.feature[k]:
                upper = entry[upper // 2]
            n_different = depth[k] + (1 if upper < 0 else 0)
            n_features[tree] = max(n_features[tree], n_different)
            for side in range(2):
                edge, child = 2 * k + side, np.int64(trees.right[k] if side == 1 else trees.left[k])
                if child >= 0:
                    depth[root + child], entry[root + child], n_child = n_different, edge, count[root + child]
                else:
                    n_child = leaf_count[first_leaf + ~child]
                    expected[tree] += trees.leaf_value[first_leaf + ~child] * (n_child / count[root])
                above[edge] = upper
                share[edge] = n_child / count[k] * (1.0 if upper < 0 else share[upper])


@kernel
def add_shapley_values(
    features: Float32s, trees: TreeArrays, edges: Edges, products: Floats, passes: Floats, values: Floats,
) -> None:  # fmt: skip
    """Add φ of all trees to the values of all rows; `products` and `passes` are scratch for one block of rows."""
    n_features = features.shape[1]
    block_values = np.empty((n_features, BLOCK))
    block = np.empty((n_features, BLOCK), np.float32)
    for start in range(0, features.shape[0], BLOCK):
        n = min(BLOCK, features.shape[0] - start)
        block_values[:] = 0.0
        for feature in range(n_features):
            for row in range(BLOCK):
                block[feature, row] = features[start + min(row, n - 1), feature]
        for tree in range(len(trees.node_offsets) - 1):
            if trees.node_offsets[tree + 1] > trees.node_offsets[tree]:
                go_down(tree, trees, edges, block, borrowed(products), borrowed(passes))
                go_up(tree, trees, edges, borrowed(products), borrowed(passes), borrowed(block_values))
        for row in range(n):
            for feature in range(n_features):
                values[start + row, feature] += block_values[feature, row]


@helper
def go_down(
    tree: Int, trees: TreeArrays, edges: Edges, block: Float32s, products: Floats,
    passes: Floats,
) -> None:  # fmt: skip
    """Compute P(t) and o of every edge of a tree."""
    not_inlined()
    root, n_points, top = trees.node_offsets[tree], edges.n_points[tree], products.shape[0] - 1
    points = edges.points[n_points]
    products[top, :n_points] = 1.0
    for k in range(root, trees.node_offsets[tree + 1]):
        left, entry = 2 * (k - root), edges.entry[k] - 2 * root if edges.entry[k] >= 0 else top
        column = block[trees.feature[k]]
        threshold = trees.threshold[k]
        if trees.category[k] >= 0:
            for row in range(BLOCK):
                passes[left, row] = 1.0 if goes_left(column[row], k, trees) else 0.0
        elif trees.missing_left[k]:  # all comparisons with a missing value are false
            for row in range(BLOCK):
                passes[left, row] = 0.0 if column[row] > threshold else 1.0
        else:
            for row in range(BLOCK):
                passes[left, row] = 1.0 if column[row] <= threshold else 0.0
        for row in range(BLOCK):
            passes[left + 1, row] = 1.0 - passes[left, row]
        for side in range(2):
            edge, above = left + side, edges.above[2 * k + side]
            share = edges.share[2 * k + side]
            if above < 0:
                for q in range(n_points):
                    t, rest = points[q], (1.0 - points[q]) * share
                    for row in range(BLOCK):
                        products[edge, q, row] = products[entry, q, row] * (passes[edge, row] * t + rest)
            else:
                upper, upper_share = above - 2 * root, edges.share[above]
                for row in range(BLOCK):
                    passes[edge, row] *= passes[upper, row]
                for q in range(n_points):
                    t, rest, upper_rest = points[q], (1.0 - points[q]) * share, (1.0 - points[q]) * upper_share
                    if_passed = 1.0 / (t + upper_rest)  # divides by the factor of the edge above with the same feature
                    if_not = 1.0 / upper_rest if upper_rest > 0.0 else 0.0
                    for row in range(BLOCK):
                        without_upper = if_not + passes[upper, row] * (if_passed - if_not)
                        factor = (passes[edge, row] * t + rest) * without_upper
                        products[edge, q, row] = products[entry, q, row] * factor


@helper
def go_up(
    tree: Int, trees: TreeArrays, edges: Edges, products: Floats, passes: Floats,
    values: Floats,
) -> None:  # fmt: skip
    """Compute H(t) of every edge in place of P(t), and add (2) to its feature."""
    not_inlined()
    root, n_points, first_leaf = trees.node_offsets[tree], edges.n_points[tree], trees.leaf_offsets[tree]
    points, weights = edges.points[n_points], edges.weights[n_points]
    for k in range(trees.node_offsets[tree + 1] - 1, root - 1, -1):
        feature = trees.feature[k]
        for side in range(2):
            edge, above = 2 * (k - root) + side, edges.above[2 * k + side]
            child = np.int64(trees.right[k] if side == 1 else trees.left[k])
            share = edges.share[2 * k + side]
            for q in range(n_points):
                if child >= 0:
                    for row in range(BLOCK):
                        products[edge, q, row] = products[2 * child, q, row] + products[2 * child + 1, q, row]
                else:
                    value = trees.leaf_value[first_leaf + ~child]
                    for row in range(BLOCK):
                        products[edge, q, row] *= value
                t = points[q]
                not_passed = -1.0 / (1.0 - t)  # r(0, z); r(1, z) is r(0, z) plus the difference
                difference = weights[q] * ((1.0 - share) / (t + (1.0 - t) * share) - not_passed)
                if above < 0:
                    constant = weights[q] * not_passed
                    for row in range(BLOCK):
                        ratio = constant + passes[edge, row] * difference
                        values[feature, row] += ratio * products[edge, q, row]
                else:
                    upper, upper_share = above - 2 * root, edges.share[above]
                    upper_difference = weights[q] * ((1.0 - upper_share) / (t + (1.0 - t) * upper_share) - not_passed)
                    for row in range(BLOCK):
                        ratio = passes[edge, row] * difference - passes[upper, row] * upper_difference
                        values[feature, row] += ratio * products[edge, q, row]
