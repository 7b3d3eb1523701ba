"""Grow a tree from integer histograms, best leaf first.

A split takes five stages: count histograms of the new leaves (`histograms`), score all features and choose the best
split of each leaf (`splitting`), partition the documents of the leaf with the highest gain (`partitioning`), and add
the node (`add_node`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from podium.core.array_types import Bools, Bytes, Float32s, Floats, Int, Int32s, Ints
from podium.core.compiling import compile_for, compile_in_background, helper, kernel
from podium.core.intrinsics import borrowed, not_inlined, wait_at_barrier
from podium.core.team import Team, leave, set_event
from podium.errors import DataError
from podium.trees.bin_matrix import BinMatrix
from podium.trees.binning import BinnedFeatures
from podium.trees.grown_tree import (
    MAX_BYTE_LEAVES,
    SUMS_AT_ONCE,
    GrownTree,
    Tree,
    add_grown_leaves,
    from_units,
    newton_bounds,
    scales_of_sums,
    sum_grown_leaves,
)
from podium.trees.growth_types import (
    CATEGORY,
    CELLS,
    CHUNK,
    COUNT,
    END,
    FEATURE,
    LEAF,
    RIGHT,
    SCRATCH,
    SPLIT,
    START,
    FeatureShare,
    FeatureTable,
    GrowingTree,
    GrowthLimits,
    LeafRule,
    LeafSums,
    Member,
    N,
    NewLeaves,
    NodeFeatures,
    PackedGradients,
    Record,
    Records,
    TreeBuffers,
)
from podium.trees.histograms import build_histograms, share_start
from podium.trees.parameters import GrowthParameters
from podium.trees.partitioning import WORDS_PER_THREAD, Partition, partition_leaf, sum_of_threads
from podium.trees.quantization import QuantizedGradients, total_of
from podium.trees.splitting import choose_counted_split, choose_for_new_leaves, may_split, score_features, value_of

NONE: Floats = np.empty(0)
NO_RULE = LeafRule(0.0, 0.0, 0.0)
NO_SEED = np.uint64(0)


class Grower:
    """Grows trees on one set of binned documents, with a team of threads.

    Args:
        binned: the bins of the documents.
        parameters: how to grow.
        team: the threads; one by default.

    """

    def __init__(self, binned: BinnedFeatures, parameters: GrowthParameters, team: Team | None = None) -> None:
        self.binned, self.parameters, self.team = binned, parameters, team or Team(1)
        self.wait_for_compilation: Callable[[], Any] = lambda: None
        if parameters.is_common and binned.n_rows:  # without rows, the documents are on other machines
            self.wait_for_compilation = compile_in_background(grow, "podium.trees.compilation", "grow_small_tree")
        self._grow: Callable[..., Any] | None = None  # compiled for the array types of this grower
        bins, n, n_threads = binned.bins, binned.n_rows, self.team.n_threads
        self.is_categorical = np.zeros(bins.n_features, bool)
        self.is_categorical[list(bins.categories)] = True
        self.monotone = _monotone_directions(parameters, self.is_categorical)
        self.is_monotone = bool(self.monotone.any())
        self.per_node = _features_per_node(parameters, bins.n_features)
        self.bins, self.layout = binned.matrix, binned.layout
        self.n_bins, self.n_leaves = bins.counts, min(parameters.n_leaves, max(2, n))
        n_cells = self.layout.total_cells
        self.histograms = np.empty((self.n_leaves, n_cells), np.int64)  # the system allocates pages on first use
        self.documents, self.buffer = np.empty(n, np.int32), np.empty(n, np.int32)
        self.leaf_of_row = np.empty(n, np.uint8)
        self.sums = np.empty((n_threads, SUMS_AT_ONCE, self.n_leaves, 2), np.int64)
        self.totals = np.empty((n_threads, 2, self.n_leaves), np.int64)
        barrier, totals = np.zeros(16, np.int64), np.zeros(n_threads * WORDS_PER_THREAD, np.int64)
        partial, shares = np.empty((n_threads - 1, n_cells), np.int64), self.layout.shares(n_threads)
        self.members = [
            Member(thread, n_threads, shares, self.team.event, barrier, totals, partial) for thread in range(n_threads)
        ]
        self.scratch = np.zeros(n_threads, SCRATCH)
        self.tiles = np.empty((n_threads, self.bins.width * CHUNK), np.uint8)
        self.leaves, self.nodes = np.empty(self.n_leaves, LEAF), np.empty(self.n_leaves, LEAF)
        self.splits = np.empty((2, bins.n_features), SPLIT)
        self.counts = [np.empty((self.n_leaves, CELLS), np.int64)] if parameters.symmetric else []
        self.cuts = np.concatenate([*bins.cuts, np.zeros(1, np.float32)]), np.cumsum([0, *map(len, bins.cuts)])
        varies = (self.n_bins > 1) | np.isin(np.arange(bins.n_features), binned.features_with_missing)
        self.candidates = np.flatnonzero(varies)  # a constant feature has no split
        self.table = self._table(self.candidates)

    def grow(
        self,
        gradients: QuantizedGradients,
        rows: Int32s | None = None,
        features: Ints | None = None,
        scores: Floats = NONE,
        rule: LeafRule = NO_RULE,
        seed: np.uint64 = NO_SEED,
    ) -> GrownTree:
        """Grow a tree.

        The leaf with the highest gain is split next; of equal gains, that of the oldest leaf. A symmetric tree grows
        level by level (`symmetric_growth`). Rows outside the sample of the gradients are partitioned with the others.

        Args:
            gradients: the gradients of all rows.
            rows: the rows to grow on, ascending; all by default.
            features: the features that may be split on, ascending; all by default.
            scores: the scores of all rows, contiguous, to which growth adds leaf values; empty to add nothing. They
                stay unchanged if rows are left out, or if the tree has one leaf or more than 256.
            rule: the formula of leaf values.
            seed: the seed to sample the features that each node may split on.

        Returns:
            The tree. Its rows are an array of this grower, which the next tree overwrites.

        """
        self.wait_for_compilation()
        documents, n_sampled = self._list_documents(gradients, rows)
        table = self._table_of_tree(features, seed)
        packed = PackedGradients(gradients.words, gradients.largest_weight, gradients.counts_documents)
        limits = self.parameters.limits(self.n_leaves, gradients)
        tree = GrowingTree(self.leaves, self.nodes, documents, self.histograms, self.splits)
        source, scales = gradients.source, scales_of_sums(gradients.source)
        g, h = (np.ascontiguousarray(values, np.float64) for values in (source.gradients, source.hessians))
        values = np.empty(self.n_leaves)
        sums = LeafSums(g, h, *scales, self.leaf_of_row, self.sums, self.totals, rule, values, scores)
        arrays = self._tree_arrays(self.n_leaves, gradients)
        arguments = (
            self.bins, packed, table, limits, n_sampled, tree, self.buffer, self.tiles, self.scratch, arrays, sums,
            *self.counts,
        )  # fmt: skip
        if self._grow is None:
            self._grow = compile_for(self._kernel(), self.members[0], *arguments)
        compiled, members = self._grow, self.members
        n_leaves = int(self.team.run_kernel(lambda thread: compiled(members[thread], *arguments)))
        leaf_of_row = known_sums = added_values = None
        if len(documents) == self.binned.n_rows and n_leaves <= MAX_BYTE_LEAVES:
            leaf_of_row = self.leaf_of_row
            if len(scores) and n_leaves > 1:
                added_values = values[:n_leaves]
            else:
                known_sums = source, from_units(self.totals.sum(axis=0)[:, :n_leaves], scales)
        finished, starts, ends, goes_left = self._tree_of(n_leaves, arrays, added_values)
        grown = GrownTree(
            finished, documents, starts, ends, goes_left, leaf_of_row, None, known_sums, added_values
        )  # fmt: skip
        return self._with_bounds(grown, gradients, self.leaves[:n_leaves])

    def _kernel(self) -> Callable[..., Any]:
        """Return the kernel that grows the kind of tree that the parameters ask for."""
        if not self.parameters.symmetric:
            return grow
        from podium.trees.symmetric_growth import grow_symmetric  # it imports this module

        return grow_symmetric

    def _tree_arrays(self, n_leaves: int, gradients: QuantizedGradients) -> TreeBuffers:
        """Return new arrays for a tree of at most `n_leaves` leaves; the tree will consist of them."""
        n_nodes, gain_unit = n_leaves - 1, gradients.gradient_unit**2 / gradients.weight_unit
        return TreeBuffers(
            *self.cuts, gain_unit, np.empty((4, n_nodes), np.int32), np.empty(n_nodes, np.float32),
            np.empty(n_nodes, bool), np.empty(n_nodes), np.empty((n_nodes, CELLS), bool),
            np.empty((3, n_leaves), np.int64),
        )  # fmt: skip

    def _table(self, candidates: Ints) -> FeatureTable:
        """Return the table of features, of which `candidates` may be split on."""
        layout = self.layout
        scanned = candidates[np.argsort(layout.first_cell[candidates])]
        return FeatureTable(
            candidates, scanned, self.n_bins, layout.first_cell, layout.n_cells, layout.common_cell, layout.block_cells,
            layout.block_strides, self.is_categorical if self.is_categorical.any() else None, self.monotone,
            self.per_node,
        )  # fmt: skip

    def _table_of_tree(self, features: Ints | None, seed: np.uint64) -> FeatureTable:
        """Return the table for one tree; `features` may be split on, or all if it is None."""
        table = self.table if features is None else self._table(np.intersect1d(features, self.candidates))
        return table if self.per_node is None else table._replace(per_node=self.per_node._replace(seed=seed))

    def _list_documents(self, gradients: QuantizedGradients, rows: Int32s | None) -> tuple[Any, int]:
        """Return the rows to grow on, those of the sample first, and the size of the sample."""
        if gradients.sampled is None or gradients.unsampled is None:
            parts = [np.arange(self.binned.n_rows, dtype=np.int32) if rows is None else rows]
        elif rows is None:
            documents, size = self.documents, len(gradients.sampled)
            documents[:size], documents[size:] = gradients.sampled, gradients.unsampled
            return documents, size
        else:
            takes_part = np.zeros(self.binned.n_rows, bool)
            takes_part[rows] = True
            parts = [part[takes_part[part]] for part in (gradients.sampled, gradients.unsampled)]
        return np.concatenate(parts, out=self.documents[: sum(map(len, parts))]), len(parts[0])

    def _tree_of(
        self, n_leaves: int, arrays: TreeBuffers, values: Floats | None = None
    ) -> tuple[Tree, Ints, Ints, Bools]:
        """Return the tree, where the rows of each leaf begin and end, and the bins that go left at each node."""
        numbers, counts, n = arrays.numbers, arrays.counts, n_leaves - 1
        threshold, missing_left, gain, goes_left = arrays.threshold, arrays.missing_left, arrays.gain, arrays.goes_left
        if n_leaves < counts.shape[1]:
            numbers, counts, threshold = numbers[:, :n].copy(), counts[:, :n_leaves].copy(), threshold[:n]
            missing_left, gain, goes_left = missing_left[:n], gain[:n], goes_left[:n]
        feature, category, left, right = numbers
        count, starts, ends = counts
        tree = Tree(
            feature, threshold, missing_left, category, left, right, gain, count[:n],
            np.zeros(n_leaves) if values is None else values, ends - starts,
            self._categories(feature, goes_left, threshold, category),
        )  # fmt: skip
        return tree, starts, ends, goes_left

    def _with_bounds(self, grown: GrownTree, gradients: QuantizedGradients, leaves: Records) -> GrownTree:
        """Return the tree with the bounds that monotone constraints set for its leaves."""
        if not self.is_monotone:
            return grown
        value_unit = gradients.gradient_unit / gradients.weight_unit
        grown = replace(grown, bounds=(value_unit * leaves["low"], value_unit * leaves["high"]))
        if self.parameters.split == "least-squares":
            l1, l2 = self.parameters.l1, self.parameters.l2
            return newton_bounds(grown, gradients.source, self.monotone, l1, l2, self.team)
        return grown

    def _categories(
        self, features: Int32s, goes_left: Bools, threshold: Float32s, category: Int32s
    ) -> tuple[Float32s, ...]:
        """Return the values that go left at each categorical node; set `category` to the index of the node's entry."""
        bins, categories = self.binned.bins, list[Float32s]()
        if not bins.categories:
            return ()
        for k, feature in enumerate(features.tolist()):
            if feature in bins.categories:
                threshold[k], category[k] = 0.0, len(categories)
                values = bins.categories[feature]
                left_values = values[goes_left[k, 1 : len(values) + 1]]
                if feature in bins.rare and goes_left[k, len(values) + 1]:
                    left_values = np.sort(np.concatenate([left_values, bins.rare[feature]]))
                categories.append(left_values)
        return tuple(categories)


