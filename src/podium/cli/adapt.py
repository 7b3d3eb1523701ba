"""`podium adapt`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from podium.cli.options import with_parameters
from podium.cli.reading import Reader, for_model, reads_data, require_alike
from podium.estimators.parameters import AdaptParameters


@reads_data
@with_parameters(AdaptParameters, without=("submodel", "verbose"))
def adapt(
    reader: Reader,
    chosen: dict[str, Any],
    background: Annotated[Path, typer.Argument(help="The model file of the background model.")],
    data: Annotated[list[str], typer.Argument(help="The domain's training files, read as one.")],
    valid: Annotated[list[str] | None, typer.Option(help="Validation files; a fifth of the data else.")] = None,
    test: Annotated[list[str] | None, typer.Option(help="Files to compare on; the validation queries else.")] = None,
    other: Annotated[list[Path] | None, typer.Option(help="More models to compare and interpolate with.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the adapted model here.")] = None,
) -> None:
    """Adapt a model to a domain, beside the background, an in-domain and an interpolated model."""
    from podium.estimators import adapt as adapted_to
    from podium.models import load

    model, others = load(background), {str(path): load(path) for path in other or []}
    for name, scorer in others.items():
        require_alike(model, scorer, (str(background), name))

    def read(files: list[str] | None) -> Any:
        return for_model(reader, model, str(background))(files) if files else None

    result = adapted_to(
        model, read(data), valid=read(valid), test=read(test), others=others,
        **chosen,
    )  # fmt: skip
    typer.echo(result)
    if output is not None:
        result.adapted.save(output)
        typer.echo(f"{output}: {result.adapted.n_trees_} trees on top of {background}")
