"""Runs the service with uvicorn, in this process or in several workers that uvicorn supervises."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podium.core.interrupts import Stopped
from podium.errors import DataError, MissingExtraError, PodiumError
from podium.serving.settings import Settings

if TYPE_CHECKING:
    from podium.serving.app import Service

FOLDER = "PODIUM_SERVICE_FOLDER"  # environment variable: the folder that the workers of one service share
STARTUP_FAILURE = 3  # exit code of a worker that makes uvicorn stop instead of starting a new worker
MAX_FAILED_STARTS = 5  # workers that may die in a row before one of them is ready
HEALTHCHECK = 30  # seconds for a worker to answer uvicorn, including its imports and the loading of models
HEAD_BYTES = 64 << 10  # maximum size of a request's first line and headers


def require_extra() -> None:
    """Raise if a package of the extra `serve` is missing."""
    for package in ("litestar", "msgspec", "uvicorn", "prometheus_client"):
        if find_spec(package) is None:
            raise MissingExtraError(package.replace("_", "-"), "serve", "podium serve")


def run_service(settings: Settings, host: str, port: int, n_workers: int = 1) -> None:
    """Serve until SIGINT or SIGTERM, then finish the requests in progress. SIGHUP reloads all models."""
    if settings.clicks is not None and n_workers > 1:
        raise DataError("a click log needs a single worker, because one process computes the click features")
    with suppress(Stopped):  # uvicorn raises the signal again after it has shut down, which is not an error here
        if n_workers == 1:
            from podium.serving.app import Service

            _run_uvicorn(Service(settings), settings, host=host, port=port)
        else:
            _run_workers(settings, host, port, n_workers)


def _run_uvicorn(app: Any, settings: Settings, **options: Any) -> None:
    import uvicorn

    from podium.serving.monitoring import LOG_CONFIG

    # In bench/serving a request takes 0.86 ms of processor time with h11, and 0.78 ms with httptools. But httptools
    # does not limit the head of a request, so that an endless head would fill the memory.
    uvicorn.run(
        app, http="h11", h11_max_incomplete_event_size=HEAD_BYTES, ws="none", lifespan="on", log_config=LOG_CONFIG,
        access_log=False, server_header=False, proxy_headers=False, timeout_keep_alive=30,
        timeout_graceful_shutdown=int(settings.limits.seconds) + 1, timeout_worker_healthcheck=HEALTHCHECK, **options,
    )  # fmt: skip


def _run_workers(settings: Settings, host: str, port: int, n_workers: int) -> None:
    """Run several workers, which share settings, metrics, copies of models and their starts in a private folder."""
    import msgspec

    with tempfile.TemporaryDirectory(prefix="podium-serve-") as name:
        folder = Path(name)
        for part in ("counts", "models", "workers"):
            (folder / part).mkdir()
        settings = replace(settings, good_files=folder / "models")
        (folder / "settings.json").write_bytes(msgspec.json.encode(settings, enc_hook=str))
        os.environ |= {FOLDER: name, "PROMETHEUS_MULTIPROC_DIR": str(folder / "counts")}
        _run_uvicorn(
            "podium.serving.running:create_worker", settings, factory=True, host=host, port=port, workers=n_workers
        )
        if (folder / "failed").exists():  # uvicorn itself exits without an error
            raise PodiumError("the service could not start; see the log above for the reason")


def create_worker() -> Service:
    """Create the application in a worker process; if that fails, make uvicorn stop the service."""
    import msgspec

    from podium.serving.app import Service
    from podium.serving.monitoring import log, set_up_log

    set_up_log()
    folder = Path(os.environ[FOLDER])
    try:
        start = _Start(folder / "workers")
        settings = msgspec.json.decode(
            (folder / "settings.json").read_bytes(), type=Settings, dec_hook=lambda kind, value: kind(value)
        )
        service = Service(settings)
        start.succeed()
    except Exception as error:
        reason = str(error) if isinstance(error, PodiumError | OSError) else None
        log("worker failed", level="error", error=error, pid=os.getpid(), reason=reason)
        (folder / "failed").touch()
        sys.exit(STARTUP_FAILURE)
    return service


class _Start:
    """The start of a worker, recorded in a folder so that workers that keep dying stop the service.

    Without this record, uvicorn would restart them forever.
    """

    def __init__(self, folder: Path) -> None:
        from prometheus_client.multiprocess import mark_process_dead

        self._failed = []
        for path in folder.iterdir():
            pid = int(path.stem)
            if _is_alive(pid):
                continue
            mark_process_dead(pid)  # type: ignore[no-untyped-call]
            if path.suffix == ".starting":
                self._failed.append(path)
            else:
                path.unlink(missing_ok=True)
        if len(self._failed) >= MAX_FAILED_STARTS:
            raise PodiumError(f"{len(self._failed)} workers died while they started; is there enough memory?")
        self._path = folder / f"{os.getpid()}.starting"
        self._path.touch()

    def succeed(self) -> None:
        self._path.rename(self._path.with_suffix(".ready"))
        for path in self._failed:
            path.unlink(missing_ok=True)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
