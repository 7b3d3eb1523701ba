"""Jobs on threads: how many run at a time, how many threads they get, and how they end."""

import os
import signal
import threading
import time
import warnings

import pytest

from podium.core.interrupts import Cancelled, between_steps
from podium.core.jobs import each_warning_once, run_jobs
from podium.core.progress import progress
from podium.core.threads import at_most_threads, thread_count


@pytest.fixture(autouse=True)
def _default_handler():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def steps(ended=None):
    """Work until a stop."""
    with between_steps() as check:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            try:
                check()
            except BaseException as reason:
                if ended is not None:
                    ended.append(type(reason))
                raise
            time.sleep(0.002)
    pytest.fail("the work was not stopped")


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_each_thread_runs_a_job(n_threads):
    lock, running, highest = threading.Lock(), [0], [0]

    def job(k):
        with lock:
            running[0] += 1
            highest[0] = max(highest[0], running[0])
        time.sleep(0.02)
        with lock:
            running[0] -= 1
        return k * k

    assert dict(run_jobs([lambda k=k: job(k) for k in range(7)], 7, n_threads)) == {k: k * k for k in range(7)}
    assert highest[0] == n_threads


@pytest.mark.parametrize(("n_jobs", "n_threads", "shares"), [(1, 4, [4]), (2, 4, [2, 2]), (3, 8, [2, 3, 3])])
def test_idle_threads_are_shared(n_jobs, n_threads, shares):
    barrier = threading.Barrier(n_jobs)

    def job():
        barrier.wait(10)
        return thread_count()

    with at_most_threads(None):
        counts = [count for _, count in run_jobs([job] * n_jobs, n_jobs, n_threads)]
    assert sorted(counts) == [min(share, thread_count()) for share in shares]


def test_a_job_gets_at_most_its_share_of_threads():
    counts = [pair for _, pair in run_jobs([lambda: (thread_count(), thread_count(7))] * 4, 4, 1)]
    assert counts == [(1, 1)] * 4
    assert thread_count(7) == 7


def test_an_error_stops_running_jobs_and_no_others_begin():
    ended, begun = [], threading.Event()

    def failing():
        begun.wait(10)
        raise ValueError("an error")

    def running():
        begun.set()
        steps(ended)

    with pytest.raises(ValueError, match="an error"):
        list(run_jobs([running, failing, lambda: ended.append("begun")], 3, 2))
    assert ended == [Cancelled]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("podium-job")]


def test_an_interrupt_reaches_the_jobs_and_their_results_are_yielded():
    def job():
        with pytest.raises(KeyboardInterrupt):
            steps()
        return "so far"

    def interrupt():
        os.kill(os.getpid(), signal.SIGINT)
        return job()

    results = []
    with pytest.raises(KeyboardInterrupt):
        results.extend(iter_into(results, run_jobs([interrupt, job], 2, 2)))
    assert sorted(results) == [(0, "so far"), (1, "so far")]


def iter_into(results, outcomes):
    for outcome in outcomes:
        results.append(outcome)
    return []


def test_closing_the_generator_ends_the_jobs():
    ended = []
    outcomes = run_jobs([lambda: 1, lambda: steps(ended)], 2, 2)
    assert next(outcomes) == (0, 1)
    outcomes.close()
    assert ended == [Cancelled]


def test_jobs_within_a_job_use_its_threads_and_stop_with_it():
    barrier = threading.Barrier(2)

    def outer():
        barrier.wait(10)
        return sorted(count for _, count in run_jobs([thread_count] * 3, 3))

    assert dict(run_jobs([outer] * 2, 2, 2)) == {0: [1, 1, 1], 1: [1, 1, 1]}
    ended = []

    def nested():
        return list(run_jobs([lambda: steps(ended)] * 2, 2))

    def failing():
        time.sleep(0.1)
        raise ValueError("outside")

    with pytest.raises(ValueError, match="outside"):
        list(run_jobs([nested, failing], 2, 4))  # two threads for the nested jobs
    assert ended
    assert set(ended) == {Cancelled}


def test_a_generator_of_jobs_can_decide_late_to_end():
    done = []

    def jobs():
        for k in range(10):
            if len(done) >= 3:
                return
            yield lambda k=k: done.append(k)

    assert len(list(run_jobs(jobs(), 10, 1))) == 3


def test_jobs_show_no_progress(capsys):
    def job():
        with progress("inner", 1, verbose=1) as advance:
            advance(1)

    list(run_jobs([job] * 2, 2, 2))
    assert capsys.readouterr().err == ""


def test_each_warning_of_all_threads_is_shown_once():
    def job():
        warnings.warn("of each", UserWarning, stacklevel=1)
        warnings.warn(f"of {threading.get_ident()}", UserWarning, stacklevel=1)
        time.sleep(0.05)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with each_warning_once():
            list(run_jobs([job] * 6, 6, 2))
    texts = [str(warning.message) for warning in caught]
    assert texts.count("of each") == 1
    assert len(texts) == len(set(texts)) == 3
