"""Measures of training and validation data while a model learns ([W] fig. 3, [S] fig. 4)."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.core.array_types import Floats, Ints
from podium.core.plotting import draw
from podium.diagnostics.watching import ByIteration, TrainingObserver, TrainingRound
from podium.errors import DataError
from podium.measures import BoundMeasures, Measure, as_measure, as_watched


@dataclass(frozen=True, eq=False)
class MeasureCurves(ByIteration):
    """Means of measures by iteration.

    Attributes:
        iterations: that were looked at.
        means: by `set/measure`; the set `train` is the training data.

    Example:
        >>> import podium
        >>> from podium.diagnostics import WatchMeasures
        >>> train, valid = podium.artificial(30, features=4), podium.artificial(20, features=4, part="valid")
        >>> watch = WatchMeasures()
        >>> model = podium.LambdaMART(3, 4).fit(train, valid=valid, observers=[watch])
        >>> list(watch.result().means)
        ['train/ndcg@10', 'valid/ndcg@10']

    """

    means: dict[str, Floats]

    def columns(self) -> dict[str, Floats]:
        """The means."""
        return self.means

    def plot(self) -> Any:
        """The means by iteration."""
        n_rounds = int(self.iterations[-1]) + 1 if len(self.iterations) else 0
        by_round = {name: np.full(n_rounds, np.nan) for name in self.means}
        for name, column in by_round.items():
            column[self.iterations] = self.means[name]
        history = {name: column.tolist() for name, column in by_round.items()}
        return draw("history", history)


class WatchMeasures(TrainingObserver):
    """Measures the training data, too, beside the validation data ([W] fig. 3). In `history_`: `train/MEASURE`.

    Where the two curves part, the model begins to learn the training queries by heart.

    Args:
        measures: names or values; by default those that the validation data is measured by, or else NDCG@10.
        every: look at every so-manieth round; see `TrainingObserver`.

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
            raise DataError("measures must name a measure, such as 'ndcg@10'")

    def _begin(self, round_: TrainingRound) -> None:
        measures = self.measures
        if measures is None:
            known = dict.fromkeys(map(_measure_in, round_.means))
            measures = tuple(m for m in known if m is not None) or (as_measure("ndcg@10"),)
        fixed = {f"train/{measure}": measure.fixed(round_.data) for measure in measures}
        self._bound = BoundMeasures(round_.data, {name: m for name, m in fixed.items() if name not in round_.means})

    def _look(self, round_: TrainingRound) -> dict[str, float]:
        return self._bound.means(round_.document_scores) | round_.means

    def _is_mine(self, name: str) -> bool:
        data_set, slash, measure = name.partition("/")
        is_watched = self.measures is None or data_set != "train" or measure in map(str, self.measures)
        return bool(slash) and is_watched

    def _of_columns(self, iterations: Ints, columns: dict[str, Floats]) -> MeasureCurves:
        return MeasureCurves(iterations, columns)


def _measure_in(name: str) -> Measure | None:
    """The measure of a name `set/measure` of a history; None where it is the name of something else."""
    with suppress(DataError):
        return as_measure(name.partition("/")[2])
    return None
