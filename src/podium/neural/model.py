"""Nets as models, and the contribution of each input to a score.

Integrated gradients (Sundararajan, Taly and Yan 2017) follow the straight line from a baseline to the document:
φ_k = (x_k − b_k) ∫ ∂s/∂x_k (b + t (x − b)) dt over [0, 1], x and b on the scale of the net's inputs.
Σ φ_k = s(x) − s(b). Gauss-Legendre quadrature computes the integral with 16 points, then with 16 points on each of 4,
16 and 64 intervals, until the sum is accurate. Smooth nets need few points; nets with kinks (ReLU) need many.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from safetensors.torch import load, save
from torch import Tensor, nn

from podium.core.array_types import Float32s, Floats, Ints
from podium.core.hyperparameters import INPUTS
from podium.core.threads import thread_count
from podium.data import RankingData
from podium.data.canonical import queries_by_content, rows_in_order
from podium.data.encoding import Encoding
from podium.data.features import Features
from podium.errors import DataError, FileFormatError, ParameterError, warn
from podium.models import Model
from podium.models.archive import Parts, StoredModel
from podium.neural.inputs import LEVELS, Inputs
from podium.neural.modules import NETS, build_net, scores_of, sees_lists

POINTS, INTERVALS = 16, (1, 4, 16, 64)  # points per interval, and the numbers of intervals to try
TOLERANCE, LARGE_ERROR = 1e-4, 1e-3  # stop below the first error, warn above the second; relative to 1 + |s(x) − s(b)|
POINTS_AT_ONCE = 1 << 15  # documents × points


def integrated_gradients(module: nn.Module, inputs: Float32s, baseline: Floats) -> tuple[Floats, float]:
    """Return φ of each input (column) for each document (row), and the score of the baseline; computed in float64."""
    if sees_lists(module):
        raise DataError(
            "this net scores whole lists: a document's score also depends on the other documents, so the contributions "
            "of its own features do not add up to it. Use permutation_importance or partial_dependence"
        )
    exact = copy.deepcopy(module).double().requires_grad_(False).eval()
    start = torch.from_numpy(np.asarray(baseline, np.float64))
    steps = torch.from_numpy(inputs.astype(np.float64)) - start
    base = float(_scores(exact, start[None, :])[0])
    gaps = _scores(exact, start + steps) - base
    values, open_rows = torch.zeros_like(steps), torch.arange(len(steps))
    for n_intervals in INTERVALS:
        for rows in torch.split(open_rows, POINTS_AT_ONCE // (POINTS * n_intervals)):
            values[rows] = steps[rows] * _mean_gradients(exact, start, steps[rows], n_intervals)
        errors = (values.sum(dim=1) - gaps).abs() / (1 + gaps.abs())
        open_rows = torch.nonzero(errors > TOLERANCE).ravel()
        if not len(open_rows):
            break
    n_inaccurate = int((errors > LARGE_ERROR).sum())
    if n_inaccurate:
        warn(
            f"integrated gradients of {n_inaccurate} documents miss the difference of scores by up to "
            f"{float(errors.max()):.1g}, even with {POINTS * INTERVALS[-1]} points, because the net is not smooth there"
        )
    return values.numpy(), base


def _scores(module: nn.Module, documents: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return scores_of(module, documents, torch.tensor([0, len(documents)]), False)


def _mean_gradients(module: nn.Module, start: torch.Tensor, steps: torch.Tensor, n_intervals: int) -> torch.Tensor:
    """Return ∫ ∂s/∂x dt along each step."""
    points, weights = np.polynomial.legendre.leggauss(POINTS)
    places = (np.arange(n_intervals)[:, None] + (points + 1) / 2).ravel() / n_intervals
    shares = torch.from_numpy(np.tile(weights / 2, n_intervals) / n_intervals)
    documents = start + torch.from_numpy(places)[None, :, None] * steps[:, None, :]
    documents = documents.reshape(-1, len(start)).requires_grad_()
    with torch.enable_grad():
        scores = scores_of(module, documents, torch.tensor([0, len(documents)]), False)
        (gradients,) = torch.autograd.grad(scores.sum(), documents)
    return (gradients.reshape(len(steps), len(places), len(start)) * shares[None, :, None]).sum(dim=1)


DOCUMENTS_AT_ONCE = 1 << 15
PAIRS_AT_ONCE = 1 << 24


@dataclass(frozen=True)
class Net(Model):
    """A torch module with the scaling of its inputs.

    Attributes:
        module: maps documents to scores; if its `forward` has the parameter `offsets`, it gets those of the queries.
        inputs: the scaling of the features.
        feature_names: the names of the features, or None.
        info: parameters, history and other records, as JSON types.
        encoding: how the features of the training data were encoded.

    Example:
        >>> import podium
        >>> net = podium.RankNet(hidden=3, epochs=1, n_threads=1).fit(podium.artificial(20, features=4)).model_
        >>> net
        Net(Layers, 19 weights)

    """

    module: nn.Module
    inputs: Inputs
    feature_names: tuple[str, ...] | None = None
    info: dict[str, Any] = field(default_factory=dict)
    encoding: Encoding = field(default_factory=Encoding)
    file_kind: ClassVar[str | None] = "podium net"

    @property
    def n_features(self) -> int:  # type: ignore[override]
        """The number of features."""
        return self.inputs.n_features

    @property
    def sees_lists(self) -> bool:  # type: ignore[override]
        """Whether the module scores whole lists."""
        return sees_lists(self.module)

    def __repr__(self) -> str:
        weights = sum(tensor.numel() for tensor in self.module.parameters())
        return f"Net({type(self.module).__name__}, {weights} weights)"

    def _predict_rows(self, features: Features, offsets: Ints | None = None, *, n_threads: int | None = None) -> Floats:
        rows = self._checked_rows(features)
        if offsets is None and self.sees_lists:
            raise DataError("this net scores whole lists, and an array has no queries: pass RankingData")
        if offsets is None:  # documents do not depend on each other, so any batches will do
            offsets = np.arange(0, rows + DOCUMENTS_AT_ONCE, DOCUMENTS_AT_ONCE).clip(max=rows)
        offsets = np.asarray(offsets, np.int64)
        if offsets[0] != 0 or offsets[-1] != rows or (np.diff(offsets) < 0).any():
            raise DataError(f"offsets must ascend from 0 to the number of rows, {rows}")
        with torch_threads(n_threads):
            return scores_in_batches(
                self.module, lambda first, last: torch.from_numpy(self.inputs(features[first:last])), offsets
            )

    def importance(self, kind: Any = "gain") -> Floats:
        """Return the mean |∂s/∂x| of each scaled feature at random inputs."""
        draws = torch.randn(256, self.n_features, generator=torch.Generator().manual_seed(0)).requires_grad_()
        with torch.enable_grad():
            scores = scores_of(self.module, draws, torch.tensor([0, len(draws)]), self.sees_lists)
            (gradients,) = torch.autograd.grad(scores.sum(), draws)
        slopes: Floats = gradients.abs().mean(dim=0).double().numpy()
        return np.where(self.inputs.scales > 0, slopes, 0.0)

    def integrated_gradients(
        self, features: Features, background: Features | None = None, n_threads: int | None = None
    ) -> tuple[Floats, float]:
        """Return the contribution of each feature to the score of each row, and the score of the baseline.

        The baseline is the mean input of the training documents, or of `background` if it is given.
        """
        baseline = np.zeros(self.n_features)  # every feature at its mean
        if self.inputs.kind == "none" and background is None:
            raise DataError('this net has inputs="none", so the means of its features are unknown: pass background=…')
        if background is not None:
            if not background.shape[0]:
                raise DataError("the background has no documents")
            baseline = np.sort(self.inputs(background).astype(np.float64), axis=0).mean(axis=0)
        with torch_threads(n_threads):
            return integrated_gradients(self.module, self.inputs(features), baseline)

    def _parameters(self) -> list[Any]:
        """Return the inputs and the weights; the code of a custom module is not included."""
        shape = self.module.description if type(self.module) in NETS.values() else repr(self.module)
        weights = {name: tensor.numpy() for name, tensor in self.module.state_dict().items()}
        return [shape, self.inputs, weights]

    def to_parts(self) -> Parts:
        is_builtin = type(self.module) in NETS.values()
        class_name = type(self.module).__qualname__
        description = self.module.description if is_builtin else {"net": "own", "class": class_name}
        tensors = {name: tensor.detach().contiguous().clone() for name, tensor in self.module.state_dict().items()}
        weights, inputs = save(tensors), self.inputs
        if _header_size(weights) > LARGEST_HEADER:
            raise DataError(f"a net with {len(tensors)} tensors of weights is too large for a model file")
        scales = {"grid": inputs.grid.ravel(), "means": inputs.means, "scales": inputs.scales}
        return Parts({"net": description, "inputs": inputs.kind}, {"weights": weights, **scales})

    @classmethod
    def from_parts(cls, stored: StoredModel) -> Net:
        header, file, n_features = stored.header, stored.path, stored.n_features
        inputs = _inputs(stored.array, header.get("inputs"), n_features, file)
        weights = _weights(stored.array("weights", bytes), file)
        description = header.get("net")
        if not isinstance(description, dict):
            raise FileFormatError(file, "the description of its net is missing")
        if description.get("net") != "own":
            net = _empty_net(description, weights, n_features, file)
        elif stored.module is not None:
            net = copy.deepcopy(stored.module)
        else:
            raise ParameterError(
                f"{file} contains the weights of a custom net, {description.get('class')}: "
                "pass the net as well, podium.load(file, module=…)"
            )
        expected = {name: (tensor.shape, tensor.dtype) for name, tensor in net.state_dict().items()}
        if expected != {name: (tensor.shape, tensor.dtype) for name, tensor in weights.items()}:
            raise FileFormatError(file, f"its weights are not those of a {type(net).__name__} of this shape")
        net.load_state_dict(weights)
        return cls(net.eval(), inputs, stored.feature_names, stored.info, stored.encoding)

    def as_function(self, data: RankingData) -> tuple[Floats, Callable[[Floats], Floats]]:
        """Return the weights as a vector, and a function from such a vector to the scores of the documents."""
        order = data.canonical_order
        documents = torch.from_numpy(self.inputs(self.schema.rows(data)[order]))
        module = copy.deepcopy(self.module).requires_grad_(False)

        def scores(weights: Floats) -> Floats:
            net, result = copy.deepcopy(module), np.empty(len(data))  # a copy, because threads call this concurrently
            nn.utils.vector_to_parameters(torch.from_numpy(weights.astype(np.float32)), net.parameters())
            result[order] = scores_in_batches(net, lambda first, last: documents[first:last], data.offsets)
            return result

        return nn.utils.parameters_to_vector(module.parameters()).double().numpy(), scores


def scores_in_batches(module: nn.Module, documents: Callable[[int, int], torch.Tensor], offsets: Ints) -> Floats:
    """Return the scores, computed without gradients in batches of whole queries.

    `documents(first, last)` returns rows; query q has the rows offsets[q] to offsets[q + 1] − 1. A module that scores
    lists pads each list to the longest of its batch and compares all pairs of documents, so the number of pairs limits
    its batches.
    """
    scores, first, with_lists = np.empty(offsets[-1]), 0, sees_lists(module)
    with torch.inference_mode():
        while first < len(offsets) - 1:
            last = int(np.searchsorted(offsets, offsets[first] + DOCUMENTS_AT_ONCE, "right")) - 1
            if with_lists:
                longest = np.maximum.accumulate(np.diff(offsets[first : last + 1]))
                last = first + int((longest**2 * np.arange(1, len(longest) + 1) <= PAIRS_AT_ONCE).sum())
            last = min(max(last, first + 1), len(offsets) - 1)
            lists = torch.from_numpy(offsets[first : last + 1] - offsets[first])
            start, end = int(offsets[first]), int(offsets[last])
            scores[start:end] = scores_of(module, documents(start, end), lists, with_lists).numpy()
            first = last
    return scores


@contextmanager
def torch_threads(n_threads: int | None) -> Iterator[None]:
    """Let torch use `n_threads` threads within the block."""
    before = torch.get_num_threads()
    torch.set_num_threads(thread_count(n_threads))
    try:
        yield
    finally:
        torch.set_num_threads(before)


class ScoredSet:
    """Documents that a net scores after each epoch."""

    def __init__(self, data: RankingData, rows: Ints, offsets: Ints, inputs: Tensor) -> None:
        self.data, self.rows, self.offsets, self.documents = data, rows, offsets, inputs
        self.scores = np.zeros(len(data))  # by row, as of the last epoch

    @classmethod
    def of(cls, data: RankingData, inputs: Inputs) -> ScoredSet:
        """Order the queries by content and their documents canonically, so that results do not depend on row order."""
        rows, offsets = rows_in_order(data, queries_by_content(data))
        return cls(data, rows, offsets, torch.from_numpy(inputs(data.features[rows])))

    def score(self, module: nn.Module) -> None:
        """Update the scores."""
        scores = scores_in_batches(module, lambda first, last: self.documents[first:last], self.offsets)
        self.scores[self.rows] = scores


# --- the model file: weights as safetensors, and a description for Podium's own nets

MAX_UNITS, MAX_LAYERS = 1 << 16, 64  # that a description may request
LARGEST_HEADER = 1 << 20  # bytes for the names and shapes of weights: about ten thousand tensors


def _header_size(content: bytes) -> int:
    """Return the size of the names and shapes in bytes of safetensors."""
    return int.from_bytes(content[:8], "little")


def _weights(content: bytes, file: str) -> dict[str, Tensor]:
    """Return the weights of a file; raise if they are damaged or not finite."""
    if _header_size(content) > LARGEST_HEADER:
        raise FileFormatError(file, "its weights are damaged, or have too many tensors")
    try:
        weights = load(content)
    except Exception as error:  # safetensors raises many types for crafted bytes
        raise FileFormatError(file, f"its weights are damaged: {error}") from error
    if not all(bool(torch.isfinite(tensor).all()) for tensor in weights.values()):
        raise FileFormatError(file, "a weight is not finite")
    return weights


def _empty_net(description: dict[str, Any], weights: dict[str, Tensor], n_features: int, file: str) -> nn.Module:
    """Return a net by its description; raise if its size does not match the weights, before memory is allocated."""
    settings = {name: value for name, value in description.items() if name != "net"}
    hidden = settings.get("hidden", [])
    numbers = [v for name, v in settings.items() if name not in ("hidden", "activation", "n_features")]
    sizes = [*numbers, *(hidden if isinstance(hidden, list) else [None])]
    fits = len(sizes) <= MAX_LAYERS and all(type(size) is int and 1 <= size <= MAX_UNITS for size in sizes)
    fits &= settings.get("depth", 1) in range(1, MAX_LAYERS)
    fits &= isinstance(description.get("net"), str) and settings.get("n_features") == n_features
    if not fits or description["net"] not in NETS:
        raise FileFormatError(file, "the description of its net is invalid")
    try:
        with torch.device("meta"):  # allocates no memory, however large the net
            empty = build_net(description)
        if sum(p.numel() for p in empty.parameters()) == sum(map(Tensor.numel, weights.values())):
            return empty.to_empty(device="cpu")  # the weights of the file are loaded into it
    except (DataError, TypeError) as error:
        raise FileFormatError(file, f"the description of its net is invalid: {error}") from error
    raise FileFormatError(file, "the description of its net does not match the number of weights")


def _inputs(array: Callable[[str, Any], Any], kind: object, n_features: int, file: str) -> Inputs:
    """Return the scaling of inputs from the arrays of a file; raise if it is invalid."""
    grid, means, scales = (array(name, np.float64) for name in ("grid", "means", "scales"))
    levels = LEVELS if kind == "quantile" else 0
    fits = kind in INPUTS.choices and len(means) == len(scales) == n_features and len(grid) == n_features * levels
    if not fits or not all(np.isfinite(values).all() for values in (grid, means, scales)):
        raise FileFormatError(file, "the scales of its inputs are invalid")
    grid = grid.reshape(n_features, levels)
    if (np.diff(grid, axis=1) < 0).any():
        raise FileFormatError(file, "the quantiles of its inputs do not ascend")
    return Inputs(str(kind), grid, means, scales)
