"""LightGBM: the text model ("v4"), and the JSON dump that search engines read.

Sources: lightgbm-org/LightGBM, src/io/tree.cpp, include/LightGBM/tree.h (decisions), src/boosting/gbdt_model_text.cpp,
python-package/lightgbm/basic.py (categories). A row goes left if `x <= threshold`, compared as doubles. Each node
defines whether NaN, 0 or no value is missing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from podium.data.encoding import Encoding, listed
from podium.errors import DataError
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
    MAX_COPIES,
    Leaf,
    SplitNode,
    as_ensemble,
    averaged,
    below32,
    document_of_tree,
    double_thresholds,
    feature_labels,
    finite_trees,
    floor32,
    make_tree,
    require_index,
    require_whole_categories,
)
from podium.models import Ensemble, Model
from podium.trees import Tree

CARRIED = CARRIES | {"categories": "yes", "shifted features": "by other means"}
CATEGORICAL, DEFAULT_LEFT = 1, 2  # bits of decision_type
NONE, ZERO, NAN = range(3)  # missing types, in bits 2 and 3
ZERO_THRESHOLD = float(np.float32(1e-35))  # LightGBM reads |x| up to it as 0 when it predicts
LINEAR_LEAVES = "its leaves hold linear functions (linear_tree), but Podium's hold constants"
NAMES = "pandas_categorical:"  # the start of the line with category names


class LightGBM(Format):
    """The text of `Booster.save_model`."""

    name = "lightgbm"
    title = "LightGBM's text model"
    suffixes = (".lgb",)
    carries = CARRIED

    def recognizes(self, content: bytes, suffix: str) -> bool:
        return content[:5] in (b"tree\n", b"tree\r")

    def read(self, content: bytes) -> Model:
        return from_text(content.decode("utf-8", "surrogateescape"))

    def read_object(self, value: Any) -> Model | None:
        booster = getattr(value, "booster_", value)
        if type(booster).__module__.split(".")[0] != "lightgbm" or not hasattr(booster, "model_to_string"):
            return None
        return from_text(booster.model_to_string(num_iteration=booster.best_iteration or -1))

    def write(self, model: Model, suffix: str = "", *, objective: str = "lambdarank") -> Written:
        """Write the trees; `objective` is named in the file, and ranking objectives do not transform scores."""
        ensemble = as_ensemble(model, self.name)
        trees = [ensemble.tree(k) for k in range(ensemble.n_trees)]
        thresholds = double_thresholds(trees, ensemble.encoding.shifts)
        blocks = [_block(k, tree, t) for k, (tree, t) in enumerate(zip(trees, thresholds, strict=True))]
        names = [re.sub(r"[\s=]", "_", name) for name in feature_labels(ensemble)]
        infos = [":".join(map(str, numbers)) or "none" for numbers in _category_numbers(ensemble)]
        header = {
            "version": "v4", "num_class": 1, "num_tree_per_iteration": 1, "label_index": 0,
            "max_feature_idx": max(ensemble.n_features, 1) - 1, "objective": objective,
            "feature_names": " ".join(names or ["f0"]), "feature_infos": " ".join(infos or ["none"]),
            "tree_sizes": " ".join(str(len(block.encode())) for block in blocks),
        }  # fmt: skip
        lines = ["tree", *(f"{key}={value}" for key, value in header.items()), "", ""]
        end = ["end of trees", "", f"{NAMES}{json.dumps(_category_names(ensemble), ensure_ascii=False)}", ""]
        content = ("\n".join(lines) + "".join(blocks) + "\n".join(end)).encode()
        return Written(content, LEARNT_SIDE, _notes(ensemble, names), _differences(trees, thresholds, names))


class LightGBMJson(Format):
    """What `Booster.dump_model` returns, as JSON: read by Vespa, eland and Podium; LightGBM cannot read it back."""

    name = "lightgbm-json"
    title = "LightGBM's JSON dump"
    carries = CARRIED

    def recognizes(self, content: bytes, suffix: str) -> bool:
        return content.lstrip()[:1] == b"{" and b'"tree_info"' in content and b'"tree_structure"' in content

    def read(self, content: bytes) -> Model:
        return from_dump(json.loads(content))

    def read_object(self, value: Any) -> Model | None:
        return from_dump(value) if isinstance(value, dict) and "tree_info" in value else None

    def write(self, model: Model, suffix: str = "", *, objective: str = "lambdarank") -> Written:
        """Write the trees as nested dictionaries."""
        ensemble = as_ensemble(model, self.name)
        names = feature_labels(ensemble)
        trees = finite_trees(ensemble, named=range(ensemble.n_features))
        thresholds = double_thresholds(trees, ensemble.encoding.shifts)
        document = {
            "name": "tree", "version": "v4", "num_class": 1, "num_tree_per_iteration": 1, "label_index": 0,
            "max_feature_idx": ensemble.n_features - 1, "objective": objective, "average_output": False,
            "feature_names": names, "monotone_constraints": [],
            "feature_infos": {
                name: {"min_value": 0, "max_value": max(numbers, default=0), "values": numbers}
                for name, numbers in zip(names, _category_numbers(ensemble), strict=True)
            },
            "tree_info": dump(trees, thresholds),
            "feature_importances": {}, "pandas_categorical": _category_names(ensemble),
        }  # fmt: skip
        return Written(json_content(document), LEARNT_SIDE, _notes(ensemble, names))


# --- writing


def _joined(values: Any) -> str:
    """Return numbers as text with all digits; LightGBM reads `inf` as infinity."""
    return " ".join(map(str, values))


def _block(number: int, tree: Tree, thresholds: list[float]) -> str:
    name = f"tree {number}"
    require_whole_categories(tree, name)
    lines = [f"Tree={number}", f"num_leaves={tree.n_leaves}", f"num_cat={len(tree.categories)}"]
    if len(tree.feature):
        is_category = tree.category >= 0
        kinds = np.where(is_category, CATEGORICAL, NAN << 2 | DEFAULT_LEFT * tree.missing_left)
        numbers = [c if c >= 0 else t for c, t in zip(tree.category.tolist(), thresholds, strict=True)]
        lines += [
            f"split_feature={_joined(tree.feature.tolist())}", f"split_gain={_joined(tree.gain.tolist())}",
            f"threshold={_joined(numbers)}", f"decision_type={_joined(kinds.tolist())}",
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
            f"cat_threshold={_joined(chain.from_iterable(words))}",
        ]
    return "\n".join([*lines, "is_linear=0", "shrinkage=1", "", "", ""])


def _words(values: Any) -> list[int]:
    """Return a set of whole numbers as the bits of 32-bit words."""
    words = [0] * (int(max(values, default=0)) // 32 + 1)
    for value in values:
        words[int(value) // 32] |= 1 << int(value) % 32
    return words


def dump(trees: Sequence[Tree], thresholds: Sequence[Sequence[float]]) -> list[dict[str, Any]]:
    """Return trees in the form of `dump_model`."""
    return [
        {
            "tree_index": k, "num_leaves": tree.n_leaves, "num_cat": len(tree.categories), "shrinkage": 1,
            "tree_structure": _nested(tree, tree_thresholds),
        }
        for k, (tree, tree_thresholds) in enumerate(zip(trees, thresholds, strict=True))
    ]  # fmt: skip


def _nested(tree: Tree, thresholds: Sequence[float]) -> dict[str, Any]:
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


def _category_numbers(ensemble: Ensemble) -> list[list[int]]:
    """Return the category numbers of each feature; empty for a feature without categories."""
    categories = ensemble.encoding.categories
    return [list(range(len(categories.get(k, ())))) for k in range(ensemble.n_features)]


def _category_names(ensemble: Ensemble) -> list[list[str]] | None:
    """Return the category names of each categorical column, which LightGBM needs to number those of a frame."""
    return [list(names) for _, names in sorted(ensemble.encoding.categories.items())] or None


def _differences(trees: Sequence[Tree], thresholds: Sequence[Sequence[float]], names: Sequence[str]) -> tuple[str, ...]:
    """Return the features with thresholds among the numbers that LightGBM reads as 0."""
    features = {
        feature for tree, values in zip(trees, thresholds, strict=True)
        for feature, category, value in zip(tree.feature.tolist(), tree.category.tolist(), values, strict=True)
        if category < 0 and abs(value) <= ZERO_THRESHOLD
    }  # fmt: skip
    if not features:
        return ()
    which = listed("feature", [names[k] for k in sorted(features)])
    return (f"LightGBM reads values within 1e-35 of 0 as 0: those of {which} may go to the other side than in Podium",)


def _notes(ensemble: Ensemble, names: Sequence[str]) -> tuple[str, ...]:
    notes = []
    if ensemble.encoding.categories:
        notes.append(
            "LightGBM takes frames with the same categorical columns, or arrays with the numbers of the categories"
        )
    if ensemble.feature_names is not None and list(names) != list(ensemble.feature_names):
        notes.append("spaces and = in feature names became underscores")
    return tuple(notes)


# --- reading


def from_text(text: str) -> Ensemble:
    """Return the model of LightGBM's text."""
    header_text, _, rest = text.partition("\nTree=")
    header = _entries(header_text.splitlines())
    if "max_feature_idx" not in header:
        raise DataError("there is no max_feature_idx: this is not a LightGBM model")
    require_one_output(header.get("num_tree_per_iteration", header.get("num_class", "1")))
    if "[linear_tree: 1]" in text:
        raise DataError(LINEAR_LEAVES)
    body = rest.partition("\nend of trees")[0]
    blocks = [block.splitlines()[1:] for block in body.split("\nTree=")] if rest else []
    trees = [_tree_of_block(_entries(lines), k) for k, lines in enumerate(blocks)]
    n_features = whole_number(header["max_feature_idx"], "max_feature_idx") + 1
    names = header.get("feature_names", "").split(" ")
    if "average_output" in header_text.splitlines():
        trees = averaged(trees)
    return _ensemble(trees, n_features, names, header.get("objective", ""), _encoding_of_text(header, rest, n_features))


