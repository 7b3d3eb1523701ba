"""Leaf values from λ and curvature."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from podium.errors import DataError
from podium.threads import Team
from podium.trees import GrownTree

Floats = NDArray[np.float64]


class Step(ABC):
    """How far each leaf moves the scores of its documents."""

    @abstractmethod
    def leaf_values(self, grown: GrownTree, team: Team) -> Floats:
        """A value for each leaf, before the learning rate."""


@dataclass(frozen=True)
class Newton(Step):
    """γ = Σλ / (Σw + l2) over the leaf's documents, 0 where there is no curvature ([B] §7, eq. 20 of [D]).

    Args:
        l2: holds small leaves back.

    """

    l2: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.l2, int | float) or not (self.l2 >= 0 and math.isfinite(self.l2)):
            raise DataError(f"l2 must not be negative, but is {self.l2}")

    def leaf_values(self, grown: GrownTree, team: Team) -> Floats:
        """Exact sums in fixed point: their order does not matter."""
        pushes, bends = grown.sums(team)
        divisor = bends + self.l2
        return np.where(divisor > 0, pushes / np.where(divisor > 0, divisor, 1.0), 0.0)
