"""LETOR text, or SVMlight text with query ids: `label qid:ID index:value … # comment`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.core.threads import map_threads
from podium.data.io.text.blocks import Block, Source, source_name
from podium.data.io.text.letor_parser import Indices, Rows, parse_letor, scan_letor
from podium.data.io.text.options import TextOptions
from podium.data.io.text.parsing import (
    OBJECT_BYTES,
    ROW_BYTES,
    Counted,
    Merges,
    Run,
    decoded,
    drain,
    load_blocks,
    number_at,
    parse_block,
    query_ids,
    raise_problem,
    runs_of,
    warn_of_overflows,
)
from podium.data.memory import Budget
from podium.errors import FileFormatError

NAME_BYTES = 64  # a feature's name, as Python has it
DENSE_WASTE = 64  # a dense array this many times the size of its text, and over 1 GiB, is a mistake


@dataclass
class _Part:
    """What one block holds."""

    runs: list[Run]
    comments: list[str] | None
    overflows: int
    fewest: int
    values: NDArray[np.float32] = field(default_factory=lambda: np.empty(0, np.float32))
    columns: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    pairs_before: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))


def read_letor(
    sources: Sequence[Source], options: TextOptions, advance: Callable[[float], None], budget: Budget
) -> dict[str, Any]:
    """Read files as one; the arguments of `RankingData`."""
    items = load_blocks(sources, lambda block: scan_letor(block.text), advance, options.n_threads, budget)
    n_rows = sum(item.rows for item in items)
    n_bytes = sum(len(item.block.text) for item in items)
    largest = max(item.largest_index for item in items)
    width = options.n_features
    if width is None:
        width = max(0, largest + 1 - options.first_index)
    # Where an index is out of bounds the text is parsed only to find the first error in it.
    sparse = options.sparse or largest > options.last_index
    if not sparse:
        _refuse_absurd_size(items, n_rows, width, n_bytes)
    names = ", ".join(source_name(source) for source in sources)
    budget.hold("data", n_rows * (ROW_BYTES + 4 * width * (not sparse)), names)
    labels = np.empty(n_rows, np.float32)
    if sparse:
        features = np.empty((0, 0), np.float32)
    elif options.absent == "zero":
        features = np.zeros((n_rows, width), np.float32)
    else:
        features = np.full((n_rows, width), np.nan, np.float32)

    merges = Merges()

    def parse(item: Counted) -> _Part:
        part = _parse(item, features, labels, sparse, options, merges)
        objects = len(part.runs) + len(part.comments or ())
        # The pairs of all parts are put together once more in the end.
        budget.hold("data", OBJECT_BYTES * objects + 2 * (part.values.nbytes + part.columns.nbytes), item.block.file)
        return part

    parts = list(map_threads(parse, drain(items), options.n_threads))
    warn_of_overflows(sum(part.overflows for part in parts), names)
    budget.hold("data", NAME_BYTES * width, names)
    feature_names = [str(options.first_index + k) for k in range(width)]
    merges.warn(names, feature_names)
    runs = (run for part in parts for run in part.runs)
    is_sparse_text = min(part.fewest for part in parts) < largest + 1 - options.first_index
    absent_value = 0.0 if options.absent == "zero" else np.nan
    return {
        "feature_names": feature_names,
        "absent_value": absent_value if is_sparse_text else None,
        "features": _compressed_rows(parts, width) if sparse else features,
        "relevance": labels,
        "qid": query_ids(runs, n_rows, options.returning_qid),
        "document_ids": _document_ids(parts, n_rows),
    }


def _refuse_absurd_size(items: list[Counted], n_rows: int, width: int, n_bytes: int) -> None:
    size = 4 * n_rows * width
    if size > max(DENSE_WASTE * n_bytes, 1 << 30):
        widest = max(items, key=lambda item: item.largest_index)
        raise FileFormatError(
            widest.block.file,
            f"{n_rows} documents × {width} features would take {size / 2**30:.1f} GiB as a dense array, "
            f"{size // n_bytes} times the text; pass sparse=True, or n_features if an index is wrong",
        )


def _parse(
    item: Counted,
    features: NDArray[np.float32],
    labels: NDArray[np.float32],
    sparse: bool,
    options: TextOptions,
    merges: Merges,
) -> _Part:
    block, rows = item.block, slice(item.first_row, item.first_row + item.rows)
    n_pairs = len(block.text) // 4 + 1 if sparse else 0  # at most: a pair takes four bytes at least
    target = Rows(
        features=np.empty((1, n_pairs), np.float32) if sparse else features[rows],
        columns=np.empty(n_pairs, np.int32),
        pairs_before=np.zeros(item.rows + 1, np.int64),
        labels=labels[rows],
        comments=np.empty((item.rows, 2), np.int64),
    )
    indices = Indices(options.first_index, options.last_index)
    outcome, notes = parse_block(item, lambda *reports: parse_letor(block.text, indices, target, *reports))
    raise_problem(block, outcome, first=options.first_index, last=options.last_index, why_last=options.why_last)
    for row, slot, start, end in notes.uncertain.tolist():
        number = number_at(block, start, end)
        if slot >= 0:
            target.features[0 if sparse else row, slot] = number
            continue
        if np.isinf(number):
            raise block.error(start, f"the label {block.token(start)!r} is beyond float32's range")
        target.labels[row] = number
    merges.look(notes.large)
    return _Part(
        runs_of(item, notes.runs, lambda a, b: decoded(block, a, b, "query id")),
        _comments(block, target.comments),
        outcome.overflows,
        outcome.fewest,
        target.features[0, : outcome.pairs].copy() if sparse else np.empty(0, np.float32),
        target.columns[: outcome.pairs].copy(),
        target.pairs_before,
    )


def _comments(block: Block, bounds: NDArray[np.int64]) -> list[str] | None:
    if not bounds.any():
        return None
    return [decoded(block, start, end, "comment").strip() for start, end in bounds.tolist()]


def _document_ids(parts: list[_Part], n_rows: int) -> NDArray[Any] | None:
    """The comments as document ids, empty where a line had none; None where no line had any."""
    if all(part.comments is None for part in parts):
        return None
    ids = np.full(n_rows, "", object)
    row = 0
    for part in parts:
        n = len(part.pairs_before) - 1
        if part.comments is not None:
            ids[row : row + n] = part.comments
        row += n
    return ids


def _compressed_rows(parts: list[_Part], width: int) -> Any:
    from scipy.sparse import csr_array

    before = [np.zeros(1, np.int64)]
    for part in parts:
        before.append(part.pairs_before[1:] + before[-1][-1])
    starts = np.concatenate(before)
    values = np.concatenate([part.values for part in parts])
    columns = np.concatenate([part.columns for part in parts])
    return csr_array((values, columns, starts), shape=(len(starts) - 1, width))
