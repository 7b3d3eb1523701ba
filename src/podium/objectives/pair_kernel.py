"""The pair kernel: gradients and hessians from all pairs of documents of each query.

    λ_ij = −|ΔZ_ij| · C′(s_i − s_j)       delta × loss, then accumulation: λ_i += λ_ij, λ_j −= λ_ij

A query's documents are laid out by rank in tiles of `TILE` documents. Each tile is several rows ("fields") of float32
in one buffer. `pair_rows` pairs each document with those below it, `LANES` at a time, so that the data of a pair is
read once and the sums of the row stay in registers. It also visits a few pairs of weight 0: with documents at or above
the row's rank, and with the padding after the last document, whose label is NaN. The lanes are added up in the same
order on every machine. bench/PERFORMANCE.md lists the gain of each technique.

For NDCG or plain pairs with RankNet's link, the kernel is compiled without the code for all other objectives: `extras`
is None then, and code guarded by `extras is not None` is not compiled.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from podium.core.array_types import Float32s, Floats, Int, Int32s, Ints
from podium.core.compiling import helper, kernel
from podium.core.intrinsics import (
    add_atomically,
    borrowed,
    inlined,
    not_inlined,
    read_atomically,
    wait_at_barrier,
    yield_thread,
)
from podium.core.simd import LANES
from podium.core.team import leave, set_event
from podium.core.threads import MIN_PARALLEL_WORK
from podium.measures.families import BY_SWAPS, DISCOUNTED, LAMBDALOSS, ONES, LookupTables
from podium.measures.family_kernels import fill_columns
from podium.measures.ranking import sort_ranked
from podium.objectives.pair_layout import (
    FLUSH,
    GROUP,
    GROUPS,
    ROOT,
    TILE,
    TRUST,
    TRUSTS,
    PairDocuments,
    PairScratch,
    RankedQuery,
    add_from_tiles,
    fill_field,
    fill_gains,
    fill_labels,
    fill_powers,
    fill_scores,
    scratch_for,
    set_from_tiles,
)  # fmt: skip
from podium.objectives.pair_rows import PairSettings, RowBlock, Swaps, far_rows, lambdaloss_columns, pair_rows

U: Any = np.uintp  # an unsigned index needs no check for negative numbers

MAX_EXPONENT = 150.0  # beyond this range of scores (times σ), the kernel computes an exponential for each pair


class PairTask(NamedTuple):
    """The work of one call: the queries first … last − 1, and as rows the ranks first_row … last_row − 1 of each."""

    first: int
    last: int
    longest: int  # queries with more documents are skipped
    first_row: int
    last_row: int
    deltas: Floats  # for measures without a family, |ΔZ| of these ranks with all others, of the one query
    # thread, n_threads: the index of this thread among those that share each query's rows, and their number
    thread: int
    n_threads: int
    barrier: Ints  # where these threads wait for each other (`podium.core.intrinsics.wait_at_barrier`)
    turns: Ints  # the number of blocks of rows that have been added up


class Meeting(NamedTuple):
    """The place of a call in the work of a team, whose threads begin and end together."""

    # thread, n_threads: the index of the thread, and the number of threads
    thread: int
    n_threads: int
    event: Ints  # of the team; not used by a single thread
    barrier: Ints  # where the threads meet at the end
    # is_first, is_last: whether this is the thread's first or last task
    is_first: bool
    is_last: bool


class Gradients(NamedTuple):
    """λ and w by row; with BY_SWAPS also Λ of each query, the sum of |λ_ij| over both documents of all pairs."""

    gradients: Floats
    hessians: Floats
    totals: Floats


# --- one query


@helper
def _by_rank(n: Int, start: Int, order: Ints, places: Int32s, scores: Floats, by_rank: Floats) -> None:
    """Write the scores of a query's documents in the order of their places."""
    for r in range(U(n)):
        by_rank[r] = scores[U(order[U(start) + U(places[r])])]


