"""The sweep over α: how a measure changes as documents with scores s + α t pass each other.

A document is a line over α. Two lines cross once, at α = (s_i − s_j) / (t_j − t_i); between crossings the order, and
with it the measure, stands still. So a query's crossings are sorted, and the documents pass each other in that order,
two neighbours at a time, each passing worth a change of the measure that needs no more than the two ranks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.kernels import borrowed, helper, kernel, not_inlined

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Int = Any  # an integer, compiled as int64

DISCOUNTED, PRECISION, CASCADE = 0, 1, 2  # families of measures: NDCG and its kin, AP, ERR
NARROW = 1e-12  # an interval of α narrower than this is none: crossings in one point, but for rounding
RUN = 12  # as many are sorted by insertion before runs are merged
# Rows of the table of a query's documents, by rank at the lower end: score, slope, value, what stands before a rank.
SCORE, SLOPE, VALUE, BEFORE, N_COLUMNS = range(5)


@helper
def _sort_rising(keys: Floats, items: Ints, spare_keys: Floats, spare_items: Ints, n: Int) -> None:
    """Sort by rising key, equal keys in the order they came: insertion in short runs, then merging."""
    not_inlined()
    for start in range(0, n, RUN):
        for k in range(start + 1, min(start + RUN, n)):
            key, item = keys[k], items[k]
            place = k
            while place > start and keys[place - 1] > key:
                keys[place], items[place] = keys[place - 1], items[place - 1]
                place -= 1
            keys[place], items[place] = key, item
    width = RUN
    while width < n:
        for start in range(0, n, 2 * width):
            middle, end = min(start + width, n), min(start + 2 * width, n)
            left, right = start, middle
            for k in range(start, end):
                if left < middle and (right >= end or keys[left] <= keys[right]):
                    spare_keys[k], spare_items[k] = keys[left], items[left]
                    left += 1
                else:
                    spare_keys[k], spare_items[k] = keys[right], items[right]
                    right += 1
        for k in range(n):
            keys[k], items[k] = spare_keys[k], spare_items[k]
        width *= 2


@helper
def _order_after(n: Int, at: float, scores: Floats, slopes: Floats, order: Ints) -> None:
    """The documents as they stand just above `at`: by score there, then by slope, then as they came."""
    not_inlined()
    for k in range(n):
        order[k] = k
    for k in range(1, n):
        item, place = order[k], k
        score, slope = scores[item] + at * slopes[item], slopes[item]
        while place > 0:
            other = order[place - 1]
            its_score = scores[other] + at * slopes[other]
            if its_score > score or (its_score == score and slopes[other] >= slope):
                break
            order[place] = other
            place -= 1
        order[place] = item


@helper
def _part(family: Int, table: Floats, item: Int, r: Int, discounts: Floats, depth: Int, scale: float) -> Int:
    """What the document at rank r adds to the measure, as an integer: sums of these have no rounding to gather."""
    if r >= depth:
        return np.int64(0)
    if family == DISCOUNTED:
        weight = discounts[r]
    elif family == PRECISION:  # the relevant ones down to here
        weight = (table[BEFORE, r] + 1.0) / (r + 1.0)
    else:  # the chance that the user comes here
        weight = table[BEFORE, r] / (r + 1.0)
    return np.int64(np.rint(table[VALUE, item] * weight * scale))


@helper
def _pass(
    family: Int, table: Floats, ranked: Ints, rank_of: Ints, r: Int, discounts: Floats, depth: Int, scale: float
) -> Int:
    """Let the document at rank r + 1 pass the one at rank r; the change of the measure."""
    upper, lower = ranked[r], ranked[r + 1]
    ranked[r], ranked[r + 1] = lower, upper
    rank_of[lower], rank_of[upper] = r, r + 1
    if r >= depth or table[VALUE, upper] == table[VALUE, lower]:
        return np.int64(0)
    before = _part(family, table, upper, r, discounts, depth, scale)
    before += _part(family, table, lower, r + 1, discounts, depth, scale)
    table[BEFORE, r + 1] = _behind(family, table[BEFORE, r], table[VALUE, lower])
    after = _part(family, table, lower, r, discounts, depth, scale)
    return after + _part(family, table, upper, r + 1, discounts, depth, scale) - before


@helper
def _behind(family: Int, before: float, value: float) -> float:
    """What stands before the next rank: relevant documents, or the chance that nothing has stopped the user."""
    return before * (1.0 - value) if family == CASCADE else before + value


@helper
def _candidates(n: Int, low: float, high: float, depth: Int, scores: Floats, slopes: Floats, kept: Ints) -> Int:
    """The documents that may stand within the depth somewhere between low and high; how many.

    One that `depth` others stand above at both ends stands below them in between: lines cross once.
    """
    not_inlined()
    many = 0
    for j in range(n):
        here, there, above = scores[j] + low * slopes[j], scores[j] + high * slopes[j], np.int64(0)
        for i in range(n):
            over = scores[i] + low * slopes[i] > here and scores[i] + high * slopes[i] > there
            above += np.int64(over)
        if above < depth:
            kept[many] = j
            many += 1
    return many


@helper
def _lay_out(
    family: Int, n: Int, kept: Ints, order: Ints, scores: Floats, slopes: Floats, values: Floats, expected: bool,
    table: Floats, ranked: Ints, rank_of: Ints,
) -> None:  # fmt: skip
    """Fill the table with the documents as they stand at the lower end.

    Documents with the same score and slope are tied for ever; `expected`: each has the mean gain of its group.
    """
    not_inlined()
    for r in range(n):
        item = kept[order[r]]
        table[SCORE, r], table[SLOPE, r], table[VALUE, r] = scores[item], slopes[item], values[item]
        ranked[r], rank_of[r] = r, r
    if expected:
        start = 0
        for r in range(1, n + 1):
            if r == n or table[SCORE, r] != table[SCORE, start] or table[SLOPE, r] != table[SLOPE, start]:
                total = 0.0
                for k in range(start, r):
                    total += table[VALUE, k]
                for k in range(start, r):
                    table[VALUE, k] = total / (r - start)
                start = r
    before = 1.0 if family == CASCADE else 0.0
    for r in range(n):
        table[BEFORE, r] = before
        before = _behind(family, before, table[VALUE, r])


@kernel
def count_candidates(
    order: Ints, offsets: Ints, first: Int, last: Int, scores: Floats, slopes: Floats, depth: Int, low: float,
    high: float, counts: Ints,
) -> None:  # fmt: skip
    """For each query how many documents may stand within the depth: what `sweep` needs room for."""
    largest = 0
    for q in range(first, last):
        largest = max(largest, offsets[q + 1] - offsets[q])
    lines, kept = np.empty((2, largest)), np.empty(largest, np.int64)
    for q in range(first, last):
        n = offsets[q + 1] - offsets[q]
        for k in range(n):
            row = order[offsets[q] + k]
            lines[0, k], lines[1, k] = scores[row], slopes[row]
        counts[q] = _candidates(n, low, high, depth, lines[0], lines[1], kept)


def room(largest: int, most: int) -> tuple[Floats, Ints, Floats, Ints, Floats, Ints]:
    """What `sweep` works with, for queries of at most so many documents and candidates."""
    pairs = max(most, most * (most - 1) // 2)
    return (
        np.empty((N_COLUMNS, largest + 1)), np.empty((4, largest + 1), np.int64), np.empty((2, largest)),
        np.empty(pairs, np.int64), np.empty((2, pairs)), np.empty(pairs, np.int64),
    )  # fmt: skip


@kernel
def sweep(
    family: Int,
    order: Ints,
    offsets: Ints,
    first: Int,
    last: Int,
    scores: Floats,
    slopes: Floats,
    values: Floats,
    norms: Floats,
    discounts: Floats,
    depth: Int,
    low: float,
    high: float,
    expected: bool,
    unit: float,
    starts: Ints,
    alphas: Floats,
    changes: Ints,
    table: Floats,
    places: Ints,
    lines: Floats,
    pairs: Ints,
    keys: Floats,
    spare: Ints,
) -> Int:
    """The crossings at which the measure changes, of the queries `first` … `last` − 1; how many.

    Args:
        family: of the measure.
        order, offsets: the rows of each query in the order in which documents tied for ever stand.
        scores, slopes: s and t by row.
        values: gains, relevances or stopping probabilities by place in `order`.
        norms, discounts, depth: as the family has them; a query whose norm is 0 has no value.
        low, high: α between these, not at them.
        expected: documents tied for ever share their mean gain (DISCOUNTED only).
        unit: one unit of the integers, 1 / what they are multiplied by.
        starts: for each query the measure just above `low`, as an integer.
        alphas, changes: where to write, room for all pairs of the queries.
        table, places, lines, pairs, keys, spare: room for the largest query (`room`).

    """
    order, offsets, alphas, changes = borrowed(order), borrowed(offsets), borrowed(alphas), borrowed(changes)
    places, lines, keys, table = borrowed(places), borrowed(lines), borrowed(keys), borrowed(table)
    ranked, rank_of, kept, arranged = places[0], places[1], places[2], places[3]
    found = 0
    for q in range(first, last):
        begin, n = offsets[q], offsets[q + 1] - offsets[q]
        starts[q] = 0
        if norms[q] == 0.0 or n == 0:
            continue
        for k in range(n):
            row = order[begin + k]
            lines[0, k], lines[1, k] = scores[row], slopes[row]
        many = _candidates(n, low, high, depth, lines[0], lines[1], kept)
        mine, its_slopes = keys[0], keys[1]
        for k in range(many):
            mine[k], its_slopes[k] = lines[0, kept[k]], lines[1, kept[k]]
        _order_after(many, low, mine, its_slopes, arranged)
        gains = values[begin : begin + n]
        _lay_out(family, many, kept, arranged, lines[0], lines[1], gains, expected, table, ranked, rank_of)
        scale = 1.0 / (norms[q] * unit)
        for r in range(min(many, depth)):
            starts[q] += _part(family, table, r, r, discounts, depth, scale)
        events = 0
        for i in range(many):
            for j in range(i + 1, many):
                if table[SLOPE, j] > table[SLOPE, i]:
                    alpha = (table[SCORE, i] - table[SCORE, j]) / (table[SLOPE, j] - table[SLOPE, i])
                    if alpha < high:
                        keys[0, events], pairs[events] = max(alpha, low), i * many + j
                        events += 1
        _sort_rising(keys[0], pairs, keys[1], spare, events)
        k = 0
        while k < events:
            alpha, change = keys[0, k], np.int64(0)
            while k < events and keys[0, k] == alpha:  # all that cross at once
                i, j = pairs[k] // many, pairs[k] % many
                while rank_of[j] > rank_of[i]:  # mostly neighbours; by rounding others may stand between
                    r = rank_of[j] - 1
                    change += _pass(family, table, ranked, rank_of, r, discounts, depth, scale)
                k += 1
            if change != 0:
                alphas[found], changes[found] = alpha, change
                found += 1
    return found


@kernel
def best_interval(
    alphas: Floats, changes: Ints, start: Int, low: float, high: float, near: float, found: Floats
) -> Int:
    """The open interval between crossings, rising, with the highest value; of equal ones the nearest to `near`.

    Its ends are written to `found`. Intervals as narrow as the rounding of their ends do not count.
    """
    best, value, left, distance = np.int64(-(1 << 62)), start, low, np.inf
    k, n = 0, len(alphas)
    while True:
        right = alphas[k] if k < n else high
        if right - left > NARROW * max(1.0, abs(right)) and value >= best:
            away = max(left - near, near - right, 0.0)
            if value > best or away < distance:
                best, distance = value, away
                found[0], found[1] = left, right
        if k >= n:
            return best
        while k < n and alphas[k] == right:
            value += changes[k]
            k += 1
        left = right
