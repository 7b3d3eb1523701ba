"""NDCG from clicks, without the bias of the positions at which documents were shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Floats, Ints
from podium.core.validation import numbers_of
from podium.errors import DataError
from podium.measures.base import Example
from podium.measures.gains import Gain, shown
from podium.measures.ndcg import NDCG
from podium.measures.registry import register

if TYPE_CHECKING:
    from podium.data import RankingData


class Propensities(tuple[float, ...]):
    """The probability that a position is looked at, from 1 on; as text `1/0.5/0.3`."""

    __slots__ = ()

    def __str__(self) -> str:
        return "/".join(map(shown, self))


@register
@dataclass(frozen=True)
class PropensityNDCG(NDCG):
    """NDCG on clicks whose gain is divided by the probability that their position was looked at.

    The gain of a document is g / p, p the propensity of the position at which it was shown when it was clicked, so
    that a click far down, which few users could make, counts more: inverse propensity scoring (Joachims, Swaminathan
    and Schnabel 2017; Agarwal, Takatsu, Zaitsev and Joachims 2019). Divided by the DCG of the order by g / p. With true
    propensities the DCG is right in the mean over clicks. To train on such clicks, see `podium.objectives.Debiased`.

    Args:
        propensities: for position 1, 2, …, above 0, at most 1; positions beyond have the last one. As text
            `1/0.5/0.3`.
        labels: the clicks, or click rates.

    Example:
        >>> import podium
        >>> from podium import PropensityNDCG
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
        given: Any = self.propensities.split("/") if isinstance(self.propensities, str) else self.propensities
        chosen = Propensities(numbers_of("propensities", [given] if isinstance(given, int | float) else given))
        if not chosen or not all(0 < p <= 1 for p in chosen):
            raise DataError(
                f"{self.name} needs the probability that position 1, 2, … is looked at, above 0 and at most 1, such as "
                f"propensities=1/0.5/0.3; these are {tuple(chosen)}"
            )
        object.__setattr__(self, "propensities", chosen)

    def labels_in(self, data: RankingData, order: Ints) -> NDArray[Any]:
        """G / p, in an order of the rows."""
        clicks = super().labels_in(data, order)
        if data.positions is None:
            raise DataError(
                f"{self.name} needs the position at which each document was shown: RankingData(…, positions=…), or a "
                "column 'position' of a CSV or Parquet file"
            )
        assert isinstance(self.gain, Gain)
        gains, positions = self.gain(clicks), data.positions[order]
        if (bad := order[(gains > 0) & (positions < 1)]).size:
            raise DataError(f"the document in row {bad[0]} was clicked, but has no position: it must have been shown")
        propensities = np.array(self.propensities)
        return np.asarray(gains / propensities[np.clip(positions, 1, len(propensities)) - 1])

    def gains(self, labels: NDArray[Any]) -> Floats:
        """`labels_in` has made them gains already."""
        return np.nan_to_num(np.asarray(labels, np.float64))
