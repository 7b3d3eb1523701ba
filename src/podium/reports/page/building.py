"""Collects the sections of a report and renders them as a single HTML page."""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from podium.core.files import write_text
from podium.core.pages import base_style
from podium.core.progress import progress
from podium.core.validation import require_whole, to_path
from podium.data import RankingData
from podium.data.schema import as_data
from podium.errors import DataError, MissingExtraError, PodiumWarning
from podium.evaluation import Comparison, Evaluation, compare
from podium.evaluation.evaluating import Measures, as_measures, evaluated, measures_of, rankings_of
from podium.measures import Measure, Ranking, as_measure, warn_of_powers
from podium.models.base import model_of
from podium.reports.charts import FONT, safe_in_script, theme
from podium.reports.page.contents import Figures, Queries, Report, Section
from podium.reports.page.features import feature_sections
from podium.reports.page.queries import STEPS, queries_section
from podium.reports.page.sections import (
    LOOKS,
    POINTS,
    comparison_section,
    cost_section,
    data_section,
    learning_section,
    measures_section,
    ranking_section,
    repeat_section,
)
from podium.reports.page.subject import Subject, has_labels

PACKAGE = "podium.reports.page"


def require_extra() -> None:
    """Raise if a package of the extra `report` is missing."""
    for module, package in (("altair", "altair"), ("jinja2", "jinja2"), ("vl_convert", "vl-convert-python")):
        try:
            __import__(module)
        except ImportError:
            raise MissingExtraError(package, "report", "a report") from None


def as_html(report: Report) -> str:
    """Return a report as HTML."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(PACKAGE), autoescape=True, trim_blocks=True, lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )  # fmt: skip
    environment.filters["signed"] = signed
    environment.filters["number"] = lambda value: f"{value:.4g}"
    charts = [figure.spec for section in report.sections for part in section.parts if isinstance(part, Figures)
              for figure in part.figures]  # fmt: skip
    arrows = {
        f"{section.key}-{k}": query.arrows
        for section in report.sections
        for part in section.parts
        if isinstance(part, Queries)
        for k, query in enumerate(part.queries)
        if query.arrows is not None
    }
    themes = {"light": theme(), "dark": theme(dark=True), "font": FONT}
    content = {"charts": charts, "arrows": arrows, "themes": themes}
    return environment.get_template("report.html").render(
        report=report,
        style=re.sub(r"\n\s*", "\n", base_style() + _file("report.css")),
        data=safe_in_script(json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)),
        library=_library() if charts else "",
        script=_file("report.js"),
    )


def signed(value: float) -> str:
    """Format a number with its sign."""
    return f"{'−' if value < 0 else '+'}{abs(value):.3g}"


def _file(name: str) -> str:
    return files(PACKAGE).joinpath("templates", name).read_text(encoding="utf-8")


@cache
def _library() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script."""
    import vl_convert

    bundle: Any = vl_convert.javascript_bundle
    return f"(function () {{{bundle()}}})();".replace("</script", "<\\/script")


MEASURES = ("ndcg@10", "err@10", "ap")


