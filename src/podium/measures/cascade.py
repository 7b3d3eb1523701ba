"""Measures of a user who goes down the list and stops: ERR and reciprocal rank."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from podium.errors import DataError
from podium.measures.base import Measure, as_measure, highest_label, register
from podium.measures.discounted import Binary
from podium.measures.gains import LARGEST_POWER, Gain
from podium.measures.ranking import Ranking, for_queries

if TYPE_CHECKING:
    from podium.data import RankingData

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Cascade(Measure):
    """Z = Σ_r (1/r) R_r Π_{q<r} (1 − R_q), R the probability that a document satisfies the user.

    For i above j, ΔZ = P_i (R_j − R_i)(1/i − S_ij − Q_ij/j), with P_i the product of (1 − R) over the ranks
    before i, Q_ij over those between, and S_ij = Σ_{i<q<j} R_q/q Π_{i<p<q} (1 − R_p).
    """

    knows_expected_ties: ClassVar[bool] = True
    knows_retrieved: ClassVar[bool] = True

    @abstractmethod
    def stops(self, labels: NDArray[Any]) -> Floats:
        """R for each label, 0 where there is none."""

    def value(self, labels: Floats) -> float:
        """The measure of one ranked list."""
        stops = self.stops(labels)
        going_on = np.concatenate([[1.0], np.cumprod(1.0 - stops)[:-1]])
        return float(np.sum((stops * going_on / np.arange(1, len(stops) + 1))[: self.cutoff]))

    def values(self, ranking: Ranking) -> Floats:
        """One value for each query."""
        from podium.measures import kernels

        data = ranking.data
        known = self.fixed(data)
        stops = known.stops(ranking.labels(self.labels))
        highest = np.maximum.reduceat(stops, data.offsets[:-1]) if data.n_queries else np.empty(0)
        if ranking.retrieved is not None:
            stops = stops * ranking.ranked_retrieved
        depth = data.n_documents if self.cutoff is None else self.cutoff
        scores, expected = ranking.ranked_scores, self.ties == "expected"
        result = np.empty(data.n_queries)
        for_queries(
            data.offsets,
            lambda offsets, q: kernels.cascade(stops, scores, offsets, depth, expected, result[q]),
        )
        return self._with_empties(result, highest <= 0)

    def swaps(self, labels: NDArray[Any], first: int = 0, last: int | None = None) -> Floats:
        """P_i (R_j − R_i)(1/i − S_ij − Q_ij/j); see `Measure.swaps`."""
        from podium.measures import kernels

        stops = self.stops(np.asarray(labels))
        rows = np.zeros(((len(stops) if last is None else last) - first, len(stops)))
        depth = len(stops) if self.cutoff is None else self.cutoff
        kernels.cascade_swaps(stops, depth, first, rows)
        return rows


@register
@dataclass(frozen=True)
class ERR(Cascade):
    """Expected reciprocal rank with R = (2^l − 1) / 2^{l_max} (Chapelle et al. 2009; [B] §3).

    Args:
        max_label: l_max; None takes the highest label of the data (`fixed` keeps it for other data), or
            of the list where a single list is measured. Models keep the highest one of their training and
            validation data.

    """

    _: KW_ONLY
    max_label: float | None = None

    name: ClassVar[str] = "err"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_label is not None and (
            not isinstance(self.max_label, int | float) or not 0 <= self.max_label <= LARGEST_POWER
        ):
            raise DataError(f"max_label must be a number from 0 to {LARGEST_POWER}, not {self.max_label!r}")

    def fixed(self, *data: RankingData) -> Self:
        """With l_max taken from the data, if it is not given."""
        if self.max_label is not None or not any(self.labels in part.labels for part in data):
            return self
        return self.replace(max_label=highest_label(self.labels, *data))

    def fixed_like(self, *models: Iterable[Measure | str]) -> Self:
        """With l_max of an ERR that looks at the same labels, if it is not given; the highest of several models'."""
        highest = [label for measures in models for label in self._labels_of(measures)[:1]]
        return self.replace(max_label=max(highest)) if highest and self.max_label is None else self

    def _labels_of(self, measures: Iterable[Measure | str]) -> list[float]:
        """l_max of those ERR that look at the same labels."""
        found = []
        for measure in measures:
            with suppress(DataError):  # a measure of somebody's own need not be known here
                known = as_measure(measure)
                if isinstance(known, ERR) and known.labels == self.labels and known.max_label is not None:
                    found.append(known.max_label)
        return found

    def power(self, *data: RankingData) -> float:
        """The highest label."""
        return highest_label(self.labels, *data)

    def stops(self, labels: NDArray[Any]) -> Floats:
        """(2^l − 1) / 2^{l_max}."""
        highest = float(np.fmax.reduce(labels, initial=0.0)) if self.max_label is None else self.max_label
        gains = Gain()(labels)
        if len(gains) and gains.max() > 2.0**highest - 1.0:
            raise DataError(
                f"there is a label above max_label = {highest:g}, the highest that {self} expects: "
                f"say the highest of all data, as in err(max_label={np.nanmax(labels):g})"
            )
        return np.asarray(gains / 2.0**highest)


@register
@dataclass(frozen=True)
class RR(Binary, Cascade):
    """Reciprocal rank, 1/f, f the rank of the first relevant document; its mean is MRR.

    It is the cascade whose user stops at the first relevant document: R is 1 or 0. ([B] §3.)
    """

    name: ClassVar[str] = "rr"

    def stops(self, labels: NDArray[Any]) -> Floats:
        """1 for a relevant document."""
        return self.relevant(labels)
