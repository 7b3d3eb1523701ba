"""Measures that are sums of gain times discount: NDCG and its kin, precision, recall, RBP."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from podium.errors import DataError
from podium.measures.base import Measure, highest_label, register, to_gain
from podium.measures.gains import Gain
from podium.measures.ranking import Ranking, for_queries

if TYPE_CHECKING:
    from podium.data import RankingData

Floats = NDArray[np.float64]
EXPONENTIAL = Gain()  # 2^l − 1
CLICK_GAIN = Gain(scale=4.0)  # 2^{4c} − 1


@dataclass(frozen=True)
class Discounted(Measure):
    """Z = Σ_r g(l_r) d(r) / norm: a gain by label, a discount by rank, a norm by query.

    Swapping ranks i and j changes it by (g_j − g_i)(d_i − d_j) / norm. Under expected ties each of a
    group of tied documents has the group's mean gain (Wu et al. 2010, §4).
    """

    knows_expected_ties: ClassVar[bool] = True
    knows_retrieved: ClassVar[bool] = True

    @abstractmethod
    def gains(self, labels: NDArray[Any]) -> Floats:
        """g(l) for each label, 0 where there is none."""

    @abstractmethod
    def discounts(self, depth: int) -> Floats:
        """d(1), d(2), … as far as they are not zero, at most `depth` of them."""

    def norms(self, gains: Floats, offsets: NDArray[np.int64], sizes: NDArray[np.int64]) -> Floats:
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

    def values(self, ranking: Ranking) -> Floats:
        """One value for each query."""
        from podium.measures import kernels

        data = ranking.data
        gains = self.gains(ranking.labels(self.labels))
        discounts = self.discounts(int(data.query_sizes.max(initial=0)))
        ranked = gains * ranking.ranked_retrieved if ranking.retrieved is not None else gains
        scores, expected = ranking.ranked_scores, self.ties == "expected"
        sums = np.empty(data.n_queries)
        for_queries(
            data.offsets,
            lambda offsets, q: kernels.discounted(ranked, scores, offsets, discounts, expected, sums[q]),
        )
        highest = np.maximum.reduceat(gains, data.offsets[:-1]) if data.n_queries else np.empty(0)
        norms = self.norms(gains, data.offsets, ranking.ranked_sizes)
        return self._with_empties(sums / np.where(norms > 0, norms, 1.0), highest <= 0)

    def swaps(self, labels: NDArray[Any], first: int = 0, last: int | None = None) -> Floats:
        """(g_j − g_i)(d_i − d_j) / norm; see `Measure.swaps`."""
        from podium.measures import kernels

        gains = self.gains(np.asarray(labels))
        rows = np.zeros(((len(gains) if last is None else last) - first, len(gains)))
        norm = self.norms(gains, *_one_list(gains))[0] if len(gains) else 0.0
        if norm > 0:
            kernels.discounted_swaps(gains, self.discounts(len(gains)), float(norm), first, rows)
        return rows


def _one_list(gains: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Offsets and sizes of a single query."""
    return np.array([0, len(gains)]), np.array([len(gains)])


@register
@dataclass(frozen=True)
class DCG(Discounted):
    """Discounted cumulative gain: DCG@T = Σ_{r≤T} (2^{l(r)} − 1) / log2(1 + r).

    Järvelin and Kekäläinen 2002, with the gain of Burges et al. 2005.

    Args:
        gain: `exponential` (2^l − 1), `exponential:SCALE` (2^{scale·l} − 1), `linear`, or `table:G0/G1/…`.
        discount: `log2`, or `letor` as LETOR's scripts have it: 1, 1, 1/log2 3, 1/log2 4, …

    """

    _: KW_ONLY
    gain: Gain | str = EXPONENTIAL
    discount: Literal["log2", "letor"] = "log2"

    name: ClassVar[str] = "dcg"

    def __post_init__(self) -> None:
        super().__post_init__()
        to_gain(self, self.gain)
        if self.discount not in ("log2", "letor"):
            raise DataError(f"discount must be 'log2' or 'letor', not {self.discount!r}")

    def gains(self, labels: NDArray[Any]) -> Floats:
        """The gain of each label."""
        assert isinstance(self.gain, Gain)
        return self.gain(labels)

    def power(self, *data: RankingData) -> float:
        """The highest label times the scale, for exponential gains."""
        assert isinstance(self.gain, Gain)
        return self.gain.scale * highest_label(self.labels, *data) if self.gain.kind == "exponential" else 0.0

    def discounts(self, depth: int) -> Floats:
        """1/log2(1 + r), or LETOR's."""
        ranks = np.arange(1, self._depth(depth) + 1)
        return 1.0 / np.log2(1.0 + ranks if self.discount == "log2" else np.maximum(ranks, 2))


