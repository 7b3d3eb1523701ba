"""Bounds of the scores of splits, in single precision: only features that may have the best one are scored exactly."""

from __future__ import annotations

import numpy as np

from podium.core.compiling import helper
from podium.core.intrinsics import not_inlined
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
from podium.trees.layout import BOUNDED, FeatureShare, FeatureTable, Int, Ints, Limits, N, Record, Records, U
from podium.trees.quantization import weight_of

SLACK = 1.0 + 4e-6  # times a score in single precision is above the exact one
# Beyond these, single precision would overflow, miscount, or take a weight for negative; the last is so for the root.
MAX_L2, MAX_MINIMUM, MAX_WEIGHT = 2.0**60, 2**24, 2.0**31


@helper
def can_be_bounded(leaf: Record, minimum: Int, limits: Limits) -> bool:
    """Whether single precision is enough for the numbers of a leaf."""
    can: bool = limits.l2 < MAX_L2 and minimum < MAX_MINIMUM and weight_of(leaf.total) < MAX_WEIGHT
    return can


@helper
def bound_numbers(
    cells: Ints, total: Int, features: FeatureTable, own: FeatureShare, minimum: Int, l2: float, splits: Records
) -> None:
    """A bound of the scores of each feature that is a number without a direction: they are not higher; −1 for none.

    The scores of `score_splits` in single precision, 16 at a time in one pass: words are cumulated in the vector. All
    terms are positive and come from integers, so the rounding of some ten operations is all that is lost: `SLACK`.

    The missing values are the first cell; less all of it before, or with it, they go right or left. A split that is
    looked at twice (missing values alone on a side) has the same score twice, and one with nothing on a side is none.
    """
    not_inlined()
    lightest, added, none = all_lanes(np.float32(minimum)), all_lanes(np.float32(l2)), all_lanes(np.float32(-1.0))
    everything = all_words(total)
    for number in range(U(own.first), U(own.last)):
        feature = U(features.scanned[number])
        first = features.first_cell[feature]
        end, missing = first + features.n_cells[feature], cells[U(first)]
        best, carry = none, all_words(-missing)
        for _ in range(2 if np.uint32(missing) > 0 else 1):
            for at in range(first, end, LANES):
                one, two = cumulated(load_words(cells, at)), cumulated(load_words(cells, at + WORDS))
                one, two = one + carry, two + (last_word(one) + carry)
                carry = last_word(two)
                gl, wl = upper_halves(one, two), lower_halves(one, two)
                one, two = everything - one, everything - two
                gr, wr = upper_halves(one, two), lower_halves(one, two)
                hl, hr = wl + added, wr + added
                score = (gl * gl * hr + gr * gr * hl) / (hl * hr)
                score = choose_lanes(lightest > wl, none, choose_lanes(lightest > wr, none, score))
                best = choose_lanes(score > best, score, best)
            carry = all_words(N(0))
        split = splits[feature]
        split.score, split.precision = SLACK * np.float64(highest_lane(best)), N(BOUNDED)
