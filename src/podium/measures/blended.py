"""The family of sums of blended ratios: average precision and Q-measure.

Z = (1/R) Σ_{r≤T} rel_r B_r / D_r, where B_r is the sum of the bonuses b of the documents up to rank r, D_r a divisor,
and R the number of relevant documents, which are those with b > 0. With b = 1 and D_r = r it is average precision.
Sakai calls B_r / D_r the blended ratio.

For i above j, with H_r = Σ_{k≤r} rel_k / D_k, R ΔZ is

    ±[(B_{i−1} + b)/D_i + b (H_{j−1} − H_i) − B_j/D_j]     if only one of the two is relevant, with bonus b,
    (b_j − b_i)(1/D_i + H_{j−1} − H_i)                      if both are,

without terms beyond rank T. If n tied documents begin at rank a, of which r are relevant with mean bonus m, the k-th
position contributes r/n (B_{a−1} + m + (k−1) m (r−1)/(n−1)) / D_{a+k−1} in expectation.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Float32s, Floats, Int, Int32s, Ints, Number
from podium.core.compiling import helper, kernel
from podium.core.intrinsics import inlined
from podium.core.validation import require_number
from podium.errors import DataError
from podium.measures.base import Example, ListMeasure, ListSums, without_values, zero_swaps
from podium.measures.binary import Binary, relevant_counts
from podium.measures.families import BLENDED, LookupTables, Span, lookup_tables
from podium.measures.gains import Gain
from podium.measures.ranking import in_descending_order
from podium.measures.registry import register

if TYPE_CHECKING:
    from podium.data import RankingData


U: Any = np.uintp  # an unsigned index avoids Numba's check for negative indices
f32 = np.float32


@dataclass(frozen=True)
class Blended(ListMeasure):
    """Z = (1/R) Σ_{r≤T} rel_r B_r / D_r; see the module's docstring."""

    bonuses_differ: ClassVar[bool] = True  # whether relevant documents differ in their bonuses

    @abstractmethod
    def bonuses(self, labels: NDArray[Any]) -> Floats:
        """Return the bonus b of each label, positive for relevant documents, 0 for others and unlabelled ones."""

    @abstractmethod
    def divisors(self, bonuses: Floats, offsets: Ints) -> Floats:
        """Return D for ranks 1, 2, … of each query, in the layout of the documents."""

    def norms(self, n_relevant: Floats) -> Floats:
        """Return the divisor of each query's sum, R, the number of relevant documents."""
        return n_relevant

    def value(self, labels: Floats) -> float:
        bonuses = self.bonuses(labels)
        relevant = bonuses > 0
        ratios = np.cumsum(bonuses) / self.divisors(bonuses, np.array([0, len(bonuses)]))
        norm = self.norms(np.array([float(relevant.sum())]))[0]
        return float(np.sum((relevant * ratios)[: self.cutoff]) / norm)

    def is_empty(self, labels: Floats) -> bool:
        return not (self.bonuses(labels) > 0).any()

    def list_sums(self, labels: NDArray[Any], data: RankingData, sizes: Ints) -> ListSums:
        bonuses, expected = self.bonuses(labels), self.ties == "expected"
        divisors = self.divisors(bonuses, data.offsets)
        depth = data.n_documents if self.cutoff is None else self.cutoff

        def fill(ranked: Floats, scores: Floats, offsets: Ints, sums: Floats) -> None:
            blended_sums(ranked, scores, divisors, offsets, depth, expected, sums)

        norms = self.norms(np.maximum(relevant_counts(bonuses > 0, data.offsets), 1.0))
        return ListSums(bonuses, depth, fill, norms, without_values(bonuses, data.offsets))

    def swaps(self, labels: NDArray[Any], first: int = 0, last: int | None = None) -> Floats:
        """Return ΔZ; see the module's docstring and `Measure.swaps`."""
        bonuses = self.bonuses(np.asarray(labels))
        rows = zero_swaps(len(bonuses), first, last)
        if bonuses.any():
            divisors = self.divisors(bonuses, np.array([0, len(bonuses)]))
            norm = self.norms(np.array([float((bonuses > 0).sum())]))[0]
            depth = len(bonuses) if self.cutoff is None else self.cutoff
            blended_swaps(bonuses, divisors, norm, depth, first, rows)
        return rows

    def lookup_tables(self, labels: NDArray[Any], offsets: Ints) -> LookupTables:
        bonuses = self.bonuses(labels)
        norms, divisors = self.norms(relevant_counts(bonuses > 0, offsets)), self.divisors(bonuses, offsets)
        return lookup_tables(
            BLENDED, bonuses, norms, self.cutoff, divisors=divisors, bonuses_differ=self.bonuses_differ
        )


