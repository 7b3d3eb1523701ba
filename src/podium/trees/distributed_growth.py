"""Grow the tree of `grower.grow` when each part of the documents is on another machine.

The coordinator (`DistributedGrower`) chooses splits from sums over all parts. Each part (`PartLeaves`) holds the
documents of its leaves, splits them and counts histograms.

Best-first growth splits one leaf after the other, so a request per split would take as many round trips as a tree has
leaves. Instead a request splits several leaves: the next one, and those that would follow if its children had no gain.
A leaf that turns out not to be among the best remains a leaf. The splits and their order follow from the same numbers
as in `grower.grow`, so the tree is identical to the bit. In a symmetric tree, a request splits all leaves of a level.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from podium.core.array_types import Bytes, Floats, Int, Int32s, Ints
from podium.core.compiling import kernel
from podium.core.merging import Total
from podium.core.team import Team
from podium.trees.bin_matrix import BinMatrix
from podium.trees.binning import BinnedFeatures
from podium.trees.grower import NO_SEED, Grower, add_node, describe, make_root, share_of_features
from podium.trees.grown_tree import GrownTree, add_to_ranges, sum_ranges
from podium.trees.growth_types import (
    CELLS,
    CHUNK,
    COUNTED,
    LEAF,
    FeatureTable,
    GrowingTree,
    GrowthLimits,
    Member,
    N,
    NewLeaves,
    PackedGradients,
    Records,
)
from podium.trees.histograms import all_features, fill_histograms
from podium.trees.parameters import GrowthParameters
from podium.trees.partitioning import Partition, compiled_scatter, partition
from podium.trees.quantization import BoundedGradients, QuantizedGradients, total_of
from podium.trees.splitting import choose_for_new_leaves, choose_split, scan_feature, score_features, score_leaf
from podium.trees.symmetric_growth import choose_level, complete_leaves

NONE = np.empty(0, np.int64)
ROOM = 4  # how many leaves may be split on trial, as a multiple of the leaves of a tree
MIN_GAIN_SHARE = 0.6  # leaves with a smaller share of the gain of the next split are not split together with it


class Expansion(NamedTuple):
    """A leaf to split."""

    # leaf, left, right: the numbers of the leaf and its children
    leaf: int
    left: int
    right: int
    feature: int  # the feature to split on
    goes_left: Bytes  # 1 for each bin that goes left
    is_counted: bool  # whether the children need histograms


class GrowthRequest(NamedTuple):
    """A request to all parts."""

    # leaves to split; the answer has the number of documents of each left child, and its histogram
    expansions: Sequence[Expansion]
    counts: Sequence[tuple[int, int]]  # leaves and features; the answer has the number of documents in each bin
    released: Sequence[int]  # leaves whose histograms are no longer needed


class _Ranges(NamedTuple):
    """Where the documents of a leaf are: the range of those in the sample, and the range of the others."""

    start: int
    end: int
    other_start: int
    other_end: int


class PartLeaves:
    """The leaves of a growing tree in one part of the data.

    The coordinator numbers the leaves. The documents of a leaf are in two ranges: those of the sample that splits are
    searched on, and the others. A split reorders both ranges in place, so the leaf can still be split another way.
    """

    def __init__(self, binned: BinnedFeatures, team: Team) -> None:
        self.binned, self.bins, self.team, layout = binned, binned.matrix, team, binned.layout
        n = binned.n_rows
        self.n_cells = layout.total_cells
        self.all_features = all_features(layout.ends[-1])
        self.table = FeatureTable(
            NONE, NONE, NONE, NONE, NONE, NONE, layout.block_cells, layout.block_strides, None, NONE
        )
        self.rows, self.buffer = np.empty((2, n), np.int32), np.empty(n, np.int32)  # rows of the sample, and others
        self.tiles = np.empty((team.n_threads, self.bins.width * CHUNK), np.uint8)
        self.tile_words = np.empty((team.n_threads, CHUNK), np.int64)
        self.words: Ints = NONE
        self.ranges: dict[int, _Ranges] = {}
        self.histograms: dict[int, Ints] = {}

    def plant(self, words: Ints, sampled: Int32s, others: Int32s) -> Total:
        """Begin a tree with these documents; return their number, the sum of their words, and their histogram."""
        self.words = words
        self.rows[0, : len(sampled)], self.rows[1, : len(others)] = sampled, others
        self.ranges = {0: _Ranges(0, len(sampled), 0, len(others))}
        total = sum(self.team.shares(len(sampled), lambda a, b: int(compiled_total_of(words, sampled[a:b]))))
        self.histograms = {0: self._count(self.ranges[0])}
        return Total((len(sampled) + len(others), total, self.histograms[0].copy()))

    def answer(self, request: GrowthRequest) -> Total:
        """Return the documents and histograms of left children, and the requested counts by bin."""
        for leaf in request.released:
            self.histograms.pop(leaf, None)
        n_left = np.zeros(len(request.expansions), np.int64)
        counted = [expansion.is_counted for expansion in request.expansions]
        cells, place = np.empty((sum(counted), self.n_cells), np.int64), 0
        for k, expansion in enumerate(request.expansions):
            n_left[k] = self._split(expansion)
            if expansion.is_counted:
                cells[place] = self._histogram_of_left(expansion)
                place += 1
        counts = np.zeros((len(request.counts), CELLS), np.int64)
        for k, (leaf, feature) in enumerate(request.counts):
            for rows, start, end in self._rows_of(self.ranges[leaf]):
                counts[k] += np.bincount(self.binned.column(feature)[rows[start:end]], minlength=CELLS)
        return Total((n_left, cells, counts))

    def sums(self, leaves: Sequence[int], gradients: BoundedGradients, scales: tuple[float, float]) -> Total:
        """Return the sums of `GrownTree.sums_in_units` over the documents of each leaf in this part."""
        sampled, others = (sum_ranges(*ranges, gradients, scales, self.team) for ranges in self._rows_of_leaves(leaves))
        return Total(sampled + others)

    def add_values(self, leaves: Sequence[int], values: Floats, scores: Floats) -> None:
        """Add the value of each leaf to the scores of its documents."""
        for ranges in self._rows_of_leaves(leaves):
            add_to_ranges(*ranges, values, scores, self.team)

    def _rows_of(self, r: _Ranges) -> list[tuple[Int32s, int, int]]:
        return [(self.rows[0], r.start, r.end), (self.rows[1], r.other_start, r.other_end)]

    def _rows_of_leaves(self, leaves: Sequence[int]) -> list[tuple[Int32s, Ints, Ints]]:
        table = np.array([self.ranges[leaf] for leaf in leaves], np.int64).reshape(-1, 4).T
        return [(self.rows[0], table[0].copy(), table[1].copy()), (self.rows[1], table[2].copy(), table[3].copy())]

    def _split(self, expansion: Expansion) -> int:
        """Order the documents of a leaf, left child first; return the number on the left."""
        middles, n_left = [], 0
        for rows, start, end in self._rows_of(self.ranges[expansion.leaf]):
            left = self._order(rows, start, end, expansion.feature, expansion.goes_left)
            middles.append(start + left)
            n_left += left
        start, end, other_start, other_end = self.ranges[expansion.leaf]
        self.ranges[expansion.left] = _Ranges(start, middles[0], other_start, middles[1])
        self.ranges[expansion.right] = _Ranges(middles[0], end, middles[1], other_end)
        return n_left

    def _order(self, rows: Int32s, start: int, end: int, feature: int, goes_left: Bytes) -> int:
        """Move the documents that go left to the front of a range, on threads; return their number."""
        column, buffer = self.binned.column(feature), self.buffer

        def work(a: int, b: int) -> tuple[int, int, int]:
            first, last = start + a, start + b
            return first, last, int(order_rows(column, goes_left, rows, buffer, first, last))

        pieces = self.team.shares(end - start, work)
        n_left, before = sum(left for _, _, left in pieces), 0
        for first, last, left in pieces:
            compiled_scatter(buffer, first, last, left, rows, start + before, start + n_left + (first - start) - before)
            before += left
        return n_left

    def _histogram_of_left(self, expansion: Expansion) -> Ints:
        """Count the child with fewer documents in this part, and subtract it from the leaf to get the other child.

        Return the histogram of the left child.
        """
        children = (expansion.left, expansion.right)
        sizes = [self.ranges[child].end - self.ranges[child].start for child in children]
        small, large = children if sizes[0] <= sizes[1] else children[::-1]
        self.histograms[small] = self._count(self.ranges[small])
        self.histograms[large] = self.histograms[expansion.leaf] - self.histograms[small]
        return self.histograms[expansion.left]

    def _count(self, ranges: _Ranges) -> Ints:
        """Count the histogram of the sampled documents of a leaf, on threads."""
        rows, first = self.rows[0], ranges.start
        free_tiles = list(range(self.team.n_threads))

        def work(a: int, b: int) -> Ints:
            tile, cells = free_tiles.pop(), np.empty(self.n_cells, np.int64)
            count_rows(
                self.bins, self.words, rows[first + a : first + b], self.table, self.all_features, self.tiles[tile],
                self.tile_words[tile], cells,
            )  # fmt: skip
            return cells

        parts = self.team.shares(ranges.end - first, work)
        for part in parts[1:]:
            parts[0] += part
        return parts[0]


Root = tuple[int, int, Ints]  # the number of all documents, the sum of their packed words, and their histogram
Ask = Callable[[GrowthRequest], tuple[Ints, Ints, Ints]]
WholeSums = Callable[[list[int], BoundedGradients, tuple[float, float]], Ints]


class DistributedGrower(Grower):
    """Grows trees from sums over all parts.

    Args:
        binned: the bins and the layout of all parts, without documents.
        parameters: how to grow.
        n_documents: the number of documents of all parts.
        whole_sums: returns the sums of gradients and hessians of some leaves over all parts (`PartLeaves.sums`).

    """

    def __init__(
        self, binned: BinnedFeatures, parameters: GrowthParameters, n_documents: int, whole_sums: WholeSums
    ) -> None:
        super().__init__(binned, parameters)
        self.whole_sums = whole_sums
        self.n_leaves = min(parameters.n_leaves, max(2, n_documents))
        n_pairs = ROOM * self.n_leaves
        self.pool, self.pool_nodes = np.zeros(2 * n_pairs + 1, LEAF), np.zeros(2 * n_pairs + 1, LEAF)
        # The system allocates pages on first use.
        self.histograms = np.empty((n_pairs + 1, self.layout.total_cells), np.int64)

    def grow_from(
        self, root: Root, gradients: QuantizedGradients, features: Ints | None, ask: Ask, seed: np.uint64 = NO_SEED
    ) -> GrownTree:
        """Grow a tree; `ask` sends a request to all parts and adds up their answers.

        Args:
            root: the sum of `PartLeaves.plant` over all parts.
            gradients: the scales and bounds of the gradients of all parts, without words.
            features: the features that may be split on; all if None.
            ask: returns the sum of `PartLeaves.answer` over all parts.
            seed: the seed to sample the features that each node may split on.

        """
        table = self._table_of_tree(features, seed)
        growth = (_SymmetricGrowth if self.parameters.symmetric else _Growth)(self, root, gradients, table)
        while (request := growth.next_request()) is not None:
            growth.advance(request, *ask(request))
        leaves, nodes, numbers = growth.result()
        arrays = self._tree_arrays(len(leaves), gradients)
        describe_tree(leaves, nodes, len(leaves), table.is_categorical, arrays)
        no_rows, whole_sums = np.empty(0, np.int32), self.whole_sums
        tree, starts, ends, goes_left = self._tree_of(len(leaves), arrays)
        grown = DistributedTree(tree, no_rows, starts, ends, goes_left, leaf_numbers=numbers, whole_sums=whole_sums)
        return self._with_bounds(grown, gradients, leaves)


@dataclass(frozen=True)
class DistributedTree(GrownTree):
    """A tree whose documents are on other machines."""

    leaf_numbers: list[int] = field(default_factory=list)  # the numbers of the leaves in `PartLeaves`
    whole_sums: WholeSums | None = None  # see `DistributedGrower`

    def sums_in_units(self, gradients: BoundedGradients, scales: tuple[float, float], team: Team) -> Ints:
        """Return the sums over all parts."""
        assert self.whole_sums is not None
        return self.whole_sums(self.leaf_numbers, gradients, scales)


class _Growth:
    """A growing tree. Leaves are numbered in order of creation; 0 is the root.

    The pair k of children has the numbers 2k + 1 and 2k + 2. The left child gets the new histogram k + 1, and the right
    child takes over the histogram of the leaf.
    """

    def __init__(
        self, grower: DistributedGrower, root: Root, gradients: QuantizedGradients, table: FeatureTable
    ) -> None:
        self.grower, self.table, self.gradients = grower, table, gradients
        self.limits = grower.parameters.limits(grower.n_leaves, gradients)
        no_words = np.empty(0, np.int64)
        self.packed = PackedGradients(no_words, gradients.largest_weight, gradients.counts_documents)
        pool, no_rows = grower.pool, np.empty(0, np.int32)
        self.tree = GrowingTree(pool, grower.pool_nodes, no_rows, grower.histograms, grower.splits)
        # The leaves of the tree, and its pairs of children, in the order of `grower.grow`.
        self.leaves, self.order = [0], list[int]()
        self.n_pairs, self.pair_of = 0, dict[int, int]()  # by leaf: its pair of children
        self.uncounted: dict[int, int] = {}  # by leaf whose split left too few documents: the feature to count
        self.counted: dict[int, dict[int, Ints]] = {}  # by leaf and feature: the documents in each bin
        self.released: list[int] = []
        n_documents, total, grower.histograms[0] = root
        plant_root(pool, n_documents, total)
        self._choose(NewLeaves(0, 0, 1))

    def next_request(self) -> GrowthRequest | None:
        """Return a request for the leaves to split next, and the bins to count; None if the tree is complete."""
        counts, leaves_to_split = list(self.uncounted.items()), self._replay()
        if not leaves_to_split and not counts:
            return None
        return self._request(leaves_to_split, counts)

    def _request(self, leaves_to_split: Sequence[int], counts: Sequence[tuple[int, int]]) -> GrowthRequest:
        """Return a request to split some leaves, and to count the documents of some leaves by a feature."""
        pool, expansions = self.tree.leaves, []
        for leaf in leaves_to_split:
            pair, record = self.n_pairs, pool[leaf]
            self.n_pairs += 1
            is_counted = int(record["depth"]) + 1 != self.limits.max_depth
            expansions.append(
                Expansion(
                    leaf, 2 * pair + 1, 2 * pair + 2, int(record["feature"]), record["goes_left"].copy(), is_counted
                )
            )
        released, self.released = self.released, []
        return GrowthRequest(expansions, counts, released)

    def _replay(self) -> list[int]:
        """Grow the tree as far as gains are known, best leaf first; return the leaves to split next.

        They are the next leaf, and those that would follow if unknown gains were 0.
        """
        gains, room = self.tree.leaves["gain"], len(self.tree.leaves) // 2 - self.n_pairs
        self.leaves, self.order = frontier, order = [0], list[int]()
        leaves_to_split: list[int] = []
        n_leaves, least = 1, 0.0
        while n_leaves < self.limits.n_leaves and frontier:
            place = int(np.argmax(gains[frontier]))
            leaf = frontier[place]
            if not gains[leaf] > 0.0:
                break
            if leaf in self.pair_of:
                pair = self.pair_of[leaf]
                order.append(pair)
                frontier[place] = 2 * pair + 1
                frontier.append(2 * pair + 2)
            else:
                least = least or MIN_GAIN_SHARE * float(gains[leaf])
                if gains[leaf] < least or len(leaves_to_split) >= max(room - 2 * self.limits.n_leaves, 1):
                    break
                if leaf not in self.uncounted:
                    leaves_to_split.append(leaf)
                del frontier[place]
            n_leaves += 1
        return leaves_to_split

    def advance(self, request: GrowthRequest, n_left: Ints, cells: Ints, counts: Ints) -> None:
        """Continue with the summed answers of all parts."""
        pool, place = self.tree.leaves, 0
        for (leaf, feature), bin_counts in zip(request.counts, counts, strict=True):
            del self.uncounted[leaf]
            self._choose_counted(leaf, feature, bin_counts)
        for expansion, left in zip(request.expansions, n_left.tolist(), strict=True):
            record = pool[expansion.leaf]
            n, is_checked = int(record["end"] - record["start"]), bool(record["is_checked"])
            if not is_checked and min(left, n - left) < self.limits.min_documents:
                self.uncounted[expansion.leaf] = expansion.feature
            else:
                histogram = cells[place] if expansion.is_counted else None
                self._add_children(expansion, left, histogram)
            place += expansion.is_counted

    def _add_children(self, expansion: Expansion, n_left: int, histogram: Ints | None) -> None:
        leaf, left, right, feature, _, _ = expansion
        pool, nodes, pair = self.tree.leaves, self.tree.nodes, (left - 1) // 2
        self.pair_of[leaf] = pair
        pool[left] = pool[leaf]
        split_record(left, right, n_left, self.limits, int(self.table.monotone[feature]), pool, nodes)
        pool[left]["histogram"], pool[right]["histogram"] = pair + 1, pool[leaf]["histogram"]
        self.released.append(leaf)
        if histogram is not None:
            self.tree.histograms[pair + 1] = histogram
            self._choose(NewLeaves(left, right, 2))
        else:
            for child in (left, right):
                pool[child]["feature"], pool[child]["gain"] = -1, 0.0

    def _choose(self, new: NewLeaves) -> None:
        """Choose the splits of new leaves; release the histograms of leaves without a split."""
        grower = self.grower
        choose_splits(grower.members[0], grower.bins, self.packed, self.table, self.limits, new, self.tree,
                      grower.scratch)  # fmt: skip
        self.released += [leaf for leaf in new[: new.count] if not self.tree.leaves[leaf]["gain"] > 0.0]

    def _choose_counted(self, leaf: int, feature: int, counts: Ints) -> None:
        """Choose a leaf's split again, with the number of documents in each bin of a feature.

        If the best split is now on another feature and may leave too few documents, that feature is counted next.
        """
        counts_of_features = self.counted.setdefault(leaf, {})
        counts_of_features[feature] = counts
        grower, record = self.grower, self.tree.leaves[leaf]
        choose_with_counts(
            grower.members[0], grower.bins, self.packed, self.table, self.limits, leaf,
            np.array(list(counts_of_features), np.int64), np.array(list(counts_of_features.values()), np.int64),
            self.tree, grower.scratch,
        )  # fmt: skip
        if record["gain"] > 0.0 and not record["is_checked"]:
            self.uncounted[leaf] = int(record["feature"])

    def result(self) -> tuple[Records, Records, list[int]]:
        """Return the leaves and nodes in the order of `grower.grow`, and the numbers of the leaves."""
        leaves, nodes = self.tree.leaves[self.leaves].copy(), np.zeros(len(self.order), LEAF)
        node_of_pair = {pair: k for k, pair in enumerate(self.order)}
        for k, pair in enumerate(self.order):
            nodes[k] = self.tree.nodes[2 * pair + 1]
        for records in (nodes, leaves):
            for record in records:
                if record["parent"] >= 0:
                    record["parent"] = node_of_pair[(int(record["parent"]) - 1) // 2]
        return leaves, nodes, self.leaves


class _SymmetricGrowth(_Growth):
    """A growing symmetric tree. A request splits the leaves of a level, or counts their documents by a feature."""

    def __init__(
        self, grower: DistributedGrower, root: Root, gradients: QuantizedGradients, table: FeatureTable
    ) -> None:
        super().__init__(grower, root, gradients, table)
        self.path = list[int]()  # the feature of each level so far
        self.counts_of: dict[int, Ints] = {}  # by feature: the documents of each leaf of the level in each bin

    def next_request(self) -> GrowthRequest | None:
        """Return a request for the next level; None if the tree is complete."""
        if len(self.path) == self.limits.max_depth:
            return None
        pool, grower, unused = self.tree.leaves, self.grower, np.zeros((len(self.leaves), CELLS), np.int64)
        level = self.tree._replace(leaves=pool[self.leaves])
        feature, is_certain = choose_level(
            grower.members[0], self.packed, self.table, self.limits, level, np.array(self.path, np.int64),
            np.array(list(self.counts_of), np.int64), np.array([*self.counts_of.values(), unused]), grower.scratch,
        )  # fmt: skip
        if feature < 0:
            return None
        if not is_certain:
            return self._request([], [(leaf, feature) for leaf in self.leaves])
        pool[self.leaves] = level.leaves
        self.path.append(feature)
        return self._request([leaf for leaf in self.leaves if pool[leaf]["feature"] >= 0], [])

    def advance(self, request: GrowthRequest, n_left: Ints, cells: Ints, counts: Ints) -> None:
        """Continue with the summed answers of all parts."""
        if request.counts:
            self.counts_of[request.counts[0][1]] = counts
            return
        super().advance(request, n_left, cells, counts)
        children = {leaf: (left, right) for leaf, left, right, *_ in request.expansions}
        in_place = [children[leaf][0] if leaf in children else leaf for leaf in self.leaves]
        self.leaves = in_place + [right for _, right in children.values()]
        self.order, self.counts_of = list(range(self.n_pairs)), {}

    def _choose(self, new: NewLeaves) -> None:
        """Complete the histograms of new leaves; `next_request` chooses the split when all leaves of a level exist."""
        complete_leaves(self.grower.members[0], self.table, new, self.tree)


# --- kernels


compiled_total_of = kernel(total_of)
order_rows = kernel(partition)
count_rows = kernel(fill_histograms)
describe_tree = kernel(describe)


@kernel
def plant_root(pool: Records, n_documents: Int, total: Int) -> None:
    """Make the first record the root, with all documents."""
    make_root(pool[0], n_documents, n_documents, total)


@kernel
def split_record(
    left: Int, right: Int, n_left: Int, limits: GrowthLimits, direction: Int, pool: Records, nodes: Records
) -> None:
    """Turn the record `left`, a copy of the leaf, into the left child, and `right` into the right child.

    The leaf itself becomes the node `right` − 1.
    """
    middle = pool[left].start + n_left
    add_node(left, right, Partition(middle, middle, pool[left].end, False, True), limits, direction, pool, nodes)


@kernel
def choose_splits(
    member: Member, bins: BinMatrix, gradients: PackedGradients, features: FeatureTable, limits: GrowthLimits,
    new: NewLeaves, tree: GrowingTree, scratches: Records,
) -> None:  # fmt: skip
    """Complete the histograms of new leaves, of which `new.small` is counted, and choose their splits."""
    assigned, scratch = share_of_features(member, features), scratches[0]
    score_features(member, features, assigned, limits, new, tree, scratch)
    choose_for_new_leaves(member, bins, gradients, features, limits, new, tree, scratch)


@kernel
def choose_with_counts(
    member: Member, bins: BinMatrix, gradients: PackedGradients, features: FeatureTable, limits: GrowthLimits,
    number: Int, counted: Ints, counts: Ints, tree: GrowingTree, scratches: Records,
) -> None:  # fmt: skip
    """Choose the split of a leaf again, with the number of documents in each bin of some features."""
    assigned, scratch = share_of_features(member, features), scratches[0]
    leaf, splits = tree.leaves[number], tree.splits[0]
    cells = tree.histograms[leaf.histogram]
    score_leaf(features, assigned, limits, leaf, cells, splits, scratch)
    for k in range(len(counted)):
        scratch.counts[:] = counts[k]
        scan_feature(N(COUNTED), counted[k], cells, leaf, features, features.is_categorical, limits, scratch, splits)
    choose_split(bins, gradients, features, limits, leaf, splits, False, tree, scratch)
