"""The cascade family: a user reads down the list and stops. ERR, reciprocal rank, success and PFound."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Float32s, Floats, Int, Int32s, Ints
from podium.core.compiling import helper, kernel
from podium.core.intrinsics import inlined, not_inlined
from podium.core.validation import require_number
from podium.errors import DataError
from podium.measures.base import Example, ListMeasure, ListSums, Measure, without_values, zero_swaps
from podium.measures.binary import Binary
from podium.measures.families import CASCADE, LookupTables, Span, lookup_tables
from podium.measures.gains import LARGEST_POWER, Gain, highest_label, probabilities
from podium.measures.registry import as_measure, register

if TYPE_CHECKING:
    from podium.data import RankingData
    from podium.measures.diversity import ERRIA


U: Any = np.uintp  # an index that cannot be negative needs no check for it
f32 = np.float32


@dataclass(frozen=True)
class CascadeMeasure(ListMeasure):
    """Z = Σ_r (1/D_r) R_r Π_{q<r} (1 − R_q), with R the probability that a document satisfies the user, and D_r = r.

    For i above j, ΔZ = P_i (R_j − R_i)(1/D_i − S_ij − Q_ij/D_j), where P_i is the product of (1 − R) over the ranks
    before i, Q_ij over those between i and j, and S_ij = Σ_{i<q<j} R_q/D_q Π_{i<p<q} (1 − R_p).
    """

    @abstractmethod
    def stops(self, labels: NDArray[Any]) -> Floats:
        """Return R for each label, 0 for unlabelled documents."""

    def divisors(self, depth: int) -> Floats:
        """Return D for ranks 1, 2, … up to a depth: a satisfying document at rank r is worth 1/D_r."""
        return np.arange(1.0, depth + 1.0)

    def value(self, labels: Floats) -> float:
        stops = self.stops(labels)
        going_on = np.concatenate([[1.0], np.cumprod(1.0 - stops)[:-1]])
        return float(np.sum((stops * going_on / self.divisors(len(stops)))[: self.cutoff]))

    def list_sums(self, labels: NDArray[Any], data: RankingData, sizes: Ints) -> ListSums:
        stops, expected = self.fixed(data).stops(labels), self.ties == "expected"
        depth = data.n_documents if self.cutoff is None else self.cutoff
        divisors = self.divisors(int(data.query_sizes.max(initial=0)))

        def fill(ranked: Floats, scores: Floats, offsets: Ints, sums: Floats) -> None:
            cascade_sums(ranked, scores, divisors, offsets, depth, expected, sums)

        return ListSums(stops, depth, fill, np.ones(data.n_queries), without_values(stops, data.offsets))

    def swaps(self, labels: NDArray[Any], first: int = 0, last: int | None = None) -> Floats:
        """Return P_i (R_j − R_i)(1/D_i − S_ij − Q_ij/D_j); see `Measure.swaps`."""
        stops = self.stops(np.asarray(labels))
        rows = zero_swaps(len(stops), first, last)
        depth = len(stops) if self.cutoff is None else self.cutoff
        cascade_swaps(stops, self.divisors(len(stops)), depth, first, rows)
        return rows

    def lookup_tables(self, labels: NDArray[Any], offsets: Ints) -> LookupTables:
        sizes, stops = np.diff(offsets), self.stops(labels)
        by_rank = self.divisors(int(sizes.max(initial=0)))
        divisors = by_rank[np.arange(len(stops)) - np.repeat(offsets[:-1], sizes)]
        return lookup_tables(CASCADE, stops, np.ones(len(sizes)), self.cutoff, divisors=divisors)


# --- the sum of each query, and rows of swap deltas


@kernel
def cascade_sums(
    stops: Floats, scores: Floats, divisors: Floats, offsets: Ints, depth: Int, expected: bool, sums: Floats
) -> None:
    """Compute Σ_r (1/D_r) R_r Π_{q<r} (1 − R_q) of each query, with R the probability that a user stops."""
    largest = 0
    for q in range(len(offsets) - 1):
        largest = max(largest, offsets[q + 1] - offsets[q])
    mean = np.empty(largest + 1)  # E_k, the mean product of (1 − R) over all k documents of a group
    for q in range(len(offsets) - 1):
        start, n = offsets[q], offsets[q + 1] - offsets[q]
        total, going_on = 0.0, 1.0
        k = 0
        while k < min(n, depth) and going_on > 0.0:
            end = k + 1
            if expected:
                while end < n and scores[start + end] == scores[start + k]:
                    end += 1
            size = end - k
            n_counted = min(size, depth - k)
            if size == 1:
                total += going_on * stops[start + k] / divisors[k]
                going_on *= 1.0 - stops[start + k]
            else:
                # Adding a document x: E_k = ((m−k) E_k + k x E_{k−1}) / m. All values are in [0, 1]: no overflow.
                mean[0] = 1.0
                for m in range(1, size + 1):
                    x = 1.0 - stops[start + k + m - 1]
                    mean[m] = 0.0
                    for i in range(min(m, n_counted), 0, -1):
                        mean[i] = ((m - i) * mean[i] + i * x * mean[i - 1]) / m
                for i in range(1, n_counted + 1):
                    total += going_on * (mean[i - 1] - mean[i]) / divisors[k + i - 1]
                going_on *= mean[size]  # if not all documents count, nothing follows
            k = end
        sums[q] = total


@kernel
def cascade_swaps(stops: Floats, divisors: Floats, depth: Int, first: Int, rows: Floats) -> None:
    """Compute ΔZ = P_i (R_j − R_i)(1/D_i − S_ij − Q_ij/D_j) without dividing by 1 − R, so that R = 1 is safe."""
    n = len(stops)
    before = np.empty(n + 1)  # P_i, the product of (1 − R) over the ranks before i
    before[0] = 1.0
    for k in range(n):
        before[k + 1] = before[k] * (1.0 - stops[k])
    for row in range(rows.shape[0]):
        i = first + row
        between, inside = 1.0, 0.0  # Q_ij and S_ij, updated up to rank T
        for j in range(i + 1, n):
            change = 0.0
            if i < depth:
                change = 1.0 / divisors[i] - inside
                if j < depth:
                    change -= between / divisors[j]
                    inside += stops[j] / divisors[j] * between
                    between *= 1.0 - stops[j]
            rows[row, j] = before[i] * (stops[j] - stops[i]) * change


# --- swap deltas for the pair kernel


@helper
def cascade_columns(n: Int, ranked: Int32s, values: Floats, divisors: Floats, depth: Int, columns: Floats) -> None:
    """Fill in, by rank: R, C (the sum of R_k P_k/D_k before it), P/D up to the depth, P/D, D; P is Π (1 − R) before it.

    Prefix products avoid a chain of multiplications for each pair, which makes ΔERR as fast as ΔNDCG.
    """
    before, sums = 1.0, 0.0
    for r in range(n):
        columns[0, r] = values[ranked[r]]
        columns[3, r] = before / divisors[r]
        columns[4, r] = divisors[r]
        columns[1, r] = sums
        columns[2, r] = before / divisors[r] if r < depth else 0.0
        if r < depth:
            sums += columns[0, r] * before / divisors[r]
            before *= 1.0 - columns[0, r]


@helper
def cascade_deltas(i: Int, span: Span, n: Int, depth: Int, columns: Floats, buffer: Float32s) -> None:
    """Write |ΔZ| = |(R_j − R_i)(P_i/D_i − P_i S_ij − P_i Q_ij/D_j)| of rank i with the ranks of the span.

    P_i S_ij = (C_j − C_{i+1}) / (1 − R_i) and P_i Q_ij/D_j = P_j/D_j / (1 − R_i) only depend on j through two columns.
    If 1 − R_i is 0 or tiny, this fails, and `_deltas_behind_a_sure_stop` is used.
    """
    inlined()
    stop = columns[0, i]
    if 1.0 - stop > 1e-3:
        inverse = 1.0 / (1.0 - stop)
        start = columns[3, i] + (columns[1, i] + stop * columns[3, i]) * inverse
        at, first = U(span.at), U(span.first)
        for j in range(U(span.a), U(span.b)):
            change = start - inverse * (columns[U(1), first + j] + columns[U(2), first + j])
            buffer[at + j] = f32(abs((columns[U(0), first + j] - stop) * change))
    else:
        _deltas_behind_a_sure_stop(i, span, n, depth, columns, buffer)


@helper
def _deltas_behind_a_sure_stop(i: Int, span: Span, n: Int, depth: Int, columns: Floats, buffer: Float32s) -> None:
    """Compute the same deltas rank by rank, without dividing by 1 − R_i."""
    not_inlined()
    stop, before = columns[0, i], columns[3, i] * columns[4, i]
    between, inside = 1.0, 0.0
    for j in range(i + 1, min(span.first + span.b, n)):
        change = 1.0 / columns[4, i] - inside
        if j < depth:
            change -= between / columns[4, j]
            inside += columns[0, j] / columns[4, j] * between
            between *= 1.0 - columns[0, j]
        if j >= span.first + span.a:
            buffer[span.at + j - span.first] = f32(abs(before * (columns[0, j] - stop) * change))


@register
@dataclass(frozen=True)
class ERR(CascadeMeasure):
    """Expected reciprocal rank: Σ_{r≤T} (1/r) R_r Π_{q<r} (1 − R_q), R = (2^l − 1) / 2^{l_max}.

    Chapelle, Metzler, Zhang and Grinspan 2009; [B] §3.

    Args:
        max_label: l_max; None for the highest label of the data (which `fixed` keeps for other data), or of the list if
            a single list is measured. Models store the highest label of their training and validation data.

    Example:
        >>> from podium import ERR
        >>> ERR(max_label=4).value([4, 0, 4])
        0.95703125

    """

    _: KW_ONLY
    max_label: float | None = None

    name: ClassVar[str] = "err"
    examples: ClassVar[tuple[Example, ...]] = (
        Example("err(max_label=4)", (4, 0, 4), 15 / 16 + (1 / 16) * (15 / 16) / 3),
        Example("err(max_label=4)@1", (0, 4), 0.0),
        Example("err(max_label=1,ties=expected)", (1, 0), (1 / 2 + 1 / 4) / 2, scores=(1, 1)),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_label is not None and (
            not isinstance(self.max_label, int | float) or not 0 <= self.max_label <= LARGEST_POWER
        ):
            raise DataError(f"max_label must be a number from 0 to {LARGEST_POWER}, but got {self.max_label!r}")

    def fixed(self, *data: RankingData) -> Self:
        if self.max_label is not None or not any(self.labels in part.labels for part in data):
            return self
        return self.replace(max_label=highest_label(self.labels, *data))

    def fixed_like(self, *models: Iterable[Measure | str]) -> Self:
        """Return the measure with l_max, if it is not set, of the models' ERR on the same labels; the highest one."""
        return self if self.max_label is not None else self.replace(max_label=max_label_of(self, models))

    def power(self, *data: RankingData) -> float:
        return highest_label(self.labels, *data)

    def stops(self, labels: NDArray[Any]) -> Floats:
        """Return (2^l − 1) / 2^{l_max}."""
        highest = float(np.fmax.reduce(labels, initial=0.0)) if self.max_label is None else self.max_label
        gains = Gain()(labels)
        if len(gains) and gains.max() > 2.0**highest - 1.0:
            raise DataError(
                f"labels must not exceed max_label = {highest:g} of {self}, but got {np.nanmax(labels):g}: "
                f"set the highest label of all data, as in err(max_label={np.nanmax(labels):g})"
            )
        return np.asarray(gains / 2.0**highest)


