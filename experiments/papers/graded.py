"""[S] table 1: NDCG on human labels and CNDCG on clicks, trained together."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from experiments.claims import Arm, Claim, all_of, better, no_worse
from experiments.papers.common import CLICKS, with_clicks
from experiments.runner import Experiment, Figure, Outcome
from experiments.work import PAPERS_TREES, Sizes, Source, Work, artificial_source
from podium.data import RankingData
from podium.estimators import LambdaMART, fit_many
from podium.evaluation import evaluate
from podium.evaluation.tables import Table
from podium.measures import Graded, as_measure
from podium.objectives import Lambda, Tiers

PLACE = "[S] table 1"
WEIGHTS = (0.01, 0.1, 0.2, 0.3, 0.4, 0.5)  # as [S] sweeps them
CUTOFFS = tuple(range(1, 11))
TOLERANCE = 0.002  # of the choice among weights, by NDCG@3 on validation data
MARGIN = 0.003  # of the tests that NDCG is kept


def run(work: Work) -> Outcome:
    """Sweep the weights for both sources of clicks."""
    sizes = work.pick(full=(2000, 1000, 3000), quick=(300, 200, 400))
    trees, weights = work.pick(full=(200, WEIGHTS), quick=(40, (0.1, 0.3)))
    sources = [
        artificial_source(documents=30, features=12),
        *(work.web(features=40, documents=(20, 60)) if not work.quick else ()),
    ]
    claims: list[Claim] = []
    tables: dict[str, Table] = {}
    figures = []
    for source in sources:
        steps = work.steps(source.name, partial(_swept, work, source, sizes, trees, weights))
        baseline = Arm("the baseline", [step["baseline"] for step in steps])
        arms = {
            sign: Arm("the graded model", [step[name]["values"] for step in steps]) for sign, name in CLICKS.items()
        }
        for sign, arm in arms.items():
            claims += _claims(source, sign, arm, baseline, _chosen(steps, CLICKS[sign], weights))
        tables[f"{source.name}: in points, as in {PLACE}"] = _table(arms, baseline)
        tables[f"{source.name}: means on test queries for each weight of the clicks, and how often it was chosen"] = (
            Table(["clicks", "weight", "NDCG@3", "NDCG@10", "CNDCG@3", "CNDCG@10", "chosen"], _sweep(steps, weights))
        )
        figures.append(_figure(source, steps, weights))
    settings = {
        "queries for training, validation, test": sizes, "trees": trees, "leaves": 30, "learning rate": 0.2,
        "weights": weights,
        "chosen by": f"NDCG@3 then CNDCG@3 on validation, tolerance {TOLERANCE}",
    }  # fmt: skip
    return Outcome(claims, tables, figures, settings, [f"{source.name}, simulated clicks" for source in sources])


def _swept(work: Work, source: Source, sizes: Sizes, trees: int, weights: tuple[float, ...], seed: int) -> Any:
    """Return the baseline and, for each source of clicks, the model that the graded rule selects on validation data."""
    train, valid, test = with_clicks(source.parts(seed, sizes)[0])
    objectives = {
        (name, weight): Tiers(
            Lambda("ndcg", normalize=False), Lambda(_cndcg(name), normalize=False), weights=(1 - weight, weight)
        )
        for name in CLICKS.values()
        for weight in weights
    }
    models = [
        LambdaMART(trees, 30, 0.2, objective=objective, **PAPERS_TREES)
        for objective in (Lambda("ndcg", normalize=False), *objectives.values())
    ]
    baseline, *swept = fit_many(models, train, verbose=0)
    fitted = dict(zip(objectives, swept, strict=True))
    prefix = source.prefix(seed)
    measures = [f"ndcg@{k}" for k in CUTOFFS] + [_cndcg(name, k) for name in CLICKS.values() for k in CUTOFFS]
    results: dict[str, Any] = {"baseline": work.values(baseline.predict(test), test, measures, prefix)}
    for name in CLICKS.values():
        rule = Graded(["ndcg@3", _cndcg(name, 3)], TOLERANCE)
        on_valid = [_means(fitted[name, weight], valid, list(map(str, rule.measures))) for weight in weights]
        chosen = weights[rule.pick(np.array(on_valid))]
        shown = ["ndcg@3", "ndcg@10", _cndcg(name, 3), _cndcg(name, 10)]
        results[name] = {
            "weight": chosen, "values": work.values(fitted[name, chosen].predict(test), test, measures, prefix),
            "means": [_means(model, test, shown) for model in (baseline, *(fitted[name, w] for w in weights))],
        }  # fmt: skip
    return results


def _cndcg(name: str, cutoff: int | None = None) -> str:
    """Return the name of CNDCG on a source of clicks."""
    return str(as_measure(f"cndcg(labels={name})" + (f"@{cutoff}" if cutoff else "")))


def _means(model: LambdaMART, data: RankingData, measures: list[str]) -> list[float]:
    return list(evaluate(data, model.predict(data), measures).means.values())


def _changes(steps: list[Any], name: str, column: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return differences from the baseline in points, a row for each seed; the first column is the baseline's 0."""
    means = np.array([step[name]["means"] for step in steps])[:, :, column]
    return np.asarray(100 * (means - means[:, :1]))


