"""A model made ready to score."""

from __future__ import annotations

from typing import Any

import numpy as np

from podium.core.array_types import Floats
from podium.models.base import Model


class Scorer:
    """A model with all that scoring needs prepared: `scorer(X)` gives the scores of rows, as `model.predict` does.

    Made by `model.scorer()`. What `predict` does for trees only when many documents have come is done at once, so that
    the first query is as fast as all others. Threads may share a scorer.

    Attributes:
        model: the model.
        n_threads: for each call.

    Example:
        >>> import podium
        >>> data = podium.artificial(20, features=4)
        >>> model = podium.LambdaMART(n_trees=5, n_leaves=4).fit(data)
        >>> scorer = model.scorer(n_threads=1)
        >>> scorer(data.features[:50]).shape
        (50,)

    """

    def __init__(self, model: Model, n_threads: int | None = None) -> None:
        self.model = model
        self.n_threads = n_threads
        model.prepare()
        encoding = model.encoding
        self._takes_arrays = model.has_one_schema and not encoding.shifts and not encoding.categories

    def __call__(self, X: Any) -> Floats:
        """The score of each row of an array, a sparse matrix, a frame or `RankingData`; see `Model.predict`."""
        if (
            type(X) is np.ndarray
            and X.dtype == np.float32
            and X.ndim == 2
            and X.shape[1] == self.model.n_features
            and self._takes_arrays
        ):
            return self.model._predict_rows(X, n_threads=self.n_threads)  # nothing to convert or to match
        return self.model.predict(X, n_threads=self.n_threads)

    def __repr__(self) -> str:
        threads = "" if self.n_threads is None else f", n_threads={self.n_threads}"
        return f"Scorer({self.model!r}{threads})"
