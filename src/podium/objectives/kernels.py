"""Compiled loops over pairs of documents. docs/performance.md says what each trick gave.

A query's documents are laid out by rank in tiles of `TILE`, each tile a row of float32 fields in one buffer.
`_pair_row` takes one document and goes over those below it, `LANES` at a time, in vectors written down as such: all
that a pair needs is read once, and the sums over the row stay in registers. A few pairs too many are looked at, those
with documents at or above the own rank, and those behind the last document, whose label, NaN, compares with none. The
lanes are added up in one order on every machine.

An objective of NDCG or of plain pairs, with RankNet's link, is compiled without the code for all others: `extras` is
None then, and what stands behind `extras is not None` is left out.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.core.compiling import helper, kernel
from podium.core.intrinsics import borrowed, not_inlined
from podium.core.simd import LANES, all_lanes, choose_lanes, load_lanes, roots_of, store_lanes, sum_lanes

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Ints = NDArray[np.int64]
Places = NDArray[np.int32]
Int = Any  # an integer, compiled as int64
Single = Any  # a number, compiled as float32
f32 = np.float32
U: Any = np.uintp  # an index that cannot be negative needs no check for it

# Families of measures: NDCG and its kin; |ΔZ| = 1; AP; ERR; LambdaLoss; deltas from a buffer.
DISCOUNTED, ONES, PRECISION, CASCADE, SPREAD, GIVEN = range(6)
CROSS_ENTROPY, LOCAL, HINGE, SQUARED_HINGE, FIDELITY = range(5)  # links
GROUPS, TRUSTS = 0, 1  # rows of the extras
NEARNESS = f32(0.01)  # added to the gap of scores that a normalised pair is divided by
WIDEST = 150.0  # scores further apart than this (times σ) are compared by an exponential for each pair
TILE = 1024  # documents of a tile
FIELD = TILE + LANES  # from one field of a tile to the next; not a power of two, which would crowd the cache's sets
# The fields: e^{σs}, label, rank, root of the weight, score, gain, discount, |ΔZ|, sums of λ and of w, the group within
# which pairs count, and the weight of a pair whose better document this is.
POWER, LABEL, RANK, ROOT, SCORE, GAIN, DISCOUNT, DELTA, PUSHES, BENDS, GROUP, TRUST, N_FIELDS = range(13)
INVERSE = tuple(1.0 / math.factorial(k) for k in range(11))
FLUSH = 256  # rows whose λ are summed in single precision


# --- ranks


@helper
def _merge_sort(scores: Floats, places: Places, other_scores: Floats, other_places: Places) -> None:
    """Sort by falling score, of equal ones by rising place."""
    n, width = len(scores), 1
    while width < n:
        for start in range(0, n, 2 * width):
            a, b, middle, end = start, min(start + width, n), min(start + width, n), min(start + 2 * width, n)
            for k in range(start, end):
                first = b >= end or (
                    a < middle and (scores[a] > scores[b] or (scores[a] == scores[b] and places[a] < places[b]))
                )
                source = a if first else b
                other_scores[k], other_places[k] = scores[source], places[source]
                if first:
                    a += 1
                else:
                    b += 1
        for k in range(n):
            scores[k], places[k] = other_scores[k], other_places[k]
        width *= 2


@helper
def _sort(scores: Floats, places: Places, other_scores: Floats, other_places: Places) -> None:
    """The same. From one round to the next few documents change ranks, and inserting those costs little; where it
    would cost more than merging, they are merged.
    """  # noqa: D205
    n = len(scores)
    moves, most = 0, 6 * n
    for r in range(1, n):
        if scores[U(r - 1)] > scores[U(r)]:
            continue
        score, place = scores[U(r)], places[U(r)]
        k = r
        while k > 0 and (scores[U(k - 1)] < score or (scores[U(k - 1)] == score and places[U(k - 1)] > place)):
            scores[U(k)], places[U(k)] = scores[U(k - 1)], places[U(k - 1)]
            k -= 1
        scores[U(k)], places[U(k)] = score, place
        moves += r - k
        if moves > most:
            _merge_sort(scores, places, other_scores, other_places)
            return


# --- |ΔZ| of the pairs of rank i with the ranks a … b − 1 of a tile; `base` is where the tile begins in the buffer


@helper
def _precision_deltas(
    buffer: Singles, base: Int, a: Int, b: Int, first: Int, columns: Floats, relevance: float, start: float, by: float
) -> None:
    """|ΔAP| = |(c_{i−1}+1)/i + Σ_{i<k<j} rel_k/k − c_j/j| / R for a relevant and an irrelevant document.

    `start` is (c_{i−1}+1)/i less the shares Σ rel_k/k up to i; the columns are the relevance, the shares before j and
    c_j/j; `by` is 1/R.
    """
    not_inlined()
    delta, at = U(base + DELTA * FIELD), U(first)
    for j in range(U(a), U(b)):
        change = abs(start + columns[U(1), at + j] - columns[U(2), at + j]) * by
        buffer[delta + j] = f32(change) if relevance != columns[U(0), at + j] else f32(0.0)


@helper
def _cascade_deltas(
    buffer: Singles, base: Int, a: Int, b: Int, first: Int, columns: Floats, stop: float, start: float, behind: float
) -> None:
    """|ΔERR| = |(R_j − R_i)(P_i/i − P_i S_ij − P_i Q_ij/j)|.

    P_i S_ij = (C_j − C_{i+1}) / (1 − R_i) with C the sums of R_k P_k/k, P_i Q_ij/j = P_j/j / (1 − R_i): `start` is
    P_i/i + C_{i+1}/(1 − R_i), `behind` 1/(1 − R_i); the columns are R_j, C_j and P_j/j.
    """
    delta, at = U(base + DELTA * FIELD), U(first)
    for j in range(U(a), U(b)):
        change = start - behind * (columns[U(1), at + j] + columns[U(2), at + j])
        buffer[delta + j] = f32(abs((columns[U(0), at + j] - stop) * change))


@helper
def _cascade_deltas_by_steps(
    buffer: Singles, base: Int, a: Int, b: Int, first: Int, columns: Floats, i: Int, n: Int, depth: Int
) -> None:
    """The same where the document is sure to stop the user, 1 − R_i = 0: rank by rank."""
    not_inlined()
    stop, before = columns[0, i], columns[3, i] * (i + 1.0)
    between, inside = 1.0, 0.0
    for j in range(i + 1, min(first + b, n)):
        change = 1.0 / (i + 1.0) - inside
        if j < depth:
            change -= between / (j + 1.0)
            inside += columns[0, j] / (j + 1.0) * between
            between *= 1.0 - columns[0, j]
        if j >= first + a:
            buffer[base + DELTA * FIELD + j - first] = f32(abs(before * (columns[0, j] - stop) * change))


@helper
def _spread_deltas(
    buffer: Singles, base: Int, a: Int, b: Int, columns: Floats, back: Int, my_gain: Single, my_discount: Single
) -> None:
    """|g_i − g_j| (|d_i − d_j| + μ (d_{|i−j|} − d_{|i−j|+1})): NDCG-Loss2++ (Wang et al. 2018).

    The second difference for a distance k stands in columns[0, k + LANES]; `back` is where the distance of j = 0 does.
    """
    gain, discount, delta = U(base + GAIN * FIELD), U(base + DISCOUNT * FIELD), U(base + DELTA * FIELD)
    for j in range(a, b):
        k = U(j)
        change = abs(my_discount - buffer[discount + k]) + f32(columns[U(0), U(back + j)])
        buffer[delta + k] = abs(my_gain - buffer[gain + k]) * change


# --- pairs of rank i with the ranks a … b − 1 of a tile


@helper
def _pair_row(
    family: Int, i: Int, buffer: Singles, base: Int, a: Int, b: Int, link: Int, parameter: float, weighted: bool,
    extras: Singles | None, has_groups: bool, has_trusts: bool, by_gap: bool,
) -> Any:  # fmt: skip
    """Add λ and w of the pairs of rank i with the ranks a … b − 1 of one tile, without σ and σ²; the sum of their |λ|.

    For i ▷ j: ρ = e^{σs_j} / (e^{σs_i} + e^{σs_j}), λ_ij = |ΔZ| ρ pushes i up and j down, w_ij = |ΔZ| ρ (1 − ρ). An
    exponential for each document and a division for each pair are all it takes. With `by_gap` each pair is divided by
    0.01 + |s_i − s_j|. Other links: see `podium.objectives.links`.
    """
    not_inlined()
    mine = i // TILE * N_FIELDS * FIELD + i % TILE
    nothing, one, near = all_lanes(f32(0.0)), all_lanes(f32(1.0)), all_lanes(NEARNESS)
    my_power, my_label = all_lanes(buffer[mine + POWER * FIELD]), all_lanes(buffer[mine + LABEL * FIELD])
    my_rank, my_score = all_lanes(buffer[mine + RANK * FIELD]), all_lanes(buffer[mine + SCORE * FIELD])
    my_gain, my_discount = all_lanes(buffer[mine + GAIN * FIELD]), all_lanes(buffer[mine + DISCOUNT * FIELD])
    my_root = all_lanes(buffer[mine + ROOT * FIELD])
    if extras is not None:
        my_group, my_trust = all_lanes(buffer[mine + GROUP * FIELD]), all_lanes(buffer[mine + TRUST * FIELD])
        shift, margin = all_lanes(f32(math.exp(parameter))), all_lanes(f32(parameter))
        half, three = all_lanes(f32(0.5)), all_lanes(f32(3.0))
    pushes, bends, sizes = nothing, nothing, nothing
    for j in range(base + a, base + b, LANES):
        label, power = load_lanes(buffer, j + LABEL * FIELD), load_lanes(buffer, j + POWER * FIELD)
        better, worse = my_label > label, my_label < label
        delta = one
        if family == DISCOUNTED:  # |ΔZ| = |g_i − g_j| |d_i − d_j|, the gains divided by the norm
            gain, discount = load_lanes(buffer, j + GAIN * FIELD), load_lanes(buffer, j + DISCOUNT * FIELD)
            delta = abs((my_gain - gain) * (my_discount - discount))
        if weighted:
            delta *= my_root * load_lanes(buffer, j + ROOT * FIELD)
        if extras is not None:
            if family != DISCOUNTED and family != ONES:
                delta *= load_lanes(buffer, j + DELTA * FIELD)
            if has_groups:  # NaN is a group of none
                delta = choose_lanes(my_group == load_lanes(buffer, j + GROUP * FIELD), delta, nothing)
            if has_trusts:
                delta *= choose_lanes(better, my_trust, load_lanes(buffer, j + TRUST * FIELD))
        delta = choose_lanes(load_lanes(buffer, j + RANK * FIELD) > my_rank, delta, nothing)
        delta = choose_lanes(better, delta, choose_lanes(worse, delta, nothing))
        ahead, behind = choose_lanes(better, my_power, power), choose_lanes(better, power, my_power)
        gap = one
        if by_gap:
            gap = near + abs(my_score - load_lanes(buffer, j + SCORE * FIELD))
        plain = True
        if extras is not None:
            plain = link == CROSS_ENTROPY
        if plain:
            inverse = one / ((my_power + power) * gap)  # the only division
            size = delta * inverse * behind
            bend = size * ahead * (inverse * gap)
        if extras is not None:
            if link == LOCAL or link == FIDELITY:
                raised = shift * ahead
                inverse = one / (raised + behind)
                right, wrong = raised * inverse, behind * inverse
                if link == LOCAL:
                    size = delta / gap * right * wrong
                    bend = size * (right - wrong)
                else:
                    size = half * (delta / gap) * roots_of(right) * wrong
                    bend = half * size * (three * right - one)
            elif link == HINGE or link == SQUARED_HINGE:
                score = load_lanes(buffer, j + SCORE * FIELD)
                short = margin - choose_lanes(better, my_score - score, score - my_score)
                wanted = choose_lanes(short > nothing, delta / gap, nothing)
                size, bend = (wanted, nothing) if link == HINGE else (wanted * short, wanted)
        push = choose_lanes(better, size, nothing - size)
        store_lanes(buffer, j + PUSHES * FIELD, load_lanes(buffer, j + PUSHES * FIELD) - push)
        store_lanes(buffer, j + BENDS * FIELD, load_lanes(buffer, j + BENDS * FIELD) + bend)
        pushes += push
        bends += bend
        sizes += size
    buffer[mine + PUSHES * FIELD] += sum_lanes(pushes)
    buffer[mine + BENDS * FIELD] += sum_lanes(bends)
    return np.float64(sum_lanes(sizes))


@helper
def _by_link(link: Int, parameter: float, x: float) -> tuple[Any, Any]:
    """λ and w of one pair whose better document leads by x, without σ and σ²."""
    if link == HINGE:
        return np.float64(x < parameter), 0.0
    if link == SQUARED_HINGE:
        return max(parameter - x, 0.0), np.float64(x < parameter)
    wrong = 1.0 / (1.0 + math.exp(min(x + parameter, 700.0)))
    right = 1.0 / (1.0 + math.exp(min(-x - parameter, 700.0)))
    if link == LOCAL:
        return right * wrong, right * wrong * (right - wrong)
    if link == FIDELITY:
        return 0.5 * math.sqrt(right) * wrong, 0.25 * math.sqrt(right) * wrong * (3.0 * right - 1.0)
    return wrong, right * wrong


@helper
def _far_pairs(
    family: Int, i: Int, buffer: Singles, base: Int, a: Int, b: Int, first: Int, scores: Floats, link: Int,
    parameter: float, sigma: float, weighted: bool, extras: Singles | None, has_groups: bool, has_trusts: bool,
    by_gap: bool,
) -> Any:  # fmt: skip
    """The same for scores so far apart that e^{σs} leaves single precision: one pair after the other."""
    not_inlined()
    mine = i // TILE * N_FIELDS * FIELD + i % TILE
    my_label = buffer[mine + LABEL * FIELD]
    pushes, bends, sizes = 0.0, 0.0, 0.0
    for j in range(base + max(a, i + 1 - first), base + b):
        label = buffer[j + LABEL * FIELD]
        if not (my_label > label or my_label < label):  # behind the last document there is no label
            continue
        better = my_label > label
        weight = 1.0
        if family == DISCOUNTED:
            gain, discount = buffer[j + GAIN * FIELD], buffer[j + DISCOUNT * FIELD]
            weight = np.float64(
                abs((buffer[mine + GAIN * FIELD] - gain) * (buffer[mine + DISCOUNT * FIELD] - discount))
            )
        if weighted:
            weight *= buffer[mine + ROOT * FIELD] * buffer[j + ROOT * FIELD]
        if extras is not None:
            if family != DISCOUNTED and family != ONES:
                weight *= buffer[j + DELTA * FIELD]
            if has_groups and not buffer[mine + GROUP * FIELD] == buffer[j + GROUP * FIELD]:
                continue
            if has_trusts:
                weight *= buffer[(mine if better else j) + TRUST * FIELD]
        gap = scores[i] - scores[first + j - base]
        if by_gap:
            weight /= NEARNESS + abs(gap)
        sign = 1.0 if better else -1.0
        push, bend = _by_link(link, parameter, sign * sigma * gap)
        push, bend = weight * push, weight * bend
        buffer[j + PUSHES * FIELD] -= f32(sign * push)
        buffer[j + BENDS * FIELD] += f32(bend)
        pushes += sign * push
        bends += bend
        sizes += push
    buffer[mine + PUSHES * FIELD] += f32(pushes)
    buffer[mine + BENDS * FIELD] += f32(bends)
    return sizes


# --- queries


@helper
def _exponentials(x: Floats, powers: Floats, bits: Ints) -> None:
    """e^x for |x| < 700, as a loop that vectorises: 2^k times a polynomial in the rest, |r| ≤ ln 2 / 2.

    `bits` must be the memory of `powers`: a power of two is its exponent in the right bits. The Taylor polynomial of
    degree 10 errs by less than 1e-12, five digits beyond single precision.
    """
    for j in range(len(x)):
        bits[j] = (np.int64(np.int32(np.rint(x[j] * 1.4426950408889634))) + 1023) << 52
    for j in range(len(x)):
        r = x[j] - np.rint(x[j] * 1.4426950408889634) * 0.6931471805599453
        p = INVERSE[10] * r + INVERSE[9]
        p = p * r + INVERSE[8]
        p = p * r + INVERSE[7]
        p = p * r + INVERSE[6]
        p = p * r + INVERSE[5]
        p = p * r + INVERSE[4]
        p = p * r + INVERSE[3]
        p = p * r + INVERSE[2]
        p = p * r + 1.0
        powers[j] *= p * r + 1.0


@helper
def _lay_out(
    n: Int, places: Places, labels: Singles, roots: Singles, extras: Singles | None, start: Int, scores: Floats,
    sigma: float, near: bool, weighted: bool, buffer: Singles, spare: Floats, powers: Floats, bits: Ints,
) -> None:  # fmt: skip
    """Fill the tiles with the documents of a query, by rank; behind the last, labels are NaN."""
    not_inlined()
    middle = 0.5 * (scores[0] + scores[n - 1])
    if near:
        for r in range(n):
            spare[r] = sigma * (scores[r] - middle)
        _exponentials(spare[:n], powers[:n], bits[:n])
    for first in range(0, n, TILE):
        base, many = first // TILE * N_FIELDS * FIELD, min(TILE, n - first)
        label, root, rank = U(base + LABEL * FIELD), U(base + ROOT * FIELD), U(base + RANK * FIELD)
        score, power = U(base + SCORE * FIELD), U(base + POWER * FIELD)
        for k in range(U(many)):
            buffer[label + k] = labels[U(places[U(first) + k])]
        if weighted:
            for k in range(U(many)):
                buffer[root + k] = roots[U(places[U(first) + k])]
        if extras is not None:
            group, trust = U(base + GROUP * FIELD), U(base + TRUST * FIELD)
            for k in range(U(many)):
                place = U(start + places[U(first) + k])
                buffer[group + k], buffer[trust + k] = extras[U(GROUPS), place], extras[U(TRUSTS), place]
        for k in range(U(many)):
            buffer[score + k] = f32(scores[U(first) + k] - middle)
            buffer[power + k] = f32(powers[U(first) + k])
            buffer[rank + k] = f32(np.int32(U(first) + k))
        end = (many + LANES - 1) // LANES * LANES
        for k in range(U(many), U(end)):
            buffer[label + k], buffer[score + k], buffer[power + k] = f32(np.nan), f32(0.0), f32(1.0)
        pushes, bends = U(base + PUSHES * FIELD), U(base + BENDS * FIELD)
        for k in range(U(end)):
            buffer[pushes + k], buffer[bends + k] = f32(0.0), f32(0.0)


@helper
def _flush(n: Int, buffer: Singles, pushes: Floats, bends: Floats) -> None:
    """Move the sums of the tiles to double precision."""
    for first in range(0, n, TILE):
        base, many = first // TILE * N_FIELDS * FIELD, min(TILE, n - first)
        push, bend = U(base + PUSHES * FIELD), U(base + BENDS * FIELD)
        for k in range(U(many)):
            pushes[U(first) + k] += buffer[push + k]
            bends[U(first) + k] += buffer[bend + k]
            buffer[push + k], buffer[bend + k] = f32(0.0), f32(0.0)


@helper
def _gains(n: Int, places: Places, values: Floats, norm: float, discounts: Floats, buffer: Singles) -> None:
    """Gains, divided by the norm, and discounts of each rank."""
    not_inlined()
    by, depth = 1.0 / norm, len(discounts)
    for first in range(0, n, TILE):
        base, many = first // TILE * N_FIELDS * FIELD, min(TILE, n - first)
        gain, discount = U(base + GAIN * FIELD), U(base + DISCOUNT * FIELD)
        for k in range(U(many)):
            buffer[gain + k] = f32(values[U(places[U(first) + k])] * by)
        counted = min(many, max(depth - first, 0))
        for k in range(U(counted)):
            buffer[discount + k] = f32(discounts[U(first) + k])
        for k in range(U(counted), U(many)):
            buffer[discount + k] = f32(0.0)


@helper
def _columns(
    family: Int, n: Int, places: Places, values: Floats, discounts: Floats, depth: Int, spread: float, columns: Floats
) -> None:
    """What the other families need of each rank, see the functions of |ΔZ|; zeros behind the last."""
    not_inlined()
    if family == SPREAD:
        for k in range(columns.shape[1]):
            columns[0, k] = 0.0
        for k in range(1, min(n, len(discounts))):
            columns[0, k + LANES] = spread * (discounts[k - 1] - discounts[k])
        return
    for r in range(n):
        columns[0, r] = values[places[r]]
    if family == PRECISION:
        count, shares = 0.0, 0.0
        for r in range(n):
            columns[1, r] = shares  # before r
            columns[3, r] = (count + 1.0) / (r + 1.0)  # (c_{i−1}+1)/i
            count += columns[0, r]
            shares += columns[0, r] / (r + 1.0) if r < depth else 0.0
            columns[2, r] = count / (r + 1.0) if r < depth else 0.0
    elif family == CASCADE:
        before, sums = 1.0, 0.0
        for r in range(n):
            columns[3, r] = before / (r + 1.0)  # P_i/i
            columns[1, r] = sums
            columns[2, r] = before / (r + 1.0) if r < depth else 0.0
            if r < depth:
                sums += columns[0, r] * before / (r + 1.0)
                before *= 1.0 - columns[0, r]
    for column in range(3):
        for r in range(n, (n + LANES - 1) // LANES * LANES):
            columns[column, r] = 0.0


@helper
def _deltas(
    family: Int, i: Int, buffer: Singles, base: Int, a: Int, b: Int, first: Int, n: Int, depth: Int, norm: float,
    columns: Floats, given: Floats, first_row: Int,
) -> None:  # fmt: skip
    """|ΔZ| of rank i with the ranks a … b − 1 of a tile, for the families that are not in the kernel without extras."""
    not_inlined()
    mine = i // TILE * N_FIELDS * FIELD + i % TILE
    if family == PRECISION:
        start = columns[3, i] - columns[1, i] - columns[0, i] / (i + 1.0)
        _precision_deltas(buffer, base, a, b, first, columns, columns[0, i], start, 1.0 / norm)
    elif family == CASCADE:
        stop = columns[0, i]
        if 1.0 - stop > 1e-3:
            behind = 1.0 / (1.0 - stop)
            start = columns[3, i] + (columns[1, i] + stop * columns[3, i]) * behind
            _cascade_deltas(buffer, base, a, b, first, columns, stop, start, behind)
        else:
            _cascade_deltas_by_steps(buffer, base, a, b, first, columns, i, n, depth)
    elif family == SPREAD:
        my_gain, my_discount = buffer[mine + GAIN * FIELD], buffer[mine + DISCOUNT * FIELD]
        _spread_deltas(buffer, base, a, b, columns, first - i + LANES, my_gain, my_discount)
    elif family == GIVEN:
        for j in range(a, min(b, n - first)):
            buffer[base + DELTA * FIELD + j] = f32(abs(given[i - first_row, first + j]))


@helper
def _query(
    family: Int, n: Int, places: Places, scores: Floats, labels: Singles, values: Floats, roots: Singles, norm: float,
    discounts: Floats, depth: Int, spread: float, link: Int, parameter: float, sigma: float, weighted: bool,
    extras: Singles | None, start: Int, has_groups: bool, has_trusts: bool, normalize: bool, given: Floats,
    first_row: Int, last_row: Int, buffer: Singles, columns: Floats, powers: Floats, bits: Ints, pushes: Floats,
    bends: Floats,
) -> Any:  # fmt: skip
    """λ and w of the ranks of one query, without σ and σ²; the sum of |λ_ij| over its pairs."""
    not_inlined()
    widest = scores[0] - scores[n - 1]
    near = sigma * widest + 2.0 * abs(parameter) < WIDEST and widest < WIDEST
    _lay_out(n, places, labels, roots, extras, start, scores, sigma, near, weighted, buffer, columns[4], powers, bits)
    if family == DISCOUNTED or family == SPREAD:
        _gains(n, places, values, norm, discounts, buffer)
    if extras is not None:
        if family != DISCOUNTED and family != ONES:
            _columns(family, n, places, values, discounts, depth, spread, columns)
    for r in range(n):
        pushes[r], bends[r] = 0.0, 0.0
    total = 0.0
    for i in range(first_row, min(n, depth, last_row)):
        for tile in range((i + 1) // TILE, (n + TILE - 1) // TILE):
            first = tile * TILE
            a = max((i + 1) // LANES * LANES - first, 0)
            b = min((n + LANES - 1) // LANES * LANES - first, TILE)
            if a < b:
                base = tile * N_FIELDS * FIELD
                if extras is not None:
                    _deltas(family, i, buffer, base, a, b, first, n, depth, norm, columns, given, first_row)
                by_gap = normalize and widest > 0.0
                if near:
                    total += _pair_row(
                        family, i, buffer, base, a, b, link, parameter, weighted, extras, has_groups, has_trusts, by_gap
                    )
                else:
                    total += _far_pairs(
                        family, i, buffer, base, a, b, first, scores, link, parameter, sigma, weighted, extras,
                        has_groups, has_trusts, by_gap,
                    )  # fmt: skip
        if (i - first_row) % FLUSH == FLUSH - 1:
            _flush(n, buffer, pushes, bends)
    _flush(n, buffer, pushes, bends)
    return total


def room(largest: int) -> tuple[Singles, Floats, Floats, Places]:
    """What `lambda_gradients` works with, for queries of at most so many documents."""
    tiles = -(-largest // TILE)
    return (
        np.empty(tiles * N_FIELDS * FIELD, np.float32), np.empty((5, largest + 3 * LANES)), np.empty((5, largest)),
        np.empty(largest, np.int32),
    )  # fmt: skip


@kernel
def lambda_gradients(
    family: Int,
    order: Ints,
    offsets: Ints,
    first: Int,
    last: Int,
    ranked: Places,
    labels: Singles,
    values: Floats,
    roots: Singles,
    norms: Floats,
    discounts: Floats,
    depth: Int,
    spread: float,
    query_weights: Floats,
    link: Int,
    parameter: float,
    sigma: float,
    weighted: bool,
    extras: Singles | None,
    has_groups: bool,
    has_trusts: bool,
    normalize: bool,
    first_row: Int,
    last_row: Int,
    given: Floats,
    scores: Floats,
    lambdas: Floats,
    curvatures: Floats,
    totals: Floats,
    buffer: Singles,
    columns: Floats,
    ranks: Floats,
    spare_places: Places,
) -> None:
    """λ and w of the documents of the queries `first` … `last` − 1.

    Args:
        family: which |ΔZ|. With GIVEN, `given` holds |ΔZ| for the ranks `first_row` … `last_row` − 1 of the one query,
            and results are added to what is there.
        order: the rows of each query in the canonical order; a document's place is its number there.
        offsets: where each query begins.
        ranked: the places of each query's documents by rank, as the last round left them; brought up to date.
        labels, values, roots: of each document in the canonical order; `values` are gains, relevances or stopping
            probabilities, as the family has them, `roots` the square roots of document weights.
        norms, query_weights: of each query; a query whose norm is 0 has no pairs.
        discounts, depth: by rank; the ranks that count.
        spread: μ of LambdaLoss.
        link, parameter, sigma: which link, its centre or margin, and σ.
        weighted: whether any of the roots is not 1.
        extras: for each document in the canonical order its group, within which pairs count (`has_groups`), and its
            trust, the weight of the pairs whose better document it is (`has_trusts`); None for NDCG and plain pairs
            with RankNet's link and neither of these.
        normalize: divide each pair by 0.01 + |s_i − s_j|, then multiply a query's λ and w by log2(1 + Λ)/Λ, Λ the sum
            of |λ| over its documents, as LightGBM does: pairs that are far apart count less, and queries with many
            pairs do not outweigh the others.
        scores, lambdas, curvatures: by row.
        totals: Λ of each query is added; with GIVEN the caller scales, once all rows of the query are there.
        buffer, columns, ranks, spare_places: room for the largest query (`room`).

    """
    buffer, columns, ranks, places_too = borrowed(buffer), borrowed(columns), borrowed(ranks), borrowed(spare_places)
    by_rank, other, powers, pushes, bends = ranks[0], ranks[1], ranks[2], ranks[3], ranks[4]
    bits = powers.view(np.int64)
    order, ranked, labels = borrowed(order), borrowed(ranked), borrowed(labels)
    values, roots, discounts = borrowed(values), borrowed(roots), borrowed(discounts)
    for q in range(first, last):
        start, end = offsets[q], offsets[q + 1]
        n, rows = end - start, order[start:end]
        has_pairs = norms[q] > 0.0 and n > 1
        if has_pairs:
            places = ranked[start:end]
            for r in range(U(n)):
                by_rank[r] = scores[U(rows[U(places[r])])]
            _sort(by_rank[:n], places, other, places_too)
            total = sigma * _query(
                family, n, places, by_rank[:n], labels[start:end], values[start:end], roots[start:end], norms[q],
                discounts, depth, spread, link, parameter, sigma, weighted, extras, start, has_groups, has_trusts,
                normalize, given, first_row, last_row, buffer, columns, powers, bits, pushes, bends,
            )  # fmt: skip
            scale = sigma * query_weights[q]
            totals[q] += 2.0 * total
            if normalize and total > 0.0 and family != GIVEN:
                scale *= math.log2(1.0 + 2.0 * total) / (2.0 * total)
            for r in range(U(n)):
                row = U(rows[U(places[r])])
                push, bend = scale * pushes[r], scale * sigma * bends[r]
                if family == GIVEN:
                    lambdas[row] += push
                    curvatures[row] += bend
                else:
                    lambdas[row] = push
                    curvatures[row] = bend
        elif family != GIVEN:
            for k in range(n):
                lambdas[rows[k]] = 0.0
                curvatures[rows[k]] = 0.0


# --- lists


@helper
def _log_sum(a: float, b: float) -> Any:
    """log(e^a + e^b)."""
    high, low = max(a, b), min(a, b)
    return high if low == -np.inf else high + math.log1p(math.exp(low - high))


@kernel
def plackett_luce(
    offsets: Ints, order: Ints, labels: Floats, scores: Floats, weights: Floats, lambdas: Floats, curvatures: Floats
) -> None:
    """λ and w of Σ_i d_i (T_i − s_i), T_i = log Σ_{l_j ≤ l_i} e^{s_j}, over documents above their list's lowest label.

    The documents of a list stand in `order` by falling label. λ_i = d_i − Σ_{l_k ≥ l_i} d_k e^{s_i − T_k}, where d is 0
    for the lowest label; the hessian likewise. Both sums over k are kept as logarithms: no score is too large.
    """
    tails = np.empty(len(order))
    for q in range(len(offsets) - 1):
        tail, end = -np.inf, offsets[q + 1]
        while end > offsets[q]:  # one label after the other, the lowest first
            start = end
            while start > offsets[q] and labels[order[start - 1]] == labels[order[end - 1]]:
                start -= 1
                tail = _log_sum(tail, scores[order[start]])
            tails[start:end] = tail
            end = start
        lowest = labels[order[offsets[q + 1] - 1]]
        first, second = -np.inf, -np.inf  # log Σ d_k e^{−T_k} and log Σ d_k e^{−2 T_k}
        start = offsets[q]
        while start < offsets[q + 1]:  # the highest first
            end, weight = start, 0.0
            while end < offsets[q + 1] and labels[order[end]] == labels[order[start]]:
                weight += weights[order[end]]
                end += 1
            counts = labels[order[start]] > lowest
            if counts and weight > 0.0:
                first = _log_sum(first, math.log(weight) - tails[start])
                second = _log_sum(second, math.log(weight) - 2.0 * tails[start])
            for k in range(start, end):
                i = order[k]
                share = math.exp(scores[i] + first)
                lambdas[i] = (weights[i] if counts else 0.0) - share
                curvatures[i] = max(share - math.exp(2.0 * scores[i] + second), 0.0)
            start = end
