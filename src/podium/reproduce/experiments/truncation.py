"""[S] §3: training on the whole NDCG against NDCG@10 and NDCG@3."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from podium.estimators import LambdaMART
from podium.evaluation.tables import Table
from podium.objectives import Lambda
from podium.reproduce.arms import Arm
from podium.reproduce.choosing import PAPERS, best_on_validation
from podium.reproduce.claims import Claim, better
from podium.reproduce.experiment import Experiment, Figure, Outcome
from podium.reproduce.sources import Sizes, Source, artificial_source, web_source
from podium.reproduce.work import Work

PLACE = "[S] §3"
MEASURES = ("ndcg@1", "ndcg@3", "ndcg@10")
FINDING = (
    "It depends on the length of the lists. With 20 to 60 documents, 1,000 training queries and 30 leaves, two seeds "
    "gave NDCG@3 of .3778 for the whole list, .3778 for NDCG@10 and .3759 for NDCG@3, one of them better for NDCG@3."
)
TRUNCATIONS = {"the whole list": None, "NDCG@10": 10, "NDCG@3": 3}


def run(work: Work) -> Outcome:
    """Each truncation on artificial data and on web data."""
    sizes = work.pick(full=(700, 400, 3000), quick=(120, 80, 300))
    trees, rates = work.pick(full=(300, (0.1, 0.2, 0.5)), quick=(60, (0.2,)))
    sources = [artificial_source(), *_web(work)]
    claims: list[Claim] = []
    tables, figures = {}, []
    for source in sources:
        steps = {
            name: [
                work.step(f"{source.name}, {name}, seed {seed}",
                          partial(_measured, work, source, seed, sizes, truncation, trees, rates))
                for seed in work.seeds
            ]
            for name, truncation in TRUNCATIONS.items()
        }  # fmt: skip
        arms = {name: Arm(f"training on {name}", [one["values"] for one in found]) for name, found in steps.items()}
        rows = [
            [name, *(arm.shown(measure) for measure in MEASURES), *(_mean(steps[name], k) for k in ("rate", "trees"))]
            for name, arm in arms.items()
        ]
        tables[f"{source.name}: NDCG with half of the 95% interval, rates and trees chosen (means over seeds)"] = Table(
            ["trained on", *MEASURES, "rate", "trees"], rows
        )
        claims += _claims(source, arms)
        figures.append(_figure(source, arms))
    settings = {
        "queries for training, validation, test": sizes, "leaves": 15, "trees, at most": trees, "learning rates": rates,
        "rate and number of trees chosen by": "NDCG@3 on validation",
    }  # fmt: skip
    return Outcome(claims, tables, figures, settings, [source.name for source in sources])


def _web(work: Work) -> list[Source]:
    """The user's web data; or artificial data with long lists, nearer to the paper's, and with short ones."""
    if work.data:
        return work.web()
    features = work.pick(full=40, quick=20)
    return [
        replace(web_source(features=features, documents=documents), name=f"artificial web, {name}")
        for name, documents in (("60 to 180 documents", (60, 180)), ("20 to 60 documents", (20, 60)))
    ]


def _measured(
    work: Work, source: Source, seed: int, sizes: Sizes, truncation: int | None, trees: int, rates: tuple[float, ...]
) -> Any:
    """NDCG of each test query, of the rate that is best on validation data."""
    train, valid, test = source.parts(seed, sizes)[0]
    models = [
        LambdaMART(trees, 15, rate, objective=Lambda("ndcg", truncation=truncation), measure="ndcg@3",
                   patience=trees // 4, **PAPERS)
        for rate in rates
    ]  # fmt: skip
    best = best_on_validation(models, train, valid)
    values = work.values(best.predict(test), test, MEASURES, source.prefix(seed))
    return {"values": values, "rate": best.learning_rate, "trees": best.n_trees_}


def _mean(steps: list[Any], name: str) -> float:
    return round(float(np.mean([step[name] for step in steps])), 2)


def _claims(source: Source, arms: dict[str, Arm]) -> list[Claim]:
    whole, *cut = arms.values()
    return [
        better(f"{whole.name} is better than {arm.name}, judged by {measure.upper()}, on {source.name} data",
               PLACE, whole, arm, measure, finding=FINDING)
        for arm in reversed(cut)
        for measure in ("ndcg@3", "ndcg@10")
    ]  # fmt: skip


def _figure(source: Source, arms: dict[str, Arm]) -> Figure:
    rows = [
        {"x": name, "y": arm.mean(m), "low": arm.interval(m)[0], "high": arm.interval(m)[1], "series": m}
        for name, arm in arms.items()
        for m in MEASURES
    ]
    name = source.name.replace(",", "").replace(" ", "-").lower()
    title = f"Training on the whole list and on its top, {source.name} data"
    return Figure(name, title, "trained on", "NDCG with 95% interval", rows, "dots")


EXPERIMENT = Experiment(
    title="Training on the whole NDCG against NDCG@10 and NDCG@3",
    place=PLACE,
    says="Training on NDCG@3 gives worse results than training on the whole NDCG, even where NDCG@3 is what counts: "
    "few pairs have a document in the top 3, so most of the training data is lost.",
    cuts="The paper refers to earlier work for this. It has no experiment of its own.",
    run=run,
)
