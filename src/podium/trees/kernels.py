"""Compiled loops of the tree engine.

Bins are uint8: 0 for a missing value, 1 … k for values. They lie in blocks of 16 features, row by row, so
that a block's histogram (16 × 256 cells) stays in the cache nearest the core while rows stream past.

A histogram cell sums packed words: gradient · 2^32 + curvature, both as integers, in one int64. With
Σ|gradient| < 2^31 and Σ curvature < 2^32 over all rows (`quantised`), no partial sum can leave its field:
for any set of rows |Σ gradient| ≤ Σ|gradient|, and the curvature, never negative, stays below 2^32, so
that nothing is borrowed from the field above. Integer sums are exact: their order does not matter.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.kernels import helper, kernel

BLOCK = 16  # features in a block
CELLS = 256  # cells of a feature's histogram
MISSING = 0  # the bin of a missing value

LEAST_SQUARES, NEWTON = 0, 1  # ways to score a split

# What a split is, one float64 each (`best_split`).
GAIN, FEATURE, BIN, MISSING_LEFT, LEFT_SUM, LEFT_COUNT, N_SPLIT = 0, 1, 2, 3, 4, 5, 6

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Int = Any  # an integer, compiled as int64


@kernel
def bin_column(values: NDArray[np.float32], cuts: NDArray[np.float32], bins: NDArray[np.uint8]) -> None:
    """1 + the number of cuts below each value; 0 for NaN. `bins` may have a stride."""
    n_cuts = len(cuts)
    for row in range(len(values)):
        x = values[row]
        if np.isnan(x):
            bins[row] = MISSING
            continue
        low, high = 0, n_cuts
        while low < high:
            middle = (low + high) // 2
            if cuts[middle] < x:
                low = middle + 1
            else:
                high = middle
        bins[row] = low + 1


@kernel
def bin_categories(values: NDArray[np.float32], known: NDArray[np.float32], bins: NDArray[np.uint8]) -> None:
    """1 + the place of each value among the known ones (sorted); 0 for NaN and for unknown values."""
    for row in range(len(values)):
        place = np.searchsorted(known, values[row])
        found = place < len(known) and known[place] == values[row]
        bins[row] = place + 1 if found else MISSING


@kernel
def pack(gradients: Floats, curvatures: Floats, by_gradient: float, by_curvature: float, words: Ints) -> None:
    """Round to integers and pack: gradient · 2^32 + curvature."""
    for row in range(len(words)):
        gradient = np.int64(np.rint(gradients[row] * by_gradient))
        curvature = np.int64(np.rint(curvatures[row] * by_curvature))
        words[row] = (gradient << 32) + curvature


@helper
def _gradient(word: Int) -> Int:
    return word >> 32


@helper
def _curvature(word: Int) -> Int:
    return word & 0xFFFFFFFF


@kernel
def fill_histogram(
    bins: NDArray[np.uint8], rows: NDArray[np.int32], words: Ints, sums: Ints, counts: NDArray[np.int32]
) -> None:
    """The histograms of one block of features over some rows."""
    sums[:] = 0
    counts[:] = 0
    for k in range(len(rows)):
        row = np.int64(rows[k])
        word = words[row]
        for feature in range(BLOCK):
            cell = feature * CELLS + np.int64(bins[row, feature])
            sums[cell] += word
            counts[cell] += 1


@kernel
def partition(
    bins: NDArray[np.uint8], goes_left: NDArray[np.bool_], rows: NDArray[np.int32], spare: NDArray[np.int32]
) -> Int:
    """Put the rows whose bin goes left first, both sides in the order they had; how many go left."""
    left, right = 0, 0
    for k in range(len(rows)):
        row = rows[k]
        if goes_left[bins[row]]:
            rows[left] = row
            left += 1
        else:
            spare[right] = row
            right += 1
    rows[left:] = spare[:right]
    return left


@helper
def _score(word: Int, count: Int, mode: Int, to_gradient: float, to_curvature: float, l2: float) -> Any:
    """G²/n (least squares) or G²/(H + l2) (Newton) of a set of rows."""
    gradient = _gradient(word) * to_gradient
    if mode == LEAST_SQUARES:
        return gradient * gradient / max(count, 1)
    # A curvature that rounds to nothing counts as one unit, the finest that the integers resolve.
    return gradient * gradient / (max(_curvature(word), 1) * to_curvature + l2)


@helper
def _value(word: Int, to_gradient: float, to_curvature: float, l2: float, low: float, high: float) -> Any:
    """The Newton value of a leaf, within its bounds."""
    value = _gradient(word) * to_gradient / (max(_curvature(word), 1) * to_curvature + l2)
    return min(max(value, low), high)


@helper
def _consider(
    best: Floats, scored: tuple[Any, ...], feature: Int, bin_: Int, missing_left: Int,
    word: Int, count: Int, total: Int, n: Int, direction: Int, bounds: tuple[float, float],
) -> bool:  # fmt: skip
    """Take the split if it is allowed and better than the best so far."""
    mode, to_gradient, to_curvature, l2, fewest = scored
    if count < fewest or n - count < fewest:
        return False
    if direction != 0:
        left = _value(word, to_gradient, to_curvature, l2, bounds[0], bounds[1])
        right = _value(total - word, to_gradient, to_curvature, l2, bounds[0], bounds[1])
        if (right - left) * direction < 0.0:
            return False
    gain = _score(word, count, mode, to_gradient, to_curvature, l2)
    gain += _score(total - word, n - count, mode, to_gradient, to_curvature, l2)
    if gain <= best[GAIN]:
        return False
    best[GAIN], best[FEATURE], best[BIN], best[MISSING_LEFT] = gain, feature, bin_, missing_left
    best[LEFT_COUNT] = count
    return True


@kernel
def best_split(
    sums: Ints,
    counts: NDArray[np.int32],
    features: Ints,
    n_bins: Ints,
    is_categorical: NDArray[np.bool_],
    monotone: Ints,
    total: Int,
    n: Int,
    mode: Int,
    to_gradient: float,
    to_curvature: float,
    l2: float,
    fewest: Int,
    low: float,
    high: float,
    best: Floats,
    left_sum: Ints,
    mask: NDArray[np.bool_],
) -> None:
    """The split with the highest score over the given features of one leaf.

    Candidates are tried in the order of features, of bins, and with missing values on the right before the
    left; a later one must be better, not equal. `mask` gets the bins of a categorical split's left side.
    """
    parent = _score(total, n, mode, to_gradient, to_curvature, l2)
    scored = (mode, to_gradient, to_curvature, l2, fewest)
    bounds = (low, high)
    best[GAIN], best[FEATURE] = parent * (1.0 + 1e-12) + 1e-300, -1.0
    order = np.empty(CELLS, np.int64)
    means = np.empty(CELLS)
    for feature in features:
        start = (feature // BLOCK) * BLOCK * CELLS + (feature % BLOCK) * CELLS
        missing_word, missing_count = sums[start], np.int64(counts[start])
        k = n_bins[feature]
        if is_categorical[feature]:
            present = 0
            for b in range(1, k + 1):
                if counts[start + b] > 0:
                    word = sums[start + b]
                    weight = counts[start + b] * 1.0
                    if mode == NEWTON:
                        weight = max(_curvature(word), 1) * to_curvature + l2
                    means[present] = _gradient(word) * to_gradient / weight
                    order[present] = b
                    present += 1
            ranked = np.argsort(-means[:present], kind="mergesort")  # equal means in the order of bins
            word, count = np.int64(0), np.int64(0)
            for place in range(present):
                b = order[ranked[place]]
                word += sums[start + b]
                count += np.int64(counts[start + b])
                # Missing and unknown categories stay on the right.
                if _consider(best, scored, feature, b, 0, word, count, total, n, 0, bounds):
                    left_sum[0] = word
                    mask[:] = False
                    for p in range(place + 1):
                        mask[order[ranked[p]]] = True
            continue
        direction = monotone[feature]
        word, count = np.int64(0), np.int64(0)
        for b in range(1, k + 1):
            word += sums[start + b]
            count += np.int64(counts[start + b])
            if b == k and missing_count == 0:
                continue
            if _consider(best, scored, feature, b, 0, word, count, total, n, direction, bounds):
                left_sum[0] = word
            if missing_count > 0 and 0 < count and b < k:  # missing values alone go right, said once
                both, many = word + missing_word, count + missing_count
                if _consider(best, scored, feature, b, 1, both, many, total, n, direction, bounds):
                    left_sum[0] = both
    best[GAIN] -= parent


@kernel
def sum_rows(rows: NDArray[np.int32], fixed: Ints) -> Int:
    """The sum of a column of integers over some rows."""
    total = np.int64(0)
    for row in rows:
        total += fixed[row]
    return total
