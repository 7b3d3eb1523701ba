"""Settings that are proposed and judged: Optuna's study, in batches that do not depend on the number of threads."""

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
from podium.tuning.space import Between, Checked, Value

BATCH = 8  # settings that are proposed at a time, from the trials before them
RANDOM_TRIALS = 16  # before proposals follow the trials
WORSE_THAN = 75.0  # a trial is pruned where so many percent of the others were better at the same step
NAME = "podium"


@dataclass(frozen=True)
class Trial:
    """Settings that were tried.

    Attributes:
        number: from 0; the first has the estimator's own settings, if the space holds them.
        parameters: what was tried.
        state: "complete", or "pruned" where training was ended because most others were better so far.
        means: of the measures on the validation data, or over the folds; those of a pruned trial where it ended.
        rounds: the best number of trees, epochs or steps, over folds the mean; None where there is none.
        seconds: of training, on one thread or several.

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
    """A search in progress: proposes settings, and is told what came of them.

    All that it proposes follows from the seed and the trials before the batch, so a search that was broken off goes on
    to the same end, and the number of threads plays no part.

    Args:
        space: what is searched.
        first: the settings of the first trial, if they are known.
        settings: what the trials of a file must have been made with.
        path: of the file that keeps the trials; None for memory.
        seed: of proposals.

    """

    def __init__(
        self, space: Checked, first: dict[str, Value] | None, settings: Mapping[str, Any], path: Path | None, seed: int
    ) -> None:
        self.space, self.seed, self.optuna = space, seed, _optuna()
        pruner = self.optuna.pruners.PercentilePruner(100 - WORSE_THAN, n_startup_trials=BATCH)
        try:
            with _quiet(self.optuna):
                self.study = self.optuna.create_study(
                    direction="maximize", storage=_storage(path), study_name=NAME, load_if_exists=True, pruner=pruner
                )
        except (ValueError, KeyError, TypeError) as error:
            if path is None:
                raise
            raise FileFormatError(path, f"does not hold the trials of a search: {error}") from error
        known = self.study.user_attrs.get("settings")
        now = json.loads(json.dumps(settings))
        if known is None:
            self.study.set_user_attr("settings", now)
            if first is not None:
                self.study.enqueue_trial({name: _listed(space[name], value) for name, value in first.items()})
        elif known != now:
            differ = ", ".join(name for name in now if known.get(name) != now[name])
            raise DataError(f"{path} has the trials of another search; {differ} differ: give another path")

    @property
    def trials(self) -> list[Trial]:
        """Those that have ended."""
        states = self.optuna.trial.TrialState
        return [
            self._shown(trial)
            for trial in self.study.get_trials(deepcopy=False, states=(states.COMPLETE, states.PRUNED))
        ]

    def _shown(self, trial: Any) -> Trial:
        state: Literal["complete", "pruned"] = (
            "complete" if trial.state == self.optuna.trial.TrialState.COMPLETE else "pruned"
        )
        values = {name: _value(self.space[name], value) for name, value in trial.params.items()}
        kept = trial.user_attrs
        return Trial(trial.number, values, state, kept.get("means", {}), kept.get("rounds"), kept.get("seconds", 0.0))

    def batch(self, n_trials: int) -> list[Proposal]:
        """The next settings to try, no more than so many: first those that a search before began and did not end."""
        states = self.optuna.trial.TrialState
        begun = self.study.get_trials(deepcopy=False, states=(states.RUNNING,))
        known = len(self.trials)
        if begun:
            return [self._proposal(self.optuna.trial.Trial(self.study, trial._trial_id)) for trial in begun]
        with warnings.catch_warnings(), _quiet(self.optuna):
            warnings.simplefilter("ignore", self.optuna.exceptions.ExperimentalWarning)
            self.study.sampler = self.optuna.samplers.TPESampler(
                seed=int(seed_of(self.seed, known)) % 2**32, constant_liar=True, n_startup_trials=RANDOM_TRIALS
            )
            return [self._proposal(self.study.ask()) for _ in range(min(BATCH, n_trials - known))]

    def _proposal(self, trial: Any) -> Proposal:
        values: dict[str, Value] = {}
        for name, over in self.space.items():
            if isinstance(over, Between):
                suggest = trial.suggest_int if over.is_whole else trial.suggest_float
                values[name] = suggest(name, over.low, over.high, log=over.log)
            else:
                values[name] = _value(over, trial.suggest_categorical(name, [_shown_choice(v) for v in over]))
        return Proposal(trial, values)

    def tell(self, proposal: Proposal, outcome: Trial) -> None:
        """Note what came of a proposal."""
        for name in ("means", "rounds", "seconds"):
            proposal.trial.set_user_attr(name, getattr(outcome, name))
        with _quiet(self.optuna):
            if outcome.state == "pruned":
                self.study.tell(proposal.trial.number, state=self.optuna.trial.TrialState.PRUNED)
            else:
                self.study.tell(proposal.trial.number, next(iter(outcome.means.values())))

    def importance(self) -> dict[str, float]:
        """How much of the spread of the first measure each parameter explains (fANOVA); nothing where few are known."""
        complete = [trial for trial in self.trials if trial.state == "complete"]
        if len(complete) < BATCH or len({next(iter(trial.means.values())) for trial in complete}) == 1:
            return {}
        evaluator = self.optuna.importance.FanovaImportanceEvaluator(seed=self.seed)
        found = self.optuna.importance.get_param_importances(self.study, evaluator=evaluator)
        return {name: float(share) for name, share in found.items()}


@dataclass(frozen=True)
class Proposal:
    """Settings to try.

    Attributes:
        trial: Optuna's.
        values: of the parameters that are searched.

    """

    trial: Any
    values: dict[str, Value]

    def is_worse_than_most(self, step: int, value: float) -> bool:
        """Note a value on the way; whether most trials before had a better one at this step."""
        self.trial.report(value, step)
        return bool(self.trial.should_prune())


def _shown_choice(value: Value) -> str:
    """A choice as text, in which 1 and True and '1' differ."""
    return json.dumps(value)


def _listed(over: Between | list[Value], value: Value) -> Any:
    """A value as Optuna has it."""
    return value if isinstance(over, Between) else _shown_choice(value)


def _value(over: Between | list[Value], value: Any) -> Value:
    """A value as the estimator takes it."""
    known: Value = value if isinstance(over, Between) else json.loads(value)
    return known


def _storage(path: Path | None) -> Any:
    """Where trials are kept: a file of JSON lines, or memory."""
    if path is None:
        return None
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

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
    """Without Optuna's own lines."""
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(level)
