"""A stable ascending sort of keys with items, for kernels. For descending order, negate the keys."""

from __future__ import annotations

from typing import Any

from podium.core.compiling import helper
from podium.core.intrinsics import not_inlined

Keys = Any  # an array of numbers
RUN = 12  # length of the runs that are sorted by insertion before merging


@helper
def sort_with_items(keys: Keys, items: Any, spare_keys: Keys, spare_items: Any, n: Any) -> None:
    """Sort the first n keys in ascending order, and their items with them; ties keep their order.

    Short runs are sorted by insertion, then merged. The spare arrays are scratch memory of the same types, with room
    for n entries.
    """
    not_inlined()
    for start in range(0, n, RUN):
        for k in range(start + 1, min(start + RUN, n)):
            key, item = keys[k], items[k]
            slot = k
            while slot > start and keys[slot - 1] > key:
                keys[slot], items[slot] = keys[slot - 1], items[slot - 1]
                slot -= 1
            keys[slot], items[slot] = key, item
    width = RUN
    while width < n:
        for start in range(0, n, 2 * width):
            middle, end = min(start + width, n), min(start + 2 * width, n)
            left, right = start, middle
            for k in range(start, end):
                if left < middle and (right >= end or keys[left] <= keys[right]):
                    spare_keys[k], spare_items[k] = keys[left], items[left]
                    left += 1
                else:
                    spare_keys[k], spare_items[k] = keys[right], items[right]
                    right += 1
        for k in range(n):
            keys[k], items[k] = spare_keys[k], spare_items[k]
        width *= 2
