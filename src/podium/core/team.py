"""A team of persistent threads, for work in many short pieces.

Waking a sleeping thread takes about 50 µs, a tenth of the time of a tree on small data. So an idle thread first waits
in compiled code, without the interpreter lock, for the team's **event**, a counter that increases when there is work. A
thread that starts to work needs the lock, and would fall asleep again if the caller still held it. So kernels that a
team runs together (`Team.run_kernel`) set the event themselves, after the lock is released. The threads meet before the
kernel ends. Then the caller's thread returns, and the others stay in the kernel until the next event, so none of them
takes the lock while the caller runs a few lines of Python.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from podium.core.array_types import Ints
from podium.core.compiling import helper, kernel, uses_llvm
from podium.core.intrinsics import add_atomically, read_atomically, wait_at_barrier
from podium.core.threads import n_threads_for, starting_threads, thread_count
from podium.errors import PodiumError

Result = TypeVar("Result")
POLLS = 1_000_000  # how often a thread polls the event before it goes to sleep: about 0.6 ms


class _Worker(threading.Thread):
    """A thread that waits for work."""

    def __init__(self, number: int, event: Ints) -> None:
        super().__init__(name=f"podium-{number}", daemon=True)
        self.number, self.event = number, event
        self.result: Any = None
        self.error: BaseException | None = None
        self._work: Callable[[int], Any] | None = None
        self._answers = self._is_ended = self._sleeps = False
        self._state, self._wake, self._done = threading.Lock(), threading.Lock(), threading.Lock()
        self._wake.acquire()
        self._done.acquire()
        self.start()

    def assign(self, work: Callable[[int], Any] | None, answers: bool = True) -> None:
        """Assign work that begins at the next event, or None to end; `answers` says whether `wait` will be called."""
        with self._state:
            self._work, self._answers, self._is_ended = work, answers, work is None
            if self._sleeps:
                self._sleeps = False
                self._wake.release()

    def wait(self) -> None:
        """Wait until the assigned work is done."""
        self._done.acquire()

    def run(self) -> None:
        """Do the assigned work until the team ends."""
        while True:
            if self._work is None and not self._is_ended:
                compiled_wait(self.event, POLLS)
            with self._state:
                falls_asleep = self._sleeps = self._work is None and not self._is_ended
            if falls_asleep:
                self._wake.acquire()
            with self._state:
                work, answers, self._work = self._work, self._answers, None
            if work is None:
                return
            try:
                self.result, self.error = work(self.number), None
            except BaseException as error:  # raised again in the thread that assigned the work
                self.error = error
            if answers:
                self._done.release()


class Team:
    """Persistent threads, including the caller's.

    A team must be closed, for example by `with Team(n) as team`. It serves one caller at a time.

    Attributes:
        n_threads: the number of threads.
        event: a counter that threads poll for work (`set_event`).

    """

    def __init__(self, n_threads: int | None = None) -> None:
        self.n_threads = thread_count(n_threads)
        if self.n_threads > 1 and not uses_llvm():
            self.n_threads = 1  # threads that wait for each other need atomic operations
        self.event = np.zeros(1, np.int64)
        self._workers: list[_Worker] = []
        try:
            with starting_threads():
                for k in range(1, self.n_threads):
                    self._workers.append(_Worker(k, self.event))
        except PodiumError:
            self.close()
            raise

    def run(self, work: Callable[[int], Result]) -> list[Result]:
        """Call `work(thread)` for threads 0 … n_threads − 1 at the same time, and return the results."""
        for worker in self._workers:
            worker.assign(work)
        if self._workers:
            compiled_set_event(0, self.n_threads, self.event)
        try:
            first = work(0)
        finally:
            for worker in self._workers:
                worker.wait()
        for worker in self._workers:
            if worker.error is not None:
                raise worker.error
        return [first, *(worker.result for worker in self._workers)]

    def run_kernel(self, work: Callable[[int], Result]) -> Result:
        """Run a kernel that sets the event and whose threads meet before they end (`set_event`, `leave`).

        Return the result of the caller's thread. The kernel must not fail, or the other threads would wait forever.
        """
        for worker in self._workers:
            worker.assign(work, answers=False)
        return work(0)

    def shares(self, n: int, work: Callable[[int, int], Result]) -> list[Result]:
        """Call `work(first, last)` for contiguous shares of 0 … n − 1: one per thread, or just one if n is small."""
        n_shares = n_threads_for(n, self.n_threads)
        return self.each(n_shares, lambda k: work(n * k // n_shares, n * (k + 1) // n_shares))

    def each(self, n: int, work: Callable[[int], Result]) -> list[Result]:
        """Call `work(k)` for 0 … n − 1, with n at most the number of threads; n = 1 wakes no thread."""
        return [work(0)] if n == 1 else self.run(work)

    def close(self) -> None:
        """End the threads."""
        for worker in self._workers:
            worker.assign(None)
        if self._workers:
            compiled_set_event(0, self.n_threads, self.event)
        for worker in self._workers:
            worker.join()
        self._workers = []

    def __enter__(self) -> Team:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


# --- kernels


@helper
def set_event(thread: Any, n_threads: Any, event: Any) -> None:
    """Start the other threads; call it at the beginning of a kernel that a team runs."""
    if n_threads > 1 and thread == 0:
        add_atomically(event, 0, 1)


@helper
def leave(thread: Any, n_threads: Any, barrier: Any, event: Any) -> None:
    """Wait until all threads have arrived; then let the caller's thread return, while the others wait for an event.

    Call it at the end of a kernel that a team runs.
    """
    wait_at_barrier(barrier, n_threads)
    if thread > 0:
        wait_for_event(event, POLLS)


@helper
def wait_for_event(event: Ints, polls: int) -> None:
    """Wait for the next event, polling at most `polls` times."""
    last = read_atomically(event, 0)
    for _ in range(polls):
        if read_atomically(event, 0) != last:
            return


# Called from Python, without the interpreter lock.
compiled_wait, compiled_set_event = kernel(wait_for_event), kernel(set_event)
