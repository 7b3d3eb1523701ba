"""A net as a scorer."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from podium.core.array_types import Floats, Ints
from podium.core.threads import thread_count
from podium.data import RankingData
from podium.data.encoding import Encoding
from podium.data.features import Features
from podium.errors import DataError
from podium.models import Model
from podium.models.stored import Parts, StoredModel
from podium.neural.gradients import integrated_gradients
from podium.neural.inputs import Inputs
from podium.neural.modules import NETS, scores_of, sees_lists

DOCUMENTS_AT_ONCE = 1 << 15
PAIRS_AT_ONCE = 1 << 24


@dataclass(frozen=True)
class Net(Model):
    """A torch module with the scales of its inputs.

    Attributes:
        module: from documents, and the queries' offsets where its `forward` takes them, to scores.
        inputs: how features are brought to one scale.
        feature_names: names of the features, or None.
        info: parameters, history and the like, as JSON has it.
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
        """Whether the module takes whole lists."""
        return sees_lists(self.module)

    def __repr__(self) -> str:
        weights = sum(tensor.numel() for tensor in self.module.parameters())
        return f"Net({type(self.module).__name__}, {weights} weights)"

    def _predict_rows(self, features: Features, offsets: Ints | None = None, *, n_threads: int | None = None) -> Floats:
        """The score of each row; `offsets` of the queries for a net that sees lists."""
        rows = self._checked_rows(features)
        if offsets is None and self.sees_lists:
            raise DataError("this net sees whole lists, which features alone do not tell: predict RankingData")
        if offsets is None:  # any batches will do
            offsets = np.arange(0, rows + DOCUMENTS_AT_ONCE, DOCUMENTS_AT_ONCE).clip(max=rows)
        offsets = np.asarray(offsets, np.int64)
        if offsets[0] != 0 or offsets[-1] != rows or (np.diff(offsets) < 0).any():
            raise DataError(f"offsets must ascend from 0 to the number of rows, {rows}")
        with torch_threads(n_threads):
            return scores_in_batches(
                self.module, lambda first, last: torch.from_numpy(self.inputs(features[first:last])), offsets
            )

    def importance(self, kind: Any = "gain") -> Floats:
        """How much scores change with each feature: the mean |∂s/∂x| at random inputs, on the scale of the inputs."""
        draws = torch.randn(256, self.n_features, generator=torch.Generator().manual_seed(0)).requires_grad_()
        with torch.enable_grad():
            scores = scores_of(self.module, draws, torch.tensor([0, len(draws)]), self.sees_lists)
            (gradients,) = torch.autograd.grad(scores.sum(), draws)
        slopes: Floats = gradients.abs().mean(dim=0).double().numpy()
        return np.where(self.inputs.scales > 0, slopes, 0.0)

    def integrated_gradients(
        self, features: Features, background: Features | None = None, n_threads: int | None = None
    ) -> tuple[Floats, float]:
        """What each feature adds to the score of each row, from the mean input on, and the score of that.

        The mean is that of the training documents, or of a background of features.
        """
        baseline = np.zeros(self.n_features)  # where all features are missing, or at their mean
        if self.inputs.kind == "none" and background is None:
            raise DataError("this net takes features as they come and knows no mean of them: give a background")
        if background is not None:
            if not background.shape[0]:
                raise DataError("the background has no documents")
            baseline = np.sort(self.inputs(background).astype(np.float64), axis=0).mean(axis=0)
        with torch_threads(n_threads):
            return integrated_gradients(self.module, self.inputs(features), baseline)

    def _parameters(self) -> list[Any]:
        """Return the inputs and the weights; the code of a module of your own is not part of it."""
        shape = self.module.description if type(self.module) in NETS.values() else repr(self.module)
        weights = {name: tensor.numpy() for name, tensor in self.module.state_dict().items()}
        return [shape, self.inputs, weights]

    def with_info(self, **info: Any) -> Net:
        """The same net with other information."""
        return replace(self, info=self.info | info)

    def to_parts(self) -> Parts:
        """Return what the model file holds of the net."""
        from podium.neural.file import described_parts

        return Parts(*described_parts(self))

    @classmethod
    def from_parts(cls, stored: StoredModel) -> Net:
        """Return the net of a file."""
        from podium.neural.file import read

        return read(stored)

    def as_function(self, data: RankingData) -> tuple[Floats, Callable[[Floats], Floats]]:
        """The weights as a vector, and the scores of some data's rows as a function of them."""
        order = data.canonical_order
        documents = torch.from_numpy(self.inputs(self.schema.rows(data)[order]))
        module = copy.deepcopy(self.module).requires_grad_(False)

        def scores(weights: Floats) -> Floats:
            moved, result = copy.deepcopy(module), np.empty(len(data))  # threads call this at the same time
            nn.utils.vector_to_parameters(torch.from_numpy(weights.astype(np.float32)), moved.parameters())
            result[order] = scores_in_batches(moved, lambda first, last: documents[first:last], data.offsets)
            return result

        return nn.utils.parameters_to_vector(module.parameters()).double().numpy(), scores


def scores_in_batches(module: nn.Module, documents: Callable[[int, int], torch.Tensor], offsets: Ints) -> Floats:
    """Scores without gradients, some thousand documents at once; no query is split.

    `documents(first, last)` gives rows, query q having the rows offsets[q] to offsets[q + 1]. Where lists are seen,
    each is padded to the longest of its batch, and pairs of their documents count.
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
    """Let torch use so many threads for a while."""
    before = torch.get_num_threads()
    torch.set_num_threads(thread_count(n_threads))
    try:
        yield
    finally:
        torch.set_num_threads(before)
