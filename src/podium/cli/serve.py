"""`podium serve`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from podium.errors import PodiumError
from podium.serving.settings import HOST, PORT, Limits, Settings, model_files, read_token, shares

DEFAULT = Limits()


def serve(
    models: Annotated[
        list[str], typer.Argument(metavar="MODEL…", help="Model files, NAME=FILE, or folders with model files.")
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
    log_requests: Annotated[bool, typer.Option(help="Log a line of JSON for each request.")] = True,
) -> None:
    """Serve models over HTTP: POST /rank, GET /models, /health, /ready, /metrics and /openapi.json."""
    from podium.serving.running import require_extra, run_service

    require_extra()
    from podium.serving.monitoring import log, set_up_log

    set_up_log()
    try:
        files, folders = model_files(models)
        settings = Settings(
            files, folders, shares(split or []), shadow, token=read_token(token_file), watch_seconds=watch,
            limits=Limits(max_bytes, max_documents, max_features, seconds=max_seconds), log_requests=log_requests,
        )  # fmt: skip
        run_service(settings, host, port, workers)
    except (PodiumError, OSError) as error:  # a line of JSON like all others, where services' logs are collected
        log("cannot serve", level="error", reason=str(error))
        raise typer.Exit(1) from None
