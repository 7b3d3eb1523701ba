"""The cost of finding the top ten: with all trees, fewer trees, the exact top ten, and early exit of documents.

[W] fig. 2 shows speed against accuracy for fewer trees. Here all ways score the same test queries with the same trees
on one thread, taking turns. `python -m bench.early_exit tiny` checks in a minute that everything works; its figures
mean nothing and are not stored.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import podium
from bench.drawing import draw
from bench.harness import Report
from experiments.early_exit import EarlyExit, learn_exit
from experiments.top_documents import TopDocuments, top_documents
from podium.measures import Ranking

K = 10


@dataclass(frozen=True)
class Sizes:
    """The size of the benchmark. `thresholds` of early exit are measured in addition to the chosen one."""

    train_queries: int = 6_000
    valid_queries: int = 2_000
    test_queries: int = 1_500
    trees: int = 500
    leaves: int = 31
    cuts: tuple[int, ...] = (25, 50, 100, 200, 350)
    sentinels: tuple[int, ...] = (25, 50, 100)
    thresholds: tuple[float, ...] = (0.2, 0.4, 0.6, 0.8, 0.9)
    runs: int = 5


TINY = Sizes(60, 60, 30, 40, 8, (10, 20), (10,), (0.5,), 2)


@dataclass
class Way:
    """A way to rank the test queries: its name, the function to time, and the scores from what that returns."""

    family: str
    name: str
    work: Callable[[], Any]
    scores: Callable[[Any], NDArray[np.float64]]
    share: float  # of documents × trees that are evaluated, the classifier's left out
    seconds: float = float("inf")
    ndcg: float = 0.0


def lightgbm_way(model: podium.models.Ensemble, test: podium.RankingData) -> Way:
    """Return the same trees in LightGBM."""
    import lightgbm

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.txt"
        model.export(path, "lightgbm")
        booster = lightgbm.Booster(model_file=str(path))
    return Way("LightGBM", "LightGBM, the same trees", lambda: booster.predict(test.features, num_threads=1),
               np.asarray, 1.0)  # fmt: skip


def top_way(model: podium.models.Ensemble, test: podium.RankingData) -> Way:
    """Rank the exact top ten, then all other documents."""

    def scores(found: TopDocuments) -> NDArray[np.float64]:
        ranked = np.full(len(test), found.scores.min() - 1)
        ranked[found.rows] = found.scores
        return ranked

    share = top_documents(model, test, K).share_evaluated
    return Way("exact top", f"exact top {K}", lambda: top_documents(model, test, K, n_threads=1), scores, share)


def exit_ways(model: podium.models.Ensemble, sizes: Sizes, *data: podium.RankingData) -> list[Way]:
    """Return early exits after several numbers of trees, with several thresholds."""
    train, valid, test = data
    ways = []
    for sentinel in sizes.sentinels:
        chosen = learn_exit(model, train, valid=valid, sentinel=sentinel, k=K, verbose=0)
        ways.append(exit_way(chosen, f"{chosen.threshold:.2f} (chosen)", test))
        ways += [exit_way(replace(chosen, threshold=one), f"{one:g}", test) for one in sizes.thresholds]
    return ways


def exit_way(model: EarlyExit, threshold: str, test: podium.RankingData) -> Way:
    """Return one early exit."""
    first = model.sentinel / model.n_trees
    share = first + (1 - first) * float(model.continues(test).mean())
    name = f"early exit after {model.sentinel}, threshold {threshold}"
    return Way(f"exit after {model.sentinel}", name, lambda: model.predict(test, n_threads=1), np.asarray, share)


def all_ways(sizes: Sizes) -> tuple[list[Way], podium.RankingData]:
    """Return all ways to rank the test queries, including these."""
    counts = {"train": sizes.train_queries, "valid": sizes.valid_queries, "test": sizes.test_queries}
    train, valid, test = (podium.artificial_web(n, part=part) for part, n in counts.items())  # type: ignore[arg-type]
    trained = podium.LambdaMART(n_trees=sizes.trees, n_leaves=sizes.leaves, truncation=30, verbose=0).fit(train)
    model: podium.models.Ensemble = trained.model_

    def cut(n_trees: int) -> Way:
        fewer = model.truncate(n_trees)
        return Way("fewer trees", f"{n_trees} trees", lambda: fewer.predict(test, n_threads=1), np.asarray,
                   n_trees / model.n_trees)  # fmt: skip

    ways = [Way("all trees", "all trees", lambda: model.predict(test, n_threads=1), np.asarray, 1.0)]
    ways += [lightgbm_way(model, test), *map(cut, sizes.cuts), top_way(model, test)]
    return ways + exit_ways(model, sizes, train, valid, test), test


def run(sizes: Sizes | None = None) -> Report:
    """Measure time and NDCG@10 of every way."""
    sizes = sizes or Sizes()
    ways, test = all_ways(sizes)
    for _ in range(sizes.runs + 1):  # the first compiles
        for way in ways:
            started = time.perf_counter()
            result = way.work()
            way.seconds = min(way.seconds, time.perf_counter() - started)
            way.ndcg = podium.NDCG(K).mean(Ranking(test, way.scores(result)))
    full = ways[0]
    rows = [
        {"way": way.name, "µs a document": f"{1e6 * way.seconds / len(test):.2f}",
         "times as fast": f"{full.seconds / way.seconds:.2f}", "trees evaluated": f"{way.share:.1%}",
         f"NDCG@{K}": f"{way.ndcg:.4f}", "less all trees'": f"{way.ndcg - full.ndcg:+.4f}"}
        for way in ways
    ]  # fmt: skip
    notes = [
        f"{sizes.trees} trees of {sizes.leaves} leaves, trained by LambdaMART on {sizes.train_queries:,} queries × 120 "
        f"documents × 136 features; {sizes.test_queries:,} test queries in one call on one thread, best of "
        f"{sizes.runs}, the ways taking turns.",
        f"Thresholds are chosen on {sizes.valid_queries:,} validation queries, for a loss of at most .001 in NDCG@{K}. "
        "Trees evaluated are a share of documents × trees, without the 10 trees of the classifier. Plot: "
        "early_exit.svg.",
    ]
    return Report("early_exit", "Early exit: NDCG@10 and time per document", rows, notes)


if __name__ == "__main__":
    if sys.argv[1:] != ["tiny"]:
        sys.exit("python -m bench early_exit measures; python -m bench.early_exit tiny shows that it works")
    with tempfile.TemporaryDirectory() as temporary:
        report = run(TINY)
        print(*report.rows, sep="\n")
        draw(report.name, report.rows, Path(temporary))
        print(f"early_exit.svg: {(Path(temporary) / 'early_exit.svg').stat().st_size:,} bytes")
