"""Calibration of RankNet's probabilities ([B] §2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.core.array_types import Floats, Int, Ints
from podium.core.compiling import kernel
from podium.core.plotting import draw
from podium.core.validation import require_number, require_whole
from podium.data import RankingData
from podium.data.schema import as_data
from podium.diagnostics.lambdas import scores_at
from podium.errors import DataError
from podium.evaluation.tables import ShownAsTable, Table
from podium.measures.ranking import for_queries, labels_in_order

UNIT = 1 << 30  # probabilities are summed as integer multiples of 1/UNIT, exact in any order for up to 2^33 pairs


@dataclass(frozen=True, eq=False)
class Calibration(ShownAsTable):
    """A model's probabilities of pairs, P = 1 / (1 + e^{−σ(s_i − s_j)}), and the observed shares.

    The first document of every pair has the higher score, so P is at least ½. A pair with equal scores counts half for
    each document.

    Attributes:
        sigma: σ.
        edges: the edges of the bins of P.
        counts: the number of pairs in each bin.
        predicted: the mean of P in each bin; NaN for empty bins.
        observed: the share of pairs in which the document with the higher score is better, or the mean P̄ of
            preferences; NaN for empty bins.

    Example:
        >>> import podium
        >>> from podium.diagnostics import calibration
        >>> data = podium.RankingData([[0.0], [1.0], [2.0]], [0, 1, 2], qid=["a", "a", "a"])
        >>> result = calibration([0.0, 1.0, 2.0], data, bins=2)
        >>> result.counts.tolist(), result.predicted.round(3).tolist(), result.observed.tolist()
        ([2, 1], [0.731, 0.881], [1.0, 1.0])

    """

    sigma: float
    edges: Floats
    counts: Ints
    predicted: Floats
    observed: Floats

    @property
    def n_pairs(self) -> int:
        """The number of pairs."""
        return int(self.counts.sum())

    @property
    def error(self) -> float:
        """The expected calibration error: the mean |predicted − observed| of the bins, weighted by pairs."""
        has_pairs = self.counts > 0
        gaps = np.abs(self.predicted - self.observed)[has_pairs] * self.counts[has_pairs]
        return math.fsum(gaps.tolist()) / self.n_pairs

    @property
    def largest_error(self) -> float:
        """|predicted − observed| of the worst bin."""
        return float(np.nanmax(np.abs(self.predicted - self.observed)))

    def table(self) -> Table:
        """Return a row for each bin."""
        columns = (self.edges[:-1], self.edges[1:], self.counts, self.predicted, self.observed)
        rows = [list(row) for row in zip(*(column.tolist() for column in columns), strict=True)]
        return Table(["P from", "to", "pairs", "predicted", "observed"], rows)

    def __str__(self) -> str:
        return f"{self.table()}\nexpected calibration error {self.error:.4f} over {self.n_pairs} pairs"

    def plot(self) -> Any:
        """Return a chart of observed against predicted, and the number of pairs of each bin (extra `report`)."""
        return draw("calibration", self)


def calibration(
    model: Any,
    data: RankingData,
    sigma: float = 1.0,
    *,
    bins: int = 10,
    labels: str = "relevance",
    preferences: bool | None = None,
    iteration: int | None = None,
) -> Calibration:
    """Compare RankNet's probabilities with the labels of the pairs of each query ([B] §2, eq. 1).

    Pairs are those with different labels, or the data's preferences, whose P̄ may be any probability. Models trained on
    other objectives need not be calibrated; this shows whether they are.

    Args:
        model: a model, an estimator, or scores of all rows.
        data: the documents, which should not be training data.
        sigma: the σ that the model was trained with.
        bins: the number of bins of equal width from ½ to 1.
        labels: the label source.
        preferences: whether to use the data's preferences; by default if it has preferences but not these labels.
        iteration: the last iteration of boosted trees to use, as in `history_`; all by default.

    Example:
        >>> import podium
        >>> from podium.diagnostics import calibration
        >>> train, test = podium.artificial(60, features=5), podium.artificial(30, features=5, part="test")
        >>> result = calibration(podium.RankNetTrees(60, 8).fit(train), test)
        >>> len(result.counts), 0 < result.error < 0.2
        (10, True)

    """
    data = as_data(data)
    require_number("sigma", sigma, above=0)
    require_whole("bins", bins, 1, most=1000)
    if preferences is None:
        preferences = data.preferences is not None and labels not in data.labels
    if preferences and data.preferences is None:
        raise DataError("the data has no preferences: pass RankingData(…, preferences=(i, j, probability))")
    scores = scores_at(model, data, iteration)
    sums_of_pairs = _preferred_pairs if preferences else _labelled_pairs
    counts, predicted, observed = sums_of_pairs(data, labels, sigma * scores, int(bins))
    if not counts.any():
        raise DataError("the data has no pairs to compare with: no query has documents with different labels")
    with np.errstate(invalid="ignore"):
        means = predicted / UNIT / counts, observed / UNIT / counts
    return Calibration(float(sigma), np.linspace(0.5, 1.0, bins + 1), counts, *means)


def _labelled_pairs(data: RankingData, labels: str, scores: Floats, n_bins: int) -> tuple[Ints, Ints, Ints]:
    """Return for each bin the number of pairs, the sum of P, and the sum of 1 for correct and ½ for tied pairs.

    Both sums are multiplied by UNIT.
    """
    parts: list[Ints] = []
    row_labels = labels_in_order(data, labels, np.arange(len(data))).astype(np.float64)

    def work(offsets: Ints, _: slice) -> None:
        result = np.zeros((3, n_bins), np.int64)
        add_labelled_pairs(scores, row_labels, data.order, offsets, UNIT, result)
        parts.append(result)

    for_queries(data.offsets, work, smallest=1, amount=float((data.query_sizes**2).sum()))
    counts, predicted, observed = sum(parts[1:], parts[0])
    return counts, predicted, observed


def _preferred_pairs(data: RankingData, _: str, scores: Floats, n_bins: int) -> tuple[Ints, Ints, Ints]:
    """Return the same as `_labelled_pairs` for the data's preferences."""
    assert data.preferences is not None
    i, j, share = data.preferences.i, data.preferences.j, data.preferences.probability.astype(np.float64)
    lead = scores[i] - scores[j]
    share = np.where(lead > 0, share, np.where(lead < 0, 1.0 - share, 0.5))
    probability = 1.0 / (1.0 + np.exp(-np.abs(lead)))
    number_of_bin = np.minimum(((2.0 * probability - 1.0) * n_bins).astype(np.int64), n_bins - 1)
    result = np.zeros((3, n_bins), np.int64)
    for row, values in zip(result, (np.ones(len(i)), UNIT * probability, UNIT * share), strict=True):
        np.add.at(row, number_of_bin, np.rint(values).astype(np.int64))
    counts, predicted, observed = result
    return counts, predicted, observed


@kernel
def add_labelled_pairs(scores: Floats, labels: Floats, order: Ints, offsets: Ints, unit: Int, result: Ints) -> None:
    """Add all pairs with different labels of some queries to their bins; scores are already multiplied by σ."""
    n_bins = result.shape[1]
    for q in range(len(offsets) - 1):
        for a in range(offsets[q], offsets[q + 1]):
            for b in range(a + 1, offsets[q + 1]):
                first, second = labels[order[a]], labels[order[b]]
                if not (first > second or first < second):  # labels are equal, or one is NaN
                    continue
                lead = scores[order[a]] - scores[order[b]]
                probability = 1.0 / (1.0 + math.exp(-abs(lead)))  # [B] eq. 1
                k = min(np.int64((2.0 * probability - 1.0) * n_bins), n_bins - 1)
                result[0, k] += 1
                result[1, k] += np.int64(np.rint(unit * probability))
                if lead == 0.0:
                    result[2, k] += unit // 2
                elif (lead > 0.0) == (first > second):
                    result[2, k] += unit
