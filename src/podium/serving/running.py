"""Runs the service under uvicorn: in this process, or in several workers that uvicorn supervises."""

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

FOLDER = "PODIUM_SERVICE_FOLDER"  # the variable with the folder that the workers of one service share
STARTUP_FAILURE = 3  # uvicorn stops, and restarts no worker, when one exits with this code
MAX_FAILED_STARTS = 5  # workers that may die, one after the other, before one of them is ready
HEALTHCHECK = 30  # seconds in which a worker must answer uvicorn; a worker that imports and loads needs some of them
HEAD_BYTES = 64 << 10  # of a request's first line and headers


def require_extra() -> None:
    """Raise if a package is missing."""
    for package in ("litestar", "msgspec", "uvicorn", "prometheus_client"):
        if find_spec(package) is None:
            raise MissingExtraError(package.replace("_", "-"), "serve", "podium serve")


def run_service(settings: Settings, host: str, port: int, n_workers: int = 1) -> None:
    """Serve until SIGINT or SIGTERM, and finish the requests that have begun. SIGHUP loads all models again."""
    if settings.clicks is not None and n_workers > 1:
        raise DataError("click features are the state of one process: serve a click log with one worker")
    with suppress(Stopped):  # uvicorn raises the signal again once it has shut down: the service did as it was told
        if n_workers == 1:
            from podium.serving.app import Service

            _run_uvicorn(Service(settings), settings, host=host, port=port)
        else:
            _run_workers(settings, host, port, n_workers)


def _run_uvicorn(app: Any, settings: Settings, **options: Any) -> None:
    import uvicorn

    from podium.serving.monitoring import LOG_CONFIG

    # h11 takes 0.86 ms of processor time per request of bench/serving, httptools 0.78 ms. But httptools does not limit
    # the head of a request: one that never ends fills the memory.
    uvicorn.run(
        app, http="h11", h11_max_incomplete_event_size=HEAD_BYTES, ws="none", lifespan="on", log_config=LOG_CONFIG,
        access_log=False, server_header=False, proxy_headers=False, timeout_keep_alive=30,
        timeout_graceful_shutdown=int(settings.limits.seconds) + 1, timeout_worker_healthcheck=HEALTHCHECK, **options,
    )  # fmt: skip


def _run_workers(settings: Settings, host: str, port: int, n_workers: int) -> None:
    """Run several workers, which share a private folder: settings, counts, good models, and how their starts went."""
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
        if (folder / "failed").exists():  # uvicorn itself ends without an error
            raise PodiumError("the service could not start; the lines above say why")


def create_worker() -> Service:
    """Make the application in a worker process; if that fails, have uvicorn stop the service."""
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
    """The start of a worker, noted in a folder: uvicorn would replace workers that die while they start for ever."""

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
