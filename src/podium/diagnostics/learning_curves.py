"""Observers of curves by iteration: measures, agreement of objectives, weights of a line search."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.core.array_types import Floats, Ints
from podium.core.plotting import draw
from podium.diagnostics.lambdas import as_objective, bind_for_diagnosis, objective_of
from podium.diagnostics.watching import ByIteration, TrainingObserver, TrainingRound
from podium.errors import DataError
from podium.measures import BoundMeasures, Measure, as_measure, as_watched
from podium.objectives import Objective, PairFilter, PairTerm
from podium.objectives.base import label_source, labels_of


@dataclass(frozen=True, eq=False)
class MeasureCurves(ByIteration):
    """Means of measures by iteration.

    Attributes:
        iterations: the observed iterations.
        means: the means by `set/measure`; the set `train` is the training data.

    Example:
        >>> import podium
        >>> from podium.diagnostics import WatchMeasures
        >>> data, watch = podium.artificial(30, features=4), WatchMeasures()
        >>> _ = podium.LambdaMART(3, 4).fit(data, valid=data, observers=[watch])
        >>> list(watch.result().means)
        ['train/ndcg@10', 'valid/ndcg@10']

    """

    means: dict[str, Floats]

    def columns(self) -> dict[str, Floats]:
        return self.means

    def plot(self) -> Any:
        by_round = {name: np.full(self.iterations.max(initial=-1) + 1, np.nan) for name in self.means}
        for name, column in by_round.items():
            column[self.iterations] = self.means[name]
        return draw("history", {name: column.tolist() for name, column in by_round.items()})


class WatchMeasures(TrainingObserver):
    """An observer that measures the training data in addition to the validation data ([W] fig. 3).

    Where the two curves separate, the model begins to overfit. Its records in `history_` are `train/MEASURE`.

    Args:
        measures: names or values; by default those of the validation data, else NDCG@10.
        every: the number of rounds between records; see `TrainingObserver`.

    Example:
        >>> import podium
        >>> from podium.diagnostics import WatchMeasures
        >>> model = podium.LambdaMART(2, 4)
        >>> list(model.fit(podium.artificial(20, features=4), observers=[WatchMeasures(["ndcg@3", "ap"])]).history_)
        ['train/ndcg@3', 'train/ap']

    """

    def __init__(self, measures: Any = None, *, every: int | None = None) -> None:
        super().__init__(every)
        self.measures: tuple[Measure, ...] | None = None if measures is None else as_watched(measures)
        if self.measures is not None and not self.measures:
            raise DataError("pass at least one measure, for example 'ndcg@10'")

    def _begin(self, round_: TrainingRound) -> None:
        measures = self.measures
        if measures is None:
            validated = dict.fromkeys(map(_measure_in, round_.means))
            measures = tuple(measure for measure in validated if measure is not None) or (as_measure("ndcg@10"),)
        fixed = {f"train/{measure}": measure.fixed(round_.data) for measure in measures}
        self._bound = BoundMeasures(round_.data, {name: m for name, m in fixed.items() if name not in round_.means})

    def _observe(self, round_: TrainingRound) -> dict[str, float]:
        return self._bound.means(round_.document_scores) | round_.means

    def _records(self, name: str) -> bool:
        data_set, slash, measure = name.partition("/")
        is_watched = self.measures is None or data_set != "train" or measure in map(str, self.measures)
        return bool(slash) and is_watched

    def _of_columns(self, iterations: Ints, columns: dict[str, Floats]) -> MeasureCurves:
        return MeasureCurves(iterations, columns)


def _measure_in(name: str) -> Measure | None:
    """Return the measure of a name `set/measure` of a history; None for other names."""
    with suppress(DataError):
        return as_measure(name.partition("/")[2])
    return None


NAMES = ("agreement: all pairs", "agreement: restricted pairs")


@dataclass(frozen=True, eq=False)
class Agreement(ByIteration):
    """The share of documents on which two objectives agree, by iteration.

    They agree if λ^(L) and λ^(C) have the same sign, or λ^(C) = 0.

    Attributes:
        iterations: the observed iterations.
        other: the objective of λ^(C).
        all_pairs: the share with λ^(C) over all pairs whose labels differ.
        restricted: the share with λ^(C) over the pairs with equal labels in the source of λ^(L) and nonzero labels in
            that of λ^(C); NaN if λ^(C) is not a pair term.

    Example:
        >>> import podium
        >>> from podium.diagnostics import WatchAgreement
        >>> data = podium.data.datasets.simulate_clicks(podium.artificial(40, features=5))
        >>> watch = WatchAgreement("lambda(cndcg)", every=2)
        >>> _ = podium.LambdaMART(5, 4).fit(data, observers=[watch])
        >>> bool((watch.result().restricted > watch.result().all_pairs).all())
        True

    """

    other: str
    all_pairs: Floats
    restricted: Floats

    chart = "agreement"

    def columns(self) -> dict[str, Floats]:
        return {"all pairs": self.all_pairs, "restricted pairs": self.restricted}


class WatchAgreement(TrainingObserver):
    """An observer that compares λ of the training objective with λ of another objective ([S] fig. 2).

    The other objective does not affect training. Its records in `history_` are `agreement: all pairs` and
    `agreement: restricted pairs`, shares of the training documents.

    Args:
        other: the objective of λ^(C).
        objective: the objective of λ^(L); by default the objective of training. λ are those at the scores after the
            round.
        every: the number of rounds between records; see `TrainingObserver`.

    Example:
        >>> import podium
        >>> from podium.diagnostics import WatchAgreement
        >>> data = podium.data.datasets.simulate_clicks(podium.artificial(20, features=4))
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
        self._bound, self._others = bind_for_diagnosis(objective, data), [bind_for_diagnosis(self.other, data)]
        source = label_source(objective)
        if isinstance(self.other, PairTerm) and source is not None:
            if source == self.other.labels:
                raise DataError(f"other: both objectives have the labels {source!r}; pass one of another label source")
            equal_labels = PairFilter(labels_of(data, source, objective), nonzero=True)
            self._others.append(self.other.measuring(data).bind_among(data, equal_labels))

    def _observe(self, round_: TrainingRound) -> dict[str, float]:
        signs = np.sign(self._bound.gradients(round_.document_scores, round_.iteration)[0])
        shares = []
        for other in self._others:
            lambdas = other.gradients(round_.document_scores, round_.iteration)[0]
            shares.append(float(((np.sign(lambdas) == signs) | (lambdas == 0)).mean()))
        return dict(zip(NAMES, [*shares, math.nan][:2], strict=True))

    def _records(self, name: str) -> bool:
        return name in NAMES

    def _of_columns(self, iterations: Ints, columns: dict[str, Floats]) -> Agreement:
        return Agreement(iterations, self.name, *(columns[name] for name in NAMES))


