"""Models based on an ensemble of trees: classes of relevance, and trees that continue from other scores."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from podium.core.array_types import Floats, Ints
from podium.data.columns import to_numbers
from podium.data.encoding import Encoding
from podium.data.features import Features
from podium.errors import DataError
from podium.models.archive import Parts, StoredModel
from podium.models.base import Model
from podium.models.ensemble import Ensemble

if TYPE_CHECKING:
    from podium.trees import BinnedFeatures, Bins


class TransformedEnsemble(Model):
    """The base class of models that transform the scores of an ensemble."""

    trees: Ensemble

    @property
    def n_features(self) -> int:  # type: ignore[override]
        """The number of features."""
        return self.trees.n_features

    @property
    def feature_names(self) -> tuple[str, ...] | None:  # type: ignore[override]
        """The names of the features, or None."""
        return self.trees.feature_names

    @property
    def encoding(self) -> Encoding:  # type: ignore[override]
        """How the features of the training data were encoded."""
        return self.trees.encoding

    @property
    def info(self) -> dict[str, Any]:  # type: ignore[override]
        """Facts about training, such as parameters and history."""
        return self.trees.info

    def splits_at(self, bins: Bins) -> bool:
        return self.trees.splits_at(bins)

    def prepare(self) -> None:
        self.trees.prepare()

    def importance(self, kind: Any = "gain") -> Floats:
        """Return the sum of the gains of each feature's splits, or their number."""
        return self.trees.importance(kind)

    def with_info(self, **info: Any) -> Self:
        return replace(self, trees=self.trees.with_info(**info))  # type: ignore[type-var]


@dataclass(frozen=True)
class ClassEnsemble(TransformedEnsemble):
    """An ensemble for each class of relevance; a score is the expected worth of the classes (McRank).

    Attributes:
        trees: the trees of all classes in turn, round by round.
        classes: the labels of the classes.
        worth: the worth of each class in a score.

    Example:
        >>> import podium
        >>> data = podium.artificial(20, features=4)
        >>> model = podium.McRank(n_trees=2, n_leaves=3).fit(data).model_
        >>> model
        ClassEnsemble(2 trees for each of 5 classes)
        >>> model.probabilities(data).shape
        (1000, 5)

    """

    trees: Ensemble
    classes: Floats
    worth: Floats
    file_kind: ClassVar[str | None] = "podium classes"

    @property
    def n_outputs(self) -> int:
        """The number of trees per round."""
        return len(self.classes)

    @property
    def n_trees(self) -> int:
        """The number of rounds, which is the number of trees of each output."""
        return self.trees.n_trees // self.n_outputs

    def __repr__(self) -> str:
        return f"ClassEnsemble({self.n_trees} trees for each of {len(self.classes)} classes)"

    @cached_property
    def _ensembles(self) -> tuple[Ensemble, ...]:
        return self.trees.outputs(self.n_outputs)

    def prepare(self) -> None:
        for ensemble in self._ensembles:
            ensemble.prepare()

    def probabilities(self, X: Any, *, n_trees: int | None = None, n_threads: int | None = None) -> Floats:
        """Return the probability of each class (column) for each row, by the first rounds or all."""
        return self._probabilities(self._class_scores(self.schema.rows(X), n_trees, n_threads)).T

    def _probabilities(self, scores: Floats) -> Floats:
        from podium.objectives.pointwise import softmax  # here, so that loading a model does not import objectives

        return softmax(scores)

    def _predict_rows(
        self, features: Features, offsets: Ints | None = None, *, n_trees: int | None = None,
        n_threads: int | None = None,
    ) -> Floats:  # fmt: skip
        """Return the expected worth of each row, by the first `n_trees` rounds or all."""
        return self._expected(self._class_scores(features, n_trees, n_threads))

    def _expected(self, scores: Floats) -> Floats:
        from podium.objectives.pointwise import expected

        return expected(scores, self.worth)

    def _class_scores(self, features: Features, n_trees: int | None, n_threads: int | None) -> Floats:
        scores = [e._predict_rows(features, n_trees=n_trees, n_threads=n_threads) for e in self._ensembles]
        return np.array(scores)

    def truncate(self, n_trees: int) -> Self:
        """Return the model with only the first rounds."""
        return replace(self, trees=self.trees.truncate(n_trees * self.n_outputs))

    def dump(self, kind: Any = "text") -> str:
        """Return all trees as text or JSON, the classes in turn."""
        return self.trees.dump(kind)

    def _parameters(self) -> list[Any]:
        return [self.trees.digest(), self.classes, self.worth]

    def to_parts(self) -> Parts:
        return Parts({}, self.trees.to_parts().arrays | {"classes": self.classes, "worth": self.worth})

    @classmethod
    def from_parts(cls, stored: StoredModel) -> Self:
        trees = Ensemble.from_parts(stored)
        classes, worth = stored.array("classes", np.float64), stored.array("worth", np.float64)
        model = cls(trees, classes, worth)
        if not 2 <= len(classes) <= 256 or len(worth) != len(classes) or trees.n_trees % model.n_outputs:
            raise stored.error("its classes do not match its trees")
        if not (np.isfinite(classes).all() and np.isfinite(worth).all()):
            raise stored.error("a class is not finite")
        return model


