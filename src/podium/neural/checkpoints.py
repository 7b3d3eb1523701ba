"""Checkpoints of nets: the state of a training run in one safetensors file."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor, nn

from podium.boosting.checkpoints import Checkpoint
from podium.core.files import remove_leftovers, replacing
from podium.core.observing import Observations
from podium.errors import FileFormatError, PodiumError
from podium.neural.optimizers import Optimizer

States = dict[int, dict[str, Tensor]]


@dataclass
class State:
    """The state of a training run after an epoch."""

    rate: float  # the learning rate of the next epoch
    epochs: int = 0  # the number of finished epochs
    best: int = 0  # the best epoch
    halved: int = 0  # the epoch after which the rate was last halved
    history: dict[str, list[float]] = field(default_factory=dict)  # the means of measures
    observations: Observations = field(default_factory=Observations)
    # objectives: the state of each batch's objective; empty for most objectives
    objectives: list[dict[str, list[float]]] = field(default_factory=list)
    candidates: States = field(default_factory=dict)  # by epoch, weights that are, or may become, the best

    def whole_history(self) -> dict[str, list[float]]:
        """Return the measured means and the values of observers, with one entry per epoch."""
        return self.history | self.observations.columns(self.epochs)

    def copy(self) -> State:
        """Return a copy that the next epoch leaves unchanged."""
        return replace(
            self, history={key: list(values) for key, values in self.history.items()},
            observations=Observations(self.observations.values), objectives=list(self.objectives),
            candidates=dict(self.candidates),
        )  # fmt: skip


def snapshot_of(module: nn.Module, optimizer: Optimizer, state: State) -> tuple[dict[str, Tensor], State]:
    """Return copies of everything that a run needs to resume after this epoch."""
    tensors = {f"now/{name}": tensor for name, tensor in module.state_dict().items()}
    tensors |= {f"optimizer/{name}": tensor for name, tensor in optimizer.state().items()}
    return {name: tensor.contiguous().clone() for name, tensor in tensors.items()}, state.copy()


def write_state(checkpoint: Checkpoint, fingerprint: str, tensors: dict[str, Tensor], state: State) -> None:
    """Write a snapshot; the old file is replaced only when the new one is complete."""
    numbers = {"rate": state.rate, "epochs": state.epochs, "best": state.best, "halved": state.halved}
    records = {"history": state.history, "observations": state.observations.values, "objectives": state.objectives}
    header = json.dumps(numbers | records | {"fingerprint": fingerprint})
    for k, weights in state.candidates.items():
        tensors = tensors | {f"kept/{k}/{name}": tensor.contiguous() for name, tensor in weights.items()}
    content = save(tensors, {"podium": header, "sha256": _checksum(header, tensors)})
    with replacing(Path(checkpoint.path)) as temporary:
        temporary.write_bytes(content)


def read_state(checkpoint: Checkpoint, fingerprint: str, module: nn.Module, optimizer: Optimizer) -> State | None:
    """Load an earlier run into `module` and `optimizer`, and return its state, or None if there is no file.

    Raise if that run had other settings or data, or if the file is damaged.
    """
    path = Path(checkpoint.path)
    remove_leftovers(path)
    if not path.exists():
        return None
    try:
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}
        if metadata["sha256"] != _checksum(metadata["podium"], tensors):
            raise ValueError("the checksum does not match")
        header = json.loads(metadata["podium"])
        if header.pop("fingerprint", None) != fingerprint:
            raise checkpoint.mismatch()
        return _restore(header, tensors, module, optimizer)
    except PodiumError:
        raise
    except Exception as error:  # safetensors, json and torch raise many types for damaged bytes
        raise FileFormatError(str(path), f"is not a checkpoint of a net, or is damaged ({error})") from error


def _restore(header: dict[str, Any], tensors: dict[str, Tensor], module: nn.Module, optimizer: Optimizer) -> State:
    candidates: States = {}
    parts: dict[str, dict[str, Tensor]] = {"now": {}, "optimizer": {}}
    for name, tensor in tensors.items():
        kind, _, rest = name.partition("/")
        if kind in parts:
            parts[kind][rest] = tensor
        else:
            number, _, inner = rest.partition("/")
            candidates.setdefault(int(number), {})[inner] = tensor
    module.load_state_dict(parts["now"])
    optimizer.restore(parts["optimizer"])
    header["observations"] = Observations(header.get("observations"))
    return State(**header, candidates=candidates)


def _checksum(header: str, tensors: dict[str, Tensor]) -> str:
    """Return a hash of the whole content, because safetensors files have no checksum."""
    checksum = hashlib.sha256(header.encode())
    for name, tensor in sorted(tensors.items()):
        checksum.update(f"{name} {tensor.dtype} {tensor.shape}".encode() + tensor.numpy().tobytes())
    return checksum.hexdigest()
