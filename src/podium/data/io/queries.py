"""The query ids of files: their type, and the ends of blocks of whole queries."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Ints

QUERY_BYTES = 128  # of an id in a set, apart from its characters


class QueryBlocks:
    """Collects the starts of queries, and computes the number of rows of each block.

    A block has at most `most_rows` rows, unless a single query has more.

    Attributes:
        n_bytes: the memory that the stored ids take.

    """

    def __init__(self, most_rows: int) -> None:
        self.most_rows = most_rows
        self._sizes: list[int] = []
        self._block_start = self._query_start = 0
        self._earlier: set[Hashable] = set()
        self._last: Hashable = None
        self.n_bytes = 0

    def begin(self, query: Hashable, row: int) -> bool:
        """Record that a query begins or continues at a row; return whether it returns after other queries."""
        if self._earlier and query == self._last:
            return False
        self._end_query(row)
        self._last = query
        if query in self._earlier:
            return True
        self._earlier.add(query)
        self.n_bytes += QUERY_BYTES + (len(query) if isinstance(query, str) else 0)
        return False

    def sizes(self, n_rows: int) -> list[int]:
        """Return the number of rows of each block, after the last row."""
        self._end_query(n_rows)
        return [*self._sizes, n_rows - self._block_start]

    def _end_query(self, row: int) -> None:
        if row - self._block_start > self.most_rows and self._query_start > self._block_start:
            self._sizes.append(self._query_start - self._block_start)
            self._block_start = self._query_start
        self._query_start = row


def block_bounds(query_starts: Ints, n_rows: int, most_rows: int) -> list[int]:
    """Return the bounds of blocks of whole queries (`QueryBlocks`), given the first row of each query.

    >>> block_bounds(np.array([0, 3, 4]), 10, 4)
    [0, 4, 10]
    """
    blocks = QueryBlocks(most_rows)
    for query, row in enumerate(query_starts.tolist()):
        blocks.begin(query, row)
    return [0, *np.cumsum(blocks.sizes(n_rows)).tolist()]


class QueryRun(NamedTuple):
    """Consecutive rows with one query id: their first row, and its line of the file."""

    row: int
    query: str
    file: str
    line: int


def query_ids(runs: list[QueryRun], n_rows: int, as_integers: bool) -> NDArray[Any]:
    """Return one query id for each row, as integers or as text."""
    ids = [int(run.query) if as_integers else run.query for run in runs]
    lengths = np.diff([run.row for run in runs], append=n_rows)
    return np.repeat(np.array(ids, np.int64 if as_integers else object), lengths)


def is_integer(text: str) -> bool:
    """Return whether a query id is an integer that int64 holds, and is written as Python writes it."""
    try:
        return str(int(text)) == text and -(2**63) <= int(text) < 2**63
    except ValueError:  # not a number, or one of over 4300 digits
        return False
