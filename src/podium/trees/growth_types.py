"""Types that the kernels of growth share: sizes, records, and named groups of arrays.

**Bins** are uint8: 0 for a missing value, 1 … k for values. They are stored twice: row by row, so that all features of
a document are read from two or three cache lines, and column by column, for the one feature by which a leaf's documents
are partitioned. `bin_matrix` describes the layout of rows and histograms.

**A leaf's documents** are adjacent in `GrowingTree.documents`. Those from `start` to `sample_end` are in its histogram;
those from there to `end` were left out by gradient-based sampling. All are partitioned and counted, but only the sample
decides where to split.

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
CELLS = 256  # the maximum number of bins of a feature, including that of missing values
STRIDES = (64, 128, 256)  # the possible numbers of cells from one dense feature to the next
MISSING = 0  # the bin of a missing value
CHUNK = 1024  # rows counted at a time, so that their words and one block of their bins stay in a near cache
NEAR = 1 << 19  # bytes of bins that fit a near cache
FEATURE, CATEGORY, LEFT, RIGHT = range(4)  # rows of `TreeBuffers.numbers`
COUNT, START, END = range(3)  # rows of `TreeBuffers.counts`
BOUNDED, LOCATED, COUNTED = range(3)  # how well a feature's best split is known, see `splitting.SplitRules`

Records = Any  # a structured array, whose fields type checkers do not know
Record = Any  # an element of it
U: Any = np.uintp  # an unsigned index needs no check for negative values
N: Any = np.int64  # Numba compiles a helper again for each literal argument, but not for N(0)

# A leaf of a growing tree, or a node after the split. Fields are whole words, so every load is aligned.
LEAF = np.dtype(
    [
        ("start", np.int64),  # where its documents begin,
        ("sample_end", np.int64),  # where those of the sample end,
        ("end", np.int64),  # and where all of them end
        ("depth", np.int64),
        ("total", np.int64),  # the sum of the packed words of the sample
        ("parent", np.int64),  # a node, −1 for the root
        ("is_left", np.int64),  # whether it is the left child
        ("histogram", np.int64),  # its index in `GrowingTree.histograms`
        ("feature", np.int64),  # of its best split, −1 if there is none
        ("bin", np.int64),  # the last bin that goes left; for a categorical feature, how many categories go left
        ("missing_left", np.int64),  # whether missing values go left
        ("left_total", np.int64),  # the sum of the packed words that go left
        ("is_checked", np.int64),  # whether the split certainly leaves enough documents on both sides
        ("gain", np.float64),  # of its best split, 0 if there is none
        ("low", np.float64),  # bounds of its value that monotone constraints set
        ("high", np.float64),
        ("goes_left", np.uint8, (CELLS,)),  # 1 for the bins of the feature that go left
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
        ("words", np.int64, (CHUNK,)),  # the packed words of the documents that are counted at a time
        ("sums", np.int64, (CELLS,)),  # packed words, cumulated over bins
        ("counts", np.int64, (CELLS,)),  # documents in each bin,
        ("counts_below", np.int64, (CELLS,)),  # and cumulated
        ("ranked", np.int64, (CELLS,)),  # categories by mean gradient,
        ("means", np.float64, (CELLS,)),  # and their mean gradients
        ("scores", np.float64, (CELLS,)),  # of the split after each bin, with missing values on the right,
        ("missing_left_scores", np.float64, (CELLS,)),  # and with missing values on the left
        ("regions", np.uint8, (CELLS,)),  # the region that each node of a tree splits
    ],
    align=True,
)


class Member(NamedTuple):
    """A thread of a team, and the arrays that threads share."""

    thread: Int  # the number of this thread
    n_threads: Int
    shares: Ints  # where the share of each thread begins, see `FeatureLayout.shares`
    event: Ints  # the event of the team
    barrier: Ints  # see `wait_at_barrier`
    totals: Ints  # counts or sums of each thread; a cache line for each thread
    partial_histograms: Ints  # of all threads but the first, for leaves whose rows are shared among threads


class PackedGradients(NamedTuple):
    """The part of `QuantizedGradients` that kernels need."""

    words: Ints  # the packed word of each row
    largest_weight: Int
    counts_documents: bool  # whether every weight is 1


class NodeFeatures(NamedTuple):
    """Which features a node may split on; see `splitting.forbid_features`."""

    # first_group, groups: feature f is in the groups `groups[first_group[f] : first_group[f + 1]]`
    first_group: Ints
    groups: Ints
    n_groups: Int
    fraction: float  # the share of the allowed features to sample
    seed: Any  # the uint64 seed of the tree


class FeatureTable(NamedTuple):
    """The features that may be split on, and properties of every feature."""

    candidates: Ints  # the features that may be split on, ascending
    scanned: Ints  # the same features in the order of their cells
    n_bins: Ints  # of each feature, not counting the bin of missing values
    # first_cell, n_cells, common_cell, block_cells, block_strides: see `FeatureLayout`
    first_cell: Ints
    n_cells: Ints
    common_cell: Ints
    block_cells: Ints
    block_strides: Ints
    is_categorical: Bools | None  # None if no feature is, so that no code for categories is compiled
    monotone: Ints  # +1, −1 or 0
    per_node: NodeFeatures | None = None  # None if every node may split on all candidates


class GrowthLimits(NamedTuple):
    """Limits of growth, in units of the packed gradients and weights; a depth of −1 means no limit."""

    n_leaves: Int
    max_depth: Int
    min_documents: Int
    min_documents_to_split: Int
    l2: float
    min_weight: Int = 1  # of each side of a split
    min_gain: float = 0.0  # the gain of a split must be higher
    l1: float | None = None  # None for 0, so that no code for it is compiled


class GrowingTree(NamedTuple):
    """A growing tree, shared by all threads."""

    leaves: Records  # `LEAF` records, of which the first are in use
    nodes: Records  # `LEAF` records of the leaves that were split, in the order of the splits
    documents: Int32s  # the rows to grow on, grouped by leaf
    histograms: Ints  # for each leaf, the histograms of all features
    splits: Records  # `SPLIT` records of all features, for the smaller and the larger of the two newest leaves


class TreeBuffers(NamedTuple):
    """The arrays that growth writes a tree to, with room for the maximum number of nodes and leaves."""

    # cuts, first_cut: input: the cuts of all features, feature by feature, and where the cuts of each begin
    cuts: Float32s
    first_cut: Ints
    gain_unit: float  # input: the value of one unit of a gain
    numbers: Int32s  # for each node: `FEATURE`, `CATEGORY` (0 for a categorical node, else −1), `LEFT` and `RIGHT`
    # threshold, missing_left, gain: of each node, see `podium.trees.Tree`
    threshold: Float32s
    missing_left: Bools
    gain: Floats
    goes_left: Bools  # for each node and bin, whether the bin goes left
    counts: Ints  # `COUNT` of each node, and where the documents of each leaf begin (`START`) and end (`END`)


class LeafRule(NamedTuple):
    """The formula of leaf values: rate · v, where v is G / (H + l2) within ± limit, and l1 shrinks G."""

    l2: float
    limit: float
    rate: float
    l1: float = 0.0


class LeafSums(NamedTuple):
    """Inputs and outputs of sums over the documents of each leaf of a grown tree."""

    # gradients, hessians: of each row
    gradients: Floats
    hessians: Floats
    # gradient_scale, hessian_scale: the factors before values are rounded to integers
    gradient_scale: float
    hessian_scale: float
    leaf_of_row: Bytes  # output: the leaf of each row
    parts: Ints  # scratch: for each thread, `SUMS_AT_ONCE` sums of each leaf, which rows use in turn
    totals: Ints  # output: the sums of each thread
    rule: LeafRule  # the formula of leaf values
    values: Floats  # output: leaf values
    scores: Floats  # of each row, to which leaf values are added; if it is empty, no values are computed


class NewLeaves(NamedTuple):
    """The two leaves of the last split, or the root; `small` has fewer documents in the sample."""

    small: Int
    large: Int
    count: Int


class FeatureShare(NamedTuple):
    """The features of one thread."""

    # begin, end: it counts `FeatureLayout.dense[begin:end]`; multiples of 4
    begin: Int
    end: Int
    # first_group, last_group: it counts these groups of sparse features
    first_group: Int
    last_group: Int
    # first_cell, last_cell: the cells of the features that it counts
    first_cell: Int
    last_cell: Int
    # first, last: it scans `FeatureTable.scanned[first:last]`
    first: Int
    last: Int
