"""Reading XGBoost's models: the document of JSON or UBJSON, and the dump.

Sources: dmlc/xgboost, src/tree/tree_model.cc, src/gbm/gbtree_model.cc, src/learner.cc, src/data/cat_container.cc.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from podium.data.encoding import Encoding
from podium.errors import DataError, PodiumWarning
from podium.formats.categories import encoding_of, without_names
from podium.formats.trees import (
    MAX_NODES,
    Leaf,
    SplitNode,
    below32,
    make_tree,
    most_copies,
    require_index,
    scaled,
    shifted,
)
from podium.models import Ensemble
from podium.models.base import INFERRED
from podium.trees import Tree

IDENTITIES = (  # the base score is a score
    "reg:squarederror", "reg:linear", "reg:absoluteerror", "reg:pseudohubererror", "binary:logitraw",
)  # fmt: skip
LOGISTIC = ("binary:logistic", "reg:logistic")  # the base score is a probability
SMALLEST_PROBABILITY = np.float32(1e-6)  # XGBoost moves base scores away from 0 and 1, and computes in float32


def from_document(document: Mapping[str, Any]) -> Ensemble:
    """The model of a file."""
    learner = document["learner"]
    require_nan(json.loads((learner.get("attributes") or {}).get("scikit_learn") or "{}").get("missing"))
    booster = learner["gradient_booster"]
    if booster.get("name") == "gblinear":
        raise DataError("the model is linear (gblinear); export its weights as RankLib or Solr text instead")
    model = booster["gbtree"]["model"] if "gbtree" in booster else booster["model"]
    param = learner["learner_model_param"]
    if int(param.get("num_class", "0")) > 1 or int(param.get("num_target", "1")) > 1:
        raise DataError("the model has several outputs for each document, and a ranker has one")
    objective = str(learner["objective"]["name"])
    n_features = int(param["num_feature"])
    trees = [_tree_of_entry(entry, k) for k, entry in enumerate(model["trees"])]
    weights = booster.get("weight_drop") or model.get("weight_drop") or [1.0] * len(trees)
    if len(weights) != len(trees):
        raise DataError(f"weight_drop has {len(weights)} entries for {len(trees)} trees")
    trees = [scaled(tree, float(weight)) for tree, weight in zip(trees, weights, strict=True)]
    trees = shifted(trees, _margin(_number_of(param["base_score"]), objective))
    names = [str(name) for name in learner.get("feature_names") or ()]
    known = tuple(names) if len(names) == n_features and len(set(names)) == n_features else None
    info, encoding = {"imported": "xgboost", "objective": objective}, _encoding(model.get("cats") or {}, n_features)
    return Ensemble.of_trees(trees, n_features, feature_names=known, encoding=encoding, info=info)


def require_nan(missing: Any) -> None:
    """Refuse a model that reads a number as missing; None, as estimators have it, is NaN."""
    if missing is not None and not math.isnan(float(missing)):
        raise DataError(
            f"XGBoost reads the value {missing} as missing here, which trees cannot express: replace it by NaN in your "
            "data, and import the Booster (model.get_booster())"
        )


def _encoding(cats: Mapping[str, Any], n_features: int) -> Encoding:
    """The names of categories, of features that were categorical columns of a frame."""
    values: dict[int, Sequence[Any]] = {}
    for feature, entry in enumerate(cats.get("enc") or ()):
        if not len(entry["values"]):  # a column of numbers
            continue
        if "offsets" not in entry:
            values[feature] = [int(value) for value in entry["values"]]
            continue
        offsets, text = [int(k) for k in entry["offsets"]], [int(byte) for byte in entry["values"]]
        if sorted(offsets) != offsets or offsets[0] != 0 or offsets[-1] != len(text):
            raise DataError(f"the names of the categories of feature {feature} are not valid")
        if not all(0 <= byte < 128 for byte in text):
            return without_names("XGBoost", "it cuts names with other letters than those of ASCII in wrong places")
        values[feature] = [bytes(text[a:b]).decode() for a, b in pairwise(offsets)]
    if values:
        warnings.warn(
            "XGBoost reads a category that training has not seen as one of those it has; the imported model takes it "
            "for a missing one", PodiumWarning, stacklevel=2,
        )  # fmt: skip
    return encoding_of(values, n_features, "XGBoost")


def _number_of(text: Any) -> float:
    """A base score: a number, or a vector of one."""
    words = str(text).strip("[] ").split(",")
    if len(words) != 1:
        raise DataError(f"base_score has {len(words)} entries, and a ranker has one output")
    return float(np.float32(float(words[0])))


def _margin(base_score: float, objective: str) -> float:
    """The base score on the scale of the leaves; an objective whose scale is not known is refused."""
    if objective.startswith("rank:") or objective in IDENTITIES:
        return base_score
    if objective in LOGISTIC:
        if not 0 <= base_score <= 1:
            raise DataError(f"the base score of {objective} must be a probability, but is {base_score}")
        probability = np.clip(np.float32(base_score), SMALLEST_PROBABILITY, 1 - SMALLEST_PROBABILITY)
        return float(-np.log(1 / probability - 1))
    raise DataError(f"the scale of the base score of {objective!r} is not known")


def _tree_of_entry(entry: Mapping[str, Any], number: int) -> Tree:
    """A tree of the model."""
    name = f"tree {number}"
    n = int(entry["tree_param"]["num_nodes"])
    if int(entry["tree_param"].get("size_leaf_vector", "1")) > 1:
        raise DataError(f"{name} has vectors in its leaves, and a ranker has one output")
    if not 1 <= n <= MAX_NODES:
        raise DataError(f"{name} has {n} nodes")

    def column(key: str, kind: type) -> list[Any]:
        values = [kind(value) for value in entry[key]]
        if len(values) != n:
            raise DataError(f"{name}: {key} has {len(values)} entries for {n} nodes")
        return values

    left, right, features = column("left_children", int), column("right_children", int), column("split_indices", int)
    conditions, default_left = column("split_conditions", float), column("default_left", bool)
    gains = column("loss_changes", float) if "loss_changes" in entry else [0.0] * n
    sets = _category_sets(entry)

    def node(key: Any) -> SplitNode | Leaf:
        is_set = isinstance(key, tuple)
        key = key[1] if is_set else key
        require_index(key, n, f"{name}: a node")
        if left[key] == -1:
            return Leaf(conditions[key])
        feature, listed, others = features[key], right[key], left[key]
        if key in sets and not is_set and not default_left[key]:  # a missing value goes with the listed ones
            return SplitNode(feature, math.inf, False, ("set", key), listed, None, gains[key])
        if key in sets:  # in Podium the listed categories go left
            return SplitNode(feature, 0.0, False, listed, others, sets[key], gains[key])
        return SplitNode(feature, _threshold(conditions[key]), default_left[key], left[key], right[key], None, gains[key])

    def children(key: int) -> tuple[int, ...]:
        require_index(key, n, f"{name}: a node")
        return () if left[key] == -1 else (left[key], right[key])

    return make_tree(0, node, name, most_nodes=most_copies(0, children, name) if sets else None)


def _threshold(condition: float) -> float:
    """`x < condition` as `x <= threshold`; text has so many digits that the float32 comes back."""
    return float(below32(float(np.float32(condition))))


def _category_sets(entry: Mapping[str, Any]) -> dict[int, list[float]]:
    """The categories of each categorical node."""
    categories = [float(value) for value in entry.get("categories", ())]
    nodes, starts, sizes = (
        [int(value) for value in entry.get(f"categories_{key}", ())] for key in ("nodes", "segments", "sizes")
    )
    if min([*starts, *sizes], default=0) < 0 or sum(sizes) > len(categories):
        raise DataError(f"{len(categories)} categories are listed, but the nodes have {sum(sizes)}")
    return {node: categories[start : start + size] for node, start, size in zip(nodes, starts, sizes, strict=True)}


def from_dump(document: Sequence[Mapping[str, Any]]) -> Ensemble:
    """The model of a dump: features in the order of f0, f1, … where they are called so, else as they are met."""
    names: dict[str, int] = {}
    trees = [_tree_of_dump(entry, k, names) for k, entry in enumerate(document)]
    numbered = all(name[:1] == "f" and name[1:].isdecimal() and len(name) < 8 for name in names)
    if not numbered:
        return Ensemble.of_trees(trees, len(names), feature_names=tuple(names), info={"imported": "xgboost-dump"})
    columns = np.array([int(name[1:]) for name in names], np.int32)
    n_features = int(columns.max(initial=-1)) + 1
    placed = [tree.__class__(**vars(tree) | {"feature": columns[tree.feature]}) for tree in trees] if names else trees
    return Ensemble.of_trees(placed, n_features, info={"imported": "xgboost-dump", INFERRED: True})


def _tree_of_dump(root: Mapping[str, Any], number: int, names: dict[str, int]) -> Tree:
    """A nested tree."""
    nodes: list[Mapping[str, Any]] = [root]

    def node(key: int) -> SplitNode | Leaf:
        entry = nodes[key]
        if "leaf" in entry:
            return Leaf(float(entry["leaf"]))
        children = {child["nodeid"]: child for child in entry["children"]}
        missing = entry.get("missing", entry["no"])
        if entry["yes"] == entry["no"] or missing not in (entry["yes"], entry["no"]):
            raise DataError(
                f"tree {number}: node {entry.get('nodeid')} must have two different children, and send missing values "
                f"to one of them, but has yes {entry['yes']}, no {entry['no']} and missing {missing}"
            )
        nodes.extend((children[entry["yes"]], children[entry["no"]]))
        yes, no = len(nodes) - 2, len(nodes) - 1
        feature = names.setdefault(str(entry["split"]), len(names))
        condition = entry.get("split_condition")
        gain = float(entry.get("gain", 0.0))
        if isinstance(condition, list):
            return SplitNode(feature, 0.0, False, yes, no, [float(value) for value in condition], gain)
        if condition is None:  # an indicator: yes where the value is there and not 0
            raise DataError(f"tree {number} has an indicator feature, which has no split_condition")
        return SplitNode(feature, _threshold(float(condition)), missing == entry["yes"], yes, no, None, gain)

    return make_tree(0, node, f"tree {number}")