def _chosen(steps: list[Any], name: str, weights: tuple[float, ...]) -> str:
    """Return a sentence on the result of the sweep and the selected weights."""
    gains = [_changes(steps, name, column).mean(axis=0)[1:] for column in (0, 2)]
    swept = "; ".join(f"{w:g}: {a:+.2f} and {b:+.2f}" for w, a, b in zip(weights, *gains, strict=True))
    chosen = ", ".join(f"{step[name]['weight']:g}" for step in steps)
    return f"Weights chosen, by seed: {chosen}. Points of NDCG@3 and CNDCG@3 gained, by weight: {swept}."


def _claims(source: Source, sign: str, graded: Arm, baseline: Arm, why: str) -> list[Claim]:
    on, clicks = f"on {source.name} data, clicks {sign}", [_cndcg(CLICKS[sign], k) for k in CUTOFFS]
    kept = [no_worse("", PLACE, graded, baseline, f"ndcg@{k}", MARGIN) for k in (3, 10)]
    return [
        all_of(f"the graded λ keeps NDCG@3 and NDCG@10 {on}", PLACE, kept, why=why),
        all_of(f"the graded λ raises CNDCG at each of the cutoffs 1 to 10 {on}", PLACE,
               [better("", PLACE, graded, baseline, measure) for measure in clicks], why=why),
        all_of(f"it raises CNDCG by three points or more at each of the cutoffs 1 to 10 {on}", PLACE,
               [better("", PLACE, graded, baseline, measure, lead=0.03) for measure in clicks], why=why),
    ]  # fmt: skip


def _table(arms: dict[str, Arm], baseline: Arm) -> Table:
    rows = [
        [sign, method, title, *(f"{100 * arm.mean(name):.2f}" for name in names)]
        for sign, graded in arms.items()
        for title, names in (
            ("NDCG", [f"ndcg@{k}" for k in CUTOFFS]), ("CNDCG", [_cndcg(CLICKS[sign], k) for k in CUTOFFS])
        )
        for method, arm in (("baseline (N.)", baseline), ("λ(L) + λ(C) (N.)", graded))
    ]  # fmt: skip
    return Table(["clicks", "method", "measure", *(f"@{k}" for k in CUTOFFS)], rows)


def _sweep(steps: list[Any], weights: tuple[float, ...]) -> list[list[Any]]:
    return [
        [sign, weight or "baseline", *np.mean([step[name]["means"][k] for step in steps], axis=0).tolist(),
         sum(step[name]["weight"] == weight for step in steps) if weight else ""]
        for sign, name in CLICKS.items()
        for k, weight in enumerate((0.0, *weights))
    ]  # fmt: skip


def _figure(source: Source, steps: list[Any], weights: tuple[float, ...]) -> Figure:
    rows = [
        {"series": f"{name} ({sign})".replace("_", " "), "x": weight, "y": of_seeds.mean(), "panel": panel,
         "low": of_seeds.min(), "high": of_seeds.max()}
        for panel, column in (("NDCG@3", 0), ("CNDCG@3", 2))
        for sign, name in CLICKS.items()
        for weight, of_seeds in zip((0.0, *weights), _changes(steps, name, column).T, strict=True)
    ]  # fmt: skip
    title = f"Change of NDCG@3 and CNDCG@3 by the weight of the clicks, {source.name} data"
    y = "points; lines from the least to the greatest seed"
    return Figure(f"weights-{source.slug}", title, "weight of the clicks", y, rows, "points")


EXPERIMENT = Experiment(
    title="NDCG and CNDCG together, by a graded λ",
    place=PLACE,
    says="λ of clicks is added for pairs with equal human labels that were both clicked. With clicks of the same query "
    "(=) and of similar ones (≈) NDCG stays as it was, and CNDCG rises by three to five points at all cutoffs.",
    cuts="Clicks are simulated: rates of last clicks of 200 users of the query, and of three similar ones. The paper "
    "has 108,000 queries, 860 features, 1,000 trees and sweeps rates and leaf sizes.",
    run=run,
)
