"""The papers' claims about objectives, on artificial data: each as a small experiment that tests can call too.

Settings are chosen on validation data; the test queries are looked at once.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import podium
from bench.harness import Report
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


def run() -> Report:
    """All of them."""
    rows = graded_rows() + annealed_rows() + clicks_rows()
    columns = ("experiment", "setting", "NDCG@3", "NDCG@10", "CNDCG@10", "result")
    return Report(
        "claims", "The papers' claims about objectives, on artificial data",
        [{column: row.get(column, "") for column in columns} for row in rows],
        ["Paired t-tests over test queries (4,000 for graded measures, else 2,000); equivalence by two one-sided "
         "tests. Iteration-dependent λ: learning rate, schedule and cutoff chosen by NDCG@3 on validation data within "
         "each family. One data set and seed each."],
    )  # fmt: skip