def max_label_of(measure: ERR | ERRIA, models: Iterable[Iterable[Measure | str]]) -> float | None:
    """Return the highest l_max of measures of the same kind and labels that models were trained by."""
    highest = []
    for measures in models:
        of_model = []
        for text in measures:
            with suppress(DataError):  # a custom measure may not be registered in this process
                other: Any = as_measure(text)
                if type(other) is type(measure) and other.labels == measure.labels and other.max_label is not None:
                    of_model.append(other.max_label)
        highest += of_model[:1]
    return max(highest, default=None)


@register
@dataclass(frozen=True)
class RR(Binary, CascadeMeasure):
    """Reciprocal rank, 1/f, where f is the rank of the first relevant document; its mean is MRR.

    It is the cascade whose user stops at the first relevant document: R is 1 or 0 ([B] §3).

    Args:
        cutoff: the value is 0 if the first relevant document is below this rank.
        threshold: a document is relevant if its label is at least this.

    Example:
        >>> from podium.measures import RR
        >>> RR().value([0, 0, 0, 1])
        0.25

    """

    name: ClassVar[str] = "rr"
    aliases: ClassVar[tuple[str, ...]] = ("mrr", "recip_rank")
    examples: ClassVar[tuple[Example, ...]] = (
        Example("rr", (0, 0, 1, 1), 1 / 3),
        Example("rr@2", (0, 0, 1, 1), 0.0),
        Example("rr(ties=expected)", (0, 1, 0), (1 + 1 / 2 + 1 / 3) / 3, scores=(1, 1, 1)),
    )

    def stops(self, labels: NDArray[Any]) -> Floats:
        return self.relevant(labels)


