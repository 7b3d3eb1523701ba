"""The papers' claims about objectives, on artificial data: each as a small experiment that tests can call too.

Settings are chosen on validation data; the test queries are looked at once.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import podium
from bench.harness import Report
from podium.boosting import LineSearch, Newton
from podium.evaluation.significance import equivalence, paired_t
from podium.objectives import (
    Anneal,
    Debiased,
    ExponentialGrowth,
    ExponentialShare,
    Lambda,
    LinearGrowth,
    Local,
    Objective,
    Tiers,
)  # fmt: skip

Values = dict[str, Any]
PARTS = ("train", "valid", "test")
PAPERS: Any = {"split_fraction": 1.0}  # the trees of the papers see all documents


def values(model: Any, data: podium.RankingData, measures: list[str], **options: Any) -> Values:
    """Values of each query."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", podium.PodiumWarning)  # of ties
        return podium.evaluate(data, model.predict(data, **options), measures).values


def against(found: Any, base: Any) -> str:
    """A difference with the p-value of a paired t-test."""
    return f"{(found - base).mean():+.4f} (p = {paired_t(found - base):.2g})"


# --- graded measures: [S] §4, table 1


def with_taste(part: str, queries: int) -> podium.RankingData:
    """Documents whose clicks follow the label, and among equal labels a taste that two features tell."""
    data = podium.artificial(queries, documents=30, features=12, seed=3, part=part)
    taste = 1.25 * (np.tanh(2 * data.features[:, 0]) + np.tanh(2 * data.features[:, 1]))
    attraction = np.clip((2.0 ** (data.relevance + taste) - 1) / 2.0**5 + 0.1, 0, 1)
    return podium.simulate_clicks(
        data, attraction=attraction, users=200, depth=30, position_bias=0.3, noise=0.05, disorder=0.2, seed=1
    )


def graded(weights: tuple[float, ...], train: int = 1500, test: int = 4000, trees: int = 150) -> dict[float, Values]:
    """NDCG and CNDCG of each test query for weights of the clicks' tier, 0 the baseline."""
    learn, judge = with_taste("train", train), with_taste("test", test)
    found = {}
    for weight in (0.0, *weights):
        objective = Tiers(Lambda("ndcg"), Lambda("cndcg"), weights=(1 - weight, weight))
        model = podium.LambdaMART(trees, objective=objective, **PAPERS).fit(learn)
        found[weight] = values(model, judge, ["ndcg@3", "ndcg@10", "cndcg@3", "cndcg@10"])
    return found


def graded_rows() -> list[dict[str, Any]]:
    """The sweep of [S]'s weights."""
    found = graded((0.01, 0.1, 0.2, 0.3, 0.4, 0.5))
    base = found[0.0]
    rows = []
    for weight, mine in found.items():
        row: dict[str, Any] = {"experiment": "graded, clicks' weight", "setting": weight}
        row |= {"NDCG@10": f"{mine['ndcg@10'].mean():.4f}", "CNDCG@10": f"{mine['cndcg@10'].mean():.4f}"}
        if weight:
            margin = equivalence(mine["ndcg@10"] - base["ndcg@10"], 0.003)
            row["result"] = (
                f"NDCG@10 {against(mine['ndcg@10'], base['ndcg@10'])}, equivalent within .003: p = {margin:.2g}; "
                f"CNDCG@10 {against(mine['cndcg@10'], base['cndcg@10'])}"
            )
        rows.append(row)
    return rows


# --- iteration-dependent λ: [S] §5


def noisy(part: str, queries: int, noise: float) -> podium.RankingData:
    """The papers' artificial data with a share of the labels dealt out anew; the test part keeps its own."""
    data = podium.artificial(queries, documents=30, features=15, seed=11, part=part)
    if part == "test":
        return data
    rng = np.random.default_rng(0)
    labels = data.relevance.copy()
    struck = rng.random(len(labels)) < noise
    labels[struck] = rng.permutation(labels[struck])
    return data.replace(labels={"relevance": labels})