# --- the sum of each query, and rows of swap deltas


@kernel
def blended_sums(
    bonuses: Floats, scores: Floats, divisors: Floats, offsets: Ints, depth: Int, expected: bool, sums: Floats
) -> None:
    """Compute Z of each query times its norm."""
    for q in range(len(offsets) - 1):
        start, n = offsets[q], offsets[q + 1] - offsets[q]
        total, above = 0.0, 0.0
        k = 0
        while k < min(n, depth):
            end = k + 1
            if expected:
                while end < n and scores[start + end] == scores[start + k]:
                    end += 1
            size = float(end - k)
            r, bonus = 0.0, 0.0
            for i in range(k, end):
                if bonuses[start + i] > 0.0:
                    r += 1.0
                    bonus += bonuses[start + i]
            if r > 0.0:
                mean = bonus / r
                step = mean * ((r - 1.0) / (size - 1.0)) if end > k + 1 else 0.0
                for i in range(k, min(end, depth)):
                    total += r / size * (above + mean + (i - k) * step) / divisors[start + i]
            above += bonus
            k = end
        sums[q] = total


@kernel
def blended_swaps(bonuses: Floats, divisors: Floats, norm: float, depth: Int, first: Int, rows: Floats) -> None:
    """Compute ΔZ for the ranks from `first` on and all below them."""
    n = len(bonuses)
    sums = np.zeros(n + 1)  # B_k
    shares = np.zeros(n + 1)  # H_k, for ranks up to T
    for k in range(n):
        is_relevant = bonuses[k] > 0.0
        sums[k + 1] = sums[k] + bonuses[k]
        shares[k + 1] = shares[k] + (1.0 / divisors[k] if is_relevant and k < depth else 0.0)
    for row in range(rows.shape[0]):
        i = first + row + 1
        b_i, divisor = bonuses[i - 1], divisors[i - 1]
        for j in range(i + 1, n + 1):
            b_j = bonuses[j - 1]
            change, sign = 0.0, 1.0
            if i <= depth and b_i > 0.0 and b_j > 0.0:
                change = (b_j - b_i) * (1.0 / divisor + shares[j - 1] - shares[i])
            elif i <= depth and b_i != b_j:
                sign, b = (1.0, b_j) if b_j > 0.0 else (-1.0, b_i)
                change = (sums[i - 1] + b) / divisor + b * shares[j - 1] - b * shares[i]
                if j <= depth:
                    change -= sums[j] / divisors[j - 1]
            rows[row, j - 1] = sign * change / norm


# --- swap deltas for the pair kernel


@helper
def blended_columns(n: Int, ranked: Int32s, values: Floats, divisors: Floats, depth: Int, columns: Floats) -> None:
    """Fill in, by rank: b, H before it, B/D up to the depth, B before it, D."""
    sums, shares = 0.0, 0.0
    for r in range(n):
        bonus = values[ranked[r]]
        columns[0, r] = bonus
        columns[1, r] = shares
        columns[3, r] = sums
        columns[4, r] = divisors[r]
        sums += bonus
        shares += 1.0 / divisors[r] if r < depth and bonus > 0.0 else 0.0
        columns[2, r] = sums / divisors[r] if r < depth else 0.0


