"""SoftRank by definition: every outcome of every comparison."""

from __future__ import annotations

import math
from itertools import product
from statistics import NormalDist

import numpy as np

from podium.core.array_types import Floats
from podium.data import RankingData
from podium.measures.discounted import Discounted


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
