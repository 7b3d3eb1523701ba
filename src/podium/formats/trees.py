"""Tools for all tree formats: nested splits, exact thresholds, and trees without what a format cannot express.

A node of a Podium tree tests `x <= threshold`, both float32, and defines where a missing value goes. A categorical
node sends a set of values left and everything else right. Each format expresses this in another way.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Bools, Float32s, Floats, Int32s
from podium.data.encoding import listed
from podium.errors import DataError
from podium.models import Combined, Ensemble, Model
from podium.trees import Tree

MAX_NODES = 1 << 22  # of one tree, read or written; a file with more is damaged or an attack
MAX_NODES_WITH_COPIES = 1 << 16  # of a tree in which subtrees are repeated
JSON_INFINITY = 1e39  # a number in JSON, which has no infinity, that float32 consumers round to infinity
CATEGORIES = "podium_categories"  # the key of category names in the metadata of a file
MAX_CATEGORY = 1 << 24  # whole numbers below it are exact in float32
MAX_COPIES = 64  # of each node of a file, on average, if Podium's tree has to repeat subtrees


class SplitNode(NamedTuple):
    """A node with a test: `x <= threshold`, or x being one of `categories`, goes left."""

    feature: int
    threshold: float
    missing_left: bool
    left: Any  # the keys of its children
    right: Any
    categories: Sequence[float] | None = None
    gain: float = 0.0
    count: int = 0  # type: ignore[assignment]  # of documents; hides the method of tuples


class Leaf(NamedTuple):
    """A node without a test, which holds a value."""

    value: float
    count: int = 0  # type: ignore[assignment]


def floor32(value: float) -> np.float32:
    """Return the largest float32 that is not above a number t: for float32 x, `x <= t` is the same as `x <= floor`."""
    with np.errstate(over="ignore"):
        rounded = np.float32(value)
    if float(rounded) > value:  # as doubles: NumPy would round the number to float32 first
        rounded = np.nextafter(rounded, np.float32(-np.inf))
    return rounded


def below32(value: float) -> np.float32:
    """Return the largest float32 below a number t: for float32 x, `x < t` is the same as `x <= below`."""
    rounded = floor32(value)
    return np.nextafter(rounded, np.float32(-np.inf)) if float(rounded) == value else rounded


def above32(threshold: np.float32) -> np.float32:
    """Return the next float32 above a threshold t: for float32 x, `x <= t` is the same as `x < above`."""
    with np.errstate(over="ignore"):
        above: np.float32 = np.nextafter(np.float32(threshold), np.float32(np.inf))
    return above


def largest_float(holds: Callable[[Any], bool], kind: type[np.floating[Any]]) -> Any:
    """Return the largest finite number of a type that meets a condition, or −∞ if none does.

    If a number meets the condition, so must all smaller ones.

    The bits of floats, read as integers, number them in order: 0 is 0, 1 the smallest positive number, −1 its negative.
    """
    bits: Any = np.int32 if kind is np.float32 else np.int64

    def from_bits(number: int) -> Any:
        size = bits(abs(number)).view(kind)
        return size if number >= 0 else -size

    high = int(np.finfo(kind).max.view(bits))
    low = -high
    if not holds(from_bits(low)):
        return kind(-np.inf)
    while low < high:
        middle = (low + high + 1) // 2
        if holds(from_bits(middle)):
            low = middle
        else:
            high = middle - 1
    return from_bits(low)


def highest_double(values: Float32s) -> Floats:
    """Return for each float32 t the largest double h that rounds to it: for doubles x, `float32(x) <= t` is `x <= h`.

    It is the midpoint between t and the next float32, or one double less if that midpoint rounds up to an even number.
    """
    values = np.asarray(values, np.float32)
    overflow = 2.0**128  # rounding treats infinity as the float32 after the largest one
    with np.errstate(over="ignore"):
        above = np.nextafter(values, np.float32(np.inf))
    low, high = (np.clip(x.astype(np.float64), -overflow, overflow) for x in (values, above))
    middle = low + (high - low) / 2
    is_even = values.view(np.uint32) % 2 == 0
    highest = np.where(is_even, middle, np.nextafter(middle, -np.inf))
    return np.where(values == np.inf, np.inf, highest)


def lowest_double(values: Float32s) -> Floats:
    """Return for each float32 the smallest double that rounds to it."""
    values = np.asarray(values, np.float32)
    with np.errstate(over="ignore"):
        below = highest_double(np.nextafter(values, np.float32(-np.inf)))
    return np.where(values == -np.inf, -np.inf, np.nextafter(below, np.inf))


def make_tree(root: Any, node: Callable[[Any], SplitNode | Leaf], name: str, *, max_nodes: int | None = None) -> Tree:
    """Build a tree from a function that returns the content of each node; parents come before their children.

    Args:
        root: the key of the first node.
        node: returns the split or leaf of a key; a split or leaf may be a key itself.
        name: the name of the tree, for errors.
        max_nodes: the maximum number of nodes of a tree in which a key may be reached several times. Its subtree is
            then copied, and a cycle exceeds the maximum. By default, a key that is reached twice is an error.

    """
    splits: list[SplitNode] = []
    leaves: list[Leaf] = []
    children: list[list[int]] = []
    seen: set[Hashable] = set()
    waiting: list[tuple[Any, int, int]] = [(root, -1, 0)]
    limit = MAX_NODES if max_nodes is None else max_nodes
    while waiting:
        key, parent, side = waiting.pop()
        is_content = isinstance(key, SplitNode | Leaf)
        if max_nodes is None and not is_content:
            if key in seen:
                raise DataError(f"{name}: node {key} is reached twice, so this is not a tree")
            seen.add(key)
        if len(splits) + len(leaves) >= limit:
            raise DataError(f"{name} has over {limit:,} nodes")
        entry = key if is_content else node(key)
        if isinstance(entry, Leaf):
            number = ~len(leaves)
            leaves.append(entry)
        else:
            number = len(splits)
            splits.append(entry)
            children.append([0, 0])
            waiting += [(entry.right, number, 1), (entry.left, number, 0)]
        if parent >= 0:
            children[parent][side] = number
    return _flat(splits, leaves, children)


def tree_of_document(root: Any, node: Callable[[Any], SplitNode | Leaf], name: str) -> Tree:
    """Build a tree from nested entries; in splits, `node` returns the entries of the children as keys."""
    return make_tree(root, node, name, max_nodes=MAX_NODES)


def require_index(index: int, length: int, what: str) -> None:
    """Raise if an index is out of range or negative; Python would count a negative one from the end."""
    if not 0 <= index < length:
        raise DataError(f"{what} has the number {index}, but there are only {max(length, 0)}")


def _flat(splits: list[SplitNode], leaves: list[Leaf], children: list[list[int]]) -> Tree:
    sets = [np.unique(np.asarray(s.categories, np.float32)) for s in splits if s.categories is not None]
    numbers = np.cumsum([s.categories is not None for s in splits]) - 1
    sides = np.array(children, np.int32).reshape(-1, 2)
    return Tree(
        feature=np.array([s.feature for s in splits], np.int32),
        threshold=np.array([s.threshold for s in splits], np.float32),
        missing_left=np.array([s.missing_left for s in splits], bool),
        category=np.array(
            [k if s.categories is not None else -1 for k, s in zip(numbers, splits, strict=True)], np.int32
        ),
        left=np.ascontiguousarray(sides[:, 0]),
        right=np.ascontiguousarray(sides[:, 1]),
        gain=np.array([s.gain for s in splits], np.float64),
        count=np.array([s.count for s in splits], np.int64),
        leaf_value=np.array([leaf.value for leaf in leaves], np.float64),
        leaf_count=np.array([leaf.count for leaf in leaves], np.int64),
        categories=tuple(sets),
    )


def node_of(tree: Tree) -> Callable[[int], SplitNode | Leaf]:
    """Return a function for `make_tree` from the number of a node to its content; ~k is leaf k."""
    columns = [
        tree.feature.tolist(), tree.threshold.tolist(), tree.missing_left.tolist(), tree.left.tolist(),
        tree.right.tolist(), tree.category.tolist(), tree.gain.tolist(), tree.count.tolist(),
    ]  # fmt: skip
    nodes = [
        SplitNode(feature, threshold, missing, left, right,
              None if category < 0 else tree.categories[category].tolist(), gain, count)
        for feature, threshold, missing, left, right, category, gain, count in zip(*columns, strict=True)
    ]  # fmt: skip
    leaves = [Leaf(*leaf) for leaf in zip(tree.leaf_value.tolist(), tree.leaf_count.tolist(), strict=True)]
    return lambda key: nodes[key] if key >= 0 else leaves[~key]


def document_of_tree(
    tree: Tree, entry_of: Callable[[int, SplitNode | Leaf], dict[str, Any]], left: str = "left", right: str = "right"
) -> dict[str, Any]:
    """Return a tree as nested dictionaries, without recursion, so that trees may be deep.

    Args:
        tree: the tree.
        entry_of: returns the entry of a node without its children, from the node's key and content.
        left, right: the keys under which a node's entry holds its children.

    """
    node = node_of(tree)
    root: dict[str, Any] = {}
    waiting: list[tuple[int, dict[str, Any]]] = [(root_of(tree), root)]
    while waiting:
        key, entry = waiting.pop()
        content = node(key)
        entry |= entry_of(key, content)
        if isinstance(content, SplitNode):
            entry |= {left: {}, right: {}}
            waiting += [(content.left, entry[left]), (content.right, entry[right])]
    return root


def by_level(tree: Tree, *, listed_right: bool = False) -> Iterator[tuple[int, SplitNode | Leaf, int]]:
    """Yield key and content of each node, level by level, and the number of its left child; the right one follows it.

    Nodes are numbered in this order. With `listed_right`, the categories of a set go right, and all others left.
    """
    node, keys = node_of(tree), [root_of(tree)]
    for key in keys:  # grows while it is walked
        content, first = node(key), len(keys)
        if isinstance(content, SplitNode):
            children = [content.left, content.right]
            keys += children[::-1] if listed_right and content.categories is not None else children
        yield key, content, first


def root_of(tree: Tree) -> int:
    """Return the key of a tree's first node."""
    return 0 if len(tree.feature) else -1


