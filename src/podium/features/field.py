"""The arrays of one text field of an index: the terms of each row, and the rows of each term."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from podium.core.array_types import Int, Int32s, Ints
from podium.core.compiling import kernel
from podium.features.analyzer import Analyzer
from podium.features.index_folder import Spool
from podium.features.strings import Strings

ENTRIES_AT_ONCE = 1 << 26  # entries to invert in memory at a time

# The types of a field's arrays: by term, by row and entry, and of positions.
TERM_ARRAYS = {"document_frequency": np.int32, "occurrences": np.int64}
ROW_ARRAYS = {"lengths": np.int32, "starts": np.int64, "terms": np.int32, "counts": np.int32}
POSITION_ARRAYS = {"position_starts": np.int64, "positions": np.int32}


class Postings(NamedTuple):
    """The rows that contain each term, and how often.

    Attributes:
        starts: where each term's postings begin, and the end of the last.
        rows: the rows of each term in ascending order.
        counts: the number of occurrences of the term in each of these rows.

    """

    starts: Ints
    rows: Int32s
    counts: Int32s


@dataclass(frozen=True, eq=False, repr=False)
class Field:
    """The terms of one field of every document, and their statistics.

    Rows of removed documents stay in the arrays, but are not part of the statistics. Terms are numbered in order of
    first occurrence, so no result may depend on the numbers.

    Attributes:
        name: the name of the field.
        analyzer: splits its text into terms.
        vocabulary: the terms by number.
        document_frequency: the number of live documents that contain each term.
        occurrences: the number of occurrences of each term in live documents.
        n_documents: the number of live documents of the index, including those with an empty field.
        n_words: the sum of the lengths of live documents.
        lengths: the number of words of each row; 0 if the field is empty or missing.
        starts: where each row's terms begin in `terms`, and the end of the last row.
        terms: the terms of each row by number, in ascending order.
        counts: the number of occurrences of each entry of `terms`.
        position_starts: where the positions of each entry of `terms` begin, and the end; None without positions.
        positions: the positions of each entry of `terms` in ascending order, from 0.
        stored_postings: the inverted arrays, if they are stored.

    Example:
        >>> from podium.features import Index
        >>> field = Index.build([{"id": 1, "title": "red red hat"}], {"title": "english"}).fields["title"]
        >>> field.counts[field.terms == field.term_ids(["red"])[0]].tolist()
        [2]

    """

    name: str
    analyzer: Analyzer
    vocabulary: Strings
    document_frequency: Int32s
    occurrences: Ints
    n_documents: int
    n_words: int
    lengths: Int32s
    starts: Ints
    terms: Int32s
    counts: Int32s
    position_starts: Ints | None = None
    positions: Int32s | None = None
    stored_postings: Postings | None = None

    def __repr__(self) -> str:
        return f"<Field {self.name!r} ({self.analyzer}): {self.n_words} words, {len(self.vocabulary)} terms>"

    @property
    def has_positions(self) -> bool:
        """Whether the positions of terms are stored."""
        return self.positions is not None

    @property
    def n_terms(self) -> int:
        """The size of the vocabulary, including terms of removed documents."""
        return len(self.vocabulary)

    @property
    def mean_length(self) -> float:
        """The mean length of live documents; NaN without documents."""
        return self.n_words / self.n_documents if self.n_documents else float("nan")

    def term_ids(self, terms: Sequence[str]) -> Int32s:
        """Return the number of each term, −1 if the field does not contain it."""
        place_of = self.vocabulary.place_of
        return np.array([place_of.get(term, -1) for term in terms], np.int32)

    @cached_property
    def postings(self) -> Postings:
        """The rows that contain each term, including removed documents; stored, or computed on first use."""
        if self.stored_postings is not None:
            return self.stored_postings
        return invert(self.starts, self.terms, self.counts, self.n_terms, Spool(np.int32), Spool(np.int32))


def with_postings(field: Field, folder: Path, label: str) -> Field:
    """Return the field with its postings, computed in files of a folder if necessary."""
    if field.stored_postings is not None or "postings" in vars(field):
        return replace(field, stored_postings=field.postings)
    rows, counts = (Spool(np.int32, folder / f"{label}.posting_{name}.npy") for name in ("rows", "counts"))
    return replace(field, stored_postings=invert(field.starts, field.terms, field.counts, field.n_terms, rows, counts))


def without_rows(field: Field, rows: Ints) -> Field:
    """Return the field with the statistics that it has after the documents of some rows are removed."""
    document_frequency, occurrences = field.document_frequency.copy(), field.occurrences.copy()
    entries = ragged(field.starts, rows)
    np.subtract.at(document_frequency, field.terms[entries], 1)
    np.subtract.at(occurrences, field.terms[entries], field.counts[entries])
    return replace(
        field,
        document_frequency=document_frequency,
        occurrences=occurrences,
        n_documents=field.n_documents - len(rows),
        n_words=field.n_words - int(field.lengths[rows].sum(dtype=np.int64)),
        stored_postings=vars(field).get("postings", field.stored_postings),
    )


def ragged(starts: Ints, rows: Ints) -> Ints:
    """Return the entries of the given rows, row by row."""
    begins, sizes = starts[rows], starts[rows + 1] - starts[rows]
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    entries: Ints = np.arange(total) + np.repeat(begins - ends + sizes, sizes)
    return entries


def invert(
    starts: Ints, terms: Int32s, counts: Int32s, n_terms: int, rows_spool: Spool, counts_spool: Spool
) -> Postings:
    """Invert forward arrays with a counting sort, a range of terms at a time."""
    posting_starts = np.zeros(n_terms + 1, np.int64)
    count_terms(terms, counts, posting_starts[1:], np.zeros(n_terms, np.int64))
    np.cumsum(posting_starts, out=posting_starts)
    first = 0
    while first < n_terms:
        begin = posting_starts[first]
        last = max(first + 1, int(np.searchsorted(posting_starts, begin + ENTRIES_AT_ONCE, "right")) - 1)
        size = int(posting_starts[last] - begin)
        rows, posting_counts = np.empty(size, np.int32), np.empty(size, np.int32)
        places = posting_starts[first:last] - begin
        scatter(starts, terms, counts, first, last, places, rows, posting_counts)
        rows_spool.append(rows)
        counts_spool.append(posting_counts)
        first = last
    return Postings(posting_starts, rows_spool.finish(), counts_spool.finish())


@kernel
def count_terms(terms: Int32s, counts: Int32s, entries: Ints, occurrences: Ints) -> None:
    """Count the entries of each term, and its occurrences in them."""
    for entry in range(len(terms)):
        entries[terms[entry]] += 1
        occurrences[terms[entry]] += counts[entry]


@kernel
def scatter(
    starts: Ints, terms: Int32s, counts: Int32s, first: Int, last: Int, places: Ints, rows: Int32s, out: Int32s
) -> None:
    """Write the row and count of each entry whose term is in `first` … `last` − 1 to the term's next position."""
    for row in range(len(starts) - 1):
        for entry in range(starts[row], starts[row + 1]):
            term = terms[entry]
            if first <= term < last:
                place = places[term - first]
                places[term - first] = place + 1
                rows[place] = row
                out[place] = counts[entry]
