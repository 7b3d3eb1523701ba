"""Training on clicks, corrected for the positions at which documents were shown."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.core.array_types import Floats, Int32s, Ints
from podium.core.merging import Counts, Max, Total
from podium.core.sums import GroupSums, group_exponent
from podium.core.validation import numbers_of, require_number
from podium.data import RankingData
from podium.errors import DataError
from podium.objectives.base import (
    BoundInParts,
    BoundObjective,
    CompositeObjective,
    LossTerm,
    Objective,
    register,
    require_one_output,
)
from podium.objectives.pair_terms import PairFilter, PairTerm


def _positions(data: RankingData) -> Int32s:
    if data.positions is None:
        raise DataError(
            "Debiased needs the position at which each document was shown: RankingData(…, positions=…), or a column "
            "'position' of a CSV or Parquet file"
        )
    return data.positions


@register
@dataclass(frozen=True, init=False)
class Debiased(CompositeObjective):
    """λ for click logs, whose labels are the clicks of users on documents shown at certain positions.

    Pass **propensities**, the probability that a user examines position p, if you know them. Each pair is then divided
    by the propensity of its better document, the clicked one: clicks at the bottom are rare, and count more (inverse
    propensity scoring; Joachims, Swaminathan and Schnabel, WSDM 2017).

    Without them, the bias is **estimated** along with the model, as in LightGBM. Training adds a number b_p for each
    position to the scores, s + b_p, and after each round b_p takes a Newton step,
    b_p += v (Σλ − c l2 b_p) / (Σw + c l2), with sums over the c documents shown at p. The model only keeps s.
    Documents that were not shown have b = 0.

    Args:
        objective: a pair term if you pass propensities; otherwise any objective with a hessian.
        propensities: those of positions 1, 2, …, each above 0 and at most 1. Later positions have the last one.
        rate: v, the learning rate of the biases.
        l2: the L2 regularization of the biases.

    Example:
        >>> import podium
        >>> from podium.objectives import Debiased, Lambda
        >>> data = podium.artificial(20, documents=5, features=4)
        >>> shown = podium.RankingData(data.features, data.relevance, qid=data.qid, positions=[1, 2, 3, 4, 5] * 20)
        >>> model = podium.LambdaMART(2, 4, objective=Debiased(Lambda("ndcg"), propensities=(1.0, 0.5, 0.3)))
        >>> model.fit(shown).n_trees_
        2

    """

    objective: Objective
    propensities: tuple[float, ...] | None
    rate: float
    l2: float

    def __init__(
        self, objective: Objective, propensities: Sequence[float] | None = None, rate: float = 0.1, l2: float = 0.0
    ) -> None:
        if not isinstance(objective, Objective):
            raise DataError(f"Debiased takes an objective such as Lambda('ndcg'), not {objective!r}")
        numbers = None if propensities is None else numbers_of("propensities", propensities)
        if numbers is not None:
            if not isinstance(objective, PairTerm):
                raise DataError("propensities weight pairs: pass them with Lambda, Local, Pairwise or LambdaLoss")
            if not numbers or not all(0 < value <= 1 for value in numbers):
                raise DataError(f"propensities must be above 0 and at most 1, but are {numbers}")
        elif not objective.has_hessian:
            raise DataError(f"position biases are estimated by Newton steps, but {objective.no_hessian_because}")
        require_number("rate", rate, above=0)
        require_number("l2", l2, least=0)
        object.__setattr__(self, "objective", objective)
        object.__setattr__(self, "propensities", numbers)
        object.__setattr__(self, "rate", rate)
        object.__setattr__(self, "l2", l2)

    def bind(self, data: RankingData) -> BoundObjective:
        positions = _positions(data)
        if self.propensities is None:
            return BoundBiases(self, self.objective.bind(data), data)
        assert isinstance(self.objective, PairTerm)
        propensities = np.array(self.propensities)
        shown = positions[data.canonical_order]
        trusts = 1.0 / propensities[np.clip(shown, 1, len(propensities)) - 1]
        trusts[shown < 1] = 1.0
        return self.objective.bind_among(data, PairFilter(trusts=trusts.astype(np.float32)))

    def bind_elsewhere(self, data: RankingData) -> BoundObjective:
        """Bind to other data; documents without positions were not shown."""
        if data.positions is None:
            data = data.replace(positions=np.full(len(data), -1))
        return super().bind_elsewhere(data)


class BoundBiases(BoundInParts):
    """An objective with a bias for each position.

    Attributes:
        biases: b of positions 1, 2, … on the scale of scores; `biases[0] = 0` is for documents that were not shown.

    """

    def __init__(self, settings: Debiased, inner: BoundObjective, data: RankingData) -> None:
        self.settings, self.inner = settings, require_one_output(inner, "Debiased")
        self.shown = np.maximum(_positions(data), 0)
        self._set_counts(np.bincount(self.shown))
        self.base_score = inner.base_score

    def _set_counts(self, counts: Ints) -> None:
        self.n, self.counts = int(counts.sum()), counts.astype(np.float64)
        self.biases = np.zeros(len(counts))
        self.sums = GroupSums(self.shown, len(counts))

    def facts(self) -> Any:
        positions, counts = np.unique(self.shown, return_counts=True)
        return Counts(positions, counts), self.inner.facts()

    def set_facts(self, facts: Any) -> None:
        (positions, counts), of_inner = facts
        self.inner.set_facts(of_inner)
        self.base_score = self.inner.base_score
        self._set_counts(np.bincount(positions, counts).astype(np.int64))

    def fill_in_parts(
        self, scores: Floats, iteration: int, gradients: Floats, hessians: Floats
    ) -> Generator[Any, Any, None]:
        """Write λ and w at s + b, then update the biases."""
        self.inner.team = self.team
        yield from self.inner.fill_in_parts(scores + self.biases[self.shown], iteration, gradients, hessians)
        columns = gradients, hessians
        largest = yield Max(tuple(float(np.abs(values).max(initial=0.0)) for values in columns))
        exponents = [group_exponent(value, self.n) for value in largest]
        # Sums of whole numbers do not depend on the order of rows and parts.
        whole = yield Total(tuple(self.sums.whole(*column) for column in zip(columns, exponents, strict=True)))
        gradient_sums, hessian_sums = (
            np.ldexp(w.astype(np.float64), -e) for w, e in zip(whole, exponents, strict=True)
        )
        penalties = self.settings.l2 * self.counts
        divisor = hessian_sums + penalties
        steps = (gradient_sums - penalties * self.biases) / np.where(divisor > 0, divisor, 1.0)
        self.biases += self.settings.rate * np.where(divisor > 0, steps, 0.0)
        self.biases[0] = 0.0

    def loss_terms(self, scores: Floats, iteration: int = 0) -> list[LossTerm]:
        """Return the terms of the inner objective at s + b; b is 0 for positions without training data."""
        self.inner.team = self.team
        positions = np.where(self.shown < len(self.biases), self.shown, 0)
        return self.inner.loss_terms(scores + self.biases[positions], iteration)

    def state(self) -> dict[str, list[float]]:
        return {"biases": self.biases.tolist()} | {f"in/{name}": value for name, value in self.inner.state().items()}

    def restore(self, state: dict[str, list[float]]) -> None:
        if len(state["biases"]) != len(self.biases):
            raise DataError(f"expected biases of {len(self.biases) - 1} positions, but got {len(state['biases']) - 1}")
        self.biases = np.array(state["biases"])
        self.inner.restore({name[3:]: value for name, value in state.items() if name.startswith("in/")})
