"""A test of whether a trained model is at a local optimum of its measure ([B] §4.2)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from podium.core.array_types import Bools, Floats, Ints
from podium.core.plotting import draw
from podium.core.progress import progress
from podium.core.threads import map_threads
from podium.core.validation import numbers_of, require_number, require_whole
from podium.data import RankingData
from podium.data.schema import as_data
from podium.errors import DataError
from podium.evaluation.tables import ShownAsTable, Table
from podium.measures import Measure, Ranking, as_measure
from podium.models.base import model_of

STEPS = (0.003, 0.01, 0.03, 0.1, 0.3)


def directions_needed(p0: float = 0.01, delta: float = 0.01) -> int:
    """Return the smallest N ≥ log δ / log(1 − p0) ([B] eq. 9).

    If the measure falls in all of N random directions, it falls in all but a share p0 of all directions, with
    confidence 1 − δ.

    Example:
        >>> from podium.diagnostics import directions_needed
        >>> directions_needed(p0=0.01, delta=0.01)
        459

    """
    for name, value in (("p0", p0), ("delta", delta)):
        require_number(name, value, above=0, below=1)
    return math.ceil(math.log(delta) / math.log1p(-p0))


@dataclass(frozen=True)
class Optimality(ShownAsTable):
    """The result of `local_optimality`.

    Attributes:
        measure: the name of the measure.
        value: the mean at the model's weights.
        steps: how far the weights were moved, as shares of their norm.
        changes: the changes of the mean, with a row for each step and a column for each direction.
        weights: the numbers of the weights that were moved individually.
        moves: how far they were moved, as shares of the norm of all weights.
        curves: the mean, with a row for each of these weights and a column for each move.

    Example:
        >>> import podium
        >>> data = podium.artificial(20, features=4)
        >>> model = podium.LinearRanker(n_iterations=2).fit(data)
        >>> result = podium.diagnostics.local_optimality(model, data, directions=5, steps=[0.1], curves=2, points=3)
        >>> result.rising_share.shape, result.curves.shape
        ((1,), (2, 3))

    """

    measure: str
    value: float
    steps: tuple[float, ...]
    changes: Floats
    weights: Ints
    moves: Floats
    curves: Floats

    @property
    def rising_share(self) -> Floats:
        """The share of directions in which the mean rises, by step."""
        return np.asarray((self.changes > 0).mean(axis=1))

    @property
    def unchanged_share(self) -> Floats:
        """The share of directions in which the mean does not change at all, because no two documents swap ranks."""
        return np.asarray((self.changes == 0).mean(axis=1))

    @property
    def falling_share(self) -> Floats:
        """The share of directions in which the mean falls, by step."""
        return np.asarray((self.changes < 0).mean(axis=1))

    def bound(self, delta: float = 0.01) -> Floats:
        """Return an upper bound of the share of directions that do not fall, with confidence 1 − δ, by step.

        It is Clopper and Pearson's bound. A direction without a change counts as not falling, because it is not
        evidence of an optimum.
        """
        not_falling, n = (self.changes >= 0).sum(axis=1), self.changes.shape[1]
        bound = stats.beta.ppf(1 - delta, not_falling + 1, np.maximum(n - not_falling, 1))
        return np.where(not_falling < n, bound, 1.0)

    def passes(self, p0: float = 0.01, delta: float = 0.01) -> Bools:
        """Return whether the mean falls in all but a share p0 of directions, with confidence 1 − δ, by step.

        With 459 directions and p0 = δ = .01, it must fall in all of them.
        """
        return self.bound(delta) <= p0

    def table(self) -> Table:
        """Return a row for each step."""
        columns = zip(
            self.steps, self.rising_share, self.unchanged_share, self.falling_share, self.bound(),
            self.changes.mean(axis=1), self.changes.max(axis=1), strict=True,
        )  # fmt: skip
        names = ["step", "rising", "unchanged", "falling", "not falling, at most (99%)",
                 f"mean change of {self.measure}", "highest"]  # fmt: skip
        return Table(names, [[float(value) for value in row] for row in columns])

    def plot(self) -> Any:
        """Return a chart of the changes by step and the curves of single weights (extra `report`)."""
        return draw("optimality", self)


@contextmanager
def _one_thread_each(scorer: Any) -> Iterator[None]:
    """Use one thread per direction, because directions share the cores; the results are the same."""
    with threadpool_limits(1), ExitStack() as stack:
        if scorer.file_kind == "podium net":
            from podium.neural.model import torch_threads

            stack.enter_context(torch_threads(1))
        yield


def local_optimality(
    model: Any,
    data: RankingData,
    measure: Measure | str = "ndcg@10",
    *,
    directions: int = 459,
    steps: Sequence[float] = STEPS,
    curves: int | None = 8,
    points: int = 21,
    random_state: int = 0,
    n_threads: int | None = None,
) -> Optimality:
    """Move the weights of a model in random directions, and count how often a measure rises or falls ([B] §4.2).

    Directions are drawn from a spherical Gaussian. If the measure falls in all of 459 directions, it falls in at least
    99% of all directions, with 99% confidence. If a step is too small for documents to swap ranks, the measure does
    not change. If it is so large that it breaks any model, it shows nothing either. So choose the step before you look
    at results, and compare with a model that is not at an optimum, such as an untrained net.

    Args:
        model: a net or a linear model, as an estimator or a model; trees have no weights to move.
        data: the *training* queries, on which training has searched for an optimum.
        measure: any measure.
        directions: the number of random directions.
        steps: how far to move, as shares of the norm of all weights.
        curves: the number of single weights, evenly spaced, to move individually; None for all.
        points: the number of points of each curve.
        random_state: the seed of the directions.
        n_threads: the number of threads; all cores by default. The result is the same.

    Returns:
        The changes of the mean for each step and direction, and the curves.

    Example:
        >>> import podium
        >>> data = podium.artificial(20, features=4)
        >>> model = podium.LinearRanker(n_iterations=2).fit(data)
        >>> podium.diagnostics.local_optimality(model, data, directions=5, steps=[0.1, 0.3]).changes.shape
        (2, 5)

    """
    data = as_data(data)
    scorer: Any = model_of(model)
    if not hasattr(scorer, "as_function"):
        raise DataError(f"model must be a net or a linear model, but a {type(scorer).__name__} has no weights to move")
    require_whole("directions", directions, 1)
    require_whole("points", points, 3)
    require_whole("curves", curves, 0, optional=True)
    step_sizes = numbers_of("steps", steps)
    if not step_sizes or not all(0 < step < math.inf for step in step_sizes):
        raise DataError(f"steps must be positive numbers, but got {steps!r}")
    weights, scores_of_weights = scorer.as_function(data)
    length, n_random = float(np.linalg.norm(weights)) or 1.0, len(step_sizes) * directions
    n_curves = len(weights) if curves is None else min(curves, len(weights))
    curve_weights = np.unique(np.linspace(0, len(weights) - 1, n_curves).round().astype(np.int64))
    moves = np.linspace(-max(step_sizes), max(step_sizes), points)
    fixed = as_measure(measure).fixed(data)

    def moved(number: int) -> Floats:
        """Return the weights with this number: those of each step and direction, then those of each curve."""
        if number < n_random:
            step, direction = divmod(number, directions)
            change = np.random.default_rng([random_state, direction]).normal(size=len(weights))
            return np.asarray(weights + step_sizes[step] * (change * (length / np.linalg.norm(change))))
        weight, move = divmod(number - n_random, points)
        changed: Floats = weights.copy()
        changed[curve_weights[weight]] += moves[move] * length
        return changed

    def mean_at(point: Floats) -> float:
        return fixed.mean(Ranking(data, scores_of_weights(point)))

    values, n_moved = [], n_random + len(curve_weights) * points
    with _one_thread_each(scorer), progress("moving weights", n_moved) as advance:
        value = mean_at(weights)
        if not value > 0:
            raise DataError(f"{fixed} is {value} for every order, because the data has no relevant documents")
        for moved_value in map_threads(lambda number: mean_at(moved(number)), range(n_moved), n_threads):
            values.append(moved_value)
            advance(1)
    changes = np.array(values[:n_random]).reshape(len(step_sizes), directions) - value
    curve_values = np.array(values[n_random:]).reshape(len(curve_weights), points)
    return Optimality(str(as_measure(measure)), value, step_sizes, changes, curve_weights, moves, curve_values)
