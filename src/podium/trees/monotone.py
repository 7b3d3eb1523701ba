"""Bounds of leaf values that monotone constraints set."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from podium.core.array_types import Floats, Ints
from podium.core.team import Team
from podium.trees.leaves import GrownTree
from podium.trees.quantization import BoundedGradients

Bounds = tuple[float, float]


def newton_bounds(grown: GrownTree, gradients: BoundedGradients, monotone: Ints, l2: float, team: Team) -> GrownTree:
    """The tree with bounds from the Newton values of its nodes, where splits were found by least squares.

    Below a split on a monotone feature the values of one side stay below the middle of the two sides' Newton values,
    those of the other side above it.
    """
    tree, n_nodes = grown.tree, len(grown.tree.feature)
    leaf_sums = np.column_stack(grown.sums(gradients, team))
    node_sums = np.zeros((n_nodes, 2))
    for node in range(n_nodes - 1, -1, -1):  # children come after their parents
        for child in (tree.left[node], tree.right[node]):
            node_sums[node] += node_sums[child] if child >= 0 else leaf_sums[~child]
    bounds: dict[int, Bounds] = {0: (-math.inf, math.inf)}
    for node in range(n_nodes):
        children = [int(tree.left[node]), int(tree.right[node])]
        sums = [node_sums[child] if child >= 0 else leaf_sums[~child] for child in children]
        sides = _bounds_of_children(bounds[node], int(monotone[tree.feature[node]]), sums, l2)
        bounds |= dict(zip(children, sides, strict=True))
    of_leaves = [bounds.get(~leaf, (-math.inf, math.inf)) for leaf in range(len(grown.starts))]
    lowest, highest = (np.array(values) for values in zip(*of_leaves, strict=True))
    return replace(grown, bounds=(lowest, highest))


def _bounds_of_children(bounds: Bounds, direction: int, sums: list[Floats], l2: float) -> list[Bounds]:
    """The bounds of the left and the right child."""
    low, high = bounds
    sides = [bounds, bounds]
    if direction:
        values = [min(max(g / (h + l2) if h + l2 > 0 else 0.0, low), high) for g, h in sums]
        middle = (values[0] + values[1]) / 2
        lower, upper = (0, 1) if direction > 0 else (1, 0)
        sides[lower], sides[upper] = (low, min(high, middle)), (max(low, middle), high)
    return sides
