"""[B] §7.1: the exact combination of two rankers against LambdaRank models of their scores."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.claims import Arm, Claim, always, better, equal
from experiments.papers.common import ranked
from experiments.runner import Experiment, Figure, Outcome
from experiments.work import Sizes, Source, Work, joined
from podium.data import RankingData
from podium.estimators import LambdaMART, LambdaRank, LinearRanker
from podium.evaluation.tables import Table
from podium.measures import NDCG, Ranking
from podium.models.combination import combine

Floats = NDArray[np.float64]
PLACE = "[B] §7.1"
MEASURE, MARGIN = "ndcg@10", 0.002
TREES, NET = "LambdaMART", "LambdaRank net"
EXACT, LINEAR, NONLINEAR, BOOSTED = "exact", "linear LambdaRank", "non-linear LambdaRank", "LambdaMART of scores"
FEWER = ", a quarter of the queries"  # combined on fewer validation queries
FEW = 20  # validation queries of each small set on which the optimum is checked
ALPHAS = np.linspace(0, 1, 33)


def run(work: Work) -> Outcome:
    """Compare two rankers and their combinations, on web data and on real data if there is any."""
    sizes = work.pick(full=(800, 2400, 2000), quick=(100, 120, 300))
    trees, epochs, sets = work.pick(full=(100, 40, 300), quick=(20, 6, 40))
    sources = work.web(features=work.pick(full=40, quick=15), documents=(20, 60))
    claims: list[Claim] = []
    tables, figures = {}, []
    for source in [*sources, *work.real()]:
        results = work.steps(source.name, partial(_measured, work, source, sizes, (trees, epochs), sets))
        arms = {name: Arm(name, [one["values"][name] for one in results]) for name in results[0]["values"]}
        rows = [[name, arm.mean(MEASURE), *arm.by_seed(MEASURE)] for name, arm in arms.items()]
        columns = ["ranker", "NDCG@10", *(f"seed {seed}" for seed in work.seeds)]
        tables[f"{source.name}: NDCG@10 of test queries"] = Table(columns, rows)
        if source in sources:  # real data has too few queries for a margin of .002: it has a table
            claims += [*_claims(source, arms), _optimum(source, results)]
            figures.append(_figure(source, results, work.seeds))
    settings = {
        "queries for training, validation, test": sizes, "trees": trees, "epochs": epochs,
        "combined on": "the validation queries, which the two rankers have not seen", "rate": 0.1, "leaves": 15,
        "non-linear LambdaRank": "a net of 10 units on both scores", BOOSTED: "50 trees of 4 leaves",
        "fewer queries": "both also fitted to a quarter of the validation queries",
        "small sets": f"{sets} of {FEW} validation queries for each seed, {len(ALPHAS)} values of α",
    }  # fmt: skip
    return Outcome(claims, tables, figures, settings, [source.name for source in (*sources, *work.real())])


def _measured(
    work: Work, source: Source, sizes: Sizes, rounds: tuple[int, int], sets: int, seed: int
) -> dict[str, Any]:
    """Return NDCG of each test query for each way to combine, the measure along α, and checks of the optimum."""
    parts: dict[str, list[Any]] = {}
    for fold, (train, valid, test) in enumerate(source.parts(seed, sizes)):
        rankers = [
            LambdaMART(rounds[0], 15, 0.1, split_fraction=1.0, random_state=seed).fit(train),
            LambdaRank("ndcg", epochs=rounds[1], inputs="quantile", random_state=seed).fit(train),
        ]
        both = of_scores(valid, rankers), of_scores(test, rankers)
        scores, path, linear = _combined(*both, seed)
        fewer = _combined(both[0].select(range(valid.n_queries // 4)), both[1], seed)[0]
        scores |= {name + FEWER: fewer[name] for name in (EXACT, LINEAR)}
        prefix = source.prefix(seed)
        for name, results in scores.items():
            parts.setdefault(name, []).append(work.values(results, test, [MEASURE], prefix))
        if fold == 0:
            checked = checked_optima(both[0], linear, sets, seed)
    return {"values": {name: joined(several) for name, several in parts.items()}, "path": path, "checked": checked}


def of_scores(data: RankingData, rankers: list[Any]) -> RankingData:
    """Return the data with the rankers' scores as features."""
    scores = np.column_stack([ranker.predict(data) for ranker in rankers]).astype(np.float32)
    return data.replace(features=scores, feature_names=None, encoding=None)


