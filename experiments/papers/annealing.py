"""[S] table 2 and fig. 7: gradients that change with the iteration; figs 3, 4 and 6: what they are to mend."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.claims import Arm, Claim, all_of, better, compared, equal
from experiments.papers.common import ranked, with_shuffled_labels
from experiments.runner import Experiment, Figure, Outcome
from experiments.work import (
    PAPERS_TREES,
    Sizes,
    Source,
    Triple,
    Work,
    artificial_source,
    best_of_each,
    best_value,
)
from podium.diagnostics import WatchLambdaShares, WatchRankChanges, WatchTopLabels
from podium.estimators import LambdaMART
from podium.evaluation.tables import Table
from podium.objectives import (
    Anneal,
    ExponentialGrowth,
    ExponentialShare,
    Lambda,
    LinearGrowth,
    Local,
    Objective,
    Schedule,
)
from podium.objectives.sums import weight_at

PLACE = "[S] table 2"
NEWTON, GRADIENT = "baseline (Newton)", "baseline (gradient)"
LINEAR, TEXT, FIGURE = "linear", "exponential (text)", "exponential (fig. 6)"
EXPONENTIAL = "exponential"  # the better of the two on validation data
LOCAL = {"λ(S)": "ndcg", "λ(S@3)": "ndcg@3"}
CUTOFFS = tuple(range(1, 11))
CLAIMED = CUTOFFS[2:]  # the paper's differences are significant at 3 to 10
ITERATIONS = 1000  # of the paper, for which its rates of schedules are made
WRONG = 0.4  # the share of labels that are dealt out anew
LABELS = range(5)
EARLY, LATE = 0.1, 0.5  # shares of the iterations: "a few", and "100" of the paper's
Rows = list[dict[str, Any]]


def run(work: Work) -> Outcome:
    """Repeat table 2 on web data and on data with wrong labels, fig. 7 on the latter, and figs 3, 4 and 6."""
    sizes = work.pick(full=(800, 1000, 3000), quick=(150, 150, 250))
    trees = work.pick(full=300, quick=60)
    shares = work.pick(full=(0.1, 0.25, 0.5, 1.0), quick=(0.5, 1.0))
    web, wrong = work.web(features=40, documents=(20, 60)), wrong_labels(artificial_source(documents=30, features=15))
    claims: list[Claim] = []
    tables = {}
    for source in (*(web if not work.quick else ()), wrong):
        arms = _arms(work, source, sizes, trees, ())
        claims += _claims(source, arms)
        rows = [
            [name, *(f"{100 * arm.mean(f'ndcg@{k}'):.2f}" for k in CUTOFFS)]
            for name, arm in arms.items() if not name.endswith(f", {EXPONENTIAL}")
        ]  # fmt: skip
        tables[f"{source.name}: NDCG in points, as in {PLACE}"] = Table(["method", *(f"@{k}" for k in CUTOFFS)], rows)
    by_share = {  # the last arms are those of all queries
        share: arms if share == 1 else _arms(work, wrong, (round(share * sizes[0]), *sizes[1:]), trees, (LINEAR,))
        for share in shares
    }
    claims += _claims_of_sizes(wrong, by_share[shares[0]], shares[0])
    long_lists = work.web(features=40, documents=(100, 200))[0]
    watched = work.steps(f"watched, {long_lists.name}", partial(_watched, long_lists, work, trees))
    figures = [
        _figure_of_schedules(trees),
        _figure_of_sizes(wrong, by_share),
        *_figures_of_learning(long_lists, watched),
    ]
    settings = {
        "queries for training, validation, test": sizes, "trees, at most": trees, "leaves": 30,
        "learning rates": _rates(work),
        "schedules": f"w_0 and α of the paper, α for {ITERATIONS} iterations scaled to the number of trees: "
                     "linear (.1, .001), (.25, .001), (.1, .01); exponential (.1, 100), (.1, 250)",
        "chosen by": "NDCG@3 on validation: learning rate, schedule, number of trees",
    }  # fmt: skip
    claims += _claims_of_learning(long_lists, watched)
    return Outcome(claims, tables, figures, settings, [source.name for source in (*web, wrong)])


def wrong_labels(source: Source) -> Source:
    """Return the data with a share of the training and validation labels shuffled; the test part keeps its labels."""

    def parts(seed: int, sizes: Sizes) -> list[Triple]:
        rngs = [np.random.default_rng(2 * seed + k) for k in (0, 1)]
        return [
            (with_shuffled_labels(train, WRONG, rngs[0]), with_shuffled_labels(valid, WRONG, rngs[1]), test)
            for train, valid, test in source.parts(seed, sizes)
        ]

    return Source(f"{source.name}, {WRONG:.0%} of labels dealt anew", parts)


def schedules_of(trees: int) -> dict[str, dict[str, Schedule]]:
    """Return the schedules to choose from, by kind and name, with the paper's iterations scaled to the trees."""
    scale, rates = trees / ITERATIONS, (100.0, 250.0)
    return {
        LINEAR: {
            f"{start:g} + {rate:g} m": LinearGrowth(start, rate / scale)
            for start, rate in ((0.1, 0.001), (0.25, 0.001), (0.1, 0.01))
        },
        TEXT: {f"α = {rate:g}": ExponentialGrowth(0.1, rate * scale) for rate in rates},
        FIGURE: {f"α = {rate:g}": ExponentialShare(rate * scale) for rate in rates},
    }


