"""Precision at a cutoff."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from podium.core.array_types import Floats, Ints
from podium.measures.base import Example
from podium.measures.binary import BinaryDiscounted
from podium.measures.registry import register


@register
@dataclass(frozen=True)
class Precision(BinaryDiscounted):
    """The share of relevant documents among the first k: P@k = (1/k) Σ_{r≤k} rel_r, also where there are fewer than k.

    Args:
        cutoff: k; None for the number of documents.
        threshold: a document is relevant if its label is at least this.

    Example:
        >>> from podium import Precision
        >>> Precision(5).value([1, 1, 0])
        0.4

    """

    name: ClassVar[str] = "precision"
    aliases: ClassVar[tuple[str, ...]] = ("p",)
    needs_cutoff: ClassVar[bool] = True
    examples: ClassVar[tuple[Example, ...]] = (
        Example("precision@3", (1, 0, 2, 1), 2 / 3),
        Example("precision@5", (1, 1), 2 / 5),
        Example("precision(ties=expected)@1", (1, 0, 0, 0), 1 / 4, scores=(1, 1, 1, 1)),
    )

    def norms(self, gains: Floats, offsets: Ints, sizes: Ints) -> Floats:
        """The cutoff, or the number of documents."""
        ranked = np.maximum(sizes, 1).astype(np.float64)
        return ranked if self.cutoff is None else np.full(len(ranked), float(self.cutoff))
