"""Families of measures: compiled helpers that gradients and the sweep over α share.

Both compute, for millions of pairs, how a measure changes when two documents swap ranks. Compiled code cannot call
methods, so measures of the same form share compiled helpers, a *family*, and each measure has its lookup tables:

    measure.lookup_tables(labels, offsets) -> LookupTables(family, values, norms, …)

The families are `discounted.py`, `blended.py` and `cascade.py`, each with a base class, the batch kernel, the rows of
swap deltas, and helpers for gradients and the sweep. A measure that does not belong to a family has no tables.
Everything works for it through `Measure.value`, but slowly. `family_kernels.py` chooses the helpers by the family's
code, which is declared here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from podium.core.array_types import Floats

ONES = 0  # no measure: all pairs count equally
DISCOUNTED = 1  # Σ gain · discount / norm: DCG and NDCG, precision, recall, F1, RBP
BLENDED = 2  # Σ rel_r (sum of bonuses up to r) / divisor_r / norm: AP, Q-measure
CASCADE = 3  # Σ (1/divisor_r) R_r Π (1 − R): ERR, RR, success, PFound
BY_SWAPS = 4  # no family: swap deltas come from `Measure.swaps`
LAMBDALOSS = 5  # DISCOUNTED with the second term of NDCG-Loss2++ (`podium.objectives.LambdaLoss`)


class LookupTables(NamedTuple):
    """The lookup tables of a measure on data, for documents in a given order of each query.

    Attributes:
        family: the code.
        values: the gain or bonus of each document, or the probability that it stops the user.
        norms: the divisor of each query's sum; 0 if the query has nothing to gain.
        discounts: the discounts by rank, up to the last nonzero one (DISCOUNTED).
        divisors: the divisors by rank for each query, in the layout of the documents (BLENDED, CASCADE).
        bonuses_differ: whether relevant documents have different values (BLENDED).
        depth: the number of ranks that count.
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
    """Return lookup tables; those that the family does not need are empty."""
    depth = cutoff or max(len(values), 1)
    if discounts is not None:
        depth = len(discounts)
    empty = np.empty(0)
    return LookupTables(
        family, values, norms, empty if discounts is None else discounts, empty if divisors is None else divisors,
        bonuses_differ, depth, 0.0,
    )  # fmt: skip


class Span(NamedTuple):
    """A range of ranks whose swap deltas with one rank are written to a buffer."""

    at: Any  # the index of rank `first` in the buffer
    # a, b: the ranks are first + a … first + b − 1
    a: Any
    b: Any
    first: Any  # the rank of the buffer's first document
