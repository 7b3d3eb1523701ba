"""LambdaRank's gradients for any measure."""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from podium.data import RankingData
from podium.errors import DataError
from podium.measures import AP, Measure, Ranking, as_measure
from podium.measures.cascade import Cascade
from podium.measures.discounted import Discounted
from podium.objectives.objective import BoundObjective, Objective
from podium.threads import Team

Floats = NDArray[np.float64]
BLOCK_CELLS = 1 << 22  # of |ΔZ| held at once for a measure without a kernel


@dataclass(frozen=True)
class Lambda(Objective):
    """λ of LambdaRank and LambdaMART for a measure Z ([B] §4, §7).

    For every pair i ▷ j of documents with different labels, λ_ij = σ |ΔZ_ij| / (1 + e^{σ(s_i − s_j)}) pushes i up and j
    down, and w_ij = σ² |ΔZ_ij| ρ (1 − ρ) is the curvature of both; ΔZ is the change of the measure when the two
    swap ranks. With weights a pair counts u_q √(d_i d_j) times. Σ λ = 0 in every query.

    Args:
        measure: any measure with swap deltas, by value or name. Its cutoff serves evaluation and stopping; λ looks
            at the whole list ([S] §3: training on NDCG@3 starves it of pairs) unless `truncation` says otherwise.
            Precision and recall, which are nothing without their cutoff, keep it.
        truncation: the cutoff of the measure whose swaps count in λ.
        sigma: σ, the steepness of the sigmoid.
        normalize: divide each pair's |ΔZ| by 0.01 + |s_i − s_j| (unless all scores are equal), then scale each
            query's λ and w by log2(1 + Λ)/Λ, Λ the sum of |λ_ij| over both documents of all pairs, as LightGBM does.

    """

    measure: Measure | str = "ndcg"
    truncation: int | None = None
    sigma: float = 1.0
    normalize: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "measure", as_measure(self.measure))
        if not (self.sigma > 0 and math.isfinite(self.sigma)):
            raise DataError(f"sigma must be positive, but is {self.sigma}")
        self.trained_measure()._refuse_without_swaps()

    def trained_measure(self) -> Measure:
        """The measure whose swap deltas weight the pairs."""
        assert isinstance(self.measure, Measure)
        cutoff = self.truncation
        if cutoff is None and self.measure.lives_by_cutoff:
            cutoff = self.measure.cutoff
            if cutoff is None:
                raise DataError(f"{self.measure} of the whole list is the same for every order: give it a cutoff")
        return self.measure if self.measure.cutoff == cutoff else self.measure.replace(cutoff=cutoff)

    def bind(self, data: RankingData) -> BoundObjective:
        """On these documents."""
        return _BoundLambda(self, data)


