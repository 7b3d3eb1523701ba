"""Compiled loops of the tree engine. docs/performance.md says what each trick gave.

**Bins** are uint8: 0 for a missing value, 1 … k for values. They lie twice in memory: row by row (`rows`), so that
the documents of a leaf are read with all their features from two or three cache lines, and column by column
(`columns`), for the one feature by which a leaf's documents are parted. Histograms are counted for 16 features at a
time: 16 × 256 cells of 8 bytes stay in the cache nearest the core while the documents stream past.

**A cell** sums packed words, one addition for gradient and weight together: gradient · 2^32 + weight, the weight a
curvature (Newton) or 1 (least squares). With Σ|gradient| < 2^31 and Σ weight < 2^32 over all rows (`quantised`), no
partial sum can leave its field. Integer sums are exact: neither their order nor the number of threads matters.
Every document weighs at least 1, so a weight of 0 says that no document is there.

**A leaf's documents** lie together: from START to SEEN those that are in its histograms, up to END those that thinning
leaves out (`thin`). All are parted and counted; the seen ones decide where to split.

**Threads** grow a tree together: each runs `grow` from beginning to end, works on its share of the features or rows,
and decides nothing alone; between two stages all meet at a barrier. Whatever is decided, each thread decides for
itself from the same numbers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.core.compiling import helper, kernel
from podium.core.intrinsics import borrowed, copy_16_bytes, meet, not_inlined, prefetch
from podium.core.random import keyed_bits, to_unit

BLOCK = 16  # features in a block
CELLS = 256  # cells of a feature's histogram
MISSING = 0  # the bin of a missing value
CHUNK = 1024  # rows that are counted in one go: their words and one block of their bins stay near the core
SHARED = 12288  # documents from which a leaf's rows, not its features, are shared out among threads
AHEAD = 32  # rows between the one that is copied and the one whose cache lines are asked for

SCORED, LOCATED, COUNTED = range(3)  # how well a feature's best split is known
LEADING_BITS = 13  # of an importance, by which documents are counted
# What a leaf is: whole numbers, …
START, SEEN, END, DEPTH, TOTAL, PARENT, IS_LEFT, SLOT, FEATURE, BIN, MISSING_LEFT, LEFT_TOTAL, N_INTS = range(13)
# … and others.
GAIN, LOW, HIGH, N_FLOATS = range(4)

Bytes = NDArray[np.uint8]
Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Rows = NDArray[np.int32]
Int = Any  # an integer, compiled as int64
U: Any = np.uintp  # an index that cannot be negative needs no check for it
N: Any = np.int64  # a helper is compiled anew for each literal that it is called with; N(0) is none


# --- binning


@kernel
def copy_columns(features: NDArray[np.float32], first: Int, columns: NDArray[np.float32]) -> None:
    """The columns from `first` on, each together and with one zero (−0 becomes 0); a cache line is read once."""
    for start in range(0, columns.shape[1], 64):
        for column in range(columns.shape[0]):
            for row in range(start, min(start + 64, columns.shape[1])):
                columns[column, row] = features[row, first + column] + np.float32(0.0)


@kernel
def distinct(ordered: NDArray[np.float32], values: NDArray[np.float32], counts: Ints) -> Int:
    """Distinct values of a sorted column without its NaNs at the end, and how often each occurs; how many."""
    found = 0
    for k in range(len(ordered)):
        if np.isnan(ordered[k]):
            break
        if found == 0 or ordered[k] != values[found - 1]:
            values[found], counts[found] = ordered[k], 0
            found += 1
        counts[found - 1] += 1
    return found


@kernel
def equal_shares(counts: Ints, max_bins: Int, ends: Ints) -> Int:
    """The last value of each bin but the last: at least an equal share of what is left, for the bins left."""
    rest = np.int64(0)
    for value in range(len(counts)):
        rest += counts[value]
    value, found = 0, 0
    for left in range(max_bins, 1, -1):
        share: Any = max(1, rest // left)
        many = np.int64(0)
        while value < len(counts) and many < share:
            many += counts[value]
            value += 1
        if value >= len(counts):
            break
        ends[found] = value - 1
        found += 1
        rest -= many
    return found


@helper
def _bin(x: Any, cuts: NDArray[np.float32], is_category: bool) -> Int:
    """1 + the number of cuts below x, of a category 1 + its place among them; 0 for NaN and what is unknown.

    There are always 256 cuts, the last of them unreachable, and so eight halving steps, without a branch.
    """
    low = np.int64(cuts[127] < x) << 7
    low += np.int64(cuts[U(low + 63)] < x) << 6
    low += np.int64(cuts[U(low + 31)] < x) << 5
    low += np.int64(cuts[U(low + 15)] < x) << 4
    low += np.int64(cuts[U(low + 7)] < x) << 3
    low += np.int64(cuts[U(low + 3)] < x) << 2
    low += np.int64(cuts[U(low + 1)] < x) << 1
    low += np.int64(cuts[U(low)] < x)
    known = x == x and (not is_category or cuts[U(low)] == x)
    return low + 1 if known else MISSING


@kernel
def bin_rows(
    features: NDArray[np.float32], first: Int, last: Int, cuts: NDArray[np.float32],
    is_category: NDArray[np.bool_], width: Int, bins: Bytes,
) -> None:  # fmt: skip
    """The bins of some rows; the cuts of a feature are a row of `cuts`. 256 rows at a time, column by column."""
    cuts = borrowed(cuts)
    for start in range(first, last, 256):
        for feature in range(features.shape[1]):
            mine, kind = cuts[feature], is_category[feature]
            for row in range(start, min(last, start + 256)):
                bins[row * width + feature] = _bin(features[row, feature], mine, kind)


@kernel
def bin_sparse_rows(
    indptr: NDArray[np.int32], indices: NDArray[np.int32], data: NDArray[np.float32], first: Int, last: Int,
    cuts: NDArray[np.float32], is_category: NDArray[np.bool_], zeros: Bytes, width: Int, bins: Bytes,
) -> None:  # fmt: skip
    """The same from compressed sparse rows; `zeros` are the bins of the values that are not there."""
    cuts = borrowed(cuts)
    for row in range(first, last):
        bins[row * width : row * width + len(zeros)] = zeros
        for k in range(indptr[row], indptr[row + 1]):
            feature = indices[k]
            bins[row * width + feature] = _bin(data[k], cuts[feature], is_category[feature])


@kernel
def to_columns(rows: Bytes, n: Int, width: Int, n_features: Int, first: Int, last: Int, columns: Bytes) -> None:
    """Copy some of the rows column by column, 64 rows at a time: as many as a cache line of a column holds."""
    for start in range(first, last, 64):
        for feature in range(n_features):
            for row in range(start, min(start + 64, last)):
                columns[U(feature * n + row)] = rows[U(row * width + feature)]


# --- quantisation


@kernel
def largest_bits(values: Floats, others: Floats) -> tuple[Int, Int]:
    """The bits of the largest |value| of two columns; infinities and NaN are above all numbers, so none goes unseen."""
    first, second = values.view(np.int64), others.view(np.int64)
    largest, other = np.int64(0), np.int64(0)
    for k in range(len(first)):
        largest = max(largest, first[k] & np.int64(0x7FFFFFFFFFFFFFFF))
        other = max(other, second[k] & np.int64(0x7FFFFFFFFFFFFFFF))
    return largest, other


@kernel
def whole_sums(values: Floats, by: float, others: Floats, by_other: float) -> tuple[Int, Int]:
    """Σ |value| · by of two columns, each term rounded to an integer."""
    total, other = np.int64(0), np.int64(0)
    for k in range(len(values)):
        total += np.int64(np.rint(abs(values[k]) * by))
        other += np.int64(np.rint(abs(others[k]) * by_other))
    return total, other


@kernel
def pack(gradients: Floats, curvatures: Floats, by_gradient: float, by_curvature: float, words: Ints) -> Int:
    """Round to integers and pack: gradient · 2^32 + weight, a weight at least 1; the largest weight.

    With `by_curvature` = 0 every weight is 1. A negative curvature gives −1 in place of the largest.
    """
    most, lowest = np.int64(0), np.int64(0)
    for row in range(len(words)):
        gradient = np.int64(np.rint(gradients[row] * by_gradient))
        rounded = np.int64(np.rint(curvatures[row] * by_curvature))
        weight = max(rounded, np.int64(1))
        words[row] = (gradient << 32) + weight
        most = max(most, weight)
        lowest = min(lowest, np.int64(curvatures[row] < 0.0) * -1)
    return most if lowest == 0 else np.int64(-1)


@kernel
def sum_words(words: Ints, rows: Rows) -> Int:
    """The sum of the words of some rows."""
    total = np.int64(0)
    for k in range(len(rows)):
        total += words[rows[k]]
    return total


# --- thinning: splits are sought on a part of the documents, in which light ones stand for their like


@kernel
def importances(
    gradients: Floats, weights: Floats, counting: bool, by_gradient: float, by_weight: float,
    found: NDArray[np.float32], counts: Ints,
) -> Int:  # fmt: skip
    """√(gradient² + weight²) of each document, both scaled, and how many documents have the same leading bits.

    A weight is 1 if they are `counting` documents. What is returned is negative if a weight is.
    """
    lowest = np.int64(0)
    for k in range(len(found)):
        weight = 1.0 if counting else weights[k]
        lowest = min(lowest, np.int64(weight < 0.0) * -1)
        gradient = gradients[k] * by_gradient
        weight *= by_weight
        found[k] = np.float32(math.sqrt(gradient * gradient + weight * weight))
    bits = found.view(np.int32)
    for k in range(len(found)):
        counts[bits[k] >> (31 - LEADING_BITS)] += 1
    return lowest


@helper
def _worth(importance: Any, heavy: float) -> Any:
    """1/p for a document that is seen with the chance p = min(1, importance / heavy)."""
    return max(heavy / np.float64(importance), 1.0)


@kernel
def thin(
    gradients: Floats, weights: Floats, counting: bool, importance: NDArray[np.float32], heavy: float,
    keys: NDArray[np.uint64], seed: Any, first: Int, last: Int, by_gradient: float, by_weight: float, listed: Rows,
) -> tuple[Int, Int, Int]:  # fmt: skip
    """Draw the documents that are seen; how many, and the sums of |gradient|/p and weight/p, as `whole_sums`.

    In the mean these are the sums of all documents. The rows seen are at the front of listed[first:last], rising, the
    others at its end, falling.
    """
    left, right = first, last - 1
    total, weight = np.int64(0), np.int64(0)
    worth = np.empty(CHUNK)
    for start in range(first, last, CHUNK):  # three loops, of which two vectorise
        begin, m = U(start), U(min(CHUNK, last - start))
        for k in range(m):
            share = np.float64(importance[begin + k]) / heavy
            is_seen = to_unit(keyed_bits(keys[begin + k], seed)) < share
            worth[k] = _worth(importance[begin + k], heavy) if is_seen else 0.0
        for k in range(m):
            is_seen = np.int64(worth[k] > 0.0)
            listed[U(left)] = begin + k
            listed[U(right)] = begin + k
            left += is_seen
            right -= 1 - is_seen
        for k in range(m):
            total += np.int64(np.rint(abs(gradients[begin + k]) * worth[k] * by_gradient))
            weight += np.int64(np.rint((1.0 if counting else weights[begin + k]) * worth[k] * by_weight))
    return left - first, total, weight


@kernel
def pack_seen(
    gradients: Floats, weights: Floats, counting: bool, importance: NDArray[np.float32], heavy: float, seen: Rows,
    by_gradient: float, by_weight: float, words: Ints,
) -> Int:  # fmt: skip
    """The same as `pack` for the rows that are seen, each divided by its chance p."""
    most = np.int64(0)
    for k in range(len(seen)):
        row = U(seen[k])
        worth = _worth(importance[row], heavy)
        gradient = np.int64(np.rint(gradients[row] * worth * by_gradient))
        weight = max(np.int64(np.rint((1.0 if counting else weights[row]) * worth * by_weight)), np.int64(1))
        words[row] = (gradient << 32) + weight
        most = max(most, weight)
    return most


@kernel
def put(listed: Rows, a: Int, b: Int, left: Int, rows: Rows, at_left: Int, at_right: Int) -> None:
    """Copy what was parted within listed[a:b], `left` to the left, to two places, all rising."""
    _put(listed, a, b, left, rows, at_left, at_right)


@kernel
def sum_leaves(
    documents: Rows, starts: Ints, ends: Ints, first: Int, last: Int, values: Floats, by: float, others: Floats,
    by_other: float, sums: Ints,
) -> None:  # fmt: skip
    """For some leaves the sums of rint(value · by), of two columns, over their rows documents[starts[k] : ends[k]]."""
    for leaf in range(first, last):
        total, other = np.int64(0), np.int64(0)
        for k in range(starts[leaf], ends[leaf]):
            row = U(documents[k])
            total += np.int64(np.rint(values[row] * by))
            other += np.int64(np.rint(others[row] * by_other))
        sums[0, leaf], sums[1, leaf] = total, other


@kernel
def add_to_leaves(
    documents: Rows, starts: Ints, ends: Ints, first: Int, last: Int, values: Floats, scores: Floats
) -> None:
    """Add each leaf's value to the scores of its rows."""
    for leaf in range(first, last):
        for k in range(starts[leaf], ends[leaf]):
            scores[documents[k]] += values[leaf]


