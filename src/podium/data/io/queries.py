"""The query ids of files: what they are, where they come back, and where blocks of whole queries end."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from podium.errors import FileFormatError, warn

if TYPE_CHECKING:
    from podium.data.io.request import Returning

QUERY_BYTES = 128  # an id in a set, apart from its characters


class QueryBlocks:
    """Hears where queries begin, and says how many rows each block has.

    A block has at most `most_rows` rows, or a single query that has more.

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


@dataclass(frozen=True)
class QueryRun:
    """Consecutive rows with one query id: where they begin, and the line of the file."""

    row: int
    query: str
    file: str
    line: int


class QueryRuns:
    """Hears the runs of all rows, group after group, and keeps what they say together."""

    def __init__(self, returning: Returning, most_rows: int | None = None) -> None:
        self.blocks = QueryBlocks(most_rows or 0)  # where blocks end that hold whole queries
        self.are_integers = True  # whether every id is written as an integer
        self.returned: QueryRun | None = None  # the first run whose query comes back after others, if that is asked for
        self._returning = returning
        self._keeps_ids = returning != "merge" or most_rows is not None

    def hear(self, runs: Iterable[QueryRun], rows_before: int) -> None:
        """Take note of the runs of a group that follows `rows_before` other rows."""
        for run in runs:
            self.are_integers = self.are_integers and _is_integer(run.query)
            if self._keeps_ids and self.blocks.begin(run.query, rows_before + run.row) and self.returned is None:
                self.returned = run
                self._tell_of_returned(run)

    def _tell_of_returned(self, run: QueryRun) -> None:
        problem = f"query {run.query!r} comes back after other queries"
        if self._returning == "error":
            raise FileFormatError(run.file, problem, line=run.line)
        if self._returning == "warn":
            warn(
                f"{run.file}, line {run.line}: {problem}; its documents are taken as one query "
                "(returning_qid='merge' accepts that silently, 'error' refuses it)"
            )


def query_ids(runs: list[QueryRun], n_rows: int, as_integers: bool) -> NDArray[Any]:
    """One query id for each row, as integers or as text."""
    ids = (
        np.array([int(run.query) for run in runs], np.int64)
        if as_integers
        else np.array([run.query for run in runs], object)
    )
    lengths = np.diff([run.row for run in runs], append=n_rows)
    return np.repeat(ids, lengths)


def _is_integer(text: str) -> bool:
    try:
        return str(int(text)) == text and -(2**63) <= int(text) < 2**63
    except ValueError:  # no number, or one of over 4300 digits
        return False
