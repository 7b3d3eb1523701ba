"""Many fits in parallel, one on each thread; the models equal those of separate fits."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

from podium.boosting import SharedBins
from podium.core.jobs import each_warning_once, run_jobs
from podium.core.observing import Observer
from podium.core.progress import progress
from podium.core.threads import at_most_threads, thread_count
from podium.data import RankingData
from podium.data.schema import as_data
from podium.errors import DataError
from podium.estimators.base_ranker import BaseRanker
from podium.models.base import checked_sets

Valid = dict[str, RankingData]


def fit_many(
    estimators: Sequence[Any],
    data: Any,
    *,
    valid: Any = None,
    n_threads: int | None = None,
    verbose: int | None = None,
) -> list[Any]:
    """Fit many estimators in parallel, for example with different parameters, seeds or folds.

    Each model equals that of `estimator.fit(data)`, to the bit. One fit runs on each thread; the last fits share
    threads that would be idle. Fits on the same data object share its bins. Nets and linear rankers run one at a time,
    with their own number of threads, because torch and BLAS have one number of threads for the whole process.

    Args:
        estimators: Podium estimators. They are not changed: the function returns fitted copies. So you may pass the
            same estimator several times, for example once for each fold.
        data: the training data for all, or a sequence with the data for each.
        valid: the validation data for all (or several sets by name), or a sequence with an entry or None for each.
        n_threads: the number of threads for all fits in total; all cores by default. The `n_threads` of the estimators
            apply after the fit.
        verbose: None for a bar on terminals, 0 for silence, n for a line after every n fits. Single fits are silent.

    Returns:
        The fitted estimators, in the order of `estimators`.

    Raises:
        DataError: if a fit raises it; the message names the estimator. The other fits stop, as on Ctrl-C.

    Example:
        >>> import podium
        >>> train, valid = podium.artificial(20, features=4), podium.artificial(10, features=4, part="valid")
        >>> models = [podium.LambdaMART(n_trees=5, n_leaves=n) for n in (4, 8)]
        >>> fitted = podium.fit_many(models, train, valid=valid)
        >>> fitted[1].digest() == models[1].fit(train, valid=valid).digest()
        True

    """
    estimators = list(estimators)
    for estimator in estimators:
        require_ranker(estimator, "fit_many")
    trains = _value_for_each(data, len(estimators), "data")
    valids = _value_for_each(valid, len(estimators), "valid")
    shared = {
        (id(train), id(validation)): SharedData(partial(_as_ranking_data, train, validation))
        for train, validation in zip(trains, valids, strict=True)
    }
    fits = [
        Fit(f"estimators[{k}]", estimator, shared[id(train), id(validation)])
        for k, (estimator, train, validation) in enumerate(zip(estimators, trains, valids, strict=True))
    ]
    fitted = dict(fit_each(fits, n_threads=n_threads, verbose=verbose))
    return [fitted[k] for k in range(len(fits))]


def _as_ranking_data(train: Any, valid: Any) -> tuple[RankingData, Valid]:
    """Return the training data and the validation sets by name; frames become `RankingData`."""
    if isinstance(valid, Mapping):
        return as_data(train), {name: as_data(part) for name, part in valid.items()}
    return as_data(train), {} if valid is None else {"valid": as_data(valid)}


def require_ranker(estimator: Any, function: str) -> None:
    """Raise if `estimator` is not a Podium estimator."""
    if not isinstance(estimator, BaseRanker):
        raise DataError(f"{function} takes Podium estimators such as LambdaMART(), not {estimator!r}")


def _value_for_each(value: Any, n: int, argument: str) -> list[Any]:
    """Return a list with a value for each of n estimators; a single value is for all of them."""
    if not isinstance(value, list | tuple):
        return [value] * n
    if len(value) != n:
        raise DataError(f"{argument} must be one value for all estimators or a list of {n}, but got {len(value)}")
    return list(value)


class SharedData:
    """Data and bins that several fits share; the first fit loads them, and the last one releases them.

    Args:
        load: returns the training data, and the validation sets by name.

    Attributes:
        n_fits: the number of fits on this data that have not ended.

    """

    def __init__(self, load: Callable[[], tuple[RankingData, Valid]]) -> None:
        self.load, self.n_fits = load, 0
        self._lock = threading.Lock()
        self._loaded: tuple[RankingData, Valid, SharedBins] | None = None

    def open(self, n_threads: int) -> tuple[RankingData, Valid, SharedBins]:
        """Return training data, validation sets and bins.

        Fits wait while the first one loads the data, so it may use a thread for each of them, up to `n_threads`.
        """
        n = max(1, min(n_threads, self.n_fits))
        with self._lock, at_most_threads(n):
            if self._loaded is None:
                train, valid = self.load()
                sets = {name: _with_cached_values(data) for name, data in checked_sets(train, valid).items()}
                self._loaded = _with_cached_values(train), sets, SharedBins(n)
            return self._loaded

    def close(self) -> None:
        """Record the end of a fit."""
        with self._lock:
            self.n_fits -= 1
            if not self.n_fits:
                self._loaded = None


def _with_cached_values(data: RankingData) -> RankingData:
    """Return the data after computing its cached values, which every thread would compute otherwise."""
    _ = data.canonical_order, data.query_of_row
    return data


@dataclass(frozen=True)
class Fit:
    """A fit to run."""

    name: str  # in errors
    estimator: Any  # stays unfitted
    data: SharedData
    observers: tuple[Observer, ...] = ()

    def run(self, n_threads: int) -> Any:
        """Return a fitted copy of the estimator."""
        fitted = type(self.estimator)(**self.estimator.get_params(deep=False))
        try:
            train, valid, bins = self.data.open(n_threads)
            options: dict[str, Any] = {"bins": bins} if "bins" in fitted._fit_options else {}
            options |= {"observers": self.observers} if self.observers else {}
            with at_most_threads(None) if fitted._fits_alone else nullcontext():
                return fitted.fit(train, valid=valid or None, **options)
        except DataError as error:
            raise DataError(f"{self._description()}: {error}") from error
        except Exception as error:
            error.add_note(f"in {self._description()}")
            raise
        finally:
            self.data.close()

    def _description(self) -> str:
        """Return the name, and the parameters that are not the defaults, on one line."""
        return f"{self.name}, {' '.join(repr(self.estimator).split())}"


def fit_each(
    fits: Sequence[Fit], *, n_threads: int | None = None, verbose: int | None = None
) -> Generator[tuple[int, Any], None, None]:
    """Yield the number of each fit and the fitted estimator, in the order in which fits end.

    Fits on the same data run consecutively, to hold little data at a time.
    """
    first: dict[int, int] = {}
    for number, fit in enumerate(fits):
        first.setdefault(id(fit.data), number)
        fit.data.n_fits += 1
    order = sorted(range(len(fits)), key=lambda number: first[id(fits[number].data)])
    n_threads = thread_count(n_threads)

    jobs = (partial(fits[number].run, n_threads) for number in order)
    with (
        each_warning_once(),
        progress("fitting", len(fits), verbose=verbose, unit="fits") as advance,
        closing(run_jobs(jobs, len(fits), n_threads)) as outcomes,
    ):
        for number, fitted in outcomes:
            advance(1)
            yield order[number], fitted
