"""LightGBM: the text model ("v4"), and the JSON dump that search engines read.

Sources: lightgbm-org/LightGBM, src/io/tree.cpp, include/LightGBM/tree.h, src/boosting/gbdt_model_text.cpp. A node goes
left where `x <= threshold`, in double; a missing value is NaN, 0 or nothing, by node.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from podium.errors import DataError
from podium.formats.base import Format, Written
from podium.formats.trees import (
    Leaf,
    Split,
    as_ensemble,
    below32,
    feature_labels,
    floor32,
    make_tree,
    node_of,
    require_whole_categories,
    root_of,
    scaled,
    unshifted,
)
from podium.models import Ensemble, Model
from podium.trees import Tree

CATEGORICAL, DEFAULT_LEFT = 1, 2  # bits of decision_type
NONE, ZERO, NAN = range(3)  # missing types, in bits 2 and 3
MOST_EXPANDED = 1 << 20  # nodes of a tree whose zeros go ways of their own
ZERO_THRESHOLD = float(np.float32(1e-35))  # LightGBM reads |x| up to it as 0 when it predicts
MISSING = "NaN goes to the side that was learnt for it, as in Podium"
CARRIES: dict[str, Any] = {
    "missing directions": "yes", "categories": "yes", "combined models": "by other means", "several outputs": "no",
    "linear models": "no", "nets": "no", "shifted features": "by other means",
}  # fmt: skip


class LightGBM(Format):
    """The text of `Booster.save_model`."""

    name = "lightgbm"
    title = "LightGBM's text model"
    suffixes = (".lgb",)
    carries = CARRIES

    def recognizes(self, content: bytes, suffix: str) -> bool:
        """It begins with the word `tree`."""
        return content[:5] in (b"tree\n", b"tree\r")

    def read(self, content: bytes, source: str) -> Model:
        """A model file."""
        return _from_text(content.decode("utf-8", "surrogateescape"))

    def read_object(self, value: Any) -> Model | None:
        """A `Booster`, or an estimator that holds one."""
        booster = getattr(value, "booster_", value)
        if type(booster).__module__.split(".")[0] != "lightgbm" or not hasattr(booster, "model_to_string"):
            return None
        return _from_text(booster.model_to_string(num_iteration=booster.best_iteration or -1))

    def write(self, model: Model, suffix: str = "", *, objective: str = "lambdarank") -> Written:
        """The model's trees.

        Args:
            model: trees, or a combination of them.
            suffix: not needed.
            objective: the name that the file gives; a ranking objective leaves scores as they are.

        """
        ensemble = as_ensemble(model, self.name)
        trees = [ensemble.tree(k) for k in range(ensemble.n_trees)]
        thresholds = unshifted(trees, dict(ensemble.encoding.shifts))
        blocks = [_block(k, tree, t) for k, (tree, t) in enumerate(zip(trees, thresholds, strict=True))]
        names = [re.sub(r"[\s=]", "_", name) for name in feature_labels(ensemble)]
        header = {
            "version": "v4", "num_class": 1, "num_tree_per_iteration": 1, "label_index": 0,
            "max_feature_idx": max(ensemble.n_features, 1) - 1, "objective": objective,
            "feature_names": " ".join(names or ["f0"]), "feature_infos": " ".join(_infos(ensemble) or ["none"]),
            "tree_sizes": " ".join(str(len(block.encode())) for block in blocks),
        }  # fmt: skip
        lines = ["tree", *(f"{key}={value}" for key, value in header.items()), "", ""]
        end = ["end of trees", "", f"pandas_categorical:{_pandas_categorical(ensemble)}", ""]
        return Written(("\n".join(lines) + "".join(blocks) + "\n".join(end)).encode(), MISSING, _notes(ensemble, names))


class LightGBMJson(Format):
    """What `Booster.dump_model` returns, as JSON: read by Vespa, eland and Podium; LightGBM cannot read it back."""

    name = "lightgbm-json"
    title = "LightGBM's JSON dump"
    suffixes = ()
    carries = CARRIES

    def recognizes(self, content: bytes, suffix: str) -> bool:
        """A JSON object with nested trees."""
        return content.lstrip()[:1] == b"{" and b'"tree_info"' in content and b'"tree_structure"' in content

    def read(self, content: bytes, source: str) -> Model:
        """A dump."""
        return _from_dump(json.loads(content))

    def read_object(self, value: Any) -> Model | None:
        """The dictionary itself."""
        return _from_dump(value) if isinstance(value, dict) and "tree_info" in value else None

    def write(self, model: Model, suffix: str = "", *, objective: str = "lambdarank") -> Written:
        """The model's trees, nested."""
        ensemble = as_ensemble(model, self.name)
        names = feature_labels(ensemble)
        trees = [ensemble.tree(k) for k in range(ensemble.n_trees)]
        thresholds = unshifted(trees, dict(ensemble.encoding.shifts))
        document = {
            "name": "tree", "version": "v4", "num_class": 1, "num_tree_per_iteration": 1, "label_index": 0,
            "max_feature_idx": ensemble.n_features - 1, "objective": objective, "average_output": False,
            "feature_names": names, "monotone_constraints": [],
            "feature_infos": {name: {"min_value": 0, "max_value": 0, "values": []} for name in names},
            "tree_info": [
                {"tree_index": k, "num_leaves": tree.n_leaves, "num_cat": len(tree.categories), "shrinkage": 1,
                 "tree_structure": nested(tree, t)}
                for k, (tree, t) in enumerate(zip(trees, thresholds, strict=True))
            ],
            "feature_importances": {}, "pandas_categorical": json.loads(_pandas_categorical(ensemble)),
        }  # fmt: skip
        return Written(json.dumps(document, ensure_ascii=False).encode(), MISSING, _notes(ensemble, names))


