"""Compiled helpers chosen by a family's code: swap deltas for gradients, contributions for the sweep over α.

For |ΔZ| in the pair kernel, `…_columns` fills in the columns of all ranks, once for each query, and `…_deltas` writes
|ΔZ| of one rank with others below it. DISCOUNTED has neither, because the pair kernel multiplies gains and discounts.

In the sweep, neighbours swap ranks. A family computes the contribution of the document at a rank to the measure, given
the documents before it. Documents with equal scores for every α move as one group, which contributes the mean over
their orders.
"""

from __future__ import annotations

from podium.core.array_types import Float32s, Floats, Int, Int32s, Number
from podium.core.compiling import helper
from podium.core.intrinsics import inlined, not_inlined
from podium.measures.blended import (
    blended_columns,
    blended_deltas,
    blended_group_contribution,
    blended_group_value,
)
from podium.measures.cascade import (
    cascade_columns,
    cascade_deltas,
    cascade_group_contribution,
    cascade_group_value,
)
from podium.measures.families import BLENDED, CASCADE, DISCOUNTED, Span

N_COLUMNS = 5  # numbers kept for each rank: columns[k, rank]


@helper
def fill_columns(
    family: Int, n: Int, ranked: Int32s, values: Floats, divisors: Floats, depth: Int, columns: Floats
) -> None:
    """Fill in the columns of the n ranks of a query; `ranked` has the index of the value at each rank."""
    if family == BLENDED:
        blended_columns(n, ranked, values, divisors, depth, columns)
    elif family == CASCADE:
        cascade_columns(n, ranked, values, divisors, depth, columns)


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
    """Write |ΔZ| of rank i with the ranks of the span to buffer[span.at + span.a …]."""
    inlined()
    if family == BLENDED:
        blended_deltas(i, span, norm, bonuses_differ, columns, buffer)
    elif family == CASCADE:
        cascade_deltas(i, span, n, depth, columns, buffer)


@helper
def before_all(family: Int) -> Number:
    """Return the state before the first rank: a sum of 0, or a probability of 1 that the user reads on."""
    return 1.0 if family == CASCADE else 0.0


@helper
def before_next(family: Int, before: Number, value: Number) -> Number:
    """Return the state before the next rank: the sum of values, or the probability that the user reads on."""
    return before * (1.0 - value) if family == CASCADE else before + value


@helper
def contribution(family: Int, value: Number, before: Number, rank: Int, discounts: Floats, divisors: Floats) -> Number:
    """Return the contribution of a document at a rank (from 0), before the division by the norm."""
    if family == DISCOUNTED:
        return value * discounts[rank]
    if family == BLENDED:
        return (before + value) / divisors[rank] if value > 0.0 else 0.0
    assert family == CASCADE
    return value * (before / divisors[rank])


@helper
def group_value(family: Int, start: Int, size: Int, values: Floats, group: Floats) -> Number:
    """Return the combined value of tied documents; write further values to group[start : start + size].

    If gains add up (DISCOUNTED), the documents stay separate, each with the mean gain.
    """
    if family == BLENDED:
        return blended_group_value(start, size, values, group)
    if family == CASCADE:
        return cascade_group_value(start, size, values, group)
    total = 0.0
    for k in range(size):
        total += values[start + k]
    return total / size


@helper
def group_contribution(
    family: Int, value: Number, before: Number, rank: Int, size: Int, n_counted: Int, start: Int, group: Floats,
    divisors: Floats,
) -> Number:  # fmt: skip
    """Return the mean contribution of tied documents over their orders; the first n_counted positions count."""
    not_inlined()
    if family == BLENDED:
        return blended_group_contribution(value, before, rank, size, n_counted, group[start], divisors)
    assert family == CASCADE
    return cascade_group_contribution(before, rank, n_counted, start, group, divisors)
