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
from podium.serving.settings import HOST, PORT, Limits, Settings, model_files, parse_shares, read_token

NUMBERS_AT_ONCE = 1 << 25  # feature values to hold in memory at a time: 128 MiB


@reads_data
def score(
    model: Annotated[Path, typer.Argument(help="A model file.")],
    data: Annotated[list[str], typer.Argument(help="Files to score, read as one data set.")],
    reader: Reader,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file to write; by default standard output.")
    ] = None,
    trec: Annotated[str | None, typer.Option(help="Write a TREC run with this name instead of plain scores.")] = None,
    n_trees: Annotated[int | None, typer.Option(help="Use only the first N trees.")] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            help="Score on a Dask cluster: tcp://HOST:PORT, or local:N for N local workers. --output is then a folder, "
            "with one file of scores for each input file."
        ),
    ] = None,
) -> None:
    """Score documents: write one score per line in the order of the rows, or a TREC run."""
    from podium.data.io.reading import ROWS
    from podium.models import ClassEnsemble, Ensemble, load

    loaded = load(model)
    if n_trees is not None and not isinstance(loaded, Ensemble | ClassEnsemble):
        raise DataError(f"{model}: --n-trees needs a model of trees, but this is {loaded!r}")
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
    from podium.distributed.clusters import cluster_at, connected

    if output is None or trec is not None:
        raise DataError("with --cluster, name a folder for the scores with --output, and omit --trec")
    if cluster_at(cluster) != "dask":
        raise DataError(f"podium score runs on a Dask cluster, tcp://HOST:PORT or local:N, not {cluster!r:.60}")
    scored = model if n_trees is None else model.truncate(n_trees)
    with connected(cluster) as connection:
        written = score_files(scored, data, output, blocks=partial(read_in_blocks, reader), **connection)
    typer.echo(f"{output}: {len(written)} files of scores")


@contextmanager
def _writer(output: Path | None) -> Iterator[Callable[[str], Any]]:
    """Yield a function that writes text to standard output, or to a file that appears once it is complete."""
    if output is None:
        yield lambda text: typer.echo(text, nl=False)
    else:
        with replacing(output) as temporary, temporary.open("w", encoding="utf-8") as file:
            yield file.write


DEFAULT = Limits()


def serve(
    models: Annotated[
        list[str],
        typer.Argument(metavar="MODEL…", help="Model files, NAME=FILE, folders of model files, or search pipelines."),
    ],
    host: Annotated[str, typer.Option(help="The address to listen on; 0.0.0.0 for all interfaces.")] = HOST,
    port: Annotated[int, typer.Option(help="The port to listen on.", min=0, max=65535)] = PORT,
    workers: Annotated[int, typer.Option(help="Number of worker processes.", min=1, max=256)] = 1,
    split: Annotated[
        list[str] | None,
        typer.Option(help="NAME=SHARE: the share of queries that a model answers, chosen by query id. Repeatable."),
    ] = None,
    shadow: Annotated[
        str | None,
        typer.Option(help="A model to compare with in the background; /metrics counts how often the top k differs."),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(help="File with the bearer token; by default the environment variable PODIUM_TOKEN, if set."),
    ] = None,
    watch: Annotated[
        float, typer.Option(help="Seconds between checks for changed model files; with 0, reload only on SIGHUP.")
    ] = 1.0,
    max_bytes: Annotated[int, typer.Option(help="Maximum size of a request's body in bytes.")] = DEFAULT.body_bytes,
    max_documents: Annotated[int, typer.Option(help="Maximum number of documents per request.")] = DEFAULT.documents,
    max_features: Annotated[int, typer.Option(help="Maximum number of features of a model.")] = DEFAULT.features,
    max_seconds: Annotated[float, typer.Option(help="Maximum duration of a request in seconds.")] = DEFAULT.seconds,
    clicks: Annotated[
        Path | None,
        typer.Option(
            "--log-requests",
            metavar="FOLDER",
            help="Log rankings with features and scores in this folder, accept POST /events, and compute click "
            "features.",
        ),
    ] = None,
    log_requests: Annotated[
        bool,
        typer.Option(
            "--access-log/--no-access-log", " /--no-log-requests", help="Log path, status and duration of each request."
        ),
    ] = True,
) -> None:
    """Serve models over HTTP: POST /rank, GET /models, /health, /ready, /metrics and /openapi.json.

    A folder that podium pipeline wrote adds /search and a search page at /.
    """
    from podium.serving.running import require_extra, run_service

    require_extra()
    from podium.serving.monitoring import log, set_up_log

    set_up_log()
    try:
        files, folders = model_files(models)
        settings = Settings(
            files, folders, parse_shares(split or []), shadow, token=read_token(token_file), watch_seconds=watch,
            limits=Limits(max_bytes, max_documents, max_features, seconds=max_seconds), log_requests=log_requests,
            clicks=clicks,
        )  # fmt: skip
        run_service(settings, host, port, workers)
    except (PodiumError, OSError) as error:  # as JSON, like everything else the service logs
        log("cannot serve", level="error", reason=str(error))
        raise typer.Exit(1) from None
