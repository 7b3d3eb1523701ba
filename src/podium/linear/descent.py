"""A weight for each feature by Newton-like steps on λ."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from podium.core import hyperparameters as h
from podium.core.interrupts import between_steps
from podium.core.parameters import settings
from podium.core.progress import progress
from podium.core.threads import Team, map_threads
from podium.data import RankingData
from podium.data.canonical import queries_by_content
from podium.data.sparse import is_sparse
from podium.errors import DataError
from podium.measures import Graded, Measure, Ranking, as_selection, warn_of_powers
from podium.models import LinearModel
from podium.models.base import checked_sets, require_numbers
from podium.objectives import BoundObjective, Lambda, Objective
from podium.objectives.base import require_one_output

Floats = NDArray[np.float64]
CHUNK = 8192  # rows that are summed together; sums of chunks are added in their order, whatever the threads
log = logging.getLogger("podium")


@dataclass(frozen=True)
class DescentResult:
    """The result: the model, what was measured after each step, and the best of them."""

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

    """

    objective: Objective = field(default_factory=Lambda)
    n_iterations: int = h.N_ITERATIONS(100)
    learning_rate: float = h.LEARNING_RATE(1.0)
    l2: float = h.LINEAR_L2(1e-4)
    selection: Measure | Graded | str = "ndcg@10"
    patience: int | None = h.PATIENCE(None)
    n_threads: int | None = h.N_THREADS(None)
    watched: tuple[Measure, ...] = ()
    verbose: int | None = h.VERBOSE(None)

    def __post_init__(self) -> None:
        if not self.objective.has_hessian:
            raise DataError(f"a linear ranker takes Newton steps, but {self.objective.no_hessian_because}")

    def fit(self, train: RankingData, valid: Mapping[str, RankingData] | None = None) -> DescentResult:
        """Train; the first validation set decides when to stop and which weights are kept."""
        sets = checked_sets(train, valid)
        judging = as_selection(self.selection).measures if sets else ()
        warn_of_powers([*self.objective.all_measures(), *judging], train, *sets.values())
        with threadpool_limits(1, "blas"), Team(self.n_threads) as team:
            design, bound = Design(train, self.n_threads), self.objective.measuring(train, *sets.values()).bind(train)
            require_one_output(bound, self)
            bound.team = team
            return self._descend(design, bound, sets)

    def _descend(self, design: Design, bound: BoundObjective, sets: dict[str, RankingData]) -> DescentResult:
        selection = as_selection(self.selection)
        shown_measures = dict.fromkeys((*selection.measures, *self.watched))
        measures = {str(m): m.fixed(design.data, *sets.values()) for m in shown_measures}
        history: dict[str, list[float]] = {f"{name}/{shown}": [] for name in sets for shown in measures}
        weights, kept = np.zeros(design.data.n_features), []
        best: int | None = None
        inverse: Floats | None = None
        with (
            progress("descending", self.n_iterations, verbose=self.verbose) as advance,
            between_steps() as check_signals,
        ):
            for iteration in range(self.n_iterations):
                check_signals()
                lambdas, curvatures = bound.gradients(design.scores(weights) + bound.base_score, iteration)
                if not (np.isfinite(lambdas).all() and np.isfinite(curvatures).all()):
                    raise DataError("a gradient or curvature is not finite: lower learning_rate, or raise l2")
                if curvatures.min(initial=0.0) < 0:
                    raise DataError("a curvature is negative: a linear ranker takes Newton steps")
                if iteration & (iteration - 1) == 0 or inverse is None:
                    inverse = design.inverse_curvature(curvatures, self.l2)
                pull = design.gradient(lambdas) - self.l2 * len(design.data) * weights
                weights = weights + self.learning_rate * (inverse @ pull)
                kept.append(weights)
                for name, data in sets.items():
                    scores = design.model(weights, bound.base_score)._predict_rows(data.features)
                    ranking = Ranking(data, scores, base=data.canonical_order)
                    for shown, measure in measures.items():
                        history[f"{name}/{shown}"].append(measure.mean(ranking))
                advance(1, ", ".join(f"{key} {values[-1]:.4f}" for key, values in history.items()))
                if sets:
                    first = next(iter(sets))
                    best = selection.pick(np.column_stack([history[f"{first}/{m}"] for m in selection.measures]))
                    if self.patience is not None and iteration - best >= self.patience:
                        break
        model = design.model(kept[-1 if best is None else best], bound.base_score)
        return DescentResult(model.with_info(measures=[str(fixed) for fixed in measures.values()]), history, best)


