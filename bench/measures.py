"""Measures compared with ranx and pytrec_eval, swap deltas, and the randomization test."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from bench.harness import Report, best, in_child, peak_bytes, timed

QUERIES, DOCUMENTS, RUNS = 10_000, 100, 3
TOOLS = ("podium", "ranx", "pytrec_eval")
MEASURES = {
    "NDCG@10": {"podium": "ndcg@10", "ranx": "ndcg_burges@10", "pytrec_eval": "ndcg_cut.10"},
    "AP": {"podium": "ap", "ranx": "map", "pytrec_eval": "map"},
    "RR": {"podium": "rr", "ranx": "mrr", "pytrec_eval": "recip_rank"},
}


def best_time(work: Callable[[], object], runs: int = RUNS) -> float:
    """Return the best time of several runs, after a warm-up."""
    work()
    return min(timed(work) for _ in range(runs))


def evaluator(tool: str) -> tuple[Callable[[str], object], int]:
    """Return a function that evaluates in-memory input, and the peak memory before its first call."""
    import numpy as np

    import podium

    data = podium.artificial(QUERIES, documents=DOCUMENTS, features=2)
    scores = np.random.default_rng(0).normal(size=data.n_documents)
    if tool == "podium":
        return lambda name: podium.evaluate(data, scores, name), peak_bytes()
    rows = [data.rows(k) for k in range(data.n_queries)]
    names = [[f"d{row}" for row in of_query] for of_query in rows]
    qrels = {str(k): dict(zip(names[k], data.relevance[of_query].astype(int).tolist(), strict=True))
             for k, of_query in enumerate(rows)}  # fmt: skip
    run = {str(k): dict(zip(names[k], scores[of_query].tolist(), strict=True)) for k, of_query in enumerate(rows)}
    if tool == "ranx":
        import ranx

        judged, ranked = ranx.Qrels(qrels), ranx.Run(run)
        return lambda name: ranx.evaluate(judged, ranked, name), peak_bytes()
    import pytrec_eval

    return lambda name: pytrec_eval.RelevanceEvaluator(qrels, {name}).evaluate(run), peak_bytes()


def child(tool: str) -> dict[str, Any]:
    """Return seconds for each measure."""
    work, before = evaluator(tool)
    seconds = {title: best_time(lambda n=names[tool]: work(n)) for title, names in MEASURES.items()}
    return seconds | {"memory": peak_bytes() - before}


def extras() -> dict[str, float]:
    """Return pairs per second of swap deltas, and the seconds of a randomization test."""
    import numpy as np

    from podium.evaluation.significance import randomization
    from podium.measures import parse

    labels = np.random.default_rng(0).integers(0, 5, 4_000).astype(np.float32)

    def all_swaps(name: str) -> None:
        measure = parse(name)
        for first in range(0, len(labels), 64):
            measure.swaps(labels, first, min(first + 64, len(labels)))

    pairs = len(labels) * (len(labels) - 1) / 2
    rates = {name: pairs / best_time(lambda n=name: all_swaps(n)) for name in ("ndcg", "ap", "err", "rr")}
    differences = np.random.default_rng(1).normal(0.001, 0.1, 10_000)
    queries = list(range(10_000))
    return rates | {"randomization": best_time(lambda: randomization(differences, queries), 1)}


def run() -> Report:
    """Measure the tools in turn, each in a separate process."""
    runs: dict[str, list[dict[str, Any]]] = {tool: [] for tool in TOOLS}
    for _ in range(RUNS):
        for tool in TOOLS:
            runs[tool].append(in_child("bench.measures", tool))
    rows = []
    for title in MEASURES:
        lowest = {tool: best(runs[tool], title)[title] for tool in TOOLS}
        row = {"what": f"{title}, 1 million documents in 10,000 queries"}
        row |= {f"{tool}, s": f"{seconds:.3f}" for tool, seconds in lowest.items()}
        row |= {f"times {tool}": f"{lowest[tool] / lowest['podium']:.0f}" for tool in TOOLS[1:]}
        rows.append(row)
    memory = {"what": "peak memory above the input, MB"}
    memory |= {f"{tool}, s": f"{best(runs[tool], 'memory')['memory'] / 1e6:.0f} MB" for tool in TOOLS}
    rows.append(memory)
    result = in_child("bench.measures", "extras")
    for name in ("ndcg", "ap", "err", "rr"):
        what = f"swap deltas of {name}, million pairs a second (1 core)"
        rows.append({"what": what, "podium, s": f"{result[name] / 1e6:.0f}"})
    what = "randomization test, 10,000 queries × 100,000 resamples"
    rows.append({"what": what, "podium, s": f"{result['randomization']:.2f}"})
    return Report(
        "measures", "Measures and tests", rows,
        [
            f"Best of {RUNS} in each of {RUNS} processes after a warm-up, the tools taking turns. Input is in memory, "
            "in the form that each tool takes. Podium's time includes ranking, the 95% interval and the check for "
            "ties.",
        ],
    )  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(extras() if sys.argv[1] == "extras" else child(sys.argv[1])))
