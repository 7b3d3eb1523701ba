"""[B] §4.2: where LambdaRank ends, does the measure fall in every direction? For NDCG, MAP and MRR."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from experiments.claims import Claim, always, compared
from experiments.runner import Experiment, Figure, Outcome
from experiments.work import Work
from podium.data import RankingData
from podium.data.datasets.artificial import artificial
from podium.diagnostics import directions_needed, local_optimality
from podium.estimators import LambdaRank, RankNet
from podium.evaluation.tables import Table

PLACE = "[B] §4.2"
MEASURES = {"ndcg": "NDCG", "ap": "MAP", "rr": "MRR"}
P0 = 0.01  # in all but such a share of directions the measure must fall; 459 directions show it at 99% confidence
P0_WEIGHTS = 0.05  # the same for single weights, of which there are few
STEP = 0.1  # as a share of the length of all weights; one for all nets, chosen with seeds 0 and 1
STEPS = (0.01, 0.03, STEP, 0.2, 0.3, 0.4)  # drawn, but not tested
EARLY = 3  # epochs of a net that has not been trained to the end
RELEVANT = 2  # labels from here on, for MAP and MRR
TRAINED, CONTROLS = "LambdaRank", ("RankNet", f"LambdaRank, {EARLY} epochs", "untrained net")
SHARES = ("rising", "unchanged", "falling")
Results = dict[str, Any]


def run(work: Work) -> Outcome:
    """Train a net for each measure and seed and its controls, and move them in random directions."""
    queries, epochs = work.pick(full=(1000, 1000), quick=(100, 120))
    directions, drawn = work.pick(full=(directions_needed(P0, 0.01), 100), quick=(directions_needed(P0, 0.01), 30))
    results = {
        measure: work.steps(shown, partial(_measured, measure, queries, epochs, directions, drawn))
        for measure, shown in MEASURES.items()
    }
    claims = [claim for measure, of_seeds in results.items() for claim in _claims(MEASURES[measure], of_seeds)]
    rows = [
        [MEASURES[measure], seed, name, net["value"], *(net[share] for share in SHARES), net["passes"]]
        for measure, of_seeds in results.items()
        for seed, one in zip(work.seeds, of_seeds, strict=True)
        for name, net in one["nets"].items()
    ]
    settings = {
        "queries": queries, "documents": 15, "features": 6, "hidden units": 5, "epochs, at most": epochs,
        "training": "all queries in each step, Adam from .03, halved after 15 epochs without a better one",
        "relevant for MAP and MRR": f"labels from {RELEVANT} on", "step": f"{STEP} of |w|",
        "passes": f"the measure falls in all of {directions} directions",
    }  # fmt: skip
    tables = {
        f"Of {directions} random directions: how many raise the measure, leave it as it is, lower it": Table(
            ["measure", "seed", "net", "mean", *SHARES, "passes"], rows
        )
    }
    return Outcome(claims, tables, _figures(results), settings, ["artificial"])


def _measured(measure: str, queries: int, epochs: int, directions: int, drawn: int, seed: int) -> Results:
    """Train, and move the weights by the step in random directions."""
    data = _data(measure, seed, queries)
    settings: dict[str, Any] = {
        "hidden": 5,
        "batch_queries": None,
        "learning_rate": 0.03,
        "halve_after": 15,
        "random_state": seed,
    }
    untrained = settings | {"learning_rate": 1e-12, "smallest_rate": 1e-12}
    nets = {
        TRAINED: LambdaRank(measure, epochs=epochs, **settings), "RankNet": RankNet(measure, epochs=epochs, **settings),
        CONTROLS[1]: LambdaRank(measure, epochs=EARLY, **settings),
        "untrained net": LambdaRank(measure, epochs=1, **untrained),
    }  # fmt: skip
    moved = {
        name: local_optimality(
            net.fit(data), data, measure, directions=directions, steps=(STEP,), points=3, random_state=seed,
            curves=None if name == TRAINED else 0,
        )
        for name, net in nets.items()
    }  # fmt: skip
    ladder = {
        name: local_optimality(
            nets[name], data, measure, directions=drawn, steps=STEPS, curves=0, random_state=seed + 100
        ).falling_share
        for name in (TRAINED, "RankNet")
    }
    curves = local_optimality(nets[TRAINED], data, measure, directions=1, steps=(0.4,), curves=5, random_state=seed)
    sides = moved[TRAINED].curves[:-1][:, [0, 2]]  # the last weight moves all scores alike
    return {
        "nets": {
            name: {
                "value": one.value, "rising": (one.changes > 0).sum(), "unchanged": (one.changes == 0).sum(),
                "falling": (one.changes < 0).sum(), "passes": bool(one.passes(P0)[0]),
            }
            for name, one in moved.items()
        },
        "weights_not_falling": (sides >= moved[TRAINED].value).mean(), "ladder": ladder, "moves": curves.moves,
        "curves": curves.curves[:-1],
    }  # fmt: skip


def _data(measure: str, seed: int, queries: int) -> RankingData:
    """Return graded labels for NDCG, and binary labels for MAP and MRR."""
    data = artificial(queries, documents=15, features=6, seed=seed)
    if measure == "ndcg":
        return data
    return data.replace(labels={"relevance": (data.relevance >= RELEVANT).astype(np.float32)})


def _claims(shown: str, of_seeds: list[Results]) -> list[Claim]:
    def fails(name: str) -> list[bool]:
        return [not one["nets"][name]["passes"] for one in of_seeds]

    def shares(name: str) -> str:
        counts = [sum(one["nets"][name][share] for one in of_seeds) for share in SHARES]
        parts = ", ".join(
            f"{100 * count / sum(counts):.2f}% {share}" for share, count in zip(SHARES, counts, strict=True)
        )
        return f"Directions of all seeds: {parts}."

    n = len(of_seeds)
    return [
        always(f"LambdaRank of {shown} ends where {shown} falls in 99% of random directions or more", PLACE,
               "nets that do not pass the test", fails(TRAINED), n, why=shares(TRAINED)),
        compared(f"moved alone, each weight of that net has the maximum of {shown} where it is", PLACE, "below",
                 "share of moves of single weights that do not lower the measure",
                 [one["weights_not_falling"] for one in of_seeds], P0_WEIGHTS),
        *(always(f"a control, {name}, does not pass the same test of {shown}", "beyond the papers",
                 "nets that pass the test", [not failed for failed in fails(name)], n, why=shares(name))
          for name in CONTROLS),
    ]  # fmt: skip


def _figures(results: dict[str, list[Results]]) -> list[Figure]:
    ladder = [
        {"x": step, "y": float(np.mean([one["ladder"][name][k] for one in of_seeds])), "series": name,
         "panel": MEASURES[measure]}
        for measure, of_seeds in results.items() for name in (TRAINED, "RankNet") for k, step in enumerate(STEPS)
    ]  # fmt: skip
    curves = [
        {"x": move, "y": value, "series": f"weight {k + 1}", "panel": MEASURES[measure]}
        for measure, of_seeds in results.items()
        for k, curve in enumerate(of_seeds[0]["curves"])
        for move, value in zip(of_seeds[0]["moves"], curve, strict=True)
    ]
    return [
        Figure("steps", f"Random directions that lower the measure, by the length of the step ({PLACE})",
               "step, as a share of |w|", "share of directions", ladder, "points", log="x"),
        Figure("weights", f"The mean of the measure as single weights move, first seed ({PLACE})",
               "move, as a share of |w|", "mean over training queries", curves),
    ]  # fmt: skip


EXPERIMENT = Experiment(
    title="Does LambdaRank end at an optimum of NDCG, MAP and MRR?",
    place=PLACE,
    says="From the weights that LambdaRank learnt, moved at random, the mean of the measure over the training queries "
    "always falls: 459 directions in which it falls show with 99% confidence that it does in 99% of all directions. "
    "Moved one at a time, each weight has its maximum where it is. With MAP or MRR in place of NDCG it is the same.",
    cuts="Small nets on artificial data, so that training comes to an end. The paper does not give its step. Controls "
    "are not in the paper: a net that does not pass shows that the test can fail; RankNet shows whether the test "
    "distinguishes an optimum of the measure from a well-trained net.",
    run=run,
)
