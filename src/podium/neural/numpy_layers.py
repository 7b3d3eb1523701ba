"""The papers' net in NumPy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import expit
from torch import Tensor

from podium.core.array_types import Float32s
from podium.neural.modules import Layers


class NumpyLayers:
    """`Layers` in NumPy, forward and backward: for nets as small as the papers', autograd takes three times as long.

    Args:
        net: shares its weights.
        gradients: of each tensor of weights, written by `backward`.

    """

    def __init__(self, net: Layers, gradients: Sequence[Tensor]) -> None:
        self.weights = [tensor.detach().numpy() for tensor in net.layers.parameters()]
        self.gradients = [tensor.numpy() for tensor in gradients]
        self.activation: str = net.description["activation"]
        self.layer_inputs: list[Float32s] = []

    def scores(self, documents: Float32s) -> Float32s:
        """The score of each document; the inputs of each layer are kept for `backward`."""
        x, self.layer_inputs = documents, [documents]
        with np.errstate(all="ignore"):  # training itself looks for what is not finite
            for matrix, bias in zip(self.weights[:-2:2], self.weights[1:-2:2], strict=True):
                x = x @ matrix.T
                x += bias
                _activate(x, self.activation)
                self.layer_inputs.append(x)
            scores: Float32s = x @ self.weights[-2][0]
            scores += self.weights[-1]
        return scores

    def backward(self, score_gradients: Float32s) -> None:
        """Write the gradients of all weights, from ∂C/∂s of each document that was scored last."""
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
    """Apply an activation, in place."""
    if activation == "tanh":
        np.tanh(x, out=x)
    elif activation == "relu":
        np.maximum(x, 0, out=x)
    else:
        expit(x, out=x)


def _to_derivatives(y: Float32s, activation: str) -> None:
    """Replace the outputs of an activation by its derivatives there, in place."""
    if activation == "tanh":
        y *= y
        np.subtract(1, y, out=y)
    elif activation == "relu":
        np.sign(y, out=y)
    else:
        y *= 1 - y
