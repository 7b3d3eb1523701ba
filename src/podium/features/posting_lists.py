"""The postings of query terms in a stream: those of one field, or of several merged."""

from __future__ import annotations

import threading

import numpy as np

from podium.core.array_types import Bools, Int32s, Ints
from podium.core.compiling import kernel
from podium.features.stream_statistics import StreamStatistics, TermIds

MOST_POSTINGS = 1 << 22  # of several fields, merged, that are remembered


class PostingLists:
    """The rows that hold query terms in a stream.

    Args:
        stream: one field, or several taken as one: counts of a row add up.

    """

    def __init__(self, stream: StreamStatistics) -> None:
        self.stream = stream
        self._merged: dict[tuple[int, ...], tuple[Int32s, Int32s]] = {}
        self._n_merged = 0
        self._lock = threading.Lock()

    def lists(self, ids: TermIds) -> tuple[Int32s, Int32s, Ints, Ints, Ints]:
        """Return rows and counts, where each term's list begins and ends in them, and its live documents.

        Rows ascend within a list. Those of removed documents may be among them if the stream is one field.
        """
        if len(self.stream.fields) == 1:
            starts, rows, counts = self.stream.fields[0].postings
            numbers = ids[0].astype(np.int64)
            begins, ends = starts[numbers], starts[numbers + 1]
            begins[numbers < 0] = ends[numbers < 0] = 0
            return rows, counts, begins, ends, self.stream.document_frequency(ids).astype(np.int64)
        keys = list(zip(*(one.tolist() for one in ids), strict=True))
        merged = {key: self._list(key) for key in dict.fromkeys(keys)}
        ends_of, end = {}, 0
        for key, (rows, _) in merged.items():
            end += len(rows)
            ends_of[key] = end
        sizes = np.array([len(merged[key][0]) for key in keys], np.int64)
        ends = np.array([ends_of[key] for key in keys], np.int64)
        nothing = np.empty(0, np.int32)
        rows = np.concatenate([nothing, *(rows for rows, _ in merged.values())])
        return rows, np.concatenate([nothing, *(counts for _, counts in merged.values())]), ends - sizes, ends, sizes

    def _list(self, key: tuple[int, ...]) -> tuple[Int32s, Int32s]:
        """Return the live rows that hold a term in any field, and its count in all fields."""
        found = self._merged.get(key)
        if found is not None:
            return found
        rows, counts = np.empty(0, np.int32), np.empty(0, np.int32)
        for field, number in zip(self.stream.fields, key, strict=True):
            if number >= 0:
                starts, all_rows, all_counts = field.postings
                entries = slice(starts[number], starts[number + 1])
                rows, counts = merge_postings(rows, counts, all_rows[entries], all_counts[entries], self.stream.is_live)
        with self._lock:
            if self._n_merged + len(rows) > MOST_POSTINGS:
                self._merged, self._n_merged = {}, 0
            self._merged[key] = rows, counts
            self._n_merged += len(rows)
        return rows, counts


@kernel
def merge_postings(
    rows: Int32s, counts: Int32s, other_rows: Int32s, other_counts: Int32s, is_live: Bools
) -> tuple[Int32s, Int32s]:
    """Merge two ascending lists of rows; counts of a row in both add up, and removed rows of the second are dropped."""
    size = len(rows) + len(other_rows)
    out_rows, out_counts = np.empty(size, np.int32), np.empty(size, np.int32)
    n, at, other = 0, 0, 0
    while at < len(rows) or other < len(other_rows):
        if other < len(other_rows) and not is_live[other_rows[other]]:
            other += 1
        elif other == len(other_rows) or (at < len(rows) and rows[at] < other_rows[other]):
            out_rows[n], out_counts[n] = rows[at], counts[at]
            at, n = at + 1, n + 1
        elif at == len(rows) or other_rows[other] < rows[at]:
            out_rows[n], out_counts[n] = other_rows[other], other_counts[other]
            other, n = other + 1, n + 1
        else:
            out_rows[n], out_counts[n] = rows[at], counts[at] + other_counts[other]
            at, other, n = at + 1, other + 1, n + 1
    return out_rows[:n].copy(), out_counts[:n].copy()