def _monotone_directions(parameters: GrowthParameters, is_categorical: Bools) -> Ints:
    """Return the direction of each feature: +1, −1 or 0."""
    n_features = len(is_categorical)
    directions = np.zeros(n_features, np.int64)
    if parameters.monotone is not None:
        if len(parameters.monotone) != n_features or not set(parameters.monotone) <= {-1, 0, 1}:
            raise DataError(f"monotone must have −1, 0 or 1 for each of the {n_features} features")
        directions[:] = parameters.monotone
        if directions[is_categorical].any():
            raise DataError("a categorical feature cannot be monotone")
    return directions


def _features_per_node(parameters: GrowthParameters, n_features: int) -> NodeFeatures | None:
    """Return which features nodes may split on, or None if they may split on all.

    Without interaction constraints, all features are in one group.
    """
    constraints, fraction = parameters.interaction_constraints, parameters.feature_fraction_per_node
    if constraints is None and fraction == 1:
        return None
    groups = [range(n_features)] if constraints is None else [sorted(set(group)) for group in constraints]
    groups_of_feature: list[list[int]] = [[] for _ in range(n_features)]
    for number, group in enumerate(groups):
        for feature in group:
            if not 0 <= feature < n_features:
                raise DataError(f"interaction_constraints: there is no feature {feature}; there are {n_features}")
            groups_of_feature[feature].append(number)
    first_group = np.cumsum([0, *map(len, groups_of_feature)])
    flat = np.array([number for numbers in groups_of_feature for number in numbers], np.int64)
    return NodeFeatures(first_group, flat, len(groups), float(fraction), NO_SEED)


