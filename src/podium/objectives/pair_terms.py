"""Pair terms: sums over pairs of a link, weighted by |ΔZ| of a measure or by 1."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Float32s, Floats, Ints
from podium.core.compiling import compile_for
from podium.core.team import Team
from podium.core.validation import require_whole
from podium.data import RankingData
from podium.errors import DataError
from podium.measures import LookupTables, Measure, Ranking, as_measure
from podium.measures.families import BY_SWAPS, DISCOUNTED, ONES, lookup_tables
from podium.measures.ranking import for_queries
from podium.objectives.base import BoundObjective, LossTerm, Objective, labels_of, query_weights_of, require_labels
from podium.objectives.links import CROSS_ENTROPY, Link
from podium.objectives.pair_kernel import NO_DELTAS, Gradients, ThreadShares, Work, lambda_gradients, pair_task
from podium.objectives.pair_layout import GROUPS, TRUSTS, PairDocuments
from podium.objectives.pair_rows import PairSettings
from podium.objectives.single_pairs import add_pairs, pair_costs

NO_TOTALS: Floats = np.empty(0)
NO_EXTRAS: Float32s = np.zeros((2, 0), np.float32)
BLOCK_CELLS = 1 << 22  # the most |ΔZ| to keep in memory, for a measure without a family


@dataclass(frozen=True)
class PairFilter:
    """Conditions on the pairs that count, in addition to different labels.

    Attributes:
        groups: the group of each document in the canonical order; only pairs within a group count. NaN is in no group.
        nonzero: whether to leave out documents whose label is 0.
        trusts: the weight of pairs by their better document, for each document in the canonical order.

    Example:
        >>> import numpy as np, podium
        >>> from podium.objectives import PairFilter, Pairwise
        >>> data = podium.RankingData([[0.0], [1.0], [2.0]], [0, 1, 2], qid=["a", "a", "a"])
        >>> bound = Pairwise().bind_among(data, PairFilter(nonzero=True))
        >>> bound.gradients(np.zeros(3))[0].tolist()  # the label 0 has no pairs
        [0.0, -0.5, 0.5]

    """

    groups: Float32s | None = None
    nonzero: bool = False
    trusts: Float32s | None = None


class LinkedObjective(Objective):
    """A sum over pairs, whose link determines the hessian and the unit of scores."""

    link: Link
    works_in_parts = True

    def __post_init__(self) -> None:
        if not isinstance(self.link, Link):
            raise DataError(f"link must be a link such as CrossEntropy() or Hinge(), not {self.link!r}")

    @property
    def has_hessian(self) -> bool:  # type: ignore[override]
        return self.link.has_hessian

    @property
    def score_unit(self) -> float:  # type: ignore[override]
        return 1.0 / self.link.sigma

    @property
    def no_hessian_because(self) -> str:  # type: ignore[override]
        return f"the hessian of {self.link} is zero or changes its sign"


class PairTerm(LinkedObjective):
    """A sum over pairs i ▷ j of a query: |ΔZ_ij| · C(s_i − s_j), where the ranks, and so |ΔZ|, are held fixed.

    λ_ij = −|ΔZ_ij| C′ is added to i and subtracted from j; w_ij = |ΔZ_ij| C″ is added to both. With weights a pair
    counts u_q √(d_i d_j) times. A document without a label keeps its rank but has no pairs. Σ λ = 0 in every query.

    Attributes:
        link: C.
        labels: the source of the labels that determine the better document of a pair.
        normalize: whether to scale λ and w as LightGBM does: each pair is divided by 0.01 + |s_i − s_j| (unless all
            scores are equal), then each query's λ and w are multiplied by log2(1 + Λ)/Λ, where Λ is the sum of |λ_ij|
            over both documents of all pairs.
        pair_truncation: count only pairs with a document above this rank; None counts all.

    Example:
        >>> import numpy as np
        >>> import podium
        >>> from podium.objectives import Lambda, PairTerm
        >>> data = podium.artificial(3, features=2)
        >>> gradients, hessians = Lambda("ndcg").bind(data).gradients(np.zeros(len(data)))
        >>> isinstance(Lambda(), PairTerm), bool(abs(gradients.sum()) < 1e-6), (hessians >= 0).all().item()
        (True, True, True)

    """

    labels: str
    normalize: bool = False
    pair_truncation: int | None = None

    def trained_measure(self) -> Measure | None:
        """Return the measure whose swap deltas weight the pairs; None if all pairs have weight 1."""
        return None

    def lookup_tables(self, measure: Measure | None, labels: NDArray[Any], offsets: Ints) -> LookupTables:
        """Return the tables from which the pair kernel computes |ΔZ|."""
        ones = np.ones(len(offsets) - 1)
        if measure is None:
            return lookup_tables(ONES, np.zeros(len(labels)), ones)
        tables = measure.lookup_tables(labels, offsets)
        return lookup_tables(BY_SWAPS, np.zeros(len(labels)), ones) if tables is None else tables

    def bind(self, data: RankingData) -> BoundObjective:
        require_labels(labels_of(data, self.labels, self), self.labels, self)
        return self.bind_among(data, PairFilter())

    def bind_among(self, data: RankingData, among: PairFilter) -> BoundObjective:
        """Bind to the pairs of these documents that a filter selects."""
        return BoundPairs(self, data, among)


def require_flag(normalize: object) -> None:
    """Raise if `normalize` is neither True nor False."""
    if not isinstance(normalize, bool | np.bool_):
        raise DataError(f"normalize must be True or False, not {normalize!r}")


def measure_in_training(measure: Measure, truncation: int | None) -> Measure:
    """Return a measure with the truncation as cutoff, or without a cutoff; precision and recall keep their own."""
    require_whole("truncation", truncation, 1, optional=True)
    cutoff = truncation
    if cutoff is None and measure.needs_cutoff:
        cutoff = measure.cutoff
        if cutoff is None:
            raise DataError(f"{measure} of the whole list is the same for every order: add a cutoff")
    trained = measure if measure.cutoff == cutoff else measure.replace(cutoff=cutoff)
    trained.refuse_without_swaps()
    return trained


class MeasuredTerm(PairTerm):
    """A pair term with weights |ΔZ| of a measure, which also defines the labels."""

    measure: Measure | str

    def __post_init__(self) -> None:
        object.__setattr__(self, "measure", as_measure(self.measure))
        require_flag(self.normalize)
        _ = self.link  # raises if the steepness or centre is invalid
        self.trained_measure()

    def trained_measure(self) -> Measure:
        return measure_in_training(self._measure, self._measure.cutoff)

    @property
    def labels(self) -> str:  # type: ignore[override]
        """The measure's label source."""
        return self._measure.labels

    @property
    def _measure(self) -> Measure:
        assert isinstance(self.measure, Measure)
        return self.measure


