"""Parts of data by query, decided by query id or content and seed: the order of the rows plays no part."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Ints
from podium.core.random import seed_of
from podium.data.content_random import ContentRandom
from podium.errors import DataError

if TYPE_CHECKING:
    from podium.data.ranking_data import RankingData


def shuffled_queries(query_ids: NDArray[Any], seed: int) -> Ints:
    """The numbers of the queries in a random order that depends on ids and seed alone."""
    keys = [(seed_of(seed, query).byteswap(), str(query)) for query in query_ids.tolist()]
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), np.int64)


def split_queries(query_ids: NDArray[Any], fractions: tuple[float, ...], seed: int) -> list[Ints]:
    """Numbers of queries for each fraction; the fractions add up to 1, and no part is empty."""
    return _parts(shuffled_queries(query_ids, seed), fractions)


def split_by_content(data: RankingData, *fractions: float, seed: int = 0) -> list[RankingData]:
    """As `RankingData.split`, by the queries' documents instead of their ids: for splits that a model depends on."""
    order = np.argsort(ContentRandom(data).of_queries(f"{seed}/split"), kind="stable")
    return [data.select(part) for part in _parts(order, fractions)]


def folds_by_content(data: RankingData, n_splits: int, seed: int = 0) -> Ints:
    """For each query its fold, by its documents instead of its id: for folds that a model depends on."""
    _require_splits(n_splits, data.n_queries)
    fold = np.empty(data.n_queries, np.int64)
    order = np.argsort(ContentRandom(data).of_queries(f"{seed}/folds"), kind="stable")
    fold[order] = np.arange(data.n_queries) % n_splits
    return fold


def _require_splits(n_splits: int, n_queries: int) -> None:
    if not 2 <= n_splits <= n_queries:
        raise DataError(f"n_splits must be between 2 and the number of queries, {n_queries}, but is {n_splits}")


def _parts(order: Ints, fractions: tuple[float, ...]) -> list[Ints]:
    """The shuffled queries, cut by the fractions."""
    if len(fractions) < 2 or min(fractions) <= 0 or abs(sum(fractions) - 1) > 1e-9:
        raise DataError(f"the fractions must be at least two positive numbers that add up to 1, not {fractions}")
    bounds = np.rint(np.cumsum((0.0, *fractions)) * len(order)).astype(np.int64)
    parts = [order[a:b] for a, b in pairwise(bounds)]
    if any(len(part) == 0 for part in parts):
        raise DataError(f"{len(order)} queries are too few for the fractions {fractions}: a part is empty")
    return parts


def fold_of_queries(query_ids: NDArray[Any], n_splits: int, seed: int) -> Ints:
    """For each query the fold whose test part it is in; folds differ by one query at most."""
    _require_splits(n_splits, len(query_ids))
    fold = np.empty(len(query_ids), np.int64)
    fold[shuffled_queries(query_ids, seed)] = np.arange(len(query_ids)) % n_splits
    return fold
