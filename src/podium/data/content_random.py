"""Random numbers keyed by content: for documents and queries, whatever the order of the rows."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from podium.core.array_types import Floats, Ints, UInt64s
from podium.core.random import uniform
from podium.data.ranking_data import RankingData


class ContentRandom:
    """Uniform numbers of [0, 1) for the documents and queries of some data, for any number of purposes."""

    def __init__(self, data: RankingData) -> None:
        self.data = data

    def of_documents(self, purpose: str) -> Floats:
        """One for each row; rows of a query with the same features are told apart by the canonical order."""
        return uniform(self.document_keys, purpose)

    def of_queries(self, purpose: str) -> Floats:
        """One for each query."""
        return uniform(self._query_keys, purpose)

    @cached_property
    def _query_keys(self) -> UInt64s:
        return self.data.query_keys

    @cached_property
    def document_keys(self) -> UInt64s:
        """The key of each row: a hash of its features and of its query, and a number among equal rows."""
        hashes = self.data.row_hashes
        times = _occurrences(self.data, hashes).astype(np.uint64) * np.uint64(0xD6E8FEB86659FD93)
        keys: UInt64s = hashes ^ times
        keys[self.data.order] ^= np.repeat(self._query_keys, self.data.query_sizes)
        return keys


def _occurrences(data: RankingData, hashes: UInt64s) -> Ints:
    """For each row how many rows of its query with the same features stand before it in the canonical order."""
    order = data.canonical_order
    hashes = hashes[order]
    starts = np.ones(len(order), bool)
    starts[1:] = hashes[1:] != hashes[:-1]
    starts[data.offsets[:-1][data.query_sizes > 0]] = True
    index = np.arange(len(order))
    occurrences = np.empty(len(order), np.int64)
    occurrences[order] = index - np.maximum.accumulate(np.where(starts, index, 0))
    return occurrences
