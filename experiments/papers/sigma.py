"""[B] §6 and §7: σ makes no difference to Newton's steps; it does with gradient steps, with L2 and with a submodel."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.claims import Arm, Claim, always, compared
from experiments.runner import Experiment, Outcome
from experiments.work import Work, artificial_source
from podium.boosting import Gradient
from podium.data import RankingData
from podium.estimators import LambdaMART, MARTClassifier
from podium.evaluation.tables import Table
from podium.objectives import Lambda

Floats = NDArray[np.float64]
PLACE, BEYOND = "[B] §6, §7", "beyond the papers"
SIGMAS = (0.5, 2.0, 3.7)  # each is compared with σ = 1
RATE, LEAVES = 0.1, 10
MEASURE = "ndcg@10"


class Setting(NamedTuple):
    """A model as a function of σ, the number of trees, training and test data; what is claimed, and of which kind."""

    scores: Callable[[float, int, RankingData, RankingData], Floats]
    claim: str
    place: str
    is_same: bool


def _lambdamart(
    sigma: float, trees: int, train: RankingData, test: RankingData, rate: float = RATE, **others: Any
) -> Floats:
    settings = {"l2": 0.0, "split_fraction": 1.0, **others}
    return (
        LambdaMART(trees, LEAVES, rate, objective=Lambda("ndcg", sigma=sigma, normalize=False), **settings)
        .fit(train)
        .predict(test)
    )


def _matched_rate(sigma: float, trees: int, train: RankingData, test: RankingData) -> Floats:
    return _lambdamart(sigma, trees, train, test, RATE / sigma**2, step=Gradient(normalize=False))


def _with_submodel(scale: float | str, sigma: float, trees: int, train: RankingData, test: RankingData) -> Floats:
    small = LambdaMART(5, LEAVES, RATE).fit(train)
    return _lambdamart(sigma, trees, train, test, submodel=small, submodel_scale=scale)


def _classes(sigma: float, trees: int, train: RankingData, test: RankingData) -> Floats:
    model = MARTClassifier(trees, LEAVES, RATE, sigma=sigma, split_fraction=1.0)
    return model.fit(train.features, train.relevance > 0).decision_function(test.features)


SETTINGS = {
    "two classes, Newton": Setting(_classes, "the value of σ makes no difference to two-class MART", "[B] §6", True),
    "LambdaMART, Newton": Setting(
        _lambdamart, "the choice of σ makes no difference to LambdaMART with Newton's steps", "[B] §7", True
    ),
    "gradient step, v/σ²": Setting(
        _matched_rate, "with gradient steps v σ² is what counts: σ with the rate v/σ² changes nothing", BEYOND, True
    ),
    "gradient step": Setting(
        partial(_lambdamart, step=Gradient(normalize=False)),
        "with gradient steps σ alone changes the order of most queries", BEYOND, False,
    ),
    "L2 = 1": Setting(
        partial(_lambdamart, l2=1.0), "with L2 σ changes the order of most queries", BEYOND, False
    ),
    "submodel": Setting(
        partial(_with_submodel, 1.0), "with a submodel σ changes the order of most queries", BEYOND, False
    ),
    "submodel, scale fitted": Setting(
        partial(_with_submodel, "fit"), "with a submodel whose scale is fitted, σ changes nothing", BEYOND, True
    ),
}  # fmt: skip


def run(work: Work) -> Outcome:
    """Train each setting with each σ, on data of each seed."""
    sizes, trees = work.pick(full=(500, 1, 400), quick=(60, 1, 400)), work.pick(full=100, quick=15)
    results = {
        name: work.steps(name, partial(_measured, work, setting, sizes, trees)) for name, setting in SETTINGS.items()
    }
    arms = {
        name: {f"{sigma:g}": Arm("", [one["values"][f"{sigma:g}"] for one in of_seeds]) for sigma in (1.0, *SIGMAS)}
        for name, of_seeds in results.items()
    }
    rows = [
        [name, *(float(np.mean([one["same"][sigma] for one in of_seeds])) for sigma in of_seeds[0]["same"]),
         *(arm.mean(MEASURE) for arm in arms[name].values())]
        for name, of_seeds in results.items()
    ]  # fmt: skip
    others = [f"σ = {sigma:g}" for sigma in SIGMAS]
    columns = ["setting", *(f"{other}: same order" for other in others), "NDCG@10, σ = 1", *others]
    settings = {
        "training and test queries": (sizes[0], sizes[2]), "trees": trees, "leaves": LEAVES, "rate": RATE,
        "all documents for splits": True, "λ": "not normalized", "two classes": "labels above 0",
        "submodel": "a LambdaMART of 5 trees",
    }  # fmt: skip
    table = {"Share of test queries in the same order as with σ = 1": Table(columns, rows)}
    claims = [_claim(setting, results[name]) for name, setting in SETTINGS.items()]
    return Outcome(claims, table, [], settings, ["artificial, 30 documents a query, 10 features"])


def _measured(work: Work, setting: Setting, sizes: tuple[int, int, int], trees: int, seed: int) -> dict[str, Any]:
    """Return, for each σ, which test queries have the order of σ = 1, and their NDCG."""
    [(train, _, test)] = artificial_source(documents=30, features=10).parts(seed, sizes)
    scores = {sigma: setting.scores(sigma, trees, train, test) for sigma in (1.0, *SIGMAS)}
    return {
        "same": {f"{sigma:g}": same_order(test, scores[1.0], scores[sigma]) for sigma in SIGMAS},
        "values": {f"{sigma:g}": work.values(scores[sigma], test, [MEASURE], seed) for sigma in scores},
    }


def same_order(data: RankingData, first: Floats, second: Floats) -> list[bool]:
    """Return, for each query, whether two sets of scores put its documents in the same order, ties included."""
    results = []
    for query in range(data.n_queries):
        rows = data.rows(query)
        one, other = (np.unique(scores[rows], return_inverse=True)[1] for scores in (first, second))
        results.append(bool(np.array_equal(one, other)))
    return results


def _claim(setting: Setting, of_seeds: list[dict[str, Any]]) -> Claim:
    """Return the claim of a setting: an identity has no exception, and a change affects most queries."""
    other = [~np.array(list(one["same"].values()), bool).all(axis=0) for one in of_seeds]
    what = f"test queries in another order than with σ = 1 for σ = {', '.join(f'{s:g}' for s in SIGMAS)}"
    if setting.is_same:
        return always(setting.claim, setting.place, what, [one.sum() for one in other], sum(one.size for one in other))
    return compared(setting.claim, setting.place, "above", f"share of {what}", [one.mean() for one in other], 0.5)


EXPERIMENT = Experiment(
    title="When σ matters, and when it does not",
    place=PLACE,
    says="Newton's steps scale as 1/σ and scores appear times σ, so that σ cancels, in two-class MART and in "
    "LambdaMART. That needs F_0 = 0 (or F_0 that scales) and no L2; gradient steps have no such division.",
    cuts="The paper argues and measures nothing; orders are compared here.",
    run=run,
)
