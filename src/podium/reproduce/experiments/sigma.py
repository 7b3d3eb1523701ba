"""[B] §6 and §7: σ makes no difference to Newton's steps; beside them it acts with the rate, with L2 and a submodel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.boosting import Gradient
from podium.data import RankingData
from podium.estimators import LambdaMART, MARTClassifier
from podium.evaluation.tables import Table
from podium.objectives import Lambda
from podium.reproduce.arms import Arm
from podium.reproduce.claims import Claim, share_above
from podium.reproduce.experiment import Experiment, Figure, Outcome
from podium.reproduce.sources import artificial_source
from podium.reproduce.work import Work

Floats = NDArray[np.float64]
PLACE = "[B] §6, §7"
SIGMAS = (0.5, 2.0, 3.7)  # each beside σ = 1
RATE, LEAVES = 0.1, 10
MEASURE = "ndcg@10"


@dataclass(frozen=True)
class Setting:
    """A model as a function of σ.

    Attributes:
        name: of the setting.
        scores: of test documents, from σ, the number of trees, training and test data.
        claim, place: what is claimed of it.
        is_same: whether the order ought to stay.

    """

    name: str
    scores: Callable[[float, int, RankingData, RankingData], Floats]
    claim: str
    place: str
    is_same: bool


def _lambdamart(
    sigma: float, trees: int, train: RankingData, test: RankingData, rate: float = RATE, **others: Any
) -> Floats:
    objective = Lambda("ndcg", sigma=sigma)
    settings = {"l2": 0.0, "split_fraction": 1.0, **others}
    return LambdaMART(trees, LEAVES, rate, objective=objective, **settings).fit(train).predict(test)


def _matched_rate(sigma: float, trees: int, train: RankingData, test: RankingData) -> Floats:
    return _lambdamart(sigma, trees, train, test, RATE / sigma**2, step=Gradient(normalize=False))


def _with_submodel(scale: float | str, sigma: float, trees: int, train: RankingData, test: RankingData) -> Floats:
    small = LambdaMART(5, LEAVES, RATE).fit(train)
    return _lambdamart(sigma, trees, train, test, submodel=small, submodel_scale=scale)


def _classes(sigma: float, trees: int, train: RankingData, test: RankingData) -> Floats:
    model = MARTClassifier(trees, LEAVES, RATE, sigma=sigma, split_fraction=1.0)
    return model.fit(train.features, train.relevance > 0).decision_function(test.features)


BEYOND = "beyond the papers"
SETTINGS = (
    Setting("two classes, Newton", _classes, "the value of σ makes no difference to two-class MART", "[B] §6", True),
    Setting(
        "LambdaMART, Newton", _lambdamart,
        "the choice of σ makes no difference to LambdaMART with Newton's steps", "[B] §7", True,
    ),
    Setting(
        "gradient step, v/σ²", _matched_rate,
        "with gradient steps v σ² is what counts: σ with the rate v/σ² changes nothing", BEYOND, True,
    ),
    Setting(
        "gradient step", partial(_lambdamart, step=Gradient(normalize=False)),
        "with gradient steps σ alone changes the order of most queries", BEYOND, False,
    ),
    Setting("L2 = 1", partial(_lambdamart, l2=1.0), "with L2 σ changes the order of most queries", BEYOND, False),
    Setting(
        "submodel", partial(_with_submodel, 1.0), "with a submodel σ changes the order of most queries", BEYOND, False,
    ),
    Setting(
        "submodel, scale fitted", partial(_with_submodel, "fit"),
        "with a submodel whose scale is fitted, σ changes nothing", BEYOND, True,
    ),
)  # fmt: skip


def run(work: Work) -> Outcome:
    """Each setting with each σ, on data of each seed."""
    sizes, trees = work.pick(full=(500, 1, 400), quick=(60, 1, 400)), work.pick(full=100, quick=15)
    found = {
        setting.name: [
            work.step(f"{setting.name}, seed {seed}", partial(_measured, work, setting, seed, sizes, trees))
            for seed in work.seeds
        ]
        for setting in SETTINGS
    }
    claims = [_claim(setting, found[setting.name]) for setting in SETTINGS]
    rows = [[name, *_row(of_seeds)] for name, of_seeds in found.items()]
    others = [f"σ = {sigma:g}" for sigma in SIGMAS]
    columns = ["setting", *(f"{other}: same order" for other in others), "NDCG@10, σ = 1", *others]
    settings = {
        "training and test queries": (sizes[0], sizes[2]), "trees": trees, "leaves": LEAVES, "rate": RATE,
        "all documents for splits": True, "λ": "not normalised", "two classes": "labels above 0",
        "submodel": "a LambdaMART of 5 trees",
    }  # fmt: skip
    table = {"Share of test queries in the same order as with σ = 1": Table(columns, rows)}
    return Outcome(claims, table, [_figure(found)], settings, ["artificial, 30 documents a query, 10 features"])


def _measured(work: Work, setting: Setting, seed: int, sizes: tuple[int, int, int], trees: int) -> dict[str, Any]:
    """For each σ: which test queries have the order of σ = 1, and their NDCG."""
    [(train, _, test)] = artificial_source(documents=30, features=10).parts(seed, sizes)
    scores = {sigma: setting.scores(sigma, trees, train, test) for sigma in (1.0, *SIGMAS)}
    return {
        "same": {f"{sigma:g}": same_order(test, scores[1.0], scores[sigma]) for sigma in SIGMAS},
        "values": {f"{sigma:g}": work.values(scores[sigma], test, [MEASURE], seed) for sigma in scores},
    }


def same_order(data: RankingData, first: Floats, second: Floats) -> list[bool]:
    """For each query, whether two sets of scores put its documents in the same order, ties included."""
    found = []
    for query in range(data.n_queries):
        rows = data.rows(query)
        one, other = (np.unique(scores[rows], return_inverse=True)[1] for scores in (first, second))
        found.append(bool(np.array_equal(one, other)))
    return found


def _alike(one: dict[str, Any]) -> NDArray[np.bool_]:
    """The queries of one seed whose order is the same for every σ."""
    return np.asarray(np.array([one["same"][f"{sigma:g}"] for sigma in SIGMAS], bool).all(axis=0))


def _claim(setting: Setting, of_seeds: list[dict[str, Any]]) -> Claim:
    alike = [_alike(one) for one in of_seeds]
    together = np.concatenate(alike)
    shares = [float(one.mean()) for one in alike]
    if setting.is_same:
        what = f"test queries in the same order for σ = 1, {', '.join(f'{s:g}' for s in SIGMAS)}"
        hits, bound = int(together.sum()), 0.99
    else:
        what, shares = "test queries in another order for some σ", [1 - share for share in shares]
        hits, bound = int((~together).sum()), 0.5
    return share_above(setting.claim, setting.place, what, hits, len(together), bound, by_seed=shares)


def _row(of_seeds: list[dict[str, Any]]) -> list[Any]:
    same = [float(np.mean([one["same"][f"{sigma:g}"] for one in of_seeds])) for sigma in SIGMAS]
    arms = [Arm("", [one["values"][f"{sigma:g}"] for one in of_seeds]) for sigma in (1.0, *SIGMAS)]
    return [*same, *(arm.mean(MEASURE) for arm in arms)]


def _figure(found: dict[str, list[dict[str, Any]]]) -> Figure:
    rows = []
    for name, of_seeds in found.items():
        for sigma in (1.0, *SIGMAS):
            arm = Arm("", [one["values"][f"{sigma:g}"] for one in of_seeds])
            rows.append({"x": name, "y": arm.mean(MEASURE), "series": f"σ = {sigma:g}"})
    return Figure("accuracy", f"Accuracy for each σ ({PLACE})", "", "NDCG@10 of test queries", rows, "dots")


EXPERIMENT = Experiment(
    title="When σ matters, and when it does not",
    place=PLACE,
    says="Newton's steps scale as 1/σ and scores appear times σ, so that σ cancels, in two-class MART and in "
    "LambdaMART. That needs F_0 = 0 (or F_0 that scales) and no L2; gradient steps have no such division.",
    cuts="The paper argues and measures nothing; orders are compared here.",
    run=run,
)
