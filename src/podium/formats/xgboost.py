"""XGBoost: the model as JSON or UBJSON, and the dump that search engines read.

Sources: dmlc/xgboost, src/tree/tree_model.cc, src/gbm/gbtree_model.cc, src/learner.cc, src/predictor/predict_fn.h. A
node goes left where `x < split_condition`, both float32; NaN goes to the default child; leaves are added to
`base_score` as float32.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from podium.formats import ubjson
from podium.formats.base import Format, Written
from podium.formats.trees import (
    BEYOND,
    Leaf,
    above32,
    as_ensemble,
    categories_text,
    feature_labels,
    has_made_up_names,
    node_of,
    plain_trees,
    require_float32,
    require_whole_categories,
    root_of,
)
from podium.formats.xgboost_reading import from_document, from_dump, require_nan
from podium.models import Ensemble, Model
from podium.trees import Tree

ROOT_PARENT = 2147483647
TYPES: dict[str, Any] = {  # of a tree's arrays; the others are float32
    **dict.fromkeys(("left_children", "right_children", "parents", "split_indices", "categories", "categories_nodes"),
                    np.int32),
    **dict.fromkeys(("categories_segments", "categories_sizes"), np.int64),
    **dict.fromkeys(("default_left", "split_type"), np.uint8),
}  # fmt: skip
MISSING = "NaN goes to the side that was learnt for it, as in Podium"
ROUNDING = "scores are sums of float32: they agree to about 1e-6 of their size"
CARRIES: dict[str, Any] = {
    "missing directions": "yes", "categories": "yes", "combined models": "by other means", "several outputs": "no",
    "linear models": "no", "nets": "no", "shifted features": "no",
}  # fmt: skip


class XGBoost(Format):
    """What `Booster.save_model` writes: JSON, or UBJSON in files that end in .ubj."""

    name = "xgboost"
    title = "XGBoost's model, JSON or UBJSON by suffix"
    suffixes = (".ubj",)
    carries = CARRIES

    def recognizes(self, content: bytes, suffix: str) -> bool:
        """An object with a learner."""
        head = content[:4096].lstrip()
        return head[:1] == b"{" and b"learner" in head

    def read(self, content: bytes, source: str) -> Model:
        """JSON or UBJSON, whatever the file is called."""
        document = (
            json.loads(content) if content.lstrip()[:2] in (b'{"', b"{ ", b"{\n", b"{}") else ubjson.loads(content)
        )
        return from_document(document)

    def read_object(self, value: Any) -> Model | None:
        """A `Booster`, or an estimator that holds one."""
        if type(value).__module__.split(".")[0] != "xgboost":
            return None
        require_nan(getattr(value, "missing", None))
        booster = value.get_booster() if hasattr(value, "get_booster") else value
        return from_document(ubjson.loads(bytes(booster.save_raw("ubj"))))

    def write(self, model: Model, suffix: str = "", *, objective: str = "rank:ndcg") -> Written:
        """The model's trees.

        Args:
            model: trees, or a combination of them.
            suffix: `.ubj` writes UBJSON.
            objective: the name that the file gives; ranking objectives leave scores as they are.

        """
        ensemble = as_ensemble(model, self.name)
        require_float32(ensemble, self.name)
        document = _document(ensemble, objective)
        content = (
            ubjson.dumps(document)
            if suffix == ".ubj"
            else json.dumps(document, ensure_ascii=False, default=_listed).encode()
        )
        return Written(content, MISSING, (ROUNDING,))


class XGBoostDump(Format):
    """What `Booster.dump_model(dump_format="json")` writes: nested trees. XGBoost cannot read it back."""

    name = "xgboost-dump"
    title = "XGBoost's JSON dump"
    carries = CARRIES | {"categories": "by other means"}

    def recognizes(self, content: bytes, suffix: str) -> bool:
        """A list of nodes."""
        head = content[:4096].lstrip()
        return head[:1] == b"[" and (b'"nodeid"' in head or b'"leaf"' in head)

    def read(self, content: bytes, source: str) -> Model:
        """A dump; it has no base score, and features are known by their names."""
        return from_dump(json.loads(content))

    def write(self, model: Model, suffix: str = "") -> Written:
        """The model's trees, without statistics: readers refuse keys that they do not know."""
        ensemble = as_ensemble(model, self.name)
        require_float32(ensemble, self.name)
        return Written(json.dumps(dump(ensemble, self.name), ensure_ascii=False).encode(), MISSING, (ROUNDING,))


