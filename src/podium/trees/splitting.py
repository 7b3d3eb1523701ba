"""Search for the best split of a leaf, from its histograms.

The score of a split is G_l²/(H_l + l2) + G_r²/(H_r + l2), where G and H are the sums of gradients and weights on each
side, and l1 shrinks G (`quantization.shrunk`). Its gain is the difference to the score of the whole leaf. Of equal
scores the lowest feature wins, then the lowest bin, then missing values on the right, so the choice depends on neither
threads nor the order of rows.

Most features only get an upper bound of their scores, in single precision. Only those that may have the best split are
scored exactly.

The minimum number of documents in a leaf is exact, but enforced at different times. If weights count documents, it is
the minimum weight of a side, so every scored split obeys it. Otherwise a scored split only needs a weight of 1 on each
side (more with a minimum of hessians). `choose_split` then sets `is_checked` if the weights prove that both sides have
enough documents. If they do not, `partitioning.partition_leaf` counts the documents when the leaf is split. If there
are too few, `choose_counted_split` searches again, with documents counted by bin.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from podium.core.array_types import Bools, Floats, Int, Ints
from podium.core.compiling import helper
from podium.core.intrinsics import inlined, not_inlined
from podium.core.random import keyed_bits, random_bits, to_unit
from podium.core.simd import (
    LANES,
    WORDS,
    absolute,
    all_lanes,
    all_words,
    choose_lanes,
    cumulative_sums,
    highest_lane,
    last_word,
    load_words,
    lower_halves,
    upper_halves,
)
from podium.trees.bin_matrix import BinMatrix, cell_of
from podium.trees.growth_types import (
    BOUNDED,
    CELLS,
    COUNTED,
    LOCATED,
    MISSING,
    FeatureShare,
    FeatureTable,
    GrowingTree,
    GrowthLimits,
    Member,
    N,
    NewLeaves,
    NodeFeatures,
    PackedGradients,
    Record,
    Records,
    U,
)
from podium.trees.histograms import complete_histograms
from podium.trees.quantization import gradient_of, shrunk, weight_of

SLACK = 1.0 + 4e-6  # a score in single precision, times this, is above the exact score
MAX_L2 = 2.0**60  # above this, single precision would overflow
EXACT = 2**24  # whole numbers up to this are exact in single precision
WRAPPED = 2.0**32  # is added to a weight of 2^31 or more, which reads as a negative number


@helper
def _weights(first: Any, second: Any, is_heavy: bool) -> Any:
    """Return the weights of the words of two vectors; `is_heavy` says whether a weight may be 2^31 or more."""
    inlined()
    weights = lower_halves(first, second)
    if is_heavy:
        negative = all_lanes(np.float32(0.0)) > weights
        weights = choose_lanes(negative, weights + all_lanes(np.float32(WRAPPED)), weights)
    return weights


@helper
def _shrunk_lanes(gradients: Any, l1: float) -> Any:
    """Return upper bounds of |gradient| shrunk by l1; the difference of two rounded numbers may lose all digits."""
    inlined()
    zero = all_lanes(np.float32(0.0))
    rest = absolute(gradients) * all_lanes(np.float32(SLACK)) - all_lanes(np.float32(l1 / SLACK))
    return choose_lanes(rest > zero, rest, zero)


@helper
def bound_numbers(
    cells: Ints, total: Int, features: FeatureTable, assigned: FeatureShare, limits: GrowthLimits, l1: float | None,
    splits: Records,
) -> None:  # fmt: skip
    """Write an upper bound of the scores of each numeric feature that is not monotone; −1 if it has no split.

    Compute the scores of `score_splits` in single precision, 16 at a time: one in each range of bins (`bin_matrix`).
    First the totals of the ranges are cumulated, then the words within all ranges at the same time. All terms are
    positive and come from integers, so only the rounding of about ten operations is lost (`SLACK`).

    The first cell holds the missing values: if the sums include it they go left, else right. A split that is scored
    twice (all missing values against all others) has the same score both times. A split with an empty side has the
    score of the leaf, or NaN if l2 is 0, which never compares as higher; with a minimum above 1 it has no score.
    """
    not_inlined()
    minimum = limits.min_weight
    lightest = all_lanes(np.float32(minimum if minimum < EXACT else minimum / SLACK))
    added, none = all_lanes(np.float32(limits.l2)), all_lanes(np.float32(-1.0))
    totals, has_minimum, is_heavy = all_words(total), minimum > 1, 2.0 * weight_of(total) >= WRAPPED
    for number in range(U(assigned.first), U(assigned.last)):
        feature = U(features.scanned[number])
        first = features.first_cell[feature]
        end, missing = first + features.n_cells[feature], cells[U(first)]
        low, high = all_words(N(0)), all_words(N(0))  # of the lower and the upper eight ranges
        for at in range(first, end, LANES):
            low, high = low + load_words(cells, at), high + load_words(cells, at + WORDS)
        sums = cumulative_sums(low)
        low, high = sums - low, cumulative_sums(high) - high + last_word(sums)  # the ranges before each range
        best, added_missing = none, all_words(-missing)
        for _ in range(2 if np.uint32(missing) > 0 else 1):
            low_left, high_left = low + added_missing, high + added_missing
            for at in range(first, end, LANES):
                low_left, high_left = low_left + load_words(cells, at), high_left + load_words(cells, at + WORDS)
                gl, wl = upper_halves(low_left, high_left), _weights(low_left, high_left, is_heavy)
                low_right, high_right = totals - low_left, totals - high_left
                gr, wr = upper_halves(low_right, high_right), _weights(low_right, high_right, is_heavy)
                hl, hr = wl + added, wr + added
                if l1 is not None:
                    gl, gr = _shrunk_lanes(gl, l1), _shrunk_lanes(gr, l1)
                score = (gl * gl * hr + gr * gr * hl) / (hl * hr)
                if has_minimum:
                    score = choose_lanes(lightest > wl, none, choose_lanes(lightest > wr, none, score))
                best = choose_lanes(score > best, score, best)
            added_missing = all_words(N(0))
        split = splits[feature]
        split.score, split.precision = SLACK * np.float64(highest_lane(best)), N(BOUNDED)


class SplitRules(NamedTuple):
    """The rules by which the splits of one feature of a leaf are scored."""

    # BOUNDED: find the best score only; LOCATED: find the best split; COUNTED: also obey `min_documents`, with
    # documents counted in `SCRATCH.counts`
    precision: Int
    # total, n_documents: the sum of the words of the leaf, and its number of documents
    total: Int
    n_documents: Int
    # min_weight, min_documents: the minima of each side
    min_weight: Int
    min_documents: Int
    l2: float  # added to the weight of each side
    l1: float | None  # shrinks the gradient of each side
    direction: Int  # +1 or −1 for a monotone feature, else 0
    # low, high: the bounds of the leaf's value
    low: float
    high: float


class BestSplit(NamedTuple):
    """The fields of a `SPLIT` record, except the precision."""

    score: Any
    bin: Any
    missing_left: Any
    left_total: Any


# --- stages of growth


@helper
def may_split(leaf: Record, limits: GrowthLimits) -> bool:
    """Return whether a leaf has enough documents for two leaves, and is not too deep."""
    min_documents = max(2 * limits.min_documents, limits.min_documents_to_split)
    is_allowed: bool = leaf.end - leaf.start >= min_documents and leaf.depth != limits.max_depth
    return is_allowed


@helper
def score_features(
    member: Member, features: FeatureTable, assigned: FeatureShare, limits: GrowthLimits, new: NewLeaves,
    tree: GrowingTree, scratch: Record,
) -> None:  # fmt: skip
    """Complete the histograms of the new leaves, and score the best split of each feature assigned to this thread."""
    complete_histograms(member, features, assigned, new, tree)
    for which in range(new.count):
        leaf = tree.leaves[new.small if which == 0 else new.large]
        if may_split(leaf, limits):
            cells = tree.histograms[leaf.histogram]
            score_leaf(features, assigned, limits, leaf, cells, tree.splits[which], scratch)


@helper
def score_leaf(
    features: FeatureTable, assigned: FeatureShare, limits: GrowthLimits, leaf: Record, cells: Ints, splits: Records,
    scratch: Record,
) -> None:  # fmt: skip
    """Score the best split of each feature of one leaf, from its complete histogram."""
    is_in_range = limits.l2 < MAX_L2
    if is_in_range:
        bound_numbers(cells, leaf.total, features, assigned, limits, limits.l1, splits)
    for number in range(assigned.first, assigned.last):
        feature = features.scanned[number]
        is_number = features.monotone[feature] == 0 and not is_category(features.is_categorical, feature)
        if not (is_number and is_in_range):
            scan_feature(N(BOUNDED), feature, cells, leaf, features, features.is_categorical, limits, scratch, splits)


@helper
def is_category(is_categorical: Bools | None, feature: Int) -> bool:
    """Return whether a feature is categorical; without categorical features this is False at compile time."""
    if is_categorical is not None:
        return bool(is_categorical[feature])
    return False


@helper
def choose_for_new_leaves(
    member: Member, bins: BinMatrix, gradients: PackedGradients, features: FeatureTable, limits: GrowthLimits,
    new: NewLeaves, tree: GrowingTree, scratch: Record,
) -> None:  # fmt: skip
    """Choose the splits of the new leaves from the scores of their features; each thread takes some of the leaves."""
    for which in range(new.count):
        if which % member.n_threads == member.thread:
            leaf = tree.leaves[new.small if which == 0 else new.large]
            if may_split(leaf, limits):
                choose_split(bins, gradients, features, limits, leaf, tree.splits[which], False, tree, scratch)
            else:
                leaf.feature, leaf.gain = N(-1), 0.0


@helper
def choose_counted_split(
    bins: BinMatrix, gradients: PackedGradients, features: FeatureTable, limits: GrowthLimits, leaf: Record,
    tree: GrowingTree, scratch: Record,
) -> None:  # fmt: skip
    """Choose the split of a leaf again, with documents counted by bin, so that both sides have enough."""
    not_inlined()
    assigned = FeatureShare(N(0), N(0), N(0), N(0), N(0), N(0), N(0), np.int64(len(features.scanned)))
    cells, splits = tree.histograms[leaf.histogram], tree.splits[0]
    score_leaf(features, assigned, limits, leaf, cells, splits, scratch)
    choose_split(bins, gradients, features, limits, leaf, splits, True, tree, scratch)


@helper
def choose_split(
    bins: BinMatrix, gradients: PackedGradients, features: FeatureTable, limits: GrowthLimits, leaf: Record,
    splits: Records, may_count: bool, tree: GrowingTree, scratch: Record,
) -> None:  # fmt: skip
    """Choose the leaf's split from the best splits of its features.

    The best split of a feature is located only if the bound of the feature is above all exact scores so far. If that
    split may leave too few documents on a side, and `may_count` is set, the documents are counted by the bins of the
    feature, and its best split is searched again. That repeats until the best split is certain.
    """
    not_inlined()
    cells = tree.histograms[leaf.histogram]
    total = leaf.total
    parent = score_of(total, limits.l1, limits.l2)
    leaf.feature, leaf.gain = N(-1), 0.0
    forbid_features(leaf, features.candidates, features.per_node, tree.nodes, splits)
    while True:
        best, feature = max(parent * (1.0 + 1e-12), parent + limits.min_gain), N(-1)
        for candidate in features.candidates:
            if splits[candidate].score > best:
                best, feature = splits[candidate].score, candidate
        if feature < 0:
            return
        split = splits[feature]
        if split.precision == BOUNDED:
            scan_feature(N(LOCATED), feature, cells, leaf, features, features.is_categorical, limits, scratch, splits)
            continue  # the exact score may be lower than another feature's
        is_enough = split.precision == COUNTED or has_enough_documents(total, split.left_total, gradients, limits)
        if is_enough or not may_count:
            break
        counts = scratch.counts
        for b in range(CELLS):
            counts[b] = 0
        for k in range(leaf.start, leaf.end):
            counts[bins.columns[U(feature * bins.n_rows + np.int64(tree.documents[k]))]] += 1
        scan_feature(N(COUNTED), feature, cells, leaf, features, features.is_categorical, limits, scratch, splits)
    leaf.feature, leaf.gain, leaf.is_checked = feature, best - parent, np.int64(is_enough)
    leaf.bin, leaf.missing_left, leaf.left_total = split.bin, split.missing_left, split.left_total
    _set_goes_left(leaf, cells, features, features.is_categorical, limits.l2, scratch)


@helper
def score_of(word: Int, l1: float | None, l2: float) -> Any:
    """Return the score G²/(H + l2) of some documents; `word` is the sum of their packed words."""
    gradient = gradient_of(word)
    if l1 is not None:
        gradient = shrunk(gradient, l1)
    return gradient * gradient / (weight_of(word) + l2)


@helper
def value_of(word: Int, l1: float | None, l2: float) -> Any:
    """Return the value G/(H + l2) of a leaf with some documents; `word` is the sum of their packed words."""
    gradient = gradient_of(word)
    if l1 is not None:
        gradient = shrunk(gradient, l1)
    return gradient / (weight_of(word) + l2)


@helper
def has_enough_documents(total: Int, left_total: Int, gradients: PackedGradients, limits: GrowthLimits) -> bool:
    """Return whether both sides of a split certainly have enough documents, because fewer could not weigh as much."""
    if gradients.counts_documents or limits.min_documents == 1:
        return True
    lighter = min(np.int64(np.uint32(left_total)), np.int64(np.uint32(total - left_total)))
    is_certain: bool = lighter > (limits.min_documents - 1) * gradients.largest_weight
    return is_certain


@helper
def forbid_features(
    leaf: Record, candidates: Ints, per_node: NodeFeatures | None, nodes: Records, splits: Records
) -> None:
    """Exclude the splits of features that a leaf may not use; if `per_node` is None, no code is compiled.

    The path from the root, left or right at each node, identifies a leaf. It seeds the leaf's random numbers, so they
    do not depend on the order of growth.
    """
    if per_node is not None:
        path, key, parent, is_left = np.empty(leaf.depth, np.int64), per_node.seed, leaf.parent, leaf.is_left
        for k in range(leaf.depth):
            path[k], key = nodes[parent].feature, random_bits(key, np.uint64(is_left))
            parent, is_left = nodes[parent].parent, nodes[parent].is_left
        forbid_features_after(path, key, candidates, per_node, splits)


@helper
def forbid_features_after(path: Ints, key: Any, candidates: Ints, per_node: NodeFeatures, splits: Records) -> None:
    """Forbid features that share no group with all features of a path, and all but a random sample of the others.

    The sample has exactly the requested share, rounded up. Features are drawn one after the other, each with the
    probability (features still to draw) / (features not yet seen), which makes all samples equally likely.
    """
    not_inlined()
    first_group, groups = per_node.first_group, per_node.groups
    n_shared = np.zeros(per_node.n_groups, np.int64)  # how many features of the path are in each group, without a gap
    for k in range(len(path)):
        for at in range(first_group[path[k]], first_group[path[k] + 1]):
            if n_shared[groups[at]] == k:
                n_shared[groups[at]] = k + 1
    is_allowed = np.zeros(len(candidates), np.bool_)
    for k in range(len(candidates)):
        for at in range(first_group[candidates[k]], first_group[candidates[k] + 1]):
            if n_shared[groups[at]] == len(path):
                is_allowed[k] = True
    n_unseen = is_allowed.sum()
    n_to_draw = math.ceil(per_node.fraction * n_unseen)
    for k in range(len(candidates)):
        is_drawn = is_allowed[k]
        if is_allowed[k]:
            is_drawn = to_unit(keyed_bits(np.uint64(candidates[k]), key)) * n_unseen < n_to_draw
            n_unseen, n_to_draw = n_unseen - 1, n_to_draw - np.int64(is_drawn)
        if not is_drawn:
            splits[candidates[k]].score = -1.0


@helper
def _set_goes_left(
    leaf: Record, cells: Ints, features: FeatureTable, is_categorical: Bools | None, l2: float, scratch: Record
) -> None:
    """Write which bins the leaf's split sends left."""
    goes_left, feature = leaf.goes_left, leaf.feature
    for b in range(CELLS):
        goes_left[b] = 0
    if is_categorical is not None:
        if is_categorical[feature]:
            first = features.first_cell[feature]
            feature_cells = cells[first : first + features.n_cells[feature]]
            rank_categories(feature_cells, features.n_bins[feature], l2, scratch.ranked, scratch.means)
            for rank in range(leaf.bin):
                goes_left[scratch.ranked[rank]] = 1
            return
    for b in range(1, leaf.bin + 1):
        goes_left[b] = 1
    if leaf.missing_left < 0:  # no missing value was seen in training: later ones go to the heavier side
        leaf.missing_left = np.int64(2.0 * weight_of(leaf.left_total) >= weight_of(leaf.total))
    goes_left[MISSING] = 1 if leaf.missing_left == 1 else 0


