"""Trees that tell classes of relevance apart."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from podium.core.array_types import Floats, Ints
from podium.data.features import Features
from podium.models.base import OverTrees
from podium.models.ensemble import Ensemble
from podium.objectives.pointwise import expected, softmax


@dataclass(frozen=True)
class ClassEnsemble(OverTrees):
    """An ensemble for each class of relevance; a score is what the classes are worth, by their probabilities (McRank).

    Attributes:
        trees: of all classes in turn, round by round.
        classes: the labels that they stand for.
        worth: what each class counts in a score.

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

    @property
    def n_trees(self) -> int:
        """Rounds: trees of each class."""
        return self.trees.n_trees // len(self.classes)

    def __repr__(self) -> str:
        return f"ClassEnsemble({self.n_trees} trees for each of {len(self.classes)} classes)"

    @cached_property
    def _ensembles(self) -> tuple[Ensemble, ...]:
        return self.trees.outputs(len(self.classes))

    def prepare(self) -> None:
        """Make the trees of each class ready to score."""
        for ensemble in self._ensembles:
            ensemble.prepare()

    def probabilities(self, X: Any, *, n_trees: int | None = None, n_threads: int | None = None) -> Floats:
        """The probability of each class (column) for each row, by the first rounds or all."""
        features = self.schema.rows(X)
        return softmax(self._class_scores(features, n_trees, n_threads)).T

    def _predict_rows(
        self,
        features: Features,
        offsets: Ints | None = None,
        *,
        n_trees: int | None = None,
        n_threads: int | None = None,
    ) -> Floats:
        """The expected worth of each row, by the first `n_trees` rounds or all."""
        return expected(self._class_scores(features, n_trees, n_threads), self.worth)

    def _class_scores(self, features: Features, n_trees: int | None, n_threads: int | None) -> Floats:
        """A row for each class, a column for each document."""
        scores = [e._predict_rows(features, n_trees=n_trees, n_threads=n_threads) for e in self._ensembles]
        return np.array(scores)

    def truncate(self, n_trees: int) -> ClassEnsemble:
        """The first rounds alone."""
        return replace(self, trees=self.trees.truncate(n_trees * len(self.classes)))

    def dump(self, kind: Any = "text") -> str:
        """All trees, for people or for programs; the classes in turn."""
        return self.trees.dump(kind)

    def _parameters(self) -> list[Any]:
        return [self.trees.digest(), self.classes, self.worth]
