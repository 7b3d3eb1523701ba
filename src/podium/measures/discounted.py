"""The family of sums of gain times discount: DCG and NDCG, precision, recall, F1, RBP.

Z = Σ_r g(l_r) d(r) / norm. Swapping ranks i and j changes it by (g_j − g_i)(d_i − d_j) / norm. The pair kernel
computes that product itself with SIMD (`podium.objectives.pair_kernel`).
"""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Floats, Int, Ints
from podium.core.compiling import kernel
from podium.core.validation import numbers_of
from podium.errors import DataError
from podium.measures.base import Example, ListMeasure, ListSums, without_values, zero_swaps
from podium.measures.families import DISCOUNTED, LookupTables, lookup_tables
from podium.measures.gains import Gain, shown
from podium.measures.ranking import for_queries, in_descending_order
from podium.measures.registry import register

if TYPE_CHECKING:
    from podium.data import RankingData


@dataclass(frozen=True)
class Discounted(ListMeasure):
    """Z = Σ_r g(l_r) d(r) / norm: a gain by label, a discount by rank, a norm by query.

    With expected ties, each document of a group of ties has the group's mean gain (Wu et al. 2010, §4).
    """

    @abstractmethod
    def gains(self, labels: NDArray[Any]) -> Floats:
        """Return g(l) for each label, 0 for unlabelled documents."""

    @abstractmethod
    def discounts(self, depth: int) -> Floats:
        """Return d(1), d(2), … up to the last nonzero discount, at most `depth` of them."""

    def norms(self, gains: Floats, offsets: Ints, sizes: Ints) -> Floats:
        """Return the divisor of each query's sum, given the gains of all its documents and the number ranked."""
        return np.ones(len(offsets) - 1)

    def _depth(self, longest: int) -> int:
        return longest if self.cutoff is None else min(self.cutoff, longest)

    def value(self, labels: Floats) -> float:
        gains, discounts = self.gains(labels), self.discounts(len(labels))
        norm = self.norms(gains, *_one_list(gains))[0]
        return float(np.sum(gains[: len(discounts)] * discounts) / norm)

    def is_empty(self, labels: Floats) -> bool:
        return not (self.gains(labels) > 0).any()

    def list_sums(self, labels: NDArray[Any], data: RankingData, sizes: Ints) -> ListSums:
        gains, offsets, expected = self.gains(labels), data.offsets, self.ties == "expected"
        discounts = self.discounts(int(data.query_sizes.max(initial=0)))
        norms = self.norms(gains, offsets, sizes)

        def fill(ranked: Floats, scores: Floats, offsets: Ints, sums: Floats) -> None:
            discounted_sums(ranked, scores, offsets, discounts, expected, sums)

        norms = np.where(norms > 0, norms, 1.0)
        return ListSums(gains, len(discounts), fill, norms, without_values(gains, offsets))

    def swaps(self, labels: NDArray[Any], first: int = 0, last: int | None = None) -> Floats:
        """Return (g_j − g_i)(d_i − d_j) / norm; see `Measure.swaps`."""
        gains = self.gains(np.asarray(labels))
        rows = zero_swaps(len(gains), first, last)
        norm = self.norms(gains, *_one_list(gains))[0] if len(gains) else 0.0
        if norm > 0:
            discounted_swaps(gains, self.discounts(len(gains)), float(norm), first, rows)
        return rows

    def lookup_tables(self, labels: NDArray[Any], offsets: Ints) -> LookupTables:
        gains, sizes = self.gains(labels), np.diff(offsets)
        norms = self.norms(gains, offsets, sizes)
        norms = np.where(np.isfinite(norms), norms, 0.0)
        return lookup_tables(DISCOUNTED, gains, norms, discounts=self.discounts(int(sizes.max(initial=0))))


def _one_list(gains: Floats) -> tuple[Ints, Ints]:
    """Return the offsets and sizes of a single query."""
    return np.array([0, len(gains)]), np.array([len(gains)])


