"""Sakai's Q-measure."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Floats, Ints
from podium.core.compiling import kernel
from podium.core.validation import require_number
from podium.measures.base import Example
from podium.measures.blended import Blended
from podium.measures.gains import Gain, highest_label
from podium.measures.ranking import in_descending_order
from podium.measures.registry import register

if TYPE_CHECKING:
    from podium.data import RankingData

LINEAR = Gain("linear")


@register
@dataclass(frozen=True)
class QMeasure(Blended):
    """Sakai's Q-measure: average precision for graded labels (Sakai 2004; 2007).

    Q@T = (1/R) Σ_{r≤T} rel_r (c_r + β cg_r) / (r + β cg*_r): rel_r is 1 if the document at rank r has a gain, c_r of
    the R documents with a gain are among the first r, cg_r is the sum of the gains down to r, cg*_r that of the ideal
    ranking. β = 0 is average precision. It is the sum of blended ratios (`podium.measures.blended`) with the bonus
    1 + β gain and the divisor r + β cg*_r: kernels, swap deltas, ties and the sweep are those of that family.

    Args:
        cutoff: T; the sum is divided by all R relevant documents nevertheless, as that of AP.
        beta: β, how much gains count beside ranks.
        gain: `linear` (the label), or another one as for DCG.

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
        """1 + β gain for documents with a gain."""
        assert isinstance(self.gain, Gain)
        gains = self.gain(labels)
        return np.where(gains > 0, 1.0 + self.beta * gains, 0.0)

    def divisors(self, bonuses: Floats, offsets: Ints) -> Floats:
        """R + β cg*_r."""
        ideal = in_descending_order(bonuses, offsets)
        gains = np.where(ideal > 0, ideal - 1.0, 0.0)  # β times the gains
        divisors = np.empty(len(gains))
        add_ideal_gains(gains, offsets, divisors)
        return divisors

    def power(self, *data: RankingData) -> float:
        """The highest label times the scale, for exponential gains."""
        assert isinstance(self.gain, Gain)
        return self.gain.scale * highest_label(self.labels, *data) if self.gain.kind == "exponential" else 0.0


@kernel
def add_ideal_gains(gains: Floats, offsets: Ints, divisors: Floats) -> None:
    """The rank plus the sum of the gains down to it, for each rank of each query."""
    for q in range(len(offsets) - 1):
        total = 0.0
        for k in range(offsets[q], offsets[q + 1]):
            total += gains[k]
            divisors[k] = (k - offsets[q]) + 1.0 + total