@helper
def blended_deltas(i: Int, span: Span, norm: Number, bonuses_differ: bool, columns: Floats, buffer: Float32s) -> None:
    """Write |ΔZ| of rank i with the ranks of the span; the columns are 0 for ranks that do not count."""
    inlined()
    b_i, inverse = columns[0, i], 1.0 / norm
    b = 1.0 if b_i == 0.0 and not bonuses_differ else b_i
    start = (columns[3, i] + b) / columns[4, i] - b * columns[1, i] - b_i / columns[4, i]
    at, first = U(span.at), U(span.first)
    if not bonuses_differ:  # one start for the whole row
        for j in range(U(span.a), U(span.b)):
            change = abs(start + columns[U(1), first + j] - columns[U(2), first + j]) * inverse
            buffer[at + j] = f32(change) if b_i != columns[U(0), first + j] else f32(0.0)
    elif b_i > 0.0:
        share = columns[1, i] + 1.0 / columns[4, i]
        for j in range(U(span.a), U(span.b)):
            b_j = columns[U(0), first + j]
            alone = start + b * columns[U(1), first + j] - columns[U(2), first + j]
            both = (b_j - b_i) * (1.0 / columns[U(4), U(i)] + columns[U(1), first + j] - share)
            buffer[at + j] = f32(abs(both if b_j > 0.0 else alone) * inverse)
    else:
        before, divisor, share = columns[3, i], columns[4, i], columns[1, i]
        for j in range(U(span.a), U(span.b)):
            b_j = columns[U(0), first + j]
            change = (before + b_j) / divisor + b_j * (columns[U(1), first + j] - share) - columns[U(2), first + j]
            buffer[at + j] = f32(abs(change) * inverse) if b_j > 0.0 else f32(0.0)