def annealed(parts: list[podium.RankingData], trees: int = 300) -> dict[str, tuple[str, Values]]:
    """The best of each family on validation data: NDCG on the test queries."""
    ndcg, local = Lambda("ndcg"), (Local("ndcg"), Local("ndcg@3"))
    linear = [Anneal(ndcg, to, LinearGrowth(s, r)) for to in local for s, r in ((0.1, 0.01), (0.25, 0.001))]
    text = [Anneal(ndcg, to, ExponentialGrowth(0.1, r)) for to in local for r in (100.0, 250.0)]
    figure = [Anneal(ndcg, to, ExponentialShare(r)) for to in local for r in (100.0, 250.0)]
    cutoff = [Anneal(ndcg, Lambda("ndcg", truncation=3), LinearGrowth(0.1, r)) for r in (0.01, 0.001)]
    families: dict[str, tuple[str, list[Objective]]] = {
        "Newton": ("newton", [ndcg]), "gradient": ("gradient", [ndcg]), "local alone": ("gradient", list(local)),
        "linear": ("gradient", list(linear)), "exponential, text": ("gradient", list(text)),
        "exponential, figure": ("gradient", list(figure)), "NDCG → NDCG@3, gradient": ("gradient", list(cutoff)),
        "NDCG → NDCG@3, Newton": ("newton", list(cutoff)),
    }  # fmt: skip
    found = {}
    for family, (step, objectives) in families.items():
        fitted = [
            (rate, objective, podium.LambdaMART(
                trees, learning_rate=rate, objective=objective, step=step, l2=0.0, measure="ndcg@3", patience=60,
                **PAPERS,
            ).fit(parts[0], valid=parts[1]))
            for rate in (0.1, 0.3) for objective in objectives
        ]  # fmt: skip
        rate, objective, model = max(fitted, key=lambda one: max(one[2].history_["valid/ndcg@3"]))
        shown = f"rate {rate}"
        if isinstance(objective, Anneal):
            to = objective.after.measure if isinstance(objective.after, Local) else "ndcg, truncation 3"
            shown += f", {objective.schedule}, to {to}"
        elif isinstance(objective, Local):
            shown += f", {objective.measure}"
        found[family] = shown, values(model, parts[2], ["ndcg@3", "ndcg@10"])
    return found


def annealed_rows() -> list[dict[str, Any]]:
    """Against the gradient and the Newton baseline."""
    sizes = (800, 300, 2000)
    data = {
        "web": [podium.artificial_web(n, features=40, seed=5, part=p) for p, n in zip(PARTS, sizes, strict=True)],
        "40% of labels at random": [noisy(p, n, 0.4) for p, n in zip(PARTS, sizes, strict=True)],
    }
    rows = []
    for name, parts in data.items():
        found = annealed(parts)
        newton, gradient = found["Newton"][1], found["gradient"][1]
        rows += [
            {"experiment": f"iteration-dependent λ, {name}", "setting": f"{family}: {shown}",
             "NDCG@3": f"{mine['ndcg@3'].mean():.4f}", "NDCG@10": f"{mine['ndcg@10'].mean():.4f}",
             "result": f"NDCG@3 against gradient {against(mine['ndcg@3'], gradient['ndcg@3'])}, "
                       f"against Newton {against(mine['ndcg@3'], newton['ndcg@3'])}"}
            for family, (shown, mine) in found.items()
        ]  # fmt: skip
    return rows


# --- McRank: [W] 5.4


def mcrank(train: int = 1000, test: int = 2000, rounds: int = 200) -> dict[str, Values]:
    """McRank and LambdaMART with as many rounds, and LambdaMART with as many trees."""
    learn, judge = (podium.artificial(n, seed=2, part=p) for p, n in (("train", train), ("test", test)))
    classes = len(np.unique(learn.relevance))
    models = {
        f"McRank, {rounds} rounds": podium.McRank(rounds, 10, 0.1),
        f"McRank, {rounds} rounds, expected gain": podium.McRank(rounds, 10, 0.1, expects="gain"),
        f"LambdaMART, {rounds} rounds": podium.LambdaMART(rounds, 10, 0.1, **PAPERS),
        f"LambdaMART, {rounds * classes} trees": podium.LambdaMART(rounds * classes, 10, 0.1, **PAPERS),
        f"MART, {rounds * classes} trees": podium.MART(rounds * classes, 10, 0.1),
    }
    return {name: values(model.fit(learn), judge, ["ndcg@1", "ndcg@3", "ndcg@10"]) for name, model in models.items()}


