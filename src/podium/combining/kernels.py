"""The sweep over α: how a measure changes as documents with scores s + α t pass each other.

A document is a line over α. Two lines cross once, at α = (s_i − s_j) / (t_j − t_i); between crossings the order, and
with it the measure, stands still. So a query's crossings are sorted, and the documents pass each other in that order,
two neighbours at a time, each passing worth a change of the measure that needs no more than the two ranks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.core.compiling import helper, kernel
from podium.core.intrinsics import borrowed, not_inlined

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Int = Any  # an integer, compiled as int64

DISCOUNTED, PRECISION, CASCADE = 0, 1, 2  # families of measures: NDCG and its kin, AP, ERR
RUN = 12  # as many are sorted by insertion before runs are merged
# What passes each other are items: documents, or whole groups of documents tied for ever, one line each.
# Rows of the table of a query: score, slope and value by item, numbered as they stand at the lower end; what stands
# before a place; and the mean products E_k of tied documents, group by group.
SCORE, SLOPE, VALUE, BEFORE, MEANS, N_COLUMNS = range(6)
# Rows of the table of places: the item of a place and the place of an item; an item's documents, how many and the first
# of them; how many documents stand above a place; and two for laying out.
RANKED, RANK_OF, SIZES, FIRSTS, TOPS, KEPT, ARRANGED, N_PLACES = range(8)


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
        while place > 0:
            other = order[place - 1]
            # by differences: of a large sum nothing would be left of a small score
            lead = (scores[other] - scores[item]) + at * (slopes[other] - slopes[item])
            if lead > 0.0 or (lead == 0.0 and slopes[other] >= slopes[item]):
                break
            order[place] = other
            place -= 1
        order[place] = item


@helper
def _part(
    family: Int, table: Floats, places: Ints, item: Int, place: Int, discounts: Floats, depth: Int, scale: float
) -> Int:
    """What the item at a place adds to the measure, as an integer: sums of these have no rounding to gather."""
    r = places[TOPS, place]
    if r >= depth:
        return np.int64(0)
    if places[SIZES, item] > 1:
        return _part_of_group(family, table, places, item, place, depth, scale)
    if family == DISCOUNTED:
        weight = discounts[r]
    elif family == PRECISION:  # the relevant ones down to here
        weight = (table[BEFORE, place] + 1.0) / (r + 1.0)
    else:  # the chance that the user comes here
        weight = table[BEFORE, place] / (r + 1.0)
    return np.int64(np.rint(table[VALUE, item] * weight * scale))


@helper
def _part_of_group(family: Int, table: Floats, places: Ints, item: Int, place: Int, depth: Int, scale: float) -> Int:
    """The same for tied documents: the mean over their orders."""
    not_inlined()
    r, size, first = places[TOPS, place], places[SIZES, item], places[FIRSTS, item]
    total = 0.0
    if family == PRECISION:  # r/n · (c + 1 + (k−1)(r−1)/(n−1)) / (a+k−1)
        step = (table[VALUE, item] - 1.0) / (size - 1.0)
        for k in range(min(size, depth - r)):
            total += (table[BEFORE, place] + 1.0 + k * step) / (r + k + 1.0)
        total *= table[VALUE, item] / size
    else:  # P · (E_{k−1} − E_k) / (a+k−1)
        above = 1.0
        for k in range(min(size, depth - r)):
            total += (above - table[MEANS, first + k]) / (r + k + 1.0)
            above = table[MEANS, first + k]
        total *= table[BEFORE, place]
    return np.int64(np.rint(total * scale))


@helper
def _pass(family: Int, table: Floats, places: Ints, place: Int, discounts: Floats, depth: Int, scale: float) -> Int:
    """Let the item at the place below pass the one at this place; the change of the measure."""
    upper, lower = places[RANKED, place], places[RANKED, place + 1]
    places[RANKED, place], places[RANKED, place + 1] = lower, upper
    places[RANK_OF, lower], places[RANK_OF, upper] = place, place + 1
    single = places[SIZES, upper] + places[SIZES, lower] == 2
    if places[TOPS, place] >= depth or (single and table[VALUE, upper] == table[VALUE, lower]):
        places[TOPS, place + 1] = places[TOPS, place] + places[SIZES, lower]
        return np.int64(0)
    before = _part(family, table, places, upper, place, discounts, depth, scale)
    before += _part(family, table, places, lower, place + 1, discounts, depth, scale)
    places[TOPS, place + 1] = places[TOPS, place] + places[SIZES, lower]
    table[BEFORE, place + 1] = _behind(family, table[BEFORE, place], table[VALUE, lower])
    after = _part(family, table, places, lower, place, discounts, depth, scale)
    return after + _part(family, table, places, upper, place + 1, discounts, depth, scale) - before


@helper
def _behind(family: Int, before: float, value: float) -> float:
    """What stands before the next place: relevant documents, or the chance that nothing has stopped the user."""
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
    family: Int, n: Int, scores: Floats, slopes: Floats, values: Floats, expected: bool, table: Floats, places: Ints
) -> Int:
    """Fill the tables with the documents as they stand at the lower end; the number of items.

    Documents with the same score and slope are tied for ever. `expected`: where gains add up (DISCOUNTED) each has the
    mean gain of its group; in the other families the group is one item.
    """
    not_inlined()
    n_items, start = 0, 0
    for end in range(1, n + 1):
        item = places[KEPT, places[ARRANGED, start]]
        if expected and end < n:
            other = places[KEPT, places[ARRANGED, end]]
            if scores[item] == scores[other] and slopes[item] == slopes[other]:
                continue
        size = end - start
        value = _value_of_group(family, start, size, values, table, places)
        for _ in range(size if family == DISCOUNTED else 1):
            table[SCORE, n_items], table[SLOPE, n_items], table[VALUE, n_items] = scores[item], slopes[item], value
            places[RANKED, n_items], places[RANK_OF, n_items] = n_items, n_items
            places[SIZES, n_items] = 1 if family == DISCOUNTED else size
            places[FIRSTS, n_items] = start
            n_items += 1
        start = end
    before, above = 1.0 if family == CASCADE else 0.0, 0
    for place in range(n_items):
        table[BEFORE, place], places[TOPS, place] = before, above
        before = _behind(family, before, table[VALUE, place])
        above += places[SIZES, place]
    return n_items


@helper
def _value_of_group(family: Int, start: Int, size: Int, values: Floats, table: Floats, places: Ints) -> float:
    """The value of tied documents together: their mean gain, the relevant ones, the chance that one stops the user."""
    total = 0.0
    for k in range(size):
        value = values[places[KEPT, places[ARRANGED, start + k]]]
        total += value
        if family == CASCADE and size > 1:  # E_k with a document x more is ((m−k) E_k + k x E_{k−1}) / m
            table[MEANS, start + k] = 0.0
            for i in range(k, -1, -1):
                less = table[MEANS, start + i - 1] if i > 0 else 1.0
                table[MEANS, start + i] = ((k - i) * table[MEANS, start + i] + (i + 1) * (1.0 - value) * less) / (k + 1)
    if family == CASCADE and size > 1:
        total = 1.0 - table[MEANS, start + size - 1]
    return total / size if family == DISCOUNTED else total


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
        np.empty((N_COLUMNS, largest + 1)), np.empty((N_PLACES, largest + 1), np.int64), np.empty((2, largest)),
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
        expected: documents tied for ever count by the mean over their orders; else they stand as they came.
        unit: one unit of the integers, 1 / what they are multiplied by.
        starts: for each query the measure just above `low`, as an integer.
        alphas, changes: where to write, room for all pairs of the queries.
        table, places, lines, pairs, keys, spare: room for the largest query (`room`).

    """
    order, offsets, alphas, changes = borrowed(order), borrowed(offsets), borrowed(alphas), borrowed(changes)
    places, lines, keys, table = borrowed(places), borrowed(lines), borrowed(keys), borrowed(table)
    kept, arranged = places[KEPT], places[ARRANGED]
    n_changes = 0
    for q in range(first, last):
        begin, n = offsets[q], offsets[q + 1] - offsets[q]
        starts[q] = 0
        if norms[q] == 0.0 or n == 0:
            continue
        for k in range(n):
            row = order[begin + k]
            lines[0, k], lines[1, k] = scores[row], slopes[row]
        n_kept = _candidates(n, low, high, depth, lines[0], lines[1], kept)
        for k in range(n_kept):
            keys[0, k], keys[1, k] = lines[0, kept[k]], lines[1, kept[k]]
        _order_after(n_kept, low, keys[0], keys[1], arranged)
        n_items = _lay_out(family, n_kept, lines[0], lines[1], values[begin : begin + n], expected, table, places)
        scale = 1.0 / (norms[q] * unit)
        for item in range(n_items):
            starts[q] += _part(family, table, places, item, item, discounts, depth, scale)
        n_pairs = 0
        for i in range(n_items):
            for j in range(i + 1, n_items):
                if table[SLOPE, j] > table[SLOPE, i]:
                    alpha = (table[SCORE, i] - table[SCORE, j]) / (table[SLOPE, j] - table[SLOPE, i])
                    if alpha < high:
                        keys[0, n_pairs], pairs[n_pairs] = max(alpha, low), i * n_items + j
                        n_pairs += 1
        _sort_rising(keys[0], pairs, keys[1], spare, n_pairs)
        k = 0
        while k < n_pairs:
            alpha, change = keys[0, k], np.int64(0)
            while k < n_pairs and keys[0, k] == alpha:  # all that cross at once
                i, j = pairs[k] // n_items, pairs[k] % n_items
                while places[RANK_OF, j] > places[RANK_OF, i]:  # mostly neighbours; by rounding others may be between
                    place = places[RANK_OF, j] - 1
                    change += _pass(family, table, places, place, discounts, depth, scale)
                k += 1
            if change != 0:
                alphas[n_changes], changes[n_changes] = alpha, change
                n_changes += 1
    return n_changes