# --- kernels


@helper
def describe(leaves: Records, nodes: Records, n_leaves: Int, is_categorical: Bools | None, arrays: TreeBuffers) -> None:
    """Write nodes and leaves to the arrays of a tree."""
    not_inlined()
    numbers, counts, cuts, first_cut = arrays.numbers, arrays.counts, arrays.cuts, arrays.first_cut
    for k in range(n_leaves - 1):
        node = nodes[k]
        if node.parent >= 0:
            numbers[RIGHT - node.is_left, node.parent] = k
        first, end = first_cut[node.feature], first_cut[node.feature + 1]
        numbers[FEATURE, k], numbers[CATEGORY, k] = node.feature, -1
        if is_categorical is not None:
            if is_categorical[node.feature]:
                numbers[CATEGORY, k] = 0
        arrays.missing_left[k] = node.missing_left == 1
        arrays.threshold[k] = cuts[first + node.bin - 1] if first + node.bin <= end else np.float32(np.inf)
        arrays.gain[k], counts[COUNT, k] = node.gain * arrays.gain_unit, node.end - node.start
        for b in range(CELLS):
            arrays.goes_left[k, b] = node.goes_left[b] == 1
    for k in range(n_leaves):
        leaf = leaves[k]
        counts[START, k], counts[END, k] = leaf.start, leaf.end
        if leaf.parent >= 0:
            numbers[RIGHT - leaf.is_left, leaf.parent] = ~k


