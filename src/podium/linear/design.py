"""The design matrix of a linear ranker: standardized features, in chunks that are divided among threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import linalg

from podium.core.array_types import Floats, Ints
from podium.core.threads import map_threads
from podium.data import RankingData
from podium.data.canonical import queries_by_content, rows_in_order
from podium.data.sparse import dense_block
from podium.models import LinearModel
from podium.models.base import require_numbers

CHUNK = 8192  # rows to sum at a time; sums of chunks are added in order, so results do not depend on threads


class DesignMatrix:
    """Z, the standardized features, with rows in an order that depends only on content."""

    def __init__(self, data: RankingData, n_threads: int | None) -> None:
        require_numbers(data, "a linear ranker")
        self.data, self.n_threads = data, n_threads
        self.order, _ = rows_in_order(data, queries_by_content(data))
        self.means, self.scales = np.zeros(data.n_features), np.ones(data.n_features)
        total, count = (sum(sums) for sums in zip(*self._map_chunks(self._sums), strict=True))
        self.means = total / np.maximum(count, 1)
        squares = sum(self._map_chunks(lambda rows: (self._standardized(rows) ** 2).sum(axis=0)))
        deviations = np.sqrt(squares / np.maximum(count, 1))
        self.scales = np.where(deviations > 0, 1.0 / np.where(deviations > 0, deviations, 1.0), 0.0)

    def _map_chunks(self, work: Callable[[Ints], Any]) -> Iterator[Any]:
        """Yield `work(rows)` for chunks of rows, computed on threads, in their order."""
        chunks = (self.order[start : start + CHUNK] for start in range(0, len(self.order), CHUNK))
        return map_threads(work, chunks, self.n_threads)

    def _features(self, rows: Any, columns: Any = slice(None)) -> Floats:
        """Return a copy of some features, with NaN in place of infinite values."""
        block = dense_block(self.data.features[:, columns] if columns != slice(None) else self.data.features, rows)
        features = block.astype(np.float64)
        features[~np.isfinite(features)] = np.nan
        return features

    def _sums(self, rows: Ints) -> tuple[Floats, Floats]:
        features = self._features(rows)
        return np.nansum(features, axis=0), (~np.isnan(features)).sum(axis=0).astype(np.float64)

    def _standardized(self, rows: Ints) -> Floats:
        """Return some rows of Z; a missing value is 0, the mean."""
        return np.nan_to_num((self._features(rows) - self.means) * self.scales, nan=0.0)

    def scores(self, weights: Floats) -> Floats:
        """Return Z times the weights."""
        scores = np.empty(len(self.order))

        def work(rows: Ints) -> None:
            scores[rows] = self._standardized(rows) @ weights

        for _ in self._map_chunks(work):
            pass
        return scores

    def column(self, feature: int) -> Floats:
        """Return one column of Z, by row."""
        x = self._features(slice(None), [feature])[:, 0]
        column: Floats = np.nan_to_num((x - self.means[feature]) * self.scales[feature], nan=0.0)
        return column

    def gradient(self, gradients: Floats) -> Floats:
        """Return Zᵀ λ."""
        return np.asarray(sum(self._map_chunks(lambda rows: self._standardized(rows).T @ gradients[rows])))

    def inverse_hessian(self, hessians: Floats, l2: float) -> Floats:
        """Return (2 Zᵀ diag(w) Z + l2 n I)⁻¹, with a slightly larger diagonal, because the matrix may be singular."""

        def work(rows: Ints) -> Any:
            block = self._standardized(rows)
            return block.T @ (hessians[rows, None] * block)

        matrix = 2.0 * sum(self._map_chunks(work))
        matrix[np.diag_indices_from(matrix)] += l2 * len(self.order) + 1e-8 * np.trace(matrix) / len(matrix) + 1e-12
        return np.asarray(linalg.inv(matrix))

    def model(self, weights: Floats, base_score: float) -> LinearModel:
        """Return the model with these weights, converted to weights of raw features."""
        return LinearModel(
            weights * self.scales, self.means, base_score, self.data.feature_names, encoding=self.data.encoding
        )
