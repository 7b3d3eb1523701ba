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
from podium.evaluation.significance import paired_t

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
    rows = mcrank_rows() + line_search_rows() + adaptation_rows()
    columns = ("experiment", "setting", "NDCG@3", "NDCG@10", "result")
    return Report(
        "claims", "The papers' claims about objectives, on artificial data",
        [{column: row.get(column, "") for column in columns} for row in rows],
        ["Paired t-tests over 2,000 test queries. "
         "Line search: α from .1 to 5, of means of λ in units of the tree's Newton step unless Newton's "
         "values are named; as many trees as are best on validation, of 80, of 250 for Newton at v = 0.1. "
         "Adaptation: 1,500 test queries. One data set and seed each."],
    )  # fmt: skip
