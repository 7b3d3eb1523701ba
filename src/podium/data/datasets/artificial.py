"""The papers' artificial data: labels from a random cubic polynomial of the features."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from podium.core.array_types import Float32s, Floats, Ints
from podium.core.compiling import kernel
from podium.core.random import seed_of
from podium.data.datasets.clicks import simulate_clicks
from podium.data.datasets.random_values import (
    add_noise,
    for_row_ranges,
    normal_values,
    random_permutation,
    uniform_matrix,
)
from podium.data.datasets.shape import CALIBRATION_ROWS, Part, check_shape, labels_by_share, query_ids, query_sizes
from podium.data.ranking_data import RankingData
from podium.errors import DataError


def artificial(
    queries: int = 10_000,
    *,
    documents: int | tuple[int, int] = 50,
    features: int = 50,
    seed: int = 0,
    part: Part = "train",
    label_noise: float = 0.0,
    feature_noise: float = 0.0,
    shift: float = 0.0,
    clicks: bool = False,
) -> RankingData:
    """Generate the papers' artificial data: labels from a random cubic polynomial of the features.

    Features are uniform in [−1, 1]. The score is the mean of three standardised terms u·x, Σ x_i x_Q(i) and
    Σ x_i x_Q(i) x_R(i), u random and Q, R random permutations; it is cut into labels 0 … 4 with shares of
    52, 32, 13, 2 and 1 percent. (Burges et al. 2005, as used by Wu, Burges, Svore and Gao 2010, §5.1, who
    had 10K / 5K / 10K queries for training, validation and test.)

    Args:
        queries: the number of queries; a smaller number gives the first queries of a larger one.
        documents: per query; a pair draws each query's number between the two, both included.
        features: the number of features.
        seed: chooses the polynomial, and with `part` the documents.
        part: `"train"`, `"valid"` or `"test"`: different documents, the same polynomial.
        label_noise: standard deviation of noise on the score before it is cut, in units of the score's own.
        feature_noise: standard deviation of noise on the features after the labels are computed.
        shift: 0 … 1: how far the polynomial's coefficients are moved, for another domain of one family.
        clicks: also simulate clicks (`simulate_clicks`) that know the score itself, not only the label:
            label sources `"clicks"` and, from similar queries too, `"similar_clicks"`.

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
            raise DataError(f"{name} must not be negative, but is {value}")
    if not 0 <= shift <= 1:
        raise DataError(f"shift must be between 0 and 1, but is {shift}")
    domain = ("cubic", features, seed, shift)
    score = standardised_cubic(features, seed, shift)
    calibration = np.sort(score(uniform_matrix(CALIBRATION_ROWS, features, seed_of(*domain, "calibration"))))

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


def standardised_cubic(features: int, seed: int, shift: float) -> Callable[[Float32s], Floats]:
    """The polynomial of a seed, as a function from features to scores."""
    family = ("cubic", features, seed)
    linear = normal_values(features, seed_of(*family, "u"))
    linear = (1.0 - shift) * linear + shift * normal_values(features, seed_of(*family, "shifted u"))
    second = _shifted(random_permutation(features, seed_of(*family, "Q")), shift, seed_of(*family, "shifted Q"))
    third = _shifted(random_permutation(features, seed_of(*family, "R")), shift, seed_of(*family, "shifted R"))

    def terms(X: Float32s) -> Floats:
        result = np.empty((len(X), 3))
        for_row_ranges(len(X), lambda a, b: cubic_terms(X[a:b], linear, second, third, result[a:b]))
        return result

    sample = terms(uniform_matrix(CALIBRATION_ROWS, features, seed_of(*family, shift, "scales")))
    means = [math.fsum(column) / len(sample) for column in sample.T]  # fsum is exact: no order, no SIMD
    scales = [
        math.sqrt(math.fsum((column - mean) ** 2) / len(sample)) for column, mean in zip(sample.T, means, strict=True)
    ]

    def score(X: Float32s) -> Floats:
        one, two, three = ((c - m) / s for c, m, s in zip(terms(X).T, means, scales, strict=True))
        return np.asarray((one + two + three) / 3.0)

    return score


def _shifted(permutation: Ints, shift: float, key: np.uint64) -> Ints:
    """The permutation with the targets of a share of its elements rotated among them."""
    elements = np.sort(random_permutation(len(permutation), key)[: round(shift * len(permutation))])
    result = permutation.copy()
    result[elements] = permutation[np.roll(elements, 1)]
    return result


@kernel
def cubic_terms(
    features: Float32s,
    linear: Floats,
    second: Ints,
    third: Ints,
    terms: Floats,
) -> None:
    """u·x, Σ x_i x_Q(i) and Σ x_i x_Q(i) x_R(i) for each row."""
    for row in range(features.shape[0]):
        one, two, three = 0.0, 0.0, 0.0
        for i in range(features.shape[1]):
            x = float(features[row, i])
            pair = x * float(features[row, second[i]])
            one += linear[i] * x
            two += pair
            three += pair * float(features[row, third[i]])
        terms[row, 0], terms[row, 1], terms[row, 2] = one, two, three
