"""Beyond the papers: an exact search for the weight of each leaf, which [W] §6 leaves to future work."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from experiments.claims import Arm, Claim, better
from experiments.runner import Experiment, Figure, Outcome
from experiments.work import Sizes, Source, Work, artificial_source, best_of_each
from podium.boosting import LeafLineSearch, LineSearch, Newton, Step
from podium.estimators import LambdaMART
from podium.evaluation.tables import Table

MEASURE = "ndcg@10"
PLACE = "beyond the papers ([W] §6)"
RATES = (0.1, 0.3, 1.0)
NEWTON, TREE, LEAF = "Newton's steps", "a weight for each tree", "a weight for each leaf"
OF_NEWTON = ", of Newton's values"
STEPS: dict[str, Step] = {
    NEWTON: Newton(l2=0.0),
    TREE: LineSearch(MEASURE),
    LEAF: LeafLineSearch(MEASURE),
    TREE + OF_NEWTON: LineSearch(MEASURE, values=Newton(l2=0.0)),
    LEAF + OF_NEWTON: LeafLineSearch(MEASURE, values=Newton(l2=0.0)),
}


def run(work: Work) -> Outcome:
    """Compare steps on artificial data and on web data, with learning rates chosen on validation data."""
    sizes = work.pick(full=(300, 150, 1500), quick=(50, 40, 300))
    trees, rates = work.pick(full=(60, RATES), quick=(12, RATES[1:]))
    features = work.pick(full=30, quick=12)
    sources = [
        artificial_source(documents=work.pick(full=30, quick=15), features=features // 2),
        *work.web(features=features, documents=work.pick(full=(20, 40), quick=(10, 20))),
    ]
    claims: list[Claim] = []
    tables, figures = {}, []
    for source in sources:
        of_seeds = work.steps(source.name, partial(_measured, work, source, sizes, trees, rates))
        arms = {name: Arm(name, [found[name]["values"] for found in of_seeds]) for name in STEPS}
        trained = {
            name: float(np.mean([found[name]["train"][found[name]["trees"] - 1] for found in of_seeds]))
            for name in STEPS
        }
        rows = [
            [name, arm.mean(MEASURE), trained[name],
             *(", ".join(str(found[name][key]) for found in of_seeds) for key in ("rate", "trees"))]
            for name, arm in arms.items()
        ]  # fmt: skip
        columns = ["step", "test", "the model's own training data", "learning rates", "trees"]
        tables[f"{source.name}: NDCG@10, and by seed what was chosen"] = Table(columns, rows)
        figures.append(_figure(source, of_seeds, trees))
        claims += _claims(source, arms, trained)
    settings = {
        "queries for training, validation, test": sizes, "trees, at most": trees, "leaves": 10,
        "learning rate": f"of {', '.join(map(str, rates))}", "λ": "not normalized, no L2",
    }  # fmt: skip
    return Outcome(claims, tables, figures, settings, [source.name for source in sources])


def _measured(work: Work, source: Source, sizes: Sizes, trees: int, rates: tuple[float, ...], seed: int) -> Any:
    """Return, for each step at its best learning rate on validation data, values of test queries and NDCG by tree."""
    (train, valid, test), *_ = source.parts(seed, sizes)
    groups = {
        name: [
            LambdaMART(
                trees, 10, rate, MEASURE, step=step, normalize=False, l2=0.0, patience=trees,
                split_fraction=1.0, random_state=seed, verbose=0,
            )
            for rate in rates
        ]
        for name, step in STEPS.items()
    }  # fmt: skip
    return {
        name: {
            "values": work.values(model.predict(test), test, [MEASURE], source.prefix(seed)),
            "rate": model.learning_rate, "trees": model.n_trees_,
            **{part: list(model.history_[f"{part}/{MEASURE}"]) for part in ("valid", "train")},
        }
        for name, model in best_of_each(groups, train, {"valid": valid, "train": train}).items()
    }  # fmt: skip


def _figure(source: Source, of_seeds: list[Any], trees: int) -> Figure:
    rows = [
        {"x": k + 1, "y": float(np.mean([found[name][part][k] for found in of_seeds])), "series": name, "panel": title}
        for part, title in (("train", "training data"), ("valid", "validation data"))
        for name in (NEWTON, TREE, LEAF)
        for k in range(min(trees, *(len(found[name][part]) for found in of_seeds)))
    ]
    title = f"NDCG@10 by tree on {source.name} data, mean over seeds"
    return Figure(source.name, title, "trees", "NDCG@10", rows)


def _claims(source: Source, arms: dict[str, Arm], trained: dict[str, float]) -> list[Claim]:
    pairs = [
        (LEAF, TREE, "a weight for each leaf is more accurate than one for each tree"),
        (LEAF + OF_NEWTON, TREE + OF_NEWTON,
         "with Newton's values, a weight for each leaf is more accurate than one for each tree"),
        (LEAF, NEWTON, "a weight for each leaf is more accurate than Newton's steps"),
    ]  # fmt: skip

    def shown(name: str) -> str:
        return f"{name} {arms[name].mean(MEASURE):.4f} and {trained[name]:.4f}"

    return [
        better(f"{text} on {source.name} data", PLACE, arms[first], arms[second], MEASURE,
               why=f"Means of {MEASURE} on test queries and on those trained on: {shown(first)}, {shown(second)}.")
        for first, second, text in pairs
    ]  # fmt: skip


EXPERIMENT = Experiment(
    title="An exact search for each leaf",
    place=PLACE,
    says="The paper finds one weight for each tree, and expects that the best weight of each leaf may prove useful.",
    cuts="The leaves are searched one after the other, those with the largest outputs first.",
    run=run,
)
