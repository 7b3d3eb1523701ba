"""What all scorers have."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from podium.data import RankingData
from podium.data.columns import Features
from podium.errors import DataError


class Scorer(ABC):
    """A model that scores documents: data, never code.

    Attributes:
        n_features: the number of features.
        feature_names: names of the features, or None.
        info: parameters, history and the like, as JSON has it.
        sees_lists: whether a document's score depends on the others of its query.
        file_format: the name of its format in model files, where that is of another layer.

    """

    n_features: int
    feature_names: tuple[str, ...] | None
    info: dict[str, Any]
    sees_lists: bool = False
    file_format: ClassVar[str | None] = None

    @abstractmethod
    def score(
        self, features: Features, offsets: NDArray[np.int64] | None = None, *, n_threads: int | None = None
    ) -> NDArray[np.float64]:
        """The score of each row.

        `offsets` are for scorers that look at whole lists: query q has the rows offsets[q] to offsets[q + 1].
        """

    def score_documents(
        self, data: RankingData, *, n_threads: int | None = None, **options: Any
    ) -> NDArray[np.float64]:
        """The score of each row of some data, which may be in any order; features are matched by name."""
        features = self.matched(data)
        if not self.sees_lists:
            return self.score(features, n_threads=n_threads, **options)
        order, scores = data.canonical_order, np.empty(len(data))
        scores[order] = self.score(features[order], data.offsets, n_threads=n_threads, **options)
        return scores

    @abstractmethod
    def importance(self, kind: Any = "gain") -> NDArray[np.float64]:
        """How much each feature counts in the model."""

    @abstractmethod
    def digest(self) -> str:
        """A hash of all that decides scores: two models with the same digest score alike, to the bit."""

    @abstractmethod
    def with_info(self, **info: Any) -> Scorer:
        """The same model with other information."""

    def matched(self, data: RankingData) -> Features:
        """The features of data in the model's order, by name where both have names; others are refused."""
        return matched(self.feature_names, data)

    def _checked_rows(self, features: Features) -> int:
        if features.ndim != 2 or features.shape[1] != self.n_features:
            raise DataError(f"the model has {self.n_features} features, but the data has shape {features.shape}")
        return int(features.shape[0])


class OverTrees(Scorer):
    """A scorer that makes something of an ensemble's trees, and has all else from it.

    Attributes:
        trees: the ensemble.

    """

    trees: Any

    @property
    def n_features(self) -> int:  # type: ignore[override]
        """The number of features."""
        return int(self.trees.n_features)

    @property
    def feature_names(self) -> tuple[str, ...] | None:  # type: ignore[override]
        """Names of the features, or None."""
        names: tuple[str, ...] | None = self.trees.feature_names
        return names

    @property
    def info(self) -> dict[str, Any]:  # type: ignore[override]
        """Parameters, history and the like."""
        info: dict[str, Any] = self.trees.info
        return info

    def importance(self, kind: Any = "gain") -> NDArray[np.float64]:
        """For each feature the sum of the gains of its splits, or their number."""
        found: NDArray[np.float64] = self.trees.importance(kind)
        return found

    def with_info(self, **info: Any) -> Self:
        """The same trees with other information."""
        return replace(self, trees=self.trees.with_info(**info))  # type: ignore[type-var]


def matched(wanted: tuple[str, ...] | None, data: RankingData) -> Features:
    """The features of data in an order of names; those without names as they are."""
    given = data.feature_names
    if wanted is None or given is None or wanted == given:
        return data.features
    missing, extra = sorted(set(wanted) - set(given)), sorted(set(given) - set(wanted))
    if missing:
        raise DataError(f"the model needs the feature {missing[0]!r}, which the data lacks ({len(missing)} in all)")
    if extra:
        raise DataError(f"the model does not know the data's feature {extra[0]!r} ({len(extra)} in all)")
    return data.features[:, [given.index(name) for name in wanted]]


def with_features_of(train: RankingData, data: RankingData) -> RankingData:
    """The data with its features in the order of the training data's, by name where both have names."""
    if train.feature_names is None or data.feature_names in (None, train.feature_names):
        return data
    return data.replace(features=matched(train.feature_names, data), feature_names=train.feature_names)


def checked_sets(train: RankingData, valid: Mapping[str, RankingData] | None) -> dict[str, RankingData]:
    """Evaluation sets with their features in the order of the training data's; what cannot be trained on is refused."""
    if train.n_documents == 0:
        raise DataError("there are no documents to train on")
    if train.n_features == 0:
        shape = train.features.shape
        raise DataError(f"there is nothing to train on: 0 feature(s) (shape={shape}) while a minimum of 1 is required.")
    found = {name: with_features_of(train, data) for name, data in (valid or {}).items()}
    for name, data in found.items():
        if data.n_documents == 0:
            raise DataError(f"the evaluation set {name!r} has no documents")
        if data.n_features != train.n_features:
            raise DataError(
                f"the evaluation set {name!r} has {data.n_features} features, the training data {train.n_features}"
            )
    return found
