"""A candidate objective that is not in the library: λ at scores with noise, after CatBoost's YetiRank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import podium
from podium.data.canonical import ContentRandom
from podium.objectives import BoundObjective, Objective


@dataclass(frozen=True)
class Noisy(Objective):
    """The mean of an objective's λ and w at scores with Gumbel noise, drawn anew for each round by content.

    A sort by scores with such noise is a draw from Plackett and Luce's distribution of orders, as in YetiRank (Gulin,
    Kuralenok and Pavlov 2011); the mean smooths the objective.

    Attributes:
        objective: the objective.
        scale: of the noise.
        draws: for each round.
        seed: decides the noise.

    """

    objective: Objective
    scale: float = 1.0
    draws: int = 3
    seed: int = 0

    def bind(self, data: podium.RankingData) -> BoundObjective:
        """On these documents."""
        return _BoundNoisy(self, self.objective.bind(data), ContentRandom(data))


class _BoundNoisy(BoundObjective):
    def __init__(self, settings: Noisy, objective: BoundObjective, random: ContentRandom) -> None:
        self.settings, self.objective, self.random = settings, objective, random

    def gradients(self, scores: Any, iteration: int = 0) -> tuple[Any, Any]:
        self.objective.team = self.team
        settings = self.settings
        lambdas, hessians = np.zeros(len(scores)), np.zeros(len(scores))
        for draw in range(settings.draws):
            uniform = self.random.of_documents(f"{settings.seed}/{iteration}/{draw}/noise")
            noise = -np.log(-np.log(np.maximum(uniform, 2.0**-53)))
            found = self.objective.gradients(scores + settings.scale * noise, iteration)
            lambdas += found[0] / settings.draws
            hessians += found[1] / settings.draws
        return lambdas, hessians
