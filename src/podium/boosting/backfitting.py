"""Backfitting: trees that are fitted in turn to what the others of their grove leave over."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from podium.boosting.binned_data import BinnedData
from podium.boosting.steps import Newton
from podium.core.array_types import Bools, Floats, Int32s, Ints
from podium.core.random import uniform
from podium.core.sums import total
from podium.core.team import Team
from podium.data import RankingData
from podium.data.content_random import ContentRandom
from podium.objectives import Regression
from podium.objectives.points import Points
from podium.trees import Grower, GrownTree, GrowthParameters
from podium.trees.quantization import BoundedGradients, quantize

SMALL_CHANGE = 0.002  # a cycle over the trees that lowers the error by no larger share is the last
LEAVES_PER_SHARE, MOST_LEAVES = 8, 4096  # limits of memory; the paper's trees had about 2.5/α leaves


@dataclass(frozen=True)
class Grove:
    """A sum of trees.

    Attributes:
        trees: and the values of their leaves.
        predictions: of each tree (row) for each training document.
        scores: the sum of the trees for each training document.
        error_out_of_bag: on the documents that the trees did not see.

    """

    trees: list[tuple[GrownTree, Floats]]
    predictions: Floats
    scores: Floats
    error_out_of_bag: float


class Bootstrap:
    """Documents drawn with replacement, as many as there are, by content and purpose.

    Args:
        data: the documents.
        rows: those that may be drawn.

    """

    def __init__(self, data: RankingData, rows: Ints) -> None:
        self.n_documents = data.n_documents
        self.rows = rows[np.argsort(ContentRandom(data).document_keys[rows], kind="stable")]  # by content

    def times(self, purpose: str) -> Ints:
        """How often each document is drawn."""
        n, times = len(self.rows), np.zeros(self.n_documents, np.int64)
        drawn = (uniform(np.arange(n, dtype=np.uint64), purpose) * n).astype(np.int64)
        times[self.rows] = np.bincount(drawn, minlength=n)
        return times


class Backfitting:
    """Fits groves to the labels of some data, by least squares.

    Args:
        data: binned.
        alpha: the smallest share of documents that a node may have and be split.
        min_documents_in_leaf: see `GrowthParameters`.
        team: threads.

    Attributes:
        labels, weights: of each document; those without a label weigh 0.

    """

    def __init__(self, data: BinnedData, alpha: float, min_documents_in_leaf: int, team: Team) -> None:
        points = Points(data.train, "relevance", Regression())
        self.binned, self.team = data.binned, team
        self.labels, self.weights = points.by_row(points.labels), points.by_row(points.weights)
        n_leaves = max(2, min(math.ceil(LEAVES_PER_SHARE / alpha), MOST_LEAVES))
        growth = GrowthParameters(n_leaves=n_leaves, min_documents_in_leaf=min_documents_in_leaf, split="least-squares")
        self.grower, self.words = Grower(data.binned, growth, team), np.empty(data.train.n_documents, np.int64)

    def converge(self, predictions: Floats, alpha: float, times: Ints) -> Grove:
        """Fit the trees of a grove in turn, until a cycle lowers the error on the sample no more (algorithm 1).

        The last tree comes first in a cycle: it may be a new one.

        Args:
            predictions: of the trees that it starts from, a row for each; 0 for new trees.
            alpha: a node with a smaller share of the sample's documents is a leaf.
            times: how often each document is in the sample.

        """
        rows = np.flatnonzero(times * self.weights).astype(np.int32)
        fewest = max(2, math.ceil(alpha * len(rows)))
        self.grower.parameters = replace(self.grower.parameters, min_documents_to_split=fewest)
        predictions, n_trees = predictions.copy(), len(predictions)
        scores, trees = predictions.sum(axis=0), dict[int, tuple[GrownTree, Floats]]()
        error, before = self.error(scores, times), math.inf
        while error < (1 - SMALL_CHANGE) * before:
            before = error
            for k in (n_trees - 1, *range(n_trees - 1)):
                others = scores - predictions[k]
                trees[k] = self._fit_tree(others, times, rows)
                predictions[k] = 0.0
                grown, values = trees[k]
                grown.add_by_bins(values, self.binned, predictions[k], self.team)
                scores = others + predictions[k]
            error = self.error(scores, times)
        return Grove([trees[k] for k in range(n_trees)], predictions, scores, self.error(scores, times == 0))

    def _fit_tree(self, others: Floats, times: Ints, rows: Int32s) -> tuple[GrownTree, Floats]:
        """A tree on the residuals of the sample, and its leaf values, their means."""
        weights = self.weights * times
        residuals = BoundedGradients.of(weights * (self.labels - others), weights, self.team)
        grown = self.grower.grow(quantize(residuals, "least-squares", self.team, self.words, weights), rows)
        return grown, Newton(l2=0.0).leaf_values(grown, residuals, self.team)

    def error(self, scores: Floats, times: Ints | Bools) -> float:
        """The root mean square error, documents counted so many times; 0 where there are none."""
        weights = self.weights * times
        n = total(weights)
        return math.sqrt(total(weights * (self.labels - scores) ** 2) / n) if n > 0 else 0.0
