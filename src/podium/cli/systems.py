"""What `podium evaluate` and `podium compare` share: labelled data, and the rankings of systems."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from podium.cli.options import with_options
from podium.cli.reading import Reader, for_model, with_columns

if TYPE_CHECKING:
    from podium.evaluation.tables import Table


class Shape(StrEnum):
    """How a table is shown."""

    text = "text"
    markdown = "markdown"
    latex = "latex"
    csv = "csv"
    json = "json"


class Preset(StrEnum):
    """Other people's conventions."""

    letor3 = "letor3"
    letor4 = "letor4"


Data = Annotated[str, typer.Argument(help="Ranking data with labels, or with --qrels TREC judgements.")]
MeasureOption = Annotated[
    list[str] | None, typer.Option("--measure", "-m", help="Such as ndcg@10, err, 'ndcg(empty=skip)@5'; repeatable.")
]
PresetOption = Annotated[Preset | None, typer.Option(help="Reckon as LETOR's evaluation scripts do.")]
QrelsOption = Annotated[bool, typer.Option("--qrels", help="The data are TREC judgements, the scores TREC runs.")]
DropOption = Annotated[bool, typer.Option("--drop-uniform", help="Leave out queries whose labels are all equal.")]
ShapeOption = Annotated[Shape, typer.Option("--as", help="How to show tables.")]


@dataclass(frozen=True)
class _Scored:
    """Scores by a model, an array, with what the model knows of its training: the highest label, for one."""

    scores: Any
    info: dict[str, Any]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.scores if dtype is None else self.scores.astype(dtype)


def measures_of(names: list[str] | None, preset: Preset | None) -> list[Any]:
    """The measures that were asked for, by the conventions of a preset."""
    from podium.measures import letor, parse
    from podium.measures.presets import DEFAULT

    chosen = [parse(name) for name in names or (DEFAULT if preset else ("ndcg@10",))]
    return letor(chosen, 3 if preset is Preset.letor3 else 4) if preset else list(chosen)


def models_of(systems: Iterable[str]) -> dict[str, Any]:
    """Those of the systems that are model files, loaded."""
    from podium.models import load
    from podium.models.archive import is_archive

    return {where: load(where) for where in systems if not where.startswith("feature:") and is_archive(where)}


def named_systems(entries: list[str]) -> dict[str, str]:
    """Where the scores of systems are, by name, of arguments NAME=SCORES."""
    named: dict[str, str] = {}
    for entry in entries:
        name, equals, where = entry.partition("=")
        if not (name and equals and where) or name in named:
            raise typer.BadParameter(f"systems are given as NAME=SCORES with different names, not {entry!r}")
        named[name] = where
    return named


def reader_for(reader: Reader, models: dict[str, Any], n_systems: int) -> Reader:
    """How to read the labelled data: as for the models, or else with what these know of its columns."""
    readers = [for_model(reader, model, where) for where, model in models.items()]
    if len(models) == n_systems and all(one.keywords == readers[0].keywords for one in readers):
        return readers[0]
    for where, model in models.items():
        reader = with_columns(reader, model, where)
    return reader


def read_labelled(source: str, is_qrels: bool, reader: Reader) -> Any:
    """Ranking data, or TREC judgements."""
    if is_qrels:
        from podium.evaluation import read_qrels

        return read_qrels(source)
    return reader([source])


def scores_by(
    where: str, data: Any, files: list[str], reader: Reader, data_reader: Reader, models: dict[str, Any]
) -> Any:
    """Scores from a file or by a model file, or `feature:NAME`, a feature as the file names it."""
    from podium.errors import DataError
    from podium.evaluation.trec import read_scores

    kind, colon, name = where.partition(":")
    if kind == "feature" and colon:
        if not hasattr(data, "feature_names"):
            raise DataError(f"{where!r}: TREC judgements have no features; give a run")
        if data.feature_names is None:
            raise DataError(f"{where!r}: the features of this data have no names")
        return data.feature(name)
    if where not in models:
        return read_scores(where)
    if not hasattr(data, "feature_names"):
        raise DataError(f"{where}: TREC judgements have no features for a model to score; give a run")
    model = models[where]
    own_reader = for_model(reader, model, where)
    documents = data if own_reader.keywords == data_reader.keywords else own_reader(files)
    return _Scored(model.predict(documents), model.info)


def show(table: Table, shape: Shape) -> None:
    """Print a table."""
    if shape is Shape.text and sys.stdout.isatty():
        from rich.console import Console

        Console().print(table)
    else:
        typer.echo(table.render(shape.value))


class Ranked(NamedTuple):
    """Labelled data, the scores of each system by name, and what to measure."""

    documents: Any
    scores: dict[str, Any]
    measures: list[Any]
    drop_uniform: bool


def _rank(
    data: str,
    systems: Mapping[str, str],
    reader: Reader,
    *,
    measure: MeasureOption = None,
    preset: PresetOption = None,
    qrels: QrelsOption = False,
    drop_uniform: DropOption = False,
) -> Ranked:
    """Read the data and the scores of the systems, each as its model needs it."""
    models = models_of(systems.values())
    data_reader = reader_for(reader, models, len(set(systems.values())))
    documents = read_labelled(data, qrels, data_reader)
    scores = {name: scores_by(where, documents, [data], reader, data_reader, models) for name, where in systems.items()}
    return Ranked(documents, scores, measures_of(measure, preset), drop_uniform)


ranks_systems = with_options(_rank, "rank")  # a command's argument `rank` takes the data, the systems and the reader
