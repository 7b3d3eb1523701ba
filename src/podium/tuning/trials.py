"""Trials: an Optuna study proposes settings in batches, so that they do not depend on the number of threads."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from podium.core.random import seed_of
from podium.errors import DataError, FileFormatError, MissingExtraError
from podium.tuning.space import Between, CheckedSpace, Value

BATCH = 8  # number of settings to propose at a time, based on earlier trials
RANDOM_TRIALS = 16  # number of random proposals before the sampler uses earlier trials
WORSE_THAN = 75.0  # percent; a trial is pruned if this share of the others was better at the same step
NAME = "podium"  # of the study in a file


@dataclass(frozen=True)
class Trial:
    """The settings and outcome of a trial.

    Attributes:
        number: the number of the trial, from 0; the first has the settings of the estimator if the space contains them.
        parameters: the settings.
        state: "complete", or "pruned" if the trial was stopped because most other trials were better at that point.
        means: the means of the measures on the validation data or over the folds; for a pruned trial, when it stopped.
        rounds: the best number of trees, epochs or steps, or the mean over folds; None if there is none.
        seconds: the duration of training.

    Example:
        >>> from podium.tuning import Trial
        >>> Trial(0, {"n_leaves": 15}, "complete", {"ndcg@10": 0.5}).means["ndcg@10"]
        0.5

    """

    number: int
    parameters: dict[str, Value]
    state: Literal["complete", "pruned"]
    means: dict[str, float] = field(default_factory=dict)
    rounds: int | None = None
    seconds: float = 0.0


class Study:
    """A search in progress, which proposes settings and records their outcomes.

    Proposals depend only on the seed and on the trials before the batch. So a search that was interrupted and resumed
    gives the same result, with any number of threads.

    Args:
        space: the search space.
        first: the settings of the first trial, or None.
        settings: the settings of the search, which must match those of the file.
        path: the file of trials; None to keep them in memory.
        seed: the seed of proposals.

    """

    def __init__(
        self, space: CheckedSpace, first: dict[str, Value] | None, settings: Mapping[str, Any], path: Path | None,
        seed: int,
    ) -> None:  # fmt: skip
        self.space, self.seed, self.optuna = space, seed, _optuna()
        pruner = self.optuna.pruners.PercentilePruner(100 - WORSE_THAN, n_startup_trials=BATCH)
        try:
            with _quiet(self.optuna):
                self.storage = _storage(path)
                self.study = self.optuna.create_study(
                    direction="maximize", storage=self.storage, study_name=NAME, load_if_exists=True, pruner=pruner
                )
        except (ValueError, KeyError, TypeError) as error:
            if path is None:
                raise
            raise FileFormatError(path, f"is not a file of trials: {error}") from error
        stored = self.study.user_attrs.get("settings")
        current = json.loads(json.dumps(settings))
        if stored is None:
            self.study.set_user_attr("settings", current)
            if first is not None:
                self.study.enqueue_trial({name: _for_optuna(space[name], value) for name, value in first.items()})
        elif stored != current:
            differ = ", ".join(name for name in current if stored.get(name) != current[name])
            raise DataError(f"{path} has the trials of another search; {differ} differ: choose another path")

    @property
    def trials(self) -> list[Trial]:
        """The finished trials."""
        states = self.optuna.trial.TrialState
        trials = []
        for trial in self.study.get_trials(deepcopy=False, states=(states.COMPLETE, states.PRUNED)):
            state: Literal["complete", "pruned"] = "complete" if trial.state == states.COMPLETE else "pruned"
            values = {name: _from_optuna(self.space[name], value) for name, value in trial.params.items()}
            stored = trial.user_attrs
            means, rounds, seconds = stored.get("means", {}), stored.get("rounds"), stored.get("seconds", 0.0)
            trials.append(Trial(trial.number, values, state, means, rounds, seconds))
        return trials

    def batch(self, n_trials: int) -> list[Proposal]:
        """Return the next settings to try, for at most `n_trials` in all; unfinished trials of the file come first."""
        unfinished = self.study.get_trials(deepcopy=False, states=(self.optuna.trial.TrialState.RUNNING,))
        if unfinished:
            return [self._proposal(self._resumed(trial.number)) for trial in unfinished]
        n_finished = len(self.trials)
        with warnings.catch_warnings(), _quiet(self.optuna):
            warnings.simplefilter("ignore", self.optuna.exceptions.ExperimentalWarning)
            self.study.sampler = self.optuna.samplers.TPESampler(
                seed=int(seed_of(self.seed, n_finished)) % 2**32, constant_liar=True, n_startup_trials=RANDOM_TRIALS
            )
            return [self._proposal(self.study.ask()) for _ in range(min(BATCH, n_trials - n_finished))]

    def _resumed(self, number: int) -> Any:
        """Return an unfinished trial of an earlier search, by its number."""
        study_id = self.storage.get_study_id_from_name(NAME)
        trial_id = self.storage.get_trial_id_from_study_id_trial_number(study_id, number)
        return self.optuna.trial.Trial(self.study, trial_id)

    def _proposal(self, trial: Any) -> Proposal:
        values: dict[str, Value] = {}
        for name, entry in self.space.items():
            if isinstance(entry, Between):
                suggest = trial.suggest_int if entry.is_whole else trial.suggest_float
                values[name] = suggest(name, entry.low, entry.high, log=entry.log)
            else:
                choices = [_for_optuna(entry, value) for value in entry]
                values[name] = _from_optuna(entry, trial.suggest_categorical(name, choices))
        return Proposal(trial, values)

    def tell(self, proposal: Proposal, outcome: Trial) -> None:
        """Record the outcome of a proposal."""
        for name in ("means", "rounds", "seconds"):
            proposal.trial.set_user_attr(name, getattr(outcome, name))
        with _quiet(self.optuna):
            if outcome.state == "pruned":
                self.study.tell(proposal.trial.number, state=self.optuna.trial.TrialState.PRUNED)
            else:
                self.study.tell(proposal.trial.number, next(iter(outcome.means.values())))

    def importance(self) -> dict[str, float]:
        """Return the share of the first measure's variance that each parameter explains (fANOVA).

        The result is empty if too few trials are complete, or if all have the same mean.
        """
        complete = [trial for trial in self.trials if trial.state == "complete"]
        if len(complete) < BATCH or len({next(iter(trial.means.values())) for trial in complete}) == 1:
            return {}
        evaluator = self.optuna.importance.FanovaImportanceEvaluator(seed=self.seed)
        shares = self.optuna.importance.get_param_importances(self.study, evaluator=evaluator)
        return {name: float(share) for name, share in shares.items()}


@dataclass(frozen=True)
class Proposal:
    """Settings to try."""

    trial: Any  # Optuna's trial
    values: dict[str, Value]  # the values of the searched parameters

    def is_worse_than_most(self, step: int, value: float) -> bool:
        """Record an intermediate value; return whether most earlier trials had a better one at this step."""
        self.trial.report(value, step)
        return bool(self.trial.should_prune())


def _for_optuna(entry: Between | list[Value], value: Value) -> Any:
    """Return a value in the form that Optuna stores: choices as text that distinguishes 1, True and '1'."""
    return value if isinstance(entry, Between) else json.dumps(value)


def _from_optuna(entry: Between | list[Value], value: Any) -> Any:
    """Return a value that Optuna has stored in the form that the estimator expects."""
    return value if isinstance(entry, Between) else json.loads(value)


def _storage(path: Path | None) -> Any:
    """Return Optuna's storage of trials: a file of JSON lines, or memory."""
    from optuna.storages import InMemoryStorage, JournalStorage
    from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

    if path is None:
        return InMemoryStorage()
    path.parent.mkdir(parents=True, exist_ok=True)
    return JournalStorage(JournalFileBackend(str(path), lock_obj=JournalFileOpenLock(str(path))))


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise MissingExtraError("optuna", "tune", "podium.tune") from None
    return optuna


@contextmanager
def _quiet(optuna: Any) -> Iterator[None]:
    """Silence Optuna's log."""
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(level)
