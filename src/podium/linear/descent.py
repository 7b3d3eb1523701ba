"""A weight for each feature by Newton-like steps on λ."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

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
from podium.objectives.base import require_one_output

log = logging.getLogger("podium")


@dataclass(frozen=True)
class LinearStep:
    """What observers see after each step of a linear training run.

    Attributes:
        iteration: from 0.
        weights: of the standardised features.
        means: of each measure on each evaluation set, by `set/measure`.
        best_iteration: the best step so far, where there is validation data.
        data: the training documents.
        objective: what is trained on; None where the measure itself is raised.
        document_scores: of the training documents, by these weights.

    A mapping from names to numbers that an observer returns stands in `history_` beside the means.

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
        model: with the weights of the best step.
        history: what was measured after each step, by `set/measure`, and what observers returned.
        best_iteration: the best step, where there was validation data.

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
class Descent:
    """The settings of a linear training run.

    A step is Δ = v (2 Zᵀ diag(w) Z + l2 n I)⁻¹ Zᵀ λ, Z the standardised features. For pairs at fixed ranks the
    Hessian is Σ w_ij (z_i − z_j)(z_i − z_j)ᵀ, which 2 Zᵀ diag(w) Z bounds: a full step does not overshoot.
    The matrix is computed anew after 1, 2, 4, 8, … steps.

    Args:
        objective: gives λ and w.
        selection: the measure, or graded measures, that picks the step where there is validation data.
        watched: measures that stand in the history beside those of the selection.

    Example:
        >>> import podium
        >>> from podium.linear import Descent
        >>> result = Descent(n_iterations=3).fit(podium.artificial(20, features=4))
        >>> result.model.weights.shape
        (4,)

    """

    objective: Objective = field(default_factory=Lambda)
    n_iterations: int = h.N_ITERATIONS()
    learning_rate: float = h.LINEAR_RATE()
    l2: float = h.LINEAR_L2()
    selection: Measure | Graded | str = h.STOPPING_MEASURE.default
    patience: int | None = h.PATIENCE()
    n_threads: int | None = h.N_THREADS()
    watched: tuple[Measure, ...] = ()
    verbose: int | None = h.VERBOSE()

    def __post_init__(self) -> None:
        if not self.objective.has_hessian:
            raise DataError(f"a linear ranker takes Newton steps, but {self.objective.no_hessian_because}")

    def fit(
        self, train: RankingData, valid: Mapping[str, RankingData] | None = None, observers: Sequence[Observer] = ()
    ) -> DescentResult:
        """Train; the first validation set decides when to stop and which step's weights the model has.

        Observers hear of each step (`LinearStep`); numbers that they return stand in the history.
        """
        sets = checked_sets(train, valid)
        selecting = as_selection(self.selection).measures if sets else ()
        warn_of_powers([*self.objective.all_measures(), *selecting], train, *sets.values())
        with PROCESS_WIDE, threadpool_limits(1, "blas"), Team(self.n_threads) as team:
            design = DesignMatrix(train, self.n_threads)
            bound = self.objective.measuring(train, *sets.values()).bind(train)
            require_one_output(bound, "a linear model")
            bound.team = team
            return self._descend(design, bound, sets, observers)

    def _descend(
        self, design: DesignMatrix, bound: BoundObjective, sets: dict[str, RankingData], observers: Sequence[Observer]
    ) -> DescentResult:
        train = design.data
        history, observations = History(self.selection, self.watched, train, sets), Observations()
        weights, weights_by_step, scores = np.zeros(train.n_features), [], np.full(len(train), bound.base_score)
        inverse: Floats | None = None
        with (
            progress("descending", self.n_iterations, verbose=self.verbose) as advance,
            between_steps() as check_signals,
        ):
            for iteration in range(self.n_iterations):
                check_signals()
                gradients, hessians = bound.gradients(scores, iteration)
                _require_newton(gradients, hessians)
                if iteration & (iteration - 1) == 0 or inverse is None:
                    inverse = design.inverse_hessian(hessians, self.l2)
                direction = design.gradient(gradients) - self.l2 * len(train) * weights
                weights = weights + self.learning_rate * (inverse @ direction)
                weights_by_step.append(weights)
                scores = design.scores(weights) + bound.base_score
                means = history.add(design.model(weights, bound.base_score))
                step = LinearStep(iteration, weights, means, history.best, train, self.objective, scores)
                observations.tell(observers, step)
                advance(1, ", ".join(f"{key} {value:.4f}" for key, value in means.items()))
                if self.patience is not None and history.best is not None and iteration - history.best >= self.patience:
                    break
        model = design.model(weights_by_step[-1 if history.best is None else history.best], bound.base_score)
        measures = [str(fixed) for fixed in history.measures.values()]
        whole_history = history.values | observations.columns(len(weights_by_step))
        info = {"measures": measures} | ({} if history.best is None else {"best_iteration": history.best})
        return DescentResult(model.with_info(**info), whole_history, history.best)


def _require_newton(gradients: Floats, hessians: Floats) -> None:
    """Refuse what a Newton step cannot use."""
    if not (np.isfinite(gradients).all() and np.isfinite(hessians).all()):
        raise DataError("a gradient or hessian is not finite: lower learning_rate, or raise l2")
    if hessians.min(initial=0.0) < 0:
        raise DataError("a hessian is negative: a linear ranker takes Newton steps")


class History:
    """What was measured on the evaluation sets after each step.

    Attributes:
        measures: those of the selection and those that are only watched, by name.
        values: their means after each step, by `set/measure`.
        best: the best step by the first set; None without one.

    """

    def __init__(
        self, selection: Measure | Graded | str, watched: tuple[Measure, ...], train: RankingData,
        sets: dict[str, RankingData],
    ) -> None:  # fmt: skip
        self.selection, self.sets = as_selection(selection), sets
        shown = dict.fromkeys((*self.selection.measures, *watched))
        self.measures = {str(m): m.fixed(train, *sets.values()) for m in shown}
        self.values: dict[str, list[float]] = {f"{name}/{shown}": [] for name in sets for shown in self.measures}
        self.best: int | None = None

    def add(self, model: LinearModel) -> dict[str, float]:
        """Measure a model, and pick the best step so far; the means."""
        for name, data in self.sets.items():
            ranking = Ranking(data, model._predict_rows(data.features))
            for shown, measure in self.measures.items():
                self.values[f"{name}/{shown}"].append(measure.mean(ranking))
        if self.sets:
            first = next(iter(self.sets))
            columns = [self.values[f"{first}/{measure}"] for measure in self.selection.measures]
            self.best = self.selection.pick(np.column_stack(columns))
        return {key: values[-1] for key, values in self.values.items()}
