"""Pair terms: which pairs × which measure's |ΔZ|, or 1 × which link."""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from podium.core.threads import Team
from podium.core.validation import require_number, require_whole
from podium.data import RankingData
from podium.errors import DataError
from podium.measures import AP, NDCG, Measure, Ranking, as_measure
from podium.measures.cascade import Cascade
from podium.measures.discounted import Discounted
from podium.objectives.base import (
    BoundObjective,
    Objective,
    labels_of,
    query_weights_of,
    require_labels,
    require_source,
)
from podium.objectives.links import CrossEntropy, Link, LocalSigmoid

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
WORTH_SHARING = 1 << 18  # units of work, some nanoseconds each: fewer take less time than to wake a thread
BLOCK_CELLS = 1 << 22  # of |ΔZ| held at once for a measure without a kernel


@dataclass(frozen=True)
class PairFilter:
    """Which pairs of documents count, beyond that their labels differ.

    Attributes:
        groups: for each document in the canonical order; only pairs within a group count, NaN is in none.
        nonzero: leave out documents whose label is 0.
        trusts: for each document in the canonical order the weight of pairs whose better document it is.

    """

    groups: Singles | None = None
    nonzero: bool = False
    trusts: Singles | None = None


class PairTerm(Objective):
    """A sum over pairs i ▷ j of one query: |ΔZ_ij| · C(s_i − s_j), the ranks, and with them |ΔZ|, held fixed.

    λ_ij = −|ΔZ_ij| C′ pushes i up and j down; w_ij = |ΔZ_ij| C″ is the curvature of both. With weights a pair counts
    u_q √(d_i d_j) times. A document without a label keeps its rank but has no pairs. Σ λ = 0 in every query.

    Attributes:
        link: C.
        labels: the source of the labels that say which document of a pair is the better one.
        normalize: divide each pair by 0.01 + |s_i − s_j| (unless all scores are equal), then scale each query's λ and
            w by log2(1 + Λ)/Λ, Λ the sum of |λ_ij| over both documents of all pairs, as LightGBM does.

    """

    link: Link
    labels: str
    normalize: bool = False

    def trained_measure(self) -> Measure | None:
        """The measure whose swap deltas weight the pairs; None where all pairs weigh 1."""
        return None

    def bind(self, data: RankingData) -> BoundObjective:
        """On these documents."""
        require_labels(labels_of(data, self.labels, self), self.labels, self)
        return self.bind_among(data, PairFilter())

    def bind_among(self, data: RankingData, among: PairFilter) -> BoundObjective:
        """On some of the pairs of these documents."""
        return _BoundPairs(self, data, among)

    @property
    def curved(self) -> bool:  # type: ignore[override]
        """Whether Newton's step is allowed."""
        return self.link.curved

    @property
    def score_unit(self) -> float:  # type: ignore[override]
        """1/σ of the link."""
        return 1.0 / self.link.sigma

    @property
    def flat_because(self) -> str:  # type: ignore[override]
        """Why not."""
        return f"the curvature of {self.link} is zero or changes its sign"


def _require_flag(normalize: object) -> None:
    if not isinstance(normalize, bool | np.bool_):
        raise DataError(f"normalize must be True or False, not {normalize!r}")


def whole_list(measure: Measure, truncation: int | None) -> Measure:
    """A measure as λ uses it: without its cutoff, unless there is a truncation or it is nothing without it."""
    require_whole("truncation", truncation, 1, optional=True)
    cutoff = truncation
    if cutoff is None and measure.needs_cutoff:
        cutoff = measure.cutoff
        if cutoff is None:
            raise DataError(f"{measure} of the whole list is the same for every order: give it a cutoff")
    found = measure if measure.cutoff == cutoff else measure.replace(cutoff=cutoff)
    found.refuse_without_swaps()
    return found


class MeasuredTerm(PairTerm):
    """A pair term whose pairs weigh |ΔZ| of a measure, which also says what labels count."""

    measure: Measure | str

    def __post_init__(self) -> None:
        object.__setattr__(self, "measure", as_measure(self.measure))
        _require_flag(self.normalize)
        assert self.link  # refuses a steepness or centre that is none
        self.trained_measure()

    @property
    def labels(self) -> str:  # type: ignore[override]
        """The measure's label source."""
        return self._measure.labels

    @property
    def _measure(self) -> Measure:
        assert isinstance(self.measure, Measure)
        return self.measure