# --- models as formats see them


def as_ensemble(model: Model, format_name: str) -> Ensemble:
    """Return one ensemble with the model's scores: the trees of combined models, times their weights, in a row."""
    if isinstance(model, Ensemble):
        return model
    if isinstance(model, Combined):
        require_same_features(model, format_name)
        parts = [as_ensemble(part, format_name) for part in model.parts]
        trees = [
            scaled(part.tree(k), weight)
            for part, weight in zip(parts, model.weights, strict=True) for k in range(part.n_trees)
        ]  # fmt: skip
        info, with_missing = dict(model.info), [part.features_with_missing for part in parts]
        if None not in with_missing:
            info["features_with_missing"] = sorted({feature for features in with_missing for feature in features or ()})
        return Ensemble.of_trees(
            trees, model.n_features, feature_names=model.feature_names, encoding=model.encoding, info=info
        )
    raise DataError(
        f"{format_name} holds trees, but {model!r} does not consist of trees; docs/formats.md lists other formats"
    )


def as_float32_ensemble(model: Model, format_name: str) -> Ensemble:
    """Return one ensemble for a consumer with float32 numbers; raise if a leaf or a shifted feature needs doubles."""
    ensemble = as_ensemble(model, format_name)
    if (np.abs(ensemble.arrays["leaf_value"]) > np.finfo(np.float32).max).any():
        raise DataError(f"{format_name} adds float32 values, and a leaf's value is beyond their range")
    require_unshifted(ensemble, ensemble.arrays["feature"], format_name)
    return ensemble


