"""`podium export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def export(
    model: Annotated[Path, typer.Argument(help="A model file.")],
    output: Annotated[Path, typer.Argument(help="Where to write.")],
    format_name: Annotated[str | None, typer.Option("--format", help="One of `podium formats`.")] = None,
    name: Annotated[str | None, typer.Option(help="Of the model in the search engine.")] = None,
    store: Annotated[str | None, typer.Option(help="Solr: the feature store.")] = None,
    missing: Annotated[str | None, typer.Option(help="keep, or zero: no value will be missing, or only for 0.")] = None,
    objective: Annotated[str | None, typer.Option(help="LightGBM, XGBoost: the objective that the file names.")] = None,
    version: Annotated[int | None, typer.Option(help="ONNX: 5, in double, or 3, in float32.")] = None,
    check: Annotated[
        list[str] | None,
        typer.Option(help="Score these files with the model and as the other system does; report differences."),
    ] = None,
) -> None:
    """Write a model for another system: LightGBM, XGBoost, RankLib, Solr, Elasticsearch, …"""
    from podium.formats import check_export
    from podium.models import load

    chosen: dict[str, Any] = {
        "name": name, "store": store, "missing": missing, "objective": objective, "version": version,
    }  # fmt: skip
    loaded = load(model)
    written = loaded.export(output, format_name, **{key: value for key, value in chosen.items() if value is not None})
    typer.echo(str(written))
    if check:
        result = check_export(loaded, output, written.format, _read_as_trained(check, loaded.reading))
        typer.echo(str(result))
        if result.changed_queries:
            raise typer.Exit(1)


def _read_as_trained(files: list[str], reading: dict[str, Any]) -> Any:
    """Data that is read with the options with which the model's training data was."""
    from podium.data import read

    options = {key: reading[key] for key in ("absent", "first_index") if reading.get(key) is not None}
    data = read(files, **options)
    return data.normalized(reading["normalize"]) if reading.get("normalize") else data