class _BoundLambda(BoundObjective):
    def __init__(self, objective: Lambda, data: RankingData) -> None:
        from podium.objectives import kernels

        self.objective, self.data = objective, data
        self.measure = objective.trained_measure().fixed(data)
        if self.measure.labels not in data.labels:
            known = ", ".join(map(repr, data.labels)) or "none"
            raise DataError(f"{self.measure} needs the labels {self.measure.labels!r}; the data has {known}")
        order = data.canonical_order
        self.labels = data.labels[self.measure.labels][order]
        weights = data.document_weights
        self.roots = np.ones(len(data), np.float32) if weights is None else np.sqrt(weights[order]).astype(np.float32)
        self.query_weights = np.ones(data.n_queries)
        if data.query_weights is not None:
            self.query_weights = data.query_weights.astype(np.float64)
        self.family, self.values, self.norms, self.discounts = _tables(self.measure, self.labels, data.offsets)
        self.depth = len(self.discounts) if self.family == kernels.DISCOUNTED else self.measure.cutoff or len(data)
        # Work before each query, to share it out: its pairs, and what each document costs besides.
        sizes = data.query_sizes
        self.pairs = np.cumsum((np.minimum(sizes, self.depth) + 20) * sizes) if len(sizes) else np.zeros(1)
        # The places of each query's documents by rank, kept from round to round: sorting is then nearly free.
        self.ranked = (np.arange(len(data)) - np.repeat(data.offsets[:-1], data.query_sizes)).astype(np.int32)

    def gradients(self, scores: Floats, iteration: int = 0) -> tuple[Floats, Floats]:
        """λ and w; documents with equal scores stand in the canonical order."""
        lambdas, curvatures = np.empty(len(self.data)), np.empty(len(self.data))
        self.fill(scores, iteration, lambdas, curvatures)
        return lambdas, curvatures

    def fill(self, scores: Floats, iteration: int, lambdas: Floats, curvatures: Floats) -> None:
        """The same into arrays that are there."""
        from podium.objectives import kernels

        if self.family == kernels.GIVEN:
            lambdas[:], curvatures[:] = 0.0, 0.0
            self._by_brute_force(scores, lambdas, curvatures)
            return

        totals = np.zeros(self.data.n_queries)

        def work(thread: int) -> None:
            queries = (edges[thread], edges[thread + 1])
            whole = (0, len(self.data))
            self._call(queries, self.depth, whole, np.empty((0, 0)), scores, lambdas, curvatures, totals)

        with nullcontext(self.team) if self.team else Team() as team:
            edges = np.searchsorted(self.pairs, self.pairs[-1] * np.arange(team.n_threads + 1) / team.n_threads)
            edges[0], edges[-1] = 0, self.data.n_queries
            team.run(work)

    def _call(
        self, queries: tuple[int, int], depth: int, rows: tuple[int, int], given: Floats, scores: Floats,
        lambdas: Floats, curvatures: Floats, totals: Floats,
    ) -> None:  # fmt: skip
        from podium.objectives import kernels

        buffer, columns, ranks, places = kernels.room(int(self.data.query_sizes[slice(*queries)].max(initial=0)))
        kernels.lambda_gradients(
            self.family, self.data.canonical_order, self.data.offsets, *queries, self.ranked, self.labels, self.values,
            self.roots, self.norms, self.discounts, depth, self.query_weights, self.objective.sigma,
            self.data.document_weights is not None, self.objective.normalize, *rows, given, scores, lambdas,
            curvatures, totals, buffer, columns, ranks, places,
        )  # fmt: skip

    def _by_brute_force(self, scores: Floats, lambdas: Floats, curvatures: Floats) -> None:
        """Pairs of a measure that has no kernel: its deltas a few rows at a time."""
        ranking = Ranking(self.data, scores, base=self.data.canonical_order)
        labels, offsets = ranking.labels(self.measure.labels).astype(np.float64), self.data.offsets
        totals = np.zeros(self.data.n_queries)
        for q in range(self.data.n_queries):
            mine = labels[offsets[q] : offsets[q + 1]]
            step = max(1, BLOCK_CELLS // max(1, len(mine)))
            for first in range(0, len(mine), step):
                last = min(first + step, len(mine))
                given = np.abs(self.measure.swaps(mine, first, last))
                self._call((q, q + 1), len(mine), (first, last), given, scores, lambdas, curvatures, totals)
            if self.objective.normalize and totals[q] > 0:
                rows = self.data.rows(q)
                lambdas[rows] *= math.log2(1 + totals[q]) / totals[q]
                curvatures[rows] *= math.log2(1 + totals[q]) / totals[q]


def _tables(
    measure: Measure, labels: NDArray[np.float32], offsets: NDArray[np.int64]
) -> tuple[int, Floats, Floats, Floats]:
    """The family of a measure, what its kernel takes for each document and query, and discounts."""
    from podium.objectives import kernels

    n_queries, nothing = len(offsets) - 1, np.empty(0)
    if isinstance(measure, Discounted):
        gains = measure.gains(labels)
        norms = np.where(np.isfinite(found := measure.norms(gains, offsets, np.diff(offsets))), found, 0.0)
        return kernels.DISCOUNTED, gains, norms, measure.discounts(int(np.diff(offsets).max(initial=0)))
    if isinstance(measure, AP):
        relevant = measure.relevant(labels)
        count = np.add.reduceat(relevant, offsets[:-1]) if n_queries else nothing
        return kernels.PRECISION, relevant, count, nothing
    if isinstance(measure, Cascade):
        return kernels.CASCADE, measure.stops(labels), np.ones(n_queries), nothing
    return kernels.GIVEN, np.zeros(len(labels)), np.ones(n_queries), nothing
