"""Beyond the papers: training on clicks that position bias has shaped."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from experiments.claims import Arm, Claim, better
from experiments.papers.common import ranked
from experiments.runner import Experiment, Figure, Outcome
from experiments.work import PAPERS_TREES, Sizes, Work, artificial_source
from podium.data import RankingData
from podium.data.datasets.clicks import simulate_clicks
from podium.estimators import LambdaMART, fit_many
from podium.evaluation.tables import Table
from podium.objectives import Debiased, Lambda, Objective

PLACE = "beyond the papers"
MEASURES = ("ndcg@3", "ndcg@10")
DEPTH = 20
CLICKED = Lambda("cndcg", normalize=False)
OBJECTIVES: dict[str, Objective] = {
    "clicks as they are": CLICKED,
    "propensities known": Debiased(CLICKED, [1 / rank for rank in range(1, DEPTH + 1)]),
    "bias estimated": Debiased(CLICKED),
    "human labels": Lambda("ndcg", normalize=False),
}
SHOWN = ("poor ranking", "good ranking")


def run(work: Work) -> Outcome:
    """Train on clicks on a poor and on a good ranking, and measure by human labels."""
    sizes = work.pick(full=(3000, 1, 3000), quick=(600, 1, 400))
    trees = work.pick(full=150, quick=40)
    steps = work.steps("clicks", partial(_measured, work, sizes, trees))
    arms = {
        shown: {name: Arm(f"{name} ({shown})", [step["values"][shown][name] for step in steps]) for name in OBJECTIVES}
        for shown in SHOWN
    }
    rows = [[shown, name, *(arm.mean(m) for m in MEASURES)] for shown in SHOWN for name, arm in arms[shown].items()]
    tables = {"NDCG by human labels": Table(["clicks on a", "trained on", *MEASURES], rows)}
    settings = {
        "queries for training and test": (sizes[0], sizes[2]), "trees": trees, "leaves": 15, "learning rate": 0.1,
        "users for each query": 10, "they look at rank r with probability": "1/r",
    }  # fmt: skip
    return Outcome(_claims(arms), tables, [_figure(steps)], settings, ["artificial, simulated clicks"])


def _measured(work: Work, sizes: Sizes, trees: int, seed: int) -> Any:
    """Return NDCG of each test query, and the estimated biases."""
    train, _, test = artificial_source(documents=DEPTH, features=12).parts(seed, sizes)[0]
    found: dict[str, Any] = {"values": {}, "bias": {}}
    for shown, by in zip(SHOWN, (_poor(train), None), strict=True):
        log = simulate_clicks(train, shown_by=by, users=10, depth=DEPTH, disorder=0.5, noise=0.05, seed=seed)
        models = [LambdaMART(trees, objective=objective, **PAPERS_TREES) for objective in OBJECTIVES.values()]
        fitted = dict(zip(OBJECTIVES, fit_many(models, log, verbose=0), strict=True))
        found["values"][shown] = {
            name: work.values(model.predict(test), test, MEASURES, seed) for name, model in fitted.items()
        }
        bias = fitted["bias estimated"].position_bias_
        found["bias"][shown] = bias - bias[0]
    return found


def _poor(data: RankingData) -> Any:
    """Return a ranking by two features that mean little."""
    return np.asarray(data.feature(3) + data.feature(4), np.float64)


def _claims(arms: dict[str, dict[str, Arm]]) -> list[Claim]:
    measure = "ndcg@10"
    as_they_are, known, estimated, human = arms[SHOWN[0]].values()
    on, why = "where the ranking that users saw was poor", ranked(arms[SHOWN[0]], measure)
    both = {"propensities known": known, "bias estimated": estimated}
    claims = [
        better(f"{name}: better than clicks as they are, {on}", PLACE, arm, as_they_are, measure, why=why)
        for name, arm in both.items()
    ] + [
        better(f"human labels are better than clicks with {name}, {on}", PLACE, human, arm, measure, why=why)
        for name, arm in both.items()
    ]
    as_they_are, known, estimated, _ = arms[SHOWN[1]].values()
    on = "where it was good, with random errors, so that a high position is itself a sign of relevance"
    why = ranked(arms[SHOWN[1]], measure)
    return [
        *claims,
        better(f"known propensities do harm {on}", PLACE, as_they_are, known, measure, why=why),
        better(f"an estimated bias is better than known propensities {on}", PLACE, estimated, known, measure, why=why),
    ]


def _figure(steps: list[Any]) -> Figure:
    ranks = range(1, DEPTH + 1)
    biases = [{"series": "users: log 1/rank", "x": rank, "y": float(-np.log(rank))} for rank in ranks]
    for shown in SHOWN:
        of_seeds = np.array([step["bias"][shown][:DEPTH] for step in steps])
        biases += [
            {"series": f"estimated, {shown}", "x": rank, "y": values.mean()}
            for rank, values in zip(ranks, of_seeds.T, strict=True)
        ]
    return Figure("bias", "Position bias: the users', and as it was estimated", "rank shown", "log bias", biases)


EXPERIMENT = Experiment(
    title="Training on biased clicks",
    place=PLACE,
    says="Users look at the top of a ranking. A model of their clicks repeats it, unless pairs are weighted by known "
    "propensities (Joachims, Swaminathan and Schnabel 2017), or the bias is estimated together with the model.",
    cuts="Users are simulated; they judge by the human label.",
    run=run,
)
