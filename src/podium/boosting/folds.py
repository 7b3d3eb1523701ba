"""Choose the number of trees and the share of features by cross-validation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from podium.boosting.binned_data import BinnedData
from podium.boosting.evaluation import BestRound
from podium.boosting.training import Trainer
from podium.core.array_types import Floats
from podium.core.interrupts import between_steps
from podium.core.jobs import each_warning_once, run_jobs
from podium.core.progress import progress
from podium.core.sums import with_weights
from podium.core.team import Team
from podium.core.threads import at_most_threads, thread_count
from podium.data import RankingData
from podium.data.subsets import folds_by_content
from podium.errors import DataError
from podium.measures import Ranking, as_selection
from podium.measures.base import weights_in_means

if TYPE_CHECKING:
    from podium.boosting.settings import Boosting

ROUNDS = 20  # number of rounds between two checks of the mean over the folds
SHARES = 0.5, 1.0  # of the features: the first, unless the second is clearly better
TRIED_ROUNDS = 100  # rounds before the comparison at a learning rate of 0.05; at twice the rate, half of them
STANDARD_ERRORS = 2.5  # a mean difference of more than this number of them is clear
JUDGING_QUERIES = 600  # number of held-out queries that is enough to choose the number of trees


@dataclass(frozen=True)
class RoundsByFolds:
    """The best number of trees by cross-validation.

    Attributes:
        best_iteration: the round, from 0, with the best mean over all queries.
        history: this mean after each round, keyed by `folds/measure`.
        feature_fraction: the share of features that the trees were grown on.

    Example:
        >>> import podium
        >>> from podium.boosting import Boosting, rounds_by_folds
        >>> rounds = rounds_by_folds(Boosting(n_trees=5, verbose=0), podium.artificial(20, features=4), n_folds=2)
        >>> list(rounds.history), len(rounds.history["folds/ndcg@10"])
        (['folds/ndcg@10'], 5)

    """

    best_iteration: int
    history: dict[str, list[float]]
    feature_fraction: float


def rounds_by_folds(
    settings: Boosting, data: RankingData, n_folds: int, *, tries_all_features: bool = False
) -> RoundsByFolds:
    """Find the best number of rounds by cross-validation, with one run per fold, all at the same time.

    The fold of a query depends only on its content and the seed of sampling. Patience applies to the mean of all runs,
    which is less noisy than the curve of any fold. Only as many folds run as are needed to hold out 600 queries: with
    3,000 queries in 5 folds, one run is enough.

    Args:
        settings: the settings of the runs.
        data: the training data.
        n_folds: the number of folds.
        tries_all_features: whether to ignore the share of features in the settings and use half of them for each tree,
            or all if that is clearly better on the folds (`share_of_features`).

    Example:
        >>> import podium
        >>> from podium.boosting import Boosting, rounds_by_folds
        >>> settings = Boosting(n_trees=30, patience=5, verbose=0)
        >>> 0 <= rounds_by_folds(settings, podium.artificial(20, features=4), 3).best_iteration < 30
        True

    """
    if data.n_queries < 2:
        raise DataError("cross-validation needs at least two queries: pass valid=…, or patience=None for all trees")
    n_folds = min(n_folds, data.n_queries)
    n_used = folds_needed(data.n_queries, n_folds)
    fold = folds_by_content(data, n_folds, settings.sampling.seed)
    selection, patience = as_selection(settings.selection), settings.patience
    run_settings = replace(_silent(settings), objective=settings.objective.fixed(data))
    with ExitStack() as stack, at_most_threads(thread_count(settings.n_threads)), each_warning_once():
        advance = stack.enter_context(
            progress("cross-validating", settings.n_trees, verbose=settings.verbose, unit="rounds")
        )
        parts = [
            BinnedData.of(data.select(fold != k), {"folds": data.select(fold == k)}, settings) for k in range(n_used)
        ]
        shares = SHARES if tries_all_features else (run_settings.sampling.feature_fraction,)
        share, trainers = _try_shares(run_settings, parts, shares, stack)
        names = [f"folds/{measure}" for measure in selection.measures]
        weights = np.array([_weight_of_queries(trainer.data.valid["folds"]) for trainer in trainers])
        n_rounds = 0
        while True:
            before, n_rounds = n_rounds, min(n_rounds + ROUNDS, settings.n_trees)
            _run_to(trainers, n_rounds)
            means = np.column_stack([_mean_curve(trainers, name, weights, n_rounds) for name in names])
            columns = {name: means[:, k].tolist() for k, name in enumerate(names)}
            best = BestRound(selection, names, settings.min_delta).of(columns, None)
            advance(n_rounds - before, f"{names[0]} {means[best, 0]:.4f}")
            is_over = patience is not None and n_rounds - 1 - best >= patience
            is_exhausted = all(t.state.is_exhausted and t.state.n_rounds <= n_rounds for t in trainers)
            if is_over or n_rounds == settings.n_trees or is_exhausted:
                return RoundsByFolds(best, columns, share)


def folds_needed(n_queries: int, n_folds: int) -> int:
    """Return the number of folds that hold out enough queries to choose the number of rounds."""
    return min(n_folds, math.ceil(JUDGING_QUERIES * n_folds / n_queries))


def share_of_features(settings: Boosting, parts: Sequence[BinnedData]) -> float:
    """Return 0.5, half of the features for each tree, or 1.0 if all are clearly better after a hundred rounds.

    Both are trained on each part and measured on its first validation set. All features are clearly better if they
    raise the mean over the queries by more than 2.5 standard errors of the differences.
    """
    with ExitStack() as stack, at_most_threads(thread_count(settings.n_threads)), each_warning_once():
        return _try_shares(_silent(settings), parts, SHARES, stack)[0]


def _silent(settings: Boosting) -> Boosting:
    """Return the settings of single runs: this module stops all of them together and reports their mean."""
    return replace(settings, patience=None, verbose=0, watches_loss=False)


def _try_shares(
    settings: Boosting, parts: Sequence[BinnedData], shares: tuple[float, ...], stack: ExitStack
) -> tuple[float, list[Trainer]]:
    """Return the first share of features, or the second if it is clearly better, and its runs so far."""
    settings = replace(settings, n_threads=max(1, thread_count(settings.n_threads) // len(parts)))
    trainers = {
        share: [
            Trainer(with_feature_fraction(settings, share), part, stack.enter_context(Team(settings.n_threads)))
            for part in parts
        ]
        for share in shares
    }  # fmt: skip
    if len(shares) == 1:
        return shares[0], trainers[shares[0]]
    for runs in trainers.values():
        _run_to(runs, min(math.ceil(TRIED_ROUNDS * 0.05 / settings.rate(0)), settings.n_trees))
    half, whole = (np.concatenate([_values_of_queries(trainer) for trainer in trainers[share]]) for share in shares)
    part_weights = [next(iter(part.valid.values())).query_weights for part in parts]
    weights = [column.astype(np.float64) for column in part_weights if column is not None]
    share = shares[_is_clear(whole - half, np.concatenate(weights) if weights else None)]
    return share, trainers[share]


def with_feature_fraction(settings: Boosting, share: float) -> Boosting:
    """Return settings with this share of features for each tree."""
    return replace(settings, sampling=replace(settings.sampling, feature_fraction=share))


def _values_of_queries(trainer: Trainer) -> Floats:
    """Return the measure of the trees so far on each query of the first validation set."""
    evaluator = trainer.evaluator
    name, valid = next(iter(trainer.data.valid.items()))
    scores = evaluator.objective.ranked_by(evaluator.scores[name])
    return next(iter(evaluator.measures.values())).values(Ranking(valid, scores))


def _weight_of_queries(data: RankingData) -> float:
    """Return the weight of a fold's queries in the mean over all folds."""
    weights = weights_in_means(data)
    return float(data.n_queries) if weights is None else math.fsum(weights)


