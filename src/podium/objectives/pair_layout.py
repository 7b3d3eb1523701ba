"""How the pair kernel sees the documents of a query: by rank, in tiles of float32 fields."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.core.compiling import helper
from podium.core.intrinsics import borrowed, not_inlined
from podium.core.simd import LANES
from podium.measures.swap_deltas import N_COLUMNS

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Ints = NDArray[np.int64]
Places = NDArray[np.int32]
Int = Any  # an integer, compiled as int64
f32 = np.float32
U: Any = np.uintp  # an index that cannot be negative needs no check for it

GROUPS, TRUSTS = 0, 1  # rows of the extras
TILE = 1024  # documents of a tile
FIELD = TILE + LANES  # from one field of a tile to the next; not a power of two, which would crowd the cache's sets
# The fields: e^{σs}, label, rank, root of the weight, score, gain, discount, |ΔZ|, sums of λ and of w, the group within
# which pairs count, and the weight of a pair whose better document this is.
POWER, LABEL, RANK, ROOT, SCORE, GAIN, DISCOUNT, DELTA, GRADIENT, HESSIAN, GROUP, TRUST, N_FIELDS = range(13)
INVERSE_FACTORIALS = tuple(1.0 / math.factorial(k) for k in range(11))


class Documents(NamedTuple):
    """The documents of all queries.

    Attributes:
        order: the rows of each query in the canonical order; a document's place is its number there.
        offsets: where each query begins.
        ranked: the places of each query's documents by rank, as the last round left them.
        labels, roots: by place; the roots are those of document weights.
        query_weights: of each query.

    """

    order: Ints
    offsets: Ints
    ranked: Places
    labels: Singles
    roots: Singles
    query_weights: Floats


class Query(NamedTuple):
    """One query.

    Attributes:
        n, start: its documents have the places start … start + n − 1 of all.
        ranked: by rank the document's place in the query.
        scores: by rank.
        norm: of the measure.

    """

    n: Any
    start: Any
    ranked: Any
    scores: Any
    norm: Any


class Scratch(NamedTuple):
    """What the kernel writes into, for the largest query.

    Attributes:
        buffer: the tiles.
        columns: what swap deltas need of each rank (`podium.measures.swap_deltas`).
        scores, spare_scores, spare_places: for sorting.
        powers: e^{σs}.
        gradients, hessians: sums in double precision, by rank.

    """

    buffer: Singles
    columns: Floats
    scores: Floats
    spare_scores: Floats
    spare_places: Places
    powers: Floats
    gradients: Floats
    hessians: Floats


def scratch_for(largest: int) -> Scratch:
    """For queries of at most so many documents."""
    tiles = -(-largest // TILE)
    scores, spare, powers, gradients, hessians = (np.empty(largest) for _ in range(5))
    buffer = np.empty(tiles * N_FIELDS * FIELD, np.float32)
    columns = np.empty((N_COLUMNS, largest + 3 * LANES))
    return Scratch(buffer, columns, scores, spare, np.empty(largest, np.int32), powers, gradients, hessians)


@helper
def exponentials(x: Floats, powers: Floats, bits: Ints) -> None:
    """e^x for |x| < 700, as a loop that vectorises: 2^k times a polynomial in the rest, |r| ≤ ln 2 / 2.

    `bits` must be the memory of `powers`: a power of two is its exponent in the right bits. The Taylor polynomial of
    degree 10 errs by less than 1e-12, five digits beyond single precision.
    """
    for j in range(len(x)):
        bits[j] = (np.int64(np.int32(np.rint(x[j] * 1.4426950408889634))) + 1023) << 52
    for j in range(len(x)):
        r = x[j] - np.rint(x[j] * 1.4426950408889634) * 0.6931471805599453
        p = INVERSE_FACTORIALS[10] * r + INVERSE_FACTORIALS[9]
        p = p * r + INVERSE_FACTORIALS[8]
        p = p * r + INVERSE_FACTORIALS[7]
        p = p * r + INVERSE_FACTORIALS[6]
        p = p * r + INVERSE_FACTORIALS[5]
        p = p * r + INVERSE_FACTORIALS[4]
        p = p * r + INVERSE_FACTORIALS[3]
        p = p * r + INVERSE_FACTORIALS[2]
        p = p * r + 1.0
        powers[j] *= p * r + 1.0


@helper
def fill_tiles(
    query: Query, documents: Documents, sigma: float, near: bool, weighted: bool, extras: Singles | None,
    scratch: Scratch,
) -> None:  # fmt: skip
    """Fill the tiles with the documents of a query, by rank; the labels of the padding are NaN.

    Where scores are not near each other, nobody looks at e^{σs}.
    """
    not_inlined()
    n, start, ranked, scores = query.n, query.start, query.ranked, query.scores
    labels, roots = borrowed(documents.labels), borrowed(documents.roots)
    buffer, powers = borrowed(scratch.buffer), borrowed(scratch.powers)
    middle = 0.5 * (scores[0] + scores[n - 1])
    if near:
        exponents = scratch.columns[N_COLUMNS - 1]
        for r in range(n):
            exponents[r] = sigma * (scores[r] - middle)
        exponentials(exponents[:n], powers[:n], powers.view(np.int64)[:n])
    for first in range(0, n, TILE):
        base, count = first // TILE * N_FIELDS * FIELD, min(TILE, n - first)
        label, root, rank = U(base + LABEL * FIELD), U(base + ROOT * FIELD), U(base + RANK * FIELD)
        score, power = U(base + SCORE * FIELD), U(base + POWER * FIELD)
        for k in range(U(count)):
            buffer[label + k] = labels[U(start + ranked[U(first) + k])]
        if weighted:
            for k in range(U(count)):
                buffer[root + k] = roots[U(start + ranked[U(first) + k])]
        if extras is not None:
            group, trust = U(base + GROUP * FIELD), U(base + TRUST * FIELD)
            for k in range(U(count)):
                place = U(start + ranked[U(first) + k])
                buffer[group + k], buffer[trust + k] = extras[U(GROUPS), place], extras[U(TRUSTS), place]
        for k in range(U(count)):
            buffer[score + k] = f32(scores[U(first) + k] - middle)
            buffer[power + k] = f32(powers[U(first) + k])
            buffer[rank + k] = f32(np.int32(U(first) + k))
        end = (count + LANES - 1) // LANES * LANES
        for k in range(U(count), U(end)):
            buffer[label + k], buffer[score + k], buffer[power + k] = f32(np.nan), f32(0.0), f32(1.0)
        gradient, hessian = U(base + GRADIENT * FIELD), U(base + HESSIAN * FIELD)
        for k in range(U(end)):
            buffer[gradient + k], buffer[hessian + k] = f32(0.0), f32(0.0)


@helper
def fill_gains(query: Query, values: Floats, discounts: Floats, buffer: Singles) -> None:
    """Gains, divided by the norm, and discounts of each rank."""
    not_inlined()
    n, start, ranked = query.n, query.start, query.ranked
    inverse, depth = 1.0 / query.norm, len(discounts)
    for first in range(0, n, TILE):
        base, count = first // TILE * N_FIELDS * FIELD, min(TILE, n - first)
        gain, discount = U(base + GAIN * FIELD), U(base + DISCOUNT * FIELD)
        for k in range(U(count)):
            buffer[gain + k] = f32(values[U(start + ranked[U(first) + k])] * inverse)
        n_discounted = min(count, max(depth - first, 0))
        for k in range(U(n_discounted)):
            buffer[discount + k] = f32(discounts[U(first) + k])
        for k in range(U(n_discounted), U(count)):
            buffer[discount + k] = f32(0.0)


@helper
def add_tiles(n: Int, buffer: Singles, gradients: Floats, hessians: Floats) -> None:
    """Move the sums of the tiles to double precision."""
    for first in range(0, n, TILE):
        base, count = first // TILE * N_FIELDS * FIELD, min(TILE, n - first)
        gradient, hessian = U(base + GRADIENT * FIELD), U(base + HESSIAN * FIELD)
        for k in range(U(count)):
            gradients[U(first) + k] += buffer[gradient + k]
            hessians[U(first) + k] += buffer[hessian + k]
            buffer[gradient + k], buffer[hessian + k] = f32(0.0), f32(0.0)
