"""`podium explain`, `podium plot` and `podium report`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from podium.cli.evaluation_commands import MeasureOption, load_models, named_systems, scores_of
from podium.cli.reading import Reader, configured, for_model, reads_data, require_same_reading
from podium.cli.runs import RunFolder, files_of, read_config
from podium.errors import DataError, warn


@reads_data
def explain(
    model: Annotated[Path, typer.Argument(help="A model file.")],
    data: Annotated[list[str], typer.Argument(help="Files of documents, read as one data set.")],
    reader: Reader,
    query: Annotated[str | None, typer.Option(help="Explain the ranking of this query's documents.")] = None,
    document: Annotated[str | None, typer.Option(help="Explain one document, given by its id or row number.")] = None,
    above: Annotated[
        tuple[str, str] | None, typer.Option(metavar="A B", help="Explain why document A ranks above document B.")
    ] = None,
    model_b: Annotated[
        Path | None,
        typer.Option(help="A second model: show which documents of --query change rank, and which features cause it."),
    ] = None,
    background: Annotated[
        Path | None,
        typer.Option(
            help="File of documents to compare with; by default, the training documents that the model stores."
        ),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Show at most this many features, or documents of a query.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole explanation as JSON.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Also save a chart to this file (.svg, .png, .html or .json).")
    ] = None,
    dark: Annotated[bool, typer.Option("--dark", help="Use a dark background.")] = False,
) -> None:
    """Explain scores: what each feature contributes, why A ranks above B, how two models differ."""
    from podium.explain import compare_explanations
    from podium.models import load

    if sum(option is not None for option in (document, above, model_b)) > 1:
        raise DataError("use only one of --document, --above and --model-b")
    if model_b is not None and query is None:
        raise DataError("--model-b compares two models on one query: add --query")
    loaded = load(model)
    read = for_model(reader, loaded, str(model))
    documents = read(data)
    reference = None if background is None else read([str(background)])
    if model_b is not None:
        second, names = load(model_b), (str(model), str(model_b))
        require_same_reading(loaded, second, names)
        answer: Any = compare_explanations(loaded, second, documents, query, background=reference, names=names)
    else:
        answer = _answer(loaded.explain(documents, reference), query, document, above)
    if output is not None:
        from podium.reports import save_chart

        save_chart(answer.plot(top), output, dark=dark)
    if as_json:
        typer.echo(json.dumps(answer.to_dict(), indent=2))
    else:
        _show(answer, top)


def _answer(explanation: Any, query: str | None, document: str | None, above: tuple[str, str] | None) -> Any:
    """Return the part of an explanation that the options ask for: a pair, a document, a query, or all documents."""
    if above is not None:
        return explanation.why(*above, query)
    if document is not None:
        return explanation.of_document(document, query)
    return explanation.importance() if query is None else explanation.query(query)


def _show(answer: Any, top: int) -> None:
    """Print the first rows of the answer's table, and the scores that the contributions add up to."""
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
    run: Annotated[Path, typer.Argument(help="The output folder of podium train.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="The file to write (.svg, .png, .html or .json); by default, RUN/history.svg."
        ),
    ] = None,
    dark: Annotated[bool, typer.Option("--dark", help="Use a dark background.")] = False,
) -> None:
    """Plot the measures of a training run by round, and mark the best round."""
    from podium.models import load
    from podium.reports import save_chart
    from podium.reports.training_charts import history_chart

    folder = RunFolder(run)
    history = folder.read_history()
    if not any(history.values()):
        raise DataError(f"{run}: nothing was measured because the run had no validation data; train with --valid FILE")
    info: dict[str, Any] = load(folder.model).info if folder.model.exists() else {}
    chart = history_chart(history, info.get("best_iteration"), info.get("submodel_means"))
    save_chart(chart, output or folder.picture, dark=dark)
    typer.echo(f"{output or folder.picture}: {chart.title}")


@reads_data
def report(
    run: Annotated[Path, typer.Argument(help="The output folder of podium train.")],
    reader: Reader,
    test: Annotated[
        list[str] | None,
        typer.Option(
            help="Test files, read as one data set; by default the run's validation or training data. Repeatable."
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The HTML file to write; by default, RUN/report.html.")
    ] = None,
    other: Annotated[
        list[str] | None,
        typer.Option(help="NAME=SCORES to compare with, with scores as in podium evaluate. Repeatable."),
    ] = None,
    measure: MeasureOption = None,
    queries: Annotated[int, typer.Option(help="Number of queries to show: best, worst, most changed.")] = 5,
    timing: Annotated[bool, typer.Option("--timing", help="Also measure the speed of scoring.")] = False,
) -> None:
    """Write a report on a training run as a single HTML page that works offline."""
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
    sets = {name: reader(paths) for name, paths in files.items() if _exist(name, paths, folder)}
    if not sets:
        raise typer.BadParameter("the run's data files no longer exist: pass test data with --test")
    tested_on, data = next(iter(sets.items()))
    others = {}
    if other:
        systems = named_systems(other)
        models = load_models(systems.values())
        others = {name: _system(where, data, files[tested_on], reader, models) for name, where in systems.items()}
    path = write_report(
        model, data, output or folder.report, train=sets.get("train"), valid=sets.get("valid"), others=others,
        measures=measure or None, history=history, name=run.resolve().name, queries=queries, timing=timing,
        data_name=tested_on, facts=_facts(folder, files),
    )  # fmt: skip
    typer.echo(f"{path}: {path.stat().st_size / 1e6:.1f} MB")


def _exist(name: str, files: list[str], folder: RunFolder) -> bool:
    """Return whether there are files for a data set; warn if a file that the run's config names is missing."""
    missing = [file for file in files if name != "test" and not Path(file).is_file()]
    if missing:
        problem = "is a folder, not a file of documents" if Path(missing[0]).is_dir() else "no longer exists"
        warn(f"the report does not cover the {name} data: {missing[0]}, which {folder.config} names, {problem}")
    return bool(files) and not missing


def _system(where: str, data: Any, files: list[str], reader: Reader, models: dict[str, Any]) -> Any:
    """Return a system to compare with: the model itself if it reads data as the run's model does, else its scores."""
    if where in models and for_model(reader, models[where], where).keywords == reader.keywords:
        return models[where]
    return scores_of(where, data, files, reader, reader, models)


def _facts(folder: RunFolder, files: dict[str, list[str]]) -> dict[str, str]:
    """Return the facts that are needed to repeat the run."""
    paths = {f"{name} files": ", ".join(names) for name, names in files.items() if names}
    return {"command": f"podium train --config {folder.config} --output FOLDER", **paths, **folder.read_facts()}
