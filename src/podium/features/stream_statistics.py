"""Statistics and postings of a stream: one text field, or several combined."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from podium.core.array_types import Bools, Floats, Int32s, Ints
from podium.core.compiling import kernel

if TYPE_CHECKING:
    from podium.features.field import Field
    from podium.features.index import Index

MOST_POSTINGS = 1 << 22  # merged postings of several fields to cache
TermIds = list[Int32s]  # the number of each term in each field of a stream, −1 if the field lacks it


class StreamStatistics:
    """The statistics of one field, or of several whose lengths and occurrences are added.

    Attributes:
        fields: the fields.
        n_documents: N, the number of live documents of the index.
        n_words: the number of words of the stream in all live documents.
        mean_length: the mean number of words per document, NaN without documents.

    """

    def __init__(self, fields: Sequence[Field], is_live: Bools) -> None:
        self.fields = tuple(fields)
        self.is_live = is_live
        self.n_documents = self.fields[0].n_documents
        self.n_words = sum(field.n_words for field in self.fields)
        self.mean_length = self.n_words / self.n_documents if self.n_documents else float("nan")
        self._frequencies: dict[tuple[int, ...], int] = {}  # of terms in several fields, by their number in each
        self._merged: dict[tuple[int, ...], tuple[Int32s, Int32s]] = {}
        self._n_merged = 0
        self._lock = threading.Lock()

    def lengths(self, rows: Ints) -> Floats:
        """Return the number of words of the stream in each document."""
        return np.asarray(sum(field.lengths[rows].astype(np.float64) for field in self.fields))

    def occurrences(self, ids: TermIds) -> Floats:
        """Return how often each term occurs in the stream of all live documents."""
        return np.asarray(
            sum(values_at(field.occurrences, terms) for field, terms in zip(self.fields, ids, strict=True))
        )

    def document_frequency(self, ids: TermIds) -> Floats:
        """Return the number of live documents whose stream contains each term."""
        if len(self.fields) == 1:
            return values_at(self.fields[0].document_frequency, ids[0])
        return np.array([self._frequency(key) for key in _keys(ids)], np.float64)

    def _frequency(self, key: tuple[int, ...]) -> int:
        """Return the number of live documents that contain a term in any field."""
        if key not in self._frequencies:
            holders = [(field, number) for field, number in zip(self.fields, key, strict=True) if number >= 0]
            if len(holders) == 1:  # no need to merge postings
                ((field, number),) = holders
                self._frequencies[key] = int(field.document_frequency[number])
            else:
                self._frequencies[key] = len(self._merged_list(key)[0])
        return self._frequencies[key]

    def posting_lists(self, ids: TermIds) -> tuple[Int32s, Int32s, Ints, Ints, Ints]:
        """Return rows and counts, where each term's list begins and ends, and its number of live documents.

        Rows ascend within a list. They may include removed documents if the stream is a single field.
        """
        if len(self.fields) == 1:
            starts, rows, counts = self.fields[0].postings
            numbers = ids[0].astype(np.int64)
            begins, ends = starts[numbers], starts[numbers + 1]
            begins[numbers < 0] = ends[numbers < 0] = 0
            return rows, counts, begins, ends, self.document_frequency(ids).astype(np.int64)
        keys = _keys(ids)
        places = {key: k for k, key in enumerate(dict.fromkeys(keys))}
        empty = np.empty(0, np.int32), np.empty(0, np.int32)
        rows_by_key, counts_by_key = zip(empty, *(self._merged_list(key) for key in places), strict=True)
        sizes = np.array(list(map(len, rows_by_key[1:])), np.int64)
        place_of_term = [places[key] for key in keys]
        ends, sizes = np.cumsum(sizes)[place_of_term], sizes[place_of_term]
        return np.concatenate(rows_by_key), np.concatenate(counts_by_key), ends - sizes, ends, sizes

    def _merged_list(self, key: tuple[int, ...]) -> tuple[Int32s, Int32s]:
        """Return the live rows that contain a term in any field, and its count over all fields."""
        if (cached := self._merged.get(key)) is not None:
            return cached
        rows, counts = np.empty(0, np.int32), np.empty(0, np.int32)
        for field, number in zip(self.fields, key, strict=True):
            if number >= 0:
                starts, all_rows, all_counts = field.postings
                entries = slice(starts[number], starts[number + 1])
                rows, counts = merge_postings(rows, counts, all_rows[entries], all_counts[entries], self.is_live)
        with self._lock:
            if self._n_merged + len(rows) > MOST_POSTINGS:
                self._merged, self._n_merged = {}, 0
            self._merged[key] = rows, counts
            self._n_merged += len(rows)
        return rows, counts

    def distinct_words(self, rows: Ints) -> Floats:
        """Return U, the number of distinct words of the stream in each document."""
        if len(self.fields) == 1:
            starts = self.fields[0].starts
            return (starts[rows + 1] - starts[rows]).astype(np.float64)
        return self._distinct_words[rows]

    @cached_property
    def _distinct_words(self) -> Floats:
        """The number of distinct words of each row over all fields; equal terms of two fields count once."""
        from scipy.sparse import csr_array

        numbers: dict[str, int] = {}  # shared by the fields
        occurs = csr_array((len(self.is_live), sum(field.n_terms for field in self.fields)), dtype=bool)
        for field in self.fields:
            places = np.array([numbers.setdefault(term, len(numbers)) for term in field.vocabulary], np.int32)
            entries = np.ones(len(field.terms), bool), places[field.terms], field.starts
            occurs = occurs + csr_array(entries, occurs.shape)
        return np.asarray(np.diff(occurs.indptr), np.float64)


def _keys(ids: TermIds) -> list[tuple[int, ...]]:
    """Return the numbers of each term in all fields."""
    return list(zip(*(numbers.tolist() for numbers in ids), strict=True))


def values_at(values: Int32s | Ints, places: Int32s | Ints) -> Floats:
    """Return the value at each place, 0 for the place −1."""
    if not len(values):
        return np.zeros(len(places))
    return np.where(places >= 0, values[places], 0).astype(np.float64)


@kernel
def merge_postings(
    rows: Int32s, counts: Int32s, other_rows: Int32s, other_counts: Int32s, is_live: Bools
) -> tuple[Int32s, Int32s]:
    """Merge two ascending lists of rows, adding the counts of common rows and dropping removed rows of the second."""
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


def statistics_of(index: Index, names: tuple[str, ...]) -> StreamStatistics:
    """Return the stream of some fields of an index, or of all fields, computed once until the index changes."""
    fields = [index.fields[name] for name in names or index.fields]
    return index.once(("statistics", names), lambda: StreamStatistics(fields, index.is_live))
