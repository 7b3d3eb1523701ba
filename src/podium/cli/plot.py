"""`podium plot`."""

from __future__ import annotations

import json
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
    from podium.models import load
    from podium.reports import save_chart
    from podium.reports.history import history_chart

    folder = RunFolder(run)
    history = _read_history(folder)
    info: dict[str, Any] = load(folder.model).info if folder.model.exists() else {}
    chart = history_chart(history, info.get("best_iteration"), info.get("submodel_means"))
    save_chart(chart, output or folder.picture, dark=dark)
    typer.echo(f"{output or folder.picture}: {chart.title.text}")


def _read_history(folder: RunFolder) -> dict[str, list[float]]:
    """The history of a run; an error says why there is none."""
    from podium.errors import DataError, FileFormatError

    if not folder.folder.is_dir():
        what = "it is a file" if folder.folder.exists() else "there is no such folder"
        raise DataError(f"{folder.folder}: {what}; name the folder of a run, as podium train --output has made it")
    if not folder.history.exists():
        going_on = "the run is not finished, and the same podium train command goes on with it"
        why = going_on if folder.checkpoint.exists() else "it is written when a run of podium train ends"
        raise DataError(f"{folder.history} is not there: {why}")
    try:
        history = json.loads(folder.history.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise FileFormatError(folder.history, f"cannot be read: {error}") from error
    if not _is_history(history):
        raise FileFormatError(folder.history, "must hold lists of numbers by name, as podium train writes it")
    if not any(history.values()):
        raise DataError(
            f"{folder.folder}: the run had no validation data, so nothing was measured; train with --valid FILE"
        )
    return dict(history)


def _is_history(content: Any) -> bool:
    return isinstance(content, dict) and all(
        isinstance(values, list) and all(isinstance(value, int | float) for value in values)
        for values in content.values()
    )