@kernel
def add_by_bins(
    rows: Bytes, width: Int, first: Int, last: Int, feature: Rows, goes_left: NDArray[np.bool_], left: Rows,
    right: Rows, values: Floats, scores: Floats,
) -> None:  # fmt: skip
    """Add a tree's values to the scores of some rows, by the bins that go left at each node."""
    for row in range(first, last):
        node = 0 if len(feature) > 0 else -1
        while node >= 0:
            node = left[node] if goes_left[node, rows[row * width + feature[node]]] else right[node]
        scores[row] += values[~node]


# --- histograms


@helper
def _count_16(bins: Bytes, start: Int, m: Int, words: Ints, cells: Ints, cell: Int) -> None:
    """Add m rows of 16 bins each, which begin at `start`, to 16 histograms. The inner loop is unrolled:
    a byte is loaded and a word added to memory, 32 instructions a row; the core stores one word a cycle."""  # noqa: D205, D209
    for k in range(m):
        word, base = words[k], U(start + k * BLOCK)
        for j in range(16):
            cells[U(cell + j * CELLS) + U(bins[base + U(j)])] += word


@helper
def _count_8(bins: Bytes, start: Int, m: Int, words: Ints, cells: Ints, cell: Int) -> None:
    """The same for 8 of the 16."""
    for k in range(m):
        word, base = words[k], U(start + k * BLOCK)
        for j in range(8):
            cells[U(cell + j * CELLS) + U(bins[base + U(j)])] += word


