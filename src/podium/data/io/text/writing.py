"""LETOR text to a file."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from podium.core.files import compressed, replacing
from podium.core.progress import progress
from podium.core.threads import map_threads
from podium.data.columns import is_sparse
from podium.data.io.text import kernels
from podium.data.ranking_data import RankingData
from podium.data.sparse import MOST_FEATURES
from podium.errors import DataError

CHUNK_BYTES = 1 << 23


def write_letor(data: RankingData, path: Path, absent: Literal["zero", "missing", "none"], lossy: bool) -> None:
    """Write every row as a line, in the caller's order; see `podium.write`."""
    if absent not in ("zero", "missing", "none"):
        raise DataError(f"absent must be 'zero', 'missing' or 'none', not {absent!r}")
    if is_sparse(data.features) and absent != "zero":
        raise DataError("sparse features are written with absent='zero'")
    if not lossy:
        _refuse_loss(data)
    numbers = numbers_of(data.feature_names)
    if numbers is None:
        numbers = np.arange(1, data.n_features + 1)
    labels = data.labels.get("relevance", np.full(data.n_documents, np.nan, np.float32))
    queries = _joined([_plain(str(query), "query id", " \t#\r\n\0") for query in data.query_ids])
    query_of_row = np.empty(data.n_documents, np.int64)
    query_of_row[data.order] = np.repeat(np.arange(data.n_queries), data.query_sizes)
    names = [""] * data.n_documents if data.document_ids is None else data.document_ids.tolist()
    step = max(1, CHUNK_BYTES // kernels.bytes_per_row(data.n_features))
    bounds = list(pairwise([*range(0, data.n_documents, step), data.n_documents]))

    def text_of(bound: tuple[int, int]) -> memoryview:
        rows = slice(*bound)
        features = data.features[rows]
        features = features.toarray() if is_sparse(features) else features
        comments = _joined([_plain(name, "document id", "\r\n\0") for name in names[rows]])
        longest_query = int(np.diff(queries[1]).max())
        room = len(features) * (kernels.bytes_per_row(data.n_features) + longest_query) + len(comments[0])
        out = np.empty(room, np.uint8)
        size = kernels.format_letor(
            out, features, numbers, labels[rows], query_of_row[rows], *queries, *comments,
            absent == "zero", absent == "missing", bound[0] == 0,
        )  # fmt: skip
        return out.data[:size]

    with (
        progress(f"writing {path}", data.n_documents) as advance,
        replacing(path) as temporary,
        compressed(temporary, path.suffix.lower()) as stream,
    ):
        for bound, text in zip(bounds, map_threads(text_of, bounds), strict=True):
            stream.write(text)
            advance(bound[1] - bound[0])


def numbers_of(names: Sequence[str] | None) -> NDArray[np.int64] | None:
    """Names of features as the numbers that LETOR text calls them by; None where they are none, or do not rise."""
    if names is None or not all(name.isascii() and name.isdecimal() and len(name) <= 10 for name in names):
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
        raise DataError(
            f"LETOR text cannot hold {', '.join(extra)}; write Parquet, or pass lossy=True to leave them out"
        )


def _plain(text: str, what: str, forbidden: str) -> str:
    """Text that a LETOR line can hold and a reader gives back."""
    if text != text.strip() or any(c in text for c in forbidden) or (what == "query id" and not text):
        raise DataError(f"the {what} {text!r} cannot be written as LETOR text")
    return text


def _joined(texts: Sequence[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Texts one after the other, and where each begins and ends."""
    try:
        pieces = [text.encode() for text in texts]
    except UnicodeEncodeError as error:
        raise DataError(f"the id {error.object!a} cannot be written: UTF-8 cannot hold it") from None
    bounds = np.zeros(len(pieces) + 1, np.int64)
    np.cumsum([len(piece) for piece in pieces], out=bounds[1:])
    return np.frombuffer(b"".join(pieces), np.uint8), bounds