@dataclass(frozen=True, eq=False)
class LineSearchWeights(ByIteration):
    """The weight α of each tree.

    Attributes:
        iterations: the observed iterations.
        weights: α, the exact best weight of each tree by the measure.

    Example:
        >>> import podium
        >>> from podium.diagnostics import WatchLineSearch
        >>> watch = WatchLineSearch()
        >>> _ = podium.LambdaMART(3, 4, step="line-search").fit(podium.artificial(20, features=4), observers=[watch])
        >>> watch.result().weights.shape
        (3,)

    """

    weights: Floats

    chart = "line_search"

    def columns(self) -> dict[str, Floats]:
        return {"α": self.weights}


class WatchLineSearch(TrainingObserver):
    """An observer that records the weight α of each tree from the line search ([W] fig. 4).

    A small weight means that a tree gains little. Without a line search every weight is 1. Its record in `history_` is
    `alpha`.

    Args:
        every: the number of rounds between records; see `TrainingObserver`.

    Example:
        >>> import podium
        >>> from podium.diagnostics import WatchLineSearch
        >>> model = podium.LambdaMART(2, 4).fit(podium.artificial(20, features=4), observers=[WatchLineSearch()])
        >>> model.history_
        {'alpha': [1.0, 1.0]}

    """

    def _begin(self, round_: TrainingRound) -> None:
        if len(getattr(round_, "trees", ())) != 1:
            raise DataError("WatchLineSearch needs a model with one tree per round: LambdaMART, RankNetTrees or MART")

    def _observe(self, round_: TrainingRound) -> dict[str, float]:
        weights: tuple[float, ...] = round_.weights  # type: ignore[attr-defined]
        return {"alpha": float(weights[0])}

    def _records(self, name: str) -> bool:
        return name == "alpha"

    def _of_columns(self, iterations: Ints, columns: dict[str, Floats]) -> LineSearchWeights:
        return LineSearchWeights(iterations, columns["alpha"])