@kernel
def grow(
    member: Member, bins: BinMatrix, gradients: PackedGradients, features: FeatureTable, limits: GrowthLimits,
    n_sampled: Int, tree: GrowingTree, buffer: Int32s, tiles: Bytes, scratches: Records, arrays: TreeBuffers,
    sums: LeafSums,
) -> Int:  # fmt: skip
    """Grow one tree, best leaf first; return the number of leaves. Every thread of a team calls this.

    Args:
        member: which thread this is.
        bins, gradients: the bins and gradients of all rows.
        features: the table of all features.
        limits: how far to grow.
        n_sampled: the size of the sample, which comes first among the documents of the tree.
        tree: input: the documents; output: all leaves and nodes.
        buffer: scratch memory of the size of the documents, for partitioning.
        tiles, scratches: scratch memory of each thread; a tile holds the bins that are counted at a time.
        arrays: output: the tree.
        sums: output: the leaf of each row, and the sums and values of leaves, if the tree is grown on all rows and has
            at most 256 leaves.

    """
    set_event(member.thread, member.n_threads, member.event)
    not_inlined()
    member, bins, gradients, features = borrowed(member), borrowed(bins), borrowed(gradients), borrowed(features)
    tree, buffer = borrowed(tree), borrowed(buffer)
    tile, scratch = borrowed(tiles)[member.thread], scratches[member.thread]
    assigned = share_of_features(member, features)
    plant(member, gradients.words, n_sampled, tree)
    new, n_leaves = NewLeaves(N(0), N(0), N(1)), N(1)
    while True:
        if new.count > 0 and (may_split(tree.leaves[new.small], limits) or may_split(tree.leaves[new.large], limits)):
            build_histograms(member, bins, gradients.words, features, assigned, new, tree, tile, scratch.words)
            score_features(member, features, assigned, limits, new, tree, scratch)
            wait_at_barrier(member.barrier, member.n_threads)
        choose_for_new_leaves(member, bins, gradients, features, limits, new, tree, scratch)
        wait_at_barrier(member.barrier, member.n_threads)
        best = leaf_with_highest_gain(tree.leaves, n_leaves)
        leaf = tree.leaves[best]
        if not leaf.gain > 0.0:
            break
        parts = partition_leaf(member, bins, leaf, limits.min_documents, tree.documents, buffer)
        if not parts.is_enough:
            wait_at_barrier(member.barrier, member.n_threads)
            if member.thread == 0:
                choose_counted_split(bins, gradients, features, limits, leaf, tree, scratch)
            new = NewLeaves(best, best, N(0))
            continue
        if member.thread == 0:  # no other thread reads the leaf any more
            add_node(best, n_leaves, parts, limits, features.monotone[leaf.feature], tree.leaves, tree.nodes)
        new = NewLeaves(best, n_leaves, N(2)) if parts.is_left_small else NewLeaves(n_leaves, best, N(2))
        n_leaves += 1
        wait_at_barrier(member.barrier, member.n_threads)
        if n_leaves == limits.n_leaves:
            break
    finish_tree(member, bins, features, tree, n_leaves, scratch, arrays, sums)
    return n_leaves


