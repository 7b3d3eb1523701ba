"""[W] fig. 2: accuracy against the number of trees, LambdaMART and McRank."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from experiments.claims import Arm, Claim, all_of, better, no_worse
from experiments.papers.common import ranked
from experiments.runner import Experiment, Figure, Outcome
from experiments.work import Sizes, Source, Work, artificial_source
from podium.estimators import LambdaMART, McRank, fit_many
from podium.evaluation.tables import Table

MEASURE = "ndcg@10"
N_LEAVES, RATE = 20, 0.15  # [W] 5.4, chosen there on validation data
MARGIN = 0.005  # half a point of NDCG; a whole one is much to [W]
PLACE = "[W] fig. 2"
RANKERS = ("McRank", "LambdaMART", "LambdaMART, λ normalized")
Curves = dict[str, dict[int, Arm]]  # arms by ranker and number of trees


def run(work: Work) -> Outcome:
    """Compare both rankers on artificial data and on web data by the number of trees."""
    runs: list[tuple[Source, Sizes, int]] = [
        (artificial_source(), work.pick(full=(1000, 1, 1500), quick=(120, 1, 200)), work.pick(full=400, quick=80)),
        *((web, work.pick(full=(4000, 1, 3000), quick=(300, 1, 250)), work.pick(full=200, quick=40))
          for web in work.web(features=work.pick(full=50, quick=15), documents=(13, 39))),
    ]  # fmt: skip
    claims: list[Claim] = []
    tables, rows = {}, []
    for source, sizes, most in runs:
        counts = list(range(most // 20, most + 1, most // 20))
        results = work.steps(source.name, partial(_measured, work, source, sizes, counts))
        curves: Curves = {
            ranker: {n: Arm(f"{ranker} with {n} trees", [one[ranker][str(n)] for one in results]) for n in counts}
            for ranker in RANKERS
        }
        claims += _claims(source, curves, most)
        some = [most // 10, most // 5, most // 2, most]
        tables[f"{source.name}: NDCG@10 by number of trees"] = Table(
            ["ranker", *map(str, some)], [[name, *(of[n].mean(MEASURE) for n in some)] for name, of in curves.items()]
        )
        rows += [
            {"panel": source.name, "series": ranker, "x": n, "y": arm.mean(MEASURE)}
            for ranker, of in curves.items()
            for n, arm in of.items()
        ]
    figure = Figure("trees", f"Accuracy against the number of trees ({PLACE})", "trees", "NDCG@10", rows)
    settings = {
        "queries for training": {source.name: sizes[0] for source, sizes, _ in runs},
        "queries for test": {source.name: sizes[2] for source, sizes, _ in runs},
        "trees": {source.name: most for source, _, most in runs}, "leaves": N_LEAVES, "learning rate": RATE,
        "LambdaMART": "LambdaMART.as_published(); λ normalized: with normalize=True",
    }  # fmt: skip
    return Outcome(claims, tables, [figure], settings, [source.name for source, *_ in runs])


def _measured(work: Work, source: Source, sizes: Sizes, counts: Sequence[int], seed: int) -> Any:
    """Return NDCG of each test query for each ranker and number of trees."""
    [(train, _, test)] = source.parts(seed, sizes)
    classes = len(np.unique(train.relevance))
    mcrank = McRank(-(-counts[-1] // classes), N_LEAVES, RATE, random_state=seed)
    lambdamart = LambdaMART.as_published(n_trees=counts[-1], n_leaves=N_LEAVES, learning_rate=RATE, random_state=seed)
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
    lambdamart, mcrank, on = curves["LambdaMART"], curves["McRank"], f"on {source.name} data"
    some = (most // 10, most // 5, most // 2)
    why = ranked({arm.name: arm for of in curves.values() for n, arm in of.items() if n in (*some, most)}, MEASURE)
    parts = [better("", PLACE, lambdamart[n], mcrank[n], MEASURE) for n in some]
    half = f"LambdaMART reaches the accuracy of McRank with half as many trees {on}"
    return [
        all_of(f"LambdaMART is ahead of McRank at equal numbers of trees, over a large range {on}", PLACE, parts,
               why=why),
        no_worse(half, PLACE, lambdamart[most // 2], mcrank[most], MEASURE, MARGIN, why=why),
    ]  # fmt: skip


EXPERIMENT = Experiment(
    title="Accuracy against the number of trees, LambdaMART and McRank",
    place=PLACE,
    says="With the same leaves and rate, LambdaMART learns faster: it reaches the accuracy of McRank, which grows a "
    "tree for each label in each round, with about half as many trees.",
    cuts="The paper has 10,000 training queries, 10,000 test queries, and web data with 367 features.",
    run=run,
)
