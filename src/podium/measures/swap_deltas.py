"""|ΔZ| for the pair kernel: the one place that chooses a family's helpers by its code.

A family gives two helpers. `…_columns` fills, once for each query, what a swap needs of each rank; `…_deltas` writes
|ΔZ| of one rank with others below it. DISCOUNTED has none: the pair kernel multiplies gains and discounts itself.
"""

from __future__ import annotations

from podium.core.array_types import Float32s, Floats, Int, Int32s
from podium.core.compiling import helper
from podium.core.intrinsics import inlined
from podium.measures.blended import blended_columns, blended_deltas
from podium.measures.cascade import cascade_columns, cascade_deltas
from podium.measures.families import BLENDED, CASCADE, Span

N_COLUMNS = 5  # numbers kept for each rank: columns[k, rank]


@helper
def fill_columns(
    family: Int, n: Int, ranked: Int32s, values: Floats, divisors: Floats, depth: Int, columns: Floats
) -> None:
    """What a swap needs of each of the n ranks of a query; `ranked` says which of the query's values has which rank."""
    if family == BLENDED:
        blended_columns(n, ranked, values, divisors, depth, columns)
    elif family == CASCADE:
        cascade_columns(n, ranked, values, depth, columns)


@helper
def write_deltas(
    family: Int,
    i: Int,
    span: Span,
    n: Int,
    depth: Int,
    norm: float,
    bonuses_differ: bool,
    columns: Floats,
    buffer: Float32s,
) -> None:
    """|ΔZ| of rank i with the ranks of the span into buffer[span.at + span.a …]."""
    inlined()
    if family == BLENDED:
        blended_deltas(i, span, norm, bonuses_differ, columns, buffer)
    elif family == CASCADE:
        cascade_deltas(i, span, n, depth, columns, buffer)
