"""Do two label sources pull the same way? Agreement of two objectives' λ ([S] fig. 2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.core.array_types import Floats, Ints
from podium.core.plotting import draw
from podium.diagnostics.looking import as_objective, bind_to_look
from podium.diagnostics.shares import objective_of
from podium.diagnostics.watching import ByIteration, TrainingObserver, TrainingRound
from podium.errors import DataError
from podium.objectives import Objective, PairFilter, PairTerm
from podium.objectives.base import label_source, labels_of

NAMES = ("agreement: all pairs", "agreement: restricted pairs")


@dataclass(frozen=True, eq=False)
class Agreement(ByIteration):
    """The share of documents on which two objectives agree, by iteration.

    They agree where the signs of λ^(L) and λ^(C) are the same, or λ^(C) = 0.

    Attributes:
        iterations: that were looked at.
        other: the objective of λ^(C).
        all_pairs: with λ^(C) over all pairs whose labels differ.
        restricted: with λ^(C) over those pairs that have equal labels in the source of λ^(L), both labels of its own
            nonzero; NaN where λ^(C) is no pair term.

    Example:
        >>> import podium
        >>> from podium.diagnostics import WatchAgreement
        >>> data = podium.simulate_clicks(podium.artificial(40, features=5))
        >>> watch = WatchAgreement("lambda(cndcg)", every=2)
        >>> model = podium.LambdaMART(5, 4).fit(data, observers=[watch])
        >>> agreement = watch.result()
        >>> bool((agreement.restricted > agreement.all_pairs).all())
        True

    """

    other: str
    all_pairs: Floats
    restricted: Floats

    def columns(self) -> dict[str, Floats]:
        """Both shares."""
        return {"all pairs": self.all_pairs, "restricted pairs": self.restricted}

    def plot(self) -> Any:
        """The shares by iteration."""
        return draw("agreement", self)


class WatchAgreement(TrainingObserver):
    """Compares λ of what is trained on with λ of another objective, which has no part in training ([S] fig. 2).

    In `history_`: `agreement: all pairs` and `agreement: restricted pairs`, shares of the training documents.

    Args:
        other: the objective of λ^(C).
        objective: of λ^(L); what is trained on by default. λ are those at the scores after the round.
        every: look at every so-manieth round; see `TrainingObserver`.

    Example:
        >>> import podium
        >>> from podium.diagnostics import WatchAgreement
        >>> data = podium.simulate_clicks(podium.artificial(20, features=4))
        >>> model = podium.LambdaMART(2, 4).fit(data, observers=[WatchAgreement("lambda(cndcg)")])
        >>> list(model.history_)
        ['agreement: all pairs', 'agreement: restricted pairs']

    """

    usual = 50
    usual_elsewhere = 40

    def __init__(
        self,
        other: Objective | str = "lambda(cndcg)",
        objective: Objective | str | None = None,
        *,
        every: int | None = None,
    ) -> None:
        super().__init__(every)
        self.name, self.other = as_objective(other, "other")
        self.objective = None if objective is None else as_objective(objective)[1]

    def _begin(self, round_: TrainingRound) -> None:
        data, objective = round_.data, objective_of(self, round_)
        self._bound, self._others = bind_to_look(objective, data), [bind_to_look(self.other, data)]
        source = label_source(objective)
        if isinstance(self.other, PairTerm) and source is not None:
            if source == self.other.labels:
                raise DataError(f"other: both objectives have the labels {source!r}; give one of another label source")
            equal = PairFilter(labels_of(data, source, objective), nonzero=True)
            self._others.append(self.other.measuring(data).bind_among(data, equal))

    def _look(self, round_: TrainingRound) -> dict[str, float]:
        signs = np.sign(self._bound.gradients(round_.document_scores, round_.iteration)[0])
        shares = []
        for other in self._others:
            lambdas = other.gradients(round_.document_scores, round_.iteration)[0]
            shares.append(float(((np.sign(lambdas) == signs) | (lambdas == 0)).mean()))
        return dict(zip(NAMES, [*shares, math.nan][:2], strict=True))

    def _is_mine(self, name: str) -> bool:
        return name in NAMES

    def _of_columns(self, iterations: Ints, columns: dict[str, Floats]) -> Agreement:
        return Agreement(iterations, self.name, *(columns[name] for name in NAMES))