def _combined(valid: RankingData, test: RankingData, seed: int) -> tuple[dict[str, Floats], list[list[float]], Floats]:
    """Return the test scores of each way, the mean of the measure along α, and the weights of the linear LambdaRank."""
    a, b = (valid.feature(k).astype(np.float64) for k in (0, 1))
    exact = combine(a, b, valid, MEASURE)
    linear = LinearRanker("ndcg").fit(valid)
    models: dict[str, Any] = {
        LINEAR: linear, NONLINEAR: LambdaRank("ndcg", epochs=40, random_state=seed),
        BOOSTED: LambdaMART(50, 4, 0.1, split_fraction=1.0),
    }  # fmt: skip
    scores = {TREES: test.feature(0).astype(np.float64), NET: test.feature(1).astype(np.float64)}
    scores[EXACT] = exact.weights[0] * scores[TREES] + exact.weights[1] * scores[NET]
    scores |= {name: model.fit(valid).predict(test) for name, model in models.items()}
    assert exact.path is not None  # of two rankers
    places = np.linspace(0, len(exact.path.values) - 1, 400).astype(int)
    path = [[float(exact.path.alphas[k]), float(exact.path.values[k])] for k in places]
    return scores, path, linear.coef_


def checked_optima(valid: RankingData, linear: Floats, sets: int, seed: int) -> list[bool]:
    """Return, for small sets of queries, whether no other α and no linear LambdaRank beats the exact combination."""
    rng, measure = np.random.default_rng(seed), NDCG(10)
    alphas = [*ALPHAS, *([linear[1] / linear.sum()] if (linear > 0).all() else [])]
    results = []
    for _ in range(sets):
        some = valid.select(rng.choice(valid.n_queries, min(FEW, valid.n_queries), replace=False))
        a, b = (some.feature(k).astype(np.float64) for k in (0, 1))
        others = [measure.mean(Ranking(some, (1 - alpha) * a + alpha * b)) for alpha in alphas]
        results.append(combine(a, b, some, measure).value >= max(others) - 1e-12)
    return results


def _claims(source: Source, arms: dict[str, Arm]) -> list[Claim]:
    on, exact, why = f"on {source.name} data", arms[EXACT], ranked(arms, MEASURE)
    claims = [
        better(
            f"the exact combination is better than the {name} alone {on}", PLACE, exact, arms[name], MEASURE, why=why
        )
        for name in (TREES, NET)
    ]
    for name in (LINEAR, NONLINEAR):
        text = f"a {name} on both scores is as good as the exact combination {on}"
        claims.append(equal(text, PLACE, arms[name], exact, MEASURE, MARGIN, why=why))
    text = f"a {BOOSTED} is as good as the exact combination {on}"
    claims.append(equal(text, "beyond the papers", arms[BOOSTED], exact, MEASURE, MARGIN, why=why))
    text = f"with a quarter of the validation queries the linear LambdaRank is better than the exact combination {on}"
    linear, fewer = (arms[name + FEWER] for name in (LINEAR, EXACT))
    return [*claims, better(text, "beyond the papers", linear, fewer, MEASURE, why=why)]


def _optimum(source: Source, results: list[dict[str, Any]]) -> Claim:
    checked = [one["checked"] for one in results]
    return always(
        f"of all linear combinations the exact one has the highest NDCG on the queries it is fitted to, {source.name}",
        PLACE, f"sets of {FEW} queries in which another α or the linear LambdaRank's is better",
        [one.count(False) for one in checked], sum(map(len, checked)),
    )  # fmt: skip


def _figure(source: Source, results: list[dict[str, Any]], seeds: Sequence[int]) -> Figure:
    rows = [
        {"x": alpha, "y": value, "series": f"seed {seed}"}
        for seed, one in zip(seeds, results, strict=True)
        for alpha, value in one["path"]
    ]
    title = f"NDCG@10 of validation queries along α, {source.name} data ({PLACE})"
    return Figure(source.slug, title, f"α: 0 {TREES}, 1 {NET}", "NDCG@10", rows)


EXPERIMENT = Experiment(
    title="The exact combination of two rankers against LambdaRank models of their scores",
    place=PLACE,
    says="Along α the measure of α a + (1 − α) b changes a finite number of times, so that the best combination can be "
    "found exactly. A linear or non-linear LambdaRank on the two scores usually is as good, without the guarantee.",
    cuts="The paper gives no numbers. The two rankers are boosted trees and a net; equally good is within .002. The "
    "number of validation queries was raised to 2,400 after a first run with a quarter of them, which is also shown.",
    run=run,
)
