"""Neural rankers: the papers' two-layer net, a list transformer, or any torch module, trained on λ.

Importing this package requires torch, which the extra `neural` installs.
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
