"""XGBoost: the model as JSON or UBJSON, and the dump that search engines read.

Sources: dmlc/xgboost, src/tree/tree_model.cc, src/gbm/gbtree_model.cc, src/learner.cc, src/data/cat_container.cc,
src/predictor/predict_fn.h. A node sends `x < split_condition` left, both float32; NaN goes to the default child; leaves
are added to `base_score` as float32.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from podium.data.encoding import Encoding
from podium.errors import DataError, warn
from podium.formats import ubjson
from podium.formats.base import (
    CARRIES,
    LEARNT_SIDE,
    Format,
    Written,
    distinct_names,
    encoding_of,
    json_content,
    require_one_output,
    truth_value,
    whole_number,
    whole_numbers,
    without_names,
)
from podium.formats.trees import (
    JSON_INFINITY,
    MAX_COPIES,
    MAX_NODES,
    Leaf,
    SplitNode,
    above32,
    as_float32_ensemble,
    below32,
    by_level,
    categories_text,
    feature_labels,
    finite_trees,
    has_made_up_names,
    make_tree,
    require_index,
    require_whole_categories,
    scaled,
    tree_of_document,
    with_constant,
)
from podium.models import Ensemble, Model
from podium.models.base import INFERRED
from podium.trees import Tree

IDENTITIES = (  # objectives whose base score is on the scale of the leaves
    "reg:squarederror", "reg:linear", "reg:absoluteerror", "reg:pseudohubererror", "binary:logitraw",
)  # fmt: skip
LOGISTIC = ("binary:logistic", "reg:logistic")  # the base score is a probability
SMALLEST_PROBABILITY = np.float32(1e-6)  # XGBoost moves base scores away from 0 and 1, and computes in float32


def from_document(document: Mapping[str, Any], *, plugin: bool = False, is_estimator: bool = False) -> Ensemble:
    """Return the model of a parsed file.

    With `plugin`, the model is what the search plugins read: leaves from `base_weights` and no base score.
    `is_estimator` says whether the document comes from an estimator such as `XGBRanker` in memory.
    """
    learner = document["learner"]
    attributes = learner.get("attributes") or {}
    _require_nan(json.loads(attributes.get("scikit_learn") or "{}").get("missing"))
    booster = learner["gradient_booster"]
    if booster.get("name") == "gblinear":
        raise DataError("the model is linear (gblinear); export its weights as RankLib or Solr text instead")
    model = booster["gbtree"]["model"] if "gbtree" in booster else booster["model"]
    param = learner["learner_model_param"]
    for key in ("num_class", "num_target"):
        require_one_output(param.get(key, "1"))
    objective = str(learner["objective"]["name"])
    n_features = whole_number(param["num_feature"], "num_feature")
    leaves = "base_weights" if plugin else "split_conditions"
    trees = [_tree_of_entry(entry, k, leaves) for k, entry in enumerate(model["trees"])]
    weights = booster.get("weight_drop") or model.get("weight_drop") or [1.0] * len(trees)
    if len(weights) != len(trees):
        raise DataError(f"weight_drop has {len(weights)} entries for {len(trees)} trees")
    trees = [scaled(tree, float(weight)) for tree, weight in zip(trees, weights, strict=True)]
    if not plugin:
        trees = trees[: _n_used(attributes, model, len(trees), is_estimator or "scikit_learn" in attributes)]
        trees = with_constant(trees, _margin(_parse_base_score(param["base_score"]), objective))
    names = [str(name) for name in learner.get("feature_names") or ()]
    return Ensemble.of_trees(
        trees, n_features, feature_names=distinct_names(names, n_features),
        encoding=_encoding(model.get("cats") or {}, n_features), info={"imported": "xgboost", "objective": objective},
    )  # fmt: skip


def _n_used(attributes: Mapping[str, Any], model: Mapping[str, Any], n_trees: int, is_estimator: bool) -> int:
    """Return the number of trees that predictions use: an estimator that stopped early ends with the best round."""
    if "best_iteration" not in attributes:
        return n_trees
    best = whole_number(attributes["best_iteration"], "best_iteration")
    per_round = whole_number((model.get("gbtree_model_param") or {}).get("num_parallel_tree", "1"), "num_parallel_tree")
    n_best = min(n_trees, (best + 1) * max(per_round, 1))
    if n_best < n_trees and not is_estimator:
        warn(
            f"training stopped early, and the best round is {best}, but the Booster predicts with all {n_trees} trees; "
            f"so does the imported model: for the best rounds, import booster[:{best + 1}]"
        )
        return n_trees
    return n_best


def _require_nan(missing: Any) -> None:
    """Raise if a model reads a number as missing; None, the default of estimators, means NaN."""
    if missing is not None and not math.isnan(float(missing)):
        raise DataError(
            f"XGBoost reads the value {missing} as missing, which trees cannot express: replace it with NaN in your "
            "data, and import the Booster (model.get_booster())"
        )


def _encoding(cats: Mapping[str, Any], n_features: int) -> Encoding:
    """Return the names of categories of features that were categorical columns of a frame."""
    values: dict[int, Sequence[Any]] = {}
    for feature, entry in enumerate(cats.get("enc") or ()):
        if not len(entry["values"]):  # a column of numbers
            continue
        if "offsets" not in entry:
            values[feature] = whole_numbers(entry["values"], f"the categories of feature {feature}")
            continue
        offsets, text = (whole_numbers(entry[key], f"feature {feature}: {key}") for key in ("offsets", "values"))
        if sorted(offsets) != offsets or offsets[0] != 0 or offsets[-1] != len(text):
            raise DataError(f"the names of the categories of feature {feature} are not valid")
        if not all(0 <= byte < 128 for byte in text):
            return without_names("XGBoost", "it cuts names with non-ASCII letters in the wrong places")
        values[feature] = [bytes(text[a:b]).decode() for a, b in pairwise(offsets)]
    if values:
        warn(
            "XGBoost confuses categories that were not in the training data with others; the imported model treats "
            "them as missing"
        )
    return encoding_of(values, n_features, "XGBoost")


def _parse_base_score(text: Any) -> float:
    """Parse a base score: a number, or a vector with one entry."""
    words = str(text).strip("[] ").split(",")
    require_one_output(len(words))
    return float(np.float32(float(words[0])))


def _margin(base_score: float, objective: str) -> float:
    """Return the base score on the scale of the leaves; raise if the scale of the objective is unknown."""
    if objective.startswith("rank:") or objective in IDENTITIES:
        return base_score
    if objective in LOGISTIC:
        if not 0 <= base_score <= 1:
            raise DataError(f"the base score of {objective} must be a probability, but is {base_score}")
        probability = np.clip(np.float32(base_score), SMALLEST_PROBABILITY, 1 - SMALLEST_PROBABILITY)
        return float(-np.log(1 / probability - 1))
    raise DataError(f"the scale of the base score of {objective!r} is unknown")


def _tree_of_entry(entry: Mapping[str, Any], number: int, leaves: str) -> Tree:
    name = f"tree {number}"
    n = whole_number(entry["tree_param"]["num_nodes"], f"{name}: num_nodes")
    require_one_output(entry["tree_param"].get("size_leaf_vector", "1"))
    if not 1 <= n <= MAX_NODES:
        raise DataError(f"{name} has {n} nodes")

    def column(key: str) -> Sequence[Any]:
        values: Sequence[Any] = entry[key]
        if len(values) != n:
            raise DataError(f"{name}: {key} has {len(values)} entries for {n} nodes")
        return values

    left, right, features = (
        whole_numbers(column(key), f"{name}: {key}") for key in ("left_children", "right_children", "split_indices")
    )
    conditions, values = (list(map(float, column(key))) for key in ("split_conditions", leaves))
    default_left = [truth_value(value, f"{name}: default_left") for value in column("default_left")]
    gains = list(map(float, column("loss_changes"))) if "loss_changes" in entry else [0.0] * n
    sets = _category_sets(entry)

    def node(key: int) -> SplitNode | Leaf:
        require_index(key, n, f"{name}: a node")
        if left[key] == -1:
            return Leaf(values[key])
        feature, gain = features[key], gains[key]
        if key not in sets:
            threshold = _threshold(conditions[key])
            return SplitNode(feature, threshold, default_left[key], left[key], right[key], None, gain)
        split = SplitNode(feature, 0.0, False, right[key], left[key], sets[key], gain)  # listed categories go left
        if default_left[key]:
            return split
        return SplitNode(feature, math.inf, False, split, right[key], None, gain)  # and missing values too

    return make_tree(0, node, name, max_nodes=MAX_COPIES * n if sets else None)


def _threshold(condition: float) -> float:
    """Return the threshold for which `x <= threshold` is `x < condition`; text has enough digits for the float32."""
    return float(below32(float(np.float32(condition))))


def _category_sets(entry: Mapping[str, Any]) -> dict[int, list[float]]:
    categories = [float(value) for value in entry.get("categories", ())]
    nodes, starts, sizes = (
        whole_numbers(entry.get(f"categories_{key}", ()), f"categories_{key}") for key in ("nodes", "segments", "sizes")
    )
    if min([*starts, *sizes], default=0) < 0 or sum(sizes) > len(categories):
        raise DataError(f"{len(categories)} categories are listed, but the nodes have {sum(sizes)}")
    return {node: categories[start : start + size] for node, start, size in zip(nodes, starts, sizes, strict=True)}


def from_dump(document: Sequence[Mapping[str, Any]]) -> Ensemble:
    """Return the model of a dump, with features numbered as f0, f1, …, or else in the order in which they occur."""
    names: dict[str, int] = {}
    trees = [_tree_of_dump(entry, k, names) for k, entry in enumerate(document)]
    are_numbers = all(name[:1] == "f" and name[1:].isdecimal() and len(name) < 8 for name in names)
    if not are_numbers:
        return Ensemble.of_trees(trees, len(names), feature_names=tuple(names), info={"imported": "xgboost-dump"})
    columns = np.array([int(name[1:]) for name in names], np.int32)
    n_features = int(columns.max(initial=-1)) + 1
    if names:
        trees = [replace(tree, feature=columns[tree.feature]) for tree in trees]
    return Ensemble.of_trees(trees, n_features, info={"imported": "xgboost-dump", INFERRED: True})


def _tree_of_dump(root: Mapping[str, Any], number: int, names: dict[str, int]) -> Tree:
    def node(entry: Mapping[str, Any]) -> SplitNode | Leaf:
        if "leaf" in entry:
            return Leaf(float(entry["leaf"]))
        children = {child["nodeid"]: child for child in entry["children"]}
        missing = entry.get("missing", entry["no"])
        if entry["yes"] == entry["no"] or missing not in (entry["yes"], entry["no"]):
            raise DataError(
                f"tree {number}: node {entry.get('nodeid')} must have two different children, and send missing values "
                f"to one of them, but has yes {entry['yes']}, no {entry['no']} and missing {missing}"
            )
        yes, no = children[entry["yes"]], children[entry["no"]]
        feature = names.setdefault(str(entry["split"]), len(names))
        condition = entry.get("split_condition")
        gain = float(entry.get("gain", 0.0))
        if isinstance(condition, list):
            return SplitNode(feature, 0.0, False, yes, no, [float(value) for value in condition], gain)
        if condition is None:
            raise DataError(f"tree {number} has an indicator feature, which has no split_condition")
        return SplitNode(feature, _threshold(float(condition)), missing == entry["yes"], yes, no, None, gain)

    return tree_of_document(root, node, f"tree {number}")


ROOT_PARENT = 2147483647
# The arrays of a tree with an entry for each node, and those of its sets of categories.
NODE_ARRAYS = {
    "left_children": np.int32, "right_children": np.int32, "parents": np.int32, "split_indices": np.int32,
    "split_conditions": np.float32, "default_left": np.uint8, "base_weights": np.float32, "loss_changes": np.float32,
    "sum_hessian": np.float32, "split_type": np.uint8,
}  # fmt: skip
SET_ARRAYS = {
    "categories": np.int32, "categories_nodes": np.int32, "categories_segments": np.int64, "categories_sizes": np.int64,
}  # fmt: skip
ROUNDING = "scores are sums of float32: they agree to about 1e-6 of their size"


class XGBoost(Format):
    """The files that `Booster.save_model` writes: JSON, or UBJSON if the name ends in .ubj."""

    name = "xgboost"
    title = "XGBoost's model, JSON or UBJSON by suffix"
    suffixes = (".ubj",)
    carries = CARRIES | {"categories": "yes"}

    def recognizes(self, content: bytes, suffix: str) -> bool:
        head = content[:4096].lstrip()
        return head[:1] == b"{" and b"learner" in head

    def read(self, content: bytes) -> Model:
        """Read JSON or UBJSON, under any name."""
        is_json = content.lstrip()[:2] in (b'{"', b"{ ", b"{\n", b"{}")  # UBJSON begins with a brace as well
        return from_document(json.loads(content) if is_json else ubjson.loads(content))

    def read_object(self, value: Any) -> Model | None:
        if type(value).__module__.split(".")[0] != "xgboost":
            return None
        _require_nan(getattr(value, "missing", None))
        is_estimator = hasattr(value, "get_booster")
        booster = value.get_booster() if is_estimator else value
        return from_document(ubjson.loads(bytes(booster.save_raw("ubj"))), is_estimator=is_estimator)

    def write(self, model: Model, suffix: str = "", *, objective: str = "rank:ndcg") -> Written:
        """Write the trees; `objective` is named in the file, and ranking objectives do not transform scores."""
        ensemble = as_float32_ensemble(model, self.name)
        document = document_of(ensemble, objective)
        if suffix == ".ubj":
            return Written(ubjson.dumps(document), LEARNT_SIDE, (ROUNDING,))
        text = json.dumps(document, ensure_ascii=False, default=lambda array: array.tolist())
        return Written(text.encode(), LEARNT_SIDE, (ROUNDING,))


class XGBoostDump(Format):
    """The files that `Booster.dump_model(dump_format="json")` writes: nested trees. XGBoost cannot read them back."""

    name = "xgboost-dump"
    title = "XGBoost's JSON dump"

    def recognizes(self, content: bytes, suffix: str) -> bool:
        head = content[:4096].lstrip()
        return head[:1] == b"[" and (b'"nodeid"' in head or b'"leaf"' in head)

    def read(self, content: bytes) -> Model:
        """Read a dump, which has no base score, and identifies features by name."""
        return from_dump(json.loads(content))

    def write(self, model: Model, suffix: str = "") -> Written:
        """Write the trees without statistics, because readers refuse unknown keys."""
        ensemble = as_float32_ensemble(model, self.name)
        return Written(json_content(dump(ensemble)), LEARNT_SIDE, (ROUNDING,))


def document_of(ensemble: Ensemble, objective: str, *, plain: bool = False) -> dict[str, Any]:
    """Return the model as XGBoost reads it: parameters are strings, arrays hold floats, siblings are adjacent.

    With `plain`, all features are numbers and have names, as the search plugins require.
    """
    trees = finite_trees(ensemble, named=() if plain else range(ensemble.n_features))
    n = str(ensemble.n_features)
    categorical = {int(feature) for tree in trees for feature in tree.feature[tree.category >= 0]}
    return {
        "learner": {
            "attributes": categories_text(ensemble),
            "feature_names": [] if has_made_up_names(ensemble) and not plain else feature_labels(ensemble),
            "feature_types": ["c" if k in categorical else "float" for k in range(ensemble.n_features)],
            "learner_model_param": {
                "base_score": "[0E0]", "num_class": "0", "num_feature": n, "num_target": "1", "boost_from_average": "0",
            },
            "objective": {"name": objective},
            "gradient_booster": {"name": "gbtree", "model": {
                "gbtree_model_param": {"num_trees": str(len(trees)), "num_parallel_tree": "1"},
                "tree_info": [0] * len(trees),
                "iteration_indptr": list(range(len(trees) + 1)),
                "trees": [_entry(tree, k, n) for k, tree in enumerate(trees)],
            }},
        },
        "version": [3, 0, 0],
    }  # fmt: skip


def _entry(tree: Tree, number: int, n_features: str) -> dict[str, Any]:
    """Return a tree level by level, so that siblings are adjacent."""
    require_whole_categories(tree, f"tree {number}")
    rows: list[tuple[Any, ...]] = []  # in the order of NODE_ARRAYS
    sets: dict[int, Sequence[float]] = {}
    parents = [ROOT_PARENT]
    for k, (_, content, left) in enumerate(by_level(tree, listed_right=True)):
        if isinstance(content, Leaf):
            rows.append((-1, -1, parents[k], 0, content.value, 0, content.value, 0.0, content.count, 0))
            continue
        condition, is_left, is_set = above32(np.float32(content.threshold)), content.missing_left, False
        if content.categories is not None:  # missing values go left, with the categories that are not listed
            condition, is_left, is_set = np.float32(1e-45), True, True
            sets[k] = content.categories
        rows.append((
            left, left + 1, parents[k], content.feature, condition, is_left, 0.0, content.gain, content.count, is_set
        ))  # fmt: skip
        parents += [k, k]
    sizes = [len(categories) for categories in sets.values()]
    columns: list[Any] = [
        *zip(*rows, strict=True), [value for categories in sets.values() for value in categories], list(sets),
        np.cumsum([0, *sizes])[:-1], sizes,
    ]  # fmt: skip
    types = NODE_ARRAYS | SET_ARRAYS
    arrays = {key: np.array(column, types[key]) for key, column in zip(types, columns, strict=True)}
    param = {"num_nodes": str(len(rows)), "num_feature": n_features, "size_leaf_vector": "1", "num_deleted": "0"}
    return {"id": number, "tree_param": param, **arrays}


def dump(ensemble: Ensemble) -> list[dict[str, Any]]:
    """Return the trees nested, with feature names; categories become numeric splits, which all readers support."""
    names = feature_labels(ensemble)
    return [_nested(tree, names) for tree in finite_trees(ensemble)]


def _nested(tree: Tree, names: Sequence[str]) -> dict[str, Any]:
    """Return a tree as nested dictionaries, with the child of `yes` first."""
    entries: list[dict[str, Any]] = [{"nodeid": k} for k in range(2 * tree.n_leaves - 1)]
    depths = [0]
    for entry, depth, (_, content, yes) in zip(entries, depths, by_level(tree), strict=True):
        if isinstance(content, Leaf):
            entry["leaf"] = float(np.float32(content.value))
            continue
        bound = min(float(above32(np.float32(content.threshold))), JSON_INFINITY)
        entry |= {
            "depth": depth, "split": names[content.feature], "split_condition": bound, "yes": yes, "no": yes + 1,
            "missing": yes if content.missing_left else yes + 1, "children": entries[yes : yes + 2],
        }  # fmt: skip
        depths += [depth + 1] * 2
    return entries[0]
