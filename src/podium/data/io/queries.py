"""The query ids of files: their type, ids that return after other queries, and the ends of blocks of whole queries."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Ints
from podium.errors import FileFormatError, warn

if TYPE_CHECKING:
    from podium.core.choices import Returning

QUERY_BYTES = 128  # of an id in a set, apart from its characters


class QueryBlocks:
    """Collects the starts of queries, and computes the number of rows of each block.

    A block has at most `most_rows` rows, unless a single query has more.

    Attributes:
        n_bytes: the memory that the stored ids take.

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


@dataclass(frozen=True)
class QueryRun:
    """Consecutive rows with one query id: their first row, and its line of the file."""

    row: int
    query: str
    file: str
    line: int


class QueryRuns:
    """Collects the runs of all rows, group by group."""

    def __init__(self, returning: Returning, most_rows: int | None) -> None:
        self.blocks = QueryBlocks(most_rows or 0)  # where blocks end that hold whole queries
        self.are_integers = True  # whether all ids so far are integers
        self.returned: QueryRun | None = None  # the first run whose query returns after others
        self._returning = returning
        self._keeps_ids = returning != "merge" or most_rows is not None

    def add(self, runs: Iterable[QueryRun], rows_before: int) -> None:
        """Add the runs of a group that follows `rows_before` other rows."""
        for run in runs:
            self.are_integers = self.are_integers and _is_integer(run.query)
            if self._keeps_ids and self.blocks.begin(run.query, rows_before + run.row) and self.returned is None:
                self.returned = run
                self._report(run)

    def _report(self, run: QueryRun) -> None:
        """Warn or raise, as requested, because a query returns."""
        problem = f"query {run.query!r} returns after other queries"
        if self._returning == "error":
            raise FileFormatError(run.file, problem, line=run.line)
        if self._returning == "warn":
            warn(
                f"{run.file}, line {run.line}: {problem}; all its documents are treated as one query "
                "(pass returning_qid='merge' to accept that silently, 'error' to raise an error)"
            )


def query_ids(runs: list[QueryRun], n_rows: int, as_integers: bool) -> NDArray[Any]:
    """Return one query id for each row, as integers or as text."""
    ids = [int(run.query) if as_integers else run.query for run in runs]
    lengths = np.diff([run.row for run in runs], append=n_rows)
    return np.repeat(np.array(ids, np.int64 if as_integers else object), lengths)


def _is_integer(text: str) -> bool:
    try:
        return str(int(text)) == text and -(2**63) <= int(text) < 2**63
    except ValueError:  # not a number, or one of over 4300 digits
        return False
