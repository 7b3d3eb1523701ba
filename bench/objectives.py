"""The cost of each objective against NDCG's λ, the accuracy of trees trained on it, and models without an objective."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import podium
from bench.harness import DATA, Report
from bench.ranking_sets import fold
from podium.boosting import Gradient, Newton
from podium.evaluation.significance import t_interval
from podium.objectives import (
    XENDCG,
    Anneal,
    Fidelity,
    Hinge,
    Lambda,
    LambdaLoss,
    LinearGrowth,
    ListMLE,
    ListNet,
    Local,
    Logistic,
    Multiclass,
    Objective,
    Ordinal,
    Pairwise,
    QueryRegression,
    RankCosine,
    Regression,
    SoftRank,
    SquaredHinge,
    Tiers,
)  # fmt: skip

SEEDS, TREES, PATIENCE, REPEATS = 3, 300, 50, 7
SETS = ("mq2008", "ohsumed")
PAPERS = Lambda("ndcg", normalize=False)
ALL: dict[str, Objective] = {
    "Lambda(ndcg)": PAPERS, "Lambda(ndcg), normalized": Lambda("ndcg"),
    "Lambda(err)": Lambda("err", normalize=False), "Lambda(ap)": Lambda("ap", normalize=False),
    "Pairwise (RankNet)": Pairwise(),
    "Pairwise, normalized": Pairwise(normalize=True), "Pairwise(Hinge)": Pairwise(Hinge()),
    "Pairwise(SquaredHinge)": Pairwise(SquaredHinge()), "Pairwise(Fidelity)": Pairwise(Fidelity()),
    "Local(ndcg)": Local("ndcg", normalize=False),
    "Anneal(ndcg → local ndcg@3)": Anneal(PAPERS, Local("ndcg@3", normalize=False), LinearGrowth()),
    "LambdaLoss": LambdaLoss(normalize=False), "ListNet": ListNet(), "ListMLE": ListMLE(), "RankCosine": RankCosine(),
    "SoftRank(ndcg)": SoftRank(), "SoftRank(ndcg@10)": SoftRank("ndcg@10"),
    "XENDCG": XENDCG(), "QueryRegression": QueryRegression(), "Regression (MART)": Regression(),
    "Logistic": Logistic(), "Multiclass (McRank)": Multiclass(),
    "Ordinal": Ordinal(),
}  # fmt: skip

# Models without an objective.
OTHERS = ("PRank", "AdditiveGroves")
GROVES = 10


def costs() -> dict[str, float]:
    """Return seconds for λ of 2,000 queries × 120 documents, best of several after a warm-up, objectives in turn."""
    data = podium.data.datasets.simulate_clicks(podium.artificial_web(2_000, features=2))
    scores = np.random.default_rng(0).normal(size=len(data))
    objectives = ALL | {"Tiers(ndcg, cndcg)": Tiers(PAPERS, Lambda("cndcg", normalize=False))}
    bound = {name: objective.bind(data) for name, objective in objectives.items()}
    inputs = {name: np.tile(scores, (b.n_outputs, 1)) if b.n_outputs > 1 else scores for name, b in bound.items()}
    seconds = dict.fromkeys(bound, np.inf)
    for k in range(REPEATS + 1):
        for name, objective in bound.items():
            started = time.perf_counter()
            objective.gradients(inputs[name], k)
            if k:
                seconds[name] = min(seconds[name], time.perf_counter() - started)
    return seconds


def ranker(name: str, seed: int) -> Any:
    """Return a model: LambdaMART's trees on an objective, McRank's trees for classes, or another model as it is."""
    if name == "PRank":
        return podium.PRank(random_state=seed)
    if name == "AdditiveGroves":
        return podium.AdditiveGroves(GROVES, random_state=seed)
    settings: dict[str, Any] = {
        "n_trees": TREES, "patience": PATIENCE, "document_fraction": 0.8, "feature_fraction": 0.5, "random_state": seed,
        "split_fraction": 1.0,
    }  # fmt: skip
    objective = ALL[name]
    if isinstance(objective, Multiclass):
        return podium.McRank(**settings, n_leaves=15, learning_rate=0.1)
    step = Newton(l2=1.0) if objective.has_hessian else Gradient()
    return podium.LambdaMART(objective=objective, step=step, **settings)


def accuracies(say: Callable[[str], None]) -> dict[str, dict[str, str]]:
    """Return NDCG@10 over the test queries of five folds, averaged over seeds per query, with 95% intervals."""
    results: dict[str, dict[str, str]] = {name: {} for name in (*ALL, *OTHERS)}
    folds = {data_set: [fold(data_set, number) for number in range(1, 6)] for data_set in SETS}
    for name in (*ALL, *OTHERS):
        for data_set in SETS:
            seeds = 1 if name == "AdditiveGroves" else SEEDS  # its training takes long
            fits = [(ranker(name, seed), part) for part in folds[data_set] for seed in range(seeds)]
            rankers = podium.fit_many(
                [model for model, _ in fits],
                [train for _, (train, _, _) in fits],
                valid=[vali for _, (_, vali, _) in fits],
            )
            runs = [
                podium.evaluate(test, model.predict(test), "ndcg@10").values["ndcg@10"]
                for model, (_, (_, _, test)) in zip(rankers, fits, strict=True)
            ]
            values = [np.mean(runs[k : k + seeds], axis=0) for k in range(0, len(runs), seeds)]
            whole = np.concatenate(values)
            low, high = t_interval(whole)
            results[name][data_set] = f"{whole.mean():.4f} ({low:.4f} to {high:.4f})"
            say(f"{name}, {data_set}: {results[name][data_set]}")
    return results


def run() -> Report:
    """Measure cost and accuracy, and return them as one table."""
    seconds = costs()
    ndcg = accuracies(lambda line: print(f"  {line}", flush=True)) if DATA.exists() else {}
    shown = {name: f"{spent / seconds['Lambda(ndcg)']:.2f}" for name, spent in seconds.items()}
    rows = [
        {"objective": name, "λ, times Lambda(ndcg)": cost,
         **{f"NDCG@10, {s}": ndcg.get(name, {}).get(s, "–") for s in SETS}}
        for name, cost in (shown | dict.fromkeys(OTHERS, "–")).items()
    ]  # fmt: skip
    return Report(
        "objectives", "Objectives: cost and accuracy", rows,
        [
            f"λ: 2,000 queries × 120 documents, 2 threads, best of {REPEATS}, the objectives taking turns. "
            f"Lambda(ndcg) takes {1e3 * seconds['Lambda(ndcg)']:.1f} ms.",
            f"NDCG@10: test queries of five folds, mean of {SEEDS} seeds per query, 95% t intervals over queries; "
            f"queries without relevant documents count as 0. At most {TREES} trees of 15 leaves, learning rate 0.1, "
            f"each on 80% of the documents and half of the features, stopped after {PATIENCE} rounds without "
            "improvement on validation data. Newton's step with l2 = 1 if the objective has a hessian, otherwise the "
            f"gradient step. PRank (a linear model) and AdditiveGroves ({GROVES} groves, one seed) have their other "
            "defaults and the same validation data.",
        ],
    )  # fmt: skip
