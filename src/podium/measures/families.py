"""Families of measures: what gradients and the sweep over α ask a measure for.

Both need, for millions of pairs, how a measure changes when two documents swap ranks. Compiled code cannot call a
method, so measures of the same shape share compiled helpers, a *family*, and each gives its own lookup tables:

    measure.lookup_tables(labels, offsets) -> LookupTables(family, values, norms, …)

`discounted.py`, `blended.py` and `cascade.py` are the families: a base class with the batch kernel, the rows of swap
deltas, and the helpers for gradients and for the sweep. A measure that fits none has no tables: everything works for
it through `Measure.value`, only slowly. The codes are declared only here. `family_kernels.py` chooses the helper by
the code.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from podium.core.array_types import Floats

ONES = 0  # no measure: every pair counts the same
DISCOUNTED = 1  # Σ gain · discount / norm: DCG and NDCG, precision, recall, F1, RBP
BLENDED = 2  # Σ rel_r (sum of bonuses down to r) / divisor_r / norm: AP, Q-measure
CASCADE = 3  # Σ (1/divisor_r) R_r Π (1 − R): ERR, RR, success, PFound
BY_SWAPS = 4  # no family: swap deltas come from `Measure.swaps`
LAMBDALOSS = 5  # DISCOUNTED with the second term of NDCG-Loss2++ (`podium.objectives.LambdaLoss`)


class LookupTables(NamedTuple):
    """The lookup tables of a measure on some data, for documents in a given order of each query.

    Attributes:
        family: the code.
        values: for each document: its gain, its bonus, or the probability that it stops the user.
        norms: for each query what its sum is divided by; 0 where there is nothing to gain.
        discounts: by rank, as far as they are not 0 (DISCOUNTED).
        divisors: for each query by rank, laid out as documents are (BLENDED, CASCADE).
        bonuses_differ: whether relevant documents differ in their values (BLENDED).
        depth: the ranks that count.
        mu: the weight of the second term (LAMBDALOSS).

    Example:
        >>> import numpy as np
        >>> from podium.measures import NDCG
        >>> tables = NDCG(2).lookup_tables(np.array([2.0, 0.0, 1.0]), np.array([0, 3]))
        >>> tables.values.tolist(), tables.norms.round(3).tolist(), tables.depth
        ([3.0, 0.0, 1.0], [3.631], 2)

    """

    family: int
    values: Floats
    norms: Floats
    discounts: Floats
    divisors: Floats
    bonuses_differ: bool
    depth: int
    mu: float


def lookup_tables(
    family: int,
    values: Floats,
    norms: Floats,
    cutoff: int | None = None,
    *,
    discounts: Floats | None = None,
    divisors: Floats | None = None,
    bonuses_differ: bool = False,
) -> LookupTables:
    """Tables with what the family does not need left empty."""
    depth = cutoff or max(len(values), 1)
    if discounts is not None:
        depth = len(discounts)
    empty = np.empty(0)
    return LookupTables(
        family, values, norms, empty if discounts is None else discounts, empty if divisors is None else divisors,
        bonuses_differ, depth, 0.0,
    )  # fmt: skip


class Span(NamedTuple):
    """Some neighbouring ranks whose swap deltas with one rank are written into a buffer."""

    at: Any  # the place of rank `first` in the buffer
    # a, b: the ranks are first + a … first + b − 1
    a: Any
    b: Any
    first: Any  # the rank of the buffer's first document
