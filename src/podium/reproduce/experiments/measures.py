"""Beyond the papers: models trained on each measure, judged by every measure."""

from __future__ import annotations

from functools import partial
from typing import Any

from podium.estimators import LambdaMART, fit_many
from podium.evaluation.tables import Table
from podium.reproduce.arms import Arm
from podium.reproduce.claims import Claim, decided_by, no_worse
from podium.reproduce.experiment import Experiment, Figure, Outcome
from podium.reproduce.sources import Sizes, Source, artificial_source
from podium.reproduce.work import Work

PLACE = "beyond the papers ([B] §4, [W] §6)"
MEASURES = {
    "NDCG@10": "ndcg@10", "ERR@10": "err(max_label=4)@10", "AP": "ap(threshold=2)", "RR": "rr(threshold=2)",
    "precision@5": "precision(threshold=2)@5",
}  # fmt: skip
MARGIN = 0.005


def run(work: Work) -> Outcome:
    """A model for each measure, on artificial data and on web data."""
    sizes = work.pick(full=(500, 250, 2000), quick=(60, 40, 400))
    trees, features = work.pick(full=(150, 30), quick=(20, 12))
    sources = [
        artificial_source(documents=work.pick(full=30, quick=20), features=features // 2, label_noise=0.3),
        *work.web(features=features, documents=work.pick(full=(20, 40), quick=(15, 25))),
    ]
    claims: list[Claim] = []
    tables, figures = {}, []
    for source in sources:
        of_seeds = [
            work.step(f"{source.name}, seed {seed}", partial(_measured, work, source, seed, sizes, trees))
            for seed in work.seeds
        ]
        arms = {name: Arm(name, [found[name] for found in of_seeds]) for name in MEASURES}
        rows = [[name, *(arm.shown(measure) for measure in MEASURES.values())] for name, arm in arms.items()]
        columns = ["trained on", *(f"judged by {name}" for name in MEASURES)]
        tables[f"{source.name}: means with half of the 95% interval"] = Table(columns, rows)
        figures.append(_figure(source, arms))
        claims += [_best_of_its_own(source, arms, name) for name in MEASURES]
    settings = {
        "queries for training, validation, test": sizes, "trees, at most": trees, "leaves": 10, "learning rate": 0.1,
        "number of trees": "chosen on validation data by the measure that was trained on",
        "relevant for AP, RR and precision": "labels from 2 on", "margin": MARGIN,
    }  # fmt: skip
    return Outcome(claims, tables, figures, settings, [source.name for source in sources])


def _measured(work: Work, source: Source, seed: int, sizes: Sizes, trees: int) -> Any:
    """For each model the values of all measures on the test queries."""
    (train, valid, test), *_ = source.parts(seed, sizes)
    models = fit_many(
        [
            LambdaMART(trees, 10, 0.1, measure, patience=trees, split_fraction=1.0, random_state=seed, verbose=0)
            for measure in MEASURES.values()
        ],
        train, valid=valid, verbose=0,
    )  # fmt: skip
    measures = list(MEASURES.values())
    return {
        name: work.values(model.predict(test), test, measures, source.prefix(seed))
        for name, model in zip(MEASURES, models, strict=True)
    }


def _best_of_its_own(source: Source, arms: dict[str, Arm], name: str) -> Claim:
    """No worse than each of the others: the largest p of the tests, against it the smallest times their number."""
    tests = [no_worse("", PLACE, arms[name], arms[other], MEASURES[name], MARGIN) for other in arms if other != name]
    worst = min(tests, key=lambda test: test.estimate)
    against = min(1.0, len(tests) * min(test.p_against for test in tests))
    return decided_by(
        f"by {name}, the model trained on {name} is no worse than those trained on other measures, on {source.name} "
        "data", PLACE, f"the largest p of lower tests of TOST, no worse than each other model by {MARGIN:g}; the "
        "smallest difference", worst.estimate, max(test.p for test in tests), against,
        interval=worst.interval, by_seed=worst.by_seed, finding=FINDING,
    )  # fmt: skip


def _figure(source: Source, arms: dict[str, Arm]) -> Figure:
    """How far each model is behind the one that was trained on the measure."""
    rows = []
    for judge, measure in MEASURES.items():
        for name, arm in arms.items():
            if name != judge:
                test = no_worse("", PLACE, arm, arms[judge], measure, MARGIN)
                low, high = test.interval
                rows.append({"x": judge, "y": test.estimate, "low": low, "high": high, "series": f"trained on {name}"})
    title = f"Against the model trained on the measure itself, {source.name} data"
    return Figure(source.name, title, "judged by", "difference with 95% interval", rows, "dots")


FINDING = (
    "In the full run the model trained on NDCG is best, or level with the best, by every measure. AP, RR and precision "
    "see two kinds of documents, NDCG five, and few swaps change RR at all: a likely reason, which was not tested. "
    "RR is furthest behind by its own measure, too (artificial data: .875 against .946)."
)

EXPERIMENT = Experiment(
    title="Models trained on each measure, judged by every measure",
    place=PLACE,
    says="λ may be made for any measure; the papers train on NDCG, and expect the same of other measures.",
    cuts="λ looks at the whole list whatever the cutoff of the measure, but of precision.",
    run=run,
)
