"""Cuts and a tree grower that one can check by reading them: every split of every leaf, by definition."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.core.array_types import Bools, Float32s, Ints
from podium.core.random import keyed_bits, random_bits, to_unit
from podium.trees import GrowthParameters


def cut_slowly(column: Float32s, max_bins: int) -> Float32s:
    """The cuts of a feature: each bin takes values from below until it has an equal share of what is left."""
    values, counts = np.unique(column[~np.isnan(column)] + np.float32(0.0), return_counts=True)
    cuts, rest, count, n_bins = [], int(counts.sum()), 0, 1
    for below, above, n in zip(values, values[1:], counts.tolist(), strict=False):
        count += n
        if n_bins < max_bins and (len(values) <= max_bins or count >= max(1, rest // (max_bins - n_bins + 1))):
            with np.errstate(over="ignore", invalid="ignore"):
                middle = np.float32((np.float64(below) + np.float64(above)) / 2)
            cuts.append(middle if below <= middle < above else below)
            n_bins, rest, count = n_bins + 1, rest - count, 0
    return np.array(cuts, np.float32)


@dataclass(eq=False)
class SlowNode:
    """A node, or a leaf where `feature` is −1."""

    rows: Ints
    depth: int
    feature: int = -1
    goes_left: Bools | None = None
    left: SlowNode | None = None
    right: SlowNode | None = None
    path: tuple[tuple[int, bool], ...] = ()  # feature and side (left?) of the nodes above, the root first

    def split(self, feature: int, goes_left: Bools) -> tuple[SlowNode, SlowNode]:
        """Make it a node, and return its children."""
        self.feature, self.goes_left = feature, goes_left
        sides = (True, self.rows[goes_left]), (False, self.rows[~goes_left])
        self.left, self.right = (
            SlowNode(rows, self.depth + 1, path=(*self.path, (feature, is_left))) for is_left, rows in sides
        )
        return self.left, self.right


def features_of_node(features: Float32s, p: GrowthParameters, path: list[int], key: np.uint64) -> list[int]:
    """The features that may be split on below these: in a group with all of them, and drawn."""
    varies = [f for f, x in enumerate(features.T) if len(np.unique(x)) > 1]  # NaN is a value here
    groups = [set(varies)] if p.interaction_constraints is None else [set(g) for g in p.interaction_constraints]
    allowed = [f for f in varies if any({f, *path} <= group for group in groups)]
    n_wanted, drawn = math.ceil(p.feature_fraction_per_node * len(allowed)), list[int]()
    for k, f in enumerate(allowed):
        number = to_unit(keyed_bits(np.uint64(f), key))
        if number * (len(allowed) - k) < n_wanted - len(drawn):
            drawn.append(f)
    return drawn


def grow_slowly(
    features: Float32s,
    gradients: Ints,
    hessians: Ints,
    parameters: GrowthParameters,
    categorical: tuple[int, ...] = (),
    units: tuple[float, float] = (1.0, 1.0),
    sampled: Bools | None = None,
    seed: int = 0,
) -> SlowNode:
    """Grow a tree best first, or a symmetric one level by level.

    Gradients and weights are integers, worth `units` each; weights of least squares are 1. Of equal gains the leaf made
    first wins, then the lower feature, the lower threshold, and missing values on the right before the left. Where only
    some rows are `sampled`, they decide; all count as documents. (Then no value may be missing.)
    """
    if sampled is not None:
        gradients, hessians = np.where(sampled, gradients, 0), np.where(sampled, hessians, 0)
    root = SlowNode(np.arange(len(features)), 0)
    leaves = [root]
    context = (features, gradients, hessians, parameters, categorical, units, seed)
    if parameters.symmetric:
        _grow_levels(root, *context)
        return root
    while len(leaves) < parameters.n_leaves:
        splits = [_best(leaf, *context) for leaf in leaves]
        k = max(range(len(leaves)), key=lambda i: (splits[i][0], -i))
        gain, feature, goes_left = splits[k]
        if gain <= 0 or goes_left is None:
            break
        leaves[k], right = leaves[k].split(feature, goes_left)
        leaves.append(right)
    return root


def _parts(rows: Ints, g: Ints, h: Ints, p: GrowthParameters, units: tuple[float, float]) -> tuple[float, float]:
    """The gradient of a set of rows, shrunk by l1, and what its square is divided by; both in integer units."""
    l1, l2 = (p.l1 / units[0], p.l2 / units[1]) if p.split == "newton" else (0.0, 0.0)
    gradient = float(int(g[rows].sum()))
    return math.copysign(max(abs(gradient) - l1, 0.0), gradient), int(h[rows].sum()) + l2


def _score(left: Ints, right: Ints, g: Ints, h: Ints, p: GrowthParameters, units: tuple[float, float]) -> float | None:
    """G_l²/H_l + G_r²/H_r, or None if the split is not allowed."""
    if min(len(left), len(right)) < p.min_documents_in_leaf or not (h[left].any() and h[right].any()):
        return None
    if min(h[left].sum(), h[right].sum()) * units[1] < 0.999 * p.min_hessian_in_leaf:
        return None
    (gl, hl), (gr, hr) = (_parts(side, g, h, p, units) for side in (left, right))
    return (gl * gl * hr + gr * gr * hl) / (hl * hr)


def _least_gain(p: GrowthParameters, units: tuple[float, float]) -> float:
    return p.min_gain_to_split / units[0] * units[1] / units[0]


def _may_split(leaf: SlowNode, h: Ints, p: GrowthParameters) -> bool:
    fewest = max(p.min_documents_to_split, 2 * p.min_documents_in_leaf)
    return leaf.depth != p.max_depth and len(leaf.rows) >= fewest and bool(h[leaf.rows].any())


def _grow_levels(
    root: SlowNode, features: Float32s, g: Ints, h: Ints, p: GrowthParameters, categorical: tuple[int, ...],
    units: tuple[float, float], seed: int,
) -> None:  # fmt: skip
    """Split all leaves of a level alike, by the highest sum of gains; a leaf that may not be split so stays whole."""
    leaves, path = [root], list[int]()
    depth = int(math.log2(min(p.n_leaves, max(2, len(features)))))
    for level in range(depth if p.max_depth is None else min(depth, p.max_depth)):
        splitting = [leaf for leaf in leaves if _may_split(leaf, h, p)]
        scores = [total * total / weight for total, weight in (_parts(leaf.rows, g, h, p, units) for leaf in splitting)]
        best: tuple[float, int, Any] = (max(1e-12 * sum(scores), _least_gain(p, units)), -1, None)
        rows = np.concatenate([leaf.rows for leaf in splitting]) if splitting else np.empty(0, int)
        with np.errstate(over="ignore"):
            allowed = features_of_node(features, p, path, random_bits(np.uint64(seed), np.uint64(level)))
        for feature in allowed:
            x = features[:, feature]
            for goes_left in _level_sides(x, rows, feature in categorical, g, h, p, units):
                gain = 0.0
                for leaf, score in zip(splitting, scores, strict=True):
                    side = goes_left[leaf.rows]
                    new = _score(leaf.rows[side], leaf.rows[~side], g, h, p, units)
                    gain += 0.0 if new is None else new - score
                if gain > best[0]:
                    best = (gain, feature, goes_left)
        _, feature, goes_left = best
        if feature < 0:
            return
        path.append(feature)
        for k, leaf in enumerate(leaves.copy()):
            side = goes_left[leaf.rows]
            if leaf in splitting and _score(leaf.rows[side], leaf.rows[~side], g, h, p, units) is not None:
                leaves[k], right = leaf.split(feature, side)
                leaves.append(right)


def _level_sides(
    x: Float32s, rows: Ints, is_category: bool, g: Ints, h: Ints, p: GrowthParameters, units: tuple[float, float]
) -> Any:
    """All splits of a feature, as the side of every row; categories are ranked by the rows of the level."""
    if is_category:
        for goes_left in _subsets(x[rows], rows, g, h, p, units):
            yield np.isin(x, np.unique(x[rows][goes_left]))
        return
    for value in np.unique(x[~np.isnan(x)]):
        yield x <= value
        if np.isnan(x[rows]).any():
            yield (x <= value) | np.isnan(x)


def _best(
    leaf: SlowNode,
    features: Float32s,
    g: Ints,
    h: Ints,
    p: GrowthParameters,
    categorical: tuple[int, ...],
    units: tuple[float, float],
    seed: int,
) -> tuple[float, int, Any]:
    """The gain, the feature and the side of each row of the leaf's best split."""
    total, weight = _parts(leaf.rows, g, h, p, units)
    if weight == 0:
        return 0.0, -1, None
    parent = total * total / weight
    best: tuple[float, int, Any] = (max(parent * (1 + 1e-12), parent + _least_gain(p, units)), -1, None)
    if not _may_split(leaf, h, p):
        return 0.0, -1, None
    key = np.uint64(seed)
    with np.errstate(over="ignore"):
        for _, is_left in reversed(leaf.path):
            key = random_bits(key, np.uint64(is_left))
        allowed = features_of_node(features, p, [feature for feature, _ in leaf.path], key)
    for feature in allowed:
        x = features[leaf.rows, feature]
        candidates = _subsets(x, leaf.rows, g, h, p, units) if feature in categorical else _thresholds(x)
        for goes_left in candidates:
            score = _score(leaf.rows[goes_left], leaf.rows[~goes_left], g, h, p, units)
            if score is not None and score > best[0]:
                best = (score, feature, goes_left)
    return (best[0] - parent if best[1] >= 0 else 0.0), best[1], best[2]


def _thresholds(x: Float32s) -> Any:
    missing = np.isnan(x)
    values = np.unique(x[~missing])
    for k, value in enumerate(values):
        if k < len(values) - 1 or missing.any():
            yield x <= value
        if k < len(values) - 1 and missing.any():
            yield (x <= value) | missing


def _subsets(x: Float32s, rows: Ints, g: Ints, h: Ints, p: GrowthParameters, units: tuple[float, float]) -> Any:
    """Categories by descending mean, taken into the left side one by one."""
    values = np.unique(x[~np.isnan(x) & (h[rows] > 0)])

    def mean(value: np.float32) -> float:
        l2 = p.l2 / units[1] if p.split == "newton" else 0.0
        return int(g[rows[x == value]].sum()) / (int(h[rows[x == value]].sum()) + l2)

    ordered = sorted(values, key=lambda value: -mean(value))
    for k in range(1, len(ordered) + 1):
        yield np.isin(x, ordered[:k])
