"""Web-shaped data, for benchmarks: the sizes, kinds of features and labels of MSLR-WEB."""

from __future__ import annotations

from typing import Any

import numpy as np

from podium.core.array_types import Float32s, Floats, Ints
from podium.core.compiling import helper, kernel
from podium.core.random import seed_of
from podium.data.datasets.random_values import for_row_ranges, normal, normal_values, uniform_matrix
from podium.data.datasets.shape import CALIBRATION_ROWS, Part, check_shape, labels_by_share, query_ids, query_sizes
from podium.data.ranking_data import RankingData

LATENT, QUERY_LATENT = 12, 6  # hidden qualities of a document and of a query
COUNT, HEAVY, CONTINUOUS = 0, 1, 2  # kinds of features, in turn


def artificial_web(
    queries: int = 6_000,
    *,
    documents: int | tuple[int, int] = (40, 200),
    features: int = 136,
    seed: int = 0,
    part: Part = "train",
) -> RankingData:
    """Generate web-like data in the shape of MSLR-WEB, for benchmarks.

    A third of the features are counts with many zeros, a third have heavy tails, a third are continuous,
    with six decimals like the original. They and the labels (shares of 52, 32, 13, 2 and 1 percent)
    depend on hidden qualities of document and query; the labels have noise.

    Args:
        queries, documents, features, seed, part: as in `artificial`.

    Returns:
        The data, with relevance labels.

    Example:
        >>> import podium
        >>> podium.artificial_web(3, documents=5, features=9)
        RankingData(15 documents in 3 queries, 9 features, labels: relevance)

    """
    check_shape(queries, documents, features, part)
    domain = ("web", features, seed)
    calibration = np.sort(_features_and_scores(np.arange(CALIBRATION_ROWS) // 64, features, domain, "calibration")[1])
    sizes = query_sizes(queries, documents, seed_of(*domain, part, "sizes"))
    X, scores = _features_and_scores(np.repeat(np.arange(queries), sizes), features, domain, part)
    return RankingData(X, labels_by_share(scores, calibration), qid=query_ids(sizes, part))


def _features_and_scores(query: Ints, features: int, domain: tuple[object, ...], part: str) -> tuple[Float32s, Floats]:
    """The features of each row and the score behind its label."""
    weights = normal_values(features * LATENT, seed_of(*domain, "weights")).reshape(features, -1)
    is_chosen = uniform_matrix(features, LATENT, seed_of(*domain, "chosen")) < -0.5  # a quarter
    offsets = normal_values(features, seed_of(*domain, "offsets"))
    key = seed_of(*domain, part, "documents")
    X = np.empty((len(query), features), np.float32)
    scores = np.empty(len(query))

    def work(first: int, last: int) -> None:
        fill_web_like(key, first, query[first:last], weights * is_chosen, offsets, X[first:last], scores[first:last])

    for_row_ranges(len(query), work)
    return X, scores


@helper
def growth(x: float) -> float:
    """About e^x for −60 < x < 20, in operations that round alike everywhere: (1 + x/64)^64."""
    value = 1.0 + x / 64.0
    for _ in range(6):
        value *= value
    return value


@kernel
def fill_web_like(
    key: np.uint64,
    first_row: int,
    query: Ints,
    weights: Floats,
    offsets: Floats,
    features: Float32s,
    scores: Floats,
) -> None:
    """Web-like features (counts with many zeros, heavy tails, continuous) and the score behind labels."""
    width = features.shape[1]
    stride = LATENT + width + 1
    hidden = np.empty(LATENT)
    of_query = np.empty(QUERY_LATENT)
    for row in range(features.shape[0]):
        index = (first_row + row) * stride
        for k in range(LATENT):
            hidden[k] = normal(key, np.uint64(index + k))
        for k in range(QUERY_LATENT):
            of_query[k] = normal(~key, np.uint64(query[row] * QUERY_LATENT + k))
        for column in range(width):
            value = normal(key, np.uint64(index + LATENT + column)) + 0.5 * of_query[column % QUERY_LATENT]
            for k in range(LATENT):
                value += 0.7 * weights[column, k] * hidden[k]
            kind = column % 3
            if kind == COUNT:
                value = np.floor(growth(min(0.8 * value - 0.5 + 0.5 * offsets[column], 8.0)))
            elif kind == HEAVY:
                value = growth(min(1.5 * value + 2.0 * offsets[column], 16.0))
            if kind != COUNT:
                value = np.rint(value * 1e6) / 1e6
            features[row, column] = value
        noise = normal(key, np.uint64(index + LATENT + width))
        scores[row] = _score(hidden, of_query) + 2.6 * noise


@helper
def _score(z: Floats, q: Floats) -> Any:
    """How relevant a document of hidden qualities z is to a query of hidden qualities q, before noise."""
    score = 1.5 * z[0] / (1.0 + 0.5 * z[0] * z[0]) + 0.7 * z[1] * z[2] + 1.2 * max(z[3], 0.0)
    score += 0.6 * z[4] - 0.4 * abs(z[5]) + 0.3 * z[8] + 0.35 * q[0] + 0.6 * q[1] * z[9]
    if z[7] > 0.0:
        score += 0.4 * z[6]
    return score
