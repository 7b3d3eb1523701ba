"""Podium's nets: torch modules that map documents to scores, and can be rebuilt from a description."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from scipy.special import expit
from torch import Tensor, nn

from podium.core.array_types import Float32s
from podium.core.validation import require_whole
from podium.errors import DataError

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {"tanh": nn.Tanh, "relu": nn.ReLU, "sigmoid": nn.Sigmoid}


class Layers(nn.Module):
    """A feed-forward net; with one hidden layer, it is the papers' two-layer net ([B], [W]).

    Args:
        n_features: the number of inputs.
        hidden: the number of units of the hidden layer, or of each hidden layer; `()` for a linear model.
        activation: `"tanh"`, `"relu"` or `"sigmoid"`.

    Example:
        >>> import torch
        >>> from podium.neural import Layers
        >>> Layers(4, hidden=(8, 3))(torch.zeros(5, 4)).shape
        torch.Size([5])

    """

    def __init__(self, n_features: int, hidden: int | Sequence[int] = 10, activation: str = "tanh") -> None:
        super().__init__()
        units = [hidden] if isinstance(hidden, int | np.integer) else list(hidden)
        for number in units:
            require_whole("hidden", number, 1)
        if activation not in ACTIVATIONS:
            raise DataError(f"activation must be one of {', '.join(map(repr, ACTIVATIONS))}, but got {activation!r}")
        self.description: dict[str, Any] = {
            "net": "layers", "n_features": int(n_features), "hidden": [int(u) for u in units], "activation": activation
        }  # fmt: skip
        parts: list[nn.Module] = []
        n_inputs = int(n_features)
        for number in units:
            parts += [nn.Linear(n_inputs, int(number)), ACTIVATIONS[activation]()]
            n_inputs = int(number)
        self.layers = nn.Sequential(*parts, nn.Linear(n_inputs, 1))

    def forward(self, documents: Tensor) -> Tensor:
        """Return the score of each row."""
        scores: Tensor = self.layers(documents).squeeze(-1)
        return scores


class ListTransformer(nn.Module):
    """A small transformer over the documents of a query: each score depends on the whole list.

    The rank in the list is not an input, so scores do not depend on the order of the rows.

    Args:
        n_features: the number of inputs.
        width: the size of a document's vector, a multiple of `heads`.
        heads: the number of attention heads.
        depth: the number of layers.

    Example:
        >>> import torch
        >>> from podium.neural import ListTransformer
        >>> ListTransformer(4, width=8)(torch.zeros(5, 4), torch.tensor([0, 2, 5])).shape
        torch.Size([5])

    """

    def __init__(self, n_features: int, width: int = 32, heads: int = 2, depth: int = 1) -> None:
        super().__init__()
        for name, value in (("width", width), ("heads", heads), ("depth", depth)):
            require_whole(name, value, 1)
        if width % heads:
            raise DataError(f"width must be a multiple of heads, but {width} is not a multiple of {heads}")
        self.description: dict[str, Any] = {
            "net": "list transformer", "n_features": int(n_features), "width": width, "heads": heads, "depth": depth
        }  # fmt: skip
        self.first = nn.Linear(n_features, width)
        layer = nn.TransformerEncoderLayer(width, heads, 2 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.last = nn.Linear(width, 1)

    def forward(self, documents: Tensor, offsets: Tensor) -> Tensor:
        """Return the score of each row; query q has the rows offsets[q] to offsets[q + 1] − 1."""
        lists, present = padded(self.first(documents), offsets)
        scores: Tensor = self.last(self.encoder(lists, src_key_padding_mask=~present)).squeeze(-1)
        return scores[present]


def padded(documents: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
    """Return the documents as one list per query, padded with zeros, and a mask that is True for documents.

    With both as `lists` and `present`, `lists[present]` restores the documents. Queries without documents have no list.

    Example:
        >>> import torch
        >>> from podium.neural import padded
        >>> lists, present = padded(torch.ones(5, 4), torch.tensor([0, 2, 5]))
        >>> lists.shape, int(present.sum())
        (torch.Size([2, 3, 4]), 5)

    """
    sizes = offsets.diff()
    sizes = sizes[sizes > 0]
    present = torch.arange(int(sizes.max()) if len(sizes) else 0)[None, :] < sizes[:, None]
    lists = documents.new_zeros(*present.shape, documents.shape[-1])
    lists[present] = documents
    return lists, present


NETS: dict[str, type[nn.Module]] = {"layers": Layers, "list transformer": ListTransformer}


def build_net(description: dict[str, Any]) -> nn.Module:
    """Build a net with random weights from its description."""
    settings = {name: value for name, value in description.items() if name != "net"}
    return NETS[description["net"]](**settings)


def sees_lists(module: nn.Module) -> bool:
    """Return whether a module's `forward` takes the offsets of queries in addition to the documents."""
    return "offsets" in inspect.signature(module.forward).parameters


