"""What the readers of both text formats share: queries, document ids, odd numbers and error texts."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.core.threads import map_threads
from podium.data.encoding import listed
from podium.data.io.text import kernels
from podium.data.io.text.blocks import Block, Source, read_blocks, source_name
from podium.data.io.text.options import Returning
from podium.data.memory import Budget
from podium.errors import FileFormatError, PodiumWarning

PROBLEMS = {
    kernels.LABEL: "expected a label, a number, but found {token!r}",
    kernels.INFINITE_LABEL: "the label {token!r} is infinite; labels are finite numbers, or nan for none",
    kernels.NO_QID: "expected qid:ID after the label, but found {token!r}",
    kernels.EMPTY_QID: "the query id is empty",
    kernels.PAIR: "expected index:value, but found {token!r}",
    kernels.NEGATIVE_INDEX: "the feature index of {token!r} is negative; indices count from {first}",
    kernels.LOW_INDEX: (
        "the feature index of {token!r} is below {first}; indices count from {first} "
        "(pass first_index=0 for a file that counts from 0)"
    ),
    kernels.REPEATED_INDEX: "the feature index of {token!r} stands twice on this line",
    kernels.DESCENDING_INDEX: "the feature index of {token!r} is smaller than the one before it",
    kernels.LARGE_INDEX: "the feature index of {token!r} is larger than {last}{why_last}",
    kernels.VALUE: "expected a number, but found {token!r}",
    kernels.NUL: "a NUL byte: this is not a text file, or it is damaged",
    kernels.LONE_RETURN: "a carriage return inside a line: convert the file to Unix line ends",
    kernels.FIELDS: "expected {columns} fields as in the header, but this line has {fields}",
    kernels.INFINITE: "the number {token!r} is infinite; labels, weights and positions are finite",
    kernels.OPEN_QUOTE: "this quote is not closed on the same line",
    kernels.AFTER_QUOTE: "expected the end of the field after the closing quote, but found {token!r}",
}


@dataclass(frozen=True)
class Run:
    """Consecutive rows with one query id: where they begin, and where that stands in the file."""

    row: int
    query: str
    file: str
    line: int


ROW_BYTES = 128  # what a row takes beside its features while it is read: its id, its label, places in the text
MERGE_SAMPLE = 1 << 16
OBJECT_BYTES = 256  # a run of rows with one query id, or a document id: Python's objects


@dataclass
class Counted:
    """A block with what a first look at it found, and where its rows go."""

    block: Block
    rows: int
    largest_index: int
    first_row: int = 0


def load_blocks(
    sources: Sequence[Source],
    scan: Callable[[Block], tuple[int, int, int]],
    advance: Callable[[float], None],
    n_threads: int | None,
    budget: Budget,
    open_blocks: Callable[[Source, Callable[[float], None], Budget], Iterator[Block]] = read_blocks,
) -> list[Counted]:
    """Read all sources into blocks and count their lines and rows; files without rows are refused."""
    counted: list[Counted] = []
    for source in sources:
        blocks = open_blocks(source, advance, budget)
        lines_before, before = 0, len(counted)
        for block, (lines, rows, largest) in map_threads(lambda b: (b, scan(b)), blocks, n_threads):
            block.first_line += lines_before
            lines_before += lines
            counted.append(Counted(block, rows, largest))
        if not any(item.rows for item in counted[before:]):
            raise FileFormatError(source_name(source), "holds no documents")
    first_row = 0
    for item in counted:
        item.first_row = first_row
        first_row += item.rows
    return counted


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
        self._seen: dict[int, NDArray[np.int64]] = {}
        self._lock = threading.Lock()

    def look(self, larges: NDArray[np.int64]) -> None:
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
            warnings.warn(
                f"{file}: different numbers became equal in float32 in {merged}. Subtract an offset from them, or read "
                "the file as a frame with float64 columns: RankingData(frame) shifts such columns by itself",
                PodiumWarning,
                stacklevel=2,
            )


def room_for_larges(block: Block) -> NDArray[np.int64]:
    """A table for all the large numbers that a block can hold; memory is taken for those that it does hold."""
    return np.empty((len(block.text) // 4 + 1, 2), np.int64)  # the shortest of them is "1e8", with a separator


def with_room_for_hard_numbers(parse: Callable[[NDArray[np.int64]], NDArray[np.int64]]) -> Any:
    """Call `parse(hard)` with ever more room until all the numbers that need Python's care fit."""
    room = 64
    while True:
        hard = np.empty((room, 4), np.int64)
        outcome = parse(hard)
        if outcome[kernels.ERROR] != kernels.TOO_MANY_HARD:
            return outcome, hard[: outcome[kernels.HARD]]
        room *= 16


