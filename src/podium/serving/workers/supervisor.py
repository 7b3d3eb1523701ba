"""The process that starts workers, replaces those that die, and passes signals on to them."""

from __future__ import annotations

import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from podium.errors import DataError, MissingExtraError, PodiumError
from podium.serving.settings import COUNTS_FOLDER, Settings

GRACE = 5.0  # seconds beyond the limit of a request, after which a worker that does not end is killed
PAUSE = 1.0  # seconds before a worker is replaced that died soon after its start
SOON = 5.0
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGALRM)
COULD_NOT_START = 3  # the exit code of a worker whose models could not be loaded


def run_service(settings: Settings, host: str, port: int, n_workers: int = 1) -> None:
    """Serve until SIGINT or SIGTERM; SIGHUP has all workers load their models again."""
    from podium.serving.logs import log

    listening = bind(host, port)
    with tempfile.TemporaryDirectory(prefix="podium-serve-") as folder:
        counts, good = Path(folder) / "counts", Path(folder) / "models"
        counts.mkdir()
        good.mkdir()
        os.environ[COUNTS_FOLDER] = str(counts)

        def work() -> int:
            from podium.serving.workers.worker import run_worker

            return run_worker(replace(settings, good_files=good), listening)

        log("listening", host=host, port=listening.getsockname()[1], workers=n_workers)
        Supervisor(work, n_workers, settings.limits.seconds + GRACE, lambda: any(good.iterdir()), _forget_counts).run()


def require_extra() -> None:
    """Refuse to start where a package is missing, before any process is made."""
    for package in ("litestar", "msgspec", "uvicorn", "prometheus_client"):
        if find_spec(package) is None:
            raise MissingExtraError(package.replace("_", "-"), "serve", "podium serve")


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens; workers share it, so that no connection is lost while one is replaced."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
    except (OSError, OverflowError) as error:
        raise DataError(f"cannot listen on {host}, port {port}: {error}") from None
    listening.listen(2048)
    listening.set_inheritable(True)
    return listening


def _forget_counts(pid: int) -> None:
    """What a dead worker had under way is not under way any more; what it counted stays."""
    for path in Path(os.environ[COUNTS_FOLDER]).glob(f"gauge_live*_{pid}.db"):
        path.unlink(missing_ok=True)


class Supervisor:
    """Keeps so many processes at work.

    Args:
        work: what a worker does; its exit code.
        n_workers: how many.
        patience: seconds that workers get to end.
        has_started: whether a worker has ever been ready; if none was, one that cannot start ends the service.
        on_death: hears the number of a process that ended.

    """

    def __init__(
        self, work: Callable[[], int], n_workers: int, patience: float, has_started: Callable[[], bool],
        on_death: Callable[[int], None],
    ) -> None:  # fmt: skip
        self._work, self._n_workers, self._patience = work, n_workers, patience
        self._has_started, self._on_death = has_started, on_death
        self._started: dict[int, float] = {}  # when, by the number of the process
        self._due: list[float] = []  # when workers are to be started in place of others

    def run(self) -> None:
        """Start workers, and stay until a signal ends them."""
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            for _ in range(self._n_workers):
                self._start()
            while (number := signal.sigwait(SIGNALS)) not in (signal.SIGINT, signal.SIGTERM):
                if number == signal.SIGHUP:
                    self._signal(signal.SIGHUP)
                else:
                    self._replace_dead()
        finally:
            self._end()
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def _start(self) -> None:
        pid = os.fork()
        if pid:
            self._started[pid] = time.monotonic()
            return
        code = 1
        try:
            for number in SIGNALS:
                signal.signal(number, signal.SIG_DFL)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until the models are loaded
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            code = self._work()
        except BaseException as error:
            print(f"podium: error: a worker failed: {type(error).__name__}: {error}", file=sys.stderr)
        finally:
            sys.stderr.flush()
            os._exit(code)

    def _replace_dead(self) -> None:
        """Start a worker for each that has ended; for one that ended soon after its start only after a pause."""
        from podium.serving.logs import log

        now = time.monotonic()
        for pid, code, started in self._ended():
            if code == COULD_NOT_START and not self._has_started():
                raise PodiumError("the service could not start; the message above says why")
            self._on_death(pid)
            self._due.append(now if now - started >= SOON else now + PAUSE)
            log("worker ended", level="warning", pid=pid, code=code)
        ready = [due for due in self._due if due <= now]
        self._due = [due for due in self._due if due > now]
        for _ in ready:
            self._start()
        if self._due:
            signal.setitimer(signal.ITIMER_REAL, max(0.001, min(self._due) - now))

    def _ended(self) -> list[tuple[int, int, float]]:
        """Workers that are no more, with their exit codes (minus the number of a signal) and when they started."""
        ended = []
        for pid in list(self._started):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                ended.append((pid, os.waitstatus_to_exitcode(status), self._started.pop(pid)))
        return ended

    def _signal(self, number: int) -> None:
        for pid in self._started:
            os.kill(pid, number)  # those that ended are not waited for yet, so the number is still theirs

    def _end(self) -> None:
        """Have all workers finish what they have begun; kill those that do not."""
        self._signal(signal.SIGTERM)
        deadline = time.monotonic() + self._patience
        while self._started:
            self._ended()
            if time.monotonic() > deadline:
                self._signal(signal.SIGKILL)
            time.sleep(0.02)
