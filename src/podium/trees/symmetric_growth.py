"""Grow symmetric trees level by level, with one split for all leaves of a level.

CatBoost grows such trees (Prokhorenkova et al., NeurIPS 2018). The gain of a level's split is the sum of the gains of
its leaves (`splitting`). A leaf is not split if a side would have too few documents or too little weight, or if the
values of the sides would violate a monotone constraint. Such a leaf adds nothing to the gain, and the next level may
split it. Of equal gains the lowest feature wins, then the lowest bin, then missing values on the right. Categories go
left by descending mean gradient over all leaves of the level.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from podium.core.array_types import Bytes, Floats, Int, Int32s, Ints
from podium.core.compiling import helper, kernel
from podium.core.intrinsics import borrowed, not_inlined, wait_at_barrier
from podium.core.random import random_bits
from podium.core.team import set_event
from podium.trees.bin_matrix import BinMatrix, cell_of
from podium.trees.grower import add_node, finish_tree, plant, share_of_features
from podium.trees.growth_types import (
    CELLS,
    COUNTED,
    LOCATED,
    MISSING,
    FeatureShare,
    FeatureTable,
    GrowingTree,
    GrowthLimits,
    LeafSums,
    Member,
    N,
    NewLeaves,
    NodeFeatures,
    PackedGradients,
    Record,
    Records,
    TreeBuffers,
    U,
)
from podium.trees.histograms import build_histograms, complete_histograms
from podium.trees.partitioning import partition_leaf
from podium.trees.quantization import weight_of
from podium.trees.splitting import (
    cumulate_values,
    forbid_features_after,
    has_enough_documents,
    is_category,
    may_split,
    rank_categories,
    score_allowed,
    score_of,
    split_rules,
)


@kernel
def grow_symmetric(
    member: Member, bins: BinMatrix, gradients: PackedGradients, features: FeatureTable, limits: GrowthLimits,
    n_sampled: Int, tree: GrowingTree, buffer: Int32s, tiles: Bytes, scratches: Records, arrays: TreeBuffers,
    sums: LeafSums, counts: Ints,
) -> Int:  # fmt: skip
    """Grow one symmetric tree; return the number of leaves. Every thread of a team calls this.

    Args:
        member, bins, gradients, features, limits, n_sampled, tree, buffer, tiles, scratches, arrays, sums: see
            `grower.grow`.
        counts: scratch memory for the documents of each leaf in each bin of a feature.

    """
    set_event(member.thread, member.n_threads, member.event)
    not_inlined()
    member, bins, gradients, features = borrowed(member), borrowed(bins), borrowed(gradients), borrowed(features)
    tree, buffer, counts = borrowed(tree), borrowed(buffer), borrowed(counts)
    tile, scratch = borrowed(tiles)[member.thread], scratches[member.thread]
    assigned = share_of_features(member, features)
    plant(member, gradients.words, n_sampled, tree)
    n_leaves, new, path = N(1), NewLeaves(N(0), N(0), N(1)), np.empty(limits.max_depth, np.int64)
    count_new_leaves(member, bins, gradients.words, features, assigned, limits, new, tree, tile, scratch.words)
    for level in range(limits.max_depth):
        score_level(gradients, features, assigned, limits, tree, n_leaves, counts, scratch)
        wait_at_barrier(member.barrier, member.n_threads)
        if member.thread == 0:
            forbid_features_of_level(path[:level], features.candidates, features.per_node, tree.splits[0])
        wait_at_barrier(member.barrier, member.n_threads)
        feature, counted = best_of_level(features.candidates, limits, tree, n_leaves), N(-1)
        while feature >= 0 and not is_certain(feature, gradients, features, limits, tree, n_leaves, counts, scratch):
            count_level(member, bins, feature, tree, n_leaves, counts)
            if member.thread == 0:
                scan_level(N(COUNTED), feature, gradients, features, limits, tree, n_leaves, counts, scratch)
            wait_at_barrier(member.barrier, member.n_threads)
            feature, counted = best_of_level(features.candidates, limits, tree, n_leaves), feature
        if feature < 0:
            break
        path[level] = feature
        if tree.splits[0, feature].precision == COUNTED and feature != counted:  # another feature was counted last
            count_level(member, bins, feature, tree, n_leaves, counts)
        if member.thread == 0:
            set_splits(feature, features, limits, tree, n_leaves, counts, scratch)
        wait_at_barrier(member.barrier, member.n_threads)
        for k in range(n_leaves):
            leaf = tree.leaves[k]
            if leaf.feature >= 0:
                parts = partition_leaf(member, bins, leaf, limits.min_documents, tree.documents, buffer)
                if member.thread == 0:
                    add_node(k, n_leaves, parts, limits, features.monotone[feature], tree.leaves, tree.nodes)
                new = NewLeaves(k, n_leaves, N(2)) if parts.is_left_small else NewLeaves(n_leaves, k, N(2))
                n_leaves += 1
                wait_at_barrier(member.barrier, member.n_threads)
                count_new_leaves(
                    member, bins, gradients.words, features, assigned, limits, new, tree, tile, scratch.words
                )
    finish_tree(member, bins, features, tree, n_leaves, scratch, arrays, sums)
    return n_leaves


@helper
def count_new_leaves(
    member: Member, bins: BinMatrix, words: Ints, features: FeatureTable, assigned: FeatureShare, limits: GrowthLimits,
    new: NewLeaves, tree: GrowingTree, tile: Bytes, tile_words: Ints,
) -> None:  # fmt: skip
    """Count and complete the histograms of the new leaves, if one of them may be split."""
    if may_split(tree.leaves[new.small], limits) or may_split(tree.leaves[new.large], limits):
        build_histograms(member, bins, words, features, assigned, new, tree, tile, tile_words)
        complete_histograms(member, features, assigned, new, tree)


# --- the choice of a level's split


@helper
def score_level(
    gradients: PackedGradients, features: FeatureTable, assigned: FeatureShare, limits: GrowthLimits, tree: GrowingTree,
    n_leaves: Int, counts: Ints, scratch: Record,
) -> None:  # fmt: skip
    """Find the best split of each feature assigned to this thread, for all leaves of a level."""
    for number in range(assigned.first, assigned.last):
        scan_level(N(LOCATED), features.scanned[number], gradients, features, limits, tree, n_leaves, counts, scratch)


@helper
def forbid_features_of_level(path: Ints, candidates: Ints, per_node: NodeFeatures | None, splits: Records) -> None:
    """Forbid features that may not follow those of the levels above; see `splitting.forbid_features`."""
    if per_node is not None:
        key = random_bits(per_node.seed, np.uint64(len(path)))
        forbid_features_after(path, key, candidates, per_node, splits)


@helper
def best_of_level(candidates: Ints, limits: GrowthLimits, tree: GrowingTree, n_leaves: Int) -> Int:
    """Return the feature with the highest gain, or −1 if no gain is high enough."""
    score = 0.0
    for k in range(n_leaves):
        if may_split(tree.leaves[k], limits):
            score += score_of(tree.leaves[k].total, limits.l1, limits.l2)
    best, feature = max(1e-12 * score, limits.min_gain), N(-1)
    for candidate in candidates:
        if tree.splits[0, candidate].score > best:
            best, feature = tree.splits[0, candidate].score, candidate
    return feature


@helper
def is_certain(
    feature: Int, gradients: PackedGradients, features: FeatureTable, limits: GrowthLimits, tree: GrowingTree,
    n_leaves: Int, counts: Ints, scratch: Record,
) -> bool:  # fmt: skip
    """Return whether it is certain, without counting documents, which leaves the best split of a feature divides."""
    not_inlined()
    split = tree.splits[0, feature]
    if split.precision == COUNTED:
        return True
    n_places = rank_bins(feature, features, limits, tree, n_leaves, scratch)
    for k in range(n_leaves):
        leaf = tree.leaves[k]
        if may_split(leaf, limits):
            cells = cells_of(leaf, feature, features, tree)
            cumulate(N(LOCATED), cells, counts[k], n_places, feature, features, scratch)
            left = scratch.sums[split.bin - 1] + (cells[MISSING] if split.missing_left == 1 else N(0))
            lighter = min(weight_of(left), weight_of(leaf.total - left))
            if lighter >= limits.min_weight and not has_enough_documents(leaf.total, left, gradients, limits):
                return False
    return True


@helper
def count_level(member: Member, bins: BinMatrix, feature: Int, tree: GrowingTree, n_leaves: Int, counts: Ints) -> None:
    """Count the documents of each leaf in each bin of a feature; each thread counts some of the leaves."""
    column = bins.columns[feature * bins.n_rows : (feature + 1) * bins.n_rows]
    for k in range(member.thread, n_leaves, member.n_threads):
        counts[k, :] = 0
        for at in range(tree.leaves[k].start, tree.leaves[k].end):
            counts[k, column[U(tree.documents[at])]] += 1
    wait_at_barrier(member.barrier, member.n_threads)


@helper
def set_splits(
    feature: Int, features: FeatureTable, limits: GrowthLimits, tree: GrowingTree, n_leaves: Int, counts: Ints,
    scratch: Record,
) -> None:  # fmt: skip
    """Give the leaves of a level the best split of a feature, except those that it does not divide."""
    not_inlined()
    split, sums, counts_below = tree.splits[0, feature], scratch.sums, scratch.counts_below
    n_places = rank_bins(feature, features, limits, tree, n_leaves, scratch)
    left_weight, weight = 0.0, 0.0
    for k in range(n_leaves):
        leaf = tree.leaves[k]
        leaf.feature, leaf.gain = N(-1), 0.0
        if may_split(leaf, limits):
            cells = cells_of(leaf, feature, features, tree)
            cumulate(split.precision, cells, counts[k], n_places, feature, features, scratch)
            sums[0], counts_below[0] = sums[split.bin - 1], counts_below[split.bin - 1]
            if split.missing_left == 1:
                sums[0] += cells[MISSING]
                counts_below[0] += counts[k, MISSING]
            rules = split_rules(split.precision, leaf, limits, features.monotone[feature])
            score = score_allowed(sums, counts_below, N(0), N(1), rules, scratch.scores)
            if score >= 0.0:
                leaf.feature, leaf.bin, leaf.left_total, leaf.is_checked = feature, split.bin, sums[0], N(1)
                leaf.gain = score - score_of(leaf.total, limits.l1, limits.l2)
                left_weight += weight_of(sums[0])
                weight += weight_of(leaf.total)
    missing_left = split.missing_left
    if missing_left < 0:  # no missing value was seen in training: later ones go to the heavier side
        missing_left = np.int64(2.0 * left_weight >= weight)
    for k in range(n_leaves):
        leaf = tree.leaves[k]
        leaf.missing_left = missing_left
        for b in range(CELLS):
            leaf.goes_left[b] = 0
        for place in range(split.bin):
            leaf.goes_left[scratch.ranked[place]] = 1
        leaf.goes_left[MISSING] = missing_left


@kernel
def choose_level(
    member: Member, gradients: PackedGradients, features: FeatureTable, limits: GrowthLimits, tree: GrowingTree,
    path: Ints, counted: Ints, counts: Ints, scratches: Records,
) -> tuple[Int, bool]:  # fmt: skip
    """Choose the split of a level as `grow_symmetric` does, when documents are on other machines.

    Args:
        member, gradients, features, limits, scratches: see `grower.grow`.
        tree: the leaves of the level, which get their splits.
        path: the features of the levels above.
        counted: the features whose documents are counted.
        counts: for each of these features, the documents of each leaf in each bin; one more entry is ignored.

    Returns:
        The feature, −1 for none, and whether its split is certain; if not, its documents must be counted.

    """
    scratch, n_leaves, feature_counts = scratches[0], N(len(tree.leaves)), counts[len(counted)]
    assigned = share_of_features(member, features)
    score_level(gradients, features, assigned, limits, tree, n_leaves, feature_counts, scratch)
    for k in range(len(counted)):
        scan_level(N(COUNTED), counted[k], gradients, features, limits, tree, n_leaves, counts[k], scratch)
    forbid_features_of_level(path, features.candidates, features.per_node, tree.splits[0])
    feature = best_of_level(features.candidates, limits, tree, n_leaves)
    if feature < 0 or not is_certain(feature, gradients, features, limits, tree, n_leaves, feature_counts, scratch):
        return feature, False
    for k in range(len(counted)):
        if counted[k] == feature:
            feature_counts = counts[k]
    set_splits(feature, features, limits, tree, n_leaves, feature_counts, scratch)
    return feature, True


@kernel
def complete_leaves(member: Member, features: FeatureTable, new: NewLeaves, tree: GrowingTree) -> None:
    """Complete the histograms of new leaves, of which `new.small` is counted."""
    complete_histograms(member, features, share_of_features(member, features), new, tree)


# --- one feature


@helper
def scan_level(
    precision: Int, feature: Int, gradients: PackedGradients, features: FeatureTable, limits: GrowthLimits,
    tree: GrowingTree, n_leaves: Int, counts: Ints, scratch: Record,
) -> None:  # fmt: skip
    """Write the split of a feature with the highest gain over all leaves of a level to `tree.splits[0]`.

    The gain is exact if the precision is COUNTED or `is_certain` returns true; otherwise it is an upper bound.
    """
    not_inlined()
    gains, missing_left_gains = scratch.scores, scratch.missing_left_scores
    n_places, has_missing = rank_bins(feature, features, limits, tree, n_leaves, scratch), False
    for place in range(n_places):
        gains[place], missing_left_gains[place] = 0.0, 0.0
    is_number = not is_category(features.is_categorical, feature)
    for k in range(n_leaves):
        leaf = tree.leaves[k]
        if may_split(leaf, limits):
            cells = cells_of(leaf, feature, features, tree)
            cumulate(precision, cells, counts[k], n_places, feature, features, scratch)
            rules = split_rules(precision, leaf, limits, features.monotone[feature])
            score_allowed(scratch.sums, scratch.counts_below, N(0), n_places, rules, scratch.means)
            add_gains(precision, leaf.total, n_places, gradients, limits, scratch, gains)
            n_missing = counts[k, MISSING] if precision == COUNTED else N(0)
            if is_number and (cells[MISSING] != 0 or n_missing > 0):
                has_missing = True
                for place in range(n_places):
                    scratch.sums[place] += cells[MISSING]
                    scratch.counts_below[place] += n_missing
                score_allowed(scratch.sums, scratch.counts_below, N(0), n_places, rules, scratch.means)
            add_gains(precision, leaf.total, n_places, gradients, limits, scratch, missing_left_gains)
    split = tree.splits[0, feature]
    split.score, split.precision = 0.0, precision
    for place in range(n_places):
        if gains[place] > split.score:
            split.score, split.bin, split.missing_left = gains[place], place + 1, np.int64(has_missing) - 1
        if has_missing and missing_left_gains[place] > split.score:
            split.score, split.bin, split.missing_left = missing_left_gains[place], place + 1, N(1)
    if not is_number:
        split.missing_left = N(0)


@helper
def add_gains(
    precision: Int, total: Int, n_places: Int, gradients: PackedGradients, limits: GrowthLimits, scratch: Record,
    gains: Floats,
) -> None:  # fmt: skip
    """Add the gain of a leaf to that of each split.

    A split that does not divide the leaf adds nothing. A loss is only added if the split certainly divides the leaf.
    """
    scores, score = scratch.means, score_of(total, limits.l1, limits.l2)
    for place in range(U(n_places)):
        gain = scores[place] - score
        if gain > 0.0 or (
            scores[place] >= 0.0
            and (precision == COUNTED or has_enough_documents(total, scratch.sums[place], gradients, limits))
        ):
            gains[place] += gain


@helper
def cells_of(leaf: Record, feature: Int, features: FeatureTable, tree: GrowingTree) -> Any:
    """Return the histogram of one feature of a leaf."""
    first = features.first_cell[feature]
    return tree.histograms[leaf.histogram, first : first + features.n_cells[feature]]


@helper
def rank_bins(
    feature: Int, features: FeatureTable, limits: GrowthLimits, tree: GrowingTree, n_leaves: Int, scratch: Record
) -> Int:
    """Write the order in which bins go left to `scratch.ranked`; return their number."""
    n_bins, n_cells, total = features.n_bins[feature], features.n_cells[feature], scratch.sums
    if not is_category(features.is_categorical, feature):
        for b in range(n_bins):
            scratch.ranked[b] = b + 1
        return n_bins
    for cell in range(n_cells):
        total[cell] = 0
    for k in range(n_leaves):
        if may_split(tree.leaves[k], limits):
            cells = cells_of(tree.leaves[k], feature, features, tree)
            for cell in range(n_cells):
                total[cell] += cells[cell]
    return rank_categories(total[:n_cells], n_bins, limits.l2, scratch.ranked, scratch.means)


@helper
def cumulate(
    precision: Int, cells: Ints, counts: Ints, n_places: Int, feature: Int, features: FeatureTable, scratch: Record
) -> None:
    """Cumulate the words of a leaf over the ranked bins of a feature, and its documents if the precision is COUNTED."""
    ranked, word, count = scratch.ranked, N(0), N(0)
    if is_category(features.is_categorical, feature):
        for place in range(n_places):
            word += cells[cell_of(ranked[place], len(cells))]
            scratch.sums[place] = word
    else:
        cumulate_values(cells, scratch.sums)
    if precision == COUNTED:
        for place in range(n_places):
            count += counts[ranked[place]]
            scratch.counts_below[place] = count
