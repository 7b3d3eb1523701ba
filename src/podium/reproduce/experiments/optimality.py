"""[B] §4.2: where LambdaRank ends, does any direction lead up? For NDCG, MAP and MRR."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from podium.data import RankingData
from podium.data.datasets.artificial import artificial
from podium.diagnostics import directions_needed, local_optimality
from podium.estimators import LambdaRank
from podium.evaluation.tables import Table
from podium.reproduce.claims import Claim, share_above, share_below
from podium.reproduce.experiment import Experiment, Figure, Outcome
from podium.reproduce.work import Work

PLACE = "[B] §4.2"
MEASURES = {"ndcg": "NDCG", "ap": "MAP", "rr": "MRR"}
P0 = 0.01  # at most such a share of directions may rise; with 459 directions and none rising, at 99% confidence
P0_WEIGHTS = 0.05  # the same for single weights, of which there are few
STEPS = (0.01, 0.03, 0.1, 0.2, 0.3, 0.4)  # as shares of the length of all weights
EARLY = 3  # epochs of a net that has not been trained to the end
RELEVANT = 2  # labels from here on, for MAP and MRR
Found = dict[str, Any]


def run(work: Work) -> Outcome:
    """A net for each measure and seed, moved in random directions."""
    queries, epochs = work.pick(full=(1000, 1000), quick=(100, 120))
    trial = work.pick(full=300, quick=30)
    directions = work.pick(full=directions_needed(P0, 0.01), quick=40)
    found = {
        measure: [
            work.step(f"{shown}, seed {seed}", partial(_measured, measure, seed, queries, epochs, trial, directions))
            for seed in work.seeds
        ]
        for measure, shown in MEASURES.items()
    }
    claims = [claim for measure, of_seeds in found.items() for claim in _claims(MEASURES[measure], of_seeds)]
    rows = [
        [MEASURES[measure], seed, one["epochs"], one["last_gain"], one["value"], one["step"], one["rising"],
         one["highest"], one["early_value"], one["early_rising"]]
        for measure, of_seeds in found.items()
        for seed, one in zip(work.seeds, of_seeds, strict=True)
    ]  # fmt: skip
    columns = [
        "measure", "seed", "epochs", "gain of the last quarter", "mean", "step", f"rising of {directions}",
        "highest change", "mean, early net", "its rising",
    ]  # fmt: skip
    settings = {
        "queries": queries, "documents": 15, "features": 6, "hidden units": 5, "epochs, at most": epochs,
        "training": "all queries in each step, Adam from .03, halved after 15 epochs without a better one; at a "
                    "plateau where the last quarter of the epochs gained less than .001",
        "relevant for MAP and MRR": f"labels from {RELEVANT} on",
        "step": f"the smallest of {', '.join(map(str, STEPS))} of |w| at which none of {trial} other directions rises",
        "early net": f"the same after {EARLY} epochs",
    }  # fmt: skip
    return Outcome(
        claims, {"Random directions from the trained weights": Table(columns, rows)}, _figures(found), settings,
        ["artificial"],
    )  # fmt: skip


def _measured(measure: str, seed: int, queries: int, epochs: int, trial: int, directions: int) -> Found:
    """Train, find the step at which the measure is smooth, and move the weights by it in new directions."""
    data = _data(measure, seed, queries)

    def net(n: int) -> Any:
        return LambdaRank(
            measure, hidden=5, epochs=n, batch_queries=None, learning_rate=0.03, halve_after=15, random_state=seed
        ).fit(data)

    trained = net(epochs)
    history = trained.history_[f"train/{measure}"]
    ladder = local_optimality(trained, data, measure, directions=trial, steps=STEPS, curves=0, random_state=seed + 100)
    step = smooth_step(ladder.rising_share)
    moved, early = (
        local_optimality(model, data, measure, directions=directions, steps=(step,), curves=curves, points=3,
                         random_state=seed)
        for model, curves in ((trained, None), (net(EARLY), 0))
    )  # fmt: skip
    curves = local_optimality(trained, data, measure, directions=1, steps=(0.4,), curves=5, random_state=seed)
    sides = moved.curves[:-1][:, [0, 2]]  # the last weight moves all scores alike
    return {
        "epochs": len(history), "last_gain": max(history) - max(history[: len(history) * 3 // 4]),
        "value": moved.value, "step": step, "rising": int((moved.changes > 0).sum()), "directions": directions,
        "highest": float(moved.changes.max()), "weights_rising": int((sides > moved.value).sum()),
        "weights_moved": int(sides.size), "early_value": early.value, "early_rising": int((early.changes > 0).sum()),
        "ladder": ladder.rising_share, "trial": trial, "moves": curves.moves,
        "curves": [curve.tolist() for curve in curves.curves[:-1]],
    }  # fmt: skip


def _data(measure: str, seed: int, queries: int) -> RankingData:
    """Graded labels for NDCG, relevant or not for MAP and MRR."""
    data = artificial(queries, documents=15, features=6, seed=seed)
    if measure == "ndcg":
        return data
    return data.replace(labels={"relevance": (data.relevance >= RELEVANT).astype(np.float32)})


def smooth_step(rising: Any) -> float:
    """The smallest step from which on no direction rises; the largest where there is none.

    Below it the stairs of the measure are seen, which has no gradient there.
    """
    last = max((k for k, share in enumerate(rising) if share > 0), default=-1)
    return STEPS[min(last + 1, len(STEPS) - 1)]


def _claims(shown: str, of_seeds: list[Found]) -> list[Claim]:
    rising, directions, early = (
        sum(one[key] for one in of_seeds) for key in ("rising", "directions", "early_rising")
    )  # fmt: skip
    weights, moves = sum(one["weights_rising"] for one in of_seeds), sum(one["weights_moved"] for one in of_seeds)
    by_seed = [one["rising"] / one["directions"] for one in of_seeds]
    return [
        share_below(f"LambdaRank of {shown} ends where at most 1% of random directions raise {shown}", PLACE,
                    "directions that rise", rising, directions, P0, by_seed=by_seed),
        share_below(f"moved alone, each weight of that net has the maximum of {shown} where it is", PLACE,
                    "moves of single weights that rise", weights, moves, P0_WEIGHTS,
                    by_seed=[one["weights_rising"] / one["weights_moved"] for one in of_seeds]),
        share_above(f"a net that was stopped after {EARLY} epochs fails the same test of {shown}", "beyond the papers",
                    "directions that rise", early, directions, P0,
                    by_seed=[one["early_rising"] / one["directions"] for one in of_seeds]),
    ]  # fmt: skip


def _figures(found: dict[str, list[Found]]) -> list[Figure]:
    ladder = [
        {"x": step, "y": float(np.mean([one["ladder"][k] for one in of_seeds])), "series": MEASURES[measure]}
        for measure, of_seeds in found.items()
        for k, step in enumerate(STEPS)
    ]
    curves = [
        {"x": move, "y": value, "series": f"weight {k + 1}", "panel": MEASURES[measure]}
        for measure, of_seeds in found.items()
        for k, curve in enumerate(of_seeds[0]["curves"])
        for move, value in zip(of_seeds[0]["moves"], curve, strict=True)
    ]
    return [
        Figure("steps", f"Random directions that raise the measure, by the length of the step ({PLACE})",
               "step, as a share of |w|", "share of directions", ladder, "points", log="x"),
        Figure("weights", f"The mean of the measure as single weights move, seed 0 ({PLACE})",
               "move, as a share of |w|", "mean over training queries", curves),
    ]  # fmt: skip


EXPERIMENT = Experiment(
    title="Does LambdaRank end at an optimum of NDCG, MAP and MRR?",
    place=PLACE,
    says="From the weights that LambdaRank learnt, moved at random, the mean of the measure over the training queries "
    "always falls: 459 directions without a rise say with 99% confidence that at most 1% of all directions lead up. "
    "Moved one at a time, each weight has its maximum where it is. With MAP or MRR in place of NDCG it is the same.",
    cuts="Small nets on artificial data, so that training comes to an end.",
    run=run,
)
