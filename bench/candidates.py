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
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import podium
from bench.accuracy import catboost_model, lightgbm_model, xgboost_model
from bench.candidate_training import (
    MEASURE,
    Data,
    Scores,
    bagged,
    chosen_ranker,
    crossed,
    growing_committee,
    peer,
    refitted,
    single,
    stopping,
    whole_ranker,
)
from bench.defaults import DATA, tasks
from bench.harness import Report
from bench.noisy import Noisy
from bench.stochastic import LambdaEx, Yeti
from podium.data.subsets import fold_of_queries
from podium.evaluation.significance import paired_t
from podium.objectives import XENDCG, Anneal, Lambda, LinearGrowth, Pairwise, QueryRegression, Sum

CACHE = Path(__file__).parent / ".cache" / "candidates"
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


# --- candidates


@dataclass
class Candidate:
    """Rows of the table that come from one training.

    Attributes:
        train: from training data, data to stop by and a seed to rankers by name.
        sets: where it is tried.

    """

    train: Callable[[Data, Data, int], dict[str, Scores]]
    sets: Iterable[str] = field(default=SETS)


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
    base = {s: results(BASE, s)["queries"][""] for s in SETS if is_there(BASE, s)}
    for name in names:
        there = [s for s in CANDIDATES[name].sets if is_there(name, s)]
        of_sets = {s: results(name, s) for s in there}
        for label in next(iter(of_sets.values()))["queries"] if of_sets else ():
            row: dict[str, Any] = {"candidate": ", ".join(filter(None, (name.rstrip(", "), label)))}
            row["partly"] = [s for s in there if not all(_kept(name, s, k).exists() for k in range(n_tasks(s)))]
            for s, found in of_sets.items():
                row[s] = f"{found['queries'][label].mean():.4f}"
            judged = [s for s in SETS if s in of_sets]
            if len(judged) == len(SETS):
                row["mean"] = f"{np.mean([of_sets[s]['queries'][label].mean() for s in SETS]):.4f}"
            if judged and all(s in base for s in judged):
                apart = np.concatenate([of_sets[s]["queries"][label] - base[s] for s in judged])
                row[f"ahead of {BASE}"] = f"{apart.mean():+.4f}, p = {paired_t(apart):.2g}"
            row["seconds"] = f"{np.sum([found['seconds'][label] for s, found in of_sets.items() if s in SETS]):.1f}"
            rows.append(row)
    return rows


def with_earlier(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of the last report, with what is new; a run on another machine need not repeat all of it.

    Models are the same on any machine, so a cell that was run again does not change. The comparison with the base and
    the seconds of a row are kept where the last report had more sets, or more runs, than are there now.
    """
    path = Path(__file__).parent / "results" / "candidates.json"
    earlier = {row["candidate"]: row for row in json.loads(path.read_text())["rows"]} if path.exists() else {}
    of_all = (f"ahead of {BASE}", "seconds")
    for row in rows:
        known = earlier.setdefault(row["candidate"], {})
        better = [s for s in SETS if known.get(s) and (not row.get(s) or s in row["partly"])]
        kept = ("partly", *better, *(of_all if better else ()))
        known |= {key: value for key, value in row.items() if value and key not in kept}
    return list(earlier.values())


def run() -> Report:
    """Train everything that is not there yet, and compare."""
    train_all(CANDIDATES, os.cpu_count() or 1)
    return report()


def report() -> Report:
    """What is there so far."""
    columns = ("candidate", "mean", f"ahead of {BASE}", *SETS, *OTHERS, "seconds")
    return Report(
        "candidates", "Everything tried for Ranker and Committee: NDCG@10 on validation queries",
        [{column: row.get(column, "") for column in columns} for row in with_earlier(table())],
        [
            "Empty queries count 0. No test fold was read: mq2008 and ohsumed are the validation parts of five folds, "
            "a third after the other of the training queries stops, the rest is trained on; lightgbm example is its "
            "training part, cut into five; web, N queries: samples of web-shaped data, N queries to train on, N / 3 "
            "to stop by, 200 to measure on (8, 4, 2 and 1 samples); cubic: the papers' artificial data, 300 queries "
            "for each purpose. Mean: over the sets that were decided by, all but cubic and the largest. Ahead: over "
            "all queries of those sets where a candidate was tried, runs on the same query averaged, with p of a "
            "paired t-test. Seconds: of processor time for one task of each of these sets, together. Peers and "
            "LambdaMART() have their defaults, at most 1,000 trees, patience 100. YetiRank, YetiLoss, λ@10 and "
            "Lambda-eX: bench/stochastic.py. Rows that were run later have one to three runs for each query. All "
            "others: 15 leaves, learning "
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
