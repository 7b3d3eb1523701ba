"""Trees in the form that SHAP's `TreeExplainer` takes."""

from __future__ import annotations

from typing import Any

import numpy as np

from podium.errors import DataError
from podium.formats.trees import as_ensemble
from podium.models.base import model_of
from podium.trees import Tree


def shap_trees(model: Any) -> dict[str, Any]:
    """Return the trees of a model as the dictionary of arrays that `shap.TreeExplainer` accepts as a model.

    SHAP's values are those of `model.explain`, which is faster and also supports categories, sparse data and linear
    models. Pass float32 features to SHAP, in the order of the model.

    Args:
        model: an ensemble of trees, a combination of ensembles, or an estimator with such a model.

    Example:
        >>> import podium
        >>> from podium.integrations import shap_trees
        >>> model = podium.LambdaMART(n_trees=2, n_leaves=3).fit(podium.artificial(20, features=4))
        >>> trees = shap_trees(model)["trees"]
        >>> len(trees), trees[0]["children_left"].tolist()
        (2, [2, 3, -1, -1, -1])

    """
    ensemble = as_ensemble(model_of(model), "SHAP")
    if (ensemble.arrays["category"] >= 0).any():
        raise DataError(
            "SHAP's trees split at thresholds, but this model splits at categories: use model.explain(data)"
        )
    if ensemble.encoding.shifts:
        raise DataError("SHAP does not support shifted features: use model.explain(data)")
    return {
        "internal_dtype": np.float64, "input_dtype": np.float32, "tree_output": "raw_value",
        "trees": [_arrays(ensemble.tree(k)) for k in range(ensemble.n_trees)],
    }  # fmt: skip


def _arrays(tree: Tree) -> dict[str, Any]:
    """Return a tree whose leaves are numbered after its splits, as SHAP requires."""
    n_splits, none = len(tree.feature), np.full(tree.n_leaves, -1)
    left, right = (np.where(side < 0, n_splits + ~side, side) for side in (tree.left, tree.right))
    return {
        "children_left": np.append(left, none), "children_right": np.append(right, none),
        "children_default": np.append(np.where(tree.missing_left, left, right), none),
        "features": np.append(tree.feature, none), "thresholds": np.append(tree.threshold.astype(np.float64), none),
        # SHAP ignores the values of splits, and expects a column for each output.
        "values": np.append(np.zeros(n_splits), tree.leaf_value)[:, None],
        "node_sample_weight": np.append(tree.count, tree.leaf_count).astype(np.float64),
    }  # fmt: skip
