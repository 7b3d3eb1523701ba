"""Steps: from a grown tree to the values of its leaves."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from podium.combining import Sweep
from podium.core.threads import Team
from podium.core.validation import did_you_mean, numbers_of, require_number
from podium.data import RankingData
from podium.errors import DataError
from podium.measures import Measure, as_measure
from podium.objectives import Objective
from podium.objectives.base import query_weights_of
from podium.trees.growing import GrownTree
from podium.trees.quantising import sum_bounds

Floats = NDArray[np.float64]
MAX_UNITS = 1000.0  # of an objective's scores: e^1000 is beyond floating point, so no pair needs to go further

Documents = Callable[[str], tuple[Floats, NDArray[np.int64]]]


class Step(ABC):
    """What a leaf adds to the scores of its documents.

    Attributes:
        uses_hessians: whether w plays a part; where it does not, splits are those of least squares.

    """

    uses_hessians: ClassVar[bool] = True

    def check(self, objective: Objective) -> None:  # noqa: B027, most steps take all
        """Refuse an objective that this step cannot take."""

    def prepare(self, data: RankingData, lambdas: Floats, curvatures: Floats) -> None:  # noqa: B027
        """Change λ and w before the tree is grown on them; nothing by default."""

    def bind(
        self, objective: Objective, train: RankingData, valid: Mapping[str, RankingData], n_threads: int | None
    ) -> Step:
        """The step for an objective on some data; mostly itself."""
        return self

    @abstractmethod
    def leaf_values(self, grown: GrownTree, team: Team) -> Floats:
        """A value for each leaf, before monotone constraints, limits and the learning rate."""

    def settle(
        self, grown: GrownTree, values: Floats, learning_rate: float, documents: Documents, team: Team
    ) -> tuple[Floats, float]:
        """The final values of the leaves, and the weight of the tree that was found beside the learning rate.

        `values` are those of `leaf_values` within the bounds of monotone constraints; `documents("train" or "valid")`
        gives the scores so far and the leaf of each document.
        """
        return learning_rate * values, 1.0


@dataclass(frozen=True)
class Newton(Step):
    """γ = Σλ / (Σw + l2) over the leaf's documents, 0 where there is no curvature ([B] §7, eq. 20 of [D]).

    Args:
        l2: holds small leaves back.
        max_delta_step: no leaf's γ goes further from 0, as in LightGBM and XGBoost. Where documents stand in the wrong
            order by much, w vanishes and λ does not: γ has no limit of its own. By default 1000/σ, and no limit where w
            does not depend on scores (least squares); `math.inf` for none.

    """

    l2: float = 0.0
    max_delta_step: float | None = None

    def __post_init__(self) -> None:
        require_number("l2", self.l2, least=0)
        require_max_delta_step(self.max_delta_step)

    def bind(
        self, objective: Objective, train: RankingData, valid: Mapping[str, RankingData], n_threads: int | None
    ) -> Step:
        """With the limit that this objective needs."""
        return replace(self, max_delta_step=max_delta_step_for(objective, self.max_delta_step))

    def check(self, objective: Objective) -> None:
        """Curvature must be positive."""
        if not objective.curved:
            raise DataError(
                f"Newton's step divides by the curvature, but {objective.flat_because}: use step='gradient'"
            )

    def leaf_values(self, grown: GrownTree, team: Team) -> Floats:
        """Exact sums in fixed point: their order does not matter."""
        pushes, bends = grown.sums(team)
        divisor = bends + self.l2
        return np.where(divisor > 0, pushes / np.where(divisor > 0, divisor, 1.0), 0.0)

    def settle(
        self, grown: GrownTree, values: Floats, learning_rate: float, documents: Documents, team: Team
    ) -> tuple[Floats, float]:
        """Within the limit, which leaves the order of leaf values as monotone constraints have it."""
        limit = math.inf if self.max_delta_step is None else self.max_delta_step
        return learning_rate * np.clip(values, -limit, limit), 1.0


@dataclass(frozen=True)
class Gradient(Step):
    """The mean of λ over the leaf's documents, for objectives without a curvature to divide by ([S] §5).

    Args:
        normalize: first divide the λ of each query by their root mean square (where Σλ = 0 that is [S]'s standard
            deviation), so that queries count by their weights alone; λ that are all 0 stay 0.

    """

    normalize: bool = True
    uses_hessians: ClassVar[bool] = False

    def prepare(self, data: RankingData, lambdas: Floats, curvatures: Floats) -> None:
        """λ normalised; every document counts 1."""
        curvatures[:] = 1.0
        if not self.normalize:
            return
        order, starts = data.canonical_order, data.offsets[:-1][data.query_sizes > 0]
        sizes = data.query_sizes[data.query_sizes > 0]
        weights = query_weights_of(data)[data.query_sizes > 0]
        for output in lambdas.reshape(-1, lambdas.shape[-1]):
            mine = output[order]
            size = np.sqrt(np.add.reduceat(mine * mine, starts) / sizes)
            by = np.repeat(np.where(size > 0, weights / np.where(size > 0, size, 1.0), 0.0), sizes)
            output[order] = mine * by

    def leaf_values(self, grown: GrownTree, team: Team) -> Floats:
        """Exact sums over counts."""
        values: Floats = grown.sums(team)[0] / np.maximum(grown.ends - grown.starts, 1)
        return values


@dataclass(frozen=True)
class LineSearch(Step):
    """One weight for each tree, the exact best of all for a measure ([W] §4, 5.6): F += α t.

    t are the tree's outputs, times the learning rate v; α is where the mean of the measure for s + α t is highest,
    found by visiting every α at which two documents of a query change places. Outputs are the means of λ in the leaves.
    Those have no scale of their own, so they are multiplied by the tree's own Newton step Σλt / Σwt² ([W] §3): α = 1
    means the same for them as for Newton's values. (Objectives without a positive hessian have no such step: their
    outputs stay as they are.)

    Args:
        measure: any measure with swap deltas.
        bounds: α between these; [W] had .1 and 5.
        ties: see `podium.combine`.
        on: `"train"`, or `"valid"` for the first validation set, as [W] did on web data, against over-fitting.
        values: the step that gives the outputs; `Newton()` for Newton's values.
        shrink: `"tree"`: v is a part of t, α is found for this t and not shrunk again, F += α v t ([W] 5.6). `"alpha"`:
            α is found for the whole outputs and then shrunk, F += v α t ([W] §4); the next α is fitted to the shrunken
            scores and shrunk again, which is slow for small v.
        max_delta_step: the largest output of a leaf that its Newton step may give, as in `Newton`.

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
            raise DataError(f"bounds must be two numbers from 0 on, the lower one first, not {self.bounds}")
        if self.on not in ("train", "valid"):
            raise DataError(f"on must be 'train' or 'valid', not {self.on!r}")
        if self.shrink not in ("tree", "alpha"):
            raise DataError(f"shrink must be 'tree' or 'alpha', not {self.shrink!r}")
        require_max_delta_step(self.max_delta_step)

    @property
    def uses_hessians(self) -> bool:  # type: ignore[override]
        """Whether the step that gives the outputs does."""
        return self.values.uses_hessians

    def check(self, objective: Objective) -> None:
        """Whatever the outputs need."""
        self.values.check(objective)

    def bind(
        self, objective: Objective, train: RankingData, valid: Mapping[str, RankingData], n_threads: int | None
    ) -> Step:
        """With the measure's tables on the data."""
        if self.on == "valid" and not valid:
            raise DataError("LineSearch(on='valid') needs validation data")
        data = train if self.on == "train" else next(iter(valid.values()))
        measure = as_measure(self.measure).fixed(train, *valid.values())
        settings = replace(
            self,
            values=self.values.bind(objective, train, valid, n_threads),
            max_delta_step=max_delta_step_for(objective, self.max_delta_step),
        )
        in_newton_steps = objective.curved and not self.uses_hessians
        return _BoundLineSearch(settings, in_newton_steps, Sweep(data, measure, self.ties, n_threads))

    def leaf_values(self, grown: GrownTree, team: Team) -> Floats:
        """The tree's outputs."""
        return self.values.leaf_values(grown, team)


