"""[B] fig. 1: fewer pairwise errors may mean a worse list; RankNet's gradients and LambdaRank's."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.claims import Claim, always, compared
from experiments.runner import Experiment, Figure, Outcome
from experiments.work import Work
from podium.data import RankingData
from podium.evaluation.tables import Table
from podium.measures import ERR, NDCG
from podium.objectives import Lambda, Objective, Pairwise

Floats = NDArray[np.float64]
PLACE = "[B] fig. 1"
OBJECTIVES: dict[str, Objective] = {"RankNet": Pairwise(), "LambdaRank": Lambda("ndcg", normalize=False)}
DOCUMENTS = 16
LEFT, RIGHT = (1, 15), (4, 10)  # ranks of the two relevant documents, before and after the move
SPREADS = (0.1, 0.3, 1.0, 3.0, 10.0)  # standard deviations of random scores, in units of 1/σ
SHORT, LONG = 12, 40  # documents of random lists
DRAWN_SPREAD = 0.2  # of the list that is drawn


def run(work: Work) -> Outcome:
    """Measure the list of the figure, and random lists with two relevant documents."""
    lists = work.pick(full=2000, quick=500)
    results = work.steps("random lists", partial(_random_lists, lists))
    rows = [[where, *ranks, *of_list(ranks, DOCUMENTS).values()] for where, ranks in (("left", LEFT), ("right", RIGHT))]
    columns = ["list", "upper rank", "lower rank", *of_list(LEFT, DOCUMENTS)]
    shares = [
        [spread, *(_share(results, f"{name} upper", k) for name in OBJECTIVES),
         _share(results, "shift", k)]
        for k, spread in enumerate(SPREADS)
    ]  # fmt: skip
    of_random = ["spread of the scores × σ", *OBJECTIVES, "larger share of the push in LambdaRank"]
    tables = {
        f"The two lists of the figure, {DOCUMENTS} documents": Table(columns, rows),
        "Random lists: share in which the upper relevant document is pushed more": Table(of_random, shares),
    }
    settings = {
        "random lists": f"{lists} for each seed, {SHORT} to {LONG} documents, two of them relevant at random ranks",
        "scores": f"normal, standard deviation × σ of {', '.join(map(str, SPREADS))}; 1 for the claims",
        "list that is drawn": f"the figure's right one, scores at equal distances with a spread × σ of {DRAWN_SPREAD}",
        "moved lists": "the upper relevant document from rank 1 down by 1 to 3, the lower one up by 1 or 2 more",
    }  # fmt: skip
    return Outcome(_claims(results), tables, _figures(results), settings, ["random lists"])


def of_list(relevant: tuple[int, int], documents: int) -> dict[str, float]:
    """Return pairwise errors, NDCG and ERR of a list with two relevant documents."""
    labels = np.zeros(documents)
    labels[np.array(relevant) - 1] = 1.0
    errors = sum(int((labels[:rank] == 0).sum()) for rank in relevant)
    return {"pairwise errors": errors, "NDCG": NDCG().value(labels), "ERR": ERR(max_label=1).value(labels)}


def _random_lists(n: int, seed: int) -> dict[str, Any]:
    """Return whether moved lists are worse, and which relevant document is pushed more, for each spread of scores."""
    rng = np.random.default_rng(seed)
    pushes = [_pushes(rng, n, spread) for spread in SPREADS]
    results: dict[str, Any] = {"moved": [_is_worse_with_fewer_errors(rng) for _ in range(n)]}
    for name in OBJECTIVES:
        results[f"{name} upper"] = [(one[name][:, 0] > one[name][:, 1]).tolist() for one in pushes]
    upper_shares = [{name: one[name][:, 0] / one[name].sum(axis=1) for name in OBJECTIVES} for one in pushes]
    results["shift"] = [(one["LambdaRank"] > one["RankNet"]).tolist() for one in upper_shares]
    return results


def _is_worse_with_fewer_errors(rng: np.random.Generator) -> bool:
    """Return whether a random list, moved as in the figure, has fewer pairwise errors and lower NDCG and ERR."""
    documents, down = int(rng.integers(SHORT, LONG + 1)), int(rng.integers(1, 4))
    up = down + int(rng.integers(1, 3))
    lower = int(rng.integers(down + up + 2, documents + 1))
    before, after = of_list((1, lower), documents), of_list((1 + down, lower - up), documents)
    return after["pairwise errors"] < before["pairwise errors"] and all(
        after[measure] < before[measure] for measure in ("NDCG", "ERR")
    )


def _pushes(rng: np.random.Generator, n: int, spread: float) -> dict[str, Floats]:
    """Return, for random lists, λ of the upper and of the lower relevant document by each objective."""
    sizes = rng.integers(SHORT, LONG + 1, n)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    labels, scores = np.zeros(starts[-1]), np.empty(starts[-1])
    places = np.empty((n, 2), np.int64)
    for k in range(n):
        scores[starts[k] : starts[k + 1]] = -np.sort(-spread * rng.normal(size=sizes[k]))  # from the top
        places[k] = starts[k] + np.sort(rng.choice(sizes[k], 2, replace=False))
    labels[places.ravel()] = 1.0
    data = RankingData(np.arange(starts[-1])[:, None], labels, qid=np.repeat(np.arange(n), sizes))
    return {name: objective.bind(data).gradients(scores)[0][places] for name, objective in OBJECTIVES.items()}


def _share(results: list[dict[str, Any]], what: str, spread: int) -> float:
    return float(np.mean([one[what][spread] for one in results]))


def _claims(results: list[dict[str, Any]]) -> list[Claim]:
    one = SPREADS.index(1.0)

    def shares(what: str) -> list[float]:
        return [float(np.mean(seed[what][one])) for seed in results]

    def exceptions(what: list[list[bool]]) -> tuple[list[int], int]:
        return [sum(of_seed) for of_seed in what], sum(map(len, what))

    by_spread = ", ".join(f"{_share(results, 'LambdaRank upper', k):.0%} with {s:g}/σ" for k, s in enumerate(SPREADS))
    return [
        always("moving a relevant top document down and the lower one further up has fewer pairwise errors, but lower "
               "NDCG and ERR", PLACE, "random lists in which it is not so",
               *exceptions([[not is_so for is_so in seed["moved"]] for seed in results])),
        always("RankNet pushes the lower of two relevant documents more", PLACE,
               "random lists in which it pushes the upper one more",
               *exceptions([seed["RankNet upper"][one] for seed in results])),
        compared("LambdaRank pushes the upper of two relevant documents more, in most lists", PLACE, "above",
                 "share of random lists", shares("LambdaRank upper"), 0.5,
                 why=f"The upper one has the larger push, by the spread of scores: {by_spread}."),
        compared("relative to RankNet, LambdaRank moves the push from the lower to the upper relevant document", PLACE,
                 "above", "share of random lists in which the upper one has a larger share of the push of both",
                 shares("shift"), 0.5),
    ]  # fmt: skip


def _figures(results: list[dict[str, Any]]) -> list[Figure]:
    labels = np.isin(np.arange(1, DOCUMENTS + 1), RIGHT)
    arrows = [
        {"rank": k + 1, "label": int(label), "score": score}
        for k, (label, score) in enumerate(zip(labels, _even_scores(), strict=True))
    ]
    lines = [
        {"x": spread, "y": _share(results, f"{name} upper", k), "series": name}
        for name in OBJECTIVES
        for k, spread in enumerate(SPREADS)
    ]
    return [
        Figure("list", f"RankNet's and LambdaRank's gradients on the right list ({PLACE})", "", "", arrows, "arrows"),
        Figure("spread", f"Lists in which the upper relevant document is pushed more ({PLACE})",
               "spread of the scores × σ", "share of random lists", lines, "points", log="x"),
    ]  # fmt: skip


def _even_scores() -> list[float]:
    """Return scores that fall by the same amount from rank to rank."""
    scores = np.arange(DOCUMENTS, 0, -1.0)
    return [float(score) for score in DRAWN_SPREAD * (scores - scores.mean()) / scores.std()]


EXPERIMENT = Experiment(
    title="RankNet's gradients and LambdaRank's, on one ranked list",
    place=PLACE,
    says="Of two relevant documents the upper one goes down by three ranks and the lower one up by five: pairwise "
    "errors fall from 13 to 11, but NDCG and ERR, which look at the top, fall as well. RankNet's gradients grow with "
    "the pairwise errors, so that the lower document has the longer arrow; the upper one ought to have it.",
    cuts="The paper draws one list and says that it is a schematic; its scores are not given. "
    "The move is from rank 1, as there; from ranks 2 and 3 some lists do not get worse.",
    run=run,
)