@helper
def _count_4(bins: Bytes, start: Int, m: Int, words: Ints, cells: Ints, cell: Int) -> None:
    """The same for 4 of the 16."""
    for k in range(m):
        word, base = words[k], U(start + k * BLOCK)
        for j in range(4):
            cells[U(cell + j * CELLS) + U(bins[base + U(j)])] += word


@helper
def _count_some(bins: Bytes, start: Int, many: Int, m: Int, words: Ints, cells: Ints, cell: Int) -> None:
    """The same for 4, 8, 12 or 16 features."""
    if many == 16:
        _count_16(bins, start, m, words, cells, cell)
    else:
        if many >= 8:
            _count_8(bins, start, m, words, cells, cell)
        if many % 8 == 4:
            _count_4(bins, start + many - 4, m, words, cells, cell + (many - 4) * CELLS)


@helper
def _gather(
    rows: Bytes, width: Int, feature: Int, pieces: Int, documents: Rows, start: Int, m: Int, words: Ints, tile: Bytes,
    tile_words: Ints,
) -> None:  # fmt: skip
    """Copy the words of m documents, and of their bins `pieces` times 16 from `feature` on, into a tile.

    The tile holds the first 16 bins of all rows, then the next 16. What is copied now was asked for `AHEAD` rows
    ago: the next documents of a leaf lie anywhere, and no hardware guesses where.
    """
    last = len(documents) - 1
    for k in range(m):
        soon = np.int64(documents[min(start + k + AHEAD, last)])
        prefetch(words, soon)
        coming = soon * width + feature
        for line in range(0, pieces * BLOCK, 64):
            prefetch(rows, coming + line)
        prefetch(rows, coming + pieces * BLOCK - 1)
        row = np.int64(documents[start + k])
        tile_words[k] = words[row]
        for piece in range(pieces):
            copy_16_bytes(tile, (piece * CHUNK + k) * BLOCK, rows, row * width + feature + piece * BLOCK)


