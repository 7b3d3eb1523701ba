"""The rows of the pair kernel: one document with all those below it, 16 pairs at a time or one by one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from podium.core.array_types import Float32s, Floats, Int, Ints, Lanes
from podium.core.compiling import helper
from podium.core.intrinsics import inlined, not_inlined
from podium.core.simd import LANES, absolute, all_lanes, choose_lanes, load_lanes, store_lanes, sum_lanes
from podium.measures.families import BY_SWAPS, DISCOUNTED, LAMBDALOSS, ONES, Span
from podium.measures.family_kernels import write_deltas
from podium.objectives.links import cross_entropy_lanes, cross_entropy_number, link_constant, link_lanes, link_number
from podium.objectives.pair_layout import (
    ALL,
    DELTA,
    DISCOUNT,
    FIELD,
    GAIN,
    GRADIENT,
    GROUP,
    HESSIAN,
    LABEL,
    MIXED,
    N_FIELDS,
    POWER,
    RANK,
    ROOT,
    SCORE,
    TILE,
    TRUST,
    VECTORS,
)  # fmt: skip

f32 = np.float32
U: Any = np.uintp  # an unsigned index needs no check for negative numbers


@helper
def lambdaloss_columns(discounts: Floats, mu: float, columns: Floats) -> None:
    """Write μ (d_k − d_{k+1}) for each distance k of two ranks into columns[0, k + LANES], and 0 elsewhere."""
    for k in range(columns.shape[1]):
        columns[0, k] = 0.0
    for k in range(1, len(discounts)):
        columns[0, k + LANES] = mu * (discounts[k - 1] - discounts[k])


@helper
def lambdaloss_deltas(i: Int, tile: Span, columns: Floats, buffer: Float32s) -> None:
    """Write |g_i − g_j| (|d_i − d_j| + μ (d_{|i−j|} − d_{|i−j|+1})) of rank i with the ranks of a tile."""
    at = i // TILE * N_FIELDS * FIELD + i % TILE
    gain_i, discount_i = buffer[at + GAIN * FIELD], buffer[at + DISCOUNT * FIELD]
    gain, discount, delta = U(tile.at + GAIN * FIELD), U(tile.at + DISCOUNT * FIELD), U(tile.at + DELTA * FIELD)
    distance = tile.first - i + LANES  # the place in the column of the distance to the tile's first document
    for j in range(tile.a, tile.b):
        k = U(j)
        change = abs(discount_i - buffer[discount + k]) + f32(columns[U(0), U(distance + j)])
        buffer[delta + k] = abs(gain_i - buffer[gain + k]) * change


GAP_OFFSET = f32(0.01)  # normalized pairs are divided by this plus the gap of their scores


class PairSettings(NamedTuple):
    """The kind of pairs, as numbers only, so that passing them costs nothing."""

    family: Any  # of the measure (`podium.measures.families`)
    # link, parameter, sigma: the link's code, its centre or margin, and σ
    link: Any
    parameter: Any
    sigma: Any
    weighted: Any  # whether any document weight is not 1
    # has_groups, has_trusts: whether pairs count within groups only; whether better documents have weights
    has_groups: Any
    has_trusts: Any
    normalize: Any  # divide each pair by 0.01 + |s_i − s_j|
    has_totals: Any  # whether Σ |λ_ij| is needed


class Swaps(NamedTuple):
    """The numbers that the swap deltas of a query depend on; they are passed for every row."""

    family: Any
    n: Any
    depth: Any
    norm: Any
    bonuses_differ: Any
    first_row: Any


class RowBlock(NamedTuple):
    """The ranks first … last − 1 as rows to pair with one tile, the `number`-th of `n_tiles`."""

    first: Any
    last: Any
    number: Any
    n_tiles: Any
    common: Any  # the only label in vectors that are not in the list MIXED


class VectorRange(NamedTuple):
    """The a-th to (b − 1)-th vector of a tile in a list (`which`: ALL or MIXED), where the tile begins at `first`."""

    which: Any
    first: Any
    a: Any
    b: Any


class _Row(NamedTuple):
    """The document of a row, with each of its fields in all lanes."""

    power: Any
    label: Any
    rank: Any
    score: Any
    gain: Any
    discount: Any
    root: Any
    group: Any
    trust: Any


# --- |ΔZ|


@helper
def _row_deltas(i: Int, tile: Span, swaps: Swaps, columns: Floats, deltas: Floats, buffer: Float32s) -> None:
    """Write |ΔZ| of rank i with the ranks of a tile, for the families that `_weight_lanes` does not compute itself."""
    not_inlined()
    span = Span(tile.at + DELTA * FIELD, tile.a, tile.b, tile.first)
    if swaps.family == LAMBDALOSS:
        lambdaloss_deltas(i, tile, columns, buffer)
    elif swaps.family == BY_SWAPS:
        for j in range(tile.a, min(tile.b, swaps.n - tile.first)):
            buffer[span.at + j] = f32(abs(deltas[i - swaps.first_row, tile.first + j]))
    else:
        write_deltas(swaps.family, i, span, swaps.n, swaps.depth, swaps.norm, swaps.bonuses_differ, columns, buffer)


# --- 16 pairs: delta × loss


@helper
def _row_lanes(buffer: Float32s, at: Int) -> Any:
    """Return the document whose fields begin at a place of the buffer."""
    return _Row(
        all_lanes(buffer[U(at + POWER * FIELD)]), all_lanes(buffer[U(at + LABEL * FIELD)]),
        all_lanes(buffer[U(at + RANK * FIELD)]), all_lanes(buffer[U(at + SCORE * FIELD)]),
        all_lanes(buffer[U(at + GAIN * FIELD)]), all_lanes(buffer[U(at + DISCOUNT * FIELD)]),
        all_lanes(buffer[U(at + ROOT * FIELD)]), all_lanes(buffer[U(at + GROUP * FIELD)]),
        all_lanes(buffer[U(at + TRUST * FIELD)]),
    )  # fmt: skip


@helper
def _weight_lanes(
    row: Any, buffer: Float32s, j: Int, better: Lanes, worse: Lanes, settings: PairSettings, extras: Float32s | None
) -> Any:
    """Return |ΔZ| times the weights of the pairs of a row with 16 documents; 0 for those that are not pairs."""
    inlined()
    zero = all_lanes(f32(0.0))
    weight = all_lanes(f32(1.0))
    if settings.family == DISCOUNTED:  # |ΔZ| = |g_i − g_j| |d_i − d_j|, the gains divided by the norm
        gain, discount = load_lanes(buffer, j + GAIN * FIELD), load_lanes(buffer, j + DISCOUNT * FIELD)
        weight = absolute((row.gain - gain) * (row.discount - discount))
    if settings.weighted:
        weight = weight * (row.root * load_lanes(buffer, j + ROOT * FIELD))
    if extras is not None:
        if settings.family != DISCOUNTED and settings.family != ONES:
            weight = weight * load_lanes(buffer, j + DELTA * FIELD)
        if settings.has_groups:  # NaN is in no group
            weight = choose_lanes(row.group == load_lanes(buffer, j + GROUP * FIELD), weight, zero)
        if settings.has_trusts:
            weight = weight * choose_lanes(better, row.trust, load_lanes(buffer, j + TRUST * FIELD))
    weight = choose_lanes(load_lanes(buffer, j + RANK * FIELD) > row.rank, weight, zero)
    return choose_lanes(better, weight, choose_lanes(worse, weight, zero))


@helper
def _pair_row(
    at: Int, base: Int, visited: VectorRange, buffer: Float32s, vectors: Ints, settings: PairSettings,
    extras: Float32s | None,
) -> Any:  # fmt: skip
    """Pair a row with the documents of some vectors: subtract λ from theirs, add w to theirs; return Σλ, Σw, Σ|λ|."""
    inlined()
    row = _row_lanes(buffer, at)
    zero, one, near = all_lanes(f32(0.0)), all_lanes(f32(1.0)), all_lanes(GAP_OFFSET)
    if extras is not None:
        constant = link_constant(settings.link, settings.parameter)
    gradients, hessians, total = zero, zero, zero
    for k in range(visited.a, visited.b):
        j = base + LANES * vectors[U(visited.which), U(visited.first + k)]
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
        signed = choose_lanes(better, gradient, -gradient)
        store_lanes(buffer, j + GRADIENT * FIELD, load_lanes(buffer, j + GRADIENT * FIELD) - signed)
        store_lanes(buffer, j + HESSIAN * FIELD, load_lanes(buffer, j + HESSIAN * FIELD) + hessian)
        gradients = gradients + signed
        hessians = hessians + hessian
        if settings.has_totals:
            total = total + gradient
    all_pairs = np.float64(sum_lanes(total)) if settings.has_totals else 0.0
    return sum_lanes(gradients), sum_lanes(hessians), all_pairs


@helper
def pair_rows(
    rows: RowBlock, buffer: Float32s, vectors: Ints, n_vectors: Ints, settings: PairSettings, extras: Float32s | None,
    swaps: Swaps, columns: Floats, deltas: Floats, sums: Float32s, totals: Floats,
) -> None:  # fmt: skip
    """Add λ and w of the pairs of some ranks with the ranks of one tile, without σ and σ²; Σ |λ_ij| into `totals`.

    For RankNet's link and i ▷ j: ρ = e^{σs_j} / (e^{σs_i} + e^{σs_j}), λ_ij = |ΔZ| ρ, w_ij = |ΔZ| ρ (1 − ρ). This
    takes only one exponential per document and one division per pair. Most vectors in which every label equals the
    row's are skipped. That changes no sum, not even the sign of a zero.
    """
    not_inlined()
    base, first = rows.number * N_FIELDS * FIELD, rows.number * TILE
    listed = rows.number * VECTORS
    n_all, n_mixed = n_vectors[U(ALL), U(rows.number)], n_vectors[U(MIXED), U(rows.number)]
    mixed = 0  # the first vector of that list that reaches below the row
    for i in range(rows.first, rows.last):
        at = i // TILE * N_FIELDS * FIELD + i % TILE
        label = buffer[U(at + LABEL * FIELD)]
        above = max((i + 1 - first) // LANES, 0)  # vectors above the row
        while mixed < n_mixed and vectors[U(MIXED), U(listed + mixed)] < above:
            mixed += 1
        is_common = not (label > rows.common or label < rows.common)
        visited = VectorRange(MIXED, listed, mixed, n_mixed) if is_common else VectorRange(ALL, listed, above, n_all)
        gradient, hessian, total = f32(0.0), f32(0.0), 0.0
        if visited.a < visited.b and label == label:  # NaN has no pairs
            if extras is not None and swaps.family != DISCOUNTED and swaps.family != ONES:
                low = vectors[U(visited.which), U(listed + visited.a)] * LANES
                high = vectors[U(visited.which), U(listed + visited.b - 1)] * LANES + LANES
                _row_deltas(i, Span(base, low, high, first), swaps, columns, deltas, buffer)
            gradient, hessian, total = _pair_row(at, base, visited, buffer, vectors, settings, extras)
        k = U(i - rows.first)
        sums[U(0), k], sums[U(1), k], totals[k * U(rows.n_tiles) + U(rows.number)] = gradient, hessian, total
    # Add the sums of the rows themselves last, after the pairs of rows above have been subtracted. Writing each sum at
    # once would stall the next row's load of the same vector.
    for i in range(rows.first, rows.last):
        at, k = i // TILE * N_FIELDS * FIELD + i % TILE, U(i - rows.first)
        buffer[U(at + GRADIENT * FIELD)] += sums[U(0), k]
        buffer[U(at + HESSIAN * FIELD)] += sums[U(1), k]


# --- one pair at a time


@helper
def _weight_number(
    at: Int, buffer: Float32s, j: Int, better: bool, settings: PairSettings, extras: Float32s | None
) -> Any:
    """Return the weight of one pair, equal to that of `_weight_lanes`."""
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
def far_rows(
    rows: RowBlock, buffer: Float32s, scores: Floats, settings: PairSettings, extras: Float32s | None, swaps: Swaps,
    columns: Floats, deltas: Floats, totals: Floats,
) -> None:  # fmt: skip
    """Do the work of `pair_rows` with an exponential for each pair, for scores so far apart that e^{σs} overflows."""
    not_inlined()
    base, first = rows.number * N_FIELDS * FIELD, rows.number * TILE
    end = min((swaps.n + LANES - 1) // LANES * LANES - first, TILE)
    for i in range(rows.first, rows.last):
        start = max((i + 1) // LANES * LANES - first, 0)
        at = i // TILE * N_FIELDS * FIELD + i % TILE
        row_label = buffer[at + LABEL * FIELD]
        gradients, hessians, total = 0.0, 0.0, 0.0
        if start < end and extras is not None and swaps.family != DISCOUNTED and swaps.family != ONES:
            _row_deltas(i, Span(base, start, end, first), swaps, columns, deltas, buffer)
        for j in range(base + max(start, i + 1 - first), base + end):
            label = buffer[j + LABEL * FIELD]
            if not (row_label > label or row_label < label):  # padding has no label
                continue
            better = row_label > label
            weight = _weight_number(at, buffer, j, better, settings, extras)
            gap = scores[i] - scores[first + j - base]
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
        totals[U((i - rows.first) * rows.n_tiles + rows.number)] = total
