"""Collect the documents of a source block by block: features in files, and all other columns in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, Self

import numpy as np
from numpy.typing import NDArray

from podium.binned.folder import DOCUMENTS, HASHES, LABEL, QUERY_IDS
from podium.core.array_types import Float32s, Floats, Ints, UInt64s
from podium.core.bitwise import TILE
from podium.core.mapping import map_rows
from podium.core.progress import progress
from podium.data import RankingData
from podium.data.io.queries import block_bounds
from podium.errors import DataError

OPTIONAL = ("document_weights", "positions")


class DocumentColumns:
    """Collects everything about documents except their features. Call `append` for each block, then `group`."""

    def __init__(self) -> None:
        self._parts: dict[str, list[NDArray[Any]]] = {}
        self._code_of: dict[Any, int] = {}

    def append(self, block: RankingData, hashes: UInt64s) -> None:
        """Add a block, and the hashes of its features."""
        code_of = self._code_of
        codes = np.array([code_of.setdefault(qid, len(code_of)) for qid in block.query_ids.tolist()], np.int32)
        columns: dict[str, Any] = {f"{LABEL}{source}": labels for source, labels in block.labels.items()}
        columns |= {name: getattr(block, name) for name in OPTIONAL}
        columns |= {"query": codes[block.query_of_row], "hashes": hashes}
        columns["query_weights"] = None if block.query_weights is None else block.query_weight_of_row
        for name, values in columns.items():
            if values is not None:
                self._parts.setdefault(name, []).append(np.array(values))  # a view would keep the block in memory

    def group(self) -> None:
        """Join the blocks, and group documents by query."""
        self.query_ids = list(self._code_of)  # in the order in which they first appear
        columns = {name: np.concatenate(self._parts.pop(name)) for name in list(self._parts)}
        query = columns["query"]
        self.sizes = np.bincount(query, minlength=len(self.query_ids))  # of queries
        self.starts = np.cumsum(self.sizes) - self.sizes  # the first row of each query, in grouped order
        self.n_runs = 1 + int(np.count_nonzero(query[1:] != query[:-1]))
        # The rows of the source, query by query; None if the source is already grouped.
        self.order = None if self.n_runs == len(self.query_ids) else np.argsort(query, kind="stable")
        self.columns = columns
        if self.order is not None:
            self.columns = {name: values[self.order] for name, values in columns.items()}

    @property
    def places(self) -> Ints:
        """The position in grouped order of each row of the source."""
        assert self.order is not None
        places = np.empty(len(self.order), np.int64)
        places[self.order] = np.arange(len(self.order))
        return places

    def blocks(self, max_rows: int) -> Iterator[tuple[int, int]]:
        """Return where each block of whole queries begins and ends, in grouped order."""
        return pairwise(block_bounds(self.starts, int(self.sizes.sum()), max_rows))

    def query_weights(self) -> Float32s | None:
        """Return one weight per query; raise if the documents of a query differ."""
        weights = self.columns.get("query_weights")
        if weights is None:
            return None
        differ = weights != np.repeat(weights[self.starts], self.sizes)
        if differ.any():
            query = self.query_ids[int(self.columns["query"][int(np.argmax(differ))])]
            raise DataError(f"query_weights must be the same for all documents of a query, but differ in {query!r}")
        return np.asarray(weights[self.starts])

    def labels(self) -> dict[str, Float32s]:
        """Return the labels by source."""
        return {k.removeprefix(LABEL): v for k, v in self.columns.items() if k.startswith(LABEL)}

    def save(self, folder: Path, preferences: Floats | None) -> None:
        """Write everything except the features."""
        arrays: dict[str, Any] = {k: v for k, v in self.columns.items() if k.startswith(LABEL) or k in OPTIONAL}
        others = {"query_weights": self.query_weights(), "preferences": self._moved(preferences)}
        arrays |= {name: values for name, values in others.items() if values is not None}
        np.savez(folder / DOCUMENTS, query_sizes=self.sizes, **arrays)
        np.save(folder / HASHES, self.columns["hashes"])
        (folder / QUERY_IDS).write_text(json.dumps(self.query_ids), encoding="utf-8")

    def _moved(self, preferences: Floats | None) -> Floats | None:
        """Return preferences between rows of the source as preferences between grouped rows."""
        if preferences is None or self.order is None:
            return preferences
        moved = preferences.copy()
        moved[:, :2] = self.places[preferences[:, :2].astype(np.int64)]
        return moved


MAX_FILES = 128  # files open at the same time
BYTES_AT_ONCE = 1 << 26  # of a file that is reordered in memory


class RowFiles:
    """Files of a few columns each, written block by block.

    Args:
        folder: the folder of the files.
        name: the prefix of the files' names; a number follows.
        n_columns: the number of columns of all files together.
        width: the number of columns per file. The default is small, so that reading a feature reads few others: the
            smallest multiple of `TILE` with at most `MAX_FILES` files.

    """

    def __init__(self, folder: Path, name: str, n_columns: int, width: int | None = None) -> None:
        self.n_columns, self.width = n_columns, width or TILE * -(-n_columns // (TILE * MAX_FILES))
        self.firsts = range(0, n_columns, self.width)
        self.paths = [folder / f"{name}-{first}" for first in self.firsts]
        self._stack, self._open = ExitStack(), list[IO[bytes]]()

    def __enter__(self) -> Self:
        with ExitStack() as stack:  # if a file cannot be opened, the others are closed
            self._open = [stack.enter_context(path.open("wb")) for path in self.paths]
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def append(self, rows: Float32s) -> None:
        """Append rows."""
        for first, file in zip(self.firsts, self._open, strict=True):
            file.write(np.ascontiguousarray(rows[:, first : first + self.width]).data)

    def read(self) -> Iterator[tuple[int, Float32s]]:
        """Yield the number of the first column of each file, and the rows of the file, memory-mapped."""
        for first, path in zip(self.firsts, self.paths, strict=True):
            yield first, map_rows(path, self._width_of(first))

    def remove(self, first: int) -> None:
        """Remove the file whose first column is `first`."""
        self.paths[first // self.width].unlink()

    def reorder(self, places: Ints) -> None:
        """Move each row to its place, file by file, with a bounded part in memory."""
        with progress("grouping queries", len(self.paths)) as advance:
            for first, path in zip(self.firsts, self.paths, strict=True):
                reorder_rows(path, self._width_of(first), places)
                advance(1)

    def _width_of(self, first: int) -> int:
        return min(self.width, self.n_columns - first)


def reorder_rows(path: Path, n_columns: int, places: Ints, bytes_at_once: int = BYTES_AT_ONCE) -> None:
    """Move each row of a file to its place, with sequential reads and writes only.

    Rows are first distributed to a file for each range of places. Each range fits into memory, where it is sorted.
    """
    n, row_bytes = len(places), 4 * n_columns
    n_rows = max(bytes_at_once // row_bytes, -(-n // MAX_FILES), 1)  # of a range
    ranges = [path.with_name(f"{path.name}-range{k}") for k in range(-(-n // n_rows))]

    def rows_of_ranges(some_places: Ints) -> list[Any]:
        """Return, for each range, the indices of the places in it."""
        number = some_places // n_rows
        ends = np.cumsum(np.bincount(number, minlength=len(ranges)))
        return np.split(np.argsort(number, kind="stable"), ends[:-1])

    with ExitStack() as stack:
        files = [stack.enter_context(range_path.open("wb")) for range_path in ranges]
        source = stack.enter_context(path.open("rb"))
        for first in range(0, n, n_rows):
            rows = np.frombuffer(source.read(n_rows * row_bytes), np.float32).reshape(-1, n_columns)
            for file, in_range in zip(files, rows_of_ranges(places[first : first + n_rows]), strict=True):
                file.write(rows[in_range].data)
    with path.open("wb") as target:
        for k, (range_path, in_range) in enumerate(zip(ranges, rows_of_ranges(places), strict=True)):
            rows = np.fromfile(range_path, np.float32).reshape(-1, n_columns)
            ordered = np.empty_like(rows)
            ordered[places[in_range] - k * n_rows] = rows
            target.write(ordered.data)
            range_path.unlink()
