"""The commands that measure and compare rankings."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podium.cli.reading import Reader, for_model, reads_data, with_columns

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
    """Scores by a model, with what it knows of its training: the highest label, for one."""

    scores: Any
    info: dict[str, Any]

    def __call__(self, data: Any) -> Any:
        return self.scores


def _measures(names: list[str] | None, preset: Preset | None) -> list[Any]:
    from podium.measures import letor, parse
    from podium.measures.presets import DEFAULT

    chosen = [parse(name) for name in names or (DEFAULT if preset else ("ndcg@10",))]
    return letor(chosen, 3 if preset is Preset.letor3 else 4) if preset else list(chosen)


def _models(systems: Iterable[str]) -> dict[str, Any]:
    """Those of the systems that are model files, loaded."""
    from podium.models import load
    from podium.models.archive import is_archive

    return {where: load(where) for where in systems if not where.startswith("feature:") and is_archive(where)}


def _reader(reader: Reader, models: dict[str, Any], n_systems: int) -> Reader:
    """How to read the labelled data: as for the models, or else with what these know of its columns."""
    readers = [for_model(reader, model, where) for where, model in models.items()]
    if len(models) == n_systems and all(one.keywords == readers[0].keywords for one in readers):
        return readers[0]
    for where, model in models.items():
        reader = with_columns(reader, model, where)
    return reader


def _data(source: str, is_qrels: bool, reader: Reader) -> Any:
    if is_qrels:
        from podium.evaluation import read_qrels

        return read_qrels(source)
    return reader([source])


def _scores(
    where: str, data: Any, files: list[str], reader: Reader, data_reader: Reader, models: dict[str, Any]
) -> Any:
    """Scores from a file or by a model file, or `feature:NAME`, a feature as the file names it."""
    from podium.errors import DataError
    from podium.evaluation.scores import read_scores

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
    wanted = for_model(reader, model, where)
    documents = data if wanted.keywords == data_reader.keywords else wanted(files)
    return _Scored(model.predict(documents), model.info)


def _show(table: Table, shape: Shape) -> None:
    if shape is Shape.text and sys.stdout.isatty():
        from rich.console import Console

        Console().print(table)
    else:
        typer.echo(table.render(shape.value))


@reads_data
def evaluate(
    data: Data,
    scores: Annotated[
        str,
        typer.Argument(help="A model file, a file with one score per line, a TREC run, or feature:NAME."),
    ],
    reader: Reader,
    measure: MeasureOption = None,
    preset: PresetOption = None,
    qrels: QrelsOption = False,
    drop_uniform: DropOption = False,
    per_query: Annotated[bool, typer.Option("--per-query", help="A row for each query.")] = False,
    shape: ShapeOption = Shape.text,
) -> None:
    """Measure a ranking: means with 95% intervals, or a value for each query."""
    import podium.evaluation

    models = _models([scores])
    data_reader = _reader(reader, models, 1)
    documents = _data(data, qrels, data_reader)
    found = podium.evaluation.evaluate(
        documents,
        _scores(scores, documents, [data], reader, data_reader, models),
        _measures(measure, preset),
        drop_uniform=drop_uniform,
    )
    _show(found.query_table() if per_query else found.table(), shape)


@reads_data
def compare(
    data: Data,
    systems: Annotated[list[str], typer.Argument(help="NAME=SCORES for each system, scores as for evaluate.")],
    reader: Reader,
    measure: MeasureOption = None,
    preset: PresetOption = None,
    qrels: QrelsOption = False,
    drop_uniform: DropOption = False,
    baseline: Annotated[str | None, typer.Option(help="Compare the others with this system only.")] = None,
    margin: Annotated[float | None, typer.Option(help="Also test whether means differ by less than this.")] = None,
    moved: Annotated[int, typer.Option(help="Show as many queries that changed most between the first two.")] = 0,
    shape: ShapeOption = Shape.text,
) -> None:
    """Compare rankings query by query: t-test, randomisation test, Holm's correction, equivalence."""
    import podium.evaluation

    named: dict[str, str] = {}
    for entry in systems:
        name, equals, where = entry.partition("=")
        if not (name and equals and where) or name in named:
            raise typer.BadParameter(f"systems are given as NAME=SCORES with different names, not {entry!r}")
        named[name] = where
    models = _models(named.values())
    data_reader = _reader(reader, models, len(set(named.values())))
    documents = _data(data, qrels, data_reader)
    found = podium.evaluation.compare(
        documents,
        {name: _scores(where, documents, [data], reader, data_reader, models) for name, where in named.items()},
        _measures(measure, preset), baseline=baseline, margin=margin, drop_uniform=drop_uniform,
    )  # fmt: skip
    tables = {"means": found.means_table(), "pairs": found.table()}
    if moved:
        first, second = list(named)[:2]
        tables["moved"] = found.moved(first, second, most=moved)
    if shape is Shape.json:
        typer.echo(json.dumps({name: table.records() for name, table in tables.items()}, indent=2))
    elif shape is Shape.csv:
        _show(tables["pairs"], shape)
    else:
        for k, table in enumerate(tables.values()):
            typer.echo("\n" * (k > 0), nl=False)
            _show(table, shape)
