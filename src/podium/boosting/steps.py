"""Steps, which compute leaf values, and the line search that can follow each tree."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from podium.combining import Sweep
from podium.combining.lines import Line, best_on_line
from podium.core import hyperparameters as h
from podium.core.array_types import Floats, Ints
from podium.core.parameters import settings
from podium.core.team import Team
from podium.core.validation import did_you_mean, numbers_of
from podium.data import RankingData
from podium.errors import DataError
from podium.measures import Measure, as_measure
from podium.objectives import Objective
from podium.objectives.base import query_weights_of
from podium.trees import GrownTree
from podium.trees.growth_types import LeafRule
from podium.trees.quantization import BoundedGradients, shrunk

MAX_UNITS = 1000.0  # of an objective's scores: e^1000 overflows, so no pair needs a larger difference


class Step(ABC):
    """A rule for leaf values, which are added to the scores of the leaf's documents.

    Attributes:
        uses_hessians: whether the step uses w; if not, splits minimize least squares.

    Example:
        >>> import numpy as np, podium
        >>> from podium.boosting import Step
        >>> class Sign(Step):
        ...     def leaf_values(self, grown, gradients, team):
        ...         return np.sign(grown.sums(gradients, team)[0])
        >>> model = podium.LambdaMART(1, step=Sign(), learning_rate=0.5).fit(podium.artificial(20, features=4))
        >>> np.unique(np.abs(model.predict(podium.artificial(20, features=4)))).tolist()
        [0.5]

    """

    uses_hessians: ClassVar[bool] = True

    def check(self, objective: Objective) -> None:  # noqa: B027, most steps take all
        """Raise if this step cannot take an objective."""

    def bind(self, objective: Objective) -> Step:
        """Return the step that computes leaf values for an objective, by default this step."""
        return self

    def bind_search(
        self, objective: Objective, train: RankingData, valid: Mapping[str, RankingData], n_threads: int | None
    ) -> BoundLineSearch | None:
        """Return the line search that follows each tree, by default None."""
        return None

    def prepare(self, data: RankingData, gradients: Floats, hessians: Floats) -> None:  # noqa: B027
        """Modify gradients and hessians in place before trees are grown; by default do nothing."""

    def leaf_rule(self, learning_rate: float) -> LeafRule | None:
        """Return the rule by which tree growth itself computes these leaf values, or None if it cannot."""
        return None

    @abstractmethod
    def leaf_values(self, grown: GrownTree, gradients: BoundedGradients, team: Team) -> Floats:
        """Return a value for each leaf, before monotone constraints, limits and the learning rate.

        `gradients` are λ and w of all rows, after `prepare`.
        """

    def scale(self, values: Floats, learning_rate: float) -> Floats:
        """Return leaf values times the learning rate, within the limit of the step if it has one."""
        return learning_rate * values


@settings
class Newton(Step):
    """γ = Σλ / (Σw + l2) over the leaf's documents, 0 where the hessian is 0 ([B] §7, eq. 20 of [D]).

    `l1` first moves Σλ towards 0, but not past it, as in LightGBM and XGBoost. When badly mis-ranked pairs dominate, w
    vanishes but λ does not, so `max_delta_step` limits γ.

    Examples:
        >>> import podium
        >>> from podium.boosting import Newton
        >>> model = podium.LambdaMART(2, step=Newton(l2=1.0, max_delta_step=2.0))
        >>> model.fit(podium.artificial(20, features=4)).n_trees_
        2

    """

    l1: float = h.L1()
    l2: float = h.L2()
    max_delta_step: float | None = h.MAX_DELTA_STEP()

    def bind(self, objective: Objective) -> Step:
        """Return this step with the limit that the objective needs."""
        return replace(self, max_delta_step=max_delta_step_for(objective, self.max_delta_step))

    def check(self, objective: Objective) -> None:
        """Raise unless the hessian is positive."""
        if not objective.has_hessian:
            raise DataError(
                f"Newton's step divides by the hessian, but {objective.no_hessian_because}: use the step 'gradient'"
            )

    def leaf_rule(self, learning_rate: float) -> LeafRule | None:
        """Return the rule for these values; a subclass may have others."""
        if type(self) is not Newton:
            return None
        return LeafRule(float(self.l2), self._limit, float(learning_rate), float(self.l1))

    def leaf_values(self, grown: GrownTree, gradients: BoundedGradients, team: Team) -> Floats:
        """Return the quotients of sums in fixed point, which are exact in any order."""
        gradient_sums, hessian_sums = grown.sums(gradients, team)
        if self.l1:
            gradient_sums = np.array([shrunk(gradient, self.l1) for gradient in gradient_sums])
        divisor = hessian_sums + self.l2
        return np.divide(gradient_sums, divisor, out=np.zeros(len(divisor)), where=divisor > 0)

    def scale(self, values: Floats, learning_rate: float) -> Floats:
        """Return values within the limit, which keeps the order that monotone constraints require."""
        return learning_rate * np.minimum(np.maximum(values, -self._limit), self._limit)

    @property
    def _limit(self) -> float:
        return math.inf if self.max_delta_step is None else float(self.max_delta_step)


@dataclass(frozen=True)
class Gradient(Step):
    """The mean of λ over the leaf's documents, for objectives without a positive hessian ([S] §5).

    Args:
        normalize: whether to divide the λ of each query by their root mean square first, so that only weights determine
            how much a query counts; λ that are all 0 stay 0. If Σλ = 0, it is the standard deviation, as in [S].

    Examples:
        >>> import podium
        >>> from podium.boosting import Gradient
        >>> model = podium.LambdaMART(2, objective="local(ndcg@3)", step=Gradient(normalize=False))
        >>> model.fit(podium.artificial(20, features=4)).n_trees_
        2

    """

    normalize: bool = True
    uses_hessians: ClassVar[bool] = False

    def prepare(self, data: RankingData, gradients: Floats, hessians: Floats) -> None:
        """Normalize the gradients, and give every document the weight 1."""
        hessians[:] = 1.0
        if not self.normalize:
            return
        order, starts = data.canonical_order, data.offsets[:-1][data.query_sizes > 0]
        sizes = data.query_sizes[data.query_sizes > 0]
        weights = query_weights_of(data)[data.query_sizes > 0]
        for output in gradients.reshape(-1, gradients.shape[-1]):
            grouped = output[order]
            size = np.sqrt(np.add.reduceat(grouped * grouped, starts) / sizes)
            factors = np.repeat(np.where(size > 0, weights / np.where(size > 0, size, 1.0), 0.0), sizes)
            output[order] = grouped * factors

    def leaf_values(self, grown: GrownTree, gradients: BoundedGradients, team: Team) -> Floats:
        """Return the means of λ, from exact sums."""
        values: Floats = grown.sums(gradients, team)[0] / np.maximum(grown.ends - grown.starts, 1)
        return values


def max_delta_step_for(objective: Objective, value: float | None) -> float:
    """Return the limit of a step, by default 1000 in units of the objective's scores."""
    return MAX_UNITS * objective.score_unit if value is None else float(value)


