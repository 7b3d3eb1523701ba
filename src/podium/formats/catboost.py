"""CatBoost's JSON model, with symmetric trees or not, and its binary model, which CatBoost converts to JSON and back.

Source: catboost/catboost, catboost/libs/model/model_export/json_model_helpers.cpp. A split is true, and goes right,
where `float32(x) > border`. Only `split_index` counts: it numbers the borders of all features, in order.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from podium.data.encoding import listed
from podium.errors import DataError, MissingExtraError
from podium.formats.base import CARRIES, Format, Written, distinct_names, json_content, require_one_output, whole_number
from podium.formats.trees import (
    JSON_INFINITY,
    MAX_NODES,
    Leaf,
    SplitNode,
    as_float32_ensemble,
    categories_text,
    document_of_tree,
    feature_labels,
    make_tree,
    node_of,
    numeric_trees,
    require_index,
    root_of,
    scaled,
    tree_of_document,
    with_constant,
)
from podium.models import Ensemble, Model
from podium.trees import Tree

BINARY = b"CBM1"  # the first bytes of a binary model
MAX_DEPTH = 16  # of a symmetric tree: CatBoost's own limit
LARGEST = float(np.finfo(np.float32).max)
NAN_LEFT = {"AsFalse": True, "AsIs": True, "AsTrue": False}  # where NaN goes, by how a feature treats it


class CatBoost(Format):
    """The files that `save_model` writes in the format "json" or "cbm"."""

    name = "catboost"
    title = "CatBoost's model, JSON or binary by suffix"
    suffixes = (".cbm",)
    carries = CARRIES | {"missing directions": "by other means"}

    def recognizes(self, content: bytes, suffix: str) -> bool:
        is_json = content.lstrip()[:1] == b"{" and b'"features_info"' in content
        return is_json or content.startswith(BINARY)

    def read(self, content: bytes) -> Model:
        """Read JSON, or a binary model, which CatBoost converts."""
        if content.startswith(BINARY):
            return _from_document(json.loads(_converted(content, "cbm", "json")))
        return _from_document(json.loads(content))

    def read_object(self, value: Any) -> Model | None:
        if type(value).__module__.split(".")[0] != "catboost" or not hasattr(value, "save_model"):
            return None
        return _from_document(json.loads(_saved(value, "json")))

    def write(self, model: Model, suffix: str = "") -> Written:
        """Write the trees as non-symmetric trees with one side for NaN for each feature; see `_with_one_side`."""
        ensemble = as_float32_ensemble(model, self.name)
        trees = numeric_trees(ensemble)
        is_left = _sides_of_missing(trees, ensemble)
        document = _document(
            [_with_one_side(tree, is_left, f"tree {k}") for k, tree in enumerate(trees)], ensemble, is_left
        )
        content = json_content(document)
        return Written(
            _converted(content, "json", "cbm") if suffix == ".cbm" else content,
            "NaN goes to the side that was learnt for it: below or above all borders, by feature",
            differences=_differences(ensemble, is_left),
        )


# --- CatBoost's own reader and writer


def _saved(model: Any, kind: str) -> bytes:
    """Return a CatBoost model as the content of a file; CatBoost only writes to paths."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model.save_model(str(path), format=kind)
        return path.read_bytes()


def _converted(content: bytes, kind: str, target: str) -> bytes:
    """Convert the content of a file to another CatBoost format."""
    try:
        import catboost  # type: ignore[import-untyped]
    except ImportError:
        raise MissingExtraError("catboost", "catboost", "CatBoost's binary format") from None
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        path.write_bytes(content)
        try:
            return _saved(catboost.CatBoost().load_model(str(path), format=kind), target)
        except catboost.CatBoostError as error:
            raise DataError(f"CatBoost cannot convert it to {target.upper()}: {error!s:.200}") from None


# --- reading


def _from_document(document: Mapping[str, Any]) -> Ensemble:
    info = document["features_info"]
    if info.get("categorical_features") or info.get("ctrs") or document.get("ctr_data"):
        raise DataError(
            "the model has categorical features: CatBoost hashes their values, so no split names a category"
        )
    features = info.get("float_features", ())
    borders = [
        (_column(feature), float(border), NAN_LEFT[feature["nan_value_treatment"]])
        for feature in features for border in feature.get("borders") or ()
    ]  # fmt: skip
    n_features = 1 + max(map(_column, features), default=-1)
    scale, bias = document.get("scale_and_bias", (1, [0]))
    biases = bias if isinstance(bias, list) else [bias]
    require_one_output(len(biases))
    if "oblivious_trees" in document:
        trees = [_symmetric(entry, borders, k) for k, entry in enumerate(document["oblivious_trees"])]
    else:
        trees = [_nested(entry, borders, k) for k, entry in enumerate(document.get("trees", ()))]
    trees = [scaled(tree, float(scale)) for tree in trees]
    trees = with_constant(trees, float(biases[0]))
    in_order = sorted(features, key=lambda feature: whole_number(feature["feature_index"], "feature_index"))
    names = [str(feature.get("feature_id", "")) for feature in in_order]
    are_generated = not all(names) or all(name == str(k) for k, name in enumerate(names))
    feature_names = None if are_generated else distinct_names(names, n_features)
    return Ensemble.of_trees(trees, n_features, feature_names=feature_names, info={"imported": "catboost"})


def _column(feature: Mapping[str, Any]) -> int:
    """Return the number of a feature among all columns."""
    return whole_number(feature.get("flat_feature_index", feature["feature_index"]), "flat_feature_index")


Borders = Sequence[tuple[int, float, bool]]


