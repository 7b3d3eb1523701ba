"""The sections of what was measured: means with intervals, and the comparison with other systems."""

from __future__ import annotations

import numpy as np

from podium.errors import PodiumError
from podium.evaluation import Evaluation, evaluate
from podium.evaluation.comparing import Comparison, compared
from podium.evaluation.tables import Table
from podium.reports.comparison_charts import wins_and_losses_chart
from podium.reports.page.contents import Figure, Figures, Missing, Numbers, Part, Section, Words, figures_of
from podium.reports.page.subject import Subject, has_labels
from podium.reports.query_charts import queries_chart

NO_LABELS = "The data has no labels, so nothing can be measured: give labels, as RankingData(features, labels, qid=…)."

SHOWN = ("mean of each system", "difference, query by query")  # of each measure, in the chart of a comparison


def measures_section(subject: Subject) -> Section:
    """Means with their 95% intervals on every data set, and how they are spread over the test queries."""
    own = subject.own_evaluation
    if own is None:
        return Section("measures", "Measures", (Missing(NO_LABELS),))
    rows: list[list[object]] = []
    evaluations = {subject.data_name: own, **_of_sets(subject)}
    for name, evaluation in evaluations.items():
        rows += [[name, *row] for row in evaluation.table().rows]
    table = Table(["data", "measure", "mean", "95% from", "to", "queries"], rows)
    parts: list[Part] = [Numbers("Means over the queries, with 95% intervals by Student's t", table)]
    if subject.can_score:
        for name in ("train", "valid"):
            if name not in subject.sets:
                parts.append(Missing(f"There is no {_kind(name)} data: {_REMEDIES[name]}."))
    if any(np.isfinite(values).any() for values in own.values.values()):
        parts.append(Figures(figures_of(queries_chart(own))))
    return Section("measures", "Measures", tuple(parts))


_REMEDIES = {
    "train": "report(…, train=…); podium report reads the training files of its run if they are still there",
    "valid": "report(…, valid=…), or podium train … --valid FILE",
}


def _kind(name: str) -> str:
    return {"train": "training", "valid": "validation"}[name]


def _of_sets(subject: Subject) -> dict[str, Evaluation]:
    """Return what the ranker reaches on further data."""
    evaluations = {}
    for name, data in subject.sets.items():
        if data is subject.data:
            continue
        measures = [measure for measure in subject.measures if has_labels(data, measure.labels)]
        if measures and subject.can_score:
            evaluations[name] = evaluate(data, subject.ranker, measures)
    return evaluations


def comparison_section(subject: Subject) -> Section:
    """Each pair of systems: differences with intervals and tests, and the queries won and lost."""
    title = "Comparison"
    if len(subject.rankings) < 2:
        remedy = 'report(…, others={"name": model}), or podium report RUN --other NAME=FILE'
        return Section("comparison", title, (Missing(f"There is no other model to compare with: {remedy}."),))
    if not subject.evaluations:
        return Section("comparison", title, (Missing(NO_LABELS),))
    comparison = compared_systems(subject)
    parts: list[Part] = [
        Numbers("Means of each system", comparison.means_table()),
        Words(
            "Each query is compared with itself: b − a is the mean of the differences, and wins are the queries on "
            "which b is better. p is how often such a difference would come about by chance, by a t-test and by random "
            "signs; Holm's correction is for the number of pairs."
        ),
        Numbers("Pairs of systems", comparison.table()),
    ]
    names = [f"{measure}: {what}" for measure in subject.evaluations[subject.name].values for what in SHOWN]
    charts = figures_of(comparison.plot())
    parts.append(Figures(tuple(Figure(name, one.spec) for name, one in zip(names, charts, strict=True))))
    parts.append(Figures(figures_of(wins_and_losses_chart(comparison))))
    return Section("comparison", title, tuple(parts))


def compared_systems(subject: Subject) -> Comparison:
    """Compare the systems, the others first, so that differences show what the model adds."""
    if subject.comparison is not None:
        return subject.comparison
    names = [*(name for name in subject.evaluations if name != subject.name), subject.name]
    return compared({name: subject.evaluations[name] for name in names})


def warnings_of(error: PodiumError) -> str:
    """Return an error as a sentence of a report."""
    text = str(error)
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
