"""Check the operations written in LLVM before any kernel relies on them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from podium.core import bitwise, intrinsics, llvm_bitwise, llvm_lanes, simd  # noqa: F401  the llvm modules register
from podium.core.bitwise import WORD
from podium.core.simd import LANES, WORDS


@njit(error_model="numpy")
def _try(numbers: Any, words: Any, ranks: Any, barrier: Any) -> Any:
    intrinsics.inlined()
    lanes = simd.load_lanes(numbers, 1)
    lanes = simd.choose_lanes(lanes > simd.all_lanes(np.float32(3.0)), lanes * lanes, lanes - lanes)
    simd.store_lanes(numbers, 0, lanes)
    simd.store_words(words, 0, simd.cumulative_sums(simd.load_words(words, 0)))
    intrinsics.borrowed(words)[8] += 1
    bitwise.compare_ranks(ranks, 0, np.int8(5), words, 9, (0,))
    before = intrinsics.add_atomically(barrier, 0, 2)
    return simd.sum_lanes(lanes), before + 10 * intrinsics.read_atomically(barrier, 0)


def operations_work() -> bool:
    """Return whether operations of each kind give the right results on exact numbers."""
    numbers, words = np.arange(LANES + 1, dtype=np.float32), np.arange(10)
    ranks, barrier = np.arange(WORD, dtype=np.int8), np.ones(1, np.int64)
    total, counted = _try(numbers, words, ranks, barrier)
    sums = np.cumsum(np.arange(WORDS)).tolist()
    squares = [float(k * k) if k > 3 else 0.0 for k in range(1, LANES + 1)]
    return bool(
        total == sum(squares) and counted == 31 and numbers[:LANES].tolist() == squares
        and words.tolist() == [*sums, 9, 31]
    )  # fmt: skip
