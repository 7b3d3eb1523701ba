"""The section on single queries: the worst, the best and the most changed, with their ranked lists and λ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from podium.core.array_types import Float32s, Floats, Ints
from podium.data import RankingData
from podium.data.subsets import rows_of_queries
from podium.diagnostics.lambdas import LambdaArrows, arrows_of_scores
from podium.errors import PodiumError
from podium.evaluation.evaluating import is_uniform
from podium.explain import Explanation
from podium.reports.feature_charts import shown_number
from podium.reports.page.contents import (
    ListedDocument,
    ListedQuery,
    Missing,
    Part,
    Queries,
    Reason,
    Section,
    Words,
    sentence_of,
)
from podium.reports.page.features import explained
from podium.reports.page.subject import Subject, has_labels

LISTED = 20  # documents per list
REASONS = 3  # deciding features per document
STEPS = 14  # rounds with λ


def queries_section(subject: Subject, advance: Callable[..., None]) -> Section:
    """Return ranked lists of single queries with the deciding features and λ of their documents."""
    groups = _groups(subject)
    numbers = sorted({number for members in groups.values() for number in members})
    words = "The first queries of the data."
    if subject.evaluations:
        words = f"Chosen by {subject.measures[0]} among the queries whose labels differ."
    if not numbers:
        return Section("queries", "Single queries", (Missing("In every query, all documents have the same label."),))
    missing: list[Part] = []
    reasons: dict[int, tuple[Reason, ...]] = {}
    try:
        if subject.can_score:
            reasons = _reasons(subject, numbers)
    except PodiumError as error:
        missing.append(Missing(f"Deciding features cannot be shown. {sentence_of(error)}"))
    advance(1, "explaining single queries")
    arrows, arrows_missing = _arrows(subject, numbers, advance)
    listed = [
        _listed(subject, number, group, reasons, arrows.get(number))
        for group, members in groups.items()
        for number in members
    ]
    measure = str(subject.measures[0]) if subject.evaluations else None
    block = Queries(tuple(listed), measure, subject.other, arrows_missing)
    return Section("queries", "Single queries", (Words(words), block, *missing))


def _groups(subject: Subject) -> dict[str, list[int]]:
    """Return the indices of the queries to show, by group."""
    n, names = subject.n_listed, subject.data.query_ids.astype(str)
    if not subject.evaluations:
        return {"The first queries": list(range(min(n, subject.data.n_queries)))}
    measure = subject.measures[0]
    values = subject.evaluations[subject.name].values[str(measure)]
    candidates = np.flatnonzero(~is_uniform(subject.data, [measure.labels]) & ~np.isnan(values)).tolist()
    by_value = sorted(candidates, key=lambda q: (values[q], names[q]))
    groups = {"The worst": by_value[:n], "The best": by_value[::-1][: min(n, max(0, len(by_value) - n))]}
    if subject.other is not None:
        changes = np.nan_to_num(values - subject.evaluations[subject.other].values[str(measure)])
        changed = sorted((q for q in candidates if changes[q]), key=lambda q: (-abs(changes[q]), names[q]))
        groups[f"The most changed from {subject.other}"] = changed[:n]
    return {name: queries for name, queries in groups.items() if queries}


def _rows(subject: Subject, number: int, name: str | None = None) -> Ints:
    """Return the rows of a query in the order of a system's ranking."""
    ranking = subject.rankings[name or subject.name]
    return ranking.order[subject.data.offsets[number] : subject.data.offsets[number + 1]]


def _reasons(subject: Subject, numbers: list[int]) -> dict[int, tuple[Reason, ...]]:
    """Return the features that distinguish each listed document from the others of its list, by row."""
    lists = [_rows(subject, number)[:LISTED] for number in numbers]
    rows = np.concatenate(lists)
    explanation = explained(subject.ranker, subject.data.take(rows))
    reasons, start = {}, 0
    for listed in lists:
        contributions = explanation.values[start : start + len(listed)]
        deviations = contributions - contributions.mean(axis=0)
        for k, row in enumerate(listed.tolist()):
            reasons[row] = _of_document(explanation, start + k, deviations[k])
        start += len(listed)
    return reasons


def _of_document(explanation: Explanation, row: int, deviations: Floats) -> tuple[Reason, ...]:
    values = explanation.shown_values(row)
    largest = [int(k) for k in np.argsort(-np.abs(deviations), kind="stable")[:REASONS] if deviations[k]]
    return tuple(Reason(explanation.names[k], shown_number(values[k]), float(deviations[k])) for k in largest)


