"""Weighted sums of features with thresholds between ordered labels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from podium.core.array_types import Floats
from podium.models.linear import LinearModel


@dataclass(frozen=True)
class OrdinalModel(LinearModel):
    """A `LinearModel` that tells labels, too: the lowest one whose threshold is above the score, else the highest.

    Attributes:
        classes: the labels, ascending.
        thresholds: between each label and the next, ascending; one fewer than labels.

    Example:
        >>> import numpy as np, podium
        >>> model = podium.OrdinalModel(
        ...     np.array([1.0]), np.zeros(1), classes=np.array([0.0, 1.0, 4.0]), thresholds=np.array([-1.0, 2.0])
        ... )
        >>> model.predict_label([[-3.0], [-1.0], [5.0]]).tolist()
        [0.0, 1.0, 4.0]

    """

    classes: Floats = field(default_factory=lambda: np.zeros(1))
    thresholds: Floats = field(default_factory=lambda: np.empty(0))

    def __repr__(self) -> str:
        return (
            f"OrdinalModel({np.count_nonzero(self.weights)} of {self.n_features} features, {len(self.classes)} labels)"
        )

    def predict_label(self, X: Any, *, n_threads: int | None = None) -> Floats:
        """The label of each row: min {r : score < threshold_r}."""
        scores = self.predict(X, n_threads=n_threads)
        labels: Floats = self.classes[np.searchsorted(self.thresholds, scores, side="right")]
        return labels

    def _parameters(self) -> list[Any]:
        return [*super()._parameters(), self.classes, self.thresholds]
