"""DCG, NDCG, and NDCG on clicks."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Floats, Ints
from podium.errors import DataError
from podium.measures.base import Example
from podium.measures.discounted import Discounted, discounted_sums
from podium.measures.gains import Gain, highest_label
from podium.measures.ranking import for_queries, in_descending_order
from podium.measures.registry import register

if TYPE_CHECKING:
    from podium.data import RankingData

EXPONENTIAL = Gain()  # 2^l − 1
CLICK_GAIN = Gain(scale=4.0)  # 2^{4c} − 1
_LOG3 = math.log2(3)


@register
@dataclass(frozen=True)
class DCG(Discounted):
    """Discounted cumulative gain: DCG@T = Σ_{r≤T} (2^{l(r)} − 1) / log2(1 + r).

    Järvelin and Kekäläinen 2002, with the gain of Burges et al. 2005.

    Args:
        gain: `exponential` (2^l − 1), `exponential:SCALE` (2^{scale·l} − 1), `linear`, or `table:G0/G1/…`.
        discount: `log2`, or `letor` as LETOR's scripts have it: 1, 1, 1/log2 3, 1/log2 4, …

    Example:
        >>> from podium import DCG
        >>> DCG().value([3, 0, 2])
        8.5

    """

    _: KW_ONLY
    gain: Gain | str = EXPONENTIAL
    discount: Literal["log2", "letor"] = "log2"

    name: ClassVar[str] = "dcg"
    examples: ClassVar[tuple[Example, ...]] = (
        Example("dcg", (3, 0, 2), 7 + 3 / 2),
        Example("dcg@2", (3, 1, 2), 7 + 1 / _LOG3),
        Example("dcg(gain=linear)", (3, 0, 2), 3 + 2 / 2),
        Example("dcg(gain=table:0/5/1)", (1, 2), 5 + 1 / _LOG3),
        Example("dcg(discount=letor)", (1, 1, 1, 1), 1 + 1 + 1 / _LOG3 + 1 / 2),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "gain", Gain.of(self.gain))
        if self.discount not in ("log2", "letor"):
            raise DataError(f"discount must be 'log2' or 'letor', not {self.discount!r}")

    def gains(self, labels: NDArray[Any]) -> Floats:
        """The gain of each label."""
        assert isinstance(self.gain, Gain)
        return self.gain(labels)

    def power(self, *data: RankingData) -> float:
        """The highest label times the scale, for exponential gains."""
        assert isinstance(self.gain, Gain)
        return self.gain.scale * highest_label(self.labels, *data) if self.gain.kind == "exponential" else 0.0

    def discounts(self, depth: int) -> Floats:
        """1/log2(1 + r), or LETOR's."""
        ranks = np.arange(1, self._depth(depth) + 1)
        return 1.0 / np.log2(1.0 + ranks if self.discount == "log2" else np.maximum(ranks, 2))


@register
@dataclass(frozen=True)
class NDCG(DCG):
    """NDCG@T = DCG@T / the ideal DCG@T, the best that the query's documents allow; 1 is perfect ([B] §3).

    Args:
        short: what a query with fewer documents than the cutoff gets: `count`, its NDCG, or `zero`, as the
            script of LETOR 4 has it.

    Example:
        >>> from podium import NDCG
        >>> round(NDCG(10).value([0, 2, 1]), 4)
        0.659

    """

    _: KW_ONLY
    short: Literal["count", "zero"] = "count"

    name: ClassVar[str] = "ndcg"
    examples: ClassVar[tuple[Example, ...]] = (
        Example("ndcg", (2, 1, 1, 0), 1.0),
        Example("ndcg", (1, 2, 1, 0), (1 + 3 / _LOG3 + 1 / 2) / (3 + 1 / _LOG3 + 1 / 2)),
        Example("ndcg@1", (1, 2), 1 / 3),
        Example("ndcg(short=zero)@3", (1, 0), 0.0),
        Example("ndcg(short=zero)@2", (1, 0), 1.0),
        Example("ndcg", (math.nan, 1), 1 / _LOG3),
        Example("ndcg(ties=expected)", (1, 0), (1 + 1 / _LOG3) / 2, scores=(5, 5)),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.short not in ("count", "zero"):
            raise DataError(f"short must be 'count' or 'zero', not {self.short!r}")

    def norms(self, gains: Floats, offsets: Ints, sizes: Ints) -> Floats:
        """The ideal DCG of each query (infinite where short queries count as zero)."""
        best = np.empty(len(offsets) - 1)
        discounts = self.discounts(int(np.diff(offsets).max(initial=0)))
        ideal = in_descending_order(gains, offsets)
        for_queries(offsets, lambda part, q: discounted_sums(ideal, ideal, part, discounts, False, best[q]))
        if self.short == "zero" and self.cutoff is not None:
            return np.where(sizes < self.cutoff, np.inf, best)
        return best


@register
@dataclass(frozen=True)
class CNDCG(NDCG):
    """NDCG on click labels c in [0, 1] with the gain 2^{4c} − 1, 4 the highest human label ([S] eq. 9).

    Example:
        >>> from podium import CNDCG
        >>> str(CNDCG(3)), CNDCG(3).labels
        ('cndcg@3', 'clicks')

    """

    _: KW_ONLY
    labels: str = "clicks"
    gain: Gain | str = CLICK_GAIN

    name: ClassVar[str] = "cndcg"
    examples: ClassVar[tuple[Example, ...]] = (Example("cndcg", (0.5, 1.0), (3 + 15 / _LOG3) / (15 + 3 / _LOG3)),)
