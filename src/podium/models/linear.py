"""Weighted sums of features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from podium.core.array_types import Floats, Ints
from podium.data import RankingData
from podium.data.encoding import Encoding
from podium.data.features import Features
from podium.data.sparse import dense_block
from podium.models.base import Model

ROWS_AT_ONCE = 4096


@dataclass(frozen=True)
class LinearModel(Model):
    """intercept + Σ_k weights_k (x_k − means_k), a missing or infinite value counting as its mean.

    Attributes:
        weights, means: of each feature.
        intercept: added to every score.
        feature_names: names of the features, or None.
        info: parameters, history and the like, as JSON has it.
        encoding: how the features of the training data were encoded.

    Example:
        >>> import numpy as np, podium
        >>> model = podium.LinearModel(np.array([1.0, -2.0]), means=np.zeros(2), intercept=0.5)
        >>> model.predict([[3.0, 1.0], [np.nan, 1.0]]).tolist()
        [1.5, -1.5]

    """

    weights: Floats
    means: Floats
    intercept: float = 0.0
    feature_names: tuple[str, ...] | None = None
    info: dict[str, Any] = field(default_factory=dict)
    encoding: Encoding = field(default_factory=Encoding)

    @property
    def n_features(self) -> int:  # type: ignore[override]
        """The number of features."""
        return len(self.weights)

    def __repr__(self) -> str:
        return f"LinearModel({np.count_nonzero(self.weights)} of {self.n_features} features)"

    def _predict_rows(self, features: Features, offsets: Ints | None = None, *, n_threads: int | None = None) -> Floats:
        """The score of each row: feature after feature, so that a row's neighbours change no bit of it."""
        scores = np.full(self._checked_rows(features), self.intercept)
        used = np.flatnonzero(self.weights)
        for start in range(0, len(scores), ROWS_AT_ONCE):
            rows = slice(start, start + ROWS_AT_ONCE)
            block = dense_block(features, rows, np.float64)
            for k in used:
                terms = self.weights[k] * (block[:, k] - self.means[k])
                scores[rows] += np.where(np.isfinite(terms), terms, 0.0)
        return scores

    def as_function(self, data: RankingData) -> tuple[Floats, Callable[[Floats], Floats]]:
        """The weights of features brought to one size, and the scores of some data's rows as a function of them."""
        features, order = self.schema.rows(data), data.canonical_order
        x = dense_block(features, dtype=np.float64)
        x = np.where(np.isfinite(x), x - self.means, 0.0)
        sizes = np.sqrt((x[order] ** 2).mean(axis=0))
        x /= np.where(sizes > 0, sizes, 1.0)

        def scores(weights: Floats) -> Floats:
            return np.asarray(self.intercept + x @ weights)

        return self.weights * sizes, scores

    def importance(self, kind: Any = "gain") -> Floats:
        """|weight| of each feature."""
        return np.abs(self.weights)

    def _parameters(self) -> list[Any]:
        return [self.weights, self.means, self.intercept]

    def with_info(self, **info: Any) -> Self:
        """The same weights with other information."""
        return replace(self, info=self.info | info)
