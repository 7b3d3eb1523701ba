"""`podium describe`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from podium.cli.reading import Reader, Sources, reads_data


@reads_data
def describe(
    sources: Sources,
    reader: Reader,
    as_json: Annotated[bool, typer.Option("--json", help="For programs to read.")] = False,
) -> None:
    """Say what is in ranking data, and what looks like a mistake."""
    summary = reader(sources).summary()
    typer.echo(json.dumps(summary.to_dict(), indent=2) if as_json else str(summary))
