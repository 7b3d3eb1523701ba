"""Operations on memory and threads that Python does not have.

Kernels call these functions. `podium.core.llvm_lanes` compiles each to LLVM instructions. The Python body defines the
result, and is compiled instead if the instructions cannot be used (`podium.core.compiling.uses_llvm`).
"""

from __future__ import annotations

from typing import Any

from podium.core.compiling import helper


def not_inlined() -> None:
    """Prevent inlining of the helper that calls this: in a large caller its inner loop would run out of registers."""


def inlined() -> None:
    """Force inlining of the helper that calls this, whatever its size; use it for helpers on lanes within a loop."""


def borrowed(value: Any) -> Any:
    """Return the same array, or tuple of arrays and numbers, without reference counting.

    Each slice of an array changes its reference count twice, atomically. That takes longer than a short loop, and
    threads that count references to the same array wait for each other. Only use this for arrays that the caller of a
    kernel keeps alive until the kernel returns.
    """
    return value


def prefetch(array: Any, index: Any) -> None:
    """Prefetch the cache line of array[index]."""


def copy_16_bytes(target: Any, place: Any, source: Any, start: Any) -> None:
    """Set target[place : place + 16] = source[start : start + 16] for bytes, with one load and one store."""
    for k in range(16):
        target[place + k] = source[start + k]


def add_atomically(array: Any, index: Any, amount: Any) -> Any:
    """Add an amount to array[index] atomically, and return the previous value."""
    before = array[index]
    array[index] += amount
    return before


def read_atomically(array: Any, index: Any) -> Any:
    """Return array[index] with acquire semantics: everything that its writer wrote before is visible."""
    return array[index]


def yield_thread() -> None:
    """Let other threads run while this one waits for them."""


OPERATIONS = (
    not_inlined, inlined, borrowed, prefetch, copy_16_bytes, add_atomically, read_atomically,
    yield_thread,
)  # fmt: skip


@helper
def wait_at_barrier(barrier: Any, n_threads: Any) -> None:
    """Wait until all threads of a team have arrived; everything that they wrote before is then visible to all.

    `barrier` is an array of 16 int64, initially zero. Word 0 is the number of threads that have arrived. Word 8 is the
    number of meetings. It is in another cache line, because threads that poll it would slow down those that write
    word 0. Waits are short, so threads poll a few thousand times before they yield.
    """
    if n_threads == 1:
        return
    n_meetings = read_atomically(barrier, 8)
    if add_atomically(barrier, 0, 1) == n_threads - 1:
        add_atomically(barrier, 0, -n_threads)
        add_atomically(barrier, 8, 1)
        return
    polls = 0
    while read_atomically(barrier, 8) == n_meetings:
        polls += 1
        if polls > 2000:
            yield_thread()
