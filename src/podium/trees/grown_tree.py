"""Trees as flat arrays, the documents of their leaves, sums over leaves, bounds of leaf values, and scores of rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from podium.core.array_types import Bools, Bytes, Float32s, Floats, Int, Int32s, Ints
from podium.core.compiling import helper, kernel
from podium.core.intrinsics import borrowed, not_inlined
from podium.core.team import Team
from podium.core.threads import n_threads_for
from podium.trees.bin_matrix import BinMatrix
from podium.trees.binning import BinnedFeatures
from podium.trees.growth_types import CATEGORY, CELLS, FEATURE, LEFT, MISSING, RIGHT, LeafSums, TreeBuffers, U
from podium.trees.quantization import TINY, BoundedGradients, shrunk

MAX_BYTE_LEAVES = 256  # how many leaves a byte can number
ROWS_AT_ONCE = 2048  # rows at a time, so that their regions stay in the nearest cache
SUMS_AT_ONCE = 4  # sums of each leaf, which rows use in turn


@dataclass(frozen=True)
class Tree:
    """Nodes and leaves. Node 0 is the root, and a negative child is the leaf ~child. A tree of one leaf has no node.

    Attributes:
        feature: the feature that each node tests.
        threshold: x ≤ threshold goes left.
        missing_left: whether missing values go left.
        category: for a categorical node the index of its entry in `categories`, else −1. Values in that entry go left;
            all others, including missing and unknown ones, go right.
        left, right: the children.
        gain: by how much each split raised the score (`splitting`).
        count: the number of training documents that reached each node.
        leaf_value, leaf_count: the value of each leaf, and its number of training documents.
        categories: for each categorical node, the values that go left.

    """

    feature: Int32s
    threshold: Float32s
    missing_left: Bools
    category: Int32s
    left: Int32s
    right: Int32s
    gain: Floats
    count: Ints
    leaf_value: Floats
    leaf_count: Ints
    categories: tuple[Float32s, ...] = ()

    @property
    def n_leaves(self) -> int:
        """The number of leaves."""
        return len(self.leaf_value)


@dataclass(frozen=True)
class GrownTree:
    """A tree and the rows of its leaves, before the leaves get their values.

    Attributes:
        tree: the tree; its leaf values are 0, or `added_values`.
        rows: the rows that it was grown on, grouped by leaf.
        starts, ends: the rows of leaf k are `rows[starts[k] : ends[k]]`.
        goes_left: for each node and bin, whether the bin goes left.
        leaf_of_row: the leaf of each row, if the tree was grown on all rows and has at most 256 leaves.
        bounds: the lowest and highest value of each leaf under monotone constraints; None without constraints.
        known_sums: the gradients that growth summed over leaves, and their sums; None if it did not.
        added_values: the leaf values that growth added to the scores of rows; None if it did not.

    """

    tree: Tree
    rows: Int32s
    starts: Ints
    ends: Ints
    goes_left: Bools
    leaf_of_row: Bytes | None = None
    bounds: tuple[Floats, Floats] | None = None
    known_sums: tuple[BoundedGradients, tuple[Floats, Floats]] | None = None
    added_values: Floats | None = None

    @property
    def leaf_rows(self) -> list[Int32s]:
        """The rows of each leaf."""
        return [self.rows[a:b] for a, b in zip(self.starts, self.ends, strict=True)]

    def sums(self, gradients: BoundedGradients, team: Team) -> tuple[Floats, Floats]:
        """Return the sums of gradients and hessians over the rows of each leaf, from int64 sums in fixed point."""
        if self.known_sums is not None and self.known_sums[0] is gradients:
            return self.known_sums[1]
        scales = scales_of_sums(gradients)
        return from_units(self.sums_in_units(gradients, scales, team), scales)

    def sums_in_units(self, gradients: BoundedGradients, scales: tuple[float, float], team: Team) -> Ints:
        """Return the sums of each leaf as integers, in units of 1/scale, which are exact in any order."""
        n_leaves, leaf_of_row = len(self.starts), self.leaf_of_row
        if leaf_of_row is not None:

            def sum_share(a: int, b: int) -> Ints:
                total, sums = np.empty((2, n_leaves), np.int64), np.empty((SUMS_AT_ONCE, n_leaves, 2), np.int64)
                compiled_sum_by_leaf(
                    leaf_of_row, a, b, gradients.gradients, gradients.hessians, *scales, n_leaves, sums, total
                )
                return total

            parts = team.shares(len(leaf_of_row), sum_share)
            total: Ints = sum(parts[1:], parts[0])
            return total
        return sum_ranges(self.rows, self.starts, self.ends, gradients, scales, team)

    def add_to_rows(self, values: Floats, scores: Floats, team: Team) -> None:
        """Add each leaf's value to the scores of its rows; other rows keep their scores."""
        leaf_of_row = self.leaf_of_row
        if leaf_of_row is not None:
            team.shares(len(scores), lambda a, b: add_by_leaf(leaf_of_row, a, b, values, scores))
        else:
            add_to_ranges(self.rows, self.starts, self.ends, values, scores, team)

    def add_by_bins(self, values: Floats, binned: BinnedFeatures, scores: Floats, team: Team) -> None:
        """Add to the score of each binned document the value of its leaf."""
        t, columns, n = self.tree, binned.columns, binned.n_rows
        if len(values) > MAX_BYTE_LEAVES:
            scores += values[self.leaf_of_rows(binned, team)]
            return
        team.shares(
            n,
            lambda a, b: add_values_by_columns(
                columns, n, a, b, t.feature, t.category, self.goes_left, t.left, t.right, values, scores
            ),
        )

    def leaf_of_rows(self, binned: BinnedFeatures, team: Team) -> Ints:
        """Return the leaf of each binned document; the tree need not have been grown on them."""
        t, columns, n = self.tree, binned.columns, binned.n_rows
        leaf = np.empty(n, np.int64)
        team.shares(n, lambda a, b: find_leaves(columns, n, a, b, t.feature, self.goes_left, t.left, t.right, leaf))
        return leaf

    def within_bounds(self, values: Floats, unit: float = 1.0) -> Floats:
        """Clip leaf values, which are multiplied by `unit`, to the bounds that monotone constraints set."""
        return values if self.bounds is None else np.clip(values, unit * self.bounds[0], unit * self.bounds[1])

    def with_values(self, values: Floats) -> Tree:
        """Return the tree with leaf values."""
        t = self.tree  # `replace` takes longer than everything else in Python for a small tree
        if t.leaf_value is values:
            return t
        return Tree(
            t.feature, t.threshold, t.missing_left, t.category, t.left, t.right, t.gain, t.count, values, t.leaf_count,
            t.categories,
        )  # fmt: skip


def sum_ranges(
    rows: Int32s, starts: Ints, ends: Ints, gradients: BoundedGradients, scales: tuple[float, float], team: Team
) -> Ints:
    """Sum gradients and hessians over the rows of each leaf, as integers in units of 1/scale."""
    sums, g, h = np.zeros((2, len(starts)), np.int64), gradients.gradients, gradients.hessians
    _for_leaves(starts, ends, team, lambda a, b: sum_leaves(rows, starts, ends, a, b, g, scales[0], h, scales[1], sums))
    return sums


def add_to_ranges(rows: Int32s, starts: Ints, ends: Ints, values: Floats, scores: Floats, team: Team) -> None:
    """Add the value of each leaf to the scores of its rows."""
    _for_leaves(starts, ends, team, lambda a, b: add_leaf_values(rows, starts, ends, a, b, values, scores))


def _for_leaves(starts: Ints, ends: Ints, team: Team, work: Callable[[int, int], None]) -> None:
    """Call `work(first, last)` on threads, for ranges of leaves with about the same number of rows."""
    cumulative_sizes = np.cumsum(ends - starts)
    if not len(starts) or n_threads_for(int(cumulative_sizes[-1]), team.n_threads) == 1:
        work(0, len(starts))
        return
    bounds = np.searchsorted(cumulative_sizes, cumulative_sizes[-1] * np.arange(1, team.n_threads) / team.n_threads)
    edges = [0, *bounds.tolist(), len(starts)]
    team.run(lambda k: work(edges[k], edges[k + 1]))


