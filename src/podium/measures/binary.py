"""Measures of relevant and irrelevant documents: precision, recall, F1, R-precision, interpolated precision, RBP."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Floats, Ints
from podium.core.compiling import kernel
from podium.core.validation import require_number
from podium.errors import DataError
from podium.measures.base import Example, ListMeasure, ListSums, Measure, zero_swaps
from podium.measures.discounted import Discounted
from podium.measures.gains import Gain, probabilities
from podium.measures.registry import register

if TYPE_CHECKING:
    from podium.data import RankingData


@dataclass(frozen=True)
class Binary(Measure):
    """A measure of relevant and irrelevant documents.

    Args:
        threshold: a document is relevant if its label is at least this.

    """

    _: KW_ONLY
    threshold: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_number("threshold", self.threshold)

    def relevant(self, labels: NDArray[Any]) -> Floats:
        """Return 1 for relevant documents, 0 for others and unlabelled ones."""
        return (np.asarray(labels) >= self.threshold).astype(np.float64)

    def is_empty(self, labels: Floats) -> bool:
        return not self.relevant(labels).any()


@dataclass(frozen=True)
class BinaryDiscounted(Binary, Discounted):
    """A sum of discounts over the relevant documents; the discount is 1 up to the cutoff unless overridden."""

    def gains(self, labels: NDArray[Any]) -> Floats:
        return self.relevant(labels)

    def discounts(self, depth: int) -> Floats:
        return np.ones(self._depth(depth))


@register
@dataclass(frozen=True)
class Precision(BinaryDiscounted):
    """The share of relevant documents among the first k: P@k = (1/k) Σ_{r≤k} rel_r, even if there are fewer than k.

    Args:
        cutoff: k; None for the number of documents.
        threshold: a document is relevant if its label is at least this.

    Example:
        >>> from podium.measures import Precision
        >>> Precision(5).value([1, 1, 0])
        0.4

    """

    name: ClassVar[str] = "precision"
    aliases: ClassVar[tuple[str, ...]] = ("p",)
    needs_cutoff: ClassVar[bool] = True
    examples: ClassVar[tuple[Example, ...]] = (
        Example("precision@3", (1, 0, 2, 1), 2 / 3),
        Example("precision@5", (1, 1), 2 / 5),
        Example("precision(ties=expected)@1", (1, 0, 0, 0), 1 / 4, scores=(1, 1, 1, 1)),
    )

    def norms(self, gains: Floats, offsets: Ints, sizes: Ints) -> Floats:
        ranked = np.maximum(sizes, 1).astype(np.float64)
        return ranked if self.cutoff is None else np.full(len(ranked), float(self.cutoff))


@register
@dataclass(frozen=True)
class Recall(BinaryDiscounted):
    """The share of the relevant documents that are among the first k: R@k = (1/R) Σ_{r≤k} rel_r.

    Args:
        cutoff: k.
        threshold: a document is relevant if its label is at least this.

    Example:
        >>> from podium.measures import Recall
        >>> Recall(2).value([1, 0, 1, 1, 1])
        0.25

    """

    name: ClassVar[str] = "recall"
    aliases: ClassVar[tuple[str, ...]] = ("r",)
    needs_cutoff: ClassVar[bool] = True
    examples: ClassVar[tuple[Example, ...]] = (Example("recall@2", (1, 0, 1, 1), 1 / 3),)

    def norms(self, gains: Floats, offsets: Ints, sizes: Ints) -> Floats:
        return relevant_counts(gains, offsets)


def relevant_counts(is_relevant: NDArray[Any], offsets: Ints) -> Floats:
    """Return the number of relevant documents of each query."""
    return np.asarray(np.add.reduceat(is_relevant, offsets[:-1], dtype=np.float64))


@register
@dataclass(frozen=True)
class F1(BinaryDiscounted):
    """The harmonic mean of precision@k and recall@k: F1@k = 2 Σ_{r≤k} rel_r / (k + R) (van Rijsbergen 1979).

    Args:
        cutoff: k; None for the number of ranked documents, as in trec_eval's set_F.
        threshold: a document is relevant if its label is at least this.

    Example:
        >>> from podium.measures import F1
        >>> F1(2).value([1, 0, 1, 1])  # precision 1/2, recall 1/3
        0.4

    """

    name: ClassVar[str] = "f1"
    aliases: ClassVar[tuple[str, ...]] = ("set_f",)
    needs_cutoff: ClassVar[bool] = True
    examples: ClassVar[tuple[Example, ...]] = (
        Example("f1@2", (1, 0, 1, 1), 2 / 5),
        Example("f1", (1, 0, 0), 2 / 4),
        Example("f1@1", (1, 0), 1 / 2, scores=(1, 1)),
    )

    def norms(self, gains: Floats, offsets: Ints, sizes: Ints) -> Floats:
        """Return (k + R) / 2."""
        depth = sizes if self.cutoff is None else np.full(len(sizes), self.cutoff)
        return np.asarray((depth + relevant_counts(gains, offsets)) / 2.0)


@register
@dataclass(frozen=True)
class RPrecision(Binary, ListMeasure):
    """Precision at R, the number of relevant documents of the query, which is also recall at R.

    Buckley and Voorhees 2005.

    Args:
        threshold: a document is relevant if its label is at least this.

    Example:
        >>> from podium.measures import RPrecision
        >>> RPrecision().value([1, 0, 1, 1])
        0.6666666666666666

    """

    name: ClassVar[str] = "r_precision"
    aliases: ClassVar[tuple[str, ...]] = ("rprec",)
    has_cutoff: ClassVar[bool] = False
    examples: ClassVar[tuple[Example, ...]] = (
        Example("r_precision", (1, 0, 1, 1, 0), 2 / 3),
        Example("r_precision", (0, 1, 1), 3 / 4, scores=(1, 1, 2)),
        Example("r_precision", (1, 1, 0), 2 / 3, scores=(1, 1, 1)),
    )

    def value(self, labels: Floats) -> float:
        relevant = self.relevant(labels)
        n_relevant = int(relevant.sum())
        return float(relevant[:n_relevant].sum() / n_relevant)

    def list_sums(self, labels: NDArray[Any], data: RankingData, sizes: Ints) -> ListSums:
        relevant, expected = self.relevant(labels), self.ties == "expected"
        n_relevant = relevant_counts(relevant, data.offsets)
        depths = np.repeat(n_relevant, data.query_sizes)  # one per document, because `fill` receives slices of queries

        def fill(ranked: Floats, scores: Floats, offsets: Ints, sums: Floats) -> None:
            top_sums(ranked, scores, offsets, depths, expected, sums)

        deepest = max(int(n_relevant.max(initial=0.0)), 1)
        return ListSums(relevant, deepest, fill, np.maximum(n_relevant, 1.0), n_relevant == 0)

    def swaps(self, labels: NDArray[Any], first: int = 0, last: int | None = None) -> Floats:
        """Return (rel_j − rel_i) / R for i ≤ R < j; see `Measure.swaps`."""
        relevant = self.relevant(labels)
        n_relevant, rows = int(relevant.sum()), zero_swaps(len(relevant), first, last)
        inside = min(first + len(rows), n_relevant)
        if first < inside:
            below = relevant[n_relevant:]
            rows[: inside - first, n_relevant:] = (below - relevant[first:inside, None]) / n_relevant
        return rows


@kernel
def top_sums(values: Floats, scores: Floats, offsets: Ints, depths: Floats, expected: bool, sums: Floats) -> None:
    """Compute the sum of each query's first values; with `expected`, tied documents have their mean value."""
    for q in range(len(offsets) - 1):
        start, end = offsets[q], offsets[q + 1]
        last = start + int(depths[start])
        total = 0.0
        k = start
        while k < last:
            stop, group = k + 1, values[k]
            while expected and stop < end and scores[stop] == scores[k]:
                group += values[stop]
                stop += 1
            total += group * (min(stop, last) - k) / (stop - k)
            k = stop
        sums[q] = total


