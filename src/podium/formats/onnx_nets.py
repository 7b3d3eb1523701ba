"""Nets as ONNX graphs in double: the scaling of their inputs, and their layers.

Podium's nets have float32 weights and round their inputs to float32. The graph holds the same numbers, but adds in
double.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from torch import nn

from podium.core.array_types import Floats
from podium.errors import DataError
from podium.formats.onnx_graph import Graph
from podium.neural import Inputs, Layers, ListTransformer, Net
from podium.neural.inputs import LARGEST

ACTIVATIONS = {"tanh": "Tanh", "relu": "Relu", "sigmoid": "Sigmoid"}
LISTS = "a score depends on the whole list: pass all documents of one query, and no others, in each run"
ROUNDING = "layers add in double, and Podium's in float32: scores agree to about 1e-6 of their size"


def add_net(graph: Graph, net: Net) -> str:
    """Add a net; return the name of its scores."""
    module = net.module
    if type(module) not in LAYERS:
        raise DataError(
            f"{type(module).__name__} is your own module, which Podium cannot export: use torch.onnx, and scale the "
            "inputs as model.inputs does"
        )
    weights = {name: tensor.double().numpy() for name, tensor in module.state_dict().items()}
    inputs = _add_inputs(graph, net.inputs, graph.features(net.encoding))
    return LAYERS[type(module)](graph, inputs, module, weights)


def missing_in_net(net: Net) -> str:
    """Describe how the net treats missing values."""
    counts_as = "0" if net.inputs.kind == "none" else "the mean of their feature"
    return f"NaN and infinities count as {counts_as}, as in Podium"


# --- inputs


def _add_inputs(graph: Graph, inputs: Inputs, x: str) -> str:
    """Scale features as a net's inputs; see `Inputs`."""
    zero = graph.constant(0.0)
    is_missing = graph.add("Or", graph.add("IsNaN", x), graph.add("IsInf", x))
    x = graph.add("Where", is_missing, zero, x)
    if inputs.kind != "none":
        if inputs.kind == "log":
            x = _add_logarithm(graph, x)
        elif inputs.kind == "quantile":
            x = _add_quantiles(graph, x, inputs.grid)
        centred = graph.add("Sub", x, graph.constant(inputs.means))
        scaled = graph.add("Mul", centred, graph.constant(inputs.scales))
        clipped = graph.add("Clip", scaled, graph.constant(-LARGEST), graph.constant(LARGEST))
        x = graph.add("Where", is_missing, zero, clipped)
    return graph.rounded(x)


def _add_logarithm(graph: Graph, x: str) -> str:
    """Add sign(x) log(1 + |x|), exact for small |x| as log(u) |x| / (u − 1), where u is 1 + |x| rounded."""
    one, size = graph.constant(1.0), graph.add("Abs", x)
    u = graph.add("Add", one, size)
    step = graph.add("Sub", u, one)
    is_tiny = graph.add("Equal", u, one)  # there log(1 + |x|) is |x|
    ratio = graph.add("Div", size, graph.add("Where", is_tiny, one, step))
    logarithm = graph.add("Where", is_tiny, size, graph.add("Mul", graph.add("Log", u), ratio))
    return graph.add("Mul", graph.add("Sign", x), logarithm)


def _add_quantiles(graph: Graph, x: str, grid: Floats) -> str:
    """Add the share of training documents below x: search among the quantiles of its feature, then interpolate.

    `count` quantiles are at or below x. If x is one of them, its share is the middle of the first and the last quantile
    that are equal to it. Otherwise it is on the line from the last one below to the next.
    """
    n_features, levels = grid.shape
    steps = [1 << k for k in reversed(range(levels.bit_length()))]
    padded = np.full((n_features, 2 * steps[0]), np.inf)  # room for every step of the search
    padded[:, :levels] = grid
    rows = graph.constant(np.arange(n_features, dtype=np.int64) * padded.shape[1])
    table, count = graph.constant(padded.ravel()), graph.constant(np.zeros(n_features, np.int64))
    for step in steps:
        larger = graph.add("Add", count, graph.constant(np.array(step, np.int64)))
        place = graph.add("Add", larger, graph.constant(np.arange(n_features, dtype=np.int64) * padded.shape[1] - 1))
        reached = graph.add("LessOrEqual", graph.add("Gather", table, place), x)
        count = graph.add("Where", reached, larger, count)
    place = graph.add("Add", rows, count)
    below, slope, share, share_at = (
        graph.add("Gather", graph.constant(_widened(part, padded.shape[1])), place) for part in _segments(grid)
    )
    ahead = graph.add("Mul", graph.add("Sub", x, below), slope)
    between = graph.add("Add", share, ahead)
    return graph.add("Where", graph.add("Equal", x, below), share_at, between)


