"""What `Ranker` and `Committee` rest on: everything that was tried, judged without any test fold.

Of the training queries of each fold of MQ2008 and OHSUMED a third after the other stops the training, the rest is
trained on, and the validation part is measured. LightGBM's example is cut into five parts, of which one is measured, in
the same way. Samples of web-shaped data have parts of their own. Every result is kept in `bench/.cache/candidates`.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import podium
from bench.accuracy import catboost_model, lightgbm_model, xgboost_model
from bench.defaults import DATA, tasks
from bench.harness import Report
from bench.noisy import Noisy
from bench.stochastic import LambdaEx, Yeti
from podium.boosting.committee import CommitteeRun, CommitteeTraining
from podium.combining import deviation
from podium.data.splitting import fold_of_queries
from podium.evaluation.significance import paired_t
from podium.objectives import XENDCG, Anneal, Lambda, LinearGrowth, Pairwise, QueryRegression, Sum

CACHE = Path(__file__).parent / ".cache" / "candidates"
MEASURE = podium.NDCG(10)
Data = podium.RankingData
Scores = Callable[[Data], Any]
SAMPLED: dict[str, Any] = {
    "n_trees": 1000, "patience": 100, "learning_rate": 0.05, "document_fraction": 0.7, "feature_fraction": 0.5,
    "split_fraction": 1.0,
}  # fmt: skip
LAMBDA, QUERY = Lambda("ndcg", normalize=True), QueryRegression()
FEW = ("mq2008", "ohsumed", "lightgbm example", "web, 30 queries")
YETI_RANK, YETI_LOSS = Yeti(), Yeti(by_ndcg=True, scale=100.0)
HALF, TENTH = Sum(LAMBDA, QUERY), Sum(LAMBDA, QUERY, weights=(0.9, 0.1))
TURN = Anneal(QUERY, LAMBDA, LinearGrowth(0.0, 0.01))
BASE = "LambdaMART()"
SHARES = {"half of the features": 0.5, "all features": 1.0}


# --- data

SIZES = {"web, 30 queries": (30, 8), "web, 100 queries": (100, 4), "web, 300 queries": (300, 2)}
SETS = ("mq2008", "ohsumed", "lightgbm example", *SIZES)
LARGE = {"web, 1,500 queries": (1500, 1)}
OTHERS = ("cubic", *LARGE)  # looked at, not decided by


@cache
def parts_of(name: str) -> list[tuple[Data, Data, Data]]:
    """Data to train on, to stop by and to measure on, for each task of a set."""
    if name in ("mq2008", "ohsumed", "cubic"):
        return tasks(name)
    if name in (webs := SIZES | LARGE):
        queries, samples = webs[name]
        return [
            (
                podium.artificial_web(queries, seed=100 + k),
                podium.artificial_web(queries // 3, seed=100 + k, part="valid"),
                podium.artificial_web(200, seed=100 + k, part="test"),
            )
            for k in range(samples)
        ]
    whole = podium.read(DATA / "lightgbm_example" / "train.txt.gz")
    measured, found = fold_of_queries(whole.query_ids, 5, seed=0), []
    for fold in range(5):
        rest = whole.select(measured != fold)
        stopping = fold_of_queries(rest.query_ids, 3, seed=1)
        found += [(rest.select(stopping != k), rest.select(stopping == k), whole.select(measured == fold))
                  for k in range(3)]  # fmt: skip
    return found


def n_tasks(name: str) -> int:
    """How many there are, without reading the data."""
    return (SIZES | LARGE)[name][1] if name in SIZES | LARGE else 1 if name == "cubic" else 15


# --- candidates: each function trains on some data and returns one or several rankers by name


@dataclass
class Candidate:
    """Rows of the table that come from one training.

    Attributes:
        train: from training data, data to stop by and a seed to rankers by name.
        sets: where it is tried.

    """

    train: Callable[[Data, Data, int], dict[str, Scores]]
    sets: Iterable[str] = field(default=SETS)


def single(train: Data, stop: Data, seed: int, **settings: Any) -> dict[str, Scores]:
    """One model, stopped early."""
    model = podium.LambdaMART(random_state=seed, n_threads=1, **settings).fit(train, valid=stop)
    return {"": model.predict}


def peer(make: Callable[..., Any], train: Data, stop: Data, seed: int) -> dict[str, Scores]:
    """Another tool with its defaults."""
    return {"": make(train, stop, seed, None)[0]}


def average(models: list[Any], data: Data) -> Scores:
    """Equal weights of models, whose scores are standardised on some data."""
    sizes = [deviation(data, model.predict(data)) for model in models]
    return lambda some: sum(model.predict(some) / size for model, size in zip(models, sizes, strict=True))


def smoothed_best(curve: list[float], window: int) -> int:
    """The round at the top of a moving mean."""
    half = window // 2
    padded = np.pad(curve, half, mode="edge")
    return int(np.argmax(np.convolve(padded, np.ones(window) / window, "valid")))


def stopping(train: Data, stop: Data, seed: int, **settings: Any) -> dict[str, Scores]:
    """Other ways to choose the number of trees of one and the same run."""
    first = podium.LambdaMART(random_state=seed, n_threads=1, **settings).fit(train, valid=stop)
    curve = next(iter(first.history_.values()))
    whole = settings | {"n_trees": len(curve), "patience": None}
    model = podium.LambdaMART(random_state=seed, n_threads=1, **whole).fit(train)
    of_queries = podium.evaluate(stop, first.predict(stop), MEASURE).values["ndcg@10"]
    error = float(np.std(of_queries, ddof=1) / np.sqrt(len(of_queries)))
    chosen = {f"curve smoothed over {w}": smoothed_best(curve, w) for w in (11, 31)}
    chosen["first within 0.1 standard errors"] = int(np.argmax(np.array(curve) >= max(curve) - 0.1 * error))
    chosen["first within a standard error"] = int(np.argmax(np.array(curve) >= max(curve) - error))
    return {name: partial(model.predict, n_trees=best + 1) for name, best in chosen.items()}


def refitted(train: Data, stop: Data, seed: int, **settings: Any) -> dict[str, Scores]:
    """As many trees as were best, on all data."""
    n_trees = podium.LambdaMART(random_state=seed, n_threads=1, **settings).fit(train, valid=stop).n_trees_
    again = settings | {"n_trees": n_trees, "patience": None}
    model = podium.LambdaMART(random_state=seed, n_threads=1, **again).fit(Data.concatenate([train, stop]))
    return {"": model.predict}


def crossed(train: Data, stop: Data, seed: int, objectives: Any = (None,), n_folds: int = 5, **settings: Any) -> Any:
    """All data in folds: each model stops by one of them; their mean, and one model with as many trees in the mean."""
    data = Data.concatenate([train, stop])
    fold = fold_of_queries(data.query_ids, n_folds, seed)
    models = [
        podium.LambdaMART(random_state=seed + 1000 * k, n_threads=1, objective=objectives[k % len(objectives)],
                          **settings).fit(data.select(fold != k), valid=data.select(fold == k))
        for k in range(n_folds)
    ]  # fmt: skip
    found = {"mean of the folds' models": average(models, data)}
    if len(objectives) == 1:
        curves = [next(iter(model.history_.values())) for model in models]
        shortest = min(map(len, curves))
        best = int(np.argmax(np.mean([curve[:shortest] for curve in curves], axis=0)))
        again = settings | {"n_trees": best + 1, "patience": None, "objective": objectives[0]}
        model = podium.LambdaMART(random_state=seed, n_threads=1, **again).fit(data)
        found["trees by cross-validation, all data"] = model.predict
    return found


def bagged(train: Data, stop: Data, seed: int, objectives: Any, n_models: int = 5, **settings: Any) -> Any:
    """The mean of models that differ in their seeds, all stopped by the same queries."""
    models = [
        podium.LambdaMART(random_state=seed + 1000 * k, n_threads=1, objective=objectives[k % len(objectives)],
                          **settings).fit(train, valid=stop)
        for k in range(n_models)
    ]  # fmt: skip
    return {"": average(models, train)}


def committee(train: Data, stop: Data, seed: int, **settings: Any) -> dict[str, Scores]:
    """`Committee`, weighed by the queries that stop."""
    return {"": podium.Committee(random_state=10_000 * seed, n_threads=1, **settings).fit(train, valid=stop).predict}


def whole_ranker(train: Data, stop: Data, seed: int, **settings: Any) -> dict[str, Scores]:
    """`Ranker` with all data."""
    data = Data.concatenate([train, stop])
    return {"": podium.Ranker(random_state=10_000 * seed, n_threads=1, **settings).fit(data).predict}


def chosen_ranker(train: Data, stop: Data, seed: int, settings: dict[str, dict[str, Any]]) -> dict[str, Scores]:
    """`Ranker` with all data and each of some settings, and with the one whose cross-validation has the best round."""
    data = Data.concatenate([train, stop])
    fitted = {
        name: podium.Ranker(random_state=10_000 * seed, n_threads=1, **one).fit(data) for name, one in settings.items()
    }
    best = max(fitted, key=lambda name: max(fitted[name].history_["folds/ndcg@10"]))
    fitted["the best in cross-validation"] = fitted[best]
    return {name: model.predict for name, model in fitted.items()}


@dataclass
class Timed:
    """A ranker, and the seconds of processor time that it took, where several come from one training."""

    score: Scores
    seconds: float

    def __call__(self, data: Data) -> Any:
        """The scores."""
        return self.score(data)


def growing_committee(train: Data, stop: Data, seed: int, **changes: Any) -> dict[str, Scores]:
    """`Committee` with all data, and what it is with its first objectives alone."""
    data = Data.concatenate([train, stop])
    usual = CommitteeTraining(**{k: v for k, v in changes.items() if k == "n_folds"})
    boosting = replace(
        usual.boosting, n_threads=1, verbose=0, sampling=replace(usual.boosting.sampling, seed=10_000 * seed),
        **{k: v for k, v in changes.items() if k != "n_folds"},
    )  # fmt: skip
    training, started = replace(usual, boosting=boosting, tries_all_features=True), time.process_time()
    found: dict[str, Scores] = {}
    parts, judging = training.parts(data, None)
    committee = CommitteeRun(training.with_features(parts, data), parts, judging, data)
    for block in training.blocks():
        committee.train([block])
        model = committee.result().ensemble
        committee.tried.clear()
        n, seconds = len(committee.trained), time.process_time() - started
        found[f"{n} objective{'s' * (n > 1)}"] = Timed(partial(model.predict, n_threads=1), seconds)
    return found


def sampled(objective: Any = None, train: Any = single, sets: Iterable[str] = SETS, **changes: Any) -> Candidate:
    """A candidate with the sampled settings."""
    own = {} if "objectives" in changes else {"objective": objective}
    return Candidate(partial(train, **(SAMPLED | own | changes)), sets)


CANDIDATES: dict[str, Candidate] = {
    "LambdaMART()": Candidate(partial(single, n_trees=1000, patience=100), (*SETS, *OTHERS)),
    "catboost QueryRMSE": Candidate(partial(peer, partial(catboost_model, "QueryRMSE"))),
    "xgboost": Candidate(partial(peer, xgboost_model)),
    "lightgbm": Candidate(partial(peer, lightgbm_model)),
    "λ": sampled(LAMBDA, sets=(*SETS, *OTHERS)),
    "query regression": sampled(QUERY, sets=(*SETS, *OTHERS)),
    "XE-NDCG": sampled(XENDCG()),
    "½ λ + ½ QR": sampled(HALF, sets=(*SETS, *OTHERS)),
    "0.9 λ + 0.1 QR": sampled(TENTH, sets=(*SETS, *OTHERS)),
    "QR → λ over 100 trees": sampled(TURN, sets=(*SETS, *OTHERS)),
    "QR → λ over 100 trees, all features": sampled(TURN, feature_fraction=1.0, sets=(*SETS, *OTHERS)),
    "0.98 λ + 0.02 QR": sampled(Sum(LAMBDA, QUERY, weights=(0.98, 0.02))),
    "⅓ λ + ⅓ QR + ⅓ XE-NDCG": sampled(Sum(LAMBDA, QUERY, XENDCG())),
    "λ with noise": sampled(Noisy(LAMBDA), sets=FEW),
    "YetiRank": sampled(YETI_RANK, sets=FEW),
    "YetiLoss": sampled(YETI_LOSS, sets=FEW),
    "QR → YetiLoss over 100 trees": sampled(Anneal(QUERY, YETI_LOSS, LinearGrowth(0.0, 0.01)), sets=FEW),
    "λ@10": sampled(LambdaEx(select="plain"), sets=FEW),
    "λ@10, Lambda-eX static": sampled(LambdaEx(select="static"), sets=FEW),
    "λ@10, Lambda-eX random": sampled(LambdaEx(select="random"), sets=FEW),
    "λ@10, Lambda-eX all": sampled(LambdaEx(select="all"), sets=FEW),
    "catboost YetiRank": Candidate(partial(peer, partial(catboost_model, "YetiRank")), FEW),
    # changes of the settings
    "½ λ + ½ QR, all documents": sampled(HALF, document_fraction=1.0),
    "½ λ + ½ QR, all features": sampled(HALF, feature_fraction=1.0, sets=(*SETS, "cubic")),
    "½ λ + ½ QR, learning rate 0.1": sampled(HALF, learning_rate=0.1),
    "½ λ + ½ QR, 7 leaves": sampled(HALF, n_leaves=7),
    "½ λ + ½ QR, 31 leaves": sampled(HALF, n_leaves=31),
    "½ λ + ½ QR, 5 documents in a leaf": sampled(HALF, min_documents_in_leaf=5),
    "½ λ + ½ QR, l2 = 10": sampled(HALF, l2=10.0),
    "QR → λ over 100 trees, 75% of the features": sampled(TURN, feature_fraction=0.75, sets=(*SETS, *OTHERS)),
    "QR → λ over 100 trees, 2,000 trees": sampled(TURN, n_trees=2000, sets=OTHERS),
    "QR → λ over 100 trees, 2,000 trees, 75% of the features": sampled(
        TURN, n_trees=2000, feature_fraction=0.75, sets=OTHERS
    ),
    "QR → λ over 100 trees, 2,000 trees, all features": sampled(TURN, n_trees=2000, feature_fraction=1.0, sets=OTHERS),
    "QR → λ over 100 trees, 7 leaves": sampled(TURN, n_leaves=7, sets=(*SETS, *OTHERS)),
    "QR → λ over 100 trees, 31 leaves": sampled(TURN, n_leaves=31, sets=(*SETS, *OTHERS)),
    "QR → λ over 100 trees, l2 = 10": sampled(TURN, l2=10.0, sets=(*SETS, *OTHERS)),
    "QR → λ over 100 trees, 5 documents in a leaf": sampled(TURN, min_documents_in_leaf=5, sets=(*SETS, *OTHERS)),
    # other ways to choose the number of trees
    "½ λ + ½ QR, ": sampled(HALF, stopping),
    "½ λ + ½ QR, trees as stopped, all data": sampled(HALF, refitted),
    # all data in folds, and means of models
    "½ λ + ½ QR in 5 folds": sampled(train=crossed, objectives=(HALF,)),
    "five objectives in 5 folds": sampled(train=crossed, objectives=(HALF, XENDCG(), QUERY, LAMBDA, Pairwise())),
    "Ranker, all data": Candidate(
        partial(
            chosen_ranker,
            settings={name: {"n_trees": 1000, "feature_fraction": share} for name, share in SHARES.items()},
        ),
        (*SETS, *OTHERS),
    ),
    "Ranker(), all data": Candidate(whole_ranker, (*SETS, *OTHERS)),
    "Committee, all data": Candidate(growing_committee, (*SETS, *OTHERS)),
    "Committee, 3 folds, all data": Candidate(partial(growing_committee, n_folds=3), FEW),
    "Committee, patience 50, all data": Candidate(partial(growing_committee, patience=50), FEW),
    "Committee, learning rate 0.1, all data": Candidate(partial(growing_committee, learning_rate=0.1), FEW),
    "mean of 5 seeds of ½ λ + ½ QR": sampled(train=bagged, objectives=(HALF,)),
}


# --- running


def run_task(job: tuple[str, str, int]) -> None:
    """Train a candidate on one task of a set, and keep the values of each measured query."""
    candidate, name, number = job
    kept = _kept(candidate, name, number)
    if kept.exists():
        return
    train, stop, measured = parts_of(name)[number]
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", podium.PodiumWarning)
        rankers = CANDIDATES[candidate].train(train, stop, number)
        seconds = time.process_time() - started
        values = {
            row: np.nan_to_num(podium.evaluate(measured, score(measured), MEASURE).values["ndcg@10"]).round(5).tolist()
            for row, score in rankers.items()
        }
    CACHE.mkdir(parents=True, exist_ok=True)
    of_rows = {row: getattr(score, "seconds", seconds) for row, score in rankers.items()}
    kept.write_text(json.dumps({"seconds": of_rows, "values": values}))


def _kept(candidate: str, name: str, number: int) -> Path:
    return CACHE / f"{candidate}-{name}-{number}.json".replace("/", "⁄").replace(" ", "_")


def is_there(candidate: str, name: str) -> bool:
    """Whether every query was measured; tasks that measure the same queries again may be missing."""
    return all(any(_kept(candidate, name, k).exists() for k in group) for group in same_queries(name))


def same_queries(name: str) -> list[range]:
    """Tasks that measure the same queries: three for each fold of the real sets."""
    again = 3 if n_tasks(name) == 15 else 1
    return [range(k, k + again) for k in range(0, n_tasks(name), again)]


def results(candidate: str, name: str) -> dict[str, Any]:
    """For each row the values of all queries, those of the same query averaged; with the seconds of a task."""
    found = [
        [json.loads(kept.read_text()) for k in group if (kept := _kept(candidate, name, k)).exists()]
        for group in same_queries(name)
    ]
    rows = found[0][0]["values"]
    queries = {
        row: np.concatenate([np.mean([one["values"][row] for one in group], axis=0) for group in found]) for row in rows
    }
    seconds = {row: float(np.mean([one["seconds"][row] for group in found for one in group])) for row in rows}
    return {"queries": queries, "seconds": seconds}


def train_all(names: Iterable[str], n_processes: int) -> None:
    """Everything that is not there yet."""
    wanted = os.environ.get("SETS")  # some of the sets alone, with semicolons between them
    sets = wanted.split(";") if wanted else (*SETS, *OTHERS)
    jobs = [
        (c, s, group[k]) for s in sets for k in range(3) for c in names if s in CANDIDATES[c].sets
        for group in same_queries(s) if k < len(group)
    ]  # fmt: skip
    jobs = [job for job in jobs if not _kept(*job).exists()]
    if n_processes == 1:
        for job in jobs:
            run_task(job)
        return
    with multiprocessing.get_context("spawn").Pool(n_processes) as pool:
        for _ in pool.imap(run_task, jobs):
            pass


def table(names: Iterable[str] = CANDIDATES) -> list[dict[str, Any]]:
    """A row for each ranker: its value on each set, the mean over the sets, and p of the difference to the base."""
    rows = []
    base = {s: results(BASE, s)["queries"][""] for s in SETS}
    for name in names:
        there = [s for s in CANDIDATES[name].sets if is_there(name, s)]
        of_sets = {s: results(name, s) for s in there}
        for label in next(iter(of_sets.values()))["queries"] if of_sets else ():
            row: dict[str, Any] = {"candidate": ", ".join(filter(None, (name.rstrip(", "), label)))}
            for s, found in of_sets.items():
                row[s] = f"{found['queries'][label].mean():.4f}"
            judged = [s for s in SETS if s in of_sets]
            if len(judged) == len(SETS):
                row["mean"] = f"{np.mean([of_sets[s]['queries'][label].mean() for s in SETS]):.4f}"
            apart = np.concatenate([of_sets[s]["queries"][label] - base[s] for s in judged])
            row[f"ahead of {BASE}"] = f"{apart.mean():+.4f}, p = {paired_t(apart):.2g}"
            row["seconds"] = f"{np.sum([found['seconds'][label] for s, found in of_sets.items() if s in SETS]):.1f}"
            rows.append(row)
    return rows


def run() -> Report:
    """Train everything that is not there yet, and compare."""
    train_all(CANDIDATES, os.cpu_count() or 1)
    return report()


def report() -> Report:
    """What is there so far."""
    columns = ("candidate", "mean", f"ahead of {BASE}", *SETS, *OTHERS, "seconds")
    return Report(
        "candidates", "Everything tried for Ranker and Committee: NDCG@10 on validation queries",
        [{column: row.get(column, "") for column in columns} for row in table()],
        [
            "Empty queries count 0. No test fold was read: mq2008 and ohsumed are the validation parts of five folds, "
            "a third after the other of the training queries stops, the rest is trained on; lightgbm example is its "
            "training part, cut into five; web, N queries: samples of web-shaped data, N queries to train on, N / 3 "
            "to stop by, 200 to measure on (8, 4, 2 and 1 samples); cubic: the papers' artificial data, 300 queries "
            "for each purpose. Mean: over the sets that were decided by, all but cubic and the largest. Ahead: over "
            "all queries of those sets where a candidate was tried, runs on the same query averaged, with p of a "
            "paired t-test. Seconds: of processor time for one task of each of these sets, together. Peers and "
            "LambdaMART() have their defaults, at most 1,000 trees, patience 100. All others: 15 leaves, learning "
            "rate 0.05, l2 = 1, 70% of the documents and half of the features for each tree; QR is query regression. "
            "All data, in 5 folds: the queries that stop are trained on as well. So these rows had half again as many "
            "training queries as peers and other rows: compare them with each other, and the objectives with the "
            "peers. What was chosen was chosen on these very queries, among all rows: figures of what was chosen "
            "flatter, p is not corrected for the number of rows, and only other queries can confirm it. An empty cell "
            "was not run, and candidates of bench/candidates.py without a row were not run at all."
        ],
    )  # fmt: skip


if __name__ == "__main__":
    train_all(sys.argv[2:] or CANDIDATES, int(sys.argv[1]))
