"""Rows of float32 in files, some columns in each, that are written once and then read column by column."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import numpy as np

from podium.core.array_types import Float32s, Ints
from podium.core.bitwise import TILE
from podium.core.mapping import map_rows
from podium.core.progress import progress

MAX_FILES = 128  # that are open at a time
BYTES_AT_ONCE = 1 << 26  # of a file, that are moved in memory


class RowFiles:
    """Files of some columns each, which grow block by block.

    Args:
        folder: where they are.
        name: what they are called, before a number.
        n_columns: of all files together.
        width: columns of a file; by default few, so that a feature is read without the others.

    Example:
        >>> import numpy as np, pathlib, tempfile
        >>> files = RowFiles(pathlib.Path(tempfile.mkdtemp()), "part", 3, width=2)
        >>> with files:
        ...     files.append(np.arange(6, dtype=np.float32).reshape(2, 3))
        >>> [(first, rows.tolist()) for first, rows in files.read()]
        [(0, [[0.0, 1.0], [3.0, 4.0]]), (2, [[2.0], [5.0]])]

    """

    def __init__(self, folder: Path, name: str, n_columns: int, width: int | None = None) -> None:
        self.n_columns, self.width = n_columns, width or _width_for(n_columns)
        self.firsts = range(0, n_columns, self.width)
        self.paths = [folder / f"{name}-{first}" for first in self.firsts]
        self._stack, self._open = ExitStack(), list[IO[bytes]]()

    def __enter__(self) -> Self:
        with ExitStack() as stack:  # a failure closes those that are open
            self._open = [stack.enter_context(path.open("wb")) for path in self.paths]
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def append(self, rows: Float32s) -> None:
        """Write rows behind those that are there."""
        for first, file in zip(self.firsts, self._open, strict=True):
            file.write(np.ascontiguousarray(rows[:, first : first + self.width]).data)

    def read(self) -> Iterator[tuple[int, Float32s]]:
        """The first column of each file and its rows, mapped."""
        for first, path in zip(self.firsts, self.paths, strict=True):
            yield first, map_rows(path, self._width_of(first))

    def remove(self, first: int) -> None:
        """Remove the file that begins with a column."""
        self.paths[first // self.width].unlink()

    def reorder(self, places: Ints) -> None:
        """Move each row to its place, file by file, with no more of it in memory than some bytes."""
        with progress("grouping queries", len(self.paths)) as advance:
            for first, path in zip(self.firsts, self.paths, strict=True):
                reorder_rows(path, self._width_of(first), places)
                advance(1)

    def _width_of(self, first: int) -> int:
        return min(self.width, self.n_columns - first)


def _width_for(n_columns: int) -> int:
    """Columns of a file: a multiple of what kernels copy at once, and not too many files."""
    return TILE * -(-n_columns // (TILE * MAX_FILES))


def reorder_rows(path: Path, n_columns: int, places: Ints, bytes_at_once: int = BYTES_AT_ONCE) -> None:
    """Move each row of a file to its place, reading and writing in sequence only.

    Rows are dealt to files by ranges of their places, each of which fits into memory; there they are put in order.
    """
    n, row_bytes = len(places), 4 * n_columns
    n_rows = max(bytes_at_once // row_bytes, -(-n // MAX_FILES), 1)  # of a range
    ranges = [path.with_name(f"{path.name}-range{k}") for k in range(-(-n // n_rows))]
    with ExitStack() as stack:
        files = [stack.enter_context(one.open("wb")) for one in ranges]
        source = stack.enter_context(path.open("rb"))
        for first in range(0, n, n_rows):
            rows = np.frombuffer(source.read(n_rows * row_bytes), np.float32).reshape(-1, n_columns)
            number = places[first : first + n_rows] // n_rows
            order = np.argsort(number, kind="stable")
            ends = np.cumsum(np.bincount(number, minlength=len(files)))
            for file, mine in zip(files, np.split(order, ends[:-1]), strict=True):
                file.write(rows[mine].data)
    number = places // n_rows
    by_range = np.argsort(number, kind="stable")
    ends = np.cumsum(np.bincount(number, minlength=len(ranges)))
    with path.open("wb") as target:
        for k, (one, mine) in enumerate(zip(ranges, np.split(by_range, ends[:-1]), strict=True)):
            rows = np.fromfile(one, np.float32).reshape(-1, n_columns)
            ordered = np.empty_like(rows)
            ordered[places[mine] - k * n_rows] = rows
            target.write(ordered.data)
            one.unlink()