def report(
    model: Any,
    data: Any,
    path: str | os.PathLike[str],
    *,
    train: Any = None,
    valid: Any = None,
    others: Mapping[str, Any] | None = None,
    measures: Measures | None = None,
    history: Mapping[str, Sequence[float]] | None = None,
    name: str = "model",
    data_name: str = "test",
    queries: int = 5,
    timing: bool = False,
    facts: Mapping[str, str] | None = None,
) -> Path:
    """Write a report on a model as a single HTML file that works offline (extra `report`).

    The report has sections on:

    - measures with intervals, and a comparison with other models
    - the worst, best and most changed queries: their ranked lists, deciding features, and λ by round
    - learning curves, and the ranking during training
    - three kinds of feature importance, contributions and partial dependence
    - speed against accuracy
    - a summary of the data with warnings
    - everything needed to repeat the run

    If a section cannot be computed, the report says why and what to do about it. The same model and data give the same
    file.

    Args:
        model: a model, an estimator, a function, or any object with `predict`; or scores, for fewer sections.
        data: the test data, as for `evaluate`.
        path: the `.html` file to write.
        train, valid: the training and validation data of the model, to evaluate and summarize as well.
        others: models or scores to compare with, by name.
        measures: the measures to report; the first one selects the queries to show. By default the measures of
            training, NDCG@10, ERR@10 and AP.
        history: `model.history_`, for a net or linear model loaded from a file.
        name: the name of the model in the report.
        data_name: the name of the test data; `"valid"` or `"train"` if it is that data.
        queries: the number of queries of each kind to show.
        timing: whether to measure the speed of scoring; the file then differs from run to run.
        facts: facts about the run by name, to show in the section on how to repeat it.

    Returns:
        The path.

    Example:
        >>> import podium
        >>> train, test = podium.artificial(20, features=4), podium.artificial(10, features=4, part="test")
        >>> model = podium.LambdaMART(n_trees=3, n_leaves=4).fit(train)
        >>> podium.report(model, test, "report.html", train=train, others={"first feature": test.feature(0)}).name
        'report.html'

    """
    path = _checked_path(path)
    require_whole("queries", queries, 1)
    if name in (others or {}):
        raise DataError(f"others: {name!r} is already the name of the model: rename it, or pass name=…")
    with _recorded_warnings() as warnings_so_far, progress("report", STEPS + LOOKS + POINTS + 4) as advance:
        subject = subject_of(
            {name: model, **(others or {})}, data, data_name, {"train": train, "valid": valid}, measures,
            history=history, facts=facts or {}, n_listed=queries, timing=timing,
        )  # fmt: skip
        sections = [
            measures_section(subject),
            comparison_section(subject),
            queries_section(subject, advance),
            learning_section(subject),
            ranking_section(subject, advance),
            *feature_sections(subject, advance),
            cost_section(subject, advance),
            data_section(subject),
            repeat_section(subject),
        ]
        html = as_html(_content(subject, sections, warnings_so_far()))
    write_text(path, html)
    return path


def comparison_report(
    systems: Mapping[str, Any], data: Any, path: str | os.PathLike[str], comparison: Comparison | None = None
) -> Path:
    """Write a comparison of rankings as a single HTML file with those sections of `report` that need no model.

    Args:
        systems: scores, models or TREC runs by name.
        data: the test data, as for `compare`.
        path: the `.html` file to write.
        comparison: the result of `compare` for these systems; computed for NDCG@10 by default.

    Example:
        >>> import podium
        >>> from podium.reports.page import comparison_report
        >>> data = podium.artificial(20, features=4)
        >>> comparison_report({"a": data.feature(0), "b": data.feature(1)}, data, "comparison.html").name
        'comparison.html'

    """
    path = _checked_path(path)
    comparison = compare(data, systems) if comparison is None else comparison
    names = list(systems)
    ordered = {name: systems[name] for name in (names[-1], *names[:-1])}  # the page compares the last with the others
    with _recorded_warnings() as warnings_so_far, progress("report", 2) as advance:
        subject = subject_of(ordered, data, "test", {}, None, comparison=comparison, n_listed=5)
        sections = [comparison_section(subject), queries_section(subject, advance), data_section(subject)]
        html = as_html(_content(subject, sections, warnings_so_far()))
    write_text(path, html)
    return path


def _checked_path(path: str | os.PathLike[str]) -> Path:
    """Return the path of the file to write; raise if its suffix is wrong or a package is missing."""
    require_extra()
    path = to_path(path)
    if path.suffix.lower() not in (".html", ".htm"):
        raise DataError(f"{path}: a report file must end in .html, but got {path.suffix!r}")
    return path


