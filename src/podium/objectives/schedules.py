"""Schedules: how far training has gone over from one objective to the other, by iteration."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from typing import Protocol

from podium.errors import DataError
from podium.objectives.base import register


class Schedule(Protocol):
    """A weight for each iteration, counted from 0; what leaves [0, 1] is cut off there. Any such function will do.

    Example:
        >>> from podium.objectives import Anneal, Lambda, Pairwise
        >>> Anneal(Pairwise(), Lambda("ndcg"), lambda iteration: iteration / 100).schedule(50)
        0.5

    """

    def __call__(self, iteration: int) -> float:
        """The weight."""


@register
@dataclass(frozen=True)
class Constant:
    """Always the same weight.

    Example:
        >>> from podium.objectives import Constant
        >>> Constant(0.3)(100)
        0.3

    """

    weight: float

    def __call__(self, iteration: int) -> float:
        """The weight."""
        return self.weight


@register
@dataclass(frozen=True)
class LinearGrowth:
    """w_m = w_0 + α m: [S] §5 tried w_0 of .1, .25 and .5, α of .1, .01 and .001.

    Example:
        >>> from podium.objectives import LinearGrowth
        >>> LinearGrowth(0.1, 0.01)(10)
        0.2

    """

    start: float = 0.1
    rate: float = 0.01

    def __call__(self, iteration: int) -> float:
        """The weight."""
        return self.start + self.rate * iteration


@register
@dataclass(frozen=True)
class ExponentialGrowth:
    """w_m = w_{m−1} + e^{−α/m} from w_0 on: how the text of [S] §5 has it; α of 100 and 250.

    Example:
        >>> from podium.objectives import ExponentialGrowth
        >>> round(ExponentialGrowth(0.1, 2.0)(2), 4)
        0.6032

    """

    start: float = 0.1
    rate: float = 100.0

    def __call__(self, iteration: int) -> float:
        """The weight."""
        return self.start + math.fsum(math.exp(-self.rate / m) for m in range(1, iteration + 1))


@register
@dataclass(frozen=True)
class ExponentialShare:
    """w_m = e^{−α/m}: what figure 6 of [S] plots; 0 in the first round.

    Example:
        >>> from podium.objectives import ExponentialShare
        >>> round(ExponentialShare(2.0)(2), 4)
        0.3679

    """

    rate: float = 100.0

    def __call__(self, iteration: int) -> float:
        """The weight."""
        return math.exp(-self.rate / iteration) if iteration > 0 else 0.0


def weight_at(schedule: Schedule, iteration: int) -> float:
    """The weight, kept in [0, 1]."""
    weight = schedule(iteration)
    if isinstance(weight, bool) or not isinstance(weight, numbers.Real) or math.isnan(weight):
        raise DataError(f"the schedule {schedule!r} gave {weight!r} for iteration {iteration}, not a number")
    return min(max(float(weight), 0.0), 1.0)
