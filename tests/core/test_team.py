"""Teams: kernels that threads run together, with other work in between."""

import threading
import time

import numpy as np
import pytest

from podium.core.compiling import kernel, uses_llvm
from podium.core.intrinsics import add_atomically
from podium.core.jobs import run_jobs
from podium.core.team import POLLS, Team, leave, set_event
from podium.core.threads import map_threads
from podium.errors import PodiumError


@kernel
def add_together(thread, n_threads, event, barrier, sums):
    """Let every thread add its number and 1; none leaves before all threads have added theirs."""
    set_event(thread, n_threads, event)
    add_atomically(sums, 0, thread + 1)
    leave(thread, n_threads, barrier, event)
    return sums[0]


@pytest.mark.skipif(not uses_llvm(), reason="threads that wait for each other need atomic operations")
@pytest.mark.parametrize("n_threads", [1, 2, 3, 5])
def test_threads_leave_a_kernel_together(n_threads):
    barrier, sums = np.zeros(16, np.int64), np.zeros(1, np.int64)
    sum_of_run = n_threads * (n_threads + 1) // 2
    with Team(n_threads) as team:
        for k in range(1, 101):
            total = team.run_kernel(lambda t: add_together(t, team.n_threads, team.event, barrier, sums))
            assert total == k * sum_of_run
            if k % 10 == 0:  # other work in between, and threads that have fallen asleep
                assert team.run(lambda t: t) == list(range(n_threads))
            if k % 50 == 0:
                time.sleep(3e-9 * POLLS)


def test_a_team_raises_an_error_of_any_thread_and_remains_usable():
    with Team(3) as team:
        with pytest.raises(ZeroDivisionError):
            team.run(lambda t: 1 // (t - team.n_threads + 1))
        assert len(team.run(lambda t: t)) == team.n_threads


def test_a_sleeping_team_can_be_closed():
    before = threading.active_count()
    team = Team(3)
    time.sleep(3e-9 * POLLS)
    team.close()
    Team(2).close()
    assert threading.active_count() == before


@pytest.mark.skipif(not uses_llvm(), reason="kernels run on one thread")
@pytest.mark.parametrize("n_allowed", [0, 1, 2])
@pytest.mark.parametrize(
    "work",
    [
        lambda: Team(4),
        lambda: list(map_threads(lambda k: time.sleep(0.01), range(9), 4)),
        lambda: list(run_jobs([lambda: time.sleep(0.01)] * 9, 9, 4)),
    ],
    ids=["team", "map_threads", "run_jobs"],
)
def test_an_error_with_a_remedy_is_raised_if_threads_cannot_start(work, n_allowed, monkeypatch):
    start, started = threading.Thread.start, []

    def limited(thread):
        if len(started) >= n_allowed:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)
    with pytest.raises(PodiumError, match=r"cannot start another thread.*smaller n_threads"):
        work()
    assert len(started) == n_allowed
    for thread in started:
        thread.join(10)
        assert not thread.is_alive()


def test_other_errors_of_a_function_are_raised_unchanged():
    def fails(k):
        raise RuntimeError("can't start new thread, says the function")

    with pytest.raises(RuntimeError, match="says the function") as raised:
        list(map_threads(fails, range(9), 4))
    assert not isinstance(raised.value, PodiumError)
