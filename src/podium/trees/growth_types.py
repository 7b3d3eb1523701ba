"""Types that the kernels of growth share: sizes, records, and named groups of arrays.

**Bins** are uint8: 0 for a missing value, 1 … k for values. They are stored twice: row by row, so that all features of
a leaf's document are read from two or three cache lines, and column by column, for the one feature by which a leaf's
documents are partitioned. `bin_matrix` describes the layout of rows and histograms.

**A leaf's documents** are adjacent in `GrowingTree.documents`: from `start` to `sample_end` those in its histograms, up
to `end` those that gradient-based sampling left out. All are partitioned and counted; those of the sample decide where
to split.

**Threads** grow a tree together: each runs `grower.grow` from beginning to end, works on its share of the features or
rows, and waits for the others at a barrier between two stages. One thread chooses a leaf's split, thread 0 writes the
nodes, and each thread finds the next leaf to split itself, from the same numbers.

Kernels take groups of arrays (NamedTuples) and records (structured arrays): both cost nothing in compiled code.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from podium.core.array_types import Bools, Bytes, Float32s, Floats, Int, Int32s, Ints

BLOCK = 16  # features in a block; a row of bins is padded to whole blocks
CELLS = 256  # the most bins of a feature, including that of missing values
STRIDES = (64, 128, 256)  # cells from one dense feature to the next
MISSING = 0  # the bin of a missing value
CHUNK = 1024  # rows counted at a time: their words and one block of their bins stay in a near cache
NEAR = 1 << 19  # bytes of bins that fit a near cache
FEATURE, CATEGORY, LEFT, RIGHT = range(4)  # rows of `TreeBuffers.numbers`
COUNT, START, END = range(3)  # and of `TreeBuffers.counts`
BOUNDED, LOCATED, COUNTED = range(3)  # how well a feature's best split is known

Records = Any  # a structured array, whose fields type checkers do not know
Record = Any  # its element
U: Any = np.uintp  # an unsigned index needs no check for negative values
N: Any = np.int64  # Numba compiles a helper anew for each literal argument, but not for N(0)

# A leaf of a growing tree, and after its split the node. Fields are whole words, so every load is aligned.
LEAF = np.dtype(
    [
        ("start", np.int64),  # its documents begin here,
        ("sample_end", np.int64),  # those of the sample end here,
        ("end", np.int64),  # and all of them here
        ("depth", np.int64),
        ("total", np.int64),  # the sum of the packed words of the sample
        ("parent", np.int64),  # a node, −1 for the root
        ("is_left", np.int64),  # whether it is the left child
        ("histogram", np.int64),  # its place in `GrowingTree.histograms`
        ("feature", np.int64),  # of its best split, −1 if there is none
        ("bin", np.int64),  # the last bin that goes left; of a categorical feature the number of categories
        ("missing_left", np.int64),  # whether missing values go left
        ("left_total", np.int64),  # the sum of the packed words that go left
        ("is_checked", np.int64),  # whether the split certainly leaves enough documents on both sides
        ("gain", np.float64),  # of its best split, 0 if there is none
        ("low", np.float64),  # bounds of its value that monotone constraints set
        ("high", np.float64),
        ("goes_left", np.uint8, (CELLS,)),  # 1 for the bins of the feature that its split sends left
    ],
    align=True,
)
# The best split of one feature.
SPLIT = np.dtype(
    [
        ("score", np.float64),  # −1 if there is none; an upper bound if the precision is BOUNDED
        ("bin", np.int64),
        ("missing_left", np.int64),  # −1: there are no missing values
        ("left_total", np.int64),
        ("precision", np.int64),  # how well it is known: BOUNDED, LOCATED or COUNTED
    ],
    align=True,
)
# Scratch memory of one thread.
SCRATCH = np.dtype(
    [
        ("words", np.int64, (CHUNK,)),  # of the documents that are counted in one go
        ("sums", np.int64, (CELLS,)),  # packed words, cumulated over bins
        ("counts", np.int64, (CELLS,)),  # documents in each bin,
        ("counts_below", np.int64, (CELLS,)),  # and cumulated
        ("ranked", np.int64, (CELLS,)),  # categories by mean gradient,
        ("means", np.float64, (CELLS,)),  # and their means
        ("scores", np.float64, (CELLS,)),  # of the split after each bin, missing values on the right,
        ("missing_left_scores", np.float64, (CELLS,)),  # and on the left
        ("regions", np.uint8, (CELLS,)),  # that the nodes of a tree split
    ],
    align=True,
)


class Member(NamedTuple):
    """A thread of a team, and the arrays that threads share."""

    # thread, n_threads: its number, and the number of threads
    thread: Int
    n_threads: Int
    shares: Ints  # where the share of each thread begins, see `FeatureLayout.shares`
    event: Ints  # of the team
    barrier: Ints  # see `wait_at_barrier`
    totals: Ints  # counts or sums of each thread; a cache line for each thread
    partial_histograms: Ints  # of all threads but the first, for leaves whose rows threads share


class PackedGradients(NamedTuple):
    """The packed word of each row, the largest weight in them, and whether weights count documents."""

    words: Ints
    largest_weight: Int
    counts_documents: bool


class NodeFeatures(NamedTuple):
    """Which of the features each node may split on; see `splitting.forbid_features`."""

    # first_group, groups: feature f is in the groups `groups[first_group[f] : first_group[f + 1]]`
    first_group: Ints
    groups: Ints
    n_groups: Int
    fraction: float  # of the features that the groups allow
    seed: Any  # uint64, of the tree


class FeatureTable(NamedTuple):
    """The features that may be split on, and properties of every feature."""

    candidates: Ints  # the features that may be split on, ascending
    scanned: Ints  # the same in the order of their cells
    n_bins: Ints  # without that of missing values
    # first_cell, n_cells, common_cell: see `FeatureLayout`
    first_cell: Ints
    n_cells: Ints
    common_cell: Ints
    # block_cells, block_strides: of each 16 dense features, see there
    block_cells: Ints
    block_strides: Ints
    is_categorical: Bools | None  # None if none is, so that no code for categories is compiled
    monotone: Ints  # +1, −1 or 0
    per_node: NodeFeatures | None = None  # None if every node may split on all candidates


class GrowthLimits(NamedTuple):
    """Limits of growth, in units of the packed gradients and weights; a depth of −1 means no limit."""

    n_leaves: Int
    max_depth: Int
    min_documents: Int
    min_documents_to_split: Int
    l2: float
    min_weight: Int = 1  # of a side
    min_gain: float = 0.0  # a split must gain more
    l1: float | None = None  # None for 0, so that no code for it is compiled


class GrowingTree(NamedTuple):
    """A growing tree, shared by all threads."""

    leaves: Records  # `LEAF` records; the first ones are in use
    nodes: Records  # the leaves that were split, in that order
    documents: Int32s  # the rows to grow on, grouped by leaf
    histograms: Ints  # of all features, for each leaf
    splits: Records  # `SPLIT` records of all features, for the smaller and the larger of the two newest leaves


class TreeBuffers(NamedTuple):
    """A grown tree as flat arrays, with room for as many nodes and leaves as it may have."""

    # cuts, first_cut: those of all features, one after the other, and where the cuts of each begin
    cuts: Float32s
    first_cut: Ints
    gain_unit: float  # the value of one unit of a gain
    numbers: Int32s  # of each node the rows `FEATURE`, `CATEGORY` (0 for a category, else −1), `LEFT` and `RIGHT`
    # threshold, missing_left, gain: of each node, see `podium.trees.Tree`
    threshold: Float32s
    missing_left: Bools
    gain: Floats
    goes_left: Bools  # for each node and bin whether it goes left
    counts: Ints  # the rows `COUNT` of each node, `START` and `END` of the documents of each leaf


class LeafRule(NamedTuple):
    """The formula of leaf values: Σ gradients, shrunk by l1, / (Σ hessians + l2), within ± limit, times rate."""

    l2: float
    limit: float
    rate: float
    l1: float = 0.0


class LeafSums(NamedTuple):
    """Inputs and outputs of the sums over the documents of each leaf of a grown tree."""

    # gradients, hessians: of each row
    gradients: Floats
    hessians: Floats
    # gradient_scale, hessian_scale: their scales before rounding
    gradient_scale: float
    hessian_scale: float
    leaf_of_row: Bytes  # output: the leaf of each row
    parts: Ints  # for each thread, `SUMS_AT_ONCE` sums of each leaf, which rows use in turn
    totals: Ints  # output: the sums of each thread
    rule: LeafRule  # the formula of leaf values
    values: Floats  # output: leaf values
    scores: Floats  # of each row; values are added to them. Empty: no values are computed


class NewLeaves(NamedTuple):
    """The leaves of the last split, the one with fewer documents in the sample first; at first the root."""

    small: Int
    large: Int
    count: Int


class FeatureShare(NamedTuple):
    """The features of one thread."""

    # begin, end: the dense features that it counts, by place; multiples of 4
    begin: Int
    end: Int
    # first_group, last_group: the groups of sparse features that it counts
    first_group: Int
    last_group: Int
    # first_cell, last_cell: the cells of both
    first_cell: Int
    last_cell: Int
    # first, last: it scans the features `FeatureTable.scanned[first:last]`
    first: Int
    last: Int
