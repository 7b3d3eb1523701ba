"""Parts of scikit-learn's pipelines that know queries: folds of whole queries, normalization within a query."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils.validation import validate_data

from podium.core.array_types import Float32s, Ints
from podium.data import RankingData, frames
from podium.data.columns import group_rows, to_query_ids
from podium.data.normalizing import METHODS
from podium.data.subsets import fold_of_queries
from podium.errors import DataError
from podium.measures import Measure, Ranking, as_selection


def query_score(y_true: ArrayLike, y_score: ArrayLike, *, qid: ArrayLike, measure: Measure | str = "ndcg@10") -> float:
    """Return the mean of a measure over the queries; the arguments are those of scikit-learn's metrics.

    `sklearn.metrics.make_scorer(query_score, qid=qid)` is a scorer for any estimator on all rows of some data, for
    example in `sklearn.inspection.permutation_importance`. Searches and cross-validation score parts of the data:
    enable metadata routing for them, and use `make_scorer(query_score).set_score_request(qid=True)`.

    Args:
        y_true: the labels.
        y_score: the scores, higher is better.
        qid: the query of each row.
        measure: the measure.

    Example:
        >>> from podium.estimators import query_score
        >>> query_score([0, 1, 2, 0], [0.1, 0.9, 0.3, 0.2], qid=[1, 1, 2, 2], measure="rr")
        1.0

    """
    labels, scores = np.asarray(y_true), np.asarray(y_score, np.float64)
    if len(labels) != len(np.asarray(qid)):
        raise DataError(
            f"there are {len(labels)} labels, but qid has {len(np.asarray(qid))} rows: if scikit-learn scores parts of "
            "the data, enable metadata routing and use make_scorer(query_score).set_score_request(qid=True)"
        )
    data = RankingData(np.zeros((len(labels), 1), np.float32), labels, qid=qid)
    return as_selection(measure).measures[0].mean(Ranking(data, scores))


class QueryKFold(BaseCrossValidator):  # type: ignore[misc]
    """K folds of whole queries, for `cross_validate`, `GridSearchCV` and similar tools.

    The query ids are scikit-learn's `groups`: `cross_validate(model, X, y, groups=qid, cv=QueryKFold(5))`. With
    metadata routing they may be `qid`, which rankers need anyway:
    `GridSearchCV(ranker, …, cv=QueryKFold(5)).fit(X, y, qid=qid)`. A frame with a column `qid` needs neither.
    The fold of a query depends on its id and the seed, not on the order of the rows.

    Args:
        n_splits: the number of folds.
        seed: the seed of the folds.

    Example:
        >>> import numpy as np
        >>> import podium
        >>> qid = np.repeat(np.arange(10), 3)
        >>> splits = list(podium.QueryKFold(5).split(qid, groups=qid))
        >>> len(splits), all(not set(qid[train]) & set(qid[test]) for train, test in splits)
        (5, True)

    """

    __metadata_request__split = {"groups": True, "qid": True}  # noqa: RUF012

    def __init__(self, n_splits: int = 5, *, seed: int = 0) -> None:
        self.n_splits = n_splits
        self.seed = seed

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None, qid: Any = None) -> int:
        """Return the number of folds."""
        return self.n_splits

    def split(
        self, X: Any, y: Any = None, groups: ArrayLike | None = None, qid: ArrayLike | None = None
    ) -> Iterator[tuple[Ints, Ints]]:
        """Yield the row numbers of (train, test) for each fold; `groups`, `qid` or a column of X has the queries."""
        ids = groups if groups is not None else qid
        if ids is None and frames.is_frame(X) and frames.has_queries(X):
            ids = frames.values_of(frames.narwhals_frame(X)["qid"])
        if ids is None:
            raise DataError(
                "QueryKFold needs the query of each row: split(X, groups=qid). In scikit-learn's searches of rankers, "
                "first sklearn.set_config(enable_metadata_routing=True), then search.fit(X, y, qid=qid)"
            )
        qid = to_query_ids(ids, len(np.asarray(ids)))
        query_ids, order, offsets = group_rows(qid)
        fold = np.empty(len(qid), np.int64)
        fold[order] = np.repeat(fold_of_queries(query_ids, self.n_splits, self.seed), np.diff(offsets))
        for k in range(self.n_splits):
            yield np.flatnonzero(fold != k), np.flatnonzero(fold == k)


class QueryNormalizer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Normalizes features within each query, like RankLib's `-norm`.

    `fit` learns nothing, because every query is normalized by its own documents. In a pipeline, pass query ids by
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
        """Return the normalized features, in the order of the rows."""
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