def scales_of_sums(gradients: BoundedGradients) -> tuple[float, float]:
    """Return the scales of gradients and hessians for sums over leaves in int64 fixed point.

    A scale of at most 2^61 / Σ|values| keeps every partial sum below 2^62, with rounding, for up to 2^60 documents.
    """
    g, h = gradients.sum_bounds
    return _scale_of_sum(g), _scale_of_sum(h)


def _scale_of_sum(bound: float) -> float:
    return math.ldexp(1.0, 61 - math.ceil(math.log2(bound))) if bound > TINY else 0.0


def from_units(sums: Ints, scales: tuple[float, float]) -> tuple[Floats, Floats]:
    """Convert sums of gradients and hessians from integers in units of 1/scale."""
    return sums[0] / (scales[0] or 1.0), sums[1] / (scales[1] or 1.0)


# --- kernels


@kernel
def sum_leaves(
    documents: Int32s, starts: Ints, ends: Ints, first: Int, last: Int, gradients: Floats, gradient_scale: float,
    hessians: Floats, hessian_scale: float, sums: Ints,
) -> None:  # fmt: skip
    """Sum rint(value · scale) over the rows documents[starts[k] : ends[k]] of some leaves."""
    for leaf in range(first, last):
        gradient_sum, hessian_sum = np.int64(0), np.int64(0)
        for k in range(starts[leaf], ends[leaf]):
            row = U(documents[k])
            gradient_sum += np.int64(np.rint(gradients[row] * gradient_scale))
            hessian_sum += np.int64(np.rint(hessians[row] * hessian_scale))
        sums[0, leaf], sums[1, leaf] = gradient_sum, hessian_sum


@kernel
def add_leaf_values(
    documents: Int32s, starts: Ints, ends: Ints, first: Int, last: Int, values: Floats, scores: Floats
) -> None:
    """Add each leaf's value to the scores of its rows."""
    for leaf in range(first, last):
        for k in range(starts[leaf], ends[leaf]):
            scores[documents[k]] += values[leaf]


@helper
def sum_by_leaf(
    leaf_of_row: Bytes, first: Int, last: Int, gradients: Floats, hessians: Floats, gradient_scale: float,
    hessian_scale: float, n_leaves: Int, sums: Ints, total: Ints,
) -> None:  # fmt: skip
    """Compute the sums of `sum_leaves` for some rows, in the order of the rows, so that reads are sequential.

    Neighbouring rows are often in one leaf, and a sum that was just written is slow to read. So each leaf has several
    sums, `sums[place, leaf]`, which rows use in turn. They are added up in `total[:, leaf]`.
    """
    not_inlined()
    for leaf in range(U(n_leaves)):
        total[U(0), leaf], total[U(1), leaf] = 0, 0
        for at in range(U(SUMS_AT_ONCE)):
            sums[at, leaf, U(0)], sums[at, leaf, U(1)] = 0, 0
    for row in range(first, last):
        at, leaf = U(row % SUMS_AT_ONCE), U(leaf_of_row[U(row)])
        sums[at, leaf, 0] += np.int64(np.rint(gradients[U(row)] * gradient_scale))
        sums[at, leaf, 1] += np.int64(np.rint(hessians[U(row)] * hessian_scale))
    for leaf in range(U(n_leaves)):
        for at in range(U(SUMS_AT_ONCE)):
            total[U(0), leaf] += sums[at, leaf, U(0)]
            total[U(1), leaf] += sums[at, leaf, U(1)]


compiled_sum_by_leaf = kernel(sum_by_leaf)  # for Python


