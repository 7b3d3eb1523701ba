"""Bounds of the scores of splits, in single precision: only features that may have the best one are scored exactly."""

from __future__ import annotations

from typing import Any

import numpy as np

from podium.core.array_types import Int, Ints
from podium.core.compiling import helper
from podium.core.intrinsics import inlined, not_inlined
from podium.core.simd import (
    LANES,
    WORDS,
    all_lanes,
    all_words,
    choose_lanes,
    cumulated,
    highest_lane,
    last_word,
    load_words,
    lower_halves,
    upper_halves,
)
from podium.trees.layout import BOUNDED, FeatureShare, FeatureTable, Limits, N, Records, U
from podium.trees.quantization import weight_of

SLACK = 1.0 + 4e-6  # times a score in single precision is above the exact one
MAX_L2, MAX_MINIMUM = 2.0**60, 2**24  # beyond these, single precision would overflow or miscount
WRAPPED = 2.0**32  # what a weight from 2^31 on lacks, which is taken for a negative number


@helper
def can_be_bounded(minimum: Int, limits: Limits) -> bool:
    """Whether single precision is enough."""
    can: bool = limits.l2 < MAX_L2 and minimum < MAX_MINIMUM
    return can


@helper
def _weights(first: Any, second: Any, is_heavy: bool) -> Any:
    """The weights of the words of two vectors; whether some may be 2^31 or more."""
    inlined()
    weights = lower_halves(first, second)
    if is_heavy:
        negative = all_lanes(np.float32(0.0)) > weights
        weights = choose_lanes(negative, weights + all_lanes(np.float32(WRAPPED)), weights)
    return weights


@helper
def bound_numbers(
    cells: Ints, total: Int, features: FeatureTable, own: FeatureShare, minimum: Int, l2: float, splits: Records
) -> None:
    """A bound of the scores of each feature that is a number without a direction: they are not higher; −1 for none.

    The scores of `score_splits` in single precision, 16 at a time: one of each range of bins (`feature_layout`). First
    the totals of the ranges are cumulated, then the words of all ranges at the same time. All terms are positive and
    come from integers, so the rounding of some ten operations is all that is lost: `SLACK`.

    The missing values are the first cell; less all of it before, or with it, they go right or left. A split that is
    looked at twice (missing values alone on a side) has the same score twice. One with nothing on a side has that of
    the leaf, or NaN where l2 is 0, which is above nothing; with a minimum that is above 1 it has none.
    """
    not_inlined()
    lightest, added, none = all_lanes(np.float32(minimum)), all_lanes(np.float32(l2)), all_lanes(np.float32(-1.0))
    everything, has_minimum, is_heavy = all_words(total), minimum > 1, 2.0 * weight_of(total) >= WRAPPED
    for number in range(U(own.first), U(own.last)):
        feature = U(features.scanned[number])
        first = features.first_cell[feature]
        end, missing = first + features.n_cells[feature], cells[U(first)]
        low, high = all_words(N(0)), all_words(N(0))  # of the lower and the upper eight ranges
        for at in range(first, end, LANES):
            low, high = low + load_words(cells, at), high + load_words(cells, at + WORDS)
        sums = cumulated(low)
        low, high = sums - low, cumulated(high) - high + last_word(sums)  # what is in the ranges before each
        best, added_missing = none, all_words(-missing)
        for _ in range(2 if np.uint32(missing) > 0 else 1):
            one, two = low + added_missing, high + added_missing
            for at in range(first, end, LANES):
                one, two = one + load_words(cells, at), two + load_words(cells, at + WORDS)
                gl, wl = upper_halves(one, two), _weights(one, two, is_heavy)
                right, right_two = everything - one, everything - two
                gr, wr = upper_halves(right, right_two), _weights(right, right_two, is_heavy)
                hl, hr = wl + added, wr + added
                score = (gl * gl * hr + gr * gr * hl) / (hl * hr)
                if has_minimum:
                    score = choose_lanes(lightest > wl, none, choose_lanes(lightest > wr, none, score))
                best = choose_lanes(score > best, score, best)
            added_missing = all_words(N(0))
        split = splits[feature]
        split.score, split.precision = SLACK * np.float64(highest_lane(best)), N(BOUNDED)
