"""Artificial data: the papers' random cubic polynomials, and data like MSLR-WEB for benchmarks."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, get_args

import numpy as np

from podium.core.array_types import Float32s, Floats, Ints
from podium.core.choices import DataPart
from podium.core.compiling import helper, kernel
from podium.core.random import seed_of
from podium.core.threads import for_ranges
from podium.data.datasets.clicks import simulate_clicks
from podium.data.datasets.random_values import add_noise, normal, normal_values, random_permutation, uniform_matrix
from podium.data.ranking_data import RankingData
from podium.errors import DataError


def artificial(
    queries: int = 10_000,
    *,
    documents: int | tuple[int, int] = 50,
    features: int = 50,
    seed: int = 0,
    part: DataPart = "train",
    label_noise: float = 0.0,
    feature_noise: float = 0.0,
    shift: float = 0.0,
    clicks: bool = False,
) -> RankingData:
    """Generate the papers' artificial data: labels from a random cubic polynomial of the features.

    Features are uniform in [−1, 1]. The score is the mean of three standardized terms u·x, Σ x_i x_Q(i) and
    Σ x_i x_Q(i) x_R(i), with random u and random permutations Q and R. It is cut into labels 0 … 4 with shares of
    52, 32, 13, 2 and 1 percent. (Burges et al. 2005, as used by Wu, Burges, Svore and Gao 2010, §5.1, with 10K, 5K
    and 10K queries for training, validation and test.)

    Args:
        queries: the number of queries; a smaller number gives the first queries of a larger one.
        documents: the number of documents per query, or a pair of the lowest and the highest number to draw.
        features: the number of features.
        seed: determines the polynomial, and together with `part` the documents.
        part: `"train"`, `"valid"` or `"test"`: different documents, the same polynomial.
        label_noise: the standard deviation of noise added to the score before it is cut, relative to the score's own.
        feature_noise: the standard deviation of noise added to the features after the labels are computed.
        shift: how far to move the polynomial's coefficients, 0 to 1, to simulate a related domain.
        clicks: whether to simulate clicks (`simulate_clicks`) that depend on the score itself, not only on the label.
            This adds the label sources `"clicks"` and `"similar_clicks"`, which also has clicks of similar queries.

    Returns:
        The data; the same arguments give the same bits everywhere.

    Example:
        >>> import podium
        >>> podium.artificial(20, features=4)
        RankingData(1000 documents in 20 queries, 4 features, labels: relevance)

    """
    check_shape(queries, documents, features, part)
    for name, value in {"label_noise": label_noise, "feature_noise": feature_noise}.items():
        if not value >= 0:
            raise DataError(f"{name} must be non-negative, but got {value}")
    if not 0 <= shift <= 1:
        raise DataError(f"shift must be between 0 and 1, but got {shift}")
    domain = ("cubic", features, seed, shift)
    score, calibration = _calibrated_cubic(features, seed, shift)
    sizes = query_sizes(queries, documents, seed_of(*domain, part, "sizes"))
    X = uniform_matrix(int(sizes.sum()), features, seed_of(*domain, part, "features"))
    true_scores = score(X)
    scores = true_scores
    if label_noise:
        spread = math.sqrt(math.fsum(calibration * calibration) / len(calibration))
        noise = normal_values(len(scores), seed_of(*domain, part, "label noise"))
        scores = true_scores + label_noise * spread * noise
    if feature_noise:
        add_noise(X, feature_noise, seed_of(*domain, part, "feature noise"))
    data = RankingData(X, labels_by_share(scores, calibration), qid=query_ids(sizes, part))
    if not clicks:
        return data
    share_below = np.searchsorted(calibration, true_scores) / len(calibration)
    attraction = share_below * share_below * share_below
    data = simulate_clicks(data, attraction=attraction, seed=seed)
    return simulate_clicks(data, attraction=attraction, seed=seed, similar_queries=4, label="similar_clicks")


@lru_cache(maxsize=8, typed=True)  # 1 MB per entry; the parts of a data set share one
def _calibrated_cubic(features: int, seed: int, shift: float) -> tuple[Callable[[Float32s], Floats], Floats]:
    """Return the polynomial of a seed, and its scores of many documents in ascending order."""
    score = standardized_cubic(features, seed, shift)
    key = seed_of("cubic", features, seed, shift, "calibration")
    return score, np.sort(score(uniform_matrix(CALIBRATION_ROWS, features, key)))


def standardized_cubic(features: int, seed: int, shift: float) -> Callable[[Float32s], Floats]:
    """Return the polynomial of a seed, as a function from features to scores."""
    family = ("cubic", features, seed)
    linear = normal_values(features, seed_of(*family, "u"))
    linear = (1.0 - shift) * linear + shift * normal_values(features, seed_of(*family, "shifted u"))
    second = _shifted(random_permutation(features, seed_of(*family, "Q")), shift, seed_of(*family, "shifted Q"))
    third = _shifted(random_permutation(features, seed_of(*family, "R")), shift, seed_of(*family, "shifted R"))

    def terms(X: Float32s) -> Floats:
        result = np.empty((len(X), 3))
        for_ranges(len(X), lambda a, b: cubic_terms(X[a:b], linear, second, third, result[a:b]))
        return result

    sample = terms(uniform_matrix(CALIBRATION_ROWS, features, seed_of(*family, shift, "scales")))
    means = [math.fsum(column) / len(sample) for column in sample.T]  # fsum is exact, so SIMD cannot change the result
    scales = [
        math.sqrt(math.fsum((column - mean) ** 2) / len(sample)) for column, mean in zip(sample.T, means, strict=True)
    ]

    def score(X: Float32s) -> Floats:
        standardized = [(c - m) / s for c, m, s in zip(terms(X).T, means, scales, strict=True)]
        return np.asarray(sum(standardized) / 3.0)

    return score


def _shifted(permutation: Ints, shift: float, key: np.uint64) -> Ints:
    """Return the permutation with the targets of a share of its elements rotated."""
    elements = np.sort(random_permutation(len(permutation), key)[: round(shift * len(permutation))])
    result = permutation.copy()
    result[elements] = permutation[np.roll(elements, 1)]
    return result


@kernel
def cubic_terms(features: Float32s, linear: Floats, second: Ints, third: Ints, terms: Floats) -> None:
    """Compute u·x, Σ x_i x_Q(i) and Σ x_i x_Q(i) x_R(i) for each row."""
    for row in range(features.shape[0]):
        linear_sum, pair_sum, triple_sum = 0.0, 0.0, 0.0
        for i in range(features.shape[1]):
            x = float(features[row, i])
            pair = x * float(features[row, second[i]])
            linear_sum += linear[i] * x
            pair_sum += pair
            triple_sum += pair * float(features[row, third[i]])
        terms[row, 0], terms[row, 1], terms[row, 2] = linear_sum, pair_sum, triple_sum


LATENT, QUERY_LATENT = 12, 6  # hidden qualities of a document and of a query
COUNT, HEAVY, CONTINUOUS = 0, 1, 2  # kinds of features, in turn


def artificial_web(
    queries: int = 6_000,
    *,
    documents: int | tuple[int, int] = (40, 200),
    features: int = 136,
    seed: int = 0,
    part: DataPart = "train",
) -> RankingData:
    """Generate data like MSLR-WEB, for benchmarks.

    A third of the features are counts with many zeros, a third have heavy tails, and a third are continuous with six
    decimals, as in the original. Features and labels (with shares of 52, 32, 13, 2 and 1 percent) depend on hidden
    qualities of document and query, and the labels have noise.

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
    domain, calibration = ("web", features, seed), _web_calibration(features, seed)
    sizes = query_sizes(queries, documents, seed_of(*domain, part, "sizes"))
    X, scores = _features_and_scores(np.repeat(np.arange(queries), sizes), features, domain, part)
    return RankingData(X, labels_by_share(scores, calibration), qid=query_ids(sizes, part))


