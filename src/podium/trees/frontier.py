"""Best-first growth on documents that lie elsewhere: splits are chosen here, from sums that all parts give together.

Best-first growth splits one leaf after the other, and to ask all parts for each split would take as many round trips as
a tree has leaves. So several leaves are split at a time: the next one, and those that would follow if its children had
no gain. A leaf that turns out not to be among the best remains a leaf. What is split in the end, and in which order, is
decided from the same numbers as in `growing.grow`, so the tree is the same, to the bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from podium.core.array_types import Int, Ints
from podium.core.compiling import kernel
from podium.core.team import Team
from podium.trees.bins import BinnedFeatures
from podium.trees.growing import Grower, add_node, describe_tree, make_root, share_of_features
from podium.trees.layout import (
    COUNTED,
    LEAF,
    BinMatrix,
    FeatureTable,
    GrowingTree,
    Limits,
    Member,
    N,
    NewLeaves,
    PackedGradients,
    Records,
)
from podium.trees.leaves import GrownTree
from podium.trees.parameters import GrowthParameters
from podium.trees.part_leaves import Expansion, Question
from podium.trees.partitioning import Partition
from podium.trees.quantization import BoundedGradients, QuantizedGradients
from podium.trees.splitting import (
    choose_for_new_leaves,
    choose_split,
    scan_feature,
    score_features,
    score_leaf,
)

ROOM = 4  # times as many leaves as a tree may have can be split on trial
LEAST_SHARE = 0.6  # of the gain of the next split that one which is split along with it must have
Ask = Callable[[Question], tuple[Ints, Ints, Ints]]
WholeSums = Callable[[list[int], BoundedGradients, tuple[float, float]], Ints]


class Root(NamedTuple):
    """All documents of a tree: how many, the sum of their packed words, and their histogram."""

    n_documents: int
    total: int
    histogram: Ints


class FrontierGrower(Grower):
    """Grows trees from the sums of parts.

    Args:
        binned: no documents, with the bins and the layout of all parts.
        parameters: how to grow.
        n_documents: of all parts.
        whole_sums: has all parts sum gradients and hessians of some leaves (`PartLeaves.sums`).

    """

    def __init__(
        self, binned: BinnedFeatures, parameters: GrowthParameters, n_documents: int, whole_sums: WholeSums
    ) -> None:
        super().__init__(binned, parameters)
        self.whole_sums = whole_sums
        self.n_leaves = min(parameters.n_leaves, max(2, n_documents))
        n_pairs = ROOM * self.n_leaves
        self.pool, self.pool_nodes = np.zeros(2 * n_pairs + 1, LEAF), np.zeros(2 * n_pairs + 1, LEAF)
        self.histograms = np.empty((n_pairs + 1, self.layout.total_cells), np.int64)  # memory is taken as it is used

    def grow_from(self, root: Root, gradients: QuantizedGradients, features: Ints | None, ask: Ask) -> GrownTree:
        """Grow a tree; `ask` has all parts answer a question, and adds up what they say.

        Args:
            root: all documents.
            gradients: without words.
            features: those that may be split on; all by default.
            ask: see `PartLeaves.answer`.

        """
        table = self.table if features is None else self._table(np.intersect1d(features, self.candidates))
        growth = _Growth(self, root, gradients, table)
        while (question := growth.next_question()) is not None:
            growth.take(question, *ask(question))
        leaves, nodes, numbers = growth.result()
        arrays = self._tree_arrays(len(leaves), gradients)
        describe_tree(leaves, nodes, len(leaves), table.is_categorical, arrays)
        no_rows, whole_sums = np.empty(0, np.int32), self.whole_sums
        tree, starts, ends, goes_left = self._described(len(leaves), arrays)
        grown = DistantTree(tree, no_rows, starts, ends, goes_left, leaf_numbers=numbers, whole_sums=whole_sums)
        return self._with_bounds(grown, gradients, leaves)

    def _begin_compilation(self) -> Callable[[], None]:
        """Growth of documents that are here is not needed."""
        return lambda: None


@dataclass(frozen=True)
class DistantTree(GrownTree):
    """A tree whose documents are elsewhere.

    Attributes:
        leaf_numbers: by which the parts know the leaves.
        whole_sums: see `FrontierGrower`.

    """

    leaf_numbers: list[int] = field(default_factory=list)
    whole_sums: WholeSums | None = None

    def sums_in_units(self, gradients: BoundedGradients, scales: tuple[float, float], team: Team) -> Ints:
        """From all parts."""
        assert self.whole_sums is not None
        return self.whole_sums(self.leaf_numbers, gradients, scales)


class _Growth:
    """One tree that grows. Leaves are numbered as they come to be; 0 is the root.

    The pair k of children has the numbers 2k + 1 and 2k + 2. The left one has a histogram of its own, number k + 1,
    the right one takes over that of the leaf.
    """

    def __init__(self, grower: FrontierGrower, root: Root, gradients: QuantizedGradients, table: FeatureTable) -> None:
        self.grower, self.table, self.gradients = grower, table, gradients
        self.limits = grower.parameters.limits(grower.n_leaves, gradients.weight_unit)
        no_words = np.empty(0, np.int64)
        self.packed = PackedGradients(no_words, gradients.largest_weight, gradients.counts_documents)
        pool, no_rows = grower.pool, np.empty(0, np.int32)
        self.tree = GrowingTree(pool, no_rows, grower.histograms, grower.splits)
        self.pairs: list[int] = []  # the leaf of each pair of children
        self.pair_of: dict[int, int] = {}
        self.uncounted: dict[int, int] = {}  # leaves whose split left too few documents, and the feature
        self.counted: dict[int, dict[int, Ints]] = {}  # by leaf and feature the documents in each bin, once asked for
        self.released: list[int] = []
        grower.histograms[0] = root.histogram
        plant_root(pool, root.n_documents, root.total)
        self._choose(NewLeaves(0, 0, 1))

    def next_question(self) -> Question | None:
        """Which leaves to split at the same time, and what to count; None where the tree is done."""
        counts = list(self.uncounted.items())
        wanted = self._wanted(counts)
        if not wanted and not counts:
            return None
        pool, expansions = self.tree.leaves, []
        for leaf in wanted:
            pair = len(self.pairs)
            self.pairs.append(leaf)
            record = pool[leaf]
            is_counted = int(record["depth"]) + 1 != self.limits.max_depth
            expansions.append(
                Expansion(
                    leaf, 2 * pair + 1, 2 * pair + 2, int(record["feature"]), record["goes_left"].copy(), is_counted
                )
            )
        released, self.released = self.released, []
        return Question(expansions, counts, released)

    def _wanted(self, counts: list[tuple[int, int]]) -> list[int]:
        """The leaves to split: the next, and those that would follow if what is not known had no gain."""
        gains, waiting = self.tree.leaves["gain"], {leaf for leaf, _ in counts}
        room = len(self.tree.leaves) // 2 - len(self.pairs)
        wanted: list[int] = []
        frontier, n_leaves, least = [0], 1, 0.0
        while n_leaves < self.limits.n_leaves and frontier:
            place = int(np.argmax(gains[frontier]))
            leaf = frontier[place]
            if not gains[leaf] > 0.0:
                break
            if leaf in self.pair_of:
                pair = self.pair_of[leaf]
                frontier[place] = 2 * pair + 1
                frontier.append(2 * pair + 2)
            else:
                least = least or LEAST_SHARE * float(gains[leaf])
                if gains[leaf] < least or len(wanted) >= max(room - 2 * self.limits.n_leaves, 1):
                    break
                if leaf not in waiting:
                    wanted.append(leaf)
                del frontier[place]
            n_leaves += 1
        return wanted

    def take(self, question: Question, n_left: Ints, cells: Ints, counts: Ints) -> None:
        """Go on with what all parts said."""
        pool, place = self.tree.leaves, 0
        for (leaf, feature), of_bins in zip(question.counts, counts, strict=True):
            del self.uncounted[leaf]
            self._choose_counted(leaf, feature, of_bins)
        for expansion, left in zip(question.expansions, n_left.tolist(), strict=True):
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
        pool, nodes, pair = self.tree.leaves, self.grower.pool_nodes, (left - 1) // 2
        self.pair_of[leaf] = pair
        pool[left] = pool[leaf]
        split_record(left, right, n_left, self.limits.l2, int(self.table.monotone[feature]), pool, nodes)
        pool[left]["histogram"], pool[right]["histogram"] = pair + 1, pool[leaf]["histogram"]
        self.released.append(leaf)
        if histogram is not None:
            self.tree.histograms[pair + 1] = histogram
            self._choose(NewLeaves(left, right, 2))
        else:
            for child in (left, right):
                pool[child]["feature"], pool[child]["gain"] = -1, 0.0
        self.released += [child for child in (left, right) if not pool[child]["gain"] > 0.0]

    def _choose(self, new: NewLeaves) -> None:
        grower = self.grower
        choose_splits(grower.members[0], grower.bins, self.packed, self.table, self.limits, new, self.tree,
                      grower.scratch)  # fmt: skip

    def _choose_counted(self, leaf: int, feature: int, counts: Ints) -> None:
        """Choose a leaf's split again, now that it is known how many documents are in each bin of a feature.

        If the best split is now one of another feature, which is not known to leave enough documents, that is counted.
        """
        known = self.counted.setdefault(leaf, {})
        known[feature] = counts
        grower, record = self.grower, self.tree.leaves[leaf]
        features = np.array(list(known), np.int64)
        of_bins = np.array(list(known.values()), np.int64)
        choose_with_counts(
            grower.members[0], grower.bins, self.packed, self.table, self.limits, leaf, features, of_bins, self.tree,
            grower.scratch,
        )  # fmt: skip
        if record["gain"] > 0.0 and not record["is_checked"]:
            self.uncounted[leaf] = int(record["feature"])

    def result(self) -> tuple[Records, Records, list[int]]:
        """The leaves and nodes of the tree in the order of best-first growth, and the numbers of the leaves."""
        pool, pool_nodes, gains = self.tree.leaves, self.grower.pool_nodes, self.tree.leaves["gain"]
        frontier, order = [0], list[int]()
        node_of_pair: dict[int, int] = {}
        while len(frontier) < self.limits.n_leaves:
            place = int(np.argmax(gains[frontier]))
            leaf = frontier[place]
            if not gains[leaf] > 0.0:
                break
            pair = self.pair_of[leaf]
            node_of_pair[pair] = len(order)
            order.append(pair)
            frontier[place] = 2 * pair + 1
            frontier.append(2 * pair + 2)
        leaves, nodes = pool[frontier].copy(), np.zeros(len(order), LEAF)
        for k, pair in enumerate(order):
            nodes[k] = pool_nodes[2 * pair + 1]
        for records in (nodes, leaves):
            for record in records:
                if record["parent"] >= 0:
                    record["parent"] = node_of_pair[(int(record["parent"]) - 1) // 2]
        return leaves, nodes, frontier


# --- kernels


@kernel
def plant_root(pool: Records, n_documents: Int, total: Int) -> None:
    """Make the first record the leaf with all documents."""
    make_root(pool[0], n_documents, n_documents, total)


@kernel
def split_record(left: Int, right: Int, n_left: Int, l2: float, direction: Int, pool: Records, nodes: Records) -> None:
    """Make a copy of a leaf its left child, and another record its right child; the node has the number right − 1."""
    middle = pool[left].start + n_left
    add_node(left, right, Partition(middle, middle, pool[left].end, False, True), l2, direction, pool, nodes)


@kernel
def choose_splits(
    member: Member, bins: BinMatrix, gradients: PackedGradients, features: FeatureTable, limits: Limits,
    new: NewLeaves, tree: GrowingTree, scratches: Records,
) -> None:  # fmt: skip
    """Complete the histograms of new leaves, of which that of the first is counted, and choose their splits."""
    own, scratch = share_of_features(member, features), scratches[0]
    score_features(member, gradients, features, own, limits, new, tree, scratch)
    choose_for_new_leaves(member, bins, gradients, features, limits, new, tree, scratch)


@kernel
def choose_with_counts(
    member: Member, bins: BinMatrix, gradients: PackedGradients, features: FeatureTable, limits: Limits,
    number: Int, counted: Ints, counts: Ints, tree: GrowingTree, scratches: Records,
) -> None:  # fmt: skip
    """Choose the split of a leaf again; of some features the documents in each bin are known."""
    own, scratch, leaf, splits = share_of_features(member, features), scratches[0], tree.leaves[number], tree.splits[0]
    cells = tree.histograms[leaf.histogram]
    score_leaf(gradients, features, own, limits, leaf, cells, splits, scratch)
    for k in range(len(counted)):
        scratch.counts[:] = counts[k]
        scan_feature(
            N(COUNTED), counted[k], cells, leaf, features, features.is_categorical, limits.min_documents, limits.l2,
            scratch, splits,
        )  # fmt: skip
    choose_split(bins, gradients, features, limits, leaf, splits, False, tree, scratch)
