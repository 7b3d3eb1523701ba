"""`podium.tune`, which searches for an estimator's parameters with many fits in parallel."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from podium.core.hashing import content_hash
from podium.core.jobs import each_warning_once, run_jobs
from podium.core.parameters import parameters
from podium.core.plotting import draw
from podium.core.progress import progress
from podium.core.threads import thread_count
from podium.core.validation import require_number, require_whole
from podium.data import RankingData
from podium.data.canonical import digest_of
from podium.data.schema import as_data
from podium.data.subsets import fold_of_queries, require_weight_outside
from podium.errors import DataError
from podium.estimators.many import Fit, SharedData, require_ranker
from podium.evaluation.tables import ShownAsTable, Table
from podium.measures import BoundMeasures, Graded, Measure, selection_for
from podium.tuning.space import CheckedSpace, Space, checked_space
from podium.tuning.trials import Proposal, Study, Trial

DEFAULT_FOLDS = 5
DEFAULT_PATIENCE = 50  # in trials if the estimator has none, because most rounds would be wasted
FIRST_CHECK = 25  # rounds after which a trial may be pruned; the next checks are after 50, 100, … rounds
ROUNDS = ("n_trees", "epochs", "n_iterations")  # the parameters that set the number of rounds
SHOWN_TRIALS = 10  # in the text of a result
Fold = tuple[SharedData, int]  # training and validation data, and the number of validation queries


@dataclass(frozen=True, eq=False)
class Tuning(ShownAsTable):
    """The result of `tune`.

    Attributes:
        trials: all trials.
        best: the trial that the measure selects among those that were not pruned.
        estimator: an unfitted estimator with the best settings. They include the best number of rounds, so `fit` needs
            no validation data. `Ranker` and `Committee` choose theirs by cross-validation in `fit`.
        selection: the measure or graded measure that selected the best trial.
        study: the study that proposed the trials.

    Example:
        >>> import podium
        >>> train, valid = podium.artificial(30, features=4), podium.artificial(20, features=4, part="valid")
        >>> space = {"n_leaves": (2, 8)}
        >>> tuning = podium.tune(podium.LambdaMART(10), train, valid=valid, space=space, n_trials=3)
        >>> len(tuning.trials), tuning.estimator.n_leaves == tuning.best.parameters["n_leaves"]
        (3, True)

    """

    trials: list[Trial]
    best: Trial
    estimator: Any
    selection: Measure | Graded
    study: Study = field(repr=False)

    @cached_property
    def importance(self) -> dict[str, float]:
        """The share of the first measure's variance that each parameter explains (fANOVA, Hutter et al. 2014).

        It is empty if too few trials are complete.
        """
        return self.study.importance()

    def table(self) -> Table:
        """Return a table of the trials, the best first and pruned ones last."""
        measures = list(self.best.means)
        first = measures[0]
        ranked = sorted(self.trials, key=lambda t: (t is not self.best, t.state != "complete", -t.means[first]))
        names = list(self.best.parameters)
        rows = [
            [t.number, t.state, *(t.means.get(m) for m in measures), t.rounds, t.seconds,
             *(t.parameters[name] for name in names)]
            for t in ranked
        ]  # fmt: skip
        return Table(["trial", "state", *measures, "rounds", "seconds", *names], rows)

    def _shown_table(self) -> Table:
        table = self.table()
        return Table(table.columns, table.rows[:SHOWN_TRIALS])

    def plot(self) -> Any:
        """Return a chart of the trials' first measure, the best so far, and the importance (extra `report`)."""
        return draw("tuning", self)

    def __str__(self) -> str:
        pruned = sum(trial.state == "pruned" for trial in self.trials)
        shares = ", ".join(f"{name} {share:.0%}" for name, share in self.importance.items())
        lines = [f"{len(self.trials)} trials, {pruned} of them pruned; the best is trial {self.best.number}", ""]
        lines += [str(self._shown_table()), *(["", f"importance of parameters: {shares}"] if shares else [])]
        return "\n".join(lines)