@helper
def sum_grown_leaves(
    bins: BinMatrix, first: Int, last: Int, n_leaves: Int, tree: TreeBuffers, is_categorical: Bools | None,
    sums: LeafSums, thread: Int, region: Bytes,
) -> None:  # fmt: skip
    """Find the leaf of each of some rows, and sum the rows of each leaf; `region` is scratch memory."""
    not_inlined()
    leaf_of_row, numbers = borrowed(sums.leaf_of_row), tree.numbers
    category = None if is_categorical is None else numbers[CATEGORY]
    regions_of_nodes(n_leaves - 1, numbers[LEFT], numbers[RIGHT], region)
    for start in range(first, last, ROWS_AT_ONCE):
        n = min(ROWS_AT_ONCE, last - start)
        find_regions(
            bins.columns, bins.n_rows, start, n, n_leaves - 1, numbers[FEATURE], category, tree.goes_left, region,
            leaf_of_row, start,
        )  # fmt: skip
    sum_by_leaf(
        leaf_of_row, first, last, borrowed(sums.gradients), borrowed(sums.hessians), sums.gradient_scale,
        sums.hessian_scale, n_leaves, borrowed(sums.parts)[thread], borrowed(sums.totals)[thread],
    )  # fmt: skip


@helper
def add_grown_leaves(
    first: Int, last: Int, n_leaves: Int, sums: LeafSums, thread: Int, n_threads: Int, values: Floats
) -> None:
    """Compute leaf values from the sums of all threads, and add them to the scores of some rows.

    `values` is scratch memory.
    """
    not_inlined()
    rule, totals, scores, leaf_of_row = sums.rule, sums.totals, borrowed(sums.scores), borrowed(sums.leaf_of_row)
    g, h = sums.gradient_scale, sums.hessian_scale
    g, h = g if g > 0.0 else 1.0, h if h > 0.0 else 1.0  # as in `from_units`
    for leaf in range(n_leaves):
        gradient, hessian = np.int64(0), np.int64(0)
        for part in range(n_threads):
            gradient += totals[part, 0, leaf]
            hessian += totals[part, 1, leaf]
        divisor = hessian / h + rule.l2
        value = shrunk(gradient / g, rule.l1) / divisor if divisor > 0.0 else 0.0
        values[leaf] = rule.rate * min(max(value, -rule.limit), rule.limit)
        if thread == 0:
            sums.values[leaf] = values[leaf]
    for row in range(U(first), U(last)):
        scores[row] += values[leaf_of_row[row]]


@kernel
def add_by_leaf(leaf_of_row: Bytes, first: Int, last: Int, values: Floats, scores: Floats) -> None:
    """Add to the score of each of some rows the value of its leaf."""
    for row in range(U(first), U(last)):
        scores[row] += values[leaf_of_row[row]]


@kernel
def add_values_by_columns(
    columns: Bytes, n_rows: Int, first: Int, last: Int, feature: Int32s, category: Int32s, goes_left: Bools,
    left: Int32s, right: Int32s, values: Floats, scores: Floats,
) -> None:  # fmt: skip
    """Add a tree's values to the scores of some rows, one node, and so one column, at a time."""
    n_nodes = len(feature)
    region = np.empty(n_nodes + 1, np.uint8)
    regions_of_nodes(n_nodes, left, right, region)
    region_values = np.empty(n_nodes + 1)
    if n_nodes == 0:
        region_values[0] = values[0]
    for node in range(n_nodes):
        if left[node] < 0:
            region_values[region[node]] = values[~left[node]]
        if right[node] < 0:
            region_values[node + 1] = values[~right[node]]
    regions = np.empty(ROWS_AT_ONCE, np.uint8)
    for start in range(first, last, ROWS_AT_ONCE):
        n = min(ROWS_AT_ONCE, last - start)
        find_regions(columns, n_rows, start, n, n_nodes, feature, category, goes_left, region, regions, 0)
        for k in range(U(n)):
            scores[U(start) + k] += region_values[regions[k]]


@helper
def regions_of_nodes(n_nodes: Int, left: Int32s, right: Int32s, region: Bytes) -> None:
    """Find the number of the region that each node splits.

    The left side of a split keeps the number of the region; the right side gets the number of the node plus 1. In a
    tree whose leaves are numbered in order of creation, regions have the numbers of the leaves.
    """
    region[0] = 0
    for node in range(n_nodes):
        if left[node] >= 0:
            region[left[node]] = region[node]
        if right[node] >= 0:
            region[right[node]] = node + 1


