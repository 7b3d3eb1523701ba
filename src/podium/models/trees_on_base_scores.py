"""Trees that go on from scores which are not in the model."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from podium.core.array_types import Floats, Ints
from podium.data.columns import to_numbers
from podium.data.features import Features
from podium.errors import DataError
from podium.models.base import OverTrees
from podium.models.ensemble import Ensemble
from podium.trees import BinnedFeatures


@dataclass(frozen=True)
class TreesOnBaseScores(OverTrees):
    """Trees on top of a submodel that is code, not data: a function, another library's model, a column of scores.

    Its scores must be passed with the features, `predict(X, base_scores=scores)`: the file cannot hold them.

    Attributes:
        trees: that were trained on top.
        name: what the submodel was called.
        checksum: of its scores of the training data, in the order of their values.
        scale: what its scores are multiplied by.

    Example:
        >>> import podium
        >>> data = podium.artificial(20, features=4)
        >>> def first_feature(data):
        ...     return data.feature(0)
        >>> model = podium.LambdaMART(n_trees=2, n_leaves=3, submodel=first_feature, submodel_scale=1.0)
        >>> model = model.fit(data).model_
        >>> model.n_trees, model.predict(data, base_scores=data.feature(0)).shape
        (2, (1000,))

    """

    trees: Ensemble
    name: str
    checksum: str
    scale: float = 1.0

    @property
    def n_trees(self) -> int:
        """The number of trees on top."""
        return self.trees.n_trees

    def __repr__(self) -> str:
        return f"TreesOnBaseScores({self.n_trees} trees on top of {self.name})"

    def _predict_rows(
        self,
        features: Features,
        offsets: Ints | None = None,
        *,
        base_scores: Floats | None = None,
        n_trees: int | None = None,
        n_threads: int | None = None,
    ) -> Floats:
        """The score of each row: the submodel's, which must be passed as `base_scores`, and the trees'."""
        base = self._scaled(base_scores, self._checked_rows(features))
        return base + self.trees._predict_rows(features, n_trees=n_trees, n_threads=n_threads)

    def _predict_bins(self, binned: BinnedFeatures, *, base_scores: Floats | None = None, **options: Any) -> Floats:
        return self._scaled(base_scores, binned.n_rows) + self.trees._predict_bins(binned, **options)

    def _scaled(self, base_scores: Floats | None, n_rows: int) -> Floats:
        if base_scores is None:
            raise DataError(
                f"this model goes on from the scores of {self.name} (checksum {self.checksum[:12]}), which is not in "
                "the file: give its scores of these rows, predict(X, base_scores=scores)"
            )
        base_scores = to_numbers(base_scores, "base_scores").astype(np.float64, copy=False)
        if base_scores.shape != (n_rows,):
            raise DataError(f"base_scores must be a number for each of the {n_rows} rows, not {base_scores.shape}")
        return self.scale * base_scores

    def truncate(self, n_trees: int) -> TreesOnBaseScores:
        """The first trees alone."""
        return replace(self, trees=self.trees.truncate(n_trees))

    def _parameters(self) -> list[Any]:
        return [self.trees.digest(), self.scale]


def checksum(scores: Floats) -> str:
    """A hash of scores that does not depend on the order of rows."""
    return hashlib.sha256(np.sort(scores).tobytes()).hexdigest()
