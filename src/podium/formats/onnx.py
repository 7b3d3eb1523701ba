"""ONNX (`ai.onnx.ml`): tree ensembles and linear models.

Sources: onnx/onnx, docs/Operators-ml.md; microsoft/onnxruntime, core/providers/cpu/ml/tree_ensemble_common.h. Each node
has a mode of comparison; NaN takes the false branch unless `missing_value_tracks_true` is set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from podium.errors import DataError, MissingExtraError
from podium.formats.base import Format, Written
from podium.formats.ranklib import linear_constant
from podium.formats.trees import (
    Leaf,
    Split,
    as_ensemble,
    below32,
    floor32,
    make_tree,
    node_of,
    root_of,
    shifted,
    unshifted,
    without_categories,
)
from podium.models import Ensemble, LinearModel, Model
from podium.trees import Tree

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER")
MISSING = "NaN goes to the side that was learnt for it, as in Podium"
SUM, AVERAGE = 1, 0  # aggregate_function of TreeEnsemble
MEMBERS = 0  # mode of a split that Podium writes: x <= threshold


class Onnx(Format):
    """A graph with one input, `X`, and one output, `score`."""

    name = "onnx"
    title = "ONNX tree ensembles and linear models"
    suffixes = (".onnx",)
    carries = {  # noqa: RUF012
        "missing directions": "yes", "categories": "by other means", "combined models": "by other means",
        "several outputs": "no", "linear models": "yes", "nets": "no", "shifted features": "by other means",
    }  # fmt: skip

    def recognizes(self, content: bytes, suffix: str) -> bool:
        """By the suffix; the content is a protocol buffer, which any bytes may be."""
        return suffix == ".onnx"

    def read(self, content: bytes, source: str) -> Model:
        """A graph whose only operation is a tree ensemble, of version 3 or 5."""
        onnx = _onnx()
        try:
            model = onnx.load_model_from_string(content)
        except Exception as error:
            raise DataError(f"this is no ONNX model: {error}") from None
        ensembles = [node for node in model.graph.node if node.op_type in READERS]
        if len(ensembles) != 1:
            raise DataError(f"the graph has {len(ensembles)} tree ensembles; one is expected")
        others = {node.op_type for node in model.graph.node} - set(READERS) - {"Cast", "Identity", "Reshape", "Squeeze"}
        if others:
            raise DataError(f"the graph also has {', '.join(sorted(others))}, whose part in the score is not known")
        (node,) = ensembles
        attributes = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
        values = {
            key: onnx.numpy_helper.to_array(value) if hasattr(value, "data_type") else value
            for key, value in attributes.items()
        }
        trees = READERS[node.op_type](values)
        return Ensemble.of_trees(trees, _width(model, trees), info={"imported": "onnx"})

    def write(self, model: Model, suffix: str = "", *, version: int = 5) -> Written:
        """A graph.

        Args:
            model: trees, a combination of them, or a linear model.
            suffix: not needed.
            version: of `ai.onnx.ml`: 5 has thresholds and scores in double, as Podium; 3 is float32, for old runtimes.

        """
        if version not in (3, 5):
            raise DataError(f"version must be 3 or 5, not {version}")
        if isinstance(model, LinearModel):
            return _linear(model)
        ensemble = as_ensemble(model, self.name)
        trees = [without_categories(ensemble.tree(k), f"tree {k}") for k in range(ensemble.n_trees)]
        shifts = dict(ensemble.encoding.shifts)
        if version == 5:
            return Written(_double(trees, unshifted(trees, shifts), ensemble.n_features), MISSING)
        if shifts:
            raise DataError("version 3 compares float32 values, and some features are shifted: use version=5")
        return Written(_single(trees, ensemble.n_features), MISSING, ("thresholds and scores are float32",))


def _onnx() -> Any:
    try:
        import onnx
        import onnx.helper
        import onnx.numpy_helper
    except ImportError:
        raise MissingExtraError("onnx", "onnx", "the ONNX format") from None
    return onnx


# --- writing


def _double(trees: Sequence[Tree], thresholds: Sequence[Sequence[float]], n_features: int) -> bytes:
    """TreeEnsemble, version 5: inner nodes and leaves apart; double in, double out."""
    onnx = _onnx()
    columns: dict[str, list[Any]] = {
        key: [] for key in ("featureids", "splits", "truenodeids", "trueleafs", "falsenodeids", "falseleafs", "missing")
    }
    roots: list[int] = []
    weights: list[float] = []
    for tree, values in zip(trees, thresholds, strict=True):
        first_node, first_leaf = len(columns["featureids"]), len(weights)
        roots.append(first_node)
        weights += tree.leaf_value.tolist()
        if not len(tree.feature):  # one leaf: a node whose branches both end there
            rows = [(0, 0.0, first_leaf, 1, first_leaf, 1, 0)]
        else:
            children = [
                [(first_leaf + ~c, 1) if c < 0 else (first_node + c, 0) for c in side.tolist()]
                for side in (tree.left, tree.right)
            ]
            rows = [
                (feature, threshold, *left, *right, int(missing))
                for feature, threshold, left, right, missing in zip(
                    tree.feature.tolist(), values, *children, tree.missing_left.tolist(), strict=True
                )
            ]
        for row in rows:
            for key, value in zip(columns, row, strict=True):
                columns[key].append(value)
    n = len(columns["featureids"])
    tensor = onnx.helper.make_tensor
    kind = onnx.TensorProto.DOUBLE
    node = onnx.helper.make_node(
        "TreeEnsemble", ["X"], ["score"], domain="ai.onnx.ml", n_targets=1, aggregate_function=SUM, post_transform=0,
        tree_roots=roots, nodes_featureids=columns["featureids"],
        nodes_modes=tensor("nodes_modes", onnx.TensorProto.UINT8, [n], [MEMBERS] * n),
        nodes_splits=tensor("nodes_splits", kind, [n], columns["splits"]),
        nodes_truenodeids=columns["truenodeids"], nodes_trueleafs=columns["trueleafs"],
        nodes_falsenodeids=columns["falsenodeids"], nodes_falseleafs=columns["falseleafs"],
        nodes_missing_value_tracks_true=columns["missing"],
        leaf_weights=tensor("leaf_weights", kind, [len(weights)], weights), leaf_targetids=[0] * len(weights),
    )  # fmt: skip
    return _graph([node], kind, kind, n_features, {"": 21, "ai.onnx.ml": 5}, 10)


def _single(trees: Sequence[Tree], n_features: int) -> bytes:
    """TreeEnsembleRegressor, version 3: nodes and leaves together, numbered by tree; float32."""
    onnx = _onnx()
    names = ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids",
             "missing_value_tracks_true")  # fmt: skip
    columns: dict[str, list[Any]] = {name: [] for name in names}
    targets: list[tuple[int, int, float]] = []
    for number, tree in enumerate(trees):
        node, order = node_of(tree), [root_of(tree)]
        for k, key in enumerate(order):  # grows while it is walked
            content = node(key)
            if isinstance(content, Leaf):
                targets.append((number, k, content.value))
                row: tuple[Any, ...] = (number, k, 0, 0.0, "LEAF", 0, 0, 0)
            else:
                left = len(order)
                order += [content.left, content.right]  # type: ignore[list-item]
                row = (
                    number,
                    k,
                    content.feature,
                    content.threshold,
                    MODES[0],
                    left,
                    left + 1,
                    int(content.missing_left),
                )
            for name, value in zip(names, row, strict=True):
                columns[name].append(value)
    tree_ids, node_ids, weights = (list(column) for column in zip(*targets, strict=True)) if targets else ([], [], [])
    node_proto = onnx.helper.make_node(
        "TreeEnsembleRegressor", ["X"], ["score"], domain="ai.onnx.ml", n_targets=1, aggregate_function="SUM",
        post_transform="NONE", target_treeids=tree_ids, target_nodeids=node_ids, target_ids=[0] * len(weights),
        target_weights=weights, **{f"nodes_{name}": values for name, values in columns.items()},
    )  # fmt: skip
    kind = onnx.TensorProto.FLOAT
    return _graph([node_proto], kind, kind, n_features, {"": 18, "ai.onnx.ml": 3}, 9)


def _linear(model: LinearModel) -> Written:
    """A missing or infinite value counts as its mean; then a product and a sum, in double."""
    onnx = _onnx()
    kind, helper = onnx.TensorProto.DOUBLE, onnx.helper
    n = model.n_features
    constants = [
        helper.make_tensor("means", kind, [n], model.means.tolist()),
        helper.make_tensor("weights", kind, [n, 1], model.weights.tolist()),
        helper.make_tensor("constant", kind, [1], [linear_constant(model)]),
    ]
    nodes = [
        helper.make_node("IsNaN", ["X"], ["is_nan"]), helper.make_node("IsInf", ["X"], ["is_inf"]),
        helper.make_node("Or", ["is_nan", "is_inf"], ["is_odd"]),
        helper.make_node("Where", ["is_odd", "means", "X"], ["filled"]),
        helper.make_node("MatMul", ["filled", "weights"], ["products"]),
        helper.make_node("Add", ["products", "constant"], ["score"]),
    ]  # fmt: skip
    content = _graph(nodes, kind, kind, n, {"": 21}, 10, constants)
    return Written(content, "NaN and infinities count as the mean of their feature, as in Podium")


def _graph(
    nodes: list[Any], inputs: int, outputs: int, n_features: int, versions: Mapping[str, int], ir_version: int,
    constants: Sequence[Any] = (),
) -> bytes:  # fmt: skip
    """A model of some operations from X to score."""
    onnx = _onnx()
    helper = onnx.helper
    graph = helper.make_graph(
        nodes, "podium", [helper.make_tensor_value_info("X", inputs, [None, n_features])],
        [helper.make_tensor_value_info("score", outputs, [None, 1])], list(constants),
    )  # fmt: skip
    opsets = [helper.make_opsetid(domain, version) for domain, version in versions.items()]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=ir_version, producer_name="podium")
    onnx.checker.check_model(model)
    content: bytes = model.SerializeToString()
    return content


# --- reading


def _width(model: Any, trees: Sequence[Tree]) -> int:
    """The number of features: what the input says, or what the trees need."""
    needed = 1 + max((int(tree.feature.max(initial=-1)) for tree in trees), default=-1)
    dims = [d.dim_value for value in model.graph.input for d in value.type.tensor_type.shape.dim][1:2]
    return int(max([needed, *dims]))


def _compared(mode: str, threshold: float, single: bool) -> tuple[float, bool]:
    """The threshold of `x <= threshold`, and whether that is where the comparison holds (or where it does not)."""
    bound = float(np.float32(threshold)) if single else threshold
    if mode in ("BRANCH_LEQ", "BRANCH_GT"):
        return float(floor32(bound)), mode == "BRANCH_LEQ"
    if mode in ("BRANCH_LT", "BRANCH_GTE"):
        return float(below32(bound)), mode == "BRANCH_LT"
    raise DataError(f"splits of the mode {mode} are not comparisons with a threshold")


def _version_3(a: Mapping[str, Any]) -> list[Tree]:
    """The trees of a TreeEnsembleRegressor."""
    if int(a.get("n_targets", 1)) != 1:
        raise DataError("the model has several outputs for each document, and a ranker has one")
    if a.get("post_transform", b"NONE") not in (b"NONE", "NONE"):
        raise DataError("the model transforms its scores")
    single = "nodes_values_as_tensor" not in a
    thresholds = a.get("nodes_values_as_tensor", a.get("nodes_values", ()))
    weights = a.get("target_weights_as_tensor", a.get("target_weights", ()))
    rows = {(int(t), int(n)): k for k, (t, n) in enumerate(zip(a["nodes_treeids"], a["nodes_nodeids"], strict=True))}
    values: dict[tuple[int, int], float] = {}
    for t, n, weight in zip(a["target_treeids"], a["target_nodeids"], weights, strict=True):
        values[int(t), int(n)] = values.get((int(t), int(n)), 0.0) + float(weight)
    tracks = a.get("nodes_missing_value_tracks_true") or [0] * len(rows)

    def tree(number: int) -> Tree:
        def node(key: tuple[int, int]) -> Split | Leaf:
            k = rows[key]
            mode = a["nodes_modes"][k]
            mode = mode.decode() if isinstance(mode, bytes) else mode
            if mode == "LEAF":
                return Leaf(values.get(key, 0.0))
            threshold, holds = _compared(mode, float(thresholds[k]), single)
            true, false = (number, int(a["nodes_truenodeids"][k])), (number, int(a["nodes_falsenodeids"][k]))
            left, right = (true, false) if holds else (false, true)
            missing_left = bool(tracks[k]) == holds
            return Split(int(a["nodes_featureids"][k]), threshold, missing_left, left, right)

        targets = {int(c) for (t, _), k in rows.items() if t == number
                   for c in (a["nodes_truenodeids"][k], a["nodes_falsenodeids"][k])
                   if a["nodes_modes"][k] not in (b"LEAF", "LEAF")}  # fmt: skip
        roots = [n for t, n in rows if t == number and n not in targets]
        if len(roots) != 1:
            raise DataError(f"tree {number} has {len(roots)} roots")
        return make_tree((number, roots[0]), node, f"tree {number}")

    trees = [tree(number) for number in dict.fromkeys(t for t, _ in rows)]
    aggregate = a.get("aggregate_function", b"SUM")
    if aggregate not in (b"SUM", b"AVERAGE"):
        raise DataError(f"trees are joined by {aggregate!r}, neither by their sum nor by their mean")
    base = a.get("base_values_as_tensor", a.get("base_values", ()))
    return _aggregated(trees, aggregate == b"AVERAGE", float(base[0]) if len(base) else 0.0)


def _version_5(a: Mapping[str, Any]) -> list[Tree]:
    """The trees of a TreeEnsemble."""
    if int(a.get("n_targets", 1)) != 1 or int(a.get("post_transform", 0)) != 0:
        raise DataError("the model has several outputs, or transforms its scores")
    splits = a["nodes_splits"]
    tracks = a.get("nodes_missing_value_tracks_true") or [0] * len(splits)

    def child(side: str, k: int) -> tuple[str, int, int]:
        is_leaf = bool(a[f"nodes_{side}leafs"][k])
        return ("leaf" if is_leaf else "node", int(a[f"nodes_{side}nodeids"][k]), 2 * k + (side == "true"))

    def node(key: tuple[str, int, int]) -> Split | Leaf:
        kind, k, _ = key
        if k < 0:
            raise DataError("a node has a negative number")
        if kind == "leaf":
            return Leaf(float(a["leaf_weights"][k]))
        threshold, holds = _compared(MODES[int(a["nodes_modes"][k])], float(splits[k]), splits.dtype == np.float32)
        true, false = child("true", k), child("false", k)
        if true[:2] == false[:2] and true[0] == "leaf":  # a tree of one leaf
            return Leaf(float(a["leaf_weights"][true[1]]))
        left, right = (true, false) if holds else (false, true)
        return Split(int(a["nodes_featureids"][k]), threshold, bool(tracks[k]) == holds, left, right)

    aggregate = int(a.get("aggregate_function", SUM))
    if aggregate not in (SUM, AVERAGE):
        raise DataError("trees are joined by their minimum or maximum, neither by their sum nor by their mean")
    trees = [make_tree(("node", int(root), -1), node, f"tree {k}") for k, root in enumerate(a["tree_roots"])]
    return _aggregated(trees, aggregate == AVERAGE, 0.0)


def _aggregated(trees: list[Tree], average: bool, base: float) -> list[Tree]:
    from podium.formats.trees import scaled

    if average and trees:
        trees = [scaled(tree, 1.0 / len(trees)) for tree in trees]
    return shifted(trees, base)


READERS = {"TreeEnsembleRegressor": _version_3, "TreeEnsemble": _version_5}
