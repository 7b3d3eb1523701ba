"""The sections on measures, comparisons, training, cost, data, and how to repeat the run."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from podium.core.versions import versions
from podium.data import RankingData
from podium.data.canonical import digest_of
from podium.diagnostics import WatchLambdaShares, WatchRankChanges, WatchTopLabels
from podium.errors import PodiumError
from podium.evaluation import Evaluation, evaluate
from podium.evaluation.comparing import compared
from podium.evaluation.evaluating import measures_of
from podium.evaluation.tables import Table
from podium.measures import Ranking
from podium.measures.base import weights_in_means
from podium.models import Model
from podium.models.base import model_of
from podium.models.rankers import scores_of
from podium.objectives import Objective
from podium.reports.charts import Chart
from podium.reports.comparison_charts import wins_and_losses_chart
from podium.reports.page.contents import (
    Figure,
    Figures,
    Missing,
    Numbers,
    Part,
    Section,
    Warned,
    Words,
    figures_of,
    sentence_of,
)
from podium.reports.page.subject import Subject, can_score, has_labels, sample, sample_size_text
from podium.reports.query_charts import queries_chart, top_labels_chart
from podium.reports.training_charts import history_chart, lambda_shares_chart, rank_changes_chart, speed_chart

NO_LABELS = "Measures require labels, but the data has none: pass them as RankingData(features, labels, qid=…)."

PANELS = ("mean of each system", "difference, query by query")  # of each measure, in the chart of a comparison


def measures_section(subject: Subject) -> Section:
    """Return the means with 95% intervals on every data set, and their distribution over the test queries."""
    if subject.evaluation is None:
        return Section("measures", "Measures", (Missing(NO_LABELS),))
    rows: list[list[object]] = []
    evaluations = {subject.data_name: subject.evaluation, **_of_sets(subject)}
    for name, evaluation in evaluations.items():
        rows += [[name, *row] for row in evaluation.table().rows]
    table = Table(["data", "measure", "mean", "95% from", "to", "queries"], rows)
    parts: list[Part] = [Numbers("Means over the queries, with 95% intervals (Student's t)", table)]
    if subject.can_score:
        for name in ("train", "valid"):
            if name not in subject.sets:
                parts.append(Missing(f"There is no {_REMEDIES[name]}."))
    if any(np.isfinite(values).any() for values in subject.evaluation.values.values()):
        parts.append(Figures(figures_of(queries_chart(subject.evaluation))))
    return Section("measures", "Measures", tuple(parts))


_REMEDIES = {
    "train": "training data: use report(…, train=…); podium report reads the run's training files if they still exist",
    "valid": "validation data: use report(…, valid=…), or podium train … --valid FILE",
}


def _of_sets(subject: Subject) -> dict[str, Evaluation]:
    """Return the measures of the ranker on the other data sets."""
    evaluations = {}
    for name, data in subject.sets.items():
        if data is subject.data:
            continue
        measures = [measure for measure in subject.measures if has_labels(data, measure.labels)]
        if measures and subject.can_score:
            evaluations[name] = evaluate(data, subject.ranker, measures)
    return evaluations


def comparison_section(subject: Subject) -> Section:
    """Return the differences of each pair of systems with intervals and tests, and the queries won and lost."""
    title = "Comparison"
    if len(subject.rankings) < 2:
        remedy = 'report(…, others={"name": model}), or podium report RUN --other NAME=FILE'
        return Section("comparison", title, (Missing(f"There is no other model to compare with: use {remedy}."),))
    if not subject.evaluations:
        return Section("comparison", title, (Missing(NO_LABELS),))
    # The others come first, so that a positive difference means that the model is better.
    names = [*(name for name in subject.evaluations if name != subject.name), subject.name]
    comparison = subject.comparison or compared({name: subject.evaluations[name] for name in names})
    parts: list[Part] = [
        Numbers("Means of each system", comparison.means_table()),
        Words(
            "Systems are compared query by query: b − a is the mean of the differences, and wins are the queries on "
            "which b is better. p is the probability of a difference at least this large if the systems were equally "
            "good, by a t-test and by a randomization test; Holm's method corrects it for the number of pairs."
        ),
        Numbers("Pairs of systems", comparison.table()),
    ]
    captions = [f"{measure}: {panel}" for measure in subject.evaluations[subject.name].values for panel in PANELS]
    figures = figures_of(comparison.plot())
    parts.append(Figures(tuple(Figure(text, figure.spec) for text, figure in zip(captions, figures, strict=True))))
    parts.append(Figures(figures_of(wins_and_losses_chart(comparison))))
    return Section("comparison", title, tuple(parts))


LOOKS = 25  # rounds to replay
RANKED_DOCUMENTS = 50_000  # maximum number of documents to rank in each of these rounds
TOP = 3
OBSERVERS = {"λ shares": "WatchLambdaShares", "labels at the top": "WatchTopLabels", "rank changes": "WatchRankChanges"}


def learning_section(subject: Subject) -> Section:
    """Return the measures after each round, and which round the model is from."""
    measured = {name: values for name, values in subject.history.items() if "/" in name and len(values)}
    best = subject.info.get("best_iteration", getattr(subject.ranker, "best_iteration_", None))
    before = subject.info.get("submodel_means")
    if not measured:
        text = (
            "The model has no history of measures: train it with fit(…, valid=…) or podium train --valid, or pass the "
            "history of a model loaded from a file as report(…, history=model.history_)."
        )
        return Section("learning", "Learning curves", (Missing(text),))
    chart = history_chart(measured, best, before)
    n_rounds = max(len(values) for values in measured.values())
    caption = "After each round" if len({name.partition("/")[2] for name in measured}) > 1 else ""
    if best is None:
        words = f"The model keeps all {n_rounds} rounds."
    elif isinstance(best, int) and best >= 0:
        words = f"The model is from round {best + 1} of {n_rounds} (marked), which has the best {next(iter(measured))}."
    else:
        words = "No round improved on the submodel."
    return Section("learning", "Learning curves", (Words(words), Figures(figures_of(chart, caption))))


def ranking_section(subject: Subject, advance: Callable[..., None]) -> Section:
    """Return λ shares, labels at the top and rank changes, from observers or by replaying the trees."""
    title = "The ranking during training"
    recorded = _from_history(subject)
    if len(recorded) == len(OBSERVERS) or (recorded and not subject.n_rounds):
        parts: list[Part] = [Words("Recorded by observers on the training queries.")]
        parts += [Figures(figures_of(chart)) for chart in recorded.values()]
        absent = [observer for name, observer in OBSERVERS.items() if name not in recorded]
        if absent:
            parts.append(Missing(f"Not recorded: {', '.join(absent)}. Use fit(…, observers=[{absent[0]}()])."))
        return Section("ranking", title, tuple(parts))
    if not subject.n_rounds:
        names = ", ".join(f"{name}()" for name in OBSERVERS.values())
        reason = "No observer recorded the training, and only sums of trees can be replayed"
        text = f"{reason}: use fit(…, observers=[{names}]), from podium.diagnostics."
        return Section("ranking", title, (Missing(text),))
    where = "train" if "train" in subject.sets else subject.data_name
    data = subject.sets[where]
    if not has_labels(data):
        return Section("ranking", title, (Missing("This section requires labels named 'relevance'."),))
    part = sample(data, RANKED_DOCUMENTS)
    objective, by, missing = None, "", []
    try:
        name, objective = subject.objective
        by = f"; λ are those of {name}"
    except PodiumError as error:
        missing.append(Missing(sentence_of(error)))
    words = Words(f"Replayed with the model's first trees on the {where} data{sample_size_text(part, data)}{by}.")
    return Section("ranking", title, (words, *_replay(subject, part, objective, advance), *missing))


def _from_history(subject: Subject) -> dict[str, Any]:
    """Return charts of the records of observers in the history."""
    history, charts = subject.history, {}
    if any(name.startswith("lambda_shares: ") for name in history):
        charts["λ shares"] = lambda_shares_chart(WatchLambdaShares().result(history), of="Good documents")
    for pattern, name, watch, chart in (
        (r"top_labels@(\d+): ", "labels at the top", WatchTopLabels, top_labels_chart),
        (r"rank_changes: top (\d+)", "rank changes", WatchRankChanges, rank_changes_chart),
    ):
        matched = next((match for column in history if (match := re.match(pattern, column))), None)
        if matched:
            charts[name] = chart(watch(int(matched[1])).result(history))
    return charts


def _replay(
    subject: Subject, data: RankingData, objective: Objective | None, advance: Callable[..., None]
) -> list[Part]:
    """Return charts of the records that observers would have made in some of the rounds."""
    labels = data.relevance[np.isfinite(data.relevance)]
    good = tuple(float(label) for label in np.unique(labels)[1:][-2:])
    watches: list[tuple[Any, Callable[[Any], Chart], str]] = [
        (WatchTopLabels(TOP, every=1), top_labels_chart, ""),
        (WatchRankChanges(TOP, every=1), rank_changes_chart, "Ranks whose document changed since the previous point"),
    ]
    if objective is not None and good:
        watches.insert(0, (WatchLambdaShares(objective, of_labels=good, every=1), lambda_shares_chart, ""))
    missing: list[Part] = []
    for k in subject.rounds(LOOKS):
        scores = subject.scores_at(data, k)
        round_ = SimpleNamespace(iteration=k, data=data, objective=objective, document_scores=scores, means={})
        for entry in list(watches):
            try:
                entry[0](round_)
            except PodiumError as error:
                watches.remove(entry)
                missing.append(Missing(sentence_of(error)))
        advance(1, "replaying rounds")
    figures = [figure for watch, chart, caption in watches for figure in figures_of(chart(watch.result()), caption)]
    return [*([Figures(tuple(figures))] if figures else []), *missing]


def data_section(subject: Subject) -> Section:
    """Return the counts, labels and likely mistakes of every data set."""
    summaries = {name: data.summary() for name, data in subject.sets.items()}
    rows: list[list[Any]] = []
    labels: list[list[Any]] = []
    mistakes: list[str] = []
    for name, summary in summaries.items():
        sizes = f"{summary.fewest_documents:,} to {summary.most_documents:,}, mean {summary.mean_documents:.1f}"
        rows.append([name, f"{summary.documents:,}", f"{summary.queries:,}", sizes, f"{summary.features:,}",
                     f"{summary.density:.1%}", f"{summary.missing:.1%}"])  # fmt: skip
        labels += [[name, source, f"{label.labelled:,}", str(label)] for source, label in summary.labels.items()]
        mistakes += [f"{name}: {warning}" for warning in summary.warnings]
    columns = ["data", "documents", "queries", "documents per query", "features", "nonzero values", "missing values"]
    parts: list[Part] = [Numbers("Size of the data", Table(columns, rows))]
    if labels:
        parts.append(Numbers("Labels", Table(["data", "source", "labelled documents", "shares"], labels)))
    else:
        parts.append(Missing("The data has no labels."))
    parts.append(Warned(tuple(mistakes)) if mistakes else Words("Podium found no likely mistakes in the data."))
    return Section("data", "Data", tuple(parts))


def repeat_section(subject: Subject) -> Section:
    """Return the parameters, digests and versions that are needed to repeat the run."""
    parts: list[Part] = []
    if subject.parameters:
        rows = [[name, _text(value)] for name, value in subject.parameters.items()]
        parts.append(Numbers("Training parameters", Table(["parameter", "value"], rows)))
    else:
        parts.append(Missing("The training parameters are unknown: only Podium's own models store them."))
    facts: list[list[Any]] = [[name, value] for name, value in subject.facts.items()]
    if subject.model is not None:
        facts += [["model", repr(subject.model)], ["digest of the model", subject.model.digest()]]
        if subject.model.reading:
            facts.append(["how the data was read", ", ".join(f"{k}={v}" for k, v in subject.model.reading.items())])
    facts += [[f"digest of the {name} data", digest_of(data).hex()] for name, data in subject.sets.items()]
    facts += [[f"{name} (report)", text] for name, text in versions().items()]
    parts.append(Numbers("Model, data and versions", Table(["fact", "value"], facts)))
    parts.append(
        Words(
            "The same data, parameters and seed give the same model, bit for bit, for any number of threads and any "
            "order of rows. Models with equal digests give equal scores. Data with equal digests has the same "
            "documents, queries and labels."
        )
    )
    return Section("repeat", "How to repeat the run", tuple(parts))


def _text(value: Any) -> str:
    return "none" if value is None or value == "()" else str(value)


POINTS = 12
SCORED_DOCUMENTS = 100_000
NEAR = 0.002  # a model is nearly as good if its mean of the measure is at most this much lower
REPEATS = 5


def cost_section(subject: Subject, advance: Callable[..., None]) -> Section:
    """Return the measure with only the first trees, and with `timing` the speed of each system."""
    title = "Speed against accuracy"
    if not subject.evaluations:
        return Section("cost", title, (Missing(NO_LABELS),))
    parts: list[Part] = []
    if subject.n_rounds > 1:
        parts += _by_trees(subject, advance)
    else:
        parts.append(Missing("Only a sum of trees can be truncated to its first trees."))
    parts += _sizes(subject)
    return Section("cost", title, tuple(parts))


def _by_trees(subject: Subject, advance: Callable[..., None]) -> list[Part]:
    measure = subject.measures[0]
    part = sample(subject.data, SCORED_DOCUMENTS)
    fixed = measure.fixed_like(*measures_of([subject.ranker]))
    points = []
    for k in subject.rounds(POINTS, by_ratio=True):
        ranking = Ranking(part, subject.scores_at(part, k))
        evaluation = Evaluation(part.query_ids, {str(measure): fixed.values(ranking)}, weights=weights_in_means(part))
        points.append((k + 1, evaluation.means[str(measure)], *evaluation.intervals[str(measure)]))
        advance(1, "scoring with the first trees")
    whole = points[-1][1]
    enough = next(n for n, mean, *_ in points if mean >= whole - NEAR)
    near = f"within {NEAR:g} of the whole model{sample_size_text(part, subject.data)}"
    advice = (
        f"The first {enough} of {subject.n_rounds} trees come {near}: score with predict(…, n_trees={enough})."
        if enough < subject.n_rounds
        else f"No smaller number of trees comes {near}."
    )
    words = f"Time grows with the number of trees. {advice}"
    return [Words(words), Figures(figures_of(speed_chart(points, str(measure))))]


def _sizes(subject: Subject) -> list[Part]:
    """Return the kind, the mean and, if measured, the speed of each system."""
    measure = str(subject.measures[0])
    columns, rows = ["system", "what it is", measure], []
    for name, system in subject.systems.items():
        model = model_of(system)
        kind = repr(model) if isinstance(model, Model) else type(system).__name__ if can_score(system) else "scores"
        rows.append([name, kind, subject.evaluations[name].means[measure]])
    parts: list[Part] = []
    if subject.timing:
        columns.append("µs per document")
        part = sample(subject.data, 20_000)
        for row, system in zip(rows, subject.systems.values(), strict=True):
            row.append(_microseconds(system, part) if can_score(system) else None)
        parts.append(
            Words(f"Times are for one thread, the fastest of {REPEATS} runs over {part.n_documents:,} documents.")
        )
    parts.append(Numbers("Systems", Table(columns, rows)))
    if not subject.timing:
        reason = "Times are not measured, so that the same data gives the same report"
        parts.append(Missing(f"{reason}: to measure them, use report(…, timing=True) or podium report --timing."))
    return parts


def _microseconds(system: Any, data: RankingData) -> float:
    """Return the time to score a document, not counting a first run that may compile kernels."""
    model = model_of(system)
    ranker = model.scorer(n_threads=1) if isinstance(model, Model) and model is system else None
    times = []
    for _ in range(REPEATS + 1):
        started = time.perf_counter()
        _ = ranker(data) if ranker is not None else scores_of(system, data, 1)
        times.append(time.perf_counter() - started)
    return float(np.min(times[1:])) / max(1, len(data)) * 1e6