@dataclass(frozen=True)
class Lambda(MeasuredTerm):
    """λ of LambdaRank and LambdaMART for a measure Z ([B] §4, §7): |ΔZ| times RankNet's cross-entropy.

    λ_ij = σ |ΔZ_ij| / (1 + e^{σ(s_i − s_j)}), w_ij = σ² |ΔZ_ij| ρ (1 − ρ); ΔZ is the change of the measure when the two
    swap ranks.

    Args:
        measure: any measure with swap deltas, by value or name. Its cutoff serves evaluation and stopping; λ looks
            at the whole list ([S] §3: training on NDCG@3 starves it of pairs) unless `truncation` says otherwise.
            Precision and recall, which are nothing without their cutoff, keep it.
        truncation: the cutoff of the measure whose swaps count in λ.
        sigma: σ, the steepness of the sigmoid.
        normalize: scale λ as LightGBM does, see `PairTerm`.

    """

    measure: Measure | str = "ndcg"
    truncation: int | None = None
    sigma: float = 1.0
    normalize: bool = False

    @property
    def link(self) -> Link:  # type: ignore[override]  # noqa: D102
        return CrossEntropy(self.sigma)

    def trained_measure(self) -> Measure:  # noqa: D102
        return whole_list(self._measure, self.truncation)


@dataclass(frozen=True)
class Local(MeasuredTerm):
    """λ^(S) of [S] §5: |ΔZ| e^x / (1 + e^x)², x = s_i − s_j + τ.

    PairFilter far apart in score push little, be they right ("don't fix what isn't broken") or wrong ("give up on lost
    causes"). The curvature changes its sign: use the gradient step.

    Args:
        measure: any measure with swap deltas; its cutoff counts, as [S]'s S@3 has it.
        centre: τ.
        normalize: see `PairTerm`.

    """

    measure: Measure | str = "ndcg"
    centre: float = 0.0
    normalize: bool = False

    @property
    def link(self) -> Link:  # type: ignore[override]  # noqa: D102
        return LocalSigmoid(self.centre)

    def trained_measure(self) -> Measure:  # noqa: D102
        return whole_list(self._measure, self._measure.cutoff)


@dataclass(frozen=True)
class Pairwise(PairTerm):
    """All pairs with different labels, each weighing 1: RankNet's objective ([B] §2), or another link's.

    Args:
        link: `CrossEntropy()` is RankNet's, `Hinge()` RankSVM's, `SquaredHinge()` GBRank's, `Fidelity()` FRank's.
        labels: the label source.
        normalize: see `PairTerm`.

    """

    link: Link = field(default_factory=CrossEntropy)
    labels: str = "relevance"
    normalize: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.link, Link):
            raise DataError(f"link must be a link such as CrossEntropy() or Hinge(), not {self.link!r}")
        _require_flag(self.normalize)
        require_source(self.labels)


@dataclass(frozen=True)
class LambdaLoss(MeasuredTerm):
    """NDCG-Loss2++ of the LambdaLoss framework (Wang, Li, Golbandi, Bendersky and Najork, CIKM 2018).

    C = Σ_{i ▷ j} |G_i − G_j| (|d_i − d_j| + μ (d_{|i−j|} − d_{|i−j|+1})) log(1 + e^{−σ(s_i − s_j)}), G the gains
    over the best DCG, d the discounts. The first part is LambdaRank's weight; the second makes C a bound of NDCG's
    cost. (The paper's logarithm is to base 2: a constant factor.)

    Args:
        measure: NDCG, with the gain and discount to use; the whole list counts.
        mu: μ; the paper's 10.
        sigma: σ.
        normalize: see `PairTerm`.

    """

    measure: Measure | str = "ndcg"
    mu: float = 10.0
    sigma: float = 1.0
    normalize: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.measure, NDCG):
            raise DataError(f"LambdaLoss is a bound of NDCG, not of {self.measure}")
        require_number("mu", self.mu, least=0)

    @property
    def link(self) -> Link:  # type: ignore[override]  # noqa: D102
        return CrossEntropy(self.sigma)

    def trained_measure(self) -> Measure:  # noqa: D102
        return whole_list(self._measure, None)