@register
@dataclass(frozen=True)
class Success(Binary, CascadeMeasure):
    """1 if one of the first k documents is relevant, else 0: the hit rate, trec_eval's success.

    It is the cascade in which every rank down to k is worth the same. Under expected ties it is a probability.

    Args:
        cutoff: k.
        threshold: a document is relevant if its label is at least this.

    Example:
        >>> from podium.measures import Success
        >>> Success(2).value([0, 1]), Success(1).value([0, 1])
        (1.0, 0.0)

    """

    name: ClassVar[str] = "success"
    aliases: ClassVar[tuple[str, ...]] = ("hit_rate",)
    needs_cutoff: ClassVar[bool] = True
    examples: ClassVar[tuple[Example, ...]] = (
        Example("success@2", (0, 1, 1), 1.0),
        Example("success@1", (0, 1, 1), 0.0),
        Example("success@2", (1, 0, 0, 0), 1 / 2, scores=(1, 1, 1, 1)),
    )

    def stops(self, labels: NDArray[Any]) -> Floats:
        return self.relevant(labels)

    def divisors(self, depth: int) -> Floats:
        """Return 1 for each rank."""
        return np.ones(depth)


YANDEX = Gain("table", table=(0.0, 0.07, 0.14, 0.41, 0.61))
LARGEST_DIVISOR = 1e300


