"""Compiled kernels release the interpreter lock; this is how they are spread over threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from typing import TypeVar

from podium.errors import DataError

Item = TypeVar("Item")
Result = TypeVar("Result")


def thread_count(n_threads: int | None = None) -> int:
    """The number of threads to use: what was asked for, or the cores this process may run on."""
    if n_threads is None:
        try:
            return len(os.sched_getaffinity(0))
        except AttributeError:  # not on macOS and Windows
            return os.cpu_count() or 1
    if n_threads < 1:
        raise DataError(f"n_threads must be at least 1 or None for all cores, not {n_threads}")
    return n_threads


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
                queue.append(pool.submit(function, item))
                while len(queue) > 2 * n_threads:
                    yield queue.pop(0).result()
            while queue:
                yield queue.pop(0).result()
        finally:
            for future in queue:
                future.cancel()


def ranges(n: int, n_threads: int | None = None, smallest: int = 1024) -> list[tuple[int, int]]:
    """Cut 0 … n into contiguous ranges, a few for each thread and none smaller than `smallest`."""
    pieces = max(1, min(4 * thread_count(n_threads), n // smallest))
    bounds = [n * k // pieces for k in range(pieces + 1)]
    return list(pairwise(bounds))
