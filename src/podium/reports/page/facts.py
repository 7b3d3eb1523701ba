"""Sections on the data, on what is needed to repeat the run, and on what scoring costs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from podium.core.versions import versions
from podium.data import RankingData
from podium.data.canonical import digest_of
from podium.evaluation import Evaluation
from podium.evaluation.evaluating import measures_of
from podium.evaluation.tables import Table
from podium.measures import Ranking
from podium.measures.base import weights_in_means
from podium.models import Model
from podium.models.base import model_of
from podium.models.rankers import scores_of
from podium.reports.page.contents import Figures, Missing, Numbers, Part, Section, Warned, Words, figures_of
from podium.reports.page.measuring import NO_LABELS
from podium.reports.page.subject import Subject, of_some, sample
from podium.reports.training_charts import speed_chart


def data_section(subject: Subject) -> Section:
    """Counts, labels and warnings of every data set."""
    summaries = {name: data.summary() for name, data in subject.sets.items()}
    rows: list[list[Any]] = []
    labels: list[list[Any]] = []
    warned: list[str] = []
    for name, summary in summaries.items():
        sizes = f"{summary.fewest_documents:,} to {summary.most_documents:,}, mean {summary.mean_documents:.1f}"
        rows.append([name, f"{summary.documents:,}", f"{summary.queries:,}", sizes, f"{summary.features:,}",
                     f"{summary.density:.1%}", f"{summary.missing:.1%}"])  # fmt: skip
        labels += [[name, source, f"{label.labelled:,}", str(label)] for source, label in summary.labels.items()]
        warned += [f"{name}: {warning}" for warning in summary.warnings]
    columns = ["data", "documents", "queries", "documents of a query", "features", "values not zero", "values missing"]
    parts: list[Part] = [Numbers("What is in the data", Table(columns, rows))]
    if labels:
        parts.append(Numbers("Labels", Table(["data", "source", "documents labelled", "shares"], labels)))
    else:
        parts.append(Missing("The data has no labels."))
    parts.append(Warned(tuple(warned)) if warned else Words("Nothing in the data looks like a mistake."))
    return Section("data", "Data", tuple(parts))


def repeat_section(subject: Subject) -> Section:
    """Parameters, digests and versions."""
    parts: list[Part] = []
    if subject.parameters:
        rows = [[name, _text(value)] for name, value in subject.parameters.items()]
        parts.append(Numbers("Parameters of training", Table(["parameter", "value"], rows)))
    else:
        parts.append(Missing("The parameters of training are not known: only Podium's models hold them."))
    facts: list[list[Any]] = [[name, value] for name, value in subject.facts.items()]
    if subject.model is not None:
        facts += [["model", repr(subject.model)], ["digest of the model", subject.model.digest()]]
        if subject.model.reading:
            facts.append(["how the data was read", ", ".join(f"{k}={v}" for k, v in subject.model.reading.items())])
    facts += [[f"digest of the {name} data", _digest(data)] for name, data in subject.sets.items()]
    facts += [[f"{name} (report)", text] for name, text in versions().items()]
    parts.append(Numbers("What the result depends on", Table(["fact", "value"], facts)))
    parts.append(
        Words(
            "The same data, parameters and seed give the same model, to the bit, for any number of threads and any "
            "order of rows. Equal digests are equal content: of a model all that decides scores, of data all documents "
            "with their queries and labels."
        )
    )
    return Section("repeat", "To repeat it", tuple(parts))


def _digest(data: RankingData) -> str:
    return digest_of(data).hex()


def _text(value: Any) -> str:
    return "none" if value is None or value == "()" else str(value)


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
        parts.append(Missing("The model is not a sum of trees that can be cut to the first ones."))
    parts += _sizes(subject)
    return Section("cost", title, tuple(parts))


def _by_trees(subject: Subject, advance: Callable[..., None]) -> list[Part]:
    measure = subject.measures[0]
    part = sample(subject.data, MOST_DOCUMENTS)
    fixed = measure.fixed_like(*measures_of([subject.ranker]))
    points = []
    for k in subject.rounds(POINTS, by_ratio=True):
        ranking = Ranking(part, subject.scores_at(part, k))
        evaluation = Evaluation(part.query_ids, {str(measure): fixed.values(ranking)}, weights=weights_in_means(part))
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
    """Return whether a system scores, or is scores."""
    return callable(system) or hasattr(system, "predict")


def _microseconds(system: Any, data: RankingData) -> float:
    """Return the time to score a document, after a first run that may compile."""
    model = model_of(system)
    ranker = model.scorer(n_threads=1) if isinstance(model, Model) and model is system else None
    times = []
    for _ in range(REPEATS + 1):
        started = time.perf_counter()
        _ = ranker(data) if ranker is not None else scores_of(system, data, 1)
        times.append(time.perf_counter() - started)
    return float(np.min(times[1:])) / max(1, len(data)) * 1e6
