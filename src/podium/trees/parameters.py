"""The parameters of growth."""

from __future__ import annotations

from typing import Literal

from podium.core import hyperparameters as h
from podium.core.parameters import settings

SplitMode = Literal["newton", "least-squares"]


@settings
class GrowthParameters:
    """How trees are grown.

    Args:
        monotone: for each feature +1 (the score may not fall as the feature grows), −1, or 0.

    Example:
        >>> GrowthParameters(n_leaves=1)
        Traceback (most recent call last):
        podium.errors.DataError: n_leaves must be a whole number from 2, but is 1

    """

    n_leaves: int = h.N_LEAVES(31)
    max_depth: int | None = h.MAX_DEPTH(None)
    min_documents_in_leaf: int = h.MIN_DOCUMENTS_IN_LEAF(1)
    split: SplitMode = h.SPLIT("newton")
    l2: float = h.L2(0.0)
    monotone: tuple[int, ...] | None = None
    min_documents_to_split: int = h.MIN_DOCUMENTS_TO_SPLIT(2)
