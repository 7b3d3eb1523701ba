"""`podium compare`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from podium.cli.reading import Reader, reads_data
from podium.cli.systems import Data, Ranked, Shape, ShapeOption, named_systems, ranks_systems, show


@reads_data
@ranks_systems
def compare(
    data: Data,
    systems: Annotated[list[str], typer.Argument(help="NAME=SCORES for each system, scores as for evaluate.")],
    reader: Reader,
    rank: Callable[..., Ranked],
    baseline: Annotated[str | None, typer.Option(help="Compare the others with this system only.")] = None,
    margin: Annotated[float | None, typer.Option(help="Also test whether means differ by less than this.")] = None,
    moved: Annotated[int, typer.Option(help="Show as many queries that changed most between the first two.")] = 0,
    html: Annotated[
        Path | None, typer.Option(help="Also write a page with all of it, single queries included, as HTML.")
    ] = None,
    shape: ShapeOption = Shape.text,
) -> None:
    """Compare rankings query by query: t-test, randomisation test, Holm's correction, equivalence."""
    import podium.evaluation

    named = named_systems(systems)
    ranked = rank(data, named, reader)
    result = podium.evaluation.compare(
        ranked.documents, ranked.scores, ranked.measures, baseline=baseline, margin=margin,
        drop_uniform=ranked.drop_uniform,
    )  # fmt: skip
    if html is not None:
        from podium.reports.page import comparison_report

        comparison_report(ranked.scores, ranked.documents, html, result)
    tables = {"means": result.means_table(), "pairs": result.table()}
    if moved:
        first, second = list(named)[:2]
        tables["moved"] = result.moved(first, second, most=moved)
    if shape is Shape.json:
        typer.echo(json.dumps({name: table.records() for name, table in tables.items()}, indent=2))
    elif shape is Shape.csv:
        show(tables["pairs"], shape)
    else:
        for k, table in enumerate(tables.values()):
            typer.echo("\n" * (k > 0), nl=False)
            show(table, shape)
