"""`podium convert`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from podium.cli.reading import Absent, Reader, Sources, reads_data


@reads_data
def convert(
    sources: Sources,
    output: Annotated[Path, typer.Argument(help="Where to write: LETOR text or .parquet, by suffix.")],
    reader: Reader,
    leave_out: Annotated[
        Absent, typer.Option(help="LETOR text: which features to leave out of a line, zero or missing ones.")
    ] = Absent.zero,
    lossy: Annotated[
        bool, typer.Option("--lossy", help="Leave out what LETOR text cannot hold, such as weights.")
    ] = False,
) -> None:
    """Convert ranking data from one format to another; several files become one."""
    data = reader(sources)
    data.write(output, absent=leave_out.value, lossy=lossy)
    typer.echo(f"{output}: {data}")