@helper
def finish_tree(
    member: Member, bins: BinMatrix, features: FeatureTable, tree: GrowingTree, n_leaves: Int, scratch: Record,
    arrays: TreeBuffers, sums: LeafSums,
) -> None:  # fmt: skip
    """Write a grown tree to arrays, sum over its leaves, add their values to scores, and leave the team."""
    arrays = borrowed(arrays)
    if member.thread == 0:
        describe(tree.leaves, tree.nodes, n_leaves, features.is_categorical, arrays)
    wait_at_barrier(member.barrier, member.n_threads)
    if len(tree.documents) == bins.n_rows and n_leaves <= MAX_BYTE_LEAVES:
        one = N(1)
        first = share_start(bins.n_rows, one, member.thread, member.n_threads)
        last = share_start(bins.n_rows, one, member.thread + 1, member.n_threads)
        sum_grown_leaves(
            bins, first, last, n_leaves, arrays, features.is_categorical, sums, member.thread, scratch.regions
        )
        if len(sums.scores) > 0 and n_leaves > 1:
            wait_at_barrier(member.barrier, member.n_threads)
            add_grown_leaves(first, last, n_leaves, sums, member.thread, member.n_threads, scratch.scores)
    leave(member.thread, member.n_threads, member.barrier, member.event)