def methods(trees: int, kinds: Sequence[str] = ()) -> dict[str, tuple[str, list[Objective]]]:
    """Return each method's step and objectives to choose from: all schedules and both λ, or some with λ(S)."""
    ndcg, schedules = Lambda("ndcg", normalize=False), schedules_of(trees)
    results: dict[str, tuple[str, list[Objective]]] = {NEWTON: ("newton", [ndcg]), GRADIENT: ("gradient", [ndcg])}
    for symbol, measure in LOCAL.items():
        if kinds and symbol != "λ(S)":
            continue
        for name in kinds or schedules:
            objectives: list[Objective] = [
                Anneal(ndcg, Local(measure, normalize=False), one) for one in schedules[name].values()
            ]
            results[_mixed(symbol, name)] = "gradient", objectives
    return results


def _mixed(symbol: str, schedule: str) -> str:
    return f"λ(L) + {symbol}, {schedule}"


def _rates(work: Work) -> tuple[float, ...]:
    return work.pick(full=(0.2, 0.5), quick=(0.5,))


def _arms(work: Work, source: Source, sizes: Sizes, trees: int, kinds: Sequence[str]) -> dict[str, Arm]:
    """Return the values of each method, and of the better of the two exponential schedules on validation data."""
    name = f"{source.name}, {sizes[0]} queries"
    steps = work.steps(name, partial(_measured, work, source, sizes, trees, kinds))
    arms = {name: Arm(name, [step[name]["values"] for step in steps]) for name in steps[0]}
    for symbol in LOCAL if not kinds else ():
        forms = [_mixed(symbol, name) for name in (TEXT, FIGURE)]
        chosen = [max((step[form] for form in forms), key=lambda one: one["valid"]) for step in steps]
        name = _mixed(symbol, EXPONENTIAL)
        arms[name] = Arm(name, [one["values"] for one in chosen])
    return arms


def _measured(work: Work, source: Source, sizes: Sizes, trees: int, kinds: Sequence[str], seed: int) -> dict[str, Any]:
    """Return for each method NDCG of the test queries, and the value of its best setting on validation data."""
    train, valid, test = source.parts(seed, sizes)[0]
    groups = {
        name: [
            LambdaMART(trees, 30, rate, objective=objective, step=step, measure="ndcg@3", patience=trees // 4,
                       **PAPERS_TREES)
            for rate in _rates(work)
            for objective in objectives
        ]
        for name, (step, objectives) in methods(trees, kinds).items()
    }  # fmt: skip
    measures, prefix = [f"ndcg@{k}" for k in CUTOFFS], source.prefix(seed)
    return {
        name: {"values": work.values(best.predict(test), test, measures, prefix), "valid": best_value(best)}
        for name, best in best_of_each(groups, train, valid).items()
    }


