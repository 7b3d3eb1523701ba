"""`PairTransformer`, which computes features of (query, document) pairs in a scikit-learn pipeline."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from podium.core.array_types import Floats
from podium.errors import DataError
from podium.features.feature import Feature
from podium.features.feature_set import FeatureSet
from podium.features.presets import default

if TYPE_CHECKING:
    from podium.features.index import Index


class PairTransformer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Compute features of pairs of a query's text and a document's id.

    Args:
        index: the documents.
        features: a `FeatureSet`, or texts of features; `default(index)` if None.

    Attributes:
        features_: the feature set, after `fit`.

    Example:
        >>> from podium.features import Index, PairTransformer
        >>> index = Index.build([{"id": "a", "title": "Red shoes"}], fields={"title": "english"})
        >>> PairTransformer(index, ["covered(title)"]).fit_transform([("red hat", "a"), ("shoes", "a")]).tolist()
        [[1.0], [1.0]]

    """

    def __init__(self, index: Index, features: Iterable[Feature | str] | None = None) -> None:
        self.index = index
        self.features = features

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Check the features against the index; nothing is learned from the arguments."""
        self.features_ = default(self.index) if self.features is None else FeatureSet(self.features)
        self.features_.check(self.index)
        return self

    def transform(self, X: Any) -> Floats:
        """Return a row of features for each pair."""
        pairs = np.asarray(X, object)
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise DataError(f"X must have two columns, query text and document id, but has shape {pairs.shape}")
        rows = self.index.require_rows(pairs[:, 1].tolist())
        places: dict[str, list[int]] = {}
        for place, text in enumerate(pairs[:, 0]):
            places.setdefault(str(text), []).append(place)
        values = np.empty((len(pairs), len(self.features_)))
        for text, query_places in places.items():
            values[query_places] = self.features_.rows(self.index, text, rows[query_places])
        return values

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the texts of the features."""
        return np.array(self.features_.names, object)
