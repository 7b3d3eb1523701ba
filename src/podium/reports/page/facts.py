"""The sections of facts: what is in the data, and what is needed to repeat the run."""

from __future__ import annotations

from typing import Any

from podium.core.versions import versions
from podium.data import RankingData
from podium.data.canonical import digest_of
from podium.evaluation.tables import Table
from podium.reports.page.contents import Missing, Numbers, Part, Section, Warned, Words
from podium.reports.page.subject import Subject


def data_section(subject: Subject) -> Section:
    """Counts, labels and warnings of every data set."""
    summaries = {name: data.summary() for name, data in subject.sets.items()}
    rows: list[list[Any]] = []
    labels: list[list[Any]] = []
    warned: list[str] = []
    for name, found in summaries.items():
        sizes = f"{found.fewest_documents:,} to {found.most_documents:,}, mean {found.mean_documents:.1f}"
        rows.append([name, f"{found.documents:,}", f"{found.queries:,}", sizes, f"{found.features:,}",
                     f"{found.density:.1%}", f"{found.missing:.1%}"])  # fmt: skip
        labels += [[name, source, f"{label.labelled:,}", str(label)] for source, label in found.labels.items()]
        warned += [f"{name}: {warning}" for warning in found.warnings]
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
        parts.append(Missing("The parameters of training are not known: they stand in Podium's own models."))
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
