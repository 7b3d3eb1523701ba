"""Operations on memory and threads that Python has no words for, declared with what they mean.

Kernels call these functions. `podium.core.llvm_lanes` compiles each to LLVM instructions. The bodies here state what
it does, and are compiled instead if those instructions cannot be used (`podium.core.compiling.uses_llvm`).
"""

from __future__ import annotations

from typing import Any

from podium.core.compiling import helper


def not_inlined() -> None:
    """Keep the helper that calls this a function of its own: in a large caller its inner loop would lack registers."""


def inlined() -> None:
    """Said in a helper: make it a part of its caller, however long it is. For helpers of lanes within a loop."""


def borrowed(value: Any) -> Any:
    """Return the same array, or tuple of arrays and numbers, without reference counting.

    Counting the owners of a slice costs more than a short loop. Only for what the caller of a kernel holds on to until
    it returns.
    """
    return value


def prefetch(array: Any, index: Any) -> None:
    """Ask for the cache line of array[index], without waiting for it."""


def copy_16_bytes(target: Any, place: Any, source: Any, start: Any) -> None:
    """target[place : place + 16] = source[start : start + 16], bytes, as one load and one store."""
    for k in range(16):
        target[place + k] = source[start + k]


def add_atomically(array: Any, index: Any, amount: Any) -> Any:
    """array[index] += amount, seen by all threads as one step; what was there before."""
    before = array[index]
    array[index] += amount
    return before


def read_atomically(array: Any, index: Any) -> Any:
    """array[index] as it is now, and with it all that its writer wrote before."""
    return array[index]


def yield_thread() -> None:
    """Let other threads run, for a thread that waits for them."""


OPERATIONS = (
    not_inlined, inlined, borrowed, prefetch, copy_16_bytes, add_atomically, read_atomically,
    yield_thread,
)  # fmt: skip


@helper
def wait_at_barrier(barrier: Any, n_threads: Any) -> None:
    """Wait until all threads of a team have come here; what each wrote before is then seen by all.

    `barrier` is 16 int64, zero at first: how many have come, and eight words on, so that the waiting threads do
    not read the cache line that the others write, how often all have met. A wait is short: threads look again a
    few thousand times before they let others run.
    """
    if n_threads == 1:
        return
    met = read_atomically(barrier, 8)
    if add_atomically(barrier, 0, 1) == n_threads - 1:
        add_atomically(barrier, 0, -n_threads)
        add_atomically(barrier, 8, 1)
        return
    looks = 0
    while read_atomically(barrier, 8) == met:
        looks += 1
        if looks > 2000:
            yield_thread()
