"""Commands that show what a model does: `explain`, `plot`, `report`."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from podium.cli.evaluation_commands import MeasureOption, models_of, named_systems, scores_by
from podium.cli.reading import Reader, configured, for_model, reads_data, require_alike
from podium.cli.runs import RunFolder, files_of, read_config
from podium.errors import DataError, PodiumWarning


@reads_data
def explain(
    model: Annotated[Path, typer.Argument(help="A model file.")],
    data: Annotated[list[str], typer.Argument(help="Files of documents, read as one.")],
    reader: Reader,
    query: Annotated[str | None, typer.Option(help="The documents of this query, in their order.")] = None,
    document: Annotated[str | None, typer.Option(help="One document, by its id or by the number of its row.")] = None,
    above: Annotated[
        tuple[str, str] | None, typer.Option(metavar="A B", help="Why document A is above document B.")
    ] = None,
    model_b: Annotated[
        Path | None, typer.Option(help="A second model: what moves in the query, and through which features.")
    ] = None,
    background: Annotated[
        Path | None, typer.Option(help="Documents to compare with; else the training documents that the model keeps.")
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Show as many features, or documents of a query, at most.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Write all of it as JSON.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Draw it: a file in .svg, .png, .html or .json.")
    ] = None,
    dark: Annotated[bool, typer.Option("--dark", help="Light on dark.")] = False,
) -> None:
    """Say why: what each feature adds to scores, why A is above B, what moves between two models."""
    from podium.explain import compare_explanations
    from podium.models import load

    if sum(one is not None for one in (document, above, model_b)) > 1:
        raise DataError("--document, --above and --model-b are different questions: give one of them")
    if model_b is not None and query is None:
        raise DataError("two models are compared on one query: name it with --query")
    loaded = load(model)
    read = for_model(reader, loaded, str(model))
    documents = read(data)
    others = None if background is None else read([str(background)])
    if model_b is not None:
        second = load(model_b)
        require_alike(loaded, second, (str(model), str(model_b)))
        names = str(model), str(model_b)
        answer: Any = compare_explanations(loaded, second, documents, query, background=others, names=names)
    else:
        answer = _answer(loaded.explain(documents, others), query, document, above)
    if output is not None:
        from podium.reports import save_chart

        save_chart(answer.plot(top), output, dark=dark)
    if as_json:
        typer.echo(json.dumps(answer.to_dict(), indent=2))
    else:
        _show(answer, top)


def _answer(explanation: Any, query: str | None, document: str | None, above: tuple[str, str] | None) -> Any:
    """Return the explanation of all documents, of a query, of a document, or of two."""
    if above is not None:
        return explanation.why(*above, query)
    if document is not None:
        return explanation.of_document(document, query)
    return explanation.importance() if query is None else explanation.query(query)


def _show(answer: Any, top: int) -> None:
    """Print the first rows of the table, and their sum."""
    from podium.evaluation.tables import Table
    from podium.explain import DocumentExplanation, PairExplanation

    table = answer if isinstance(answer, Table) else answer.table()
    typer.echo(Table(table.columns, table.rows[:top]).render())
    if len(table.rows) > top:
        typer.echo(f"… {len(table.rows) - top} more (--top)")
    if isinstance(answer, DocumentExplanation):
        typer.echo(f"\nbase {answer.base:.4f} + contributions = score {answer.score:.4f}")
    if isinstance(answer, PairExplanation):
        gap = f"{answer.score_a:.4f} − {answer.score_b:.4f} = {answer.gap:.4f}"
        place = "above" if answer.gap > 0 else "not above"
        typer.echo(f"\nThe differences add up to {gap}: {answer.a} is {place} {answer.b}")


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
    from podium.reports.training_charts import history_chart

    folder = RunFolder(run)
    history = folder.read_history()
    if not any(history.values()):
        raise DataError(f"{run}: the run had no validation data, so nothing was measured; train with --valid FILE")
    info: dict[str, Any] = load(folder.model).info if folder.model.exists() else {}
    chart = history_chart(history, info.get("best_iteration"), info.get("submodel_means"))
    save_chart(chart, output or folder.picture, dark=dark)
    typer.echo(f"{output or folder.picture}: {chart.title.text}")


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
    reader = for_model(configured(reader, config.get("reading", {})), model, str(folder.model))
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
    """Return whether all files of a data set can be read; warn about files of the run that are gone."""
    gone = [file for file in files if name != "test" and not Path(file).is_file()]
    if gone:
        what = "is a folder, not a file of documents" if Path(gone[0]).is_dir() else "does not exist any more"
        warnings.warn(
            f"{gone[0]}, which {folder.config} names, {what}: the report does without the {name} data",
            PodiumWarning,
            stacklevel=2,
        )
    return bool(files) and not gone


def _system(where: str, data: Any, files: list[str], reader: Reader, models: dict[str, Any]) -> Any:
    """Return another system: the model itself if it reads data as the run's model does, else its scores."""
    if where in models and for_model(reader, models[where], where).keywords == reader.keywords:
        return models[where]
    return scores_by(where, data, files, reader, reader, models)


def _facts(folder: RunFolder, files: dict[str, list[str]]) -> dict[str, str]:
    """Return what is needed to repeat the run."""
    named = {f"{name} files": ", ".join(one) for name, one in files.items() if one}
    return {"command": f"podium train --config {folder.config} --output FOLDER", **named, **folder.read_facts()}
