"""Shapley values by definition: a sum over all sets of features."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np

from podium.core.array_types import Float32s, Floats
from podium.testing import score_slowly
from podium.trees import Tree

Known = frozenset[int]


def shapley_slowly(worth: Callable[[Known], float], n: int) -> Floats:
    """Σ over all sets S without feature k of |S|! (n − |S| − 1)! / n! × (worth of S with k − worth of S).

    Example:
        >>> shapley_slowly(lambda known: float(len(known) == 2), 2).tolist()
        [0.5, 0.5]

    """
    values = np.zeros(n)
    for k in range(n):
        others = [j for j in range(n) if j != k]
        for size in range(n):
            weight = math.factorial(size) * math.factorial(n - size - 1) / math.factorial(n)
            for chosen in combinations(others, size):
                known = frozenset(chosen)
                values[k] += weight * (worth(known | {k}) - worth(known))
    return values


def path_dependent_slowly(model: Any, x: Float32s) -> Floats:
    """Shapley values where a split of a feature that is not known goes both ways, by counts of training documents."""
    trees = [model.tree(number) for number in range(model.n_trees)]
    return shapley_slowly(lambda known: sum(_mean(tree, 0, x, known) for tree in trees), model.n_features)


def interventional_slowly(model: Any, x: Float32s, background: Float32s) -> Floats:
    """Shapley values where features that are not known are those of a background document; the mean over these."""

    def worth(known: Known) -> float:
        is_known = np.isin(np.arange(model.n_features), list(known))
        return float(score_slowly(model, np.where(is_known, x, background)).mean())

    return shapley_slowly(worth, model.n_features)


def _mean(tree: Tree, node: int, x: Float32s, known: Known) -> float:
    if not len(tree.feature):
        return float(tree.leaf_value[0])
    if node < 0:
        return float(tree.leaf_value[~node])
    left, right, feature = int(tree.left[node]), int(tree.right[node]), int(tree.feature[node])
    if feature in known:
        value = x[feature]
        if tree.category[node] >= 0:
            goes_left = bool((tree.categories[tree.category[node]] == value).any())
        else:
            goes_left = bool(tree.missing_left[node]) if np.isnan(value) else bool(value <= tree.threshold[node])
        return _mean(tree, left if goes_left else right, x, known)
    sizes = [int(tree.count[child] if child >= 0 else tree.leaf_count[~child]) for child in (left, right)]
    means = [_mean(tree, child, x, known) for child in (left, right)]
    return (sizes[0] * means[0] + sizes[1] * means[1]) / sum(sizes)
