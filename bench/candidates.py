"""Candidates for the objective of `Ranker`, trained on training queries and measured on validation queries.

Folds rotate, so a validation query of one fold is a test query of another. Every candidate has the settings of
`Ranker`, chooses its number of rounds by cross-validation on the training queries, and is measured on the validation
queries of each fold. In addition to the sets of `bench.ranking_sets` that are not held out, there is generated data
with few, many, noisy, sparse and redundant features. Every result is cached in `bench/.cache/candidates`.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np

import podium
from bench.harness import Report, cached
from bench.ranking_sets import HELD_OUT, SETS, Data, fold
from podium.combining import deviation
from podium.objectives import XENDCG, Anneal, Average, Lambda, LinearGrowth, Objective, QueryRegression, Sum
from podium.objectives.sums import BoundAverage

MEASURE = "ndcg@10"
KINDS = ("few", "many", "noisy", "sparse", "redundant")
GENERATED = {f"{kind}, {queries} queries": (kind, queries) for kind in KINDS for queries in (100, 1000)}
TASKS = {name: n for name, n in SETS.items() if name not in HELD_OUT} | dict.fromkeys(GENERATED, 1)


class RawAverage(Average):
    """`Average` without standardized scores."""

    def bind(self, data: Data) -> Any:
        bound: Any = super().bind(data)
        return BoundRawAverage(bound.parts, data)


class BoundRawAverage(BoundAverage):
    """Outputs that all have the same weight."""

    def _set_deviations(self, deviations: Any) -> None:
        super()._set_deviations(np.ones(len(deviations)))


REGRESSION, LAMBDA = QueryRegression(), Lambda("ndcg")
CANDIDATES: dict[str, Objective] = {
    "λ": LAMBDA,
    "query regression": REGRESSION,
    "XE-NDCG": XENDCG(),
    "query regression → λ over 100 trees (Ranker in 0.2)": Anneal(REGRESSION, LAMBDA, LinearGrowth(0.0, 0.01)),
    "λ + query regression, one model": Sum(LAMBDA, REGRESSION),
    "average of query regression and λ": Average(REGRESSION, LAMBDA),
    "the same, scores not standardized": RawAverage(REGRESSION, LAMBDA),
    "the same, λ truncated at 20 (Ranker)": Average(REGRESSION, Lambda("ndcg", truncation=20)),
    "the same, with XE-NDCG": Average(REGRESSION, LAMBDA, XENDCG()),
}
APART = "the same, number of rounds chosen apart"  # the sum of scores of two models, one for each objective
COMMITTEE = "Committee"


class Candidate(podium.Ranker):
    """`Ranker` on another objective."""

    def with_objective(self, objective: Objective) -> Candidate:
        """Set the objective."""
        self.objective = objective
        return self

    def _objective(self, train: Data) -> Objective:
        return self.objective


def generated(kind: str, queries: int, seed: int) -> Data:
    """Return data whose labels depend on eight hidden variables, seen through features of one kind."""
    rng = np.random.default_rng([seed, KINDS.index(kind), queries])
    sizes = rng.integers(10, 40, queries)
    n, qid = int(sizes.sum()), np.repeat(np.arange(queries), sizes)
    hidden = rng.normal(size=(n, 8))
    of_query = rng.normal(size=queries)[qid]
    utility = np.sin(1.5 * hidden[:, 0]) + 0.7 * hidden[:, 1] * hidden[:, 2] + np.abs(hidden[:, 3]) + 0.8 * hidden[:, 4]
    utility += 0.5 * (hidden[:, 5] > 0.5) * hidden[:, 6] + 0.3 * of_query * hidden[:, 7]
    utility += (2.5 if kind == "noisy" else 1.0) * rng.normal(size=n)
    if kind == "few":
        features = hidden[:, :6]
    elif kind == "many":
        features = np.column_stack([hidden, rng.normal(size=(n, 292))])
    elif kind == "noisy":
        features = np.column_stack([hidden + 0.5 * rng.normal(size=(n, 8)), rng.normal(size=(n, 32))])
    elif kind == "redundant":
        features = hidden @ rng.normal(size=(8, 80)) + 0.3 * rng.normal(size=(n, 80))
    else:
        features = np.where(rng.random((n, 200)) < 0.04, rng.exponential(size=(n, 200)), 0.0)
        weights = rng.normal(size=200) * (rng.random(200) < 0.3)
        utility = 0.5 * utility + 0.8 * features @ weights
        features[:, :6] = hidden[:, :6] * (rng.random((n, 6)) < 0.5)
    cuts = np.quantile(utility, [0.6, 0.8, 0.92, 0.98])
    labels = np.searchsorted(cuts, utility + 0.5 * rng.normal(size=queries)[qid])
    return Data(features.round(3).astype(np.float32), labels.astype(float), qid=qid)


def parts_of(task: str, number: int) -> tuple[Data, Data]:
    """Return the queries to train on, and those to measure."""
    if task in GENERATED:
        kind, queries = GENERATED[task]
        whole = generated(kind, queries + 300, seed=number)
        is_train = whole.query_ids < queries
        return whole.select(is_train), whole.select(~is_train)
    train, vali, _ = fold(task, number)
    return train, vali


def values_of(candidate: str, task: str, number: int) -> list[float]:
    """Return the measure of each query, from a new run or a cached one."""

    def measure() -> Any:
        train, measured = parts_of(task, number)
        if candidate == APART:
            scores = sum(scores_of(part, train, measured, number) for part in ("query regression", "λ"))
        else:
            scores = scores_of(candidate, train, measured, number, standardized=False)
        return np.nan_to_num(podium.evaluate(measured, scores, MEASURE).values[MEASURE]).round(6).tolist()

    place = [*CANDIDATES, COMMITTEE, APART].index(candidate)
    values: list[float] = cached(f"candidates/{place}-{task}-{number}.json", measure)
    return values


def scores_of(candidate: str, train: Data, measured: Data, seed: int, standardized: bool = True) -> Any:
    """Return the scores of the measured documents."""
    settings = {"random_state": seed, "n_threads": 1}
    model: Any = podium.Committee(**settings)
    if candidate != COMMITTEE:
        model = Candidate(**settings).with_objective(CANDIDATES[candidate])
    model.fit(train)
    scale = deviation(train, model.predict(train)) if standardized else 1.0
    return model.predict(measured) / scale


def run() -> Report:
    """Train everything that is not cached; return a row for each candidate with a column for each set."""
    names = [*CANDIDATES, APART, COMMITTEE]
    means: dict[str, dict[str, float]] = {name: {} for name in names}
    for task, n in TASKS.items():
        for name in names:
            values = np.concatenate([values_of(name, task, number) for number in range(1, n + 1)])
            means[name][task] = float(values.mean())
    best = {task: max(means[name][task] for name in CANDIDATES) for task in TASKS}
    rows = []
    for name in names:
        row: dict[str, Any] = {"candidate": name}
        row["mean over the sets"] = f"{np.mean(list(means[name].values())):.4f}"
        row["most behind the best objective"] = f"{max(best[task] - means[name][task] for task in TASKS):.4f}"
        rows.append(row | {task: f"{value:.4f}" for task, value in means[name].items()})
    return Report(
        "candidates", "Candidates for Ranker's objective", rows,
        [
            "NDCG@10 on validation queries. Queries without a relevant document count as 0. Every candidate is "
            "trained on the training queries with the settings of Ranker. Generated sets: labels depend on eight "
            "hidden variables, seen through few (6), many (300), noisy (40), sparse (200) or redundant (80) features.",
        ],
    )  # fmt: skip


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for one_task, n_folds in TASKS.items():
        for one_candidate in [*CANDIDATES, APART, COMMITTEE] if len(sys.argv) == 1 else sys.argv[1:]:
            for k in range(1, n_folds + 1):
                values_of(one_candidate, one_task, k)
            print(one_task, one_candidate, flush=True)
