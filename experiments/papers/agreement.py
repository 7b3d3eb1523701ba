"""[S] fig. 2: do λ of human labels and λ of clicks pull the same way?"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.claims import QUERY, Arm, Claim, better, compared
from experiments.papers.common import with_clicks
from experiments.runner import Experiment, Figure, Outcome
from experiments.work import PAPERS_TREES, Sizes, Source, Work, artificial_source
from podium.data import RankingData
from podium.diagnostics import WatchAgreement
from podium.estimators import LambdaMART
from podium.evaluation.tables import Table
from podium.objectives import Lambda, PairFilter

PLACE = "[S] fig. 2"
EVERY = 5
MEASURE = "agreement"
SHOWN = {"ten documents shown": 10, "all documents shown": 1000}
WAYS = ("all pairs", "restricted pairs")


def run(work: Work) -> Outcome:
    """Train on λ(L) alone, and record the agreement."""
    sizes = work.pick(full=(1500, 1, 1), quick=(200, 1, 1))
    trees = work.pick(full=300, quick=40)
    sources = [artificial_source(documents=30, features=12), *work.web(features=40, documents=(20, 60))]
    claims: list[Claim] = []
    tables, figures = {}, []
    for source in sources:
        runs = {
            name: work.steps(f"{source.name}, {name}", partial(_watched, source, sizes, trees, shown))
            for name, shown in SHOWN.items()
        }
        for name, of_seeds in runs.items():
            claims += _claims(source, name, of_seeds)
        tables[f"{source.name}: % of documents on which the two agree, mean over seeds"] = _table(runs)
        figures.append(_figure(source, runs))
    settings = {
        "training queries": sizes[0], "trees": trees, "leaves": 30, "learning rate": 0.2, "looked at every": EVERY,
    }  # fmt: skip
    return Outcome(claims, tables, figures, settings, [f"{source.name}, simulated clicks" for source in sources])


def _watched(source: Source, sizes: Sizes, trees: int, shown: int, seed: int) -> Any:
    """Return both shares of agreement by iteration, and those of each query at the end of training."""
    train = with_clicks(source.parts(seed, sizes)[0], shown)[0]
    watch = WatchAgreement(Lambda("cndcg", normalize=False), every=EVERY)
    model = LambdaMART(trees, 30, 0.2, objective=Lambda("ndcg", normalize=False), **PAPERS_TREES).fit(
        train, observers=[watch]
    )
    seen, shares = watch.result(), agreement_of_queries(train, model.predict(train))
    names = [f"{source.name} {seed}/{query}" for query in train.query_ids]
    return {
        "iterations": seen.iterations, "all pairs": seen.all_pairs, "restricted pairs": seen.restricted,
        "clicked": float((train.labels["clicks"] > 0).mean()),
        "of queries": {way: {QUERY: names, MEASURE: values} for way, values in shares.items()},
    }  # fmt: skip


def agreement_of_queries(data: RankingData, scores: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """Return the share of each query's documents on which λ(L) and λ(C) agree: equal signs, or λ(C) = 0."""
    clicks, order = Lambda("cndcg", normalize=False), data.canonical_order
    signs = np.sign(Lambda("ndcg", normalize=False).bind(data).gradients(scores)[0])
    restricted = PairFilter(data.relevance[order], nonzero=True)
    shares = {}
    for way, bound in zip(WAYS, (clicks.bind(data), clicks.bind_among(data, restricted)), strict=True):
        lambdas = bound.gradients(scores)[0]
        agrees = ((np.sign(lambdas) == signs) | (lambdas == 0))[order]
        shares[way] = np.add.reduceat(agrees, data.offsets[:-1], dtype=np.float64) / data.query_sizes
    return shares


def _claims(source: Source, shown: str, runs: list[Any]) -> list[Claim]:
    whole, restricted = (Arm(way, [run["of queries"][way] for run in runs]) for way in WAYS)
    on = f"at the end of training on {source.name} data, {shown}"
    first, last = (np.mean([run["all pairs"][k] for run in runs]) for k in (0, -1))
    why = (
        f"Over all pairs they agree on {first:.0%} of the documents at the first iteration and on {last:.0%} at the "
        f"last; {np.mean([run['clicked'] for run in runs]):.0%} of the documents are clicked, and λ(C) over restricted "
        "pairs is 0, which counts as agreement, on all others."
    )
    return [
        compared(f"λ(L) and λ(C) over all pairs agree on most documents {on}", PLACE, "above",
                 "share of documents", whole.by_seed(MEASURE), 0.5, why=why),
        better(f"λ(C) over pairs with equal labels and clicks on both agrees with λ(L) on more documents {on}",
               PLACE, restricted, whole, MEASURE, why=why),
        better(f"it does so on 10% of the documents more, or above (almost 15% in the paper) {on}", PLACE,
               restricted, whole, MEASURE, lead=0.1, why=why),
    ]  # fmt: skip


def _table(runs: dict[str, list[Any]]) -> Table:
    iterations = next(iter(runs.values()))[0]["iterations"]
    picked = np.linspace(0, len(iterations) - 1, 6).round().astype(int)
    means = [100 * np.mean([run[way] for run in of_seeds], axis=0) for of_seeds in runs.values() for way in WAYS]
    rows = [[iterations[k], *(f"{values[k]:.1f}" for values in means)] for k in picked]
    return Table(["iteration", *(f"{way}, {name}" for name in runs for way in WAYS)], rows)


def _figure(source: Source, runs: dict[str, list[Any]]) -> Figure:
    rows = []
    for panel, of_seeds in runs.items():
        for way in WAYS:
            shares = 100 * np.array([run[way] for run in of_seeds])
            for iteration, values in zip(of_seeds[0]["iterations"], shares.T, strict=True):
                row = {"series": way, "x": iteration, "y": values.mean(), "low": values.min(), "high": values.max()}
                rows.append(row | {"panel": panel})
    title = f"Agreement of λ(L) and λ(C) while training on λ(L) ({PLACE}), {source.name} data"
    return Figure(source.slug, title, "iteration", "% of documents, with the range of seeds", rows)


EXPERIMENT = Experiment(
    title="Agreement of λ of human labels and λ of clicks",
    place=PLACE,
    says="Training is on λ(L), of NDCG, alone. λ(C), of CNDCG, agrees with it on a document where both have the same "
    "sign, or λ(C) is 0. Over all pairs they agree on most documents; over pairs with equal labels that were both "
    "clicked, on almost 15% of the documents more.",
    cuts="Clicks are simulated, once with ten documents of each query shown to users, as on the first page of a search "
    "engine, and once with all of them. With all shown was tried first.",
    run=run,
)
