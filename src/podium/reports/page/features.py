"""The sections on features: three kinds of importance, contributions, partial dependence."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from podium.data import RankingData
from podium.data.sparse import dense_block
from podium.errors import PodiumError
from podium.evaluation.tables import Table
from podium.explain import Explanation, explain, partial_dependence, permutation_importance
from podium.models.base import model_of, shown_name
from podium.reports.feature_charts import importance_chart, summary_chart
from podium.reports.page.contents import (
    Figure,
    Figures,
    Missing,
    Numbers,
    Part,
    Section,
    Words,
    figures_of,
    sentence_of,
)
from podium.reports.page.subject import Subject, has_labels, sample, sample_size_text

EXPLAINED = 600  # documents to explain
BACKGROUND = 100  # documents to compare with if a model stores no training documents
SHUFFLED_VALUES = 2_000_000  # maximum number of feature values to shuffle
DEPENDENCE_DOCUMENTS = 2_000
Intervals = dict[str, tuple[float, float]]
SHOWN = 12  # features in a chart
MOST_ROWS = 50  # features in the table of importance
CURVES = 6  # features with a partial dependence
SCORES_ALONE = "This section needs a model, but the report has only scores."


def explained(ranker: Any, data: RankingData) -> Explanation:
    """Explain the scores, with a sample of the data as background if the model stores no training documents."""
    method = getattr(ranker, "explain", None)
    if method is None or model_of(ranker) is ranker:
        method = partial(explain, ranker)
    try:
        return method(data)
    except PodiumError as error:
        try:
            background = np.unique(np.linspace(0, len(data) - 1, min(BACKGROUND, len(data))).astype(np.int64))
            return method(data, data.take(background))
        except PodiumError:
            raise error from None


def feature_sections(subject: Subject, advance: Callable[..., None]) -> list[Section]:
    """Return the sections on importance, contributions and partial dependence."""
    titles = {"importance": "Feature importance", "contributions": "Contributions of features",
              "dependence": "Partial dependence"}  # fmt: skip
    if not subject.can_score:
        return [Section(key, title, (Missing(SCORES_ALONE),)) for key, title in titles.items()]
    explanation: Explanation | PodiumError
    try:
        explanation = explained(subject.ranker, sample(subject.data, EXPLAINED))
    except PodiumError as error:
        explanation = error
    advance(1, "explaining scores")
    order, importance = _importance(subject, explanation)
    advance(1, "shuffling features")
    contributions = _contributions(subject, explanation)
    dependence = _dependence(subject, order)
    advance(1, "partial dependence")
    contents = (importance, contributions, dependence)
    return [Section(key, title, tuple(parts)) for (key, title), parts in zip(titles.items(), contents, strict=True)]


def _importance(subject: Subject, explanation: Explanation | PodiumError) -> tuple[list[str], list[Part]]:
    """Return the parts on importance, and the features by decreasing importance."""
    kinds: dict[str, tuple[dict[str, float], Intervals]] = {}  # values and intervals by feature, for each kind
    figures: list[Figure] = []
    missing: list[Part] = []
    if subject.model is not None:
        gains = subject.model.importance()
        names = [subject.model.label_of_feature(k) for k in range(len(gains))]
        kinds["share of the gain"] = dict(zip(names, (gains / (gains.sum() or 1.0)).tolist(), strict=True)), {}
    else:
        missing.append(Missing("Only Podium's own models report the share of the gain."))
    part = sample(subject.data, max(500, SHUFFLED_VALUES // max(1, subject.data.n_features)))
    measure = next((m for m in subject.measures if has_labels(subject.data, m.labels)), None)
    try:
        if measure is None:
            missing.append(Missing("Permutation importance needs labels, but the data has none."))
        else:
            table = permutation_importance(subject.ranker, part, measure, repeats=2)
            intervals = {shown_name(row[0]): (row[2], row[3]) for row in table.rows}
            kinds[f"{table.columns[1]} when shuffled"] = {shown_name(row[0]): row[1] for row in table.rows}, intervals
    except PodiumError as error:
        missing.append(Missing(sentence_of(error)))
    if isinstance(explanation, Explanation):
        kinds["mean |contribution|"] = {row[0]: row[1] for row in explanation.importance().rows}, {}
    for kind, (values, intervals) in kinds.items():
        ends = list(intervals.values())
        are_finite = bool(ends) and bool(np.isfinite(ends).all())  # intervals are undefined for a single query
        chart = importance_chart(
            list(values), list(values.values()), kind, intervals=ends if are_finite else None, top=SHOWN
        )
        figures += figures_of(chart, kind[:1].upper() + kind[1:])
    if not kinds:
        return [], missing
    last, _ = list(kinds.values())[-1]
    order = sorted(last, key=lambda name: -last[name])
    documents = f"{part.n_documents:,} documents{sample_size_text(part, subject.data)}"
    words = f"Permutation importance shuffles each feature among {documents}; its 95% intervals are over queries."
    return order, [Words(words), Figures(tuple(figures)), _table(kinds, order), *missing]


def _table(kinds: dict[str, tuple[dict[str, float], Intervals]], order: list[str]) -> Part:
    columns = ["feature"]
    rows: list[list[Any]] = [[name] for name in order]
    for kind, (values, intervals) in kinds.items():
        columns += [kind, *(["95% from", "to"] if intervals else [])]
        for row in rows:
            row.append(values.get(row[0]))
            row.extend(intervals.get(row[0], (None, None)) if intervals else ())
    cut = f", the first {MOST_ROWS} of {len(rows)}" if len(rows) > MOST_ROWS else ""
    return Numbers(f"Feature importance as numbers{cut}", Table(columns, rows[:MOST_ROWS]), folded=True)


def _contributions(subject: Subject, explanation: Explanation | PodiumError) -> list[Part]:
    if not isinstance(explanation, Explanation):
        return [Missing(sentence_of(explanation))]
    words = (
        f"Each point is a document, placed by what the feature contributes to its score ({explanation.method}). The "
        f"base, {explanation.base:.4g}, and all contributions add up to the score. The table summarizes the colours."
    )
    directions = Numbers("How scores change with features", _directions(explanation))
    return [Words(words), Figures(figures_of(summary_chart(explanation, SHOWN))), directions]


def _directions(explanation: Explanation) -> Table:
    """Return the mean |contribution| of the most important features, and its correlation with their values."""
    from scipy import stats

    rows: list[list[Any]] = []
    means = np.abs(explanation.values).mean(axis=0)
    for k in np.argsort(-means, kind="stable")[:SHOWN].tolist():
        amounts, values = explanation.values[:, k], dense_block(explanation.features, slice(None), np.float64)[:, k]
        values, amounts = values[~np.isnan(values)], amounts[~np.isnan(values)]
        agreement = float("nan")
        is_number = k not in explanation.encoding.categories
        if is_number and len(values) > 2 and np.ptp(values) > 0 and np.ptp(amounts) > 0:
            agreement = float(stats.spearmanr(values, amounts).statistic)
        direction = (
            "–" if np.isnan(agreement) else "rises" if agreement > 0.3 else "falls" if agreement < -0.3 else "mixed"
        )
        rows.append([explanation.names[k], float(means[k]), direction, agreement])
    return Table(["feature", "mean |contribution|", "with higher values, the score", "rank correlation"], rows)


def _dependence(subject: Subject, order: list[str]) -> list[Part]:
    """Return the mean score by the value of each of the most important features."""
    part = sample(subject.data, DEPENDENCE_DOCUMENTS)
    names = [shown_name(name) for name in part.feature_names or range(part.n_features)]
    figures: list[Figure] = []
    for name in [name for name in order if name in names][:CURVES]:
        try:
            dependence = partial_dependence(subject.ranker, part, names.index(name), grid=20, ice=15)
        except PodiumError as error:
            return [Missing(sentence_of(error))]
        figures += figures_of(dependence.plot(), name)
    if not figures:
        return [Missing("No feature has a measurable importance.")]
    words = (
        f"The mean score if a feature had the same value in all {part.n_documents:,} documents"
        f"{sample_size_text(part, subject.data)}, with thin lines for single documents."
    )
    return [Words(words), Figures(tuple(figures))]
