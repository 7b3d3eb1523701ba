"""Beyond the papers: training on clicks that position bias has shaped."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from podium.data import RankingData
from podium.data.datasets.clicks import simulate_clicks
from podium.estimators import LambdaMART, fit_many
from podium.evaluation.tables import Table
from podium.objectives import Debiased, Lambda, Objective
from podium.reproduce.arms import Arm
from podium.reproduce.choosing import PAPERS
from podium.reproduce.claims import Claim, better
from podium.reproduce.experiment import Experiment, Figure, Outcome
from podium.reproduce.sources import Sizes, artificial_source
from podium.reproduce.work import Work

PLACE = "beyond the papers"
MEASURES = ("ndcg@3", "ndcg@10")
DEPTH = 20
CLICKED = Lambda("cndcg")
OBJECTIVES: dict[str, Objective] = {
    "clicks as they are": CLICKED,
    "propensities known": Debiased(CLICKED, [1 / rank for rank in range(1, DEPTH + 1)]),
    "bias estimated": Debiased(CLICKED),
    "human labels": Lambda("ndcg"),
}
SHOWN = ("poor ranking", "good ranking")


def run(work: Work) -> Outcome:
    """Models of clicks on a poor and on a good ranking, judged by human labels."""
    sizes = work.pick(full=(3000, 1, 3000), quick=(600, 1, 400))
    trees = work.pick(full=150, quick=40)
    steps = [work.step(f"seed {seed}", partial(_measured, work, seed, sizes, trees)) for seed in work.seeds]
    arms = {
        shown: {name: Arm(f"{name} ({shown})", [step["values"][shown][name] for step in steps]) for name in OBJECTIVES}
        for shown in SHOWN
    }
    rows = [[shown, name, *(arm.shown(m) for m in MEASURES)] for shown in SHOWN for name, arm in arms[shown].items()]
    tables = {
        "NDCG by human labels, with half of the 95% interval": Table(["clicks on a", "trained on", *MEASURES], rows)
    }
    settings = {
        "queries for training and test": (sizes[0], sizes[2]), "trees": trees, "leaves": 15, "learning rate": 0.1,
        "users for each query": 10, "they look at rank r with probability": "1/r",
    }  # fmt: skip
    return Outcome(_claims(arms), tables, _figures(arms, steps), settings, ["artificial, simulated clicks"])


def _measured(work: Work, seed: int, sizes: Sizes, trees: int) -> Any:
    """NDCG of each test query, and the biases found."""
    train, _, test = artificial_source(documents=DEPTH, features=12).parts(seed, sizes)[0]
    found: dict[str, Any] = {"values": {}, "bias": {}}
    for shown, by in zip(SHOWN, (_poor(train), None), strict=True):
        log = simulate_clicks(train, shown_by=by, users=10, depth=DEPTH, disorder=0.5, noise=0.05, seed=seed)
        models = [LambdaMART(trees, objective=objective, **PAPERS) for objective in OBJECTIVES.values()]
        fitted = dict(zip(OBJECTIVES, fit_many(models, log, verbose=0), strict=True))
        found["values"][shown] = {
            name: work.values(model.predict(test), test, MEASURES, seed) for name, model in fitted.items()
        }
        bias = fitted["bias estimated"].position_bias_
        found["bias"][shown] = bias - bias[0]
    return found


def _poor(data: RankingData) -> Any:
    """A ranking by two features that mean little."""
    return np.asarray(data.feature(3) + data.feature(4), np.float64)


def _claims(arms: dict[str, dict[str, Arm]]) -> list[Claim]:
    as_they_are, known, estimated, human = arms[SHOWN[0]].values()
    on = "where the ranking that users saw was poor"
    claims = [
        better(f"{arm.name.split(' (')[0]}: better than clicks as they are, {on}", PLACE, arm, as_they_are, "ndcg@10")
        for arm in (known, estimated)
    ]
    claims += [
        better(
            f"human labels are better than clicks with {arm.name.split(' (')[0]}, {on}", PLACE, human, arm, "ndcg@10"
        )
        for arm in (known, estimated)
    ]
    as_they_are, known, estimated, _ = arms[SHOWN[1]].values()
    on = "where it was good, with random errors, so that a high position is itself a sign of relevance"
    claims.append(better(f"known propensities do harm {on}", PLACE, as_they_are, known, "ndcg@10"))
    claims.append(
        better(f"an estimated bias is better than known propensities {on}", PLACE, estimated, known, "ndcg@10")
    )
    return claims


def _figures(arms: dict[str, dict[str, Arm]], steps: list[Any]) -> list[Figure]:
    accuracy = [
        {"x": name, "y": arm.mean("ndcg@10"), "low": arm.interval("ndcg@10")[0], "high": arm.interval("ndcg@10")[1],
         "series": shown}
        for shown in SHOWN for name, arm in arms[shown].items()
    ]  # fmt: skip
    ranks = range(1, DEPTH + 1)
    biases = [{"series": "users: log 1/rank", "x": rank, "y": float(-np.log(rank))} for rank in ranks]
    for shown in SHOWN:
        of_seeds = np.array([step["bias"][shown][:DEPTH] for step in steps])
        biases += [
            {"series": f"estimated, {shown}", "x": rank, "y": values.mean()}
            for rank, values in zip(ranks, of_seeds.T, strict=True)
        ]
    return [
        Figure(
            "accuracy", "Trained on clicks, judged by human labels", "", "NDCG@10 with 95% interval", accuracy, "dots"
        ),
        Figure("bias", "Position bias: the users', and as it was estimated", "rank shown", "log bias", biases),
    ]


EXPERIMENT = Experiment(
    title="Training on biased clicks",
    place=PLACE,
    says="Users look at the top of a ranking. A model of their clicks repeats it, unless pairs are weighted by known "
    "propensities (Joachims, Swaminathan and Schnabel 2017), or the bias is estimated together with the model.",
    cuts="Users are simulated; they judge by the human label.",
    run=run,
)