def tune(
    estimator: Any,
    data: Any,
    *,
    valid: Any = None,
    folds: int | None = None,
    measure: Measure | Graded | str | None = None,
    space: Space | None = None,
    n_trials: int = 50,
    timeout: float | None = None,
    path: str | Path | None = None,
    seed: int = 0,
    n_threads: int | None = None,
    verbose: int | None = None,
) -> Tuning:
    """Search for the parameters of an estimator that maximize the mean of a measure.

    Optuna proposes eight settings at a time, based on earlier trials (a tree-structured Parzen estimator). Each trial
    is trained on one thread, and all share bins. The first trial has the settings of `estimator` if the space contains
    them, so the result is never worse than these on the validation data. Trials that are worse than most others are
    pruned. The result is the same for any number of threads and any order of rows, unless `timeout` ends the search.

    Args:
        estimator: a Podium estimator, whose other parameters stay fixed.
        data: the training data.
        valid: validation data, which evaluates and stops trials; without it, `data` is split into folds of queries.
        folds: the number of folds without validation data, 5 by default.
        measure: the measure to maximize, by default the estimator's: a name such as `"ndcg@10"`, or a graded measure.
            The first measure of a graded one guides the search, and all of its measures select the best trial.
        space: `Between(low, high, log=…)`, a pair `(low, high)` or a list of choices for each parameter, for example
            `{"n_leaves": (4, 64), "objective": ["lambda(ndcg)", "queryregression"]}`. By default the parameters that
            matter most, and for LambdaMART some objectives.
        n_trials: the number of settings to try, including those of an earlier run with the same `path`.
        timeout: the seconds after which no further batch begins.
        path: a file of trials (JSON lines), with which you can resume a search that was interrupted.
        seed: the seed of proposals and folds.
        n_threads: the number of threads for all trials in total; all cores by default.
        verbose: None for a progress bar on terminals, 0 for silence, n for a line after every n trials.

    Returns:
        All trials, the best one, and an estimator with its settings.

    Example:
        >>> import podium
        >>> data = podium.artificial(40, features=4)
        >>> space = {"n_leaves": (2, 8), "objective": [None, "queryregression"]}
        >>> tuning = podium.tune(podium.LambdaMART(5), data, folds=2, space=space, n_trials=4)
        >>> model = tuning.estimator.fit(data)
        >>> tuning.best.state, model.n_trees_ == tuning.best.rounds
        ('complete', True)

    """
    require_ranker(estimator, "tune")
    require_whole("n_trials", n_trials, 1)
    if timeout is not None:
        require_number("timeout", timeout, above=0)
    if valid is not None and folds is not None:
        raise DataError("pass either valid or folds, not both")
    train, searched = as_data(data), checked_space(space, estimator)
    selection = selection_for(estimator.measure if measure is None else measure, train)
    parts = _folds(train, valid, folds, seed)
    trial_estimator = _for_trials(estimator, selection)
    with_defaults = trial_estimator._with_defaults(train.n_documents)
    first = {name: getattr(with_defaults, name) for name in searched}
    study = Study(
        searched,
        first if all(first[name] in values for name, values in searched.items()) else None,
        _fingerprint(trial_estimator, selection, searched, train, valid, folds, seed),
        None if path is None else Path(path),
        seed,
    )
    _search(study, _Trials(trial_estimator, parts, selection), n_trials, timeout, thread_count(n_threads), verbose)
    complete = [trial for trial in study.trials if trial.state == "complete"]
    names = [str(m) for m in selection.measures]
    best = complete[selection.pick(np.array([[trial.means[name] for name in names] for trial in complete]))]
    return Tuning(study.trials, best, _tuned(estimator, best, measure), selection, study)


def _search(
    study: Study, trials: _Trials, n_trials: int, timeout: float | None, n_threads: int, verbose: int | None
) -> None:
    """Run batch after batch; outcomes are recorded by batch, so that pruning does not depend on their order."""
    started = time.monotonic()
    with (
        trials.keeping_data(),
        each_warning_once(),
        progress("tuning", n_trials, verbose=verbose, unit="trials") as advance,
    ):
        advance(len(study.trials))
        while len(study.trials) < n_trials and (timeout is None or time.monotonic() - started < timeout):
            batch = study.batch(n_trials)
            jobs = (trials.job(proposal, n_threads) for proposal in batch)
            outcomes: dict[int, Trial] = {}
            with closing(run_jobs(jobs, len(batch), n_threads)) as results:
                for number, outcome in results:
                    outcomes[number] = outcome
                    advance(1)
            for number, proposal in enumerate(batch):
                study.tell(proposal, outcomes[number])


def _folds(train: RankingData, valid: Any, folds: int | None, seed: int) -> list[Fold]:
    """Return the data that each trial is trained and evaluated on: folds, or a single one with `valid`."""
    if valid is not None:
        validation = as_data(valid)
        return [(SharedData(lambda: (train, {"valid": validation})), validation.n_queries)]
    n_folds = DEFAULT_FOLDS if folds is None else folds
    require_whole("folds", n_folds, 2)
    if train.n_queries < n_folds:
        raise DataError(f"{n_folds} folds need at least as many queries, but there are {train.n_queries}")
    fold = fold_of_queries(train.query_ids, n_folds, seed)
    require_weight_outside(train, fold)

    def load(k: int) -> tuple[RankingData, dict[str, RankingData]]:
        return train.select(fold != k), {"valid": train.select(fold == k)}

    return [(SharedData(partial(load, k)), int((fold == k).sum())) for k in range(n_folds)]