def _encoding_of_text(header: Mapping[str, str], rest: str, n_features: int) -> Encoding:
    """Return the encoding with the category names from the last line of a file and their numbers from its header."""
    _, has_names, line = rest.rpartition(f"\n{NAMES}")
    numbers = {
        k: whole_numbers(info.split(":"), "feature_infos")
        for k, info in enumerate(header.get("feature_infos", "").split(" ")) if info[:1] not in ("", "[", "n")
    }  # fmt: skip
    return _encoding(json.loads(line.split("\n")[0]) if has_names else None, numbers, n_features)


def _encoding(lists: Sequence[Sequence[Any]] | None, numbers: Mapping[int, Sequence[int]], n_features: int) -> Encoding:
    """Return the encoding with the category names, or without if it is uncertain to which features they belong.

    LightGBM stores the categories of all categorical columns of a frame, in the order of the columns, but not which
    columns these are. They are the features with sets of values, unless a column was ordered, constant, or not treated
    as categorical.

    `lists` holds the categories of each column, `numbers` those of each feature with a set of values; −1 is missing.
    """
    if not lists:
        return Encoding()
    is_certain = len(lists) == len(numbers) and all(
        max(present, default=-1) < len(names) for names, present in zip(lists, numbers.values(), strict=True)
    )
    if not is_certain:
        reason = f"the file has names for {len(lists)} columns, but {len(numbers)} features with categories"
        return without_names("LightGBM", reason)
    return encoding_of(dict(zip(numbers, lists, strict=True)), n_features, "LightGBM")


