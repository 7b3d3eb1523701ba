"""scikit-learn's gradient boosting, forests, single trees and linear models, from estimators in memory.

Sources: scikit-learn, sklearn/tree/_tree.pyx, sklearn/ensemble/_hist_gradient_boosting. A node sends `x <= threshold`
left, with x as float32 (as double in histogram-based boosting). Pickles run code, so Podium does not read them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from podium.errors import DataError
from podium.formats.base import Format, require_one_output
from podium.formats.trees import Leaf, SplitNode, averaged, floor32, make_tree, scaled, shifted
from podium.models import Ensemble, LinearModel, Model
from podium.trees import Tree

BOOSTED = ("GradientBoostingRegressor",)
HISTOGRAMS = ("HistGradientBoostingRegressor",)
FORESTS = ("RandomForestRegressor", "ExtraTreesRegressor")
SINGLE = ("DecisionTreeRegressor", "ExtraTreeRegressor")
LINEAR = ("sklearn.linear_model", "sklearn.svm")  # modules whose estimators with weights are linear


class Sklearn(Format):
    """Regressors of `sklearn.ensemble` and `sklearn.tree`, and linear models.

    Classifiers of trees are not supported, because their outputs are not one score. Linear classifiers of two classes
    are.
    """

    name = "sklearn"
    title = "scikit-learn's trees and linear models, in memory"
    carries = {}  # noqa: RUF012

    def read_object(self, value: Any) -> Model | None:
        kind, module = type(value).__name__, type(value).__module__
        of_trees = module.startswith("sklearn.") and kind in (*BOOSTED, *HISTOGRAMS, *FORESTS, *SINGLE)
        if not of_trees and not module.startswith(LINEAR):
            return None
        if not hasattr(value, "n_features_in_"):
            raise DataError(f"{kind} is not fitted")
        names = getattr(value, "feature_names_in_", None)
        known = None if names is None else tuple(map(str, names))
        if not of_trees:
            return _linear(value, known)
        trees = _histogram_trees(value) if kind in HISTOGRAMS else _trees(value, kind)
        return Ensemble.of_trees(trees, int(value.n_features_in_), feature_names=known, info={"imported": "sklearn"})


def _linear(value: Any, names: tuple[str, ...] | None) -> LinearModel:
    """Return the weights (`coef_`) and constant (`intercept_`) of the score before any link function."""
    if not hasattr(value, "coef_") or not hasattr(value, "intercept_"):
        raise DataError(f"{type(value).__name__} has no feature weights (coef_ and intercept_)")
    weights = value.coef_.toarray() if hasattr(value.coef_, "toarray") else np.asarray(value.coef_, np.float64)
    if weights.size != value.n_features_in_ or np.size(value.intercept_) != 1:
        raise DataError(f"{type(value).__name__} has several outputs for each document, but a ranker has one")
    weights, intercept = weights.astype(np.float64).ravel(), float(np.ravel(value.intercept_)[0])
    return LinearModel(weights, np.zeros(len(weights)), intercept, names, {"imported": "sklearn"})


def _trees(value: Any, kind: str) -> list[Tree]:
    """Return the trees of boosting with learning rate and initial prediction, or those of a forest for its mean."""
    estimators = [value] if kind in SINGLE else [tree for row in value.estimators_ for tree in np.atleast_1d(row)]
    if kind in (*FORESTS, *SINGLE):
        require_one_output(value.n_outputs_)
        return averaged([_tree(one.tree_, k) for k, one in enumerate(estimators)])
    initial = 0.0
    if value.init_ == "zero":
        pass
    elif hasattr(value.init_, "constant_"):
        initial = float(np.ravel(value.init_.constant_)[0])
    else:
        raise DataError(f"boosting starts from {value.init_!r}, whose predictions are not constant")
    return shifted([scaled(_tree(one.tree_, k), value.learning_rate) for k, one in enumerate(estimators)], initial)


def _tree(tree: Any, number: int) -> Tree:
    """Return a tree; missing values go where training sent them."""
    missing = getattr(tree, "missing_go_to_left", np.zeros(tree.node_count, np.uint8))

    def node(key: int) -> SplitNode | Leaf:
        if tree.children_left[key] == -1:
            return Leaf(float(tree.value[key].ravel()[0]), int(tree.n_node_samples[key]))
        return SplitNode(
            int(tree.feature[key]), float(floor32(float(tree.threshold[key]))), bool(missing[key]),
            int(tree.children_left[key]), int(tree.children_right[key]), None, 0.0, int(tree.n_node_samples[key]),
        )  # fmt: skip

    return make_tree(0, node, f"tree {number}")


def _histogram_trees(value: Any) -> list[Tree]:
    """Return the trees of histogram-based boosting, with its baseline."""
    if getattr(value, "is_categorical_", None) is not None:
        raise DataError("histogram-based boosting renumbers categories, so its trees do not show the original ones")
    trees = []
    all_nodes, baseline = _histogram_parts(value)
    for k, nodes in enumerate(all_nodes):

        def node(key: int, nodes: Any = nodes) -> SplitNode | Leaf:
            one = nodes[key]
            if one["is_leaf"]:
                return Leaf(float(one["value"]), int(one["count"]))
            return SplitNode(
                int(one["feature_idx"]), float(floor32(float(one["num_threshold"]))), bool(one["missing_go_to_left"]),
                int(one["left"]), int(one["right"]), None, float(one["gain"]), int(one["count"]),
            )  # fmt: skip

        trees.append(make_tree(0, node, f"tree {k}"))
    return shifted(trees, baseline)


def _histogram_parts(value: Any) -> tuple[list[Any], float]:
    """Return the nodes of each tree, and the baseline.

    scikit-learn has no public access to the trees of histogram-based boosting. Only this function reads private
    attributes.
    """
    try:
        return [row[0].nodes for row in value._predictors], float(np.ravel(value._baseline_prediction)[0])
    except AttributeError as error:
        raise DataError(
            f"this version of scikit-learn stores its trees differently ({error}): train with LightGBM or XGBoost, or "
            "pass the model's scores"
        ) from None
