"""A tree as flat arrays."""

from __future__ import annotations

from dataclasses import dataclass

from podium.core.array_types import Bools, Float32s, Floats, Int32s, Ints


@dataclass(frozen=True)
class Tree:
    """Nodes and leaves; node 0 is the root, and a child below 0 is the leaf ~child. A stump of one leaf has no node.

    Attributes:
        feature: the feature that each node tests.
        threshold: x ≤ threshold goes left.
        missing_left: whether missing values go left.
        category: for a categorical node the number of its entry in `categories`, else −1. Values in that entry go
            left; all others, including missing and unknown ones, go right.
        left, right: the children.
        gain: by how much each split raised the score (`splitting`).
        count: the number of training documents that reached each node.
        leaf_value, leaf_count: the value of each leaf, and its number of training documents.
        categories: sets of values that go left.

    """

    feature: Int32s
    threshold: Float32s
    missing_left: Bools
    category: Int32s
    left: Int32s
    right: Int32s
    gain: Floats
    count: Ints
    leaf_value: Floats
    leaf_count: Ints
    categories: tuple[Float32s, ...] = ()

    @property
    def n_leaves(self) -> int:
        """The number of leaves."""
        return len(self.leaf_value)
