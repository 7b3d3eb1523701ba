"""Beyond the papers: training labels of which a share is wrong, and λ that gives up on lost pairs."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from experiments.claims import Arm, Claim, better, no_worse
from experiments.papers.common import ranked, with_shuffled_labels
from experiments.runner import Experiment, Figure, Outcome
from experiments.work import Work, best_of_each
from podium.data.datasets.artificial import PARTS, artificial
from podium.estimators import LambdaMART
from podium.evaluation.tables import Table
from podium.objectives import Anneal, ExponentialGrowth, Lambda, LinearGrowth, Local, Objective

MEASURE = "ndcg@10"
PLACE = "beyond the papers ([W] §6, [S] §5)"
RATES = (0.1, 0.4, 1.0)
NEWTON, GRADIENT, LOCAL, ANNEALED = "λ, Newton's steps", "λ, gradient steps", "local λ", "annealed λ"
MARGIN = 0.005


def run(work: Work) -> Outcome:
    """Compare each λ by the share of wrong labels."""
    sizes = work.pick(full=(400, 150, 2000), quick=(80, 40, 300))
    trees, documents = work.pick(full=(150, 30), quick=(25, 20))
    shares = work.pick(full=(0.0, 0.3, 0.6), quick=(0.0, 0.6))
    families = _families(trees)
    arms: dict[float, dict[str, Arm]] = {}
    chosen: dict[float, list[Any]] = {}
    for share in shares:
        of_seeds = work.steps(f"{share:.0%} wrong", partial(_measured, work, families, share, sizes, documents, trees))
        arms[share] = {name: Arm(name, [found[name]["values"] for found in of_seeds]) for name in families}
        chosen[share] = of_seeds
    shown = [f"{share:.0%} wrong" for share in shares]
    rows = [[name, *(of_share[name].mean(MEASURE) for of_share in arms.values())] for name in families]
    settled = [
        [name, *("; ".join(str(found[name]["chosen"]) for found in chosen[share]) for share in shares)]
        for name in families
    ]
    tables = {
        "NDCG@10 of the true labels": Table(["trained on", *shown], rows),
        "Chosen on validation data, by seed: learning rate, trees and schedule": Table(["trained on", *shown], settled),
    }
    settings = {
        "queries for training, validation, test": sizes, "documents of a query": documents, "trees, at most": trees,
        "leaves": 10, "learning rate": f"of {', '.join(map(str, RATES))}", "λ": "not normalized, no L2",
    }  # fmt: skip
    return Outcome(_claims(arms), tables, [_figure(arms)], settings, ["artificial"])


def _families(trees: int) -> dict[str, tuple[str, list[Objective]]]:
    """Return the step of each λ and its objectives to choose from; schedules end as in [S] after 1000 trees."""
    ndcg, local = Lambda("ndcg", normalize=False), Local("ndcg", normalize=False)
    schedules = LinearGrowth(0.1, 1.5 / trees), ExponentialGrowth(0.1, trees / 10)
    return {
        NEWTON: ("newton", [ndcg]), GRADIENT: ("gradient", [ndcg]), LOCAL: ("gradient", [local]),
        ANNEALED: ("gradient", [Anneal(ndcg, local, schedule) for schedule in schedules]),
    }  # fmt: skip


def _measured(
    work: Work, families: dict[str, tuple[str, list[Objective]]], share: float,
    sizes: tuple[int, ...], documents: int, trees: int, seed: int,
) -> Any:  # fmt: skip
    """Return NDCG of each test query by the true labels; noisy validation labels choose the settings."""
    train, valid, test = (
        artificial(n, documents=documents, features=15, seed=seed, part=part)
        for n, part in zip(sizes, PARTS, strict=True)
    )
    train, valid = (
        with_shuffled_labels(part, share, np.random.default_rng([number, 11]))
        for part, number in ((train, seed), (valid, seed + 1000))
    )
    groups = {
        family: [
            LambdaMART(
                trees, 10, rate, MEASURE, objective=objective, step=step, l2=0.0, patience=trees, split_fraction=1.0,
                random_state=seed, verbose=0,
            )
            for objective in objectives for rate in RATES
        ]
        for family, (step, objectives) in families.items()
    }  # fmt: skip
    return {
        family: {
            "values": work.values(model.predict(test), test, [MEASURE], f"artificial {seed}"),
            "chosen": f"{model.learning_rate}, {model.n_trees_}{_schedule(model.objective)}",
        }
        for family, model in best_of_each(groups, train, valid).items()
    }


def _schedule(objective: Any) -> str:
    is_annealed = isinstance(objective, Anneal)
    return f", {'linear' if isinstance(objective.schedule, LinearGrowth) else 'exponential'}" if is_annealed else ""


def _claims(arms: dict[float, dict[str, Arm]]) -> list[Claim]:
    claims = []
    for share, of_share in arms.items():
        where, why = f"where {share:.0%} of the labels are wrong", ranked(of_share, MEASURE)
        for base in (GRADIENT, NEWTON):
            if share == 0:
                text = f"annealed λ loses nothing against {base} where no label is wrong"
                claims.append(no_worse(text, PLACE, of_share[ANNEALED], of_share[base], MEASURE, MARGIN, why=why))
            else:
                claims += [
                    better(f"{name} is more accurate than {base} {where}", PLACE, of_share[name], of_share[base],
                           MEASURE, why=why)
                    for name in (ANNEALED, LOCAL)
                ]  # fmt: skip
    return claims


def _figure(arms: dict[float, dict[str, Arm]]) -> Figure:
    rows = [
        {"x": 100 * share, "y": arm.mean(MEASURE), "series": name}
        for share, of_share in arms.items()
        for name, arm in of_share.items()
    ]
    return Figure("shares", "Wrong labels in training", "percent of labels dealt out anew", "NDCG@10", rows, "points")


EXPERIMENT = Experiment(
    title="Wrong labels, and λ that gives up on lost pairs",
    place=PLACE,
    says="[W] plans to make boosted trees better at noise; [S]'s local λ gives up on pairs that are far apart in the "
    "wrong order, and annealed λ turns into it in the course of training.",
    cuts="A share of the labels of training and validation data is dealt out anew at random; test labels are true. "
    "The learning rate of 1 was added when, of 0.1 and 0.4, validation data had chosen the larger almost everywhere.",
    run=run,
)
