"""The papers' artificial data, and a web-like variant in the shape of MSLR-WEB."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from podium.core.random import seed_of
from podium.core.threads import map_threads, ranges
from podium.data.datasets.clicks import simulate_clicks
from podium.data.ranking_data import RankingData
from podium.errors import DataError

Part = Literal["train", "valid", "test"]
PARTS: tuple[Part, ...] = ("train", "valid", "test")
SHARES = (0.52, 0.32, 0.13, 0.02, 0.01)  # of the labels 0 … 4, like web data
CALIBRATION_ROWS = 1 << 17  # documents from which scales and the borders between labels are taken
MOST_QUERIES = 10_000_000


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
    """Make the papers' artificial data: labels from a random cubic polynomial of the features.

    Features are uniform in [−1, 1]. The score is the mean of three standardised terms u·x, Σ x_i x_Q(i) and
    Σ x_i x_Q(i) x_R(i), u random and Q, R random permutations; it is cut into labels 0 … 4 with shares of
    52, 32, 13, 2 and 1 percent. (Burges et al. 2005, as used by Wu, Burges, Svore and Gao 2010, §5.1, who
    had 10K / 5K / 10K queries for training, validation and test.)

    Args:
        queries: how many; a smaller number gives the first of a larger one.
        documents: per query; a pair draws each query's number between the two, both included.
        features: how many.
        seed: chooses the polynomial, and with `part` the documents.
        part: `"train"`, `"valid"` or `"test"`: different documents, the same polynomial.
        label_noise: standard deviation of noise on the score before it is cut, in units of the score's own.
        feature_noise: standard deviation of noise on the features after the labels are made.
        shift: 0 … 1: how far the polynomial's coefficients are moved, for another domain of one family.
        clicks: also simulate clicks (`simulate_clicks`) that know the score itself, not only the label:
            label sources `"clicks"` and, from similar queries too, `"similar_clicks"`.

    """
    _check(queries, documents, features, part)
    for name, value in {"label_noise": label_noise, "feature_noise": feature_noise}.items():
        if not value >= 0:
            raise DataError(f"{name} must not be negative, but is {value}")
    if not 0 <= shift <= 1:
        raise DataError(f"shift must be between 0 and 1, but is {shift}")
    domain = ("cubic", features, seed, shift)
    score = _standardised_cubic(features, seed, shift)
    calibration = np.sort(score(_uniform(CALIBRATION_ROWS, features, seed_of(*domain, "calibration"))))

    sizes = _sizes(queries, documents, seed_of(*domain, part, "sizes"))
    X = _uniform(int(sizes.sum()), features, seed_of(*domain, part, "features"))
    true = score(X)
    noisy = true
    if label_noise:
        spread = math.sqrt(math.fsum(calibration * calibration) / len(calibration))
        noisy = true + label_noise * spread * _normal(len(true), seed_of(*domain, part, "label noise"))
    if feature_noise:
        _add_noise(X, feature_noise, seed_of(*domain, part, "feature noise"))
    data = RankingData(X, _cut(noisy, calibration), qid=_qid(sizes, part))
    if not clicks:
        return data
    share_below = np.searchsorted(calibration, true) / len(calibration)
    attraction = share_below * share_below * share_below
    data = simulate_clicks(data, attraction=attraction, seed=seed)
    return simulate_clicks(data, attraction=attraction, seed=seed, similar_queries=4, label="similar_clicks")


def artificial_web(
    queries: int = 6_000,
    *,
    documents: int | tuple[int, int] = (40, 200),
    features: int = 136,
    seed: int = 0,
    part: Part = "train",
) -> RankingData:
    """Make web-like data in the shape of MSLR-WEB, for benchmarks.

    A third of the features are counts with many zeros, a third have heavy tails, a third are continuous,
    with six decimals like the original. They and the labels (shares of 52, 32, 13, 2 and 1 percent)
    depend on hidden qualities of document and query, the labels noisily. Arguments as in `artificial`.
    """
    _check(queries, documents, features, part)
    domain = ("web", features, seed)
    calibration = np.sort(_web_like(np.arange(CALIBRATION_ROWS) // 64, features, domain, "calibration")[1])
    sizes = _sizes(queries, documents, seed_of(*domain, part, "sizes"))
    X, scores = _web_like(np.repeat(np.arange(queries), sizes), features, domain, part)
    return RankingData(X, _cut(scores, calibration), qid=_qid(sizes, part))


def _check(queries: int, documents: int | tuple[int, int], features: int, part: str) -> None:
    if not 1 <= queries <= MOST_QUERIES:
        raise DataError(f"queries must be between 1 and {MOST_QUERIES}, but is {queries}")
    if features < 1:
        raise DataError(f"features must be at least 1, but is {features}")
    if part not in PARTS:
        raise DataError(f"part must be 'train', 'valid' or 'test', not {part!r}")
    low, high = documents if isinstance(documents, tuple) else (documents, documents)
    if not 1 <= low <= high:
        raise DataError(f"documents must be at least 1, or a rising pair (fewest, most), not {documents}")


def _qid(sizes: NDArray[np.int64], part: str) -> NDArray[np.int64]:
    """Query ids from 1; those of validation and test start elsewhere, so that parts can be joined."""
    first = 1 + MOST_QUERIES * PARTS.index(part)
    return np.repeat(np.arange(first, first + len(sizes)), sizes)


def _sizes(queries: int, documents: int | tuple[int, int], key: np.uint64) -> NDArray[np.int64]:
    if not isinstance(documents, tuple):
        return np.full(queries, documents)
    low, high = documents
    grid = (_uniform(queries, 1, key)[:, 0].astype(np.float64) + 1.0) / 2.0
    return low + (grid * (high - low + 1)).astype(np.int64)


def _over_rows(n: int, work: Callable[[int, int], None]) -> None:
    """Do the rows 0 … n on threads; every row's content depends on its number alone."""
    for _ in map_threads(lambda bounds: work(*bounds), ranges(n)):
        pass