@helper
def find_regions(
    columns: Bytes, n_rows: Int, start: Int, n: Int, n_nodes: Int, feature: Int32s, category: Int32s | None,
    goes_left: Bools, region: Bytes, regions: Bytes, first: Int,
) -> None:  # fmt: skip
    """Write the region of each of n rows from `start` on to regions[first:].

    Each node tests all rows, even those of other regions: 32 at a time without a branch, which is faster than walking
    down the tree with each row. The bins that go left at a node without categories are consecutive, so two comparisons
    test a bin. `category` is None if no node has categories; the loop for categories is then not compiled.
    """
    for k in range(U(n)):
        regions[U(first) + k] = 0
    for node in range(n_nodes):
        here, right_region = region[node], np.uint8(node + 1)
        at, table = feature[node] * n_rows + start, goes_left[node]
        if category is not None:
            if category[node] >= 0:
                for k in range(U(n)):
                    region_of_row = regions[U(first) + k]
                    goes_right = (region_of_row == here) & (not table[columns[U(at) + k]])
                    regions[U(first) + k] = right_region if goes_right else region_of_row
                continue
        lowest = 0 if table[MISSING] else 1
        n_left = 0
        for k in range(CELLS):
            n_left += table[k]
        low, high = np.uint8(lowest), np.uint8(lowest + n_left - 1)
        for k in range(U(n)):
            bin_, region_of_row = columns[U(at) + k], regions[U(first) + k]
            goes_right = (region_of_row == here) & ((bin_ < low) | (bin_ > high))
            regions[U(first) + k] = right_region if goes_right else region_of_row


@kernel
def find_leaves(
    columns: Bytes, n_rows: Int, first: Int, last: Int, feature: Int32s, goes_left: Bools, left: Int32s, right: Int32s,
    leaves: Ints,
) -> None:  # fmt: skip
    """Find the leaf of each of some rows, by the bins that go left at each node."""
    for row in range(first, last):
        node = 0 if len(feature) > 0 else -1
        while node >= 0:
            bin_ = columns[U(feature[node] * n_rows + row)]
            node = left[node] if goes_left[node, bin_] else right[node]
        leaves[row] = ~node


Bounds = tuple[float, float]


def newton_bounds(
    grown: GrownTree, gradients: BoundedGradients, monotone: Ints, l1: float, l2: float, team: Team
) -> GrownTree:
    """Return the tree with bounds from the Newton values of its nodes, for least-squares splits.

    Growth sets bounds from sums of gradients and weights, but least-squares weights are not hessians. So the bounds
    are computed again: below a split on a monotone feature, the values of one side stay below the middle of the two
    sides' Newton values, and those of the other side above it.
    """
    tree, n_nodes = grown.tree, len(grown.tree.feature)
    leaf_sums = np.column_stack(grown.sums(gradients, team))
    node_sums = np.zeros((n_nodes, 2))
    for node in range(n_nodes - 1, -1, -1):  # children come after their parents
        for child in (tree.left[node], tree.right[node]):
            node_sums[node] += node_sums[child] if child >= 0 else leaf_sums[~child]
    bounds: dict[int, Bounds] = {0: (-math.inf, math.inf)}
    for node in range(n_nodes):
        children = [int(tree.left[node]), int(tree.right[node])]
        sums = [node_sums[child] if child >= 0 else leaf_sums[~child] for child in children]
        sides = _bounds_of_children(bounds[node], int(monotone[tree.feature[node]]), sums, l1, l2)
        bounds |= dict(zip(children, sides, strict=True))
    leaf_bounds = [bounds.get(~leaf, (-math.inf, math.inf)) for leaf in range(len(grown.starts))]
    lowest, highest = (np.array(values) for values in zip(*leaf_bounds, strict=True))
    return replace(grown, bounds=(lowest, highest))


def _bounds_of_children(bounds: Bounds, direction: int, sums: list[Floats], l1: float, l2: float) -> list[Bounds]:
    """Return the bounds of the left and the right child."""
    low, high = bounds
    sides = [bounds, bounds]
    if direction:
        values = [min(max(shrunk(g, l1) / (h + l2) if h + l2 > 0 else 0.0, low), high) for g, h in sums]
        middle = (values[0] + values[1]) / 2
        lower, upper = (0, 1) if direction > 0 else (1, 0)
        sides[lower], sides[upper] = (low, min(high, middle)), (max(low, middle), high)
    return sides
