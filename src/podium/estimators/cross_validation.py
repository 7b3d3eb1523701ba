"""Cross-validation by queries: every query is scored by a model that has not seen it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from podium.core.array_types import Floats, Ints
from podium.core.plotting import draw
from podium.core.sums import mean
from podium.core.validation import require_number, require_whole
from podium.data import RankingData
from podium.data.datasets.benchmark_folds import Fold
from podium.data.schema import as_data
from podium.data.subsets import concatenate, fold_of_queries, require_weight_outside, split_by_content, without_features
from podium.errors import DataError
from podium.estimators.many import Fit, SharedData, fit_each, require_ranker
from podium.evaluation import Comparison, Evaluation
from podium.evaluation.comparing import compared
from podium.evaluation.evaluating import ByMeasure, Measures, as_measures, evaluated
from podium.evaluation.significance import standard_error
from podium.evaluation.tables import Table
from podium.measures import Ranking, warn_of_powers

DEFAULT_FOLDS = 5


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """The result of `cross_validate`: every query counts once, by the model of the fold that it tests.

    Attributes:
        evaluations: the `Evaluation` of each system: values of all test queries, means and intervals.
        fold_names: the names of the folds.
        fold_of_query: the number of the fold that each query of the evaluations tests.
        scores: the scores of all test documents by each system, in the order of the data's rows, or of the test data
            of the first fold, the second, and so on.
        estimators: the fitted estimators of each system, one for each fold, if they were asked for.

    Example:
        >>> import podium
        >>> data = podium.artificial(20, features=4)
        >>> models = {"few": podium.LambdaMART(n_trees=2), "many": podium.LambdaMART(n_trees=20)}
        >>> result = podium.cross_validate(models, data, folds=2, measures="ndcg")
        >>> result.fold_means["many"]["ndcg"].shape, result.compare().pairs[0].b
        ((2,), 'many')

    """

    evaluations: dict[str, Evaluation]
    fold_names: tuple[str, ...]
    fold_of_query: Ints
    scores: dict[str, Floats] = field(repr=False)
    estimators: dict[str, list[Any]] | None = field(default=None, repr=False)

    @property
    def means(self) -> dict[str, dict[str, float]]:
        """The mean over all queries, by system and measure."""
        return {name: evaluation.means for name, evaluation in self.evaluations.items()}

    @property
    def standard_errors(self) -> dict[str, dict[str, float]]:
        """The standard error of each mean, from the spread of the queries."""
        return {
            name: ByMeasure({measure: _standard_error(values) for measure, values in evaluation.values.items()})
            for name, evaluation in self.evaluations.items()
        }

    @property
    def fold_means(self) -> dict[str, dict[str, Floats]]:
        """The mean over the queries of each fold, by system and measure."""
        return {
            name: ByMeasure({measure: self._means_by_fold(values) for measure, values in evaluation.values.items()})
            for name, evaluation in self.evaluations.items()
        }

    def _means_by_fold(self, values: Floats) -> Floats:
        folds = [values[self.fold_of_query == k] for k in range(len(self.fold_names))]
        return np.array([mean(fold[~np.isnan(fold)]) for fold in folds])

    def compare(
        self,
        *,
        baseline: str | None = None,
        margin: float | None = None,
        resamples: int = 100_000,
        seed: int = 0,
    ) -> Comparison:
        """Compare the systems query by query, with significance, see `podium.compare`."""
        return compared(self.evaluations, baseline, margin, resamples, seed)

    def table(self) -> Table:
        """Return a row for each system and measure: mean, standard error, interval, and the mean of each fold."""
        errors, fold_means, rows = self.standard_errors, self.fold_means, []
        for name, evaluation in self.evaluations.items():
            for measure, value in evaluation.means.items():
                folds = fold_means[name][measure].tolist()
                rows.append([name, measure, value, errors[name][measure], *evaluation.intervals[measure], *folds])
        columns = ["system", "measure", "mean", "standard error", "95% from", "to", *self.fold_names]
        return Table(columns, rows)

    def plot(self) -> Any:
        """Return a chart of the mean of each system with its 95% interval, and of its folds (extra `report`)."""
        return draw("folds", self)

    def __str__(self) -> str:
        n_folds = len(self.fold_names)
        return f"{len(self.fold_of_query)} queries, {n_folds} fold{'s' * (n_folds > 1)}\n\n{self.table()}"

    def __rich__(self) -> Any:
        return self.table().__rich__()


def _standard_error(values: Floats) -> float:
    values = values[~np.isnan(values)]
    return standard_error(values, mean(values)) if len(values) > 1 else math.nan


def cross_validate(
    estimators: Any,
    data: Any,
    *,
    folds: int | None = None,
    measures: Measures = ("ndcg@10",),
    valid: float | None = None,
    seed: int = 0,
    return_estimator: bool = False,
    n_threads: int | None = None,
    verbose: int | None = None,
) -> CrossValidation:
    """Fit estimators on folds of the queries, and measure each query by the models that have not seen it.

    Fits run in parallel, as in `fit_many`. Documents with equal scores are in the canonical order, so the result does
    not depend on the order of the rows.

    Args:
        estimators: a Podium estimator, or several by name; they are not changed.
        data: `RankingData`, whose queries are split into folds by their ids and the seed, as by `QueryKFold`; or folds
            of training, validation and test data from `podium.data.datasets.folds`.
        folds: the number of folds, 5 by default; omit it if the data has folds.
        measures: as in `evaluate`.
        valid: the share of each fold's training queries to set aside, which stop training and pick the number of trees;
            omit it if the folds have validation data.
        seed: the seed of folds and validation queries.
        return_estimator: whether to keep the fitted estimators.
        n_threads: the number of threads for all fits in total; all cores by default.
        verbose: as in `fit_many`.

    Returns:
        Values of each query, means with standard errors, means of folds, comparisons.

    Example:
        >>> import podium
        >>> model, data = podium.LambdaMART(n_trees=5), podium.artificial(20, features=4)
        >>> result = podium.cross_validate(model, data, folds=2, measures="ndcg@10")
        >>> result.fold_names, 0 < result.means["LambdaMART"]["ndcg@10"] < 1
        (('fold 1', 'fold 2'), True)

    """
    systems, checked_measures = _named(estimators), as_measures(measures)
    if valid is not None:
        require_number("valid", valid, above=0, below=1)
    if isinstance(data, Sequence):
        if folds is not None:
            raise DataError("the data already has folds: omit folds=…, or pass RankingData")
        parts = _predefined_folds(list(data), valid, seed)
    else:
        parts = _query_folds(as_data(data), DEFAULT_FOLDS if folds is None else folds, valid, seed)
    n_folds = len(parts.names)
    shared = [SharedData(partial(parts.train, k)) for k in range(n_folds)]
    tasks = [(name, k) for k in range(n_folds) for name in systems]
    fits = [Fit(f"{name} on {parts.names[k]}", systems[name], shared[k]) for name, k in tasks]
    fitted: dict[str, list[Any]] = {name: [None] * n_folds for name in systems}
    scores = {name: np.empty(len(parts.order)) for name in systems}
    with closing(fit_each(fits, n_threads=n_threads, verbose=verbose)) as outcomes:
        for number, estimator in outcomes:
            name, k = tasks[number]
            scores[name][parts.rows(k)] = estimator._predict(parts.test(k))
            fitted[name][k] = estimator if return_estimator else None
    documents = parts.documents
    warn_of_powers(checked_measures, documents)
    evaluations = {}
    for name, system_scores in scores.items():
        ranking = Ranking(documents, system_scores[parts.order], base=documents.order)
        evaluations[name] = evaluated(documents, ranking, checked_measures, False, name)
    return CrossValidation(
        evaluations, parts.names, parts.fold_of_query, scores, fitted if return_estimator else None
    )  # fmt: skip


def _named(estimators: Any) -> dict[str, Any]:
    """Return the estimators by name."""
    named = dict(estimators) if isinstance(estimators, Mapping) else {type(estimators).__name__: estimators}
    if not named:
        raise DataError("pass at least one estimator")
    for estimator in named.values():
        require_ranker(estimator, "cross_validate")
    return named


@dataclass(frozen=True)
class _Folds:
    """Folds that test each query once. The functions take the number of a fold."""

    names: tuple[str, ...]
    fold_of_query: Ints  # the fold that tests each query
    train: Callable[[int], tuple[RankingData, dict[str, RankingData]]]  # returns training data, and validation sets
    test: Callable[[int], RankingData]
    rows: Callable[[int], Any]  # returns the rows of a fold's test data within all test data
    documents: RankingData  # all test data, without features and in the canonical order
    order: Ints  # the canonical order: the number of each row of `documents` in all test data


def _query_folds(data: RankingData, n_folds: int, valid: float | None, seed: int) -> _Folds:
    require_whole("folds", n_folds, 2)
    if data.n_queries < n_folds:
        raise DataError(f"{data.n_queries} queries are too few for {n_folds} folds: each needs a test query")
    names = tuple(f"fold {k + 1}" for k in range(n_folds))
    fold_of_query = fold_of_queries(data.query_ids, n_folds, seed)
    require_weight_outside(data, fold_of_query)
    fold_of_row = fold_of_query[data.query_of_row]
    for k, name in enumerate(names):
        _require_relevant(data, fold_of_row == k, name, "test")
        _require_relevant(data, fold_of_row != k, name, "training")
    return _Folds(
        names=names,
        fold_of_query=fold_of_query,
        train=lambda k: _split(data.select(fold_of_query != k), valid, seed),
        test=lambda k: data.select(fold_of_query == k),
        rows=lambda k: np.flatnonzero(fold_of_row == k),
        documents=without_features(data).take(data.canonical_order),
        order=data.canonical_order,
    )


def _predefined_folds(folds: list[Any], valid: float | None, seed: int) -> _Folds:
    if not folds or not all(isinstance(fold, Fold) for fold in folds):
        raise DataError("data must be RankingData, or a list of folds from podium.data.datasets.folds")
    tests = [_checked_test(fold, valid) for fold in folds]
    ids = np.concatenate([test.query_ids for test in tests])
    queries, counts = np.unique(ids, return_counts=True)
    if (counts > 1).any():
        raise DataError(f"query {queries[counts > 1][0]} is in the test data of two folds, so it would count twice")

    def train(k: int) -> tuple[RankingData, dict[str, RankingData]]:
        training, validation, _ = folds[k]
        return _split(training, valid, seed) if validation is None else (training, {"valid": validation})

    ends = np.cumsum([0, *map(len, tests)]).tolist()
    order = np.concatenate([start + test.canonical_order for start, test in zip(ends, tests, strict=False)])
    return _Folds(
        names=tuple(fold.name for fold in folds),
        fold_of_query=np.repeat(np.arange(len(folds)), [test.n_queries for test in tests]),
        train=train,
        test=tests.__getitem__,
        rows=lambda k: slice(ends[k], ends[k + 1]),
        documents=concatenate([without_features(test) for test in tests]).take(order),
        order=order,
    )


def _checked_test(fold: Fold, valid: float | None) -> RankingData:
    """Return the test data of a fold; raise if there is none, or if its queries are in other data of the fold."""
    train, validation, test = fold
    if test is None:
        raise DataError(f"{fold.name} has no test data: pass RankingData, whose queries are split into folds")
    if valid is not None and validation is not None:
        raise DataError(f"{fold.name} already has validation data: omit valid=…")
    for part, role in ((train, "training"), (validation, "validation")):
        if part is not None and len(shared := np.intersect1d(part.query_ids, test.query_ids)):
            raise DataError(f"{fold.name}: query {shared[0]} is in the {role} data and in the test data")
    assert train is not None
    for part, role in ((train, "training"), (test, "test")):
        _require_relevant(part, np.arange(len(part)), fold.name, role)
    return test


def _require_relevant(data: RankingData, rows: Any, fold: str, role: str) -> None:
    """Raise if no document is relevant, because every ranking would be equally good."""
    if "relevance" in data.labels and not (data.relevance[rows] > 0).any():
        raise DataError(f"the {role} data of {fold} has no relevant document: use fewer folds, or another seed")


def _split(train: RankingData, valid: float | None, seed: int) -> tuple[RankingData, dict[str, RankingData]]:
    """Return training data and, if requested, a share of its queries as validation data."""
    if valid is None:
        return train, {}
    train, validation = split_by_content(train, 1 - valid, valid, seed=seed)
    return train, {"valid": validation}
