"""[W] tables 2 to 4: a ranker is adapted to a domain by trees on top of it (LambdaSMART)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from experiments.claims import Arm, Claim, all_of, better, equal, no_worse
from experiments.papers.common import means_table, ranked
from experiments.runner import Experiment, Figure, Outcome
from experiments.work import Work
from podium.data import RankingData
from podium.data.datasets.artificial import artificial
from podium.estimators import LambdaMART, LambdaRank, fit_many
from podium.models import combine

MEASURES = ("ndcg@10", "ndcg@3", "ndcg@1")
SHAPE: dict[str, Any] = {"documents": 30, "features": 20, "label_noise": 0.5}
DOMAINS = {"near": 0.1, "far": 0.3}  # how far their polynomials are from the background's
MARKETS = {"target": 0.3, "market A": 0.0, "market B": 0.15, "market C": 0.5}  # shifts; the first is adapted to
BACKGROUND, IN_DOMAIN, INTERPOLATED, ADAPTED = "background", "in-domain", "interpolated", "adapted"
ALL_DOCUMENTS, FROM_NOTHING = "adapted, all documents", "trees on nothing"
WAYS = (BACKGROUND, IN_DOMAIN, INTERPOLATED, ADAPTED, ALL_DOCUMENTS, FROM_NOTHING)
MARGIN = 0.005  # half a point of NDCG


def run(work: Work) -> Outcome:
    """Adapt from a background domain to two others with several numbers of queries, then between several markets."""
    counts = work.pick(full=(30, 150, 800), quick=(20, 120))
    arms = {}
    for domain in DOMAINS:
        results = work.steps(f"{domain} domain", partial(_one_background, work, domain, counts))
        arms[domain] = {n: {way: Arm(way, [one[str(n)][way] for one in results]) for way in WAYS} for n in counts}
    several = work.steps("several markets", partial(_several_markets, work))
    markets = {name: Arm(name, [one[name] for one in several]) for name in several[0]}
    few, enough = counts[0], counts[-1]
    tables = {
        f"{domain} domain, {n:,} queries of it: NDCG": means_table(of_count[n], MEASURES, "ranker")
        for domain, of_count in arms.items()
        for n in (few, enough)
    } | {"Several markets: NDCG": means_table(markets, MEASURES, "ranker")}
    rows = [
        {"panel": f"{domain} domain", "series": way, "x": n, "y": arm.mean("ndcg@10")}
        for domain, of_count in arms.items()
        for n, of in of_count.items()
        for way, arm in of.items()
        if way != ALL_DOCUMENTS
    ]
    title = "Ways to rank a domain ([W] tables 2 and 3)"
    figure = Figure("queries", title, "queries of the domain", "NDCG@10", rows, "points")
    claims = [
        *_claims_of_domains(arms["near"][few], arms["far"][enough], (few, enough)),
        *_claims_of_markets(markets),
    ]
    return Outcome(claims, tables, [figure], _settings(work, counts), ["artificial, shifted"])


def _market(part: Any, queries: int, seed: int, shift: float) -> RankingData:
    return artificial(queries, seed=seed, part=part, shift=shift, **SHAPE)


def _net(work: Work, train: RankingData, valid: RankingData, seed: int, hidden: int = 15) -> Any:
    """Return the baselines of the paper, which have two layers."""
    epochs = work.pick(full=40, quick=10)
    return LambdaRank(hidden=hidden, n_threads=1, epochs=epochs, random_state=seed, verbose=0).fit(train, valid=valid)


def _trees(work: Work, seed: int, **changed: Any) -> LambdaMART:
    """Return LambdaSMART with the paper's settings."""
    n_trees = work.pick(full=500, quick=60)
    settings = {"n_trees": n_trees, "n_leaves": 20, "learning_rate": 0.1, "document_fraction": 0.7, "verbose": 0}
    return LambdaMART.as_published(**settings | {"patience": n_trees // 4, "random_state": seed} | changed)


def _one_background(work: Work, domain: str, counts: tuple[int, ...], seed: int) -> dict[str, Any]:
    """Return NDCG of each test query for each number of queries of the domain and each way to rank it."""
    queries, judging = work.pick(full=(2000, 1000), quick=(300, 200))
    background = _net(work, _market("train", queries, seed, 0.0), _market("valid", queries // 5, seed, 0.0), seed)
    shift = DOMAINS[domain]
    test = _market("test", judging, seed, shift)
    results = {}
    for n in counts:
        train, valid = _market("train", n, seed, shift), _market("valid", max(n // 4, 10), seed, shift)
        in_domain = _net(work, train, valid, seed)
        adapted, of_all, alone = fit_many(
            [_trees(work, seed, submodel=background),
             _trees(work, seed, submodel=background, document_fraction=1.0), _trees(work, seed)],
            train, valid=valid, verbose=0,
        )  # fmt: skip
        of_background, of_domain = background.predict(test), in_domain.predict(test)
        weights = combine(background, in_domain, valid, "ndcg@10").weights
        scores = [
            of_background, of_domain, weights[0] * of_background + weights[1] * of_domain, adapted.predict(test),
            of_all.predict(test), alone.predict(test),
        ]  # fmt: skip
        results[str(n)] = {
            way: work.values(column, test, MEASURES, f"{domain} domain {seed}")
            for way, column in zip(WAYS, scores, strict=True)
        }
    return results


def _several_markets(work: Work, seed: int) -> dict[str, Any]:
    """Return NDCG of each test query of the target for each market's ranker, adapted to it, and interpolated."""
    n_target, n_other, judging = work.pick(full=(500, 2000, 1000), quick=(150, 300, 200))
    train, valid = (
        _market(part, n, seed, MARKETS["target"]) for part, n in (("train", n_target), ("valid", n_target // 4))
    )
    test = _market("test", judging, seed, MARKETS["target"])
    nets = {}
    for name, shift in MARKETS.items():
        size = n_target if name == "target" else n_other
        parts = _market("train", size, seed, shift), _market("valid", size // 4, seed, shift)
        nets[name] = _net(work, *parts, seed, hidden=10)
    fitted = fit_many([_trees(work, seed, submodel=net) for net in nets.values()], train, valid=valid, verbose=0)
    columns = {name: net.predict(test) for name, net in nets.items()}
    weights = combine(*nets.values(), data=valid, measure="ndcg@10", method="powell").weights
    columns |= {f"{name}, adapted": model.predict(test) for name, model in zip(nets, fitted, strict=True)}
    columns[INTERPOLATED] = np.sum([w * columns[name] for name, w in zip(nets, weights, strict=True)], axis=0)
    return {name: work.values(column, test, MEASURES, f"markets {seed}") for name, column in columns.items()}


def _claims_of_domains(few: dict[str, Arm], enough: dict[str, Arm], counts: tuple[int, int]) -> list[Claim]:
    measure, baselines = "ndcg@10", (BACKGROUND, IN_DOMAIN, INTERPOLATED)
    of_few, of_enough = ranked(few, measure), ranked(enough, measure)
    return [
        no_worse(f"with too little data ({counts[0]} queries of a near domain) adaptation gains nothing",
                 "[W] table 2", few[BACKGROUND], few[ADAPTED], measure, MARGIN, why=of_few),
        all_of(f"with enough data ({counts[1]:,} queries of a far domain) the adapted ranker is the best, "
               "by NDCG@10, @3 and @1", "[W] table 3",
               [better("", "[W] table 3", enough[ADAPTED], enough[way], m) for m in MEASURES for way in baselines],
               why=of_enough),
        equal("with enough data the in-domain ranker and the interpolated one are much alike", "[W] table 3",
              enough[INTERPOLATED], enough[IN_DOMAIN], measure, 0.01, why=of_enough),
        better("to grow each tree on 70% of the documents is crucial", "[W] 5.5",
               enough[ADAPTED], enough[ALL_DOCUMENTS], measure, why=of_enough),
    ]  # fmt: skip


def _claims_of_markets(markets: dict[str, Arm]) -> list[Claim]:
    place, measure, why = "[W] table 4", "ndcg@10", ranked(markets, "ndcg@10")
    others = [name for name in MARKETS if name != "target"]
    return [
        all_of("a ranker of little data of the target is better than those of more data of other markets", place,
               [better("", place, markets["target"], markets[name], measure) for name in others], why=why),
        all_of("each ranker adapted to the target is better than it was before", place,
               [better("", place, markets[f"{name}, adapted"], markets[name], measure) for name in MARKETS], why=why),
        all_of("each adapted ranker is better than the interpolation of all four", place,
               [better("", place, markets[f"{name}, adapted"], markets[INTERPOLATED], measure) for name in MARKETS],
               why=why),
        no_worse("interpolation is only slightly better than the target's own ranker", place,
                 markets["target"], markets[INTERPOLATED], measure, 0.01, why=why),
    ]  # fmt: skip


def _settings(work: Work, counts: tuple[int, ...]) -> dict[str, Any]:
    return {
        "data": f"artificial, {SHAPE}", "shifts of the domains": DOMAINS, "shifts of the markets": MARKETS,
        "queries of the domain": counts, "queries of the background": work.pick(full=2000, quick=300),
        "queries of the markets": work.pick(full="target 500, others 2,000", quick="target 150, others 300"),
        "trees": f"{work.pick(full=500, quick=60)} at most, the best number on validation data; 20 leaves, rate 0.1",
        "LambdaSMART": "LambdaMART.as_published() on the net's scores, 70% of the documents for each tree",
    }  # fmt: skip


EXPERIMENT = Experiment(
    title="Adaptation with too little data, with enough, from several markets",
    place="[W] tables 2 to 4",
    says="Trees on top of a background net, trained on queries of the domain, gain nothing for long queries, and for "
    "names they beat background, in-domain and interpolated rankers. Rankers of four markets, adapted to one of them, "
    "are all better than before and than their interpolation. Growing each tree on 70% of the documents is crucial.",
    cuts="The paper has web data of four markets, 6,000 to 45,000 queries each. Here a domain is artificial data "
    'with other coefficients and noise on the labels. Nets are trained by Adam, rate 0.01. "Trees on nothing" '
    "are not in the paper: LambdaMART trained on the domain alone.",
    run=run,
)
