"""Nets in model files: weights as safetensors, a description for the nets that Podium brings."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from safetensors.torch import load, save
from torch import Tensor, nn

from podium.core.hyperparameters import INPUTS
from podium.errors import DataError, FileFormatError, ParameterError
from podium.models.stored import StoredModel
from podium.neural.inputs import LEVELS, Inputs
from podium.neural.model import Net
from podium.neural.modules import NETS, build_net

MOST_UNITS, MOST_LAYERS = 1 << 16, 64  # that a description may ask for
LARGEST_HEADER = 1 << 20  # bytes that the names and shapes of weights may take: some ten thousand tensors


def described_parts(net: Net) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the header says of a net, and its arrays; weights are bytes."""
    is_podiums = type(net.module) in NETS.values()
    described = net.module.description if is_podiums else {"net": "own", "class": type(net.module).__qualname__}
    tensors = {name: tensor.detach().contiguous().clone() for name, tensor in net.module.state_dict().items()}
    weights = save(tensors)
    if _header_size(weights) > LARGEST_HEADER:
        raise DataError(f"a net of {len(tensors)} tensors of weights is too much for a model file")
    arrays = {
        "weights": weights, "grid": net.inputs.grid.ravel(), "means": net.inputs.means,
        "scales": net.inputs.scales,
    }  # fmt: skip
    return {"net": described, "inputs": net.inputs.kind}, arrays


def _header_size(content: bytes) -> int:
    """How many bytes of safetensors are names and shapes."""
    return int.from_bytes(content[:8], "little")


def read(stored: StoredModel) -> Net:
    """Return the net of a file."""
    array, header, file, module, n_features = stored.array, stored.header, stored.path, stored.module, stored.n_features
    inputs = _inputs(array, header.get("inputs"), n_features, file)
    content = array("weights", bytes)
    if _header_size(content) > LARGEST_HEADER:
        raise FileFormatError(file, "its weights are damaged, or more than a net has")
    try:
        weights = load(content)
    except Exception as error:  # whatever made-up bytes lead safetensors to
        raise FileFormatError(file, f"its weights are damaged: {error}") from error
    described = header.get("net")
    if not isinstance(described, dict):
        raise FileFormatError(file, "its net is not described")
    if described.get("net") == "own":
        if module is None:
            raise ParameterError(
                f"{file} has the weights of a net of your own, {described.get('class')}; give the net as well: "
                "podium.load(file, module=…)"
            )
        net = copy.deepcopy(module)
    else:
        net = _empty_net(described, weights, n_features, file)
    expected = {name: (tensor.shape, tensor.dtype) for name, tensor in net.state_dict().items()}
    if expected != {name: (tensor.shape, tensor.dtype) for name, tensor in weights.items()}:
        raise FileFormatError(file, f"its weights are not those of a {type(net).__name__} of this shape")
    if not all(bool(torch.isfinite(tensor).all()) for tensor in weights.values()):
        raise FileFormatError(file, "a weight is not finite")
    net.load_state_dict(weights)
    return Net(net.eval(), inputs, stored.feature_names, stored.info, stored.encoding)


def _empty_net(described: dict[str, Any], weights: dict[str, Tensor], n_features: int, file: str) -> nn.Module:
    """A net as described, unless that asks for more than there are weights."""
    settings = {name: value for name, value in described.items() if name != "net"}
    hidden = settings.get("hidden", [])
    numbers = [v for name, v in settings.items() if name not in ("hidden", "activation", "n_features")]
    sizes = [*numbers, *(hidden if isinstance(hidden, list) else [None])]
    fits = len(sizes) <= MOST_LAYERS and all(type(size) is int and 1 <= size <= MOST_UNITS for size in sizes)
    fits &= settings.get("depth", 1) in range(1, MOST_LAYERS)
    fits &= isinstance(described.get("net"), str) and settings.get("n_features") == n_features
    if not fits or described["net"] not in NETS:
        raise FileFormatError(file, "its net is not described as one of Podium's")
    try:
        with torch.device("meta"):  # costs nothing, however large
            empty = build_net(described)
        if sum(p.numel() for p in empty.parameters()) == sum(map(Tensor.numel, weights.values())):
            return empty.to_empty(device="cpu")  # no random weights: the file's are put in
    except (DataError, TypeError) as error:
        raise FileFormatError(file, f"its net is not described as one of Podium's: {error}") from error
    raise FileFormatError(file, "its net is described as larger or smaller than its weights")


def _inputs(array: Callable[[str, Any], Any], kind: object, n_features: int, file: str) -> Inputs:
    grid, means, scales = (array(name, np.float64) for name in ("grid", "means", "scales"))
    levels = LEVELS if kind == "quantile" else 0
    fits = kind in INPUTS.choices and len(means) == len(scales) == n_features and len(grid) == n_features * levels
    if not fits or not all(np.isfinite(values).all() for values in (grid, means, scales)):
        raise FileFormatError(file, "the scales of its inputs are not valid")
    grid = grid.reshape(n_features, levels)
    if (np.diff(grid, axis=1) < 0).any():
        raise FileFormatError(file, "the quantiles of its inputs do not rise")
    return Inputs(str(kind), grid, means, scales)
