"""`podium committee`: `podium train committee` in one step, without the folder of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from podium.cli.options import with_parameters
from podium.cli.reading import Reader, reads_data
from podium.estimators.parameters import CommitteeParameters


@reads_data
@with_parameters(CommitteeParameters)
def committee(
    reader: Reader,
    chosen: dict[str, Any],
    data: Annotated[list[str], typer.Argument(help="Training files, read as one.")],
    valid: Annotated[list[str] | None, typer.Option(help="Validation files; folds of all queries else.")] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the model.")] = Path(
        "committee.podium"
    ),
) -> None:
    """Just give me the best model: several objectives, bagged and weighed, in one ensemble of trees."""
    from podium.estimators import Committee

    documents = reader(data)
    model = Committee(**chosen)
    model.fit(documents, valid=reader(valid) if valid else None)
    typer.echo(model.tried_table().render())
    for name in ("equal weights", "committee"):
        typer.echo(f"{model.values_[name]:.4f}  {name}")
    model.save(output)
    typer.echo(f"{output}: {model.n_trees_} trees of {len(model.members_)} members")
