"""A slow, obvious reference for scores, which walks each tree from its root in Python."""

from __future__ import annotations

from typing import Any

import numpy as np

from podium.core.array_types import Float32s, Floats
from podium.trees import Tree


def score_slowly(model: Any, features: Float32s) -> Floats:
    """Return the score of each row: the sum of the values of its leaves, in the order of the trees.

    Args:
        model: a `podium.models.Ensemble`.
        features: float32 rows.

    Example:
        >>> import podium
        >>> data = podium.artificial(10, features=4)
        >>> model = podium.LambdaMART(n_trees=3, n_leaves=4).fit(data).model_
        >>> bool((score_slowly(model, data.features) == model.predict(data)).all())
        True

    """
    scores = np.zeros(len(features))
    for number in range(model.n_trees):
        tree = model.tree(number)
        for row, x in enumerate(features):
            scores[row] += tree.leaf_value[find_leaf_slowly(tree, x)]
    return scores


def find_leaf_slowly(tree: Tree, x: Float32s) -> int:
    """Return the leaf of a row, which goes left if its value is at most the threshold, or among the categories.

    Example:
        >>> import numpy as np, podium
        >>> data = podium.artificial(10, features=4)
        >>> model = podium.LambdaMART(n_trees=1, n_leaves=4).fit(data).model_
        >>> find_leaf_slowly(model.tree(0), data.features[0]) == model.leaves(data)[0, 0]
        np.True_

    """
    node = 0 if len(tree.feature) else -1
    while node >= 0:
        value = x[tree.feature[node]]
        if tree.category[node] >= 0:
            goes_left = bool((tree.categories[tree.category[node]] == value).any())
        elif np.isnan(value):
            goes_left = bool(tree.missing_left[node])
        else:
            goes_left = bool(value <= tree.threshold[node])
        node = int(tree.left[node] if goes_left else tree.right[node])
    return ~node
