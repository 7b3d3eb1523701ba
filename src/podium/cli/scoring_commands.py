"""`podium score` and `podium serve`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from podium.cli.reading import Reader, for_model, read_in_blocks, reads_data
from podium.core.files import replacing
from podium.errors import DataError, PodiumError
from podium.serving.settings import HOST, PORT, Limits, Settings, model_files, read_token, shares

NUMBERS_AT_ONCE = 1 << 25  # features of the documents that are in memory: 128 MiB


@reads_data
def score(
    model: Annotated[Path, typer.Argument(help="A model file.")],
    data: Annotated[list[str], typer.Argument(help="Files to score, read as one.")],
    reader: Reader,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Where to write; standard output else.")] = None,
    trec: Annotated[str | None, typer.Option(help="Write a TREC run of this name instead of plain scores.")] = None,
    n_trees: Annotated[int | None, typer.Option(help="Only the first trees.")] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            help="Score on a Dask cluster, tcp://… or local:N; --output is a folder, with a file of scores for each."
        ),
    ] = None,
) -> None:
    """Score documents: one number per line in the order of the rows, or a TREC run."""
    from podium.data.io.reading import ROWS
    from podium.models import ClassEnsemble, Ensemble, load

    loaded = load(model)
    if n_trees is not None and not isinstance(loaded, Ensemble | ClassEnsemble):
        raise DataError(f"{model}: {loaded!r} has no trees to be cut")
    options: dict[str, Any] = {} if n_trees is None else {"n_trees": n_trees}
    if trec is not None and output is None:
        raise DataError("--trec writes a file: name it with --output")
    if cluster is not None:
        _score_on_cluster(cluster, for_model(reader, loaded, str(model)), loaded, data, output, trec, n_trees)
        return
    blocks = read_in_blocks(
        for_model(reader, loaded, str(model)),
        data,
        rows=max(1, min(ROWS, NUMBERS_AT_ONCE // max(1, loaded.n_features))),
        whole_queries=loaded.sees_lists or trec is not None,
        like=loaded.schema if loaded.has_one_schema else None,
    )
    n_rows = 0
    with _writer(output) as write:
        for documents in blocks:
            scores = loaded.predict(documents, **options)
            if trec is not None:
                from podium.evaluation.trec import run_lines

                write("".join(run_lines(documents, scores, trec, n_rows)))
            else:
                write("".join(f"{value!r}\n" for value in scores.tolist()))
            n_rows += len(documents)
            del documents, scores  # before the next block is read


def _score_on_cluster(
    cluster: str,
    reader: Reader,
    model: Any,
    data: list[str],
    output: Path | None,
    trec: str | None,
    n_trees: int | None,
) -> None:
    from podium.distributed import score_files
    from podium.distributed.dask_engine import connected

    if output is None or trec is not None:
        raise DataError("with --cluster, name the folder of the scores with --output, and leave out --trec")
    scored = model if n_trees is None else model.truncate(n_trees)
    with connected(cluster) as client:
        written = score_files(scored, data, output, client=client, blocks=partial(read_in_blocks, reader))
    typer.echo(f"{output}: {len(written)} files of scores")


@contextmanager
def _writer(output: Path | None) -> Iterator[Callable[[str], Any]]:
    """Yield a function that writes text to standard output, or to a file that appears when all is written."""
    if output is None:
        yield lambda text: typer.echo(text, nl=False)
    else:
        with replacing(output) as temporary, temporary.open("w", encoding="utf-8") as file:
            yield file.write


DEFAULT = Limits()


def serve(
    models: Annotated[
        list[str],
        typer.Argument(metavar="MODEL…", help="Model files, NAME=FILE, folders with model files, or search pipelines."),
    ],
    host: Annotated[str, typer.Option(help="The address to listen on; 0.0.0.0 for all.")] = HOST,
    port: Annotated[int, typer.Option(help="The port to listen on.", min=0, max=65535)] = PORT,
    workers: Annotated[int, typer.Option(help="Number of processes that answer.", min=1, max=256)] = 1,
    split: Annotated[
        list[str] | None,
        typer.Option(help="NAME=SHARE: a model's share of queries, by a hash of their id. Repeatable."),
    ] = None,
    shadow: Annotated[
        str | None, typer.Option(help="A model to compare with; /metrics counts how often the top k differ.")
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option(help="A file with the bearer token; else the variable PODIUM_TOKEN, else none.")
    ] = None,
    watch: Annotated[float, typer.Option(help="Seconds between looks for new model files; 0: only on SIGHUP.")] = 1.0,
    max_bytes: Annotated[int, typer.Option(help="Bytes of a request's body, at most.")] = DEFAULT.body_bytes,
    max_documents: Annotated[int, typer.Option(help="Documents of a request, at most.")] = DEFAULT.documents,
    max_features: Annotated[int, typer.Option(help="Features of a model, at most.")] = DEFAULT.features,
    max_seconds: Annotated[float, typer.Option(help="Seconds of a request, at most.")] = DEFAULT.seconds,
    clicks: Annotated[
        Path | None,
        typer.Option(
            "--log-requests",
            metavar="FOLDER",
            help="Log what is shown, with features and scores, take POST /events, and compute click features.",
        ),
    ] = None,
    log_requests: Annotated[
        bool,
        typer.Option(
            "--access-log/--no-access-log", " /--no-log-requests", help="Log the path, status and time of each request."
        ),
    ] = True,
) -> None:
    """Serve models over HTTP: POST /rank, GET /models, /health, /ready, /metrics and /openapi.json.

    A folder that podium pipeline wrote adds /search, and a page with a search box at /.
    """
    from podium.serving.running import require_extra, run_service

    require_extra()
    from podium.serving.monitoring import log, set_up_log

    set_up_log()
    try:
        files, folders = model_files(models)
        settings = Settings(
            files, folders, shares(split or []), shadow, token=read_token(token_file), watch_seconds=watch,
            limits=Limits(max_bytes, max_documents, max_features, seconds=max_seconds), log_requests=log_requests,
            clicks=clicks,
        )  # fmt: skip
        run_service(settings, host, port, workers)
    except (PodiumError, OSError) as error:  # logged as JSON, like everything that a service reports
        log("cannot serve", level="error", reason=str(error))
        raise typer.Exit(1) from None
