"""The memory layout of a query's documents in the pair kernel: by rank, in tiles of float32 fields.

A *vector* is `LANES` neighbouring ranks of a tile, the operand of one instruction. Queries are filled in vector by
vector, in loops of a fixed length, because starting a loop of variable length costs more than a short query.
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
U: Any = np.uintp  # an unsigned index needs no check for negative numbers

GROUPS, TRUSTS = 0, 1  # rows of the extras
TILE = 1024  # documents of a tile
FIELD = TILE + LANES  # distance between fields of a tile; a power of two would overload some of the cache's sets
# The fields: e^{σs}, label, rank, root of the weight, score, gain, discount, |ΔZ|, sums of λ and of w, the group within
# which pairs count, and the weight of pairs in which this is the better document.
POWER, LABEL, RANK, ROOT, SCORE, GAIN, DISCOUNT, DELTA, GRADIENT, HESSIAN, GROUP, TRUST, N_FIELDS = range(13)
ALL, MIXED = 0, 1  # lists of vectors: all, and those that hold a label other than that of the lowest document
VECTORS = TILE // LANES  # of a tile
FLUSH = 256  # number of rows to sum in single precision before their sums are added in double precision
INVERSE_FACTORIALS = tuple(1.0 / math.factorial(k) for k in range(11))


class PairDocuments(NamedTuple):
    """The documents of all queries."""

    order: Ints  # the rows of each query in the canonical order; a document's place is its number there
    offsets: Ints  # where each query begins
    ranked: Int32s  # the places of each query's documents by rank in the last round
    # labels, roots: by place; the square roots of document weights
    labels: Float32s
    roots: Float32s
    query_weights: Floats  # of each query


class RankedQuery(NamedTuple):
    """One query."""

    # n, start: its documents have the places start … start + n − 1
    n: Any
    start: Any
    ranked: Any  # by rank the document's place in the query
    scores: Any  # by rank, with a vector of padding
    norm: Any  # of the measure


class PairScratch(NamedTuple):
    """The kernel's memory for the largest query. Between queries all sums of λ and w in the tiles are 0."""

    buffer: Float32s  # the tiles. Ranks and discounts are filled in once, because they are the same for every query
    vectors: Ints  # the vectors in each list (ALL, MIXED) of each tile
    n_vectors: Ints  # the lengths of these lists
    common: Float32s  # the only label in vectors that are not in the list MIXED
    columns: Floats  # the inputs of swap deltas by rank (`podium.measures.family_kernels`)
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
    total: Floats  # their sum over all rows


def scratch_for(largest: int, discounts: Floats) -> PairScratch:
    """Allocate the memory for queries of at most `largest` documents."""
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


# --- the pairs to visit


@helper
def fill_labels(query: RankedQuery, labels: Float32s, scratch: PairScratch) -> Any:
    """Fill in the labels by rank, NaN after the last, and the lists of vectors; return the number of possible rows.

    Most documents have the same label, usually that of the lowest one. A document with this label only has pairs in
    vectors that hold another label. Ranks after the last document with another label have no pairs below them.
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
            label_lanes = load_lanes(buffer, base + LABEL * FIELD + vector * LANES)
            if any_lanes(label_lanes > common) or any_lanes(label_lanes < common):
                vectors[U(MIXED), U(number * VECTORS + n_mixed)] = vector
                n_mixed += 1
                last = first + vector * LANES
        n_vectors[U(ALL), U(number)], n_vectors[U(MIXED), U(number)] = n_all, n_mixed
    if last < 0:
        return 0
    return last + _ranks_to_other_label(buffer, last, labels[U(start + ranked[U(lowest)])])


@helper
def _ranks_to_other_label(buffer: Float32s, first: Int, common: Any) -> Any:
    """Return the number of ranks of a vector up to its last label that differs from the common one; one must differ."""
    at = first // TILE * N_FIELDS * FIELD + first % TILE + LABEL * FIELD
    count = LANES
    while not (buffer[U(at + count - 1)] > common or buffer[U(at + count - 1)] < common):
        count -= 1
    return count


# --- the fields of each document


@helper
def fill_powers(query: RankedQuery, sigma: float, scratch: PairScratch) -> None:
    """Fill in e^{σs} by loops that vectorize: 2^k times a polynomial in the rest r, |r| ≤ ln 2 / 2.

    2^k is computed by setting the exponent bits. The error of the Taylor polynomial of degree 10 is below 1e-12, five
    digits beyond single precision. The padding is filled too, because it must not contain infinite values.
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
    """Fill in scores minus their middle, which single precision represents better; the padding has the lowest score."""
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
    """Fill in the gains, divided by the norm."""
    inlined()
    n, start, ranked = query.n, query.start, query.ranked
    inverse = 1.0 / query.norm
    for first in range(0, n, TILE):
        gain, count = U(first // TILE * N_FIELDS * FIELD + GAIN * FIELD), min(TILE, n - first)
        for k in range(U(count)):
            buffer[gain + k] = f32(values[U(start + ranked[U(first) + k])] * inverse)


@helper
def fill_field(query: RankedQuery, field: Int, values: Float32s, buffer: Float32s) -> None:
    """Fill in a field whose values are stored by place: roots of weights, groups or trusts."""
    n, start, ranked = query.n, query.start, query.ranked
    for first in range(0, n, TILE):
        at, count = U(first // TILE * N_FIELDS * FIELD + field * FIELD), min(TILE, n - first)
        for k in range(U(count)):
            buffer[at + k] = values[U(start + ranked[U(first) + k])]


# --- sums


@helper
def set_from_tiles(n: Int, buffer: Float32s, gradients: Floats, hessians: Floats) -> None:
    """Set the sums in double precision to those of the tiles, and reset the tiles to 0."""
    inlined()
    zero = all_lanes(f32(0.0))
    for first in range(0, n, LANES):
        at, base = U(first), first // TILE * N_FIELDS * FIELD + first % TILE
        gradient, hessian = U(base + GRADIENT * FIELD), U(base + HESSIAN * FIELD)
        for k in range(U(LANES)):
            gradients[at + k] = buffer[gradient + k]
            hessians[at + k] = buffer[hessian + k]
        store_lanes(buffer, base + GRADIENT * FIELD, zero)
        store_lanes(buffer, base + HESSIAN * FIELD, zero)


@helper
def add_from_tiles(first_row: Int, n: Int, buffer: Float32s, gradients: Floats, hessians: Floats) -> None:
    """Add the sums of the tiles from the first row on to those in double precision, and reset the tiles to 0."""
    inlined()
    zero = all_lanes(f32(0.0))
    for first in range(first_row // LANES * LANES, n, LANES):
        at, base = U(first), first // TILE * N_FIELDS * FIELD + first % TILE
        gradient, hessian = U(base + GRADIENT * FIELD), U(base + HESSIAN * FIELD)
        for k in range(U(LANES)):
            gradients[at + k] += buffer[gradient + k]
            hessians[at + k] += buffer[hessian + k]
        store_lanes(buffer, base + GRADIENT * FIELD, zero)
        store_lanes(buffer, base + HESSIAN * FIELD, zero)