@register
@dataclass(frozen=True)
class AP(Binary, Blended):
    """Average precision: the mean over the relevant documents of the precision at their ranks (its mean is MAP).

    AP@T = (1/R) Σ_{r≤T} rel_r c_r / r, where c_r of the R relevant documents are among the first r ([B] §3). It is the
    sum of blended ratios (`podium.measures.blended`) with the bonus 1 and the divisor r.

    Args:
        cutoff: T.
        threshold: a document is relevant if its label is at least this.
        norm: the divisor of the sum: `all` for all R relevant documents, as in trec_eval, or `reachable` for min(R, T),
            as in LightGBM's `map`, so that the best ranking has AP@T = 1.

    Example:
        >>> from podium import AP
        >>> AP().value([1, 0, 0, 1])
        0.75

    """

    _: KW_ONLY
    norm: Literal["all", "reachable"] = "all"

    name: ClassVar[str] = "ap"
    aliases: ClassVar[tuple[str, ...]] = ("map", "map_cut")
    bonuses_differ: ClassVar[bool] = False
    examples: ClassVar[tuple[Example, ...]] = (
        Example("ap", (1, 0, 1, 0), (1 + 2 / 3) / 2),
        Example("ap@2", (1, 0, 1, 0), 1 / 2),
        Example("ap(norm=reachable)@1", (1, 0, 1, 0), 1.0),
        Example("ap(norm=reachable)@3", (1, 0, 1, 0), (1 + 2 / 3) / 2),
        Example("ap(threshold=2)", (1, 2), 1 / 2),
        Example("ap", (math.nan, 1), 1 / 2),
        Example("ap(ties=expected)", (1, 0), (1 + 1 / 2) / 2, scores=(5, 5)),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.norm not in ("all", "reachable"):
            raise DataError(f"norm must be 'all' or 'reachable', but got {self.norm!r}")

    def bonuses(self, labels: NDArray[Any]) -> Floats:
        return self.relevant(labels)

    def norms(self, n_relevant: Floats) -> Floats:
        """Return R or min(R, T)."""
        is_capped = self.norm == "reachable" and self.cutoff is not None
        return np.minimum(n_relevant, float(self.cutoff or 0)) if is_capped else n_relevant

    def divisors(self, bonuses: Floats, offsets: Ints) -> Floats:
        """Return the ranks 1, 2, …"""
        return np.arange(1.0, len(bonuses) + 1.0) - np.repeat(offsets[:-1], np.diff(offsets))


LINEAR = Gain("linear")


@register
@dataclass(frozen=True)
class QMeasure(Blended):
    """Sakai's Q-measure: average precision for graded labels (Sakai 2004; 2007).

    Q@T = (1/R) Σ_{r≤T} rel_r (c_r + β cg_r) / (r + β cg*_r), where rel_r is 1 if the document at rank r has a positive
    gain, c_r of the R documents with a positive gain are among the first r, cg_r is the sum of the gains up to r, and
    cg*_r that of the ideal ranking. β = 0 is average precision. It is the sum of blended ratios
    (`podium.measures.blended`) with the bonus 1 + β gain and the divisor r + β cg*_r.

    Args:
        cutoff: T; as in AP, the sum is still divided by the number of all relevant documents.
        beta: β, the weight of gains relative to ranks.
        gain: `linear` (the label), or another gain as for DCG.

    Example:
        >>> from podium.measures import QMeasure
        >>> round(QMeasure().value([2, 0, 1]), 4)
        0.9167

    """

    _: KW_ONLY
    beta: float = 1.0
    gain: Gain | str = LINEAR

    name: ClassVar[str] = "q"
    # Of (2, 0, 1): cg 2 2 3, cg* 2 3 3, so (1 + 2)/(1 + 2) and (2 + 3)/(3 + 3).
    examples: ClassVar[tuple[Example, ...]] = (
        Example("q", (2, 0, 1), (1 + 5 / 6) / 2),
        Example("q", (0, 1, 2), (2 / 5 + 5 / 6) / 2),
        Example("q@2", (2, 0, 1), 1 / 2),
        Example("q(beta=0)", (3, 0, 1, 0), (1 + 2 / 3) / 2),
        Example("q(beta=10)", (1, 2), (11 / 21 + 32 / 32) / 2),
        Example("q(gain=exponential)", (1, 2), (2 / 4 + 6 / 6) / 2),
        Example("q(ties=expected)", (2, 0), (1 + 3 / 4) / 2, scores=(1, 1)),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require_number("beta", self.beta, least=0)
        object.__setattr__(self, "gain", Gain.of(self.gain))

    def bonuses(self, labels: NDArray[Any]) -> Floats:
        """Return 1 + β gain for documents with a positive gain."""
        gains = Gain.of(self.gain)(labels)
        return np.where(gains > 0, 1.0 + self.beta * gains, 0.0)

    def divisors(self, bonuses: Floats, offsets: Ints) -> Floats:
        """Return r + β cg*_r."""
        ideal = in_descending_order(bonuses, offsets)
        gains = np.where(ideal > 0, ideal - 1.0, 0.0)  # β times the gains
        divisors = np.empty(len(gains))
        add_ideal_gains(gains, offsets, divisors)
        return divisors

    def power(self, *data: RankingData) -> float:
        """Return the highest label times the scale, for exponential gains."""
        return Gain.of(self.gain).power(self.labels, *data)


@kernel
def add_ideal_gains(gains: Floats, offsets: Ints, divisors: Floats) -> None:
    """Compute the rank plus the sum of the gains up to it, for each rank of each query."""
    for q in range(len(offsets) - 1):
        total = 0.0
        for k in range(offsets[q], offsets[q + 1]):
            total += gains[k]
            divisors[k] = (k - offsets[q]) + 1.0 + total
