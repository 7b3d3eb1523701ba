"""Validation data of a linear training run."""

from __future__ import annotations

import numpy as np

from podium.data import RankingData
from podium.measures import Graded, Measure, Ranking, as_selection
from podium.models import LinearModel


class History:
    """What was measured on the evaluation sets after each step.

    Attributes:
        measures: those of the selection and those that are only watched, by name.
        values: their means after each step, by `set/measure`.
        best: the best step by the first set; None without one.

    """

    def __init__(
        self, selection: Measure | Graded | str, watched: tuple[Measure, ...], train: RankingData,
        sets: dict[str, RankingData],
    ) -> None:  # fmt: skip
        self.selection, self.sets = as_selection(selection), sets
        shown = dict.fromkeys((*self.selection.measures, *watched))
        self.measures = {str(m): m.fixed(train, *sets.values()) for m in shown}
        self.values: dict[str, list[float]] = {f"{name}/{shown}": [] for name in sets for shown in self.measures}
        self.best: int | None = None

    def add(self, model: LinearModel) -> dict[str, float]:
        """Measure a model, and pick the best step so far; the means."""
        for name, data in self.sets.items():
            ranking = Ranking(data, model._predict_rows(data.features))
            for shown, measure in self.measures.items():
                self.values[f"{name}/{shown}"].append(measure.mean(ranking))
        if self.sets:
            first = next(iter(self.sets))
            columns = [self.values[f"{first}/{measure}"] for measure in self.selection.measures]
            self.best = self.selection.pick(np.column_stack(columns))
        return {key: values[-1] for key, values in self.values.items()}