def is_of_trees(model: Model) -> bool:
    """Return whether a model consists of trees, or is a combination of such models."""
    return isinstance(model, Ensemble) or (isinstance(model, Combined) and all(map(is_of_trees, model.parts)))


def require_same_features(model: Combined, format_name: str) -> None:
    """Raise if the models of a combination name or encode their features differently."""
    first = model.parts[0]
    if any(part.encoding != first.encoding for part in model.parts) or any(
        part.feature_names not in (None, first.feature_names) for part in model.parts
    ):
        raise DataError(
            f"the models of this combination read their features differently, which {format_name} cannot express"
        )


def scaled(tree: Tree, weight: float) -> Tree:
    """Return a tree with its leaf values times a weight."""
    return tree if weight == 1.0 else replace(tree, leaf_value=weight * tree.leaf_value)


def averaged(trees: Sequence[Tree]) -> list[Tree]:
    """Return trees whose sum is the mean of these."""
    return [scaled(tree, 1.0 / len(trees)) for tree in trees]


def with_constant(trees: Sequence[Tree], constant: float) -> list[Tree]:
    """Return the trees with a constant in the leaves of the first, so that sums begin with it; or one leaf."""
    if constant == 0.0:
        return list(trees)
    if not trees:
        return [make_tree(0, lambda _: Leaf(constant), "the constant")]
    first = replace(trees[0], leaf_value=constant + trees[0].leaf_value)
    return [first, *trees[1:]]


