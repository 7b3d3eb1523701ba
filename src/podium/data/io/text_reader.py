"""What the readers of LETOR and CSV text share."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from podium.core.array_types import Bytes, Ints
from podium.core.threads import map_threads
from podium.data.encoding import MERGE_SAMPLE, listed
from podium.data.io.queries import QueryRun, QueryRuns
from podium.data.io.request import TextOptions
from podium.data.io.text_blocks import Block, Source, source_name, text_blocks
from podium.data.memory import Budget
from podium.data.schema import Schema
from podium.errors import FileFormatError, warn

Scan = Callable[[Bytes, int], tuple[int, int, int, int]]  # as `scan_letor`
ALL_ROWS = 2**62
OBJECT_BYTES = 256  # a run of rows with one query id, or a document id: Python's objects


@dataclass
class Counted:
    """A block with what a first scan of it counted, and the number of its first row."""

    block: Block
    rows: int
    largest_index: int
    first_row: int = 0


def _numbered(items: list[Counted]) -> list[Counted]:
    first_row = 0
    for item in items:
        item.first_row = first_row
        first_row += item.rows
    return items


def drain(items: list[Counted]) -> Iterator[Counted]:
    """Hand out the blocks in order and forget them, so that their text can be freed once parsed."""
    items.reverse()
    while items:
        yield items.pop()


class Merges:
    """Takes note of features with different numbers, large ones, that became one float32.

    A column's numbers are all compared within a block, and up to 65,536 of them between blocks.
    """

    def __init__(self) -> None:
        self.features: set[int] = set()
        self._seen: dict[int, Ints] = {}
        self._lock = threading.Lock()

    def look(self, larges: Ints) -> None:
        """Compare the numbers of a block, as (feature, digits), with each other and with those before."""
        with self._lock:
            for feature in set(np.unique(larges[:, 0]).tolist()) - self.features:
                digits = np.unique(larges[larges[:, 0] == feature, 1])
                digits = np.union1d(digits, self._seen.get(feature, digits[:0]))
                shorter = digits.astype(np.float32)
                if (shorter[1:] == shorter[:-1]).any():
                    self.features.add(feature)
                    self._seen.pop(feature, None)
                else:
                    self._seen[feature] = digits[:MERGE_SAMPLE]

    def warn(self, file: str, names: Sequence[str]) -> None:
        """Say what was found, with the remedy."""
        if self.features:
            merged = listed("feature", [repr(names[feature]) for feature in sorted(self.features)])
            warn(
                f"{file}: different numbers became equal in float32 in {merged}. Subtract an offset from them, or read "
                "the file as a frame with float64 columns: RankingData(frame) shifts such columns by itself"
            )


def decoded(block: Block, start: int, end: int, what: str) -> str:
    """Bytes as text; what is not UTF-8 is an error with its place."""
    try:
        return block.text[start:end].tobytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise block.error(start + error.start, f"the {what} is not valid UTF-8") from error


@dataclass(frozen=True)
class Facts:
    """What depends on the whole text, and all of its blocks share."""

    has_integer_ids: bool  # whether every query id is an integer
    n_features: int = 0  # of text without a header
    is_sparse: bool = False  # LETOR: whether a line leaves out a feature that the text has
    has_comments: bool = False  # LETOR: whether a line has a comment
    # CSV, TSV: the names of categories by column
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class TextReader(ABC):
    """Reads text as one, or in groups of rows.

    A subclass has a static method `scan(text, most_rows)`, which returns how many lines and rows a block has, its
    largest feature index, and where the scan stopped; and `arguments(items)`, which parses blocks into arguments of
    `RankingData`. It asks the budget before it allocates (`budget.hold`), passes the query ids of each block to
    `queries.hear` in order, shows numbers that float32 may merge to `merges.look`, and takes `known` and `like` in
    place of what it would find itself.

    Args:
        sources: files and streams, read as one.
        options: how to understand them.
        budget: of the whole, or of one group.
        known: what an earlier pass has found; without it, what this one has found so far.
        like: features of a model, which replace those of the whole text.
        most_rows: of blocks that hold whole queries, which this pass is to find.

    """

    scan: Scan

    def __init__(
        self,
        sources: Sequence[Source],
        options: TextOptions,
        budget: Budget,
        known: Facts | None = None,
        like: Schema | None = None,
        most_rows: int | None = None,
    ) -> None:
        self.sources, self.options, self.budget, self.known, self.like = sources, options, budget, known, like
        self.names = ", ".join(source_name(source) for source in sources)
        self.queries = QueryRuns(options.returning_qid if known is None else "merge", most_rows)
        self.merges = Merges()
        self.n_overflows = self.n_rows = 0

    def all_rows(self, advance: Callable[[float], None]) -> dict[str, Any]:
        """Return the arguments of `RankingData` for all rows; files without rows are refused."""
        items: list[Counted] = []
        for source in self.sources:
            blocks, lines_before, before = self.open_blocks(source, advance), 0, len(items)
            scanned = map_threads(lambda b: (b, self.scan(b.text, ALL_ROWS)), blocks, self.options.n_threads)
            for block, (lines, rows, largest, _) in scanned:
                block.first_line += lines_before
                lines_before += lines
                items.append(Counted(block, rows, largest))
            self.end_source(source, sum(item.rows for item in items[before:]))
        arguments = self.arguments(_numbered(items))
        self.finish()
        return arguments

    def groups(self, advance: Callable[[float], None], sizes: Iterable[int]) -> Iterator[list[Counted]]:
        """Yield groups of these sizes in rows, for `look` or `arguments`; lines without a row follow those before.

        A group is read when it is asked for, and the budget is that of one group.
        """
        wanted = iter(sizes)
        group: list[Counted] = []
        left = next(wanted)
        for source in self.sources:
            lines_before = n_rows = 0
            for block in self.open_blocks(source, advance):
                text, first_line = block.text, block.first_line + lines_before
                while len(text):
                    lines, rows, largest, end = self.scan(text, left)
                    if end == 0:  # a row, and the group is full
                        yield _numbered(group)
                        self.budget.release()
                        group, left = [], next(wanted, ALL_ROWS)
                        continue
                    group.append(Counted(Block(block.file, text[:end], first_line), rows, largest))
                    left, n_rows = left - rows, n_rows + rows
                    text, first_line, lines_before = text[end:], first_line + lines, lines_before + lines
            self.end_source(source, n_rows)
        yield _numbered(group)
        self.budget.release()  # for a second pass

    def open_blocks(self, source: Source, advance: Callable[[float], None]) -> Iterator[Block]:
        """Return the blocks of a file that hold rows."""
        return text_blocks(source, advance, self.budget)

    def end_source(self, source: Source, n_rows: int) -> None:
        """Check the number of rows of a file that is read; one without rows is refused."""
        if n_rows == 0:
            raise FileFormatError(source_name(source), "holds no documents")

    @abstractmethod
    def look(self, items: list[Counted]) -> None:
        """Parse a group for the facts alone."""

    @abstractmethod
    def arguments(self, items: list[Counted]) -> dict[str, Any]:
        """The arguments of `RankingData` for a group."""

    @abstractmethod
    def facts(self) -> Facts:
        """Return the facts of all groups so far."""

    @abstractmethod
    def feature_names(self) -> Sequence[str]:
        """The names of the features in all groups so far."""

    def finish(self) -> None:
        """Warn of what all rows together have lost."""
        if self.n_overflows:
            warn(f"{self.names}: {self.n_overflows} numbers beyond float32's range (3.4e38) were read as infinite")
        self.merges.warn(self.names, self.feature_names())

    def hear(self, runs: list[QueryRun], n_rows: int, n_overflows: int) -> None:
        """Take note of a group that is parsed."""
        n_bytes = self.queries.blocks.n_bytes
        self.queries.hear(runs, self.n_rows)
        self.budget.hold("query ids", self.queries.blocks.n_bytes - n_bytes, self.names)
        self.n_rows += n_rows
        self.n_overflows += n_overflows