Lines = Callable[[Floats, Floats | None], Line]


@dataclass(frozen=True)
class LineSearch(Step):
    """One weight for each tree, the exact optimum for a measure ([W] §4, 5.6): F += α t.

    t is the tree's outputs times the learning rate v, and α maximizes the mean of the measure for s + α t. The search
    visits every α at which two documents of a query swap ranks. By default the outputs are the means of λ in the
    leaves. These have no natural scale, so they are multiplied by the Newton step of the tree, Σλt / Σwt² ([W] §3).
    Then α = 1 means the same as for Newton's values. Objectives without a positive hessian have no such step; their
    outputs are not scaled.

    Args:
        measure: any measure with swap deltas.
        bounds: the smallest and largest α; .1 and 5 in [W].
        ties: how to order documents that are tied for every α, see `podium.combine`.
        on: `"train"`, or `"valid"` for the first validation set, which [W] used on web data to avoid over-fitting.
        values: the step that computes the outputs; `Newton(l2=0.0)` for Newton's values.
        shrink: with `"tree"`, t is the outputs times v, and F += α t ([W] 5.6). With `"alpha"`, t is the outputs, and
            the best α is shrunk: F += v α t ([W] §4). The next α is fitted to the shrunk scores and shrunk again, so
            training is slow for small v.
        max_delta_step: the largest output of a leaf after the Newton step, as in `Newton`.

    Examples:
        >>> import podium
        >>> from podium.boosting import LineSearch
        >>> weights = []
        >>> model = podium.LambdaMART(3, step=LineSearch("ndcg@5", bounds=(0.5, 2.0)))
        >>> model = model.fit(podium.artificial(20, features=4), observers=[lambda r: weights.append(r.weights[0])])
        >>> all(0.5 <= weight <= 2.0 for weight in weights)
        True

    """

    measure: Measure | str = "ndcg@10"
    bounds: tuple[float, float] = (0.1, 5.0)
    ties: str | int = "expected"
    on: str = "train"
    values: Step = field(default_factory=lambda: Gradient(normalize=False))
    shrink: str = "tree"
    max_delta_step: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "measure", as_measure(self.measure))
        object.__setattr__(self, "bounds", numbers_of("bounds", self.bounds))
        if len(self.bounds) != 2 or not 0 <= self.bounds[0] < self.bounds[1]:
            raise DataError(f"bounds must be two non-negative numbers, the lower one first, not {self.bounds}")
        if self.on not in ("train", "valid"):
            raise DataError(f"on must be 'train' or 'valid', not {self.on!r}")
        if self.shrink not in ("tree", "alpha"):
            raise DataError(f"shrink must be 'tree' or 'alpha', not {self.shrink!r}")
        h.MAX_DELTA_STEP.check(self.max_delta_step)

    @property
    def uses_hessians(self) -> bool:  # type: ignore[override]
        """Whether the step that computes the outputs uses hessians."""
        return self.values.uses_hessians

    def check(self, objective: Objective) -> None:
        """Raise if the step that computes the outputs does not support an objective."""
        self.values.check(objective)

    def bind(self, objective: Objective) -> Step:
        """Return the step that computes the outputs."""
        return self.values.bind(objective)

    def bind_search(
        self, objective: Objective, train: RankingData, valid: Mapping[str, RankingData], n_threads: int | None
    ) -> BoundLineSearch:
        """Return the search on the training or validation data."""
        if self.on == "valid" and not valid:
            raise DataError("LineSearch(on='valid') needs validation data")
        data = train if self.on == "train" else next(iter(valid.values()))
        measure = as_measure(self.measure).fixed(train, *valid.values())
        return self.bound_to(objective, Sweep(data, measure, self.ties, n_threads))

    def bound_to(self, objective: Objective, sweep: Sweep | None) -> BoundLineSearch:
        """Return the search for an objective; pass None as `sweep` if the documents are on other machines."""
        settings = replace(
            self, values=self.bind(objective), max_delta_step=max_delta_step_for(objective, self.max_delta_step)
        )
        return BoundLineSearch(settings, objective.has_hessian and not self.uses_hessians, sweep)

    def leaf_values(self, grown: GrownTree, gradients: BoundedGradients, team: Team) -> Floats:
        """Return the tree's outputs."""
        return self.values.leaf_values(grown, gradients, team)