# --- reading


def _from_text(text: str) -> Ensemble:
    """The model of LightGBM's text."""
    header_text, _, rest = text.partition("\nTree=")
    header = _entries(header_text.splitlines())
    if "max_feature_idx" not in header:
        raise DataError("there is no max_feature_idx: this is no LightGBM model")
    per_round = int(header.get("num_tree_per_iteration", header.get("num_class", "1")))
    if per_round != 1:
        raise DataError(f"the model has {per_round} outputs for each document, and a ranker has one")
    if "[linear_tree: 1]" in text:
        raise DataError("trees with linear functions in their leaves (linear_tree) are not trees of constants")
    body = rest.partition("\nend of trees")[0]
    blocks = [block.splitlines()[1:] for block in body.split("\nTree=")] if rest else []
    trees = [_tree_of_block(_entries(lines), k) for k, lines in enumerate(blocks)]
    n_features = int(header["max_feature_idx"]) + 1
    names = header.get("feature_names", "").split(" ")
    averaged = "average_output" in header_text.splitlines()
    if averaged and trees:
        trees = [scaled(tree, 1.0 / len(trees)) for tree in trees]
    return _ensemble(trees, n_features, names, header.get("objective", ""))


def _entries(lines: Sequence[str]) -> dict[str, str]:
    return {key: value for key, equals, value in (line.strip().partition("=") for line in lines) if equals}


def _ensemble(trees: list[Tree], n_features: int, names: Sequence[str], objective: str) -> Ensemble:
    """The trees as a model; names that LightGBM made up itself are none."""
    made_up = list(names) == [f"Column_{k}" for k in range(n_features)]
    known = tuple(names) if len(names) == n_features and len(set(names)) == n_features and not made_up else None
    return Ensemble.of_trees(
        trees, n_features, feature_names=known, info={"imported": "lightgbm", "objective": objective}
    )


def _numbers(entries: Mapping[str, str], key: str, n: int, kind: type, default: float | None = None) -> list[Any]:
    """An array of a tree."""
    if key not in entries:
        if default is None:
            raise DataError(f"a tree has no {key}")
        return [kind(default)] * n
    values = [kind(word) for word in entries[key].split()]
    if len(values) != n:
        raise DataError(f"{key} has {len(values)} entries where {n} are expected")
    return values


