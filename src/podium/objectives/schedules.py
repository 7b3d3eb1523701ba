"""Schedules: how far training has gone over from one objective to the other, by iteration."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from typing import Protocol

from podium.errors import DataError


class Schedule(Protocol):
    """A weight for each iteration, counted from 0; what leaves [0, 1] is kept at its ends."""

    def __call__(self, iteration: int) -> float:
        """The weight."""


@dataclass(frozen=True)
class Constant:
    """Always the same weight."""

    weight: float

    def __call__(self, iteration: int) -> float:
        """The weight."""
        return self.weight


@dataclass(frozen=True)
class LinearGrowth:
    """w_m = w_0 + α m: [S] §5 tried w_0 of .1, .25 and .5, α of .1, .01 and .001."""

    start: float = 0.1
    rate: float = 0.01

    def __call__(self, iteration: int) -> float:
        """The weight."""
        return self.start + self.rate * iteration


@dataclass(frozen=True)
class ExponentialGrowth:
    """w_m = w_{m−1} + e^{−α/m} from w_0 on: how the text of [S] §5 has it; α of 100 and 250."""

    start: float = 0.1
    rate: float = 100.0

    def __call__(self, iteration: int) -> float:
        """The weight."""
        return self.start + math.fsum(math.exp(-self.rate / m) for m in range(1, iteration + 1))


@dataclass(frozen=True)
class ExponentialShare:
    """w_m = e^{−α/m}: what figure 6 of [S] plots; 0 in the first round."""

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