def mcrank_rows() -> list[dict[str, Any]]:
    """Against LambdaMART with as many trees."""
    found = mcrank()
    base = next(v for name, v in found.items() if name.startswith("LambdaMART") and name.endswith("trees"))
    return [
        {"experiment": "McRank, the papers' artificial data", "setting": name, "NDCG@3": f"{mine['ndcg@3'].mean():.4f}",
         "NDCG@10": f"{mine['ndcg@10'].mean():.4f}",
         "result": "" if mine is base else f"NDCG@10 against it {against(mine['ndcg@10'], base['ndcg@10'])}"}
        for name, mine in found.items()
    ]  # fmt: skip


# --- clicks


def clicks(train: int = 3000, test: int = 2000, trees: int = 100) -> dict[str, Values]:
    """Models of clicks on a ranking by two features that mean little, measured by the true labels.

    One more, of clicks on a good ranking with random disorder, where a high position is itself a sign of relevance.
    """
    documents = podium.artificial(train, documents=20, features=12, seed=7)
    poor = (documents.features[:, 3] + documents.features[:, 4]).astype(np.float64)
    log, good = (
        podium.simulate_clicks(documents, shown_by=by, users=10, depth=20, disorder=0.5, noise=0.05, seed=3)
        for by in (poor, None)
    )
    judge = podium.artificial(test, documents=20, features=12, seed=7, part="test")
    clicked = Lambda("cndcg")
    known = Debiased(clicked, [1 / r for r in range(1, 21)])
    runs: dict[str, tuple[Objective, podium.RankingData]] = {
        "clicks as they are": (clicked, log), "propensities known": (known, log),
        "bias estimated": (Debiased(clicked), log), "human labels": (Lambda("ndcg"), log),
        "good ranking, as they are": (clicked, good), "good ranking, known": (known, good),
        "good ranking, estimated": (Debiased(clicked), good),
    }  # fmt: skip
    return {
        name: values(podium.LambdaMART(trees, objective=objective, **PAPERS).fit(data), judge, ["ndcg@10"])
        for name, (objective, data) in runs.items()
    }


def clicks_rows() -> list[dict[str, Any]]:
    """Against training on clicks as they are."""
    found = clicks()
    base, good = found["clicks as they are"], found["good ranking, as they are"]
    return [
        {"experiment": "biased clicks, human test labels", "setting": name, "NDCG@10": f"{mine['ndcg@10'].mean():.4f}",
         "result": "" if mine is base or mine is good else
                   against(mine["ndcg@10"], (good if name.startswith("good") else base)["ndcg@10"])}
        for name, mine in found.items()
    ]  # fmt: skip


# --- line search: [W] 5.6


def search_data(web: bool, train: int, test: int) -> list[podium.RankingData]:
    """The papers' artificial data, or the noisier data of a web search."""
    sizes = zip(PARTS, (train, 300, test), strict=True)
    if web:
        return [podium.artificial_web(n, features=40, seed=5, part=part) for part, n in sizes]
    return [podium.artificial(n, documents=30, features=15, seed=4, part=part) for part, n in sizes]


def line_searches(
    parts: list[podium.RankingData], trees: int = 80, slow: int = 250
) -> dict[str, tuple[Values, list[float]]]:
    """Newton's steps and line search at v = 1 and v = 0.1: NDCG@10 of test queries, and of validation by tree."""
    steps: dict[str, Any] = {
        "Newton": "newton", "line search": LineSearch("ndcg@10"),
        "line search on validation": LineSearch("ndcg@10", on="valid"),
        "line search of Newton's values": LineSearch("ndcg@10", values=Newton()),
        "line search of Newton's values on validation": LineSearch("ndcg@10", values=Newton(), on="valid"),
        "line search of Newton's values, α shrunk": LineSearch("ndcg@10", values=Newton(), shrink="alpha"),
    }  # fmt: skip
    found = {}
    for rate in (1.0, 0.1):
        for name, step in steps.items():
            if "shrunk" in name and rate == 1:
                continue  # it makes no difference there
            many = slow if name == "Newton" and rate < 1 else trees
            model = podium.LambdaMART(
                many, learning_rate=rate, step=step, normalize=False, l2=0.0, patience=many, **PAPERS
            )
            model.fit(parts[0], valid=parts[1])
            history = model.history_["valid/ndcg@10"]
            found[f"{name}, v = {rate:g}"] = values(model, parts[2], ["ndcg@10"]), history
            if many > trees:  # the best of as many trees as line search has
                chosen = int(np.argmax(history[:trees])) + 1
                fewer = values(model, parts[2], ["ndcg@10"], n_trees=chosen)
                found[f"{name}, {trees} trees, v = {rate:g}"] = fewer, history[:trees]
    return found


