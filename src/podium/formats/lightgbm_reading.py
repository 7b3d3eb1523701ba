"""Reading LightGBM's models: the text and the JSON dump.

Sources: lightgbm-org/LightGBM, include/LightGBM/tree.h (decisions), python-package/lightgbm/basic.py (categories).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from podium.data.encoding import Encoding
from podium.errors import DataError
from podium.formats.base import encoding_of, without_names
from podium.formats.numbers import truth_value, whole_number, whole_numbers
from podium.formats.trees import (
    MAX_COPIES,
    Leaf,
    SplitNode,
    below32,
    floor32,
    make_tree,
    most_copies,
    require_index,
    scaled,
)
from podium.models import Ensemble
from podium.trees import Tree

CATEGORICAL, DEFAULT_LEFT = 1, 2  # bits of decision_type
NONE, ZERO, NAN = range(3)  # missing types, in bits 2 and 3
ZERO_THRESHOLD = float(np.float32(1e-35))  # LightGBM reads |x| up to it as 0 when it predicts
NAMES = "pandas_categorical:"  # begins the line with the names of categories


def from_text(text: str) -> Ensemble:
    """The model of LightGBM's text."""
    header_text, _, rest = text.partition("\nTree=")
    header = _entries(header_text.splitlines())
    if "max_feature_idx" not in header:
        raise DataError("there is no max_feature_idx: this is not a LightGBM model")
    per_round = whole_number(
        header.get("num_tree_per_iteration", header.get("num_class", "1")), "num_tree_per_iteration"
    )
    if per_round != 1:
        raise DataError(f"the model has {per_round} outputs for each document, and a ranker has one")
    if "[linear_tree: 1]" in text:
        raise DataError("trees with linear functions in their leaves (linear_tree) are not trees of constants")
    body = rest.partition("\nend of trees")[0]
    blocks = [block.splitlines()[1:] for block in body.split("\nTree=")] if rest else []
    trees = [_tree_of_block(_entries(lines), k) for k, lines in enumerate(blocks)]
    n_features = whole_number(header["max_feature_idx"], "max_feature_idx") + 1
    names = header.get("feature_names", "").split(" ")
    averaged = "average_output" in header_text.splitlines()
    if averaged and trees:
        trees = [scaled(tree, 1.0 / len(trees)) for tree in trees]
    return _ensemble(trees, n_features, names, header.get("objective", ""), _encoding_of_text(header, rest, n_features))


def _encoding_of_text(header: Mapping[str, str], rest: str, n_features: int) -> Encoding:
    """The names of categories: the line at the end has them, what the header says of each feature the numbers."""
    _, found, line = rest.rpartition(f"\n{NAMES}")
    numbers = {
        k: whole_numbers(info.split(":"), "feature_infos")
        for k, info in enumerate(header.get("feature_infos", "").split(" ")) if info[:1] not in ("", "[", "n")
    }  # fmt: skip
    return _encoding(json.loads(line.split("\n")[0]) if found else None, numbers, n_features)


def _encoding(lists: Sequence[Sequence[Any]] | None, numbers: Mapping[int, Sequence[int]], n_features: int) -> Encoding:
    """The names of categories, where they belong to features for certain.

    LightGBM keeps the categories of all categorical columns of a frame, in the order of the columns, but not which
    columns those are. They are the features with sets of values, unless some column was ordered, constant, or not
    treated as categorical.

    `lists` has the categories of each column, `numbers` those of each feature that has a set of values; −1 is missing.
    """
    if not lists:
        return Encoding()
    fits = len(lists) == len(numbers) and all(
        max(present, default=-1) < len(names) for names, present in zip(lists, numbers.values(), strict=True)
    )
    if not fits:
        return without_names(
            "LightGBM",
            f"the file has the names of {len(lists)} columns, and {len(numbers)} features that they may belong to",
        )
    return encoding_of(dict(zip(numbers, lists, strict=True)), n_features, "LightGBM")


def _entries(lines: Sequence[str]) -> dict[str, str]:
    return {key: value for key, equals, value in (line.strip().partition("=") for line in lines) if equals}


def _ensemble(trees: list[Tree], n_features: int, names: Sequence[str], objective: str, encoding: Encoding) -> Ensemble:
    """The trees as a model; names that LightGBM made up itself are none."""
    made_up = all(name == f"Column_{k}" for k, name in enumerate(names))
    known = tuple(names) if len(names) == n_features and len(set(names)) == n_features and not made_up else None
    info = {"imported": "lightgbm", "objective": objective}
    return Ensemble.of_trees(trees, n_features, feature_names=known, encoding=encoding, info=info)


def _numbers(entries: Mapping[str, str], key: str, n: int, default: float | None = None) -> list[float]:
    if key not in entries:
        if default is None:
            raise DataError(f"a tree has no {key}")
        return [default] * n
    values = [float(word) for word in entries[key].split()]
    if len(values) != n:
        raise DataError(f"{key} has {len(values)} entries where {n} are expected")
    return values


def _integers(entries: Mapping[str, str], key: str, n: int, default: int | None = None) -> list[int]:
    """An array of whole numbers."""
    return whole_numbers(_numbers(entries, key, n, default), key)


