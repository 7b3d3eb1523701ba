"""Cuts and a tree grower that one can check by reading them: every split of every leaf, by definition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.core.array_types import Bools, Float32s, Ints
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


@dataclass
class SlowNode:
    """A node, or a leaf where `feature` is −1."""

    rows: Ints
    depth: int
    feature: int = -1
    goes_left: Bools | None = None
    left: SlowNode | None = None
    right: SlowNode | None = None


def grow_slowly(
    features: Float32s,
    gradients: Ints,
    hessians: Ints,
    parameters: GrowthParameters,
    categorical: tuple[int, ...] = (),
    units: tuple[float, float] = (1.0, 1.0),
    sampled: Bools | None = None,
) -> SlowNode:
    """Grow a tree best first, from integer gradients and weights, those of least squares 1, worth `units` each.

    Of equal gains the leaf made first wins, then the lower feature, the lower threshold, and missing values on the
    right before the left. Where only some rows are `sampled`, they decide; all count as documents. (Then no
    value may be missing.)
    """
    if sampled is not None:
        gradients, hessians = np.where(sampled, gradients, 0), np.where(sampled, hessians, 0)
    root = SlowNode(np.arange(len(features)), 0)
    leaves = [root]
    context = (features, gradients, hessians, parameters, categorical, units)
    while len(leaves) < parameters.n_leaves:
        splits = [_best(leaf, *context) for leaf in leaves]
        k = max(range(len(leaves)), key=lambda i: (splits[i][0], -i))
        gain, feature, goes_left = splits[k]
        if gain <= 0 or goes_left is None:
            break
        leaf = leaves[k]
        leaf.feature, leaf.goes_left = feature, goes_left
        leaf.left = SlowNode(leaf.rows[goes_left], leaf.depth + 1)
        leaf.right = SlowNode(leaf.rows[~goes_left], leaf.depth + 1)
        leaves[k] = leaf.left
        leaves.append(leaf.right)
    return root


def _parts(rows: Ints, g: Ints, h: Ints, p: GrowthParameters, units: tuple[float, float]) -> tuple[float, float]:
    """The gradient of a set of rows, and what its square is divided by; both in integer units."""
    weight = int(h[rows].sum()) + (p.l2 / units[1] if p.split == "newton" else 0.0)
    return float(int(g[rows].sum())), weight


def _best(
    leaf: SlowNode,
    features: Float32s,
    g: Ints,
    h: Ints,
    p: GrowthParameters,
    categorical: tuple[int, ...],
    units: tuple[float, float],
) -> tuple[float, int, Any]:
    """The gain, the feature and the side of each row of the leaf's best split."""
    total, weight = _parts(leaf.rows, g, h, p, units)
    if weight == 0:
        return 0.0, -1, None
    parent = total * total / weight
    best: tuple[float, int, Any] = (parent * (1 + 1e-12), -1, None)
    if leaf.depth == p.max_depth or len(leaf.rows) < p.min_documents_to_split:
        return 0.0, -1, None
    for feature in range(features.shape[1]):
        x = features[leaf.rows, feature]
        candidates = _subsets(x, leaf.rows, g, h, p, units) if feature in categorical else _thresholds(x)
        for goes_left in candidates:
            left, right = leaf.rows[goes_left], leaf.rows[~goes_left]
            if min(len(left), len(right)) < p.min_documents_in_leaf:
                continue
            if not (h[left].any() and h[right].any()):
                continue
            (gl, hl), (gr, hr) = (_parts(side, g, h, p, units) for side in (left, right))
            score = (gl * gl * hr + gr * gr * hl) / (hl * hr)  # G_l²/H_l + G_r²/H_r
            if score > best[0]:
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
        gradient, weight = _parts(rows[x == value], g, h, p, units)
        return gradient / weight

    ordered = sorted(values, key=lambda value: -mean(value))
    for k in range(1, len(ordered) + 1):
        yield np.isin(x, ordered[:k])
