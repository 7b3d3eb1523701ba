"""Compiled generators of features, labels and clicks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from podium.core.compiling import helper, kernel
from podium.core.random import random_bits

Floats = NDArray[np.float64]

LATENT, QUERY_LATENT = 12, 6  # hidden qualities of a document and of a query in the web-like data
COUNT, HEAVY, CONTINUOUS = 0, 1, 2  # kinds of features, in turn


@helper
def uniform(key: np.uint64, place: np.uint64) -> float:
    """A number of [0, 1) on a grid of 2^-24, so that it is exact as float32."""
    return float(np.int64(random_bits(key, place) >> np.uint64(40))) * 2.0**-24


@helper
def normal(key: np.uint64, place: np.uint64) -> float:
    """Nearly a standard normal number: eight uniform ones of 16 bits, summed (Irwin and Hall)."""
    total = 0.0
    for half in range(2):
        bits = random_bits(key, place * np.uint64(2) + np.uint64(half))
        for k in range(4):
            total += float(np.int64((bits >> np.uint64(16 * k)) & np.uint64(0xFFFF)))
    return (total * 2.0**-16 - 4.0 + 2.0**-14) * 1.224744871391589  # the sum's variance is 8/12


@helper
def growth(x: float) -> float:
    """About e^x for −60 < x < 20, in operations that round alike everywhere: (1 + x/64)^64."""
    value = 1.0 + x / 64.0
    for _ in range(6):
        value *= value
    return value


@kernel
def fill_uniform(key: np.uint64, first_row: int, features: NDArray[np.float32]) -> None:
    """Features uniform in [−1, 1)."""
    width = features.shape[1]
    for row in range(features.shape[0]):
        for column in range(width):
            place = np.uint64((first_row + row) * width + column)
            features[row, column] = 2.0 * uniform(key, place) - 1.0


@kernel
def cubic_terms(
    features: NDArray[np.float32],
    linear: Floats,
    second: NDArray[np.int64],
    third: NDArray[np.int64],
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


@kernel
def add_normal(key: np.uint64, first_place: int, scale: float, values: NDArray[np.float32]) -> None:
    """Add noise to a flat array of float32."""
    for k in range(len(values)):
        values[k] += np.float32(scale * normal(key, np.uint64(first_place + k)))


@kernel
def fill_normal(key: np.uint64, first_place: int, values: Floats) -> None:
    """Nearly standard normal numbers."""
    for k in range(len(values)):
        values[k] = normal(key, np.uint64(first_place + k))


@kernel
def fill_web_like(
    key: np.uint64,
    first_row: int,
    query: NDArray[np.int64],
    weights: Floats,
    offsets: Floats,
    features: NDArray[np.float32],
    scores: Floats,
) -> None:
    """Web-like features (counts with many zeros, heavy tails, continuous) and the score behind labels."""
    width = features.shape[1]
    stride = LATENT + width + 1
    hidden = np.empty(LATENT)
    of_query = np.empty(QUERY_LATENT)
    for row in range(features.shape[0]):
        place = (first_row + row) * stride
        for k in range(LATENT):
            hidden[k] = normal(key, np.uint64(place + k))
        for k in range(QUERY_LATENT):
            of_query[k] = normal(~key, np.uint64(query[row] * QUERY_LATENT + k))
        for column in range(width):
            value = normal(key, np.uint64(place + LATENT + column)) + 0.5 * of_query[column % QUERY_LATENT]
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
        noise = normal(key, np.uint64(place + LATENT + width))
        z, q = hidden, of_query
        score = 1.5 * z[0] / (1.0 + 0.5 * z[0] * z[0]) + 0.7 * z[1] * z[2] + 1.2 * max(z[3], 0.0)
        score += 0.6 * z[4] - 0.4 * abs(z[5]) + 0.3 * z[8] + 0.35 * q[0] + 0.6 * q[1] * z[9]
        if z[7] > 0.0:
            score += 0.4 * z[6]
        scores[row] = score + 2.6 * noise


@kernel
def simulate_sessions(
    key: np.uint64,
    examination: Floats,
    attraction: Floats,
    noise: float,
    users: int,
    last_clicks: NDArray[np.int64],
) -> None:
    """Count last clicks of users on documents in the order shown.

    A user looks at rank r with probability `examination[r]`, clicks what attracts (or, with probability
    `noise`, tosses a coin), and stops after a click that satisfies, which is as likely as attraction.
    """
    depth = min(len(examination), len(attraction))
    for user in range(users):
        last = -1
        for rank in range(depth):
            place = np.uint64((user * depth + rank) * 3)
            if uniform(key, place) >= examination[rank]:
                continue
            appeal = (1.0 - noise) * attraction[rank] + 0.5 * noise
            if uniform(key, place + np.uint64(1)) < appeal:
                last = rank
                if uniform(key, place + np.uint64(2)) < attraction[rank]:
                    break
        if last >= 0:
            last_clicks[last] += 1