def _is_plain(array: NDArray[Any]) -> bool:
    """Return whether an array has the type that the kernel is compiled for."""
    return array.dtype == np.float64 and array.flags.carray


class BoundPairs(BoundObjective):
    """A pair term, bound to data."""

    changes = False

    def __init__(self, term: PairTerm, data: RankingData, among: PairFilter) -> None:
        self.term, self.data = term, data
        labels = labels_of(data, term.labels, term)
        if among.nonzero:
            labels = np.where(labels == 0, np.float32(np.nan), labels)
        measure = term.trained_measure()
        self.measure = None if measure is None else measure.fixed(data)
        weights, order = data.document_weights, data.canonical_order
        roots = np.ones(len(data), np.float32) if weights is None else np.sqrt(weights[order]).astype(np.float32)
        # The places of each query's documents by rank are kept between rounds, which makes sorting nearly free.
        ranked = (np.arange(len(data)) - np.repeat(data.offsets[:-1], data.query_sizes)).astype(np.int32)
        self.documents = PairDocuments(order, data.offsets, ranked, labels, roots, query_weights_of(data))
        tables = term.lookup_tables(self.measure, data.labels[term.labels][order], data.offsets)
        highest, lowest = (f.reduceat(labels, data.offsets[:-1]) for f in (np.fmax, np.fmin))
        norms = np.where(highest > lowest, tables.norms, 0.0)  # 0 for queries without pairs
        self.tables = tables._replace(norms=norms)
        link = term.link
        self.settings = PairSettings(
            self.tables.family, link.code, float(link.parameter), float(link.sigma), weights is not None,
            among.groups is not None, among.trusts is not None, bool(term.normalize), bool(term.normalize),
        )  # fmt: skip
        self.extras = self._extras(among)
        self.n_rows = min(self.tables.depth, term.pair_truncation or self.tables.depth)  # ranks of upper documents
        self.shares = ThreadShares(data.query_sizes, self.n_rows, self.tables.discounts)
        _ = self._lambda_gradients  # compile now, while another process compiles tree growth (`trees.compilation`)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lambda_gradients"}

    @cached_property
    def _lambda_gradients(self) -> Callable[..., Any]:
        """The compiled kernel with these documents, which is not pickled."""
        none, alone = np.empty(0), self.shares.of()[0][0][2]
        fixed = self.documents, self.tables, self.settings, self.extras
        result = Gradients(none, none, NO_TOTALS)
        compiled = compile_for(lambda_gradients, *fixed, pair_task(0, 0), none, result, self.shares.scratch(0), alone)
        return partial(compiled, *fixed)

    def _extras(self, among: PairFilter) -> Float32s | None:
        """Return groups and trusts, or None if the kernel only needs the code for RankNet and NDCG."""
        is_plain = self.settings.family in (DISCOUNTED, ONES) and self.settings.link == CROSS_ENTROPY
        if is_plain and among.groups is None and among.trusts is None:
            return None
        extras = np.zeros((2, len(self.data)), np.float32)
        if among.groups is not None:
            extras[GROUPS] = among.groups
        if among.trusts is not None:
            extras[TRUSTS] = among.trusts
        return extras

    def gradients(self, scores: Floats, iteration: int = 0) -> tuple[Floats, Floats]:
        """Return λ and w, with documents of equal scores in the canonical order."""
        gradients, hessians = np.empty(len(self.data)), np.empty(len(self.data))
        self.fill(scores, iteration, gradients, hessians)
        return gradients, hessians

    def fill(self, scores: Floats, iteration: int, gradients: Floats, hessians: Floats) -> None:
        if not (_is_plain(gradients) and _is_plain(hessians)):
            gradients[:], hessians[:] = self.gradients(scores, iteration)
            return
        scores = np.ascontiguousarray(scores, np.float64)
        if self.tables.family == BY_SWAPS:
            self._fill_by_swaps(scores, Gradients(gradients, hessians, np.zeros(self.data.n_queries)))
            return
        result = Gradients(gradients, hessians, NO_TOTALS)
        if not self.shares.is_parallel or (self.team is not None and self.team.n_threads == 1):
            self._fill_share(self.shares.of()[0], scores, result)
            return
        with nullcontext(self.team) if self.team else Team() as team:
            shares = self.shares.of(team.n_threads, team.event)
            team.run_kernel(lambda thread: self._fill_share(shares[thread], scores, result))

    def _fill_share(self, share: Work, scores: Floats, result: Gradients) -> None:
        for task, scratch, meeting in share:
            self._lambda_gradients(task, scores, result, scratch, meeting)

    def _fill_by_swaps(self, scores: Floats, result: Gradients) -> None:
        """Compute λ and w for a measure without a family from its swap deltas, a few rows at a time."""
        result.gradients[:], result.hessians[:] = 0.0, 0.0
        [(_, scratch, alone)] = self.shares.of()[0]
        for q, first, last, deltas in self._swaps(scores):
            task = pair_task(q, q + 1, first_row=first, last_row=last, deltas=deltas)
            self._lambda_gradients(task, scores, result, scratch, alone)
        for q, total in enumerate(result.totals.tolist()):
            if self.term.normalize and total > 0:
                rows = self.data.rows(q)
                result.gradients[rows] *= math.log2(1 + total) / total
                result.hessians[rows] *= math.log2(1 + total) / total

    def _swaps(self, scores: Floats) -> Iterator[tuple[int, int, int, Floats]]:
        """Yield |ΔZ| of a measure without a family: a query, ranks first … last − 1, and their |ΔZ| with all others."""
        assert self.measure is not None
        labels, offsets = Ranking(self.data, scores).labels(self.measure.labels).astype(np.float64), self.data.offsets
        for q in range(self.data.n_queries):
            ranked = labels[offsets[q] : offsets[q + 1]]
            n_rows, step = min(len(ranked), self.n_rows), max(1, BLOCK_CELLS // max(1, len(ranked)))
            for first in range(0, n_rows, step):
                last = min(first + step, n_rows)
                yield q, first, last, np.ascontiguousarray(np.abs(self.measure.swaps(ranked, first, last)), np.float64)

    def loss_terms(self, scores: Floats, iteration: int = 0) -> list[LossTerm]:
        """Return Σ |ΔZ_ij| C(s_i − s_j) of each query at the current ranks; `normalize` has no effect."""
        costs = np.zeros(self.data.n_queries)
        self._visit_pairs(pair_costs, scores, costs)
        return [LossTerm(1.0, costs, self.documents.query_weights)]

    def add_pairs(self, scores: Floats, slots: Ints, classes: Ints, sums: Floats) -> None:
        """Add the λ of single pairs (`podium.objectives.single_pairs.add_pairs`); no two queries may share a slot."""
        self._visit_pairs(add_pairs, scores, slots, classes, sums)

    def query_factor(self, scores: Floats, query: int) -> float:
        """Return the factor of `normalize` for all pairs of a query, which `add_pairs` omits."""
        if not self.term.normalize:
            return 1.0
        slots, sums = np.full(len(self.data), -1), np.zeros((1, 1, 2))
        slots[self.data.offsets[query] : self.data.offsets[query + 1]] = 0
        self.add_pairs(scores, slots, slots, sums)
        # Λ is the sum over both documents of all pairs, without the weight of the query.
        total = float(sums[0, 0, 1]) / max(float(self.documents.query_weights[query]), 1e-300)
        return math.log2(1 + total) / total if total > 0 else 1.0

    def _visit_pairs(self, visit: Callable[..., None], scores: Floats, *results: NDArray[Any]) -> None:
        """Call a kernel that visits pairs one by one."""
        scores = np.ascontiguousarray(scores, np.float64)
        fixed = self.documents, self.tables, self.settings, NO_EXTRAS if self.extras is None else self.extras
        if self.tables.family == BY_SWAPS:
            for q, first, last, deltas in self._swaps(scores):
                visit(*fixed, q, q + 1, first, last, scores, deltas, *results)
            return

        def work(_: Ints, queries: slice) -> None:
            visit(*fixed, queries.start, queries.stop, 0, self.n_rows, scores, NO_DELTAS, *results)

        for_queries(self.data.offsets, work, amount=float(self.shares.work.sum()))
