"""The query ids of text: what they are, and where they come back."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.data.io.text.options import Returning
from podium.data.io.whole_queries import QueryBlocks
from podium.errors import FileFormatError, PodiumWarning


@dataclass(frozen=True)
class Run:
    """Consecutive rows with one query id: where they begin, and where that stands in the file."""

    row: int
    query: str
    file: str
    line: int


class QueryRuns:
    """Hears the runs of all rows, group after group, and keeps what they say together.

    Attributes:
        blocks: where blocks end that hold whole queries.
        are_integers: whether every id is written as an integer.
        returned: the first run whose query comes back after other queries; where that is not asked for, None.

    """

    def __init__(self, returning: Returning, most_rows: int | None = None) -> None:
        self.blocks = QueryBlocks(most_rows or 0)
        self.are_integers = True
        self.returned: Run | None = None
        self._returning = returning
        self._keeps_ids = returning != "merge" or most_rows is not None

    def hear(self, runs: Iterable[Run], rows_before: int) -> None:
        """Take note of the runs of a group of rows, which follow so many others."""
        for run in runs:
            self.are_integers = self.are_integers and _is_integer(run.query)
            if self._keeps_ids and self.blocks.begin(run.query, rows_before + run.row) and self.returned is None:
                self.returned = run
                self._tell_of_returned(run)

    def _tell_of_returned(self, run: Run) -> None:
        problem = f"query {run.query!r} comes back after other queries"
        if self._returning == "error":
            raise FileFormatError(run.file, problem, line=run.line)
        if self._returning == "warn":
            warnings.warn(
                f"{run.file}, line {run.line}: {problem}; its documents are taken as one query "
                "(returning_qid='merge' accepts that silently, 'error' refuses it)",
                PodiumWarning,
                stacklevel=2,
            )


def query_ids(runs: list[Run], n_rows: int, as_integers: bool) -> NDArray[Any]:
    """One query id for each row, as integers or as text."""
    ids = np.array([int(run.query) for run in runs], np.int64) if as_integers else _texts([run.query for run in runs])
    lengths = np.diff([run.row for run in runs], append=n_rows)
    return np.repeat(ids, lengths)


def _texts(texts: list[str]) -> NDArray[Any]:
    return np.array(texts, object)


def _is_integer(text: str) -> bool:
    """Whether an id is written as int64 is."""
    try:
        return str(int(text)) == text and -(2**63) <= int(text) < 2**63
    except ValueError:  # no number, or one of over 4300 digits
        return False
