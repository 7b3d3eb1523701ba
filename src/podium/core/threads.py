"""Run functions on threads; kernels release the interpreter lock."""

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
MAX_THREADS = 4096  # more is a mistake, and few systems can start them
MIN_PARALLEL_WORK = 1 << 16  # rows of a simple pass: fewer take less time than waking a thread
MIN_PARALLEL_MULTIPLICATIONS = 1 << 26  # of a matrix product

# Torch's random state and the thread counts of torch and BLAS are global, so code that sets them takes turns.
PROCESS_WIDE = threading.RLock()


class _Limit(threading.local):
    """How many threads this thread may use at most; None for no limit."""

    n_threads: int | None = None


_limit = _Limit()


@contextmanager
def at_most_threads(n_threads: int | None) -> Iterator[None]:
    """Limit the number of threads of the code in a with statement, in this thread; None for no limit."""
    before, _limit.n_threads = _limit.n_threads, n_threads
    try:
        yield
    finally:
        _limit.n_threads = before


def thread_count(n_threads: int | None = None) -> int:
    """Return the number of threads to use: `n_threads`, or the number of available cores, within the limit."""
    if _limit.n_threads == 1:
        return 1
    if n_threads is None and hasattr(os, "sched_getaffinity"):  # not on macOS and Windows
        count = len(os.sched_getaffinity(0))
    elif n_threads is None:
        count = os.cpu_count() or 1
    else:
        require_whole("n_threads", n_threads, 1, optional=True)
        if n_threads > MAX_THREADS:
            raise DataError(f"n_threads must be at most {MAX_THREADS}, but got {n_threads}")
        count = int(n_threads)
    return count if _limit.n_threads is None else min(count, _limit.n_threads)


def n_threads_for(work: float, n_threads: int | None = None, least: float = MIN_PARALLEL_WORK) -> int:
    """Return the number of threads for some work: one if it is less than `least`, because waking a thread takes time.

    The default of `least` counts work in rows of a simple pass.
    """
    return 1 if work < least else thread_count(n_threads)


@contextmanager
def starting_threads() -> Iterator[None]:
    """Raise an error with a remedy if the system cannot start a thread."""
    try:
        yield
    except RuntimeError as error:
        if "start new thread" not in str(error):
            raise
        raise PodiumError(
            f"the system cannot start another thread; {threading.active_count()} are running in Python: pass a "
            "smaller n_threads, or raise the limit on processes (ulimit -u, a container's pids limit) or on memory"
        ) from error


def map_threads(
    function: Callable[[Item], Result], items: Iterable[Item], n_threads: int | None = None
) -> Iterator[Result]:
    """Yield `function(item)` for every item in order, computed on threads.

    Items are drawn only slightly ahead of the results, so a lazy iterable of large items stays lazy. The first
    exception in the order of the items is raised, and later items are not started. The pool exists only during the
    call, so forked processes do not inherit it.
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
    """Divide 0 … n into contiguous ranges of at least `smallest`: a few per thread, or a single one for one thread."""
    n_threads = thread_count(n_threads)
    pieces = 1 if n_threads == 1 else max(1, min(4 * n_threads, n // smallest))
    bounds = [n * k // pieces for k in range(pieces + 1)]
    return list(pairwise(bounds))


def for_ranges(
    n: int, work: Callable[[int, int], object], n_threads: int | None = None, smallest: int = 1024
) -> None:  # fmt: skip
    """Call `work(first, last)` on threads, for `ranges` of 0 … n."""
    for _ in map_threads(lambda bounds: work(*bounds), ranges(n, n_threads, smallest), n_threads):
        pass
