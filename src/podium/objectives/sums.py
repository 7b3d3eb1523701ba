"""Objectives that combine others: sums, tiers of label sources, sums with a schedule, and averages."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Protocol

import numpy as np

from podium.core.array_types import Float32s, Floats
from podium.core.merging import Total
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
    """Return weights, equal by default; raise if they are negative or do not sum to 1."""
    numbers = numbers_of("weights", weights) if weights is not None else (1 / n_parts,) * n_parts
    if len(numbers) != n_parts:
        raise DataError(f"weights must have an entry for each of the {n_parts} {who}, but has {len(numbers)}")
    if min(numbers) < 0 or not math.isclose(sum(numbers), 1.0, abs_tol=1e-9):
        raise DataError(f"the weights of {who} must be non-negative and sum to 1, but are {numbers}")
    return numbers


class _BoundObjectives(BoundInParts):
    """Several objectives on the same data."""

    parts: Sequence[BoundObjective]

    def facts(self) -> Any:
        return [part.facts() for part in self.parts]

    def set_facts(self, facts: Any) -> None:
        for part, part_facts in zip(self.parts, facts, strict=True):
            part.set_facts(part_facts)
        self.changes = self.changes or any(part.changes for part in self.parts)

    def state(self) -> dict[str, list[float]]:
        """Return the states of the parts, with the number of the part in each key."""
        return {f"{k}/{name}": value for k, part in enumerate(self.parts) for name, value in part.state().items()}

    def restore(self, state: dict[str, list[float]]) -> None:
        for k, part in enumerate(self.parts):
            prefix = f"{k}/"
            part.restore({name[len(prefix) :]: value for name, value in state.items() if name.startswith(prefix)})


class BoundSum(_BoundObjectives):
    """A weighted sum; parts with weight 0 in a round are not computed."""

    def __init__(
        self, parts: Sequence[BoundObjective], weights: Callable[[int], Sequence[float]], changes: bool
    ) -> None:
        self.parts, self.weights, self.changes = parts, weights, changes
        self._set_base_score()

    def _set_base_score(self) -> None:
        weighted = zip(self.weights(0), self.parts, strict=True)
        self.base_score = math.fsum(weight * part.base_score for weight, part in weighted)

    def set_facts(self, facts: Any) -> None:
        super().set_facts(facts)
        self._set_base_score()

    def fill_in_parts(
        self, scores: Floats, iteration: int, gradients: Floats, hessians: Floats
    ) -> Generator[Any, Any, None]:
        gradients[:], hessians[:] = 0.0, 0.0
        part_gradients, part_hessians = np.empty(len(scores)), np.empty(len(scores))
        for part, weight in zip(self.parts, self.weights(iteration), strict=True):
            if weight > 0:
                part.team = self.team
                yield from part.fill_in_parts(scores, iteration, part_gradients, part_hessians)
                gradients += weight * part_gradients
                hessians += weight * part_hessians

    def loss_terms(self, scores: Floats, iteration: int = 0) -> list[LossTerm]:
        weighted = [(w, part) for w, part in zip(self.weights(iteration), self.parts, strict=True) if w > 0]
        return [
            term._replace(weight=weight * term.weight)
            for weight, part in weighted
            for term in part.loss_terms(scores, iteration)
        ]


@register
@dataclass(frozen=True, init=False)
class Sum(CompositeObjective):
    """A weighted sum of objectives: λ = Σ_k w_k λ^(k), and the hessian in the same way.

    One model then learns from all of them, for example the top of the lists from λ of a measure, and all differences of
    labels from query regression (CatBoost's QueryRMSE). Objectives differ in scale: the hessian of query regression is
    1 for each document, that of λ a few hundredths, so with equal weights query regression dominates. For label sources
    in order of trust use `Tiers`, which leaves out pairs that an earlier source has decided.

    Args:
        parts: objectives, each with one score for a document.
        weights: the weights, which sum to 1; equal by default.

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
        bound = [require_one_output(part.bind(data), "Sum") for part in self.parts]
        return BoundSum(bound, lambda _: self.weights, changes=any(part.changes for part in bound))


@register
@dataclass(frozen=True, init=False)
class Tiers(CompositeObjective):
    """Several label sources in order of trust ([S] §3–4): λ = Σ_k w_k λ^(k), and the hessian in the same way.

    A pair counts in tier k if its documents have equal labels in all earlier tiers and different ones in tier k. If the
    tier is `nonzero`, neither label may be 0. So human labels decide first, and clicks decide between documents with
    equal labels. A document without a label in a source (NaN) keeps its rank but has no pairs there. All documents
    without a label in a source count as equal in it, so later tiers decide between them.

    Args:
        tiers: pair terms, the most trusted first, such as `Lambda("ndcg"), Lambda("cndcg")`.
        weights: the weight of each tier; they sum to 1. [S] tried .01 to .5 for the clicks.
        nonzero: whether each tier leaves out labels of 0; by default all but the first do.

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
        tier_weights = weights_of("tiers", weights, len(tiers))
        leaves_out = tuple(nonzero) if nonzero is not None else tuple(k > 0 for k in range(len(tiers)))
        if len(leaves_out) != len(tiers):
            raise DataError(f"nonzero must have an entry for each of the {len(tiers)} tiers, but has {len(leaves_out)}")
        object.__setattr__(self, "tiers", tuple(tiers))
        object.__setattr__(self, "weights", tier_weights)
        object.__setattr__(self, "nonzero", leaves_out)

    def bind(self, data: RankingData) -> BoundObjective:
        bound, groups = [], None
        for tier, nonzero in zip(self.tiers, self.nonzero, strict=True):
            bound.append(tier.bind_among(data, PairFilter(groups, nonzero)))
            groups = _refined(groups, labels_of(data, tier.labels, tier))
        return BoundSum(bound, lambda _: self.weights, changes=False)


def _refined(groups: Float32s | None, labels: Float32s) -> Float32s:
    """Number the distinct combinations of group and label, where a missing label counts as a label."""
    levels = np.unique(labels, return_inverse=True)[1]
    combinations = levels if groups is None else np.column_stack([groups, levels])
    numbers = np.unique(combinations, axis=0, return_inverse=True)[1].ravel()
    if len(numbers) and numbers.max() >= 1 << 24:  # float32 cannot represent all larger numbers
        raise DataError("there are more than 2^24 different combinations of labels")
    return np.asarray(numbers, np.float32)


class Schedule(Protocol):
    """Any function from the iteration, counted from 0, to a weight; weights are clipped to [0, 1].

    Example:
        >>> from podium.objectives import Anneal, Lambda, Pairwise
        >>> Anneal(Pairwise(), Lambda("ndcg"), lambda iteration: iteration / 100).schedule(50)
        0.5

    """

    def __call__(self, iteration: int) -> float:
        """Return the weight."""


@register
@dataclass(frozen=True)
class Constant:
    """The same weight in every round.

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
    """w_m = w_{m−1} + e^{−α/m}, starting from w_0, as in the text of [S] §5, which tried α of 100 and 250.

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
    """w_m = e^{−α/m}, as in figure 6 of [S]; 0 in the first round.

    Example:
        >>> from podium.objectives import ExponentialShare
        >>> round(ExponentialShare(2.0)(2), 4)
        0.3679

    """

    rate: float = 100.0

    def __call__(self, iteration: int) -> float:
        return math.exp(-self.rate / iteration) if iteration > 0 else 0.0


def weight_at(schedule: Schedule, iteration: int) -> float:
    """Return the weight of an iteration, clipped to [0, 1]."""
    weight = schedule(iteration)
    if isinstance(weight, bool) or not isinstance(weight, Real) or math.isnan(weight):
        raise DataError(f"the schedule {schedule!r} returned {weight!r} for iteration {iteration}, not a number")
    return min(max(float(weight), 0.0), 1.0)


@register
@dataclass(frozen=True)
class Anneal(CompositeObjective):
    """A transition between objectives: λ_m = (1 − w_m) λ^(before) + w_m λ^(after), also of the hessian ([S] §5).

    Args:
        before: the objective of the first rounds, such as `Lambda("ndcg")`.
        after: the objective of the last rounds, such as `Local("ndcg@3")`, or `Lambda("ndcg", truncation=3)`.
        schedule: w by iteration: `LinearGrowth`, `ExponentialGrowth`, `ExponentialShare`, `Constant`, or any function
            of the iteration. Weights are clipped to [0, 1].

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

        parts = [require_one_output(part.bind(data), "Anneal") for part in (self.before, self.after)]
        return BoundSum(parts, weights, changes=True)


SETTLED = 10  # from this round on, the spread of scores changes slowly and is measured only every ten rounds


class BoundAverage(_BoundObjectives):
    """Several objectives with one output each, and the spread of the scores of each output.

    Attributes:
        deviations: the root mean square of each output's training scores minus their mean in the query, measured
            before each of the first ten rounds, then before every tenth round.

    """

    def __init__(self, parts: Sequence[BoundObjective], data: RankingData) -> None:
        self.parts, self.n_outputs = parts, len(parts)
        self.changes = any(part.changes for part in parts)
        self._set_deviations(np.ones(len(parts)))
        self.order, self.sizes = data.canonical_order, data.query_sizes[data.query_sizes > 0]
        self.starts = data.offsets[:-1][data.query_sizes > 0]

    def _set_deviations(self, deviations: Floats) -> None:
        self.deviations, self.output_weights = deviations, 1.0 / (self.n_outputs * deviations)

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
        """Return Σ (s − mean of the query)², which does not depend on the order of rows and queries."""
        ordered = scores[self.order]
        centered = ordered - np.repeat(np.add.reduceat(ordered, self.starts) / self.sizes, self.sizes)
        return ExactSum.of(np.add.reduceat(centered * centered, self.starts))

    def loss_terms(self, scores: Floats, iteration: int = 0) -> list[LossTerm]:
        """Return the terms of all parts, each at its own scores, weighted for the mean of the losses."""
        return [
            term._replace(weight=term.weight / self.n_outputs)
            for part, part_scores in zip(self.parts, scores, strict=True)
            for term in part.loss_terms(part_scores, iteration)
        ]

    def ranked_by(self, scores: Floats) -> Floats:
        """Return the weighted sum of the outputs."""
        totals = np.zeros(scores.shape[1])
        assert self.output_weights is not None
        for weight, output in zip(self.output_weights, scores, strict=True):
            totals += weight * output
        return totals

    def state(self) -> dict[str, list[float]]:
        return super().state() | {"deviations": self.deviations.tolist()}

    def restore(self, state: dict[str, list[float]]) -> None:
        self._set_deviations(np.array(state["deviations"]))
        super().restore(state)


@register
@dataclass(frozen=True, init=False)
class Average(CompositeObjective):
    """A model for each objective; documents are ranked by the mean of their standardized scores.

    Each round grows a tree for each objective, from the scores of that objective's own trees. Scores are divided by the
    root mean square of the training scores minus their mean in the query. Training stops when the mean is best, and the
    result is one ensemble. `Sum`, in contrast, adds gradients and trains one model on them.

    Objectives make different mistakes: query regression learns the differences of labels from all documents, λ orders
    the top of the list. The mean of both is usually at least as good as the better one.

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
        return BoundAverage([require_one_output(part.bind(data), "Average") for part in self.parts], data)


RANKS_IN_TRAINING = 20  # λ counts pairs with a document among these; further down, query regression orders the list


def default_objective(measure: Measure) -> Objective:
    """Return the objective of `Ranker`: the average of query regression and λ of a measure on the same labels.

    λ trains on the top 20 ranks of a measure with a cutoff (or up to the cutoff, if that is larger), and on all ranks
    of one without. Of the objectives in bench/results/candidates.md, this one is never far behind the best.

    Example:
        >>> from podium.measures import NDCG
        >>> from podium.objectives import default_objective, describe
        >>> describe(default_objective(NDCG(10)))
        'Average(QueryRegression(), Lambda(measure="ndcg@20"))'

    """
    # Precision and recall keep their own cutoff, because another cutoff would make them different measures.
    has_tail = measure.cutoff is not None and not measure.needs_cutoff
    truncation = max(RANKS_IN_TRAINING, measure.cutoff or 0) if has_tail else None
    return Average(QueryRegression(measure.labels), Lambda(measure_in_training(measure, truncation)))