def _uniform(n: int, width: int, key: np.uint64) -> NDArray[np.float32]:
    from podium.data.datasets import kernels

    X = np.empty((n, width), np.float32)
    _over_rows(n, lambda a, b: kernels.fill_uniform(key, a, X[a:b]))
    return X


def _normal(n: int, key: np.uint64) -> NDArray[np.float64]:
    from podium.data.datasets import kernels

    values = np.empty(n)
    _over_rows(n, lambda a, b: kernels.fill_normal(key, a, values[a:b]))
    return values


def _add_noise(X: NDArray[np.float32], scale: float, key: np.uint64) -> None:
    from podium.data.datasets import kernels

    flat = X.reshape(-1)
    _over_rows(len(flat), lambda a, b: kernels.add_normal(key, a, scale, flat[a:b]))


def _permutation(n: int, key: np.uint64) -> NDArray[np.int64]:
    """A random permutation: the order of random numbers, the earlier of equal ones first."""
    return np.argsort(_uniform(n, 1, key)[:, 0], kind="stable")


def _moved(permutation: NDArray[np.int64], shift: float, key: np.uint64) -> NDArray[np.int64]:
    """The permutation with the targets of a share of its places exchanged among them."""
    places = np.sort(_permutation(len(permutation), key)[: round(shift * len(permutation))])
    moved = permutation.copy()
    moved[places] = permutation[np.roll(places, 1)]
    return moved


def _standardised_cubic(features: int, seed: int, shift: float) -> Callable[[NDArray[np.float32]], NDArray[np.float64]]:
    from podium.data.datasets import kernels

    family = ("cubic", features, seed)
    linear = _normal(features, seed_of(*family, "u"))
    linear = (1.0 - shift) * linear + shift * _normal(features, seed_of(*family, "shifted u"))
    second = _moved(_permutation(features, seed_of(*family, "Q")), shift, seed_of(*family, "shifted Q"))
    third = _moved(_permutation(features, seed_of(*family, "R")), shift, seed_of(*family, "shifted R"))

    def terms(X: NDArray[np.float32]) -> NDArray[np.float64]:
        out = np.empty((len(X), 3))
        _over_rows(len(X), lambda a, b: kernels.cubic_terms(X[a:b], linear, second, third, out[a:b]))
        return out

    sample = terms(_uniform(CALIBRATION_ROWS, features, seed_of(*family, shift, "scales")))
    means = [math.fsum(column) / len(sample) for column in sample.T]  # fsum is exact: no order, no SIMD
    scales = [
        math.sqrt(math.fsum((column - mean) ** 2) / len(sample)) for column, mean in zip(sample.T, means, strict=True)
    ]

    def score(X: NDArray[np.float32]) -> NDArray[np.float64]:
        one, two, three = ((c - m) / s for c, m, s in zip(terms(X).T, means, scales, strict=True))
        return np.asarray((one + two + three) / 3.0)

    return score


def _web_like(
    query: NDArray[np.int64], features: int, domain: tuple[object, ...], part: str
) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    from podium.data.datasets import kernels

    weights = _normal(features * kernels.LATENT, seed_of(*domain, "weights")).reshape(features, -1)
    chosen = _uniform(features, kernels.LATENT, seed_of(*domain, "chosen")) < -0.5  # a quarter
    offsets = _normal(features, seed_of(*domain, "offsets"))
    key = seed_of(*domain, part, "documents")
    X = np.empty((len(query), features), np.float32)
    scores = np.empty(len(query))

    def work(a: int, b: int) -> None:
        kernels.fill_web_like(key, a, query[a:b], weights * chosen, offsets, X[a:b], scores[a:b])

    _over_rows(len(query), work)
    return X, scores


def _cut(scores: NDArray[np.float64], calibration: NDArray[np.float64]) -> NDArray[np.float32]:
    """Labels 0 … 4 by the borders that give the calibration sample the wanted shares."""
    borders = [calibration[round(share * len(calibration))] for share in np.cumsum(SHARES[:-1])]
    return np.searchsorted(borders, scores, side="right").astype(np.float32)