def _listed(
    subject: Subject, number: int, group: str, reasons: dict[int, tuple[Reason, ...]], arrows: dict[str, Any] | None
) -> ListedQuery:
    data, rows = subject.data, _rows(subject, number)
    scores = subject.ranking.scores
    labels, highest = _labels(data)
    places: dict[int, int] = {}
    if subject.other is not None:
        places = {int(row): k for k, row in enumerate(_rows(subject, number, subject.other))}
    documents = [
        ListedDocument(
            rank=k + 1, name=name_of(data, row), label="" if np.isnan(labels[row]) else f"{labels[row]:g}",
            share=float(np.clip(np.nan_to_num(labels[row]) / highest, 0, 1)),
            score=float(scores[row]) if np.isfinite(scores[row]) else None,
            change=places[row] - k if places else None, reasons=reasons.get(row, ()),
        )
        for k, row in enumerate(rows[:LISTED].tolist())
    ]  # fmt: skip
    values = tuple(
        (system, ", ".join(f"{name} {_value(column[number])}" for name, column in evaluation.values.items()))
        for system, evaluation in subject.evaluations.items()
    )
    value = ""
    if subject.evaluations:
        value = _value(subject.evaluations[subject.name].values[str(subject.measures[0])][number])
    name = str(data.query_ids[number])
    return ListedQuery(number, name, group, value, values, tuple(documents), len(rows), arrows)


def _value(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.4f}"


def _labels(data: RankingData) -> tuple[Float32s, float]:
    """Return the labels to show, with NaN for a missing label, and the highest label."""
    source = next((source for source in ("relevance", *data.labels) if has_labels(data, source)), None)
    if source is None:
        return np.full(len(data), np.nan, np.float32), 1.0
    return data.labels[source], max(float(np.nanmax(data.labels[source])), 1e-9)


def name_of(data: RankingData, row: int) -> str:
    """Return the name of a document: its id, else its row number."""
    return f"row {row}" if data.document_ids is None else str(data.document_ids[row])


def _arrows(
    subject: Subject, numbers: list[int], advance: Callable[..., None]
) -> tuple[dict[int, dict[str, Any]], str | None]:
    """Return the documents of each query by rank with their λ, round by round, or why they cannot be shown."""
    if not has_labels(subject.data):
        return {}, "λ require labels named 'relevance', which determine the documents that should move up or down."
    if not np.isfinite(subject.ranking.scores).all():
        return {}, "λ require a score for every document, but this ranking omits some."
    data = subject.data.select(numbers)
    try:
        name, objective = subject.objective
        rounds: list[int | None] = [None]
        if subject.n_rounds:
            rounds = [-1, *subject.rounds(STEPS - 1, by_ratio=True)]
        steps: dict[int, dict[str, Any]] = {}
        all_rows = rows_of_queries(subject.data, numbers)
        for round_ in rounds:
            scores = subject.ranking.scores[all_rows] if round_ is None else subject.scores_at(data, round_)
            for number in numbers:
                query = subject.data.query_ids[number]
                at = max(round_ or 0, 0)
                arrows = arrows_of_scores(scores, data, query, ["pairwise", objective], "relevance", at)
                _add_step(steps.setdefault(number, _empty(name, data)), arrows, subject.data, all_rows, round_)
            advance(1, "λ of single queries")
    except PodiumError as error:
        return {}, sentence_of(error)
    return steps, None


def _empty(name: str, data: RankingData) -> dict[str, Any]:
    """Return the arrows of a query before its first round."""
    labels = data.relevance[np.isfinite(data.relevance)]
    highest = float(labels.max(initial=0.0)) or 1.0
    return {"objectives": ["pairwise", name], "highest": highest, "names": {}, "labels": {}, "steps": []}


def _add_step(
    content: dict[str, Any], arrows: LambdaArrows, data: RankingData, all_rows: Ints, round_: int | None
) -> None:
    """Append a round to `content`: the rows of the top documents, and their λ under each objective."""
    rows = all_rows[arrows.rows[:LISTED]].tolist()
    for k, row in enumerate(rows):
        content["names"][str(row)] = name_of(data, row)
        content["labels"][str(row)] = None if np.isnan(arrows.labels[k]) else float(arrows.labels[k])
    longest = np.abs(arrows.lambdas).max(axis=1)
    content["steps"].append({
        "round": None if round_ is None else round_ + 1, "rows": rows, "n": len(arrows.rows),
        "lambdas": [[float(f"{value:.3g}") for value in lambdas[:LISTED]] for lambdas in arrows.lambdas],
        "longest": [float(f"{value:.3g}") for value in longest],
    })  # fmt: skip