def _tree_of_block(entries: Mapping[str, str], number: int) -> Tree:
    """A tree of the text."""
    name = f"tree {number}"
    if entries.get("is_linear", "0") == "1":
        raise DataError(f"{name} has linear functions in its leaves, which are not trees of constants")
    n_leaves = int(entries["num_leaves"])
    if not 1 <= n_leaves <= 1 << 20:
        raise DataError(f"{name} has {n_leaves} leaves")
    values = _numbers(entries, "leaf_value", n_leaves, float)
    counts = _numbers(entries, "leaf_count", n_leaves, int, 0)
    n = n_leaves - 1
    if n == 0:
        return make_tree(-1, lambda _: Leaf(values[0], counts[0]), name)
    features, thresholds = _numbers(entries, "split_feature", n, int), _numbers(entries, "threshold", n, float)
    left, right = _numbers(entries, "left_child", n, int), _numbers(entries, "right_child", n, int)
    kinds = _numbers(entries, "decision_type", n, int, 0)
    gains, node_counts = _numbers(entries, "split_gain", n, float, 0), _numbers(entries, "internal_count", n, int, 0)
    bounds = [int(word) for word in entries.get("cat_boundaries", "").split()]
    words = [int(word) for word in entries.get("cat_threshold", "").split()]

    def node(key: Any) -> Split | Leaf:
        if isinstance(key, tuple):
            return _around_zero(key)
        if key < 0:
            _require_index(~key, n_leaves, f"{name}: a leaf")
            return Leaf(values[~key], counts[~key])
        _require_index(key, n, f"{name}: a node")
        common = (features[key], gains[key], node_counts[key])
        if kinds[key] & CATEGORICAL:
            entry = int(thresholds[key])
            _require_index(entry, len(bounds) - 1, f"{name}: an entry of cat_boundaries")
            categories = _bits(words[bounds[entry] : bounds[entry + 1]])
            return Split(common[0], 0.0, False, left[key], right[key], categories, *common[1:])
        return _numeric(common, thresholds[key], kinds[key], left[key], right[key])

    has_zeros = any(kind >> 2 & 3 == ZERO for kind in kinds)  # such a node may stand for three
    return make_tree(0, node, name, most_nodes=MOST_EXPANDED if has_zeros else None)


def _require_index(index: int, length: int, what: str) -> None:
    if not 0 <= index < length:
        raise DataError(f"{what} has the number {index}, and there are {max(length, 0)}")


def _numeric(common: tuple[int, float, int], threshold: float, kind: int, left: Any, right: Any) -> Split:
    """A numeric node: what NaN does depends on the missing type."""
    feature, gain, count = common
    missing, default_left = kind >> 2 & 3, bool(kind & DEFAULT_LEFT)
    zero_left = threshold >= 0.0  # where `0 <= threshold` sends a zero
    if abs(threshold) <= ZERO_THRESHOLD:  # all that LightGBM reads as 0 goes the same way
        threshold = ZERO_THRESHOLD if zero_left else float(below32(-ZERO_THRESHOLD))
    split = Split(feature, float(floor32(threshold)), default_left, left, right, None, gain, count)
    if missing == NONE:  # NaN becomes 0
        return split._replace(missing_left=zero_left)
    if missing == NAN or default_left == zero_left:
        return split
    # Zeros, and NaN with them, go the other way than their neighbours.
    negative, positive = float(below32(-ZERO_THRESHOLD)), float(floor32(ZERO_THRESHOLD))
    if default_left:  # threshold < 0
        if threshold >= -ZERO_THRESHOLD:
            return split._replace(threshold=positive)
        return split._replace(threshold=negative, missing_left=False, left=("plain", split), right=("zeros", split))
    if threshold <= ZERO_THRESHOLD:
        return split._replace(threshold=negative)
    return split._replace(threshold=negative, right=("zeros", split))


def _around_zero(key: tuple[str, Split]) -> Split:
    """The tests behind the first one of a node whose zeros go another way than their neighbours.

    The first has sent what is below all zeros left. `zeros` is reached by the others and NaN; `plain` is the node's
    comparison, for values that are no zeros.
    """
    kind, split = key
    positive = float(floor32(ZERO_THRESHOLD))
    if kind == "plain":
        return split
    if split.missing_left:  # zeros go left, positive values right
        return split._replace(threshold=positive)
    return split._replace(threshold=positive, missing_left=True, left=split.right, right=("plain", split))


def _bits(words: Sequence[int]) -> list[int]:
    """The numbers of the bits that are set."""
    return [32 * k + bit for k, word in enumerate(words) for bit in range(32) if word >> bit & 1]


def _from_dump(document: Mapping[str, Any]) -> Ensemble:
    """The model of a JSON dump."""
    if int(document.get("num_tree_per_iteration", 1)) != 1:
        raise DataError("the model has several outputs for each document, and a ranker has one")
    trees = [_tree_of_dump(entry["tree_structure"], k) for k, entry in enumerate(document["tree_info"])]
    if document.get("average_output") and trees:
        trees = [scaled(tree, 1.0 / len(trees)) for tree in trees]
    n_features = int(document["max_feature_idx"]) + 1
    return _ensemble(trees, n_features, document.get("feature_names", ()), str(document.get("objective", "")))


