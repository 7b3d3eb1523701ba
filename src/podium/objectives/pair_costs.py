"""Pairs of documents one by one, in double precision, and their costs.

The formulas are those of `pair_rows`, for callers that need more than the sums λ and w: the loss of a pair term, and
`single_pairs`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from podium.core.array_types import Float32s, Floats, Int, Int32s
from podium.core.compiling import helper, kernel
from podium.core.simd import LANES
from podium.measures.families import BY_SWAPS, DISCOUNTED, LAMBDALOSS, ONES, LookupTables, Span
from podium.measures.family_kernels import N_COLUMNS, fill_columns, write_deltas
from podium.measures.ranking import sort_ranked
from podium.objectives.links import link_cost
from podium.objectives.pair_layout import GROUPS, TRUSTS, PairDocuments
from podium.objectives.pair_rows import PairSettings

NO_DELTAS: Floats = np.empty((0, 0))
SCORE, LABEL, ROOT, VALUE, GROUP, TRUST, DISCOUNT, DISTANCE = range(8)  # numbers of each rank, of one query


class RankScratch(NamedTuple):
    """Memory for the kernels, large enough for the largest query."""

    ranks: Floats  # the numbers of each rank
    row: Floats  # |ΔZ| of one rank with those below it
    columns: Floats  # the inputs of swap deltas by rank (`podium.measures.family_kernels`)
    singles: Float32s  # swap deltas as the families write them
    # spare_scores, spare_places: for sorting
    spare_scores: Floats
    spare_places: Int32s


class PairDocument(NamedTuple):
    """The numbers of a document of a pair, in addition to |ΔZ|."""

    score: Any
    label: Any
    root: Any
    group: Any
    trust: Any


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
def sort_query(
    start: Int, n: Int, ranked: Int32s, documents: PairDocuments, scores: Floats, scratch: RankScratch
) -> None:
    """Update the places of a query's documents by rank, and store their scores."""
    ranks = scratch.ranks
    for r in range(n):
        ranks[SCORE, r] = scores[documents.order[start + ranked[r]]]
    sort_ranked(ranks[SCORE, :n], ranked, scratch.spare_scores, scratch.spare_places)


@helper
def fill_ranks(
    start: Int, ranked: Int32s, documents: PairDocuments, tables: LookupTables, extras: Float32s, scratch: RankScratch
) -> None:
    """Store the other numbers of each rank; `DISTANCE` is what LambdaLoss adds to |ΔZ| of ranks at this distance."""
    has_extras, n_discounts, n, ranks = extras.shape[1] > 0, len(tables.discounts), len(ranked), scratch.ranks
    for r in range(n):
        document = start + ranked[r]
        ranks[LABEL, r], ranks[ROOT, r] = documents.labels[document], documents.roots[document]
        ranks[VALUE, r] = tables.values[document]
        ranks[GROUP, r] = extras[GROUPS, document] if has_extras else 0.0
        ranks[TRUST, r] = extras[TRUSTS, document] if has_extras else 0.0
        ranks[DISCOUNT, r] = tables.discounts[r] if r < n_discounts else 0.0
        ranks[DISTANCE, r] = 0.0
        if tables.family == LAMBDALOSS and 0 < r < n_discounts:
            ranks[DISTANCE, r] = tables.mu * (tables.discounts[r - 1] - tables.discounts[r])
    family = tables.family
    if family != ONES and family != DISCOUNTED and family != LAMBDALOSS and family != BY_SWAPS:
        values, divisors = tables.values[start : start + n], tables.divisors[start : start + n]
        fill_columns(family, n, ranked, values, divisors, tables.depth, scratch.columns)


@helper
def fill_deltas(
    i: Int, n: Int, first_row: Int, norm: float, tables: LookupTables, deltas: Floats, scratch: RankScratch
) -> None:
    """Write |ΔZ| of rank i with all below it into the row; `BY_SWAPS` takes it from `deltas`, from `first_row` on."""
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
def document_at(ranks: Floats, r: Int) -> Any:
    """Return the document of a rank."""
    return PairDocument(ranks[SCORE, r], ranks[LABEL, r], ranks[ROOT, r], ranks[GROUP, r], ranks[TRUST, r])


@helper
def pair_weight(upper: PairDocument, lower: PairDocument, delta: float, settings: PairSettings) -> Any:
    """Return |ΔZ| times the weights of a pair except its query's; 0 if the two documents are not a pair."""
    if not (upper.label > lower.label or upper.label < lower.label):
        return 0.0
    if settings.has_groups and not upper.group == lower.group:
        return 0.0
    weight = delta * upper.root * lower.root
    if settings.has_trusts:
        weight *= upper.trust if upper.label > lower.label else lower.trust
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
    for q in range(first, last):
        start, n, norm = documents.offsets[q], documents.offsets[q + 1] - documents.offsets[q], tables.norms[q]
        if not norm > 0.0 or n < 2:
            continue
        ranked, total = documents.ranked[start : start + n], 0.0
        sort_query(start, n, ranked, documents, scores, scratch)
        fill_ranks(start, ranked, documents, tables, extras, scratch)
        for i in range(first_row, min(n, tables.depth, last_row)):
            fill_deltas(i, n, first_row, norm, tables, deltas, scratch)
            upper = document_at(scratch.ranks, i)
            for j in range(i + 1, n):
                lower = document_at(scratch.ranks, j)
                weight = pair_weight(upper, lower, scratch.row[j], settings)
                if weight > 0.0:
                    lead = upper.score - lower.score if upper.label > lower.label else lower.score - upper.score
                    total += weight * link_cost(settings.link, settings.parameter, settings.sigma * lead)
        costs[q] += documents.query_weights[q] * total