def _entries(lines: Sequence[str]) -> dict[str, str]:
    return {key: value for key, equals, value in (line.strip().partition("=") for line in lines) if equals}


def _ensemble(trees: list[Tree], n_features: int, names: Sequence[str], objective: str, encoding: Encoding) -> Ensemble:
    """Return the trees as a model; drop names that LightGBM generated."""
    are_generated = all(name == f"Column_{k}" for k, name in enumerate(names))
    feature_names = None if are_generated else distinct_names(names, n_features)
    info = {"imported": "lightgbm", "objective": objective}
    return Ensemble.of_trees(trees, n_features, feature_names=feature_names, encoding=encoding, info=info)


def _numbers(entries: Mapping[str, str], key: str, n: int, default: float | None = None) -> list[float]:
    if key not in entries:
        if default is None:
            raise DataError(f"a tree has no {key}")
        return [default] * n
    values = [float(word) for word in entries[key].split()]
    if len(values) != n:
        raise DataError(f"{key} has {len(values)} entries, but expected {n}")
    return values


def _integers(entries: Mapping[str, str], key: str, n: int, default: int | None = None) -> list[int]:
    return whole_numbers(_numbers(entries, key, n, default), key)


def _tree_of_block(entries: Mapping[str, str], number: int) -> Tree:
    name = f"tree {number}"
    if entries.get("is_linear", "0") == "1":
        raise DataError(f"{name}: {LINEAR_LEAVES}")
    n_leaves = whole_number(entries["num_leaves"], f"{name}: num_leaves")
    if not 1 <= n_leaves <= 1 << 20:
        raise DataError(f"{name} has {n_leaves} leaves")
    values = _numbers(entries, "leaf_value", n_leaves)
    counts = _integers(entries, "leaf_count", n_leaves, 0)
    n = n_leaves - 1
    if n == 0:
        return make_tree(-1, lambda _: Leaf(values[0], counts[0]), name)
    features, thresholds = _integers(entries, "split_feature", n), _numbers(entries, "threshold", n)
    left, right = _integers(entries, "left_child", n), _integers(entries, "right_child", n)
    kinds = _integers(entries, "decision_type", n, 0)
    gains, node_counts = _numbers(entries, "split_gain", n, 0), _integers(entries, "internal_count", n, 0)
    bounds = whole_numbers(entries.get("cat_boundaries", "").split(), f"{name}: cat_boundaries")
    words = whole_numbers(entries.get("cat_threshold", "").split(), f"{name}: cat_threshold")
    categorical = [threshold for kind, threshold in zip(kinds, thresholds, strict=True) if kind & CATEGORICAL]
    sets = whole_numbers(categorical, f"{name}: the threshold of a categorical node")
    if sorted(bounds) != bounds or len(set(sets)) < len(sets):
        raise DataError(f"{name}: the sets of its categories overlap")

    def node(key: int) -> SplitNode | Leaf:
        if key < 0:
            require_index(~key, n_leaves, f"{name}: a leaf")
            return Leaf(values[~key], counts[~key])
        require_index(key, n, f"{name}: a node")
        split = SplitNode(features[key], 0.0, False, left[key], right[key], None, gains[key], node_counts[key])
        if kinds[key] & CATEGORICAL:
            entry = whole_number(thresholds[key], f"{name}: the threshold of a categorical node")
            require_index(entry, len(bounds) - 1, f"{name}: an entry of cat_boundaries")
            bits = enumerate(words[bounds[entry] : bounds[entry + 1]])
            categories = [32 * k + bit for k, word in bits for bit in range(32) if word >> bit & 1]
            return split._replace(categories=categories)
        return _numeric(split, thresholds[key], kinds[key])

    has_zeros = any(kind >> 2 & 3 == ZERO for kind in kinds)  # one such node may become several
    return make_tree(0, node, name, max_nodes=MAX_COPIES * (n + n_leaves) if has_zeros else None)


