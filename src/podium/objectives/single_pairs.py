"""Costs and λ of pairs of documents, one by one in double precision.

These kernels have the formulas of `pair_rows`. They serve callers that need more than the sums λ and w: the loss of a
pair term, and diagnostics. `tests/references/objectives.py` has a slow reference.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from podium.core.array_types import Float32s, Floats, Int, Int32s, Ints
from podium.core.compiling import helper, kernel
from podium.core.simd import LANES
from podium.measures.families import BY_SWAPS, DISCOUNTED, LAMBDALOSS, ONES, LookupTables, Span
from podium.measures.family_kernels import N_COLUMNS, fill_columns, write_deltas
from podium.measures.ranking import sort_ranked
from podium.objectives.links import link_cost, link_number
from podium.objectives.pair_layout import GROUPS, TRUSTS, PairDocuments
from podium.objectives.pair_rows import GAP_OFFSET, PairSettings

# Rows of the table of one query, which has a column for each rank. DISTANCE is what LambdaLoss adds to the difference
# of discounts of two ranks at that distance.
SCORE, LABEL, ROOT, VALUE, GROUP, TRUST, DISCOUNT, DISTANCE = range(8)


class RankScratch(NamedTuple):
    """Memory for the kernels, large enough for the largest query."""

    ranks: Floats  # the table of one query, see above
    row: Floats  # |ΔZ| of one rank with those below it
    columns: Floats  # the inputs of swap deltas by rank (`podium.measures.family_kernels`)
    singles: Float32s  # swap deltas as the families write them
    # spare_scores, spare_places: for sorting
    spare_scores: Floats
    spare_places: Int32s


@helper
def rank_scratch(documents: PairDocuments, first: Int, last: Int) -> Any:
    """Return scratch for the queries first … last − 1."""
    largest = 1
    for q in range(first, last):
        largest = max(largest, documents.offsets[q + 1] - documents.offsets[q])
    return RankScratch(
        np.empty((DISTANCE + 1, largest)), np.empty(largest), np.zeros((N_COLUMNS, largest + 4 * LANES)),
        np.zeros(largest + LANES, np.float32), np.empty(largest), np.empty(largest, np.int32),
    )  # fmt: skip


@helper
def rank_query(
    q: Int, documents: PairDocuments, tables: LookupTables, extras: Float32s, scores: Floats, scratch: RankScratch
) -> Any:  # fmt: skip
    """Rank the documents of a query, and fill in its table; return the number of ranks, or 0 if there are no pairs."""
    start, n = documents.offsets[q], documents.offsets[q + 1] - documents.offsets[q]
    family, ranks = tables.family, scratch.ranks
    if not tables.norms[q] > 0.0 or n < 2:
        return 0
    ranked = documents.ranked[start : start + n]
    for r in range(n):
        ranks[SCORE, r] = scores[documents.order[start + ranked[r]]]
    sort_ranked(ranks[SCORE, :n], ranked, scratch.spare_scores, scratch.spare_places)
    has_extras, n_discounts = extras.shape[1] > 0, len(tables.discounts)
    for r in range(n):
        document = start + ranked[r]
        ranks[LABEL, r], ranks[ROOT, r] = documents.labels[document], documents.roots[document]
        ranks[VALUE, r] = tables.values[document]
        ranks[GROUP, r] = extras[GROUPS, document] if has_extras else 0.0
        ranks[TRUST, r] = extras[TRUSTS, document] if has_extras else 0.0
        ranks[DISCOUNT, r] = tables.discounts[r] if r < n_discounts else 0.0
        ranks[DISTANCE, r] = 0.0
        if family == LAMBDALOSS and 0 < r < n_discounts:
            ranks[DISTANCE, r] = tables.mu * (tables.discounts[r - 1] - tables.discounts[r])
    if family != ONES and family != DISCOUNTED and family != LAMBDALOSS and family != BY_SWAPS:
        values, divisors = tables.values[start : start + n], tables.divisors[start : start + n]
        fill_columns(family, n, ranked, values, divisors, tables.depth, scratch.columns)
    return n


@helper
def fill_deltas(
    i: Int, n: Int, first_row: Int, norm: float, tables: LookupTables, deltas: Floats, scratch: RankScratch
) -> None:
    """Write |ΔZ| of rank i with all below it into `scratch.row`; with BY_SWAPS it comes from `deltas`."""
    family, ranks, row = tables.family, scratch.ranks, scratch.row
    if family == ONES or family == DISCOUNTED or family == LAMBDALOSS:
        for j in range(i + 1, n):
            change = abs(ranks[DISCOUNT, i] - ranks[DISCOUNT, j]) + ranks[DISTANCE, j - i]
            row[j] = 1.0 if family == ONES else abs(ranks[VALUE, i] - ranks[VALUE, j]) * change / norm
    elif family == BY_SWAPS:
        row[:n] = deltas[i - first_row]
    else:
        span = Span(0, i + 1, n, 0)
        write_deltas(family, i, span, n, tables.depth, norm, tables.bonuses_differ, scratch.columns, scratch.singles)
        row[:n] = scratch.singles[:n]


@helper
def pair_weight(i: Int, j: Int, delta: float, ranks: Floats, settings: PairSettings) -> Any:
    """Return |ΔZ| times the weights of a pair of ranks, without that of the query; 0 if the two are not a pair."""
    if not (ranks[LABEL, i] > ranks[LABEL, j] or ranks[LABEL, i] < ranks[LABEL, j]):
        return 0.0
    if settings.has_groups and not ranks[GROUP, i] == ranks[GROUP, j]:
        return 0.0
    weight = delta * ranks[ROOT, i] * ranks[ROOT, j]
    if settings.has_trusts:
        weight *= ranks[TRUST, i] if ranks[LABEL, i] > ranks[LABEL, j] else ranks[TRUST, j]
    return weight


@kernel
def pair_costs(
    documents: PairDocuments, tables: LookupTables, settings: PairSettings, extras: Float32s, first: Int, last: Int,
    first_row: Int, last_row: Int, scores: Floats, deltas: Floats, costs: Floats,
) -> None:  # fmt: skip
    """Add u_q Σ |ΔZ_ij| C(s_i − s_j) at the current ranks to the cost of each query; `normalize` has no effect.

    Args:
        documents, tables, settings: as in the pair kernel; `documents.ranked` is updated.
        extras: groups and trusts; without documents if there are none.
        first, last: the range of queries.
        first_row, last_row: the range of ranks of the upper documents of pairs.
        scores: by row.
        deltas: for measures without a family, |ΔZ| of these ranks with all others, of the one query.
        costs: by query; the kernel adds to them.

    """
    scratch = rank_scratch(documents, first, last)
    ranks = scratch.ranks
    for q in range(first, last):
        n, total = rank_query(q, documents, tables, extras, scores, scratch), 0.0
        for i in range(first_row, min(n, tables.depth, last_row)):
            fill_deltas(i, n, first_row, tables.norms[q], tables, deltas, scratch)
            for j in range(i + 1, n):
                weight = pair_weight(i, j, scratch.row[j], ranks, settings)
                if weight > 0.0:
                    gap = ranks[SCORE, i] - ranks[SCORE, j]
                    lead = gap if ranks[LABEL, i] > ranks[LABEL, j] else -gap
                    total += weight * link_cost(settings.link, settings.parameter, settings.sigma * lead)
        costs[q] += documents.query_weights[q] * total


@helper
def _add(slot: Int, kind: Int, push: float, sums: Floats) -> None:
    """Add λ of one pair to a cell of the sums, if there is one."""
    if slot >= 0 and kind >= 0:
        sums[slot, kind, 0] += push
        sums[slot, kind, 1] += abs(push)


@kernel
def add_pairs(
    documents: PairDocuments, tables: LookupTables, settings: PairSettings, extras: Float32s, first: Int, last: Int,
    first_row: Int, last_row: Int, scores: Floats, deltas: Floats, slots: Ints, classes: Ints, sums: Floats,
) -> None:  # fmt: skip
    """Add λ_jk and |λ_jk| of the pairs of some documents j to sums[slot of j, class of k].

    Args:
        documents, tables, settings, extras, first, last, first_row, last_row, scores, deltas: see `pair_costs`.
        slots: the index of each document's sums, in the canonical order, −1 for documents to leave out.
        classes: the class of each document in the canonical order, −1 for none.
        sums: the sums to add to.

    """
    scratch = rank_scratch(documents, first, last)
    selected, ranks = np.empty(len(scratch.row), np.int64), scratch.ranks  # selected: the ranks that have a slot
    for q in range(first, last):
        n, start, n_selected, at = rank_query(q, documents, tables, extras, scores, scratch), documents.offsets[q], 0, 0
        ranked = documents.ranked[start : start + n]
        for r in range(n):
            if slots[start + ranked[r]] >= 0:
                selected[n_selected] = r
                n_selected += 1
        normalize = settings.normalize and n > 0 and ranks[SCORE, 0] > ranks[SCORE, n - 1]
        for i in range(first_row, min(n, tables.depth, last_row)):
            slot, kind = slots[start + ranked[i]], classes[start + ranked[i]]
            while at < n_selected and selected[at] <= i:
                at += 1
            if slot < 0 and at == n_selected:
                break
            fill_deltas(i, n, first_row, tables.norms[q], tables, deltas, scratch)
            for k in range(n - 1 - i if slot >= 0 else n_selected - at):  # with all below, or with those selected
                j = i + 1 + k if slot >= 0 else selected[at + k]
                weight, gap = pair_weight(i, j, scratch.row[j], ranks, settings), ranks[SCORE, i] - ranks[SCORE, j]
                if weight == 0.0:
                    continue
                if normalize:
                    weight /= GAP_OFFSET + abs(gap)
                sign = 1.0 if ranks[LABEL, i] > ranks[LABEL, j] else -1.0
                gradient, _ = link_number(settings.link, settings.parameter, sign * settings.sigma * gap)
                push = documents.query_weights[q] * (sign * settings.sigma * weight * gradient)
                other = start + ranked[j]
                _add(slot, classes[other], push, sums)
                _add(slots[other], kind, -push, sums)
