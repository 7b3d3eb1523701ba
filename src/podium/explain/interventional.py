"""Exact Shapley values of trees against a background set, for many documents at a time.

The game: features enter one by one, in random order. At a split whose feature has entered, a path follows the explained
document, and at any other split a document of the background. φ is the mean over the background.

A leaf of value v tests d different features. o_j is 1 if the explained document passes all its tests of feature j,
z_j is 1 if the background document does. The leaf counts if no feature has o = z = 0. With a features of o = 1, z = 0
and c of o = 0, z = 1, each of the first gets v (a−1)! c! / (a+c)!, each of the others −v a! (c−1)! / (a+c)! (Laberge
and Pequignot 2022, after Lundberg et al. 2020).

At a leaf, documents with the same o get the same values (Nadel and Wettenstein 2025 also count such patterns). So
documents are sorted into *classes* on the way down a tree: the documents of a class have passed and failed the tests of
the same features. An edge splits classes, reading each document once. At a leaf, each class of documents is combined
with each class of the background once, whatever their sizes. A leaf of a typical tree tests about eight features, and
few of the 2^8 patterns occur, so the work hardly grows with the background.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Float32s, Floats, Int, Int32s, Ints, UInt64s
from podium.core.compiling import helper, kernel
from podium.core.intrinsics import borrowed, not_inlined
from podium.core.threads import for_ranges
from podium.data.features import Features
from podium.data.sparse import dense_block
from podium.errors import DataError
from podium.models.scoring.traversal import TreeArrays, add_scores, goes_left

BLOCK = 4096  # documents at a time
MIN_BLOCK = 64
SCRATCH = 1 << 24  # maximum memory of the classes of a block in bytes


class InterventionalShap:
    """Shapley values of an ensemble against the documents of a background set; `base` is their mean score."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]], background: Features) -> None:
        self.trees = TreeArrays.of(arrays)
        if background.shape[0] == 0:
            raise DataError("the background has no documents")
        rows = _in_order_of_content(dense_block(background))
        self.background = np.ascontiguousarray(rows.T)
        scores = np.zeros(len(rows))
        add_scores(self.trees, rows, scores, 0, self.trees.n_trees, n_threads=1)
        self.base = math.fsum(scores) / len(scores)
        self.depth, self.max_features = (int(number) for number in longest_paths(self.trees))
        self.weights = _weights_of_counts(self.max_features)

    def values(self, features: Features, n_threads: int | None = None) -> Floats:
        """Return φ of each feature (column) for each row of float32 features."""
        contributions = np.zeros(features.shape)
        n_words = max(1, -(-self.max_features // 64))
        block = max(MIN_BLOCK, min(BLOCK, SCRATCH // ((self.depth + 1) * 8 * (n_words + 2))))

        def work(first: int, last: int) -> None:
            explained = self._scratch(min(block, last - first), n_words)
            others = self._scratch(self.background.shape[1], n_words)
            for start in range(first, last, block):
                rows = slice(start, min(start + block, last))
                columns = np.ascontiguousarray(dense_block(features, rows).T)
                values = np.zeros(columns.shape)
                add_interventional_values(columns, self.background, self.trees, self.weights, explained, others, values)
                contributions[rows] = values.T

        for_ranges(features.shape[0], work, n_threads, smallest=MIN_BLOCK)
        return contributions

    def _scratch(self, n_rows: int, n_words: int) -> Classes:
        levels = self.depth + 1
        return Classes(
            np.zeros((levels, n_rows), np.int32), np.zeros((levels, n_rows, n_words), np.uint64),
            np.zeros((levels, n_rows), np.int64), np.zeros(levels, np.int64), np.zeros(n_rows, np.int64),
            np.zeros(n_rows, np.uint64), np.zeros((n_rows, self.max_features + 1), np.int32),
            np.zeros(n_rows + 1, np.int64), np.zeros(2 * n_rows, np.int32),
        )  # fmt: skip


class Classes(NamedTuple):
    """Classes of documents by the tests that they pass on the path from the root to an edge, for each path length."""

    of_row: Int32s  # the class of each document
    passed: UInt64s  # for each class, a bit for each feature of the path: whether all its tests are passed
    n_passed: Ints  # the number of set bits
    n: Ints  # the number of classes
    size: Ints  # scratch: the number of documents in each class
    failed: UInt64s  # scratch: the inverted first word of `passed` of each class
    failed_slots: Int32s  # scratch: the numbers of the features that fail, for each class
    candidates: Ints  # scratch: the classes of the background to combine with one class
    successor: Int32s  # scratch: the new classes 2c and 2c + 1 of class c if a test is failed and passed


def _in_order_of_content(rows: Float32s) -> Float32s:
    """Return the rows in an order that only depends on their content, so that sums do not depend on row order."""
    rows = np.ascontiguousarray(rows)
    if rows.shape[1] == 0:
        return rows
    return rows[np.argsort(rows.view(f"V{rows.itemsize * rows.shape[1]}").ravel(), kind="stable")]


def _weights_of_counts(max_count: int) -> Floats:
    """Return (a−1)! c! / (a+c)! for a, c = 0 … `max_count`; 0 for a = 0."""
    weights = np.zeros((max_count + 1, max_count + 1))
    for a in range(1, max_count + 1):
        for c in range(max_count + 1):
            weights[a, c] = 1.0 / (a * math.comb(a + c, c))
    return weights


# --- kernels


@kernel
def longest_paths(trees: TreeArrays) -> tuple[Int, Int]:
    """Return the maximum number of edges, and of different features (at least 1), of a path from a root to a leaf."""
    max_depth, max_features = 0, 1
    depth, n_different = np.zeros(len(trees.feature), np.int64), np.zeros(len(trees.feature), np.int64)
    parent = np.full(len(trees.feature), -1, np.int64)
    for tree in range(len(trees.node_offsets) - 1):
        root = trees.node_offsets[tree]
        for k in range(root, trees.node_offsets[tree + 1]):
            upper = parent[k]
            while upper >= 0 and trees.feature[upper] != trees.feature[k]:
                upper = parent[upper]
            n_different[k] += 1 if upper < 0 else 0
            depth[k] += 1
            max_depth, max_features = max(max_depth, depth[k]), max(max_features, n_different[k])
            for child in (np.int64(trees.left[k]), np.int64(trees.right[k])):
                if child >= 0:
                    parent[root + child], depth[root + child], n_different[root + child] = k, depth[k], n_different[k]
    return max_depth, max_features


@kernel
def add_interventional_values(
    columns: Float32s, background: Float32s, trees: TreeArrays, weights: Floats, explained: Classes,
    others: Classes, values: Floats,
) -> None:  # fmt: skip
    """Add φ of all trees to the values of all documents, which are columns."""
    n_levels = explained.of_row.shape[0]
    edges, levels = np.empty(2 * n_levels + 2, np.int64), np.empty(2 * n_levels + 2, np.int64)
    path_features, n_path_features = np.empty(len(weights), np.int64), np.zeros(n_levels, np.int64)
    gains, sums = np.empty((len(weights), explained.of_row.shape[1])), np.empty(len(weights))
    for tree in range(len(trees.node_offsets) - 1):
        root, first_leaf = trees.node_offsets[tree], trees.leaf_offsets[tree]
        if trees.node_offsets[tree + 1] == root:
            continue
        start_classes(borrowed(explained.of_row), explained, columns.shape[1])
        start_classes(borrowed(others.of_row), others, background.shape[1])
        edges[0], levels[0], edges[1], levels[1] = 2 * root + 1, 1, 2 * root, 1
        n_open = 2
        while n_open > 0:  # depth first over the edges
            n_open -= 1
            edge, level = edges[n_open], levels[n_open]
            k, side = edge // 2, edge % 2
            slot = np.int64(0)
            while slot < n_path_features[level - 1] and path_features[slot] != trees.feature[k]:
                slot += 1
            path_features[slot] = trees.feature[k]
            n_path_features[level] = max(n_path_features[level - 1], slot + 1)
            is_new = slot == n_path_features[level - 1]
            split_classes(columns, k, side, slot, is_new, level, trees, explained)
            split_classes(background, k, side, slot, is_new, level, trees, others)
            child = np.int64(trees.right[k] if side == 1 else trees.left[k])
            if child >= 0:
                edges[n_open], levels[n_open] = 2 * (root + child) + 1, level + 1
                edges[n_open + 1], levels[n_open + 1] = 2 * (root + child), level + 1
                n_open += 2
            else:
                value = trees.leaf_value[first_leaf + ~child] / background.shape[1]
                n_features = n_path_features[level]
                list_failed(level, n_features, others)
                combine_classes(value, level, n_features, explained, others, weights, borrowed(sums), borrowed(gains))
                add_to_documents(
                    level, n_features, path_features, explained, borrowed(gains), borrowed(values), columns.shape[1]
                )


@helper
def start_classes(of_row: Int32s, classes: Classes, n_rows: Int) -> None:
    """Put all documents into one class, before any test."""
    of_row[0, :n_rows] = 0
    classes.n[0], classes.n_passed[0, 0] = 1, 0
    classes.passed[0, 0, :] = np.uint64(0)


@helper
def split_classes(
    columns: Float32s, k: Int, side: Int, slot: Int, is_new: Any, level: Int, trees: TreeArrays,
    classes: Classes,
) -> None:  # fmt: skip
    """Compute the classes after an edge of node k, whose feature has bit `slot`, from those before it."""
    not_inlined()
    column, n_rows = borrowed(columns)[trees.feature[k]], columns.shape[1]
    of_row, successor = borrowed(classes.of_row), borrowed(classes.successor)
    before, after = of_row[level - 1], of_row[level]
    passed, n_passed = borrowed(classes.passed), borrowed(classes.n_passed)
    successor[: 2 * classes.n[level - 1]] = -1
    n = np.int64(0)
    is_plain, threshold, missing_left = trees.category[k] < 0, trees.threshold[k], trees.missing_left[k]
    for row in range(n_rows):
        if is_plain:  # all comparisons with a missing value are false
            is_left = not (column[row] > threshold) if missing_left else column[row] <= threshold
        else:
            is_left = goes_left(column[row], k, trees)
        key = 2 * np.int64(before[row]) + (1 if is_left == (side == 0) else 0)
        if successor[key] < 0:
            add_class(key, slot, is_new, n, passed[level - 1], passed[level], n_passed[level - 1], n_passed[level],
                      successor)  # fmt: skip
            n += 1
        after[row] = successor[key]
    classes.n[level] = n


@helper
def add_class(
    key: Int, slot: Int, is_new: Any, new: Int, passed_before: Any, passed: Any, n_before: Any, n_passed: Any,
    successor: Any,
) -> None:  # fmt: skip
    """Add the new class of the documents of class key // 2 that fail (key even) or pass a test."""
    origin, word, bit = key // 2, slot // 64, np.uint64(1) << np.uint64(slot % 64)
    for k in range(passed.shape[1]):
        passed[new, k] = passed_before[origin, k]
    n_passed[new] = n_before[origin]
    successor[key] = new
    had_passed = (passed[new, word] & bit) != np.uint64(0)
    if is_new and key % 2 == 1:
        passed[new, word] |= bit
        n_passed[new] += 1
    elif had_passed and key % 2 == 0:
        passed[new, word] ^= bit
        n_passed[new] -= 1
    elif not is_new and not had_passed:  # the feature has already failed, so further tests change nothing
        successor[2 * origin] = new
        successor[2 * origin + 1] = new


@helper
def list_failed(level: Int, n_features: Int, classes: Classes) -> None:
    """List the sizes of the background's classes at a leaf, and the features of the leaf that fail in each."""
    not_inlined()
    classes.size[: classes.n[level]] = 0
    for row in range(classes.of_row.shape[1]):
        classes.size[classes.of_row[level, row]] += 1
    for k in range(classes.n[level]):
        classes.failed[k] = ~classes.passed[level, k, 0] & mask_of_word(0, n_features)
        n = np.int64(0)
        for slot in range(n_features):
            bit = classes.passed[level, k, slot // 64] >> np.uint64(slot % 64)
            classes.failed_slots[k, n] = slot
            n += 1 if bit & np.uint64(1) == np.uint64(0) else 0


@helper
def combine_classes(
    value: Any, level: Int, n_features: Int, explained: Classes, others: Classes, weights: Floats, sums: Floats,
    gains: Floats,
) -> None:  # fmt: skip
    """Compute the values of a leaf's features (rows) for each class of documents (columns)."""
    not_inlined()
    failed, slots, size = borrowed(others.failed), borrowed(others.failed_slots), borrowed(others.size)
    candidates = borrowed(others.candidates)
    n_others, n_passed_of_other = others.n[level], borrowed(others.n_passed)[level]
    passed, n_passed = borrowed(explained.passed)[level], borrowed(explained.n_passed)[level]
    for this in range(explained.n[level]):
        n_failed, lost = n_features - n_passed[this], 0.0
        for slot in range(n_features):
            sums[slot] = 0.0
        failed_here = ~passed[this, 0] & mask_of_word(0, n_features)
        n_candidates = np.int64(0)  # classes that share no failed feature with this one, listed without a branch
        for other in range(n_others):
            candidates[n_candidates] = other
            n_candidates += 1 if failed_here & failed[other] == np.uint64(0) else 0
        for place in range(n_candidates):
            other = candidates[place]
            if n_features > 64 and fail_together(level, this, other, n_features, explained, others):
                continue
            n_alone = n_features - n_passed_of_other[other]
            lost += weights[n_failed, n_alone] * size[other]
            gain = weights[n_alone, n_failed] * size[other]
            for k in range(n_alone):
                sums[slots[other, k]] += gain
        for slot in range(n_features):
            bit = passed[this, slot // 64] >> np.uint64(slot % 64)
            gains[slot, this] = (sums[slot] if bit & np.uint64(1) == np.uint64(1) else -lost) * value


@helper
def fail_together(level: Int, this: Int, other: Int, n_features: Int, explained: Classes, others: Classes) -> Any:
    """Return whether a feature beyond the first word fails in both classes."""
    for word in range(1, 1 + (n_features - 1) // 64):
        passed = explained.passed[level, this, word] | others.passed[level, other, word]
        if ~passed & mask_of_word(word, n_features) != np.uint64(0):
            return True
    return False


@helper
def mask_of_word(word: Int, n_features: Int) -> Any:
    """Return the bits of the features in a word of 64."""
    n = n_features - 64 * word
    return ~np.uint64(0) if n >= 64 else (np.uint64(1) << np.uint64(n)) - np.uint64(1)


@helper
def add_to_documents(
    level: Int, n_features: Int, path_features: Ints, explained: Classes, gains: Floats, values: Floats, n_rows: Int
) -> None:
    """Add the values of each class to its documents."""
    not_inlined()
    of_row = borrowed(explained.of_row)[level]
    for slot in range(n_features):
        gain, value = gains[slot], values[path_features[slot]]
        for row in range(n_rows):
            value[row] += gain[of_row[row]]
