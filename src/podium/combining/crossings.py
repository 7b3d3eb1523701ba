"""Kernels of the sweep over α: how a measure changes as documents with scores s + α t swap ranks.

The score of a document is a line over α. Two lines cross once, at α = (s_i − s_j) / (t_j − t_i). Between crossings, the
order and hence the measure do not change. For each query,

1. `_candidates` finds the documents that may rank within the depth,
2. `_order_after` sorts them in the order just above the lower end of α,
3. `_lay_out` turns them into *items*: documents, or groups of documents that are tied for every α,
4. `_sort_crossings` computes and sorts the crossings of all pairs of items,
5. `_walk` swaps neighbours in that order. Each swap changes the measure by the contributions of the two items before
   and after (`podium.measures.family_kernels`). These are integers, so that sums have no rounding errors and equal
   intervals are recognized as equal. If more than two documents meet at a crossing, `_units_of_meeting` computes the
   measure at the crossing itself.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from podium.core.array_types import Floats, Int, Ints
from podium.core.compiling import helper, kernel
from podium.core.intrinsics import borrowed, inlined, not_inlined
from podium.core.sorting import sort_with_items
from podium.measures.families import DISCOUNTED, LookupTables
from podium.measures.family_kernels import before_all, before_next, contribution, group_contribution, group_value


class Lines(NamedTuple):
    """The documents of all queries as lines over α."""

    # order, offsets: the rows of each query, in the order of documents tied for every α
    order: Ints
    offsets: Ints
    # scores, slopes: s and t by row
    scores: Floats
    slopes: Floats


class Range(NamedTuple):
    """The queries first … last − 1, and the open interval of α from low to high."""

    first: int
    last: int
    low: float
    high: float


class Crossings(NamedTuple):
    """The results of a sweep."""

    starts: Ints  # the measure of each query just above the lower end, as an integer
    counts: Ints  # the number of entries of the first two of the following columns, and of the last two
    # alphas, changes, peaks, bends: see `podium.combining.lines.Turns`; long enough for all pairs of the queries. At
    # most half of the pairs can meet where others do
    alphas: Floats
    changes: Ints
    peaks: Floats
    bends: Ints


# Rows of the table of numbers: score, slope and value by item; the state before a position; and the values of groups of
# ties, see `podium.measures.family_kernels.group_value`. Two tables take the place of ten arrays, because counting
# references to arrays of a tuple takes longer than a swap.
SCORE, SLOPE, VALUE, BEFORE, GROUP, N_NUMBERS = range(6)
# Rows of the table of places: the item at a position and the position of an item; the number of an item's documents and
# the first of them; and the number of documents above a position.
ITEM_AT, POSITION_OF, SIZE, FIRST_OF, RANK_AT, N_PLACES = range(6)


class SweepMemory(NamedTuple):
    """Scratch memory of the sweep for the largest query."""

    lines: Floats  # score and slope of each document of the query
    # candidates, arranged: the numbers of the candidates, and the candidates in the order at the lower end
    candidates: Ints
    arranged: Ints
    values: Floats  # by candidate in that order
    # table, places: tables of items and positions, see above
    table: Floats
    places: Ints
    # keys, spare_keys, pairs, spare_pairs: for the crossings
    keys: Floats
    spare_keys: Floats
    pairs: Ints
    spare_pairs: Ints


def sweep_memory(largest: int, n_candidates: int) -> SweepMemory:
    """Return scratch memory for queries of up to `largest` documents and `n_candidates` candidates."""
    n, n_pairs = largest + 1, max(n_candidates, n_candidates * (n_candidates - 1) // 2)
    return SweepMemory(
        np.empty((2, largest)), np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n), np.empty((N_NUMBERS, n)),
        np.empty((N_PLACES, n), np.int64), np.empty(n_pairs), np.empty(n_pairs), np.empty(n_pairs, np.int64),
        np.empty(n_pairs, np.int64),
    )  # fmt: skip


class _Rule(NamedTuple):
    """The rule for contributions in one query: the family of the measure, and the scale of the integers."""

    family: Any
    depth: Any
    scale: Any


# --- 1, 2: candidates and their order


@helper
def _candidates(n: Int, low: float, high: float, depth: Int, scores: Floats, slopes: Floats, candidates: Ints) -> Int:
    """Return the number of documents that may rank within the depth between low and high, and list them.

    A document with the same `depth` others above it at both ends is also below them in between, because two lines cross
    only once.
    """
    not_inlined()
    count = 0
    for j in range(n):
        at_low, at_high, n_above = scores[j] + low * slopes[j], scores[j] + high * slopes[j], np.int64(0)
        for i in range(n):
            is_above = scores[i] + low * slopes[i] > at_low and scores[i] + high * slopes[i] > at_high
            n_above += np.int64(is_above)
        if n_above < depth:
            candidates[count] = j
            count += 1
    return count


@helper
def _order_after(n: Int, at: float, scores: Floats, slopes: Floats, order: Ints) -> None:
    """Sort the documents in their order just above `at`: by score there, then by slope, then by number."""
    not_inlined()
    for k in range(n):
        order[k] = k
    for k in range(1, n):
        item, slot = order[k], k
        while slot > 0:
            other = order[slot - 1]
            # Compare differences, because small scores would be lost in large sums.
            lead = (scores[other] - scores[item]) + at * (slopes[other] - slopes[item])
            if lead > 0.0 or (lead == 0.0 and slopes[other] >= slopes[item]):
                break
            order[slot] = other
            slot -= 1
        order[slot] = item


# --- 3: items


@helper
def _lay_out(family: Int, n: Int, values: Floats, expected: bool, scratch: SweepMemory) -> Int:
    """Turn the n candidates, in their order at the lower end, into items, and return the number of items.

    Documents with equal score and slope are tied for every α. With `expected`, each has the mean gain of its group if
    gains add up (DISCOUNTED); in the other families the group is one item.
    """
    not_inlined()
    scores, slopes = scratch.lines[0], scratch.lines[1]
    table, places = borrowed(scratch.table), borrowed(scratch.places)
    for k in range(n):
        scratch.values[k] = values[scratch.candidates[scratch.arranged[k]]]
    n_items, start = 0, 0
    for end in range(1, n + 1):
        document = scratch.candidates[scratch.arranged[start]]
        if expected and end < n:
            other = scratch.candidates[scratch.arranged[end]]
            if scores[document] == scores[other] and slopes[document] == slopes[other]:
                continue
        size = end - start
        value = group_value(family, start, size, scratch.values, table[GROUP])
        for _ in range(size if family == DISCOUNTED else 1):
            table[SCORE, n_items], table[SLOPE, n_items] = scores[document], slopes[document]
            table[VALUE, n_items] = value
            places[ITEM_AT, n_items], places[POSITION_OF, n_items] = n_items, n_items
            places[SIZE, n_items] = 1 if family == DISCOUNTED else size
            places[FIRST_OF, n_items] = start
            n_items += 1
        start = end
    before, rank = before_all(family), 0
    for position in range(n_items):
        table[BEFORE, position], places[RANK_AT, position] = before, rank
        before = before_next(family, before, table[VALUE, position])
        rank += places[SIZE, position]
    return n_items


# --- 4: crossings


@helper
def _sort_crossings(n_items: Int, low: float, high: float, scratch: SweepMemory) -> Int:
    """List the pairs of items that cross below `high` with their α, ascending, and return their number."""
    not_inlined()
    score, slope, keys, pairs = scratch.table[SCORE], scratch.table[SLOPE], scratch.keys, scratch.pairs
    n_pairs = 0
    for i in range(n_items):
        for j in range(i + 1, n_items):
            if slope[j] > slope[i]:
                alpha = (score[i] - score[j]) / (slope[j] - slope[i])
                if alpha < high:
                    keys[n_pairs], pairs[n_pairs] = max(alpha, low), i * n_items + j
                    n_pairs += 1
    sort_with_items(keys, pairs, scratch.spare_keys, scratch.spare_pairs, n_pairs)
    return n_pairs


# --- 5: swaps


@helper
def _units(
    rule: Any, item: Int, position: Int, table: Floats, places: Ints, discounts: Floats, divisors: Floats
) -> Int:
    """Return the contribution of an item at a position to the measure, as an integer."""
    inlined()
    rank, size = places[RANK_AT, position], places[SIZE, item]
    if rank >= rule.depth:
        return np.int64(0)
    value, before = table[VALUE, item], table[BEFORE, position]
    if size > 1:
        n_counted = min(size, rule.depth - rank)
        first = places[FIRST_OF, item]
        added = group_contribution(rule.family, value, before, rank, size, n_counted, first, table[GROUP], divisors)
    else:
        added = contribution(rule.family, value, before, rank, discounts, divisors)
    return np.int64(np.rint(added * rule.scale))


@helper
def _swap_with_next(rule: Any, position: Int, table: Floats, places: Ints, discounts: Floats, divisors: Floats) -> Int:
    """Swap the item at a position with the one below it, and return the change of the measure."""
    inlined()
    upper, lower = places[ITEM_AT, position], places[ITEM_AT, position + 1]
    places[ITEM_AT, position], places[ITEM_AT, position + 1] = lower, upper
    places[POSITION_OF, lower], places[POSITION_OF, upper] = position, position + 1
    rank_below = places[RANK_AT, position] + places[SIZE, lower]
    are_documents = places[SIZE, upper] + places[SIZE, lower] == 2
    if places[RANK_AT, position] >= rule.depth or (are_documents and table[VALUE, upper] == table[VALUE, lower]):
        places[RANK_AT, position + 1] = rank_below
        return np.int64(0)
    before = _units(rule, upper, position, table, places, discounts, divisors) + _units(
        rule, lower, position + 1, table, places, discounts, divisors
    )
    places[RANK_AT, position + 1] = rank_below
    table[BEFORE, position + 1] = before_next(rule.family, table[BEFORE, position], table[VALUE, lower])
    return (
        _units(rule, lower, position, table, places, discounts, divisors)
        + _units(rule, upper, position + 1, table, places, discounts, divisors)
        - before
    )


@helper
def _mark_meeting(first: Int, last: Int, n_items: Int, scratch: SweepMemory) -> tuple[Int, Int]:
    """Mark for each position the last one whose item meets its item at a crossing; return the range of positions."""
    not_inlined()
    places, pairs, reach = scratch.places, scratch.pairs, scratch.arranged
    top, bottom = n_items, -1
    for k in range(first, last):
        i, j = places[POSITION_OF, pairs[k] // n_items], places[POSITION_OF, pairs[k] % n_items]
        top, bottom = min(top, i, j), max(bottom, i, j)
    for position in range(top, bottom + 1):
        reach[position] = position
    for k in range(first, last):
        i, j = places[POSITION_OF, pairs[k] // n_items], places[POSITION_OF, pairs[k] % n_items]
        reach[min(i, j)] = max(reach[min(i, j)], i, j)
    return top, bottom


@helper
def _units_of_meeting(
    rule: Any, top: Int, bottom: Int, scratch: SweepMemory, discounts: Floats, divisors: Floats
) -> Int:
    """Return the contribution of the items at these positions at the crossing, where those that meet are tied."""
    not_inlined()
    table, places, reach = borrowed(scratch.table), borrowed(scratch.places), scratch.arranged
    values, group = scratch.lines[0], scratch.lines[1]
    units, position = np.int64(0), top
    while position <= bottom and places[RANK_AT, position] < rule.depth:
        rank, before, end = places[RANK_AT, position], table[BEFORE, position], reach[position]
        n = 0
        first = position
        while position <= end:
            end = max(end, reach[position])
            item = places[ITEM_AT, position]
            for k in range(places[SIZE, item]):
                is_group = places[SIZE, item] > 1
                values[n] = scratch.values[places[FIRST_OF, item] + k] if is_group else table[VALUE, item]
                n += 1
            position += 1
        if position == first + 1:
            units += _units(rule, places[ITEM_AT, first], first, table, places, discounts, divisors)
            continue
        value, n_counted = group_value(rule.family, 0, n, values, group), min(n, rule.depth - rank)
        added = 0.0
        if rule.family == DISCOUNTED:
            for k in range(n_counted):
                added += contribution(rule.family, value, before, rank + k, discounts, divisors)
        else:
            added = group_contribution(rule.family, value, before, rank, n, n_counted, 0, group, divisors)
        units += np.int64(np.rint(added * rule.scale))
    return units


@helper
def _walk(
    rule: Any, n_items: Int, n_pairs: Int, scratch: SweepMemory, discounts: Floats, divisors: Floats, out: Crossings,
    above: float,
) -> None:  # fmt: skip
    """Swap items at their crossings, and record where the measure changes, and its peaks at α > `above`."""
    not_inlined()
    keys, pairs, table, places = scratch.keys, scratch.pairs, borrowed(scratch.table), borrowed(scratch.places)
    k = 0
    while k < n_pairs:
        alpha, change, last = keys[k], np.int64(0), k + 1
        while last < n_pairs and keys[last] == alpha:  # all pairs that cross at the same α
            last += 1
        n_documents = places[SIZE, pairs[k] // n_items] + places[SIZE, pairs[k] % n_items]
        # Where only two documents cross, the mean over their orders is the mean of both sides.
        may_peak = (last > k + 1 or n_documents > 2) and alpha > above
        at_crossing, before = np.int64(0), np.int64(0)
        if may_peak:
            top, bottom = _mark_meeting(k, last, n_items, scratch)
            at_crossing = _units_of_meeting(rule, top, bottom, scratch, discounts, divisors)
            for position in range(top, bottom + 1):
                before += _units(rule, places[ITEM_AT, position], position, table, places, discounts, divisors)
        while k < last:
            i, j = pairs[k] // n_items, pairs[k] % n_items
            # Items that cross are usually neighbours, but rounding may put others between them.
            while places[POSITION_OF, j] > places[POSITION_OF, i]:
                change += _swap_with_next(rule, places[POSITION_OF, j] - 1, table, places, discounts, divisors)
            k += 1
        if change != 0:
            out.alphas[out.counts[0]], out.changes[out.counts[0]] = alpha, change
            out.counts[0] += 1
        if may_peak and 2 * (at_crossing - before) != change:
            out.peaks[out.counts[1]], out.bends[out.counts[1]] = alpha, 2 * (at_crossing - before) - change
            out.counts[1] += 1


# --- kernels


@kernel
def count_candidates(lines: Lines, depth: Int, within: Range, counts: Ints) -> None:
    """Count the documents of each query that may rank within the depth, to allocate scratch for `sweep_queries`."""
    largest = 0
    for q in range(within.first, within.last):
        largest = max(largest, lines.offsets[q + 1] - lines.offsets[q])
    by_number, candidates = np.empty((2, largest)), np.empty(largest, np.int64)
    for q in range(within.first, within.last):
        begin, n = lines.offsets[q], lines.offsets[q + 1] - lines.offsets[q]
        for k in range(n):
            row = lines.order[begin + k]
            by_number[0, k], by_number[1, k] = lines.scores[row], lines.slopes[row]
        counts[q] = _candidates(n, within.low, within.high, depth, by_number[0], by_number[1], candidates)


@kernel
def sweep_queries(
    lines: Lines, tables: LookupTables, within: Range, expected: bool, unit: float, out: Crossings, scratch: SweepMemory
) -> None:
    """Write the crossings at which the measure changes, for some queries.

    Args:
        lines: the documents.
        tables: the lookup tables of the measure; a query whose norm is 0 has no value.
        within: the range of queries and α.
        expected: whether documents tied for every α count by the mean over their orders; otherwise they keep their
            order.
        unit: the value of one unit of the integers.
        out: receives the results.
        scratch: scratch memory for the largest query.

    """
    table, places, discounts = borrowed(scratch.table), borrowed(scratch.places), borrowed(tables.discounts)
    above = within.low if expected else np.inf  # only expected ties give a crossing its own value
    for q in range(within.first, within.last):
        begin, end = lines.offsets[q], lines.offsets[q + 1]
        n, norm = end - begin, tables.norms[q]
        out.starts[q] = 0
        if norm == 0.0 or n == 0:
            continue
        by_number, keys, spare_keys = scratch.lines, scratch.keys, scratch.spare_keys
        for k in range(n):
            row = lines.order[begin + k]
            by_number[0, k], by_number[1, k] = lines.scores[row], lines.slopes[row]
        n_candidates = _candidates(
            n, within.low, within.high, tables.depth, by_number[0], by_number[1], scratch.candidates
        )
        for k in range(n_candidates):
            document = scratch.candidates[k]
            keys[k], spare_keys[k] = by_number[0, document], by_number[1, document]
        _order_after(n_candidates, within.low, keys, spare_keys, scratch.arranged)
        n_items = _lay_out(tables.family, n_candidates, tables.values[begin:end], expected, scratch)
        divisors = borrowed(tables.divisors)[begin:end]
        rule = _Rule(tables.family, tables.depth, 1.0 / (norm * unit))
        for item in range(n_items):
            out.starts[q] += _units(rule, item, item, table, places, discounts, divisors)
        n_pairs = _sort_crossings(n_items, within.low, within.high, scratch)
        _walk(rule, n_items, n_pairs, scratch, discounts, divisors, out, above)
