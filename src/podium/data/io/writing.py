"""`write`: ranking data to LETOR text or Parquet."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from podium.core.array_types import Bytes, Float32s, Int, Ints
from podium.core.choices import DataFormat
from podium.core.compiling import helper, kernel
from podium.core.files import compressed, replacing
from podium.core.progress import progress
from podium.core.threads import map_threads
from podium.core.validation import to_path
from podium.data.features import are_numbers
from podium.data.io.reading import format_of
from podium.data.io.text_numbers import COLON, HASH, LINE_FEED, SPACE, write_integer, write_number
from podium.data.ranking_data import RankingData
from podium.data.schema import as_data
from podium.data.sparse import MOST_FEATURES, frozen_block, is_sparse
from podium.errors import DataError


def write(
    data: RankingData,
    path: str | os.PathLike[str],
    format: DataFormat | None = None,  # noqa: A002
    *,
    absent: Literal["zero", "missing", "none"] = "zero",
    lossy: bool = False,
) -> None:
    """Write ranking data to a file; an existing file is replaced only once everything is written.

    Args:
        data: the data; every float32 is written so that it reads back bit for bit.
        path: the file to write; the suffixes `.gz`, `.bz2` and `.xz` compress text.
        format: `"letor"` or `"parquet"`; by default determined by the suffix.
        absent: LETOR: which values to omit from a line: `"zero"`, `"missing"` (NaN) or `"none"`. The first line is
            always complete, so that the number of features is known.
        lossy: LETOR text only stores relevance, query ids, features and a document id. Other data raises an error,
            unless `lossy=True` drops it.

    Example:
        >>> import podium, tempfile, pathlib
        >>> data = podium.artificial(2, documents=3, features=4)
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "data.txt"
        >>> podium.write(data, path)
        >>> bool((podium.read(path).features == data.features).all())
        True

    """
    kind, data = format or format_of(path), as_data(data)
    if kind == "parquet":
        from podium.data.io.parquet import write_parquet

        write_parquet(data, to_path(path))
    elif kind == "letor":
        write_letor(data, to_path(path), absent, lossy)
    else:
        raise DataError(f"{os.fspath(path)}: Podium can only write 'letor' and 'parquet', but got {kind!r}")


CHUNK_BYTES = 1 << 23


class _Texts(NamedTuple):
    """Concatenated texts; text k is from bounds[k] to bounds[k + 1]."""

    text: Bytes
    bounds: Ints


class _LetorLines(NamedTuple):
    """The content of some lines."""

    features: Float32s  # one row per line
    numbers: Ints  # the index of each feature in the file
    labels: Float32s  # one per line
    query: Ints  # the number of each line's query
    queries: _Texts  # the query ids
    comments: _Texts  # one per line


class _Omitted(NamedTuple):
    """Whether to omit zeros and missing values from lines, and whether from the first line as well."""

    zeros: bool
    missing: bool
    first_row: bool


def write_letor(data: RankingData, path: Path, absent: Literal["zero", "missing", "none"], lossy: bool) -> None:
    """Write every row as a line, in row order; see `podium.write`."""
    if absent not in ("zero", "missing", "none"):
        raise DataError(f"absent must be 'zero', 'missing' or 'none', but got {absent!r}")
    if is_sparse(data.features) and absent != "zero":
        raise DataError("sparse features must be written with absent='zero'")
    if not lossy:
        _refuse_loss(data)
    numbers = numbers_of(data.feature_names)
    if numbers is None:
        numbers = np.arange(1, data.n_features + 1)
    labels = data.labels.get("relevance", np.full(data.n_documents, np.nan, np.float32))
    queries = _joined_texts([_checked_text(str(query), "query id", " \t#\r\n\0") for query in data.query_ids])
    longest_query = int(np.diff(queries.bounds).max(initial=0))
    names = [""] * data.n_documents if data.document_ids is None else data.document_ids.tolist()
    step = max(1, CHUNK_BYTES // _bytes_per_row(data.n_features))
    bounds = list(pairwise([*range(0, data.n_documents, step), data.n_documents]))

    def text_of(bound: tuple[int, int]) -> memoryview:
        rows = slice(*bound)
        comments = _joined_texts([_checked_text(name, "document id", "\r\n\0") for name in names[rows]])
        lines = _LetorLines(
            frozen_block(data.features, rows), numbers, labels[rows], data.query_of_row[rows], queries, comments
        )
        size = len(lines.labels) * (_bytes_per_row(data.n_features) + longest_query) + len(comments.text)
        buffer = np.empty(size, np.uint8)
        omitted = _Omitted(absent == "zero", absent == "missing", first_row=bound[0] != 0)
        return buffer.data[: _format(buffer, lines, omitted)]

    with (
        progress(f"writing {path}", data.n_documents) as advance,
        replacing(path) as temporary,
        compressed(temporary, path.suffix.lower()) as stream,
    ):
        for bound, text in zip(bounds, map_threads(text_of, bounds), strict=True):
            stream.write(text)
            advance(bound[1] - bound[0])


def numbers_of(names: Sequence[str] | None) -> Ints | None:
    """Return feature names as the indices of LETOR text; None if they are not ascending numbers."""
    if names is None or not are_numbers(names) or any(len(name) > 10 for name in names):
        return None
    numbers = np.array([int(name) for name in names], np.int64)
    as_written = all(str(number) == name for number, name in zip(numbers.tolist(), names, strict=True))
    rising = bool((numbers[1:] > numbers[:-1]).all()) and (numbers <= MOST_FEATURES).all()
    return numbers if as_written and rising else None


def _refuse_loss(data: RankingData) -> None:
    optional = ("document_weights", "query_weights", "positions", "preferences")
    extra = [name for name in optional if getattr(data, name) is not None]
    extra += ["feature_names"] * (data.feature_names is not None and numbers_of(data.feature_names) is None)
    extra += ["categories"] * bool(data.encoding.categories) + ["shifted features"] * bool(data.encoding.shifts)
    extra += [f"the labels {source!r}" for source in data.labels if source != "relevance"]
    if extra:
        raise DataError(f"LETOR text cannot store {', '.join(extra)}: write Parquet, or pass lossy=True to drop them")


def _checked_text(text: str, what: str, forbidden: str) -> str:
    """Return text that a LETOR line can store; raise for other text."""
    if text != text.strip() or any(c in text for c in forbidden) or (what == "query id" and not text):
        raise DataError(f"LETOR text cannot store the {what} {text!r}")
    return text


def _joined_texts(texts: Sequence[str]) -> _Texts:
    try:
        pieces = [text.encode() for text in texts]
    except UnicodeEncodeError as error:
        raise DataError(f"the id {error.object!a} cannot be encoded as UTF-8") from None
    bounds = np.zeros(len(pieces) + 1, np.int64)
    np.cumsum([len(piece) for piece in pieces], out=bounds[1:])
    return _Texts(np.frombuffer(b"".join(pieces), np.uint8), bounds)


def _bytes_per_row(n_features: int) -> int:
    """Return an upper bound of a row's length: 16 characters for each number, 12 for its index and separators."""
    return 32 + 28 * n_features


