"""What the readers of both text formats are: parsers of groups of blocks that keep what all groups together say."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from podium.data.io.text.blocks import Block, Source, source_name, text_blocks
from podium.data.io.text.options import TextOptions
from podium.data.io.text.parsing import Counted, Merges, Scan, group_blocks, load_blocks, warn_of_overflows
from podium.data.io.text.queries import QueryRuns, Run
from podium.data.memory import Budget
from podium.data.schema import Schema


@dataclass(frozen=True)
class Facts:
    """What only the whole text tells, and every block of it has to agree with.

    Attributes:
        has_integer_ids: whether every query id is an integer.
        n_features: LETOR: the number of features.
        is_sparse: LETOR: whether a line leaves out a feature that the text has.
        has_comments: LETOR: whether a line has a comment.
        categories: CSV, TSV: the names of categories by column.

    """

    has_integer_ids: bool
    n_features: int = 0
    is_sparse: bool = False
    has_comments: bool = False
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class TextReader(ABC):
    """Reads text as one, or in groups of rows.

    Args:
        sources: files and streams, read as one.
        options: how to understand them.
        budget: of the whole, or of one group.
        known: what an earlier pass has found; without it, what this one has found so far.
        like: features of a model, which take the place of what the whole text would tell of its features.
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
        """The arguments of `RankingData` for all rows."""
        items = load_blocks(self.sources, self.scan, advance, self.options.n_threads, self.budget, self.open_blocks)
        arguments = self.arguments(items)
        self.finish()
        return arguments

    def groups(self, advance: Callable[[float], None], sizes: Iterable[int]) -> Iterator[list[Counted]]:
        """Groups of so many rows, for `look` or `arguments`."""
        return group_blocks(self.sources, self.scan, advance, self.budget, sizes, self.open_blocks)

    def open_blocks(self, source: Source, advance: Callable[[float], None], budget: Budget) -> Iterator[Block]:
        """The blocks of a file that hold rows."""
        return text_blocks(source, advance, budget)

    @abstractmethod
    def look(self, items: list[Counted]) -> None:
        """Parse a group for the facts alone."""

    @abstractmethod
    def arguments(self, items: list[Counted]) -> dict[str, Any]:
        """The arguments of `RankingData` for a group."""

    @abstractmethod
    def facts(self) -> Facts:
        """What all groups so far tell."""

    @abstractmethod
    def feature_names(self) -> Sequence[str]:
        """The names of the features in all groups so far."""

    def finish(self) -> None:
        """Warn of what all rows together have lost."""
        warn_of_overflows(self.n_overflows, self.names)
        self.merges.warn(self.names, self.feature_names())

    def hear(self, runs: list[Run], n_rows: int, n_overflows: int) -> None:
        """Take note of a group that is parsed."""
        n_bytes = self.queries.blocks.n_bytes
        self.queries.hear(runs, self.n_rows)
        self.budget.hold("query ids", self.queries.blocks.n_bytes - n_bytes, self.names)
        self.n_rows += n_rows
        self.n_overflows += n_overflows
