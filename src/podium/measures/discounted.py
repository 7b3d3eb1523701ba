"""The family of sums of gain times discount: DCG and NDCG, precision, recall, RBP.

Z = Σ_r g(l_r) d(r) / norm. Swapping ranks i and j changes it by (g_j − g_i)(d_i − d_j) / norm. The pair kernel
computes that product on SIMD lanes itself (`podium.objectives.pair_kernel`), the sweep by `discounted_contribution`.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Floats, Int, Ints, Number
from podium.core.compiling import helper, kernel
from podium.measures.families import DISCOUNTED, LookupTables, lookup_tables
from podium.measures.of_lists import ListSums, OfLists, without_values

if TYPE_CHECKING:
    from podium.data import RankingData


@dataclass(frozen=True)
class Discounted(OfLists):
    """Z = Σ_r g(l_r) d(r) / norm: a gain by label, a discount by rank, a norm by query.

    Swapping ranks i and j changes it by (g_j − g_i)(d_i − d_j) / norm. Under expected ties each of a
    group of tied documents has the group's mean gain (Wu et al. 2010, §4).
    """

    @abstractmethod
    def gains(self, labels: NDArray[Any]) -> Floats:
        """g(l) for each label, 0 where there is none."""

    @abstractmethod
    def discounts(self, depth: int) -> Floats:
        """d(1), d(2), … as far as they are not zero, at most `depth` of them."""

    def norms(self, gains: Floats, offsets: Ints, sizes: Ints) -> Floats:
        """What the sum of each query is divided by, given the gains of all its documents and the number ranked."""
        return np.ones(len(offsets) - 1)

    def _depth(self, longest: int) -> int:
        return longest if self.cutoff is None else min(self.cutoff, longest)

    def value(self, labels: Floats) -> float:
        """Σ gain · discount / norm of one ranked list."""
        gains, discounts = self.gains(labels), self.discounts(len(labels))
        norm = self.norms(gains, *_one_list(gains))[0]
        return float(np.sum(gains[: len(discounts)] * discounts) / norm)

    def is_empty(self, labels: Floats) -> bool:
        """Whether no document gains anything."""
        return not (self.gains(labels) > 0).any()

    def list_sums(self, labels: NDArray[Any], data: RankingData, sizes: Ints) -> ListSums:
        """Gains, and what their discounted sums are divided by."""
        gains, offsets, expected = self.gains(labels), data.offsets, self.ties == "expected"
        discounts = self.discounts(int(data.query_sizes.max(initial=0)))
        norms = self.norms(gains, offsets, sizes)

        def fill(ranked: Floats, scores: Floats, offsets: Ints, sums: Floats) -> None:
            discounted_sums(ranked, scores, offsets, discounts, expected, sums)

        norms = np.where(norms > 0, norms, 1.0)
        return ListSums(gains, len(discounts), fill, norms, without_values(gains, offsets))

    def swaps(self, labels: NDArray[Any], first: int = 0, last: int | None = None) -> Floats:
        """(g_j − g_i)(d_i − d_j) / norm; see `Measure.swaps`."""
        gains = self.gains(np.asarray(labels))
        rows = np.zeros(((len(gains) if last is None else last) - first, len(gains)))
        norm = self.norms(gains, *_one_list(gains))[0] if len(gains) else 0.0
        if norm > 0:
            discounted_swaps(gains, self.discounts(len(gains)), float(norm), first, rows)
        return rows

    def lookup_tables(self, labels: NDArray[Any], offsets: Ints) -> LookupTables:
        """Gains, norms and discounts."""
        gains, sizes = self.gains(labels), np.diff(offsets)
        norms = self.norms(gains, offsets, sizes)
        norms = np.where(np.isfinite(norms), norms, 0.0)
        return lookup_tables(DISCOUNTED, gains, norms, discounts=self.discounts(int(sizes.max(initial=0))))


def _one_list(gains: Floats) -> tuple[Ints, Ints]:
    """Offsets and sizes of a single query."""
    return np.array([0, len(gains)]), np.array([len(gains)])


@kernel
def discounted_sums(
    gains: Floats, scores: Floats, offsets: Ints, discounts: Floats, expected: bool, sums: Floats
) -> None:
    """Σ gain · discount of each query; `expected`: documents with equal scores share their mean gain."""
    depth = len(discounts)
    for q in range(len(offsets) - 1):
        start, n = offsets[q], offsets[q + 1] - offsets[q]
        total = 0.0
        k = 0
        while k < min(n, depth):
            end = k + 1
            if expected:
                while end < n and scores[start + end] == scores[start + k]:
                    end += 1
            gain, differ = gains[start + k], False
            for i in range(k + 1, end):
                differ |= gains[start + i] != gains[start + k]
                gain += gains[start + i]
            mean = gain / (end - k) if differ else gains[start + k]  # equal gains add up as they do without ties
            for i in range(k, min(end, depth)):
                total += mean * discounts[i]
            k = end
        sums[q] = total


@kernel
def discounted_swaps(gains: Floats, discounts: Floats, norm: float, first: Int, rows: Floats) -> None:
    """(g_j − g_i)(d_i − d_j) / norm for the ranks i from `first` on and all j below them."""
    n = len(gains)
    share = gains / norm
    weight = np.zeros(n)
    weight[: len(discounts)] = discounts
    for row in range(rows.shape[0]):
        i = first + row
        share_i, weight_i = share[i], weight[i]
        for j in range(i + 1, n):
            rows[row, j] = (share[j] - share_i) * (weight_i - weight[j])


@helper
def discounted_contribution(value: Number, rank: Int, discounts: Floats) -> Number:
    """What the document at a rank (from 0) adds to the sum: gain times discount."""
    return value * discounts[rank]