@dataclass(frozen=True)
class LeafLineSearch(LineSearch):
    """One weight for each leaf, which [W] §4 leaves to future work.

    The search goes from leaf to leaf, starting with the largest output, and finds the exact best weight while all
    others are fixed. So the measure never falls on the data of the search. Means of λ are multiplied by the Newton step
    of each leaf.

    Examples:
        >>> import podium
        >>> from podium.boosting import LeafLineSearch
        >>> podium.LambdaMART(2, 4, step=LeafLineSearch("ndcg@5")).fit(podium.artificial(10, features=4)).n_trees_
        2

    """


class BoundLineSearch:
    """A line search on some data, after each tree.

    Attributes:
        settings: the settings.
        in_newton_steps: whether outputs are multiplied by Newton's step, for which the search needs the objective's
            gradients and hessians.
        sweep: the measure along a line; None if the documents are on other machines.

    """

    def __init__(self, settings: LineSearch, in_newton_steps: bool, sweep: Sweep | None) -> None:
        self.settings, self.in_newton_steps, self.sweep = settings, in_newton_steps, sweep
        self.by_leaf = isinstance(settings, LeafLineSearch)

    def lines(self, scores: Floats, leaf_of_rows: Ints) -> Lines:
        """Return a function that creates lines, from the scores of documents before the tree and their leaves."""
        sweep = self.sweep
        assert sweep is not None
        return lambda slopes, added: sweep.line(
            scores if added is None else scores + added[leaf_of_rows], slopes[leaf_of_rows]
        )

    def search(
        self, grown: GrownTree, values: Floats, learning_rate: float, newton_sums: tuple[Floats, Floats] | None,
        lines: Lines,
    ) -> tuple[Floats, float]:  # fmt: skip
        """Return the final values of the leaves, and the weight of the tree.

        Args:
            grown: the tree.
            values: the values of its leaves, before the learning rate.
            learning_rate: v.
            newton_sums: Σλ and Σw of each leaf from the objective, if `in_newton_steps`.
            lines: returns the measure along a line, from the slope of each leaf and a value to add to its scores.

        """
        tree_rate, alpha_rate = (learning_rate, 1.0) if self.settings.shrink == "tree" else (1.0, learning_rate)
        outputs = self.settings.values.scale(values, tree_rate)
        unit, units = 1.0, np.ones(len(values))
        if newton_sums is not None:
            unit, units = self._newton_steps(values, *newton_sums)
        if not self.by_leaf:
            alpha = self._best_weight(lines(unit * outputs, None))
            return alpha_rate * (alpha * (unit * outputs)), alpha
        weighted = self._leaf_by_leaf(units * outputs, lines)
        # A weight for each leaf may break the order that monotone constraints require.
        return alpha_rate * grown.within_bounds(weighted, tree_rate * unit), 1.0

    def _best_weight(self, line: Line) -> float:
        low, high = self.settings.bounds
        return best_on_line(line, low, high, min(max(1.0, low), high)).alpha

    def _leaf_by_leaf(self, outputs: Floats, lines: Lines) -> Floats:
        weighted, leaves = outputs.copy(), np.arange(len(outputs))
        for leaf in np.argsort(-np.abs(outputs), kind="stable"):
            slopes = np.where(leaves == leaf, outputs, 0.0)
            others = np.where(leaves == leaf, 0.0, weighted)  # this leaf at 0, all others unchanged
            weighted[leaf] = self._best_weight(lines(slopes, others)) * outputs[leaf]
        return weighted

    def _newton_steps(self, values: Floats, gradients: Floats, hessians: Floats) -> tuple[float, Floats]:
        """Return Newton's step Σλt / Σwt² for the outputs of the whole tree, and for those of each leaf."""
        limit = self.settings.max_delta_step or math.inf
        largest = float(np.abs(values).max()) or 1.0
        relative = values / largest  # because squares of small numbers would underflow
        slopes, second = gradients * relative / largest, hessians * relative**2
        step = _newton_step(math.fsum(slopes), math.fsum(second), limit / largest)
        limits = limit / np.maximum(np.abs(values), largest * 2.0**-1000)
        steps = [_newton_step(*leaf) for leaf in zip(slopes.tolist(), second.tolist(), limits.tolist(), strict=True)]
        return step, np.array(steps)