@kernel
def _format(buffer: Bytes, lines: _LetorLines, omitted: _Omitted) -> Int:
    """Write lines of LETOR text into a buffer, which must be large enough, and return the number of bytes."""
    at: Int = 0
    for row in range(len(lines.labels)):
        at = write_number(buffer, at, lines.labels[row])
        buffer[at], buffer[at + 1], buffer[at + 2], buffer[at + 3], buffer[at + 4] = SPACE, 113, 105, 100, COLON  # qid:
        at = _write_text(buffer, at + 5, lines.queries, lines.query[row])
        for column in range(lines.features.shape[1]):
            value = lines.features[row, column]
            is_zero = value == 0 and math.copysign(1.0, value) > 0
            is_omitted = (omitted.zeros and is_zero) or (omitted.missing and math.isnan(value))
            if is_omitted and (row > 0 or omitted.first_row):
                continue
            buffer[at] = SPACE
            at = write_integer(buffer, at + 1, lines.numbers[column])
            buffer[at] = COLON
            at = write_number(buffer, at + 1, value)
        if lines.comments.bounds[row] < lines.comments.bounds[row + 1]:
            buffer[at], buffer[at + 1], buffer[at + 2] = SPACE, HASH, SPACE
            at = _write_text(buffer, at + 3, lines.comments, row)
        buffer[at] = LINE_FEED
        at += 1
    return at


@helper
def _write_text(buffer: Bytes, at: Int, texts: _Texts, number: Int) -> Int:
    for k in range(texts.bounds[number], texts.bounds[number + 1]):
        buffer[at] = texts.text[k]
        at += 1
    return at
