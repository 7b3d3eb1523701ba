"""Click labels as Svore, Volkovs and Burges (2011, §6) describe them, from simulated users."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from podium.core.progress import progress
from podium.core.random import seed_of
from podium.data.ranking_data import RankingData
from podium.data.schema import as_data
from podium.errors import DataError


def simulate_clicks(
    data: RankingData,
    *,
    attraction: NDArray[np.float64] | None = None,
    shown_by: NDArray[np.float64] | None = None,
    users: int = 200,
    depth: int = 10,
    position_bias: float = 1.0,
    noise: float = 0.1,
    disorder: float = 0.3,
    similar_queries: int = 0,
    label: str = "clicks",
    seed: int = 0,
) -> RankingData:
    """Add click labels: the rate at which simulated users made their *last* click on a document.

    For each query the documents are shown in one order, by attraction (or the scores of another ranker) with some
    disorder, down to a depth. A user looks at rank r with probability r^−bias, clicks what attracts, and stops when
    satisfied. What was never shown or never clicked has the label 0. The result does not depend on the order of rows.

    Args:
        data: needs relevance labels, unless the attraction is given.
        attraction: of each document, between 0 and 1; by default as ERR has it, (2^l − 1) / 2^{l_max}.
        shown_by: scores of the ranker that puts the documents in order; by attraction else.
        users: per query, and per similar query.
        depth: documents shown.
        position_bias: 0 for users who see every rank alike.
        noise: the share of clicks decided by a coin.
        disorder: standard deviation of the noise on what documents are shown by.
        similar_queries: also count users of that many similar queries, whose attraction differs somewhat.
        label: the name of the new label source.
        seed: with the query ids, decides all chances.

    Returns:
        The data with the label source added, and `positions`: the rank shown, −1 for none.

    """
    data = as_data(data)
    attraction = _attraction_of_labels(data) if attraction is None else np.asarray(attraction, np.float64)
    for name, value, least in (("users", users, 1), ("depth", depth, 1), ("similar_queries", similar_queries, 0)):
        if value < least:
            raise DataError(f"{name} must be at least {least}, but is {value}")
    for name, amount in (("position_bias", position_bias), ("disorder", disorder)):
        if not amount >= 0:
            raise DataError(f"{name} must not be negative, but is {amount}")
    if attraction.shape != (data.n_documents,) or not ((attraction >= 0) & (attraction <= 1)).all():
        raise DataError("attraction must be a number between 0 and 1 for each document")
    if shown_by is not None:
        shown_by = np.asarray(shown_by, np.float64)
        if shown_by.shape != (data.n_documents,) or not np.isfinite(shown_by).all():
            raise DataError("shown_by must be a finite number for each document")
    if not 0 <= noise <= 1:
        raise DataError(f"noise must be between 0 and 1, but is {noise}")
    if label in data.labels:
        raise DataError(f"the data has labels {label!r} already; name others with label=…")
    # Rounded to 2^-32, so that another platform's power function gives the same chances.
    ranks = np.arange(1, depth + 1, dtype=np.float64)
    examination = np.rint(ranks**-position_bias * 2.0**32) / 2.0**32
    rates = np.zeros(data.n_documents, np.float32)
    positions = np.full(data.n_documents, -1, np.int32)
    with progress("simulating clicks", data.n_queries) as advance:
        for k, query in enumerate(data.query_ids.tolist()):
            rows = data.canonical_order[data.offsets[k] : data.offsets[k + 1]]
            for variant in range(similar_queries + 1):
                purpose = f"{seed}/{query}/{variant}"
                shown, last_clicks = _sessions(
                    purpose, attraction[rows], None if shown_by is None else shown_by[rows], variant > 0, disorder,
                    examination, noise, users,
                )  # fmt: skip
                rates[rows[shown]] += last_clicks
                if variant == 0:
                    positions[rows[shown]] = np.arange(1, len(shown) + 1)
            advance(1)
    rates /= np.float32(users * (similar_queries + 1))
    return data.replace(labels=dict(data.labels) | {label: rates}, positions=positions)


def _attraction_of_labels(data: RankingData) -> NDArray[np.float64]:
    relevance = np.nan_to_num(data.relevance.astype(np.float64))
    if len(relevance) and (relevance.min() < 0 or relevance.max() > 50):
        raise DataError("clicks are simulated from relevance labels between 0 and 50")
    return np.asarray((2.0**relevance - 1.0) / 2.0 ** max(relevance.max(initial=0.0), 1.0))


def _sessions(
    purpose: str,
    attraction: NDArray[np.float64],
    shown_by: NDArray[np.float64] | None,
    is_similar: bool,
    disorder: float,
    examination: NDArray[np.float64],
    noise: float,
    users: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Which documents are shown, from the top, and how many users made their last click on each."""
    from podium.data.datasets import kernels

    key = seed_of(purpose)
    chance = np.empty(2 * len(attraction))
    kernels.fill_normal(key ^ np.uint64(0x5851F42D4C957F2D), 0, chance)
    if is_similar:  # another query: somewhat different documents please
        attraction = np.clip(attraction + 0.15 * chance[len(attraction) :], 0.0, 1.0)
    appeal = attraction if shown_by is None else shown_by
    by_appeal = np.argsort(-(appeal + disorder * chance[: len(attraction)]), kind="stable")
    shown = by_appeal[: len(examination)]
    last_clicks = np.zeros(len(shown), np.int64)
    kernels.simulate_sessions(key, examination, attraction[shown], noise, users, last_clicks)
    return shown, last_clicks
