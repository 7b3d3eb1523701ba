"""Which rows belong to which query, as an index; the rows themselves stay where they are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from podium.core.array_types import Ints
from podium.errors import DataError


def group_rows(qid: NDArray[Any]) -> tuple[NDArray[Any], Ints, Ints]:
    """(query_ids, order, offsets): the rows of query k are order[offsets[k]:offsets[k+1]].

    Queries stand in the order in which they first appear, rows of a query in the order they came.
    """
    n = len(qid)
    if n == 0:
        return qid, np.empty(0, np.int64), np.zeros(1, np.int64)
    starts = np.flatnonzero(np.concatenate([[True], np.asarray(qid[1:] != qid[:-1], bool)]))
    code_of: dict[Any, int] = {}
    codes = np.array([code_of.setdefault(query, len(code_of)) for query in qid[starts].tolist()])
    lengths = np.diff(starts, append=n)
    query_ids = np.empty(len(code_of), qid.dtype)
    query_ids[:] = list(code_of)
    if len(code_of) == len(starts):  # already grouped
        return query_ids, np.arange(n), np.append(starts, n)
    code_of_row = np.repeat(codes, lengths)
    order = np.argsort(code_of_row, kind="stable")
    sizes = np.bincount(code_of_row, minlength=len(code_of))
    return query_ids, order, np.concatenate([[0], np.cumsum(sizes)])


def query_in_order(offsets: Ints) -> Ints:
    """The number of the query of each entry of `order`: 0, 0, …, 1, 1, …"""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def query_of_row(order: Ints, offsets: Ints) -> Ints:
    """The number of the query of each row."""
    queries = np.empty(len(order), np.int64)
    queries[order] = query_in_order(offsets)
    return queries


def qid_from_sizes(group_sizes: ArrayLike, n: int) -> Ints:
    """Query ids 0, 1, … for rows that stand grouped, from the number of rows in each group."""
    sizes = np.asarray(group_sizes)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu":
        raise DataError("group_sizes must be a list of whole numbers, the rows of each query in turn")
    if (sizes <= 0).any():
        raise DataError(f"group_sizes: group {int(np.argmax(sizes <= 0))} is empty; every query has a row")
    total = sum(sizes.tolist())  # of Python's integers: int64 would wrap
    if total != n:
        raise DataError(f"group_sizes add up to {total}, but there are {n} rows")
    return np.repeat(np.arange(len(sizes)), sizes)
