"""Where blocks end that cut no query in two."""

from __future__ import annotations

from collections.abc import Hashable

QUERY_BYTES = 128  # an id in a set, apart from its characters


class QueryBlocks:
    """Hears where queries begin, and says how many rows each block has.

    A block has at most so many rows, or one query that has more.

    Attributes:
        n_bytes: what the ids that are kept take in memory.

    Example:
        >>> blocks = QueryBlocks(4)
        >>> [blocks.begin(query, row) for query, row in (("a", 0), ("b", 3), ("c", 4), ("a", 9))]
        [False, False, False, True]
        >>> blocks.sizes(10)
        [4, 5, 1]

    """

    def __init__(self, most_rows: int) -> None:
        self.most_rows = most_rows
        self._sizes: list[int] = []
        self._block_start = self._query_start = 0
        self._earlier: set[Hashable] = set()
        self._last: Hashable = None
        self.n_bytes = 0

    def begin(self, query: Hashable, row: int) -> bool:
        """A query begins at a row, or goes on there; whether it comes back after other queries."""
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
        """The rows of each block, now that all rows are known."""
        self._end_query(n_rows)
        return [*self._sizes, n_rows - self._block_start]

    def _end_query(self, row: int) -> None:
        if row - self._block_start > self.most_rows and self._query_start > self._block_start:
            self._sizes.append(self._query_start - self._block_start)
            self._block_start = self._query_start
        self._query_start = row
