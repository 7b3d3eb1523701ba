"""The sections on training: learning curves, and what happened to the ranking round by round."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from podium.core.array_types import Floats
from podium.data import RankingData
from podium.diagnostics import WatchLambdaShares, WatchRankChanges, WatchTopLabels
from podium.errors import PodiumError
from podium.objectives import Objective
from podium.reports.page.contents import Figures, Missing, Part, Section, Words, figures_of
from podium.reports.page.measuring import warnings_of
from podium.reports.page.subject import Subject, has_labels, of_some, sample
from podium.reports.query_charts import top_labels_chart
from podium.reports.training_charts import history_chart, lambda_shares_chart, rank_changes_chart

LOOKS = 25  # rounds that are looked at
MOST_DOCUMENTS = 50_000  # that are ranked again after each of them
TOP = 3
OBSERVERS = {"λ shares": "WatchLambdaShares", "labels at the top": "WatchTopLabels", "rank changes": "WatchRankChanges"}


def learning_section(subject: Subject) -> Section:
    """Return what was measured after each round, with the round that was chosen."""
    measured = {name: values for name, values in subject.history.items() if "/" in name and len(values)}
    best = subject.info.get("best_iteration", getattr(subject.ranker, "best_iteration_", None))
    before = subject.info.get("submodel_means")
    if not measured:
        text = (
            "Nothing was measured during training, or it is not known here: fit(…, valid=…) or podium train --valid; a "
            "model that was loaded from a file has it from report(…, history=model.history_)."
        )
        return Section("learning", "Learning curves", (Missing(text),))
    chart = history_chart(measured, best, before)
    n_rounds = max(len(values) for values in measured.values())
    caption = "After each round" if len({name.partition("/")[2] for name in measured}) > 1 else ""
    chosen = (
        f"Round {best + 1} of {n_rounds} was chosen by {next(iter(measured))}: it is marked, and the model ends there."
        if isinstance(best, int) and best >= 0
        else f"There were {n_rounds} rounds, and the model has them all."
        if best is None
        else "No round was better than the submodel alone."
    )
    return Section("learning", "Learning curves", (Words(chosen), Figures(figures_of(chart, caption))))


@dataclass(frozen=True)
class _Replayed:
    """A round of a model that is trained already, as observers take it."""

    iteration: int
    data: RankingData
    objective: Objective | None
    document_scores: Floats
    means: dict[str, float] = field(default_factory=dict)


def ranking_section(subject: Subject, advance: Callable[..., None]) -> Section:
    """λ shares, labels at the top and rank changes: as observers saw them, or from the trees once more."""
    title = "The ranking while it was learnt"
    seen = _from_history(subject)
    if len(seen) == len(OBSERVERS) or (seen and not subject.n_rounds):
        parts: list[Part] = [Words("As observers saw the training queries.")]
        parts += [Figures(figures_of(chart)) for chart in seen.values()]
        absent = [observer for name, observer in OBSERVERS.items() if name not in seen]
        if absent:
            parts.append(Missing(f"Not observed: {', '.join(absent)}. fit(…, observers=[{absent[0]}()]) adds it."))
        return Section("ranking", title, tuple(parts))
    if not subject.n_rounds:
        names = ", ".join(f"{name}()" for name in OBSERVERS.values())
        why = "Training was not observed, and this model is not a sum of trees that can be replayed"
        text = f"{why}: fit(…, observers=[{names}]), from podium.diagnostics."
        return Section("ranking", title, (Missing(text),))
    where = "train" if "train" in subject.sets else subject.data_name
    data = subject.sets[where]
    if not has_labels(data):
        return Section("ranking", title, (Missing("The data has no labels 'relevance'."),))
    part = sample(data, MOST_DOCUMENTS)
    words = Words(
        f"The first trees of the model, scored once more on the {where} data{of_some(part, data)}"
        f"{_by_objective(subject)}."
    )
    return Section("ranking", title, (words, *_replay(subject, part, advance)))


def _by_objective(subject: Subject) -> str:
    try:
        return f"; λ are those of {subject.objective[0]}"
    except PodiumError:
        return ""


def _from_history(subject: Subject) -> dict[str, Any]:
    """Charts of what observers left in the history."""
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


def _replay(subject: Subject, data: RankingData, advance: Callable[..., None]) -> list[Part]:
    """Return what observers would have seen of some of the rounds."""
    labels = data.relevance[np.isfinite(data.relevance)]
    good = tuple(float(label) for label in np.unique(labels)[1:][-2:])
    watches: dict[str, Any] = {}
    parts: list[Part] = []
    try:
        objective: Objective | None = subject.objective[1]
    except PodiumError as error:
        objective = None
        parts.append(Missing(warnings_of(error)))
    watches["top"] = WatchTopLabels(TOP, every=1)
    watches["changes"] = WatchRankChanges(TOP, every=1)
    if objective is not None and good:
        watches["shares"] = WatchLambdaShares(objective, of_labels=good, every=1)
    for k in subject.rounds(LOOKS):
        round_ = _Replayed(k, data, objective, subject.scores_at(data, k))
        for name, watch in list(watches.items()):
            try:
                watch(round_)
            except PodiumError as error:
                del watches[name]
                parts.append(Missing(warnings_of(error)))
        advance(1, "looking back on the rounds")
    charts: dict[str, Callable[[Any], Any]] = {
        "shares": lambda_shares_chart,
        "top": top_labels_chart,
        "changes": rank_changes_chart,
    }
    captions = {"changes": "Ranks with another document than at the look before"}
    drawn = [
        figure
        for name, chart in charts.items()
        if name in watches
        for figure in figures_of(chart(watches[name].result()), captions.get(name, ""))
    ]
    return [Figures(tuple(drawn)), *parts] if drawn else parts
