"""The counters of one scope by key: a hash table of integer rows that kernels update and read.

A key is a 64-bit hash of the scope's names. Of tables with a million keys, one in 37 million has a collision. Key 0 is
an unknown scope. When a table has more than `limit` keys at the end of a moment, the keys that were updated least
recently are dropped until three quarters of the limit remain. This depends only on the events, not on batches or on the
order of events at the same time.
"""

from __future__ import annotations

import numpy as np

from podium.clicks.click_features import COUNT, LATEST, Counter
from podium.core.array_types import Floats, Int, Int32s, Ints, UInt64s
from podium.core.compiling import helper, kernel

NEVER = -(2**63)  # no bucket, no time
DONE, FULL, CROWDED = range(3)  # why the kernel returned
SMALLEST = 64  # slots of a new table
# The columns of a table's layout, which has a row for each counter: the code of its event, what it keeps, its number of
# buckets and their width, where its integers begin in a key's row, and where its weights begin.
EVENT, KEEPS, SIZE, WIDTH, OFFSET, WEIGHTS = range(6)


class ScopeTable:
    """The counters of all keys of a scope.

    Args:
        counters: the counters of this scope.
        kinds: the kinds of events by code.
        limit: the maximum number of keys.

    """

    def __init__(self, counters: tuple[Counter, ...], kinds: tuple[str, ...], limit: int) -> None:
        self.limit = limit
        layout, n_weights = [], 0
        for k, counter in enumerate(counters):
            n = len(counter.weights)
            offset = n_weights + k  # a counter has an integer for each weight, and the number of its newest bucket
            layout.append([kinds.index(counter.event), counter.keeps, n, counter.width, offset, n_weights])
            n_weights += n
        self._layout = np.array(layout, np.int64)
        self._weights = np.concatenate([counter.weights for counter in counters])
        self.width = n_weights + len(counters)
        self.set(np.empty(0, np.uint64), np.empty(0, np.int64), np.empty((0, self.width), np.int64), NEVER)

    def set(self, keys: UInt64s, latest: Ints, counts: Ints, now: int) -> None:
        """Replace the content of the table."""
        n = len(keys)
        room = max(SMALLEST, 1 << int(max(1, n)).bit_length())  # at least one more than n
        self._keys, self._latest = np.zeros(room, np.uint64), np.full(room, NEVER, np.int64)
        self._counts = np.zeros((room, self.width), np.int64)
        self._keys[:n], self._latest[:n], self._counts[:n] = keys, latest, counts
        self._state = np.array([n, now], np.int64)
        self._slots = np.zeros(4 * room, np.int32)
        insert_all(self._slots, self._keys, n)

    def __len__(self) -> int:
        return int(self._state[0])

    def content(self) -> tuple[UInt64s, Ints, Ints, int]:
        """Return the keys, the time of the last update and the integers of each, and the time of the last update."""
        n, now = self._state.tolist()
        return self._keys[:n], self._latest[:n], self._counts[:n], now

    def run(self, times: Ints, keys: UInt64s, kinds: Int32s, amounts: Ints, rows: Ints, out: Floats) -> None:
        """Run reads and updates in the order of time, reads of a moment before its updates.

        Args:
            times: the times in ascending order.
            keys: the keys; 0 for an unknown scope.
            kinds: the codes of events; −1 for reads.
            amounts: the amounts to add to totals.
            rows: the rows of `out` that reads write to.
            out: receives a column for each counter.

        """
        at = 0
        while at < len(times):
            at, reason = advance(
                times, keys, kinds, amounts, rows, out, at, self.limit, self._layout, self._weights, self._slots,
                self._keys, self._latest, self._counts, self._state,
            )  # fmt: skip
            if reason == CROWDED:
                self._drop_oldest()
            elif reason == FULL:
                self.set(*self.content())

    def _drop_oldest(self) -> None:
        """Keep the keys that were updated last, and of ties the larger keys."""
        keys, latest, counts, now = self.content()
        newest = np.lexsort((keys, latest))[len(self) - (self.limit - self.limit // 4) :]
        self.set(keys[newest], latest[newest], counts[newest], now)


@helper
def find(slots: Int32s, keys: UInt64s, key: np.uint64) -> Int:
    """Return the slot of a key in the hash table: the one that has it, or the empty one where it belongs."""
    mask = np.uint64(len(slots) - 1)
    place = np.int64((key ^ (key >> np.uint64(32))) & mask)
    while slots[place] != 0 and keys[slots[place] - 1] != key:
        place = np.int64((np.uint64(place) + np.uint64(1)) & mask)
    return place


@kernel
def insert_all(slots: Int32s, keys: UInt64s, n: Int) -> None:
    """Fill an empty hash table."""
    for slot in range(n):
        slots[find(slots, keys, keys[slot])] = slot + 1


@kernel
def advance(
    times: Ints, keys: UInt64s, kinds: Int32s, amounts: Ints, rows: Ints, out: Floats, first: Int, limit: Int,
    layout: Ints, weights: Floats, slots: Int32s, slot_keys: UInt64s, latest: Ints, counts: Ints, state: Ints,
) -> tuple[int, int]:  # fmt: skip
    """Read and update until the end, or until the table must be rebuilt; return the position and the reason."""
    for at in range(first, len(times)):
        time, key = times[at], keys[at]
        if time > state[1] and state[0] > limit:
            return at, CROWDED
        if kinds[at] < 0:
            _read(time, key, layout, weights, slots, slot_keys, counts, out, rows[at])
            continue
        state[1] = time
        if key == np.uint64(0):
            continue
        place = find(slots, slot_keys, key)
        slot = np.int64(slots[place]) - 1
        if slot < 0:
            slot = state[0]
            if slot == len(slot_keys):
                return at, FULL
            slots[place] = slot + 1
            slot_keys[slot] = key
            state[0] += 1
            for c in range(len(layout)):
                counts[slot, layout[c, OFFSET]] = NEVER
        latest[slot] = time
        for c in range(len(layout)):
            if layout[c, EVENT] == kinds[at]:
                _update(time, amounts[at], layout[c], counts[slot])
    return len(times), DONE


@helper
def _update(time: Int, amount: Int, layout: Ints, counts: Ints) -> None:
    """Add an event to a counter, whose layout is the newest bucket's number, then the ring of buckets."""
    keeps, size, width, offset = layout[KEEPS], layout[SIZE], layout[WIDTH], layout[OFFSET]
    if keeps == LATEST:
        counts[offset] = time
        return
    bucket = time // width if width > 0 else 0
    newest = counts[offset]
    if newest == NEVER:
        counts[offset] = bucket
    elif bucket > newest:
        for old in range(max(newest + 1, bucket - size + 1), bucket + 1):
            counts[offset + 1 + old % size] = 0
        counts[offset] = bucket
    counts[offset + 1 + bucket % size] += 1 if keeps == COUNT else amount  # of TOTAL


@helper
def _read(
    time: Int, key: np.uint64, layout: Ints, weights: Floats, slots: Int32s, slot_keys: UInt64s, counts: Ints,
    out: Floats, row: Int,
) -> None:  # fmt: skip
    """Write the counters of a key at a time; NaN for an unknown scope, and for the recency without events."""
    slot = np.int64(-1)
    if key != np.uint64(0):
        slot = np.int64(slots[find(slots, slot_keys, key)]) - 1
    for c in range(len(layout)):
        keeps, size, width, offset = layout[c, KEEPS], layout[c, SIZE], layout[c, WIDTH], layout[c, OFFSET]
        if key == np.uint64(0) or (keeps == LATEST and (slot < 0 or counts[slot, offset] == NEVER)):
            out[row, c] = np.nan
        elif slot < 0 or counts[slot, offset] == NEVER:
            out[row, c] = 0.0
        elif keeps == LATEST:
            out[row, c] = np.float64(time - counts[slot, offset])
        else:
            newest = counts[slot, offset]
            current = time // width if width > 0 else 0
            total = 0.0
            for age in range(max(0, current - newest), size):
                bucket = current - age
                if bucket <= newest - size:
                    break
                total += weights[layout[c, WEIGHTS] + age] * np.float64(counts[slot, offset + 1 + bucket % size])
            out[row, c] = total