def _claims(source: Source, arms: dict[str, Arm]) -> list[Claim]:
    newton, gradient = arms[NEWTON], arms[GRADIENT]
    on, why = f"at the cutoffs 3 to 10 on {source.name} data", ranked(arms, "ndcg@3")

    def ahead(text: str, first: Arm, second: Arm) -> Claim:
        parts = [better("", PLACE, first, second, f"ndcg@{k}") for k in CLAIMED]
        return all_of(f"{text} {on}", PLACE, parts, why=why)

    claims = [ahead("gradient steps are better than Newton's", gradient, newton)]
    for schedule in (LINEAR, EXPONENTIAL):
        mixed, top = (arms[_mixed(symbol, schedule)] for symbol in LOCAL)
        claims += [ahead(f"{mixed.name} is better than the {base.name}", mixed, base) for base in (gradient, newton)]
        claims.append(ahead(f"{mixed.name} is better than {top.name}", mixed, top))
    linear, exponential = (arms[_mixed("λ(S)", schedule)] for schedule in (LINEAR, EXPONENTIAL))
    text = f"linear and exponential schedules are equally good on {source.name} data"
    return [*claims, equal(text, PLACE, linear, exponential, "ndcg@3", 0.01, why=why)]


def _claims_of_sizes(source: Source, arms: dict[str, Arm], share: float) -> list[Claim]:
    mixed = arms[_mixed("λ(S)", LINEAR)]
    return [
        all_of(f"with {share:.0%} of the training queries {mixed.name} is better than the {base.name} at 1, 3 and 10 "
               f"on {source.name} data", "[S] fig. 7",
               [better("", "[S] fig. 7", mixed, base, f"ndcg@{k}") for k in (1, 3, 10)], why=ranked(arms, "ndcg@3"))
        for base in (arms[GRADIENT], arms[NEWTON])
    ]  # fmt: skip


def _figure_of_sizes(source: Source, by_share: dict[float, dict[str, Arm]]) -> Figure:
    rows = [
        {"series": name, "x": 100 * share, "y": 100 * arms[name].mean(f"ndcg@{k}"), "panel": f"NDCG@{k}"}
        for k in (1, 3, 10)
        for name in (NEWTON, GRADIENT, _mixed("λ(S)", LINEAR))
        for share, arms in by_share.items()
    ]
    title = f"Accuracy by the share of the training queries ([S] fig. 7), {source.name}"
    return Figure("training-size", title, "% of the training queries", "NDCG, points", rows, "points")


