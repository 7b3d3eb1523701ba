"""`python -m experiments`: repeat the papers' experiments, and write a page of what holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.page import decided_results, write_page
from experiments.runner import EXPERIMENTS, experiment, reproduce
from podium.errors import PodiumError


def main(
    names: Annotated[
        list[str] | None, typer.Argument(help="Experiments, all by default; --list shows their names.")
    ] = None,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Folder of results, page and pictures; a stopped run continues there."),
    ] = Path("reproduction"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Use smaller data, fewer trees and seeds: about 5 minutes on 2 cores.")
    ] = False,
    seeds: Annotated[
        int | None, typer.Option(help="Number of seeds, at least 3; 10 by default, 3 with --quick.")
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(help="A folder of MSLR-WEB10K/30K, Yahoo or Istella data, in place of artificial web data."),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the experiments, and stop.")] = False,
    page: Annotated[
        bool, typer.Option("--page", help="Run nothing; write the page from the results in the folder.")
    ] = False,
) -> None:
    """Repeat the papers' experiments: what is claimed, what was measured, and whether it holds."""
    if list_:
        for name in EXPERIMENTS:
            found = experiment(name)
            typer.echo(f"{name:{max(map(len, EXPERIMENTS))}}  {found.place}: {found.title}")
        return
    try:
        results = [] if page else reproduce(names or (), output, quick=quick, seeds=seeds, data=data or ())
        written = write_page(output)
    except PodiumError as error:
        typer.echo(f"experiments: error: {error}", err=True)
        raise typer.Exit(1) from None
    names = [result.name for result in results]
    for result, claims in decided_results(output):
        for one in claims if result.name in names else ():
            typer.echo(f"{result.name}: {one.verdict}: {one.claim.text} ({one.claim.place})")
    for result in results:
        if result.outcome.nothing_because:
            typer.echo(f"{result.name}: left out, {result.outcome.nothing_because}")
    typer.echo(f"{written}: tables and pictures", err=True)
    if results and not any(result.outcome.claims for result in results):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
