"""Threads, progress, errors."""

import io
import os
import pickle
import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from podium.core import progress as progress_module
from podium.core.compiling import Kernel, compile_in_background
from podium.core.files import remove_leftovers, replacing
from podium.core.progress import progress
from podium.core.threads import map_threads, ranges, thread_count
from podium.errors import DataError, FileFormatError, MissingExtraError


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_results_come_in_order(n_threads):
    assert list(map_threads(lambda k: k * k, range(100), n_threads)) == [k * k for k in range(100)]
    assert list(map_threads(str, [], n_threads)) == []


def test_items_are_taken_only_slightly_ahead_of_results():
    taken = []

    def items():
        for k in range(1000):
            taken.append(k)
            yield k

    results = map_threads(lambda k: k, items(), 2)
    next(results)
    assert len(taken) < 20
    results.close()


@pytest.mark.parametrize("n_threads", [1, 3])
def test_the_first_exception_in_order_is_raised(n_threads):
    def work(k):
        if k >= 5:
            raise ValueError(f"item {k}")
        return k

    before = threading.active_count()  # clusters of other tests may have threads in this process
    results = map_threads(work, range(100), n_threads)
    with pytest.raises(ValueError, match="item 5"):
        list(results)
    assert threading.active_count() <= before


def test_thread_count():
    assert thread_count() >= 1
    assert thread_count(3) == 3
    with pytest.raises(DataError, match="n_threads must be a whole number from 1"):
        thread_count(0)


@pytest.mark.parametrize("n", [0, 1, 1000, 5000, 10**7])
def test_ranges_cover_everything_once(n):
    pieces = ranges(n, 2)
    assert pieces[0][0] == 0
    assert pieces[-1][1] == n
    assert all(a[1] == b[0] for a, b in pairwise(pieces))
    assert len(pieces) <= 8


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_shows_a_bar_after_a_while(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(progress_module, "PATIENCE", 0.0)
    with progress("counting sheep", 3) as advance:
        for _ in range(3):
            advance(1)
    assert "counting sheep" in sys.stderr.getvalue()


@pytest.mark.parametrize(("stream", "patience"), [(Terminal, 60.0), (io.StringIO, 0.0)])
def test_short_work_and_other_streams_show_no_bar(stream, patience, monkeypatch):
    monkeypatch.setattr(sys, "stderr", stream())
    monkeypatch.setattr(progress_module, "PATIENCE", patience)
    with progress("counting sheep", 3) as advance:
        advance(3)
    assert sys.stderr.getvalue() == ""


@pytest.mark.parametrize(
    "error",
    [
        FileFormatError("a.txt", "is odd", line=3, column=4),
        MissingExtraError("pyarrow", "parquet", "Parquet"),
    ],
)
def test_errors_survive_pickling(error):
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)


def test_a_team_runs_a_function_on_all_threads_and_raises_its_errors():
    from podium.core.team import Team

    with Team(3) as team:
        assert team.run(lambda thread: thread * 10) == [0, 10, 20]
        assert team.shares(10, lambda a, b: (a, b)) == [(0, 10)]
        parts = team.shares(1 << 17, lambda a, b: (a, b))
        assert [a for a, _ in parts] == [0, *(b for _, b in parts[:-1])]
        assert parts[-1][1] == 1 << 17

        def fail(thread):
            if thread == 2:
                raise ValueError("two")
            return thread

        with pytest.raises(ValueError, match="two"):
            team.run(fail)
        assert team.run(lambda thread: thread) == [0, 1, 2]


class TestCompileInBackground:
    @staticmethod
    def kernel(signatures: tuple[Any, ...] = ()) -> Kernel:
        def work() -> None:
            pass

        work.__module__ = "podium.some.kernels"
        kernel = Kernel(work)
        kernel.dispatcher = SimpleNamespace(signatures=signatures)
        return kernel

    def test_another_process_calls_the_function(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "work.py").write_text(
            "import os, pathlib\n"
            "def call():\n"
            "    pathlib.Path(__file__).with_suffix('.pid').write_text(str(os.getpid()))\n"
        )
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.setattr("podium.core.compiling.thread_count", lambda: 2)
        monkeypatch.setattr("podium.core.compiling.cache_folder", lambda: tmp_path)
        kernel = self.kernel()
        wait = compile_in_background(kernel, "work", "call")
        assert compile_in_background(kernel, "work", "nothing") == wait
        assert wait() == 0
        assert int((tmp_path / "work.pid").read_text()) != os.getpid()

    @pytest.mark.parametrize("reason", ["cached", "compiled", "uncached", "no third process", "one core"])
    def test_nothing_is_started_without_need(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: str
    ) -> None:
        def refuse(*_: Any, **__: Any) -> None:
            raise AssertionError("a process was started")

        monkeypatch.setattr("subprocess.Popen", refuse)
        monkeypatch.setattr("podium.core.compiling.thread_count", lambda: 1 if reason == "one core" else 2)
        folder = None if reason == "uncached" else tmp_path
        monkeypatch.setattr("podium.core.compiling.cache_folder", lambda: folder)
        kernel = self.kernel(((),) if reason == "compiled" else ())
        if reason == "cached":
            (tmp_path / "some_1").mkdir()
            (tmp_path / "some_1" / "kernels.work-7.py311.nbi").touch()
        if reason == "no third process":
            monkeypatch.setenv("PODIUM_COMPILES", "1")
        assert compile_in_background(kernel, "nowhere", "nothing")() is None


def test_threads_that_need_a_kernel_at_the_same_time_share_its_dispatcher(monkeypatch):
    from podium.core import compiling

    start_numba = compiling.start_numba

    def start_slowly():
        time.sleep(0.05)
        start_numba()

    def double(x):
        return 2 * x

    monkeypatch.setattr(compiling, "start_numba", start_slowly)
    kernel, dispatchers, barrier = Kernel(double), [], threading.Barrier(3)

    def get_dispatcher():
        barrier.wait(10)
        dispatchers.append(kernel.dispatcher)

    threads = [threading.Thread(target=get_dispatcher) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(dispatchers) == 3
    assert len({id(dispatcher) for dispatcher in dispatchers}) == 1


def test_files_that_are_being_written_are_not_removed_as_leftovers(tmp_path):
    path = tmp_path / "run"
    leftover = tmp_path / ".run.abcdefgh"
    leftover.touch()
    with replacing(path) as temporary:
        temporary.write_text("half")
        thread = threading.Thread(target=remove_leftovers, args=(path,))
        thread.start()
        thread.join()
        code = f"import pathlib; from podium.core.files import remove_leftovers as r; r(pathlib.Path({str(path)!r}))"
        subprocess.run([sys.executable, "-c", code], check=True)
        assert temporary.exists()
        temporary.write_text("whole")
    assert path.read_text() == "whole"
    assert list(tmp_path.iterdir()) == [path]
