"""LightGBM: the text model ("v4"), and the JSON dump that search engines read.

Sources: lightgbm-org/LightGBM, src/io/tree.cpp, include/LightGBM/tree.h, src/boosting/gbdt_model_text.cpp. A node goes
left where `x <= threshold`, in double; a missing value is NaN, 0 or nothing, by node.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from podium.data.encoding import listed
from podium.formats.base import CARRIES, Format, Written
from podium.formats.lightgbm_reading import CATEGORICAL, DEFAULT_LEFT, NAMES, NAN, from_dump, from_text
from podium.formats.trees import (
    Leaf,
    SplitNode,
    as_ensemble,
    document_of_tree,
    double_thresholds,
    feature_labels,
    plain_trees,
    require_whole_categories,
)
from podium.models import Ensemble, Model
from podium.trees import Tree

MISSING = "NaN goes to the side that was learnt for it, as in Podium"
ZERO = float(np.float32(1e-35))  # values up to this size are 0 to LightGBM
HELD = CARRIES | {"categories": "yes", "shifted features": "by other means"}


class LightGBM(Format):
    """The text of `Booster.save_model`."""

    name = "lightgbm"
    title = "LightGBM's text model"
    suffixes = (".lgb",)
    carries = HELD

    def recognizes(self, content: bytes, suffix: str) -> bool:
        return content[:5] in (b"tree\n", b"tree\r")

    def read(self, content: bytes, source: str) -> Model:
        """A model file."""
        return from_text(content.decode("utf-8", "surrogateescape"))

    def read_object(self, value: Any) -> Model | None:
        booster = getattr(value, "booster_", value)
        if type(booster).__module__.split(".")[0] != "lightgbm" or not hasattr(booster, "model_to_string"):
            return None
        return from_text(booster.model_to_string(num_iteration=booster.best_iteration or -1))

    def write(self, model: Model, suffix: str = "", *, objective: str = "lambdarank") -> Written:
        """The model's trees.

        Args:
            model: trees, or a combination of them.
            suffix: not needed.
            objective: the name that the file gives; a ranking objective leaves scores as they are.

        """
        ensemble = as_ensemble(model, self.name)
        trees = [ensemble.tree(k) for k in range(ensemble.n_trees)]
        thresholds = double_thresholds(trees, ensemble.encoding.shifts)
        blocks = [_block(k, tree, t) for k, (tree, t) in enumerate(zip(trees, thresholds, strict=True))]
        names = [re.sub(r"[\s=]", "_", name) for name in feature_labels(ensemble)]
        infos = [":".join(map(str, numbers)) or "none" for numbers in _numbers_of_categories(ensemble)]
        header = {
            "version": "v4", "num_class": 1, "num_tree_per_iteration": 1, "label_index": 0,
            "max_feature_idx": max(ensemble.n_features, 1) - 1, "objective": objective,
            "feature_names": " ".join(names or ["f0"]), "feature_infos": " ".join(infos or ["none"]),
            "tree_sizes": " ".join(str(len(block.encode())) for block in blocks),
        }  # fmt: skip
        lines = ["tree", *(f"{key}={value}" for key, value in header.items()), "", ""]
        end = ["end of trees", "", f"{NAMES}{_pandas_categorical(ensemble)}", ""]
        content = ("\n".join(lines) + "".join(blocks) + "\n".join(end)).encode()
        return Written(content, MISSING, _notes(ensemble, names), _differences(trees, thresholds, names))


class LightGBMJson(Format):
    """What `Booster.dump_model` returns, as JSON: read by Vespa, eland and Podium; LightGBM cannot read it back."""

    name = "lightgbm-json"
    title = "LightGBM's JSON dump"
    suffixes = ()
    carries = HELD

    def recognizes(self, content: bytes, suffix: str) -> bool:
        return content.lstrip()[:1] == b"{" and b'"tree_info"' in content and b'"tree_structure"' in content

    def read(self, content: bytes, source: str) -> Model:
        """A dump."""
        return from_dump(json.loads(content))

    def read_object(self, value: Any) -> Model | None:
        return from_dump(value) if isinstance(value, dict) and "tree_info" in value else None

    def write(self, model: Model, suffix: str = "", *, objective: str = "lambdarank") -> Written:
        """The model's trees, nested."""
        ensemble = as_ensemble(model, self.name)
        names = feature_labels(ensemble)
        trees = plain_trees(ensemble, self.name, named=range(ensemble.n_features))
        thresholds = double_thresholds(trees, ensemble.encoding.shifts)
        document = {
            "name": "tree", "version": "v4", "num_class": 1, "num_tree_per_iteration": 1, "label_index": 0,
            "max_feature_idx": ensemble.n_features - 1, "objective": objective, "average_output": False,
            "feature_names": names, "monotone_constraints": [],
            "feature_infos": {
                name: {"min_value": 0, "max_value": max(numbers, default=0), "values": numbers}
                for name, numbers in zip(names, _numbers_of_categories(ensemble), strict=True)
            },
            "tree_info": [
                {"tree_index": k, "num_leaves": tree.n_leaves, "num_cat": len(tree.categories), "shrinkage": 1,
                 "tree_structure": nested(tree, t)}
                for k, (tree, t) in enumerate(zip(trees, thresholds, strict=True))
            ],
            "feature_importances": {}, "pandas_categorical": json.loads(_pandas_categorical(ensemble)),
        }  # fmt: skip
        return Written(json.dumps(document, ensure_ascii=False).encode(), MISSING, _notes(ensemble, names))


