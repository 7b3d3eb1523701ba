"""`podium evaluate` and `podium compare`, and the functions that read labelled data and rankings for them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from podium.cli.reading import Reader, for_model, reads_data, with_columns
from podium.errors import DataError

if TYPE_CHECKING:
    from podium.evaluation.tables import Table


Shape = Literal["text", "markdown", "latex", "csv", "json"]  # of a table
Preset = Literal["letor3", "letor4"]  # conventions of other evaluation scripts
Data = Annotated[str, typer.Argument(help="Ranking data with labels; with --qrels, TREC judgements.")]
MeasureOption = Annotated[
    list[str] | None, typer.Option("--measure", "-m", help="A measure: ndcg@10, err, 'ndcg(empty=skip)@5'. Repeatable.")
]
PresetOption = Annotated[Preset | None, typer.Option(help="Compute the measures as LETOR's evaluation scripts do.")]
QrelsOption = Annotated[bool, typer.Option("--qrels", help="Read TREC judgements and TREC runs.")]
DropOption = Annotated[bool, typer.Option("--drop-uniform", help="Leave out queries whose labels are all equal.")]
JudgedOption = Annotated[
    bool, typer.Option("--judged-only", help="First remove documents without a label from the rankings.")
]
ShapeOption = Annotated[Shape, typer.Option("--as", help="Output format.")]


@dataclass(frozen=True)
class _Scored:
    """A model's scores, which NumPy takes as an array, with facts about its training such as the highest label."""

    scores: Any
    info: dict[str, Any]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.scores if dtype is None else self.scores.astype(dtype)


def parse_measures(names: list[str] | None, preset: Preset | None) -> list[Any]:
    """Return the named measures, with the conventions of a preset."""
    from podium.measures import letor, parse
    from podium.measures.presets import DEFAULT

    measures = [parse(name) for name in names or (DEFAULT if preset else ("ndcg@10",))]
    return letor(measures, 3 if preset == "letor3" else 4) if preset else measures


def load_models(systems: Iterable[str]) -> dict[str, Any]:
    """Load those systems that are model files."""
    from podium.models import load
    from podium.models.archive import is_archive

    return {where: load(where) for where in systems if not where.startswith("feature:") and is_archive(where)}


def named_systems(entries: list[str]) -> dict[str, str]:
    """Parse arguments NAME=SCORES into a mapping from name to source of scores."""
    named: dict[str, str] = {}
    for entry in entries:
        name, equals, where = entry.partition("=")
        if not (name and equals and where) or name in named:
            raise typer.BadParameter(f"systems must be NAME=SCORES with distinct names, but got {entry!r}")
        named[name] = where
    return named


def reader_for(reader: Reader, models: dict[str, Any], n_systems: int) -> Reader:
    """Return a reader for the labelled data.

    If all systems are models that read data in the same way, read it as they do. Otherwise only take over the names of
    their columns: systems without a model need no other options.
    """
    readers = [for_model(reader, model, where) for where, model in models.items()]
    if len(models) == n_systems and all(other.keywords == readers[0].keywords for other in readers):
        return readers[0]
    for where, model in models.items():
        reader = with_columns(reader, model, where)
    return reader


def scores_of(
    where: str, data: Any, files: list[str], reader: Reader, data_reader: Reader, models: dict[str, Any]
) -> Any:
    """Return scores from a file of scores, a model file, or `feature:NAME`."""
    from podium.evaluation.trec import read_scores

    kind, colon, name = where.partition(":")
    if kind == "feature" and colon:
        if not hasattr(data, "feature_names"):
            raise DataError(f"{where!r}: TREC judgements have no features; pass a TREC run")
        if data.feature_names is None:
            raise DataError(f"{where!r}: the features of the data have no names")
        return data.feature(name)
    if where not in models:
        return read_scores(where)
    if not hasattr(data, "feature_names"):
        raise DataError(f"{where}: TREC judgements have no features for a model to score; pass a TREC run")
    model = models[where]
    model_reader = for_model(reader, model, where)
    documents = data if model_reader.keywords == data_reader.keywords else model_reader(files)
    return _Scored(model.predict(documents), model.info)


