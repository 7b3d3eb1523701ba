"""`podium committee`: `podium train committee` in one step, without a run's folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from podium.cli.options import option
from podium.cli.reading import Reader, reads_data
from podium.core import hyperparameters as h


@reads_data
def committee(
    reader: Reader,
    data: Annotated[list[str], typer.Argument(help="Training files, read as one.")],
    valid: Annotated[list[str] | None, typer.Option(help="Validation files; a fifth of the queries else.")] = None,
    measure: Annotated[str, option(h.MEASURE)] = "ndcg@10",
    time_budget: Annotated[float | None, option(h.TIME_BUDGET)] = None,
    random_state: Annotated[int, option(h.RANDOM_STATE)] = 0,
    n_threads: Annotated[int | None, option(h.N_THREADS)] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the model.")] = Path(
        "committee.podium"
    ),
) -> None:
    """Just give me the best model: several objectives, bagged and weighed, in one ensemble of trees."""
    from podium.estimators import Committee

    documents = reader(data)
    model = Committee(measure, time_budget=time_budget, random_state=random_state, n_threads=n_threads)
    model.fit(documents, valid=reader(valid) if valid else None)
    for name, value in model.values_.items():
        typer.echo(f"{value:.4f}  {name}")
    model.save(output)
    typer.echo(f"{output}: {model.n_trees_} trees of {len(model.members_)} members")
