"""Random numbers determined by a key: a document gets the same number in any row, in any thread, on any machine.

The numbers of a library's generator depend on the order of calls, and may change with its version. Here a number is a
hash (splitmix64) of a key and a purpose, so any thread can compute any number in any order.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from podium.core.array_types import Floats, UInt64s
from podium.core.compiling import helper

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio, whose multiples are evenly spread


def seed_of(*purpose: object) -> np.uint64:
    """Return a seed for a purpose, for example `seed_of(random_state, "documents")`."""
    text = "/".join(map(str, purpose))
    return np.uint64(int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little"))


@helper
def mix(word: Any) -> Any:
    """Mix the 64 bits of a word, or of each word of an array: every bit of the result depends on every bit of it."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@helper
def random_bits(key: Any, index: Any) -> Any:
    """Return 64 random bits: entry `index` of the stream that belongs to a key."""
    return mix(key + (index + np.uint64(1)) * GOLDEN)


@helper
def keyed_bits(key: Any, seed: Any) -> Any:
    """Return 64 random bits of a key, or of each key of an array, for the purpose of a seed."""
    return mix((key ^ seed) * GOLDEN + seed)


@helper
def to_unit(bits: Any) -> Any:
    """Return a number in [0, 1) from 64 random bits."""
    return np.float64(np.int64(bits >> np.uint64(11))) * 2.0**-53


def uniform(keys: UInt64s, purpose: str) -> Floats:
    """Return a number in [0, 1) for each key."""
    bits: UInt64s = keyed_bits(keys, seed_of(purpose))
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53
