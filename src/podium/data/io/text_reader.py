"""The base class of the readers of LETOR and CSV text."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from podium.core.array_types import Bytes, Ints
from podium.core.threads import map_threads
from podium.data.encoding import MERGE_SAMPLE, listed
from podium.data.io.queries import QueryBlocks, QueryRun, is_integer
from podium.data.io.text_blocks import Block, Source, source_name, text_blocks
from podium.data.memory import Budget
from podium.data.schema import Schema
from podium.errors import FileFormatError, warn

if TYPE_CHECKING:
    from podium.data.io.reading import TextOptions

Scan = Callable[[Bytes, int], tuple[int, int, int, int]]  # as `scan_letor`
ALL_ROWS = 2**62
OBJECT_BYTES = 256  # of the Python objects for a run of rows with one query id, or for a document id


def drain(blocks: list[Block]) -> Iterator[Block]:
    """Yield the blocks in order and drop them, so that their text can be freed once it is parsed."""
    blocks.reverse()
    while blocks:
        yield blocks.pop()


class Merges:
    """Collects the features in which different large numbers became equal in float32.

    Within a block it compares all numbers of a column, between blocks up to 65,536 of them.
    """

    def __init__(self) -> None:
        self.features: set[int] = set()
        self._seen: dict[int, Ints] = {}
        self._lock = threading.Lock()

    def add(self, larges: Ints) -> None:
        """Compare the numbers of a block, as (feature, digits), with each other and with earlier ones."""
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
        """Warn about merged numbers, with the remedy."""
        if self.features:
            merged = listed("feature", [repr(names[feature]) for feature in sorted(self.features)])
            warn(
                f"{file}: different numbers became equal in float32 in {merged}. Subtract an offset from them, or read "
                "the file as a frame with float64 columns: RankingData(frame) shifts such columns automatically"
            )


@dataclass(frozen=True)
class Facts:
    """What only a pass over the whole text shows."""

    has_integer_ids: bool  # whether every query id is an integer
    n_features: int = 0  # LETOR
    is_sparse: bool = False  # LETOR: whether a line omits a feature
    has_comments: bool = False  # LETOR: whether a line has a comment
    # CSV, TSV: the names of the categories by column
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class TextReader(ABC):
    """Reads text at once or in groups of rows.

    A subclass has a static method `scan(text, most_rows)`, which returns the numbers of lines and rows of a block, its
    largest feature index, and where the scan stopped. It implements the abstract methods.

    While a subclass parses, it calls `budget.hold` before it allocates memory, and passes numbers that float32 may
    merge to `merges.add`. It calls `add_group` once for each group. If `earlier_facts` or `like` is passed, it uses
    these facts instead of those of the text.

    Args:
        sources: files and streams, read as one data set.
        options: the options for text.
        budget: the memory limit of all rows, or of one group.
        earlier_facts: the facts of an earlier pass; by default those of the text so far.
        like: the features of a model, which replace those of the text.
        most_rows: the maximum size of blocks of whole queries, if this pass is to find them.

    """

    scan: Scan

    def __init__(
        self,
        sources: Sequence[Source],
        options: TextOptions,
        budget: Budget,
        earlier_facts: Facts | None = None,
        like: Schema | None = None,
        most_rows: int | None = None,
    ) -> None:
        self.sources, self.options, self.budget = sources, options, budget
        self.earlier_facts, self.like = earlier_facts, like
        self.names = ", ".join(source_name(source) for source in sources)
        self.returning = options.returning_qid if earlier_facts is None else "merge"
        self.keeps_ids = self.returning != "merge" or most_rows is not None
        self.query_blocks = QueryBlocks(most_rows or 0)
        self.has_integer_ids = True  # whether all query ids so far are integers
        self.has_returning_query = False  # whether a query returned after others
        self.merges = Merges()
        self.n_overflows = self.n_rows = 0

    def all_rows(self, advance: Callable[[float], None]) -> dict[str, Any]:
        """Return the arguments of `RankingData` for all rows; raise if a file has no rows."""
        blocks: list[Block] = []
        n_rows = 0
        for source in self.sources:
            opened, lines_before, before = self.open_blocks(source, advance), 0, n_rows
            scanned = map_threads(lambda b: (b, self.scan(b.text, ALL_ROWS)), opened, self.options.n_threads)
            for block, (lines, rows, largest, _) in scanned:
                block.first_line += lines_before
                block.rows, block.largest_index, block.first_row = rows, largest, n_rows
                blocks.append(block)
                lines_before, n_rows = lines_before + lines, n_rows + rows
            self.end_source(source, n_rows - before)
        arguments = self.arguments(blocks)
        self.finish()
        return arguments

    def groups(self, advance: Callable[[float], None], sizes: Iterable[int]) -> Iterator[list[Block]]:
        """Yield groups with these numbers of rows, for `examine` or `arguments`.

        Lines without a row belong to the group before them. Groups are read lazily, and the budget limits one group.
        """
        next_sizes = iter(sizes)
        group: list[Block] = []
        n_more, first_row = next(next_sizes), 0
        for source in self.sources:
            lines_before = n_rows = 0
            for block in self.open_blocks(source, advance):
                text, first_line = block.text, block.first_line + lines_before
                while len(text):
                    lines, rows, largest, end = self.scan(text, n_more)
                    if end == 0:  # the group is full
                        yield group
                        self.budget.release()
                        group, n_more, first_row = [], next(next_sizes, ALL_ROWS), 0
                        continue
                    group.append(Block(block.file, text[:end], first_line, rows, largest, first_row))
                    n_more, first_row, n_rows = n_more - rows, first_row + rows, n_rows + rows
                    text, first_line, lines_before = text[end:], first_line + lines, lines_before + lines
            self.end_source(source, n_rows)
        yield group
        self.budget.release()  # for a second pass

    def open_blocks(self, source: Source, advance: Callable[[float], None]) -> Iterator[Block]:
        """Return the blocks of a file that hold rows."""
        return text_blocks(source, advance, self.budget)

    def end_source(self, source: Source, n_rows: int) -> None:
        """Check the number of rows of a file that has been read; raise if it has none."""
        if n_rows == 0:
            raise FileFormatError(source_name(source), "has no documents")

    @abstractmethod
    def examine(self, blocks: list[Block]) -> None:
        """Parse a group only for its facts."""

    @abstractmethod
    def arguments(self, blocks: list[Block]) -> dict[str, Any]:
        """Return the arguments of `RankingData` for a group."""

    @abstractmethod
    def facts(self) -> Facts:
        """Return the facts of all groups so far."""

    @abstractmethod
    def feature_names(self) -> Sequence[str]:
        """Return the names of the features in all groups so far."""

    def finish(self) -> None:
        """Issue warnings about all rows, after the last group."""
        if self.n_overflows:
            warn(f"{self.names}: {self.n_overflows} numbers are too large for float32 (3.4e38) and became infinite")
        self.merges.warn(self.names, self.feature_names())

    def add_group(self, runs: list[QueryRun], n_rows: int, n_overflows: int) -> None:
        """Add a parsed group to the totals; `runs` has the query ids of all its blocks, in order."""
        n_bytes = self.query_blocks.n_bytes
        for run in runs:
            self.has_integer_ids = self.has_integer_ids and is_integer(run.query)
            returns = self.keeps_ids and self.query_blocks.begin(run.query, self.n_rows + run.row)
            if returns and not self.has_returning_query:
                self.has_returning_query = True
                problem = f"query {run.query!r} returns after other queries"
                if self.returning == "error":
                    raise FileFormatError(run.file, problem, line=run.line)
                if self.returning == "warn":
                    warn(
                        f"{run.file}, line {run.line}: {problem}; all its documents are treated as one query "
                        "(pass returning_qid='merge' to accept that silently, 'error' to raise an error)"
                    )
        self.budget.hold("query ids", self.query_blocks.n_bytes - n_bytes, self.names)
        self.n_rows += n_rows
        self.n_overflows += n_overflows
