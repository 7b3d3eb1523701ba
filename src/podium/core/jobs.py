"""Run jobs concurrently, one per thread; their kernels run without the interpreter lock."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

from podium.core.interrupts import Cancelled, Stop, Stopped, between_steps, stop_of_thread, stopped_by
from podium.core.threads import at_most_threads, starting_threads, thread_count
from podium.errors import PodiumError

Result = TypeVar("Result")
POLL = 0.1  # seconds between checks for signals


def run_jobs(
    jobs: Iterable[Callable[[], Result]], n_jobs: int, n_threads: int | None = None
) -> Generator[tuple[int, Result], None, None]:
    """Run jobs, as many at a time as there are threads, and yield the number and result of each as it ends.

    A job is taken from the iterable when a thread becomes free, so a generator can decide as late as that whether there
    is another job. A job gets one thread, or more if threads would otherwise be idle: free threads are divided evenly
    among the jobs that have not begun. Results must not depend on the number of threads.

    If a job fails, the others end at their next step (`between_steps`), and its error is raised. If a signal interrupts
    the caller, jobs raise the same exception at their next step. The results of jobs that handle it are still yielded
    before it is raised here. A caller that may stop early must close the generator (`contextlib.closing`), which ends
    the jobs. A job that runs jobs itself uses only its share of the threads.

    Args:
        jobs: functions without arguments.
        n_jobs: the maximum number of jobs.
        n_threads: the number of threads for all jobs together; all cores by default.

    """
    n_threads = thread_count(n_threads)
    outer = stop_of_thread()
    if outer is not None and n_threads == 1:  # a job within a job runs in this thread
        for number, job in enumerate(jobs):
            outer.check()
            yield number, job()
        return
    with between_steps() as check_signals:
        run = _Run(iter(jobs), n_jobs, n_threads, Stop(outer))
        interrupt = None
        try:
            while run.n_workers:
                try:
                    if interrupt is None:
                        check_signals()
                    outcome = run.outcomes.get(timeout=POLL)
                except Empty:
                    continue
                except (KeyboardInterrupt, Stopped, Cancelled) as signal:
                    if interrupt is not None:  # a second signal: do not wait, the threads end by themselves
                        run.n_workers = 0
                        raise
                    interrupt = signal
                    run.stop.request(signal)
                    continue
                if outcome is None:
                    run.n_workers -= 1
                else:
                    yield outcome
        finally:
            run.end()
        if interrupt is not None:
            raise interrupt
    if run.errors:
        raise min(run.errors, key=lambda numbered: numbered[0])[1]


class _Run(Generic[Result]):
    """The threads of `run_jobs`, and what their jobs return.

    Attributes:
        outcomes: a queue of the number and result of each finished job, and None for each finished thread.
        n_workers: the number of threads that have not finished.
        errors: the number and error of each failed job; several may fail at the same time.

    """

    def __init__(self, jobs: Iterator[Callable[[], Result]], n_jobs: int, n_threads: int, stop: Stop) -> None:
        self.jobs, self.n_waiting, self.n_free, self.stop = jobs, n_jobs, n_threads, stop
        self.n_begun = 0
        self.errors: list[tuple[int, BaseException]] = []
        self.outcomes: SimpleQueue[tuple[int, Result] | None] = SimpleQueue()
        self.lock = threading.Lock()
        self.n_workers = 0
        try:
            with starting_threads():
                for k in range(min(n_threads, n_jobs)):
                    threading.Thread(target=self._work, name=f"podium-job-{k}", daemon=True).start()
                    self.n_workers += 1
        except PodiumError:
            self.end()
            raise

    def end(self) -> None:
        """Stop all threads at their next step, and wait for them."""
        self.stop.request(Cancelled())
        while self.n_workers:
            self.n_workers -= self.outcomes.get() is None

    def _work(self) -> None:
        number = -1
        try:
            with stopped_by(self.stop):
                while (assignment := self._next_job()) is not None:
                    number, job, share = assignment
                    with at_most_threads(share):
                        self.outcomes.put((number, job()))
                    with self.lock:
                        self.n_free += share
        except BaseException as error:  # raised again by the thread that waits for the jobs
            if error is not self.stop.reason and not isinstance(error, Cancelled):
                self.errors.append((number, error))
                self.stop.request(Cancelled())
        finally:
            self.outcomes.put(None)

    def _next_job(self) -> tuple[int, Callable[[], Result], int] | None:
        """Return the number of the next job, the job, and its share of the threads; None if there is no other job."""
        with self.lock:
            self.stop.check()
            job = next(self.jobs, None)
            if job is None:
                return None
            number, share = self.n_begun, max(1, self.n_free // max(1, self.n_waiting))
            self.n_begun, self.n_waiting, self.n_free = number + 1, self.n_waiting - 1, self.n_free - share
            return number, job, share


@contextmanager
def each_warning_once() -> Iterator[None]:
    """Collect the warnings of all threads and show each once at the end; drop them if the work fails.

    Warning filters apply to the whole process, so this does nothing in a job: the code that runs the job collects.
    """
    if stop_of_thread() is not None:
        yield
        return
    with warnings.catch_warnings(record=True) as caught:
        yield
    distinct = {(warning.category, str(warning.message)): warning for warning in reversed(caught)}
    for warning in reversed(distinct.values()):
        warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