# --- one feature


@helper
def scan_feature(
    precision: Int, feature: Int, cells: Ints, leaf: Record, features: FeatureTable, is_categorical: Bools | None,
    limits: GrowthLimits, scratch: Record, splits: Records,
) -> None:  # fmt: skip
    """Write the best split of one feature to `splits[feature]`; see `SplitRules` for `precision`.

    If `is_categorical` is None, no code for categories is compiled. It is an argument in addition to the field of
    `features`, because Numba prunes branches for an argument that is None, but not for a field.
    """
    first = features.first_cell[feature]
    feature_cells = cells[first : first + features.n_cells[feature]]
    n_bins, split = features.n_bins[feature], splits[feature]
    split.precision = precision
    if is_categorical is not None:
        if is_categorical[feature]:
            rules = split_rules(precision, leaf, limits, N(0))
            best = _scan_categories(feature_cells, n_bins, rules, scratch)
            split.score, split.bin, split.missing_left, split.left_total = best
            return
    rules = split_rules(precision, leaf, limits, features.monotone[feature])
    best = _scan_numbers(feature_cells, n_bins, rules, scratch)
    split.score, split.bin, split.missing_left, split.left_total = best


@helper
def split_rules(precision: Int, leaf: Record, limits: GrowthLimits, direction: Int) -> SplitRules:
    """Return the rules for one feature of a leaf."""
    return SplitRules(
        precision, leaf.total, leaf.end - leaf.start, limits.min_weight, limits.min_documents, limits.l2, limits.l1,
        direction, leaf.low, leaf.high,
    )  # fmt: skip


