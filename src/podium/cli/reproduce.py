"""`podium reproduce`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def reproduce(
    names: Annotated[list[str] | None, typer.Argument(help="Experiments, all by default; --list names them.")] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder of results, page and pictures; a stopped run goes on there.")
    ] = Path("reproduction"),
    quick: Annotated[bool, typer.Option("--quick", help="Smaller: all in under 5 minutes on 2 cores.")] = False,
    seeds: Annotated[int, typer.Option(help="How many, at least 3.")] = 3,
    data: Annotated[
        list[str] | None,
        typer.Option(help="A folder of MSLR-WEB10K/30K, Yahoo or Istella data, in place of artificial web data."),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="Name the experiments, and stop.")] = False,
) -> None:
    """Repeat the papers' experiments: what is claimed, what was measured, and whether it holds."""
    from podium.reproduce import EXPERIMENTS
    from podium.reproduce import reproduce as run
    from podium.reproduce.page import verdict_table, write_page

    if list_:
        width = max(map(len, EXPERIMENTS))
        for name, title in EXPERIMENTS.items():
            typer.echo(f"{name:{width}}  {title}")
        return
    results = run(names or (), output, quick=quick, seeds=seeds, data=data or ())
    page = write_page(output)
    left_out = {result.name: result.outcome.nothing_because for result in results if result.outcome.nothing_because}
    if len(left_out) < len(results):
        typer.echo(verdict_table(results).render())
    for name, reason in left_out.items():
        typer.echo(f"{name}: left out, {reason}")
    typer.echo(f"{page}: tables and pictures", err=True)
    if len(left_out) == len(results):
        raise typer.Exit(1)
