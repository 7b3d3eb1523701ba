"""RankCosine: the angle between gains and scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from podium.core.array_types import Floats
from podium.objectives.list_loss import ListLoss, Lists, require_labels_up_to
from podium.objectives.registry import register


@register
@dataclass(frozen=True)
class RankCosine(ListLoss):
    """C = ½ (1 − cos(g, s)), g the gains 2^l − 1 less their mean in the list (Qin et al., IP&M 2008).

    Where all scores are 0 the angle is not defined; there λ points along the gains. The hessian changes its sign: use
    the gradient step.

    Example:
        >>> import numpy as np, podium
        >>> from podium.objectives import RankCosine
        >>> data = podium.RankingData([[0.0], [1.0]], [0, 1], qid=["a", "a"])
        >>> RankCosine().bind(data).gradients(np.zeros(2))[0].round(4).tolist()
        [-0.3536, 0.3536]

    """

    labels: str = "relevance"
    has_hessian = False
    no_hessian_because = "the hessian of a cosine changes its sign"

    def prepare(self, lists: Lists) -> None:  # noqa: D102
        require_labels_up_to(self, lists, 50.0)

    def of_lists(self, lists: Lists, scores: Floats, iteration: int) -> tuple[Floats, Floats]:  # noqa: D102
        d = lists.weights
        gains = np.exp2(lists.labels) - 1.0
        total = lists.sums(d)
        gains -= lists.sums(d * gains) / np.where(total > 0, total, 1.0)
        gain_length, square = np.sqrt(lists.sums(d * gains * gains)), lists.sums(d * scores * scores)
        along = lists.sums(d * gains * scores)
        with np.errstate(divide="ignore", invalid="ignore"):
            turned = 0.5 * d * (gains - along / square * scores) / (gain_length * np.sqrt(square))
            straight = 0.5 * d * gains / gain_length
        gradients = np.where(square > 0, turned, straight)
        lowest, highest = (f.reduceat(lists.labels, lists.offsets)[lists.list_of] for f in (np.minimum, np.maximum))
        return np.where(lowest < highest, gradients, 0.0), np.zeros(len(d))
