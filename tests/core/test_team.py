"""Teams: kernels that threads run together, and other work between them."""

import threading
import time

import numpy as np
import pytest

from podium.core.compiling import kernel
from podium.core.intrinsics import add_atomically
from podium.core.team import LOOKS, TURN, Team, leave, set_event, take_turn
from podium.core.threads import USES_LLVM


@kernel
def add_together(thread, n_threads, event, barrier, sums):
    """Every thread adds its number and 1; none leaves before all have."""
    set_event(thread, n_threads, event)
    add_atomically(sums, 0, thread + 1)
    leave(thread, n_threads, barrier, event)
    return sums[0]


@pytest.mark.skipif(not USES_LLVM, reason="threads that wait for each other need atomic operations")
@pytest.mark.parametrize("n_threads", [1, 2, 3, 5])
def test_no_thread_leaves_a_kernel_before_all_have_done_their_part(n_threads):
    barrier, sums = np.zeros(16, np.int64), np.zeros(1, np.int64)
    each = n_threads * (n_threads + 1) // 2
    with Team(n_threads) as team:
        for k in range(1, 101):
            found = team.run_kernel(lambda t: add_together(t, team.n_threads, team.event, barrier, sums))
            assert found == k * each
            if k % 10 == 0:  # other work in between, and threads that have fallen asleep
                assert team.run(lambda t: t) == list(range(n_threads))
            if k % 50 == 0:
                time.sleep(3e-9 * LOOKS)


@kernel
def wait_for(turn):
    take_turn(turn)


def test_a_thread_alone_has_the_turn_between_its_kernels():
    team, barrier, sums = Team(1), np.zeros(16, np.int64), np.zeros(1, np.int64)
    TURN[0] = 0
    team.run_kernel(lambda t: add_together(t, 1, team.event, barrier, sums))
    assert team.event is TURN
    assert TURN[0] == 1
    team.run_kernel(lambda t: add_together(t, 1, team.event, barrier, sums))  # gives it up, and takes it again
    assert (sums[0], TURN[0]) == (2, 1)


def test_a_turn_that_nobody_gives_up_is_not_waited_for_forever():
    turn = np.ones(1, np.int64)
    wait_for(turn)
    assert turn[0] == 1
    turn[0] = 0
    wait_for(turn)
    assert turn[0] == 1


def test_an_error_of_any_thread_is_raised_and_the_team_goes_on():
    with Team(3) as team:
        with pytest.raises(ZeroDivisionError):
            team.run(lambda t: 1 // (t - team.n_threads + 1))
        assert len(team.run(lambda t: t)) == team.n_threads


def test_a_team_that_sleeps_ends():
    before = threading.active_count()
    team = Team(3)
    time.sleep(3e-9 * LOOKS)
    team.close()
    Team(2).close()
    assert threading.active_count() == before