@helper
def _scan_numbers(cells: Ints, n_bins: Int, rules: SplitRules, scratch: Record) -> BestSplit:
    """Return the best split of a numeric feature, or only its score if the precision is BOUNDED."""
    not_inlined()
    sums, counts_below, counts = scratch.sums, scratch.counts_below, scratch.counts
    scores, missing_scores = scratch.scores, scratch.missing_left_scores
    missing = cells[MISSING]
    cumulate_values(cells, sums)
    if rules.precision == COUNTED:
        count = np.int64(0)
        for b in range(n_bins):
            count += counts[b + 1]
            counts_below[b] = count
    # With missing values, there is also the split of all values against them; else its right side would be empty.
    any_missing = np.uint32(missing) > 0 or (rules.precision == COUNTED and counts[MISSING] > 0)
    n_splits = n_bins if any_missing else n_bins - 1
    best = score_allowed(sums, counts_below, N(0), n_splits, rules, scores)
    if any_missing:
        # Skip splits with only missing values on the left: only missing values on the right is the same split.
        begin = N(0)
        while begin < n_bins and np.uint32(sums[begin]) == 0:
            missing_scores[begin] = -1.0
            begin += 1
        for b in range(n_bins):
            sums[b] += missing
            counts_below[b] += counts[MISSING]
        other = score_allowed(sums, counts_below, begin, max(n_bins - 1, begin), rules, missing_scores)
        best = max(best, other)
    if rules.precision == BOUNDED:
        return BestSplit(best, N(0), N(0), N(0))
    if best >= 0.0:
        for b in range(n_splits):
            if scores[b] == best:
                left_total = sums[b] - missing if any_missing else sums[b]
                return BestSplit(best, np.int64(b + 1), np.int64(any_missing) - 1, left_total)
            if any_missing and b < n_bins - 1 and missing_scores[b] == best:
                return BestSplit(best, np.int64(b + 1), np.int64(1), sums[b])
    return BestSplit(-1.0, N(0), N(0), N(0))