@register
@dataclass(frozen=True)
class NDCG(DCG):
    """DCG divided by the best DCG that the query's documents allow; 1 is perfect ([B] §3).

    Args:
        short: what a query with fewer documents than the cutoff gets: `count`, its NDCG, or `zero`, as the
            script of LETOR 4 has it.

    """

    _: KW_ONLY
    short: Literal["count", "zero"] = "count"

    name: ClassVar[str] = "ndcg"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.short not in ("count", "zero"):
            raise DataError(f"short must be 'count' or 'zero', not {self.short!r}")

    def norms(self, gains: Floats, offsets: NDArray[np.int64], sizes: NDArray[np.int64]) -> Floats:
        """The best DCG of each query (infinite where short queries count as zero)."""
        from podium.measures import kernels

        best = np.empty(len(offsets) - 1)
        discounts = self.discounts(int(np.diff(offsets).max(initial=0)))
        order, ranked = np.arange(len(gains)), np.empty(len(gains), np.int64)
        for_queries(offsets, lambda part, _: kernels.rank_queries(gains, order, part, ranked))
        ideal = gains[ranked]
        for_queries(offsets, lambda part, q: kernels.discounted(ideal, ideal, part, discounts, False, best[q]))
        if self.short == "zero" and self.cutoff is not None:
            return np.where(sizes < self.cutoff, np.inf, best)
        return best


@register
@dataclass(frozen=True)
class CNDCG(NDCG):
    """NDCG on click labels c in [0, 1] with the gain 2^{4c} − 1, 4 the highest human label ([S] eq. 9)."""

    _: KW_ONLY
    labels: str = "clicks"
    gain: Gain | str = CLICK_GAIN

    name: ClassVar[str] = "cndcg"


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
        if not isinstance(self.threshold, int | float) or not math.isfinite(self.threshold):
            raise DataError(f"threshold must be a number, not {self.threshold!r}")

    def relevant(self, labels: NDArray[Any]) -> Floats:
        """1 for a relevant document, 0 for others and for those without a label."""
        return (np.asarray(labels) >= self.threshold).astype(np.float64)

    def is_empty(self, labels: Floats) -> bool:
        """Whether no document is relevant."""
        return not self.relevant(labels).any()


@dataclass(frozen=True)
class _BinaryDiscounted(Binary, Discounted):
    def gains(self, labels: NDArray[Any]) -> Floats:
        """1 for a relevant document."""
        return self.relevant(labels)

    def discounts(self, depth: int) -> Floats:
        """1 down to the cutoff."""
        return np.ones(self._depth(depth))

    def is_empty(self, labels: Floats) -> bool:
        """Whether no document is relevant."""
        return not self.relevant(labels).any()


@register
@dataclass(frozen=True)
class Precision(_BinaryDiscounted):
    """The share of relevant documents among the first k, whether or not there are k."""

    name: ClassVar[str] = "precision"
    lives_by_cutoff: ClassVar[bool] = True

    def norms(self, gains: Floats, offsets: NDArray[np.int64], sizes: NDArray[np.int64]) -> Floats:
        """The cutoff, or the number of documents."""
        ranked = np.maximum(sizes, 1).astype(np.float64)
        return ranked if self.cutoff is None else np.full(len(ranked), float(self.cutoff))


@register
@dataclass(frozen=True)
class Recall(_BinaryDiscounted):
    """The share of the relevant documents that stand among the first k."""

    name: ClassVar[str] = "recall"
    lives_by_cutoff: ClassVar[bool] = True

    def norms(self, gains: Floats, offsets: NDArray[np.int64], sizes: NDArray[np.int64]) -> Floats:
        """The number of relevant documents."""
        return np.asarray(np.add.reduceat(gains, offsets[:-1])) if len(offsets) > 1 else np.empty(0)


@register
@dataclass(frozen=True)
class RBP(_BinaryDiscounted):
    """Rank-biased precision, (1 − p) Σ_r rel_r p^{r−1} (Moffat and Zobel 2008).

    Args:
        p: the patience of the user, who goes on to the next rank with this probability.

    """

    _: KW_ONLY
    p: float = 0.8

    name: ClassVar[str] = "rbp"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.p, int | float) or not 0 < self.p < 1:
            raise DataError(f"p must be between 0 and 1, but is {self.p}")

    def discounts(self, depth: int) -> Floats:
        """(1 − p) p^{r−1}."""
        return np.asarray((1.0 - self.p) * self.p ** np.arange(self._depth(depth)))