@kernel
def discounted_sums(
    gains: Floats, scores: Floats, offsets: Ints, discounts: Floats, expected: bool, sums: Floats
) -> None:
    """Compute Σ gain · discount of each query; with `expected`, tied documents have their mean gain."""
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
            mean = gain / (end - k) if differ else gains[start + k]  # for equal gains, the same bits as without ties
            for i in range(k, min(end, depth)):
                total += mean * discounts[i]
            k = end
        sums[q] = total


@kernel
def discounted_swaps(gains: Floats, discounts: Floats, norm: float, first: Int, rows: Floats) -> None:
    """Compute (g_j − g_i)(d_i − d_j) / norm for the ranks i from `first` on and all j below them."""
    n = len(gains)
    share = gains / norm
    weight = np.zeros(n)
    weight[: len(discounts)] = discounts
    for row in range(rows.shape[0]):
        i = first + row
        share_i, weight_i = share[i], weight[i]
        for j in range(i + 1, n):
            rows[row, j] = (share[j] - share_i) * (weight_i - weight[j])


DISCOUNTS: dict[str, Callable[[Floats], Any]] = {  # functions of ranks 1, 2, …
    "log2": lambda ranks: 1.0 / np.log2(1.0 + ranks),
    "letor": lambda ranks: 1.0 / np.log2(np.maximum(ranks, 2.0)),
    "reciprocal": lambda ranks: 1.0 / ranks,
}
BUILT_IN_DISCOUNTS = frozenset(DISCOUNTS)


def register_discount(name: str, function: Callable[[Floats], Any]) -> None:
    """Register a discount by name, for the parameter `discount` of DCG, NDCG and similar measures.

    Measures and saved models only store the name, so register the discount in every process that uses it.

    Args:
        name: a lower-case word.
        function: returns the non-negative discount of each rank in an array of ranks 1, 2, …

    Example:
        >>> from podium.measures import DCG, register_discount
        >>> register_discount("halving", lambda ranks: 0.5 ** (ranks - 1))
        >>> DCG(gain="linear", discount="halving").value([1, 1, 1])
        1.75

    """
    if not re.fullmatch(r"[a-z_]\w*", name) or name == "table":
        raise DataError(f"the name of a discount must be a lower-case word, but got {name!r}")
    if name in BUILT_IN_DISCOUNTS:
        raise DataError(f"the discount {name!r} is built in: choose another name")
    DISCOUNTS[name] = function


def _checked_discount(text: Any) -> str:
    """Return the text of a discount, with the numbers of a table in their shortest form."""
    kind, _, entries = text.partition(":") if isinstance(text, str) else ("", "", "")
    if kind == "table":
        try:
            table = [float(entry) for entry in entries.split("/")]
        except ValueError:
            table = []
        if table and all(0 <= entry < math.inf for entry in table):
            return "table:" + "/".join(map(shown, table))
    elif text in DISCOUNTS:
        return str(text)
    names = ", ".join(map(repr, DISCOUNTS))
    raise DataError(
        f"discount must be {names}, or 'table:D1/D2/…' with a non-negative number for each rank, but got {text!r} "
        "(use podium.measures.register_discount to add a name)"
    )


def discounts_by_rank(discount: str, depth: int) -> Floats:
    """Return the discounts of ranks 1, 2, … up to a depth, or up to the end of a table."""
    kind, _, entries = discount.partition(":")
    if kind == "table":
        return np.array([float(entry) for entry in entries.split("/")][:depth])
    values = np.asarray(DISCOUNTS[kind](np.arange(1.0, depth + 1.0)), np.float64)
    if values.shape != (depth,) or not (np.isfinite(values) & (values >= 0)).all():
        raise DataError(f"the discount {discount!r} must return a finite, non-negative number for each rank")
    return values


EXPONENTIAL = Gain()  # 2^l − 1
CLICK_GAIN = Gain(scale=4.0)  # 2^{4c} − 1
_LOG3 = math.log2(3)