def subject_of(
    systems: dict[str, Any], data: Any, data_name: str, sets: Mapping[str, Any], measures: Measures | None, *,
    comparison: Comparison | None = None, history: Mapping[str, Sequence[float]] | None = None,
    facts: Mapping[str, str] = MappingProxyType({}), n_listed: int, timing: bool = False,
) -> Subject:  # fmt: skip
    """Return the data, rankings and evaluations that the sections share; the report is about the first system."""
    name, ranker = next(iter(systems.items()))
    data, ranked = rankings_of(data, list(systems.values()))
    if not data.n_queries:
        raise DataError("cannot write a report: the data has no documents")
    rankings = dict(zip(systems, ranked, strict=True))
    info = getattr(model_of(ranker), "info", {})
    if comparison is not None:
        evaluations = {system: comparison.evaluations[system] for system in systems}
        used = [as_measure(text) for text in evaluations[name].values]
        evaluation: Evaluation | None = evaluations[name]
    else:
        used = _measures(data, measures, info)
        evaluation, evaluations = _evaluated(data, rankings, systems, used) if used else (None, {})
    if history is None:
        history = getattr(ranker, "history_", None) or info.get("history")
    all_sets = {data_name: data} | {
        key: as_data(part) for key, part in sets.items() if part is not None and key != data_name
    }
    return Subject(
        name, ranker, data, data_name, rankings, evaluations, evaluation, comparison, systems, tuple(used), all_sets,
        history if isinstance(history, Mapping) else {}, facts, n_listed, timing,
    )  # fmt: skip


def _evaluated(
    data: RankingData, rankings: dict[str, Ranking], systems: dict[str, Any], measures: list[Measure]
) -> tuple[Evaluation, dict[str, Evaluation]]:
    """Evaluate the first system as `evaluate` does, and all systems as `compare` does."""
    warn_of_powers(measures, data)
    all_trained, first = measures_of(systems.values()), next(iter(systems))
    evaluations = {
        system: evaluated(data, ranking, measures, False, system, all_trained) for system, ranking in rankings.items()
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PodiumWarning)  # the evaluations above have already issued them
        return evaluated(data, rankings[first], measures, False, trained_by=measures_of([systems[first]])), evaluations


def _measures(data: RankingData, measures: Measures | None, info: dict[str, Any]) -> list[Measure]:
    """Return the measures to report: those that the data has labels for."""
    if measures is not None:
        return as_measures(measures) if any(has_labels(data, source) for source in data.labels) else []
    trained = info.get("measures", [])
    texts = [text for text in trained if isinstance(text, str)] if isinstance(trained, list) else []
    by_name: dict[str, Measure] = {}
    for text in (*texts, *MEASURES):
        try:
            measure = as_measure(text)
        except DataError:  # a custom measure that is not registered in this process
            continue
        if has_labels(data, measure.labels):
            by_name.setdefault(str(measure), measure)
    return list(by_name.values())


@contextmanager
def _recorded_warnings() -> Iterator[Callable[[], list[str]]]:
    """Yield a function that returns Podium's warnings so far, for the report. Issue all other warnings at the end."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PodiumWarning)
        yield lambda: list(dict.fromkeys(str(w.message) for w in caught if issubclass(w.category, PodiumWarning)))
    for warning in caught:
        if not issubclass(warning.category, PodiumWarning):
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def _content(subject: Subject, sections: list[Section], messages: list[str]) -> Report:
    data, evaluation = subject.data, subject.evaluation
    headline = []
    if evaluation is not None:
        for measure, mean in evaluation.means.items():
            low, high = evaluation.intervals[measure]
            spread = f" ({low:.4f} to {high:.4f})" if np.isfinite([low, high]).all() else ""
            headline.append((measure, ("–" if np.isnan(mean) else f"{mean:.4f}") + spread))
    what = repr(subject.model) if subject.model is not None else "scores"
    tested = "" if subject.data_name == "test" else f" of the {subject.data_name} data"
    summary = f"{what}, tested on {data.n_documents:,} documents of {data.n_queries:,} queries{tested}"
    return Report(f"Podium: {subject.name}", summary, tuple(headline), tuple(messages), tuple(sections))
