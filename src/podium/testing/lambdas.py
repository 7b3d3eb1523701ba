"""λ by definition: one pair after the other."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from podium.data import RankingData
from podium.measures import Measure

Floats = NDArray[np.float64]


def slow_lambdas(
    data: RankingData, scores: Floats, measure: Measure, sigma: float = 1.0, normalize: bool = False
) -> tuple[Floats, Floats, float]:
    """λ, w and the cost Σ |ΔZ_ij| log(1 + e^{−σ(s_i − s_j)}) over pairs i ▷ j, ranks by score and canonical order.

    `normalize`: each pair divided by 0.01 + |s_i − s_j|, then each query scaled by log2(1 + Λ)/Λ, Λ = Σ 2|λ_ij|.
    """
    lambdas, curvatures, cost = np.zeros(len(data)), np.zeros(len(data)), 0.0
    labels = data.labels[measure.labels].astype(np.float64)
    known = measure.fixed(data)
    for q in range(data.n_queries):
        rows = data.canonical_order[data.offsets[q] : data.offsets[q + 1]]
        rows = np.array(sorted(rows, key=lambda row: -scores[row]))
        deltas = np.abs(Measure.swaps(known, labels[rows]))
        pushes = 0.0
        for a in range(len(rows)):
            for b in range(a + 1, len(rows)):
                i, j = (rows[a], rows[b]) if labels[rows[a]] > labels[rows[b]] else (rows[b], rows[a])
                if not labels[i] > labels[j]:  # equal, or one has no label
                    continue
                weight = deltas[a, b]
                if data.document_weights is not None:
                    weight *= math.sqrt(float(data.document_weights[i]) * float(data.document_weights[j]))
                if data.query_weights is not None:
                    weight *= float(data.query_weights[q])
                if normalize and scores[rows[0]] != scores[rows[-1]]:
                    weight /= 0.01 + abs(scores[i] - scores[j])
                gap = sigma * (scores[i] - scores[j])
                rho = 1.0 / (1.0 + math.exp(gap)) if gap < 700 else 0.0
                lambdas[i] += sigma * weight * rho
                lambdas[j] -= sigma * weight * rho
                curvatures[i] += sigma * sigma * weight * rho * (1 - rho)
                curvatures[j] += sigma * sigma * weight * rho * (1 - rho)
                cost += weight * math.log1p(math.exp(-gap))
                pushes += 2 * sigma * weight * rho
        if normalize and pushes > 0:
            lambdas[rows] *= math.log2(1 + pushes) / pushes
            curvatures[rows] *= math.log2(1 + pushes) / pushes
    return lambdas, curvatures, cost
