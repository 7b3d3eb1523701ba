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
from podium.formats.categories import encoding_of, without_names
from podium.formats.trees import (
    MAX_COPIES,
    Leaf,
    Split,
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
    return _ensemble(trees, n_features, names, header.get("objective", ""), _encoding_of_text(header, rest, n_features))


def _encoding_of_text(header: Mapping[str, str], rest: str, n_features: int) -> Encoding:
    """The names of categories: the line at the end has them, what the header says of each feature the numbers."""
    _, found, line = rest.rpartition(f"\n{NAMES}")
    numbers = {
        k: [int(word) for word in info.split(":")]
        for k, info in enumerate(header.get("feature_infos", "").split(" ")) if info[:1] not in ("", "[", "n")
    }  # fmt: skip
    return _encoding(json.loads(line.split("\n")[0]) if found else None, numbers, n_features)


def _encoding(lists: Sequence[Sequence[Any]] | None, numbers: Mapping[int, Sequence[int]], n_features: int) -> Encoding:
    """The names of categories, where they belong to features for certain.

    LightGBM keeps the categories of all categorical columns of a frame, in the order of the columns, but not which
    columns those are. They are the features with sets of values, unless some column was ordered, constant, or not
    treated as categorical.

    Args:
        lists: the categories of each column.
        numbers: for each feature that has a set of values, the numbers of its categories; −1 is a missing one.
        n_features: how many there are.

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
    if sorted(bounds) != bounds or len(set(numbers := _sets_of(kinds, thresholds))) < len(numbers):
        raise DataError(f"{name}: the sets of its categories overlap")

    def node(key: Any) -> Split | Leaf:
        if isinstance(key, tuple):
            return _around_zero(key)
        if key < 0:
            require_index(~key, n_leaves, f"{name}: a leaf")
            return Leaf(values[~key], counts[~key])
        require_index(key, n, f"{name}: a node")
        common = (features[key], gains[key], node_counts[key])
        if kinds[key] & CATEGORICAL:
            entry = int(thresholds[key])
            require_index(entry, len(bounds) - 1, f"{name}: an entry of cat_boundaries")
            categories = _bits(words[bounds[entry] : bounds[entry + 1]])
            return Split(common[0], 0.0, False, left[key], right[key], categories, *common[1:])
        return _numeric(common, thresholds[key], kinds[key], left[key], right[key])

    def children(key: int) -> tuple[int, ...]:
        if key < 0:
            return ()
        require_index(key, n, f"{name}: a node")
        return left[key], right[key]

    has_zeros = any(kind >> 2 & 3 == ZERO for kind in kinds)  # such a node may stand for three
    return make_tree(0, node, name, most_nodes=most_copies(0, children, name) if has_zeros else None)


def _sets_of(kinds: Sequence[int], thresholds: Sequence[float]) -> list[int]:
    """The entry of `cat_boundaries` that each categorical node names."""
    return [int(threshold) for kind, threshold in zip(kinds, thresholds, strict=True) if kind & CATEGORICAL]


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


def from_dump(document: Mapping[str, Any]) -> Ensemble:
    """The model of a JSON dump."""
    if int(document.get("num_tree_per_iteration", 1)) != 1:
        raise DataError("the model has several outputs for each document, and a ranker has one")
    trees = [_tree_of_dump(entry["tree_structure"], k) for k, entry in enumerate(document["tree_info"])]
    if document.get("average_output") and trees:
        trees = [scaled(tree, 1.0 / len(trees)) for tree in trees]
    n_features = int(document["max_feature_idx"]) + 1
    names = [str(name) for name in document.get("feature_names", ())]
    infos = document.get("feature_infos")
    if infos is None:  # before version 4
        numbers = _categories_asked_for(trees)
    else:
        values = {k: [int(v) for v in infos[name]["values"]] for k, name in enumerate(names) if name in infos}
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
    """A nested tree. Its nodes are numbered level by level, so that nothing depends on numbers in the file."""
    nodes: list[Mapping[str, Any]] = [structure]
    children: list[tuple[int, int]] = []
    for entry in nodes:  # grows while it is walked
        children.append((len(nodes), len(nodes) + 1))
        if "leaf_value" not in entry:
            nodes += [entry["left_child"], entry["right_child"]]

    def node(key: Any) -> Split | Leaf:
        if isinstance(key, tuple):
            return _around_zero(key)
        entry = nodes[key]
        if "leaf_value" in entry:
            if "leaf_const" in entry or "leaf_coeff" in entry:
                raise DataError(f"tree {number} has linear functions in its leaves, which are not trees of constants")
            return Leaf(float(entry["leaf_value"]), int(entry.get("leaf_count", 0)))
        left, right = children[key]
        common = int(entry["split_feature"]), float(entry.get("split_gain", 0)), int(entry.get("internal_count", 0))
        if entry["decision_type"] == "==":
            categories = [float(word) for word in str(entry["threshold"]).split("||") if word]
            return Split(common[0], 0.0, False, left, right, categories, *common[1:])
        missing = {"None": NONE, "Zero": ZERO, "NaN": NAN}[entry.get("missing_type", "None")]
        kind = missing << 2 | DEFAULT_LEFT * bool(entry["default_left"])
        return _numeric(common, float(entry["threshold"]), kind, left, right)

    return make_tree(0, node, f"tree {number}", most_nodes=MAX_COPIES * len(nodes))
