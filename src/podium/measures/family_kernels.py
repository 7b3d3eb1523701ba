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
from podium.measures.blended import blended_columns, blended_deltas
from podium.measures.cascade import cascade_columns, cascade_deltas
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

    The value is the mean gain if gains add up (DISCOUNTED), so that documents stay separate, the sum of the bonuses
    (BLENDED), or the probability that one of the documents stops the user (CASCADE).
    """
    if size == 1 and family == CASCADE:
        return values[start]
    total, n_relevant = 0.0, 0.0
    for k in range(size):
        total += values[start + k]
        n_relevant += 1.0 if values[start + k] > 0.0 else 0.0
    if family == BLENDED:
        group[start] = n_relevant
        return total
    if family == DISCOUNTED:
        return total / size
    assert family == CASCADE
    # E_i is the mean product of (1 − R) over all choices of i documents. The m-th document adds its x = 1 − R:
    # E_i = ((m−i) E_i + i x E_{i−1}) / m.
    for k in range(size):
        group[start + k] = 0.0
        for i in range(k, -1, -1):
            less = group[start + i - 1] if i > 0 else 1.0
            group[start + i] = ((k - i) * group[start + i] + (i + 1) * (1.0 - values[start + k]) * less) / (k + 1)
    return 1.0 - group[start + size - 1]


@helper
def group_contribution(
    family: Int, value: Number, before: Number, rank: Int, size: Int, n_counted: Int, start: Int, group: Floats,
    divisors: Floats,
) -> Number:  # fmt: skip
    """Return the mean contribution of tied documents over their orders; the first n_counted positions count."""
    not_inlined()
    total = 0.0
    if family == BLENDED:
        mean = value / group[start] if group[start] > 0.0 else 1.0
        step = mean * ((group[start] - 1.0) / (size - 1.0))
        for k in range(n_counted):
            total += (before + mean + k * step) / divisors[rank + k]
        return total * (group[start] / size)
    assert family == CASCADE
    above = 1.0  # Σ_k P (E_{k−1} − E_k) / D_k
    for k in range(n_counted):
        total += (above - group[start + k]) / divisors[rank + k]
        above = group[start + k]
    return total * before
