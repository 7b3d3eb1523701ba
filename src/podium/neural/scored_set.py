"""Documents that a net in training scores after each epoch."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from podium.core.array_types import Ints
from podium.data import RankingData
from podium.data.canonical import queries_by_content
from podium.neural.inputs import Inputs
from podium.neural.model import scores_in_batches


class ScoredSet:
    """Documents that a net scores after each epoch.

    Attributes:
        data: the documents.
        scores: by row, as of the last epoch.

    """

    def __init__(self, data: RankingData, rows: Ints, offsets: Ints, inputs: Tensor) -> None:
        self.data, self.rows, self.offsets, self.documents = data, rows, offsets, inputs
        self.scores = np.zeros(len(data))

    @classmethod
    def of(cls, data: RankingData, inputs: Inputs) -> ScoredSet:
        """The queries by content, their documents in the canonical order."""
        queries = queries_by_content(data)
        rows = np.concatenate([data.canonical_order[data.offsets[q] : data.offsets[q + 1]] for q in queries])
        offsets = np.concatenate([[0], np.cumsum(data.query_sizes[queries])])
        return cls(data, rows, offsets, torch.from_numpy(inputs(data.features[rows])))

    def score(self, module: nn.Module) -> None:
        """Bring the scores up to date."""
        scores = scores_in_batches(module, lambda first, last: self.documents[first:last], self.offsets)
        self.scores[self.rows] = scores