def needed(history: list[float], target: float) -> int | None:
    """The trees that it took to reach a value, None where it was not reached."""
    return next((k + 1 for k, value in enumerate(history) if value >= target), None)


def line_search_rows() -> list[dict[str, Any]]:
    """Against Newton's steps at the same rate; and trees for 99% of what Newton's 250 reach at v = 0.1."""
    rows = []
    for name, web in (("artificial data", False), ("web", True)):
        found = line_searches(search_data(web, 800 if web else 600, 2000))
        target = 0.99 * max(found["Newton, v = 0.1"][1])
        for setting, (mine, history) in found.items():
            base = found[f"Newton, {setting.rsplit(', ', 1)[1]}"][0]
            trees = needed(history, target) or f"more than {len(history)}"
            rows.append({
                "experiment": f"line search, {name}", "setting": setting, "NDCG@10": f"{mine['ndcg@10'].mean():.4f}",
                "result": ("" if mine is base else f"against Newton {against(mine['ndcg@10'], base['ndcg@10'])}; ")
                          + f"trees for {target:.4f} on validation: {trees}",
            })  # fmt: skip
    return rows


# --- adaptation: [W] 5.5


def market(part: str, queries: int, shift: float) -> podium.RankingData:
    """Noisy labels of a market whose users also like two features to go together, as the background's do not."""
    data = podium.artificial(queries, documents=30, features=15, seed=9, part=part)
    noise = np.random.default_rng(1 + PARTS.index(part)).standard_normal(len(data))
    taste = data.relevance + shift * data.features[:, 0] * data.features[:, 1] + 0.5 * noise
    cuts = np.quantile(taste, [0.52, 0.84, 0.97, 0.99])
    return data.replace(labels={"relevance": np.searchsorted(cuts, taste).astype(np.float32)})


def adaptations(queries: tuple[int, ...], test: int = 1500) -> dict[int, Values]:
    """The four ways to rank a shifted market, with some numbers of queries of its own."""
    background = podium.LambdaMART(300, **PAPERS).fit(market("train", 3000, 0.0))
    judges = market("test", test, 0.3)
    found = {}
    for many in queries:
        own, vali = market("train", many, 0.3), market("valid", max(many // 3, 10), 0.3)
        result = podium.adapt(background, own, valid=vali, test=judges, **PAPERS)
        found[many] = {name: one.values["ndcg@10"] for name, one in result.comparison.evaluations.items()}
    return found


def adaptation_rows() -> list[dict[str, Any]]:
    """Each way against the adapted model."""
    return [
        {"experiment": f"adaptation, {many:,} queries", "setting": name, "NDCG@10": f"{mine.mean():.4f}",
         "result": "" if name == "adapted" else f"adapted against it {against(ways['adapted'], mine)}"}
        for many, ways in adaptations((30, 60, 400, 800)).items() for name, mine in ways.items()
    ]  # fmt: skip


def run() -> Report:
    """All of them."""
    rows = graded_rows() + annealed_rows() + mcrank_rows() + clicks_rows() + line_search_rows() + adaptation_rows()
    columns = ("experiment", "setting", "NDCG@3", "NDCG@10", "CNDCG@10", "result")
    return Report(
        "claims", "The papers' claims about objectives, on artificial data",
        [{column: row.get(column, "") for column in columns} for row in rows],
        ["Paired t-tests over test queries (4,000 for graded measures, else 2,000); equivalence by two one-sided "
         "tests. Iteration-dependent λ: learning rate, schedule and cutoff chosen by NDCG@3 on validation data within "
         "each family. Line search: α from .1 to 5, of means of λ in units of the tree's Newton step unless Newton's "
         "values are named; as many trees as are best on validation, of 80, of 250 for Newton at v = 0.1. "
         "Adaptation: 1,500 test queries. One data set and seed each."],
    )  # fmt: skip
