"""Beyond the papers: two label sources of which one has labels for few documents, which [S] §8 leaves to others."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from experiments.claims import Arm, Claim, better
from experiments.papers.common import ranked
from experiments.runner import Experiment, Figure, Outcome
from experiments.work import Work, best_of_each, best_value
from podium.data import RankingData
from podium.data.datasets.artificial import PARTS, artificial
from podium.data.datasets.clicks import simulate_clicks
from podium.estimators import LambdaMART
from podium.evaluation.tables import Table
from podium.objectives import Anneal, Constant, Lambda, Objective, Tiers

MEASURE = "ndcg@10"
MEASURES = (MEASURE, "cndcg@10")
PLACE = "beyond the papers ([S] §8)"
WEIGHTS = (0.03, 0.1, 0.3)
FEW, RANKED = "labels, of labelled documents only", "labels, all documents ranked"
TIERS_OF_FEW, TIERS, SUM = (
    "tiers, of labelled documents only",
    "tiers, all documents ranked",
    "sum of labels and clicks",
)
CLICKS, ALL = "clicks only", "no label missing"
ARMS = (FEW, RANKED, TIERS_OF_FEW, TIERS, SUM, CLICKS, ALL)
DRAWN = (FEW, TIERS_OF_FEW, TIERS, SUM, CLICKS, ALL)  # as many as there are colours


def run(work: Work) -> Outcome:
    """Compare ways to train by the share of documents without a label."""
    sizes = work.pick(full=(300, 150, 1500), quick=(60, 40, 300))
    trees, documents = work.pick(full=(150, 30), quick=(20, 20))
    shares = work.pick(full=(0.5, 0.8, 0.95), quick=(0.5, 0.9))
    arms: dict[float, dict[str, Arm]] = {}
    chosen: dict[float, list[Any]] = {}
    for share in shares:
        of_seeds = work.steps(f"{share:.0%} missing", partial(_measured, work, share, sizes, documents, trees))
        arms[share] = {name: Arm(name, [found["values"][name] for found in of_seeds]) for name in ARMS}
        chosen[share] = [found["weights"] for found in of_seeds]
    shown = [f"{share:.0%} missing" for share in shares]
    weights = [
        [name, *(", ".join(str(of_seed[name]) for of_seed in chosen[share]) for share in shares)]
        for name in (TIERS_OF_FEW, TIERS, SUM)
    ]
    tables = {
        of: Table(
            ["trained on", *shown], [[name, *(some[name].mean(measure) for some in arms.values())] for name in ARMS]
        )
        for measure, of in zip(MEASURES, ("NDCG@10 of the human labels", "CNDCG@10 of the clicks"), strict=True)
    }
    tables["Weight of the clicks, chosen on validation data, by seed"] = Table(["trained on", *shown], weights)
    settings = {
        "queries for training, validation, test": sizes, "documents of a query": documents, "trees, at most": trees,
        "learning rate": 0.1, "weight of the clicks": f"of {', '.join(map(str, WEIGHTS))}",
    }  # fmt: skip
    return Outcome(_claims(arms), tables, [_figure(arms)], settings, ["artificial, with simulated clicks"])


def clicked(part: str, queries: int, documents: int, seed: int) -> RankingData:
    """Return documents whose clicks follow the label and, among equal labels, a taste that two features determine."""
    data = artificial(queries, documents=documents, features=12, seed=seed, part=part)  # type: ignore[arg-type]
    taste = 0.5 * (np.tanh(2 * data.feature(0)) + np.tanh(2 * data.feature(1)))
    attraction = np.clip((2.0 ** (data.relevance + taste) - 1) / 2.0**5 + 0.1, 0, 1)
    return simulate_clicks(
        data, attraction=attraction, users=200, depth=documents, position_bias=0.3, noise=0.05, disorder=0.2, seed=seed
    )


def hide_labels(data: RankingData, share: float, seed: int) -> RankingData:
    """Return the data without the human labels of a share of its documents; the clicks stay."""
    hidden = np.random.default_rng([seed, 7]).random(data.n_documents) < share
    relevance = np.where(hidden, np.float32(np.nan), data.relevance)
    return data.replace(labels=dict(data.labels) | {"relevance": relevance})


def labelled_only(data: RankingData) -> RankingData:
    """Return the documents with a human label."""
    return data.take(np.flatnonzero(~np.isnan(data.relevance)))


def _measured(work: Work, share: float, sizes: tuple[int, ...], documents: int, trees: int, seed: int) -> Any:
    """Return NDCG of each test query for each way, and the weights that were best on validation data."""
    whole, valid, test = (clicked(part, n, documents, seed) for part, n in zip(PARTS, sizes, strict=True))
    some = hide_labels(whole, share, seed)
    few = labelled_only(some)
    human, clicks = Lambda("ndcg", normalize=False), Lambda("cndcg", normalize=False)
    tiers = {w: Tiers(human, clicks, weights=(1 - w, w)) for w in WEIGHTS}
    fits: dict[str, tuple[dict[float, Objective], RankingData]] = {
        FEW: ({0.0: human}, few), RANKED: ({0.0: human}, some), TIERS_OF_FEW: (dict(tiers), few),
        TIERS: (dict(tiers), some), SUM: ({w: Anneal(human, clicks, Constant(w)) for w in WEIGHTS}, some),
        CLICKS: ({1.0: clicks}, whole), ALL: ({0.0: human}, whole),
    }  # fmt: skip
    values, weights = {}, {}
    for name, (objectives, data) in fits.items():
        groups = {
            str(w): [
                LambdaMART(trees, 10, 0.1, MEASURE, objective=objective, patience=trees, split_fraction=1.0,
                           random_state=seed, verbose=0)
            ]
            for w, objective in objectives.items()
        }  # fmt: skip
        weights[name], model = max(best_of_each(groups, data, valid).items(), key=lambda one: best_value(one[1]))
        values[name] = work.values(model.predict(test), test, MEASURES, f"artificial {seed}")
    return {"values": values, "weights": weights}


def _claims(arms: dict[float, dict[str, Arm]]) -> list[Claim]:
    """Return a table of NDCG by the human labels, compared with training on the labelled documents alone."""
    kinds = {
        SUM: "clicks on all documents, added to the few labels, make them better",
        TIERS_OF_FEW: "clicks that decide among labelled documents of equal labels make the few labels better",
        TIERS: "clicks that decide among equal labels make the few better while other documents keep their ranks",
    }
    return [
        better(f"{text}, where {share:.0%} of the documents have no label", PLACE, of_share[name], of_share[FEW],
               MEASURE, why=ranked(of_share, MEASURE))
        for share, of_share in arms.items() for name, text in kinds.items()
    ]  # fmt: skip


def _figure(arms: dict[float, dict[str, Arm]]) -> Figure:
    rows = [
        {"x": 100 * share, "y": of_share[name].mean(MEASURE), "series": name}
        for name in DRAWN
        for share, of_share in arms.items()
    ]
    return Figure(
        "shares", "Documents without a label", "percent of labels missing", "NDCG@10 of labels", rows, "points"
    )


EXPERIMENT = Experiment(
    title="Documents without a label of some source",
    place=PLACE,
    says="The paper calls several label sources, some of them missing, a promising direction.",
    cuts="Human labels are hidden at random in the training data only. Tiers: a document without a human label has no "
    "pairs; either it keeps its rank, or it is left out. Sum: λ of the labels and of the clicks are added by weights, "
    "so that clicks also rank documents without a label.",
    run=run,
)
