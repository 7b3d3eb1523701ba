"""The parameters of tree growth."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from podium.core import hyperparameters as h
from podium.core.choices import SplitMode
from podium.core.parameters import settings
from podium.errors import DataError
from podium.trees.growth_types import GrowthLimits

if TYPE_CHECKING:
    from podium.trees.quantization import QuantizedGradients

ROUNDING = 1e-3  # a leaf may have this share less than the minimum hessian, because hessians are rounded to integers


@settings
class GrowthParameters:
    """The parameters of tree growth.

    Args:
        monotone: for each feature +1 (the score must not fall as the feature grows), −1 (it must not rise), or 0.
        interaction_constraints: groups of features, by number. All features on a path from the root to a leaf are in
            one group.

    """

    n_leaves: int = h.N_LEAVES()
    max_depth: int | None = h.MAX_DEPTH()
    min_documents_in_leaf: int = h.MIN_DOCUMENTS_IN_LEAF()
    min_hessian_in_leaf: float = h.MIN_HESSIAN_IN_LEAF()
    min_gain_to_split: float = h.MIN_GAIN_TO_SPLIT()
    split: SplitMode = h.SPLIT()
    l1: float = h.L1()
    l2: float = h.L2()
    symmetric: bool = h.SYMMETRIC()
    feature_fraction_per_node: float = h.FEATURE_FRACTION_PER_NODE()
    monotone: tuple[int, ...] | None = None
    interaction_constraints: tuple[tuple[int, ...], ...] | None = None
    # only Additive Groves set this (`boosting.groves`)
    min_documents_to_split: int = h.MIN_DOCUMENTS_TO_SPLIT()

    def __post_init__(self) -> None:
        if self.min_hessian_in_leaf and self.split == "least-squares":
            raise DataError(
                f"min_hessian_in_leaf={self.min_hessian_in_leaf} needs splits by hessians (split='newton', and a step "
                "that uses hessians), but these are by least squares: use min_documents_in_leaf"
            )

    @property
    def is_common(self) -> bool:
        """Whether these trees grow by the kernel that most runs need, which another process compiles on a first run."""
        return not (self.symmetric or self.l1 or self.interaction_constraints) and self.feature_fraction_per_node == 1

    def limits(self, n_leaves: int, gradients: QuantizedGradients) -> GrowthLimits:
        """Return the limits of growth for kernels, in units of the packed gradients and weights.

        Args:
            n_leaves: the maximum number of leaves that the data allows.
            gradients: the gradients, which define the units.

        """
        depth = -1 if self.max_depth is None else self.max_depth
        if self.symmetric:  # all leaves of a level, or none
            depth = n_leaves.bit_length() - 1 if self.max_depth is None else min(depth, n_leaves.bit_length() - 1)
        gradient_unit, weight_unit, is_newton = gradients.gradient_unit, gradients.weight_unit, self.split == "newton"
        lightest = min((1.0 - ROUNDING) * self.min_hessian_in_leaf / weight_unit, 2.0**32)  # no leaf weighs as much
        return GrowthLimits(
            n_leaves=n_leaves,
            max_depth=depth,
            min_documents=self.min_documents_in_leaf,
            min_documents_to_split=self.min_documents_to_split,
            l2=self.l2 / weight_unit if is_newton else 0.0,
            min_weight=self.min_documents_in_leaf if gradients.counts_documents else max(1, math.ceil(lightest)),
            min_gain=self.min_gain_to_split / gradient_unit * weight_unit / gradient_unit,
            l1=self.l1 / gradient_unit if is_newton and self.l1 else None,
        )