def _split(borders: Borders, entry: Mapping[str, Any], left: Any, right: Any) -> SplitNode:
    """Return the split of an entry, which names its border by number; `x > border` goes right."""
    number = whole_number(entry.get("split_index", 0), "split_index")
    require_index(number, len(borders), "the border of a split")
    feature, border, nan_left = borders[number]
    with np.errstate(over="ignore"):
        return SplitNode(feature, float(np.float32(border)), nan_left, left, right)


def _symmetric(entry: Mapping[str, Any], borders: Borders, number: int) -> Tree:
    """Return a symmetric tree: bit i of a leaf's number, from the lowest, is the answer of split i."""
    splits, values = entry.get("splits") or [], [float(value) for value in entry["leaf_values"]]
    depth = len(splits)
    if depth > MAX_DEPTH or len(values) != 1 << depth:
        raise DataError(f"tree {number} has {depth} splits and {len(values)} leaf values")
    # Weights may be fractional, Podium's counts are whole. No score depends on them.
    counts = [round(weight) for weight in entry.get("leaf_weights") or [0] * len(values)]

    def node(key: tuple[int, int]) -> SplitNode | Leaf:
        level, bits = key
        if level < 0:
            return Leaf(values[bits], counts[bits])
        return _split(borders, splits[level], (level - 1, bits), (level - 1, bits | 1 << level))

    return make_tree((depth - 1, 0), node, f"tree {number}")


def _nested(root: Mapping[str, Any], borders: Borders, number: int) -> Tree:
    def node(entry: Mapping[str, Any]) -> SplitNode | Leaf:
        if "split" not in entry:
            return Leaf(float(entry["value"]), round(entry.get("weight", 0)))
        return _split(borders, entry["split"], entry["left"], entry["right"])

    return tree_of_document(root, node, f"tree {number}")


# --- writing


def _sides_of_missing(trees: Sequence[Tree], ensemble: Ensemble) -> list[bool]:
    """Return for each feature whether most of its splits send a missing value left."""
    votes = np.zeros(ensemble.n_features)
    for tree in trees:
        np.add.at(votes, tree.feature, np.where(tree.missing_left, 1.0, -1.0))
    return [bool(vote >= 0) for vote in votes]


def _with_one_side(tree: Tree, is_left: Sequence[bool], name: str) -> Tree:
    """Return an equal tree in which NaN goes one way for each feature: other nodes first test for an infinity.

    CatBoost treats NaN as −∞ or as +∞, depending on the feature, so the first split sends that infinity along with NaN.
    If NaN is +∞, a split at ∞ becomes one at the largest number, because nothing is above ∞ and NaN would go left.
    """
    node = node_of(tree)

    def expanded(key: int) -> SplitNode | Leaf:
        entry = node(key)
        if isinstance(entry, Leaf):
            return entry
        nan_left = is_left[entry.feature]
        threshold = entry.threshold if nan_left else min(entry.threshold, LARGEST)
        plain = entry._replace(threshold=threshold, missing_left=nan_left)
        if entry.missing_left == nan_left:
            return plain
        if entry.missing_left:
            return plain._replace(threshold=LARGEST, left=plain, right=entry.left)
        return plain._replace(threshold=-math.inf, left=entry.right, right=plain)

    return make_tree(root_of(tree), expanded, name, max_nodes=MAX_NODES)


def _differences(ensemble: Ensemble, is_left: Sequence[bool]) -> tuple[str, ...]:
    """Describe the features in which CatBoost sends an infinite value with the missing ones, unlike Podium."""
    is_number = ensemble.arrays["category"] < 0
    features, thresholds, missing_left = (
        ensemble.arrays[key][is_number] for key in ("feature", "threshold", "missing_left")
    )
    nan_left = np.array(is_left, bool)[features]
    moved = {"−∞": nan_left & ~missing_left, "+∞": ~nan_left & (missing_left != (thresholds == np.inf))}
    labels = feature_labels(ensemble)
    return tuple(
        f"CatBoost treats {infinity} as a missing value in "
        f"{listed('feature', [labels[k] for k in np.unique(features[which])])}, but Podium does not: replace infinite "
        "values before training and scoring"
        for infinity, which in moved.items() if which.any()
    )  # fmt: skip


def _document(trees: Sequence[Tree], ensemble: Ensemble, is_left: Sequence[bool]) -> dict[str, Any]:
    thresholds = [
        np.unique(np.concatenate([np.empty(0, np.float32), *(t.threshold[t.feature == f] for t in trees)]))
        for f in range(ensemble.n_features)
    ]
    first = np.cumsum([0, *map(len, thresholds)])

    def entry(_: int, content: SplitNode | Leaf) -> dict[str, Any]:
        if isinstance(content, Leaf):
            return {"value": content.value, "weight": content.count}
        place = np.searchsorted(thresholds[content.feature], np.float32(content.threshold))
        return {"split": {"split_index": int(first[content.feature] + place)}}

    return {
        "model_info": categories_text(ensemble),
        "features_info": {"float_features": [
            {"feature_index": k, "flat_feature_index": k, "feature_id": name, "has_nans": True,
             "nan_value_treatment": "AsFalse" if is_left[k] else "AsTrue",
             "borders": np.clip(thresholds[k].astype(np.float64), -JSON_INFINITY, JSON_INFINITY).tolist()}
            for k, name in enumerate(feature_labels(ensemble))
        ]},
        "trees": [document_of_tree(tree, entry) for tree in trees],
        "scale_and_bias": [1, [0]],
    }  # fmt: skip
