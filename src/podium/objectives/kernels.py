"""Compiled loops over pairs of documents."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.kernels import helper, kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Int = Any  # an integer, compiled as int64

DISCOUNTED, PRECISION, CASCADE, GIVEN = 0, 1, 2, 3  # families of measures; GIVEN: deltas from a buffer
NEARNESS = 0.01  # added to the gap of scores that a normalised pair is divided by
WIDEST = 600.0  # scores further apart than this (times σ) are compared by an exponential for each pair


@helper
def _discounted_row(i: Int, gains: Floats, discounts: Floats, norm: float, row: Floats) -> None:
    """|ΔZ| = |g_i − g_j| |d_i − d_j| / norm."""
    depth = len(discounts)
    mine = discounts[i] if i < depth else 0.0
    for j in range(i + 1, len(gains)):
        other = discounts[j] if j < depth else 0.0
        row[j] = abs((gains[i] - gains[j]) * (mine - other)) / norm


@helper
def _precision_row(i: Int, relevant: Floats, counts: Floats, shares: Floats, depth: Int, row: Floats) -> None:
    """|ΔAP| = |(c_{i−1}+1)/i + Σ_{i<k<j} rel_k/k − c_j/j| / R for a relevant and an irrelevant document."""
    n = len(relevant)
    for j in range(i + 1, n):
        change = 0.0
        if relevant[i] != relevant[j] and i < depth:
            change = (counts[i] + 1.0) / (i + 1.0) + shares[j] - shares[i + 1]
            if j < depth:
                change -= counts[j + 1] / (j + 1.0)
        row[j] = abs(change) / counts[n]


@helper
def _cascade_row(i: Int, stops: Floats, before: float, depth: Int, row: Floats) -> None:
    """|ΔERR| = |P_i (R_j − R_i)(1/i − S_ij − Q_ij/j)|."""
    between, inside = 1.0, 0.0
    for j in range(i + 1, len(stops)):
        change = 0.0
        if i < depth:
            change = 1.0 / (i + 1.0) - inside
            if j < depth:
                change -= between / (j + 1.0)
                inside += stops[j] / (j + 1.0) * between
                between *= 1.0 - stops[j]
        row[j] = abs(before * (stops[j] - stops[i]) * change)


@helper
def _pair_row(
    i: Int, labels: Floats, scores: Floats, powers: Floats, near: bool, roots: Floats, sigma: float,
    by_gap: bool, deltas: Floats, lambdas: Floats, curvatures: Floats,
) -> float:  # fmt: skip
    """Add the pairs of rank i with all ranks below it; the sum of |λ_ij|.

    For i ▷ j: ρ = 1/(1 + e^{σ(s_i − s_j)}), λ_ij = σ|ΔZ|ρ pushes i up and j down, w_ij = σ²|ΔZ|ρ(1 − ρ).
    """
    total = 0.0
    if np.isnan(labels[i]):
        return total
    for j in range(i + 1, len(labels)):
        if np.isnan(labels[j]) or labels[i] == labels[j] or deltas[j] == 0.0:
            continue
        better, worse = (i, j) if labels[i] > labels[j] else (j, i)
        if near:
            rho = powers[worse] / (powers[better] + powers[worse])
        else:
            rho = 1.0 / (1.0 + math.exp(sigma * (scores[better] - scores[worse])))
        weight = deltas[j] * roots[i] * roots[j]
        if by_gap:
            weight /= NEARNESS + abs(scores[i] - scores[j])
        push = sigma * weight * rho
        bend = sigma * push * (1.0 - rho)
        lambdas[better] += push
        lambdas[worse] -= push
        curvatures[better] += bend
        curvatures[worse] += bend
        total += push
    return total


@kernel
def lambda_gradients(
    family: Int,
    order: Ints,
    offsets: Ints,
    labels: Floats,
    values: Floats,
    scores: Floats,
    roots: Floats,
    norms: Floats,
    discounts: Floats,
    depth: Int,
    query_weights: Floats,
    sigma: float,
    normalize: bool,
    first_row: Int,
    last_row: Int,
    given: Floats,
    lambdas: Floats,
    curvatures: Floats,
) -> None:
    """λ and w of the documents of some queries, all in rank order but for the results, by row.

    `values` are gains, relevances or stopping probabilities, as the family has them; `roots` the square roots of
    document weights. `normalize` divides each pair by 0.01 + |s_i − s_j| and then multiplies a query's λ and w by
    log2(1 + Λ)/Λ, Λ the sum of |λ| over its documents, as LightGBM does: pairs that are far apart count less, and
    queries with many pairs do not outweigh the others. With the family GIVEN, `given` holds
    |ΔZ| for the ranks `first_row` … `last_row` of one query, and results are added to what is there.
    """
    largest = 0
    for q in range(len(offsets) - 1):
        largest = max(largest, offsets[q + 1] - offsets[q])
    deltas, powers = np.empty(largest), np.empty(largest)
    counts, shares = np.empty(largest + 1), np.empty(largest + 1)
    for q in range(len(offsets) - 1):
        start, end = offsets[q], offsets[q + 1]
        n = end - start
        pushes, bends = np.zeros(n), np.zeros(n)
        if norms[q] > 0.0 and n > 1:
            mine, its_labels, its_scores = values[start:end], labels[start:end], scores[start:end]
            near = sigma * (its_scores[0] - its_scores[n - 1]) < WIDEST
            middle = 0.5 * (its_scores[0] + its_scores[n - 1])
            for k in range(n):
                powers[k] = math.exp(sigma * (its_scores[k] - middle)) if near else 0.0
            counts[0], shares[0] = 0.0, 0.0
            for k in range(n):
                counts[k + 1] = counts[k] + mine[k]
                shares[k + 1] = shares[k] + (mine[k] / (k + 1.0) if k < depth else 0.0)
            by_gap = normalize and its_scores[0] != its_scores[n - 1]
            before, total = 1.0, 0.0
            top = n if family == GIVEN else min(n, depth)
            for i in range(max(first_row, 0), min(top, last_row)):
                if family == DISCOUNTED:
                    _discounted_row(i, mine, discounts, norms[q], deltas[:n])
                elif family == PRECISION:
                    _precision_row(i, mine, counts, shares, depth, deltas[:n])
                elif family == CASCADE:
                    _cascade_row(i, mine, before, depth, deltas[:n])
                    before *= 1.0 - mine[i]
                else:
                    deltas[:n] = given[i - first_row]
                total += _pair_row(
                    i, its_labels, its_scores, powers, near, roots[start:end], sigma, by_gap, deltas[:n], pushes, bends
                )
            scale = query_weights[q]
            if normalize and total > 0.0:
                scale *= math.log2(1.0 + 2.0 * total) / (2.0 * total)
            for k in range(n):
                pushes[k] *= scale
                bends[k] *= scale
        for k in range(n):
            row = order[start + k]
            if family == GIVEN:
                lambdas[row] += pushes[k]
                curvatures[row] += bends[k]
            else:
                lambdas[row] = pushes[k]
                curvatures[row] = bends[k]