@helper
def cumulate_values(cells: Ints, sums: Ints) -> None:
    """Cumulate the words of a feature's bins, without the bin of missing values."""
    word, place = np.int64(0), U(0)
    for lane in range(U(LANES)):  # one range of bins after the other (`cell_of`)
        for cell in range(U(LANES) if lane == 0 else lane, U(len(cells)), U(LANES)):
            word += cells[cell]
            sums[place] = word
            place += U(1)


@helper
def _scan_categories(cells: Ints, n_bins: Int, rules: SplitRules, scratch: Record) -> BestSplit:
    """Return the best split of a categorical feature: the categories with the highest mean gradients go left.

    For squared error the best of all sets of categories has this form (Fisher, 1958). Missing and unknown categories go
    right.
    """
    not_inlined()
    sums, counts_below, ranked = scratch.sums, scratch.counts_below, scratch.ranked
    n_present = rank_categories(cells, n_bins, rules.l2, ranked, scratch.means)
    word, count = np.int64(0), np.int64(0)
    for rank in range(n_present):
        b = ranked[rank]
        word += cells[cell_of(b, len(cells))]
        count += scratch.counts[b]
        sums[rank], counts_below[rank] = word, count
    best = score_allowed(sums, counts_below, N(0), n_present, rules, scratch.scores)
    if best >= 0.0:
        for rank in range(n_present):
            if scratch.scores[rank] == best:
                return BestSplit(best, np.int64(rank + 1), N(0), sums[rank])
    return BestSplit(-1.0, N(0), N(0), N(0))


