"""The number of trees by cross-validation: each query is measured by trees that have not seen it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from podium.boosting.binned_data import BinnedData
from podium.boosting.training import Trainer
from podium.core.interrupts import between_steps
from podium.core.jobs import each_warning_once, run_jobs
from podium.core.progress import progress
from podium.core.team import Team
from podium.data import RankingData
from podium.data.splitting import folds_by_content
from podium.errors import DataError
from podium.measures import as_selection

if TYPE_CHECKING:
    from podium.boosting.settings import Boosting

Floats = NDArray[np.float64]
ROUNDS = 20  # between two looks at the mean over the folds


@dataclass(frozen=True)
class RoundsByFolds:
    """What cross-validation says of the number of trees.

    Attributes:
        best_iteration: the best round, from 0, of the mean over all queries.
        history: that mean after each round, by `folds/measure`.

    Example:
        >>> import podium
        >>> from podium.boosting import Boosting, rounds_by_folds
        >>> found = rounds_by_folds(Boosting(n_trees=5, verbose=0), podium.artificial(20, features=4), n_folds=2)
        >>> list(found.history), len(found.history["folds/ndcg@10"])
        (['folds/ndcg@10'], 5)

    """

    best_iteration: int
    history: dict[str, list[float]]


def rounds_by_folds(settings: Boosting, data: RankingData, n_folds: int, n_used: int | None = None) -> RoundsByFolds:
    """Train on all folds but one, for each of them, side by side; the round that is best in the mean of all.

    Which fold a query is in depends on its content and the seed of sampling alone. The runs go on together: patience
    counts for the mean, which is less noisy than the curve of any fold.

    Args:
        settings: of the runs.
        data: what is to be trained on.
        n_folds: the folds.
        n_used: runs, at most; all by default. Of much data, one fold tells enough.

    Example:
        >>> import podium
        >>> from podium.boosting import Boosting, rounds_by_folds
        >>> settings = Boosting(n_trees=30, patience=5, verbose=0)
        >>> 0 <= rounds_by_folds(settings, podium.artificial(20, features=4), 3).best_iteration < 30
        True

    """
    if data.n_queries < 2:
        raise DataError("cross-validation needs two queries at least: give valid=…, or patience=None for all trees")
    n_folds = min(n_folds, data.n_queries)
    fold = folds_by_content(data, n_folds, settings.sampling.seed)
    selection, patience = as_selection(settings.selection), settings.patience
    plain = replace(settings, objective=settings.objective.fixed(data), patience=None, verbose=0, n_threads=1)
    with ExitStack() as stack, each_warning_once():
        advance = stack.enter_context(
            progress("cross-validating", settings.n_trees, verbose=settings.verbose, unit="trees")
        )
        trainers = [
            Trainer(plain, BinnedData.of(data.select(fold != k), {"folds": data.select(fold == k)}, settings),
                    stack.enter_context(Team(1)))
            for k in range(n_folds if n_used is None else min(n_folds, n_used))
        ]  # fmt: skip
        names = [f"folds/{measure}" for measure in selection.measures]
        weights = np.array([trainer.data.valid["folds"].n_queries for trainer in trainers], float)
        n_rounds = 0
        while True:
            n_rounds = min(n_rounds + ROUNDS, settings.n_trees)
            jobs = [_rounds(trainer, n_rounds) for trainer in trainers]
            with closing(run_jobs(iter(jobs), len(jobs), settings.n_threads)) as ended:
                for _ in ended:
                    pass
            means = np.column_stack([_mean_curve(trainers, name, weights, n_rounds) for name in names])
            best = selection.pick(means)
            advance(ROUNDS, f"{names[0]} {means[best, 0]:.4f}")
            is_over = patience is not None and n_rounds - 1 - best >= patience
            if is_over or n_rounds == settings.n_trees or all(t.state.is_exhausted for t in trainers):
                return RoundsByFolds(best, {name: means[:, k].tolist() for k, name in enumerate(names)})


def _rounds(trainer: Trainer, n_rounds: int) -> Callable[[], None]:
    """A job that goes on to so many rounds."""

    def job() -> None:
        with between_steps() as check_signals:
            while trainer.state.n_rounds < n_rounds and not trainer.state.is_exhausted:
                check_signals()
                trainer.add_round()

    return job


def _mean_curve(trainers: list[Trainer], name: str, weights: Floats, n_rounds: int) -> Floats:
    """The mean over the queries of all folds after each round; a run that has nothing left to learn stays as it is."""
    curves = np.array([np.pad(c := t.state.history[name], (0, n_rounds - len(c)), mode="edge") for t in trainers])
    known = ~np.isnan(curves)
    totals = (weights[:, None] * known).sum(axis=0)
    sums = (weights[:, None] * np.where(known, curves, 0.0)).sum(axis=0)
    return np.asarray(np.where(totals > 0, sums / np.where(totals > 0, totals, 1.0), np.nan))