def _is_clear(gains: Floats, weights: Floats | None = None) -> bool:
    """Return whether the mean of gains is clearly above 0; the order of gains does not matter."""
    is_defined = ~np.isnan(gains)
    gains = with_weights(gains[is_defined], None if weights is None else weights[is_defined])
    if len(gains) < 2:
        return False
    mean = math.fsum(gains) / len(gains)
    variance = math.fsum((gains - mean) ** 2) / (len(gains) - 1)
    return mean > STANDARD_ERRORS * math.sqrt(variance / len(gains))


def _run_to(trainers: list[Trainer], n_rounds: int) -> None:
    """Continue all runs to a number of rounds, several at a time if there are threads for them."""
    jobs = [partial(_add_rounds, trainer, n_rounds) for trainer in trainers]
    n_at_once = max(1, thread_count(None) // trainers[0].team.n_threads)
    with closing(run_jobs(iter(jobs), len(jobs), n_at_once)) as results:
        for _ in results:
            pass


def _add_rounds(trainer: Trainer, n_rounds: int) -> None:
    with between_steps() as check_signals:
        while trainer.state.n_rounds < n_rounds and not trainer.state.is_exhausted:
            check_signals()
            trainer.add_round()


def _mean_curve(trainers: list[Trainer], name: str, weights: Floats, n_rounds: int) -> Floats:
    """Return the mean over the queries of all folds after each round; an exhausted run stays constant."""
    histories = [trainer.state.history[name][:n_rounds] for trainer in trainers]
    curves = np.array([np.pad(curve, (0, n_rounds - len(curve)), mode="edge") for curve in histories])
    is_defined = ~np.isnan(curves)
    totals = (weights[:, None] * is_defined).sum(axis=0)
    sums = (weights[:, None] * np.where(is_defined, curves, 0.0)).sum(axis=0)
    return np.asarray(np.where(totals > 0, sums / np.where(totals > 0, totals, 1.0), np.nan))
