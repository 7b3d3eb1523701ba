"""McRank's classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.core.array_types import Floats
from podium.core.merging import Union, lowest
from podium.data import RankingData
from podium.errors import DataError
from podium.objectives.base import Objective
from podium.objectives.points import BoundPoints, Points
from podium.objectives.registry import register

MOST_CLASSES = 256


@register
@dataclass(frozen=True)
class Multiclass(Objective):
    """K classes, one for each label that occurs, a score for each: C = −Σ d_i log p_{l_i}, p the softmax of the scores.

    For a tree of class k: y = 1[l = k] − p_k, leaf = (K−1)/K · Σy / Σ|y|(1 − |y|): McRank (Li, Burges and Wu, NIPS
    2007; [W]). Documents are ranked by Σ_k p_k k, the expected relevance, or by Σ_k p_k (2^k − 1), the expected gain.

    Args:
        expects: `"relevance"` or `"gain"`.
        labels: the label source; at most 256 different values.

    Example:
        >>> import podium
        >>> from podium.objectives import Multiclass
        >>> data = podium.artificial(20, features=4)
        >>> Multiclass().bind(data).classes.tolist() == sorted(set(data.relevance.tolist()))
        True

    """

    expects: str = "relevance"
    labels: str = "relevance"
    pointwise = True
    works_in_parts = True

    def __post_init__(self) -> None:
        if self.expects not in ("relevance", "gain"):
            raise DataError(f"expects must be 'relevance' or 'gain', not {self.expects!r}")

    def bind(self, data: RankingData) -> BoundMulticlass:
        """On these documents."""
        return BoundMulticlass(self, Points(data, self.labels, self))


class BoundMulticlass(BoundPoints):
    """The classes of some data.

    Attributes:
        classes: the labels that occur, ascending.
        worth: what each class counts in a score.

    """

    def __init__(self, objective: Multiclass, points: Points) -> None:
        super().__init__(points)
        self.objective, self.classes = objective, np.unique(points.labels)
        if not objective.in_parts:
            self._set_classes(self.classes)

    def facts_of_points(self) -> Any:
        """The labels that occur."""
        return Union(lowest(self.classes, MOST_CLASSES + 1), MOST_CLASSES + 1)

    def set_facts_of_points(self, facts: Any) -> None:
        """Those of all data."""
        self._set_classes(facts)

    def _set_classes(self, classes: Floats) -> None:
        self.classes, self.class_of = classes, np.searchsorted(classes, self.points.labels)
        self.n_outputs = len(classes)
        if not 2 <= self.n_outputs <= MOST_CLASSES:
            raise DataError(f"Multiclass needs between 2 and 256 different labels; there are {self.n_outputs}")
        self.worth = self.classes if self.objective.expects == "relevance" else np.exp2(self.classes) - 1.0
        if not np.isfinite(self.worth).all():
            raise DataError(f"the gain 2^{self.classes.max():g} − 1 overflows: use expects='relevance'")

    def gradients(self, scores: Floats, iteration: int = 0) -> tuple[Floats, Floats]:
        """λ and w, a row for each class."""
        p, n_classes = self.points, self.n_outputs
        y = (self.class_of == np.arange(n_classes)[:, None]) - softmax(scores[:, p.rows])
        size = np.abs(y)
        return p.by_row(p.weights * y), p.by_row(p.weights * size * (1.0 - size) * (n_classes / (n_classes - 1)))

    def ranked_by(self, scores: Floats) -> Floats:
        """Expected relevance or gain."""
        return expected(scores, self.worth)


def softmax(scores: Floats) -> Floats:
    """e^s over the sum of its column."""
    powers = np.exp(scores - scores.max(axis=0))
    shares: Floats = powers / powers.sum(axis=0)
    return shares


def expected(scores: Floats, worth: Floats) -> Floats:
    """Σ_k p_k worth_k, p the softmax over the rows."""
    totals = np.zeros(scores.shape[1])
    for share, value in zip(softmax(scores), worth, strict=True):
        totals += share * value
    return totals
