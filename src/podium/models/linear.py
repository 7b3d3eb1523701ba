"""Weighted sums of features, with or without thresholds between ordered labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from podium.core.array_types import Floats, Ints
from podium.data import RankingData
from podium.data.encoding import Encoding
from podium.data.features import Features
from podium.data.sparse import dense_block
from podium.models.archive import Parts, StoredModel
from podium.models.base import Model

ROWS_AT_ONCE = 4096


@dataclass(frozen=True)
class LinearModel(Model):
    """A linear model, intercept + Σ_k weights_k (x_k − means_k); missing or infinite values count as the mean.

    Attributes:
        weights, means: the weight and the mean of each feature.
        intercept: added to every score.
        feature_names: names of the features, or None.
        info: facts about training, such as parameters and history, in JSON types.
        encoding: how the features of the training data were encoded.

    Example:
        >>> import numpy as np, podium
        >>> model = podium.models.LinearModel(np.array([1.0, -2.0]), means=np.zeros(2), intercept=0.5)
        >>> model.predict([[3.0, 1.0], [np.nan, 1.0]]).tolist()
        [1.5, -1.5]

    """

    weights: Floats
    means: Floats
    intercept: float = 0.0
    feature_names: tuple[str, ...] | None = None
    info: dict[str, Any] = field(default_factory=dict)
    encoding: Encoding = field(default_factory=Encoding)
    file_kind: ClassVar[str | None] = "podium linear"

    @property
    def n_features(self) -> int:  # type: ignore[override]
        """The number of features."""
        return len(self.weights)

    def __repr__(self) -> str:
        return f"LinearModel({np.count_nonzero(self.weights)} of {self.n_features} features)"

    def _predict_rows(self, features: Features, offsets: Ints | None = None, *, n_threads: int | None = None) -> Floats:
        """Return the score of each row, summed feature by feature so that it does not depend on the other rows."""
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
        """Return the weights of standardized features, and the scores of data as a function of the weights."""
        features, order = self.schema.rows(data), data.canonical_order
        x = dense_block(features, dtype=np.float64)
        x = np.where(np.isfinite(x), x - self.means, 0.0)
        sizes = np.sqrt((x[order] ** 2).mean(axis=0))
        x /= np.where(sizes > 0, sizes, 1.0)

        def scores(weights: Floats) -> Floats:
            return np.asarray(self.intercept + x @ weights)

        return self.weights * sizes, scores

    def importance(self, kind: Any = "gain") -> Floats:
        """Return |weight| of each feature."""
        return np.abs(self.weights)

    def _parameters(self) -> list[Any]:
        return [self.weights, self.means, self.intercept]

    def to_parts(self) -> Parts:
        return Parts({}, {"weights": self.weights, "means": self.means, "intercept": np.array([self.intercept])})

    @classmethod
    def from_parts(cls, stored: StoredModel) -> Self:
        weights, means, intercept = (stored.array(key, np.float64) for key in ("weights", "means", "intercept"))
        fits = len(weights) == len(means) == stored.n_features and len(intercept) == 1
        if not fits or not np.isfinite(np.concatenate([weights, means, intercept])).all():
            raise stored.error("its weights are invalid")
        return cls(weights, means, float(intercept[0]), stored.feature_names, stored.info, stored.encoding)


@dataclass(frozen=True)
class OrdinalModel(LinearModel):
    """A linear model that also predicts labels: the lowest whose threshold is above the score, else the highest.

    Attributes:
        classes: the labels in ascending order.
        thresholds: the thresholds between consecutive labels in ascending order; one fewer than labels.

    Example:
        >>> import numpy as np, podium
        >>> model = podium.models.OrdinalModel(
        ...     np.array([1.0]), np.zeros(1), classes=np.array([0.0, 1.0, 4.0]), thresholds=np.array([-1.0, 2.0])
        ... )
        >>> model.predict_label([[-3.0], [-1.0], [5.0]]).tolist()
        [0.0, 1.0, 4.0]

    """

    classes: Floats = field(default_factory=lambda: np.zeros(1))
    thresholds: Floats = field(default_factory=lambda: np.empty(0))
    file_kind: ClassVar[str | None] = "podium ordinal"

    def __repr__(self) -> str:
        return (
            f"OrdinalModel({np.count_nonzero(self.weights)} of {self.n_features} features, {len(self.classes)} labels)"
        )

    def predict_label(self, X: Any, *, n_threads: int | None = None) -> Floats:
        """Return the label of each row, min {r : score < threshold_r}."""
        scores = self.predict(X, n_threads=n_threads)
        labels: Floats = self.classes[np.searchsorted(self.thresholds, scores, side="right")]
        return labels

    def _parameters(self) -> list[Any]:
        return [*super()._parameters(), self.classes, self.thresholds]

    def to_parts(self) -> Parts:
        return Parts({}, super().to_parts().arrays | {"classes": self.classes, "thresholds": self.thresholds})

    @classmethod
    def from_parts(cls, stored: StoredModel) -> Self:
        linear = super().from_parts(stored)
        classes, thresholds = stored.array("classes", np.float64), stored.array("thresholds", np.float64)
        if len(classes) < 1 or len(thresholds) != len(classes) - 1:
            raise stored.error("its thresholds do not fit its labels")
        if not np.isfinite(np.concatenate([classes, thresholds])).all():
            raise stored.error("a label or a threshold is not finite")
        if (np.diff(classes) <= 0).any() or (np.diff(thresholds) < 0).any():
            raise stored.error("its labels or thresholds are not in ascending order")
        return replace(linear, classes=classes, thresholds=thresholds)