def number_at(block: Block, start: int, end: int) -> np.float32:
    """The number that Python makes of these bytes, as float32."""
    with np.errstate(over="ignore"):
        return np.float32(float(block.text[start:end].tobytes()))


def raise_problem(block: Block, outcome: NDArray[np.int64], **words: Any) -> None:
    """Raise what a parser found wrong, if anything."""
    code, at = int(outcome[kernels.ERROR]), int(outcome[kernels.AT])
    if code == 0:
        return
    token = block.token(at, words.pop("stops", b" \t\r\n#"))
    if code != kernels.FIELDS and block.text[at] == kernels.RETURN and block.text[at + 1] != kernels.LINE_FEED:
        code = kernels.LONE_RETURN
    if "\x00" in token:
        code, at = kernels.NUL, at + token.index("\x00")
    raise block.error(at, PROBLEMS[code].format(token=token, **words))


def decoded(block: Block, start: int, end: int, what: str) -> str:
    """Bytes as text; what is not UTF-8 is an error with its place."""
    try:
        return block.text[start:end].tobytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise block.error(start + error.start, f"the {what} is not valid UTF-8") from error


def runs_of(item: Counted, runs: NDArray[np.int64], text_of: Callable[[int, int], str]) -> list[Run]:
    """The runs that a parser found in a block, with rows and lines counted from the file's start."""
    block = item.block
    return [
        Run(item.first_row + row, text_of(start, end), block.file, block.first_line + line)
        for row, line, start, end in runs.tolist()
    ]


def query_ids(runs: Iterable[Run], n_rows: int, returning: Returning) -> NDArray[Any]:
    """One query id for each row: integers where every id is written as one, else text."""
    joined: list[Run] = []
    for run in runs:
        if not joined or joined[-1].query != run.query:  # a run may go on in the next block
            joined.append(run)
    if returning != "merge":
        _look_for_returning(joined, returning)
    lengths = np.diff([run.row for run in joined], append=n_rows)
    return np.repeat(_integers_or_text([run.query for run in joined]), lengths)


def _look_for_returning(runs: list[Run], returning: Returning) -> None:
    seen: set[str] = set()
    for run in runs:
        if run.query in seen:
            problem = f"query {run.query!r} comes back after other queries"
            if returning == "error":
                raise FileFormatError(run.file, problem, line=run.line)
            warnings.warn(
                f"{run.file}, line {run.line}: {problem}; its documents are taken as one query "
                "(returning_qid='merge' accepts that silently, 'error' refuses it)",
                PodiumWarning,
                stacklevel=2,
            )
            return
        seen.add(run.query)


def _integers_or_text(tokens: list[str]) -> NDArray[Any]:
    try:
        values = [int(token) for token in tokens]
        if all(str(value) == token for value, token in zip(values, tokens, strict=True)):
            return np.array(values, np.int64)
    except (ValueError, OverflowError):
        pass
    return np.array(tokens, object)


def warn_of_overflows(count: int, names: str) -> None:
    """Say that numbers written in digits were too large for float32."""
    if count:
        warnings.warn(
            f"{names}: {count} numbers beyond float32's range (3.4e38) were read as infinite",
            PodiumWarning,
            stacklevel=2,
        )
