"""Weighted sums of models."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from podium.core.array_types import Floats, Ints
from podium.core.validation import numbers_of
from podium.data import RankingData, frames
from podium.data.encoding import Encoding
from podium.data.features import Features
from podium.errors import DataError
from podium.models.archive import Parts, StoredModel
from podium.models.base import Model, model_of

if TYPE_CHECKING:
    from podium.trees import Bins


@dataclass(frozen=True)
class Combined(Model):
    """Σ_k weights_k · score_k of several models.

    Attributes:
        parts: the models; fitted estimators are replaced by their models.
        weights: the weight of each model.
        info: facts about training, such as parameters, in JSON types.

    Example:
        >>> import numpy as np, podium
        >>> a, b = (podium.models.LinearModel(np.array(w), np.zeros(2)) for w in ([1.0, 0.0], [0.0, 1.0]))
        >>> podium.models.Combined((a, b), (0.5, 2.0)).predict([[4.0, 1.0]]).tolist()
        [4.0]

    """

    parts: tuple[Model, ...]
    weights: tuple[float, ...]
    info: dict[str, Any] = field(default_factory=dict)
    file_kind: ClassVar[str | None] = "podium combined"

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(map(model_of, self.parts)))
        if not self.parts or not all(isinstance(part, Model) for part in self.parts):
            raise DataError("parts must be one or more models or fitted estimators")
        object.__setattr__(self, "weights", numbers_of("weights", self.weights))
        if len(self.weights) != len(self.parts) or not np.isfinite(self.weights).all():
            raise DataError(f"weights must be a finite number for each of the {len(self.parts)} models")
        if any(part.feature_names is None for part in self.parts):
            for part in self.parts[1:]:
                if part.n_features != self.parts[0].n_features:
                    raise DataError(
                        "models without feature names must have the same number of features, but they have "
                        f"{self.parts[0].n_features} and {part.n_features}"
                    )

    @property
    def n_features(self) -> int:  # type: ignore[override]
        """The number of features, of all models together if their features have names."""
        return self.parts[0].n_features if self._unnamed else len(self._all_names)

    @property
    def feature_names(self) -> tuple[str, ...] | None:  # type: ignore[override]
        """The names of the features of all models, those of the first model first, or None."""
        if self._unnamed:
            return next((part.feature_names for part in self.parts if part.feature_names is not None), None)
        return self._all_names

    @property
    def encoding(self) -> Encoding:  # type: ignore[override]
        """The encoding of the first model; each model predicts with its own."""
        return self.parts[0].encoding

    @property
    def _unnamed(self) -> bool:
        return any(part.feature_names is None for part in self.parts)

    @cached_property
    def _all_names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for part in self.parts for name in part.feature_names or ()))

    @cached_property
    def _are_alike(self) -> bool:
        schemas = [part.schema for part in self.parts]
        return all(schema.encoding == schemas[0].encoding for schema in schemas) and (
            self._unnamed or all(schema.names == schemas[0].names for schema in schemas)
        )

    @property
    def has_one_schema(self) -> bool:  # type: ignore[override]
        """Whether all models have the same schema."""
        return self._are_alike and all(part.has_one_schema for part in self.parts)

    @property
    def reading(self) -> dict[str, Any]:
        return super().reading or next((part.reading for part in self.parts if part.reading), {})

    @property
    def sees_lists(self) -> bool:  # type: ignore[override]
        """Whether one of the models sees lists."""
        return any(part.sees_lists for part in self.parts)

    def splits_at(self, bins: Bins) -> bool:
        return self._are_alike and all(part.splits_at(bins) for part in self.parts)

    def prepare(self) -> None:
        for part in self.parts:
            part.prepare()

    def predict(self, X: Any, *, extra: str = "ignore", n_threads: int | None = None, **options: Any) -> Floats:
        """Return the score of each row, see `Model.predict`; each model selects its own columns."""
        if self._are_alike:
            return super().predict(X, extra=extra, n_threads=n_threads, **options)
        if not isinstance(X, RankingData) and not frames.is_frame(X):
            raise DataError(
                "the combined models differ in their features or their order: pass X with names, as a frame or "
                "RankingData"
            )
        if extra != "ignore":
            self.schema.rows(X, extra)
        predicted = (part.predict(X, n_threads=n_threads, **options) for part in self.parts)
        return self._summed(predicted)

    def _require_same_reading(self, data: RankingData) -> None:
        for part in self.parts:
            part._require_same_reading(data)

    def _predict_rows(self, features: Features, offsets: Ints | None = None, *, n_threads: int | None = None) -> Floats:
        self._checked_rows(features)
        return self._summed(
            part._predict_rows(features, offsets if part.sees_lists else None, n_threads=n_threads)
            for part in self.parts
        )

    def _summed(self, predicted: Iterable[Floats]) -> Floats:
        scores: Any = 0.0
        for weight, part_scores in zip(self.weights, predicted, strict=True):
            scores = scores + weight * part_scores
        return np.asarray(scores, np.float64)

    def truncate(self, n_trees: int) -> Combined:
        """Return the combination with the last model truncated to its first trees."""
        last = self.parts[-1]
        if not hasattr(last, "truncate"):
            raise DataError(f"cannot truncate {last!r}: it has no trees")
        return replace(self, parts=(*self.parts[:-1], last.truncate(n_trees)))

    def importance(self, kind: Any = "gain") -> Floats:
        """Return the importance of each feature, as a weighted sum of the parts' shares."""
        total = np.zeros(self.n_features)
        for part, weight in zip(self.parts, self.weights, strict=True):
            shares = part.importance(kind)
            shares = abs(weight) * shares / (shares.sum() or 1.0)
            if self._unnamed:
                total += shares
            else:
                total[[self._all_names.index(name) for name in part.feature_names or ()]] += shares
        return total

    def _parameters(self) -> list[Any]:
        return [[part.digest() for part in self.parts], self.weights]

    def to_parts(self) -> Parts:
        return Parts({"weights": list(self.weights)}, {}, self.parts)

    @classmethod
    def from_parts(cls, stored: StoredModel) -> Combined:
        weights = stored.header.get("weights")
        if not isinstance(weights, list) or len(weights) != len(stored.children):
            raise stored.error("its parts are invalid")
        return cls(stored.children, tuple(weights), stored.info)
