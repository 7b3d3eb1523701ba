"""Optimizers that update all weights of a module at once.

A module's weights become views of one vector, so a step takes the same few operations for any number of tensors. For
nets as small as the papers', that is several times as fast as one update per tensor.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from podium.errors import DataError


class Weights:
    """The trainable weights of a module and their gradient, each as one vector."""

    def __init__(self, module: nn.Module) -> None:
        self.tensors = [tensor for tensor in module.parameters() if tensor.requires_grad]
        if not self.tensors or any(t.dtype != torch.float32 or t.device.type != "cpu" for t in self.tensors):
            raise DataError("the net must have trainable weights, all of them float32 and on the CPU")
        self.vector = torch.cat([tensor.detach().reshape(-1) for tensor in self.tensors])
        self.gradient = torch.zeros_like(self.vector)
        self.gradients: list[Tensor] = []
        start = 0
        for tensor in self.tensors:
            part = slice(start, start + tensor.numel())
            tensor.data, tensor.grad = self.vector[part].view_as(tensor), self.gradient[part].view_as(tensor)
            self.gradients.append(tensor.grad)
            start = part.stop

    def release(self) -> None:
        """Give each tensor its own memory again, so that the vector can be freed."""
        for tensor in self.tensors:
            tensor.data, tensor.grad = tensor.data.clone(), None


class Optimizer(ABC):
    """An update rule; l2 times the weights is added to the gradient (weight decay)."""

    default_rate: float

    def __init__(self, weights: Weights, l2: float) -> None:
        self.weights, self.l2 = weights, l2

    def step(self, rate: float) -> None:
        """Update the weights, and reset the gradient."""
        if self.l2:
            self.weights.gradient.add_(self.weights.vector, alpha=self.l2)
        self.move(self.weights.vector, self.weights.gradient, rate)
        self.weights.gradient.zero_()

    @abstractmethod
    def move(self, weights: Tensor, gradient: Tensor, rate: float) -> None:
        """Move the weights one step down the gradient."""

    def state(self) -> dict[str, Tensor]:
        """Return the state that the next step needs, for checkpoints."""
        return {}

    def restore(self, state: dict[str, Tensor]) -> None:  # noqa: B027
        """Restore what `state` returned."""


class SGD(Optimizer):
    """Stochastic gradient descent, as in [B]."""

    default_rate = 1e-3

    def move(self, weights: Tensor, gradient: Tensor, rate: float) -> None:
        weights.sub_(gradient, alpha=rate)


class Adam(Optimizer):
    """Kingma and Ba, *Adam: a method for stochastic optimization*, ICLR 2015, with their constants."""

    default_rate = 1e-2

    def __init__(self, weights: Weights, l2: float) -> None:
        super().__init__(weights, l2)
        self.mean, self.square = torch.zeros_like(weights.vector), torch.zeros_like(weights.vector)
        self.steps = 0

    def move(self, weights: Tensor, gradient: Tensor, rate: float) -> None:
        """Move by the running mean of gradients, divided by the root of the running mean of their squares."""
        self.steps += 1
        self.mean.lerp_(gradient, 0.1)
        self.square.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
        size = self.square.sqrt().div_(math.sqrt(1 - 0.999**self.steps)).add_(1e-8)
        weights.addcdiv_(self.mean, size, value=-rate / (1 - 0.9**self.steps))

    def state(self) -> dict[str, Tensor]:
        return {"mean": self.mean, "square": self.square, "steps": torch.tensor(self.steps)}

    def restore(self, state: dict[str, Tensor]) -> None:
        self.mean, self.square, self.steps = state["mean"], state["square"], int(state["steps"])


OPTIMIZERS: dict[str, type[Optimizer]] = {"adam": Adam, "sgd": SGD}
