"""Hinge losses as maxima of planes: RankSVM's pairs, and SVM-MAP.

Such a cost is C(s) = max_k (b_k − λ_k·s), which is convex. `podium.linear.CuttingPlanes` trains on it without a
hessian, from the planes that touch the cost at the scores of each step.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from podium.core.array_types import Bools, Floats, Ints
from podium.core.compiling import kernel
from podium.core.sums import total
from podium.core.validation import require_number
from podium.data import RankingData
from podium.objectives.base import BoundObjective, LossTerm, Objective, query_weights_of, register, require_source
from podium.objectives.links import Hinge, SquaredHinge
from podium.objectives.listwise import Lists
from podium.objectives.pairwise import Pairwise, Preferences


class BoundHinge(BoundObjective):
    """A maximum of planes, bound to data."""

    changes = False

    @abstractmethod
    def plane(self, scores: Floats) -> tuple[Floats, float]:
        """Return λ and b of the plane b − λ·s that touches the cost from below at these scores."""

    def gradients(self, scores: Floats, iteration: int = 0) -> tuple[Floats, Floats]:
        return self.plane(scores)[0], np.zeros(len(scores))


def is_hinge(objective: Objective) -> bool:
    """Return whether an objective is a maximum of planes, which `bind_hinge` accepts."""
    if isinstance(objective, Pairwise | Preferences):
        return isinstance(objective.link, Hinge) and not getattr(objective, "normalize", False)
    return isinstance(objective, SVMMAP)


def bind_hinge(objective: Objective, data: RankingData) -> BoundHinge:
    """Bind an objective to data, with access to its planes."""
    if isinstance(objective, SVMMAP):
        return objective.bind(data)
    assert isinstance(objective, Pairwise | Preferences)
    return PairHinge(objective, data)


class PairHinge(BoundHinge):
    """C = Σ max(0, m − (s_i − s_j)) over pairs: RankSVM (Joachims 2002).

    λ_ij is the pair's weight if s_i − s_j < m, else 0. So b of the touching plane is m times the sum of these weights.
    The hessians of the squared hinge provide that sum; they contain each weight twice, once per document.
    """

    def __init__(self, objective: Pairwise | Preferences, data: RankingData) -> None:
        assert isinstance(objective.link, Hinge)
        self.margin = objective.link.margin
        self.hinge = objective.bind(data)
        self.squared = replace(objective, link=SquaredHinge(self.margin)).bind(data)

    def plane(self, scores: Floats) -> tuple[Floats, float]:
        self.squared.team = self.team
        _, doubled_weights = self.squared.gradients(scores)
        return self.gradients(scores)[0], self.margin * total(doubled_weights) / 2

    def gradients(self, scores: Floats, iteration: int = 0) -> tuple[Floats, Floats]:
        self.hinge.team = self.team
        return self.hinge.gradients(scores, iteration)

    def loss_terms(self, scores: Floats, iteration: int = 0) -> list[LossTerm]:
        return self.hinge.loss_terms(scores, iteration)


@register
@dataclass(frozen=True)
class SVMMAP(Objective):
    """The structured SVM's bound on average precision: SVM-MAP (Yue, Finley, Radlinski and Joachims 2007; [W] §2).

    C = max_π (1 − AP(π) + F(s, π)) − F(s, π*), π over all orders of the R relevant and N other documents, π* an ideal
    one. F(s, π) = Σ ± (s_i − s_j) / (R N) over pairs of a relevant document i and another one j, + if π ranks i first.
    F is highest for the order by scores, so C ≥ 1 − AP there, and C is convex. λ = ∂F(s, π*) − ∂F(s, π̂): a relevant
    document gains 2 / (R N) for each irrelevant one above it in π̂, the order with the maximum. The search for π̂ is
    exact and takes O(R N).

    `LinearRanker` trains it by cutting planes. The hessian is 0, so trees need the gradient step. A query counts u_q
    times; document weights have no effect, as in measures.

    Args:
        threshold: a document is relevant if its label is at least this.
        labels: the label source.

    Example:
        >>> import numpy as np, podium
        >>> from podium.objectives import SVMMAP
        >>> data = podium.RankingData([[0.0], [1.0]], [0, 1], qid=["a", "a"])
        >>> SVMMAP().bind(data).gradients(np.zeros(2))[0].tolist()
        [-2.0, 2.0]

    """

    threshold: float = 1.0
    labels: str = "relevance"
    works_in_parts = True
    has_hessian = False
    no_hessian_because = "the hessian of SVM-MAP is zero"

    def __post_init__(self) -> None:
        require_number("threshold", self.threshold)
        require_source(self.labels)

    def bind(self, data: RankingData) -> BoundHinge:
        return _BoundSVMMAP(self, data)


class _BoundSVMMAP(BoundHinge):
    def __init__(self, objective: SVMMAP, data: RankingData) -> None:
        self.lists, self.n = Lists(data, objective.labels, objective), len(data)
        self.is_relevant = self.lists.labels >= objective.threshold
        self.query_weights = query_weights_of(data)[self.lists.queries]

    def plane(self, scores: Floats) -> tuple[Floats, float]:
        gradients, losses = self._of_lists(scores[self.lists.rows])
        result = np.zeros(self.n)
        result[self.lists.rows] = self.query_weights[self.lists.list_of] * gradients
        return result, total(self.query_weights * losses)

    def loss_terms(self, scores: Floats, iteration: int = 0) -> list[LossTerm]:
        scores = scores[self.lists.rows]
        gradients, losses = self._of_lists(scores)
        costs = losses - self.lists.totals(gradients * scores)
        return [LossTerm(1.0, self.query_weights * costs, query_weights_of(self.lists.data))]

    def _of_lists(self, scores: Floats) -> tuple[Floats, Floats]:
        """Return λ of each document and b of each list."""
        lists, gradients, losses = self.lists, np.zeros(len(scores)), np.zeros(len(self.lists.queries))
        order = np.lexsort((-scores, lists.list_of))  # stable: equal scores in the canonical order
        worst_for_ap(np.append(lists.offsets, len(scores)), order, self.is_relevant, scores, gradients, losses)
        return gradients, losses


@kernel
def worst_for_ap(
    offsets: Ints, order: Ints, is_relevant: Bools, scores: Floats, gradients: Floats, losses: Floats
) -> None:
    """Write λ and 1 − AP of the order π̂ that maximizes 1 − AP(π) + F(s, π) (Yue et al. 2007, algorithm 1).

    `order` sorts the documents of each list by descending score. In π̂, both the relevant and the other documents are
    sorted by score.
    Moving the j-th of the others from below the i-th relevant document to above it changes the value by
    i / (R (i + j) (i + j − 1)) − 2 (s_i − s_j) / (R N). So each of the others has its own best place, and these places
    keep the order of scores.
    """
    longest = 0
    for q in range(len(offsets) - 1):
        longest = max(longest, offsets[q + 1] - offsets[q])
    relevant, others = np.empty(longest, np.int64), np.empty(longest, np.int64)
    n_above: Any = np.empty(longest + 1, np.int64)
    for q in range(len(offsets) - 1):
        n_relevant = n_others = 0
        for k in range(offsets[q], offsets[q + 1]):
            if is_relevant[order[k]]:
                relevant[n_relevant] = order[k]
                n_relevant += 1
            else:
                others[n_others] = order[k]
                n_others += 1
        if n_relevant == 0 or n_others == 0:
            continue
        push = 2.0 / (n_relevant * n_others)
        n_above[: n_relevant + 1] = 0
        for j in range(1, n_others + 1):
            change, highest, place = 0.0, 0.0, n_relevant
            for i in range(n_relevant, 0, -1):
                loss = i / (n_relevant * float(i + j) * float(i + j - 1))
                change += loss - push * (scores[relevant[i - 1]] - scores[others[j - 1]])
                if change > highest:
                    highest, place = change, i - 1
            gradients[others[j - 1]] -= push * (n_relevant - place)
            n_above[place] += 1
        above, precision = 0, 0.0
        for i in range(1, n_relevant + 1):
            above += n_above[i - 1]
            gradients[relevant[i - 1]] += push * above
            precision += i / (i + above)
        losses[q] = 1.0 - precision / n_relevant
