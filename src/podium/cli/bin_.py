"""`podium bin`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from podium.cli.reading import Reader, bin_sources, reads_data

Files = Annotated[list[str], typer.Argument(help="Files to bin as one; their queries need not stand together.")]


@reads_data
def bin_(
    sources: Files,
    folder: Annotated[Path, typer.Argument(help="The folder to write.")],
    reader: Reader,
    max_bins: Annotated[int, typer.Option(help="Bins of a feature; training must ask for the same.")] = 255,
    like: Annotated[
        Path | None, typer.Option(help="For validation data: the folder of the training data, whose bins are used.")
    ] = None,
    keep_values: Annotated[
        bool, typer.Option("--keep-values", help="Keep features as well, for scores, nets and linear rankers.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a folder of binned data.")] = False,
) -> None:
    """Bin files that are larger than memory into a folder, which podium train takes in place of them."""
    data = bin_sources(
        reader, sources, folder, max_bins=max_bins, like=like, keep_values=keep_values, overwrite=overwrite
    )
    typer.echo(f"{folder}: {data.n_documents:,} documents in {data.n_queries:,} queries, {data.n_features:,} features")
    typer.echo(", ".join(f"{step} {seconds:.1f} s" for step, seconds in data.seconds.items()))
