"""ONNX: tree ensembles (`ai.onnx.ml`), linear models, nets, and weighted sums of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from podium.data.encoding import Encoding
from podium.errors import DataError
from podium.formats.base import CARRIES, LEARNT_SIDE, Format, Written
from podium.formats.onnx_graph import (
    ML_DOMAIN,
    READERS,
    Graph,
    add_double_trees,
    add_single_trees,
    array_of,
    attributes_of,
    load_onnx,
    trees_of,
)
from podium.formats.trees import (
    Leaf,
    as_ensemble,
    categories_text,
    double_thresholds,
    is_of_trees,
    make_tree,
    numeric_trees,
    require_same_features,
)
from podium.models import Combined, Ensemble, LinearModel, Model
from podium.models.base import INFERRED
from podium.models.file import NET
from podium.trees import Tree

if TYPE_CHECKING:
    from podium.neural import Net

LINEAR_MISSING = "NaN and infinities count as the mean of their feature, as in Podium"
LINEAR = "LinearRegressor"
SINGLE_VERSIONS, SINGLE_IR = {"": 18, ML_DOMAIN: 3}, 9


class Onnx(Format):
    """A graph with one input, `X`, and one output, `score`."""

    name = "onnx"
    title = "ONNX tree ensembles, linear models and nets"
    suffixes = (".onnx",)
    carries = CARRIES | {"linear models": "yes", "nets": "yes", "shifted features": "by other means"}

    def recognizes(self, content: bytes, suffix: str) -> bool:
        """Decide by the suffix, because any bytes may be a protocol buffer."""
        return suffix == ".onnx"

    def read(self, content: bytes) -> Model:
        """Read a graph whose only operation is a tree ensemble (version 3 or 5) or a linear model."""
        onnx = load_onnx()
        try:
            model = onnx.load_model_from_string(content)
        except Exception as error:
            raise DataError(f"this is not an ONNX model: {error}") from None
        dims = [d.dim_value for value in model.graph.input for d in value.type.tensor_type.shape.dim]
        n_columns = int(dims[1]) if len(dims) > 1 else 0  # 0 if the input may have any number
        if (linear := _podium_linear(model.graph)) is not None:
            return linear
        scorers = [node for node in model.graph.node if node.op_type in (*READERS, LINEAR)]
        if len(scorers) != 1:
            raise DataError(
                f"the graph has {len(scorers)} tree ensembles or linear models, but expected one: nets can be exported "
                "to ONNX, not imported"
            )
        _require_nothing_else(model.graph.node)
        if scorers[0].op_type == LINEAR:
            return _linear(attributes_of(scorers[0]))
        trees = trees_of(scorers[0])
        n_used = 1 + max((int(tree.feature.max(initial=-1)) for tree in trees), default=-1)
        return Ensemble.of_trees(trees, max(n_used, n_columns), info={"imported": "onnx", INFERRED: not n_columns})

    def write(self, model: Model, suffix: str = "", *, version: int = 5) -> Written:
        """Write a graph.

        `version` is that of `ai.onnx.ml` for trees: 5 has thresholds and scores in double, like Podium; 3 is float32,
        for old runtimes.
        """
        if version not in (3, 5):
            raise DataError(f"version must be 3 or 5, not {version}")
        if version == 3 and not isinstance(model, LinearModel) and not _is_net(model):
            return _single(as_ensemble(model, self.name))
        graph = Graph(model.n_features)
        missing = _add_model(graph, model)[1]
        return Written(graph.content(metadata=categories_text(model)), "; ".join(dict.fromkeys(missing)), _notes(model))


# --- writing


def _add_model(graph: Graph, model: Model) -> tuple[str, list[str]]:
    """Add a model; return the name of its scores, and how it treats missing values."""
    if isinstance(model, LinearModel):
        return _add_linear(graph, model), [LINEAR_MISSING]
    if _is_net(model):
        from podium.formats.onnx_nets import add_net, missing_in_net

        return add_net(graph, model), [missing_in_net(model)]
    if isinstance(model, Combined) and not is_of_trees(model):
        return _add_sum(graph, model)
    ensemble = as_ensemble(model, Onnx.name)
    trees = _trees(ensemble)
    thresholds = double_thresholds(trees, ensemble.encoding.shifts)
    return add_double_trees(graph, trees, thresholds), [LEARNT_SIDE]


def _trees(ensemble: Ensemble) -> list[Tree]:
    """Return the trees, or a leaf of value 0, because ONNX has no ensembles without trees."""
    return numeric_trees(ensemble) or [make_tree(0, lambda _: Leaf(0.0), "the constant")]


def _is_net(model: Model) -> TypeGuard[Net]:
    """Return whether a model is a net; asking for its class would import torch."""
    return model.file_kind == NET


def _add_sum(graph: Graph, model: Combined) -> tuple[str, list[str]]:
    """Add a weighted sum of models, in the order in which Podium adds them."""
    require_same_features(model, Onnx.name)
    total, missing = "", []
    for part, weight in zip(model.parts, model.weights, strict=True):
        score, texts = _add_model(graph, part)
        term = graph.add("Mul", score, graph.constant(weight))
        total = graph.add("Add", total, term) if total else term
        missing += texts
    return total, missing


def _add_linear(graph: Graph, model: LinearModel) -> str:
    """Add a linear model: replace missing and infinite values by means, then multiply and sum."""
    x = graph.features(model.encoding)
    is_missing = graph.add("Or", graph.add("IsNaN", x), graph.add("IsInf", x))
    centred = graph.add("Sub", x, graph.constant(model.means))
    filled = graph.add("Where", is_missing, graph.constant(0.0), centred)
    products = graph.add("MatMul", filled, graph.constant(model.weights[:, None]))
    return graph.add("Add", products, graph.constant(np.array([model.intercept])))


def _single(ensemble: Ensemble) -> Written:
    if ensemble.encoding.shifts:
        raise DataError("version 3 compares float32 values, and some features are shifted: use version=5")
    graph = Graph(ensemble.n_features, single=True)
    add_single_trees(graph, _trees(ensemble))
    content = graph.content(SINGLE_VERSIONS, SINGLE_IR, categories_text(ensemble))
    return Written(content, LEARNT_SIDE, ("thresholds and scores are float32",))


def _notes(model: Model) -> tuple[str, ...]:
    if not any(map(_is_net, _parts(model))):
        return ()
    from podium.formats.onnx_nets import LISTS, ROUNDING

    return (LISTS,) * model.sees_lists + (ROUNDING,)


def _parts(model: Model) -> list[Model]:
    """Return the models of a combination, and those of combinations within it."""
    return [inner for part in model.parts for inner in _parts(part)] if isinstance(model, Combined) else [model]


# --- reading


def _linear(attributes: Mapping[str, Any]) -> LinearModel:
    """Return the model of a LinearRegressor; a missing value counts as 0, whereas ONNX Runtime returns NaN."""
    weights, intercepts = (np.array(attributes.get(key, ()), np.float64) for key in ("coefficients", "intercepts"))
    if attributes.get("targets", 1) != 1 or len(intercepts) > 1 or attributes.get("post_transform", b"NONE") != b"NONE":
        raise DataError("the model has several outputs, or transforms its scores")
    return LinearModel(weights, np.zeros(len(weights)), float(intercepts.sum()), info={"imported": Onnx.name})


def _podium_linear(graph: Any) -> LinearModel | None:
    """Return the linear model of a graph that Podium wrote: its constants, in the order of `_add_linear`.

    Writing this model must give the same graph again, because a similar graph may mean something else.
    """
    if len(graph.initializer) not in (4, 5):
        return None
    arrays = [np.asarray(array_of(constant), np.float64).ravel() for constant in graph.initializer]
    means, _, weights, intercept = arrays[-4:]
    if len(means) != len(weights) or len(intercept) != 1 or not len(arrays[0]) == len(means):
        return None
    shifts = {k: float(shift) for k, shift in enumerate(arrays[0]) if shift} if len(arrays) == 5 else {}
    linear = LinearModel(
        weights, means, float(intercept[0]), info={"imported": Onnx.name}, encoding=Encoding(shifts=shifts)
    )
    expected = Graph(len(weights))
    _add_linear(expected, linear)
    expected.nodes[-1].output[0] = "score"
    is_same = expected.nodes == list(graph.node) and expected.constants == list(graph.initializer)
    return linear if is_same else None


def _require_nothing_else(nodes: Sequence[Any]) -> None:
    """Raise if other operations than the trees or weights may change a score."""
    others = {node.op_type for node in nodes} - {*READERS, LINEAR} - {"Cast", "Identity", "Reshape", "Squeeze"}
    if others:
        raise DataError(f"the graph also has {', '.join(sorted(others))}, whose effect on the score is unknown")
    proto = load_onnx().TensorProto
    for node in nodes:
        if node.op_type == "Cast" and any(
            attribute.i not in (proto.FLOAT, proto.DOUBLE) for attribute in node.attribute
        ):
            raise DataError("the graph casts to a type that holds fewer numbers than float32")
