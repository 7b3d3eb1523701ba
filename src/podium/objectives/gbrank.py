"""GBRank: boosted regression on the score of the other document of each misranked pair."""

from __future__ import annotations

from dataclasses import dataclass

from podium.core.array_types import Floats
from podium.core.validation import require_number
from podium.data import RankingData
from podium.objectives.base import BoundObjective, CompositeObjective, LossTerm, register, require_source
from podium.objectives.links import SquaredHinge
from podium.objectives.pairwise import Pairwise


@register
@dataclass(frozen=True)
class GBRank(CompositeObjective):
    """GBRank (Zheng, Chen, Sun and Zha 2007, algorithm 1) for boosted trees.

    For each pair i ▷ j with h(i) < h(j) + m, a regression tree g has the targets h(j) + m for i and h(i) − m for j. It
    joins the average h_k = (k h_{k−1} + η g_k) / (k + 1). So (k + 1) h_k, which ranks like h_k, is a sum of trees times
    the learning rate η, and Podium computes this sum. With the λ and w of `Pairwise(SquaredHinge(m))`, w is the number
    of misranked pairs of a document, and h + λ/w the mean of its targets. A tree fitted to these means with weights w
    has the Newton splits and values of the gradient λ + w h, without L2:

        LambdaMART(objective="gbrank(1.0)", learning_rate=1.0, l2=0.0, split_fraction=1.0)

    The average already slows training down, so η should be about 1.

    `Pairwise(SquaredHinge(m))` has the same cost without the average, and also trains linear models and nets.

    Args:
        margin: m; τ in the paper.
        labels: the label source.

    Example:
        >>> import podium
        >>> data = podium.artificial(20, features=4)
        >>> podium.LambdaMART(2, 4, objective="gbrank(margin=0.5)", l2=0.0).fit(data).n_trees_
        2

    """

    margin: float = 1.0
    labels: str = "relevance"

    def __post_init__(self) -> None:
        require_number("margin", self.margin, above=0)
        require_source(self.labels)
        object.__setattr__(self, "pairs", Pairwise(SquaredHinge(self.margin), self.labels))

    def bind(self, data: RankingData) -> BoundObjective:
        [pairs] = self._inner()
        return _BoundGBRank(pairs.bind(data))


class _BoundGBRank(BoundObjective):
    def __init__(self, pairs: BoundObjective) -> None:
        self.pairs = pairs

    def gradients(self, scores: Floats, iteration: int = 0) -> tuple[Floats, Floats]:
        """Return λ + w h and w, where h is the scores divided by one more than the number of trees."""
        self.pairs.team = self.team
        averages = scores / (iteration + 1)
        gradients, hessians = self.pairs.gradients(averages, iteration)
        return gradients + hessians * averages, hessians

    def loss_terms(self, scores: Floats, iteration: int = 0) -> list[LossTerm]:
        """Return the cost of the pairs, whose slope is λ before the scores are averaged."""
        self.pairs.team = self.team
        return self.pairs.loss_terms(scores / (iteration + 1), iteration)