@helper
def _fill_columns(query: RankedQuery, tables: LookupTables, columns: Floats) -> None:
    """Fill in the inputs of swap deltas by rank, for the families that `pair_rows` does not compute itself."""
    not_inlined()
    n, start, family = query.n, query.start, tables.family
    if family != LAMBDALOSS and family != BY_SWAPS:
        values, divisors = tables.values[start : start + n], tables.divisors[start : start + n]
        fill_columns(family, n, query.ranked, values, divisors, tables.depth, columns)
        for column in range(3):  # padding
            for r in range(n, (n + LANES - 1) // LANES * LANES):
                columns[column, r] = 0.0


@helper
def _fill_tiles(
    query: RankedQuery, documents: PairDocuments, tables: LookupTables, settings: PairSettings, extras: Float32s | None,
    near: bool, scratch: PairScratch,
) -> None:  # fmt: skip
    """Fill in the fields of each document except its label; powers and scores only if scores are close (`near`)."""
    inlined()
    buffer = scratch.buffer
    if near:
        fill_powers(query, settings.sigma, scratch)
        if settings.normalize or extras is not None:
            fill_scores(query, buffer)
    if settings.weighted:
        fill_field(query, ROOT, documents.roots, buffer)
    if tables.family == DISCOUNTED or tables.family == LAMBDALOSS:
        fill_gains(query, tables.values, buffer)
    if extras is not None:
        if settings.has_groups:
            fill_field(query, GROUP, borrowed(extras)[GROUPS], buffer)
        if settings.has_trusts:
            fill_field(query, TRUST, borrowed(extras)[TRUSTS], buffer)
        if tables.family != DISCOUNTED and tables.family != ONES:
            _fill_columns(query, tables, scratch.columns)


@helper
def _wait_for_turn(task: PairTask, block: Int) -> None:
    """Wait until all blocks of rows before this one have been added up."""
    n_spins = 0
    while read_atomically(task.turns, 0) != block:
        n_spins += 1
        if n_spins > 2000:  # the wait is usually short, and giving up the core costs more
            yield_thread()


@helper
def _add_up(query: RankedQuery, task: PairTask, rows: RowBlock, settings: PairSettings, scratch: PairScratch) -> None:
    """Add the sums of a block of rows to those in double precision, in the order of blocks on any number of threads."""
    inlined()
    n, gradients, hessians = query.n, scratch.gradients, scratch.hessians
    totals, total, buffer = scratch.row_totals, scratch.total, scratch.buffer
    if task.n_threads > 1:
        _wait_for_turn(task, (rows.first - task.first_row) // FLUSH)
    if rows.first == task.first_row:
        set_from_tiles(n, buffer, gradients, hessians)
        total[U(0)] = 0.0
    else:
        add_from_tiles(rows.first, n, buffer, gradients, hessians)
    if settings.has_totals:
        for i in range(rows.last - rows.first):
            for number in range((rows.first + 1) // TILE, rows.n_tiles):
                total[U(0)] += totals[U(i * rows.n_tiles + number)]
    if task.n_threads > 1:
        add_atomically(task.turns, 0, 1)


@helper
def _query_gradients(
    query: RankedQuery, documents: PairDocuments, tables: LookupTables, settings: PairSettings, extras: Float32s | None,
    task: PairTask, scratch: PairScratch,
) -> Any:  # fmt: skip
    """Write λ and w of the ranks of one query into the scratch, without σ and σ²; return whether there are pairs."""
    inlined()
    n, scores, buffer = query.n, query.scores, scratch.buffer
    last_row = min(fill_labels(query, documents.labels, scratch), tables.depth, task.last_row)
    if last_row <= task.first_row:
        return False
    widest = scores[U(0)] - scores[U(n - 1)]
    near = settings.sigma * widest + 2.0 * abs(settings.parameter) < MAX_EXPONENT and widest < MAX_EXPONENT
    settings = PairSettings(
        settings.family, settings.link, settings.parameter, settings.sigma, settings.weighted, settings.has_groups,
        settings.has_trusts, settings.normalize and widest > 0.0, settings.has_totals,
    )  # fmt: skip
    _fill_tiles(query, documents, tables, settings, extras, near, scratch)
    columns, deltas, sums, totals = scratch.columns, task.deltas, scratch.row_sums, scratch.row_totals
    vectors, n_vectors = scratch.vectors, scratch.n_vectors
    swaps = Swaps(tables.family, n, tables.depth, query.norm, tables.bonuses_differ, task.first_row)
    n_tiles, common = (n + TILE - 1) // TILE, scratch.common[U(0)]
    for first in range(task.first_row + task.thread * FLUSH, last_row, task.n_threads * FLUSH):
        last = min(first + FLUSH, last_row)
        for number in range((first + 1) // TILE, n_tiles):  # all rows visit a tile while it is in the cache
            rows = RowBlock(first, last, number, n_tiles, common)
            if near:
                pair_rows(rows, buffer, vectors, n_vectors, settings, extras, swaps, columns, deltas, sums, totals)
            else:
                far_rows(rows, buffer, scores, settings, extras, swaps, columns, deltas, totals)
        _add_up(query, task, RowBlock(first, last, 0, n_tiles, common), settings, scratch)
    return True


@helper
def _write_results(
    query: RankedQuery,
    q: Int,
    scale: float,
    order: Ints,
    settings: PairSettings,
    scratch: PairScratch,
    result: Gradients,
) -> None:
    """Write λ and w of a query by row, with all factors that its pairs have in common."""
    inlined()
    gradients, hessians = scratch.gradients, scratch.hessians
    into_gradients, into_hessians = result.gradients, result.hessians
    sigma, start, places = settings.sigma, U(query.start), query.ranked
    total = sigma * scratch.total[U(0)]
    if settings.family == BY_SWAPS:
        result.totals[q] += 2.0 * total
    elif settings.normalize and total > 0.0:
        scale *= math.log2(1.0 + 2.0 * total) / (2.0 * total)
    for r in range(U(query.n)):
        row = U(order[start + U(places[r])])
        gradient, hessian = scale * gradients[r], scale * sigma * hessians[r]
        if settings.family == BY_SWAPS:
            into_gradients[row] += gradient
            into_hessians[row] += hessian
        else:
            into_gradients[row] = gradient
            into_hessians[row] = hessian


# --- all queries


@kernel
def lambda_gradients(
    documents: PairDocuments, tables: LookupTables, settings: PairSettings, extras: Float32s | None, task: PairTask,
    scores: Floats, result: Gradients, scratch: PairScratch, meeting: Meeting,
) -> None:  # fmt: skip
    """Compute λ and w of the documents of some queries.

    Args:
        documents: the documents of all queries; `documents.ranked` is updated.
        tables: the tables of the measure. A query whose norm is 0 has no pairs. With BY_SWAPS, |ΔZ| comes from the
            task, results are added to `result`, and the caller normalizes.
        settings: the kind of pairs, and the link. `normalize` multiplies λ and w of a query by log2(1 + Λ)/Λ, as
            LightGBM does, so that queries with many pairs do not outweigh the others.
        extras: the group and trust of each document in the canonical order, see `PairFilter`; None for NDCG and plain
            pairs with RankNet's link and neither of these.
        task: the queries and rows.
        scores: by row.
        result: the output arrays; Λ is added to.
        scratch: memory for the largest query. Threads that share queries have one each, but share the sums in double
            precision.
        meeting: the place of this call in the work of the team.

    """
    if meeting.is_first:
        set_event(meeting.thread, meeting.n_threads, meeting.event)
    documents, tables, task = borrowed(documents), borrowed(tables), borrowed(task)
    scores, result, scratch = borrowed(scores), borrowed(result), borrowed(scratch)
    order, ranked, offsets = documents.order, documents.ranked, documents.offsets
    by_rank, norms = scratch.scores, tables.norms
    if extras is not None and tables.family == LAMBDALOSS:
        lambdaloss_columns(tables.discounts, tables.mu, scratch.columns)
    for q in range(U(task.first), U(task.last)):
        start, end = offsets[q], offsets[q + U(1)]
        n = end - start
        if n > task.longest:
            continue
        has_pairs = norms[q] > 0.0 and n > 1
        if has_pairs:
            places = ranked[start:end]
            if task.thread == 0:
                _by_rank(n, start, order, places, scores, by_rank)
                sort_ranked(by_rank[:n], places, scratch.spare_scores, scratch.spare_places)
            if task.n_threads > 1:
                wait_at_barrier(task.barrier, task.n_threads)
                _by_rank(n, start, order, places, scores, by_rank)
            query = RankedQuery(n, start, places, by_rank, norms[q])
            has_pairs = _query_gradients(query, documents, tables, settings, extras, task, scratch)
            if task.n_threads > 1:
                wait_at_barrier(task.barrier, task.n_threads)
            if has_pairs and task.thread == 0:
                task.turns[0] = 0
                scale = settings.sigma * documents.query_weights[q]
                _write_results(query, q, scale, order, settings, scratch, result)
        if not has_pairs and tables.family != BY_SWAPS:
            for k in range(U(start), U(end)):
                result.gradients[U(order[k])] = 0.0
                result.hessians[U(order[k])] = 0.0
    if meeting.is_last:
        leave(meeting.thread, meeting.n_threads, meeting.barrier, meeting.event)


MIN_WORK = 4 * MIN_PARALLEL_WORK  # in the unit of `ThreadShares.work`; with less, one thread is faster
NO_DELTAS: Floats = np.empty((0, 0))
Work = list[tuple[PairTask, PairScratch, Meeting]]


class ThreadShares:
    """The tasks of each thread and its memory, kept between rounds.

    Rows are the first `depth` ranks of each query.
    """

    def __init__(self, sizes: Ints, depth: int, discounts: Floats) -> None:
        self.sizes, self.depth, self.discounts = sizes, depth, discounts
        self.rows = np.minimum(sizes, depth)
        self.work = (self.rows + 20) * sizes  # pairs, plus a constant amount per document
        self.is_parallel = bool(self.work.sum() >= MIN_WORK)
        self._scratches: list[PairScratch] = []
        self._shares: list[Work] = []
        self._no_event = np.zeros(1, np.int64)

    def scratch(self, thread: int) -> PairScratch:
        """Return the memory of a thread."""
        while len(self._scratches) <= thread:
            self._scratches.append(scratch_for(int(self.sizes.max(initial=0)), self.discounts))
        return self._scratches[thread]

    def of(self, n_threads: int = 1, event: Ints | None = None) -> list[Work]:
        """Return the tasks of each of `n_threads` threads, with memory. All threads must run at the same time.

        `event` is that of the team; a single thread needs none.
        """
        event = self._no_event if event is None else event
        if len(self._shares) != n_threads or self._shares[0][0][2].event is not event:
            longest = self._longest_alone(n_threads)
            common = {"n_threads": n_threads, "barrier": np.zeros(16, np.int64), "turns": np.zeros(1, np.int64)}
            shares = [self._rows(longest, thread=thread, **common) for thread in range(n_threads)]
            work = np.append(0, np.cumsum(np.where(self.sizes > longest, 0, self.work)))
            edges = np.searchsorted(work[1:], work[-1] * np.arange(n_threads + 1) / n_threads)
            edges[0], edges[-1] = 0, len(self.sizes)
            for thread, share in enumerate(shares):
                first, last = int(edges[thread]), int(edges[thread + 1])
                share.append((pair_task(first, last, longest=longest, last_row=self.depth), self.scratch(thread)))
            barrier = np.zeros(16, np.int64)
            self._shares = [
                [(*part, Meeting(thread, n_threads, event, barrier, k == 0, k == len(share) - 1))
                 for k, part in enumerate(share)]
                for thread, share in enumerate(shares)
            ]  # fmt: skip
        return self._shares

    def _longest_alone(self, n_threads: int) -> int:
        """Return the number of documents of the longest query that a single thread computes.

        Threads share each longer query, because it is more than a quarter of a thread's work. Each thread takes whole
        blocks of rows.
        """
        shared = (self.rows > FLUSH) & (4 * n_threads * self.work > self.work.sum()) & (n_threads > 1)
        return int(self.sizes[~shared].max(initial=0))

    def _rows(self, longest: int, thread: int, **common: Any) -> list[tuple[PairTask, PairScratch]]:
        """Return a thread's part of the queries that all threads share; `common` are the fields that they share."""
        sums = self.scratch(0)  # all threads add to the sums in double precision of the first
        scratch = self.scratch(thread)._replace(gradients=sums.gradients, hessians=sums.hessians, total=sums.total)
        shared = np.flatnonzero(self.sizes > longest).tolist()
        return [(pair_task(q, q + 1, thread=thread, last_row=self.depth, **common), scratch) for q in shared]


def pair_task(first: int, last: int, **others: Any) -> PairTask:
    """Return a task of all rows of some queries for a single thread, with other fields by keyword."""
    no_limit = 1 << 62
    alone = PairTask(first, last, no_limit, 0, no_limit, NO_DELTAS, 0, 1, np.zeros(16, np.int64), np.zeros(1, np.int64))
    return alone._replace(**others)
