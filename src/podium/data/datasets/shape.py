"""The shape of generated data: its parts, the sizes and ids of its queries, the shares of its labels."""

from __future__ import annotations

from typing import Literal

import numpy as np

from podium.core.array_types import Float32s, Floats, Ints
from podium.data.datasets.random_values import uniform_matrix
from podium.errors import DataError

Part = Literal["train", "valid", "test"]
PARTS: tuple[Part, ...] = ("train", "valid", "test")
SHARES = (0.52, 0.32, 0.13, 0.02, 0.01)  # of the labels 0 … 4, like web data
CALIBRATION_ROWS = 1 << 17  # documents from which scales and the borders between labels are computed
MOST_QUERIES = 10_000_000


def check_shape(queries: int, documents: int | tuple[int, int], features: int, part: str) -> None:
    """Refuse sizes and parts that cannot be."""
    if not 1 <= queries <= MOST_QUERIES:
        raise DataError(f"queries must be between 1 and {MOST_QUERIES}, but is {queries}")
    if features < 1:
        raise DataError(f"features must be at least 1, but is {features}")
    if part not in PARTS:
        raise DataError(f"part must be 'train', 'valid' or 'test', not {part!r}")
    low, high = documents if isinstance(documents, tuple) else (documents, documents)
    if not 1 <= low <= high:
        raise DataError(f"documents must be at least 1, or an ascending pair (fewest, most), not {documents}")


def query_sizes(queries: int, documents: int | tuple[int, int], key: np.uint64) -> Ints:
    """The number of documents of each query."""
    if not isinstance(documents, tuple):
        return np.full(queries, documents)
    low, high = documents
    grid = (uniform_matrix(queries, 1, key)[:, 0].astype(np.float64) + 1.0) / 2.0
    return low + (grid * (high - low + 1)).astype(np.int64)


def query_ids(sizes: Ints, part: str) -> Ints:
    """The query id of each row, from 1; the ids of other parts start elsewhere, so that parts can be joined."""
    first = 1 + MOST_QUERIES * PARTS.index(part)
    return np.repeat(np.arange(first, first + len(sizes)), sizes)


def labels_by_share(scores: Floats, calibration: Floats) -> Float32s:
    """Labels 0 … 4, by the borders that give the sorted calibration scores the shares of `SHARES`."""
    borders = [calibration[round(share * len(calibration))] for share in np.cumsum(SHARES[:-1])]
    return np.searchsorted(borders, scores, side="right").astype(np.float32)