@register
@dataclass(frozen=True)
class DCG(Discounted):
    """Discounted cumulative gain: DCG@T = Σ_{r≤T} (2^{l(r)} − 1) / log2(1 + r).

    Järvelin and Kekäläinen 2002, with the gain of Burges et al. 2005.

    Args:
        gain: `exponential` (2^l − 1), `exponential:SCALE` (2^{scale·l} − 1), `linear`, or `table:G0/G1/…`.
        discount: `log2`; `letor` as in LETOR's scripts: 1, 1, 1/log2 3, 1/log2 4, …; `reciprocal`: 1/r;
            `table:D1/D2/…`, 0 beyond the table; or a name that you register (`register_discount`).

    Example:
        >>> from podium.measures import DCG
        >>> DCG().value([3, 0, 2])
        8.5

    """

    _: KW_ONLY
    gain: Gain | str = EXPONENTIAL
    discount: str = "log2"

    name: ClassVar[str] = "dcg"
    examples: ClassVar[tuple[Example, ...]] = (
        Example("dcg", (3, 0, 2), 7 + 3 / 2),
        Example("dcg@2", (3, 1, 2), 7 + 1 / _LOG3),
        Example("dcg(gain=linear)", (3, 0, 2), 3 + 2 / 2),
        Example("dcg(gain=table:0/5/1)", (1, 2), 5 + 1 / _LOG3),
        Example("dcg(discount=letor)", (1, 1, 1, 1), 1 + 1 + 1 / _LOG3 + 1 / 2),
        Example("dcg(discount=reciprocal)", (1, 1, 1), 1 + 1 / 2 + 1 / 3),
        Example("dcg(discount=table:1/0.5)", (2, 1, 1), 3 + 1 / 2),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "gain", Gain.of(self.gain))
        object.__setattr__(self, "discount", _checked_discount(self.discount))

    def gains(self, labels: NDArray[Any]) -> Floats:
        return Gain.of(self.gain)(labels)

    def power(self, *data: RankingData) -> float:
        """Return the highest label times the scale, for exponential gains."""
        return Gain.of(self.gain).power(self.labels, *data)

    def discounts(self, depth: int) -> Floats:
        """Return 1/log2(1 + r), or another discount."""
        return discounts_by_rank(self.discount, self._depth(depth))


