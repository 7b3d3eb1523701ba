"""scikit-learn's gradient boosting, forests, single trees and linear models, from estimators in memory.

Sources: scikit-learn, sklearn/tree/_tree.pyx, sklearn/ensemble/_hist_gradient_boosting. A node sends `x <= threshold`
left, with x as float32 (as double in histogram-based boosting). Pickles run code, so Podium does not read them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from podium.errors import DataError
from podium.formats.base import Format, require_one_output
from podium.formats.trees import Leaf, SplitNode, averaged, floor32, make_tree, scaled, with_constant
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
        feature_names = None if names is None else tuple(map(str, names))
        if not of_trees:
            return _linear(value, feature_names)
        trees = _histogram_trees(value) if kind in HISTOGRAMS else _trees(value, kind)
        info = {"imported": "sklearn"}
        return Ensemble.of_trees(trees, int(value.n_features_in_), feature_names=feature_names, info=info)


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
    """Return trees whose sum is the prediction of boosting, a forest or a single tree."""
    estimators = [value] if kind in SINGLE else [tree for row in value.estimators_ for tree in np.atleast_1d(row)]
    if kind in (*FORESTS, *SINGLE):
        require_one_output(value.n_outputs_)
        return averaged([_tree(estimator.tree_, k) for k, estimator in enumerate(estimators)])
    if value.init_ == "zero":
        initial = 0.0
    elif hasattr(value.init_, "constant_"):
        initial = float(np.ravel(value.init_.constant_)[0])
    else:
        raise DataError(f"boosting starts from {value.init_!r}, whose predictions are not constant")
    trees = [scaled(_tree(estimator.tree_, k), value.learning_rate) for k, estimator in enumerate(estimators)]
    return with_constant(trees, initial)


def _tree(tree: Any, number: int) -> Tree:
    missing_left = getattr(tree, "missing_go_to_left", np.zeros(tree.node_count, np.uint8))

    def node(key: int) -> SplitNode | Leaf:
        if tree.children_left[key] == -1:
            return Leaf(float(tree.value[key].ravel()[0]), int(tree.n_node_samples[key]))
        return SplitNode(
            int(tree.feature[key]), float(floor32(float(tree.threshold[key]))), bool(missing_left[key]),
            int(tree.children_left[key]), int(tree.children_right[key]), None, 0.0, int(tree.n_node_samples[key]),
        )  # fmt: skip

    return make_tree(0, node, f"tree {number}")


def _histogram_trees(value: Any) -> list[Tree]:
    """Return the trees of histogram-based boosting; their sum includes its baseline."""
    if getattr(value, "is_categorical_", None) is not None:
        raise DataError("histogram-based boosting renumbers categories, so its trees do not show the original ones")
    trees = []
    all_nodes, baseline = _histogram_parts(value)
    for k, nodes in enumerate(all_nodes):

        def node(key: int, nodes: Any = nodes) -> SplitNode | Leaf:
            entry = nodes[key]
            if entry["is_leaf"]:
                return Leaf(float(entry["value"]), int(entry["count"]))
            return SplitNode(
                int(entry["feature_idx"]), float(floor32(float(entry["num_threshold"]))),
                bool(entry["missing_go_to_left"]), int(entry["left"]), int(entry["right"]), None, float(entry["gain"]),
                int(entry["count"]),
            )  # fmt: skip

        trees.append(make_tree(0, node, f"tree {k}"))
    return with_constant(trees, baseline)


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
