"""Objectives by definition: λ of every pair, and SoftRank over every outcome of every comparison."""

from __future__ import annotations

import math
from itertools import product
from statistics import NormalDist

import numpy as np

from podium.core.array_types import Floats, Ints
from podium.data import RankingData
from podium.measures import Measure
from podium.measures.discounted import Discounted
from podium.objectives import Lambda, LambdaLoss, PairTerm
from podium.objectives.pair_terms import PairFilter


def slow_lambdas(
    data: RankingData, scores: Floats, measure: Measure, sigma: float = 1.0, normalize: bool = False
) -> tuple[Floats, Floats, float]:
    """λ, w and the cost Σ |ΔZ_ij| log(1 + e^{−σ(s_i − s_j)}) over pairs i ▷ j, ranks by score and canonical order."""
    return slow_pairs(data, scores, Lambda(measure, measure.cutoff, sigma, normalize))


def slow_pairs(
    data: RankingData, scores: Floats, term: PairTerm, among: PairFilter | None = None
) -> tuple[Floats, Floats, float]:
    """λ, w and the cost of any pair term: Σ |ΔZ_ij| C(s_i − s_j).

    With `normalize` each pair is divided by 0.01 + |s_i − s_j|, then each query scaled by log2(1 + Λ)/Λ, Λ = Σ 2|λ_ij|.
    """
    lambdas, hessians, costs = slow_single_pairs(data, scores, term, among)
    return lambdas.sum(axis=1), hessians.sum(axis=1), float(costs.sum())


def slow_single_pairs(
    data: RankingData, scores: Floats, term: PairTerm, among: PairFilter | None = None
) -> tuple[Floats, Floats, Floats]:
    """The same pair by pair: entry (i, j) of three matrices over all rows.

    λ_ij is what the pair adds to λ of row i: above 0 if i is the better document; −λ_ij is at (j, i). w_ij is at both
    places, the cost only at (i, j).
    """
    n, among = len(data), among or PairFilter()
    lambdas, hessians, costs = np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n))
    labels = data.labels[term.labels].astype(np.float64)
    canonical_index = np.empty(n, np.int64)
    canonical_index[data.canonical_order] = np.arange(n)
    for q in range(data.n_queries):
        rows = data.canonical_order[data.offsets[q] : data.offsets[q + 1]]
        rows = np.array(sorted(rows, key=lambda row: -scores[row]))
        deltas = _deltas(data, term, rows, labels[rows])
        for a in range(len(rows)):
            for b in range(a + 1, len(rows) if a < (term.pair_truncation or len(rows)) else a):
                i, j = (rows[a], rows[b]) if labels[rows[a]] > labels[rows[b]] else (rows[b], rows[a])
                if not labels[i] > labels[j] or (among.nonzero and 0 in (labels[i], labels[j])):
                    continue  # equal, or one has no label
                if among.groups is not None and among.groups[canonical_index[i]] != among.groups[canonical_index[j]]:
                    continue
                weight = deltas[a, b]
                if among.trusts is not None:
                    weight *= float(among.trusts[canonical_index[i]])
                if data.document_weights is not None:
                    weight *= math.sqrt(float(data.document_weights[i]) * float(data.document_weights[j]))
                if data.query_weights is not None:
                    weight *= float(data.query_weights[q])
                if term.normalize and scores[rows[0]] != scores[rows[-1]]:
                    weight /= 0.01 + abs(scores[i] - scores[j])
                gap = np.array([scores[i] - scores[j]])
                lambdas[i, j] = weight * float(term.link.gradient(gap)[0])
                lambdas[j, i] = -lambdas[i, j]
                hessians[i, j] = hessians[j, i] = weight * float(term.link.hessian(gap)[0])
                costs[i, j] = weight * float(term.link.cost(gap)[0])
        total = float(np.abs(lambdas[rows]).sum())
        if term.normalize and total > 0:
            lambdas[rows] *= math.log2(1 + total) / total
            hessians[rows] *= math.log2(1 + total) / total
    return lambdas, hessians, costs


def _deltas(data: RankingData, term: PairTerm, rows: Ints, labels: Floats) -> Floats:
    """|ΔZ| of all pairs of ranks."""
    measure = term.trained_measure()
    if measure is None:
        return np.ones((len(rows), len(rows)))
    fixed = measure.fixed(data)
    deltas = np.abs(Measure.swaps(fixed, labels))
    if isinstance(term, LambdaLoss):
        ranks = np.arange(1, len(rows) + 1)
        discounts = 1 / np.log2(1 + ranks)
        near = np.abs(discounts[:, None] - discounts[None, :])
        distance = np.maximum(np.abs(ranks[:, None] - ranks[None, :]), 1)
        by_distance = 1 / np.log2(1 + distance) - 1 / np.log2(2 + distance)
        with np.errstate(divide="ignore", invalid="ignore"):
            deltas = np.where(near > 0, deltas / near * (near + term.mu * by_distance), 0.0)
    return deltas


def slow_soft_values(data: RankingData, scores: Floats, measure: Discounted, sigma: float) -> Floats:
    """Σ_j d_j g_j E d(rank of j) / Z of each query: a mean over all 2^(n − 1) outcomes of j against the others."""
    values = np.zeros(data.n_queries)
    noise = NormalDist(0.0, sigma * 2**0.5)  # of the difference of two scores
    for q in range(data.n_queries):
        rows = [row for row in data.rows(q) if not np.isnan(data.labels[measure.labels][row])]
        gains = measure.gains(data.labels[measure.labels][rows])
        norm = measure.norms(gains, np.array([0, len(rows)]), np.array([len(rows)]))[0] if rows else 0.0
        if not norm > 0:
            continue
        discounts = np.zeros(len(rows))
        discounts[: len(measure.discounts(len(rows)))] = measure.discounts(len(rows))
        for j, gain in zip(rows, gains, strict=True):
            weight = 1.0 if data.document_weights is None else float(data.document_weights[j])
            chances = [noise.cdf(scores[i] - scores[j]) for i in rows if i != j]
            for outcome in product((False, True), repeat=len(chances)):
                probability = math.prod(p if wins else 1 - p for p, wins in zip(chances, outcome, strict=True))
                values[q] += weight * gain * probability * discounts[sum(outcome)] / norm
    return values