def _joined(values: Any) -> str:
    """Numbers with all their digits; LightGBM reads `inf` as infinity."""
    return " ".join(map(str, values))


def _block(number: int, tree: Tree, thresholds: list[float]) -> str:
    name = f"tree {number}"
    require_whole_categories(tree, name)
    lines = [f"Tree={number}", f"num_leaves={tree.n_leaves}", f"num_cat={len(tree.categories)}"]
    if len(tree.feature):
        is_category = tree.category >= 0
        kinds = np.where(is_category, CATEGORICAL, NAN << 2 | DEFAULT_LEFT * tree.missing_left)
        shown = [c if c >= 0 else t for c, t in zip(tree.category.tolist(), thresholds, strict=True)]
        lines += [
            f"split_feature={_joined(tree.feature.tolist())}", f"split_gain={_joined(tree.gain.tolist())}",
            f"threshold={_joined(shown)}", f"decision_type={_joined(kinds.tolist())}",
            f"left_child={_joined(tree.left.tolist())}", f"right_child={_joined(tree.right.tolist())}",
        ]  # fmt: skip
    lines += [f"leaf_value={_joined(tree.leaf_value.tolist())}", f"leaf_count={_joined(tree.leaf_count.tolist())}"]
    if len(tree.feature):
        lines.append(f"internal_count={_joined(tree.count.tolist())}")
    if tree.categories:
        words = [_words(values) for values in tree.categories]
        bounds = np.cumsum([0, *map(len, words)])
        lines += [
            f"cat_boundaries={_joined(bounds.tolist())}",
            f"cat_threshold={_joined(word for one in words for word in one)}",
        ]
    return "\n".join([*lines, "is_linear=0", "shrinkage=1", "", "", ""])


def _words(values: Any) -> list[int]:
    """A set of whole numbers as bits of 32-bit words."""
    words = [0] * (int(max(values, default=0)) // 32 + 1)
    for value in values:
        words[int(value) // 32] |= 1 << int(value) % 32
    return words


def nested(tree: Tree, thresholds: Sequence[float]) -> dict[str, Any]:
    """A tree as nested dictionaries, as `dump_model` writes it."""

    def entry(key: int, content: SplitNode | Leaf) -> dict[str, Any]:
        if isinstance(content, Leaf):
            return {"leaf_index": ~key, "leaf_value": content.value, "leaf_count": content.count}
        is_category = content.categories is not None
        threshold = "||".join(str(int(c)) for c in content.categories or ()) if is_category else thresholds[key]
        return {
            "split_index": key, "split_feature": content.feature, "split_gain": content.gain, "threshold": threshold,
            "decision_type": "==" if is_category else "<=", "default_left": content.missing_left and not is_category,
            "missing_type": "None" if is_category else "NaN", "internal_count": content.count,
        }  # fmt: skip

    return document_of_tree(tree, entry, "left_child", "right_child")


def _numbers_of_categories(ensemble: Ensemble) -> list[list[int]]:
    """What the file says of each feature: the numbers of its categories, or nothing."""
    categories = ensemble.encoding.categories
    return [list(range(len(categories.get(k, ())))) for k in range(ensemble.n_features)]


def _pandas_categorical(ensemble: Ensemble) -> str:
    """The names of categories, by which LightGBM numbers the categorical columns of a frame."""
    names: Iterator[tuple[str, ...]] = (ensemble.encoding.categories[k] for k in sorted(ensemble.encoding.categories))
    return json.dumps([list(one) for one in names] or None, ensure_ascii=False)


def _differences(trees: Sequence[Tree], thresholds: Sequence[Sequence[float]], names: Sequence[str]) -> tuple[str, ...]:
    """Return the features with thresholds among the numbers that LightGBM reads as 0."""
    features = {
        feature for tree, values in zip(trees, thresholds, strict=True)
        for feature, category, value in zip(tree.feature.tolist(), tree.category.tolist(), values, strict=True)
        if category < 0 and abs(value) <= ZERO
    }  # fmt: skip
    if not features:
        return ()
    which = listed("feature", [names[k] for k in sorted(features)])
    return (f"LightGBM reads values within 1e-35 of 0 as 0: those of {which} may go the other way than in Podium",)


def _notes(ensemble: Ensemble, names: Sequence[str]) -> tuple[str, ...]:
    notes = []
    if ensemble.encoding.categories:
        notes.append(
            "LightGBM reads frames with the same categorical columns by name, and arrays by the numbers of categories"
        )
    if ensemble.feature_names is not None and list(names) != list(ensemble.feature_names):
        notes.append("blanks and = in names of features became underscores")
    return tuple(notes)
