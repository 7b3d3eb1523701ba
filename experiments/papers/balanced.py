"""[B] §6.1: the balanced loss on classes of very different sizes."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.claims import QUERY, Arm, Claim, better
from experiments.papers.common import ranked
from experiments.runner import Experiment, Figure, Outcome
from experiments.work import Sizes, Source, Work, joined
from podium.data import RankingData
from podium.estimators import MARTClassifier
from podium.evaluation.tables import Table

PLACE = "[B] §6.1"
LOWEST_POSITIVE = (2, 3, 4)  # labels from here on are positive; the fewer, the less balanced
BALANCED, PLAIN = "balanced accuracy", "accuracy"  # 1 − FP/2n₋ − FN/2n₊, and the share of right documents
LOSSES = ("plain", "balanced", "plain, threshold moved")


def run(work: Work) -> Outcome:
    """Compare both losses for each threshold of the labels, on web data."""
    sizes = work.pick(full=(600, 200, 1000), quick=(100, 50, 300))
    trees = work.pick(full=300, quick=30)
    claims: list[Claim] = []
    tables, figures = {}, []
    sources = work.web(features=work.pick(full=30, quick=15), documents=(20, 60))
    for source in sources:
        rows, points = [], []
        for lowest in LOWEST_POSITIVE:
            name = f"{source.name}, labels from {lowest}"
            of_seeds = work.steps(name, partial(_measured, source, sizes, trees, lowest))
            share = float(np.mean([one["share"] for one in of_seeds]))
            arms = {loss: Arm(f"{loss} loss", [one["values"][loss] for one in of_seeds]) for loss in LOSSES}
            rows += [[f"{share:.2%}", loss, 1 - arm.mean(BALANCED), 1 - arm.mean(PLAIN)] for loss, arm in arms.items()]
            points += [
                {"x": share, "y": 1 - arms[loss].mean(m), "series": arms[loss].name, "panel": title}
                for m, title in ((BALANCED, "balanced error"), (PLAIN, "share of errors"))
                for loss in LOSSES[:2]
            ]
            claims += _claims(source, share, arms)
        columns = ["positive documents", "loss", "FP/2n₋ + FN/2n₊", "share of errors"]
        tables[f"{source.name}: errors on test documents"] = Table(columns, rows)
        title = f"Errors of both losses on {source.name} data ({PLACE})"
        figures.append(Figure(source.slug, title, "share of positive documents", "error", points, "points", log="x"))
    settings = {
        "queries for training, validation, test": sizes, "trees, at most": trees, "leaves": 15, "rate": 0.1,
        "positive": f"labels from {', '.join(map(str, LOWEST_POSITIVE))} on",
        "number of trees": "by each loss on the validation documents",
        "threshold moved": "a document is positive where the plain model's odds are above those of the training data",
    }  # fmt: skip
    return Outcome(claims, tables, figures, settings, [source.name for source in sources])


def _measured(source: Source, sizes: Sizes, trees: int, lowest: int, seed: int) -> dict[str, Any]:
    """Return both accuracies of each loss, query by query, and the share of positive documents."""
    parts: dict[str, list[Any]] = {loss: [] for loss in LOSSES}
    shares = []
    for fold, (train, valid, test) in enumerate(source.parts(seed, sizes)):
        (X, y), held = ((part.features, part.relevance >= lowest) for part in (train, valid))
        shares.append(float(y.mean()))
        scores = {}
        for loss in LOSSES[:2]:
            model = MARTClassifier(trees, 15, 0.1, balanced=loss == "balanced", patience=trees // 10)
            scores[loss] = model.fit(X, y, eval_set=tuple(held)).decision_function(test.features)
        scores[LOSSES[2]] = scores["plain"] - 0.5 * np.log(y.mean() / (1 - y.mean()))
        for loss, of_test in scores.items():
            parts[loss].append(accuracies(test, test.relevance >= lowest, of_test, f"{source.name} {seed} {fold}"))
    return {"share": float(np.mean(shares)), "values": {loss: joined(several) for loss, several in parts.items()}}


def accuracies(
    test: RankingData, is_positive: NDArray[np.bool_], scores: NDArray[np.float64], prefix: str
) -> dict[str, list[Any]]:
    """Return a share of 1 − error for each query: their means over queries are 1 − the errors of all documents."""
    is_wrong = (scores > 0) != is_positive
    query = np.empty(len(test), np.int64)
    for q in range(test.n_queries):
        query[test.rows(q)] = q
    per_class = 0.5 / is_positive.sum(), 0.5 / (~is_positive).sum()  # what an error counts: 1/2n₊ and 1/2n₋
    counts = {PLAIN: np.full(len(test), 1 / len(test)), BALANCED: np.where(is_positive, *per_class)}
    values = {
        name: 1 - test.n_queries * np.bincount(query, is_wrong * count, minlength=test.n_queries)
        for name, count in counts.items()
    }
    names = [f"{prefix}/{one}" for one in test.query_ids]
    return {QUERY: names, **{name: found.tolist() for name, found in values.items()}}


def _claims(source: Source, share: float, arms: dict[str, Arm]) -> list[Claim]:
    on = f"with {share:.1%} positive documents, on {source.name} data"
    plain, balanced = arms["plain"], arms["balanced"]
    return [
        better(f"the balanced loss has the lower balanced error {on}", PLACE, balanced, plain, BALANCED,
               why=ranked(arms, BALANCED)),
        better(f"the plain loss has the lower share of errors {on}", "beyond the papers", plain, balanced, PLAIN,
               why=ranked(arms, PLAIN)),
    ]  # fmt: skip


EXPERIMENT = Experiment(
    title="The balanced loss on unbalanced classes",
    place=PLACE,
    says="For very unbalanced classes errors are usefully counted as FP/2n₋ + FN/2n₊, and the balanced loss, in which "
    "each document counts 1/n₊ or 1/n₋ times, is made for that.",
    cuts="The paper gives the formulas and measures nothing.",
    run=run,
)
