"""What an objective is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from podium.threads import Team

if TYPE_CHECKING:
    from podium.data import RankingData


class BoundObjective(ABC):
    """An objective on some data: what the boosting loop and the nets call.

    Attributes:
        team: the threads to use; the caller sets it, None is for all cores.

    """

    team: Team | None = None

    @abstractmethod
    def gradients(
        self, scores: NDArray[np.float64], iteration: int = 0
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """λ and w for each row of the data, in its order; λ > 0 pushes a document up."""

    def fill(
        self, scores: NDArray[np.float64], iteration: int, lambdas: NDArray[np.float64], curvatures: NDArray[np.float64]
    ) -> None:
        """Write λ and w into arrays that are there: new ones cost a millisecond for every few hundred thousand rows."""
        lambdas[:], curvatures[:] = self.gradients(scores, iteration)


class Objective(ABC):
    """What to train on; immutable, and bound to data when training begins."""

    @abstractmethod
    def bind(self, data: RankingData) -> BoundObjective:
        """The objective on these documents."""
