"""The parameters of growth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from podium.core.validation import require_number, require_whole
from podium.errors import DataError

SplitMode = Literal["newton", "least-squares"]


@dataclass(frozen=True)
class GrowthParameters:
    """How trees are grown.

    Args:
        n_leaves: at most so many.
        max_depth: nodes on the way to a leaf, at most; None for no limit.
        min_documents_in_leaf: exactly counted.
        split: `"newton"` raises Σ G²/(H + l2) over the leaves, as LightGBM and XGBoost do; `"least-squares"`
            raises Σ G²/n, the papers' regression trees, in which the curvature plays no part in a split.
        l2: added to the curvature of a leaf.
        monotone: for each feature +1 (the score may not fall as the feature rises), −1, or 0.

    """

    n_leaves: int = 31
    max_depth: int | None = None
    min_documents_in_leaf: int = 1
    split: SplitMode = "newton"
    l2: float = 0.0
    monotone: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        require_whole("n_leaves", self.n_leaves, 2)
        require_whole("max_depth", self.max_depth, 1, optional=True)
        require_whole("min_documents_in_leaf", self.min_documents_in_leaf, 1)
        if self.split not in ("newton", "least-squares"):
            raise DataError(f"split must be 'newton' or 'least-squares', not {self.split!r}")
        require_number("l2", self.l2, least=0)
