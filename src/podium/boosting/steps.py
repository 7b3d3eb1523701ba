"""Steps: from a grown tree to the values of its leaves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from podium.combining import Sweep
from podium.data import RankingData
from podium.errors import DataError, numbers_of, require_number
from podium.measures import Measure, as_measure
from podium.objectives import Objective
from podium.objectives.objective import query_weights_of
from podium.threads import Team
from podium.trees.growing import GrownTree

Floats = NDArray[np.float64]


Documents = Callable[[str], tuple[Floats, NDArray[np.int64]]]


class Step(ABC):
    """What a leaf adds to the scores of its documents.

    Attributes:
        uses_curvature: whether w plays a part; where it does not, splits are those of least squares.

    """

    uses_curvature: ClassVar[bool] = True

    def check(self, objective: Objective) -> None:  # noqa: B027, most steps take all
        """Refuse an objective that this step cannot take."""

    def prepare(self, data: RankingData, lambdas: Floats, curvatures: Floats) -> None:  # noqa: B027
        """Change λ and w before the tree is grown on them; nothing by default."""

    def bind(self, train: RankingData, valid: Mapping[str, RankingData], n_threads: int | None) -> Step:
        """The step on some data; mostly itself."""
        return self

    @abstractmethod
    def leaf_values(self, grown: GrownTree, team: Team) -> Floats:
        """A value for each leaf, before the learning rate."""

    def settle(self, values: Floats, documents: Documents) -> tuple[Floats, float]:
        """The final values of the leaves, and the weight by which all were multiplied.

        `documents("train" or "valid")` gives the scores so far and the leaf of each document.
        """
        return values, 1.0


@dataclass(frozen=True)
class Newton(Step):
    """γ = Σλ / (Σw + l2) over the leaf's documents, 0 where there is no curvature ([B] §7, eq. 20 of [D]).

    Args:
        l2: holds small leaves back.

    """

    l2: float = 0.0

    def __post_init__(self) -> None:
        require_number("l2", self.l2, least=0)

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


@dataclass(frozen=True)
class Gradient(Step):
    """The mean of λ over the leaf's documents, for objectives without a curvature to divide by ([S] §5).

    Args:
        normalize: first divide the λ of each query by their root mean square (where Σλ = 0 that is [S]'s standard
            deviation), so that queries count by their weights alone; λ that are all 0 stay 0.

    """

    normalize: bool = True
    uses_curvature: ClassVar[bool] = False

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
    """One weight for each tree, the exact best of all for a measure ([W] §4, 5.6): F += v α t.

    The tree's outputs t are the means of λ in its leaves; α is where the mean of the measure for s + α t is highest,
    found by visiting every α at which two documents of a query change places.

    Args:
        measure: any measure with swap deltas.
        bounds: α between these; [W] had .1 and 5.
        ties: see `podium.combine`.
        on: `"train"`, or `"valid"` for the first validation set, as [W] did on web data, against over-fitting.
        values: the step that gives t; `Newton()` for Newton's values.

    """

    measure: Measure | str = "ndcg@10"
    bounds: tuple[float, float] = (0.1, 5.0)
    ties: str | int = "expected"
    on: str = "train"
    values: Step = field(default_factory=lambda: Gradient(normalize=False))

    def __post_init__(self) -> None:
        object.__setattr__(self, "measure", as_measure(self.measure))
        object.__setattr__(self, "bounds", numbers_of("bounds", self.bounds))
        if len(self.bounds) != 2 or not 0 <= self.bounds[0] < self.bounds[1]:
            raise DataError(f"bounds must be two numbers from 0 on, the lower one first, not {self.bounds}")
        if self.on not in ("train", "valid"):
            raise DataError(f"on must be 'train' or 'valid', not {self.on!r}")

    @property
    def uses_curvature(self) -> bool:  # type: ignore[override]
        """Whether the step that gives the outputs does."""
        return self.values.uses_curvature

    def check(self, objective: Objective) -> None:
        """Whatever the outputs need."""
        self.values.check(objective)

    def prepare(self, data: RankingData, lambdas: Floats, curvatures: Floats) -> None:
        """Whatever the outputs need."""
        self.values.prepare(data, lambdas, curvatures)

    def bind(self, train: RankingData, valid: Mapping[str, RankingData], n_threads: int | None) -> Step:
        """With the measure's tables on the data."""
        if self.on == "valid" and not valid:
            raise DataError("LineSearch(on='valid') needs validation data")
        data = train if self.on == "train" else next(iter(valid.values()))
        return _BoundLineSearch(self, Sweep(data, self.measure, self.ties, n_threads))

    def leaf_values(self, grown: GrownTree, team: Team) -> Floats:
        """The tree's outputs."""
        return self.values.leaf_values(grown, team)


@dataclass(frozen=True)
class LeafLineSearch(LineSearch):
    """A weight for each leaf, one after the other: what [W] §4 leaves to future work.

    The leaf with the largest output first, each the exact best while all others stand; the measure on the data that is
    searched never falls from leaf to leaf.
    """


class _BoundLineSearch(Step):
    def __init__(self, settings: LineSearch, sweep: Sweep) -> None:
        self.settings, self.sweep = settings, sweep

    def prepare(self, data: RankingData, lambdas: Floats, curvatures: Floats) -> None:
        self.settings.prepare(data, lambdas, curvatures)

    def leaf_values(self, grown: GrownTree, team: Team) -> Floats:
        return self.settings.leaf_values(grown, team)

    def settle(self, values: Floats, documents: Documents) -> tuple[Floats, float]:
        low, high = self.settings.bounds
        near = min(max(1.0, low), high)
        scores, leaves = documents(self.settings.on)
        if not isinstance(self.settings, LeafLineSearch):
            weight = self.sweep.best(scores, values[leaves], low, high, near).alpha
            return weight * values, weight
        settled = values.copy()
        for leaf in np.argsort(-np.abs(values), kind="stable"):
            own = np.where(leaves == leaf, values[leaf], 0.0)
            rest = scores + settled[leaves] - own  # this leaf at 0, those before it as they were found
            settled[leaf] = self.sweep.best(rest, own, low, high, near).alpha * values[leaf]
        return settled, 1.0


def as_step(step: Step | str, l2: float, measure: Measure | str = "ndcg@10") -> Step:
    """A step by value or by name."""
    named = {"newton": Newton(l2), "gradient": Gradient(), "line-search": LineSearch(measure)}
    if isinstance(step, Step):
        return step
    if not isinstance(step, str) or step not in named:
        raise DataError(f"step must be {' or '.join(map(repr, named))}, or a Step, not {step!r}")
    return named[step]