def _numeric(split: SplitNode, threshold: float, kind: int) -> SplitNode:
    """Return a split with its threshold; where NaN goes depends on the missing type."""
    missing, default_left = kind >> 2 & 3, bool(kind & DEFAULT_LEFT)
    zero_left = threshold >= 0.0  # where `0 <= threshold` sends a zero
    if abs(threshold) <= ZERO_THRESHOLD:  # all values that LightGBM reads as 0 go the same way
        threshold = ZERO_THRESHOLD if zero_left else float(below32(-ZERO_THRESHOLD))
    split = split._replace(threshold=float(floor32(threshold)), missing_left=default_left)
    if missing == NONE:  # NaN becomes 0
        return split._replace(missing_left=zero_left)
    if missing == NAN or default_left == zero_left:
        return split
    return _around_zeros(split, threshold, split.left if default_left else split.right)


def _around_zeros(split: SplitNode, threshold: float, zeros: Any) -> SplitNode:
    """Return a split that sends zeros, and NaN with them, to another child than their neighbours.

    Two tests separate zeros from the values below and above them. Where these may go either way, the child is the split
    itself. If zeros go with the values above them, one test is enough.
    """
    below, above = float(below32(-ZERO_THRESHOLD)), float(floor32(ZERO_THRESHOLD))
    negative = split.left if threshold >= 0 else split
    positive = split.right if threshold <= ZERO_THRESHOLD else split
    others = split._replace(threshold=above, missing_left=True, left=zeros, right=positive)
    right = zeros if positive is zeros else others
    return split._replace(threshold=below, missing_left=False, left=negative, right=right)


