"""`podium evaluate`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from podium.cli.reading import Reader, reads_data
from podium.cli.systems import Data, Ranked, Shape, ShapeOption, ranks_systems, show


@reads_data
@ranks_systems
def evaluate(
    data: Data,
    scores: Annotated[
        str,
        typer.Argument(help="A model file, a file with one score per line, a TREC run, or feature:NAME."),
    ],
    reader: Reader,
    rank: Callable[..., Ranked],
    by: Annotated[
        str | None, typer.Option(help="Also apart by the values of this feature, constant within a query.")
    ] = None,
    per_query: Annotated[bool, typer.Option("--per-query", help="A row for each query.")] = False,
    shape: ShapeOption = Shape.text,
) -> None:
    """Measure a ranking: means with 95% intervals, or a value for each query."""
    import podium.evaluation

    ranked = rank(data, {"system": scores}, reader)
    result = podium.evaluation.evaluate(
        ranked.documents, ranked.scores["system"], ranked.measures, drop_uniform=ranked.drop_uniform, by=by
    )
    show(result.query_table() if per_query else result.table(), shape)
