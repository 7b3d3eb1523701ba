"""Objectives made of others: sums, tiers of label sources, sums that change by a schedule, and averages."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from podium.core.array_types import Float32s, Floats
from podium.core.merging import Total, alone
from podium.core.sums import ExactSum
from podium.core.validation import numbers_of
from podium.data import RankingData
from podium.errors import DataError
from podium.measures import Measure
from podium.objectives.base import (
    BoundInParts,
    BoundObjective,
    CompositeObjective,
    LossTerm,
    Objective,
    labels_of,
    register,
    require_one_output,
)
from podium.objectives.lambda_ import Lambda
from podium.objectives.listwise import QueryRegression
from podium.objectives.pair_terms import PairFilter, PairTerm, measure_in_training


def weights_of(who: str, weights: Sequence[float] | None, n_parts: int) -> tuple[float, ...]:
    """Checked weights, not negative and with the sum 1; equal ones by default."""
    chosen = numbers_of("weights", weights) if weights is not None else (1 / n_parts,) * n_parts
    if len(chosen) != n_parts:
        raise DataError(f"weights must have an entry for each of the {n_parts} {who}, but has {len(chosen)}")
    if min(chosen) < 0 or not math.isclose(sum(chosen), 1.0, abs_tol=1e-9):
        raise DataError(f"the weights of {who} must not be negative and sum to 1; these are {chosen}")
    return chosen


class BoundSum(BoundInParts):
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
        return [part.facts() for part in self.parts]

    def set_facts(self, facts: Any) -> None:
        for part, of_part in zip(self.parts, facts, strict=True):
            part.set_facts(of_part)
        self.changes = self.changes or any(part.changes for part in self.parts)
        self._set_base_score()

    def fill_in_parts(
        self, scores: Floats, iteration: int, gradients: Floats, hessians: Floats
    ) -> Generator[Any, Any, None]:
        gradients[:], hessians[:] = 0.0, 0.0
        of_part = np.empty(len(scores)), np.empty(len(scores))
        for part, weight in zip(self.parts, self.weights(iteration), strict=True):
            if weight > 0:
                part.team = self.team
                yield from part.fill_in_parts(scores, iteration, *of_part)
                gradients += weight * of_part[0]
                hessians += weight * of_part[1]

    def loss_terms(self, scores: Floats, iteration: int = 0) -> list[LossTerm]:
        weighted = [(w, part) for w, part in zip(self.weights(iteration), self.parts, strict=True) if w > 0]
        return [
            term._replace(weight=weight * term.weight)
            for weight, part in weighted
            for term in part.loss_terms(scores, iteration)
        ]

    def state(self) -> dict[str, list[float]]:
        return states_of_parts(self.parts)

    def restore(self, state: dict[str, list[float]]) -> None:
        restore_parts(self.parts, state)


def states_of_parts(parts: Sequence[BoundObjective]) -> dict[str, list[float]]:
    """The states of the parts, by their numbers."""
    return {f"{k}/{name}": value for k, part in enumerate(parts) for name, value in part.state().items()}


def restore_parts(parts: Sequence[BoundObjective], state: dict[str, list[float]]) -> None:
    """Give each part what it learnt out of what `states_of_parts` returned."""
    for k, part in enumerate(parts):
        prefix = f"{k}/"
        part.restore({name[len(prefix) :]: value for name, value in state.items() if name.startswith(prefix)})


@register
@dataclass(frozen=True, init=False)
class Sum(CompositeObjective):
    """A weighted sum of objectives: λ = Σ_k w_k λ^(k), the hessian alike.

    One model then learns what each of them sees: λ of a measure the top of the lists, query regression (CatBoost's
    QueryRMSE) how labels differ at all. Objectives differ in their units: the hessian of query regression is 1 for
    each document, that of λ is some hundredth, so equal weights are mostly query regression. Label sources in order of
    trust are `Tiers`, which leave out pairs that a source before has decided.

    Args:
        parts: objectives, each with one score for a document.
        weights: of each, with the sum 1; equal ones by default.

    Example:
        >>> import podium
        >>> from podium.objectives import Lambda, QueryRegression, Sum
        >>> both = Sum(Lambda("ndcg"), QueryRegression(), weights=(0.9, 0.1))
        >>> podium.LambdaMART(2, 4, objective=both).fit(podium.artificial(20, features=4)).n_trees_
        2

    """

    parts: tuple[Objective, ...]
    weights: tuple[float, ...]

    def __init__(self, *parts: Objective, weights: Sequence[float] | None = None) -> None:
        if not parts or not all(isinstance(part, Objective) for part in parts):
            raise DataError("Sum takes objectives, such as Sum(Lambda('ndcg'), QueryRegression())")
        object.__setattr__(self, "parts", tuple(parts))
        object.__setattr__(self, "weights", weights_of("parts", weights, len(parts)))

    def bind(self, data: RankingData) -> BoundObjective:
        bound = [part.bind(data) for part in self.parts]
        for part in bound:
            require_one_output(part, "Sum")
        return BoundSum(bound, lambda _: self.weights, changes=any(part.changes for part in bound))


@register
@dataclass(frozen=True, init=False)
class Tiers(CompositeObjective):
    """Several label sources in order of trust ([S] §3–4): λ = Σ_k w_k λ^(k), the hessian alike.

    A pair counts in tier k if its documents have equal labels in all tiers before and different ones here, and, where
    the tier says so, neither label is 0. Human labels decide first, clicks among documents that they leave equal. A
    document that a source has no label for (NaN) keeps its rank and takes no part in that source's pairs. The source
    leaves it equal to the other documents without a label, so that the tiers that know them decide.

    Args:
        tiers: pair terms, the most trusted first, such as `Lambda("ndcg"), Lambda("cndcg")`.
        weights: of each tier, with the sum 1; [S] swept .01 to .5 for the clicks.
        nonzero: for each tier whether labels of 0 are left out; by default in all but the first.

    Example:
        >>> from podium.objectives import Lambda, Tiers
        >>> Tiers(Lambda("ndcg"), Lambda("cndcg"), weights=(0.8, 0.2)).nonzero
        (False, True)

    """

    tiers: tuple[PairTerm, ...]
    weights: tuple[float, ...]
    nonzero: tuple[bool, ...]

    def __init__(
        self, *tiers: PairTerm, weights: Sequence[float] | None = None, nonzero: Sequence[bool] | None = None
    ) -> None:
        if not tiers or not all(isinstance(tier, PairTerm) for tier in tiers):
            raise DataError("Tiers takes pair terms: Lambda, Local, Pairwise or LambdaLoss")
        chosen = weights_of("tiers", weights, len(tiers))
        leaves_out = tuple(nonzero) if nonzero is not None else tuple(k > 0 for k in range(len(tiers)))
        if len(leaves_out) != len(tiers):
            raise DataError(f"nonzero must have an entry for each of the {len(tiers)} tiers, but has {len(leaves_out)}")
        object.__setattr__(self, "tiers", tuple(tiers))
        object.__setattr__(self, "weights", chosen)
        object.__setattr__(self, "nonzero", leaves_out)

    def bind(self, data: RankingData) -> BoundObjective:
        bound, groups = [], None
        for tier, nonzero in zip(self.tiers, self.nonzero, strict=True):
            bound.append(tier.bind_among(data, PairFilter(groups, nonzero)))
            groups = _refined(groups, labels_of(data, tier.labels, tier))
        return BoundSum(bound, lambda _: self.weights, changes=False)


def _refined(groups: Float32s | None, labels: Float32s) -> Float32s:
    """Return numbers for the distinct pairs of group and label, where no label is one as well; exact below 2^24."""
    levels = np.unique(labels, return_inverse=True)[1]
    pairs = levels if groups is None else np.column_stack([groups, levels])
    numbers = np.unique(pairs, axis=0, return_inverse=True)[1].ravel()
    if len(numbers) and numbers.max() >= 1 << 24:
        raise DataError("there are more than 2^24 different combinations of labels")
    return np.asarray(numbers, np.float32)


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
        return self.start + self.rate * iteration


@register
@dataclass(frozen=True)
class ExponentialGrowth:
    """w_m = w_{m−1} + e^{−α/m} from w_0 on, as the text of [S] §5 says; α of 100 and 250.

    Example:
        >>> from podium.objectives import ExponentialGrowth
        >>> round(ExponentialGrowth(0.1, 2.0)(2), 4)
        0.6032

    """

    start: float = 0.1
    rate: float = 100.0

    def __call__(self, iteration: int) -> float:
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
        return math.exp(-self.rate / iteration) if iteration > 0 else 0.0


def weight_at(schedule: Schedule, iteration: int) -> float:
    """The weight, kept in [0, 1]."""
    weight = schedule(iteration)
    if isinstance(weight, bool) or not isinstance(weight, numbers.Real) or math.isnan(weight):
        raise DataError(f"the schedule {schedule!r} gave {weight!r} for iteration {iteration}, not a number")
    return min(max(float(weight), 0.0), 1.0)


@register
@dataclass(frozen=True)
class Anneal(CompositeObjective):
    """From one objective to another: λ_m = (1 − w_m) λ^(from) + w_m λ^(to), the hessian alike ([S] §5).

    Args:
        before: the objective of the first rounds, such as `Lambda("ndcg")`.
        after: the one it turns into, such as `Local("ndcg@3")`, or `Lambda("ndcg", truncation=3)`.
        schedule: w by iteration: `LinearGrowth`, `ExponentialGrowth`, `ExponentialShare`, `Constant`, or any function
            of the iteration. What leaves [0, 1] is kept at its ends.

    Example:
        >>> import podium
        >>> from podium.objectives import Anneal, Lambda, LinearGrowth
        >>> change = Anneal(Lambda("ndcg"), Lambda("err"), LinearGrowth(0.1, 0.01))
        >>> podium.LambdaMART(2, 4, objective=change).fit(podium.artificial(20, features=4)).n_trees_
        2

    """

    before: Objective
    after: Objective
    schedule: Schedule = field(default_factory=LinearGrowth)

    def __post_init__(self) -> None:
        if not isinstance(self.before, Objective) or not isinstance(self.after, Objective):
            raise DataError("Anneal takes two objectives and a schedule")
        weight_at(self.schedule, 0)

    def bind(self, data: RankingData) -> BoundObjective:
        def weights(iteration: int) -> tuple[float, float]:
            weight = weight_at(self.schedule, iteration)
            return 1.0 - weight, weight

        parts = [self.before.bind(data), self.after.bind(data)]
        for part in parts:
            require_one_output(part, "Anneal")
        return BoundSum(parts, weights, changes=True)


SETTLED = 10  # rounds after which the spread of scores changes slowly: it is then measured every ten rounds


class BoundAverage(BoundObjective):
    """Objectives that each have an output of their own, and how far the scores of each output spread.

    Attributes:
        deviations: the root mean square of each output's training scores less their mean in the query, when they were
            last measured: before each of the first ten rounds, then before every tenth.

    """

    def __init__(self, parts: Sequence[BoundObjective], data: RankingData) -> None:
        self.parts, self.n_outputs = parts, len(parts)
        self.changes = any(part.changes for part in parts)
        self._set_deviations(np.ones(len(parts)))
        self.order, self.sizes = data.canonical_order, data.query_sizes[data.query_sizes > 0]
        self.starts = data.offsets[:-1][data.query_sizes > 0]

    def _set_deviations(self, deviations: Floats) -> None:
        self.deviations, self.output_weights = deviations, 1.0 / (self.n_outputs * deviations)

    def facts(self) -> Any:
        return [part.facts() for part in self.parts]

    def set_facts(self, facts: Any) -> None:
        for part, of_part in zip(self.parts, facts, strict=True):
            part.set_facts(of_part)
        self.changes = any(part.changes for part in self.parts)

    def gradients(self, scores: Floats, iteration: int = 0) -> tuple[Floats, Floats]:
        gradients, hessians = np.empty_like(scores), np.empty_like(scores)
        self.fill(scores, iteration, gradients, hessians)
        return gradients, hessians

    def fill(self, scores: Floats, iteration: int, gradients: Floats, hessians: Floats) -> None:
        alone(self.fill_in_parts(scores, iteration, gradients, hessians))

    def fill_in_parts(
        self, scores: Floats, iteration: int, gradients: Floats, hessians: Floats
    ) -> Generator[Any, Any, None]:
        for k, part in enumerate(self.parts):
            part.team = self.team
            yield from part.fill_in_parts(scores[k], iteration, gradients[k], hessians[k])
        if iteration >= SETTLED and iteration % SETTLED:
            return
        *squares, n_documents = yield Total((*map(self._squares, scores), len(self.order)))
        deviations = np.sqrt([float(square) / max(n_documents, 1) for square in squares])
        self._set_deviations(np.where(deviations > 0, deviations, 1.0))  # all scores are equal in the first round

    def _squares(self, scores: Floats) -> ExactSum:
        """Σ (s − mean of the query)², the same in any order of rows and queries."""
        ordered = scores[self.order]
        centered = ordered - np.repeat(np.add.reduceat(ordered, self.starts) / self.sizes, self.sizes)
        return ExactSum.of(np.add.reduceat(centered * centered, self.starts))

    def loss_terms(self, scores: Floats, iteration: int = 0) -> list[LossTerm]:
        """Return those of all parts, each at its own scores, for the mean of their losses."""
        return [
            term._replace(weight=term.weight / self.n_outputs)
            for part, of_part in zip(self.parts, scores, strict=True)
            for term in part.loss_terms(of_part, iteration)
        ]

    def ranked_by(self, scores: Floats) -> Floats:
        """The weighted sum of the outputs."""
        totals = np.zeros(scores.shape[1])
        assert self.output_weights is not None
        for weight, output in zip(self.output_weights, scores, strict=True):
            totals += weight * output
        return totals

    def state(self) -> dict[str, list[float]]:
        return states_of_parts(self.parts) | {"deviations": self.deviations.tolist()}

    def restore(self, state: dict[str, list[float]]) -> None:
        self._set_deviations(np.array(state["deviations"]))
        restore_parts(self.parts, state)


@register
@dataclass(frozen=True, init=False)
class Average(CompositeObjective):
    """A model for each objective; documents are ranked by the mean of their standardised scores.

    Each round grows a tree for each objective, at the scores of that objective's own trees. Scores are divided by the
    root mean square of the training scores less their mean in the query. Training stops when the mean is best, and the
    result is one ensemble. `Sum` instead adds gradients, and trains one model on them.

    Objectives err in different places: query regression learns from all documents how labels differ, λ puts the top of
    the list in order. The mean of both is usually level with the better one or ahead of it.

    Args:
        parts: objectives, each with one score for a document.

    Example:
        >>> import podium
        >>> from podium.objectives import Average, Lambda, QueryRegression
        >>> both = Average(QueryRegression(), Lambda("ndcg"))
        >>> model = podium.LambdaMART(3, 4, objective=both).fit(podium.artificial(20, features=4))
        >>> model.n_trees_, model.model_.n_trees
        (3, 6)

    """

    parts: tuple[Objective, ...]

    def __init__(self, *parts: Objective) -> None:
        if not parts or not all(isinstance(part, Objective) for part in parts):
            raise DataError("Average takes objectives, such as Average(QueryRegression(), Lambda('ndcg'))")
        object.__setattr__(self, "parts", tuple(parts))

    def bind(self, data: RankingData) -> BoundObjective:
        bound = [part.bind(data) for part in self.parts]
        for part in bound:
            require_one_output(part, "Average")
        return BoundAverage(bound, data)


RANKS_IN_TRAINING = 20  # λ counts pairs with a document among these; further down, query regression orders the list


def default_objective(measure: Measure) -> Objective:
    """Return what `Ranker` trains on: query regression and λ of a measure on the same labels, averaged.

    λ trains on the top 20 ranks of a measure with a cutoff (or on as many as the cutoff, if that is more), and on all
    ranks of one without. Of the objectives in bench/results/candidates.md, this one is never far behind the best.

    Example:
        >>> from podium.measures import NDCG
        >>> from podium.objectives import default_objective, describe
        >>> describe(default_objective(NDCG(10)))
        'Average(QueryRegression(), Lambda(measure="ndcg@20"))'

    """
    # Precision and recall keep their own cutoff: with another, they are different measures.
    has_tail = measure.cutoff is not None and not measure.needs_cutoff
    truncation = max(RANKS_IN_TRAINING, measure.cutoff or 0) if has_tail else None
    return Average(QueryRegression(measure.labels), Lambda(measure_in_training(measure, truncation)))
