"""The demonstration of `make demo`: a search engine for the documentation of Python's standard library."""

from __future__ import annotations

import platform
import time
from pathlib import Path
from typing import Any

import podium
from podium.demo.standard_library import FIELDS, Library, read_library
from podium.evaluation.tables import Table
from podium.features import FeatureSet, Index, SearchPipeline, default

MEASURES = ["ndcg@10", "rr@10"]
CANDIDATES = 100
BM25F = "bm25f(name:3, module, signature, text)"
EXAMPLE = "read rows of a csv file"


def main(folder: Path, library: Library | None = None, trees: int | None = None) -> None:
    """Build an index, compute features, train and compare models; write a report and a search pipeline.

    Args:
        folder: the folder to write the report and the pipeline to.
        library: the documents and queries; by default those of the standard library.
        trees: the number of trees of each model; by default chosen on validation queries or by cross-validation.

    """
    clock = Clock()
    library = read_library() if library is None else library
    index = Index.build(library.documents, fields=FIELDS, positions=True)
    print(f"Python {platform.python_version()}'s standard library: {len(index):,} documents, indexed", clock)
    parts = {name: len(queries) for name, queries in library.queries.items()}
    print(
        f"{sum(parts.values()):,} queries: summaries, removed from their documents. Each module's queries are all in "
        f"training ({parts['train']:,}), validation ({parts['valid']:,}) or test data ({parts['test']:,})"
    )
    features = FeatureSet([*default(index), BM25F])
    train, valid, test = (_data(index, features, queries) for queries in library.queries.values())
    print(f"{len(features)} features of the top {CANDIDATES} documents by BM25 for each query", clock)
    recall = float(test.relevance.sum()) / parts["test"]
    print(f"They include the right document for {recall:.0%} of the test queries, the upper limit for re-ranking\n")

    rounds: dict[str, Any] = {} if trees is None else {"n_trees": trees}
    lambdamart = podium.LambdaMART(**{"n_trees": 300, **rounds}, patience=30, measure="ndcg@10").fit(train, valid=valid)
    print(f"LambdaMART: {lambdamart.n_trees_} trees, chosen on the validation queries", clock)
    ranker = podium.Ranker(**rounds).fit(podium.RankingData.concatenate([train, valid]))
    print("Ranker: trained on training and validation queries", clock, "\n")
    others = {"BM25": test.feature("bm25"), "BM25F": test.feature(BM25F), "LambdaMART": lambdamart}
    comparison = podium.compare(test, {**others, "Ranker": ranker}, MEASURES)
    for measure in MEASURES:
        print(f"{steps(comparison, measure)}\n")

    folder.mkdir(parents=True, exist_ok=True)
    pipeline = SearchPipeline(index, features, ranker, candidates=CANDIDATES)
    pipeline.save(folder / "standard-library")
    report = podium.report(
        ranker, test, folder / "report.html", train=train, valid=valid, others=others, measures=MEASURES, name="Ranker"
    )
    print(f"{EXAMPLE!r} finds {', '.join(pipeline.search(EXAMPLE, 5).ids)}")
    print(f"Report: {report}", clock)
    print(f"Open the search box: podium serve {folder / 'standard-library'}, then http://127.0.0.1:8000/")


def _data(index: Index, features: FeatureSet, queries: dict[str, str]) -> podium.RankingData:
    """Return the features of each query's candidates; only the document with the query's summary is relevant."""
    judgements = {document: {document: 1} for document in queries}
    return features.compute(index, queries, judgements, candidates=f"bm25 top {CANDIDATES}")


def steps(comparison: podium.evaluation.Comparison, measure: str) -> Table:
    """Return each system's mean and its gain over the previous system, with 95% intervals and Holm's p-values."""
    names = list(comparison.evaluations)
    pairs = {(pair.a, pair.b): pair for pair in comparison.pairs if pair.measure == measure}
    rows: list[list[Any]] = []
    for before, name in zip(["", *names], names, strict=False):
        result = comparison.evaluations[name]
        row = [name, result.means[measure], *result.intervals[measure]]
        pair = pairs.get((before, name))
        rows.append([*row, *([""] * 4 if pair is None else [pair.difference, pair.low, pair.high, pair.p_random_holm])])
    return Table(["system", measure, "95% from", "to", "gain", "95% from", "to", "p"], rows)


class Clock:
    """A stopwatch whose text is the time since it was last shown."""

    def __init__(self) -> None:
        self._last = time.perf_counter()

    def __str__(self) -> str:
        before, self._last = self._last, time.perf_counter()
        return f"({self._last - before:.1f} s)"