def show(table: Table, shape: Shape) -> None:
    """Print a table in the chosen format, in colour on a terminal."""
    if shape == "text" and sys.stdout.isatty():
        from rich.console import Console

        Console().print(table)
    else:
        typer.echo(table.render(shape))


def read_ranked(data: str, systems: Mapping[str, str], is_qrels: bool, reader: Reader) -> tuple[Any, dict[str, Any]]:
    """Return the labelled data, and the scores of each system by name."""
    from podium.evaluation import read_qrels

    models = load_models(systems.values())
    data_reader = reader_for(reader, models, len(set(systems.values())))
    documents = read_qrels(data) if is_qrels else data_reader([data])
    scores = {name: scores_of(where, documents, [data], reader, data_reader, models) for name, where in systems.items()}
    return documents, scores


@reads_data
def evaluate(
    data: Data,
    scores: Annotated[
        str, typer.Argument(help="A model file, a file with one score per line, a TREC run, or feature:NAME.")
    ],
    reader: Reader,
    by: Annotated[
        str | None,
        typer.Option(help="Also evaluate each value of this feature, which must be constant within a query."),
    ] = None,
    per_query: Annotated[bool, typer.Option("--per-query", help="Show one row per query.")] = False,
    shape: ShapeOption = "text",
    measure: MeasureOption = None,
    preset: PresetOption = None,
    qrels: QrelsOption = False,
    drop_uniform: DropOption = False,
    judged_only: JudgedOption = False,
) -> None:
    """Evaluate a ranking: means with 95% confidence intervals, or a value for each query."""
    import podium.evaluation

    documents, ranked = read_ranked(data, {"system": scores}, qrels, reader)
    measures = parse_measures(measure, preset)
    result = podium.evaluation.evaluate(
        documents, ranked["system"], measures, drop_uniform=drop_uniform, judged_only=judged_only, by=by
    )
    show(result.query_table() if per_query else result.table(), shape)


@reads_data
def compare(
    data: Data,
    systems: Annotated[
        list[str], typer.Argument(help="NAME=SCORES for each system, with scores as in podium evaluate.")
    ],
    reader: Reader,
    baseline: Annotated[
        str | None, typer.Option(help="Compare each system with this one only; by default, compare all pairs.")
    ] = None,
    margin: Annotated[
        float | None, typer.Option(help="Also test for equivalence: whether means differ by less than this.")
    ] = None,
    moved: Annotated[
        int, typer.Option(help="Number of queries to show that differ most between the first two systems.")
    ] = 0,
    html: Annotated[
        Path | None, typer.Option(help="Also write the comparison, including single queries, to this HTML file.")
    ] = None,
    shape: ShapeOption = "text",
    measure: MeasureOption = None,
    preset: PresetOption = None,
    qrels: QrelsOption = False,
    drop_uniform: DropOption = False,
    judged_only: JudgedOption = False,
) -> None:
    """Compare rankings query by query: t-test, randomization test, Holm's correction, equivalence."""
    import podium.evaluation

    named = named_systems(systems)
    documents, ranked = read_ranked(data, named, qrels, reader)
    result = podium.evaluation.compare(
        documents, ranked, parse_measures(measure, preset), baseline=baseline, margin=margin, drop_uniform=drop_uniform,
        judged_only=judged_only,
    )  # fmt: skip
    if html is not None:
        from podium.reports.page import comparison_report

        comparison_report(ranked, documents, html, result)
    tables = {"means": result.means_table(), "pairs": result.table()}
    if moved:
        first, second = list(named)[:2]
        tables["moved"] = result.moved(first, second, most=moved)
    if shape == "json":
        typer.echo(json.dumps({name: table.records() for name, table in tables.items()}, indent=2))
    elif shape == "csv":
        show(tables["pairs"], shape)
    else:
        for k, table in enumerate(tables.values()):
            typer.echo("\n" * (k > 0), nl=False)
            show(table, shape)
