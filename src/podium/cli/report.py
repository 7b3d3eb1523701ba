"""`podium report`."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from podium.cli.config import files_of, read_config, reading_options
from podium.cli.reading import Reader, configured, for_model, reads_data
from podium.cli.runs import RunFolder
from podium.cli.systems import MeasureOption, models_of, named_systems, scores_by


@reads_data
def report(
    run: Annotated[Path, typer.Argument(help="The folder of a run of podium train.")],
    reader: Reader,
    test: Annotated[
        list[str] | None,
        typer.Option(help="Test files, read as one; without, the run's validation data, or else its training data."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The HTML file to write; by default RUN/report.html.")
    ] = None,
    other: Annotated[
        list[str] | None, typer.Option(help="NAME=SCORES to compare with, scores as for evaluate; repeatable.")
    ] = None,
    measure: MeasureOption = None,
    queries: Annotated[int, typer.Option(help="How many of the best, worst and most changed queries to show.")] = 5,
    timing: Annotated[bool, typer.Option("--timing", help="Measure how long scoring takes.")] = False,
) -> None:
    """Write all that is known of a run as one HTML page, which works without a network."""
    from podium.models import load
    from podium.reports.page import report as write_report

    folder = RunFolder(run)
    history, config = folder.read_history(), read_config(folder.config)
    model = load(folder.model)
    reader = for_model(configured(reader, reading_options(config.get("reading", {}))), model, str(folder.model))
    files = {
        "test": test or [],
        "valid": files_of(config.get("valid"), None),
        "train": files_of(config.get("data"), None),
    }
    sets = {name: reader(named) for name, named in files.items() if _are_there(name, named, folder)}
    if not sets:
        raise typer.BadParameter("none of the run's data files is there: name test data with --test")
    tested_on, data = next(iter(sets.items()))
    others = {}
    if other:
        systems = named_systems(other)
        models = models_of(systems.values())
        others = {name: _system(where, data, files[tested_on], reader, models) for name, where in systems.items()}
    path = write_report(
        model, data, output or folder.report, train=sets.get("train"), valid=sets.get("valid"), others=others,
        measures=measure or None, history=history, name=run.resolve().name, queries=queries, timing=timing,
        data_name=tested_on, facts=_facts(folder, files),
    )  # fmt: skip
    typer.echo(f"{path}: {path.stat().st_size / 1e6:.1f} MB")


def _are_there(name: str, files: list[str], folder: RunFolder) -> bool:
    """Whether all files of a data set can be read; what the run names and is gone is told."""
    from podium.errors import PodiumWarning

    gone = [file for file in files if name != "test" and not Path(file).is_file()]
    if gone:
        what = "is a folder, not a file of documents" if Path(gone[0]).is_dir() else "is not there any more"
        warnings.warn(
            f"{gone[0]}, which {folder.config} names, {what}: the report does without the {name} data",
            PodiumWarning,
            stacklevel=2,
        )
    return bool(files) and not gone


def _system(where: str, data: Any, files: list[str], reader: Reader, models: dict[str, Any]) -> Any:
    """Another system: the model itself where it reads data as the run's model does, or else its scores."""
    if where in models and for_model(reader, models[where], where).keywords == reader.keywords:
        return models[where]
    return scores_by(where, data, files, reader, reader, models)


def _facts(folder: RunFolder, files: dict[str, list[str]]) -> dict[str, str]:
    """What is needed to repeat the run."""
    named = {f"{name} files": ", ".join(one) for name, one in files.items() if one}
    return {"command": f"podium train --config {folder.config} --output FOLDER", **named, **folder.read_facts()}