class _Trials:
    """Runs trials."""

    def __init__(self, estimator: Any, folds: list[Fold], selection: Measure | Graded) -> None:
        self.estimator, self.folds, self.measures = estimator, folds, selection.measures
        self.is_watched = "observers" in estimator._fit_options and len(folds) == 1

    @contextmanager
    def keeping_data(self) -> Iterator[None]:
        """Keep data and bins in memory between trials, until the block ends."""
        for data, _ in self.folds:
            data.n_fits += 1
        try:
            yield
        finally:
            for data, _ in self.folds:
                data.close()

    def job(self, proposal: Proposal, n_threads: int) -> Callable[[], Trial]:
        """Return a function that tries a proposal."""
        for data, _ in self.folds:
            data.n_fits += 1
        return lambda: self._try(proposal, n_threads)

    def _try(self, proposal: Proposal, n_threads: int) -> Trial:
        started, number = time.perf_counter(), proposal.trial.number
        ranker = type(self.estimator)(**self.estimator.get_params(deep=False) | proposal.values)
        name, first = f"trial {number}", str(self.measures[0])
        sums, n_queries, rounds = dict.fromkeys(map(str, self.measures), 0.0), 0, []
        observers = (_Pruning(proposal, f"valid/{first}"),) if self.is_watched else ()
        for step, (data, n_fold_queries) in enumerate(self.folds, 1):
            try:
                fitted = Fit(name, ranker, data, observers).run(n_threads)
            except _PrunedError as pruned:
                return Trial(number, proposal.values, "pruned", {first: pruned.value}, None, _since(started))
            train, sets, _ = data.open(n_threads)
            for measure, mean in self._means(fitted, train, sets["valid"]).items():
                sums[measure] += n_fold_queries * mean
            n_queries += n_fold_queries
            rounds.append(getattr(fitted, "best_iteration_", None))
            remaining = self.folds[step:]
            if remaining and proposal.is_worse_than_most(step, sums[first] / n_queries):
                for unused, _ in remaining:
                    unused.close()
                return Trial(number, proposal.values, "pruned", {first: sums[first] / n_queries}, None, _since(started))
        means = {measure: total / n_queries for measure, total in sums.items()}
        return Trial(number, proposal.values, "complete", means, _mean_rounds(rounds), _since(started))

    def _means(self, fitted: Any, train: RankingData, valid: RankingData) -> dict[str, float]:
        measures = {str(m): m.fixed(train, valid) for m in self.measures}
        return BoundMeasures(valid, measures).means(fitted._predict(valid))


def _since(started: float) -> float:
    return round(time.perf_counter() - started, 3)


def _mean_rounds(best_iterations: list[int | None]) -> int | None:
    """Return the mean of the best numbers of rounds over the folds."""
    rounds = [iteration + 1 for iteration in best_iterations if iteration is not None]
    return max(1, round(sum(rounds) / len(rounds))) if rounds else None


class _PrunedError(Exception):
    """Ends a trial because most other trials were better so far."""

    def __init__(self, value: float) -> None:
        super().__init__("pruned")
        self.value = value


class _Pruning:
    """An observer that ends a run after 25, 50, 100, … rounds if most other trials are better."""

    needs_arrays = False

    def __init__(self, proposal: Proposal, name: str) -> None:
        self.proposal, self.name, self.best = proposal, name, -np.inf

    def __call__(self, round_: Any) -> None:
        value = round_.means.get(self.name)
        if value is None:
            return
        self.best = max(self.best, float(value))
        n_rounds = round_.iteration + 1
        n, remainder = divmod(n_rounds, FIRST_CHECK)
        is_power_of_two = n & (n - 1) == 0
        if remainder == 0 and is_power_of_two and self.proposal.is_worse_than_most(n_rounds, self.best):
            raise _PrunedError(self.best)


def _for_trials(estimator: Any, selection: Measure | Graded) -> Any:
    """Return the estimator that trials train: with the measure, without output, and with early stopping."""
    declared, changed = parameters(type(estimator)), {"measure": selection, "verbose": 0}
    if "patience" in declared and estimator.patience is None:
        changed["patience"] = DEFAULT_PATIENCE
    values = {name: value for name, value in changed.items() if name in declared}
    return type(estimator)(**estimator.get_params(deep=False) | values)


def _tuned(estimator: Any, best: Trial, measure: Measure | Graded | str | None) -> Any:
    """Return the estimator with the best settings, including the number of rounds unless it chooses that itself."""
    declared, values = parameters(type(estimator)), dict(best.parameters)
    if best.rounds is not None and "n_folds" not in declared:
        fixed = {**dict.fromkeys(ROUNDS, best.rounds), "patience": None}
        values |= {name: value for name, value in fixed.items() if name in declared}
    if measure is not None and "measure" in declared:
        values["measure"] = measure  # type: ignore[assignment]
    return type(estimator)(**estimator.get_params(deep=False) | values)


def _fingerprint(
    estimator: Any, selection: Measure | Graded, space: CheckedSpace, train: RankingData, valid: Any, folds: int | None,
    seed: int,
) -> dict[str, Any]:  # fmt: skip
    """Return everything that a search depends on; the order of rows does not matter."""
    ignored = {"n_threads", "verbose", *space}
    hashes = {
        name: content_hash(value) for name, value in estimator.get_params(deep=False).items() if name not in ignored
    }
    return {
        "estimator": type(estimator).__name__, "parameters": hashes, "measure": str(selection), "seed": seed,
        "space": {name: str(values) for name, values in space.items()}, "folds": folds,
        "data": digest_of(train).hex(), "validation data": "" if valid is None else digest_of(as_data(valid)).hex(),
    }  # fmt: skip