def feature_labels(model: Model) -> list[str]:
    """Return a name for each feature: the model's, or f0, f1, …"""
    return list(model.feature_names or (f"f{k}" for k in range(model.n_features)))


def has_made_up_names(model: Model) -> bool:
    """Return whether features have no names, or only the numbers of text files as names."""
    return model.feature_names is None or all(name.isdecimal() for name in model.feature_names)


def numbered_categories(model: Model) -> dict[str, list[str]]:
    """Return the category names of each feature that has them; for consumers, the k-th name is the number k."""
    labels = feature_labels(model)
    return {labels[k]: list(names) for k, names in sorted(model.encoding.categories.items())}


def categories_text(model: Model) -> dict[str, str]:
    """Return the category names as an entry for a file's metadata, in ASCII; empty if there are none."""
    categories = numbered_categories(model)
    return {CATEGORIES: json.dumps(categories)} if categories else {}


# --- trees for formats that lack categories or infinite thresholds


def without_categories(tree: Tree, name: str, *, named: Collection[int] = frozenset()) -> Tree:
    """Return an equal tree with numeric splits only: a set of values becomes a chain of intervals of one float32 each.

    The subtrees of a categorical node are repeated for each value of its set, so the number of nodes is limited. The
    features in `named` keep their sets.
    """
    if ((tree.category < 0) | np.isin(tree.feature, list(named))).all():
        return tree
    node = node_of(tree)

    def expanded(key: int) -> SplitNode | Leaf:
        entry = node(key)
        while isinstance(entry, SplitNode) and entry.categories is not None and len(entry.categories) == 0:
            entry = node(entry.right)  # nothing goes left
        if isinstance(entry, Leaf) or entry.categories is None or entry.feature in named:
            return entry
        rest: Any = entry.right
        for value in reversed(entry.categories):  # test `x < value`, then `x <= value`
            below = float(np.nextafter(np.float32(value), np.float32(-np.inf)))
            at = SplitNode(entry.feature, value, False, entry.left, rest)
            # A missing value goes right, as at any set.
            rest = SplitNode(entry.feature, below, True, entry.right, at, None, entry.gain, entry.count)
        return rest  # type: ignore[no-any-return]

    return make_tree(root_of(tree), expanded, name, max_nodes=MAX_NODES_WITH_COPIES)


def without_infinity(tree: Tree, name: str) -> Tree:
    """Return an equal tree with finite thresholds, for formats that cannot hold others.

    A split at ∞ tests whether a value is missing: all others go left. A finite threshold sends one of the infinities to
    the side of the missing values, so a second split separates −∞ from them, and the left subtree appears twice.
    """
    if (tree.threshold[tree.category < 0] < np.inf).all():
        return tree
    node, lowest = node_of(tree), float(np.finfo(np.float32).min)

    def expanded(key: int) -> SplitNode | Leaf:
        entry = node(key)
        while isinstance(entry, SplitNode) and entry.categories is None and entry.threshold == math.inf:
            if not entry.missing_left:
                second = SplitNode(entry.feature, 0.0, False, entry.left, entry.right)
                return entry._replace(threshold=lowest, missing_left=True, left=second, right=entry.left)
            entry = node(entry.left)  # everything goes left
        return entry

    return make_tree(root_of(tree), expanded, name, max_nodes=MAX_NODES_WITH_COPIES)


def numeric_trees(ensemble: Ensemble, *, named: Collection[int] = frozenset()) -> list[Tree]:
    """Return the trees without sets of categories except in the features `named`."""
    return [without_categories(ensemble.tree(k), f"tree {k}", named=named) for k in range(ensemble.n_trees)]


