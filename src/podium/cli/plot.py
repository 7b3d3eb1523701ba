"""`podium plot`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from podium.cli.runs import RunFolder


def plot(
    run: Annotated[Path, typer.Argument(help="The folder of a run of podium train.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A file in .svg, .png, .html or .json; by default RUN/history.svg."),
    ] = None,
    dark: Annotated[bool, typer.Option("--dark", help="Light on dark.")] = False,
) -> None:
    """Draw what was measured after each round of a training run, with the best round."""
    from podium.errors import DataError
    from podium.models import load
    from podium.reports import save_chart
    from podium.reports.training_charts import history_chart

    folder = RunFolder(run)
    history = folder.read_history()
    if not any(history.values()):
        raise DataError(f"{run}: the run had no validation data, so nothing was measured; train with --valid FILE")
    info: dict[str, Any] = load(folder.model).info if folder.model.exists() else {}
    chart = history_chart(history, info.get("best_iteration"), info.get("submodel_means"))
    save_chart(chart, output or folder.picture, dark=dark)
    typer.echo(f"{output or folder.picture}: {chart.title.text}")