@helper
def _fill(
    rows: Bytes, width: Int, documents: Rows, words: Ints, f0: Int, f1: Int, tile: Bytes, tile_words: Ints, cells: Ints
) -> None:
    """The histograms of the features f0 … f1 − 1 over some documents; f0 and f1 are multiples of 4."""
    not_inlined()
    for cell in range(f0 * CELLS, f1 * CELLS):
        cells[cell] = 0
    pieces = (f1 - f0 + BLOCK - 1) // BLOCK
    for start in range(0, len(documents), CHUNK):
        m = min(CHUNK, len(documents) - start)
        _gather(rows, width, f0, pieces, documents, start, m, words, tile, tile_words)
        for piece in range(pieces):
            feature = f0 + piece * BLOCK
            _count_some(tile, piece * CHUNK * BLOCK, min(BLOCK, f1 - feature), m, tile_words, cells, feature * CELLS)


# --- the search for a split


@helper
def _gradient(word: Int) -> Any:
    return np.float64(np.int32(word >> 32))


@helper
def _weight(word: Int) -> Any:
    return np.float64(np.uint32(word))


@helper
def _score_bins(sums: Ints, k: Int, total: Int, least: Int, l2: float, scores: Floats) -> Any:
    """For a split after each of k bins G_l²/H_l + G_r²/H_r, −1 where a side weighs less than `least`; the highest.

    `sums` are cumulated over bins. One division a bin: (G_l² H_r + G_r² H_l) / (H_l H_r). The highest is sought among
    the bits: as integers, numbers from 0 on are in the same order, −1 is below them, and the loop vectorises.
    """
    gradient, weight, lightest = _gradient(total), _weight(total), np.float64(least)
    for b in range(U(k)):
        gl, wl = _gradient(sums[b]), _weight(sums[b])
        gr, wr = gradient - gl, weight - wl
        hl, hr = wl + l2, wr + l2
        score = (gl * gl * hr + gr * gr * hl) / (hl * hr)
        scores[b] = score if (wl >= lightest) & (wr >= lightest) else -1.0
    bits = scores.view(np.int64)
    best = np.int64(-1)
    for b in range(U(k)):
        best = max(best, bits[b])
    last = U(len(scores) - 1)
    bits[last] = best  # there are never so many splits
    return scores[last] if best >= 0 else -1.0


@helper
def _forbid_few(counts: Ints, k: Int, n: Int, fewest: Int, scores: Floats) -> Any:
    """Take out the splits with too few documents on a side; `counts` are cumulated. The highest score left."""
    best = -1.0
    for b in range(k):
        if counts[b] < fewest or n - counts[b] < fewest:
            scores[b] = -1.0
        best = max(best, scores[b])
    return best


@helper
def _forbid_falling(
    sums: Ints, k: Int, total: Int, l2: float, direction: Int, low: float, high: float, scores: Floats
) -> Any:
    """Take out the splits whose leaf values, within their bounds, go against the direction; the highest left."""
    not_inlined()
    best = -1.0
    for b in range(k):
        left = min(max(_gradient(sums[b]) / (_weight(sums[b]) + l2), low), high)
        rest = total - sums[b]
        right = min(max(_gradient(rest) / (_weight(rest) + l2), low), high)
        if (right - left) * direction < 0.0:
            scores[b] = -1.0
        best = max(best, scores[b])
    return best


