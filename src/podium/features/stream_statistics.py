"""Collection statistics of a stream: one text field, or several taken together as one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from podium.core.array_types import Bools, Floats, Int, Int32s, Ints
from podium.core.compiling import kernel

if TYPE_CHECKING:
    from podium.features.field import Field
    from podium.features.index import Index

TermIds = list[Int32s]  # the number of each term in each field of a stream, −1 where the field lacks it


class StreamStatistics:
    """The statistics of one field, or of several taken as one: lengths and occurrences add up.

    Attributes:
        fields: the fields.
        n_documents: N, the live documents of the index.
        n_words: the words of the stream in all live documents.
        mean_length: words per document, NaN without documents.

    """

    def __init__(self, fields: Sequence[Field], is_live: Bools) -> None:
        self.fields = tuple(fields)
        self.is_live = is_live
        self.n_documents = self.fields[0].n_documents
        self.n_words = sum(field.n_words for field in self.fields)
        self.mean_length = self.n_words / self.n_documents if self.n_documents else float("nan")
        self._frequencies: dict[tuple[int, ...], int] = {}

    def lengths(self, rows: Ints) -> Floats:
        """Return the words of the stream in each document."""
        return np.asarray(sum(field.lengths[rows].astype(np.float64) for field in self.fields))

    def occurrences(self, ids: TermIds) -> Floats:
        """Return how often each term occurs in the stream of all live documents."""
        by_field = (np.where(one >= 0, _taken(f.occurrences, one), 0) for f, one in zip(self.fields, ids, strict=True))
        return np.asarray(sum(by_field), np.float64)

    def document_frequency(self, ids: TermIds) -> Floats:
        """Return the number of live documents whose stream contains each term."""
        if len(self.fields) == 1:
            return np.where(ids[0] >= 0, _taken(self.fields[0].document_frequency, ids[0]), 0).astype(np.float64)
        keys = list(zip(*(one.tolist() for one in ids), strict=True))
        unknown = list(dict.fromkeys(key for key in keys if key not in self._frequencies))
        if unknown:
            self._frequencies.update(zip(unknown, self._counted(unknown).tolist(), strict=True))
        return np.array([self._frequencies[key] for key in keys], np.float64)

    def _counted(self, keys: list[tuple[int, ...]]) -> Ints:
        """Count the live documents that contain a term in any of the fields."""
        ids = np.array(keys, np.int64).T
        sizes = np.array([_posting_sizes(field, one) for field, one in zip(self.fields, ids, strict=True)])
        is_alone = (sizes > 0).sum(axis=0) <= 1  # the document frequency of that field is the answer
        counts = self._largest_frequency(ids)
        if is_alone.all():
            return counts
        last_seen = np.zeros(len(self.is_live), np.int64)
        places = np.concatenate([[0], np.cumsum(np.where(is_alone, 0, sizes.sum(axis=0)))])
        first = 0
        while first < len(keys):  # in chunks of about 4 million postings
            last = max(first + 1, int(np.searchsorted(places, places[first] + (1 << 22), "right")) - 1)
            starts = places[first : last + 1] - places[first]
            rows, ends = np.empty(starts[-1], np.int32), starts[:-1].copy()
            for field, one in zip(self.fields, ids, strict=True):
                wanted = np.where(is_alone[first:last], -1, one[first:last])
                copy_postings(field.posting_starts, field.posting_rows, wanted, ends, rows)
            count_rows(rows, starts, self.is_live, first + 1, last_seen, counts[first:last])
            first = last
        return counts

    def _largest_frequency(self, ids: Ints) -> Ints:
        """Return the largest document frequency of each term in one of the fields."""
        by_field = zip(self.fields, ids, strict=True)
        frequencies = [np.where(one >= 0, _taken(f.document_frequency, one), 0) for f, one in by_field]
        return np.array(np.max(frequencies, axis=0), np.int64)

    def distinct_words(self, rows: Ints) -> Floats:
        """Return U, the distinct words of the stream in each document."""
        if len(self.fields) == 1:
            starts = self.fields[0].starts
            return (starts[rows + 1] - starts[rows]).astype(np.float64)
        return self._distinct_words[rows]

    @cached_property
    def _distinct_words(self) -> Floats:
        """The distinct words of each row over all fields; terms of two fields are the same if their texts are."""
        numbers: dict[str, int] = {}
        terms, starts, before = [], [], 0
        for field in self.fields:
            shared = np.array([numbers.setdefault(term, len(numbers)) for term in field.vocabulary], np.int32)
            terms.append(_taken(shared, np.asarray(field.terms)))
            starts.append(np.asarray(field.starts) + before)
            before += len(field.terms)
        result = np.zeros(len(self.is_live))
        count_distinct(np.concatenate(terms), np.array(starts), np.full(len(numbers), -1, np.int64), result)
        return result


def _taken(values: Int32s | Ints, ids: Int32s | Ints) -> Int32s | Ints:
    """Return values by number; anything for −1, also where there are no values."""
    return values[ids] if len(values) else np.zeros(len(ids), values.dtype)


def _posting_sizes(field: Field, ids: Ints) -> Ints:
    starts = field.posting_starts
    return np.where(ids >= 0, starts[ids + 1] - starts[ids], 0)


@kernel
def copy_postings(starts: Ints, rows: Int32s, ids: Ints, ends: Ints, out: Int32s) -> None:
    """Append the postings of each term to the rows of that term, which end at `ends` so far."""
    for k in range(len(ids)):
        if ids[k] >= 0:
            end = ends[k]
            for entry in range(starts[ids[k]], starts[ids[k] + 1]):
                out[end] = rows[entry]
                end += 1
            ends[k] = end


@kernel
def count_rows(rows: Int32s, starts: Ints, is_live: Bools, first: Int, last_seen: Ints, counts: Ints) -> None:
    """Count the distinct live rows of each term that has rows; `last_seen` holds the last term that met a row."""
    for k in range(len(starts) - 1):
        if starts[k + 1] > starts[k]:
            count = 0
            for entry in range(starts[k], starts[k + 1]):
                row = rows[entry]
                if last_seen[row] != first + k:
                    last_seen[row] = first + k
                    count += is_live[row]
            counts[k] = count


@kernel
def count_distinct(terms: Int32s, starts: Ints, last_seen: Ints, counts: Floats) -> None:
    """Count the distinct terms of each row; `starts[f]` are the starts of rows in field f."""
    for row in range(starts.shape[1] - 1):
        count = 0
        for field in range(starts.shape[0]):
            for entry in range(starts[field, row], starts[field, row + 1]):
                if last_seen[terms[entry]] != row:
                    last_seen[terms[entry]] = row
                    count += 1
        counts[row] = count


_STATISTICS: WeakKeyDictionary[Index, dict[tuple[str, ...], StreamStatistics]] = WeakKeyDictionary()


def statistics_of(index: Index, names: tuple[str, ...]) -> StreamStatistics:
    """Return the stream of some fields of an index, all of them if none is named; it lives as long as the index.

    A change of the index makes new arrays, and so a new stream.
    """
    fields = [index.fields[name] for name in names or index.fields]
    streams = _STATISTICS.setdefault(index, {})
    stream = streams.get(names)
    if stream is None or stream.is_live is not index.is_live or any(map(_is_other, stream.fields, fields)):
        stream = streams[names] = StreamStatistics(fields, index.is_live)
    return stream


def _is_other(one: Field, other: Field) -> bool:
    return one is not other
