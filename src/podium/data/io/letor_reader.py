"""The reader of LETOR text, which is SVMlight text with query ids: `label qid:ID index:value … # comment`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Float32s, Floats, Int32s, Ints
from podium.core.threads import map_threads
from podium.data.io.letor_parser import (
    FULL_BUFFER,
    LONE_RETURN,
    NUL,
    OUTCOME,
    PROBLEMS,
    Indices,
    Notes,
    ParsedRows,
    ParseOutcome,
    parse_letor,
    scan_letor,
)
from podium.data.io.queries import QueryRun, query_ids
from podium.data.io.side_files import SideFiles
from podium.data.io.text_blocks import Block, Source
from podium.data.io.text_numbers import LINE_FEED, RETURN
from podium.data.io.text_reader import OBJECT_BYTES, Facts, TextReader, drain
from podium.data.memory import ROW_BYTES
from podium.errors import FileFormatError

if TYPE_CHECKING:
    from podium.data.io.reading import TextOptions

NAME_BYTES = 64  # of a feature's name as a Python object
DENSE_WASTE = 64  # a dense array over 1 GiB and more than this many times the size of its text must be a mistake


@dataclass
class _LetorPart:
    runs: list[QueryRun]
    comments: list[str] | None
    overflows: int
    fewest: int
    # for compressed sparse rows: the values, the column of each value, and how many values precede each row
    values: Float32s
    columns: Int32s
    pairs_before: Ints


class LetorReader(TextReader):
    """Reads LETOR text."""

    scan = staticmethod(scan_letor)

    def __init__(self, *arguments: Any, **others: Any) -> None:
        super().__init__(*arguments, **others)
        self.largest, self.fewest, self.has_comments = 0, 2**62, False
        self.side_files = SideFiles(self.sources)

    def end_source(self, source: Source, n_rows: int) -> None:
        super().end_source(source, n_rows)
        self.side_files.check(source, n_rows)

    def examine(self, blocks: list[Block]) -> None:
        """Parse a group for its facts only; without feature columns, features are checked but not kept."""
        self._parse(blocks, 0)

    def arguments(self, blocks: list[Block]) -> dict[str, Any]:
        n_rows, n_bytes = sum(block.rows for block in blocks), sum(len(block.text) for block in blocks)
        width = self._width(max(block.largest_index for block in blocks))
        if self.earlier_facts is None and self.like is None and not self._is_sparse(blocks):
            _refuse_absurd_size(blocks, n_rows, width, n_bytes)
        features, labels, parts = self._parse(blocks, width)
        self.budget.hold("data", NAME_BYTES * width, self.names)
        facts = self.earlier_facts or self.facts()
        absent_value = 0.0 if self.options.absent == "zero" else np.nan
        return {
            "feature_names": self._names(width),
            "absent_value": absent_value if facts.is_sparse else None,
            "features": features if features is not None else _compressed_rows(parts, width),
            "relevance": labels,
            "qid": query_ids([run for part in parts for run in part.runs], n_rows, facts.has_integer_ids),
            "document_ids": _document_ids(parts, n_rows) if facts.has_comments else None,
            **self.side_files.rows(self.n_rows - n_rows, n_rows),
        }

    def facts(self) -> Facts:
        n_indices = self.largest + 1 - self.options.first_index
        n_features = max(0, n_indices) if self.options.n_features is None else self.options.n_features
        return Facts(self.has_integer_ids, n_features, self.fewest < n_indices, self.has_comments)

    def feature_names(self) -> list[str]:
        return self._names(self.facts().n_features)

    def _names(self, width: int) -> list[str]:
        return [str(self.options.first_index + k) for k in range(width)]

    def _width(self, largest: int) -> int:
        if self.earlier_facts is not None:
            return self.earlier_facts.n_features
        if self.options.n_features is not None:
            return self.options.n_features
        n_in_text = max(0, largest + 1 - self.options.first_index)
        if self.like is None:
            return n_in_text
        # Drop features beyond those of the model, unless the model must raise because there are too many.
        n_expected = self.like.n_indices(self.options.first_index)
        return max(n_expected, n_in_text) if self.like.names is None or self.options.sparse else n_expected

    def _is_sparse(self, blocks: list[Block]) -> bool:
        # If an index is out of bounds, the text is parsed only to find the first error.
        return self.options.sparse or max(block.largest_index for block in blocks) > self.options.last_index

    def _parse(self, blocks: list[Block], width: int) -> tuple[Float32s | None, Floats, list[_LetorPart]]:
        """Return a group's features (unless they are sparse), its labels, and the rest; update the totals."""
        n_rows, sparse = sum(block.rows for block in blocks), self._is_sparse(blocks)
        self.largest = max(self.largest, *(block.largest_index for block in blocks))
        self.budget.hold("data", n_rows * (ROW_BYTES + 4 * width * (not sparse)), self.names)
        labels = np.empty(n_rows)
        if sparse:
            features = np.empty((0, 0), np.float32)
        elif self.options.absent == "zero":
            features = np.zeros((n_rows, width), np.float32)
        else:
            features = np.full((n_rows, width), np.nan, np.float32)

        parse = partial(self._parse_block, features, labels, sparse)
        parts = list(map_threads(parse, drain(blocks), self.options.n_threads))
        self.fewest = min(self.fewest, *(part.fewest for part in parts))
        self.has_comments = self.has_comments or any(part.comments is not None for part in parts)
        runs = [run for part in parts for run in part.runs]
        if self.side_files.has_queries:
            if runs:
                raise FileFormatError(runs[0].file, "has a query id, but earlier lines have none", line=runs[0].line)
            parts[0].runs = runs = self.side_files.runs(self.n_rows, n_rows, self.names)
        self.add_group(runs, n_rows, sum(part.overflows for part in parts))
        return None if sparse else features, labels, parts

    def _parse_block(self, features: Float32s, labels: Floats, sparse: bool, block: Block) -> _LetorPart:
        """Fill in the labels of a block's rows, and the features unless they are sparse; return the rest."""
        options, rows = self.options, slice(block.first_row, block.first_row + block.rows)
        n_pairs = len(block.text) // 4 + 1 if sparse else 0  # an upper bound: a pair takes at least four bytes
        target = ParsedRows(
            features=np.empty((1, n_pairs), np.float32) if sparse else features[rows],
            columns=np.empty(n_pairs, np.int32),
            pairs_before=np.zeros(block.rows + 1, np.int64),
            labels=labels[rows],
            comments=np.empty((block.rows, 2), np.int64),
        )
        outcome, notes = _parsed(block, target, options, not self.side_files.has_queries)
        for row, slot, start, end in notes.uncertain.tolist():
            number = float(block.text[start:end].tobytes())
            with np.errstate(over="ignore"):
                short = np.float32(number)
            if slot >= 0:
                if slot < target.features.shape[1]:  # otherwise the feature is dropped
                    target.features[0 if sparse else row, slot] = short
                continue
            if np.isinf(short):
                raise block.error(start, f"the label {block.token(start)!r} is too large for float32")
            target.labels[row] = number
        self.merges.add(notes.large)
        runs = [
            QueryRun(block.first_row + row, block.decoded(start, end, "query id"), block.file, block.first_line + line)
            for row, line, start, end in notes.runs.tolist()
        ]
        comments = None
        if target.comments.any():
            comments = [block.decoded(start, end, "comment").strip() for start, end in target.comments.tolist()]
        values = target.features[0, : outcome.pairs].copy() if sparse else np.empty(0, np.float32)
        columns = target.columns[: outcome.pairs].copy()
        # The pairs of all blocks are concatenated at the end.
        held = OBJECT_BYTES * (len(runs) + len(comments or ())) + 2 * (values.nbytes + columns.nbytes)
        self.budget.hold("data", held, block.file)
        return _LetorPart(runs, comments, outcome.overflows, outcome.fewest, values, columns, target.pairs_before)