class _BoundPairs(BoundObjective):
    changes = False

    def __init__(self, term: PairTerm, data: RankingData, among: PairFilter) -> None:
        from podium.objectives import kernels

        self.term, self.data, self.link = term, data, term.link
        self.labels = labels_of(data, term.labels, term)
        if among.nonzero:
            self.labels = np.where(self.labels == 0, np.float32(np.nan), self.labels)
        measure = term.trained_measure()
        self.measure = None if measure is None else measure.fixed(data)
        weights, order = data.document_weights, data.canonical_order
        self.roots = np.ones(len(data), np.float32) if weights is None else np.sqrt(weights[order]).astype(np.float32)
        self.query_weights = query_weights_of(data)
        gained = data.labels[term.labels][order]
        self.family, self.values, self.norms, self.discounts = tables(self.measure, gained, data.offsets)
        self.spread = 0.0
        if isinstance(term, LambdaLoss):
            self.family, self.spread = kernels.SPREAD, float(term.mu)
        if self.family == kernels.DISCOUNTED:
            self.depth = len(self.discounts)
        else:
            cutoff = self.measure.cutoff if self.measure is not None else None
            self.depth = cutoff or max(len(data), 1)
        self.among, self.extras = among, self._extras(among)
        # Work before each query, to share it out: its pairs, and what each document costs besides.
        sizes = data.query_sizes
        self.pairs = np.cumsum((np.minimum(sizes, self.depth) + 20) * sizes) if len(sizes) else np.zeros(1)
        # The places of each query's documents by rank, kept from round to round: sorting is then nearly free.
        self.ranked = (np.arange(len(data)) - np.repeat(data.offsets[:-1], data.query_sizes)).astype(np.int32)

    def _extras(self, among: PairFilter) -> Singles | None:
        """Groups and trusts; None where the kernel can do without all that is not RankNet's or NDCG's."""
        from podium.objectives import kernels

        is_plain = self.family in (kernels.DISCOUNTED, kernels.ONES) and isinstance(self.link, CrossEntropy)
        if is_plain and among.groups is None and among.trusts is None:
            return None
        found = np.zeros((2, len(self.data)), np.float32)
        if among.groups is not None:
            found[kernels.GROUPS] = among.groups
        if among.trusts is not None:
            found[kernels.TRUSTS] = among.trusts
        return found

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

        if self.pairs[-1] < WORTH_SHARING:
            edges = np.array([0, self.data.n_queries])
            work(0)
            return
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
            self.roots, self.norms, self.discounts, depth, self.spread, self.query_weights, self.link.code,
            float(self.link.parameter), float(self.link.sigma), self.data.document_weights is not None, self.extras,
            self.among.groups is not None, self.among.trusts is not None, bool(self.term.normalize), *rows, given,
            scores, lambdas, curvatures, totals, buffer, columns, ranks, places,
        )  # fmt: skip

    def _by_brute_force(self, scores: Floats, lambdas: Floats, curvatures: Floats) -> None:
        """PairFilter of a measure that has no kernel: its deltas a few rows at a time."""
        assert self.measure is not None
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
            if self.term.normalize and totals[q] > 0:
                rows = self.data.rows(q)
                lambdas[rows] *= math.log2(1 + totals[q]) / totals[q]
                curvatures[rows] *= math.log2(1 + totals[q]) / totals[q]


def tables(measure: Measure | None, labels: Singles, offsets: NDArray[np.int64]) -> tuple[int, Floats, Floats, Floats]:
    """The family of a measure, what its kernel takes for each document and query, and discounts."""
    from podium.objectives import kernels

    n_queries, nothing = len(offsets) - 1, np.empty(0)
    if measure is None:
        return kernels.ONES, np.zeros(len(labels)), np.ones(n_queries), nothing
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