@helper
def rank_categories(cells: Ints, n_bins: Int, l2: float, ranked: Ints, means: Floats) -> Int:
    """Rank the bins that have documents by descending mean gradient, then by number; return their number."""
    n_present = 0
    for b in range(1, n_bins + 1):
        word = cells[cell_of(b, len(cells))]
        if np.uint32(word) > 0:
            mean = gradient_of(word) / (weight_of(word) + l2)
            rank = n_present
            while rank > 0 and means[rank - 1] < mean:
                means[rank], ranked[rank] = means[rank - 1], ranked[rank - 1]
                rank -= 1
            means[rank], ranked[rank] = mean, b
            n_present += 1
    return n_present


# --- scores


@helper
def score_allowed(sums: Ints, counts_below: Ints, begin: Int, end: Int, rules: SplitRules, scores: Floats) -> Any:
    """Score the splits after the bins begin … end − 1, −1 if one is not allowed; return the highest score."""
    best = score_splits(sums, begin, end, rules.total, rules.min_weight, rules.l2, rules.l1, scores)
    if rules.precision == COUNTED:
        best = _forbid_small_sides(counts_below, begin, end, rules.n_documents, rules.min_documents, scores)
    if rules.direction != 0:
        best = _forbid_wrong_direction(sums, begin, end, rules, scores)
    return best