def from_dump(document: Mapping[str, Any]) -> Ensemble:
    """Return the model of a JSON dump."""
    require_one_output(document.get("num_tree_per_iteration", 1))
    trees = [_tree_of_dump(entry["tree_structure"], k) for k, entry in enumerate(document["tree_info"])]
    if truth_value(document.get("average_output", False), "average_output"):
        trees = averaged(trees)
    n_features = whole_number(document["max_feature_idx"], "max_feature_idx") + 1
    names = [str(name) for name in document.get("feature_names", ())]
    infos = document.get("feature_infos")
    if infos is None:  # before version 4
        numbers = _categories_in_splits(trees)
    else:
        values = {
            k: whole_numbers(infos[name]["values"], f"feature_infos of {name!r:.40}")
            for k, name in enumerate(names) if name in infos
        }  # fmt: skip
        numbers = {k: present for k, present in values.items() if present}
    encoding = _encoding(document.get("pandas_categorical"), numbers, n_features)
    return _ensemble(trees, n_features, names, str(document.get("objective", "")), encoding)


def _categories_in_splits(trees: Sequence[Tree]) -> dict[int, list[int]]:
    """Return the category numbers that splits list, by feature in ascending order."""
    numbers: dict[int, list[int]] = {}
    for tree in trees:
        for feature, category in zip(tree.feature.tolist(), tree.category.tolist(), strict=True):
            if category >= 0:
                numbers.setdefault(feature, []).extend(tree.categories[category].astype(int).tolist())
    return dict(sorted(numbers.items()))


def _tree_of_dump(structure: Mapping[str, Any], number: int) -> Tree:
    n_nodes, waiting = 0, [structure]
    while waiting:
        entry, n_nodes = waiting.pop(), n_nodes + 1
        if "leaf_value" not in entry:
            waiting += [entry["left_child"], entry["right_child"]]

    def node(entry: Any) -> SplitNode | Leaf:
        if "leaf_value" in entry:
            if "leaf_const" in entry or "leaf_coeff" in entry:
                raise DataError(f"tree {number}: {LINEAR_LEAVES}")
            return Leaf(float(entry["leaf_value"]), whole_number(entry.get("leaf_count", 0), "leaf_count"))
        feature = whole_number(entry["split_feature"], f"tree {number}: split_feature")
        count = whole_number(entry.get("internal_count", 0), f"tree {number}: internal_count")
        gain = float(entry.get("split_gain", 0))
        split = SplitNode(feature, 0.0, False, entry["left_child"], entry["right_child"], None, gain, count)
        if entry["decision_type"] == "==":
            categories = [float(word) for word in str(entry["threshold"]).split("||") if word]
            return split._replace(categories=categories)
        missing = {"None": NONE, "Zero": ZERO, "NaN": NAN}[entry.get("missing_type", "None")]
        kind = missing << 2 | DEFAULT_LEFT * truth_value(entry["default_left"], f"tree {number}: default_left")
        return _numeric(split, float(entry["threshold"]), kind)

    return make_tree(structure, node, f"tree {number}", max_nodes=MAX_COPIES * n_nodes)