@dataclass(frozen=True)
class BoundaryEnsemble(ClassEnsemble):
    """An ensemble for each boundary between classes of relevance, for P(l > k): McRank's ordinal form.

    Attributes:
        trees: the trees of all boundaries in turn, round by round.
        classes: the labels of the classes in ascending order.
        worth: the worth of each class in a score.

    Example:
        >>> import podium
        >>> data = podium.artificial(20, features=4)
        >>> podium.McRank(n_trees=2, n_leaves=3, form="ordinal").fit(data).model_
        BoundaryEnsemble(2 trees for each boundary of 5 classes)

    """

    file_kind: ClassVar[str | None] = "podium boundaries"

    @property
    def n_outputs(self) -> int:
        """The number of trees per round."""
        return len(self.classes) - 1

    def __repr__(self) -> str:
        return f"BoundaryEnsemble({self.n_trees} trees for each boundary of {len(self.classes)} classes)"

    def _probabilities(self, scores: Floats) -> Floats:
        from podium.objectives.pointwise import probabilities_between

        return probabilities_between(scores)

    def _expected(self, scores: Floats) -> Floats:
        from podium.objectives.pointwise import expected_above

        return expected_above(scores, self.worth)


@dataclass(frozen=True)
class TreesOnBaseScores(TransformedEnsemble):
    """Trees on top of a submodel that a file cannot store: a function, another library's model, a column of scores.

    Pass its scores with the features, as `predict(X, base_scores=scores)`.

    Attributes:
        trees: the trees on top.
        name: the name of the submodel.
        checksum: a checksum of its sorted scores of the training data.
        scale: the factor of its scores.

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
    file_kind: ClassVar[str | None] = "podium started"

    @property
    def n_trees(self) -> int:
        """The number of trees on top."""
        return self.trees.n_trees

    def __repr__(self) -> str:
        return f"TreesOnBaseScores({self.n_trees} trees on top of {self.name})"

    def _predict_rows(
        self, features: Features, offsets: Ints | None = None, *, base_scores: Floats | None = None,
        n_trees: int | None = None, n_threads: int | None = None,
    ) -> Floats:  # fmt: skip
        """Return the score of each row: the submodel's, passed as `base_scores`, plus the trees'."""
        scaled = self._scaled(base_scores, self._checked_rows(features))
        return scaled + self.trees._predict_rows(features, n_trees=n_trees, n_threads=n_threads)

    def _predict_bins(self, binned: BinnedFeatures, *, base_scores: Floats | None = None, **options: Any) -> Floats:
        return self._scaled(base_scores, binned.n_rows) + self.trees._predict_bins(binned, **options)

    def _scaled(self, base_scores: Floats | None, n_rows: int) -> Floats:
        if base_scores is None:
            raise DataError(
                f"this model continues from the scores of {self.name} (checksum {self.checksum[:12]}), which is not in "
                "the file: pass its scores of these rows, predict(X, base_scores=scores)"
            )
        base_scores = to_numbers(base_scores, "base_scores").astype(np.float64, copy=False)
        if base_scores.shape != (n_rows,):
            raise DataError(f"base_scores must be a number for each of the {n_rows} rows, but got {base_scores.shape}")
        return self.scale * base_scores

    def truncate(self, n_trees: int) -> TreesOnBaseScores:
        """Return the model with only the first trees."""
        return replace(self, trees=self.trees.truncate(n_trees))

    def _parameters(self) -> list[Any]:
        return [self.trees.digest(), self.scale]

    def to_parts(self) -> Parts:
        submodel = {"name": self.name, "checksum": self.checksum, "scale": self.scale}
        return Parts({"submodel": submodel}, self.trees.to_parts().arrays)

    @classmethod
    def from_parts(cls, stored: StoredModel) -> TreesOnBaseScores:
        trees, submodel = Ensemble.from_parts(stored), stored.mapping("submodel")
        name, checksum, scale = submodel.get("name"), submodel.get("checksum"), submodel.get("scale", 1.0)
        if not isinstance(name, str) or not isinstance(checksum, str):
            raise stored.error("the name of its submodel is missing")
        if not isinstance(scale, float) or not 0 < scale < math.inf:  # files of version 0.1 have no scale
            raise stored.error("the scale of its submodel must be a positive number")
        return cls(trees, name, checksum, scale)


def checksum(scores: Floats) -> str:
    """Return a hash of scores that does not depend on the order of rows."""
    return hashlib.sha256(np.sort(scores).tobytes()).hexdigest()
