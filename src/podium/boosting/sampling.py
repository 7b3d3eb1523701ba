"""Which documents, queries and features a tree sees: decided by content, seed and round, never by position."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from podium.data import RankingData
from podium.data.canonical import hash_rows
from podium.errors import DataError

Words = NDArray[np.uint64]


@dataclass(frozen=True)
class Sampling:
    """Shares of documents, of whole queries and of features that each tree is grown on.

    λ always comes from all documents; the tree and its leaf values from the sample. Adaptation to a new domain
    found 70% of the documents crucial ([W] 5.5).
    """

    document_fraction: float = 1.0
    query_fraction: float = 1.0
    feature_fraction: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.seed, bool) or not isinstance(self.seed, int | np.integer):
            raise DataError(f"random_state must be a whole number, not {self.seed!r}")
        for name in ("document_fraction", "query_fraction", "feature_fraction"):
            if not 0 < getattr(self, name) <= 1:
                raise DataError(f"{name} must be above 0 and at most 1, but is {getattr(self, name)}")

    @property
    def takes_all_documents(self) -> bool:
        """Whether every tree sees every document."""
        return self.document_fraction == 1 and self.query_fraction == 1


class BoundSampling:
    """Sampling on some data."""

    def __init__(self, sampling: Sampling, data: RankingData) -> None:
        self.sampling, self.data = sampling, data
        if not sampling.takes_all_documents:
            self.query_keys = np.array([_key(str(query)) for query in data.query_ids.tolist()], np.uint64)
            self.query_of_row = np.empty(len(data), np.int64)
            self.query_of_row[data.order] = np.repeat(np.arange(data.n_queries), data.query_sizes)
            with np.errstate(over="ignore"):
                times = _occurrences(data).astype(np.uint64) * np.uint64(0xD6E8FEB86659FD93)
            self.row_keys = hash_rows(data.features) ^ self.query_keys[self.query_of_row] ^ times

    def rows(self, iteration: int) -> NDArray[np.int32] | None:
        """The rows of the sample, or None for all."""
        s = self.sampling
        if s.takes_all_documents:
            return None
        seed = _key(f"{s.seed}/{iteration}/documents")
        kept = _uniform(self.row_keys, seed) < s.document_fraction
        chosen = _uniform(self.query_keys, _key(f"{s.seed}/{iteration}/queries")) < s.query_fraction
        return np.flatnonzero(kept & chosen[self.query_of_row]).astype(np.int32)

    def features(self, iteration: int) -> NDArray[np.int64] | None:
        """The features of the sample, or None for all."""
        s = self.sampling
        if s.feature_fraction == 1:
            return None
        numbers = np.arange(self.data.n_features, dtype=np.uint64)
        order = np.argsort(_uniform(numbers, _key(f"{s.seed}/{iteration}/features")), kind="stable")
        return np.sort(order[: max(1, math.ceil(s.feature_fraction * len(numbers)))])


def _occurrences(data: RankingData) -> NDArray[np.int64]:
    """For each row how many rows of its query with the same features stand before it in the canonical order."""
    order = data.canonical_order
    hashes = hash_rows(data.features)[order]
    starts = np.ones(len(order), bool)
    starts[1:] = hashes[1:] != hashes[:-1]
    starts[data.offsets[:-1][data.query_sizes > 0]] = True
    place = np.arange(len(order))
    found = np.empty(len(order), np.int64)
    found[order] = place - np.maximum.accumulate(np.where(starts, place, 0))
    return found


def _key(text: str) -> np.uint64:
    return np.uint64(int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little"))


def _uniform(keys: Words, seed: np.uint64) -> NDArray[np.float64]:
    """A number of [0, 1) for each key (splitmix64)."""
    with np.errstate(over="ignore"):
        word = (keys ^ seed) * np.uint64(0x9E3779B97F4A7C15) + seed
        word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        word ^= word >> np.uint64(31)
    return (word >> np.uint64(11)).astype(np.float64) * 2.0**-53