class Design:
    """Standardised features in an order that depends on content alone."""

    def __init__(self, data: RankingData, n_threads: int | None) -> None:
        require_numbers(data, "a linear ranker")
        self.data, self.n_threads = data, n_threads
        starts, order = data.offsets, data.canonical_order
        self.order = np.concatenate([order[starts[q] : starts[q + 1]] for q in queries_by_content(data)])
        self.means, self.scales = np.zeros(data.n_features), np.ones(data.n_features)
        total, count = (sum(part) for part in zip(*self._mapped(self._sums), strict=True))
        self.means = total / np.maximum(count, 1)
        squares = sum(self._mapped(lambda rows: (self._block(rows) ** 2).sum(axis=0)))
        deviations = np.sqrt(squares / np.maximum(count, 1))
        self.scales = np.where(deviations > 0, 1.0 / np.where(deviations > 0, deviations, 1.0), 0.0)

    def _chunks(self) -> Iterator[NDArray[np.int64]]:
        return (self.order[start : start + CHUNK] for start in range(0, len(self.order), CHUNK))

    def _mapped(self, work: Callable[[NDArray[np.int64]], Any]) -> Iterator[Any]:
        return map_threads(work, self._chunks(), self.n_threads)

    def _raw(self, rows: NDArray[np.int64]) -> Floats:
        piece = self.data.features[rows]
        raw = np.array(piece.toarray() if is_sparse(piece) else piece, np.float64)
        raw[~np.isfinite(raw)] = np.nan
        return raw

    def _sums(self, rows: NDArray[np.int64]) -> tuple[Floats, Floats]:
        raw = self._raw(rows)
        return np.nansum(raw, axis=0), (~np.isnan(raw)).sum(axis=0).astype(np.float64)

    def _block(self, rows: NDArray[np.int64]) -> Floats:
        """Z of some rows; what is missing is 0, the mean."""
        return np.nan_to_num((self._raw(rows) - self.means) * self.scales, nan=0.0)

    def scores(self, weights: Floats) -> Floats:
        """Z times the weights."""
        found = np.empty(len(self.order))

        def work(rows: NDArray[np.int64]) -> None:
            found[rows] = self._block(rows) @ weights

        for _ in self._mapped(work):
            pass
        return found

    def column(self, feature: int) -> Floats:
        """One column of Z, by row."""
        values = self.data.features[:, [feature]]
        x = np.array(values.toarray() if is_sparse(values) else values, np.float64).ravel()
        x[~np.isfinite(x)] = np.nan
        found: Floats = np.nan_to_num((x - self.means[feature]) * self.scales[feature], nan=0.0)
        return found

    def gradient(self, lambdas: Floats) -> Floats:
        """Zᵀ λ."""
        return np.asarray(sum(self._mapped(lambda rows: self._block(rows).T @ lambdas[rows])))

    def inverse_curvature(self, curvatures: Floats, l2: float) -> Floats:
        """(2 Zᵀ diag(w) Z + l2 n I)⁻¹, with a little more on the diagonal where that is singular."""

        def work(curvatures: Floats, rows: NDArray[np.int64]) -> Floats:
            block = self._block(rows)
            found: Floats = block.T @ (curvatures[rows, None] * block)
            return found

        matrix = 2.0 * sum(self._mapped(partial(work, curvatures)))
        matrix[np.diag_indices_from(matrix)] += l2 * len(self.order) + 1e-8 * np.trace(matrix) / len(matrix) + 1e-12
        return np.asarray(linalg.inv(matrix))

    def model(self, weights: Floats, start: float) -> LinearModel:
        """The weights for features as they come."""
        return LinearModel(
            weights * self.scales, self.means, start, self.data.feature_names, encoding=self.data.encoding
        )