def _tree_of_dump(structure: Mapping[str, Any], number: int) -> Tree:
    """A nested tree. Its nodes are numbered as they are met, so that nothing depends on numbers in the file."""
    nodes: list[Mapping[str, Any]] = [structure]

    def node(key: Any) -> Split | Leaf:
        if isinstance(key, tuple):
            return _around_zero(key)
        entry = nodes[key]
        if "leaf_value" in entry:
            if "leaf_const" in entry or "leaf_coeff" in entry:
                raise DataError(f"tree {number} has linear functions in its leaves, which are not trees of constants")
            return Leaf(float(entry["leaf_value"]), int(entry.get("leaf_count", 0)))
        nodes.extend((entry["left_child"], entry["right_child"]))
        left, right = len(nodes) - 2, len(nodes) - 1
        common = int(entry["split_feature"]), float(entry.get("split_gain", 0)), int(entry.get("internal_count", 0))
        if entry["decision_type"] == "==":
            categories = [float(word) for word in str(entry["threshold"]).split("||") if word]
            return Split(common[0], 0.0, False, left, right, categories, *common[1:])
        missing = {"None": NONE, "Zero": ZERO, "NaN": NAN}[entry.get("missing_type", "None")]
        kind = missing << 2 | DEFAULT_LEFT * bool(entry["default_left"])
        return _numeric(common, float(entry["threshold"]), kind, left, right)

    return make_tree(0, node, f"tree {number}", most_nodes=MOST_EXPANDED)


# --- writing


def _joined(values: Any) -> str:
    return " ".join(map(_number, values))


def _number(value: Any) -> str:
    """A number with all its digits; LightGBM reads inf as a number."""
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else "1e300" if value > 0 else "-1e300"
    return str(value)


def _block(number: int, tree: Tree, thresholds: list[float]) -> str:
    """The text of a tree, with the empty lines behind it."""
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
    """A tree as nested dictionaries, as `dump_model` has it; without recursion, for deep trees."""
    node = node_of(tree)
    root: dict[str, Any] = {}
    waiting: list[tuple[Any, dict[str, Any]]] = [(root_of(tree), root)]
    while waiting:
        key, entry = waiting.pop()
        content = node(key)
        if isinstance(content, Leaf):
            entry |= {"leaf_index": ~key, "leaf_value": content.value, "leaf_count": content.count}
            continue
        is_category = content.categories is not None
        threshold = "||".join(str(int(c)) for c in content.categories or ()) if is_category else thresholds[key]
        entry |= {
            "split_index": key, "split_feature": content.feature, "split_gain": content.gain, "threshold": threshold,
            "decision_type": "==" if is_category else "<=", "default_left": content.missing_left and not is_category,
            "missing_type": "None" if is_category else "NaN", "internal_count": content.count,
            "left_child": {}, "right_child": {},
        }  # fmt: skip
        waiting += [(content.left, entry["left_child"]), (content.right, entry["right_child"])]
    return root


def _infos(ensemble: Ensemble) -> list[str]:
    """What the file says of each feature: the categories, or that nothing is known."""
    return [
        ":".join(map(str, range(len(ensemble.encoding.categories[k])))) or "none"
        if k in ensemble.encoding.categories else "none"
        for k in range(ensemble.n_features)
    ]  # fmt: skip


def _pandas_categorical(ensemble: Ensemble) -> str:
    """The names of categories, by which LightGBM numbers the categorical columns of a frame."""
    names: Iterator[tuple[str, ...]] = (ensemble.encoding.categories[k] for k in sorted(ensemble.encoding.categories))
    return json.dumps([list(one) for one in names] or None, ensure_ascii=False)


def _notes(ensemble: Ensemble, names: Sequence[str]) -> tuple[str, ...]:
    notes = []
    if ensemble.encoding.categories:
        notes.append("categories: frames with the same categorical columns; else the numbers that Podium gave them")
    if ensemble.feature_names is not None and list(names) != list(ensemble.feature_names):
        notes.append("blanks and = in names of features became underscores")
    return tuple(notes)
