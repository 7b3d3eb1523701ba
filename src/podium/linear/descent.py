"""Feature weights by Newton steps on λ, and what all linear training runs share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from podium.core import hyperparameters as h
from podium.core.array_types import Floats
from podium.core.interrupts import between_steps
from podium.core.observing import Observations, Observer
from podium.core.parameters import settings
from podium.core.progress import progress
from podium.core.team import Team
from podium.core.threads import PROCESS_WIDE
from podium.data import RankingData
from podium.errors import DataError
from podium.linear.design import DesignMatrix
from podium.measures import Graded, Measure, Ranking, as_selection, warn_of_powers
from podium.models import LinearModel
from podium.models.base import checked_sets
from podium.objectives import BoundObjective, Lambda, Objective
from podium.objectives.base import WatchedLoss, require_one_output

Steps = Iterator[tuple[Floats, Floats]]  # weights of the standardized features, and scores, after each step


@dataclass(frozen=True)
class LinearStep:
    """The argument of observers, after each step of a linear training run.

    Attributes:
        iteration: the number of the step, from 0.
        weights: the weights of the standardized features.
        means: the mean of each measure on each evaluation set, keyed by `set/measure`.
        best_iteration: the best step so far, if there is validation data.
        data: the training documents.
        objective: the training objective; None if the measure itself is maximized.
        document_scores: the scores of the training documents with these weights.

    If an observer returns a mapping from names to numbers, it is added to `history_`.

    Example:
        >>> import podium
        >>> def watch(step):
        ...     print(step.iteration, step.weights.shape)
        >>> _ = podium.LinearRanker(n_iterations=1).fit(podium.artificial(10, features=3), observers=[watch])
        0 (3,)

    """

    iteration: int
    weights: Floats
    means: dict[str, float]
    best_iteration: int | None
    data: RankingData
    objective: Objective | None
    document_scores: Floats


@dataclass(frozen=True)
class DescentResult:
    """The result of a linear training run.

    Attributes:
        model: the model with the weights of the best step.
        history: the means after each step, keyed by `set/measure`, and the numbers that observers returned.
        best_iteration: the best step, if there was validation data.

    Example:
        >>> import podium
        >>> from podium.linear import Descent
        >>> result = Descent(n_iterations=2).fit(podium.artificial(10, features=3))
        >>> result.best_iteration is None
        True

    """

    model: LinearModel
    history: dict[str, list[float]]
    best_iteration: int | None


@settings
class LinearTraining:
    """The settings and the loop of linear training runs that take steps.

    Args:
        selection: the measure, or graded measures, that picks the step if there is validation data.
        watched: measures to record in the history in addition to those of the selection.

    """

    n_iterations: int = h.N_ITERATIONS()
    selection: Measure | Graded | str = h.STOPPING_MEASURE.default
    patience: int | None = h.PATIENCE()
    n_threads: int | None = h.N_THREADS()
    watched: tuple[Measure, ...] = ()
    verbose: int | None = h.VERBOSE()

    def take_steps(
        self, steps: Steps, design: DesignMatrix, sets: dict[str, RankingData], observers: Sequence[Observer],
        objective: Objective | None = None, base_score: float = 0.0, loss: WatchedLoss | None = None,
    ) -> DescentResult:  # fmt: skip
        """Take steps until they end or validation data stops them, and return the model of the best one.

        Args:
            steps: yields weights and scores after each step.
            design: the training data.
            sets: validation data by name; the first decides.
            observers: called after each step.
            objective: the training objective, for observers.
            base_score: added to every score.
            loss: the loss of the objective, if it is watched.

        """
        train, weights_by_step = design.data, list[Floats]()
        history, observations = History(self.selection, self.watched, train, sets, loss), Observations()
        with progress("descending", self.n_iterations, verbose=self.verbose) as advance, between_steps() as check:
            for iteration, (weights, scores) in enumerate(steps):
                check()
                weights_by_step.append(weights)
                means = history.add(design.model(weights, base_score), scores)
                step = LinearStep(iteration, weights, means, history.best, train, objective, scores)
                observations.record(observers, step)
                advance(1, ", ".join(f"{key} {value:.4f}" for key, value in means.items()))
                if self.patience is not None and history.best is not None and iteration - history.best >= self.patience:
                    break
        model = design.model(weights_by_step[-1 if history.best is None else history.best], base_score)
        measures = [str(fixed) for fixed in history.measures.values()]
        whole_history = history.values | observations.columns(len(weights_by_step))
        info = {"measures": measures} | ({} if history.best is None else {"best_iteration": history.best})
        return DescentResult(model.with_info(**info), whole_history, history.best)


@settings
class Descent(LinearTraining):
    """The settings of a linear training run.

    A step is Δ = v (2 Zᵀ diag(w) Z + l2 n I)⁻¹ Zᵀ λ, where Z holds the standardized features. For pairs at fixed ranks
    the hessian is Σ w_ij (z_i − z_j)(z_i − z_j)ᵀ ≤ 2 Zᵀ diag(w) Z, so a full step does not overshoot. The matrix is
    recomputed after 1, 2, 4, 8, … steps.

    Args:
        objective: gives λ and w.
        selection, watched: see `LinearTraining`.
        watches_loss: whether the history has the loss of the objective, on the training data and on validation data.

    Example:
        >>> import podium
        >>> from podium.linear import Descent
        >>> result = Descent(n_iterations=3).fit(podium.artificial(20, features=4))
        >>> result.model.weights.shape
        (4,)

    """

    objective: Objective = field(default_factory=Lambda)
    learning_rate: float = h.LINEAR_RATE()
    l2: float = h.LINEAR_L2()
    watches_loss: bool = False

    def __post_init__(self) -> None:
        if not self.objective.has_hessian:
            raise DataError(f"a linear ranker takes Newton steps, but {self.objective.no_hessian_because}")

    def fit(
        self, train: RankingData, valid: Mapping[str, RankingData] | None = None, observers: Sequence[Observer] = ()
    ) -> DescentResult:
        """Train; the first validation set decides when to stop, and which step gives the weights.

        Observers get a `LinearStep` after each step; the numbers that they return are added to the history.
        """
        sets = checked_sets(train, valid)
        measures = as_selection(self.selection).measures if sets else ()
        warn_of_powers([*self.objective.all_measures(), *measures], train, *sets.values())
        with PROCESS_WIDE, threadpool_limits(1, "blas"), Team(self.n_threads) as team:
            design = DesignMatrix(train, self.n_threads)
            objective = self.objective.measuring(train, *sets.values())
            bound = self._bind(objective, train)
            require_one_output(bound, "a linear model")
            bound.team = team
            loss = WatchedLoss(objective, bound, sets, team) if self.watches_loss else None
            return self.take_steps(
                self._steps(design, bound), design, sets, observers, self.objective, bound.base_score, loss
            )

    def _bind(self, objective: Objective, train: RankingData) -> BoundObjective:
        """Bind the objective to the training data."""
        return objective.bind(train)

    def _steps(self, design: DesignMatrix, bound: Any) -> Steps:
        """Yield weights and scores after each step."""
        train = design.data
        weights, scores = np.zeros(train.n_features), np.full(len(train), bound.base_score)
        inverse: Floats | None = None
        for iteration in range(self.n_iterations):
            gradients, hessians = bound.gradients(scores, iteration)
            _require_newton(gradients, hessians)
            if iteration & (iteration - 1) == 0 or inverse is None:
                inverse = design.inverse_hessian(hessians, self.l2)
            direction = design.gradient(gradients) - self.l2 * len(train) * weights
            weights = weights + self.learning_rate * (inverse @ direction)
            scores = design.scores(weights) + bound.base_score
            yield weights, scores


def _require_newton(gradients: Floats, hessians: Floats) -> None:
    """Raise if a Newton step cannot use the gradients or hessians."""
    if not (np.isfinite(gradients).all() and np.isfinite(hessians).all()):
        raise DataError("a gradient or hessian is not finite: lower learning_rate, or raise l2")
    if hessians.min(initial=0.0) < 0:
        raise DataError("a hessian is negative, but a linear ranker takes Newton steps")


class History:
    """The means of measures on the evaluation sets after each step.

    Attributes:
        measures: those of the selection and the watched ones, by name.
        values: their means after each step, keyed by `set/measure`, and the losses, if they are watched.
        best: the best step on the first set; None if there is no set.

    """

    def __init__(
        self, selection: Measure | Graded | str, watched: tuple[Measure, ...], train: RankingData,
        sets: dict[str, RankingData], loss: WatchedLoss | None = None,
    ) -> None:  # fmt: skip
        self.selection, self.sets, self.loss = as_selection(selection), sets, loss
        measures = dict.fromkeys((*self.selection.measures, *watched))
        self.measures = {str(m): m.fixed(train, *sets.values()) for m in measures}
        self.values: dict[str, list[float]] = {f"{name}/{measure}": [] for name in sets for measure in self.measures}
        self.best: int | None = None
        self.n_steps = 0

    def add(self, model: LinearModel, training_scores: Floats | None = None) -> dict[str, float]:
        """Measure a model, update the best step, and return the means."""
        scores = {name: model._predict_rows(data.features) for name, data in self.sets.items()}
        for name, data in self.sets.items():
            ranking = Ranking(data, scores[name])
            for measure_name, measure in self.measures.items():
                self.values[f"{name}/{measure_name}"].append(measure.mean(ranking))
        if self.sets:
            first = next(iter(self.sets))
            columns = [self.values[f"{first}/{measure}"] for measure in self.selection.measures]
            self.best = self.selection.pick(np.column_stack(columns))
        if self.loss is not None and training_scores is not None:
            for key, value in self.loss.means(training_scores, scores, self.n_steps).items():
                self.values.setdefault(key, []).append(value)
        self.n_steps += 1
        return {key: values[-1] for key, values in self.values.items()}
