"""Beyond the papers: models trained on each measure, judged by every measure."""

from __future__ import annotations

from functools import partial
from typing import Any

from experiments.claims import Arm, Claim, all_of, no_worse
from experiments.papers.common import means_table, ranked
from experiments.runner import Experiment, Outcome
from experiments.work import Sizes, Source, Work, artificial_source, best_of_each
from podium.estimators import LambdaMART

PLACE = "beyond the papers ([B] §4, [W] §6)"
MEASURES = {
    "NDCG@10": "ndcg@10", "ERR@10": "err(max_label=4)@10", "AP": "ap(threshold=2)", "RR": "rr(threshold=2)",
    "precision@5": "precision(threshold=2)@5",
}  # fmt: skip
MARGIN = 0.005


def run(work: Work) -> Outcome:
    """Train a model for each measure, on artificial data and on web data."""
    sizes = work.pick(full=(500, 250, 2000), quick=(60, 40, 400))
    trees, features = work.pick(full=(150, 30), quick=(20, 12))
    sources = [
        artificial_source(documents=work.pick(full=30, quick=20), features=features // 2, label_noise=0.3),
        *work.web(features=features, documents=work.pick(full=(20, 40), quick=(15, 25))),
    ]
    claims: list[Claim] = []
    tables = {}
    for source in sources:
        of_seeds = work.steps(source.name, partial(_measured, work, source, sizes, trees))
        arms = {name: Arm(name, [found[name] for found in of_seeds]) for name in MEASURES}
        tables[f"{source.name}: means of each measure"] = means_table(arms, list(MEASURES.values()))
        claims += [_best_of_its_own(source, arms, name) for name in MEASURES]
    settings = {
        "queries for training, validation, test": sizes, "trees, at most": trees, "leaves": 10, "learning rate": 0.1,
        "number of trees": "chosen on validation data by the measure that was trained on",
        "relevant for AP, RR and precision": "labels from 2 on", "margin": MARGIN,
    }  # fmt: skip
    return Outcome(claims, tables, [], settings, [source.name for source in sources])


def _measured(work: Work, source: Source, sizes: Sizes, trees: int, seed: int) -> Any:
    """Return, for each model, the values of all measures on the test queries."""
    (train, valid, test), *_ = source.parts(seed, sizes)
    groups = {
        name: [LambdaMART(trees, 10, 0.1, measure, patience=trees, split_fraction=1.0, random_state=seed, verbose=0)]
        for name, measure in MEASURES.items()
    }
    return {
        name: work.values(model.predict(test), test, list(MEASURES.values()), source.prefix(seed))
        for name, model in best_of_each(groups, train, valid).items()
    }


def _best_of_its_own(source: Source, arms: dict[str, Arm], name: str) -> Claim:
    """Return the claim that a model is no worse than each of the others."""
    measure = MEASURES[name]
    text = f"by {name}, the model trained on {name} is no worse than those trained on other measures"
    parts = [no_worse("", PLACE, arms[name], arms[other], measure, MARGIN) for other in arms if other != name]
    why = ranked({f"trained on {one}": arm for one, arm in arms.items()}, measure)
    return all_of(f"{text}, on {source.name} data", PLACE, parts, why=why)


EXPERIMENT = Experiment(
    title="Models trained on each measure, judged by every measure",
    place=PLACE,
    says="λ may be made for any measure; the papers train on NDCG, and expect the same of other measures.",
    cuts="λ looks at the whole list whatever the cutoff of the measure, but of precision.",
    run=run,
)
