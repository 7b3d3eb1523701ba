"""ONNX graphs, and tree ensembles in them (versions 3 and 5 of `ai.onnx.ml`), written and read.

Sources: onnx/onnx, docs/Operators-ml.md; microsoft/onnxruntime, core/providers/cpu/ml/tree_ensemble_common.h. Each node
has a mode of comparison; NaN takes the false branch unless `missing_value_tracks_true` is set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.data.encoding import Encoding
from podium.errors import DataError, MissingExtraError
from podium.formats.base import require_one_output, whole_number, whole_numbers
from podium.formats.trees import (
    Leaf,
    SplitNode,
    averaged,
    below32,
    by_level,
    floor32,
    make_tree,
    require_index,
    with_constant,
)
from podium.trees import Tree

MAIN, IR = 21, 10  # versions of the operators, and of the file
ML, ML_DOMAIN = 5, "ai.onnx.ml"
MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER")
AT_MOST = 0  # the mode of the splits that Podium writes: x <= threshold
CHILDREN = ("nodes_truenodeids", "nodes_falsenodeids")
SUM, AVERAGE = 1, 0  # aggregate_function of TreeEnsemble


def load_onnx() -> Any:
    """Import and return the package `onnx`, an optional dependency."""
    try:
        import onnx
        import onnx.helper
        import onnx.numpy_helper
    except ImportError:
        raise MissingExtraError("onnx", "onnx", "the ONNX format") from None
    return onnx


class Graph:
    """Operations from one input, `X`, to one output, `score`; tensors are doubles by default."""

    def __init__(self, n_features: int, *, single: bool = False) -> None:
        self.onnx = load_onnx()
        self.n_features = n_features
        self.kind = self.onnx.TensorProto.FLOAT if single else self.onnx.TensorProto.DOUBLE
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def add(self, operation: str, *inputs: str, **attributes: Any) -> str:
        """Add an operation; return the name of its output."""
        return self.add_several(1, operation, *inputs, **attributes)[0]

    def add_several(self, n_outputs: int, operation: str, *inputs: str, **attributes: Any) -> list[str]:
        """Add an operation with several outputs; return their names."""
        names = [f"{operation.lower()}_{len(self.nodes)}_{k}" for k in range(n_outputs)]
        self.nodes.append(self.onnx.helper.make_node(operation, list(inputs), names, **attributes))
        return names

    def constant(self, values: NDArray[Any] | float) -> str:
        """Add a constant array; return its name."""
        name = f"constant_{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(values), name))
        return name

    def cast(self, tensor: str, *kinds: int) -> str:
        """Cast a tensor to one type after another; return the name of the result."""
        for kind in kinds:
            tensor = self.add("Cast", tensor, to=kind)
        return tensor

    def rounded(self, tensor: str) -> str:
        """Round doubles to float32, and cast them back to doubles."""
        return self.cast(tensor, self.onnx.TensorProto.FLOAT, self.onnx.TensorProto.DOUBLE)

    def features(self, encoding: Encoding) -> str:
        """Return the name of X shifted as in training and rounded to float32."""
        values = "X"
        if encoding.shifts:
            shifts = np.array([float(encoding.shifts.get(k, 0.0)) for k in range(self.n_features)])
            values = self.add("Sub", values, self.constant(shifts))
        return self.rounded(values)

    def content(
        self, versions: dict[str, int] | None = None, ir_version: int = IR, metadata: dict[str, str] | None = None
    ) -> bytes:
        """Return the content of the file; the last operation computes the score."""
        helper = self.onnx.helper
        self.nodes[-1].output[0] = "score"
        graph = helper.make_graph(
            self.nodes, "podium", [helper.make_tensor_value_info("X", self.kind, [None, self.n_features])],
            [helper.make_tensor_value_info("score", self.kind, [None, 1])], self.constants,
        )  # fmt: skip
        if versions is None:
            uses_ml = any(node.domain == ML_DOMAIN for node in self.nodes)
            versions = {"": MAIN} | ({ML_DOMAIN: ML} if uses_ml else {})
        opsets = [helper.make_opsetid(domain, version) for domain, version in versions.items()]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=ir_version, producer_name="podium")
        helper.set_model_props(model, metadata or {})
        self.onnx.checker.check_model(model)
        content: bytes = model.SerializeToString()
        return content


# --- trees, written


def add_double_trees(graph: Graph, trees: Sequence[Tree], thresholds: Sequence[Sequence[float]]) -> str:
    """Add a TreeEnsemble (version 5): separate inner nodes and leaves, double input and output."""
    columns: dict[str, list[Any]] = {
        key: [] for key in ("featureids", "splits", "truenodeids", "trueleafs", "falsenodeids", "falseleafs", "missing")
    }
    roots: list[int] = []
    weights: list[float] = []
    for tree, values in zip(trees, thresholds, strict=True):
        first_node, first_leaf = len(columns["featureids"]), len(weights)
        roots.append(first_node)
        weights += tree.leaf_value.tolist()
        if not len(tree.feature):  # a single leaf: write a node whose branches both end there
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
    tensor, kind, small = graph.onnx.helper.make_tensor, graph.onnx.TensorProto.DOUBLE, graph.onnx.TensorProto.UINT8
    return graph.add(
        "TreeEnsemble", "X", domain=ML_DOMAIN, n_targets=1, aggregate_function=SUM, post_transform=0,
        tree_roots=roots, nodes_featureids=columns["featureids"],
        nodes_modes=tensor("nodes_modes", small, [n], [AT_MOST] * n),
        nodes_splits=tensor("nodes_splits", kind, [n], columns["splits"]),
        nodes_truenodeids=columns["truenodeids"], nodes_trueleafs=columns["trueleafs"],
        nodes_falsenodeids=columns["falsenodeids"], nodes_falseleafs=columns["falseleafs"],
        nodes_missing_value_tracks_true=columns["missing"],
        leaf_weights=tensor("leaf_weights", kind, [len(weights)], weights), leaf_targetids=[0] * len(weights),
    )  # fmt: skip


def add_single_trees(graph: Graph, trees: Sequence[Tree]) -> str:
    """Add a TreeEnsembleRegressor (version 3): nodes and leaves in one list, numbered by tree; float32."""
    names = ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids",
             "missing_value_tracks_true")  # fmt: skip
    columns: dict[str, list[Any]] = {name: [] for name in names}
    targets: list[tuple[int, int, float]] = []
    for number, tree in enumerate(trees):
        for k, (_, content, left) in enumerate(by_level(tree)):
            if isinstance(content, Leaf):
                targets.append((number, k, content.value))
                row: tuple[Any, ...] = (number, k, 0, 0.0, "LEAF", 0, 0, 0)
            else:
                missing = int(content.missing_left)
                row = (number, k, content.feature, content.threshold, MODES[0], left, left + 1, missing)
            for name, value in zip(names, row, strict=True):
                columns[name].append(value)
    tree_ids, node_ids, weights = map(list, zip(*targets, strict=True))
    return graph.add(
        "TreeEnsembleRegressor", "X", domain=ML_DOMAIN, n_targets=1, aggregate_function="SUM", post_transform="NONE",
        target_treeids=tree_ids, target_nodeids=node_ids, target_ids=[0] * len(weights), target_weights=weights,
        **{f"nodes_{name}": values for name, values in columns.items()},
    )  # fmt: skip


# --- trees, read


def trees_of(node: Any) -> list[Tree]:
    """Return the trees of a TreeEnsembleRegressor or a TreeEnsemble."""
    return READERS[node.op_type](attributes_of(node))


def attributes_of(node: Any) -> dict[str, Any]:
    """Return the attributes of an operation by name, tensors as arrays."""
    onnx = load_onnx()
    values: dict[str, Any] = {}
    for attribute in node.attribute:
        name, value = attribute.name, onnx.helper.get_attribute_value(attribute)
        if isinstance(value, onnx.TensorProto):
            value = array_of(value, name)
        values[name] = whole_numbers(value, name) if name.endswith(("ids", "_roots")) else value
    return values


def array_of(tensor: Any, name: str = "a constant") -> NDArray[Any]:
    """Return the values of a tensor; raise if they are in another file."""
    onnx = load_onnx()
    if tensor.data_location == onnx.TensorProto.EXTERNAL or tensor.external_data:
        raise DataError(f"{name} is stored in another file, which Podium does not read")
    values: NDArray[Any] = onnx.numpy_helper.to_array(tensor)
    return values


def _compared(mode: str, threshold: float, single: bool) -> tuple[float, bool]:
    """Return the t for which `x <= t` is the comparison or its negation, and whether it is the comparison."""
    exact = float(np.float32(threshold)) if single else threshold
    if mode in ("BRANCH_LEQ", "BRANCH_GT"):
        return float(floor32(exact)), mode == "BRANCH_LEQ"
    if mode in ("BRANCH_LT", "BRANCH_GTE"):
        return float(below32(exact)), mode == "BRANCH_LT"
    raise DataError(f"splits of the mode {mode} do not compare with a threshold")


def _version_3(attrs: Mapping[str, Any]) -> list[Tree]:
    require_one_output(attrs.get("n_targets", 1))
    if any(attrs.get("target_ids", ())) or attrs.get("post_transform", b"NONE") != b"NONE":
        raise DataError("the model has several outputs, or transforms its scores")
    rows: dict[int, dict[int, int]] = {}  # by tree and node
    for k, (tree_id, node_id) in enumerate(zip(attrs["nodes_treeids"], attrs["nodes_nodeids"], strict=True)):
        if rows.setdefault(tree_id, {}).setdefault(node_id, k) != k:
            raise DataError(f"tree {tree_id} has two nodes with the number {node_id}")
    weights = attrs.get("target_weights_as_tensor", attrs.get("target_weights", ()))
    values: dict[tuple[int, int], float] = {}
    for tree_id, node_id, weight in zip(attrs["target_treeids"], attrs["target_nodeids"], weights, strict=True):
        key = tree_id, node_id
        values[key] = values.get(key, 0.0) + float(weight)
    trees = [_tree_of_rows(attrs, number, nodes, values) for number, nodes in rows.items()]
    aggregate = attrs.get("aggregate_function", b"SUM")
    if aggregate not in (b"SUM", b"AVERAGE"):
        raise DataError(f"the trees are combined by {aggregate!r}, but expected a sum or a mean")
    base = attrs.get("base_values_as_tensor", attrs.get("base_values", ()))
    return _aggregated(trees, aggregate == b"AVERAGE", float(base[0]) if len(base) else 0.0)


def _tree_of_rows(
    attrs: Mapping[str, Any], number: int, rows: Mapping[int, int], values: Mapping[tuple[int, int], float]
) -> Tree:
    """Return the tree of the nodes in `rows`, which maps node numbers to rows; its root has no parent."""
    single = "nodes_values_as_tensor" not in attrs
    thresholds = attrs.get("nodes_values_as_tensor", attrs.get("nodes_values", ()))
    tracks = attrs.get("nodes_missing_value_tracks_true")
    true_ids, false_ids = attrs["nodes_truenodeids"], attrs["nodes_falsenodeids"]

    def node(key: int) -> SplitNode | Leaf:
        k = rows[key]
        if attrs["nodes_modes"][k] == b"LEAF":
            return Leaf(values.get((number, key), 0.0))
        threshold, holds = _compared(attrs["nodes_modes"][k].decode(), float(thresholds[k]), single)
        true, false = true_ids[k], false_ids[k]
        left, right = (true, false) if holds else (false, true)
        missing_true = bool(tracks and tracks[k])
        return SplitNode(attrs["nodes_featureids"][k], threshold, missing_true == holds, left, right)

    inner = [k for k in rows.values() if attrs["nodes_modes"][k] != b"LEAF"]
    children = {ids[k] for k in inner for ids in (true_ids, false_ids)}
    roots = [key for key in rows if key not in children]
    if len(roots) != 1:
        raise DataError(f"tree {number} has {len(roots)} roots")
    return make_tree(roots[0], node, f"tree {number}")


def _version_5(attrs: Mapping[str, Any]) -> list[Tree]:
    require_one_output(attrs.get("n_targets", 1))
    if any(attrs.get("leaf_targetids", ())) or whole_number(attrs.get("post_transform", 0), "post_transform") != 0:
        raise DataError("the model has several outputs, or transforms its scores")
    splits = attrs["nodes_splits"]
    tracks = attrs.get("nodes_missing_value_tracks_true") or [0] * len(splits)
    visited: set[int] = set()  # shared nodes would let a small file hold any number of trees

    def child(side: str, k: int) -> int | Leaf:
        number = attrs[f"nodes_{side}nodeids"][k]
        if not attrs[f"nodes_{side}leafs"][k]:
            return int(number)
        require_index(number, len(attrs["leaf_weights"]), "a leaf")
        return Leaf(float(attrs["leaf_weights"][number]))

    def node(k: int) -> SplitNode | Leaf:
        require_index(k, len(splits), "a node")
        if k in visited:
            raise DataError(f"node {k} is reached twice, so these are not trees")
        visited.add(k)
        threshold, holds = _compared(
            MODES[whole_number(attrs["nodes_modes"][k], "nodes_modes")],
            float(splits[k]),
            splits.dtype == np.float32,
        )
        true, false = child("true", k), child("false", k)
        if isinstance(true, Leaf) and isinstance(false, Leaf) and len({attrs[ids][k] for ids in CHILDREN}) == 1:
            return true  # a tree of one leaf
        left, right = (true, false) if holds else (false, true)
        return SplitNode(attrs["nodes_featureids"][k], threshold, bool(tracks[k]) == holds, left, right)

    aggregate = whole_number(attrs.get("aggregate_function", SUM), "aggregate_function")
    if aggregate not in (SUM, AVERAGE):
        raise DataError("the trees are combined by their minimum or maximum, but expected a sum or a mean")
    trees = [make_tree(root, node, f"tree {k}") for k, root in enumerate(attrs["tree_roots"])]
    return _aggregated(trees, aggregate == AVERAGE, 0.0)


def _aggregated(trees: list[Tree], average: bool, base: float) -> list[Tree]:
    return with_constant(averaged(trees) if average else trees, base)


READERS = {"TreeEnsembleRegressor": _version_3, "TreeEnsemble": _version_5}