@lru_cache(maxsize=8, typed=True)
def _web_calibration(features: int, seed: int) -> Floats:
    """Return the scores of many documents in ascending order."""
    query, domain = np.arange(CALIBRATION_ROWS) // 64, ("web", features, seed)
    return np.sort(_features_and_scores(query, features, domain, "calibration")[1])


def _features_and_scores(query: Ints, features: int, domain: tuple[object, ...], part: str) -> tuple[Float32s, Floats]:
    weights = normal_values(features * LATENT, seed_of(*domain, "weights")).reshape(features, -1)
    is_chosen = uniform_matrix(features, LATENT, seed_of(*domain, "chosen")) < -0.5  # a quarter
    offsets = normal_values(features, seed_of(*domain, "offsets"))
    key = seed_of(*domain, part, "documents")
    X = np.empty((len(query), features), np.float32)
    scores = np.empty(len(query))

    def work(first: int, last: int) -> None:
        fill_web_like(key, first, query[first:last], weights * is_chosen, offsets, X[first:last], scores[first:last])

    for_ranges(len(query), work)
    return X, scores


@helper
def growth(x: float) -> float:
    """Return about e^x for −60 < x < 20 as (1 + x/64)^64, whose operations round alike on every machine."""
    value = 1.0 + x / 64.0
    for _ in range(6):
        value *= value
    return value


