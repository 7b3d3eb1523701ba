"""Validation data during training: scores, measures, the best round, and when to stop."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from podium.boosting.binned_data import BinnedData, add_by_bins
from podium.boosting.training_state import of_output
from podium.core.array_types import Floats
from podium.core.team import Team
from podium.measures import BoundMeasures, Graded, Measure, as_selection
from podium.measures.losses import Loss
from podium.models import Ensemble
from podium.objectives import BoundObjective
from podium.objectives.base import WatchedLoss
from podium.trees import GrownTree

if TYPE_CHECKING:
    from podium.boosting.settings import Boosting


class Evaluator:
    """Keeps the scores of the validation documents, and measures them after each round.

    The training loop passes every tree to `add_tree`, and gets the means from `measure`.

    Attributes:
        scores: the scores of the documents of each validation set.
        measures: the measures that pick the number of trees, then the watched ones, by name.
        bound: the measures bound to each validation set, by its name.
        loss: the loss of the objective; None if it is not watched.

    """

    def __init__(self, settings: Boosting, data: BinnedData, objective: BoundObjective, team: Team) -> None:
        self.data, self.objective, self.team = data, objective, team
        self.selection, self.patience = as_selection(settings.selection), settings.patience
        measures = dict.fromkeys((*self.selection.measures, *settings.watched))
        self.measures = {str(m): m.fixed(data.train, *data.valid.values()) for m in measures}
        self.bound = {
            name: BoundMeasures(valid, {f"{name}/{measure}": m for measure, m in self.measures.items()}, team)
            for name, valid in data.valid.items()
        }
        first = next(iter(data.valid), None)
        names = [f"{first}/{measure}" for measure in self.selection.measures]
        self.best_round = BestRound(self.selection, names, settings.min_delta)
        rows = () if objective.n_outputs == 1 else (objective.n_outputs,)
        self.scores = {name: np.zeros((*rows, valid.n_documents)) for name, valid in data.valid.items()}
        self.base_means: dict[str, float] | None = None
        self.loss: WatchedLoss | None = None
        if settings.watches_loss:
            fixed_objective = settings.objective.measuring(data.train, *data.valid.values())
            self.loss = WatchedLoss(fixed_objective, objective, data.valid, team)

    def start_from_base_scores(self, scale: float, training_scores: Floats) -> dict[str, float]:
        """Start from base scores, which count as a round before the first; return their means."""
        for name, valid in self.data.valid.items():
            assert valid.base_scores is not None
            self.scores[name][:] = scale * valid.base_scores
        self.base_means = self.measure() | self.measure_loss(training_scores, 0)
        return self.base_means

    def add_tree(self, grown: GrownTree, values: Floats, output: int) -> None:
        """Add a tree with these leaf values to the scores of an output."""
        for name, scores in self.scores.items():
            grown.add_by_bins(values, self.data.binned_valid[name], of_output(scores, output), self.team)

    def add_ensembles(self, ensembles: Sequence[Ensemble], n_threads: int | None) -> None:
        """Add the trees of an earlier run, an ensemble for each output, to the scores."""
        for name, binned in self.data.binned_valid.items():
            for output, ensemble in enumerate(ensembles):
                add_by_bins(ensemble, binned, of_output(self.scores[name], output), n_threads)

    def measure(self) -> dict[str, float]:
        """Return the mean of each measure on each validation set, keyed by `set/measure`."""
        means: dict[str, float] = {}
        for name, bound in self.bound.items():
            means |= bound.means(self.objective.ranked_by(self.scores[name]))
        return means

    def measure_loss(self, training_scores: Floats, iteration: int) -> dict[str, float]:
        """Return the loss on the training data and on each validation set, keyed by `set/loss`, if it is watched."""
        return {} if self.loss is None else self.loss.means(training_scores, self.scores, iteration)

    def best_iteration(self, history: dict[str, list[float]]) -> int | None:
        """Return the best round so far on the first validation set: −1 for the submodel alone, None without rounds."""
        if not any(history.get(name) for name in self.best_round.names):
            return None
        return self.best_round.of(history, self.base_means)

    def is_patience_over(self, n_rounds: int, best_iteration: int | None) -> bool:
        """Return whether the best round is older than the patience."""
        if self.patience is None or best_iteration is None:
            return False
        return n_rounds - 1 - best_iteration >= self.patience


class BestRound:
    """Tracks the best round of a growing history without scanning all of it again.

    It only keeps the candidates: one round, or with a graded measure all rounds within its first tolerance. As in
    LightGBM and XGBoost, a round must be better than the best so far by more than `min_delta`.
    """

    def __init__(self, selection: Measure | Graded, names: list[str], min_delta: float = 0.0) -> None:
        self.selection, self.names, self.min_delta = selection, names, min_delta
        kind = type(selection)
        self._is_one_mean = kind.pick_and_keep is Measure.pick_and_keep and kind.pick is Measure.pick
        self._n_rounds, self._best = 0, -1
        self._candidates: list[tuple[int, list[float]]] = []  # rounds that may still be picked, with their means

    def of(self, history: dict[str, list[float]], base_means: dict[str, float] | None) -> int:
        """Return the best round so far; −1 is the submodel alone.

        Args:
            history: means of each round, by name. It only grows, except that an interrupted round may be removed.
            base_means: the means of the submodel, if there is one.

        """
        columns = [history[name] for name in self.names]
        n_rounds, best, candidates = self._n_rounds, self._best, self._candidates
        if n_rounds == 0 or n_rounds > len(columns[0]):
            n_rounds, candidates = 0, [] if base_means is None else [(-1, [base_means[name] for name in self.names])]
        for k in range(n_rounds, len(columns[0])):
            means = [column[k] for column in columns]
            if candidates:
                highest = candidates[0][1][0]
                if self._is_one_mean and highest >= means[0]:  # most rounds; neither mean is NaN
                    continue
                if self.min_delta and not self._is_clear(means[0], highest):
                    continue
            candidates = [*candidates, (k, means)]
            picked, rows = self.selection.pick_and_keep(np.array([means for _, means in candidates]))
            best, candidates = candidates[picked][0], [candidates[row] for row in rows]
        self._n_rounds, self._best, self._candidates = len(columns[0]), best, candidates
        return best

    def _is_clear(self, mean: float, best: float) -> bool:
        """Return whether a mean is better than the best by more than `min_delta`, or the first that is not NaN."""
        sign = -1.0 if isinstance(self.selection, Loss) else 1.0
        return sign * mean > sign * best + self.min_delta or (math.isnan(best) and not math.isnan(mean))
