"""Per-query normalisation as a transformer."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import validate_data

from podium.core.array_types import Float32s
from podium.data import RankingData
from podium.data.normalizing import METHODS
from podium.errors import DataError


class QueryNormalizer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Bring features to a common scale within each query, as RankLib's `-norm` does.

    Nothing is learned: every query is normalised by its own documents. In a pipeline the query ids reach it by
    metadata routing: `QueryNormalizer().set_fit_request(qid=True).set_transform_request(qid=True)`.

    Args:
        method: `"sum"`, `"zscore"` or `"minmax"`; see `RankingData.normalized`.

    Example:
        >>> import podium
        >>> X = [[1.0], [3.0], [10.0], [30.0]]
        >>> podium.QueryNormalizer("minmax").fit(X).transform(X, qid=[1, 1, 2, 2]).ravel().tolist()
        [0.0, 1.0, 0.0, 1.0]

    """

    def __init__(self, method: str = "zscore") -> None:
        self.method = method

    def fit(self, X: Any, y: Any = None, qid: ArrayLike | None = None) -> QueryNormalizer:
        """Check the features and remember their names and number."""
        if self.method not in METHODS:
            raise DataError(f"method must be one of {', '.join(map(repr, METHODS))}, not {self.method!r}")
        validate_data(self, X, ensure_all_finite=False, dtype=np.float32)
        return self

    def transform(self, X: Any, qid: ArrayLike | None = None) -> Float32s:
        """The normalised features, in the order of the rows."""
        if qid is None:
            raise DataError(
                "QueryNormalizer needs the query of each row: transform(X, qid=qid); in a pipeline, enable "
                "metadata routing and use QueryNormalizer().set_fit_request(qid=True).set_transform_request(qid=True)"
            )
        X = validate_data(self, X, reset=False, ensure_all_finite=False, dtype=np.float32)
        return np.asarray(RankingData(X, qid=qid).normalized(self.method).features)

    def fit_transform(self, X: Any, y: Any = None, qid: ArrayLike | None = None) -> Float32s:
        """Fit and transform in one step."""
        return self.fit(X, y).transform(X, qid=qid)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.requires_fit = False
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags
