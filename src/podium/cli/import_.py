"""`podium import`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def import_(
    source: Annotated[Path, typer.Argument(help="A model file of another tool.")],
    output: Annotated[Path, typer.Argument(help="Where to write Podium's model.")],
    format_name: Annotated[
        str | None, typer.Option("--format", help="One of `podium formats`; by default it is seen from the file.")
    ] = None,
    n_features: Annotated[
        int | None,
        typer.Option(help="Columns of the data, where the file does not state them; by default what the model needs."),
    ] = None,
) -> None:
    """Read a model of another tool, and write it as one of Podium's."""
    from podium.formats import import_model

    model = import_model(source, format_name, n_features=n_features)
    model.save(output)
    typer.echo(f"{output}: {model!r}")