@helper
def _scored(
    sums: Ints, counts: Ints, how: Int, k: Int, total: Int, n: Int, fewest: Int, l2: float, direction: Int,
    low: float, high: float, scores: Floats,
) -> Any:  # fmt: skip
    """Scores of the splits after each of k bins that are allowed, −1 for the others; the highest."""
    best = _score_bins(sums, k, total, 1 if how == COUNTED else fewest, l2, scores)
    if how == COUNTED:
        best = _forbid_few(counts, k, n, fewest, scores)
    if direction != 0:
        best = _forbid_falling(sums, k, total, l2, direction, low, high, scores)
    return best


@helper
def _scan_numbers(
    cells: Ints, counts: Ints, how: Int, k: Int, total: Int, n: Int, fewest: Int, l2: float,
    direction: Int, low: float, high: float, buffers: Ints, scores: Floats,
) -> tuple[Any, Any, Any, Any]:  # fmt: skip
    """The best split of one numeric feature: its score, and, unless that is all that is asked, its last bin on
    the left, whether missing values go left (−1: there are none), and the word of the left side. Of equal ones the
    lowest bin, then missing values on the right.

    `counts` are the numbers of documents in each bin if it is to be `COUNTED`; otherwise the weights decide.
    """  # noqa: D205
    not_inlined()
    sums, cumulated = buffers[0], buffers[1]
    missing = cells[0]
    word = np.int64(0)
    for b in range(k):
        word += cells[b + 1]
        sums[b] = word
    if how == COUNTED:
        many = np.int64(0)
        for b in range(k):
            many += counts[b + 1]
            cumulated[b] = many
    # The last bin against the missing values is a split of its own; without any there is nothing on the right.
    any_missing = np.uint32(missing) > 0 or (how == COUNTED and counts[0] > 0)
    candidates = k if any_missing else k - 1
    best = _scored(sums, cumulated, how, candidates, total, n, fewest, l2, direction, low, high, scores[0])
    if any_missing:
        # Only missing values on the left would be the same as only missing values on the right, said twice.
        begin = 0
        while begin < k and np.uint32(sums[begin]) == 0:
            scores[1, begin] = -1.0
            begin += 1
        for b in range(k):
            sums[b] += missing
            cumulated[b] += counts[0]
        rest = max(k - 1 - begin, 0)
        other = _scored(
            sums[begin:], cumulated[begin:], how, rest, total, n, fewest, l2, direction, low, high, scores[1, begin:]
        )
        best = max(best, other)
    if how == SCORED:
        return best, np.int64(0), np.int64(0), np.int64(0)
    if best >= 0.0:
        for b in range(candidates):
            if scores[0, b] == best:
                return best, np.int64(b + 1), np.int64(any_missing) - 1, (sums[b] - missing if any_missing else sums[b])
            if any_missing and b < k - 1 and scores[1, b] == best:
                return best, np.int64(b + 1), np.int64(1), sums[b]
    return -1.0, np.int64(0), np.int64(0), np.int64(0)


@helper
def _ranked_categories(cells: Ints, k: Int, l2: float, ranked: Ints, means: Floats) -> Int:
    """Bins with documents, by falling mean gradient, of equal ones the lower bin first; how many."""
    present = 0
    for b in range(1, k + 1):
        if np.uint32(cells[b]) > 0:
            mean = _gradient(cells[b]) / (_weight(cells[b]) + l2)
            place = present
            while place > 0 and means[place - 1] < mean:
                means[place], ranked[place] = means[place - 1], ranked[place - 1]
                place -= 1
            means[place], ranked[place] = mean, b
            present += 1
    return present


