"""Fusion of runs: one ranking from several, without training."""

from __future__ import annotations

import math
from collections.abc import Callable

from podium.core.choices import Fusion
from podium.core.validation import require_number
from podium.errors import DataError
from podium.evaluation.trec import Run, ranked_documents

Scores = dict[str, float]  # by document


def fuse(*runs: Run, by: Fusion = "rrf", k: float = 60.0, name: str | None = None) -> Run:
    """Fuse runs into one, query by query.

    A document has the score

    - `rrf`: Σ 1 / (k + rank), reciprocal rank fusion (Cormack, Clarke and Büttcher 2009);
    - `combsum`: Σ of its scores, scaled to [0, 1] within each query of a run (Fox and Shaw 1994);
    - `combmnz`: the same times the number of runs that return it;
    - `borda`: Σ (n − rank + 1), where n is the number of documents that any run returns for the query. Documents that
      a run does not return share its remaining points (Aslam and Montague 2001).

    Sums are over the runs that return the document. In a run, equal scores are ranked as in trec_eval, by descending
    document id. If all scores of a query are equal in a run, they become 0. The result has every query of any run.

    Args:
        *runs: two or more (`read_run`).
        by: the method.
        k: the constant of `rrf`; the larger, the less the first ranks dominate.
        name: the name of the fused run; the method by default.

    Returns:
        A run with all documents of the runs.

    Example:
        >>> from podium.evaluation import Run, fuse
        >>> words = Run("words", {"7": {"a": 9.0, "b": 5.0}})
        >>> vectors = Run("vectors", {"7": {"b": 0.8, "c": 0.6}})
        >>> fuse(words, vectors, by="combsum").scores["7"]
        {'a': 1.0, 'b': 1.0, 'c': 0.0}

    """
    if len(runs) < 2 or not all(isinstance(run, Run) for run in runs):
        raise DataError("pass at least two runs, as in fuse(read_run('a.run'), read_run('b.run'))")
    if by not in METHODS:
        raise DataError(f"by must be one of {', '.join(map(repr, METHODS))}, but got {by!r}")
    require_number("k", k, least=0)
    fused: dict[str, Scores] = {}
    for query in dict.fromkeys(query for run in runs for query in run.scores):
        of_runs = [run.scores[query] for run in runs if query in run.scores]
        documents = sorted({document for scores in of_runs for document in scores})
        terms = [METHODS[by](scores, documents, k) for scores in of_runs]
        fused[query] = {d: math.fsum(term[d] for term in terms if d in term) for d in documents}
        if by == "combmnz":
            fused[query] = {d: score * sum(d in scores for scores in of_runs) for d, score in fused[query].items()}
    return Run(name or by, fused)


# Each method returns what a run adds to the score of each document, from the run's scores for a query, all documents
# of the query, and the constant k.


def _reciprocal_ranks(scores: Scores, documents: list[str], k: float) -> Scores:
    return {document: 1.0 / (k + rank) for rank, document in enumerate(ranked_documents(scores), 1)}


def _scaled_scores(scores: Scores, documents: list[str], k: float) -> Scores:
    low, high = min(scores.values(), default=0.0), max(scores.values(), default=0.0)
    if not all(math.isfinite(score - low) for score in scores.values()):
        raise DataError(f"combsum and combmnz scale scores, which must be finite, but these go from {low} to {high}")
    return {document: (score - low) / ((high - low) or 1.0) for document, score in scores.items()}


def _borda_points(scores: Scores, documents: list[str], k: float) -> Scores:
    mean_of_rest = (len(documents) - len(scores) + 1) / 2.0  # for each document that the run does not return
    points = {document: float(len(documents) - place) for place, document in enumerate(ranked_documents(scores))}
    return {document: points.get(document, mean_of_rest) for document in documents}


METHODS: dict[str, Callable[[Scores, list[str], float], Scores]] = {
    "rrf": _reciprocal_ranks, "combsum": _scaled_scores, "combmnz": _scaled_scores, "borda": _borda_points,
}  # fmt: skip
