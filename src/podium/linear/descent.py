"""A weight for each feature by Newton-like steps on λ."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from podium.data import RankingData
from podium.data.columns import is_sparse
from podium.errors import DataError, require_whole
from podium.exact import mean
from podium.measures import Graded, Measure, Ranking, as_selection
from podium.models import LinearScorer
from podium.objectives import Lambda, Objective
from podium.progress import progress
from podium.threads import map_threads

Floats = NDArray[np.float64]
CHUNK = 8192  # rows that are summed together; sums of chunks are added in their order, whatever the threads
log = logging.getLogger("podium")


@dataclass(frozen=True)
class Descended:
    """The result: the model, what was measured after each step, and the best of them."""

    model: LinearScorer
    history: dict[str, list[float]]
    best_iteration: int | None


@dataclass(frozen=True)
class Descent:
    """The settings of a linear training run.

    A step is Δ = v (2 Zᵀ diag(w) Z + l2 n I)⁻¹ Zᵀ λ, Z the standardised features. For pairs at fixed ranks the
    Hessian is Σ w_ij (z_i − z_j)(z_i − z_j)ᵀ, which 2 Zᵀ diag(w) Z bounds: a full step does not overshoot.
    The matrix is computed anew after 1, 2, 4, 8, … steps.

    Args:
        objective: gives λ and w.
        n_iterations: steps, at most.
        learning_rate: v.
        l2: holds the weights back.
        selection: the measure, or graded measures, that picks the step where there is validation data.
        patience: stop after so many steps without a better one.
        n_threads: all cores by default; the model is the same for any number.

    """

    objective: Objective = field(default_factory=Lambda)
    n_iterations: int = 100
    learning_rate: float = 1.0
    l2: float = 1e-4
    selection: Measure | Graded | str = "ndcg@10"
    patience: int | None = None
    n_threads: int | None = None

    def __post_init__(self) -> None:
        require_whole("n_iterations", self.n_iterations, 1)
        require_whole("patience", self.patience, 1, optional=True)
        if not self.learning_rate > 0:
            raise DataError(f"learning_rate must be positive, but is {self.learning_rate}")
        if not self.l2 >= 0:
            raise DataError(f"l2 must not be negative, but is {self.l2}")
        if not self.objective.curved:
            raise DataError(f"a linear ranker takes Newton steps, but {self.objective.flat_because}")

    def fit(self, train: RankingData, valid: RankingData | None = None) -> Descended:
        """Train; validation data decides when to stop and which weights are kept."""
        if train.n_documents == 0 or train.n_features == 0:
            raise DataError(f"there is nothing to train on: the features have the shape {train.features.shape}")
        with threadpool_limits(1, "blas"):
            return self._fit(train, valid)

    def _fit(self, train: RankingData, valid: RankingData | None) -> Descended:
        design = _Design(train, self.n_threads)
        bound = self.objective.bind(train)
        if bound.n_outputs != 1:
            raise DataError("a linear ranker has one score for each document; this objective has several")
        selection = as_selection(self.selection)
        measures = [measure.fixed(train) for measure in selection.measures]
        weights, best_weights = np.zeros(train.n_features), np.zeros(train.n_features)
        table: list[list[float]] = []
        best: int | None = None
        inverse: Floats | None = None
        with progress("descending", self.n_iterations) as advance:
            for iteration in range(self.n_iterations):
                lambdas, curvatures = bound.gradients(design.scores(weights) + bound.start, iteration)
                if iteration & (iteration - 1) == 0 or inverse is None:
                    inverse = design.inverse_curvature(curvatures, self.l2)
                weights = weights + self.learning_rate * (
                    inverse @ (design.gradient(lambdas) - self.l2 * len(train) * weights)
                )
                if not np.isfinite(weights).all():
                    raise DataError("the weights have left all bounds: lower learning_rate, or raise l2")
                advance(1)
                if valid is None:
                    continue
                ranking = Ranking(valid, design.model(weights).score(valid.features), base=valid.canonical_order)
                values = [measure.values(ranking) for measure in measures]
                table.append([mean(mine[~np.isnan(mine)]) for mine in values])
                best = selection.pick(np.array(table))
                if best == iteration:
                    best_weights = weights
                elif self.patience is not None and iteration - best >= self.patience:
                    break
        found = weights if valid is None else best_weights
        history = {f"valid/{m}": [row[k] for row in table] for k, m in enumerate(selection.measures)} if table else {}
        return Descended(design.model(found), history, best)


class _Design:
    """Standardised features in an order that depends on content alone."""

    def __init__(self, data: RankingData, n_threads: int | None) -> None:
        self.data, self.n_threads = data, n_threads
        names = [hashlib.sha256(str(query).encode()).digest() for query in data.query_ids.tolist()]
        queries = sorted(range(data.n_queries), key=names.__getitem__)
        self.order = np.concatenate([data.canonical_order[data.offsets[q] : data.offsets[q + 1]] for q in queries])
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
        return np.asarray(piece.toarray() if is_sparse(piece) else piece, np.float64)

    def _sums(self, rows: NDArray[np.int64]) -> tuple[Floats, Floats]:
        raw = self._raw(rows)
        return np.nansum(raw, axis=0), (~np.isnan(raw)).sum(axis=0).astype(np.float64)

    def _block(self, rows: NDArray[np.int64]) -> Floats:
        """Z of some rows; what is missing is 0, the mean."""
        return np.nan_to_num((self._raw(rows) - self.means) * self.scales, nan=0.0, posinf=0.0, neginf=0.0)

    def scores(self, weights: Floats) -> Floats:
        """Z times the weights."""
        found = np.empty(len(self.order))

        def work(rows: NDArray[np.int64]) -> None:
            found[rows] = self._block(rows) @ weights

        for _ in self._mapped(work):
            pass
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

    def model(self, weights: Floats) -> LinearScorer:
        """The weights for features as they come."""
        return LinearScorer(weights * self.scales, self.means, self.data.feature_names)