def _widened(values: Floats, width: int) -> Floats:
    """Pad rows with zeros to a width, and concatenate them."""
    return np.pad(values, ((0, 0), (0, width - values.shape[1]))).ravel()


def _segments(grid: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Return tables by feature and number of quantiles at or below x, for the interpolation.

    They hold the last of these quantiles, the slope after it, and the shares just above it and at it.
    """
    n_features, levels = grid.shape
    below = np.concatenate([grid[:, :1], grid], axis=1)
    widths = np.diff(grid, axis=1)
    slopes = np.zeros((n_features, levels + 1))
    slopes[:, 1:-1] = np.divide(1.0, widths * (levels - 1), out=np.zeros_like(widths), where=widths > 0)
    numbers = np.arange(levels)
    first = np.array([np.searchsorted(row, row, "left") for row in grid]).reshape(n_features, levels)
    shares, shares_at = np.zeros((n_features, levels + 1)), np.zeros((n_features, levels + 1))
    shares[:, 1:] = numbers / (levels - 1)
    shares_at[:, 1:] = 0.5 * (first + numbers) / (levels - 1)
    return below, slopes, shares, shares_at


# --- layers


def _add_layer(graph: Graph, x: str, weights: dict[str, Floats], name: str) -> str:
    parts = (graph.constant(weights[f"{name}.{part}"]) for part in ("weight", "bias"))
    return graph.add("Gemm", x, *parts, transB=1)


def _add_layers(graph: Graph, x: str, module: nn.Module, weights: dict[str, Floats]) -> str:
    """Add `Layers`: linear layers with activations between them."""
    assert isinstance(module, Layers)
    activation, n_hidden = ACTIVATIONS[module.description["activation"]], len(module.description["hidden"])
    for k in range(n_hidden):
        x = graph.add(activation, _add_layer(graph, x, weights, f"layers.{2 * k}"))
    return _add_layer(graph, x, weights, f"layers.{2 * n_hidden}")


def _add_list_transformer(graph: Graph, x: str, module: nn.Module, weights: dict[str, Floats]) -> str:
    """Add a `ListTransformer` on one query's documents: attention and two linear layers, each added to its input."""
    assert isinstance(module, ListTransformer)
    x = _add_layer(graph, x, weights, "first")
    for k, layer in enumerate(module.encoder.layers):
        name = f"encoder.layers.{k}"
        part = _add_norm(graph, x, weights, f"{name}.norm1", layer.norm1.eps)
        x = graph.add("Add", x, _add_attention(graph, part, weights, f"{name}.self_attn", module.description["heads"]))
        part = _add_norm(graph, x, weights, f"{name}.norm2", layer.norm2.eps)
        part = graph.add("Relu", _add_layer(graph, part, weights, f"{name}.linear1"))
        x = graph.add("Add", x, _add_layer(graph, part, weights, f"{name}.linear2"))
    return _add_layer(graph, x, weights, "last")


def _add_norm(graph: Graph, x: str, weights: dict[str, Floats], name: str, epsilon: float) -> str:
    """Normalize each document's vector to mean 0 and deviation 1, then scale it."""
    parts = (graph.constant(weights[f"{name}.{part}"]) for part in ("weight", "bias"))
    return graph.add("LayerNormalization", x, *parts, epsilon=epsilon, axis=-1)


def _add_attention(graph: Graph, x: str, weights: dict[str, Floats], name: str, heads: int) -> str:
    """Add attention: each document's mean of all values, weighted by the match of its query with the keys, per head."""
    matrix, bias = weights[f"{name}.in_proj_weight"], weights[f"{name}.in_proj_bias"]
    width = matrix.shape[1]
    shape = graph.constant(np.array([0, heads, width // heads], np.int64))
    projected = graph.add("Gemm", x, graph.constant(matrix), graph.constant(bias), transB=1)
    parts = graph.add_several(3, "Split", projected, axis=1, num_outputs=3)
    query, key, value = (graph.add("Reshape", part, shape) for part in parts)
    query, value = (graph.add("Transpose", part, perm=[1, 0, 2]) for part in (query, value))
    match = graph.add("MatMul", query, graph.add("Transpose", key, perm=[1, 2, 0]))
    scaled = graph.add("Div", match, graph.constant(math.sqrt(width // heads)))
    means = graph.add("MatMul", graph.add("Softmax", scaled, axis=-1), value)
    documents = graph.add("Transpose", means, perm=[1, 0, 2])
    joined = graph.add("Reshape", documents, graph.constant(np.array([0, width], np.int64)))
    return _add_layer(graph, joined, weights, f"{name}.out_proj")


LAYERS: dict[type[nn.Module], Callable[[Graph, str, nn.Module, dict[str, Floats]], str]] = {
    Layers: _add_layers, ListTransformer: _add_list_transformer,
}  # fmt: skip