def _refuse_absurd_size(blocks: list[Block], n_rows: int, width: int, n_bytes: int) -> None:
    size = 4 * n_rows * width
    if size > max(DENSE_WASTE * n_bytes, 1 << 30):
        widest = max(blocks, key=lambda block: block.largest_index)
        raise FileFormatError(
            widest.file,
            f"{n_rows} documents × {width} features would take {size / 2**30:.1f} GiB as a dense array, "
            f"{size // n_bytes} times the size of the text: pass sparse=True, or n_features if an index is wrong",
        )


def _parsed(block: Block, target: ParsedRows, options: TextOptions, has_qid: bool) -> tuple[ParseOutcome, Notes]:
    """Run the parser, with larger buffers until all uncertain numbers fit; raise the problem that it records."""
    runs = np.empty((block.rows, 4), np.int64)
    # Room for all large numbers that a block can contain; the shortest is "1e8" with a separator. The system only
    # commits the pages that are used.
    large = np.empty((len(block.text) // 4 + 1, 2), np.int64)
    size = 64 + block.rows  # labels that are not integers are uncertain as well
    while True:
        notes = Notes(runs, np.empty((size, 4), np.int64), large)
        outcomes = np.array([tuple(ParseOutcome())], OUTCOME)
        parse_letor(block.text, Indices(options.first_index, options.last_index, has_qid), target, notes, outcomes)
        outcome = ParseOutcome(*outcomes[0].item())
        if outcome.problem != FULL_BUFFER:
            break
        size *= 16
    if outcome.problem:
        raise _problem(block, outcome.problem, outcome.at, options)
    return outcome, Notes(runs[: outcome.runs], notes.uncertain[: outcome.uncertain], large[: outcome.large])


def _problem(block: Block, code: int, at: int, options: TextOptions) -> FileFormatError:
    token = block.token(at)
    if block.text[at] == RETURN and block.text[at + 1] != LINE_FEED:
        code = LONE_RETURN
    if "\x00" in token:
        code, at = NUL, at + token.index("\x00")
    words = {"first": options.first_index, "last": options.last_index, "why_last": options.why_last}
    return block.error(at, PROBLEMS[code].format(token=token, **words))


def _document_ids(parts: list[_LetorPart], n_rows: int) -> NDArray[Any]:
    """Return the comments as document ids, empty for lines without a comment."""
    ids = np.full(n_rows, "", object)
    row = 0
    for part in parts:
        n = len(part.pairs_before) - 1
        if part.comments is not None:
            ids[row : row + n] = part.comments
        row += n
    return ids


def _compressed_rows(parts: list[_LetorPart], width: int) -> Any:
    from scipy.sparse import csr_array

    before = [np.zeros(1, np.int64)]
    for part in parts:
        before.append(part.pairs_before[1:] + before[-1][-1])
    starts = np.concatenate(before)
    values = np.concatenate([part.values for part in parts])
    columns = np.concatenate([part.columns for part in parts])
    return csr_array((values, columns, starts), shape=(len(starts) - 1, width))
