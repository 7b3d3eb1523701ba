"""The parameters of growth."""

from __future__ import annotations

from typing import Literal

from podium.core import hyperparameters as h
from podium.core.parameters import settings
from podium.trees.growth_types import GrowthLimits

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

    n_leaves: int = h.N_LEAVES()
    max_depth: int | None = h.MAX_DEPTH()
    min_documents_in_leaf: int = h.MIN_DOCUMENTS_IN_LEAF()
    split: SplitMode = h.SPLIT()
    l2: float = h.L2()
    monotone: tuple[int, ...] | None = None
    min_documents_to_split: int = h.MIN_DOCUMENTS_TO_SPLIT()

    def limits(self, n_leaves: int, weight_unit: float) -> GrowthLimits:
        """Return what the kernels take: how far to grow, with l2 in units of the packed weights.

        Args:
            n_leaves: how many leaves the data allows at most.
            weight_unit: the weight that one unit of the packed words stands for.

        """
        return GrowthLimits(
            n_leaves=n_leaves,
            max_depth=-1 if self.max_depth is None else self.max_depth,
            min_documents=self.min_documents_in_leaf,
            min_documents_to_split=self.min_documents_to_split,
            l2=self.l2 / weight_unit if self.split == "newton" else 0.0,
        )