@register
@dataclass(frozen=True)
class InterpolatedPrecision(Binary):
    """The highest precision at any rank by which a share of the relevant documents is found.

    iprec(x) = max of c(r) / r over the ranks r with c(r) ≥ ⌊x R + 0.9⌋, where c(r) of the R relevant documents are
    among the first r. The number after `@` is the recall, not a rank: `iprec@0.5`.

    The rounding is that of trec_eval 9, pytrec_eval and ir_measures. trec_eval 10 rounds x R to the nearest number.

    Args:
        recall: x, from 0 to 1.
        threshold: a document is relevant if its label is at least this.

    Example:
        >>> from podium.measures import InterpolatedPrecision
        >>> InterpolatedPrecision(recall=0.5).value([0, 1, 1, 0, 1])  # 2 of 3 relevant documents at rank 3
        0.6666666666666666

    """

    _: KW_ONLY
    recall: float = 0.5

    name: ClassVar[str] = "iprec"
    aliases: ClassVar[tuple[str, ...]] = ("iprec_at_recall",)
    at: ClassVar[str] = "recall"
    has_cutoff: ClassVar[bool] = False
    knows_retrieved: ClassVar[bool] = True
    examples: ClassVar[tuple[Example, ...]] = (
        Example("iprec@0.5", (0, 1, 1, 0, 1), 2 / 3),
        Example("iprec@1", (0, 1, 1, 0, 1), 3 / 5),
        Example("iprec@0.00", (0, 1), 1 / 2),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require_number("recall", self.recall, least=0, most=1)

    def value(self, labels: Floats) -> float:
        return self._value_of_run(labels, len(labels))

    def _value_of_run(self, labels: Floats, n_ranked: int) -> float:
        relevant = self.relevant(labels)
        counts = np.cumsum(relevant)[:n_ranked]
        needed = math.floor(self.recall * float(relevant.sum()) + 0.9)
        precisions = counts / np.arange(1, n_ranked + 1)
        return float(precisions[counts >= needed].max(initial=0.0))


@register
@dataclass(frozen=True)
class RBP(BinaryDiscounted):
    """Rank-biased precision, (1 − p) Σ_r g_r p^{r−1}, g_r = rel_r (Moffat and Zobel 2008).

    Args:
        p: the persistence of the user, the probability of continuing to the next rank.
        threshold: a document is relevant if its label is at least this.
        gain: the gain of each label, 0 to 1, instead of binary relevance: `linear`, or `table:0/0.25/0.5/1`.

    Example:
        >>> from podium.measures import RBP
        >>> RBP(p=0.5).value([1, 0, 1])
        0.625
        >>> RBP(p=0.5, gain="table:0/0.5/1").value([1, 0, 2])
        0.375

    """

    _: KW_ONLY
    p: float = 0.8
    gain: Gain | str | None = None

    name: ClassVar[str] = "rbp"
    examples: ClassVar[tuple[Example, ...]] = (
        Example("rbp(p=0.5)", (1, 0, 1), 0.5 * (1 + 0.25)),
        Example("rbp(p=0.5,gain=table:0/0.5/1)", (1, 0, 2), 0.5 * (0.5 + 0.25)),
        Example("rbp(p=0.5,gain=linear)", (0.5, 1), 0.5 * (0.5 + 0.5)),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require_number("p", self.p, above=0, below=1)
        if self.gain is not None:
            object.__setattr__(self, "gain", Gain.of(self.gain))
            if self.threshold != Binary.threshold:
                raise DataError("pass either gain or threshold to rbp, not both: with a gain, labels are graded")

    def gains(self, labels: NDArray[Any]) -> Floats:
        return self.relevant(labels) if self.gain is None else probabilities(Gain.of(self.gain)(labels), self)

    def is_empty(self, labels: Floats) -> bool:
        return not (self.gains(labels) > 0).any()

    def discounts(self, depth: int) -> Floats:
        """Return (1 − p) p^{r−1}."""
        return np.asarray((1.0 - self.p) * self.p ** np.arange(self._depth(depth)))
