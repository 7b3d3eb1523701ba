"""`podium clicks`: check click logs, and turn them into labels and features."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from podium.cli.app import Group
from podium.cli.options import Command

clicks = typer.Typer(
    help="Check click logs, and turn them into labels and features.",
    add_completion=False,
    no_args_is_help=True,
    cls=Group,
)
Logs = Annotated[list[Path], typer.Argument(help="The files of one log: JSONL, CSV, TSV or Parquet.")]
Format = Annotated[str, typer.Option("--format", help="Format: metarank, ubi, or flat (one row per document shown).")]
Unit = Annotated[str | None, typer.Option(help="Unit of numeric times: s, ms, us or ns.")]
Column = Annotated[
    list[str] | None,
    typer.Option(help="ROLE=NAME: the column of a flat table for a role, such as query=search_text. Repeatable."),
]
MinImpressions = Annotated[
    int, typer.Option(help="Minimum number of impressions that a (query, document) pair needs to get a label.", min=1)
]
Smoothing = Annotated[
    float, typer.Option(help="Number of pseudo-impressions at the overall click rate to add to each pair.", min=0)
]


def _read(logs: list[Path], log_format: str, unit: str | None, columns: list[str] | None) -> Any:
    from podium.clicks import ClickLog

    options: dict[str, str] = {} if unit is None else {"time_unit": unit}
    for text in columns or []:
        role, equals, name = text.partition("=")
        if not equals:
            raise typer.BadParameter(f"--column must be ROLE=NAME, for example query=search_text, but got {text!r}")
        options[role] = name
    return ClickLog.read(logs[0] if len(logs) == 1 else logs, log_format, **options)


@clicks.command(cls=Command)
def generate(
    output: Annotated[Path, typer.Argument(help="The JSONL file to write.")],
    rankings: Annotated[int, typer.Option(help="Number of rankings shown to users.", min=1)] = 2000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same log.", min=0)] = 0,
) -> None:
    """Write a log of simulated users in Metarank's format."""
    from podium.clicks.simulating import write_events

    write_events(output, rankings, seed)


@clicks.command(cls=Command)
def check(logs: Logs, log_format: Format = "flat", time_unit: Unit = None, column: Column = None) -> None:
    """Summarize a click log and report likely mistakes in it."""
    log = _read(logs, log_format, time_unit, column)
    typer.echo(log)
    for finding in log.check():
        typer.echo(finding)


@clicks.command(cls=Command)
def labels(
    logs: Logs,
    log_format: Format = "flat",
    kind: Annotated[str, typer.Option(help="Kind of label: ctr, last_click, coec, dwell or skip_above.")] = "ctr",
    min_impressions: MinImpressions = 5,
    smoothing: Smoothing = 0.0,
    similar: Annotated[bool, typer.Option("--similar", help="Treat queries with the same words as one query.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The CSV file to write; by default standard output.")
    ] = None,
    time_unit: Unit = None,
    column: Column = None,
) -> None:
    """Write a label and its confidence interval for each (query, document) pair, as CSV."""
    table = _read(logs, log_format, time_unit, column).labels(
        kind, min_impressions=min_impressions, smoothing=smoothing, queries="similar" if similar else "equal"
    )
    if output is None:
        typer.echo(table.as_csv(), nl=False)
    else:
        table.save(output)
        typer.echo(f"{output}: {table}")


@clicks.command(cls=Command)
def features(
    logs: Logs,
    feature: Annotated[
        list[str], typer.Option("--feature", "-f", help="A feature, such as 'rate(click, by=document)'. Repeatable.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")],
    log_format: Format = "flat",
    label: Annotated[
        list[str] | None,
        typer.Option(
            help="The label: clicked (the default), or a kind of label as in podium clicks labels. Repeatable."
        ),
    ] = None,
    min_impressions: MinImpressions = 5,
    smoothing: Smoothing = 0.0,
    time_unit: Unit = None,
    column: Column = None,
) -> None:
    """Write ranking data: the features of each document at the time it was shown, and its labels."""
    from podium.data import write

    log = _read(logs, log_format, time_unit, column)
    data = log.ranking_data(feature, label or "clicked", min_impressions=min_impressions, smoothing=smoothing)
    write(data, output)
    typer.echo(f"{output}: {data}")


@clicks.command(cls=Command)
def bias(
    logs: Logs,
    log_format: Format = "flat",
    by: Annotated[
        str, typer.Option(help="The method: em, or intervention (from pairs that were shown at several positions).")
    ] = "em",
    time_unit: Unit = None,
    column: Column = None,
) -> None:
    """Estimate how likely users are to look at each position, relative to the first (position-based model)."""
    import numpy as np

    from podium.clicks import PositionBased

    log = _read(logs, log_format, time_unit, column)
    model = PositionBased(by=by).fit(log)
    examination = model.examination(log)
    typer.echo("position  examination  click rate  impressions")
    for position, row in zip(*np.unique(log.position, return_index=True), strict=True):
        clicked = log.clicked[log.position == position]
        typer.echo(f"{position:8d}  {examination[row]:11.4f}  {clicked.mean():10.4f}  {len(clicked):11,d}")
