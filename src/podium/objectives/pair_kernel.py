"""The pair kernel: gradients and hessians from all pairs of documents of each query.

    λ_ij = −|ΔZ_ij| · C′(s_i − s_j)       delta × loss, then accumulation: λ_i += λ_ij, λ_j −= λ_ij

A query's documents are laid out by rank in tiles of `TILE`, each tile some rows ("fields") of float32 in one buffer.
`_pair_row` takes one document and goes over those below it, `LANES` at a time: all that a pair needs is read once, and
the sums of the row stay in registers. A few pairs too many are looked at: with documents at or above the row's rank,
and with the padding behind the last document, whose label, NaN, compares with none. Their weight is 0. The lanes are
added up in one order on every machine. docs/performance.md says what each technique gave.

An objective of NDCG or of plain pairs, with RankNet's link, is compiled without the code for all others: `extras` is
None then, and what stands behind `extras is not None` is left out of the compiled code.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.core.compiling import helper, kernel
from podium.core.intrinsics import borrowed, inlined, not_inlined
from podium.core.simd import LANES, absolute, all_lanes, choose_lanes, load_lanes, store_lanes, sum_lanes
from podium.measures.families import BY_SWAPS, DISCOUNTED, LAMBDALOSS, ONES, LookupTables, Span
from podium.measures.ranks import sort_ranked
from podium.measures.swap_deltas import fill_columns, write_deltas
from podium.objectives.lambdaloss_deltas import lambdaloss_columns, lambdaloss_deltas
from podium.objectives.links import (
    cross_entropy_lanes,
    cross_entropy_number,
    link_constant,
    link_lanes,
    link_number,
)
from podium.objectives.pair_layout import (
    DELTA,
    DISCOUNT,
    FIELD,
    GAIN,
    GRADIENT,
    GROUP,
    HESSIAN,
    LABEL,
    N_FIELDS,
    POWER,
    RANK,
    ROOT,
    SCORE,
    TILE,
    TRUST,
    Documents,
    Query,
    Scratch,
    add_tiles,
    fill_gains,
    fill_tiles,
)  # fmt: skip

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Ints = NDArray[np.int64]
Places = NDArray[np.int32]
Lanes = Any  # 16 numbers in single precision
Int = Any  # an integer, compiled as int64
f32 = np.float32
U: Any = np.uintp  # an index that cannot be negative needs no check for it

GAP_OFFSET = f32(0.01)  # added to the gap of scores that a normalized pair is divided by
MAX_EXPONENT = 150.0  # scores further apart than this (times σ) are compared by an exponential for each pair
FLUSH = 256  # rows whose λ are summed in single precision


class PairSettings(NamedTuple):
    """What kind of pairs these are: numbers only, so that they cost nothing to hand on.

    Attributes:
        family: of the measure (`podium.measures.families`).
        link, parameter, sigma: the link's code, its centre or margin, and σ.
        weighted: whether any document weight is not 1.
        has_groups, has_trusts: whether pairs count within groups only; whether better documents have weights.
        normalize: divide each pair by 0.01 + |s_i − s_j|.

    """

    family: Any
    link: Any
    parameter: Any
    sigma: Any
    weighted: Any
    has_groups: Any
    has_trusts: Any
    normalize: Any


class Task(NamedTuple):
    """The queries first … last − 1, and of each the ranks first_row … last_row − 1.

    Attributes:
        deltas: |ΔZ| of these ranks with all others, of the one query, for measures without a family.

    """

    first: int
    last: int
    first_row: int
    last_row: int
    deltas: Floats


class Gradients(NamedTuple):
    """Results: λ and w by row, and Λ of each query, the sum of |λ_ij| over both documents of its pairs."""

    gradients: Floats
    hessians: Floats
    totals: Floats


class _Row(NamedTuple):
    """The document of a row: each of its fields in all lanes."""

    power: Any
    label: Any
    rank: Any
    score: Any
    gain: Any
    discount: Any
    root: Any
    group: Any
    trust: Any


# --- 16 pairs: delta × loss


@helper
def _row_lanes(buffer: Singles, at: Int) -> Any:
    """The document whose fields begin at a place of the buffer."""
    return _Row(
        all_lanes(buffer[at + POWER * FIELD]), all_lanes(buffer[at + LABEL * FIELD]),
        all_lanes(buffer[at + RANK * FIELD]), all_lanes(buffer[at + SCORE * FIELD]),
        all_lanes(buffer[at + GAIN * FIELD]), all_lanes(buffer[at + DISCOUNT * FIELD]),
        all_lanes(buffer[at + ROOT * FIELD]), all_lanes(buffer[at + GROUP * FIELD]),
        all_lanes(buffer[at + TRUST * FIELD]),
    )  # fmt: skip


@helper
def _weight_lanes(
    row: Any, buffer: Singles, j: Int, better: Lanes, worse: Lanes, settings: PairSettings, extras: Singles | None
) -> Any:
    """|ΔZ| times the weights of the pairs of a row with 16 documents; 0 where there is no pair."""
    inlined()
    nothing = all_lanes(f32(0.0))
    weight = all_lanes(f32(1.0))
    if settings.family == DISCOUNTED:  # |ΔZ| = |g_i − g_j| |d_i − d_j|, the gains divided by the norm
        gain, discount = load_lanes(buffer, j + GAIN * FIELD), load_lanes(buffer, j + DISCOUNT * FIELD)
        weight = absolute((row.gain - gain) * (row.discount - discount))
    if settings.weighted:
        weight = weight * (row.root * load_lanes(buffer, j + ROOT * FIELD))
    if extras is not None:
        if settings.family != DISCOUNTED and settings.family != ONES:
            weight = weight * load_lanes(buffer, j + DELTA * FIELD)
        if settings.has_groups:  # NaN is a group of none
            weight = choose_lanes(row.group == load_lanes(buffer, j + GROUP * FIELD), weight, nothing)
        if settings.has_trusts:
            weight = weight * choose_lanes(better, row.trust, load_lanes(buffer, j + TRUST * FIELD))
    weight = choose_lanes(load_lanes(buffer, j + RANK * FIELD) > row.rank, weight, nothing)
    return choose_lanes(better, weight, choose_lanes(worse, weight, nothing))


@helper
def _pair_row(i: Int, tile: Span, buffer: Singles, settings: PairSettings, extras: Singles | None) -> Any:
    """Add λ and w of the pairs of rank i with the ranks of one tile, without σ and σ²; the sum of their |λ|.

    For RankNet's link and i ▷ j: ρ = e^{σs_j} / (e^{σs_i} + e^{σs_j}), λ_ij = |ΔZ| ρ, w_ij = |ΔZ| ρ (1 − ρ). An
    exponential for each document and a division for each pair are all it takes.
    """
    not_inlined()
    at = i // TILE * N_FIELDS * FIELD + i % TILE
    row = _row_lanes(buffer, at)
    nothing, one, near = all_lanes(f32(0.0)), all_lanes(f32(1.0)), all_lanes(GAP_OFFSET)
    if extras is not None:
        constant = link_constant(settings.link, settings.parameter)
    gradients, hessians, total = nothing, nothing, nothing
    for j in range(tile.at + tile.a, tile.at + tile.b, LANES):
        label, power = load_lanes(buffer, j + LABEL * FIELD), load_lanes(buffer, j + POWER * FIELD)
        better, worse = row.label > label, row.label < label
        weight = _weight_lanes(row, buffer, j, better, worse, settings, extras)
        ahead, behind = choose_lanes(better, row.power, power), choose_lanes(better, power, row.power)
        gap = one
        if settings.normalize:
            gap = near + absolute(row.score - load_lanes(buffer, j + SCORE * FIELD))
        if extras is None:
            gradient, hessian = cross_entropy_lanes(weight, gap, ahead, behind)
        else:
            score = load_lanes(buffer, j + SCORE * FIELD)
            lead = choose_lanes(better, row.score - score, score - row.score)
            gradient, hessian = link_lanes(settings.link, constant, weight, gap, ahead, behind, lead)
        signed = choose_lanes(better, gradient, nothing - gradient)
        store_lanes(buffer, j + GRADIENT * FIELD, load_lanes(buffer, j + GRADIENT * FIELD) - signed)
        store_lanes(buffer, j + HESSIAN * FIELD, load_lanes(buffer, j + HESSIAN * FIELD) + hessian)
        gradients = gradients + signed
        hessians = hessians + hessian
        total = total + gradient
    buffer[at + GRADIENT * FIELD] += sum_lanes(gradients)
    buffer[at + HESSIAN * FIELD] += sum_lanes(hessians)
    return np.float64(sum_lanes(total))


# --- one pair after the other


@helper
def _weight_number(
    at: Int, buffer: Singles, j: Int, better: bool, settings: PairSettings, extras: Singles | None
) -> Any:
    """The weight of one pair, as `_weight_lanes` has it."""
    weight = 1.0
    if settings.family == DISCOUNTED:
        gain, discount = buffer[j + GAIN * FIELD], buffer[j + DISCOUNT * FIELD]
        weight = np.float64(abs((buffer[at + GAIN * FIELD] - gain) * (buffer[at + DISCOUNT * FIELD] - discount)))
    if settings.weighted:
        weight *= buffer[at + ROOT * FIELD] * buffer[j + ROOT * FIELD]
    if extras is not None:
        if settings.family != DISCOUNTED and settings.family != ONES:
            weight *= buffer[j + DELTA * FIELD]
        if settings.has_groups and not buffer[at + GROUP * FIELD] == buffer[j + GROUP * FIELD]:
            return 0.0
        if settings.has_trusts:
            weight *= buffer[(at if better else j) + TRUST * FIELD]
    return weight


@helper
def _far_pairs(
    i: Int, tile: Span, buffer: Singles, scores: Floats, settings: PairSettings, extras: Singles | None
) -> Any:
    """`_pair_row` for scores so far apart that e^{σs} leaves single precision: an exponential for each pair."""
    not_inlined()
    at = i // TILE * N_FIELDS * FIELD + i % TILE
    row_label = buffer[at + LABEL * FIELD]
    gradients, hessians, total = 0.0, 0.0, 0.0
    for j in range(tile.at + max(tile.a, i + 1 - tile.first), tile.at + tile.b):
        label = buffer[j + LABEL * FIELD]
        if not (row_label > label or row_label < label):  # padding has no label
            continue
        better = row_label > label
        weight = _weight_number(at, buffer, j, better, settings, extras)
        gap = scores[i] - scores[tile.first + j - tile.at]
        if settings.normalize:
            weight /= GAP_OFFSET + abs(gap)
        sign = 1.0 if better else -1.0
        if extras is None:
            gradient, hessian = cross_entropy_number(sign * settings.sigma * gap)
        else:
            gradient, hessian = link_number(settings.link, settings.parameter, sign * settings.sigma * gap)
        gradient, hessian = weight * gradient, weight * hessian
        buffer[j + GRADIENT * FIELD] -= f32(sign * gradient)
        buffer[j + HESSIAN * FIELD] += f32(hessian)
        gradients += sign * gradient
        hessians += hessian
        total += gradient
    buffer[at + GRADIENT * FIELD] += f32(gradients)
    buffer[at + HESSIAN * FIELD] += f32(hessians)
    return total


# --- queries


class _Swaps(NamedTuple):
    """What the swap deltas of a query depend on: numbers only, they are handed on for every row."""

    family: Any
    n: Any
    depth: Any
    norm: Any
    bonuses_differ: Any
    first_row: Any


@helper
def _row_deltas(i: Int, tile: Span, swaps: Any, columns: Floats, deltas: Floats, buffer: Singles) -> None:
    """|ΔZ| of rank i with the ranks of a tile, for the families that `_weight_lanes` does not compute itself."""
    not_inlined()
    span = Span(tile.at + DELTA * FIELD, tile.a, tile.b, tile.first)
    if swaps.family == LAMBDALOSS:
        lambdaloss_deltas(i, tile, columns, buffer)
    elif swaps.family == BY_SWAPS:
        for j in range(tile.a, min(tile.b, swaps.n - tile.first)):
            buffer[span.at + j] = f32(abs(deltas[i - swaps.first_row, tile.first + j]))
    else:
        write_deltas(swaps.family, i, span, swaps.n, swaps.depth, swaps.norm, swaps.bonuses_differ, columns, buffer)


@helper
def _fill_columns(query: Query, tables: LookupTables, columns: Floats) -> None:
    """What swap deltas need of each rank, for the families that `_weight_lanes` does not compute itself."""
    not_inlined()
    n, start, family = query.n, query.start, tables.family
    if family == LAMBDALOSS:
        lambdaloss_columns(n, tables.discounts, tables.mu, columns)
    elif family != BY_SWAPS:
        values, divisors = tables.values[start : start + n], tables.divisors[start : start + n]
        fill_columns(family, n, query.ranked, values, divisors, tables.depth, columns)
        for column in range(3):  # padding
            for r in range(n, (n + LANES - 1) // LANES * LANES):
                columns[column, r] = 0.0


@helper
def _query_gradients(
    query: Query, documents: Documents, tables: LookupTables, settings: PairSettings, extras: Singles | None,
    task: Task, scratch: Scratch,
) -> Any:  # fmt: skip
    """λ and w of the ranks of one query into the scratch, without σ and σ²; the sum of |λ_ij| over its pairs."""
    not_inlined()
    n, scores, buffer = query.n, query.scores, borrowed(scratch.buffer)
    widest = scores[0] - scores[n - 1]
    near = settings.sigma * widest + 2.0 * abs(settings.parameter) < MAX_EXPONENT and widest < MAX_EXPONENT
    settings = PairSettings(
        settings.family, settings.link, settings.parameter, settings.sigma, settings.weighted, settings.has_groups,
        settings.has_trusts, settings.normalize and widest > 0.0,
    )  # fmt: skip
    fill_tiles(query, documents, settings.sigma, near, settings.weighted, extras, scratch)
    if tables.family == DISCOUNTED or tables.family == LAMBDALOSS:
        fill_gains(query, tables.values, tables.discounts, buffer)
    has_deltas = tables.family != DISCOUNTED and tables.family != ONES
    columns, deltas = borrowed(scratch.columns), borrowed(task.deltas)
    swaps = _Swaps(tables.family, n, tables.depth, query.norm, tables.bonuses_differ, task.first_row)
    if extras is not None and has_deltas:
        _fill_columns(query, tables, columns)
    gradients, hessians = scratch.gradients, scratch.hessians
    for r in range(n):
        gradients[r], hessians[r] = 0.0, 0.0
    total = 0.0
    for i in range(task.first_row, min(n, tables.depth, task.last_row)):
        for number in range((i + 1) // TILE, (n + TILE - 1) // TILE):
            first = number * TILE
            a = max((i + 1) // LANES * LANES - first, 0)
            b = min((n + LANES - 1) // LANES * LANES - first, TILE)
            if a < b:
                tile = Span(number * N_FIELDS * FIELD, a, b, first)
                if extras is not None and has_deltas:
                    _row_deltas(i, tile, swaps, columns, deltas, buffer)
                if near:
                    total += _pair_row(i, tile, buffer, settings, extras)
                else:
                    total += _far_pairs(i, tile, buffer, scores, settings, extras)
        if (i - task.first_row) % FLUSH == FLUSH - 1:
            add_tiles(n, buffer, gradients, hessians)
    add_tiles(n, buffer, gradients, hessians)
    return total


@kernel
def lambda_gradients(
    documents: Documents, tables: LookupTables, settings: PairSettings, extras: Singles | None, task: Task,
    scores: Floats, result: Gradients, scratch: Scratch,
) -> None:  # fmt: skip
    """λ and w of the documents of some queries.

    Args:
        documents: the documents of all queries; `documents.ranked` is brought up to date.
        tables: of the measure. A query whose norm is 0 has no pairs. With BY_SWAPS, |ΔZ| comes from the task, results
            are added to what is there, and the caller normalizes.
        settings: which pairs and which link. With `normalize`, λ and w of a query are multiplied by log2(1 + Λ)/Λ, as
            LightGBM does: queries with many pairs do not outweigh the others.
        extras: for each document in the canonical order its group and its trust, see `PairFilter`; None for NDCG and
            plain pairs with RankNet's link and neither of these.
        task: which queries and rows.
        scores: by row.
        result: where λ, w and Λ go; Λ is added.
        scratch: for the largest query.

    """
    order, ranked = borrowed(documents.order), borrowed(documents.ranked)
    by_rank = borrowed(scratch.scores)
    gradients, hessians, sigma = scratch.gradients, scratch.hessians, settings.sigma
    is_added = tables.family == BY_SWAPS
    for q in range(task.first, task.last):
        start, end = documents.offsets[q], documents.offsets[q + 1]
        n, rows = end - start, order[start:end]
        if tables.norms[q] > 0.0 and n > 1:
            places = ranked[start:end]
            for r in range(U(n)):
                by_rank[r] = scores[U(rows[U(places[r])])]
            sort_ranked(by_rank[:n], places, scratch.spare_scores, scratch.spare_places)
            query = Query(n, start, places, by_rank[:n], tables.norms[q])
            total = sigma * _query_gradients(query, documents, tables, settings, extras, task, scratch)
            scale = sigma * documents.query_weights[q]
            result.totals[q] += 2.0 * total
            if settings.normalize and total > 0.0 and not is_added:
                scale *= math.log2(1.0 + 2.0 * total) / (2.0 * total)
            for r in range(U(n)):
                row = U(rows[U(places[r])])
                gradient, hessian = scale * gradients[r], scale * sigma * hessians[r]
                if is_added:
                    result.gradients[row] += gradient
                    result.hessians[row] += hessian
                else:
                    result.gradients[row] = gradient
                    result.hessians[row] = hessian
        elif not is_added:
            for k in range(n):
                result.gradients[rows[k]] = 0.0
                result.hessians[rows[k]] = 0.0