@helper
def share_of_features(member: Member, features: FeatureTable) -> FeatureShare:
    """Return the features of one thread. It scans the features that it counts, because their cells are in its cache."""
    begin, end = member.shares[member.thread], member.shares[member.thread + 1]
    first, last = N(0), N(0)
    for feature in features.scanned:
        first += 1 if features.first_cell[feature] < begin[2] else 0
        last += 1 if features.first_cell[feature] < end[2] else 0
    return FeatureShare(begin[0], end[0], begin[1], end[1], begin[2], end[2], first, last)


@helper
def plant(member: Member, words: Ints, n_sampled: Int, tree: GrowingTree) -> None:
    """Make the first leaf the root, with all documents; each thread sums its share of the sample."""
    not_inlined()
    thread, n_threads, one = member.thread, member.n_threads, N(1)
    a, b = share_start(n_sampled, one, thread, n_threads), share_start(n_sampled, one, thread + 1, n_threads)
    member.totals[thread * WORDS_PER_THREAD] = total_of(words, tree.documents[a:b])
    wait_at_barrier(member.barrier, n_threads)
    if thread == 0:
        total = sum_of_threads(member.totals, N(0), n_threads)
        make_root(tree.leaves[0], n_sampled, np.int64(len(tree.documents)), total)
    wait_at_barrier(member.barrier, n_threads)


@helper
def make_root(root: Record, n_sampled: Int, n_documents: Int, total: Int) -> None:
    """Make a record the root: a leaf with all documents, where `total` is the sum of the words of the sample."""
    root.start, root.sample_end, root.end, root.depth, root.total = N(0), n_sampled, n_documents, N(0), total
    root.parent, root.is_left, root.histogram, root.low, root.high = N(-1), N(0), N(0), -math.inf, math.inf


@helper
def leaf_with_highest_gain(leaves: Records, n_leaves: Int) -> Int:
    """Return the leaf to split next: the one with the highest gain; of equal gains, the first."""
    best = N(0)
    for k in range(1, n_leaves):
        if leaves[k].gain > leaves[best].gain:
            best = k
    return best


@helper
def add_node(
    split: Int, new: Int, parts: Partition, limits: GrowthLimits, direction: Int, leaves: Records, nodes: Records
) -> None:
    """Turn the leaf `split` into the node `new` − 1. Its record becomes the left child, the record `new` the right."""
    not_inlined()
    left, right, node = leaves[split], leaves[new], nodes[new - 1]
    # Copy field by field, because a copy of a whole record takes long to compile.
    node.start, node.end, node.parent, node.is_left = left.start, left.end, left.parent, left.is_left
    node.feature, node.bin, node.missing_left, node.gain = left.feature, left.bin, left.missing_left, left.gain
    for b in range(CELLS):
        node.goes_left[b] = left.goes_left[b]
    total, left_total, low, high = left.total, left.left_total, left.low, left.high
    right.start, right.sample_end, right.end = parts.middle, parts.right_sample_end, left.end
    left.sample_end, left.end = parts.left_sample_end, parts.middle
    left.total, right.total = left_total, total - left_total
    if parts.is_left_small:  # the larger child takes over the parent's histogram
        left.histogram, right.histogram = new, left.histogram
    else:
        right.histogram = new
    left.depth += 1
    right.depth = left.depth
    left.parent, right.parent = new - 1, new - 1
    left.is_left, right.is_left = N(1), N(0)
    right.low, right.high = low, high
    if direction != 0:
        left_value = value_of(left_total, limits.l1, limits.l2)
        right_value = value_of(total - left_total, limits.l1, limits.l2)
        middle = (min(max(left_value, low), high) + min(max(right_value, low), high)) / 2
        if direction > 0:
            left.high, right.low = min(high, middle), max(low, middle)
        else:
            right.high, left.low = min(high, middle), max(low, middle)
