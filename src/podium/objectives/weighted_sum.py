"""Weighted sums of objectives: tiers, plain sums, and objectives that change from round to round."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from typing import Any

import numpy as np

from podium.core.array_types import Floats
from podium.core.merging import alone
from podium.core.validation import numbers_of
from podium.errors import DataError
from podium.objectives.base import BoundObjective


def weights_of(who: str, weights: Sequence[float] | None, n_parts: int) -> tuple[float, ...]:
    """Checked weights, not negative and with the sum 1; equal ones by default."""
    chosen = numbers_of("weights", weights) if weights is not None else (1 / n_parts,) * n_parts
    if len(chosen) != n_parts:
        raise DataError(f"weights must have an entry for each of the {n_parts} {who}, but has {len(chosen)}")
    if min(chosen) < 0 or not math.isclose(sum(chosen), 1.0, abs_tol=1e-9):
        raise DataError(f"the weights of {who} must not be negative and sum to 1; these are {chosen}")
    return chosen


class BoundSum(BoundObjective):
    """A weighted sum; parts that weigh nothing in a round are not computed."""

    def __init__(
        self, parts: Sequence[BoundObjective], weights: Callable[[int], Sequence[float]], changes: bool
    ) -> None:
        self.parts, self.weights, self.changes = parts, weights, changes
        self._set_base_score()

    def _set_base_score(self) -> None:
        weighted = zip(self.weights(0), self.parts, strict=True)
        self.base_score = math.fsum(weight * part.base_score for weight, part in weighted)

    def facts(self) -> Any:
        """Those of the parts."""
        return [part.facts() for part in self.parts]

    def set_facts(self, facts: Any) -> None:
        """Likewise."""
        for part, of_part in zip(self.parts, facts, strict=True):
            part.set_facts(of_part)
        self.changes = self.changes or any(part.changes for part in self.parts)
        self._set_base_score()

    def gradients(self, scores: Floats, iteration: int = 0) -> tuple[Floats, Floats]:
        """The weighted sums of λ and w."""
        gradients, hessians = np.zeros(len(scores)), np.zeros(len(scores))
        self.fill(scores, iteration, gradients, hessians)
        return gradients, hessians

    def fill(self, scores: Floats, iteration: int, gradients: Floats, hessians: Floats) -> None:
        """The same into arrays that are there."""
        alone(self.fill_in_parts(scores, iteration, gradients, hessians))

    def fill_in_parts(
        self, scores: Floats, iteration: int, gradients: Floats, hessians: Floats
    ) -> Generator[Any, Any, None]:
        """The same on a part of the data."""
        gradients[:], hessians[:] = 0.0, 0.0
        of_part = np.empty(len(scores)), np.empty(len(scores))
        for part, weight in zip(self.parts, self.weights(iteration), strict=True):
            if weight > 0:
                part.team = self.team
                yield from part.fill_in_parts(scores, iteration, *of_part)
                gradients += weight * of_part[0]
                hessians += weight * of_part[1]

    def state(self) -> dict[str, list[float]]:
        """The states of the parts, by their numbers."""
        return {f"{k}/{name}": value for k, part in enumerate(self.parts) for name, value in part.state().items()}

    def restore(self, state: dict[str, list[float]]) -> None:
        """Take over what `state` gave."""
        for k, part in enumerate(self.parts):
            prefix = f"{k}/"
            part.restore({name[len(prefix) :]: value for name, value in state.items() if name.startswith(prefix)})
