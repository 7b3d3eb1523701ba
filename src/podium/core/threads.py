"""Compiled kernels release the interpreter lock; this is how they are spread over threads."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from typing import TypeVar

from podium.core.validation import require_whole
from podium.errors import DataError, PodiumError

Item = TypeVar("Item")
Result = TypeVar("Result")
MOST_THREADS = 4096  # more is a mistake, and hardly a system can start them
WORTH_SHARING = 1 << 16  # rows of a simple pass: fewer take less time than to wake a thread
MULTIPLICATIONS_WORTH_SHARING = 1 << 26  # of a product of matrices

# torch's random numbers, and the number of threads of torch and BLAS, belong to the process: who sets them takes turns.
PROCESS_WIDE = threading.RLock()


class _Limit(threading.local):
    """The most threads that work begun in this thread may use; None for any number."""

    n_threads: int | None = None


_limit = _Limit()


@contextmanager
def at_most_threads(n_threads: int | None) -> Iterator[None]:
    """Let what is called here, in this thread, use so many threads, whatever it is asked for; None for any number."""
    before, _limit.n_threads = _limit.n_threads, n_threads
    try:
        yield
    finally:
        _limit.n_threads = before


def thread_count(n_threads: int | None = None) -> int:
    """The number of threads to use: what was asked for, or the cores this process may run on; within the limit."""
    if _limit.n_threads == 1:
        return 1
    if n_threads is None:
        wanted = _n_cores()
    else:
        require_whole("n_threads", n_threads, 1, optional=True)
        if n_threads > MOST_THREADS:
            raise DataError(f"n_threads must be {MOST_THREADS} at most, but is {n_threads}")
        wanted = int(n_threads)
    return wanted if _limit.n_threads is None else min(wanted, _limit.n_threads)


def _n_cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS and Windows
        return os.cpu_count() or 1


def n_threads_for(work: float, n_threads: int | None = None, least: float = WORTH_SHARING) -> int:
    """The number of threads for some work: one if it is less than `least`, since waking a thread takes time, too.

    Args:
        work: in units of `least`: rows of a simple pass by default.
        n_threads: what was asked for; all cores by default.
        least: the work from which a second thread is worth it.

    Example:
        >>> n_threads_for(100, 4), n_threads_for(1_000_000, 4)
        (1, 4)

    """
    return 1 if work < least else thread_count(n_threads)


@contextmanager
def starting_threads() -> Iterator[None]:
    """Raise an error with a remedy where the system refuses to start a thread."""
    try:
        yield
    except RuntimeError as error:
        if "start new thread" not in str(error):
            raise
        raise PodiumError(
            f"the system refuses to start another thread, with {threading.active_count()} running in Python: pass a "
            "smaller n_threads, or raise the limit of processes (ulimit -u, a container's pids limit) "
            "or of memory"
        ) from error


def map_threads(
    function: Callable[[Item], Result], items: Iterable[Item], n_threads: int | None = None
) -> Iterator[Result]:
    """Yield `function(item)` for every item in order, computed on threads.

    Items are drawn only a little ahead of the results, so a lazy iterable of large items stays lazy.
    The first exception, in the order of the items, is raised; later items are then not started. The
    pool lives for this one call: nothing is left behind for a forked child to trip over.
    """
    n_threads = thread_count(n_threads)
    if n_threads == 1 or (isinstance(items, Sized) and len(items) < 2):
        yield from map(function, items)
        return
    with ThreadPoolExecutor(n_threads, thread_name_prefix="podium") as pool:
        queue: list[Future[Result]] = []
        try:
            for item in items:
                with starting_threads():
                    queue.append(pool.submit(function, item))
                while len(queue) > 2 * n_threads:
                    yield queue.pop(0).result()
            while queue:
                yield queue.pop(0).result()
        finally:
            for future in queue:
                future.cancel()


def ranges(n: int, n_threads: int | None = None, smallest: int = 1024) -> list[tuple[int, int]]:
    """Cut 0 … n into contiguous ranges, a few for each thread and none smaller than `smallest`; one for one thread."""
    n_threads = thread_count(n_threads)
    pieces = 1 if n_threads == 1 else max(1, min(4 * n_threads, n // smallest))
    bounds = [n * k // pieces for k in range(pieces + 1)]
    return list(pairwise(bounds))