def scores_of(module: nn.Module, documents: Tensor, offsets: Tensor, with_lists: bool) -> Tensor:
    """Return the scores of documents; raise if the module does not return one score per document."""
    output = module(documents, offsets) if with_lists else module(documents)
    if not isinstance(output, Tensor) or output.shape not in ((len(documents),), (len(documents), 1)):
        shape = tuple(output.shape) if isinstance(output, Tensor) else type(output).__name__
        raise DataError(f"a net must return one score for each of {len(documents)} documents, but returned {shape}")
    return output.reshape(len(documents))


class NumpyLayers:
    """The forward and backward pass of `Layers` in NumPy.

    For nets as small as the papers', it is three times as fast as autograd. It shares the weights of the net, and
    writes into the gradients of its tensors.
    """

    def __init__(self, net: Layers, gradients: Sequence[Tensor]) -> None:
        self.weights = [tensor.detach().numpy() for tensor in net.layers.parameters()]
        self.gradients = [tensor.numpy() for tensor in gradients]
        self.activation: str = net.description["activation"]
        self.layer_inputs: list[Float32s] = []

    def scores(self, documents: Float32s) -> Float32s:
        """Return the score of each document, and keep the inputs of each layer for `backward`."""
        x, self.layer_inputs = documents, [documents]
        with np.errstate(all="ignore"):  # training checks for values that are not finite
            for matrix, bias in zip(self.weights[:-2:2], self.weights[1:-2:2], strict=True):
                x = x @ matrix.T
                x += bias
                _activate(x, self.activation)
                self.layer_inputs.append(x)
            scores: Float32s = x @ self.weights[-2][0]
            scores += self.weights[-1]
        return scores

    def backward(self, score_gradients: Float32s) -> None:
        """Write the gradients of all weights, given ∂C/∂s of the documents of the last call of `scores`."""
        np.matmul(score_gradients[None, :], self.layer_inputs[-1], out=self.gradients[-2])
        self.gradients[-1][0] = score_gradients.sum()
        layer_gradients = score_gradients[:, None]
        for k in range(len(self.weights) // 2 - 2, -1, -1):
            derivatives = self.layer_inputs[k + 1]
            _to_derivatives(derivatives, self.activation)
            derivatives *= layer_gradients @ self.weights[2 * k + 2]
            layer_gradients = derivatives
            np.matmul(layer_gradients.T, self.layer_inputs[k], out=self.gradients[2 * k])
            np.sum(layer_gradients, axis=0, out=self.gradients[2 * k + 1])


def _activate(x: Float32s, activation: str) -> None:
    """Apply an activation in place."""
    if activation == "tanh":
        np.tanh(x, out=x)
    elif activation == "relu":
        np.maximum(x, 0, out=x)
    else:
        expit(x, out=x)


def _to_derivatives(y: Float32s, activation: str) -> None:
    """Replace outputs of an activation by its derivatives, in place."""
    if activation == "tanh":
        y *= y
        np.subtract(1, y, out=y)
    elif activation == "relu":
        np.sign(y, out=y)
    else:
        y *= 1 - y