@register
@dataclass(frozen=True)
class NDCG(DCG):
    """NDCG@T = DCG@T / the ideal DCG@T, the best that the query's documents allow; 1 is perfect ([B] §3).

    Args:
        short: the value of a query with fewer documents than the cutoff: `count` for its NDCG, or `zero`, as in the
            script of LETOR 4.

    Example:
        >>> from podium import NDCG
        >>> round(NDCG(10).value([0, 2, 1]), 4)
        0.659

    """

    _: KW_ONLY
    short: Literal["count", "zero"] = "count"

    name: ClassVar[str] = "ndcg"
    aliases: ClassVar[tuple[str, ...]] = ("ndcg_cut",)
    examples: ClassVar[tuple[Example, ...]] = (
        Example("ndcg", (2, 1, 1, 0), 1.0),
        Example("ndcg", (1, 2, 1, 0), (1 + 3 / _LOG3 + 1 / 2) / (3 + 1 / _LOG3 + 1 / 2)),
        Example("ndcg@1", (1, 2), 1 / 3),
        Example("ndcg(short=zero)@3", (1, 0), 0.0),
        Example("ndcg(short=zero)@2", (1, 0), 1.0),
        Example("ndcg", (math.nan, 1), 1 / _LOG3),
        Example("ndcg(ties=expected)", (1, 0), (1 + 1 / _LOG3) / 2, scores=(5, 5)),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.short not in ("count", "zero"):
            raise DataError(f"short must be 'count' or 'zero', but got {self.short!r}")

    def norms(self, gains: Floats, offsets: Ints, sizes: Ints) -> Floats:
        """Return the ideal DCG of each query, infinite for short queries that count as zero."""
        best = np.empty(len(offsets) - 1)
        discounts = self.discounts(int(np.diff(offsets).max(initial=0)))
        ideal = in_descending_order(gains, offsets)
        for_queries(offsets, lambda part, q: discounted_sums(ideal, ideal, part, discounts, False, best[q]))
        if self.short == "zero" and self.cutoff is not None:
            return np.where(sizes < self.cutoff, np.inf, best)
        return best


@register
@dataclass(frozen=True)
class CNDCG(NDCG):
    """NDCG on click labels c in [0, 1] with the gain 2^{4c} − 1, where 4 is the highest human label ([S] eq. 9).

    Example:
        >>> from podium.measures import CNDCG
        >>> str(CNDCG(3)), CNDCG(3).labels
        ('cndcg@3', 'clicks')

    """

    _: KW_ONLY
    labels: str = "clicks"
    gain: Gain | str = CLICK_GAIN

    name: ClassVar[str] = "cndcg"
    examples: ClassVar[tuple[Example, ...]] = (Example("cndcg", (0.5, 1.0), (3 + 15 / _LOG3) / (15 + 3 / _LOG3)),)


class Propensities(tuple[float, ...]):
    """The probabilities that users examine positions 1, 2, …; as text `1/0.5/0.3`."""

    __slots__ = ()

    def __str__(self) -> str:
        return "/".join(map(shown, self))


@register
@dataclass(frozen=True)
class PropensityNDCG(NDCG):
    """NDCG on clicks whose gain is divided by the probability that users look at their position.

    The gain of a document is g / p, where p is the propensity of the position at which it was shown and clicked. A
    click far down, which few users could make, counts more: inverse propensity scoring (Joachims, Swaminathan and
    Schnabel 2017; Agarwal, Takatsu, Zaitsev and Joachims 2019). The norm is the DCG of the order by g / p. With the
    true propensities, the DCG is unbiased over clicks. To train on such clicks, see `podium.objectives.Debiased`.

    Args:
        propensities: the propensities of positions 1, 2, …, above 0 and at most 1; further positions have the last one.
            As text `1/0.5/0.3`.
        labels: the clicks, or click rates.

    Example:
        >>> import podium
        >>> from podium.measures import PropensityNDCG
        >>> shown = podium.RankingData([[0.0], [1.0]], qid=[1, 1], labels={"clicks": [1, 1]}, positions=[1, 2])
        >>> measure = PropensityNDCG(10, propensities=[1.0, 0.25])  # the second click counts four times
        >>> round(podium.evaluate(shown, [2, 1], measure).means[measure], 4)
        0.7609

    """

    _: KW_ONLY
    labels: str = "clicks"
    gain: Gain | str = Gain("linear")  # noqa: RUF009  frozen
    propensities: Sequence[float] | str = ()

    name: ClassVar[str] = "propensity_ndcg"
    examples: ClassVar[tuple[Example, ...]] = ()  # it needs positions
    has_swaps: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        entries: Any = self.propensities.split("/") if isinstance(self.propensities, str) else self.propensities
        entries = [entries] if isinstance(entries, int | float) else entries
        propensities = Propensities(numbers_of("propensities", entries))
        if not propensities or not all(0 < p <= 1 for p in propensities):
            raise DataError(
                f"propensities of {self.name} must be the probabilities, above 0 and at most 1, that users look at "
                f"positions 1, 2, …, for example 1/0.5/0.3, but got {tuple(propensities)}"
            )
        object.__setattr__(self, "propensities", propensities)

    def labels_in(self, data: RankingData, order: Ints) -> NDArray[Any]:
        """Return g / p in an order of the rows."""
        clicks = super().labels_in(data, order)
        if data.positions is None:
            raise DataError(
                f"{self.name} needs the position at which each document was shown: pass RankingData(…, positions=…), "
                "or a column 'position' in a CSV or Parquet file"
            )
        gains, positions = Gain.of(self.gain)(clicks), data.positions[order]
        if (bad := order[(gains > 0) & (positions < 1)]).size:
            raise DataError(f"every clicked document must have a position, but row {bad[0]} has none")
        propensities = np.array(self.propensities)
        return np.asarray(gains / propensities[np.clip(positions, 1, len(propensities)) - 1])

    def gains(self, labels: NDArray[Any]) -> Floats:
        """Return the labels, because `labels_in` has already converted them to gains."""
        return np.nan_to_num(np.asarray(labels, np.float64))
