"""Click labels from simulated users, as described by Svore, Volkovs and Burges (2011, §6)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from podium.core.array_types import Floats, Ints
from podium.core.compiling import kernel
from podium.core.progress import progress
from podium.core.random import seed_of
from podium.data.datasets.random_values import fill_normal, uniform
from podium.data.ranking_data import RankingData
from podium.data.schema import as_data
from podium.errors import DataError

SIMILAR_SPREAD = 0.15  # how much the attraction of a document differs between similar queries


class Users(NamedTuple):
    """The behaviour of the simulated users of a query."""

    n_users: int  # per query, and per similar query
    examination: Floats  # the probability that a user looks at each rank
    noise: float  # the share of clicks that are random
    disorder: float  # standard deviation of the noise on the scores that order the documents


def simulate_clicks(
    data: RankingData,
    *,
    attraction: Floats | None = None,
    shown_by: Floats | None = None,
    users: int = 200,
    depth: int = 10,
    position_bias: float = 1.0,
    noise: float = 0.1,
    disorder: float = 0.3,
    similar_queries: int = 0,
    label: str = "clicks",
    seed: int = 0,
) -> RankingData:
    """Add click labels: the share of simulated users whose *last* click was on a document.

    The documents of a query are shown in one order, by attraction (or by the scores of another ranker) plus noise, down
    to a depth. A user looks at rank r with probability r^−bias, clicks attractive documents, and stops when satisfied.
    Documents that were never shown or never clicked last get the label 0. Row order does not matter.

    Args:
        data: the data, with relevance labels unless `attraction` is passed.
        attraction: the attraction of each document, 0 to 1; by default that of ERR, (2^l − 1) / 2^{l_max}.
        shown_by: the scores of the ranker that orders the documents; by default the attraction.
        users: the number of users per query, and per similar query.
        depth: the number of documents shown.
        position_bias: the exponent of the probability to look at a rank; 0 for users who look at every rank.
        noise: the share of clicks that are random.
        disorder: the standard deviation of the noise on `shown_by`.
        similar_queries: the number of similar queries, with slightly different attraction, whose users also count.
        label: the name of the new label source.
        seed: the seed of all random numbers, which also depend on the query ids.

    Returns:
        The data with the new label source, and `positions`: the rank shown, or −1.

    Example:
        >>> import podium
        >>> data = podium.data.datasets.simulate_clicks(podium.artificial(5, documents=12, features=4), depth=10)
        >>> data
        RankingData(60 documents in 5 queries, 4 features, labels: relevance, clicks, positions)
        >>> int((data.positions > 0).sum())
        50

    """
    data = as_data(data)
    attraction = _attraction_of_labels(data) if attraction is None else np.asarray(attraction, np.float64)
    shown_by = None if shown_by is None else np.asarray(shown_by, np.float64)
    for name, count, least in (("users", users, 1), ("depth", depth, 1), ("similar_queries", similar_queries, 0)):
        if count < least:
            raise DataError(f"{name} must be at least {least}, but got {count}")
    for name, amount in (("position_bias", position_bias), ("disorder", disorder)):
        if not amount >= 0:
            raise DataError(f"{name} must be non-negative, but got {amount}")
    if not 0 <= noise <= 1:
        raise DataError(f"noise must be between 0 and 1, but got {noise}")
    if attraction.shape != (data.n_documents,) or not ((attraction >= 0) & (attraction <= 1)).all():
        raise DataError("attraction must be a number between 0 and 1 for each document")
    if shown_by is not None and (shown_by.shape != (data.n_documents,) or not np.isfinite(shown_by).all()):
        raise DataError("shown_by must be a finite number for each document")
    if label in data.labels:
        raise DataError(f"the data already has labels {label!r}: choose another name with label=…")
    behaviour = Users(users, _examination(depth, position_bias), noise, disorder)
    rates = np.zeros(data.n_documents, np.float32)
    positions = np.full(data.n_documents, -1, np.int32)
    with progress("simulating clicks", data.n_queries) as advance:
        for k, query in enumerate(data.query_ids.tolist()):
            rows = data.canonical_order[data.offsets[k] : data.offsets[k + 1]]
            for variant in range(similar_queries + 1):
                key = seed_of(f"{seed}/{query}/{variant}")
                ranker = None if shown_by is None else shown_by[rows]
                shown, last_clicks = _sessions(key, attraction[rows], ranker, variant > 0, behaviour)
                rates[rows[shown]] += last_clicks
                if variant == 0:
                    positions[rows[shown]] = np.arange(1, len(shown) + 1)
            advance(1)
    rates /= np.float32(users * (similar_queries + 1))
    return data.replace(labels=dict(data.labels) | {label: rates}, positions=positions)


def _attraction_of_labels(data: RankingData) -> Floats:
    relevance = np.nan_to_num(data.relevance.astype(np.float64))
    if len(relevance) and (relevance.min() < 0 or relevance.max() > 50):
        raise DataError("relevance labels must be between 0 and 50 to simulate clicks; otherwise pass attraction=…")
    return np.asarray((2.0**relevance - 1.0) / 2.0 ** max(relevance.max(initial=0.0), 1.0))


def _examination(depth: int, position_bias: float) -> Floats:
    """Return r^−bias, rounded to multiples of 2^-32, so that clicks do not depend on the platform's power function."""
    ranks = np.arange(1, depth + 1, dtype=np.float64)
    return np.asarray(np.rint(ranks**-position_bias * 2.0**32) / 2.0**32)


def _sessions(
    key: np.uint64, attraction: Floats, shown_by: Floats | None, is_similar: bool, users: Users
) -> tuple[Ints, Ints]:
    noise = np.empty(2 * len(attraction))
    fill_normal(key ^ np.uint64(0x5851F42D4C957F2D), 0, noise)
    if is_similar:  # users of a similar query find slightly different documents attractive
        attraction = np.clip(attraction + SIMILAR_SPREAD * noise[len(attraction) :], 0.0, 1.0)
    appeal = attraction if shown_by is None else shown_by
    by_appeal = np.argsort(-(appeal + users.disorder * noise[: len(attraction)]), kind="stable")
    shown = by_appeal[: len(users.examination)]
    last_clicks = np.zeros(len(shown), np.int64)
    count_last_clicks(key, users.examination, attraction[shown], users.noise, users.n_users, last_clicks)
    return shown, last_clicks


@kernel
def count_last_clicks(
    key: np.uint64, examination: Floats, attraction: Floats, noise: float, n_users: int, last_clicks: Ints
) -> None:
    """Count the last clicks of users on documents in the order shown.

    A user looks at rank r with probability `examination[r]`, clicks with the probability of attraction (or, with
    probability `noise`, tosses a coin), and stops after a click that satisfies, with the probability of attraction.
    """
    depth = min(len(examination), len(attraction))
    for user in range(n_users):
        last = -1
        for rank in range(depth):
            index = np.uint64((user * depth + rank) * 3)
            if uniform(key, index) >= examination[rank]:
                continue
            appeal = (1.0 - noise) * attraction[rank] + 0.5 * noise
            if uniform(key, index + np.uint64(1)) < appeal:
                last = rank
                if uniform(key, index + np.uint64(2)) < attraction[rank]:
                    break
        if last >= 0:
            last_clicks[last] += 1
