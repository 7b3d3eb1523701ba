"""The section on speed against accuracy."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from podium.data import RankingData
from podium.evaluation import Evaluation
from podium.evaluation.evaluating import measures_of
from podium.evaluation.tables import Table
from podium.measures import Ranking
from podium.models import Model
from podium.models.base import model_of
from podium.models.rankers import scores_of
from podium.reports.page.contents import Figures, Missing, Numbers, Part, Section, Words
from podium.reports.page.figures import figures_of
from podium.reports.page.measuring import NO_LABELS
from podium.reports.page.subject import Subject, of_some, sample
from podium.reports.training_charts import speed_chart

POINTS = 12
MOST_DOCUMENTS = 100_000
NEAR = 0.002  # of the measure: what counts as nearly as good
REPEATS = 5


def cost_section(subject: Subject, advance: Callable[..., None]) -> Section:
    """How good the first trees alone are, and with `timing` how long each system takes."""
    title = "Speed against accuracy"
    if not subject.evaluations:
        return Section("cost", title, (Missing(NO_LABELS),))
    parts: list[Part] = []
    if subject.n_rounds > 1:
        parts += _by_trees(subject, advance)
    else:
        parts.append(Missing("The model is no sum of trees, of which the first could be taken alone."))
    parts += _sizes(subject)
    return Section("cost", title, tuple(parts))


def _by_trees(subject: Subject, advance: Callable[..., None]) -> list[Part]:
    measure = subject.measures[0]
    part = sample(subject.data, MOST_DOCUMENTS)
    fixed = measure.fixed_like(*measures_of([subject.ranker]))
    points = []
    for k in subject.rounds(POINTS, by_ratio=True):
        ranking = Ranking(part, subject.scores_at(part, k))
        evaluation = Evaluation(part.query_ids, {str(measure): fixed.values(ranking)})
        points.append((k + 1, evaluation.means[str(measure)], *evaluation.intervals[str(measure)]))
        advance(1, "the first trees alone")
    whole = points[-1][1]
    few = next(n for n, mean, *_ in points if mean >= whole - NEAR)
    near = f"within {NEAR:g} of the whole model{of_some(part, subject.data)}"
    found = (
        f"Of those tried, the first {few} of {subject.n_rounds} trees are the fewest that come {near}: "
        f"predict(…, n_trees={few}) scores with them."
        if few < subject.n_rounds
        else f"Of those tried, no smaller number of trees comes {near}."
    )
    words = f"Time grows with the number of trees. {found}"
    return [Words(words), Figures(figures_of(speed_chart(points, str(measure))))]


def _sizes(subject: Subject) -> list[Part]:
    """Each system with its size, its mean, and its time where that is measured."""
    measure = str(subject.measures[0])
    columns, rows = ["system", "what it is", measure], []
    for name, system in subject.systems.items():
        model = model_of(system)
        what = repr(model) if isinstance(model, Model) else "scores" if not _scores(system) else type(system).__name__
        rows.append([name, what, subject.evaluations[name].means[measure]])
    parts: list[Part] = []
    if subject.timing:
        columns.append("µs per document")
        part = sample(subject.data, 20_000)
        for row, system in zip(rows, subject.systems.values(), strict=True):
            row.append(_microseconds(system, part) if _scores(system) else None)
        parts.append(
            Words(f"Times are of one thread, the fastest of {REPEATS} runs over {part.n_documents:,} documents.")
        )
    parts.append(Numbers("The systems", Table(columns, rows)))
    if not subject.timing:
        why = "Times are not measured, so that the same data gives the same report"
        parts.append(Missing(f"{why}: report(…, timing=True), or podium report --timing."))
    return parts


def _scores(system: Any) -> bool:
    """Whether a system scores, or is scores."""
    return callable(system) or hasattr(system, "predict")


def _microseconds(system: Any, data: RankingData) -> float:
    """The time to score a document, after a first run that may compile."""
    model = model_of(system)
    ranker = model.scorer(n_threads=1) if isinstance(model, Model) and model is system else None
    times = []
    for _ in range(REPEATS + 1):
        started = time.perf_counter()
        _ = ranker(data) if ranker is not None else scores_of(system, data, 1)
        times.append(time.perf_counter() - started)
    return float(np.min(times[1:])) / max(1, len(data)) * 1e6