def _tree_of_block(entries: Mapping[str, str], number: int) -> Tree:
    name = f"tree {number}"
    if entries.get("is_linear", "0") == "1":
        raise DataError(f"{name} has linear functions in its leaves, which are not trees of constants")
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

    def node(key: Any) -> SplitNode | Leaf:
        if isinstance(key, tuple):
            return _around_zero(key)
        if key < 0:
            require_index(~key, n_leaves, f"{name}: a leaf")
            return Leaf(values[~key], counts[~key])
        require_index(key, n, f"{name}: a node")
        common = (features[key], gains[key], node_counts[key])
        if kinds[key] & CATEGORICAL:
            entry = whole_number(thresholds[key], f"{name}: the threshold of a categorical node")
            require_index(entry, len(bounds) - 1, f"{name}: an entry of cat_boundaries")
            bits = enumerate(words[bounds[entry] : bounds[entry + 1]])
            categories = [32 * k + bit for k, word in bits for bit in range(32) if word >> bit & 1]
            return SplitNode(common[0], 0.0, False, left[key], right[key], categories, *common[1:])
        return _numeric(common, thresholds[key], kinds[key], left[key], right[key])

    def children(key: int) -> tuple[int, ...]:
        if key < 0:
            return ()
        require_index(key, n, f"{name}: a node")
        return left[key], right[key]

    has_zeros = any(kind >> 2 & 3 == ZERO for kind in kinds)  # such a node may become three
    return make_tree(0, node, name, most_nodes=most_copies(0, children, name) if has_zeros else None)


def _numeric(common: tuple[int, float, int], threshold: float, kind: int, left: Any, right: Any) -> SplitNode:
    """A numeric node: what NaN does depends on the missing type."""
    feature, gain, count = common
    missing, default_left = kind >> 2 & 3, bool(kind & DEFAULT_LEFT)
    zero_left = threshold >= 0.0  # where `0 <= threshold` sends a zero
    if abs(threshold) <= ZERO_THRESHOLD:  # all that LightGBM reads as 0 goes the same way
        threshold = ZERO_THRESHOLD if zero_left else float(below32(-ZERO_THRESHOLD))
    split = SplitNode(feature, float(floor32(threshold)), default_left, left, right, None, gain, count)
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


def _around_zero(key: tuple[str, SplitNode]) -> SplitNode:
    """The tests behind the first one of a node whose zeros go another way than their neighbours.

    The first has sent what is below all zeros left. `zeros` is reached by the others and NaN; `plain` is the node's
    comparison, for values other than zeros.
    """
    kind, split = key
    positive = float(floor32(ZERO_THRESHOLD))
    if kind == "plain":
        return split
    if split.missing_left:  # zeros go left, positive values right
        return split._replace(threshold=positive)
    return split._replace(threshold=positive, missing_left=True, left=split.right, right=("plain", split))


def from_dump(document: Mapping[str, Any]) -> Ensemble:
    """The model of a JSON dump."""
    if whole_number(document.get("num_tree_per_iteration", 1), "num_tree_per_iteration") != 1:
        raise DataError("the model has several outputs for each document, and a ranker has one")
    trees = [_tree_of_dump(entry["tree_structure"], k) for k, entry in enumerate(document["tree_info"])]
    if truth_value(document.get("average_output", False), "average_output") and trees:
        trees = [scaled(tree, 1.0 / len(trees)) for tree in trees]
    n_features = whole_number(document["max_feature_idx"], "max_feature_idx") + 1
    names = [str(name) for name in document.get("feature_names", ())]
    infos = document.get("feature_infos")
    if infos is None:  # before version 4
        numbers = _categories_asked_for(trees)
    else:
        values = {
            k: whole_numbers(infos[name]["values"], f"feature_infos of {name!r:.40}")
            for k, name in enumerate(names) if name in infos
        }  # fmt: skip
        numbers = {k: present for k, present in values.items() if present}
    encoding = _encoding(document.get("pandas_categorical"), numbers, n_features)
    return _ensemble(trees, n_features, names, str(document.get("objective", "")), encoding)


def _categories_asked_for(trees: Sequence[Tree]) -> dict[int, list[int]]:
    """The numbers of the categories that some split names, by feature in ascending order."""
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
        if isinstance(entry, tuple):
            return _around_zero(entry)
        if "leaf_value" in entry:
            if "leaf_const" in entry or "leaf_coeff" in entry:
                raise DataError(f"tree {number} has linear functions in its leaves, which are not trees of constants")
            return Leaf(float(entry["leaf_value"]), whole_number(entry.get("leaf_count", 0), "leaf_count"))
        left, right = entry["left_child"], entry["right_child"]
        feature = whole_number(entry["split_feature"], f"tree {number}: split_feature")
        count = whole_number(entry.get("internal_count", 0), f"tree {number}: internal_count")
        common = feature, float(entry.get("split_gain", 0)), count
        if entry["decision_type"] == "==":
            categories = [float(word) for word in str(entry["threshold"]).split("||") if word]
            return SplitNode(common[0], 0.0, False, left, right, categories, *common[1:])
        missing = {"None": NONE, "Zero": ZERO, "NaN": NAN}[entry.get("missing_type", "None")]
        kind = missing << 2 | DEFAULT_LEFT * truth_value(entry["default_left"], f"tree {number}: default_left")
        return _numeric(common, float(entry["threshold"]), kind, left, right)

    return make_tree(structure, node, f"tree {number}", most_nodes=MAX_COPIES * n_nodes)
