"""How the pair kernel sees the documents of a query: by rank, in tiles of float32 fields.

A *vector* is `LANES` neighbouring ranks of a tile, what one instruction works on. What is filled in for each query is
filled vector by vector, in loops of a fixed length: a loop of any length costs more to begin than a short query does.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from podium.core.array_types import Float32s, Floats, Int, Int32s, Ints
from podium.core.compiling import helper
from podium.core.intrinsics import inlined
from podium.core.simd import LANES, aligned_zeros, all_lanes, any_lanes, load_lanes, store_lanes
from podium.measures.family_kernels import N_COLUMNS

f32 = np.float32
U: Any = np.uintp  # an index that cannot be negative needs no check for it

GROUPS, TRUSTS = 0, 1  # rows of the extras
TILE = 1024  # documents of a tile
FIELD = TILE + LANES  # from one field of a tile to the next; not a power of two, which would crowd the cache's sets
# The fields: e^{σs}, label, rank, root of the weight, score, gain, discount, |ΔZ|, sums of λ and of w, the group within
# which pairs count, and the weight of a pair whose better document this is.
POWER, LABEL, RANK, ROOT, SCORE, GAIN, DISCOUNT, DELTA, GRADIENT, HESSIAN, GROUP, TRUST, N_FIELDS = range(13)
ALL, MIXED = 0, 1  # lists of vectors: all, and those that hold another label than the lowest document's
VECTORS = TILE // LANES  # of a tile
FLUSH = 256  # rows whose λ are summed in single precision
INVERSE_FACTORIALS = tuple(1.0 / math.factorial(k) for k in range(11))


class PairDocuments(NamedTuple):
    """The documents of all queries."""

    order: Ints  # the rows of each query in the canonical order; a document's place is its number there
    offsets: Ints  # where each query begins
    ranked: Int32s  # the places of each query's documents by rank, as the last round left them
    # labels, roots: by place; the roots are those of document weights
    labels: Float32s
    roots: Float32s
    query_weights: Floats  # of each query


class RankedQuery(NamedTuple):
    """One query."""

    # n, start: its documents have the places start … start + n − 1 of all
    n: Any
    start: Any
    ranked: Any  # by rank the document's place in the query
    scores: Any  # by rank; a vector more than there are
    norm: Any  # of the measure


class PairScratch(NamedTuple):
    """What the kernel writes into, for the largest query. Between queries all sums of λ and w in the tiles are 0."""

    buffer: Float32s  # the tiles. Ranks and discounts are the same for every query, and filled in at first
    vectors: Ints  # for each list (ALL, MIXED) and tile the vectors in it
    n_vectors: Ints  # how many these are
    common: Float32s  # the one label in all vectors that are not in the list MIXED
    columns: Floats  # what swap deltas need of each rank (`podium.measures.family_kernels`)
    # scores, spare_scores, spare_places: for sorting
    scores: Floats
    spare_scores: Floats
    spare_places: Int32s
    # powers, bits: e^{σs}, and the same memory as integers
    powers: Floats
    bits: Ints
    # gradients, hessians: sums in double precision, by rank
    gradients: Floats
    hessians: Floats
    row_sums: Float32s  # λ and w of each of `FLUSH` rows, from one tile
    row_totals: Floats  # Σ |λ_ij| of each of `FLUSH` rows and each tile
    total: Floats  # the sum of those of all rows


def scratch_for(largest: int, discounts: Floats) -> PairScratch:
    """For queries of at most `largest` documents."""
    n_tiles = -(-largest // TILE)
    padded = n_tiles * TILE + LANES
    buffer = aligned_zeros(n_tiles * N_FIELDS * FIELD, np.float32)
    tiles = buffer.reshape(n_tiles, N_FIELDS, FIELD)
    tiles[:, RANK, :TILE] = np.arange(n_tiles * TILE).reshape(n_tiles, TILE)
    by_rank = np.zeros(n_tiles * TILE)
    by_rank[: len(discounts)] = discounts[: len(by_rank)]
    tiles[:, DISCOUNT, :TILE] = by_rank.reshape(n_tiles, TILE)
    vectors = np.tile(np.arange(VECTORS), (2, n_tiles))
    scores, spare, powers, gradients, hessians = (np.zeros(padded) for _ in range(5))
    return PairScratch(
        buffer, vectors, np.zeros((2, n_tiles), np.int64), np.zeros(1, np.float32),
        np.zeros((N_COLUMNS, padded + 3 * LANES)), scores, spare, np.zeros(padded, np.int32), powers,
        powers.view(np.int64), gradients, hessians, np.zeros((2, FLUSH), np.float32), np.zeros(FLUSH * n_tiles),
        np.zeros(1),
    )  # fmt: skip


# --- which pairs there are


@helper
def fill_labels(query: RankedQuery, labels: Float32s, scratch: PairScratch) -> Any:
    """The labels by rank, NaN behind the last, and the lists of vectors; the number of ranks that may be rows.

    Most documents have the same label, that of the lowest one as a rule. A document with that label makes pairs only
    with vectors that hold another one. Behind the last document with another label no rank has pairs below it.
    """
    inlined()
    n, start, ranked = query.n, query.start, query.ranked
    buffer, vectors, n_vectors = scratch.buffer, scratch.vectors, scratch.n_vectors
    lowest = n - 1
    while lowest > 0 and np.isnan(labels[U(start + ranked[U(lowest)])]):
        lowest -= 1
    scratch.common[0] = labels[U(start + ranked[U(lowest)])]
    common = all_lanes(labels[U(start + ranked[U(lowest)])])
    last = -1  # the lowest vector with another label
    for first in range(0, n, TILE):
        base, count, number = first // TILE * N_FIELDS * FIELD, min(TILE, n - first), first // TILE
        label = U(base + LABEL * FIELD)
        n_all = (count + LANES - 1) // LANES
        store_lanes(buffer, base + LABEL * FIELD + (n_all - 1) * LANES, all_lanes(f32(np.nan)))
        for k in range(U(count)):
            buffer[label + k] = labels[U(start + ranked[U(first) + k])]
        n_mixed = 0
        for vector in range(n_all):
            some = load_lanes(buffer, base + LABEL * FIELD + vector * LANES)
            if any_lanes(some > common) or any_lanes(some < common):
                vectors[U(MIXED), U(number * VECTORS + n_mixed)] = vector
                n_mixed += 1
                last = first + vector * LANES
        n_vectors[U(ALL), U(number)], n_vectors[U(MIXED), U(number)] = n_all, n_mixed
    if last < 0:
        return 0
    return last + _behind_another(buffer, last, labels[U(start + ranked[U(lowest)])])


@helper
def _behind_another(buffer: Float32s, first: Int, common: Any) -> Any:
    """The number of ranks of a vector down to its last label other than the common one; there is one."""
    at = first // TILE * N_FIELDS * FIELD + first % TILE + LABEL * FIELD
    count = LANES
    while not (buffer[U(at + count - 1)] > common or buffer[U(at + count - 1)] < common):
        count -= 1
    return count


# --- what the pairs need of each document


@helper
def fill_powers(query: RankedQuery, sigma: float, scratch: PairScratch) -> None:
    """e^{σs}, as loops that vectorise: 2^k times a polynomial in the rest, |r| ≤ ln 2 / 2.

    A power of two is its exponent in the right bits. The Taylor polynomial of degree 10 errs by less than 1e-12, five
    digits beyond single precision. The padding is filled, too: nothing there may be infinite.
    """
    inlined()
    n, scores, exponents = query.n, query.scores, scratch.columns
    buffer, powers, bits = scratch.buffer, scratch.powers, scratch.bits
    row = U(N_COLUMNS - 1)
    middle = 0.5 * (scores[U(0)] + scores[U(n - 1)])
    for k in range(U(LANES)):
        scores[U(n) + k] = scores[U(n - 1)]
    for first in range(0, n, LANES):
        at = U(first)
        power = U(first // TILE * N_FIELDS * FIELD + first % TILE + POWER * FIELD)
        for k in range(U(LANES)):
            exponents[row, at + k] = sigma * (scores[at + k] - middle)
        for k in range(U(LANES)):
            bits[at + k] = (np.int64(np.int32(np.rint(exponents[row, at + k] * 1.4426950408889634))) + 1023) << 52
        for k in range(U(LANES)):
            x = exponents[row, at + k]
            r = x - np.rint(x * 1.4426950408889634) * 0.6931471805599453
            p = INVERSE_FACTORIALS[10] * r + INVERSE_FACTORIALS[9]
            p = p * r + INVERSE_FACTORIALS[8]
            p = p * r + INVERSE_FACTORIALS[7]
            p = p * r + INVERSE_FACTORIALS[6]
            p = p * r + INVERSE_FACTORIALS[5]
            p = p * r + INVERSE_FACTORIALS[4]
            p = p * r + INVERSE_FACTORIALS[3]
            p = p * r + INVERSE_FACTORIALS[2]
            p = p * r + 1.0
            buffer[power + k] = f32(powers[at + k] * (p * r + 1.0))


@helper
def fill_scores(query: RankedQuery, buffer: Float32s) -> None:
    """Scores less the middle, for pairs that are near each other; the padding has the lowest one."""
    inlined()
    n, scores = query.n, query.scores
    middle = 0.5 * (scores[U(0)] + scores[U(n - 1)])
    for first in range(0, n, LANES):
        at = U(first)
        score = U(first // TILE * N_FIELDS * FIELD + first % TILE + SCORE * FIELD)
        for k in range(U(LANES)):
            buffer[score + k] = f32(scores[at + k] - middle)


@helper
def fill_gains(query: RankedQuery, values: Floats, buffer: Float32s) -> None:
    """Gains, divided by the norm."""
    inlined()
    n, start, ranked = query.n, query.start, query.ranked
    inverse = 1.0 / query.norm
    for first in range(0, n, TILE):
        gain, count = U(first // TILE * N_FIELDS * FIELD + GAIN * FIELD), min(TILE, n - first)
        for k in range(U(count)):
            buffer[gain + k] = f32(values[U(start + ranked[U(first) + k])] * inverse)


@helper
def fill_field(query: RankedQuery, field: Int, values: Float32s, buffer: Float32s) -> None:
    """A field whose numbers are known by place: roots of weights, groups, trusts."""
    n, start, ranked = query.n, query.start, query.ranked
    for first in range(0, n, TILE):
        at, count = U(first // TILE * N_FIELDS * FIELD + field * FIELD), min(TILE, n - first)
        for k in range(U(count)):
            buffer[at + k] = values[U(start + ranked[U(first) + k])]


# --- sums


@helper
def take_tiles(n: Int, buffer: Float32s, gradients: Floats, hessians: Floats) -> None:
    """Begin the sums in double precision with those of the tiles, which become 0."""
    inlined()
    nothing = all_lanes(f32(0.0))
    for first in range(0, n, LANES):
        at, base = U(first), first // TILE * N_FIELDS * FIELD + first % TILE
        gradient, hessian = U(base + GRADIENT * FIELD), U(base + HESSIAN * FIELD)
        for k in range(U(LANES)):
            gradients[at + k] = buffer[gradient + k]
            hessians[at + k] = buffer[hessian + k]
        store_lanes(buffer, base + GRADIENT * FIELD, nothing)
        store_lanes(buffer, base + HESSIAN * FIELD, nothing)


@helper
def add_tiles(first_row: Int, n: Int, buffer: Float32s, gradients: Floats, hessians: Floats) -> None:
    """Add the sums of the tiles, which become 0, to those in double precision. Ranks before the first row have none."""
    inlined()
    nothing = all_lanes(f32(0.0))
    for first in range(first_row // LANES * LANES, n, LANES):
        at, base = U(first), first // TILE * N_FIELDS * FIELD + first % TILE
        gradient, hessian = U(base + GRADIENT * FIELD), U(base + HESSIAN * FIELD)
        for k in range(U(LANES)):
            gradients[at + k] += buffer[gradient + k]
            hessians[at + k] += buffer[hessian + k]
        store_lanes(buffer, base + GRADIENT * FIELD, nothing)
        store_lanes(buffer, base + HESSIAN * FIELD, nothing)
