"""Beyond the papers: line search, graded and annealed λ on MQ2008 and OHSUMED."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from experiments.claims import Arm, Claim, better, equal, no_worse
from experiments.papers.common import means_table, ranked
from experiments.runner import Experiment, Outcome
from experiments.work import FOLDER_VARIABLE, Source, Work, best_of_each, joined
from podium.boosting import LineSearch, Newton
from podium.data import RankingData
from podium.data.datasets.clicks import simulate_clicks
from podium.estimators import LambdaMART
from podium.objectives import Anneal, Lambda, LinearGrowth, Local, Tiers

PLACE = "beyond the papers"
MEASURES = ("ndcg@10", "ndcg@3", "cndcg@10")
TREES, FEW_TREES, WEIGHT, MARGIN = 100, 33, 0.2, 0.01
NEWTON, SEARCHED, GRADIENT, ANNEALED, GRADED = "Newton's steps", "line search", "gradient steps", "annealed λ", "tiers"
ARMS = (NEWTON, SEARCHED, GRADIENT, ANNEALED, GRADED)


def run(work: Work) -> Outcome:
    """Compare methods on all folds of both collections."""
    sources = work.real()
    if not sources:
        why = "the quick run has no real data" if work.quick else f"the folder that {FOLDER_VARIABLE} names has none"
        return Outcome([], nothing_because=f"needs MQ2008 or OHSUMED: {why}")
    claims: list[Claim] = []
    tables = {}
    for source in sources:
        arms = _arms(work, source)
        tables[f"{source.name}: means"] = means_table(arms, MEASURES, "method")
        claims += _claims(source, arms)
    settings = {
        "trees, at most": f"{TREES}, {FEW_TREES} with line search", "leaves": 10, "learning rate": "0.1, with line "
        "search of 0.1 and 0.3", "features for each tree": "70%, drawn by the seed", "λ": "not normalized, no L2",
        "weight of the clicks": WEIGHT, "chosen": "trees, rates by NDCG@10 on validation data", "margin": MARGIN,
    }  # fmt: skip
    return Outcome(claims, tables, [], settings, [f"{source.name}, all folds" for source in sources])


def with_clicks(data: RankingData, feature: int) -> RankingData:
    """Return clicks of simulated users of an engine that ranks by one feature."""
    shown_by = np.nan_to_num(data.feature(feature)).astype(np.float64)
    shown_by = (shown_by - shown_by.min()) / (np.ptp(shown_by) or 1.0)
    return simulate_clicks(data, shown_by=shown_by, users=100, depth=20, position_bias=0.7, disorder=0.1)


def best_feature(data: RankingData) -> int:
    """Return the feature that agrees best with the labels."""
    agreement = [np.nan_to_num(np.corrcoef(data.feature(k), data.relevance)[0, 1]) for k in range(data.n_features)]
    return int(np.argmax(agreement))


def _arms(work: Work, source: Source) -> dict[str, Arm]:
    """Run a step for each seed."""

    def measured(seed: int) -> dict[str, Any]:
        parts = [_measured(work, source, seed, *part) for part in source.parts(seed, (0, 0, 0))]
        return {name: joined([part[name] for part in parts]) for name in ARMS}

    of_seeds = work.steps(source.name, measured)
    return {name: Arm(name, [of_seed[name] for of_seed in of_seeds]) for name in ARMS}


def _measured(
    work: Work, source: Source, seed: int, train: RankingData, valid: RankingData, test: RankingData
) -> dict[str, Any]:
    """Return the values of each method on the test queries of a fold."""
    feature = best_feature(train)
    train, test = with_clicks(train, feature), with_clicks(test, feature)
    ndcg, local = Lambda("ndcg", normalize=False), Local("ndcg", normalize=False)
    search = LineSearch("ndcg@10", values=Newton(l2=0.0))
    model = partial(
        LambdaMART, n_leaves=10, l2=0.0, split_fraction=1.0, feature_fraction=0.7, random_state=seed, verbose=0
    )
    boosted = partial(model, TREES, learning_rate=0.1, patience=TREES)
    searches = [
        model(FEW_TREES, learning_rate=rate, patience=FEW_TREES, objective=ndcg, step=search) for rate in (0.1, 0.3)
    ]
    groups = {
        NEWTON: [boosted(objective=ndcg)], SEARCHED: searches, GRADIENT: [boosted(objective=ndcg, step="gradient")],
        ANNEALED: [boosted(objective=Anneal(ndcg, local, LinearGrowth(0.1, 0.01)), step="gradient")],
        GRADED: [boosted(objective=Tiers(ndcg, Lambda("cndcg", normalize=False), weights=(1 - WEIGHT, WEIGHT)))],
    }  # fmt: skip
    return {
        name: work.values(best.predict(test), test, MEASURES, source.prefix(seed))
        for name, best in best_of_each(groups, train, valid).items()
    }


def _claims(source: Source, arms: dict[str, Arm]) -> list[Claim]:
    newton, searched, gradient, annealed, graded = (arms[name] for name in ARMS)
    on, why = f"on {source.name}", {measure: ranked(arms, measure) for measure in MEASURES}
    return [
        no_worse(f"line search with {FEW_TREES} trees is no worse than Newton's steps with {TREES} {on}", PLACE,
                 searched, newton, "ndcg@10", MARGIN, why=why["ndcg@10"]),
        better(f"clicks as a second tier raise CNDCG {on}", PLACE, graded, newton, "cndcg@10", why=why["cndcg@10"]),
        equal(f"clicks as a second tier leave NDCG as it is {on}", PLACE, graded, newton, "ndcg@10", MARGIN,
              why=why["ndcg@10"]),
        better(f"annealed λ is more accurate than λ with gradient steps {on}", PLACE, annealed, gradient, "ndcg@3",
               why=why["ndcg@3"]),
        no_worse(f"annealed λ is no worse than Newton's steps {on}", PLACE, annealed, newton, "ndcg@3", MARGIN,
                 why=why["ndcg@3"]),
    ]  # fmt: skip


EXPERIMENT = Experiment(
    title="Line search, graded and annealed λ on MQ2008 and OHSUMED",
    place=PLACE,
    says="The papers' web data is not public; these two collections are.",
    cuts="Neither has clicks: they are those of simulated users of an engine that ranks by the best single feature.",
    run=run,
)