@register
@dataclass(frozen=True)
class PFound(CascadeMeasure):
    """The probability that a user finds a satisfying document: Σ_r (1 − b)^{r−1} R_r Π_{q<r} (1 − R_q).

    At each rank, a user who is not satisfied gives up with probability b. Gulin, Karpovich, Raskovalov and Segalovich
    2009; CatBoost's PFound, whose `decay` is 1 − b.

    Args:
        gain: R for each label, 0 to 1. The default has Yandex's probabilities of the labels 0 to 4: 0, .07, .14, .41,
            .61. `linear` is for labels that are probabilities, as in CatBoost.
        p_break: b.

    Example:
        >>> from podium.measures import PFound
        >>> round(PFound(gain="linear").value([0.4, 0.5]), 3)  # 0.4 + 0.85 · 0.6 · 0.5
        0.655

    """

    _: KW_ONLY
    gain: Gain | str = YANDEX
    p_break: float = 0.15

    name: ClassVar[str] = "pfound"
    examples: ClassVar[tuple[Example, ...]] = (
        Example("pfound", (4, 0, 1), 0.61 + 0.85**2 * 0.39 * 0.07),
        Example("pfound(gain=linear)", (1, 0.5), 1.0),
        Example("pfound(gain=linear,p_break=0.5)@2", (0, 0.5, 1), 0.25),
        Example("pfound(gain=linear)", (1, 0), (1 + 0.85) / 2, scores=(1, 1)),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "gain", Gain.of(self.gain))
        require_number("p_break", self.p_break, least=0, below=1)

    def is_empty(self, labels: Floats) -> bool:
        return not (self.stops(labels) > 0).any()

    def stops(self, labels: NDArray[Any]) -> Floats:
        return probabilities(Gain.of(self.gain)(labels), self)

    def divisors(self, depth: int) -> Floats:
        """Return 1 / (1 − b)^{r−1}."""
        with np.errstate(over="ignore"):
            return np.minimum((1.0 - self.p_break) ** -np.arange(float(depth)), LARGEST_DIVISOR)
