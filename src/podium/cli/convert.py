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
    feature_names: Annotated[
        Path | None, typer.Option(help="A text file with the name of each feature, one a line, for .parquet.")
    ] = None,
) -> None:
    """Convert ranking data from one format to another; several files become one."""
    data = reader(sources)
    if feature_names is not None:
        data = data.replace(feature_names=_lines(feature_names))
    data.write(output, absent=leave_out.value, lossy=lossy)
    typer.echo(f"{output}: {data}")


def _lines(file: Path) -> list[str]:
    """The lines of a text file."""
    from podium.errors import FileFormatError

    try:
        return file.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise FileFormatError(file, f"cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise FileFormatError(file, f"is not UTF-8: {error}") from error