def _document(ensemble: Ensemble, objective: str) -> dict[str, Any]:
    """The model as XGBoost reads it: parameters are strings, numbers of arrays are floats, siblings stand together."""
    trees = plain_trees(ensemble, XGBoost.name, named=range(ensemble.n_features))
    n = str(ensemble.n_features)
    types = ["c" if k in _categorical(trees) else "float" for k in range(ensemble.n_features)]
    return {
        "learner": {
            "attributes": categories_text(ensemble),
            "feature_names": [] if has_made_up_names(ensemble) else feature_labels(ensemble),
            "feature_types": types,
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


def _listed(array: Any) -> list[Any]:
    """An array as JSON has it."""
    values: list[Any] = array.tolist()
    return values


def _categorical(trees: Sequence[Tree]) -> set[int]:
    return {int(f) for tree in trees for f in tree.feature[tree.category >= 0]}


def _entry(tree: Tree, number: int, n_features: str) -> dict[str, Any]:
    """A tree, level by level: the right child has the number behind the left one's."""
    require_whole_categories(tree, f"tree {number}")
    node = node_of(tree)
    order: list[Any] = [root_of(tree)]
    columns: dict[str, list[Any]] = {
        key: [] for key in ("left_children", "right_children", "parents", "split_indices", "split_conditions",
                            "default_left", "base_weights", "loss_changes", "sum_hessian", "split_type")
    }  # fmt: skip
    categories: dict[str, list[int]] = {
        key: [] for key in ("categories", "categories_nodes", "categories_segments", "categories_sizes")
    }
    parents = {0: ROOT_PARENT}
    for k, key in enumerate(order):  # grows while it is walked
        content = node(key)
        row: dict[str, Any] = {"left_children": -1, "right_children": -1, "split_indices": 0, "default_left": 0,
                               "loss_changes": 0.0, "sum_hessian": 0.0, "split_type": 0}  # fmt: skip
        if isinstance(content, Leaf):
            row |= {
                "split_conditions": content.value,
                "base_weights": content.value,
                "sum_hessian": float(content.count),
            }
        else:
            left = len(order)
            is_category = content.categories is not None
            order += [content.right, content.left] if is_category else [content.left, content.right]
            parents |= {left: k, left + 1: k}
            row |= {
                "left_children": left, "right_children": left + 1, "split_indices": content.feature,
                "split_conditions": 1e-45 if is_category else above32(np.float32(content.threshold)),
                "default_left": int(is_category or content.missing_left), "base_weights": 0.0,
                "loss_changes": content.gain, "sum_hessian": float(content.count), "split_type": int(is_category),
            }  # fmt: skip
            if content.categories is not None:  # listed categories go right
                categories["categories_nodes"].append(k)
                categories["categories_segments"].append(len(categories["categories"]))
                categories["categories_sizes"].append(len(content.categories))
                categories["categories"] += [int(value) for value in content.categories]
        row["parents"] = parents[k]
        for name, values in columns.items():
            values.append(row[name])
    param = {"num_nodes": str(len(order)), "num_feature": n_features, "size_leaf_vector": "1", "num_deleted": "0"}
    arrays = {key: np.array(values, TYPES.get(key, np.float32)) for key, values in (columns | categories).items()}
    return {"id": number, "tree_param": param, **arrays}


def dump(ensemble: Ensemble, format_name: str) -> list[dict[str, Any]]:
    """The trees, nested, with the names of features; categories become numeric splits, which all readers know."""
    names = feature_labels(ensemble)
    return [_nested(tree, names) for tree in plain_trees(ensemble, format_name)]


def _nested(tree: Tree, names: Sequence[str]) -> dict[str, Any]:
    """A tree as nested dictionaries, the child of `yes` first."""
    node = node_of(tree)
    root: dict[str, Any] = {}
    waiting: list[tuple[Any, dict[str, Any], int]] = [(root_of(tree), root, 0)]
    number = 0
    while waiting:
        key, entry, depth = waiting.pop(0)
        content = node(key)
        entry["nodeid"] = entry.get("nodeid", 0)
        if isinstance(content, Leaf):
            entry["leaf"] = float(np.float32(content.value))
            continue
        yes, no = number + 1, number + 2
        number += 2
        children: list[dict[str, Any]] = [{"nodeid": yes}, {"nodeid": no}]
        bound = min(float(above32(np.float32(content.threshold))), BEYOND)
        entry |= {
            "depth": depth, "split": names[content.feature], "split_condition": bound, "yes": yes,
            "no": no, "missing": yes if content.missing_left else no, "children": children,
        }  # fmt: skip
        waiting += [(content.left, children[0], depth + 1), (content.right, children[1], depth + 1)]
    return root
