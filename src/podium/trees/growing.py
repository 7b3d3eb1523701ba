"""Best-first growth of one tree from integer histograms."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from podium.errors import DataError, require_whole
from podium.threads import map_threads, thread_count
from podium.trees.binning import BinnedFeatures
from podium.trees.tree import Tree

SplitMode = Literal["newton", "least-squares"]
TINY = 1e-290  # a sum below this counts as none; its inverse would overflow
SMALL = 1 << 16  # cells of a histogram's rows that are not worth a thread


@dataclass(frozen=True)
class GrowthParameters:
    """How trees are grown.

    Args:
        n_leaves: at most so many.
        max_depth: nodes on the way to a leaf, at most; None for no limit.
        min_documents_in_leaf: exactly counted.
        split: `"newton"` raises Σ G²/(H + l2) over the leaves, as LightGBM and XGBoost do; `"least-squares"`
            raises Σ G²/n, the papers' regression trees, in which the curvature plays no part in a split.
        l2: added to the curvature of a leaf.
        monotone: for each feature +1 (the score may not fall as the feature rises), −1, or 0.

    """

    n_leaves: int = 31
    max_depth: int | None = None
    min_documents_in_leaf: int = 1
    split: SplitMode = "newton"
    l2: float = 0.0
    monotone: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        require_whole("n_leaves", self.n_leaves, 2)
        require_whole("max_depth", self.max_depth, 1, optional=True)
        require_whole("min_documents_in_leaf", self.min_documents_in_leaf, 1)
        if self.split not in ("newton", "least-squares"):
            raise DataError(f"split must be 'newton' or 'least-squares', not {self.split!r}")
        if not isinstance(self.l2, int | float) or not (self.l2 >= 0 and math.isfinite(self.l2)):
            raise DataError(f"l2 must not be negative, but is {self.l2}")


@dataclass(frozen=True)
class Quantised:
    """Gradients and curvatures as packed integers, and what one unit of each is worth."""

    words: NDArray[np.int64]
    gradient_unit: float
    curvature_unit: float


@dataclass(frozen=True)
class GrownTree:
    """A tree whose leaves have no values yet, and the rows of each leaf."""

    tree: Tree
    leaf_rows: list[NDArray[np.int32]]
    bounds: list[tuple[float, float]]

    def with_values(self, values: NDArray[np.float64], rate: float = 1.0) -> Tree:
        """The tree with leaf values: kept within the bounds that monotone constraints set, then multiplied."""
        low, high = np.array(self.bounds, np.float64).reshape(-1, 2).T
        t = self.tree
        return Tree(
            t.feature, t.threshold, t.missing_left, t.category, t.left, t.right, t.gain, t.count,
            rate * np.clip(values, low, high), t.leaf_count, t.categories,
        )  # fmt: skip


@dataclass
class _Leaf:
    """A leaf that may still be split."""

    rows: NDArray[np.int32]
    depth: int
    total: int
    low: float = -math.inf
    high: float = math.inf
    parent: int = -1
    is_left: bool = False
    sums: NDArray[np.int64] | None = None
    counts: NDArray[np.int32] | None = None
    gain: float = 0.0
    feature: int = -1
    bin: int = 0
    missing_left: bool = False
    left_total: int = 0
    mask: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(256, bool))


def sum_bound(values: NDArray[np.float64]) -> float:
    """A tight upper bound of Σ|values| that does not depend on their order.

    A floating-point sum would, in its last bits, and with it the scale of all integers. So the values are summed as
    integers of 2^-62 · n · max|v|, which cannot overflow, and half a unit for each rounding is added.
    """
    highest = float(np.abs(values).max(initial=0.0))
    if highest < TINY or not math.isfinite(highest):
        return highest * len(values)
    unit = highest * len(values) * 2.0**-62
    total = int(np.rint(np.abs(values) / unit).astype(np.int64).sum())
    return (total + len(values)) * unit


def quantised(gradients: NDArray[np.float64], curvatures: NDArray[np.float64]) -> Quantised:
    """Gradients and curvatures as integers whose sums fit 31 and 32 bits, whatever rows are summed.

    Rounding moves each of the n entries by half a unit at the most, so with the scale (2^31 − 1 − n) / Σ|g| the
    sum of |integers| is at most (2^31 − 1 − n) + n/2 < 2^31; likewise for the curvatures and 2^32.
    """
    from podium.trees import kernels

    n = len(gradients)
    if n >= 2**30:
        raise DataError(f"{n} documents are more than one machine's histograms hold (2^30)")
    if n and not (np.isfinite(gradients).all() and np.isfinite(curvatures).all()):
        raise DataError("a gradient or curvature is not finite: the scores or labels are too large for the objective")
    if n and curvatures.min() < 0:
        raise DataError("a curvature is negative: this objective needs another step than Newton's")
    g, h = sum_bound(gradients), sum_bound(curvatures)
    by_gradient = (2**31 - 1 - n) / g if g > TINY else 1.0
    by_curvature = (2**32 - 1 - n) / h if h > TINY else 1.0
    words = np.empty(n, np.int64)
    kernels.pack(gradients, curvatures, by_gradient, by_curvature, words)
    return Quantised(words, 1.0 / by_gradient, 1.0 / by_curvature)


class Grower:
    """Grows trees on one set of binned documents."""

    def __init__(self, binned: BinnedFeatures, parameters: GrowthParameters, n_threads: int | None = None) -> None:
        self.binned, self.parameters = binned, parameters
        self.n_threads = thread_count(n_threads)
        bins = binned.bins
        self.n_bins = bins.counts
        self.is_categorical = np.zeros(bins.n_features, bool)
        self.is_categorical[list(bins.categories)] = True
        self.monotone = np.zeros(bins.n_features, np.int64)
        if parameters.monotone is not None:
            if len(parameters.monotone) != bins.n_features or not set(parameters.monotone) <= {-1, 0, 1}:
                raise DataError(f"monotone must have −1, 0 or 1 for each of the {bins.n_features} features")
            self.monotone[:] = parameters.monotone
            if self.monotone[self.is_categorical].any():
                raise DataError("a categorical feature cannot be monotone")

    def grow(
        self, gradients: Quantised, rows: NDArray[np.int32] | None = None, features: NDArray[np.int64] | None = None
    ) -> GrownTree:
        """Grow a tree on some rows and features (all by default).

        The leaf with the highest gain is split next, of equal ones the one that was made first.
        """
        if rows is None:
            rows = np.arange(self.binned.n_rows, dtype=np.int32)
        if features is None:
            features = np.arange(self.binned.bins.n_features)
        rows = rows.copy()  # partitioned in place
        spare = np.empty_like(rows)
        root = _Leaf(rows, 0, int(gradients.words[rows].sum()))
        self._count(root, gradients)
        self._search(root, gradients, features)
        leaves: list[_Leaf] = [root]
        nodes: list[_Leaf] = []
        while len(leaves) < self.parameters.n_leaves:
            k = max(range(len(leaves)), key=lambda i: (leaves[i].gain, -i))
            leaf = leaves[k]
            if leaf.gain <= 0.0 or leaf.feature < 0:
                break
            left, right = self._split(leaf, len(nodes), spare, gradients)
            nodes.append(leaf)
            leaves[k] = left
            leaves.append(right)
            if len(leaves) < self.parameters.n_leaves:
                self._histograms_of_children(leaf, left, right, gradients)
                for child in (left, right):
                    self._search(child, gradients, features)
            leaf.sums = leaf.counts = None
        return self._finished(nodes, leaves)

    def _count(self, leaf: _Leaf, gradients: Quantised) -> None:
        """Fill a leaf's histograms, block by block."""
        from podium.trees import kernels

        blocks = self.binned.blocks
        sums = np.empty((len(blocks), kernels.BLOCK * kernels.CELLS), np.int64)
        counts = np.empty(sums.shape, np.int32)

        def work(block: int) -> None:
            kernels.fill_histogram(blocks[block], leaf.rows, gradients.words, sums[block], counts[block])

        threads = self.n_threads if len(leaf.rows) * len(blocks) * kernels.BLOCK > SMALL else 1
        for _ in map_threads(work, range(len(blocks)), threads):
            pass
        leaf.sums, leaf.counts = sums, counts

    def _search(self, leaf: _Leaf, gradients: Quantised, features: NDArray[np.int64]) -> None:
        """Find the leaf's best split."""
        from podium.trees import kernels

        p = self.parameters
        if len(leaf.rows) < 2 * p.min_documents_in_leaf or leaf.depth == p.max_depth:
            return
        assert leaf.sums is not None
        assert leaf.counts is not None
        best, left_sum = np.zeros(kernels.N_SPLIT), np.zeros(1, np.int64)
        mode = kernels.NEWTON if p.split == "newton" else kernels.LEAST_SQUARES
        kernels.best_split(
            leaf.sums.reshape(-1), leaf.counts.reshape(-1), features, self.n_bins, self.is_categorical,
            self.monotone, leaf.total, len(leaf.rows), mode, gradients.gradient_unit, gradients.curvature_unit,
            p.l2, p.min_documents_in_leaf, leaf.low, leaf.high, best, left_sum, leaf.mask,
        )  # fmt: skip
        leaf.feature = int(best[kernels.FEATURE])
        if leaf.feature < 0:
            return
        leaf.gain, leaf.bin = float(best[kernels.GAIN]), int(best[kernels.BIN])
        leaf.left_total = int(left_sum[0])
        if not self.is_categorical[leaf.feature]:
            leaf.mask[:] = False
            leaf.mask[1 : leaf.bin + 1] = True
            start = (leaf.feature // kernels.BLOCK, leaf.feature % kernels.BLOCK * kernels.CELLS)
            if leaf.counts[start] == 0:  # nothing missing here: it goes where most documents go
                leaf.missing_left = bool(2 * best[kernels.LEFT_COUNT] >= len(leaf.rows))
            else:
                leaf.missing_left = bool(best[kernels.MISSING_LEFT])
            leaf.mask[kernels.MISSING] = leaf.missing_left

    def _split(self, leaf: _Leaf, node: int, spare: NDArray[np.int32], gradients: Quantised) -> tuple[_Leaf, _Leaf]:
        """Two leaves in place of one."""
        from podium.trees import kernels

        size = kernels.partition(self.binned.column(leaf.feature), leaf.mask, leaf.rows, spare)
        totals = (leaf.left_total, leaf.total - leaf.left_total)
        children = [
            _Leaf(rows, leaf.depth + 1, total, leaf.low, leaf.high, node, is_left)
            for rows, total, is_left in zip((leaf.rows[:size], leaf.rows[size:]), totals, (True, False), strict=True)
        ]
        direction = self.monotone[leaf.feature]
        if direction:
            values = [self._value(child, gradients) for child in children]
            middle = (values[0] + values[1]) / 2
            lower, upper = children if direction > 0 else children[::-1]
            lower.high, upper.low = min(lower.high, middle), max(upper.low, middle)
        return children[0], children[1]

    def _value(self, leaf: _Leaf, gradients: Quantised) -> float:
        gradient = (leaf.total >> 32) * gradients.gradient_unit
        curvature = max(leaf.total & 0xFFFFFFFF, 1) * gradients.curvature_unit + self.parameters.l2
        return min(max(gradient / curvature, leaf.low), leaf.high)

    def _histograms_of_children(self, parent: _Leaf, left: _Leaf, right: _Leaf, gradients: Quantised) -> None:
        """Count the smaller child; the larger one is what is left of the parent."""
        small, large = (left, right) if len(left.rows) <= len(right.rows) else (right, left)
        self._count(small, gradients)
        for ours, theirs in ((parent.sums, small.sums), (parent.counts, small.counts)):
            assert ours is not None
            assert theirs is not None
            np.subtract(ours, theirs, out=ours)
        large.sums, large.counts = parent.sums, parent.counts

    def _finished(self, nodes: list[_Leaf], leaves: list[_Leaf]) -> GrownTree:
        """Flat arrays from the leaves that were split and those that were not."""
        left, right = np.zeros(len(nodes), np.int32), np.zeros(len(nodes), np.int32)
        for place, found in [(k, node) for k, node in enumerate(nodes)] + [(~k, leaf) for k, leaf in enumerate(leaves)]:
            if found.parent >= 0:
                (left if found.is_left else right)[found.parent] = place
        bins = self.binned.bins
        categories: list[NDArray[np.float32]] = []
        threshold, category = np.zeros(len(nodes), np.float32), np.full(len(nodes), -1, np.int32)
        for k, node in enumerate(nodes):
            if self.is_categorical[node.feature]:
                category[k] = len(categories)
                categories.append(bins.categories[node.feature][node.mask[1 : self.n_bins[node.feature] + 1]])
            else:
                cuts = bins.cuts[node.feature]
                threshold[k] = cuts[node.bin - 1] if node.bin <= len(cuts) else np.inf
        tree = Tree(
            np.array([n.feature for n in nodes], np.int32), threshold,
            np.array([n.missing_left for n in nodes], np.bool_), category, left, right,
            np.array([n.gain for n in nodes], np.float64), np.array([len(n.rows) for n in nodes], np.int64),
            np.zeros(len(leaves)), np.array([len(leaf.rows) for leaf in leaves], np.int64), tuple(categories),
        )  # fmt: skip
        return GrownTree(tree, [leaf.rows for leaf in leaves], [(leaf.low, leaf.high) for leaf in leaves])