def _figure_of_schedules(trees: int) -> Figure:
    """Return [S] fig. 6: the schedules to choose from, by iteration."""
    rows = [
        {"series": name, "x": iteration, "y": weight_at(schedule, iteration), "panel": panel}
        for panel, schedules in schedules_of(trees).items()
        for name, schedule in schedules.items()
        for iteration in range(0, trees + 1, max(trees // 100, 1))
    ]
    title = f"Schedules ([S] fig. 6); m and α count {ITERATIONS} iterations, here scaled to {trees}"
    return Figure("schedules", title, "iteration", "weight of λ(S)", rows)


def _watched(source: Source, work: Work, trees: int, seed: int) -> Any:
    """Return [S] figs 3 and 4: the history of a model of λ(L) alone on long lists, with the records of observers."""
    train, valid, _ = source.parts(seed, work.pick(full=(300, 300, 1), quick=(60, 60, 1)))[0]
    watches = [WatchLambdaShares(every=10), WatchTopLabels(3), WatchRankChanges(3, every=1)]
    model = LambdaMART(trees, 30, 0.2, objective=Lambda("ndcg", normalize=False), measure="ndcg@3", **PAPERS_TREES)
    model.fit(train, valid={"validation": valid, "training": train}, observers=watches)
    return {name: np.asarray(values, np.float64) for name, values in model.history_.items()}


def _column(runs: list[Any], name: str) -> NDArray[np.float64]:
    """Return a row for each seed and a column for each iteration, with NaN where nothing was recorded."""
    return np.array([run[name] for run in runs], np.float64)


def _claims_of_learning(source: Source, runs: list[Any]) -> list[Claim]:
    on = f"on {source.name} data"
    weak = _column(runs, "lambda_shares: absolute 0") + _column(runs, "lambda_shares: absolute 1")
    top = [_column(runs, f"top_labels@3: {label}") for label in LABELS]
    n = top[0].shape[1]
    early, late = slice(round(EARLY * n), None), slice(round(LATE * n), None)
    changes, at_top = (_column(runs, f"rank_changes: {k}")[:, late] for k in ("all", "top 3"))
    soon = [
        (f"documents with label 0 are soon less than 5% of the top 3 {on}", "below", top[0], 0.05),
        (f"documents with label 1 are soon less than 20% of the top 3 {on}", "below", top[1], 0.2),
        (f"documents with label 3 or 4 are soon over 40% of the top 3 {on}", "above", top[3] + top[4], 0.4),
    ]
    later = [
        (f"later on less than 3% of the top 3 ranks change in an iteration {on}", "below", at_top, 0.03),
        (f"later on more than 5% of all ranks change in an iteration {on}", "above", changes, 0.05),
        (f"later on less than 15% of all ranks change in an iteration {on}", "below", changes, 0.15),
    ]
    halves = [100 * half.mean() for half in np.array_split(changes, 2, axis=1)]
    why = f"{halves[0]:.1f}% change in the third quarter of the iterations and {halves[1]:.1f}% in the last."
    return [
        compared(f"of the λ of documents with label 3 or 4 over 70% come from documents with label 0 or 1 {on}",
                 "[S] fig. 3(a)", "above", "their share of Σ|λ|", np.nanmean(weak, axis=1).tolist(), 0.7),
        *(compared(text, "[S] fig. 3(b)", kind, "their share", values[:, early].mean(axis=1).tolist(), bound)  # type: ignore[arg-type]
          for text, kind, values, bound in soon),
        *(compared(text, "[S] fig. 4", kind, "the share of changes", values.mean(axis=1).tolist(), bound, why=why)  # type: ignore[arg-type]
          for text, kind, values, bound in later),
    ]  # fmt: skip


def _figures_of_learning(source: Source, runs: list[Any]) -> list[Figure]:
    shares = [
        row | {"panel": title}
        for title, kind in (("Σλ of label / λ (eq. 11)", "net"), ("Σ|λ| of label / Σ|λ|", "absolute"))
        for row in _by_label(runs, f"lambda_shares: {kind}")
    ]
    progress = [
        row | {"panel": panel}
        for panel, columns in (
            ("% of ranks that changed", {"all ranks": "rank_changes: all", "top 3": "rank_changes: top 3"}),
            ("NDCG@3, points", {"training": "training/ndcg@3", "validation": "validation/ndcg@3"}),
        )
        for series, name in columns.items()
        for row in _points(series, _column(runs, name))
    ]
    on = f"{source.name} data, mean over seeds"
    return [
        Figure("lambda-shares", f"λ of documents with label 3 or 4, by the other's label ([S] fig. 3(a)), {on}",
               "iteration", "%", shares),
        Figure("top-labels", f"Labels of documents in the top 3 ([S] fig. 3(b)), {on}",
               "iteration", "% of the top 3", _by_label(runs, "top_labels@3:")),
        Figure("rank-changes", f"How much the ranking still changes ([S] fig. 4), {on}", "iteration", "", progress),
    ]  # fmt: skip


def _by_label(runs: list[Any], prefix: str) -> Rows:
    return [row for label in LABELS for row in _points(f"label {label}", _column(runs, f"{prefix} {label}"))]


def _points(series: str, of_seeds: NDArray[np.float64]) -> Rows:
    """Return the mean over seeds in percent, at 100 iterations or fewer."""
    means = 100 * of_seeds.mean(axis=0)
    seen = np.flatnonzero(~np.isnan(means))
    return [{"series": series, "x": int(m), "y": float(means[m])} for m in seen[:: max(len(seen) // 100, 1)]]


EXPERIMENT = Experiment(
    title="Gradients that change with the iteration",
    place="[S] table 2, figs 3, 4, 6 and 7",
    says="λ of NDCG keeps pulling at pairs that are far right or far wrong. Going over to a local λ(S) in the course "
    "of training is better than both baselines, with little training data too; linear and exponential schedules are "
    "equally good, λ(S) is better than λ(S@3), and gradient steps are better than Newton's.",
    cuts="The paper has 108,000 training queries of 150 to 200 documents, 860 features, 1,000 trees, and larger "
    "sweeps. Fig. 7 is drawn for the data with wrong labels.",
    run=run,
)
