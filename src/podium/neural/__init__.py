"""Nets: the papers' two-layer one, one that sees lists, any torch module; and how they are trained on λ.

All but this line of the package needs torch, the extra `neural`.
"""

from podium.errors import MissingExtraError

try:
    import torch as torch
except ImportError:
    raise MissingExtraError("torch", "neural", "a net") from None

from podium.neural.inputs import Inputs
from podium.neural.model import Net
from podium.neural.modules import Layers, ListTransformer, padded
from podium.neural.training import Epoch, NetTraining, NetTrainingResult

__all__ = ["Epoch", "Inputs", "Layers", "ListTransformer", "Net", "NetTraining", "NetTrainingResult", "padded"]