@dataclass(frozen=True)
class LeafLineSearch(LineSearch):
    """A weight for each leaf, one after the other: what [W] §4 leaves to future work.

    The leaf with the largest output first, each the exact best while all others stand; the measure on the data that is
    searched never falls from leaf to leaf. Means of λ are counted in units of each leaf's own Newton step.
    """


class _BoundLineSearch(Step):
    """A line search on some data.

    Attributes:
        settings: what was asked for.
        in_newton_steps: whether outputs are counted in units of Newton's step.
        sweep: the measure along a line.

    """

    def __init__(self, settings: LineSearch, in_newton_steps: bool, sweep: Sweep) -> None:
        self.settings, self.in_newton_steps, self.sweep = settings, in_newton_steps, sweep
        self.by_leaf = isinstance(settings, LeafLineSearch)

    def prepare(self, data: RankingData, lambdas: Floats, curvatures: Floats) -> None:
        if self.in_newton_steps:  # the outputs' step writes over them
            self.lambdas, self.hessians = lambdas.copy(), curvatures.copy()
        self.settings.values.prepare(data, lambdas, curvatures)

    def leaf_values(self, grown: GrownTree, team: Team) -> Floats:
        return self.settings.leaf_values(grown, team)

    def settle(
        self, grown: GrownTree, values: Floats, learning_rate: float, documents: Documents, team: Team
    ) -> tuple[Floats, float]:
        before, after = (learning_rate, 1.0) if self.settings.shrink == "tree" else (1.0, learning_rate)
        outputs = self.settings.values.settle(grown, values, before, documents, team)[0]
        unit, units = self._units(grown, values, team) if self.in_newton_steps else (1.0, np.ones(len(values)))
        scores, leaves = documents(self.settings.on)
        if not self.by_leaf:
            alpha = self._best(scores, (unit * outputs)[leaves])
            return after * (alpha * (unit * outputs)), alpha
        settled = self._leaf_by_leaf(scores, units * outputs, leaves)
        # A weight for each leaf may break the order that monotone constraints ask for.
        return after * np.clip(settled, before * unit * grown.low, before * unit * grown.high), 1.0

    def _best(self, scores: Floats, slopes: Floats) -> float:
        low, high = self.settings.bounds
        return self.sweep.best(scores, slopes, low, high, min(max(1.0, low), high)).alpha

    def _leaf_by_leaf(self, scores: Floats, outputs: Floats, leaves: NDArray[np.int64]) -> Floats:
        settled = outputs.copy()
        for leaf in np.argsort(-np.abs(outputs), kind="stable"):
            slopes = np.where(leaves == leaf, outputs[leaf], 0.0)
            rest = scores + np.where(leaves == leaf, 0.0, settled[leaves])  # this leaf at 0, all others as they stand
            settled[leaf] = self._best(rest, slopes) * outputs[leaf]
        return settled

    def _units(self, grown: GrownTree, values: Floats, team: Team) -> tuple[float, Floats]:
        """Newton's step for the outputs of the whole tree, Σλt / Σwt², and of each leaf, from exact sums."""
        packed = replace(
            grown.quantised, gradients=self.lambdas, curvatures=self.hessians,
            bounds=sum_bounds(self.lambdas, self.hessians, team)[1],
        )  # fmt: skip
        lambdas, hessians = replace(grown, quantised=packed).sums(team)
        limit = self.settings.max_delta_step or math.inf
        largest = float(np.abs(values).max()) or 1.0
        relative = values / largest  # squares of small numbers would vanish
        slopes, bends = lambdas * relative / largest, hessians * relative**2
        unit = _newton_step(math.fsum(slopes), math.fsum(bends), limit / largest)
        limits = limit / np.maximum(np.abs(values), largest * 2.0**-1000)
        units = [_newton_step(*leaf) for leaf in zip(slopes.tolist(), bends.tolist(), limits.tolist(), strict=True)]
        return unit, np.array(units)


def _newton_step(slope: float, bend: float, limit: float) -> float:
    """The minimum of a parabola, or the limit; 1 where it has none."""
    return min(slope / bend, limit) if slope > 0 and bend > 0 else 1.0


def require_max_delta_step(value: object) -> None:
    """Refuse what is no limit of a step."""
    if value is not None and value != math.inf:
        require_number("max_delta_step", value, above=0)


def max_delta_step_for(objective: Objective, value: float | None) -> float:
    """The limit that was asked for, or the usual one, in units of the objective's scores."""
    return MAX_UNITS * objective.score_unit if value is None else float(value)


def as_step(
    step: Step | str, l2: float, measure: Measure | str = "ndcg@10", max_delta_step: float | None = None
) -> Step:
    """A step by value or by name."""
    named = {
        "newton": Newton(l2, max_delta_step), "gradient": Gradient(),
        "line-search": LineSearch(measure, max_delta_step=max_delta_step),
    }  # fmt: skip
    if isinstance(step, Step):
        return step
    if not isinstance(step, str) or step not in named:
        near = did_you_mean(step, named) if isinstance(step, str) else ""
        raise DataError(f"step must be {' or '.join(map(repr, named))}, or a Step, not {step!r}{near}")
    return named[step]
