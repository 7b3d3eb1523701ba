"""The side files of LightGBM and XGBoost next to a text file: query sizes, weights and positions.

`train.txt.query` or `train.txt.group` has the number of documents of each query, one per line, in the order of the
rows. `train.txt.weight` has a weight for each document or, for XGBoost, each query. `train.txt.position` has the
position at which each document was shown.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Floats, Ints
from podium.core.validation import to_path
from podium.data.io.queries import QueryRun
from podium.data.io.text_blocks import COMPRESSED, Source, source_name, text_blocks
from podium.errors import FileFormatError, warn


class _Side(NamedTuple):
    """The contents of a text file's side files."""

    sizes: Ints | None  # the number of documents of each query
    weights: Floats | None
    positions: Floats | None


class SideFiles:
    """The side files of several text files that are read as one.

    Args:
        sources: the text files; streams have no side files.

    """

    def __init__(self, sources: Sequence[Source]) -> None:
        sides = [_read_side(source) for source in sources]
        for field in _Side._fields:
            missing = [s for s, side in zip(sources, sides, strict=True) if getattr(side, field) is None]
            if 0 < len(missing) < len(sources):
                raise FileFormatError(
                    source_name(missing[0]), f"has no side file of {field}, but other files read with it do"
                )
        self._sides = dict(zip(map(source_name, sources), sides, strict=True))
        self._starts = None
        if sides and sides[0].sizes is not None:
            self._starts = np.cumsum([0, *(size for side in sides if side.sizes is not None for size in side.sizes)])
        self.columns = _joined_columns(sides)

    @property
    def has_queries(self) -> bool:
        """Whether queries come from side files instead of the lines of the text."""
        return self._starts is not None

    def runs(self, first_row: int, n_rows: int, file: str) -> list[QueryRun]:
        """Return the queries of `n_rows` rows from `first_row` on; their ids are 0, 1, …"""
        assert self._starts is not None
        first = int(np.searchsorted(self._starts, first_row, side="right")) - 1
        last = int(np.searchsorted(self._starts, first_row + n_rows, side="left"))
        return [QueryRun(max(int(self._starts[q]) - first_row, 0), str(q), file, q + 1) for q in range(first, last)]

    def rows(self, first_row: int, n_rows: int) -> dict[str, NDArray[Any]]:
        """Return the arguments of `RankingData` for some rows."""
        return {name: values[first_row : first_row + n_rows] for name, values in self.columns.items()}

    def check(self, source: Source, n_rows: int) -> None:
        """Raise if a side file does not match the number of documents of its text file."""
        side, name = self._sides[source_name(source)], source_name(source)
        if side.sizes is not None and side.sizes.sum() != n_rows:
            raise FileFormatError(
                name, f"has {n_rows} documents, but the sizes in its query file add up to {side.sizes.sum()}"
            )
        n_queries = None if side.sizes is None else len(side.sizes)
        for what, values, valid_sizes in (
            ("weight", side.weights, (n_rows, n_queries)), ("position", side.positions, (n_rows,)),
        ):  # fmt: skip
            if values is not None and len(values) not in valid_sizes:
                raise FileFormatError(name, f"has {n_rows} documents, but its {what} file has {len(values)} lines")


def side_file(source: Source, *suffixes: str) -> Path | None:
    """Return the side file with one of the suffixes, or None."""
    if not isinstance(source, str | os.PathLike):
        return None
    path = to_path(source)
    texts = [path, path.with_suffix("")] if path.suffix.lower() in COMPRESSED else [path]
    files = [Path(f"{text}{suffix}") for text in texts for suffix in suffixes]
    existing = [file for file in files if os.path.isfile(file)]  # noqa: PTH113  Path.is_file raises if a name is too long
    if len(existing) > 1:
        raise FileFormatError(existing[1], f"has the same role as {existing[0].name}: keep one of the two")
    return existing[0] if existing else None


def _read_side(source: Source) -> _Side:
    query, weight, position = (
        side_file(source, *kinds) for kinds in ((".query", ".group"), (".weight",), (".position",))
    )
    for kind in (".init", ".base_margin"):  # LightGBM's, XGBoost's
        if initial := side_file(source, kind):
            warn(f"{initial}: initial scores are ignored; to start from a model, pass submodel=… to the estimator")
    sizes = weights = positions = None
    if query is not None and not _has_query_ids(source):
        sizes = _read_numbers(query, "the number of documents of a query", whole=True, least=1).astype(np.int64)
    if weight is not None:
        weights = _read_numbers(weight, "a weight", least=0)
    if position is not None:
        positions = _read_numbers(position, "a position", whole=True, least=0)
        if len(positions) and positions.min() == 0:  # LightGBM's files count from 0
            positions += 1
    return _Side(sizes, weights, positions)


def _has_query_ids(source: Source) -> bool:
    """Return whether the first document of a text file has `qid:`."""
    for block in text_blocks(source):
        for line in block.text.tobytes().splitlines():
            content = line.partition(b"#")[0].split()
            if content:
                return len(content) > 1 and content[1].startswith(b"qid:")
    return False


def _joined_columns(sides: Sequence[_Side]) -> dict[str, NDArray[Any]]:
    """Return the columns of all rows by argument of `RankingData`."""
    columns: dict[str, list[NDArray[Any]]] = {}
    for side in sides:
        if side.positions is not None:
            columns.setdefault("positions", []).append(side.positions)
        if side.weights is not None:
            if side.sizes is not None and len(side.weights) == len(side.sizes) != side.sizes.sum():
                columns.setdefault("query_weights", []).append(np.repeat(side.weights, side.sizes))
            else:
                columns.setdefault("document_weights", []).append(side.weights)
    return {name: np.concatenate(parts) for name, parts in columns.items()}


def _read_numbers(path: Path, what: str, *, least: float, whole: bool = False) -> Floats:
    """Return the numbers of a file with one per line, ignoring empty lines at the end."""
    lines = b"".join(block.text.tobytes() for block in text_blocks(path)).rstrip().split(b"\n")
    try:
        values = np.array(lines, np.float64)
    except ValueError:
        values = np.array([_number_or_nan(line) for line in lines])
    bad = np.flatnonzero(~(np.isfinite(values) & (values >= least)) | (whole & (values != np.floor(values))))
    if len(bad):
        bad_line = lines[bad[0]].strip().decode("utf-8", errors="replace")
        number = "a whole number" if whole else "a number"
        raise FileFormatError(
            path, f"expected {what}, {number} of at least {least:g}, but found {bad_line[:40]!r}", line=int(bad[0]) + 1
        )
    return values


def _number_or_nan(line: bytes) -> float:
    try:
        return float(line)
    except ValueError:
        return np.nan