@helper
def _scan_categories(
    cells: Ints, counts: Ints, how: Int, k: Int, total: Int, n: Int, fewest: Int, l2: float, buffers: Ints,
    scores: Floats,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """The best split of one categorical feature: its score, how many of the ranked categories go left, their word.

    Missing and unknown categories stay on the right.
    """
    not_inlined()
    sums, cumulated, ranked = buffers[0], buffers[1], buffers[2]
    present = _ranked_categories(cells, k, l2, ranked, scores[1])
    word, many = np.int64(0), np.int64(0)
    for place in range(present):
        b = ranked[place]
        word += cells[b]
        many += counts[b]
        sums[place], cumulated[place] = word, many
    best = _scored(sums, cumulated, how, present, total, n, fewest, l2, N(0), 0.0, 0.0, scores[0])
    if best >= 0.0:
        for place in range(present):
            if scores[0, place] == best:
                return best, np.int64(place + 1), sums[place]
    return -1.0, np.int64(0), np.int64(0)


@helper
def _scan(
    feature: Int, cells: Ints, counts: Ints, how: Int, leaf: Ints, bounds: Floats, n_bins: Ints,
    is_categorical: Flags | None, monotone: Ints, least: Int, l2: float, buffers: Ints, scores: Floats,
    found: Floats, splits: Ints,
) -> None:  # fmt: skip
    """Note the score of one feature's best split in `found[feature]`, and in `splits[feature]` the split: its place,
    the side of missing values, the word on the left, and `how` well it is known.
    """  # noqa: D205
    mine, total, n = cells[feature * CELLS : (feature + 1) * CELLS], leaf[TOTAL], leaf[END] - leaf[START]
    best = splits[feature]
    best[3] = how
    if is_categorical is not None:  # without any, none of this is compiled
        if is_categorical[feature]:
            found[feature], best[0], best[2] = _scan_categories(
                mine, counts, how, n_bins[feature], total, n, least, l2, buffers, scores
            )
            best[1] = 0
            return
    found[feature], best[0], best[1], best[2] = _scan_numbers(
        mine, counts, how, n_bins[feature], total, n, least, l2, monotone[feature], bounds[LOW], bounds[HIGH], buffers,
        scores,
    )  # fmt: skip


@helper
def _settle(
    columns: Bytes, n: Int, documents: Rows, counting: bool, most: Int, leaf: Ints, floats: Floats, cells: Ints,
    features: Ints, n_bins: Ints, is_categorical: Flags | None, monotone: Ints, fewest: Int, l2: float,
    buffers: Ints, scores: Floats, found: Floats, splits: Ints, goes_left: NDArray[np.bool_],
) -> None:  # fmt: skip
    """Choose the leaf's split from the best ones of its features, each with enough documents on both sides.

    Only the best feature's split is located. Where words are not `counting` documents, a split is taken at its word
    if its sides weigh so much that they must hold enough of them, each weighing `most` at the most; otherwise the
    documents of that one feature are counted and its best split is found anew, as often as it takes.
    """
    not_inlined()
    total = leaf[TOTAL]
    parent = _gradient(total) * _gradient(total) / (_weight(total) + l2)
    counts, least = buffers[3], (fewest if counting else np.int64(1))
    leaf[FEATURE] = -1
    floats[GAIN] = 0.0
    while True:
        best, feature = parent * (1.0 + 1e-12), N(-1)
        for candidate in features:
            if found[candidate] > best:
                best, feature = found[candidate], candidate
        if feature < 0:
            return
        if splits[feature, 3] == SCORED:
            _scan(
                feature, cells, counts, N(LOCATED), leaf, floats, n_bins, is_categorical, monotone, least, l2,
                buffers, scores, found, splits,
            )  # fmt: skip
        word = splits[feature, 2]
        enough = counting or splits[feature, 3] == COUNTED or fewest == 1
        if not enough:
            lighter = min(np.int64(np.uint32(word)), np.int64(np.uint32(total - word)))
            enough = lighter > (fewest - 1) * most
        if enough:
            break
        for b in range(CELLS):
            counts[b] = 0
        for k in range(leaf[START], leaf[END]):
            counts[columns[U(feature * n + np.int64(documents[k]))]] += 1
        _scan(
            feature, cells, counts, N(COUNTED), leaf, floats, n_bins, is_categorical, monotone, fewest, l2,
            buffers, scores, found, splits,
        )  # fmt: skip
    leaf[FEATURE], leaf[BIN] = feature, splits[feature, 0]
    leaf[MISSING_LEFT], leaf[LEFT_TOTAL] = splits[feature, 1], splits[feature, 2]
    floats[GAIN] = best - parent
    for b in range(CELLS):
        goes_left[b] = False
    if is_categorical is not None:
        if is_categorical[feature]:
            mine = cells[feature * CELLS : (feature + 1) * CELLS]
            _ranked_categories(mine, n_bins[feature], l2, buffers[2], scores[1])
            for place in range(leaf[BIN]):
                goes_left[buffers[2, place]] = True
            return
    for b in range(1, leaf[BIN] + 1):
        goes_left[b] = True
    if leaf[MISSING_LEFT] < 0:  # missing values, should they come, go to the heavier side
        leaf[MISSING_LEFT] = np.int64(2.0 * _weight(leaf[LEFT_TOTAL]) >= _weight(total))
    goes_left[MISSING] = leaf[MISSING_LEFT] == 1


# --- growth


@helper
def _part(column: Bytes, goes_left: NDArray[np.bool_], documents: Rows, spare: Rows, a: Int, b: Int) -> Int:
    """Write the documents a … b − 1 that go left to the front of spare[a:b], the others to its end, backwards.

    Each is written to both ends and one end moves on: no branch that would be guessed wrong half of the time.
    """
    left, right = a, b - 1
    for k in range(a, b):
        document = documents[U(k)]
        goes = np.int64(goes_left[column[U(document)]])
        spare[U(left)] = document
        spare[U(right)] = document
        left += goes
        right -= 1 - goes
    return left - a


@helper
def _put(spare: Rows, a: Int, b: Int, left: Int, documents: Rows, at_left: Int, at_right: Int) -> None:
    """Copy what `_part` left in spare[a:b] to its places, in the order it had."""
    for k in range(left):
        documents[U(at_left + k)] = spare[U(a + k)]
    for k in range(b - a - left):
        documents[U(at_right + k)] = spare[U(b - 1 - k)]


@helper
def _to_the_left(parted: Ints, which: Int, n_threads: Int) -> Int:
    """How many documents, seen (0) or not (1), the first threads sent left."""
    found = np.int64(0)
    for thread in range(n_threads):
        found += parted[thread * 8 + which]
    return found


@helper
def _may_split(leaf: Ints, fewest: Int, max_depth: Int) -> bool:
    enough: bool = leaf[END] - leaf[START] >= 2 * fewest and leaf[DEPTH] != max_depth
    return enough


@helper
def _share(n: Int, step: Int, thread: Int, n_threads: Int) -> Int:
    """Where a thread's share of n begins, a multiple of `step`."""
    return min(n, (n + step - 1) // step * thread // n_threads * step)


def room(n_threads: int, width: int) -> tuple[Bytes, Ints, Ints, Ints, Floats]:
    """What the threads of `grow` work with."""
    return (
        np.empty((n_threads, width * CHUNK), np.uint8), np.empty((n_threads, CHUNK), np.int64),
        np.empty((n_threads - 1, width * CELLS), np.int64), np.zeros((n_threads, 4, CELLS), np.int64),
        np.zeros((n_threads, 2, CELLS)),
    )  # fmt: skip


@kernel
def grow(
    thread: Int,
    n_threads: Int,
    barrier: Ints,
    columns: Bytes,
    rows: Bytes,
    n: Int,
    width: Int,
    words: Ints,
    most: Int,
    documents: Rows,
    spare: Rows,
    features: Ints,
    n_bins: Ints,
    is_categorical: Flags | None,
    monotone: Ints,
    counting: bool,
    fewest: Int,
    max_depth: Int,
    l2: float,
    n_leaves: Int,
    pool: Ints,
    leaves: Ints,
    floats: Floats,
    goes_left: NDArray[np.bool_],
    nodes: Ints,
    node_gains: Floats,
    node_goes_left: NDArray[np.bool_],
    found: Floats,
    splits: Ints,
    parted: Ints,
    tiles: Bytes,
    tile_words: Ints,
    partial: Ints,
    buffers: Ints,
    scores: Floats,
) -> Int:
    """Grow one tree, best leaf first; the number of leaves. Every thread of a team calls this.

    Args:
        thread, n_threads, barrier: which of how many this is, and where they meet.
        columns, rows, n, width: bins of all n rows, as above; a row has `width` of them.
        words, most: packed gradients and weights, and the largest weight.
        documents, spare: the rows that take part, those that are seen first, both rising; afterwards the rows of
            each leaf together.
        features: those that may be split on, rising.
        n_bins, is_categorical, monotone: of each feature; no flags where none is categorical.
        counting: whether the weights count documents.
        fewest, max_depth, l2, n_leaves: how to grow; l2 in units of the weight.
        pool: a histogram of all features for each leaf.
        leaves, floats, goes_left: for each leaf what START … LEFT_TOTAL and GAIN … HIGH name, and the bins that its
            split sends left.
        nodes, node_gains, node_goes_left: the same for the leaves that were split, in that order.
        found, splits: for both children and each feature the best split.
        parted: how many documents went left in each thread's shares of those seen and of the others.
        tiles, tile_words, partial, buffers, scores: room for each thread (`room`).

    """
    not_inlined()
    one, four = N(1), N(4)
    used = (len(n_bins) + 3) // 4 * 4
    f0, f1 = _share(used, four, thread, n_threads), _share(used, four, thread + 1, n_threads)
    pool, leaves, floats, goes_left = borrowed(pool), borrowed(leaves), borrowed(floats), borrowed(goes_left)
    columns, rows, spare = borrowed(columns), borrowed(rows), borrowed(spare)
    documents, words, found, splits = borrowed(documents), borrowed(words), borrowed(found), borrowed(splits)
    tile, tile_words = borrowed(tiles)[thread], borrowed(tile_words)[thread]
    buffers, scores, partial = borrowed(buffers)[thread], borrowed(scores)[thread], borrowed(partial)
    first, last = 0, 0  # of the features that this thread scans
    for feature in features:
        first += 1 if feature < f0 else 0
        last += 1 if feature < f1 else 0
    least = fewest if counting else np.int64(1)  # where words do not count documents, `_settle` does
    small, large = N(0), N(0)
    many_leaves = N(1)
    split = N(-1)  # the leaf that is split; at first there is only the root
    while True:
        # 1. Histograms and scans, each thread its features: the smaller child's is counted, the larger one's is what
        # is left of the parent's.
        new_leaves = 1 if split < 0 else 2
        any_searched = _may_split(leaves[small], fewest, max_depth) or _may_split(leaves[large], fewest, max_depth)
        if any_searched:
            cells = pool[leaves[small, SLOT]]
            its = documents[leaves[small, START] : leaves[small, SEEN]]
            if n_threads > 1 and len(its) >= SHARED:
                a, b = _share(len(its), one, thread, n_threads), _share(len(its), one, thread + 1, n_threads)
                own = cells if thread == 0 else partial[thread - 1]
                _fill(rows, width, its[a:b], words, N(0), used, tile, tile_words, own)
                meet(barrier, n_threads)
                for other in range(n_threads - 1):
                    add = partial[other]
                    for cell in range(f0 * CELLS, f1 * CELLS):
                        cells[cell] += add[cell]
            else:
                _fill(rows, width, its, words, f0, f1, tile, tile_words, cells)
            if split >= 0:
                rest = pool[leaves[large, SLOT]]
                for cell in range(f0 * CELLS, f1 * CELLS):
                    rest[cell] -= cells[cell]
            for which in range(new_leaves):
                k = small if which == 0 else large
                if _may_split(leaves[k], fewest, max_depth):
                    for number in range(first, last):
                        _scan(
                            features[number], pool[leaves[k, SLOT]], buffers[3], N(SCORED), leaves[k], floats[k],
                            n_bins, is_categorical, monotone, least, l2, buffers, scores, found[which], splits[which],
                        )  # fmt: skip
            meet(barrier, n_threads)
        # 2. The best split of each new leaf.
        for which in range(new_leaves):
            if which % n_threads == thread:
                k = small if which == 0 else large
                if _may_split(leaves[k], fewest, max_depth):
                    _settle(
                        columns, n, documents, counting, most, leaves[k], floats[k], pool[leaves[k, SLOT]], features,
                        n_bins, is_categorical, monotone, fewest, l2, buffers, scores, found[which], splits[which],
                        goes_left[k],
                    )  # fmt: skip
                else:
                    leaves[k, FEATURE] = -1
                    floats[k, GAIN] = 0.0
        meet(barrier, n_threads)
        # 3. The leaf to split next: the highest gain, of equal ones the first.
        if many_leaves == n_leaves:
            break
        split = N(0)
        for k in range(1, many_leaves):
            if floats[k, GAIN] > floats[split, GAIN]:
                split = k
        if not floats[split, GAIN] > 0.0:
            break
        # 4. Its documents are parted, each thread a share of those seen and one of the others …
        start, seen, end = leaves[split, START], leaves[split, SEEN], leaves[split, END]
        a = start + _share(seen - start, one, thread, n_threads)
        b = start + _share(seen - start, one, thread + 1, n_threads)
        c = seen + _share(end - seen, one, thread, n_threads)
        d = seen + _share(end - seen, one, thread + 1, n_threads)
        feature = leaves[split, FEATURE]
        column = columns[feature * n : (feature + 1) * n]
        parted[thread * 8] = _part(column, goes_left[split], documents, spare, a, b)
        parted[thread * 8 + 1] = _part(column, goes_left[split], documents, spare, c, d)
        meet(barrier, n_threads)
        # … and put in their places: left the seen ones, then the others, and right likewise.
        seen_left, others_left = _to_the_left(parted, N(0), n_threads), _to_the_left(parted, one, n_threads)
        middle = start + seen_left + others_left
        right_seen = middle + (seen - start) - seen_left
        before = _to_the_left(parted, N(0), thread)
        _put(spare, a, b, parted[thread * 8], documents, start + before, middle + (a - start) - before)
        before = _to_the_left(parted, one, thread)
        _put(
            spare, c, d, parted[thread * 8 + 1], documents, start + seen_left + before, right_seen + (c - seen) - before
        )
        # 5. One thread writes down the node and its children.
        new, node = many_leaves, many_leaves - 1
        left_is_small = 2 * seen_left <= seen - start
        if thread == 0:
            _branch(
                split, new, node, start + seen_left, middle, right_seen, left_is_small, l2, monotone[feature], leaves,
                floats, goes_left, nodes, node_gains, node_goes_left,
            )  # fmt: skip
        small, large = (split, new) if left_is_small else (new, split)
        many_leaves += 1
        meet(barrier, n_threads)
        if many_leaves == n_leaves:
            break
    return many_leaves


@helper
def _branch(
    split: Int, new: Int, node: Int, left_seen: Int, middle: Int, right_seen: Int, left_is_small: bool, l2: float,
    direction: Int, leaves: Ints, floats: Floats, goes_left: NDArray[np.bool_], nodes: Ints, node_gains: Floats,
    node_goes_left: NDArray[np.bool_],
) -> None:  # fmt: skip
    """Turn a leaf into a node; its left child takes its place, its right child a new one."""
    not_inlined()
    total, left_total, slot = leaves[split, TOTAL], leaves[split, LEFT_TOTAL], leaves[split, SLOT]
    node_gains[node] = floats[split, GAIN]
    for k in range(N_INTS):
        nodes[node, k] = leaves[split, k]
        leaves[new, k] = leaves[split, k]
    for k in range(N_FLOATS):
        floats[new, k] = floats[split, k]
    for b in range(CELLS):
        node_goes_left[node, b] = goes_left[split, b]
    leaves[split, SEEN], leaves[split, END] = left_seen, middle
    leaves[new, START], leaves[new, SEEN] = middle, right_seen
    leaves[split, TOTAL], leaves[new, TOTAL] = left_total, total - left_total
    # The larger child takes over the parent's histogram.
    leaves[split, SLOT], leaves[new, SLOT] = (new, slot) if left_is_small else (slot, new)
    leaves[split, DEPTH] += 1
    leaves[new, DEPTH] += 1
    leaves[split, PARENT], leaves[new, PARENT] = node, node
    leaves[split, IS_LEFT], leaves[new, IS_LEFT] = 1, 0
    if direction != 0:
        first = _gradient(left_total) / (_weight(left_total) + l2)
        second = _gradient(total - left_total) / (_weight(total - left_total) + l2)
        low, high = floats[split, LOW], floats[split, HIGH]
        between = (min(max(first, low), high) + min(max(second, low), high)) / 2
        lower, upper = (split, new) if direction > 0 else (new, split)
        floats[lower, HIGH] = min(high, between)
        floats[upper, LOW] = max(low, between)
