"""[S] §3: training on the whole NDCG against NDCG@10 and NDCG@3."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from experiments.claims import Arm, Claim, better
from experiments.papers.common import ranked
from experiments.runner import Experiment, Outcome
from experiments.work import PAPERS_TREES, Sizes, Source, Work, artificial_source, best_of_each, web_source
from podium.estimators import LambdaMART
from podium.evaluation.tables import Table
from podium.objectives import Lambda

PLACE = "[S] §3"
MEASURES = ("ndcg@1", "ndcg@3", "ndcg@10")
TRUNCATIONS = {"the whole list": None, "NDCG@10": 10, "NDCG@3": 3}


def run(work: Work) -> Outcome:
    """Compare truncations on artificial data and on web data."""
    sizes = work.pick(full=(700, 400, 3000), quick=(120, 80, 300))
    trees, rates = work.pick(full=(300, (0.1, 0.2, 0.5)), quick=(60, (0.2,)))
    sources = [artificial_source(), *_web(work)]
    claims: list[Claim] = []
    tables = {}
    for source in sources:
        steps = work.steps(source.name, partial(_measured, work, source, sizes, trees, rates))
        arms = {name: Arm(f"training on {name}", [step[name]["values"] for step in steps]) for name in TRUNCATIONS}
        rows = [
            [name, *(arm.mean(measure) for measure in MEASURES),
             *(round(float(np.mean([step[name][k] for step in steps])), 2) for k in ("rate", "trees"))]
            for name, arm in arms.items()
        ]  # fmt: skip
        tables[f"{source.name}: NDCG, rates and trees chosen (means over seeds)"] = Table(
            ["trained on", *MEASURES, "rate", "trees"], rows
        )
        claims += _claims(source, arms)
    settings = {
        "queries for training, validation, test": sizes, "leaves": 15, "trees, at most": trees, "learning rates": rates,
        "rate and number of trees chosen by": "NDCG@3 on validation",
    }  # fmt: skip
    return Outcome(claims, tables, [], settings, [source.name for source in sources])


def _web(work: Work) -> list[Source]:
    """Return the user's web data, or artificial data with long lists, as in the paper, and with short lists."""
    if work.data:
        return work.web()
    features = work.pick(full=40, quick=20)
    return [
        replace(web_source(features=features, documents=documents), name=f"artificial web, {name}")
        for name, documents in (("60 to 180 documents", (60, 180)), ("20 to 60 documents", (20, 60)))
    ]


def _measured(work: Work, source: Source, sizes: Sizes, trees: int, rates: tuple[float, ...], seed: int) -> Any:
    """Return NDCG of each test query, with the rate that is best on validation data."""
    train, valid, test = source.parts(seed, sizes)[0]
    groups = {
        name: [
            LambdaMART(trees, 15, rate, objective=Lambda("ndcg", truncation=truncation, normalize=False),
                       measure="ndcg@3", patience=trees // 4, **PAPERS_TREES)
            for rate in rates
        ]
        for name, truncation in TRUNCATIONS.items()
    }  # fmt: skip
    return {
        name: {
            "values": work.values(best.predict(test), test, MEASURES, source.prefix(seed)),
            "rate": best.learning_rate, "trees": best.n_trees_,
        }
        for name, best in best_of_each(groups, train, valid).items()
    }  # fmt: skip


def _claims(source: Source, arms: dict[str, Arm]) -> list[Claim]:
    whole, *cut = arms.values()
    return [
        better(f"{whole.name} is better than {arm.name}, judged by {measure.upper()}, on {source.name} data",
               PLACE, whole, arm, measure, why=ranked(arms, measure))
        for arm in reversed(cut)
        for measure in ("ndcg@3", "ndcg@10")
    ]  # fmt: skip


EXPERIMENT = Experiment(
    title="Training on the whole NDCG against NDCG@10 and NDCG@3",
    place=PLACE,
    says="Training on NDCG@3 gives worse results than training on the whole NDCG, even where NDCG@3 is what counts: "
    "few pairs have a document in the top 3, so most of the training data is lost.",
    cuts="The paper refers to earlier work for this. It has no experiment for it.",
    run=run,
)