@kernel
def fill_web_like(
    key: np.uint64, first_row: int, query: Ints, weights: Floats, offsets: Floats, features: Float32s, scores: Floats
) -> None:
    """Fill in features (counts with many zeros, heavy tails, continuous) and the scores that determine the labels."""
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
    """Return how relevant a document with hidden qualities z is to a query with hidden qualities q, before noise."""
    score = 1.5 * z[0] / (1.0 + 0.5 * z[0] * z[0]) + 0.7 * z[1] * z[2] + 1.2 * max(z[3], 0.0)
    score += 0.6 * z[4] - 0.4 * abs(z[5]) + 0.3 * z[8] + 0.35 * q[0] + 0.6 * q[1] * z[9]
    if z[7] > 0.0:
        score += 0.4 * z[6]
    return score


PARTS: tuple[DataPart, ...] = get_args(DataPart)
SHARES = (0.52, 0.32, 0.13, 0.02, 0.01)  # of the labels 0 … 4, like web data
CALIBRATION_ROWS = 1 << 17  # documents to compute scales and the borders between labels from
MOST_QUERIES = 10_000_000


def check_shape(queries: int, documents: int | tuple[int, int], features: int, part: str) -> None:
    """Raise if a size or part is invalid."""
    if not 1 <= queries <= MOST_QUERIES:
        raise DataError(f"queries must be between 1 and {MOST_QUERIES}, but got {queries}")
    if features < 1:
        raise DataError(f"features must be at least 1, but got {features}")
    if part not in PARTS:
        raise DataError(f"part must be 'train', 'valid' or 'test', but got {part!r}")
    low, high = documents if isinstance(documents, tuple) else (documents, documents)
    if not 1 <= low <= high:
        raise DataError(f"documents must be at least 1, or an ascending pair (fewest, most), but got {documents}")


def query_sizes(queries: int, documents: int | tuple[int, int], key: np.uint64) -> Ints:
    """Return the number of documents of each query."""
    if not isinstance(documents, tuple):
        return np.full(queries, documents)
    low, high = documents
    grid = (uniform_matrix(queries, 1, key)[:, 0].astype(np.float64) + 1.0) / 2.0
    return low + (grid * (high - low + 1)).astype(np.int64)


def query_ids(sizes: Ints, part: str) -> Ints:
    """Return the query id of each row, from 1; parts have different ids, so that they can be concatenated."""
    first = 1 + MOST_QUERIES * PARTS.index(part)
    return np.repeat(np.arange(first, first + len(sizes)), sizes)


def labels_by_share(scores: Floats, calibration: Floats) -> Float32s:
    """Return labels 0 … 4, with borders that give the sorted calibration scores the shares of `SHARES`."""
    borders = [calibration[round(share * len(calibration))] for share in np.cumsum(SHARES[:-1])]
    return np.searchsorted(borders, scores, side="right").astype(np.float32)
