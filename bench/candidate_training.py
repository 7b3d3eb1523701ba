"""Ways to train a candidate, from data to train on, data to stop by and a seed to rankers by name."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import podium
from podium.boosting import Boosting, Sampling
from podium.boosting.committee import CommitteeRun, CommitteeTraining, default_members
from podium.combining import deviation
from podium.data.subsets import fold_of_queries
from podium.measures import NDCG

Data = podium.RankingData
Scores = Callable[[Data], Any]
MEASURE = podium.NDCG(10)


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
    sampling = Sampling(document_fraction=0.7, feature_fraction=0.5, seed=10_000 * seed)
    usual = {"n_trees": 2000, "learning_rate": 0.05, "patience": 100, "n_threads": 1, "verbose": 0}  # `Committee`'s
    settings = usual | {k: v for k, v in changes.items() if k != "n_folds"}
    training = CommitteeTraining(
        members=default_members(NDCG(10)), boosting=Boosting(sampling=sampling, **settings), tries_all_features=True,
        **{k: v for k, v in changes.items() if k == "n_folds"},
    )  # fmt: skip
    started = time.process_time()
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
