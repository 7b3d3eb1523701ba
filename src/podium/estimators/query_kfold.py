"""Cross-validation that never splits a query."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.model_selection import BaseCrossValidator

from podium.core.array_types import Ints
from podium.data.columns import group_rows, to_query_ids
from podium.data.subsets import fold_of_queries
from podium.errors import DataError


class QueryKFold(BaseCrossValidator):  # type: ignore[misc]
    """K folds of whole queries, for `cross_validate`, `GridSearchCV` and the like.

    The query ids are scikit-learn's `groups`: `cross_validate(model, X, y, groups=qid, cv=QueryKFold(5))`.
    Which fold a query falls into depends on its id and the seed, not on the order of the rows.

    Args:
        n_splits: the number of folds.
        seed: another seed gives other folds.

    Example:
        >>> import numpy as np
        >>> import podium
        >>> qid = np.repeat(np.arange(10), 3)
        >>> splits = list(podium.QueryKFold(5).split(qid, groups=qid))
        >>> len(splits), all(not set(qid[train]) & set(qid[test]) for train, test in splits)
        (5, True)

    """

    __metadata_request__split = {"groups": True}  # noqa: RUF012

    def __init__(self, n_splits: int = 5, *, seed: int = 0) -> None:
        self.n_splits = n_splits
        self.seed = seed

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """The number of folds."""
        return self.n_splits

    def split(self, X: Any, y: Any = None, groups: ArrayLike | None = None) -> Iterator[tuple[Ints, Ints]]:
        """Row numbers of (train, test) for each fold; `groups` holds the query of each row."""
        if groups is None:
            raise DataError("QueryKFold needs the query of each row, as groups=qid")
        qid = to_query_ids(groups, len(np.asarray(groups)))
        query_ids, order, offsets = group_rows(qid)
        fold = np.empty(len(qid), np.int64)
        fold[order] = np.repeat(fold_of_queries(query_ids, self.n_splits, self.seed), np.diff(offsets))
        for k in range(self.n_splits):
            yield np.flatnonzero(fold != k), np.flatnonzero(fold == k)
