"""Measures for incomplete judgements: judged@k, bpref, inferred AP."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Floats, Ints
from podium.measures.base import Example
from podium.measures.binary import Binary
from podium.measures.discounted import Discounted
from podium.measures.ranking import labels_in_order
from podium.measures.registry import register

if TYPE_CHECKING:
    from podium.data import RankingData

EPSILON = 1e-5  # as in trec_eval; it makes the share of zero documents 1/2


@register
@dataclass(frozen=True)
class Judged(Discounted):
    """The share of the first k documents that have a label.

    judged@k = (1 / min(k, n)) Σ_{r≤k} [the document at r has a label], where n documents are ranked, as in ir_measures.
    It shows how far other measures can be trusted. It does not measure quality, so it cannot be trained on.

    Args:
        cutoff: k; None for the number of ranked documents.

    Example:
        >>> from podium.measures import Judged
        >>> Judged(2).value([1, float("nan"), 0])
        0.5

    """

    name: ClassVar[str] = "judged"
    needs_cutoff: ClassVar[bool] = True
    has_swaps: ClassVar[bool] = False
    examples: ClassVar[tuple[Example, ...]] = (
        Example("judged@2", (1, math.nan, 0), 1 / 2),
        Example("judged@4", (0, math.nan), 1 / 2),
        Example("judged@1", (1, math.nan, 0), 2 / 3, scores=(1, 1, 1)),
    )

    def gains(self, labels: NDArray[Any]) -> Floats:
        return (~np.isnan(np.asarray(labels, np.float64))).astype(np.float64)

    def discounts(self, depth: int) -> Floats:
        return np.ones(self._depth(depth))

    def norms(self, gains: Floats, offsets: Ints, sizes: Ints) -> Floats:
        return np.maximum(sizes if self.cutoff is None else np.minimum(sizes, self.cutoff), 1.0)


@dataclass(frozen=True)
class PooledMeasure(Binary):
    """A measure that distinguishes documents without a judgement from those judged not relevant.

    A negative label means that a document was in the pool, but was not judged. TREC judgements with negative labels
    are in the source `relevance_pool`; other measures see 0 in its place (`podium.evaluation.trec`).
    """

    has_cutoff: ClassVar[bool] = False
    knows_retrieved: ClassVar[bool] = True

    def labels_in(self, data: RankingData, order: Ints) -> NDArray[Any]:
        pool = f"{self.labels}_pool"
        return labels_in_order(data, pool if pool in data.labels else self.labels, order)

    def prepared(self, labels: NDArray[Any]) -> Floats:
        """Return labels unchanged: a missing label is not 0."""
        return np.asarray(labels, np.float64)

    def value(self, labels: Floats) -> float:
        return self._value_of_run(np.asarray(labels, np.float64), len(labels))

    def not_relevant(self, labels: Floats) -> Floats:
        """Return 1 for documents that were judged not relevant."""
        return ((labels >= 0) & (labels < self.threshold)).astype(np.float64)


@register
@dataclass(frozen=True)
class Bpref(PooledMeasure):
    """Binary preference: how few documents judged not relevant rank above relevant ones.

    bpref = (1/R) Σ_r rel_r (1 − min(n_r, R) / min(N, R)), where n_r of the N documents judged not relevant are above
    rank r, and R documents are relevant. Unjudged documents are ignored. Buckley and Voorhees 2004, as in trec_eval.

    Args:
        threshold: a document is relevant if its label is at least this.

    Example:
        >>> from podium.measures import Bpref
        >>> Bpref().value([float("nan"), 1, 0, 1, 0])
        0.75

    """

    name: ClassVar[str] = "bpref"
    examples: ClassVar[tuple[Example, ...]] = (
        Example("bpref", (math.nan, 1, 0, 1, 0), (1 + 1 / 2) / 2),
        Example("bpref", (0, 0, 1), 0.0),
        Example("bpref", (-1, 1, math.nan), 1.0),
    )

    def _value_of_run(self, labels: Floats, n_ranked: int) -> float:
        relevant, worse = self.relevant(labels), self.not_relevant(labels)
        n_relevant = relevant.sum()
        above = np.minimum(np.cumsum(worse), n_relevant)[:n_ranked]
        shares = above / max(min(worse.sum(), n_relevant), 1.0)
        return float(np.sum(relevant[:n_ranked] * (1.0 - shares)) / n_relevant)


@register
@dataclass(frozen=True)
class InferredAP(PooledMeasure):
    """An estimate of average precision if only some of the pooled documents were judged.

    infAP = (1/R) Σ_r rel_r (1/r + (p_r / r) (c_r + ε) / (c_r + n_r + 2ε)), where p_r documents of the pool, c_r
    relevant ones and n_r judged not relevant are above rank r. Documents with a negative label are in the pool but were
    not judged; unlabelled ones are not in the pool. Yilmaz and Aslam 2006, with ε = 0.00001 as in trec_eval.

    Args:
        threshold: a document is relevant if its label is at least this.

    Example:
        >>> from podium.measures import InferredAP
        >>> round(InferredAP().value([1, -1, 1]), 4)  # the pooled document counts as relevant as those judged
        1.0

    """

    name: ClassVar[str] = "infap"
    examples: ClassVar[tuple[Example, ...]] = (
        Example("infap", (1, 0, 1), (1 + 1 / 3 + 2 / 3 * (1 + EPSILON) / (2 + 2 * EPSILON)) / 2),
        Example("infap", (-1, 1), 1 / 2 + 1 / 2 * 1 / 2),
        Example("infap", (math.nan, 1), 1 / 2),
    )

    def _value_of_run(self, labels: Floats, n_ranked: int) -> float:
        relevant, worse = self.relevant(labels), self.not_relevant(labels)
        pooled = (~np.isnan(labels)).astype(np.float64)
        good, bad, seen = (np.cumsum(column) - column for column in (relevant, worse, pooled))
        ranks = np.arange(1.0, len(labels) + 1.0)
        precisions = 1.0 / ranks + seen / ranks * (good + EPSILON) / (good + bad + 2 * EPSILON)
        return float(np.sum((relevant * precisions)[:n_ranked]) / relevant.sum())