@helper
def score_splits(
    sums: Ints, begin: Int, end: Int, total: Int, minimum: Int, l2: float, l1: float | None, scores: Floats
) -> Any:
    """Score a split after each bin: G_l²/H_l + G_r²/H_r, −1 if a side weighs less than `minimum`; return the highest.

    `sums` are cumulated over bins. (G_l² H_r + G_r² H_l) / (H_l H_r) takes only one division per bin. The maximum is
    taken over the bits as integers, so that the loop vectorizes: numbers from 0 on have the same order as integers, and
    −1 is below them.
    """
    gradient, weight, lightest = gradient_of(total), weight_of(total), np.float64(minimum)
    for b in range(U(begin), U(end)):
        gl, wl = gradient_of(sums[b]), weight_of(sums[b])
        gr, wr = gradient - gl, weight - wl
        hl, hr = wl + l2, wr + l2
        if l1 is not None:
            gl, gr = shrunk(gl, l1), shrunk(gr, l1)
        score = (gl * gl * hr + gr * gr * hl) / (hl * hr)
        scores[b] = score if (wl >= lightest) & (wr >= lightest) else -1.0
    best = np.int64(-1)
    for b in range(U(begin), U(end)):
        best = max(best, np.float64(scores[b]).view(np.int64))
    return np.int64(best).view(np.float64) if best >= 0 else -1.0


@helper
def _forbid_small_sides(
    counts_below: Ints, begin: Int, end: Int, n_documents: Int, min_documents: Int, scores: Floats
) -> Any:
    """Forbid splits with too few documents on a side; return the highest remaining score."""
    best = -1.0
    for b in range(begin, end):
        if counts_below[b] < min_documents or n_documents - counts_below[b] < min_documents:
            scores[b] = -1.0
        best = max(best, scores[b])
    return best


@helper
def _forbid_wrong_direction(sums: Ints, begin: Int, end: Int, rules: SplitRules, scores: Floats) -> Any:
    """Forbid splits whose leaf values, within the leaf's bounds, go against the direction of the feature.

    Return the highest remaining score.
    """
    not_inlined()
    best = -1.0
    for b in range(begin, end):
        left = min(max(value_of(sums[b], rules.l1, rules.l2), rules.low), rules.high)
        right = min(max(value_of(rules.total - sums[b], rules.l1, rules.l2), rules.low), rules.high)
        if (right - left) * rules.direction < 0.0:
            scores[b] = -1.0
        best = max(best, scores[b])
    return best
