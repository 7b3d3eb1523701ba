"""Inverted arrays, which list the rows that contain each term of a field; a counting sort of the forward arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from podium.core.array_types import Int, Int32s, Ints
from podium.core.compiling import kernel
from podium.features.spool import Spool

ENTRIES_AT_ONCE = 1 << 26  # entries to sort in memory at a time


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


def invert(
    starts: Ints, terms: Int32s, counts: Int32s, n_terms: int, rows_spool: Spool, counts_spool: Spool,
    entries_at_once: int = ENTRIES_AT_ONCE,
) -> Postings:  # fmt: skip
    """Invert forward arrays, a range of terms at a time."""
    posting_starts = np.zeros(n_terms + 1, np.int64)
    count_terms(terms, posting_starts[1:])
    np.cumsum(posting_starts, out=posting_starts)
    first = 0
    while first < n_terms:
        begin = posting_starts[first]
        last = max(first + 1, int(np.searchsorted(posting_starts, begin + entries_at_once, "right")) - 1)
        size = int(posting_starts[last] - begin)
        rows, posting_counts = np.empty(size, np.int32), np.empty(size, np.int32)
        places = posting_starts[first:last] - begin
        scatter(starts, terms, counts, first, last, places, rows, posting_counts)
        rows_spool.append(rows)
        counts_spool.append(posting_counts)
        first = last
    return Postings(posting_starts, rows_spool.finish(), counts_spool.finish())


@kernel
def count_terms(terms: Int32s, counts: Ints) -> None:
    """Count the entries of each term."""
    for term in terms:
        counts[term] += 1


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
