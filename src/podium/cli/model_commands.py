"""Commands for model files: `inspect`, `import`, `export`, `formats`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from podium.cli.reading import as_trained
from podium.errors import DataError


def inspect(
    model: Annotated[Path, typer.Argument(help="A model file.")],
    trees: Annotated[bool, typer.Option("--trees", help="Show the trees.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what a model file contains: its parameters, most important features and trees."""
    from podium.models import ClassEnsemble, Ensemble, load
    from podium.models.transformed_ensembles import TransformedEnsemble

    scorer = load(model)
    of_trees = isinstance(scorer, Ensemble | TransformedEnsemble)
    if trees:
        if not isinstance(scorer, Ensemble | ClassEnsemble):
            raise DataError(f"{model}: {scorer!r} has no trees")
        typer.echo(scorer.dump("json" if as_json else "text"))
        return
    gains = scorer.importance("gain")
    order = [int(k) for k in (-gains).argsort(kind="stable") if gains[k] > 0]
    if as_json:
        content = {
            "model": repr(scorer), "n_features": scorer.n_features, "digest": scorer.digest(),
            "parameters": scorer.info.get("parameters", {}),
            "gain": {scorer.label_of_feature(k): float(gains[k]) for k in order},
        }  # fmt: skip
        if isinstance(scorer, Ensemble | ClassEnsemble):
            content = {"n_trees": scorer.n_trees} | content
        typer.echo(json.dumps(content, indent=2))
        return
    typer.echo(f"{scorer}\ndigest {scorer.digest()}")
    parameters = scorer.info.get("parameters", {})
    for name, value in parameters.items() if isinstance(parameters, dict) else ():
        typer.echo(f"  {name} = {value}")
    typer.echo(f"most important features, by their share of the {'gain' if of_trees else 'weights'}:")
    for k in order[:20]:
        typer.echo(f"  {gains[k] / gains.sum():6.1%}  {scorer.label_of_feature(k)}")


def import_(
    source: Annotated[Path, typer.Argument(help="Another tool's model file.")],
    output: Annotated[Path, typer.Argument(help="The Podium model file to write.")],
    format_name: Annotated[
        str | None, typer.Option("--format", help="A format listed by podium formats; detected by default.")
    ] = None,
    n_features: Annotated[
        int | None,
        typer.Option(
            help="Number of features of the data, if the file does not state it; by default, as many as the model uses."
        ),
    ] = None,
) -> None:
    """Convert another tool's model to a Podium model."""
    from podium.formats import import_model

    model = import_model(source, format_name, n_features=n_features)
    model.save(output)
    typer.echo(f"{output}: {model!r}")


def export(
    model: Annotated[Path, typer.Argument(help="A model file.")],
    output: Annotated[Path, typer.Argument(help="The file to write.")],
    format_name: Annotated[
        str | None,
        typer.Option("--format", help="A format listed by podium formats; by default determined by the suffix."),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Search engines: name of the model.")] = None,
    store: Annotated[str | None, typer.Option(help="Solr: name of the feature store.")] = None,
    missing: Annotated[
        str | None,
        typer.Option(
            help="keep or zero: what to do if the other system cannot distinguish missing values from 0, but the model "
            "does. keep refuses to export the model; zero exports it, and missing values are then scored as 0."
        ),
    ] = None,
    objective: Annotated[
        str | None, typer.Option(help="LightGBM, XGBoost: name of the objective to write into the file.")
    ] = None,
    definition: Annotated[
        str | None, typer.Option(help="Search plugins: type of the model, xgboost+json, xgboost+json+raw or ranklib.")
    ] = None,
    version: Annotated[
        int | None, typer.Option(help="ONNX: operator version, 5 (double precision) or 3 (single precision).")
    ] = None,
    check: Annotated[
        list[str] | None,
        typer.Option(help="Score this data with the model and with the exported file, and compare. Repeatable."),
    ] = None,
) -> None:
    """Export a model to another system, such as LightGBM, XGBoost, Solr or Elasticsearch."""
    from podium.formats import check_export
    from podium.models import load

    options: dict[str, Any] = {
        "name": name, "store": store, "missing": missing, "objective": objective,
        "definition": definition, "version": version,
    }  # fmt: skip
    loaded = load(model)
    written = loaded.export(output, format_name, **{key: value for key, value in options.items() if value is not None})
    typer.echo(str(written))
    if check:
        result = check_export(loaded, output, written.format, as_trained(loaded, str(model))(check))
        typer.echo(str(result))
        if result.changed_queries:
            raise typer.Exit(1)


def formats() -> None:
    """List the model formats and what each one cannot store."""
    from rich.console import Console
    from rich.table import Table

    from podium.formats import formats as all_formats

    table = Table("format", "import", "export", "description", "cannot store")
    for name, entry in all_formats().items():
        can_import = entry.can_read() or entry.reads_objects()
        lacks = ", ".join(content for content, carries in entry.carries.items() if carries == "no")
        table.add_row(name, "yes" if can_import else "", "yes" if entry.can_write() else "", entry.title, lacks)
    Console(width=None if typer.get_text_stream("stdout").isatty() else 160).print(table)