def _newton_step(slope: float, second: float, limit: float) -> float:
    """Return the step to the top of a parabola with this slope and second derivative −`second`, up to the limit.

    Return 1 if the parabola does not rise, or has no top.
    """
    return min(slope / second, limit) if slope > 0 and second > 0 else 1.0


def as_step(
    step: Step | str, l2: float, measure: Measure | str = "ndcg@10", max_delta_step: float | None = None,
    l1: float = 0.0,
) -> Step:  # fmt: skip
    """Return a step by value or by name.

    Args:
        step: a `Step`, or `"newton"`, `"gradient"`, `"line-search"`.
        l1, l2, max_delta_step: parameters of Newton's step.
        measure: the measure of a line search.

    Examples:
        >>> from podium.boosting import as_step
        >>> as_step("newton", l2=1.0)
        Newton(l1=0.0, l2=1.0, max_delta_step=None)

    """
    steps: dict[str, Step] = {
        "newton": Newton(l1=l1, l2=l2, max_delta_step=max_delta_step), "gradient": Gradient(),
        "line-search": LineSearch(measure, max_delta_step=max_delta_step),
    }  # fmt: skip
    if isinstance(step, Step):
        return step
    if not isinstance(step, str) or step not in steps:
        hint = did_you_mean(step, steps) if isinstance(step, str) else ""
        raise DataError(f"step must be {' or '.join(map(repr, steps))}, or a Step, not {step!r}{hint}")
    return steps[step]
