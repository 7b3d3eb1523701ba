"""`podium combine`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from podium.cli.reading import Reader, for_model, reads_data, require_alike


@reads_data
def combine(
    reader: Reader,
    a: Annotated[Path, typer.Argument(help="A model file.")],
    b: Annotated[Path, typer.Argument(help="Another.")],
    data: Annotated[list[str], typer.Argument(help="Files with labels, read as one: validation queries.")],
    measure: Annotated[str, typer.Option("--measure", "-m", help="Such as ndcg@10, err, ap.")] = "ndcg@10",
    lower: Annotated[float, typer.Option(help="α at least.")] = 0.0,
    upper: Annotated[float, typer.Option(help="α at most.")] = 1.0,
    ties: Annotated[str, typer.Option(help="expected, stable, jitter, or the name of a feature.")] = "expected",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the combined model here.")] = None,
) -> None:
    """Find the α for which (1 − α) a + α b is best, of all α there are."""
    from podium.models import combine as best
    from podium.models import load, save

    first, second = load(a), load(b)
    require_alike(first, second, (str(a), str(b)))
    documents = for_model(for_model(reader, first, str(a)), second, str(b))(data)
    result = best(first, second, documents, measure, bounds=(lower, upper), ties=ties)
    typer.echo(result)
    if output is not None and result.model is not None:
        save(result.model, output)
        typer.echo(f"{output}: {result.model.weights[0]:.4g} · {a} + {result.model.weights[1]:.4g} · {b}")
