"""RankNet's objective, and other costs of plain pairs."""

from __future__ import annotations

from dataclasses import dataclass, field

from podium.errors import DataError
from podium.objectives.base import register, require_source
from podium.objectives.links import CrossEntropy, Link
from podium.objectives.pair_terms import PairTerm, require_flag


@register
@dataclass(frozen=True)
class Pairwise(PairTerm):
    """All pairs with different labels, each weighing 1: RankNet's objective ([B] §2), or another link's.

    Args:
        link: `CrossEntropy()` is RankNet's, `Hinge()` RankSVM's, `SquaredHinge()` GBRank's, `Fidelity()` FRank's.
        labels: the label source.
        normalize: see `PairTerm`.

    Example:
        >>> import numpy as np, podium
        >>> from podium.objectives import Pairwise
        >>> data = podium.RankingData([[0.0], [1.0]], [0, 1], qid=["a", "a"])
        >>> Pairwise().bind(data).gradients(np.zeros(2))[0].tolist()
        [-0.5, 0.5]

    """

    link: Link = field(default_factory=CrossEntropy)
    labels: str = "relevance"
    normalize: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.link, Link):
            raise DataError(f"link must be a link such as CrossEntropy() or Hinge(), not {self.link!r}")
        require_flag(self.normalize)
        require_source(self.labels)
