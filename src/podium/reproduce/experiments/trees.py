"""[W] fig. 2: accuracy against the number of trees, LambdaMART and McRank."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from podium.estimators import LambdaMART, McRank, fit_many
from podium.evaluation.tables import Table
from podium.reproduce.arms import Arm, trees_needed
from podium.reproduce.claims import Claim, all_of, better, no_worse
from podium.reproduce.experiment import Experiment, Figure, Outcome
from podium.reproduce.sources import Sizes, Source, artificial_source
from podium.reproduce.work import Work

MEASURE = "ndcg@10"
N_LEAVES, RATE = 20, 0.15  # [W] 5.4, chosen there on validation data
MARGIN = 0.005  # half a point of NDCG; a whole one is much to [W]
PLACE = "[W] fig. 2"
RANKERS = ("McRank", "LambdaMART", "LambdaMART, λ normalised")
FINDINGS = {  # by the data
    "artificial": "At a tenth of the trees both are almost level; from there on LambdaMART needs ever fewer: 0.8 of "
    "McRank's 100 trees, 0.6 to 0.7 of its 200, about half of its 400. With normalised λ 200 trees are 0.038 ahead of "
    "McRank's 400.",
    "artificial web": "The number of training queries decides. With 800 queries LambdaMART overfits after 100 trees, "
    "and McRank's 400 trees (NDCG@10 0.478) are ahead of LambdaMART's 200 (0.469). With 4,000 queries LambdaMART is "
    "0.009, 0.013 and 0.007 ahead at 20, 40 and 100 trees, needs 0.5 to 0.6 of McRank's 100 trees, and is 0.002 behind "
    "McRank's 200 with its 100 (1,500 test queries of each seed). At 200 trees both are level, as [W] table 1 has it.",
}
Curves = dict[str, dict[int, Arm]]  # arms by ranker and number of trees


def run(work: Work) -> Outcome:
    """Both rankers on artificial data and on web data, measured as trees are added."""
    runs: list[tuple[Source, Sizes, int]] = [
        (artificial_source(), work.pick(full=(1000, 1, 1500), quick=(120, 1, 200)), work.pick(full=400, quick=80)),
        *((web, work.pick(full=(4000, 1, 3000), quick=(300, 1, 250)), work.pick(full=200, quick=40))
          for web in work.web(features=work.pick(full=50, quick=15), documents=(13, 39))),
    ]  # fmt: skip
    claims: list[Claim] = []
    tables, rows = {}, []
    for source, sizes, most in runs:
        counts = list(range(most // 20, most + 1, most // 20))
        found = [
            work.step(f"{source.name}, seed {seed}", partial(_measured, work, source, seed, sizes, counts))
            for seed in work.seeds
        ]
        curves: Curves = {
            ranker: {n: Arm(f"{ranker} with {n} trees", [one[ranker][str(n)] for one in found]) for n in counts}
            for ranker in RANKERS
        }
        claims += _claims(source, curves, most)
        tables[f"{source.name}: trees that LambdaMART needs for what McRank reaches"] = _needed_table(curves, work)
        rows += _rows(source, curves)
    figure = Figure("trees", f"Accuracy against the number of trees ({PLACE})", "trees", "NDCG@10", rows)
    settings = {
        "queries for training": {source.name: sizes[0] for source, sizes, _ in runs},
        "queries for test": {source.name: sizes[2] for source, sizes, _ in runs},
        "trees": {source.name: most for source, _, most in runs}, "leaves": N_LEAVES, "learning rate": RATE,
        "LambdaMART": "LambdaMART.as_published(); λ normalised: with normalize=True",
    }  # fmt: skip
    return Outcome(claims, tables, [figure], settings, [source.name for source, *_ in runs])


def _measured(work: Work, source: Source, seed: int, sizes: Sizes, counts: Sequence[int]) -> Any:
    """NDCG of each test query for each ranker and number of trees."""
    [(train, _, test)] = source.parts(seed, sizes)
    classes = len(np.unique(train.relevance))
    n_trees = counts[-1]
    mcrank = McRank(-(-n_trees // classes), N_LEAVES, RATE, random_state=seed)
    lambdamart = LambdaMART.as_published(n_trees=n_trees, n_leaves=N_LEAVES, learning_rate=RATE, random_state=seed)
    models = [mcrank, lambdamart, clone(lambdamart).set_params(normalize=True)]
    fitted = zip(RANKERS, fit_many(models, train, verbose=0), (classes, 1, 1), strict=True)
    return {
        name: {
            str(n): work.values(model.predict(test, n_trees=n // of_round), test, [MEASURE], source.prefix(seed))
            for n in counts
        }
        for name, model, of_round in fitted
    }


def _claims(source: Source, curves: Curves, most: int) -> list[Claim]:
    lambdamart, mcrank = curves["LambdaMART"], curves["McRank"]
    on, found = f"on {source.name} data", FINDINGS.get(source.name, "")
    ahead = f"LambdaMART is ahead of McRank at equal numbers of trees, over a large range {on}"
    parts = [better("", PLACE, lambdamart[n], mcrank[n], MEASURE) for n in (most // 10, most // 5, most // 2)]
    half = f"LambdaMART reaches the accuracy of McRank with half as many trees {on}"
    return [
        all_of(ahead, PLACE, parts),
        no_worse(half, PLACE, lambdamart[most // 2], mcrank[most], MEASURE, MARGIN, finding=found),
    ]


def _needed_table(curves: Curves, work: Work) -> Table:
    """For each seed: what McRank reaches with some numbers of trees, and the trees that LambdaMART needs for it."""
    counts = sorted(curves["McRank"])
    chosen = [counts[len(counts) // 4 - 1], counts[len(counts) // 2 - 1], counts[-1]]
    rows = []
    for k, seed in enumerate(work.seeds):
        means = {
            ranker: {n: Arm("", [arm.of_seeds[k]]).mean(MEASURE) for n, arm in of.items()}
            for ranker, of in curves.items()
        }
        for n in chosen:
            target = means["McRank"][n]
            needed = trees_needed(means["LambdaMART"], target)
            share = f"more than {counts[-1] / n:.2f}" if needed is None else f"{needed / n:.2f}"
            rows.append([seed, n, f"{target:.4f}", needed or f"more than {counts[-1]}", share])
    return Table(["seed", "trees of McRank", MEASURE, "trees of LambdaMART", "share"], rows)


def _rows(source: Source, curves: Curves) -> list[dict[str, Any]]:
    return [
        {"panel": source.name, "series": ranker, "x": n, "y": arm.mean(MEASURE),
         "low": arm.interval(MEASURE)[0], "high": arm.interval(MEASURE)[1]}
        for ranker, of in curves.items() for n, arm in of.items()
    ]  # fmt: skip


EXPERIMENT = Experiment(
    title="Accuracy against the number of trees, LambdaMART and McRank",
    place=PLACE,
    says="With the same leaves and rate, LambdaMART learns faster: it reaches the accuracy of McRank, which grows a "
    "tree for each label in each round, with about half as many trees.",
    cuts="The paper has 10,000 training queries, 10,000 test queries, and web data with 367 features.",
    run=run,
)
