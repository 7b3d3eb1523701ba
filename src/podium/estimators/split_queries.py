"""A warning when documents of one query are in both the training data and the data to score.

scikit-learn's `cv=3` cuts the rows into blocks, and so splits the queries at their ends. An estimator only sees its
part of the rows. But split queries have the same id in both parts, with different numbers of documents.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Ints
from podium.data import RankingData
from podium.errors import warn

# The ids and sizes of the training queries of each estimator in memory. Copies, pickles and files do not have them.
_trained: WeakKeyDictionary[Any, tuple[NDArray[Any], Ints]] = WeakKeyDictionary()


def remember_queries(ranker: Any, train: RankingData) -> None:
    """Remember the queries that an estimator is trained on."""
    _trained[ranker] = train.query_ids, np.diff(train.offsets)


def warn_if_split(ranker: Any, data: RankingData) -> None:
    """Warn if some queries of this data are in the training data with another number of documents.

    If most queries are in both, their ids may just be the same numbers in two data sets, so there is no warning.
    """
    ids, sizes = _trained.get(ranker, (None, None))
    if ids is None or sizes is None or ids.dtype.kind != data.query_ids.dtype.kind:
        return
    shared, in_train, in_data = np.intersect1d(ids, data.query_ids, assume_unique=True, return_indices=True)
    is_split = sizes[in_train] != np.diff(data.offsets)[in_data]
    if is_split.any() and 2 * len(shared) <= data.n_queries:
        warn(
            f"{is_split.sum()} of {data.n_queries} queries, such as {shared[is_split][0]}, were also in the training "
            "data, with other documents: the score is too high if the folds of a cross-validation split queries. "
            "Use cv=podium.QueryKFold(5), or GroupKFold with groups=qid",
            stacklevel=3,
        )