def finite_trees(ensemble: Ensemble, *, named: Collection[int] = frozenset()) -> list[Tree]:
    """Return the trees with finite thresholds, and without sets of categories except in the features `named`."""
    return [without_infinity(tree, f"tree {k}") for k, tree in enumerate(numeric_trees(ensemble, named=named))]


def require_missing_as_zero(model: Ensemble, format_name: str) -> None:
    """Raise if a split sends missing values to the other side than 0, for a format in which missing values are 0.

    Features without missing values in training are ignored, because their splits did not learn a side.
    """
    features, differs = _splits_unlike_zero(model)
    if model.features_with_missing is not None:
        differs &= np.isin(features, list(model.features_with_missing))
    if differs.any():
        label = feature_labels(model)[int(features[differs][0])]
        raise DataError(
            f"{format_name} reads a missing value as 0, but {int(differs.sum())} of {len(features)} splits, such as "
            f"one of {label!r}, send a missing value to the other side than 0. Export with missing='zero' if no value "
            "will be missing, or train on data in which missing values are 0"
        )


def note_on_missing_as_zero(model: Ensemble) -> str:
    """Return the note on missing values for a consumer that reads them as 0."""
    features, differs = _splits_unlike_zero(model)
    affected = np.unique(features[differs]).tolist()
    if not affected:
        return "a missing value counts as 0, as in Podium"
    labels = feature_labels(model)
    which = listed("feature", [labels[k] for k in affected])
    if model.features_with_missing is not None and model.features_with_missing.isdisjoint(affected):
        return f"a missing value counts as 0; {which} had no missing values in training, and Podium may differ there"
    return f"a missing value counts as 0; in {which} it may go elsewhere in Podium"


def _splits_unlike_zero(model: Ensemble) -> tuple[Int32s, Bools]:
    """Return the feature of each split, and whether the split sends missing values to the other side than 0."""
    arrays = model.arrays
    is_set = arrays["category"] >= 0
    zeros = np.concatenate([[0], np.cumsum(arrays["category_values"] == 0)])[arrays["category_offsets"]]
    has_zero = np.append(np.diff(zeros) > 0, False)  # of each set; the last is for splits by threshold, whose set is −1
    zero_left = np.where(is_set, has_zero[arrays["category"]], arrays["threshold"] >= 0)
    missing_left = arrays["missing_left"] & ~is_set  # at a set a missing value goes right
    return arrays["feature"], zero_left != missing_left


def require_unshifted(model: Model, used: NDArray[Any], format_name: str) -> None:
    """Raise if the model shifts one of the features `used`, because float32 consumers cannot express a shift."""
    for feature in model.encoding.shifts:
        if (used == feature).any():
            label = feature_labels(model)[feature]
            raise DataError(
                f"{format_name} takes float32 values, but float32 cannot distinguish the values of {label!r} (time "
                "stamps?): subtract a constant from that feature before training"
            )


def require_whole_categories(tree: Tree, name: str) -> None:
    """Raise if categories are not whole numbers from 0 on."""
    for values in tree.categories:
        if not all(float(v).is_integer() and 0 <= v < MAX_CATEGORY for v in values.tolist()):
            raise DataError(f"{name}: categories must be whole numbers from 0 on")


def raw_threshold(threshold: np.float32, shift: float) -> float:
    """Return the largest double x with float32(x − shift) <= threshold: a threshold for values before the shift."""
    highest = highest_double(np.asarray(threshold)).item()
    if shift == 0.0 or highest == math.inf:
        return highest
    return float(largest_float(lambda x: float(x) - shift <= highest, np.float64))


def double_thresholds(trees: Iterable[Tree], shifts: Mapping[int, float]) -> list[list[float]]:
    """Return the thresholds of each tree for a consumer that compares unshifted values as doubles."""
    return [
        [
            raw_threshold(np.float32(t), shifts[f]) if f in shifts else highest
            for f, t, highest in zip(
                tree.feature.tolist(), tree.threshold.tolist(), highest_double(tree.threshold).tolist(), strict=True
            )
        ]
        for tree in trees
    ]
